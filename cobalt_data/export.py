"""Prompts in the columns that other trainers read, one file per side, with a card that says how to load it.

A prompt's chat is handed on as it is: rendered by the model's chat template it gives the same tokens there as here. What a
reward needs (the true tests, how to judge, the best pass rate so far) goes along as one JSON text, in the field that the
consumer hands to its reward function. Formats, as their documentation has them in autumn 2026:

- `trl`: Parquet; `prompt`, every other column is an argument of the reward functions.
- `verl`: Parquet; `data_source, prompt, ability, reward_model {style, ground_truth}, extra_info`.
- `verifiers`: Parquet; `prompt, answer, info (JSON), task`.
- `openrlhf`: JSON lines; `prompt, label (JSON), datasource`.
- `slime`: JSON lines; `prompt, label (JSON), metadata`.
- `reference`: JSON lines of *problems*, as the paper's code has them. It compares the whole output and knows no starter code:
  problems of other than stdin tests, with a checker for which more than white space differs, or with starter code are left out.

Left out: trajectories, which none of these trains on, and the reward functions themselves (`docs/export.md` has one).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.ids import canonical_json
from cobalt_data.references import parse_target
from cobalt_data.rows import Problem
from cobalt_data.schemas import CHAT
from cobalt_data.staging import clear_disk_errors

Row = Mapping[str, Any]

CODE = "code"  # what verl calls the ability
ROWS_AT_A_TIME = 1024
NOT_STDIN = "a test that is not stdin"
NOT_EXACT = "a checker that takes other outputs as well"
STARTER_CODE = "starter code"


@dataclass(frozen=True, slots=True)
class Exported:
    """The directory, its rows by side, and what was left out by reason."""

    directory: Path
    format: str
    rows: Mapping[str, int]
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Format:
    """`row` turns a row of `table` into one of the consumer's, or names a reason to leave it out. No schema: JSON lines."""

    table: str
    row: Callable[[Row, int], Row | str]
    schema: pa.Schema | None = None

    @property
    def ending(self) -> str:
        return "parquet" if self.schema else "jsonl"


