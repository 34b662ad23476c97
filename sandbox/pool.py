"""The pool: any number of programs in flight, a bounded number of sandboxes, verdicts as futures.

One thread per worker takes programs from a queue. A worker whose agent is lost is replaced and its program judged again from
the beginning; after the last attempt the future raises SandboxError, so that no failure of ours ever looks like a verdict.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from queue import SimpleQueue
from types import TracebackType

from sandbox import judging
from sandbox.assertions import examine
from sandbox.backends import Backend, choose
from sandbox.errors import CobaltError, SandboxError, SandboxUnavailable
from sandbox.inside import watch
from sandbox.limits import Limits
from sandbox.verdicts import Judge, ProgramResult, Test, TestResult, Verdict
from sandbox.worker import Program, Worker

_ATTEMPTS = 3
_LONGEST_SOURCE = 4 << 20


@dataclass(frozen=True, slots=True)
class _Job:
    program: str
    tests: Sequence[Test]
    payloads: Sequence[bytes]
    judge: Judge
    limits: watch.Limits
    stop_early: bool
    future: Future[ProgramResult]


class Pool:
    """Judges programs in sandboxes of one backend.

    `backend` is `auto` (docker, then bubblewrap), `docker`, `bubblewrap` or, for trusted programs, `process`; `workers` the
    number of sandboxes, by default one per core that this process may use. Raises SandboxUnavailable if no such sandbox
    starts on this machine. `submit` may be called from any thread.
    """

    def __init__(self, backend: str = "auto", workers: int | None = None) -> None:
        self._size = workers or len(os.sched_getaffinity(0))
        self._backend: Backend = choose(backend)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._in_flight = 0
        self._closed = False
        try:
            first = Worker(self._backend)
        except SandboxError as error:
            self._backend.close()
            raise SandboxUnavailable(f"the backend {self._backend.name} does not start here: {error}") from None
        self._start_thread(_Crew(self._backend, first))

    @property
    def backend(self) -> str:
        """The name of the backend in use."""
        return self._backend.name

    def submit(
        self,
        program: str | None,
        tests: Sequence[Test],
        judge: Judge,
        stop_early: bool = False,
        limits: Limits | None = None,
    ) -> Future[ProgramResult]:
        """The future verdict on `program`. Results come in the order of `tests`, up to the first failure if `stop_early`.

        None as the program means that there was no code. The future raises SandboxError if sandboxes kept failing, InputError
        if a prelude or an assert test turns out to be unusable; malformed tests raise InputError here.
        """
        complete = (limits or Limits()).complete(judge)
        payloads = [judging.payload(test, judge) for test in tests]
        future: Future[ProgramResult] = Future()
        if program is None or len(program) > _LONGEST_SOURCE:
            verdict = Verdict.NO_CODE if program is None else Verdict.SYNTAX_ERROR
            note = "" if program is None else f"SyntaxError: the program is longer than {_LONGEST_SOURCE >> 20} MiB"
            future.set_result(self._untried(verdict, note, 1 if stop_early else len(tests)))
            return future
        with self._lock:
            if self._closed:
                raise SandboxError("the pool is closed")
            self._in_flight += 1
            if self._in_flight > len(self._threads) and len(self._threads) < self._size:
                self._start_thread(_Crew(self._backend))
        self._jobs.put(_Job(program, tests, payloads, judge, complete, stop_early, future))
        return future

    def close(self) -> None:
        """Waits for what was submitted, then ends all sandboxes."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._backend.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._cancel_waiting()
        self.close()

    def _untried(self, verdict: Verdict, note: str, count: int) -> ProgramResult:
        test = TestResult(verdict, 0.0, None, "", note, None)
        return ProgramResult(verdict, (test,) * count, self.backend)

    def _cancel_waiting(self) -> None:
        while not self._jobs.empty():
            if job := self._jobs.get():
                job.future.cancel()

    def _start_thread(self, crew: _Crew) -> None:
        thread = threading.Thread(target=self._work, args=(crew,), name=f"sandbox-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, crew: _Crew) -> None:
        while job := self._jobs.get():
            if job.future.set_running_or_notify_cancel():
                self._judge(crew, job)
            with self._lock:
                self._in_flight -= 1
        crew.dismiss()

    def _judge(self, crew: _Crew, job: _Job) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                tests = tuple(crew.judged(job))
            except SandboxError as error:
                crew.dismiss()
                if attempt == _ATTEMPTS:
                    job.future.set_exception(SandboxError(f"{error} (attempt {attempt} of {_ATTEMPTS})"))
                continue
            except BaseException as error:
                if not isinstance(error, CobaltError):
                    crew.dismiss()
                job.future.set_exception(error)
                return
            failed = (test.verdict for test in tests if test.verdict is not Verdict.PASSED)
            job.future.set_result(ProgramResult(next(failed, Verdict.PASSED), tests, self.backend))
            return


class _Crew:
    """The sandboxes of one thread: one for programs, and one for the code of assert tests once there is such a test."""

    def __init__(self, backend: Backend, program: Worker | None = None) -> None:
        self._backend = backend
        self._program = program
        self._examiner: Worker | None = None

    def judged(self, job: _Job) -> Iterator[TestResult]:
        """The results of a job's tests, in order. Raises SandboxError if an agent is lost."""
        program = self._program = self._program or Worker(self._backend)
        pairs = list(zip(job.tests, job.payloads, strict=True))
        count = -1 if any(test["kind"] == "assert" for test in job.tests) else len(pairs)
        source = Program(job.program, job.judge.prelude, job.judge.entry_point)
        program.load(source, job.limits, count, job.stop_early)
        for asserts, group in groupby(pairs, key=lambda pair: pair[0]["kind"] == "assert"):
            run = self._examined if asserts else self._run
            for result in run(program, job, list(group)):
                yield result
                if job.stop_early and result.verdict is not Verdict.PASSED:
                    return

    def dismiss(self) -> None:
        for worker in (self._program, self._examiner):
            if worker:
                worker.close()
        self._program = self._examiner = None

    def _run(self, program: Worker, job: _Job, pairs: list[tuple[Test, bytes]]) -> Iterator[TestResult]:
        outcomes = program.outcomes([data for _, data in pairs], job.stop_early)
        for (test, _), outcome in zip(pairs, outcomes, strict=True):
            yield judging.result(test, job.judge, outcome)

    def _examined(self, program: Worker, job: _Job, pairs: list[tuple[Test, bytes]]) -> Iterator[TestResult]:
        examining = self._examiner = self._examiner or Worker(self._backend)
        for _, code in pairs:
            yield examine(program, examining, code, job.judge, job.limits)
