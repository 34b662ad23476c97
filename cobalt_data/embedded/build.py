"""From a task to a problem: draws inputs, runs the reference program on them, picks the tests.

The expected outputs are what the shipped program prints, so the two always agree. Tests are picked such that outputs
take turns: four public tests never share one output (a swap of two of them is a perturbation), and a program that always
prints the same fails. Statements show no examples: those are the public tests, which feedback shows one at a time, and a true
output in the first turn would give every swapped expectation away. The lines that read the input are given as starter code.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from random import Random
from types import CodeType

from cobalt_data.embedded.family import Task
from cobalt_data.rows import Problem
from sandbox import Judge, Test

PUBLIC, HIDDEN, HIDDEN_DRAWN = 4, 16, 6
PUBLIC_SIZE, HIDDEN_SIZE = 5, 12
POOL, MOST_DRAWS = 12, 300


@dataclass(frozen=True, slots=True)
class Case:
    """One input and what the reference prints for it."""

    input: str
    output: str

    def as_test(self, *, public: bool) -> Test:
        return {"kind": "stdin", "public": public, "input": self.input, "output": self.output}


def run(program: CodeType, text: str) -> str:
    """What a trusted program prints when `text` is its standard input."""
    printed = io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        with redirect_stdout(printed):
            exec(program, {"__name__": "__main__"})
    finally:
        sys.stdin = stdin
    return printed.getvalue()


def outputs_in_turn(cases: Iterable[Case]) -> list[Case]:
    """The same cases, a first one of every output before a second one of any."""
    seen: Counter[str] = Counter()
    turns = []
    for case in cases:
        turns.append((seen[case.output], case))
        seen[case.output] += 1
    return [case for _, case in sorted(turns, key=lambda turn: turn[0])]


class Cases:
    """The cases of one task; no input comes twice."""

    def __init__(self, task: Task, random: Random) -> None:
        self._task = task
        self._random = random
        self._program = compile(task.program, task.name, "exec")
        self._inputs: set[str] = set()

    def of(self, inputs: Iterable[str]) -> Iterator[Case]:
        for text in inputs:
            if text not in self._inputs:
                self._inputs.add(text)
                yield Case(text + "\n", run(self._program, text + "\n"))

    def drawn(self, size: int) -> list[Case]:
        """At least `POOL` new cases, where so many inputs exist, and two outputs among them."""
        pool: list[Case] = []
        for _ in range(MOST_DRAWS):
            pool += self.of([self._task.shape.draw(self._random, size)])
            if len(pool) >= POOL and any(case.output != pool[0].output for case in pool):
                break
        return outputs_in_turn(pool)


def pick_cases(task: Task, random: Random) -> tuple[list[Case], list[Case]]:
    """(public, hidden). Public ones are small and show an output; edge cases are hidden."""
    cases = Cases(task, random)
    edges = list(cases.of(task.edges))
    small = cases.drawn(PUBLIC_SIZE)
    showing = [case for case in small if case.output.strip()]
    public = showing[:PUBLIC]
    spare = [case for case in small if case not in public]
    drawn = outputs_in_turn([*cases.drawn(HIDDEN_SIZE), *spare])
    return public, [*edges, *drawn[: max(HIDDEN_DRAWN, HIDDEN - len(edges))]]


def build_problem(family: str, task: Task, split: str) -> Problem:
    problem_id = f"embedded/{family}/{task.name}"
    public, hidden = pick_cases(task, Random(problem_id))
    return Problem(
        problem_id=problem_id,
        source="embedded",
        title=f"{family}: {task.name}".replace("-", " ").capitalize(),
        difficulty=task.difficulty,
        statement=f"{task.ask}\n\nInput: {task.shape.text}\nOutput: {task.output}",
        starter_code=task.shape.read,
        tests=(*(case.as_test(public=True) for case in public), *(case.as_test(public=False) for case in hidden)),
        judge=Judge(checker=task.checker, time_limit_s=2.0, memory_mb=256),
        solutions=(task.program,),
        metadata={"family": family, "variant": task.name},
        split=split,
    )
