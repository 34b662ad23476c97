"""The pool: order, early stop, lost sandboxes, and nothing left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest

from sandbox import InputError, Judge, Pool, ProgramResult, SandboxError, SandboxUnavailable, Verdict

ECHO = "print(input())"


def echo_tests(*words: str) -> list[dict[str, str]]:
    return [{"kind": "stdin", "input": word, "output": word} for word in words]


def descendants() -> list[int]:
    return [process.pid for process in psutil.Process().children(recursive=True)]


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def new_agents(before: list[int]) -> list[int]:
    """The agents that were started since: the processes called python, below those that were not there."""
    after = [pid for pid in descendants() if pid not in before]
    return [pid for pid in after if "python" in Path(f"/proc/{pid}/comm").read_text()]


def test_results_come_in_the_order_of_the_tests(bubblewrap: Pool) -> None:
    tests = echo_tests(*map(str, range(50)))
    result = bubblewrap.submit(ECHO, tests, Judge()).result()
    assert [test.stdout.strip() for test in result.tests] == [test["input"] for test in tests]
    assert (result.verdict, result.pass_rate, result.backend) == (Verdict.PASSED, 1.0, "bubblewrap")


def test_early_stop_ends_at_the_first_failure_and_run_all_does_not(bubblewrap: Pool) -> None:
    tests = [*echo_tests("a", "b"), {"kind": "stdin", "input": "c", "output": "x"}, *echo_tests("d", "e")]
    stopped = bubblewrap.submit(ECHO, tests, Judge(), stop_early=True).result()
    assert [str(test.verdict) for test in stopped.tests] == ["passed", "passed", "wrong_answer"]
    whole = bubblewrap.submit(ECHO, tests, Judge()).result()
    assert (len(whole.tests), whole.verdict, whole.pass_rate) == (5, Verdict.WRONG_ANSWER, 0.8)


def test_a_program_after_an_early_stop_gets_its_own_results() -> None:
    with Pool("bubblewrap", workers=1) as pool:
        wrong = pool.submit("print(input() * 2)", echo_tests("a", "b", "c"), Judge(), stop_early=True)
        right = pool.submit(ECHO, echo_tests("d"), Judge(), stop_early=True)
        assert (wrong.result().verdict, right.result().verdict) == (Verdict.WRONG_ANSWER, Verdict.PASSED)


def test_a_users_error_leaves_no_answer_for_the_program_after_it() -> None:
    with Pool("bubblewrap", workers=1) as pool:
        broken = Judge(prelude="raise ValueError", entry_point="f")
        asserts = [{"kind": "assert", "code": "assert candidate(lambda: 1)"}]
        futures = []
        for word in "abcdefgh":
            futures.append((pool.submit(ECHO, echo_tests("x", "y", "z"), broken), None))
            futures.append((pool.submit("def f(x): return 1", asserts, Judge(entry_point="f")), None))
            futures.append((pool.submit(ECHO, echo_tests(word, word), Judge()), word))
        for future, word in futures:
            if word is None:
                with pytest.raises(InputError):
                    future.result()
            else:
                assert [test.stdout for test in future.result().tests] == [f"{word}\n"] * 2


def test_programs_begun_ahead_keep_their_own_results(bubblewrap: Pool) -> None:
    programs = [(f"print({number}, input())", number % 4, number % 3 == 0) for number in range(120)]
    futures = [
        bubblewrap.submit(program, echo_tests(*"abc"[:count]), Judge(), stop_early=stop)
        for program, count, stop in programs
    ]
    for number, (future, (_, count, stop)) in enumerate(zip(futures, programs, strict=True)):
        expected = [f"{number} {letter}\n" for letter in "abc"[:count]]
        assert [test.stdout for test in future.result().tests] == (expected[:1] if stop else expected)


def test_kinds_of_tests_may_be_mixed(bubblewrap: Pool) -> None:
    program = "def f(x): return x\nif __name__ == '__main__':\n    print(input())"
    tests = [
        *echo_tests("a"),
        {"kind": "assert", "code": "assert candidate(3) == 3"},
        {"kind": "call", "args": [1], "kwargs": {}, "expected": 1},
        {"kind": "call", "args": [], "kwargs": {"x": 1}, "expected": 2},
    ]
    result = bubblewrap.submit(program, tests, Judge(entry_point="f")).result()
    assert [str(test.verdict) for test in result.tests] == ["passed", "passed", "passed", "wrong_answer"]


def test_no_code_is_a_verdict_for_every_test(bubblewrap: Pool) -> None:
    result = bubblewrap.submit(None, echo_tests("a", "b"), Judge()).result()
    assert (result.verdict, len(result.tests), result.pass_rate) == (Verdict.NO_CODE, 2, 0.0)


def test_a_program_without_tests_passes(bubblewrap: Pool) -> None:
    result = bubblewrap.submit("print(1)", [], Judge()).result()
    assert (result.verdict, result.tests) == (Verdict.PASSED, ())


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"kind": "stdin", "input": 3, "output": ""}, r"test\.input"),
        ({"kind": "stdin", "input": ""}, r"test\.output"),
        ({"kind": "call", "args": [], "expected": 1}, "entry_point"),
        ({"kind": "wish"}, "use stdin, call or assert"),
    ],
)
def test_a_malformed_test_is_refused_at_once(bubblewrap: Pool, test: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bubblewrap.submit("print(1)", [test], Judge())


def test_programs_may_be_submitted_from_many_threads(bubblewrap: Pool) -> None:
    futures: list[Future[ProgramResult]] = []

    def submit() -> None:
        for number in range(10):
            futures.append(bubblewrap.submit(ECHO, echo_tests(str(number)), Judge()))

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {future.result().verdict for future in futures} == {Verdict.PASSED}
    assert len(futures) == 40


def test_a_killed_agent_is_replaced_and_its_program_judged_again() -> None:
    before = descendants()
    with Pool("bubblewrap", workers=1) as pool:
        assert pool.submit(ECHO, echo_tests("a"), Judge()).result().verdict is Verdict.PASSED
        busy = pool.submit("import time\ntime.sleep(1)\n" + ECHO, echo_tests("b"), Judge())
        for pid in new_agents(before):
            os.kill(pid, signal.SIGKILL)
        assert busy.result().verdict is Verdict.PASSED


def test_a_sandbox_that_keeps_failing_is_an_error_and_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    with Pool("bubblewrap", workers=1) as pool:
        first = pool.submit("import time\ntime.sleep(0.5)", echo_tests("a"), Judge())
        monkeypatch.setattr(pool._backend, "_command", ["/bin/false"])
        for pid in new_agents([]):
            if "bwrap" not in Path(f"/proc/{pid}/comm").read_text():
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match=r"attempt 3 of 3"):
            first.result()


def test_a_closed_pool_leaves_no_process_thread_or_descriptor() -> None:
    def state() -> tuple[int, int, int]:
        return len(descendants()), threading.active_count(), open_descriptors()

    with Pool("bubblewrap", workers=2):
        pass
    before = state()
    with Pool("bubblewrap", workers=2) as pool:
        program = "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint(input())"
        for future in [pool.submit(program, echo_tests("a"), Judge()) for _ in range(4)]:
            assert future.result().verdict is Verdict.PASSED
    assert state() == before


def test_an_exception_in_the_block_cancels_what_waits() -> None:
    with pytest.raises(KeyboardInterrupt), Pool("bubblewrap", workers=1) as pool:
        futures = [pool.submit("import time\ntime.sleep(0.2)", echo_tests("a"), Judge()) for _ in range(20)]
        raise KeyboardInterrupt
    assert sum(future.cancelled() for future in futures) > 10


@pytest.mark.parametrize("backend", ["bubblewrap", "process"])
def test_sandboxes_end_with_the_process_that_started_them(backend: str, tmp_path: Path) -> None:
    script = (
        "import os\nfrom sandbox import Judge, Pool\n"
        f"pool = Pool({backend!r}, workers=2)\n"
        "tests = [{'kind': 'stdin', 'input': '', 'output': '1'}]\n"
        "pool.submit('print(1)', tests, Judge()).result()\n"
        "endless = pool.submit('import os; os.fork()\\nwhile True: pass', tests, Judge(time_limit_s=999))\n"
        "while not endless.running(): pass\n"
        "print('running', flush=True)\ninput()\n"
    )
    before = descendants()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, env=environment) as started:
        assert started.stdout and started.stdout.readline() == b"running\n"
        pids = set(descendants()) - set(before)
        started.kill()
    assert pids
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids) or list(tmp_path.iterdir()):
        assert time.monotonic() < deadline
        os.sched_yield()


def test_a_backend_that_is_not_there_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
        Pool("bubblewrap")
    if not Path("/var/run/docker.sock").exists():
        with pytest.raises(SandboxUnavailable, match="--backend process"):
            Pool("auto")
    with pytest.raises(InputError, match="there is no backend"):
        Pool("podman")


def test_no_room_for_temporary_files_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with Pool("bubblewrap", workers=1) as pool:
        assert pool.submit(ECHO, echo_tests("a"), Judge()).result().verdict is Verdict.PASSED
    with pytest.raises(SandboxUnavailable, match="cannot make a directory"):
        Pool("process")


def test_trusted_programs_run_in_a_plain_process() -> None:
    with Pool("process", workers=1) as pool:
        program = "import os, time\nopen('left', 'w').close()\nif os.fork() == 0:\n    time.sleep(60)\nprint(input())"
        before = descendants()
        assert pool.submit(program, echo_tests("a"), Judge()).result().verdict is Verdict.PASSED
        assert pool.submit("import os\nprint(os.listdir('.'), input())", echo_tests("a"), Judge()).result().tests[
            0
        ].stdout == ("['main.py'] a\n")
        assert len(descendants()) <= len(before) + 1


@pytest.mark.slow
def test_a_busy_machine_trips_no_limit() -> None:
    program = "import time\nwhile time.process_time() < 0.1:\n    pass\nprint(input())"
    with Pool("bubblewrap", workers=8 * len(os.sched_getaffinity(0))) as pool:
        futures = [pool.submit(program, echo_tests("a"), Judge(time_limit_s=0.2)) for _ in range(2000)]
        assert {future.result().verdict for future in futures} == {Verdict.PASSED}


@pytest.mark.slow
def test_memory_stays_flat_over_a_hundred_thousand_tests() -> None:
    def resident() -> int:
        pids = [os.getpid(), *(pid for pid in descendants())]
        pages = [
            int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids if Path(f"/proc/{pid}").exists()
        ]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") >> 20

    with Pool("bubblewrap", workers=2) as pool:
        tests = echo_tests(*["word"] * 100)
        for _ in range(100):
            pool.submit(ECHO, tests, Judge()).result()
        before, open_before = resident(), open_descriptors()
        for _ in range(1000):
            assert pool.submit(ECHO, tests, Judge()).result().pass_rate == 1.0
        assert resident() - before < 16
        assert open_descriptors() == open_before


def test_an_error_does_not_wait_for_the_program_that_is_running() -> None:
    with pytest.raises(KeyboardInterrupt), Pool("bubblewrap", workers=1) as pool:
        endless = pool.submit("while True: pass", [{"kind": "stdin", "input": "", "output": ""}], Judge(time_limit_s=5))
        while not endless.running():
            pass
        raise KeyboardInterrupt
    assert not endless.done()
    assert endless.result().verdict is Verdict.TIME_LIMIT
