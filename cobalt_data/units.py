"""Fixed units of independent work, and threads that work through them.

A unit is a list of conversations that are generated in one batch. Which conversations share a unit depends on the plan alone,
never on timing or on what is already done: with an engine whose numbers depend on its batch, that is what makes a resumed
run repeat exactly. Units are named by their content and share nothing, so another executor could run them elsewhere.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cobalt_data.ids import row_id
from cobalt_data.rows import Problem

Item = TypeVar("Item")
Result = TypeVar("Result")

CONVERSATIONS_PER_UNIT = 64  # the rows that the embedded engine decodes at once


@dataclass(frozen=True, slots=True)
class Unit:
    """Problems, each with the sample indices of the conversations to be had about it."""

    problems: tuple[Problem, ...]
    samples: tuple[tuple[int, ...], ...]

    @property
    def name(self) -> str:
        return row_id("unit", [problem.problem_id for problem in self.problems], self.samples)

    @property
    def conversations(self) -> int:
        return sum(map(len, self.samples))


def problems_filling_a_unit(n: int) -> int:
    """How many problems of `n` conversations each make a batch that keeps an engine busy."""
    return max(1, CONVERSATIONS_PER_UNIT // n)


def make_units(problems: Sequence[Problem], samples: Sequence[Sequence[int]], problems_per_unit: int) -> list[Unit]:
    """Units of up to `problems_per_unit` problems, in the order given; problems without samples to draw are left out."""
    open_work = [(problem, tuple(indices)) for problem, indices in zip(problems, samples, strict=True) if indices]
    parts = [open_work[start : start + problems_per_unit] for start in range(0, len(open_work), problems_per_unit)]
    return [Unit(tuple(problem for problem, _ in part), tuple(indices for _, indices in part)) for part in parts]


class Abandoned(Exception):
    """Raised within a unit's work to leave it, because nobody waits for its result any more."""


def work_through(
    units: Sequence[Item], work: Callable[[Item, threading.Event], Result], threads: int
) -> Iterator[tuple[Item, Result]]:
    """Yields every unit (or whatever is to be worked on) with its result, as they are finished, `threads` of them at once.

    `work(unit, abandoned)` should raise `Abandoned` once that event is set: another unit failed or the caller left. The first
    exception of a unit is raised here when the others have stopped. An interrupt (Ctrl-C) is raised at once: the threads
    are daemons and end with the process.
    """
    todo = iter(units)
    taking, abandoned = threading.Lock(), threading.Event()
    results: queue.SimpleQueue[tuple[Item, Result] | BaseException] = queue.SimpleQueue()

    def work_on_units() -> None:
        while not abandoned.is_set():
            with taking:
                unit = next(todo, None)
            if unit is None:
                return
            try:
                results.put((unit, work(unit, abandoned)))
            except BaseException as error:
                results.put(error)
                return

    workers = [threading.Thread(target=work_on_units, daemon=True) for _ in range(min(threads, len(units)))]
    for worker in workers:
        worker.start()
    try:
        for _ in units:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    except Exception:
        abandoned.set()
        for worker in workers:
            worker.join()
        raise
    finally:
        abandoned.set()