def export(version: Version, format: str, output: str | Path) -> Exported:
    """Writes `output`, a new directory, whole or not at all.

    Raises InputError for an unknown format, an `output` that is there already, or a version without such rows.
    """
    target = parse_target(output)
    if format not in FORMATS:
        raise InputError(f"format {format!r} is unknown: use one of {', '.join(FORMATS)}")
    if target.exists():
        raise InputError(f"{target} is there already: choose another directory with -o, or remove it")
    chosen, rows, dropped = FORMATS[format], Counter[str](), Counter[str]()
    sides = version.manifest.splits(chosen.table) or [""]  # none: asking for the rows says how to make them
    with clear_disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            for side in sides:
                made = _converted(version.rows(chosen.table, side), chosen, dropped)
                rows[side] = _write(made, chosen.schema, aside / f"{side}.{chosen.ending}")
            if not rows.total():
                raise InputError(f"{version.reference}: nothing to export as {format}: {_reasons(dropped)}")
            (aside / "README.md").write_text(_card(version, format, chosen, +rows), encoding="utf-8")
            aside.chmod(0o755)  # a temporary directory is for its owner alone
            aside.rename(target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return Exported(target, format, dict(+rows), dict(dropped))


def _converted(rows: Iterable[Row], chosen: _Format, dropped: Counter[str]) -> Iterator[Row]:
    for index, row in enumerate(rows):
        made = chosen.row(row, index)
        if isinstance(made, str):
            dropped[made] += 1
        else:
            yield made


def _write(rows: Iterator[Row], schema: pa.Schema | None, file: Path) -> int:
    """How many rows it wrote; no file where there are none."""
    first = next(rows, None)
    if first is None:
        return 0
    every, count = chain([first], rows), 0
    if schema is None:
        with file.open("w", encoding="utf-8") as lines:
            for row in every:
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
        return count
    with pa.OSFile(str(file), "wb") as sink, pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        while batch := list(islice(every, ROWS_AT_A_TIME)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def _truth(row: Row) -> str:
    """What a reward needs, as JSON."""
    truth = {
        "tests": json.loads(row["tests"]),
        "judge": json.loads(row["judge"]),
        "prev_best_pass_rate": row["prev_best_pass_rate"],
    }
    return json.dumps(truth, ensure_ascii=False)


def _origin(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("prompt_id", "problem_id", "turn", "perturbation")}


def _source(row: Row) -> str:
    return f"cobalt/{row['problem_id'].partition('/')[0]}"


def _trl(row: Row, _: int) -> Row:
    return {name: row[name] for name in _TRL.names}


def _verl(row: Row, index: int) -> Row:
    return {
        "data_source": _source(row),
        "prompt": row["prompt"],
        "ability": CODE,
        "reward_model": {"style": "rule", "ground_truth": _truth(row)},
        "extra_info": {"split": row["split"], "index": index, **_origin(row)},
    }


def _verifiers(row: Row, _: int) -> Row:
    info = json.dumps({**_origin(row), **json.loads(_truth(row))}, ensure_ascii=False)
    return {"prompt": row["prompt"], "answer": "", "info": info, "task": _source(row)}


def _openrlhf(row: Row, _: int) -> Row:
    return {"prompt": row["prompt"], "label": _truth(row), "datasource": _source(row)}


def _slime(row: Row, _: int) -> Row:
    return {"prompt": row["prompt"], "label": _truth(row), "metadata": {"source_name": _source(row), **_origin(row)}}


def _reference(row: Row, _: int) -> Row | str:
    problem = Problem.from_row(row)
    if any(test["kind"] != "stdin" for test in problem.tests):
        return NOT_STDIN
    if problem.judge.checker == "multiset" or problem.judge.checker.startswith("float:"):
        return NOT_EXACT
    if problem.starter_code.strip():
        return STARTER_CODE
    groups = {
        "test_cases": problem.tests,
        "public_test_cases": problem.public_tests,
        "hidden_test_cases": problem.hidden_tests,
    }
    return {
        "id": problem.problem_id,
        "difficulty": problem.difficulty,
        "question": problem.statement,
        **{
            name: canonical_json(
                {"inputs": [test["input"] for test in tests], "outputs": [test["output"] for test in tests]}
            )
            for name, tests in groups.items()
        },
    }


def _text(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.string()) for name in names]


_TRL = pa.schema(
    [
        ("prompt", CHAT),
        *_text("prompt_id", "problem_id"),
        ("turn", pa.int32()),
        *_text("tests", "judge"),
        ("prev_best_pass_rate", pa.float64()),
        *_text("perturbation"),
    ]
)
_ORIGIN = [*_text("prompt_id", "problem_id"), ("turn", pa.int32()), *_text("perturbation")]
_VERL = pa.schema(
    [
        *_text("data_source"),
        ("prompt", CHAT),
        *_text("ability"),
        ("reward_model", pa.struct(_text("style", "ground_truth"))),
        ("extra_info", pa.struct([*_text("split"), ("index", pa.int64()), *_ORIGIN])),
    ]
)
_VERIFIERS = pa.schema([("prompt", CHAT), *_text("answer", "info", "task")])

FORMATS: Mapping[str, _Format] = {
    "trl": _Format("prompts", _trl, _TRL),
    "verl": _Format("prompts", _verl, _VERL),
    "verifiers": _Format("prompts", _verifiers, _VERIFIERS),
    "openrlhf": _Format("prompts", _openrlhf),
    "slime": _Format("prompts", _slime),
    "reference": _Format("problems", _reference),
}


def _reasons(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{rows} with {reason}" for reason, rows in dropped.items()) or "it has no rows"


def _card(version: Version, format: str, chosen: _Format, rows: Mapping[str, int]) -> str:
    """Its header lets `datasets.load_dataset` find the sides of this directory."""
    files = [f"  - split: {side}\n    path: {side}.{chosen.ending}" for side in rows]
    kind = "json" if chosen.schema is None else "parquet"
    return "\n".join(
        [
            "---\nconfigs:\n- config_name: default\n  data_files:",
            *files,
            "---",
            "",
            f"Rows for {format}, exported by cobalt from version {version.id}: "
            + ", ".join(f"{side} {count}" for side, count in rows.items()),
            "",
            f'`datasets.load_dataset("{kind}", data_files="{next(iter(rows))}.{chosen.ending}")` loads a side.',
            "",
        ]
    )
