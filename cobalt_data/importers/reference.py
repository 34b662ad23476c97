"""JSON lines of the paper's reference code: `id, difficulty, question | instruction`, and three groups of tests.

`test_cases`, `public_test_cases` and `hidden_test_cases` are objects, or JSON text of objects, with `inputs` and `outputs`.
The reference compares the whole stripped output, hence the checker `exact`.

A perturbed problem adds `modified_test_cases`, the two that lie, and `perturbed_public_test_cases`, which begin with these. The
tests of the problem stay the true ones: where the public tests were replaced by perturbed ones, what they truly expect is
looked up in `test_cases`. The lie goes into the metadata, as `perturbation`.
"""

from __future__ import annotations

from collections import Counter

from cobalt_data.importers.fields import (
    BadRow,
    Fields,
    array,
    as_text,
    filled_text,
    identifier,
    lenient_date,
    optional_text,
    parsed,
    record,
)
from cobalt_data.importers.public import choose_public
from cobalt_data.importers.reference_trajectories import perturbation_of
from cobalt_data.importers.stdin_tests import stdin_test
from cobalt_data.rows import Problem
from sandbox import Judge, Test

FIELDS = ("id", "test_cases")
SELECTED_FIELDS = ("example_id", "conversation", "test_cases", "prev_best_pass_rate")


def to_problem(row: Fields, public: int | None) -> Problem:
    origin_id = identifier(row, "id")
    statement = "question" if row.get("question") is not None else "instruction"
    if statement not in row:
        raise BadRow("missing field", "field 'question' is missing, and so is 'instruction': one must state the task")
    difficulty = optional_text(row, "difficulty")
    tests = _tests(row, public)
    perturbation = perturbation_of(
        row, [test for test in tests if test["public"]], _group(row, "modified_test_cases", True)
    )
    date = lenient_date(row, "contest_date")
    return Problem(
        problem_id=f"reference/{origin_id}",
        source="reference",
        title=origin_id,
        difficulty=difficulty.lower() if difficulty else None,
        statement=filled_text(row, statement).strip(),
        starter_code="",
        tests=tests,
        judge=Judge(checker="exact"),
        solutions=(),
        metadata={
            "origin_id": origin_id,
            **({"contest_date": date} if date else {}),
            **({"perturbation": perturbation} if perturbation else {}),
        },
    )


def _tests(row: Fields, public: int | None) -> tuple[Test, ...]:
    """Public then hidden ones; hidden are all the others where the row does not list them."""
    every = _group(row, "test_cases", False)
    shown = _true(_group(row, "public_test_cases", True), every, _group(row, "perturbed_public_test_cases", True))
    hidden = _group(row, "hidden_test_cases", False)
    if shown is None and hidden is None and every is not None:
        tests = choose_public(every, public)
    else:
        tests = (*(shown or ()), *(_without(every or (), shown or ()) if hidden is None else hidden))
    if not tests:
        raise BadRow("no tests", "field 'test_cases' is missing or empty: nothing could judge a program")
    return tests


def _true(
    shown: tuple[Test, ...] | None, every: tuple[Test, ...] | None, perturbed: tuple[Test, ...] | None
) -> tuple[Test, ...] | None:
    """The public tests with their true outputs where the row shows the perturbed ones in their place."""
    if perturbed is None or shown not in (None, perturbed):
        return shown
    outputs = {test["input"]: test["output"] for test in every or ()}
    if not all(test["input"] in outputs for test in perturbed):
        raise BadRow("unpaired tests", "field 'test_cases' lacks an input of 'perturbed_public_test_cases': correct it")
    return tuple({**test, "output": outputs[test["input"]]} for test in perturbed)


def _group(row: Fields, name: str, public: bool) -> tuple[Test, ...] | None:
    """None where the row has no such group."""
    value = parsed(row.get(name), name)
    if value is None:
        return None
    group = record(value, name)
    inputs, outputs = (array(group, key, f"{name}.") for key in ("inputs", "outputs"))
    if len(inputs) != len(outputs):
        message = f"field '{name}' has {len(inputs)} inputs and {len(outputs)} outputs: give one output per input"
        raise BadRow("unpaired tests", message)
    return tuple(
        stdin_test(as_text(given, f"{name}.inputs[{index}]"), as_text(wanted, f"{name}.outputs[{index}]"), public)
        for index, (given, wanted) in enumerate(zip(inputs, outputs, strict=True))
    )


def _without(every: tuple[Test, ...], shown: tuple[Test, ...]) -> list[Test]:
    """`every` less one occurrence for each of `shown`."""
    left = Counter((test["input"], test["output"]) for test in shown)
    hidden = []
    for test in every:
        key = (test["input"], test["output"])
        if left[key]:
            left[key] -= 1
        else:
            hidden.append(test)
    return hidden
