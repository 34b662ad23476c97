"""Call tests of published problems: JSON values as arguments and expectation, and the name of what is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cobalt_data.importers.fields import BadRow
from sandbox import Test
from sandbox.values import encode

_CLASS = re.compile(r"^class\s+Solution\b", re.MULTILINE)
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NAME = re.compile(r"[^\W\d]\w*")


def entry_point_of(function: str, name: str, *sources: str) -> str:
    """`function`, or `Solution().function` where the starter code or a solution keeps it in that class."""
    if not _NAME.fullmatch(function):
        raise BadRow("bad name", f"field '{name}' is {function[:40]!r}: it must be the name of a function")
    return f"Solution().{function}" if any(map(_CLASS.search, sources)) else function


def call_test(args: Sequence[Any], expected: Any, public: bool, at: str) -> Test:
    """`at` names the field for the message of the BadRow that a value raises which is too deep to store."""
    try:
        return {
            "kind": "call",
            "public": public,
            "args": [encode(_with_number_keys(value)) for value in args],
            "kwargs": {},
            "expected": encode(_with_number_keys(expected)),
        }
    except (TypeError, RecursionError) as error:
        raise BadRow("not storable", f"field '{at}' holds {error}: leave the test out") from None


def unwrapped(outputs: Sequence[Any], function: str, starter_code: str) -> list[Any]:
    """The expectations where each may stand in a list of its own, as harnesses for APPS and TACO accept it.

    They are taken out where all of a problem's are such lists, unless the starter code says that the function returns a list
    and so they may be meant.
    """
    if not outputs or not all(isinstance(output, list) and len(output) == 1 for output in outputs):
        return list(outputs)
    returns_list = re.search(rf"def {re.escape(function)}\(.*?\)\s*->\s*[Ll]ist\b", starter_code, re.DOTALL)
    if returns_list and not all(isinstance(output[0], list) for output in outputs):
        return list(outputs)
    return [output[0] for output in outputs]


def _with_number_keys(value: Any) -> Any:
    """JSON has text for keys: an object whose keys are all whole numbers was a dict of numbers."""
    if isinstance(value, dict) and value and all(map(_WHOLE_NUMBER.fullmatch, value)):
        return {int(key): item for key, item in value.items()}
    return value
