"""The backend `process`: the agent as an ordinary process. Limits only, no isolation: for trusted programs.

A program here can read and write what this user can, reach the network and disturb other processes. It exists for machines
without namespaces and for tests of this package, and is used only when asked for by name.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

from sandbox.backends.local import LocalLink
from sandbox.errors import SandboxError
from sandbox.inside import bootstrap
from sandbox.interpreter import running


class Process:
    name = "process"

    def launch(self) -> LocalLink:
        try:
            return self._launch(Path(tempfile.mkdtemp(prefix="cobalt-")))
        except OSError as error:
            raise SandboxError(f"cannot make a directory for programs: {error}") from error

    def _launch(self, scratch: Path) -> LocalLink:
        home = scratch / "home"  # so that a program may remove its working directory
        home.mkdir()
        packages = scratch / "packages"
        packages.mkdir()
        for package in running().packages:
            (packages / package.name).symlink_to(package)
        config = {
            "mounts": [],
            "copy_to": "",
            "scratch": [str(home)],
            "seccomp": b"",
            "remove": [str(scratch)],
            "packages": [str(packages)],
            "count_processes": False,
        }
        command = [str(running().executable), *bootstrap.FLAGS, "-c", bootstrap.COMMAND]
        return LocalLink(
            command,
            config,
            bootstrap.ENVIRONMENT | {"HOME": str(home), "TMPDIR": str(home)},
            on_close=partial(shutil.rmtree, scratch, ignore_errors=True),
        )

    def close(self) -> None:
        return
