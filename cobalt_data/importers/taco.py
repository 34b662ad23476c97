"""TACO as BAAI publishes it, and TACO-verified: the fields of `importers.input_output` and labels of a problem's topics.

The first has no ids, so a problem's id is a hash of its question and tests. `date` is the day of the contest.
"""

from __future__ import annotations

from typing import Any

from cobalt_data.ids import row_id
from cobalt_data.importers.fields import BadRow, Fields, filled_text, identifier, lenient_date, optional_text
from cobalt_data.importers.input_output import platform, solutions, starter_code, tests_and_judge
from cobalt_data.rows import Problem

FIELDS = ("question", "solutions", "input_output", "difficulty", "source", "tags")
UNKNOWN = "unknown_difficulty"


def to_problem(row: Fields, public: int | None) -> Problem:
    question = filled_text(row, "question").strip()
    tests, judge = tests_and_judge(row, public)
    origin_id = identifier(row, "id") if row.get("id") is not None else _hash_of(question, row.get("input_output"))
    difficulty = (optional_text(row, "difficulty") or UNKNOWN).lower()
    url, source = optional_text(row, "url"), optional_text(row, "source")
    title = optional_text(row, "name")
    return Problem(
        problem_id=f"taco/{origin_id}",
        source="taco",
        title=title or origin_id,
        difficulty=None if difficulty == UNKNOWN else difficulty,
        statement=question,
        starter_code=starter_code(row),
        tests=tests,
        judge=judge,
        solutions=solutions(row),
        metadata={
            "origin_id": origin_id,
            "platform": source or platform(url),
            "url": url,
            "contest_date": lenient_date(row, "date"),
            "pictures": optional_text(row, "picture_num"),
        },
    )


def _hash_of(question: str, tests: Any) -> str:
    try:
        return row_id("taco", question, tests)
    except (TypeError, ValueError) as error:
        raise BadRow(
            "not storable", f"field 'input_output' holds a value that JSON lacks ({error}): give the row an 'id'"
        ) from None
