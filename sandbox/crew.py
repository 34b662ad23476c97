"""The sandboxes of one of the pool's threads, and how the tests of one program are spread over them.

Tests that do not depend on each other's verdict are all sent at once, and before the last of them is done the next program is
sent after them, so that the agent never waits for the host.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass

from sandbox import judging
from sandbox.assertions import examine
from sandbox.backends import Backend
from sandbox.inside import watch, wire
from sandbox.verdicts import Judge, ProgramResult, Test, TestResult, Verdict
from sandbox.worker import Program, Worker

Results = Generator[TestResult, None, None]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One program to be judged; `payloads` are its tests as agents take them."""

    program: str
    tests: Sequence[Test]
    payloads: Sequence[bytes]
    judge: Judge
    limits: watch.Limits
    stop_early: bool
    future: Future[ProgramResult]

    @property
    def streams(self) -> bool:
        """Whether all of its tests can be sent at once."""
        return not self.stop_early and all(test["kind"] != "assert" for test in self.tests)


class Crew:
    """One sandbox for programs, and one for the code of assert tests once there is such a test. One thread drives both."""

    def __init__(self, backend: Backend, program: Worker | None = None) -> None:
        self._backend = backend
        self._program = program
        self._examiner: Worker | None = None
        self._begun: Job | None = None
        self._next: Job | None = None

    def judged(self, job: Job, waiting_job: Callable[[], Job | None]) -> Iterator[TestResult]:
        """The results of a job's tests, in order. Raises SandboxError if an agent is lost.

        `waiting_job` gives a job to begin ahead, or None; `take_next` returns it afterwards.
        """
        program = self._program = self._program or Worker(self._backend)
        if self._begun is not job:
            self._begin(program, job)
        self._begun = None
        results = self._streamed(program, job, waiting_job) if job.streams else self._one_by_one(program, job)
        for result in results:
            yield result
            if job.stop_early and result.verdict is not Verdict.PASSED:
                results.close()
                return

    def take_next(self) -> Job | None:
        """The job that was taken ahead, if any."""
        job, self._next = self._next, None
        return job

    def dismiss(self) -> None:
        """Ends the sandboxes. A job that was begun ahead will be begun again."""
        for worker in (self._program, self._examiner):
            if worker:
                worker.close()
        self._program = self._examiner = self._begun = None

    def _begin(self, program: Worker, job: Job) -> None:
        """Queues what can be sent before any outcome is known."""
        source = Program(job.program, job.judge.prelude, job.judge.entry_point)
        known = all(test["kind"] != "assert" for test in job.tests)
        program.load(source, job.limits, len(job.tests) if known else -1, eager=not job.streams)
        for payload in job.payloads if job.streams else ():
            program.send(wire.pack(wire.TEST, payload))

    def _begin_next(self, program: Worker, waiting_job: Callable[[], Job | None]) -> None:
        if self._next is None and (job := waiting_job()):
            self._next = job
            if job.streams:
                self._begin(program, job)
                self._begun = job

    def _streamed(self, program: Worker, job: Job, waiting_job: Callable[[], Job | None]) -> Results:
        last = len(job.tests) - 1
        for index, test in enumerate(job.tests):
            if index == last:
                self._begin_next(program, waiting_job)
            yield judging.result(test, job.judge, program.receive_outcome())

    def _one_by_one(self, program: Worker, job: Job) -> Results:
        pairs = list(zip(job.tests, job.payloads, strict=True))
        while pairs:
            count = next((n for n, (test, _) in enumerate(pairs) if test["kind"] == "assert"), len(pairs))
            with closing(program.outcomes([payload for _, payload in pairs[:count]])) as outcomes:
                for (test, _), outcome in zip(pairs, outcomes, strict=False):
                    yield judging.result(test, job.judge, outcome)
            for _, code in pairs[count : count + 1]:
                examiner = self._examiner = self._examiner or Worker(self._backend)
                yield examine(program, examiner, code, job.judge, job.limits)
            pairs = pairs[count + 1 :]
