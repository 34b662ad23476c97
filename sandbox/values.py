"""Python values as JSON: one documented form for what JSON lacks.

JSON's own values stand for themselves: null, booleans, integers, finite floats, strings, lists, and objects whose keys are
strings that do not start with "$". Everything else is an object with one key:

    {"$tuple": [...]}   {"$set": [...]}   {"$frozenset": [...]}   (sets sorted by the JSON text of their elements)
    {"$dict": [[key, value], ...]}        a dict with a key that is no string, or one that starts with "$"
    {"$bytes": "hex digits"}              bytes and bytearray
    {"$complex": [real, imaginary]}       {"$float": "nan" | "inf" | "-inf"}
    {"$type": "int"}                      a built-in class, as functions take them for arguments
    {"$int": "0x..."}                     an integer of more than 4,000 decimal digits, which `json.loads` refuses

`encode` is strict: it takes exactly these types, so that data is never stored as something that it is not.
`encode_result` is for what a program returned: it reads subclasses by their built-in base (no method of the program's own
class is called), iterators, views and deques as lists, numpy values through `tolist`; any other object becomes
`{"$object": "its class"}`, which equals nothing. This module runs inside the sandbox too: standard library only.
"""

from __future__ import annotations

import builtins
import json
import math
from collections import deque
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` is not imported inside the sandbox, see `sandbox.inside`
    from collections.abc import Callable
    from typing import Any

    Json = Any  # None, bool, int, float, str, list or dict with string keys
_MAX_DEPTH = 200  # json.loads gives up near 1,000
_BIG_INT_BITS = 13_000  # a little below 4,000 decimal digits
_VIEWS: tuple[type, ...] = (range, deque, type({}.keys()), type({}.values()), type({}.items()), Iterator)


def encode(value: object) -> Json:
    """The tagged JSON form of `value`. Raises TypeError if it holds anything but the plain types listed above."""
    return _encode(value, _refuse, 0)


def encode_result(value: object) -> Json:
    """Like `encode`, for any value whatever: what is not plain data is read as such or becomes `{"$object": ...}`."""
    return _encode(value, _read_as_plain, 0)


def decode(tree: Json) -> Any:
    """The value of a tagged JSON form. Raises ValueError for an unknown tag or a malformed one."""
    if isinstance(tree, list):
        return [decode(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    tag = next(iter(tree), "")
    if not tag.startswith("$"):
        return {key: decode(item) for key, item in tree.items()}
    try:
        return _DECODERS[tag](tree[tag])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{json.dumps(tree)[:80]} is not a tagged value: {error}") from None


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "$tuple": lambda items: tuple(decode(item) for item in items),
    "$set": lambda items: {decode(item) for item in items},
    "$frozenset": lambda items: frozenset(decode(item) for item in items),
    "$dict": lambda pairs: {decode(key): decode(value) for key, value in pairs},
    "$bytes": bytes.fromhex,
    "$complex": lambda parts: complex(decode(parts[0]), decode(parts[1])),
    "$float": float,
    "$int": lambda digits: int(digits, 16),
    "$type": lambda name: _builtin_type(name),
}


def _builtin_type(name: str) -> type:
    kind = vars(builtins)[name]
    if not isinstance(kind, type):
        raise TypeError(f"{name} is no class")
    return kind


def _encode(value: Any, other: Callable[[object, int], Json], depth: int) -> Json:
    """`other` encodes what is not exactly of a plain type."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if value.bit_length() < _BIG_INT_BITS else {"$int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if depth > _MAX_DEPTH:
        return other(value, depth)
    if kind is list:
        return [_encode(item, other, depth + 1) for item in value]
    if kind is tuple:
        return {"$tuple": [_encode(item, other, depth + 1) for item in value]}
    if kind is dict:
        return _encode_dict(value, other, depth)
    if kind is set or kind is frozenset:
        items = [_encode(item, other, depth + 1) for item in value]
        return {f"${kind.__name__}": sorted(items, key=json.dumps)}
    if kind is bytes or kind is bytearray:
        return {"$bytes": value.hex()}
    if kind is complex:
        return {"$complex": [_encode(value.real, other, depth), _encode(value.imag, other, depth)]}
    if kind is type and value.__module__ == "builtins":
        return {"$type": value.__name__}
    return other(value, depth)


def _encode_dict(value: dict[Any, Any], other: Callable[[object, int], Json], depth: int) -> Json:
    if all(type(key) is str and not key.startswith("$") for key in value):
        return {key: _encode(item, other, depth + 1) for key, item in value.items()}
    pairs = [[_encode(key, other, depth + 1), _encode(item, other, depth + 1)] for key, item in value.items()]
    return {"$dict": pairs}


def _refuse(value: object, depth: int) -> Json:
    if depth > _MAX_DEPTH:
        raise TypeError(f"a value nested more than {_MAX_DEPTH} deep cannot be stored as JSON")
    raise TypeError(f"a value of type {type(value).__name__} is not plain data and cannot be stored as JSON")


def _read_as_plain(value: Any, depth: int) -> Json:
    kind = type(value)
    if depth > _MAX_DEPTH:
        return {"$object": kind.__name__}
    for base, read in _READERS:
        if issubclass(kind, base):
            return _encode(read(value), _read_as_plain, depth + 1)
    if issubclass(kind, _VIEWS):
        return [_encode(item, _read_as_plain, depth + 1) for item in value]
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):
        return _encode(value.tolist(), _read_as_plain, depth + 1)
    return {"$object": kind.__name__}


# The methods of the built-in base, so that an override in the program's class is never asked.
_READERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, lambda value: int.__add__(value, 0)),
    (float, lambda value: float.__add__(value, 0.0)),
    (str, lambda value: str.__add__(value, "")[:]),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (dict, lambda value: dict(dict.items(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (bytes, lambda value: bytes.__add__(value, b"")),
    (bytearray, lambda value: bytes(memoryview(value))),
)
