"""APPS as published on the Hub: `problem_id` and the fields of `importers.input_output`.

The numbers of its problems begin again in the test set, so an id carries a hash of the question as well.
"""

from __future__ import annotations

from cobalt_data.ids import row_id
from cobalt_data.importers.fields import Fields, filled_text, identifier, optional_text
from cobalt_data.importers.input_output import platform, solutions, starter_code, tests_and_judge
from cobalt_data.rows import Problem

FIELDS = ("problem_id", "question", "solutions", "input_output", "difficulty", "url")
HASH_DIGITS = 6


def to_problem(row: Fields, public: int | None) -> Problem:
    # the release of its authors calls the number `id`
    number = identifier(row, "problem_id" if "problem_id" in row or "id" not in row else "id")
    question = filled_text(row, "question").strip()
    tests, judge = tests_and_judge(row, public)
    url = optional_text(row, "url")
    return Problem(
        problem_id=f"apps/{number}-{row_id('apps', question)[:HASH_DIGITS]}",
        source="apps",
        title=number,
        difficulty=(optional_text(row, "difficulty") or "").lower() or None,
        statement=question,
        starter_code=starter_code(row),
        tests=tests,
        judge=judge,
        solutions=solutions(row),
        metadata={"origin_id": number, "platform": platform(url), "url": url},
    )
