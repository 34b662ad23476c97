"""What a user sees of the command line: one line for a mistake, an exit status, and nothing left behind."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import main
from cobalt_data.commands import data


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | None:
    monkeypatch.setattr(sys, "argv", ["cobalt", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(tmp_path)
    assert not run(monkeypatch, "data", "import", "embedded", "--limit", "2", "-o", "made")
    capsys.readouterr()
    return "made"


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-verb"],
        ["data", "no-such-verb"],
        ["data", "import", "embedded"],
        ["data", "import", "embedded", "-o", "x", "--limit", "many"],
        ["data", "import", "embedded", "-o", "x", "--limit", "0"],
        ["data", "import", "embedded", "-o", ""],
        ["data", "import", "embedded", "-o", "hf://datasets/a/b"],
        ["data", "import", "embedded", "-o", "made@x"],
        ["data", "import", "embedded", "-o", "caf\udce9"],
        ["data", "pull", "anna/things", "-o", "made@x"],
        ["data", "stats", "made", "--png", "."],
        ["data", "import", "missing.jsonl", "--format", "mbpp", "-o", "x"],
        ["data", "split", "made", "-o", ""],
        ["data", "split", "made@"],
        ["data", "split", "made", "--no-such-option"],
        ["data", "split", "made", "--seed", "9" * 30],
        ["data", "split", "missing"],
        ["data", "split", "miss\ning"],
        ["data", "split", "m" * 300],
        ["data", "split", f"{'m' * 300}@0123"],
        ["data", "split", "made/latest/manifest.json/x"],
        ["data", "split", "made", "-o", "m" * 300],
        ["data", "split", "made", "-o", "ma\nde"],
        ["data", "split", "made", "-o", "made/latest"],
        ["data", "split", "made", "-o", "made/versions"],
        ["data", "split", "made", "-o", "made/versions/../versions/below"],
        ["data", "export", "made", "-f", "reference", "-o", "made/latest/export"],
        ["data", "gc", "made@0123"],
        ["data", "cut", "made"],
        ["data", "cut", "made", "-n", "0", "--tokenizer", "estimate"],
        ["data", "augment", "made"],
        ["data", "augment", "made", "--perturb", "--unperturb"],
        ["data", "augment", "made", "--unperturb"],
        ["data", "augment", "made", "--perturb", "--kind", "swap=half"],
        ["data", "augment", "made", "--perturb", "--kind", "swap", "--kind", "swap=0.1"],
        ["data", "augment", "made", "--perturb", "--kind", "swop", "--tokenizer", "estimate"],
        ["data", "augment", "made", "--perturb", "--recollect"],
        ["data", "augment", "made", "--perturb", "--recollect", "--kind", "stale"],
        ["train", "made", "-m", "smollm2-135m"],
        ["train", "made", "-m", "smollm2-135m", "-o", "x", "--set", "zzz=1"],
        ["train", "made", "-m", "smollm2-135m", "-o", "x", "--set", "preset=paper"],
        ["train", "made", "-m", "smollm2-135m", "-o", "x", "--set", "steps=3", "--steps", "0"],
        ["eval", "smollm2-135m", "made", "--split", "zzz"],
    ],
)
def test_a_mistake_is_one_line_and_status_2_and_leaves_nothing(
    arguments: list[str], dataset: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().rglob("*"))
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("cobalt: ") and said.err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    "command",
    [
        "import missing --format mbpp -o",
        "merge made missing -o",
        "split made --train 2 -o",
        "collect made -m no/model -o",
        "cut made -o",
        "augment made --unperturb -o",
        "augment made --perturb --recollect -o",
        "dedup made -o",
        "dedup made --report",
        "decontaminate made --against missing -o",
        "decontaminate made --against missing --report",
        "stats made --png",
        "replay made -o",
        "pull anna/things -o",
        "export made -f trl -o",
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    command: str, dataset: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("no directory")
    assert run(monkeypatch, "data", *command.split(), "file/x") == 2
    said = capsys.readouterr().err
    assert said.startswith("cobalt: file/x: cannot write there") and said.count("\n") == 1


def test_every_verb_speaks_to_machines_and_can_be_quiet() -> None:
    verbs = [command.callback for command in data.registered_commands if command.callback]
    assert len(verbs) == 18
    assert [verb.__name__ for verb in verbs if not {"json", "quiet"} <= inspect.signature(verb).parameters.keys()] == []


@pytest.mark.parametrize(("verb", "status"), [("stats", 2), ("show", 2), ("split", 2), ("dedup", 2), ("verify", 1)])
@pytest.mark.parametrize("content", [None, b"junk"])
def test_a_damaged_shard_is_bad_input_to_a_reader_and_a_finding_to_verify(
    verb: str,
    status: int,
    content: bytes | None,
    dataset: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for shard in Path(dataset).glob("latest/problems/*.parquet"):
        shard.unlink()
        if content is not None:
            shard.write_bytes(content)
    assert run(monkeypatch, "data", verb, dataset) == status
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("verb", ["stats", "show", "split", "dedup", "verify"])
@pytest.mark.parametrize("place", [0.3, 0.999])  # a page, the footer
def test_a_shard_of_the_right_size_with_wrong_bytes_is_one_line(
    verb: str, place: float, dataset: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for shard in Path(dataset).glob("latest/problems/*.parquet"):
        content = bytearray(shard.read_bytes())
        start = int(place * len(content))
        content[start : start + 40] = bytes(40)[: len(content) - start]
        shard.unlink()  # the file may have a second name
        shard.write_bytes(content)
    status = run(monkeypatch, "data", verb, dataset)
    said = capsys.readouterr().err
    if status or verb == "verify":  # the others may not need what is damaged
        assert status == (1 if verb == "verify" else 2) and said.count("\n") == 1


def test_what_is_terminated_says_how_to_go_on(tmp_path: Path) -> None:
    os.mkfifo(tests := tmp_path / "tests.jsonl")
    (program := tmp_path / "program.py").write_text("print(1)")
    running = subprocess.Popen(
        [sys.executable, "-c", "from cli import main; main()", "sandbox", "run", str(program), "--tests", str(tests)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": ""},
    )
    with tests.open("w"):  # opens when the command reads
        running.terminate()
        said = running.communicate(timeout=60)
    assert (running.returncode, said) == (143, ("", "cobalt: interrupted: give the same command again to go on\n"))


def test_a_reader_that_goes_away_is_told_nothing(dataset: str) -> None:
    shown = subprocess.Popen(
        [sys.executable, "-c", "from cli import main; main()", "data", "show", dataset],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": ""},
    )
    assert shown.stdout is not None
    shown.stdout.close()
    _, complaint = shown.communicate(timeout=60)
    assert (shown.returncode, complaint) == (1, b"")
