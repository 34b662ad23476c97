"""From a test to what the agent is sent, and from what became of it to a verdict. Comparing happens here, on the host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sandbox.checkers import outputs_match, trees_match
from sandbox.errors import InputError
from sandbox.inside import wire
from sandbox.outcome import Outcome
from sandbox.values import decode
from sandbox.verdicts import Judge, Test, TestResult, Verdict

_STORED = 4000  # characters of each stream that a result keeps
_MOST_INPUT = 96 << 20  # what fits the sandbox's scratch space

_ENDED = {
    wire.CPU_LIMIT: Verdict.TIME_LIMIT,
    wire.WALL_LIMIT: Verdict.TIME_LIMIT,
    wire.MEMORY_LIMIT: Verdict.MEMORY_LIMIT,
    wire.OUTPUT_LIMIT: Verdict.OUTPUT_LIMIT,
    wire.SYNTAX_ERROR: Verdict.SYNTAX_ERROR,
}


def payload(test: Test, judge: Judge) -> bytes:
    """What the agent is sent for this test; never what is expected. Raises InputError if the test is malformed."""
    kind = test.get("kind")
    if kind == "stdin":
        text: str = _field(test, "input", str)
        data = b"s" + text.encode("utf-8", "surrogatepass")
        _field(test, "output", str)
    elif kind in ("call", "assert"):
        if not judge.entry_point:
            raise InputError(
                f"a {kind} test needs judge.entry_point (--entry-point): name the function, or Class().method"
            )
        data = _call(test) if kind == "call" else _code(test)
    else:
        raise InputError(f"test.kind is {kind!r}: use stdin, call or assert")
    if len(data) > _MOST_INPUT:
        raise InputError(f"a test's input has {len(data) >> 20} MiB: at most {_MOST_INPUT >> 20} fit the sandbox")
    return data


def check(test: Test, judge: Judge) -> None:
    """Raises InputError where a test from elsewhere is not one that this judge can use, to the last of its values."""
    payload(test, judge)
    if test["kind"] != "call":
        return
    try:
        for value in (test["args"], test.get("kwargs"), test["expected"]):
            decode(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"a value of a call test is not in the tagged form: {error}") from None


def _call(test: Test) -> bytes:
    if "expected" not in test:
        raise InputError("a call test has no field `expected`")
    kwargs = test.get("kwargs") or {}
    if not isinstance(kwargs, dict):
        raise InputError(f"test.kwargs is {str(kwargs)[:60]!r}: a call test needs an object there, or nothing")
    return b"c" + json.dumps({"args": _field(test, "args", list), "kwargs": kwargs}).encode()


def _code(test: Test) -> bytes:
    code: str = _field(test, "code", str)
    try:
        return b"a" + code.encode()
    except UnicodeEncodeError:
        raise InputError("test.code holds half a surrogate pair, which no source of Python can") from None


def _field(test: Mapping[str, Any], name: str, kind: type) -> Any:
    value = test.get(name)
    if not isinstance(value, kind):
        raise InputError(f"test.{name} is {str(value)[:60]!r}: a {test.get('kind')} test needs a {kind.__name__} there")
    return value


def result(test: Test, judge: Judge, outcome: Outcome) -> TestResult:
    """The result of a stdin or call test. Raises InputError if it is the judge's prelude that failed."""
    if outcome.ended == wire.PRELUDE_ERROR:
        raise InputError(f"judge.prelude fails: {stored(outcome.stderr).strip().splitlines()[-1]}")
    return TestResult(
        verdict=_verdict(test, judge, outcome),
        seconds=outcome.cpu_s,
        memory_mb=outcome.peak / (1 << 20) if outcome.peak else None,
        stdout=stored(outcome.stdout),
        stderr=stored(outcome.stderr),
        returned=stored(outcome.record) if outcome.record else None,
    )


def failure(judge: Judge, outcome: Outcome) -> Verdict | None:
    """The verdict of a test that did not come to an end by itself, or not to a good one; None if it did.

    An overrun outweighs what the program did about it: memory beyond the limit is a memory limit even if the error was
    swallowed, and so is a request that the interpreter refused with MemoryError.
    """
    if outcome.ended in _ENDED:
        return _ENDED[outcome.ended]
    if outcome.peak > judge.memory_mb << 20:
        return Verdict.MEMORY_LIMIT
    if outcome.cpu_s > judge.time_limit_s:
        return Verdict.TIME_LIMIT
    if outcome.status != 0:
        last_line = outcome.stderr.rstrip().rpartition(b"\n")[2]
        return Verdict.MEMORY_LIMIT if last_line.startswith(b"MemoryError") else Verdict.RUNTIME_ERROR
    return None


def _verdict(test: Test, judge: Judge, outcome: Outcome) -> Verdict:
    if failed := failure(judge, outcome):
        return failed
    if test["kind"] == "stdin":
        matches = outputs_match(judge.checker, test["output"], outcome.stdout)
    else:
        if not outcome.record:
            return Verdict.RUNTIME_ERROR  # it left without returning
        matches = trees_match(test["expected"], parsed(outcome.record), judge.checker)
    return Verdict.PASSED if matches else Verdict.WRONG_ANSWER


def parsed(record: bytes) -> Any:
    """The JSON of a record, or an object that equals nothing if a forged one is no JSON."""
    try:
        return json.loads(record)
    except (ValueError, RecursionError):
        return {"$object": "forged"}


def stored(data: bytes) -> str:
    """`data` as text, its middle left out if it is long."""
    text = data.decode("utf-8", "replace")
    if len(text) <= _STORED:
        return text
    half = _STORED // 2
    return f"{text[:half]}\n[{len(text) - _STORED} characters left out]\n{text[-half:]}"
