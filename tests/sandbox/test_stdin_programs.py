"""A program meets what it would meet as a script of its own, and its result says what became of it."""

from typing import Any

import pytest

from sandbox import InputError, Judge, Limits, Pool, TestResult, Verdict


def run(pool: Pool, program: str, given: str = "", expected: str = "", **judge: Any) -> TestResult:
    test = {"kind": "stdin", "input": given, "output": expected}
    return pool.submit(program, [test], Judge(**judge)).result().tests[0]


def call(pool: Pool, program: str, args: list[Any], expected: Any, entry_point: str = "f", **judge: Any) -> TestResult:
    test = {"kind": "call", "args": args, "kwargs": {}, "expected": expected}
    return pool.submit(program, [test], Judge(entry_point=entry_point, **judge)).result().tests[0]


def check(pool: Pool, program: str, code: str, entry_point: str = "f", **judge: Any) -> TestResult:
    return (
        pool.submit(program, [{"kind": "assert", "code": code}], Judge(entry_point=entry_point, **judge))
        .result()
        .tests[0]
    )


STDIN_PROGRAMS = {
    "runs as main": ("print(__name__, __file__.endswith('main.py'))", "", "__main__ True"),
    "reads its own file": ("print(open(__file__).read()[:5])", "", "print"),
    "reads /dev/stdin": ("print(open('/dev/stdin').read())", "abc", "abc"),
    "reads descriptor 0": ("import os\nprint(os.read(0, 10).decode())", "abc", "abc"),
    "writes descriptor 1": ("import os\nos.write(1, b'x')", "", "x"),
    "flushes what is left open": ("out = open(1, 'w', closefd=False)\nout.write('late')", "", "late"),
    "runs exit handlers": ("import atexit\natexit.register(print, 'bye')\nprint('hi')", "", "hi bye"),
    "joins threads": ("import threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), print('t'))).start()", "", "t"),
    "starts fifty threads": ("import threading as t\nb = t.Barrier(51)\nfor _ in range(50): t.Thread(target=b.wait).start()\nb.wait()\nprint(1)", "", "1"),
    "recurses in C": ("import sys, functools\nsys.setrecursionlimit(10**6)\n@functools.lru_cache(None)\ndef f(n): return n and f(n - 1) + 1\nprint(f(50000))", "", "50000"),
    "drops daemon threads": ("import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()", "", ""),
    "deletes its objects at the end": ("class A:\n    def __del__(self): print('gone')\na = A()", "", "gone"),
    "exits with quit": ("print(1)\nquit()\nprint(2)", "", "1"),
    "exits with sys.exit(None)": ("import sys\nprint(1)\nsys.exit()", "", "1"),
    "sees hashes that repeat": ("print(hash('a') == hash('a'), {'b', 'a'} and __import__('sys').flags.hash_randomization)", "", "True 0"),
    "prints large integers": ("print(len(str(10 ** 20000)))", "", "20001"),
    "uses subprocesses": ("import sys, subprocess as s\nprint(s.run([sys.executable, '-c', 'print(5)'], capture_output=True, text=True).stdout)", "", "5"),
    "uses multiprocessing": ("import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    with m.Pool(2) as p: print(p.map(f, [1, 2, 3]))", "", "[1, 4, 9]"),
    "uses asyncio": ("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    print('ok')\nasyncio.run(f())", "", "ok"),
    "uses dataclasses": ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(3).x)", "", "3"),
    "uses temporary files": ("import tempfile\nf = tempfile.TemporaryFile('w+')\nf.write('a'); f.seek(0)\nprint(f.read())", "", "a"),
    "begins with a byte order mark": ("\ufeffprint(1)\r\nprint('é')\r\n", "", "1 é"),
    "reads text, then bytes": ("import sys\nprint(input(), sys.stdin.read(), sys.stdin.buffer.read())", "1\n2", "1 2 b''"),
    "imports itself": ("import main\nprint(1)", "", "1 1"),
    "looks at its own source": ("import inspect\ndef f(): return 1\nprint(inspect.getsource(f))", "", "def f(): return 1"),
    "exits with a status that C takes for 0": ("import sys\nprint(1)\nsys.exit(256)", "", "1"),
    "draws other numbers in every test": ("import random\nprint(len({random.random() for _ in range(9)}))", "", "9"),
}  # fmt: skip


