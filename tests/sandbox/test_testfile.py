"""A file of tests: what no judge could use is one line that names its place, before any sandbox is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox import InputError, Judge
from sandbox.testfile import read_tests

CALL = {"kind": "call", "args": [1], "kwargs": {}, "expected": 1}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nothing", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "no JSON object"),
        (json.dumps({**CALL, "kwargs": [1]}), "test.kwargs is"),
        (json.dumps({**CALL, "args": [{"$tuple": 5}]}), "not in the tagged form"),
        (json.dumps({**CALL, "args": [{"$no_such_tag": 5}]}), "not in the tagged form"),
        (json.dumps({**CALL, "expected": {"$bytes": "xyz"}}), "not in the tagged form"),
        (json.dumps({"kind": "assert", "code": "assert candidate('\ud800')"}), "half a surrogate pair"),
    ],
)
def test_a_test_that_nothing_could_judge_is_named_by_its_line(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "tests.jsonl"
    file.write_text(json.dumps(CALL) + "\n\n" + line + "\n")
    with pytest.raises(InputError) as refused:
        read_tests(file, Judge(entry_point="f"))
    assert str(refused.value).startswith(f"{file}:3: ") and said in str(refused.value)


def test_sound_tests_are_read_as_they_are(tmp_path: Path) -> None:
    tests = [CALL, {"kind": "call", "args": [], "expected": {"$set": [1, 2]}}]
    (tmp_path / "tests.jsonl").write_text("\n".join(map(json.dumps, tests)))
    assert read_tests(tmp_path / "tests.jsonl", Judge(entry_point="f")) == tests
