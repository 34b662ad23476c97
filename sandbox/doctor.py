"""Proves, with programs that try, that the sandbox isolates on this machine. A list of plain records for the command line."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import CobaltError
from sandbox.pool import Pool
from sandbox.verdicts import Judge, TestResult, Verdict

_SECRET = "COBALT_DOCTOR_SECRET"

_ENVIRONMENT = f"""
import glob, os
seen = str(dict(os.environ))
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        seen += open(path, errors="replace").read()
    except OSError:
        pass
print("{_SECRET}" in seen)
"""
_PROCESSES = """
import os
print([p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if p not in (1, os.getppid(), os.getpid())] or "none")
"""
_CAPABILITIES = """
for line in open("/proc/self/status"):
    if line.startswith(("CapEff", "NoNewPrivs", "Seccomp:", "Uid")):
        print(*line.split()[:2])
"""
_PROCESS_LIMIT = """
import os, time
made = 0
try:
    while made < 1000:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except OSError:
    pass
print("stopped" if made < 500 else "not stopped")
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the table: what was tried, whether the sandbox held, what was seen."""

    check: str
    ok: bool
    detail: str


def available() -> list[Check]:
    """Whether each backend can be used on this machine, and what to do where it cannot."""
    checks = []
    for name in ("docker", "bubblewrap", "process"):
        try:
            with Pool(name, workers=1) as pool:
                result = _run(pool, "print(1)", "1")
            checks.append(Check(name, result.verdict is Verdict.PASSED, f"a program ran: {result.verdict}"))
        except CobaltError as error:
            checks.append(Check(name, False, str(error)))
    return checks


def checks(backend: str = "auto") -> list[Check]:
    """Tries to get out of `backend` in each way that it promises to close. Raises SandboxUnavailable if it does not start."""
    os.environ[_SECRET] = "1"
    try:
        with Pool(backend, workers=1) as pool, tempfile.TemporaryDirectory() as directory:
            return [Check("backend", True, pool.backend), *(probe(pool, Path(directory)) for probe in _PROBES)]
    finally:
        del os.environ[_SECRET]


def _network(pool: Pool, _: Path) -> Check:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 1)\n    print('open')\n"
        result = _run(pool, program + "except OSError as error:\n    print('closed')\n", "closed")
    return _held("network", result, "a service on the host's loopback")


def _files(pool: Pool, directory: Path) -> Check:
    directory.chmod(0o755)
    file = directory / "readable"
    file.write_text("host")
    program = f"try:\n    print(open({str(file)!r}).read())\nexcept OSError:\n    print('hidden')\n"
    return _held("files", _run(pool, program, "hidden"), "a world-readable file of the host")


def _environment(pool: Pool, _: Path) -> Check:
    return _held("environment", _run(pool, _ENVIRONMENT, "False"), "a variable of the host's environment")


def _processes(pool: Pool, _: Path) -> Check:
    return _held("processes", _run(pool, _PROCESSES, "none"), "processes other than the sandbox's own")


def _privileges(pool: Pool, _: Path) -> Check:
    result = _run(pool, _CAPABILITIES, "")
    facts = dict(line.split() for line in result.stdout.splitlines() if len(line.split()) == 2)
    ok = facts.get("CapEff:", "1").strip("0") == "" and facts.get("NoNewPrivs:") == "1" and facts.get("Uid:") != "0"
    return Check("privileges", ok, ", ".join(f"{name} {value}" for name, value in facts.items()))


def _system_calls(pool: Pool, _: Path) -> Check:
    result = _run(pool, _CAPABILITIES, "")
    program = "import ctypes\nprint(ctypes.CDLL(None).unshare(0x10000000))\n"
    refused = _run(pool, program, "-1").verdict is Verdict.PASSED
    return Check(
        "system calls", refused and "Seccomp: 2" in result.stdout, "a filter is in force, new namespaces are refused"
    )


def _memory(pool: Pool, _: Path) -> Check:
    result = _run(pool, "x = []\nwhile True:\n    x.append(bytearray(1 << 22))\n", "")
    return _held("memory limit", result, f"peak {result.memory_mb or 0:.0f} MiB of 64", Verdict.MEMORY_LIMIT)


def _time(pool: Pool, _: Path) -> Check:
    result = _run(pool, "while True:\n    pass\n", "")
    return _held("time limit", result, f"stopped after {result.seconds:.2f} CPU seconds of 1", Verdict.TIME_LIMIT)


def _output(pool: Pool, _: Path) -> Check:
    result = _run(pool, "while True:\n    print('x' * 100000)\n", "")
    return _held("output limit", result, "an endless stdout", Verdict.OUTPUT_LIMIT)


def _process_limit(pool: Pool, _: Path) -> Check:
    return _held("process limit", _run(pool, _PROCESS_LIMIT, "stopped"), "a thousand forks")


def _nothing_left(pool: Pool, _: Path) -> Check:
    _run(pool, "import os, time\nopen('left', 'w').write('x')\nif os.fork() == 0:\n    time.sleep(99)\n", "")
    program = _PROCESSES + "print([name for name in os.listdir('.') if name != 'main.py'] or 'none')\n"
    return _held("nothing left", _run(pool, program, "none none"), "a process and a file of the test before")


_PROBES: tuple[Callable[[Pool, Path], Check], ...] = (
    _network,
    _files,
    _environment,
    _processes,
    _privileges,
    _system_calls,
    _memory,
    _time,
    _output,
    _process_limit,
    _nothing_left,
)


def _run(pool: Pool, program: str, expected: str) -> TestResult:
    test = {"kind": "stdin", "input": "", "output": expected}
    return pool.submit(program, [test], Judge(time_limit_s=1.0, memory_mb=64)).result().tests[0]


def _held(check: str, result: TestResult, what: str, verdict: Verdict = Verdict.PASSED) -> Check:
    ok = result.verdict is verdict
    seen = result.stdout.strip() or result.stderr.strip().rpartition("\n")[2]
    return Check(check, ok, what if ok else f"{what}: {result.verdict} {seen[:200]}".rstrip())


__all__ = ["Check", "available", "checks"]
