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
_DEVICES = ("null", "zero", "full", "random", "urandom")

_PACKAGES = "/packages"
_MOUNT_POINTS = ("/mnt", "/media", "/srv", "/opt")

# For root where nobody cannot reach some files ($2, ... up to "--"): shows them as $1/0, $1/1, ... to this process alone,
# then becomes nobody.
_AS_NOBODY = f"""
PATH=/usr/sbin:/usr/bin:/sbin:/bin; point="$1"; shift; number=0
mount -t tmpfs -o mode=0755 tmpfs "$point" || exit
while [ "$1" != -- ]; do
    mkdir "$point/$number" && mount --bind "$1" "$point/$number" || exit
    shift; number=$((number + 1))
done
shift
exec setpriv --reuid={_NOBODY} --regid={_NOBODY} --clear-groups -- env -i "$@"
"""


class Bubblewrap:
    name = "bubblewrap"

    def __init__(self) -> None:
        """Raises SandboxUnavailable if bubblewrap is not installed."""
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxUnavailable("bubblewrap is not installed: `apt install bubblewrap` (0.7 or newer)")
        self._program = program
        self._filter = bpf()
        self._user: int | None = None
        self._command = self.command_for([*bootstrap.FLAGS, "-c", bootstrap.COMMAND])

    def command_for(self, arguments: list[str]) -> list[str]:
        """The command that runs this Python with `arguments` in a new sandbox; start it with an empty environment."""
        command = [*_command(self._program, running()), *arguments]
        if os.geteuid() != 0:
            return command
        if closed := _closed_to_nobody(command):
            return _through_mounts(command, closed)
        self._user = _NOBODY
        return command

    def launch(self) -> LocalLink:
        config = {
            "mounts": [["/tmp", _SCRATCH]],
            "scratch": ["/tmp"],
            "copy_to": "/agent",
            "seccomp": self._filter,
            "remove": [],
            "packages": [_PACKAGES],
            "count_processes": True,
        }
        return LocalLink(self._command, config, {}, user=self._user)

    def close(self) -> None:
        return


def _command(program: str, interpreter: Interpreter) -> list[str]:
    command = [program, "--die-with-parent", "--new-session", "--as-pid-1", "--unshare-user", "--unshare-pid"]
    command += ["--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]
    command += ["--uid", str(_NOBODY), "--gid", str(_NOBODY), "--cap-add", "CAP_SYS_ADMIN", "--clearenv"]
    command += _root(interpreter)
    for name, value in bootstrap.ENVIRONMENT.items():
        command += ["--setenv", name, value]
    return [*command, "--", str(interpreter.executable)]


def _bound(command: list[str]) -> list[tuple[int, Path]]:
    """Where in the command paths to bind stand, and these paths."""
    return [(at + 1, Path(command[at + 1])) for at, word in enumerate(command) if word == "--ro-bind"]


def _closed_to_nobody(command: list[str]) -> list[Path]:
    """The directories to show to nobody by another way: those that hold paths to bind below one that only its owner may enter."""
    closed = [path for _, path in _bound(command) if not all(p.stat().st_mode & 0o001 for p in path.parents)]
    tops = dict.fromkeys(
        Path(sys.base_prefix) if path.is_relative_to(sys.base_prefix) else path.parent for path in closed
    )
    return list(tops)


def _through_mounts(command: list[str], closed: list[Path]) -> list[str]:
    """`command`, run as nobody, with the paths below `closed` taken from where `_AS_NOBODY` shows them."""
    paths = _bound(command)
    free = (p for p in _MOUNT_POINTS if Path(p).is_dir() and not any(path.is_relative_to(p) for _, path in paths))
    point = next(free, None)
    if point is None:
        raise SandboxUnavailable(
            f"the user nobody cannot reach {closed[0]}: make it readable or install Python elsewhere"
        )
    shown = list(command)
    for at, path in paths:
        for number, top in enumerate(closed):
            if path.is_relative_to(top):
                shown[at] = str(Path(point, str(number), path.relative_to(top)))
    tops = [str(top) for top in closed]
    return [
        shutil.which("unshare") or "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        _AS_NOBODY,
        "sh",
        point,
        *tops,
        "--",
        *shown,
    ]


def _root(interpreter: Interpreter) -> list[str]:
    """The arguments that build the file system inside."""
    arguments: list[str] = []
    for path in (*interpreter.directories, *interpreter.files):
        arguments += ["--ro-bind", str(path), str(path)]
    for path in interpreter.packages:
        arguments += ["--ro-bind", str(path), f"{_PACKAGES}/{path.name}"]
    for path in interpreter.hidden:
        arguments += ["--tmpfs", str(path), "--remount-ro", str(path)]
    arguments += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--tmpfs", "/dev"]
    for device in _DEVICES:
        arguments += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    for index, name in enumerate(("stdin", "stdout", "stderr")):
        arguments += ["--symlink", f"/proc/self/fd/{index}", f"/dev/{name}"]
    arguments += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/tmp", "/dev/shm", "--remount-ro", "/dev"]
    return [*arguments, "--dir", "/tmp", "--dir", "/agent", "--remount-ro", "/"]
