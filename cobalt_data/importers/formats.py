"""The formats, and how a row of each becomes a problem."""

from __future__ import annotations

from collections.abc import Callable

from cobalt_data.importers import (
    apps,
    humaneval,
    kickstart_codejam,
    leetcode,
    livecodebench,
    mbpp,
    package,
    reference,
    taco,
)
from cobalt_data.importers.fields import Fields
from cobalt_data.rows import Problem

TO_PROBLEM: dict[str, Callable[[Fields, int | None], Problem]] = {
    "humaneval": humaneval.to_problem,
    "mbpp": mbpp.to_problem,
    "leetcode": leetcode.to_problem,
    "kickstart_codejam": kickstart_codejam.to_problem,
    "taco": taco.to_problem,
    "apps": apps.to_problem,
    "livecodebench": livecodebench.to_problem,
    "package": package.to_problem,
    "reference": reference.to_problem,
}
EMBEDDED, OWN = "embedded", "cobalt"
FORMATS = (EMBEDDED, *TO_PROBLEM, OWN)
KNOWN_FIELDS = {
    "humaneval": humaneval.FIELDS,
    "mbpp": mbpp.FIELDS,
    "leetcode": leetcode.FIELDS,
    "kickstart_codejam": kickstart_codejam.FIELDS,
    "taco": taco.FIELDS,
    "apps": apps.FIELDS,
    "livecodebench": livecodebench.FIELDS,
    "reference": reference.FIELDS,
    "the prompts that the reference code selected (import its conversations instead, then cut)": reference.SELECTED_FIELDS,
    "MBPP's original release (take the one of mxeval)": ("text", "code", "test_list"),
    "sanitized MBPP (take the release of mxeval)": ("prompt", "code", "test_list"),
    "cobalt": ("problem_id", "statement", "tests", "judge"),
}


def looks_like(fields: Fields) -> str | None:
    """The format whose fields the row has, the most telling first."""
    fitting = [name for name, names in KNOWN_FIELDS.items() if all(field in fields for field in names)]
    return max(fitting, key=lambda name: len(KNOWN_FIELDS[name]), default=None)
