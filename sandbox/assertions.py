"""Assert tests: the test's code in one sandbox, the program in another, the host in between.

The examiner's calls arrive as frames; each is answered by a fresh process of the program, as a call test would be. Only plain
data passes, in both directions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import InputError, SandboxError
from sandbox.inside import examiner, wire
from sandbox.inside.watch import Limits
from sandbox.judging import failure, parsed, stored
from sandbox.outcome import Outcome
from sandbox.verdicts import Judge, TestResult, Verdict
from sandbox.worker import Program, Worker

_EXAMINER_S = 3600.0  # it waits for the program's calls, which have limits of their own


@dataclass(slots=True)
class _Calls:
    """What the program's calls came to, so far."""

    judge: Judge
    seconds: float = 0.0
    peak: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    overrun: Verdict | None = None

    def answer(self, outcome: Outcome) -> dict[str, Any]:
        """What the examiner is told about a call."""
        self.seconds += outcome.cpu_s
        self.peak = max(self.peak, outcome.peak)
        self.outcomes = [outcome]
        if outcome.ended == wire.PRELUDE_ERROR:
            raise InputError(f"judge.prelude fails: {stored(outcome.stderr).strip().splitlines()[-1]}")
        failed = failure(self.judge, outcome)
        if failed is None and self.seconds > self.judge.time_limit_s:
            failed = Verdict.TIME_LIMIT
        if failed is None and outcome.record:
            return {"value": parsed(outcome.record)}
        if failed not in (None, Verdict.RUNTIME_ERROR):
            self.overrun = failed
        name, _, message = stored(outcome.stderr).rstrip().rpartition("\n")[2].partition(": ")
        return {"error": name, "message": message}


def examine(program: Worker, examining: Worker, code: bytes, judge: Judge, limits: Limits) -> TestResult:
    """The result of one assert test of the program that is loaded in `program`.

    Raises InputError if the test's code is at fault: it does not compile, or passes what is no plain data.
    """
    memory = max(limits.memory, 512 << 20)
    patient = Limits(_EXAMINER_S, _EXAMINER_S, memory, limits.processes, limits.output, limits.file)
    examining.load(Program("", judge.prelude, judge.entry_point, examines=True), patient, count=1)
    examining.send(wire.pack(wire.TEST, code))
    calls = _Calls(judge)
    while True:
        kind, data = examining.receive()
        if kind != wire.CALL:
            break
        program.send(wire.pack(wire.TEST, b"c" + data))
        outcome = program.receive_outcome()
        examining.send(wire.pack(wire.REPLY, json.dumps(calls.answer(outcome)).encode()))
    return _result(calls, Outcome.unpack(data))


def _result(calls: _Calls, examined: Outcome) -> TestResult:
    verdicts = {
        examiner.HELD: Verdict.PASSED,
        examiner.FAILED: Verdict.WRONG_ANSWER,
        examiner.PROGRAM_FAILED: Verdict.RUNTIME_ERROR,
    }
    note = stored(examined.stderr)
    if calls.overrun is None and examined.record == examiner.UNUSABLE:
        raise InputError(f"an assert test cannot be used: {note.strip().rpartition(chr(10))[2]}")
    if calls.overrun is None and examined.record not in verdicts:
        raise SandboxError(f"an assert test ended without a record (status {examined.status}): {note[-300:]}")
    verdict = calls.overrun or verdicts[examined.record]
    last = calls.outcomes[-1] if calls.outcomes else examined
    return TestResult(
        verdict=verdict,
        seconds=calls.seconds,
        memory_mb=calls.peak / (1 << 20) if calls.peak else None,
        stdout=stored(last.stdout) if calls.outcomes else "",
        stderr=note if verdict is Verdict.WRONG_ANSWER else stored(last.stderr),
        returned=None,
    )
