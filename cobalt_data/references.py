"""How a version is named: `PATH`, `PATH@VERSION` or, on the Hub, `hf://datasets/USER/NAME@TAG`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from cobalt_data.errors import InputError

HUB_PREFIX = "hf://datasets/"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9_][\w.-]{0,95}", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9_][\w.-]{0,127}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LocalReference:
    """A dataset's directory and, unless its latest version is meant, an id or the beginning of one."""

    dataset: Path
    version: str | None


@dataclass(frozen=True, slots=True)
class HubReference:
    """A dataset repository and, unless its newest state is meant, a tag: the id of a version."""

    repository: str
    tag: str | None = None

    def __post_init__(self) -> None:
        if not _REPOSITORY.fullmatch(self.repository) or ".." in self.repository or "--" in self.repository:
            raise InputError(f"{self.repository!r} is no repository of the Hub: write it as USER/NAME")
        if self.tag is not None and not _TAG.fullmatch(self.tag):
            raise InputError(f"{self.tag!r} is no tag of {self.repository}: it is the id of a version")

    def __str__(self) -> str:
        return f"{HUB_PREFIX}{self.repository}" + (f"@{self.tag}" if self.tag else "")


def parse_reference(reference: str | Path) -> LocalReference | HubReference:
    """Raises InputError where the reference names something that cannot exist."""
    text = str(reference)
    if text.startswith("hf://"):
        return parse_hub_reference(text)
    path, at, version = text.rpartition("@")
    if at and "/" not in version and not _exists(text):
        if not path or not version:
            raise InputError(f"{text} is no dataset: write PATH, or PATH@VERSION with the id of a version")
        return LocalReference(Path(path), version)
    return LocalReference(Path(text), None)


def parse_target(target: str | Path) -> Path:
    """The directory of a dataset that is to be written. Raises InputError where it cannot be meant as one."""
    text = str(target)
    if not text:
        raise InputError("the dataset to write has no name: give a path with -o")
    if not text.isprintable():
        raise InputError(f"{text!r} is no name that could be written down everywhere: give printable UTF-8 with -o")
    if text.startswith("hf:/"):
        raise InputError(f"{text} is on the Hub: write to a path on disk with -o, then use `cobalt data push`")
    path, at, version = text.rpartition("@")
    if not _exists(text) and at and "/" not in version and (not path or _exists(path)):
        raise InputError(f"{text} names a version, which never changes: give -o the path of a dataset alone")
    refuse_among_versions(text, "-o")
    refuse_unwritable(Path(text), "-o")
    return Path(text)


def refuse_among_versions(target: str | Path, option: str) -> None:
    """Raises InputError where `target`, given with that option, would become a part of a dataset's versions."""
    around = Path(os.path.realpath(target))
    for place in (around, *around.parents):
        if place.name == "versions" and (place.parent / "latest").is_symlink():
            raise InputError(
                f"{target} lies among the versions of {place.parent}: write beside that dataset with {option}"
            )


def refuse_unwritable(target: Path, option: str) -> None:
    """Raises InputError where nothing can be written in the directory `target`, or where it could not be made.

    So that this is said before the work and not after it; a disk that fills up meanwhile is found when it does.
    """
    around = (target, *target.absolute().parents)
    nearest = next(place for place in around if os.path.lexists(place))
    for place in (nearest, target / "versions"):
        if os.path.lexists(place):
            _refuse_closed(place, target, option)


def refuse_unwritable_file(file: str | Path, option: str) -> None:
    """The same for a file beside the result, such as a report; also one among a dataset's versions is refused."""
    refuse_among_versions(file, option)
    file = Path(file)
    if file.is_dir():
        raise InputError(f"{file} is a directory: name a file with {option}")
    if file.is_file() or not file.exists():  # no pipe, no device
        _refuse_closed(Path(os.path.realpath(file)).parent, file, option)


def _refuse_closed(place: Path, target: Path, option: str) -> None:
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        why = "nothing may be written in it" if place.is_dir() else "there is no such directory"
        raise InputError(f"{target}: cannot write there ({place}: {why}); name another place with {option}")


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: str | Path, error: OSError) -> InputError:
    """What to say of a path that the system does not let be read, or that cannot be one."""
    return InputError(f"{str(path)[:200]} cannot be read ({error.strerror}): check the path, and what it permits")


def parse_hub_reference(text: str) -> HubReference:
    """`hf://datasets/USER/NAME[@TAG]` or, where only the Hub can be meant, `USER/NAME[@TAG]`. Raises InputError."""
    if text.startswith("hf://") and not text.startswith(HUB_PREFIX):
        raise InputError(f"{text} is no dataset: write it as {HUB_PREFIX}USER/NAME@TAG")
    repository, _, tag = text.removeprefix(HUB_PREFIX).partition("@")
    return HubReference(repository, tag or None)
