"""One problem, trajectory or prompt, found by its id and laid out turn by turn for somebody who wants to read it.

Plain records: `cobalt_data.rendering` puts them on a terminal, `dataclasses.asdict` into JSON.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.row_checks import wrong_with_row
from cobalt_data.rows import Chat, Problem, Prompt, Trajectory, Turn, opening_of
from cobalt_data.schemas import ID_COLUMNS
from sandbox import Test


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One program, how it differs from the one before (unified; None at turn 0), and what was said about it."""

    turn: int
    program: str | None
    diff: str | None
    verdicts: Sequence[str]  # of the public tests, in order
    public_pass_rate: float | None
    hidden_pass_rate: float | None
    pass_rate: float
    finish_reason: str
    tokens: int
    feedback: str


@dataclass(frozen=True, slots=True)
class Shown:
    """`facts` are what is worth knowing in a word each; `opening` is the chat before the first program."""

    table: str
    id: str
    facts: Mapping[str, Any]
    opening: Chat
    turns: Sequence[ShownTurn] = ()
    tests: Sequence[Test] = ()


def show(version: Version, wanted: str | None = None) -> Shown:
    """The row whose id is `wanted` or begins like that; by default the first solved trajectory, else the first row of all.

    Raises InputError if there is no such row, or more than one.
    """
    table, row_id = _first(version) if wanted is None else _find(version, wanted)
    row = _row(version, table, row_id)
    if table == "problems":
        return _show_problem(Problem.from_row(row))
    if table == "trajectories":
        return _show_trajectory(Trajectory.from_row(row), row_id)
    return _show_prompt(Prompt.from_row(row), version)


def _first(version: Version) -> tuple[str, str]:
    if version.has("trajectories"):
        return "trajectories", _least_id(version, "trajectories", "solved") or _least_id(version, "trajectories")
    table = "prompts" if version.has("prompts") and not version.has("problems") else "problems"
    return table, _least_id(version, table)


def _least_id(version: Version, table: str, flag: str | None = None) -> str:
    """Of all rows, or of those with the flag; empty where there is none. A side is in order, so it is read up to the first."""
    firsts = (next(_ids(version, table, side, flag), "") for side in version.manifest.splits(table))
    return min(filter(None, firsts), default="")


def _ids(version: Version, table: str, side: str, flag: str | None) -> Iterator[str]:
    key = ID_COLUMNS[table]
    for piece in version.pieces(table, side, [key, flag] if flag else [key]):
        yield from (piece.filter(piece[flag]) if flag else piece)[key].to_pylist()


def _find(version: Version, wanted: str) -> tuple[str, str]:
    found = []
    for table, key in ID_COLUMNS.items():
        if version.has(table):
            beginning = version.scan(table).select(key).filter(pl.col(key).str.starts_with(wanted))
            ids = beginning.collect()[key].to_list()
            if wanted in ids:
                return table, wanted
            found += [(table, row_id) for row_id in ids]
    if not found:
        raise InputError(f"{version.reference} has no problem, trajectory or prompt whose id begins with {wanted!r}")
    if len(found) > 1:
        some = ", ".join(row_id for _, row_id in sorted(found)[:3])
        raise InputError(f"{len(found)} ids begin with {wanted!r} ({some}, ...): give more of the one you mean")
    return found[0]


def _row(version: Version, table: str, row_id: str) -> dict[str, Any]:
    found = version.scan(table).filter(pl.col(ID_COLUMNS[table]) == row_id).collect()
    row = found.row(0, named=True)
    if wrong := wrong_with_row(table, row):
        raise InputError(f"{version.reference}: {table} {row_id} {wrong}: `cobalt data verify` says what is damaged")
    return row


def _show_problem(problem: Problem) -> Shown:
    facts = {
        "title": problem.title,
        "source": problem.source,
        "difficulty": problem.difficulty,
        "split": problem.split,
        "checker": problem.judge.checker,
        "public tests": len(problem.public_tests),
        "hidden tests": len(problem.hidden_tests),
        "solutions": len(problem.solutions),
    }
    statement = {"role": "user", "content": "\n\n".join(filter(None, (problem.statement, problem.starter_code)))}
    return Shown("problems", problem.problem_id, facts, (statement,), tests=problem.public_tests)


def _show_trajectory(trajectory: Trajectory, row_id: str) -> Shown:
    facts = {
        "problem": trajectory.problem_id,
        "model": trajectory.model,
        "sample": trajectory.sample_index,
        "split": trajectory.split,
        "best pass rate": max(trajectory.pass_rates),
        **_perturbation_facts(trajectory.perturbation),
    }
    return Shown(
        "trajectories",
        row_id,
        facts,
        opening_of(trajectory.messages, len(trajectory.turns)),
        show_turns(trajectory.turns),
    )


def _show_prompt(prompt: Prompt, version: Version) -> Shown:
    """Its trajectory's turns as far as it goes; the last feedback is the prompt's own, which may be perturbed."""
    turns: Sequence[ShownTurn] = ()
    facts = {
        "problem": prompt.problem_id,
        "trajectory": prompt.trajectory_id,
        "turn": prompt.turn,
        "split": prompt.split,
        "best pass rate before": prompt.prev_best_pass_rate,
        "tokens": prompt.prompt_tokens,
        **_perturbation_facts(prompt.perturbation),
    }
    chat = prompt.prompt
    if prompt.trajectory_id is not None and version.has("trajectories"):
        trajectory = Trajectory.from_row(_row(version, "trajectories", prompt.trajectory_id))
        chat = opening_of(prompt.prompt, prompt.turn)
        served = [message["content"] for message in prompt.prompt[len(chat) :] if message["role"] == "user"]
        turns = show_turns(trajectory.turns[: prompt.turn], served)
    return Shown("prompts", prompt.prompt_id, facts, chat, turns)


def _perturbation_facts(perturbation: Mapping[str, Any] | None) -> dict[str, Any]:
    if perturbation is None:
        return {}
    true_outputs = perturbation.get("true_outputs")
    return {
        "perturbed": perturbation["kind"],
        "perturbed tests": perturbation.get("tests"),
        "true outputs": None if true_outputs is None else json.dumps(true_outputs, ensure_ascii=False),
    }


def show_turns(turns: Sequence[Turn], feedback: Sequence[str] = ()) -> tuple[ShownTurn, ...]:
    """`feedback` stands in for the turns' own where it is given."""
    befores = [None, *(before.program or "" for before, _ in pairwise(turns))]
    return tuple(
        ShownTurn(
            turn=number,
            program=turn.program,
            diff=None if before is None else program_diff(before, turn.program or ""),
            verdicts=[outcome.verdict.value for outcome in turn.public],
            public_pass_rate=turn.public_pass_rate,
            hidden_pass_rate=turn.hidden_pass_rate,
            pass_rate=turn.pass_rate,
            finish_reason=turn.finish_reason,
            tokens=turn.completion_tokens,
            feedback=feedback[number] if number < len(feedback) else turn.feedback,
        )
        for number, (turn, before) in enumerate(zip(turns, befores, strict=True))
    )


def program_diff(before: str, after: str) -> str:
    """A unified diff without its two header lines; empty if nothing changed."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")
    return "\n".join(list(lines)[2:])
