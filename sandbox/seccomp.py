"""The system call filter, in the kernel's form and in Docker's.

Calls in `sandbox.syscalls` are allowed, all others "do not exist" (ENOSYS, so that libraries fall back). Three are allowed
with some arguments only, and otherwise refused (EPERM): `clone` without new namespaces, `socket` for the families Unix, IPv4
and IPv6 (a network namespace confines these; others, such as vsock, would reach past it), `prlimit64` on the caller itself.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import Any

from sandbox.errors import SandboxUnavailable
from sandbox.syscalls import allowed

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_NAMESPACE_FLAGS = 0x7E020000
_FAMILIES = (1, 2, 10)  # Unix, IPv4, IPv6

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_FROM, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # in struct seccomp_data, little endian
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

_Instruction = tuple[int, int, int, int]  # operation, jump if true, jump if false, operand


def bpf(machine: str | None = None) -> bytes:
    """The filter as a BPF program for this machine, or the one named. Raises SandboxUnavailable where none is written."""
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise SandboxUnavailable(
            f"no system call filter is written for {machine}; use the docker backend on this machine"
        )
    numbers = allowed(machine)
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        _returns(_KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_FROM, 0, 1, _X32_BIT),
        _returns(_ERRNO | errno.ENOSYS),
    ]
    program += _when(numbers.pop("clone"), [(_JUMP_ANY_BIT, 0, 1, _NAMESPACE_FLAGS), _refusal(), _returns(_ALLOW)])
    families = [(_JUMP_EQUAL, len(_FAMILIES) - index, 0, family) for index, family in enumerate(_FAMILIES)]
    program += _when(numbers.pop("socket"), [*families, _refusal(), _returns(_ALLOW)])
    program += _when(numbers.pop("prlimit64"), [(_JUMP_EQUAL, 1, 0, 0), _refusal(), _returns(_ALLOW)])
    for first, last in _ranges(sorted(numbers.values())):
        program += [
            (_JUMP_ABOVE, 3, 0, last),
            (_JUMP_FROM, 0, 1, first),
            _returns(_ALLOW),
            _returns(_ERRNO | errno.ENOSYS),
        ]
    program.append(_returns(_ERRNO | errno.ENOSYS))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def docker_profile() -> dict[str, Any]:
    """The same filter as a Docker seccomp profile; Docker looks up the numbers itself."""
    special = ("clone", "socket", "prlimit64")
    names = sorted({name for machine in _ARCHITECTURES for name in allowed(machine)} - set(special))
    started_by_docker = [
        "capset",
        "execveat",
        "fstatfs64",
        "futex_time64",
        "setgroups",
    ]  # its runtime, before the agent
    families = [_argument_is("socket", "SCMP_CMP_EQ", family) for family in _FAMILIES]
    without_namespaces = {"index": 0, "value": _NAMESPACE_FLAGS, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": [
            {"names": names + started_by_docker, "action": "SCMP_ACT_ALLOW"},
            {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [without_namespaces]},
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},  # older Docker has no default
            *families,
            _argument_is("prlimit64", "SCMP_CMP_EQ", 0),
        ],
    }


def _argument_is(name: str, operation: str, value: int) -> dict[str, Any]:
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": value, "op": operation}]}


def _when(number: int, decision: list[_Instruction]) -> list[_Instruction]:
    """Instructions that decide on the first argument if the call has this number, and fall through otherwise."""
    return [(_JUMP_EQUAL, 0, len(decision) + 1, number), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), *decision]


def _returns(action: int) -> _Instruction:
    return (_RETURN, 0, 0, action)


def _refusal() -> _Instruction:
    return _returns(_ERRNO | errno.EPERM)


def _ranges(numbers: list[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges
