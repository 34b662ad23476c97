"""How fast the sandbox is, against peers measured in the same run: an isolated process per test, and a fork server without any
isolation. `python -m benchmarks.sandbox [--quick]` ends with one line per claim and exits 1 if one is short.

The programs are small and read stdin, 20 tests each. All rates are with as many workers as cores, every worker busy; the
rounds of the contestants take turns, so that a change in the machine's load hits all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from benchmarks.claims import CORES, Claim, print_machine, report
from sandbox import Judge, Pool, SandboxUnavailable, Verdict
from sandbox.inside import bootstrap
from sandbox.interpreter import running

TESTS_PER_PROGRAM = 20
PROGRAM = """\
import sys
n = int(sys.stdin.readline())
numbers = list(map(int, sys.stdin.readline().split()))
best = 0
for i in range(n):
    best = max(best, numbers[i] + i)
print(best)
print(sum(numbers))
"""
NUMBERS = list(range(40))
INPUT = f"{len(NUMBERS)}\n{' '.join(map(str, NUMBERS))}\n"
OUTPUT = f"{max(x + i for i, x in enumerate(NUMBERS))}\n{sum(NUMBERS)}\n"
TEST = {"kind": "stdin", "input": INPUT, "output": OUTPUT}

# A fork server as one would write it: compiles a program once, forks per test, pipes in and out, nothing else. Prints tests per
# second.
BARE_SERVER = """
import os, sys, time
program, given, wanted, seconds = sys.argv[1], sys.argv[2].encode(), sys.argv[3].encode(), float(sys.argv[4])
tests_per_program = int(sys.argv[5])
done, began = 0, time.perf_counter()
while time.perf_counter() - began < seconds:
    if done % tests_per_program == 0:
        code = compile(program, "main.py", "exec")
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(in_read, 0)
        os.dup2(out_write, 1)
        os.closerange(3, 16)
        exec(code, {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)
    os.close(in_read)
    os.close(out_write)
    os.write(in_write, given)
    os.close(in_write)
    output = b""
    while part := os.read(out_read, 65536):
        output += part
    os.close(out_read)
    assert os.waitpid(pid, 0)[1] == 0 and output == wanted
    done += 1
print(done / (time.perf_counter() - began))
"""


def bare_rate(seconds: float) -> float:
    """Tests per second of one bare fork server per core. Each is a session of its own, as sandboxes are: a busy machine gives each
    session its share.
    """
    arguments = [PROGRAM, INPUT, OUTPUT, str(seconds), str(TESTS_PER_PROGRAM)]
    command = [str(running().executable), *bootstrap.FLAGS, "-c", BARE_SERVER, *arguments]
    servers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) for _ in range(CORES)
    ]
    return sum(float(server.communicate()[0]) for server in servers)


def process_per_test_rate(seconds: float) -> float:
    """Tests per second with a new sandbox and a new interpreter for every test, on all cores."""
    command = [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    for path in dict.fromkeys(("/usr", "/lib", "/lib64", sys.base_prefix)):
        command += ["--ro-bind-try", path, path]
    command += ["--tmpfs", "/tmp", str(running().executable), "-I", "-S", "-c", PROGRAM]

    def one_core(_: int) -> int:
        done, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until:
            output = subprocess.run(command, input=INPUT, capture_output=True, text=True, env={}, check=True).stdout
            assert output == OUTPUT
            done += 1
        return done

    began = time.perf_counter()
    with ThreadPoolExecutor(CORES) as threads:
        return sum(threads.map(one_core, range(CORES))) / (time.perf_counter() - began)


def pool_rate(pool: Pool, seconds: float) -> float:
    """Tests per second of a pool that is kept full."""
    waiting, done, began = [], 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        while len(waiting) < 4 * CORES:
            waiting.append(pool.submit(PROGRAM, [TEST] * TESTS_PER_PROGRAM, Judge()))
        assert waiting.pop(0).result().verdict is Verdict.PASSED
        done += TESTS_PER_PROGRAM
    for future in waiting:
        assert future.result().verdict is Verdict.PASSED
        done += TESTS_PER_PROGRAM
    return done / (time.perf_counter() - began)


def rates(contestants: dict[str, Callable[[float], float]], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Rates of all contestants, round by round in turn, after a round in which pools start their sandboxes."""
    results: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, run in contestants.items():
            results[name].append(run(seconds))
    return {name: values[1:] for name, values in results.items()}


def ratio(results: dict[str, list[float]], name: str, peer: str) -> float:
    """The median over the rounds: within a round both had the same machine."""
    return statistics.median(a / b for a, b in zip(results[name], results[peer], strict=True))


def first_verdict_s(backend: str) -> float:
    """Seconds from a new interpreter's first line to the first verdict of its first pool."""
    script = (
        "import time; began = time.perf_counter()\n"
        "from sandbox import Judge, Pool\n"
        f"with Pool({backend!r}) as pool:\n"
        "    pool.submit('print(1)', [{'kind': 'stdin', 'input': '', 'output': '1'}], Judge()).result()\n"
        "    print(time.perf_counter() - began)\n"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return float(output)


def latencies_ms(pool: Pool, count: int) -> list[float]:
    """Milliseconds from submission to verdict of single tests, one at a time."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        pool.submit(PROGRAM, [TEST], Judge()).result()
        times.append((time.perf_counter() - began) * 1000)
    return sorted(times)


def sandbox_mib(pool_process: int) -> float:
    """Proportional memory of all processes below this one, in MiB."""
    total = 0
    for process in psutil.Process(pool_process).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().pss
    return total / (1 << 20)


def soak(pool: Pool, tests: int) -> tuple[float, float]:
    """Growth in MiB of this process and of the sandboxes while `tests` tests run, after a warm-up of a tenth.

    No result is kept: what is to be flat is the pool.
    """

    def run(count: int) -> None:
        for _ in range(max(1, count // 100)):
            pool.submit(PROGRAM, [TEST] * 100, Judge()).result()

    run(tests // 10)
    before = own_mib(), sandbox_mib(os.getpid())
    run(tests)
    return own_mib() - before[0], sandbox_mib(os.getpid()) - before[1]


def own_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def time_outs(programs: int) -> int:
    """Time-outs among right programs that use half of their CPU limit, eight times as many sandboxes as cores at work."""
    limit_s = 0.2
    source = "import time\nwhile time.process_time() < 0.1:\n    pass\nprint('done')\n"
    with Pool("bubblewrap", workers=8 * CORES) as pool:
        test = {"kind": "stdin", "input": "", "output": "done"}
        futures = [pool.submit(source, [test], Judge(time_limit_s=limit_s)) for _ in range(programs)]
        return sum(future.result().verdict is not Verdict.PASSED for future in futures)


def measure(quick: bool) -> list[Claim]:
    rounds, seconds = (5, 1.0) if quick else (9, 3.0)
    claims = [
        Claim("first verdict of a fresh pool", min(first_verdict_s("bubblewrap") for _ in range(5)), 0.5, True, " s")
    ]
    with Pool("bubblewrap", workers=CORES) as pool:
        contestants: dict[str, Callable[[float], float]] = {
            "process per test": process_per_test_rate,
            "bare fork server": bare_rate,
            "bubblewrap": lambda s: pool_rate(pool, s),
        }
        docker = docker_pool()
        if docker:
            contestants["docker"] = lambda s: pool_rate(docker, s)
        results = rates(contestants, rounds, seconds)
        for name, values in results.items():
            print(f"{name:18s} {statistics.median(values):8.0f} tests/s   {'  '.join(f'{v:.0f}' for v in values)}")
        claims.append(
            Claim(
                "bubblewrap against a process per test", ratio(results, "bubblewrap", "process per test"), 7, unit=" x"
            )
        )
        claims.append(
            Claim(
                "bubblewrap against a bare fork server",
                ratio(results, "bubblewrap", "bare fork server"),
                0.75,
                unit=" x",
            )
        )
        if docker:
            claims.append(
                Claim("docker against a bare fork server", ratio(results, "docker", "bare fork server"), 0.6, unit=" x")
            )
            docker.close()
        times = latencies_ms(pool, 200 if quick else 2000)
        print(f"one test at a time: median {times[len(times) // 2]:.2f} ms, p99 {times[len(times) * 99 // 100]:.2f} ms")
        claims.append(Claim("memory of a worker", sandbox_mib(os.getpid()) / CORES, 64, True, " MiB"))
        ours, theirs = soak(pool, 4_000 if quick else 100_000)
        claims.append(Claim("growth of this process in the soak", ours, 4, True, " MiB"))
        claims.append(Claim("growth of the sandboxes in the soak", theirs, 4, True, " MiB"))
    claims.append(
        Claim("time-outs at half the limit, 8 times oversubscribed", time_outs(100 if quick else 2000), 0, True)
    )
    claims.append(Claim("processes left", len(psutil.Process().children(recursive=True)), 0, True))
    return claims


def docker_pool() -> Pool | None:
    try:
        return Pool("docker", workers=CORES)
    except SandboxUnavailable as error:
        print(f"docker is not measured: {error}")
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    quick = parser.parse_args().quick
    print_machine()
    return report(measure(quick))


if __name__ == "__main__":
    sys.exit(main())