@pytest.mark.parametrize("name", STDIN_PROGRAMS)
def test_a_program(bubblewrap: Pool, name: str) -> None:
    program, given, expected = STDIN_PROGRAMS[name]
    result = run(bubblewrap, program, given, expected)
    assert result.verdict is Verdict.PASSED, result


FAILING_PROGRAMS = {
    "exit status": "import sys\nprint(1)\nsys.exit(3)",
    "exit status True": "import sys\nprint(1)\nsys.exit(True)",
    "exit status in words": "import sys\nprint(1)\nsys.exit('done')",
    "exit status beyond C's integers": "import sys\nprint(1)\nsys.exit(2**100)",
    "crash after the output": "print(1, flush=True)\n1 / 0",
    "abort after the output": "import os\nprint(1, flush=True)\nos.abort()",
    "interrupted": "print(1)\nraise KeyboardInterrupt",
    "a hook that hides the crash": "import sys\nsys.excepthook = lambda *a: print(1)\n1 / 0",
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING_PROGRAMS)
def test_right_output_does_not_make_up_for_a_bad_end(bubblewrap: Pool, name: str) -> None:
    assert run(bubblewrap, FAILING_PROGRAMS[name], "", "1").verdict is Verdict.RUNTIME_ERROR


def test_random_numbers_differ_between_tests(bubblewrap: Pool) -> None:
    tests = [{"kind": "stdin", "input": "", "output": ""}] * 5
    result = bubblewrap.submit("import random\nprint(random.random())", tests, Judge()).result()
    assert len({test.stdout for test in result.tests}) == 5


def test_nothing_passes_from_one_test_to_the_next(bubblewrap: Pool) -> None:
    program = (
        "import builtins, os\nn = input()\nprint(hasattr(builtins, 'seen'), os.listdir('.'), os.environ.get('SEEN'))\n"
        "builtins.seen = 1\nos.environ['SEEN'] = '1'\nopen('seen', 'w').write(n)\n"
    )
    tests = [{"kind": "stdin", "input": str(n), "output": "False ['main.py'] None"} for n in range(3)]
    assert bubblewrap.submit(program, tests, Judge()).result().verdict is Verdict.PASSED


def test_a_crash_shows_the_traceback_of_the_program_alone(bubblewrap: Pool) -> None:
    result = run(bubblewrap, "def f(x):\n    return 1 // x\nprint(f(0))")
    assert result.verdict is Verdict.RUNTIME_ERROR
    lines = result.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == '  File "main.py", line 3, in <module>'
    assert "return 1 // x" in result.stderr
    assert lines[-1] == "ZeroDivisionError: integer division or modulo by zero"


def test_a_syntax_error_is_told_for_every_test(bubblewrap: Pool) -> None:
    tests = [{"kind": "stdin", "input": "", "output": ""}] * 3
    result = bubblewrap.submit("def f(:\n    pass", tests, Judge()).result()
    assert (result.verdict, len(result.tests), result.pass_rate) == (Verdict.SYNTAX_ERROR, 3, 0.0)
    assert 'File "main.py", line 1' in result.tests[2].stderr


@pytest.mark.parametrize("program", ["x = '\0'", "x = '\ud800'", "x = (" * 300 + ")" * 300])
def test_what_cannot_be_compiled_is_a_syntax_error(bubblewrap: Pool, program: str) -> None:
    assert run(bubblewrap, program).verdict is Verdict.SYNTAX_ERROR


def test_stored_streams_are_cut_but_compared_whole(bubblewrap: Pool) -> None:
    output = "".join(f"{n}\n" for n in range(100_000))
    result = run(bubblewrap, "import sys\nsys.stdout.write(sys.stdin.read())", output, output)
    assert result.verdict is Verdict.PASSED
    assert len(result.stdout) < 5000
    assert result.stdout.startswith("0\n")
    assert result.stdout.endswith("99999\n")


def test_memory_and_time_are_reported(bubblewrap: Pool) -> None:
    result = run(bubblewrap, "import time\nx = b'ab' * 25_000_000\nwhile time.process_time() < .2: pass")
    assert result.memory_mb is not None
    assert 50 < result.memory_mb < 150
    assert 0.2 <= result.seconds < 1


