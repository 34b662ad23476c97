"""What the fields of a row must be beyond the types of their columns, checked wherever a row is read or made.

Each check raises InputError with the field and its value. They run a million times, hence nothing here but plain comparisons;
what only an import must know (that a judge can use the tests, say) is checked there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cobalt_data.errors import InputError


def check_counts(name: str, *values: object) -> None:
    for value in values:
        if type(value) is not int or value < 0:
            raise InputError(f"{name} is {value!r:.40}: it must be a whole number, 0 or more")


def check_texts(name: str, *values: object) -> None:
    for value in values:
        if type(value) is not str:
            raise InputError(f"{name} is {value!r:.40}: it must be text")


def check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{name} is {value}: it must be a share in [0, 1]")


def check_object(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is {value!r:.40}: it must be an object")


def check_chat(name: str, chat: Sequence[Mapping[str, str]], programs: int) -> None:
    """It must begin with what the first program answers, and hold so many programs at least."""
    roles = [message["role"] for message in chat]
    if roles[:1] == ["assistant"]:
        raise InputError(f"{name}: its chat does not begin with a task")
    if None in roles or None in [message["content"] for message in chat]:
        raise InputError(f"{name}: its chat has a message without role or content")
    if roles.count("assistant") < programs:
        raise InputError(f"{name}: its chat holds {roles.count('assistant')} programs, but it has {programs} turns")


def parsed_perturbation(text: str | None, row_id: str) -> Mapping[str, Any] | None:
    """A `perturbation` as its column spells it. `original`, where a prompt has it, is what the prompt was before."""
    if text is None:
        return None
    name = f"perturbation of {row_id}"
    try:
        perturbation: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{name} is {text[:40]!r}: it must be JSON") from None
    check_object(name, perturbation)
    check_texts(f"{name}: kind", perturbation.get("kind"))
    if "original" in perturbation:
        original = perturbation["original"]
        check_object(f"{name}: original", original)
        check_texts(
            f"{name}: prompt_id or feedback of its original", original.get("prompt_id"), original.get("feedback")
        )
        check_counts(f"{name}: prompt_tokens of its original", original.get("prompt_tokens"))
    return perturbation
