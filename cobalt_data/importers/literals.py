"""Evaluates the literal-like expressions that test authors write, without running any code.

Beyond plain literals: names such as `inf`, arithmetic (`2.0 / 3`, `"ab" * 3`), and calls of container types and `float`
on literals (`set([1, 2])`, `Counter({"a": 1})`, `float("inf")`). Results are bounded, so `9 ** 9 ** 9` is refused, not
computed. A Counter or an OrderedDict becomes the dict that it equals.
"""

from __future__ import annotations

import ast
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

MAX_ITEMS = 1_000_000  # of a sequence that an operator makes
MAX_BITS = 100_000  # of an integer that an operator makes

NAMES: dict[str, Any] = {"inf": math.inf}
CONTAINERS: dict[str, Callable[..., Any]] = {
    "set": set,
    "frozenset": frozenset,
    "tuple": tuple,
    "list": list,
    "dict": dict,
    "OrderedDict": dict,
    "Counter": lambda *items: dict(Counter(*items)),
}
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class NotLiteral(Exception):
    """The expression needs code to run, or would grow beyond the bounds."""


def literal(node: ast.expr) -> Any:
    """The value of the expression. Raises NotLiteral."""
    try:
        return _value(node)
    except (TypeError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        raise NotLiteral(str(error)) from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value) if value is not ...:
            return value
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Set(elts=items):
            return {_value(item) for item in items}
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.Name(id=name) if name in NAMES:
            return NAMES[name]
        case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in ("inf", "pi", "e"):
            return getattr(math, name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            return -_value(operand) if isinstance(sign, ast.USub) else +_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _combined(op, _value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if len(arguments) <= 1:
            return _called(name, [_value(argument) for argument in arguments])
    raise NotLiteral(ast.unparse(node)[:80])


def _called(name: str, arguments: list[Any]) -> Any:
    if name in CONTAINERS:
        return CONTAINERS[name](*arguments)
    if name == "float" and arguments and isinstance(arguments[0], str):
        return float(*arguments)
    raise NotLiteral(f"{name}(...)")


def _combined(op: ast.operator, left: Any, right: Any) -> Any:
    """The operator's value, refused beforehand where it could exceed the bounds."""
    if isinstance(op, ast.Mod) and isinstance(left, str | bytes):
        raise NotLiteral("text formatting")
    if isinstance(op, ast.Pow):
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise NotLiteral("a power of what is no number")
        if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > MAX_BITS:
            raise NotLiteral("a power beyond the bounds")
    if isinstance(op, ast.Mult):
        _check_product(left, right)
    return OPERATORS[type(op)](left, right)


def _check_product(left: Any, right: Any) -> None:
    for sequence, count in ((left, right), (right, left)):
        if isinstance(sequence, str | bytes | list | tuple) and isinstance(count, int):
            nested = not isinstance(sequence, str | bytes) and any(isinstance(item, Iterable) for item in sequence)
            if nested or len(sequence) * count > MAX_ITEMS:
                raise NotLiteral("a repetition beyond the bounds")
            return
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > MAX_BITS:
        raise NotLiteral("a product beyond the bounds")
