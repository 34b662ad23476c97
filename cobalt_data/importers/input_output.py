"""What APPS and TACO have in common: `question, solutions, input_output, starter_code, difficulty, url`.

`input_output` is an object, or JSON text of one, with `inputs`, `outputs` and, for problems that are functions, `fn_name`.
Without it an input is what stdin says, as text or as a list of lines; with it an input is the list of a call's arguments. The
statement's own examples are not marked, so which tests are public is chosen here.

Of solutions, which some problems have by the hundred, the first `MAX_SOLUTIONS` are kept. Time and memory limits were set for
compiled programs: they are raised to what a program in Python may need, never lowered.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from cobalt_data.importers.calls import call_test, entry_point_of, unwrapped
from cobalt_data.importers.fields import BadRow, Fields, UnusableRow, array, as_text, parsed, record, text, wrong_type
from cobalt_data.importers.public import choose_public
from cobalt_data.importers.stdin_tests import holds_decimals, stdin_test
from sandbox import Judge, Test

MAX_SOLUTIONS = 16
CLOSE = "float:1e-05"  # what the published harnesses call equal
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def tests_and_judge(row: Fields, public: int | None) -> tuple[tuple[Test, ...], Judge]:
    value = parsed(row.get("input_output") or None, "input_output")
    if value is None:
        raise UnusableRow("no tests", "field 'input_output' is missing or empty: nothing could judge a program")
    group = record(value, "input_output")
    inputs, outputs = (array(group, name, "input_output.") for name in ("inputs", "outputs"))
    if len(inputs) != len(outputs):
        counts = f"{len(inputs)} inputs and {len(outputs)} outputs"
        raise BadRow("unpaired tests", f"field 'input_output' has {counts}: give one output per input")
    if not inputs:
        raise UnusableRow("no tests", "field 'input_output' holds no tests: nothing could judge a program")
    if group.get("fn_name") is None:
        tests, entry_point = _stdin_tests(inputs, outputs), None
        in_decimals = holds_decimals(tests)
    else:
        function, starter = text(group, "fn_name", "input_output."), starter_code(row)
        tests = _call_tests(inputs, unwrapped(outputs, function, starter))
        entry_point = entry_point_of(function, "input_output.fn_name", starter, *solutions(row))
        in_decimals = _holds_floats(outputs)
    judge = Judge(
        checker=CLOSE if in_decimals else "tokens",
        entry_point=entry_point,
        time_limit_s=_at_least(10.0, row, "time_limit", 3600.0),
        memory_mb=int(_at_least(512, row, "memory_limit", 65536)),
    )
    return choose_public(tests, public), judge


def solutions(row: Fields) -> tuple[str, ...]:
    """The first of the row's solutions: a list of source texts, or JSON text of one."""
    value = parsed(row.get("solutions") or None, "solutions")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong_type("solutions", value, "an array")
    return tuple(as_text(source, f"solutions[{index}]") for index, source in enumerate(value[:MAX_SOLUTIONS]))


def starter_code(row: Fields) -> str:
    return text(row, "starter_code").rstrip() if row.get("starter_code") is not None else ""


def platform(url: str | None) -> str | None:
    """`codeforces` of `https://codeforces.com/...`; None where that is no address."""
    try:
        labels = (urlsplit(url or "").hostname or "").split(".")
    except ValueError:
        return None
    return labels[-2] if len(labels) > 1 else None


def _stdin_tests(inputs: list[Any], outputs: list[Any]) -> list[Test]:
    return [
        stdin_test(
            _lines(given, f"input_output.inputs[{index}]"), _lines(wanted, f"input_output.outputs[{index}]"), False
        )
        for index, (given, wanted) in enumerate(zip(inputs, outputs, strict=True))
    ]


def _lines(value: Any, name: str) -> str:
    if isinstance(value, list):
        return "\n".join(as_text(line, name) for line in value)
    return as_text(value, name)


def _call_tests(inputs: list[Any], outputs: list[Any]) -> list[Test]:
    for index, args in enumerate(inputs):
        if not isinstance(args, list):
            raise wrong_type(f"input_output.inputs[{index}]", args, "the array of a call's arguments")
    pairs = enumerate(zip(inputs, outputs, strict=True))
    return [call_test(args, wanted, False, f"input_output.inputs[{index}]") for index, (args, wanted) in pairs]


def _holds_floats(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_floats, value))
    return isinstance(value, float)


def _at_least(least: float, row: Fields, name: str, most: float) -> float:
    """The number that a field such as `2.0 seconds` begins with, within these bounds."""
    value = row.get(name)
    found = _NUMBER.search(value) if isinstance(value, str) else None
    return min(max(least, float(found.group())), most) if found else least
