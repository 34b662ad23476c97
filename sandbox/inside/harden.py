"""The first stage inside a sandbox: gives up all that a program should not have, then becomes the agent.

Everything here is inherited by the agent and the programs and cannot be undone by them. It is a stage of its own, which ends by
starting the interpreter anew in the same process, because `ctypes`, once loaded, makes every later fork a tenth dearer. The
agent must not be traced or read by programs of the same user: the kernel sees to that for a program file that its user may not
read, so the interpreter is copied to such a file where the backend has not made it one.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import ctypes
import os
import resource
import sys

from sandbox.inside.rlimit import lower_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 4, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def main(config: dict[str, Any]) -> NoReturn:
    """Takes the steps that the backend's `config` asks for, and starts the interpreter anew with the same command."""
    program = sys.executable
    for directory, options in config["mounts"]:
        mount_tmpfs(directory, options)
    if config["copy_to"]:
        program = _unreadable_copy(config["copy_to"])
    os.chdir(config["scratch"][0])
    limit_resources()
    if os.getpid() == 1:
        drop_privileges()
    else:
        adopt_orphans()
    if config["seccomp"]:
        filter_system_calls(config["seccomp"])
    os.environ["LD_LIBRARY_PATH"] = f"{sys.base_prefix}/lib"  # some interpreters look for it beside themselves
    os.execv(program, [sys.executable, *sys.orig_argv[1:]])


def _unreadable_copy(directory: str) -> str:
    """A copy of the interpreter that may be run but not read, on a file system that cannot be written to any more."""
    mount_tmpfs(directory, "size=64m,nr_inodes=16,mode=0700", executable=True)
    copy = f"{directory}/python"
    with open(sys.executable, "rb") as source, open(copy, "wb") as target:
        while part := source.read(1 << 20):
            target.write(part)
    os.chmod(copy, 0o111)
    os.chmod(directory, 0o111)
    flags = ctypes.c_ulong(_MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    _check(_libc.mount(None, directory.encode(), None, flags, None), f"remount {directory}")
    return copy


def mount_tmpfs(directory: str, options: str, executable: bool = False) -> None:
    """A fresh tmpfs with the mount options `options`, such as `size=64m,nr_inodes=4096,mode=0700`."""
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | (0 if executable else _MS_NOEXEC))
    _check(_libc.mount(b"tmpfs", directory.encode(), b"tmpfs", flags, options.encode()), f"mount {directory}")


def adopt_orphans() -> None:
    """What loses its parent becomes a child of this process (as it does for process 1 of a pid namespace)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def close_to_others() -> None:
    """No process of the same user may trace this one or read its memory, environment or descriptors."""
    _prctl(_PR_SET_DUMPABLE, 0)


def drop_privileges() -> None:
    """No capability is left, and no program file can give one."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused where it is not held
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def filter_system_calls(program: bytes) -> None:
    """Installs a seccomp filter (see `sandbox.seccomp`) for this process and all that it starts."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, 2, ctypes.byref(_Filter(len(program) // 8, program)))


def limit_resources() -> None:
    """The kernel limits that are the same for every test."""
    fixed = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_MEMLOCK: 64 << 10,
    }
    for kind, limit in fixed.items():
        lower_limit(kind, limit)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


def _prctl(option: int, *arguments: object) -> None:
    padded = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in (*arguments, *[0] * (4 - len(arguments)))]
    _check(_libc.prctl(option, *padded), f"prctl {option}")


def _check(result: int, step: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{step}: {os.strerror(code)}")
