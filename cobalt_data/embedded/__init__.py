"""Small stdin/stdout problems written for this project, the same on every machine.

A *family* (`FAMILIES`, one theme per module) exercises one skill; its tasks differ in what is asked, not only in numbers.
Each reference program is run when the problems are made, and what it prints is the expected output.

Splits: `test_families` has the families that are never trained on, `test_variants` every fourth task of the others,
`train` the rest. Difficulty is by construction: `easy` takes one expression, `medium` a condition, a loop or a detail
that is easily missed, `hard` a small algorithm.
"""

from __future__ import annotations

from typing import Any

from cobalt_data.embedded import (
    arithmetic,
    choices,
    conditions,
    events,
    grids,
    integers,
    lists,
    loops,
    neighbours,
    puzzles,
    steps,
    text,
    tracks,
    two_inputs,
    word_and_more,
    words,
)
from cobalt_data.embedded.build import build_problem
from cobalt_data.embedded.family import Family

__all__ = ["FAMILIES", "embedded_problems"]

FAMILIES: tuple[Family, ...] = (
    *arithmetic.FAMILIES,
    *integers.FAMILIES,
    *loops.FAMILIES,
    *steps.FAMILIES,
    *conditions.FAMILIES,
    *lists.FAMILIES,
    *neighbours.FAMILIES,
    *two_inputs.FAMILIES,
    *words.FAMILIES,
    *word_and_more.FAMILIES,
    *text.FAMILIES,
    *grids.FAMILIES,
    *tracks.FAMILIES,
    *events.FAMILIES,
    *puzzles.FAMILIES,
    *choices.FAMILIES,
)


def split_of(family: Family, index: int) -> str:
    if family.held_out:
        return "test_families"
    return "test_variants" if index % 4 == 1 else "train"


def embedded_problems() -> list[dict[str, Any]]:
    """All rows of the problems table, in `problem_id` order. Takes about half a second."""
    problems = [
        build_problem(family.name, task, split_of(family, index))
        for family in FAMILIES
        for index, task in enumerate(family.tasks)
    ]
    return [problem.to_row() for problem in sorted(problems, key=lambda problem: problem.problem_id)]
