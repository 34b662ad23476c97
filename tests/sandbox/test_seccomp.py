"""The system call filter is a well-formed program that allows what it names, on both machines that it is written for."""

import errno
import struct

import pytest

from sandbox import SandboxUnavailable
from sandbox.seccomp import bpf, docker_profile
from sandbox.syscalls import allowed

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def decide(program: bytes, architecture: int, number: int, argument: int = 0) -> int:
    """What the kernel would do: runs the filter on one system call."""
    data = struct.pack("<IIQQ", number, architecture, 0, argument)
    instructions = list(struct.iter_unpack("<HBBI", program))
    at, value = 0, 0
    while True:
        operation, if_true, if_false, operand = instructions[at]
        at += 1
        if operation == 0x06:
            return int(operand)
        if operation == 0x20:
            (value,) = struct.unpack_from("<I", data, operand)
            continue
        holds = {0x15: value == operand, 0x25: value > operand, 0x35: value >= operand, 0x45: bool(value & operand)}[
            operation
        ]
        at += if_true if holds else if_false


@pytest.mark.parametrize("machine", MACHINES)
def test_exactly_the_named_calls_are_allowed(machine: str) -> None:
    program, numbers = bpf(machine), allowed(machine)
    special = {numbers[name] for name in ("clone", "socket", "prlimit64")}
    for number in range(600):
        if number not in special:
            wanted = ALLOW if number in numbers.values() else ERRNO | errno.ENOSYS
            assert decide(program, MACHINES[machine], number) == wanted, number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "argument", "refused"),
    [("clone", 17, False), ("clone", 0x10000011, True), ("clone", 0x00020000, True)]
    + [("socket", family, family not in (1, 2, 10)) for family in (1, 2, 10, 16, 17, 38, 40)]
    + [("prlimit64", 0, False), ("prlimit64", 1, True)],
)
def test_some_arguments_are_refused(machine: str, name: str, argument: int, refused: bool) -> None:
    decision = decide(bpf(machine), MACHINES[machine], allowed(machine)[name], argument)
    assert decision == (ERRNO | errno.EPERM if refused else ALLOW)


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_is_killed_and_x32_does_not_exist(machine: str) -> None:
    assert decide(bpf(machine), 0x40000003, 1) == KILL
    assert decide(bpf(machine), MACHINES[machine], 0x40000000 + 1) == ERRNO | errno.ENOSYS


def test_an_unknown_machine_is_unavailable() -> None:
    with pytest.raises(SandboxUnavailable, match="riscv64"):
        bpf("riscv64")


def test_dockers_profile_names_the_same_calls() -> None:
    named = {name for rule in docker_profile()["syscalls"] for name in rule["names"]}
    assert named >= set(allowed("x86_64")) | set(allowed("aarch64"))
    assert not named & {"mount", "ptrace", "unshare", "setns", "bpf", "memfd_create", "io_uring_setup", "keyctl"}
