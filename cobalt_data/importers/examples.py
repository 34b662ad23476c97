"""Examples of calls in statements: which tests a statement gives away, and how to write tests as examples."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Sequence

from cobalt_data.ids import canonical_json
from cobalt_data.importers.literals import NotLiteral, literal
from sandbox import Test
from sandbox.values import decode, encode

MAX_CALL_LENGTH = 2_000  # of an example that a reader would still take for one


def shown_tests(statement: str, entry_point: str, tests: Sequence[Test]) -> set[int]:
    """Positions of the call tests whose call stands in the statement; prose around the calls may have any form."""
    shown = {canonical_json([[encode(value) for value in args], {}]) for args in _calls(statement, entry_point)}
    return {
        index
        for index, test in enumerate(tests)
        if test["kind"] == "call" and canonical_json([test["args"], test["kwargs"]]) in shown
    }


def written_examples(entry_point: str, tests: Iterable[Test]) -> str:
    """The call tests in the form of a Python session; tests of other kinds are left out."""
    return "\n".join(_session(entry_point, test) for test in tests if test["kind"] == "call")


def _session(entry_point: str, test: Test) -> str:
    args = [written(decode(value)) for value in test["args"]]
    args += [f"{name}={written(decode(value))}" for name, value in test["kwargs"].items()]
    return f">>> {entry_point}({', '.join(args)})\n{written(decode(test['expected']))}"


def written(value: object) -> str:
    """`repr`, but with the members of a set in one order: Python's own changes from run to run, and ids with it."""
    match value:
        case list():
            return f"[{', '.join(map(written, value))}]"
        case tuple():
            return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
        case dict():
            return f"{{{', '.join(f'{written(key)}: {written(kept)}' for key, kept in value.items())}}}"
        case set() if value:
            return f"{{{', '.join(sorted(map(written, value)))}}}"
    return repr(value)


def _calls(statement: str, entry_point: str) -> Iterable[list[object]]:
    """The positional arguments of every `entry_point(literals)` in the text."""
    for match in re.finditer(rf"\b{re.escape(entry_point)}\(", statement):
        call = _parsed_call(statement[match.start() : match.start() + MAX_CALL_LENGTH])
        if call and not call.keywords:
            try:
                yield [literal(argument) for argument in call.args]
            except NotLiteral:
                continue


def _parsed_call(text: str) -> ast.Call | None:
    """The call that begins the text: the shortest beginning that ends in a parenthesis and is an expression."""
    for end in (match.end() for match in re.finditer(r"\)", text)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                node = ast.parse(text[:end], mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return node if isinstance(node, ast.Call) else None
    return None
