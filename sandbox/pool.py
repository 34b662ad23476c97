"""The pool: any number of programs in flight, a bounded number of sandboxes, verdicts as futures.

One thread per worker takes programs from a queue. A worker whose agent is lost is replaced and its program judged again from
the beginning; after the last attempt the future raises SandboxError, so that no failure of ours ever looks like a verdict.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import TracebackType

from sandbox import judging
from sandbox.backends import Backend, choose
from sandbox.crew import Crew, Job
from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.limits import Limits
from sandbox.verdicts import Judge, ProgramResult, Test, TestResult, Verdict
from sandbox.worker import Worker

_ATTEMPTS = 3
_LONGEST_SOURCE = 4 << 20


class Pool:
    """Judges programs in sandboxes of one backend.

    `backend` is `auto` (docker, then bubblewrap), `docker`, `bubblewrap` or, for trusted programs, `process`; `workers` the
    number of sandboxes, by default one per core that this process may use. Raises SandboxUnavailable if no such sandbox
    starts on this machine. `submit` may be called from any thread.
    """

    def __init__(self, backend: str = "auto", workers: int | None = None) -> None:
        self._size = workers or len(os.sched_getaffinity(0))
        self._backend: Backend = choose(backend)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._in_flight = 0
        self._closed = False
        try:
            first = Worker(self._backend)
        except SandboxError as error:
            self._backend.close()
            raise SandboxUnavailable(f"the backend {self._backend.name} does not start here: {error}") from None
        self._start_thread(Crew(self._backend, first))

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
                self._start_thread(Crew(self._backend))
        self._jobs.put(Job(program, tests, payloads, judge, complete, stop_early, future))
        return future

    def close(self) -> None:
        """Waits for what was submitted, then ends all sandboxes."""
        if not self._stop_taking():
            return
        for thread in self._threads:
            thread.join()
        self._backend.close()

    def _stop_taking(self) -> bool:
        """Takes nothing more in, and lets each thread end after its program; False where that was so before."""
        with self._lock:
            if self._closed:
                return False
            self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        return True

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """After an error nobody waits for verdicts any more: each sandbox ends with the program it is at, or with us."""
        if kind is None:
            self.close()
        else:
            self._cancel_waiting()
            self._stop_taking()

    def _untried(self, verdict: Verdict, note: str, count: int) -> ProgramResult:
        test = TestResult(verdict, 0.0, None, "", note, None)
        return ProgramResult(verdict, (test,) * count, self.backend)

    def _cancel_waiting(self) -> None:
        while not self._jobs.empty():
            if job := self._jobs.get():
                job.future.cancel()

    def _start_thread(self, crew: Crew) -> None:
        thread = threading.Thread(target=self._work, args=(crew,), name=f"sandbox-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, crew: Crew) -> None:
        while job := crew.take_next() or self._jobs.get():
            if job.future.running() or job.future.set_running_or_notify_cancel():
                self._judge(crew, job)
            with self._lock:
                self._in_flight -= 1
        crew.dismiss()

    def _judge(self, crew: Crew, job: Job) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                tests = tuple(crew.judged(job, self._waiting_job))
            except SandboxError as error:
                crew.dismiss()
                if attempt == _ATTEMPTS:
                    job.future.set_exception(SandboxError(f"{error} (attempt {attempt} of {_ATTEMPTS})"))
                continue
            except BaseException as error:
                crew.dismiss()  # its sandboxes may have answers under way that nobody waits for
                job.future.set_exception(error)
                return
            failed = (test.verdict for test in tests if test.verdict is not Verdict.PASSED)
            job.future.set_result(ProgramResult(next(failed, Verdict.PASSED), tests, self.backend))
            return

    def _waiting_job(self) -> Job | None:
        """A job to begin ahead, if there are more than the other workers will take soon."""
        if self._jobs.qsize() <= self._size:
            return None
        try:
            job = self._jobs.get_nowait()
        except Empty:
            return None
        if job is None:  # the sign to end: for the thread that waits
            self._jobs.put(None)
            return None
        if job.future.set_running_or_notify_cancel():
            return job
        with self._lock:
            self._in_flight -= 1
        return None
