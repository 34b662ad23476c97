"""Tests of whole programs: what stdin says and what stdout must say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox import Test

DECIMAL = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")


def stdin_test(given: str, expected: str, public: bool) -> Test:
    """Line ends are normalised: Python on Linux hands a CR to the program, and no right program expects one."""
    return {"kind": "stdin", "public": public, "input": _unix(given), "output": _unix(expected)}


def holds_decimals(tests: Iterable[Test]) -> bool:
    """Whether some expected output has a token such as `0.5`."""
    return any(DECIMAL.fullmatch(token) for test in tests for token in test["output"].split())


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")
