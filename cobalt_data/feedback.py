"""What feedback shows of a test and of a program's run: the parts that a template puts into words.

Feedback never shows more than the first failing public test, each part of it cut to 400 characters with the middle left out
(as the paper's reference code does): both ends of a long input tell more than its beginning alone. Values of call tests
are shown as Python expressions. A traceback shows the program's own frames only: how the sandbox runs a program is nothing
that a model could fix.

The wording is not here but in `cobalt_data.templates`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from cobalt_data.rows import PublicOutcome
from sandbox import Judge, Test, Verdict

SHOWN_CHARS = 400  # of each part of a test
ELISION = " [...] "
TRACEBACK = "Traceback (most recent call last):"

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,16}\b")
_FRAME = re.compile(r'  File "([^"\n]*)", line \d+')
_OWN_FILE = "main.py"  # the name under which the sandbox compiles a program


def first_failure(tests: Sequence[Test], outcomes: Sequence[PublicOutcome]) -> tuple[Test, PublicOutcome] | None:
    """The first test that the program failed, with what it did; None where it passed all that ran."""
    for test, outcome in zip(tests, outcomes, strict=False):  # fewer outcomes than tests: the run stopped early
        if outcome.verdict is not Verdict.PASSED:
            return test, outcome
    return None


def elide(text: str, limit: int = SHOWN_CHARS) -> str:
    """`text` in at most `limit` characters, the middle left out. Eliding what was elided to more changes nothing."""
    if len(text) <= limit:
        return text
    kept = limit - len(ELISION)
    return text[: kept - kept // 2] + ELISION + text[len(text) - kept // 2 :]


def without_addresses(text: str) -> str:
    """`text` without memory addresses, as in `<map object at 0x7f0c2a>`: they say nothing and differ from run to run."""
    return _ADDRESS.sub("at 0x...", text)


def shown_call(test: Test, judge: Judge) -> str:
    """The call of a call test as a Python expression: `f([1, 2], k=3)`."""
    arguments = [shown_value(value) for value in test["args"]]
    arguments += [f"{name}={shown_value(value)}" for name, value in (test.get("kwargs") or {}).items()]
    return f"{judge.entry_point}({', '.join(arguments)})"


def shown_value(tagged: Any) -> str:
    """A value in the tagged form of `sandbox.values` as a Python expression, the same on every machine.

    Written out from the tagged form, in which sets are ordered: the `repr` of a set changes from process to process.
    """
    if isinstance(tagged, list):
        return f"[{_shown_items(tagged)}]"
    if not isinstance(tagged, dict):
        return repr(tagged)
    tag: str
    content: Any
    tag, content = next(iter(tagged.items()), ("", None))
    if not tag.startswith("$"):
        return "{" + ", ".join(f"{key!r}: {shown_value(value)}" for key, value in tagged.items()) + "}"
    match tag, content:
        case "$tuple", [only]:
            return f"({shown_value(only)},)"
        case "$tuple", _:
            return f"({_shown_items(content)})"
        case "$set", _:
            return f"{{{_shown_items(content)}}}" if content else "set()"
        case "$frozenset", _:
            return f"frozenset({{{_shown_items(content)}}})" if content else "frozenset()"
        case "$dict", _:
            return "{" + ", ".join(f"{shown_value(key)}: {shown_value(value)}" for key, value in content) + "}"
        case "$bytes", _:
            return repr(bytes.fromhex(content))
        case "$complex", [real, imaginary]:
            return f"complex({shown_value(real)}, {shown_value(imaginary)})"
        case "$float", _:
            return f"float({content!r})"
        case "$object", _:
            return f"<{content} object>"
    return str(content)  # "$int": hexadecimal digits


def _shown_items(items: Sequence[Any]) -> str:
    return ", ".join(map(shown_value, items))


def shown_output(test: Test, outcome: PublicOutcome) -> str:
    """What the program made of the test: what it printed, or the value that its function returned."""
    if test["kind"] != "call":
        return outcome.stdout
    if outcome.returned is None:
        return ""
    try:
        return shown_value(json.loads(outcome.returned))
    except (ValueError, RecursionError):  # cut off for storage, or nested beyond reading
        return outcome.returned


def shown_traceback(stderr: str) -> str:
    """The traceback in `stderr` with the program's own frames only; all of `stderr` where there is no traceback."""
    header = stderr.rfind(TRACEBACK)
    if header < 0:
        return stderr.strip()
    kept = []
    keeps_frame = True
    for line in stderr[header:].splitlines():
        if frame := _FRAME.match(line):
            keeps_frame = frame[1] == _OWN_FILE
        elif not line.startswith("  "):
            keeps_frame = True
        if keeps_frame:
            kept.append(line)
    return "\n".join(kept).strip()
