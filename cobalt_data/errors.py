"""The errors of the data layer. The error model itself is described in `sandbox.errors`."""

import contextlib
from collections.abc import Iterator

from sandbox.errors import CobaltError, InputError, SandboxError, SandboxUnavailable


class EngineError(CobaltError):
    """An engine cannot serve: the endpoint does not answer, refuses, or returns what it must not."""

    exit_status = 3


class HubError(CobaltError):
    """The Hugging Face Hub cannot be reached or refuses the request."""

    exit_status = 3


class DamagedManifest(InputError):
    """The manifest of a version is there, but is not what was written: a finding to `verify`, bad input to the others."""


class DatasetMoved(CobaltError):
    """Another process wrote to the dataset meanwhile. The new version is kept, but it is not the latest one."""


class Interrupted(CobaltError):
    """The user stopped the work (Ctrl-C); the message says how to go on with it."""

    exit_status = 130


@contextlib.contextmanager
def damage_in_one_line() -> Iterator[None]:
    """Turns what a library says of a damaged shard into InputError, where a verb reads past `Version.rows`.

    The libraries are told by their names: none of them needs to be imported for that.
    """
    try:
        yield
    except Exception as error:
        library = type(error).__module__.partition(".")[0].removeprefix("_")
        if library not in ("pyarrow", "polars", "duckdb") or "Memory" in type(error).__name__:
            raise
        raise InputError(
            f"a shard cannot be read ({one_line(error)}): `cobalt data verify` says which; restore it"
        ) from None


def one_line(error: BaseException) -> str:
    """What a library's exception says, fit for the single line of a `CobaltError`."""
    return " ".join(str(error).split())[:200] or type(error).__name__


__all__ = [
    "CobaltError",
    "DamagedManifest",
    "DatasetMoved",
    "EngineError",
    "HubError",
    "InputError",
    "Interrupted",
    "SandboxError",
    "SandboxUnavailable",
    "damage_in_one_line",
    "one_line",
]
