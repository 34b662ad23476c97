"""Speaking with the Hugging Face Hub through its own client, whose refusals become one line each.

A token is handed to the client and goes nowhere else: it is neither stored nor written into a message, not even where the
server repeats it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Iterator
from typing import Any

import huggingface_hub
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, RevisionNotFoundError
from huggingface_hub.errors import HTTPError as TransportError  # type: ignore[attr-defined]
from huggingface_hub.utils import logging as hub_logging
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from cobalt_data.errors import HubError, InputError
from cobalt_data.references import HubReference

DATASET = "dataset"
TOKENS_PAGE = "https://huggingface.co/settings/tokens"
STALE = 412
BROKEN_OFF = (TransportError, OSError, RuntimeError, ValueError, KeyError)  # the last two: an answer that is none


@contextlib.contextmanager
def hub(reference: HubReference | str, token: str | None = None) -> Iterator[HfApi]:
    """A client for one piece of work on one repository, which messages call `reference`. `token=None`: `HF_TOKEN`, or what `hf auth login` keeps.

    Raises InputError on a token that cannot be one, HubError where the Hub refuses or cannot be reached.
    """
    token = token or huggingface_hub.get_token()
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise InputError(f"the token holds characters that no token has; copy it again from {TOKENS_PAGE}")
    try:
        with _silenced():
            yield HfApi(token=token, library_name="cobalt")
    except HfHubHTTPError as error:
        raise HubError(_refusal(error, reference, token)) from None
    except BROKEN_OFF as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        cause = error.__cause__ or error
        if isinstance(cause, HfHubHTTPError):
            raise HubError(_refusal(cause, reference, token)) from None
        reason = _one_line(f"{type(cause).__name__}: {cause}", token)
        raise HubError(
            f"{reference}: the Hub cannot be reached, or broke off ({reason}); repeat the command to go on"
        ) from None


def is_stale(error: Any) -> bool:
    """Whether the Hub refused a commit because somebody else's came first."""
    return isinstance(error, HfHubHTTPError) and error.response.status_code == STALE


def _refusal(error: HfHubHTTPError, reference: HubReference | str, token: str | None) -> str:
    status = error.response.status_code
    if isinstance(error, RevisionNotFoundError):
        return f"{reference}: the repository has no such tag"
    if status == 401 and token:
        return f"{reference}: the Hub rejected the token; set HF_TOKEN to a valid one from {TOKENS_PAGE}"
    if status == 401:
        return f"{reference}: the Hub asks for a token; set HF_TOKEN to one from {TOKENS_PAGE}, or run `hf auth login`"
    if status == 404:
        return f"{reference}: there is no such repository on the Hub, or it is private and the token does not open it"
    if status == STALE:
        return f"{reference}: others keep writing to the repository; repeat when they are done"
    if status == 429:
        return f"{reference}: the Hub has had too many requests of this account; wait some minutes and repeat"
    says = f": {_one_line(error.server_message, token)}" if error.server_message else ""
    if status == 403:
        return f"{reference}: the token does not allow this; it needs write access to the repository{says}"
    return f"{reference}: the Hub refused (status {status}){says}"


def _one_line(text: str, token: str | None) -> str:
    line = "".join(character for character in " ".join(text.split()) if character.isprintable())
    return (line.replace(token, "TOKEN") if token else line)[:200]


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Without the client's own bars and remarks: what is worth saying, cobalt says."""
    bars_were_on, verbosity = not are_progress_bars_disabled(), hub_logging.get_verbosity()
    disable_progress_bars()
    hub_logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        hub_logging.set_verbosity(verbosity)
        if bars_were_on:
            enable_progress_bars()
