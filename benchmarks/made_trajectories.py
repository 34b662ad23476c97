"""Datasets of any size to measure the data layer on: made-up problems and trajectories whose programs a generator writes.

    python -m benchmarks.made_trajectories DATASET ROWS

Most programs are distinct. A fifth of the trajectories stand in clusters of 2 to 50, and one in a hundred in a single
cluster; a cluster belongs to one problem. Of its members every other one repeats the first with other names and a comment
(an exact duplicate), the rest also change a number (a near-duplicate). Everything follows from the row's number.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Iterator
from itertools import chain

from cobalt_data.commit import Change, commit
from cobalt_data.rows import Problem, PublicOutcome, Trajectory, Turn
from cobalt_data.spool import Spool
from sandbox import Judge, Verdict

SAMPLES = 16  # trajectories of a problem without a cluster
TURNS = 3
WORDS = [
    "the",
    "of",
    "every",
    "given",
    "number",
    "list",
    "string",
    "grid",
    "tree",
    "path",
    "cost",
    "sum",
    "least",
    "most",
    "each",
    "first",
    "last",
    "order",
    "even",
    "odd",
    "prime",
    "digit",
    "letter",
    "word",
    "row",
    "column",
    "node",
    "edge",
    "weight",
    "day",
    "hour",
    "price",
    "team",
    "player",
    "game",
    "score",
    "card",
    "box",
    "stone",
    "jump",
    "move",
    "step",
    "count",
    "find",
    "print",
    "maximum",
    "minimum",
    "total",
    "distinct",
    "sorted",
    "empty",
    "positive",
    "integer",
    "between",
    "where",
    "which",
    "cannot",
    "must",
    "exactly",
    "pair",
    "triple",
    "window",
    "prefix",
    "suffix",
    "circle",
    "line",
    "point",
    "robot",
    "river",
    "bridge",
    "island",
    "ticket",
    "queue",
    "stack",
    "bus",
    "train",
    "map",
    "key",
    "door",
    "light",
]
STATEMENTS = (
    "{0} = [int(x) + {2} for x in input().split()]",
    "{1} = {2}\n    for x in {0}:\n        if x % {3} == {4}:\n            {1} += x * {5}",
    "while {1} > {2}:\n        {1} -= {3}",
    "{0} = sorted({0}, key=lambda x: (x % {2}, -x))",
    "{1} = sum(x * {2} for x in {0} if x > {3})",
    "for i in range({2}, len({0})):\n        {0}[i] = max({0}[i - 1] + {3}, {0}[i] * {4})",
    "{1} = max({0}[{3}:] or [{2}]) - min({0} or [{4}])",
    "{0} = [x for i, x in enumerate({0}) if i % {3} != {4}]",
    "if {1} < {2}:\n        {1} = {3} - {1}\n    else:\n        {1} //= {5}",
    "{0} += [{1} % {2}, {3}, {4}]",
    "counts = {{}}\n    for x in {0}:\n        counts[x % {2}] = counts.get(x % {2}, {3}) + {4}\n    {1} = max(counts.values())",
    "{1} = {1} * {2} + len(set({0})) - {3}",
)
LINES = 8
NAMES = ("values", "items", "row", "data", "numbers", "seq"), ("total", "best", "answer", "result", "acc", "out")
RATES = ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0), (0.25, 0.25, 0.5), (0.5, 1.0, 1.0), (0.0, 0.75, 0.5), (0.25, 0.0, 1.0))
VERDICT = {1.0: Verdict.PASSED}


def drawn(seed: object, count: int) -> tuple[int, ...]:
    """So many numbers in [0, 65536), the same for the same seed."""
    return struct.unpack(f"<{count}H", hashlib.shake_128(str(seed).encode()).digest(2 * count))


def program(seed: int, names: tuple[str, str] | None = None, shift: int = 0) -> str:
    """About 640 characters; `names` and `shift` make another writing of it, the latter with another number in one place."""
    first, second, *numbers = drawn(seed, 2 + LINES * 5)
    listed, counted = names or (NAMES[0][first % 6], NAMES[1][second % 6])
    numbers[1] += shift
    body = "\n    ".join(
        STATEMENTS[numbers[at] % len(STATEMENTS)].format(listed, counted, *numbers[at + 1 : at + 5])
        for at in range(0, LINES * 5, 5)
    )
    note = f"# {listed} and {counted}\n" if names else ""
    return f"{note}def main():\n    {listed} = list(map(int, input().split()))\n    {counted} = 0\n    {body}\n    print({counted})\n\n\nmain()"


def places(rows: int) -> Iterator[tuple[str, int, int, int]]:
    """For every row: problem, sample index, seed of its programs, and which writing of them (0: the first)."""
    sizes, clustered = [max(2, rows // 100)], max(2, rows // 100)
    while clustered < rows // 100 + rows // 5:
        sizes.append(2 + drawn(f"size {len(sizes)}", 1)[0] % 49)
        clustered += sizes[-1]
    for cluster, size in enumerate(sizes):
        yield from ((f"made/c{cluster}", index, cluster, index) for index in range(size))
    for row in range(max(0, rows - clustered)):
        yield f"made/{row // SAMPLES}", row % SAMPLES, clustered + row, 0


def problem(problem_id: str) -> Problem:
    numbers = drawn(problem_id, 100)
    words = [WORDS[number % len(WORDS)] for number in numbers]
    sentences = [" ".join(words[start : start + 12]) for start in range(0, 96, 12)]
    tests = tuple(
        {"kind": "stdin", "public": index < 2, "input": f"{numbers[index]}\n", "output": f"{numbers[-index]}\n"}
        for index in range(6)
    )
    difficulty = ("easy", "medium", "hard")[numbers[0] % 3]
    title = " ".join(words[-3:])
    return Problem(problem_id, "made", title, difficulty, ". ".join(sentences), "", tests, Judge(), (), {})


def trajectory(about: Problem, sample_index: int, seed: int, writing: int) -> Trajectory:
    names = (f"v{writing}", f"t{writing}") if writing else None
    shift = writing if writing % 2 == 0 else 0
    programs = [program(seed * TURNS + turn, names, shift) for turn in range(TURNS)]
    rates = RATES[(seed * 31 + sample_index) % len(RATES)]
    turns = tuple(
        _turn(text, rate, f"{seed} {sample_index} {rate}") for text, rate in zip(programs, rates, strict=True)
    )
    opening = {"role": "user", "content": f"Solve this in Python.\n\n{about.statement}"}
    rest = ((_said("assistant", f"```python\n{turn.program}\n```"), _said("user", turn.feedback)) for turn in turns)
    return Trajectory(
        problem_id=about.problem_id,
        sample_index=sample_index,
        model="made",
        model_revision="0",
        engine="made",
        sampling={"temperature": 0.6},
        seed=0,
        perturbation=None,
        messages=(opening, *chain.from_iterable(rest)),
        turns=turns,
        split=about.split,
    )


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _turn(text: str, rate: float, seed: str) -> Turn:
    verdict = VERDICT.get(rate, Verdict.WRONG_ANSWER)
    outputs = [" ".join(map(str, drawn(f"{seed} {place}", 56))) for place in range(2)]
    public = tuple(PublicOutcome(verdict, f"{output}\n", "", None) for output in outputs)
    feedback = f"Your code prints {outputs[0]}, which is wrong." if rate < 1 else "It passes."
    return Turn(text, public, float(rate == 1), rate, rate, feedback, "stop", 400, 180)


def make(dataset: str, rows: int) -> str:
    """Writes the dataset and returns its reference."""
    problems: dict[str, Problem] = {}

    def made() -> Iterator[dict[str, object]]:
        for problem_id, sample_index, seed, writing in places(rows):
            if problem_id not in problems:
                problems[problem_id] = problem(problem_id)
            yield trajectory(problems[problem_id], sample_index, seed, writing).to_row()

    trajectories = Spool.of_rows("trajectories", made())
    tables = {"problems": Spool.of_rows("problems", (each.to_row() for each in problems.values()))}
    change = Change("import", {"made": rows}, None, {**tables, "trajectories": trajectories}, {})
    return commit(change, dataset=dataset).reference


if __name__ == "__main__":
    print(make(sys.argv[1], int(sys.argv[2])))
