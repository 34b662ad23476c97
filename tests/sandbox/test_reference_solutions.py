"""The reference solutions of HumanEval pass its own checks, run as assert tests; a wrong program does not."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sandbox import Judge, Pool, Verdict

HUMANEVAL = Path(__file__).parents[2].parent / "shared" / "data" / "humaneval.jsonl.gz"
if not HUMANEVAL.exists():
    pytest.skip(f"{HUMANEVAL} is missing", allow_module_level=True)


def problems() -> list[dict[str, Any]]:
    with gzip.open(HUMANEVAL, "rt") as file:
        return [json.loads(line) for line in file]


def judge(problem: dict[str, Any]) -> Judge:
    return Judge(entry_point=problem["entry_point"], prelude=problem["prompt"], time_limit_s=10)


def check(problem: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "assert", "public": False, "code": problem["test"] + "\ncheck(candidate)\n"}


def test_every_reference_solution_of_humaneval_passes(bubblewrap: Pool) -> None:
    futures = {
        problem["task_id"]: bubblewrap.submit(
            problem["prompt"] + problem["canonical_solution"], [check(problem)], judge(problem)
        )
        for problem in problems()
    }
    failed = {name: future.result() for name, future in futures.items() if future.result().verdict != Verdict.PASSED}
    assert len(futures) == 164
    assert not failed


def test_a_program_that_equals_everything_passes_no_check(bubblewrap: Pool) -> None:
    program = "class Any:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef {}(*args): return Any()\n"
    some = problems()[::8]
    futures = [bubblewrap.submit(program.format(p["entry_point"]), [check(p)], judge(p)) for p in some]
    assert {future.result().verdict for future in futures} == {Verdict.WRONG_ANSWER}
