"""LeetCodeDataset, release 0.2: `task_id, prompt, completion, entry_point, test, query, meta`.

The statement is the query without its code block. The full page stays out: its examples are the tests, and its constraints
have lost their superscripts (`n <= 105`). `prompt` is the import header that LeetCode's programs count on: the judge's prelude.
"""

from __future__ import annotations

from cobalt_data.importers.asserts import asserts_to_tests, parse_source
from cobalt_data.importers.fields import Fields, filled_text, identifier, optional_text, record, required, text
from cobalt_data.importers.public import choose_public
from cobalt_data.rows import Problem
from sandbox import Judge

FIELDS = ("task_id", "prompt", "completion", "entry_point", "test", "query", "meta")
CODE_REQUEST = "Please complete the following python code precisely:"


def to_problem(row: Fields, public: int | None) -> Problem:
    task_id, entry_point = identifier(row, "task_id"), identifier(row, "entry_point")
    meta = record(required(row, "meta"), "meta")
    header = text(row, "prompt").strip()
    parse_source(header, "prompt")
    tests, checker = asserts_to_tests(filled_text(row, "test"), entry_point, header)
    completion = text(row, "completion").strip()
    return Problem(
        problem_id=f"leetcode/{task_id}",
        source="leetcode",
        title=task_id.replace("-", " ").capitalize(),
        difficulty=(optional_text(meta, "difficulty") or "").lower() or None,
        statement=filled_text(row, "query").partition(CODE_REQUEST)[0].replace("\xa0", " ").strip(),
        starter_code=text(meta, "lang_code", "meta.").rstrip(),
        tests=choose_public(tests, public),
        judge=Judge(checker=checker or "tokens", entry_point=entry_point, prelude=header),
        solutions=(f"{header}\n\n\n{completion}\n",) if completion else (),
        metadata={"origin_id": task_id, "question_id": optional_text(meta, "question_id")},
    )
