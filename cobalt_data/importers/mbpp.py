"""MBPP in the release of mxeval (MBXP): HumanEval's fields and `description`.

The docstrings there show every test with its answer, so the statement is the description and shows the public tests alone;
without an example many of the one-line descriptions could mean several things.
"""

from __future__ import annotations

from cobalt_data.importers.asserts import asserts_to_tests
from cobalt_data.importers.examples import written_examples
from cobalt_data.importers.fields import Fields, filled_text, identifier, text
from cobalt_data.importers.prompts import split_prompt
from cobalt_data.importers.public import choose_public
from cobalt_data.rows import Problem
from sandbox import Judge

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test", "description")


def to_problem(row: Fields, public: int | None) -> Problem:
    task_id, entry_point = identifier(row, "task_id"), identifier(row, "entry_point")
    prompt = split_prompt(filled_text(row, "prompt"), entry_point)
    found, checker = asserts_to_tests(filled_text(row, "test"), entry_point, prompt.header)
    tests = choose_public(found, public)
    examples = written_examples(entry_point, [test for test in tests if test["public"]])
    solution = text(row, "canonical_solution") if row.get("canonical_solution") is not None else ""
    description = filled_text(row, "description").strip()
    return Problem(
        problem_id=f"mbpp/{task_id.removeprefix('MBPP/')}",
        source="mbpp",
        title=entry_point,
        difficulty=None,
        statement=f"{description}\n\nExamples:\n{examples}" if examples else description,
        starter_code=prompt.starter_code,
        tests=tests,
        judge=Judge(checker=checker or "tokens", entry_point=entry_point, prelude=prompt.header),
        solutions=(f"{prompt.starter_code}\n{solution}\n",) if solution.strip() else (),
        metadata={"origin_id": task_id},
    )
