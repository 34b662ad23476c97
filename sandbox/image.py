"""Makes the image that the docker backend runs: an interpreter, an unprivileged user, and next to nothing else.

From a base image (`python:3.12-slim` by default) where a registry is reachable; or from the files of this machine's own Python,
imported as a root file system, where none is. Either has numpy and sortedcontainers for programs, unless left out.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from sandbox.errors import CobaltError
from sandbox.interpreter import PACKAGES as OFFERED
from sandbox.interpreter import Interpreter, running

NAME = "cobalt-sandbox:1"
USER = 65534
PACKAGES = "/packages"

_LINKER_CACHE = Path("/etc/ld.so.cache")

_DOCKERFILE = """\
FROM {base}
RUN {install} && find / -xdev -perm /6000 -type f -exec chmod a-s {{}} + \
    && chmod 0711 "$(readlink -f "$(command -v python3)")"
USER {user}:{user}
WORKDIR /
ENTRYPOINT ["python3"]
"""


def build_image(base: str = "python:3.12-slim", from_host: bool = False, packages: bool = True) -> str:
    """Builds the image, replacing an older one; returns its name.

    `from_host` takes this machine's Python in place of `base`, without a registry. Raises SandboxUnavailable if there is no
    daemon, CobaltError if the build fails.
    """
    from sandbox.backends.docker import connect

    client = connect()
    try:
        older = {image.id for image in client.images.list(NAME)}
        if from_host:
            _import(client, running(), packages)
        else:
            _build(client, base, packages)
        for stale in older - {client.images.get(NAME).id}:
            with suppress(Exception):  # a container may still use it
                client.images.remove(stale)
    except Exception as error:
        origin = "this machine's Python" if from_host else base
        raise CobaltError(f"the image {NAME} could not be made from {origin}: {error}") from error
    finally:
        client.close()
    return NAME


def _build(client: Any, base: str, packages: bool) -> None:
    install = (
        f"pip install --no-cache-dir --target {PACKAGES} {' '.join(OFFERED)}" if packages else f"mkdir -p {PACKAGES}"
    )
    text = _DOCKERFILE.format(base=base, install=install, user=USER)
    client.images.build(fileobj=io.BytesIO(text.encode()), tag=NAME, rm=True, forcerm=True)


def _import(client: Any, interpreter: Interpreter, packages: bool) -> None:
    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        _write_root(file, interpreter, packages)
        file.flush()
        changes = [f'ENTRYPOINT ["{interpreter.executable}"]', f"USER {USER}:{USER}", "WORKDIR /"]
        repository, _, tag = NAME.partition(":")
        answer = client.api.import_image_from_file(file.name, repository=repository, tag=tag, changes=changes)
    if "error" in answer:
        raise CobaltError(answer)


def _write_root(file: IO[bytes], interpreter: Interpreter, packages: bool) -> None:
    """A tar of the interpreter's files at their own paths, owned by root, without a set-user-id bit."""
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT, dereference=True) as tar:
        contents = (*interpreter.directories, *interpreter.files, _LINKER_CACHE)
        parents = {str(parent) for path in contents for parent in path.parents} - {"/"}
        for directory in sorted({*parents, "/tmp", "/dev", "/proc", "/sys", PACKAGES}):
            entry = tarfile.TarInfo(directory.lstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        hidden = {str(path) for path in interpreter.hidden}
        for path in interpreter.directories:
            tar.add(path, filter=lambda entry: None if f"/{entry.name}" in hidden else _plain(entry))
        for path in (*interpreter.files, _LINKER_CACHE):
            if path.exists():
                tar.add(path, filter=_unreadable if path == interpreter.executable else _plain)
        for path in interpreter.packages if packages else ():
            tar.add(path, arcname=f"{PACKAGES}/{path.name}".lstrip("/"), filter=_plain)


def _unreadable(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """May be run by the unprivileged user but not read: nor then can the processes that run it, by each other."""
    plain = _plain(entry)
    if plain:
        plain.mode = 0o711
    return plain


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (entry.isfile() or entry.isdir()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
