"""Hostile programs come to nothing: right verdict, same agent afterwards, not a process or file left, the host untouched."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import PROGRAMS

from sandbox import Judge, Pool, SandboxUnavailable, Verdict

# What a program sees that runs afterwards: itself, its template and the agent, and its own source.
NEIGHBOUR = """
import os
pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
left = [name for place in ("/tmp", "/dev/shm") for name in os.listdir(place) if name != "main.py"]
born = open("/proc/1/stat").read().rsplit(")", 1)[1].split()[19]
print("processes", pids == [1, os.getppid(), os.getpid()], "files", left, "input", input(), "agent", born)
"""


@pytest.fixture(scope="module", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def one_worker(request: pytest.FixtureRequest) -> Iterator[Pool]:
    """A pool with a single sandbox, so that every program runs in the same one. A secret lies in the host's environment."""
    os.environ["COBALT_SECRET"] = "canary-value"
    try:
        pool = Pool(request.param, workers=1)
    except SandboxUnavailable as error:
        if os.environ.get("COBALT_REQUIRE_DOCKER"):
            raise
        pytest.skip(str(error))
    with pool:
        yield pool
    del os.environ["COBALT_SECRET"]


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A readable file, a TCP and a UDP port and two Unix sockets on the host, at which nothing may arrive, and its user's home."""
    file = tmp_path_factory.mktemp("host") / "cobalt-canary"
    file.write_text("host")
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with socket.create_server(("127.0.0.1", 0)) as tcp, udp, socket.socket(socket.AF_UNIX) as abstract:
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        abstract.bind(f"\0cobalt-{port}")
        abstract.listen()
        yield {
            "CANARY_FILE": str(file),
            "CANARY_PORT": str(port),
            "CANARY_SOCKET": f"cobalt-{port}",
            "HOST_HOME": str(Path.home()),
        }
        for server in (tcp, abstract):
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.accept()
        udp.setblocking(False)
        with pytest.raises(BlockingIOError):
            udp.recv(10)
    assert file.read_text() == "host"


def neighbour(pool: Pool) -> str:
    test = {"kind": "stdin", "input": "own\n", "output": ""}
    return pool.submit(NEIGHBOUR, [test], Judge()).result().tests[0].stdout


@pytest.fixture(scope="module")
def before(one_worker: Pool) -> str:
    seen = neighbour(one_worker)
    assert seen.startswith("processes True files [] input own agent ")
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_comes_to_nothing(one_worker: Pool, before: str, canaries: dict[str, str], name: str) -> None:
    verdicts, source = PROGRAMS[name]
    for key, replacement in canaries.items():
        source = source.replace(key, replacement)
    if "def solve" in source:
        test = {"kind": "call", "args": [], "kwargs": {}, "expected": "K9X-expected-value"}
    else:
        expected = "K9X-expected-value" if verdicts == "wrong_answer" else "contained"
        test = {"kind": "stdin", "input": "", "output": expected}
    # Only what runs on for ever meets a short limit: what must end otherwise has time to, on a slow machine too.
    judge = Judge(entry_point="solve", time_limit_s=0.3 if "time_limit" in verdicts else 10, memory_mb=256)
    result = one_worker.submit(source, [test], judge).result()
    assert result.verdict in verdicts.split(), result
    assert neighbour(one_worker) == before


def test_the_suite_is_as_large_as_promised() -> None:
    assert len(PROGRAMS) >= 40
    assert {verdict for verdicts, _ in PROGRAMS.values() for verdict in verdicts.split()} <= {str(v) for v in Verdict}
