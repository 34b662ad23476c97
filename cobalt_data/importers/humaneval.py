"""HumanEval as its authors publish it: `task_id, prompt, entry_point, canonical_solution, test`.

The header of a prompt (imports, helper functions) is the judge's prelude, as the origin's harness runs the whole prompt in
front of a completion. The examples of the docstring are public where they are among the tests.
"""

from __future__ import annotations

from cobalt_data.importers.asserts import asserts_to_tests
from cobalt_data.importers.examples import shown_tests
from cobalt_data.importers.fields import BadRow, Fields, filled_text, identifier, text
from cobalt_data.importers.prompts import split_prompt
from cobalt_data.importers.public import choose_public
from cobalt_data.rows import Problem
from sandbox import Judge

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")


def to_problem(row: Fields, public: int | None) -> Problem:
    task_id, entry_point = identifier(row, "task_id"), identifier(row, "entry_point")
    if task_id.startswith("MBPP/"):  # the same fields, but its docstrings give all tests away
        raise BadRow("other format", "field 'task_id' says MBPP: import it with --format mbpp")
    prompt = split_prompt(filled_text(row, "prompt"), entry_point)
    solution = text(row, "canonical_solution") if row.get("canonical_solution") is not None else ""
    tests, checker = asserts_to_tests(filled_text(row, "test"), entry_point, prompt.header)
    return Problem(
        problem_id=f"humaneval/{task_id.removeprefix('HumanEval/')}",
        source="humaneval",
        title=entry_point,
        difficulty=None,
        statement=prompt.docstring,
        starter_code=prompt.starter_code,
        tests=choose_public(tests, public, shown_tests(prompt.docstring, entry_point, tests)),
        judge=Judge(checker=checker or "tokens", entry_point=entry_point, prelude=prompt.header),
        solutions=(text(row, "prompt") + solution,) if solution.strip() else (),
        metadata={"origin_id": task_id},
    )
