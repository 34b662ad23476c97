"""The tokens of a chat as a model is served it, and how many these are where no engine is at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from cobalt_data.dataset import Version
from cobalt_data.errors import CobaltError, InputError
from cobalt_data.rows import Chat

ESTIMATE = "estimate"  # for models whose tokenizer is out of reach: served elsewhere, say
CHARACTERS_PER_TOKEN = 3.5  # code and English, byte-pair vocabularies of 50k to 200k
TOKENS_AROUND_A_MESSAGE = 4
SAY_WHOSE = f"say with --tokenizer whose tokens to count: a model, or `{ESTIMATE}` to go by characters"


def tokenizer_of(version: Version) -> str:
    """The model that made the trajectories of `version`. Raises InputError where there are several, or none."""
    models = pc.unique(version.table("trajectories", columns=["model"])["model"]).to_pylist()
    if len(models) > 1:
        raise InputError(
            f"{version.reference} has trajectories of {len(models)} models ({', '.join(sorted(models)[:3])}): {SAY_WHOSE}"
        )
    return str(models[0])


def estimated_tokens(text: str) -> int:
    """By the number of characters, for code and English."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


def estimated_chat_tokens(chat: Chat) -> int:
    return sum(TOKENS_AROUND_A_MESSAGE + estimated_tokens(message["content"]) for message in chat)


def token_counter(tokenizer: str, of: Version | None = None) -> Callable[[Chat], int]:
    """Counts with the tokenizer and chat template of a model; `estimate` goes by characters.

    `of`: the version whose collecting model `tokenizer` is, where nobody has named one. Raises InputError where it names no
    model, EngineError where that cannot be fetched.
    """
    if tokenizer == ESTIMATE:
        return estimated_chat_tokens
    from cobalt_data.models import load_tokenizer, resolve_model

    try:
        loaded = load_tokenizer(resolve_model(tokenizer))
    except CobaltError as error:
        if of is None:
            raise
        raise type(error)(
            f"{of.reference} has trajectories of {tokenizer}, whose tokenizer is not to be had ({error}): {SAY_WHOSE}"
        ) from None
    return lambda chat: len(rendered(chat, loaded, tokenizer))


def rendered(chat: Chat, tokenizer: Any, model: str) -> list[int]:
    """The token ids of a chat, with the header of the assistant's answer at the end. Raises InputError, naming the model."""
    from jinja2 import TemplateError

    try:
        text = tokenizer.apply_chat_template(
            [dict(message) for message in chat], add_generation_prompt=True, tokenize=False
        )
    except TemplateError as error:
        raise InputError(f"the chat template of {model} refuses a chat: {error}") from None
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