CALLS: dict[str, tuple[str, list[Any], Any, str]] = {
    "function": ("def f(a, b): return a + b", [1, 2], 3, "f"),
    "method of Solution": ("class Solution:\n    def f(self, a): return a * 2", [2], 4, "f"),
    "named class": ("class Box:\n    def get(self): return [1]", [], [1], "Box().get"),
    "function where a method was named": ("def get(): return 1", [], 1, "Solution().get"),
    "name of a built-in module function": ("class Solution:\n    def count(self, a): return len(a)", [[1]], 1, "count"),
    "main guard is left alone": ("def f(): return 1\nif __name__ == '__main__':\n    print(input())", [], 1, "f"),
    "LeetCode names": ("def f(a: List[int]) -> Optional[int]:\n    return deque(sorted(a))[0] + gcd(4, 6) + pow(2, 5, 3)", [[1]], 5, "f"),
    "name inside an annotation of a nested function": ("def f():\n    def g(x: Dict[str, int]): return inf\n    return g(0) == math.inf", [], True, "f"),
    "generator": ("def f():\n    yield 1\n    yield 2", [], [1, 2], "f"),
    "tuple and set": ("def f(): return (1, {2})", [], {"$tuple": [1, {"$set": [2]}]}, "f"),
    "tagged argument": ("def f(s): return sorted(s)", [{"$set": [2, 1]}], [1, 2], "f"),
    "dict with integer keys": ("def f(): return {1: 'a'}", [], {"$dict": [[1, "a"]]}, "f"),
    "output is no answer": ("def f():\n    print(1)\n    return 2", [], 2, "f"),
    "named tuple": ("from collections import namedtuple\ndef f(): return namedtuple('P', 'x y')(1, {2: -0.0})", [], [1, {"$dict": [[2, 0]]}], "f"),
    "numbers beyond JSON": ("def f(): return [10 ** 6000, -inf, 2.0]", [], [{"$int": hex(10**6000)}, {"$float": "-inf"}, 2], "f"),
    "argument sorted in place": ("def f(a):\n    a.sort()\n    return a", [[2, 1]], [1, 2], "f"),
    "partial": ("from functools import partial\nf = partial(pow, 2)", [3], 8, "f"),
    "static method": ("class Solution:\n    @staticmethod\n    def f(x): return x", [1], 1, "f"),
    "state from the constructor": ("class Solution:\n    def __init__(self): self.n = 1\n    def f(self, x, *y, z=3): return self.n + x + z", [1], 5, "f"),
    "closes stdout": ("import sys\nsys.stdout.close()\ndef f(): return 1", [], 1, "f"),
    "recursive": ("import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)", [20000], 20000, "f"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call(bubblewrap: Pool, name: str) -> None:
    program, args, expected, entry_point = CALLS[name]
    result = call(bubblewrap, program, args, expected, entry_point)
    assert result.verdict is Verdict.PASSED, result


WRONG_CALLS = {
    "no such function": ("x = 1", Verdict.RUNTIME_ERROR),
    "an object that equals everything": ("class A:\n    def __eq__(s, o): return True\ndef f(): return A()", Verdict.WRONG_ANSWER),
    "a subclass that lies": ("class A(int):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(): return A(3)", Verdict.WRONG_ANSWER),
    "coroutine": ("async def f(): return 1", Verdict.WRONG_ANSWER),
    "dataclass": ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f(): return P(1)", Verdict.WRONG_ANSWER),
    "constructor that wants arguments": ("class Solution:\n    def __init__(self, x): pass\n    def f(self): return 1", Verdict.RUNTIME_ERROR),
    "mutates instead of returning": ("x = [0]\ndef f(): x[0] = 1", Verdict.WRONG_ANSWER),
    "patched json": ("import json\njson.dumps = lambda *a, **k: '1'\ndef f(): return 2", Verdict.WRONG_ANSWER),
    "exit while loading": ("import sys\nsys.exit(0)\ndef f(): return 1", Verdict.RUNTIME_ERROR),
    "exit in a fork": ("import os\ndef f():\n    if os.fork(): os._exit(0)\n    return 1", Verdict.RUNTIME_ERROR),
    "prints instead of returning": ("def f(): print(1)", Verdict.WRONG_ANSWER),
    "bool for int": ("def f(): return True", Verdict.WRONG_ANSWER),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call(bubblewrap: Pool, name: str) -> None:
    program, verdict = WRONG_CALLS[name]
    assert call(bubblewrap, program, [], 1).verdict is verdict


CHECKS = {
    "passes": ("def f(x): return x + 1", "assert candidate(1) == 2 and f(x=2) == 3", Verdict.PASSED),
    "check function": ("def f(x): return [x]", "def check(candidate):\n    assert candidate(1) == [1]", Verdict.PASSED),
    "wrong": ("def f(x): return x", "assert candidate(1) == 2", Verdict.WRONG_ANSWER),
    "crash": ("def f(x): return 1 / x", "assert candidate(0) == 2", Verdict.RUNTIME_ERROR),
    "assertion of the program itself": ("def f(x): assert x", "assert candidate(0) == 2", Verdict.RUNTIME_ERROR),
    "expected exception": ("def f(x): raise ValueError('no')", "try:\n    candidate(0)\n    assert False\nexcept ValueError: pass", Verdict.PASSED),
    "early exit": ("import os\ndef f(x): os._exit(0)", "assert candidate(0) == 2", Verdict.RUNTIME_ERROR),
    "endless loop": ("def f(x):\n    while True: pass", "try:\n    candidate(0)\nexcept BaseException: pass", Verdict.TIME_LIMIT),
    "equals everything": ("class A:\n    def __eq__(s, o): return True\ndef f(x): return A()", "assert candidate(0) == 2", Verdict.WRONG_ANSWER),
    "value unfit for the check": ("def f(x): return None", "assert len(candidate(0)) == 2", Verdict.WRONG_ANSWER),
    "syntax error": ("def f(x) return", "assert candidate(0) == 2", Verdict.SYNTAX_ERROR),
    "patched modules": ("import builtins, math\nbuiltins.abs = lambda x: 0\nmath.fabs = abs\ndef f(x): return 5", "assert abs(candidate(0) - 2) < 1", Verdict.WRONG_ANSWER),
    "decorated away": ("import unittest, sys\nsys.modules['__main__'].check = lambda c: None\ndef f(x): return 0", "def check(c):\n    assert c(0) == 2\ncheck(candidate)", Verdict.WRONG_ANSWER),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_an_assert_test(bubblewrap: Pool, name: str) -> None:
    program, code, verdict = CHECKS[name]
    result = check(bubblewrap, program, code, time_limit_s=0.5)
    assert result.verdict is verdict, result


def test_an_assert_test_that_passes_no_plain_data_is_the_users_error(bubblewrap: Pool) -> None:
    with pytest.raises(InputError, match="not plain data"):
        check(bubblewrap, "def f(x): return 1", "assert candidate(lambda: 1) == 1")


def test_prelude_runs_first_and_keeps_future_imports_legal(bubblewrap: Pool) -> None:
    program = "from __future__ import annotations\ndef f(x: Unknown): return helper(x)"
    assert call(bubblewrap, program, [2], 4, prelude="def helper(x): return 2 * x").verdict is Verdict.PASSED
    assert (
        check(bubblewrap, program, "assert f(1) == helper(1)", prelude="def helper(x): return x").verdict
        is Verdict.PASSED
    )


@pytest.mark.parametrize("prelude", ["def (", "raise ValueError('prelude is broken')"])
def test_a_broken_prelude_is_the_users_error(bubblewrap: Pool, prelude: str) -> None:
    with pytest.raises(InputError, match=r"judge\.prelude fails"):
        run(bubblewrap, "print(1)", prelude=prelude)


def test_limits_can_be_set_per_call(bubblewrap: Pool) -> None:
    tests = [{"kind": "stdin", "input": "", "output": "x"}]
    program = "print('x' * 1000)"
    limited = bubblewrap.submit(program, tests, Judge(), limits=Limits(output_bytes=100)).result()
    assert limited.verdict is Verdict.OUTPUT_LIMIT
    with pytest.raises(InputError, match="at least 10 times"):
        bubblewrap.submit(program, tests, Judge(time_limit_s=1), limits=Limits(wall_s=5))
