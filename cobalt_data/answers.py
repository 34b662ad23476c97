"""What the tests of a problem say about its task: the answer that each input has.

Two statements may differ in one word and ask for different things. Where both problems test some input, their answers tell:
problems that want different answers to the same input are not the same problem, however alike they read. Where they share no
input, or are tested by asserts, nothing is known. The other way round, tests in common are a sign that they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from cobalt_data.dataset import Version
from cobalt_data.ids import canonical_json, digest
from sandbox import Judge
from sandbox.checkers import outputs_match, trees_match

TELLING = 3
VOUCHING = 12  # words and numbers: tests that say fewer together may be those of other tasks as well

_WORD = re.compile(r"-?\d+(?:\.\d+)?|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class _Task:
    checker: str
    answers: Mapping[str, Any]  # by the digest of the input


class Answers:
    """The answers of a version's problems, each read when it is first asked for."""

    def __init__(self, version: Version, connection: duckdb.DuckDBPyConnection) -> None:
        self._problems = version.files("problems")
        self._connection = connection
        self._tasks: dict[str, _Task] = {}

    def agree(self, left: Sequence[str], right: Sequence[str]) -> list[bool]:
        """For each pair of problem ids: whether no input has two answers."""
        self._read(sorted({*left, *right} - self._tasks.keys()))
        return [_agree(self._tasks[one], self._tasks[other]) for one, other in zip(left, right, strict=True)]

    def _read(self, ids: Sequence[str]) -> None:
        query = "SELECT problem_id, judge, tests FROM read_parquet(?) SEMI JOIN (SELECT unnest(?) AS problem_id) USING (problem_id)"
        rows = self._connection.execute(query, [self._problems, ids]) if ids else None
        while rows is not None and (row := rows.fetchone()):
            self._tasks[row[0]] = _Task(Judge.from_json(row[1]).checker, _answers(json.loads(row[2])))


def test_numbers(tests: Sequence[Mapping[str, Any]]) -> list[int]:
    """A 32-bit number for each test that has an input and an answer; none where they say too little together: fewer than
    `TELLING` inputs, or one answer to all of them."""
    answers = {given: _stripped(answer) for given, answer in _answers(tests).items()}
    if len(answers) < TELLING or len(set(answers.values())) < 2:
        return []
    return [int(digest(given, answer)[:8], 16) for given, answer in answers.items()]


def tests_vouch(tests: Sequence[Mapping[str, Any]]) -> bool:
    """Whether tests say at least so much, `VOUCHING`, that another task hardly has the same."""
    return sum(len(side) for test in tests for side in told(test)) >= VOUCHING


def told(test: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The words and numbers of what goes in and of what must come out."""
    if test["kind"] == "stdin":
        return _WORD.findall(test["input"].casefold()), _WORD.findall(test["output"].casefold())
    if test["kind"] == "call":
        given = canonical_json([test["args"], *test["kwargs"].values()])
        return _WORD.findall(given.casefold()), _WORD.findall(canonical_json(test["expected"]).casefold())
    return [], []  # the code of an assert says too little about what it compares


def _answers(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return dict(filter(None, map(_answer, tests)))


def _stripped(answer: Any) -> str:
    return answer.strip() if isinstance(answer, str) else digest(answer)


def _answer(test: Mapping[str, Any]) -> tuple[str, Any] | None:
    if test["kind"] == "stdin":
        return digest("stdin", test["input"].strip()), test["output"]
    if test["kind"] == "call":
        return digest("call", test["args"], test["kwargs"]), test["expected"]
    return None


def _agree(one: _Task, other: _Task) -> bool:
    return all(
        _same(one.answers[shared], other.answers[shared], one.checker)
        for shared in one.answers.keys() & other.answers.keys()
    )


def _same(answer: Any, other: Any, checker: str) -> bool:
    """Answers to a call are tagged JSON, which may be text as well; there the two rules agree on what is equal."""
    if isinstance(answer, str) and isinstance(other, str):
        return outputs_match(checker, answer, other)
    return trees_match(answer, other, checker)
