"""Every public grader case is judged right: small programs that have fooled at least one public grader each."""

import json
import socket
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from sandbox import Judge, Pool, ProgramResult
from sandbox.values import encode

CASES = Path(__file__).parents[2].parent / "shared" / "cases" / "grader_cases.json"
if not CASES.exists():
    pytest.skip(f"{CASES} is missing", allow_module_level=True)


def load_cases() -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in json.loads(CASES.read_text())}


def value(test: dict[str, Any], name: str) -> Any:
    return eval(test[f"{name}_gen"]) if f"{name}_gen" in test else test[name]


def as_test(case: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
    if case["kind"] == "call":
        args = [encode(arg) for arg in value(test, "args")]
        return {"kind": "call", "args": args, "kwargs": {}, "expected": encode(value(test, "out"))}
    text = value(test, "stdin").replace("\r\n", "\n")  # as every importer does
    return {"kind": "stdin", "input": text, "output": value(test, "out")}


def submit(pool: Pool, case: dict[str, Any], port: int) -> Future[ProgramResult]:
    judge = Judge(
        checker=case.get("checker", "tokens"),
        entry_point=case.get("fn"),
        time_limit_s=case.get("time_s", 10),
        memory_mb=case.get("mem_mb", 512),
    )
    tests = [as_test(case, test) for test in case["tests"]]
    return pool.submit(case["prog"].replace("PORT", str(port)), tests, judge)


@pytest.fixture(scope="module")
def verdicts(isolated: Pool) -> dict[str, list[ProgramResult]]:
    """All cases at once, each as often as it asks for."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        futures = {
            name: [submit(isolated, case, port) for _ in range(case.get("concurrent", 1))]
            for name, case in load_cases().items()
        }
        return {name: [future.result() for future in several] for name, several in futures.items()}


@pytest.mark.parametrize("name", load_cases())
def test_the_case_gets_its_verdict(verdicts: dict[str, list[ProgramResult]], name: str) -> None:
    case = load_cases()[name]
    for result in verdicts[name]:
        assert result.verdict in (case["verdict"], *case.get("allow", ())), (case["title"], result)
