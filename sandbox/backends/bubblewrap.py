"""The backend `bubblewrap`: an agent in its own user, pid, network, mount, ipc, uts and cgroup namespaces.

What is inside: the interpreter with its libraries, read-only and by itself; /proc of the own pid namespace; five harmless
devices; one tmpfs, limited in bytes and files, as /tmp and /dev/shm. Not there: any other file of the host, a shell, a setuid
program, its environment (bubblewrap itself is started with an empty one, as a parent's environment can be read), a network
beyond a loopback of its own. The agent is process 1, holds no capability once it has mounted the tmpfs, and puts itself and
all programs under the filter of `sandbox.seccomp`. The user inside is never root, not even root under another name, so that
the limit on processes binds: started by root, bubblewrap runs as nobody.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from sandbox.backends.local import LocalLink
from sandbox.errors import SandboxUnavailable
from sandbox.inside import bootstrap
from sandbox.interpreter import Interpreter, running
from sandbox.seccomp import bpf

_NOBODY = 65534
_SCRATCH = "size=128m,nr_inodes=4096,mode=0700"
_SYSTEM_PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_DEVICES = ("null", "zero", "full", "random", "urandom")

_MOUNT_POINTS = ("/mnt", "/media", "/srv", "/opt")

# For root where nobody cannot reach the interpreter ($1): shows it at $2 to this process alone, then becomes nobody.
_AS_NOBODY = f"""
mount --bind "$1" "$2" && shift 2 && exec setpriv --reuid={_NOBODY} --regid={_NOBODY} --clear-groups -- "$@"
"""


class Bubblewrap:
    name = "bubblewrap"

    def __init__(self) -> None:
        """Raises SandboxUnavailable if bubblewrap is not installed."""
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxUnavailable("bubblewrap is not installed: `apt install bubblewrap` (0.7 or newer)")
        self._program = program
        self._filter = bpf().hex()
        self._command = _command(program, running())
        self._user = _NOBODY if os.geteuid() == 0 else None

    def launch(self) -> LocalLink:
        config = {"mounts": [["/tmp", _SCRATCH]], "scratch": ["/tmp"], "seccomp": self._filter}
        if self._user is None or _open_to_all(Path(sys.base_prefix)):
            return LocalLink(self._command, config, {}, user=self._user)
        return LocalLink(_through_mount(self._command, sys.base_prefix), config, _SYSTEM_PATH)

    def close(self) -> None:
        return


def _command(program: str, interpreter: Interpreter) -> list[str]:
    command = [program, "--die-with-parent", "--new-session", "--as-pid-1", "--unshare-user", "--unshare-pid"]
    command += ["--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]
    command += ["--uid", str(_NOBODY), "--gid", str(_NOBODY), "--cap-add", "CAP_SYS_ADMIN", "--clearenv"]
    command += _root(interpreter)
    for name, value in bootstrap.ENVIRONMENT.items():
        command += ["--setenv", name, value]
    return [*command, "--", str(interpreter.executable), *bootstrap.FLAGS, "-c", bootstrap.COMMAND]


def _open_to_all(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in (path, *path.parents))


def _through_mount(command: list[str], prefix: str) -> list[str]:
    """`command`, run as nobody, with the paths to bind under `prefix` taken from where `_AS_NOBODY` shows them."""
    point = next((p for p in _MOUNT_POINTS if Path(p).is_dir() and not prefix.startswith(p)), None)
    if point is None:
        raise SandboxUnavailable(f"the user nobody cannot reach {prefix}: make it readable or install Python elsewhere")
    shown = [
        point + word.removeprefix(prefix) if before == "--ro-bind" and word.startswith(prefix + "/") else word
        for before, word in zip(["", *command], command, strict=False)
    ]
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", _AS_NOBODY, "sh", prefix, point, *shown]


def _root(interpreter: Interpreter) -> list[str]:
    """The arguments that build the file system inside."""
    arguments: list[str] = []
    for path in (*interpreter.directories, *interpreter.files):
        arguments += ["--ro-bind", str(path), str(path)]
    for path in interpreter.hidden:
        arguments += ["--tmpfs", str(path), "--remount-ro", str(path)]
    arguments += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--tmpfs", "/dev"]
    for device in _DEVICES:
        arguments += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    for index, name in enumerate(("stdin", "stdout", "stderr")):
        arguments += ["--symlink", f"/proc/self/fd/{index}", f"/dev/{name}"]
    arguments += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/tmp", "/dev/shm", "--remount-ro", "/dev"]
    return [*arguments, "--dir", "/tmp", "--remount-ro", "/"]
