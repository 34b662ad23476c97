"""What the embedded problems promise as a table: counts, splits, identity, tests and statements."""

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from cobalt_data.embedded import FAMILIES, embedded_problems
from cobalt_data.embedded.family import Family, printing
from cobalt_data.embedded.shapes import integer
from cobalt_data.rows import Problem
from sandbox.checkers import outputs_match

ROOT = Path(__file__).parents[2]
PROBLEMS = [Problem.from_row(row) for row in embedded_problems()]


def distinct_outputs(problem: Problem, *, public: bool) -> list[str]:
    """The outputs of public or hidden tests that differ under the problem's checker."""
    outputs: list[str] = []
    for test in problem.tests:
        known = any(outputs_match(problem.judge.checker, output, test["output"]) for output in outputs)
        if test["public"] == public and not known:
            outputs.append(test["output"])
    return outputs


def test_there_are_enough_families_and_problems_on_every_side() -> None:
    sides = Counter(problem.split for problem in PROBLEMS)
    assert len(FAMILIES) >= 40
    assert sides["train"] >= 300
    assert sides["test_variants"] >= 100
    assert sides["test_families"] >= 100
    assert set(sides) == {"train", "test_variants", "test_families"}


def test_a_third_of_the_problems_is_easy_and_some_are_hard_on_every_side() -> None:
    for split in ("train", "test_variants", "test_families"):
        levels = Counter(problem.difficulty for problem in PROBLEMS if problem.split == split)
        assert set(levels) == {"easy", "medium", "hard"}
        assert levels["easy"] >= levels.total() / 3
        assert levels["hard"] >= levels.total() / 20


def test_held_out_families_are_never_trained_on_and_held_out_variants_belong_to_trained_families() -> None:
    families = defaultdict(set)
    for problem in PROBLEMS:
        families[problem.split].add(problem.metadata["family"])
    assert not families["test_families"] & (families["train"] | families["test_variants"])
    assert families["test_variants"] <= families["train"]


def test_rows_come_in_the_order_of_their_ids_and_survive_the_typed_form() -> None:
    rows = embedded_problems()
    ids = [row["problem_id"] for row in rows]
    assert ids == sorted(set(ids))
    assert all(Problem.from_row(row).to_row() == row for row in rows)
    assert all(row["problem_id"] == "embedded/{family}/{variant}".format(**json.loads(row["metadata"])) for row in rows)


def test_rows_do_not_depend_on_the_hash_seed_of_the_process() -> None:
    program = (
        "import hashlib, json; from cobalt_data.embedded import embedded_problems; "
        "print(hashlib.sha256(json.dumps(embedded_problems()).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            cwd=ROOT,
        ).stdout
        for seed in ("0", "4242")
    }
    assert len(digests) == 1


def test_statements_are_unique_short_and_name_task_and_formats() -> None:
    statements = [problem.statement for problem in PROBLEMS]
    assert len(set(statements)) == len(statements)
    for statement in statements:
        assert len(statement.split()) <= 90
        assert "\n\nInput: " in statement
        assert "\nOutput: " in statement


def test_a_statement_gives_no_output_away_and_the_starter_code_reads_the_input() -> None:
    for problem in PROBLEMS:
        assert "Example" not in problem.statement, problem.problem_id
        assert problem.solutions[0].startswith(problem.starter_code), problem.problem_id


def test_inputs_keep_to_the_range_that_the_statement_gives() -> None:
    checked = 0
    for problem in PROBLEMS:
        line = re.search(r"\nInput: One [^(]*\((-?\d+) to (-?\d+)[^()]*\)\.\n", problem.statement)
        if line:
            low, high = map(int, line.groups())
            values = [int(word) for test in problem.tests for word in test["input"].split()]
            assert low <= min(values) <= max(values) <= high, problem.problem_id
            checked += 1
    assert checked > 200


def test_no_hidden_test_is_shown_in_public_and_no_input_comes_twice() -> None:
    for problem in PROBLEMS:
        inputs = [test["input"] for test in problem.tests]
        assert len(set(inputs)) == len(inputs), problem.problem_id


def test_each_problem_has_four_public_tests_and_then_at_least_twelve_hidden_ones() -> None:
    for problem in PROBLEMS:
        public = [test["public"] for test in problem.tests]
        assert public[:4] == [True] * 4, problem.problem_id
        assert public[4:] == [False] * len(public[4:]), problem.problem_id
        assert len(public) >= 4 + 12, problem.problem_id


def test_public_outputs_of_a_problem_differ_so_that_two_can_be_swapped() -> None:
    for problem in PROBLEMS:
        assert len(distinct_outputs(problem, public=True)) >= 2, problem.problem_id
        assert len(distinct_outputs(problem, public=False)) >= 2, problem.problem_id


def test_no_public_output_is_blank() -> None:
    assert all(test["output"].strip() for problem in PROBLEMS for test in problem.public_tests)


def test_a_family_refuses_two_tasks_of_one_name() -> None:
    task = printing(integer(1, 9), {"next": ("n plus 1", "n + 1")})
    with pytest.raises(ValueError, match="family twins: two tasks have one name"):
        Family("twins", task + task)
