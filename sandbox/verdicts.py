"""The records that go into and come out of the sandbox.

A *test* is a plain mapping as stored in a dataset: `{"kind": "stdin" | "call" | "assert", "public": bool, ...}`; stdin has
`input, output`; call has `args, kwargs, expected` (values beyond JSON in the tagged form of `sandbox.values`); assert has
`code`. A *judge* is everything else that a verdict needs. A *verdict* is a value: a sandbox that fails raises instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from sandbox.errors import InputError

Test = Mapping[str, Any]


class Verdict(StrEnum):
    """What became of one test, or of a program: the verdict of its first failing test, `passed` if there is none."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong_answer"
    RUNTIME_ERROR = "runtime_error"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    SYNTAX_ERROR = "syntax_error"
    NO_CODE = "no_code"


@dataclass(frozen=True, slots=True)
class Judge:
    """How to judge a program: everything but the tests that a verdict needs.

    `checker` is `tokens | lines | exact | float:EPS | multiset` (rules in `sandbox.checkers`); `entry_point` names the
    function or `Class().method` that call and assert tests use; `prelude` is source that runs before the program in the
    same namespace (a `from __future__` import in the program stays legal); `time_limit_s` is CPU seconds per test;
    `memory_mb` MiB of resident memory per test.
    """

    checker: str = "tokens"
    entry_point: str | None = None
    prelude: str = ""
    time_limit_s: float = 10.0
    memory_mb: int = 512

    def __post_init__(self) -> None:
        name, _, argument = self.checker.partition(":")
        if name == "float":
            try:
                eps_is_valid = 0 <= float(argument) < 1
            except ValueError:
                eps_is_valid = False
            if not eps_is_valid:
                raise InputError(f"judge.checker is {self.checker!r}: float:EPS takes a number in [0, 1)")
        elif self.checker not in ("tokens", "lines", "exact", "multiset"):
            raise InputError(f"judge.checker is {self.checker!r}: use tokens, lines, exact, float:EPS or multiset")
        if not 0 < self.time_limit_s <= 3600:
            raise InputError(f"judge.time_limit_s is {self.time_limit_s!r}: give CPU seconds in (0, 3600]")
        if self.memory_mb < 16:
            raise InputError(f"judge.memory_mb is {self.memory_mb!r}: an interpreter alone needs 16")

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Judge:
        """Raises InputError if `text` is not a JSON object with exactly the fields of a judge (any may be left out)."""
        try:
            fields = json.loads(text)
            return cls(**fields)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"judge {text[:80]!r} is not a valid judge: {error}") from None


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test of one program. `stdout`, `stderr` and `returned` are cut off for storage, never for comparison.

    `seconds` is CPU time; `memory_mb` the peak of resident memory in MiB, None where the backend cannot see it;
    `returned` the call's value in the tagged form as JSON text, None unless the test is a call that returned.
    """

    __test__ = False  # its name begins with Test, but pytest must not collect it

    verdict: Verdict
    seconds: float
    memory_mb: float | None
    stdout: str
    stderr: str
    returned: str | None


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The tests of one program, in the order they were given. With early stop, only those up to the first failure."""

    verdict: Verdict
    tests: tuple[TestResult, ...]
    backend: str

    @property
    def pass_rate(self) -> float:
        """Share of the tests run that passed; 0.0 where there were none."""
        passed = sum(test.verdict is Verdict.PASSED for test in self.tests)
        return passed / len(self.tests) if self.tests else 0.0
