"""Turns the asserts of a `check(candidate)` function, or of a flat script, into tests.

`assert candidate(literals) == literal` and its kin (`is True`, bare, `not`, swapped sides, `tuple(...)` around both sides,
a tolerance) become `call` tests, whose expected value never enters the program's sandbox. Everything else stays an `assert`
test: source in terms of `candidate`, complete with the earlier statements and helper functions that it needs.

Left out are asserts that hold for every program (`assert True`, a call compared with itself), as they would only dilute pass
rates, and asserts that hand code to the candidate (`candidate(values, int)`), as only data can enter its sandbox; a row
without others is an `UnusableRow`.

A tolerance becomes the problem's checker `float:EPS`, which loosens the exact comparisons of floats in the same
problem as well; a large one, or several in one problem, stay in the asserts.
"""

from __future__ import annotations

import ast
import builtins
import math
import warnings
from dataclasses import dataclass
from typing import Any

from cobalt_data.importers.fields import BadRow, UnusableRow
from cobalt_data.importers.literals import NotLiteral, literal
from cobalt_data.importers.slices import needed_statements
from sandbox import Test
from sandbox.values import encode

CANDIDATE = "candidate"
MAX_EPS = 1e-3


@dataclass(frozen=True, slots=True)
class _Call:
    """A test statement understood as one call: `eps` is None for an exact comparison."""

    args: list[Any]
    kwargs: dict[str, Any]
    expected: Any
    eps: float | None


def asserts_to_tests(
    source: str, entry_point: str, helpers: str = "", name: str = "test"
) -> tuple[list[Test], str | None]:
    """The tests, all hidden, in the order of the source, and the checker `float:EPS` where a tolerance asks for it.

    `helpers` is source whose definitions the asserts may use (the header of the prompt). `entry_point` may stand in the
    asserts instead of the parameter of `check`. Raises BadRow, naming the field `name`, where there is nothing to test.
    """
    module = parse_source(source, name)
    check = next((node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
    names = {entry_point, CANDIDATE}
    body, before = module.body, parse_source(helpers, name).body
    if check is not None:
        names |= {argument.arg for argument in check.args.args[:1]}
        body, before = check.body, [*before, *(node for node in module.body if node is not check)]
    rename = _Rename(names)
    before = [rename.visit(statement) for statement in before]
    understood = [(statement, _as_call(statement)) for statement in map(rename.visit, body)]
    eps = _common_tolerance([call for _, call in understood if call])
    tests: list[Test] = []
    unusable = False
    for statement, call in understood:
        if call and (call.eps is None or call.eps == eps):
            tests.append(_call_test(call))
        elif not _is_test(statement):
            before.append(statement)
        elif _passes_code(statement):
            unusable = True
        elif not _always_holds(statement):
            tests.append(_assert_test([*needed_statements(statement, before), statement]))
    if not tests and unusable:
        message = "hands functions or types to {}, and only data can enter a sandbox: left out"
        raise UnusableRow("unusable tests", f"field '{name}' {message.format(entry_point)}")
    if not tests:
        raise BadRow("no tests", f"field '{name}' has no assert that calls {entry_point} or candidate: add one")
    return tests, None if eps is None else f"float:{eps:g}"


def parse_source(source: str, name: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadRow("not Python", f"field '{name}' is no Python source ({error}): correct it") from None


class _Rename(ast.NodeTransformer):
    """Calls the tested function `candidate`, whatever the source calls it."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(CANDIDATE, node.ctx), node) if node.id in self.names else node


def _holds_assert(statement: ast.stmt) -> bool:
    is_definition = isinstance(statement, ast.FunctionDef | ast.ClassDef)
    return not is_definition and any(isinstance(node, ast.Assert) for node in ast.walk(statement))


def _is_test(statement: ast.stmt) -> bool:
    """An assert in any form, or a bare call that hands on the candidate (to a helper that asserts)."""
    mentions_candidate = any(isinstance(node, ast.Name) and node.id == CANDIDATE for node in ast.walk(statement))
    return _holds_assert(statement) or (isinstance(statement, ast.Expr) and mentions_candidate)


def _always_holds(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assert(test=ast.Constant(value=value)):
            return bool(value)
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            return ast.dump(left) == ast.dump(right)
    return False


def _passes_code(statement: ast.stmt) -> bool:
    """Whether some call of the candidate is given a function or a type, such as `candidate(values, int)`."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _is_call(node)]
    return any(
        _is_code(argument) for call in calls for argument in [*call.args, *(word.value for word in call.keywords)]
    )


def _is_code(node: ast.expr) -> bool:
    match node:
        case ast.Lambda():
            return True
        case ast.Name(id=name):
            return callable(getattr(builtins, name, None))
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return any(map(_is_code, items))
    return False


def _as_call(statement: ast.stmt) -> _Call | None:
    if not isinstance(statement, ast.Assert):
        return None
    try:
        return _compared(statement.test)
    except NotLiteral:
        return None


def _compared(test: ast.expr) -> _Call | None:
    match test:
        case ast.Call(func=ast.Name(id="candidate")):
            return _call(test, True)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _call(operand, False)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            left, right = _without_wrapper(left, right)
            return _call(left, literal(right)) if _is_call(left) else _call(right, literal(left))
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=True | False | None as expected)]):
            return _call(left, expected)
        case ast.Compare(left=distance, ops=[ast.Lt() | ast.LtE()], comparators=[eps]):
            return _close(distance, literal(eps))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="isclose") | ast.Name(id="isclose")):
            return _is_close(test)
    return None


