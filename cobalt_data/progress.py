"""How far a collection or an evaluation is: counted by the threads that work, shown by whoever passed a `report`."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a run. Tokens, seconds and shares are of this process; problems include those resumed from disk."""

    problems: int
    problems_done: int
    problems_solved: int
    programs: int
    completion_tokens: int
    seconds: float
    seconds_left: float | None  # None until there is something to judge by
    model_share: float  # of the wall time so far: at least one call of the engine was in progress

    @property
    def tokens_per_second(self) -> float:
        return self.completion_tokens / self.seconds if self.seconds > 0 else 0.0


class Meter:
    """Counts work from several threads at once and reports after each step, one report at a time.

    A step is one turn of one unit; `steps` are those to be done by this process.
    """

    def __init__(self, problems: int, steps: int, report: Callable[[Progress], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._report = report
        self._problems, self._steps = problems, steps
        self._steps_done = self._problems_done = self._problems_solved = self._programs = self._tokens = 0
        self._started = time.monotonic()
        self._calls, self._call_began, self._in_model = 0, 0.0, 0.0

    @contextlib.contextmanager
    def generating(self) -> Iterator[None]:
        """Around each call of the engine; calls of several threads that overlap in time count once."""
        with self._lock:
            if self._calls == 0:
                self._call_began = time.monotonic()
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if self._calls == 0:
                    self._in_model += time.monotonic() - self._call_began

    def turn_done(self, programs: int, completion_tokens: int) -> None:
        with self._lock:
            self._steps_done += 1
            self._programs += programs
            self._tokens += completion_tokens
            self._say()

    def turns_left_out(self, turns: int) -> None:
        """Turns of a unit that nobody needs, as all of its conversations have ended."""
        with self._lock:
            self._steps_done += turns

    def unit_done(self, problems: int, solved: int) -> None:
        """Problems all of whose conversations have ended, and those of them that one conversation solved."""
        with self._lock:
            self._problems_done += problems
            self._problems_solved += solved
            self._say()

    def snapshot(self) -> Progress:
        with self._lock:
            return self._snapshot()

    def _say(self) -> None:
        if self._report is not None:
            self._report(self._snapshot())

    def _snapshot(self) -> Progress:
        now = time.monotonic()
        seconds = now - self._started
        in_model = self._in_model + (now - self._call_began if self._calls else 0.0)
        steps_left = self._steps - self._steps_done
        return Progress(
            problems=self._problems,
            problems_done=self._problems_done,
            problems_solved=self._problems_solved,
            programs=self._programs,
            completion_tokens=self._tokens,
            seconds=seconds,
            seconds_left=seconds / self._steps_done * steps_left if self._steps_done else None,
            model_share=in_model / seconds if seconds > 0 else 0.0,
        )
