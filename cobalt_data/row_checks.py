"""Checks of single rows: whether one is such as this project writes."""

from __future__ import annotations

from typing import Any

from cobalt_data.rows import Problem, Prompt, Row, Trajectory
from cobalt_data.schemas import ID_COLUMNS

TYPES: dict[str, type[Problem] | type[Trajectory] | type[Prompt]] = {
    "problems": Problem,
    "trajectories": Trajectory,
    "prompts": Prompt,
}


def wrong_with_row(name: str, row: Row) -> str | None:
    """Why a row with all columns of the table `name` is none that cobalt writes; None where it is one."""
    try:
        expected: dict[str, Any] = TYPES[name].from_row(row).to_row()
    except Exception as error:  # whatever a row of a stranger makes the parser do
        return f"is not a row of this table: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
    wrong = [column for column, value in expected.items() if value != row[column]]
    if ID_COLUMNS[name] in wrong:
        return f"its content has the id {expected[ID_COLUMNS[name]]}"
    return f"does not agree with the rest of the row in {', '.join(wrong)}" if wrong else None
