"""Whether what a program gave is what was expected. All rules stand here; they are total: hostile output is just unequal.

**Text** (`outputs_match`; stdout against the expected output; compared as bytes, so invalid UTF-8 is merely different; case
always counts; white space is ASCII white space, so CR before LF never matters except inside `exact`):

- `tokens` (default): the white-space-separated tokens, exact and in order; line breaks and amounts of space do not matter.
- `lines`: line by line, white space at the end of a line and blank lines at the end of the output ignored.
- `exact`: the whole output, stripped at both ends.
- `float:EPS`: tokens in order; two tokens match if they are the same text, or if both are finite decimal numbers, not both
  integers, and |expected - actual| <= EPS * max(1, |expected|), that is EPS absolute or relative. Two integers must be the
  same text. `nan`, `inf`, `1_0` and hexadecimal are no numbers.
- `multiset`: the tokens in any order, each as often as expected.

**Call results** (`values_match`; on the tagged form of `sandbox.values`): structure, lengths, keys and strings are exact.
A list equals a tuple, a set a frozenset, with equal contents; an int equals a float of the same value, `True` is not `1`; nan
equals nan; dicts are compared without order; an object that is no plain data equals nothing. Under `float:EPS` two numbers of
which at least one is a float may differ as above, at any depth; non-finite results then match only the same non-finite value.
Under `multiset` the two outermost lists may be in any order. The other checkers do not differ for call results.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from sandbox.values import encode

if TYPE_CHECKING:
    from sandbox.values import Json

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(rb"[+-]?[0-9]+")


def outputs_match(checker: str, expected: str | bytes, actual: str | bytes) -> bool:
    """Whether the text `actual` is right where `expected` was wanted, by the rules above."""
    want, got = _as_bytes(expected), _as_bytes(actual)
    if want == got:
        return True
    if checker == "exact":
        return want.strip() == got.strip()
    if checker == "lines":
        return _lines(want) == _lines(got)
    want_tokens, got_tokens = want.split(), got.split()
    if len(want_tokens) != len(got_tokens):
        return False
    if checker == "multiset":
        return Counter(want_tokens) == Counter(got_tokens)
    if checker.startswith("float:"):
        eps = float(checker.removeprefix("float:"))
        return all(_tokens_close(*pair, eps) for pair in zip(want_tokens, got_tokens, strict=True))
    return want_tokens == got_tokens


def values_match(expected: Any, actual: Any, checker: str) -> bool:
    """Whether the plain value `actual` is right where `expected` was wanted. Raises TypeError if either is not plain data."""
    return trees_match(encode(expected), encode(actual), checker)


def trees_match(expected: Json, actual: Json, checker: str) -> bool:
    """`values_match` on tagged JSON. `actual` may be hostile: nothing in it is decoded, called or hashed as a key."""
    eps = float(checker.removeprefix("float:")) if checker.startswith("float:") else None
    try:
        want, got = _normal(expected), _normal(actual)
        if checker == "multiset" and want[0] == got[0] == "list":
            want, got = ("set", _sorted(want[1])), ("set", _sorted(got[1]))
        return _equal(want, got, eps)
    except (RecursionError, TypeError, ValueError, LookupError, AttributeError):
        return False  # malformed tags: no value that a program can return


def _as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def _lines(text: bytes) -> list[bytes]:
    return [line.rstrip() for line in text.rstrip().split(b"\n")]


def _tokens_close(expected: bytes, actual: bytes, eps: float) -> bool:
    if expected == actual:
        return True
    if not (_NUMBER.fullmatch(expected) and _NUMBER.fullmatch(actual)):
        return False
    if _INTEGER.fullmatch(expected) and _INTEGER.fullmatch(actual):
        return False
    return _close(float(expected), float(actual), eps)


def _close(expected: float, actual: float, eps: float) -> bool:
    if not (math.isfinite(expected) and math.isfinite(actual)):
        return False
    return abs(expected - actual) <= eps * max(1.0, abs(expected))


# A normal form is a pair (kind, content) in which equal values look alike: lists and tuples are "list", sets of both kinds
# "set" with sorted elements, every dict a "dict" with sorted pairs, ints and floats "number".
_Normal = tuple[str, Any]


def _normal(tree: Json) -> _Normal:
    if tree is None or isinstance(tree, bool):
        return ("constant", tree)
    if isinstance(tree, (int, float)):
        return ("number", tree)
    if isinstance(tree, str):
        return ("text", tree)
    if isinstance(tree, list):
        return ("list", [_normal(item) for item in tree])
    tag = next(iter(tree), "")
    if not tag.startswith("$"):
        return ("dict", _sorted([("list", [("text", key), _normal(item)]) for key, item in tree.items()]))
    content = tree[tag]
    if tag == "$tuple":
        return ("list", [_normal(item) for item in content])
    if tag in ("$set", "$frozenset"):
        return ("set", _sorted([_normal(item) for item in content]))
    if tag == "$dict":
        return ("dict", _sorted([("list", [_normal(key), _normal(item)]) for key, item in content]))
    if tag == "$int":
        return ("number", int(content, 16))
    if tag == "$float":
        return ("number", float(content))
    if tag == "$complex":
        real, imaginary = content
        return ("complex", [_normal(real), _normal(imaginary)])
    if tag in ("$bytes", "$type"):
        return (tag, content)
    raise ValueError(f"{tag} is no plain value")


def _sorted(items: list[_Normal]) -> list[_Normal]:
    return sorted(items, key=_sort_key)


def _sort_key(item: _Normal) -> tuple[str, float, str]:
    """Numbers by value, so that sets of nearly equal floats pair up; the rest by their text."""
    kind, content = item
    if kind != "number":
        return (kind, 0.0, json.dumps(content, default=str))
    try:
        return (kind, -math.inf if content != content else float(content), "")
    except OverflowError:
        return (kind, math.copysign(math.inf, content), hex(content))


def _equal(want: _Normal, got: _Normal, eps: float | None) -> bool:
    kind, content = want
    if kind != got[0]:
        return False
    if kind == "number":
        return _numbers_equal(content, got[1], eps)
    if kind in ("list", "set", "dict", "complex"):
        pairs = zip(content, got[1], strict=False)
        return len(content) == len(got[1]) and all(_equal(a, b, eps) for a, b in pairs)
    return bool(content == got[1])


def _numbers_equal(want: int | float, got: int | float, eps: float | None) -> bool:
    if want == got or (want != want and got != got):
        return True
    if eps is None or (isinstance(want, int) and isinstance(got, int)):
        return False
    try:
        return _close(float(want), float(got), eps)
    except OverflowError:
        return False
