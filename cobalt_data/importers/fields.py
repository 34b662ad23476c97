"""Typed access to the fields of a source row, and the exception that says which field of a row is wrong.

Numbers must be finite and text must be storable as UTF-8. What lies in fields that no importer reads is left alone. Where a
record is nested in a row, `at` is its place, such as `tests[2].`, and leads the field's name in messages.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]

MAX_ID_LENGTH = 500
LARGEST = sys.float_info.max


class BadRow(Exception):
    """One row of the source cannot become a problem. `reason` is the short class under which such rows are counted."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class UnusableRow(BadRow):
    """A well-formed row that no sandbox could judge: it is left out and counted, but is no reason to stop an import."""


def required(fields: Fields, name: str, at: str = "") -> Any:
    if name not in fields:
        raise BadRow("missing field", f"field '{at}{name}' is missing")
    return fields[name]


def text(fields: Fields, name: str, at: str = "") -> str:
    """The text of a required field; it may be empty."""
    return as_text(required(fields, name, at), at + name)


def as_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise wrong_type(name, value, "text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRow(
            "not Unicode", f"field '{name}' holds half a surrogate pair, which UTF-8 lacks: remove it"
        ) from None
    return value


def filled_text(fields: Fields, name: str) -> str:
    """The text of a required field that says something."""
    value = text(fields, name)
    if not value.strip():
        raise BadRow("empty field", f"field '{name}' is empty: fill it in")
    return value


def optional_text(fields: Fields, name: str) -> str | None:
    """Text, or a number as text; None where the field is missing, null or blank."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{number(fields, name):g}"
    return text(fields, name).strip() or None


def iso_date(fields: Fields, name: str) -> str | None:
    """The day of a date or a moment, as `YYYY-MM-DD`; None where the field is missing, null or blank."""
    value = fields.get(name)
    if isinstance(value, datetime.date):  # a moment is a date too
        return value.isoformat()[:10]
    found = optional_text(fields, name)
    if found is None:
        return None
    try:
        return datetime.datetime.fromisoformat(found).date().isoformat()
    except ValueError:
        raise BadRow("bad date", f"field '{name}' is {found[:40]!r}: write a date as YYYY-MM-DD") from None


def lenient_date(fields: Fields, name: str) -> str | None:
    """The same where the source promises no form: what is no date counts as missing."""
    try:
        return iso_date(fields, name)
    except BadRow:
        return None


def identifier(fields: Fields, name: str) -> str:
    """An id: one short line of text, or a whole number."""
    value = required(fields, name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    found = filled_text(fields, name).strip()
    if len(found) > MAX_ID_LENGTH or not found.isprintable():
        raise BadRow(
            "bad id", f"field '{name}' is {found[:40]!r}: an id is one line of up to {MAX_ID_LENGTH} characters"
        )
    return found


def number(fields: Fields, name: str) -> float:
    value = required(fields, name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not -LARGEST <= value <= LARGEST:
        raise wrong_type(name, value, "a finite number")
    return float(value)


def flag(fields: Fields, name: str, at: str = "") -> bool:
    value = required(fields, name, at)
    if not isinstance(value, bool):
        raise wrong_type(at + name, value, "true or false")
    return value


def array(fields: Fields, name: str, at: str = "") -> list[Any]:
    value = required(fields, name, at)
    if not isinstance(value, list):
        raise wrong_type(at + name, value, "an array")
    return value


def record(value: Any, name: str) -> Fields:
    """`value` where it is an object; `name` says for the message where it was found."""
    if not isinstance(value, dict):
        raise wrong_type(name, value, "an object")
    return value


def parsed(value: Any, name: str) -> Any:
    """`value`, decoded first where it is JSON text: many publishers store nested data that way."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadRow("not JSON", f"field '{name}' holds text that is no JSON ({error}): write a JSON value") from None


def wrong_type(name: str, value: Any, wanted: str) -> BadRow:
    try:
        found = "null" if value is None else json.dumps(value, default=str)
    except (ValueError, RecursionError):
        found = f"a {type(value).__name__} that cannot be shown"
    shown = found if len(found) <= 40 else found[:40] + "..."
    return BadRow("wrong type", f"field '{name}' is {shown}: it must be {wanted}")
