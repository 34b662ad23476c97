"""Reading tests from a file of JSON lines, one test a line, as `cobalt sandbox run` takes them."""

from __future__ import annotations

import json
from pathlib import Path

from sandbox.errors import InputError
from sandbox.judging import check
from sandbox.verdicts import Judge, Test


def read_tests(path: Path, judge: Judge) -> list[Test]:
    """The tests in `path`, each fit for `judge`. Raises InputError naming the line where one is not, or if there are none."""
    lines = read_text(path).split("\n")
    tests = [_test(line, judge, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not tests:
        raise InputError(
            f'{path}: holds no tests: give one a line, such as {{"kind": "stdin", "input": "", "output": ""}}'
        )
    return tests


def read_text(path: Path) -> str:
    """Raises InputError where there is no such file of text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start})") from None


def _test(line: str, judge: Judge, place: str) -> Test:
    try:
        test = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: is not JSON ({error})") from None
    if not isinstance(test, dict):
        raise InputError(f"{place}: is no JSON object; a test is one")
    try:
        check(test, judge)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    return test
