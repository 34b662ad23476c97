"""LiveCodeBench's code generation, both releases: `question_*, platform, contest_*, difficulty, *_test_cases, metadata`.

Public tests are JSON, private ones JSON as well or, in the lite release, packed as `importers.pickled` says. Tests of kind
`functional` call a method of `class Solution`, with one JSON value per line of the input. The published harness compares
numbers exactly, whatever they look like.
"""

from __future__ import annotations

import json
from typing import Any

from cobalt_data.importers.calls import call_test, entry_point_of
from cobalt_data.importers.fields import (
    BadRow,
    Fields,
    filled_text,
    identifier,
    iso_date,
    optional_text,
    parsed,
    record,
    required,
    text,
    wrong_type,
)
from cobalt_data.importers.pickled import pickled_text
from cobalt_data.importers.stdin_tests import holds_decimals, stdin_test
from cobalt_data.rows import Problem
from sandbox import Judge, Test

FIELDS = ("question_content", "question_id", "platform", "contest_date", "public_test_cases", "private_test_cases")
FUNCTIONAL = "functional"
SAME_NUMBER = "float:0"


def to_problem(row: Fields, public: int | None) -> Problem:
    """`public` is not used: the source says which tests are public."""
    question_id = identifier(row, "question_id")
    tests = (*_tests(row, "public_test_cases", True), *_tests(row, "private_test_cases", False))
    if not tests:
        raise BadRow("no tests", "fields 'public_test_cases' and 'private_test_cases' are empty: nothing could judge")
    starter = text(row, "starter_code").rstrip() if row.get("starter_code") is not None else ""
    title = optional_text(row, "question_title")
    return Problem(
        problem_id=f"livecodebench/{question_id}",
        source="livecodebench",
        title=title or question_id,
        difficulty=(optional_text(row, "difficulty") or "").lower() or None,
        statement=filled_text(row, "question_content").strip(),
        starter_code=starter,
        tests=tests,
        judge=_judge(row, tests, starter),
        solutions=(),
        metadata={
            "origin_id": question_id,
            "platform": optional_text(row, "platform"),
            "contest": optional_text(row, "contest_id"),
            "contest_date": iso_date(row, "contest_date"),
        },
    )


def _judge(row: Fields, tests: tuple[Test, ...], starter: str) -> Judge:
    kinds = {test["kind"] for test in tests}
    if len(kinds) > 1:
        raise BadRow("mixed tests", "the row has tests of both kinds, functional and stdin: one problem has one kind")
    if kinds == {"stdin"}:
        return Judge(SAME_NUMBER if holds_decimals(tests) else "tokens")
    function = text(record(parsed(required(row, "metadata"), "metadata"), "metadata"), "func_name", "metadata.")
    return Judge(entry_point=entry_point_of(function, "metadata.func_name", starter))


def _tests(row: Fields, name: str, public: bool) -> list[Test]:
    value = required(row, name)
    if isinstance(value, str) and not value.lstrip().startswith("["):
        value = pickled_text(value.strip(), name) if value.strip() else "[]"
    tests = parsed(value, name)
    if not isinstance(tests, list):
        raise wrong_type(name, tests, "an array of tests")
    return [_test(given, f"{name}[{index}]", public) for index, given in enumerate(tests)]


def _test(given: Any, at: str, public: bool) -> Test:
    fields = record(given, at)
    stdin, stdout = text(fields, "input", f"{at}."), text(fields, "output", f"{at}.")
    if fields.get("testtype") != FUNCTIONAL:
        return stdin_test(stdin, stdout, public)
    arguments = [_json(line, f"{at}.input") for line in stdin.split("\n") if line.strip()]
    return call_test(arguments, _json(stdout, f"{at}.output"), public, at)


def _json(value: str, name: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadRow("not JSON", f"field '{name}' holds a line that is no JSON ({error}): correct it") from None
