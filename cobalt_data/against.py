"""What a dataset is decontaminated against: the problems of a file, of another dataset, or of a benchmark by its name.

A file is read in the format that its first row looks like; of rows that are no problems the sound ones are used, as a leak of
those is one all the same. Benchmarks by name are fetched from the Hub, where it can be reached; else the message says which
file to give. Nothing of a benchmark is stored: what identifies it is a hash of its problems. Of a dataset the version that was
read is remembered as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cobalt_data.dataset import Version, open_version
from cobalt_data.errors import CobaltError, HubError, InputError
from cobalt_data.ids import digest
from cobalt_data.importers import FORMATS, import_problems
from cobalt_data.importers.fields import BadRow
from cobalt_data.importers.formats import looks_like
from cobalt_data.importers.reader import read_rows
from cobalt_data.references import HUB_PREFIX

COLUMNS = ("problem_id", "source", "title", "statement", "tests", "metadata")  # that show a leak


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Where a benchmark lies on the Hub: files of one format; and what to give where it cannot be had from there."""

    format: str
    files: tuple[str, ...]
    instead: str


BENCHMARKS = {
    "humaneval": Benchmark(
        "humaneval",
        ("openai/openai_humaneval/openai_humaneval/test-00000-of-00001.parquet",),
        "HumanEval.jsonl.gz of github.com/openai/human-eval",
    ),
    "mbpp": Benchmark(
        "mbpp",
        ("mxeval/mbxp/data/python/mbpp_release_v1.jsonl",),
        "mbpp_release_v1.jsonl of github.com/amazon-science/mxeval",
    ),
    "livecodebench": Benchmark(
        "livecodebench",
        tuple(f"livecodebench/code_generation_lite/test{number}.jsonl" for number in ("", 2, 3, 4, 5, 6)),
        "test.jsonl of hf.co/datasets/livecodebench/code_generation_lite",
    ),
}


@dataclass(frozen=True, slots=True)
class Against:
    """Problems as rows with `COLUMNS`, in the order of their ids. `version` is the one that they are of, if of a dataset."""

    name: str
    rows: Sequence[dict[str, Any]]
    version: Version | None = None

    @property
    def hash(self) -> str:
        return digest([[row[column] for column in COLUMNS] for row in self.rows])


def load_against(name: str) -> Against:
    """The problems that `name` means. Raises InputError, and HubError where a benchmark cannot be fetched."""
    if Path(name).is_file():
        rows = _of_file(name, _format_of(Path(name)))
    elif name in BENCHMARKS:
        rows = _of_benchmark(name, BENCHMARKS[name])
    elif Path(name.rpartition("@")[0]).is_file():
        raise InputError(f"{name}: a file has no versions: leave what begins with @ out")
    elif name.startswith(HUB_PREFIX) or Path(name.rpartition("@")[0] or name).exists() or Path(name).exists():
        return problems_of(open_version(name))
    else:
        raise InputError(f"{name} is no file, no dataset and none of {', '.join(BENCHMARKS)}: check the path")
    return Against(name, _in_order(rows))


def problems_of(version: Version) -> Against:
    return Against(version.reference, _in_order(version.rows("problems", columns=COLUMNS)), version)


def _in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["problem_id"])


def _of_file(source: str, format: str) -> list[dict[str, Any]]:
    problems = import_problems(source, format, skip_bad_rows=True).problems
    return [{column: row[column] for column in COLUMNS} for row in (problem.to_row() for problem in problems)]


def _of_benchmark(name: str, benchmark: Benchmark) -> list[dict[str, Any]]:
    try:
        return [row for file in benchmark.files for row in _of_file(f"{HUB_PREFIX}{file}", benchmark.format)]
    except CobaltError as error:
        raise HubError(
            f"{name} cannot be had from the Hub ({error}); give a file instead: --against {benchmark.instead}"
        ) from None


def _format_of(path: Path) -> str:
    first = next(read_rows(path), None)
    if first is None or isinstance(first.fields, BadRow):
        raise InputError(f"{path} does not begin with a row: {first.fields if first else 'it is empty'}")
    found = looks_like(first.fields)
    if found not in FORMATS:
        raise InputError(
            f"{first.place}: the row looks like {found or 'no format that cobalt knows'}; "
            "import the file first and decontaminate against that dataset"
        )
    return found