def _without_wrapper(left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
    """`tuple(candidate(x)) == tuple([1])` without the wrappers: in results, lists equal tuples anyway."""
    match left, right:
        case (
            ast.Call(func=ast.Name(id="tuple" | "list" as outer), args=[inner], keywords=[]),
            ast.Call(func=ast.Name(id=other), args=[expected], keywords=[]),
        ) if outer == other and isinstance(expected, ast.List | ast.Tuple):
            return inner, expected
    return left, right


def _close(distance: ast.expr, eps: Any) -> _Call | None:
    """`abs(candidate(x) - y) < eps`, either way round."""
    match distance:
        case ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left=left, op=ast.Sub(), right=right)]):
            return _call(left, literal(right), eps) if _is_call(left) else _call(right, literal(left), eps)
    return None


def _is_close(test: ast.Call) -> _Call | None:
    """`math.isclose(candidate(x), y)`: the larger of its tolerances, relative and absolute as in the checker."""
    settings = {keyword.arg: literal(keyword.value) for keyword in test.keywords if keyword.arg}
    tolerances = {"rel_tol": 1e-9, "abs_tol": 0.0, **settings}
    if len(test.args) != 2 or len(tolerances) > 2:
        return None
    if not all(isinstance(eps, int | float) for eps in tolerances.values()):
        return None
    left, right = test.args
    eps = max(tolerances.values())
    return _call(left, literal(right), eps) if _is_call(left) else _call(right, literal(left), eps)


def _is_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == CANDIDATE


def _call(node: ast.expr, expected: Any, eps: Any = None) -> _Call | None:
    """None where the node is no call of the candidate on literals, or the expectation is one that no value meets."""
    if not isinstance(node, ast.Call) or not _is_call(node) or any(keyword.arg is None for keyword in node.keywords):
        return None
    if eps is not None and not (isinstance(eps, float) and 0 < eps < 1):
        return None
    if isinstance(expected, float) and math.isnan(expected):
        return None
    kwargs = {str(keyword.arg): literal(keyword.value) for keyword in node.keywords}
    return _Call([literal(argument) for argument in node.args], kwargs, expected, eps)


def _common_tolerance(calls: list[_Call]) -> float | None:
    """The tolerance of the problem, if there is exactly one and it is small enough for the exact comparisons too."""
    tolerances = {call.eps for call in calls if call.eps is not None}
    return min(tolerances) if len(tolerances) == 1 and max(tolerances) <= MAX_EPS else None


def _call_test(call: _Call) -> Test:
    return {
        "kind": "call",
        "public": False,
        "args": [encode(value) for value in call.args],
        "kwargs": {name: encode(value) for name, value in call.kwargs.items()},
        "expected": encode(call.expected),
    }


def _assert_test(statements: list[ast.stmt]) -> Test:
    module = ast.fix_missing_locations(ast.Module(body=statements, type_ignores=[]))
    return {"kind": "assert", "public": False, "code": ast.unparse(module)}
