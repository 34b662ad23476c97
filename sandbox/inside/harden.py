"""Steps that the agent takes before it accepts anything: it gives up all that a program should not have either.

Everything here is inherited by the programs and cannot be undone by them. Which steps apply is the backend's choice.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import ctypes
import errno
import os
import resource
import struct  # ctypes has it loaded

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = (
    4,
    22,
    24,
    36,
    38,
    47,
)
_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_SIGNALLING = {  # kill, tkill, tgkill, rt_sigqueueinfo, pidfd_open
    "x86_64": (62, 200, 234, 129, 434),
    "aarch64": (129, 130, 131, 138, 434),
}
_LOAD, _JUMP_IF_EQUAL, _RETURN, _FIRST_ARGUMENT = 0x20, 0x15, 0x06, 16
_PID, _GROUP = b"\xa1PID", b"\xa1GRP"  # stand in the shield for what is known only later
_ALLOW, _REFUSE_AS = 0x7FFF0000, 0x00050000
_STACK_BYTES = 120 << 20  # what the kernel keeps free below the stack of a process that was started as usual

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def mount_tmpfs(directory: str, options: str) -> None:
    """A fresh tmpfs with the mount options `options`, such as `size=64m,nr_inodes=4096,mode=0700`."""
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
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


def shield(pid: int) -> None:
    """What this process starts from here on cannot signal the process `pid`, its group, or everything at once: such signals
    vanish without an error, as those to process 1 do. A second filter; nothing on machines not listed."""
    if _SHIELD:
        own, group = pid.to_bytes(4, "little"), (-pid).to_bytes(4, "little", signed=True)
        program = _SHIELD.replace(_PID, own).replace(_GROUP, group)
        _libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(_Filter(len(program) // 8, program)))


def _shield_program(numbers: tuple[int, ...]) -> bytes:
    """Looks at the first argument of the calls that send signals, `numbers`; the last of these opens a pidfd."""
    *sending, opening = numbers
    program = [(_LOAD, 0, 0, 0), (_JUMP_IF_EQUAL, len(sending) + 7, 0, opening)]
    program += [(_JUMP_IF_EQUAL, len(sending) - at, 0, number) for at, number in enumerate(sending)]
    program += [(_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    own, group, everything = int.from_bytes(_PID, "little"), int.from_bytes(_GROUP, "little"), 0xFFFFFFFF
    program += [(_JUMP_IF_EQUAL, 3 - at, 0, value) for at, value in enumerate((own, group, everything))]
    program += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE_AS), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    program += [(_JUMP_IF_EQUAL, 1, 0, own), (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE_AS | errno.EPERM)]
    return b"".join([struct.pack("<HBBI", *instruction) for instruction in program])


_SHIELD = _shield_program(_SIGNALLING[os.uname().machine]) if os.uname().machine in _SIGNALLING else b""


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
    lower_limit(resource.RLIMIT_STACK, _STACK_BYTES)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


def return_free_memory() -> None:
    """Gives back what starting has left unused: every page less makes every fork and every exit cheaper."""
    _libc.malloc_trim(0)


def lower_limit(kind: int, limit: int) -> None:
    """Sets a limit that cannot be raised again; where the machine's own is lower, that one stays."""
    hard = resource.getrlimit(kind)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def _prctl(option: int, *arguments: object) -> None:
    padded = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in (*arguments, *[0] * (4 - len(arguments)))]
    _check(_libc.prctl(option, *padded), f"prctl {option}")


def _check(result: int, step: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{step}: {os.strerror(code)}")
