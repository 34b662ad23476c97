"""The dataset card of a version: what it holds, how it came about, and how to load it.

Its YAML header tells `datasets` which files are which table and side, and with which columns; it is written from the schemas
and the shards themselves, each time anew, so that it cannot fall out of step with them. The same card, without figures, lies
beside every local version; `push` writes the full one. Its last line, which no page shows, is the hash of all before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import DatasetCardData

from cobalt_data.history import Entry
from cobalt_data.manifest import Manifest
from cobalt_data.schemas import TABLES

if TYPE_CHECKING:
    from cobalt_data.stats import Stats

CARD_NAME = "README.md"
PICTURE_NAME = "stats.png"  # beside a card with figures
TAGS = ("code", "reinforcement-learning", "trajectories", "cobalt")
SEAL = b"<!-- sha256 of what stands above: "
THIS_FOLDER = "PATH_OF_THIS_FOLDER"
DEFAULT_TABLE = "prompts"  # what `load_dataset(NAME)` loads, and the first table where there are none
ROWS_OF = {
    "problems": "a programming problem with its tests and how its programs are judged",
    "trajectories": "a model's conversation with the sandbox over one problem, and what each of its programs earned",
    "prompts": "a partial trajectory ready to be completed with one program, with the tests that reward it",
}


@dataclass(frozen=True, slots=True)
class Words:
    """What a card says beyond the version itself: where it can be loaded from, its licence, more tags."""

    location: str = THIS_FOLDER
    licence: str | None = None  # as the Hub spells it, e.g. apache-2.0 or cc-by-4.0
    tags: Sequence[str] = ()


def write_card(directory: Path, manifest: Manifest) -> None:
    (directory / CARD_NAME).write_text(render_card(directory, manifest), encoding="utf-8")


def render_card(
    directory: Path,
    manifest: Manifest,
    words: Words | None = None,
    lineage: Sequence[Entry] = (),
    figures: Stats | None = None,
) -> str:
    """The card of the version whose shards lie in `directory`."""
    words = words or Words()
    tables = [name for name in TABLES if manifest.rows(name)]
    sections = [
        f"---\n{_header(directory, manifest, words, tables).to_yaml()}\n---",
        f"# Version {manifest.id}",
        f"Made with cobalt {manifest.code_version} by `{manifest.operation}` on {manifest.created_at}; "
        f"parents: {', '.join(manifest.parents) or 'none'}.",
        _table(
            ("table", "one row is", *sides),
            [(name, ROWS_OF[name], *(manifest.rows(name, side) for side in sides)) for name in tables],
        )
        if (sides := sorted({side for name in tables for side in manifest.splits(name)}))
        else "It holds no rows.",
        *(_figures(figures) if figures else ()),
        *(_lineage(lineage) if lineage else ()),
        _how_to_load(words.location, manifest, tables),
    ]
    text = "\n\n".join(sections) + "\n\n"
    return text + _seal(text.encode())


def wrong_with_card(directory: Path) -> str | None:
    """What has happened to the card of a local version since it was written."""
    path = directory / CARD_NAME
    if path.is_symlink() or not path.is_file():
        return "is missing, or not a file of the version itself"
    text, start, line = path.read_bytes().rpartition(SEAL)
    return None if start + line == _seal(text).encode() else "is not as it was written"


def _seal(text: bytes) -> str:
    return f"{SEAL.decode()}{hashlib.sha256(text).hexdigest()} -->\n"


def _header(directory: Path, manifest: Manifest, words: Words, tables: Sequence[str]) -> DatasetCardData:
    return DatasetCardData(
        license=words.licence,
        pretty_name=None if words.location == THIS_FOLDER else words.location.rpartition("/")[-1],
        tags=[*TAGS, *words.tags],
        task_categories=["text-generation"],
        size_categories=[_size_category(sum(manifest.rows(name) for name in tables))],
        configs=[_config(name, manifest, name == _default_table(tables)) for name in tables],
        dataset_info=[_info(directory, name, manifest) for name in tables],
    )


def _default_table(tables: Sequence[str]) -> str:
    return DEFAULT_TABLE if DEFAULT_TABLE in tables or not tables else tables[0]


def _config(name: str, manifest: Manifest, is_default: bool) -> dict[str, Any]:
    files = [{"split": split, "path": f"{name}/{split}-*.parquet"} for split in manifest.splits(name)]
    return {"config_name": name, "data_files": files, **({"default": True} if is_default else {})}


def _info(directory: Path, name: str, manifest: Manifest) -> dict[str, Any]:
    """Columns and sizes as `datasets` writes them into a card; `num_bytes` is the size without compression."""
    shards = manifest.tables[name]
    plain = {shard.path: _plain_bytes(directory / shard.path) for shard in shards}
    splits = [
        {
            "name": split,
            "num_bytes": sum(plain[shard.path] for shard in shards if shard.split == split),
            "num_examples": manifest.rows(name, split),
        }
        for split in manifest.splits(name)
    ]
    return {
        "config_name": name,
        "features": [_feature(field) for field in TABLES[name]],
        "splits": splits,
        "download_size": sum(shard.bytes for shard in shards),
        "dataset_size": sum(plain.values()),
    }


def _plain_bytes(path: Path) -> int:
    footer = pq.read_metadata(path)
    return sum(footer.row_group(index).total_byte_size for index in range(footer.num_row_groups))


def _feature(field: pa.Field) -> dict[str, Any]:
    if not pa.types.is_list(field.type):
        return {"name": field.name, "dtype": _dtype(field.type)}
    inner = field.type.value_type
    return {
        "name": field.name,
        "list": [_feature(part) for part in inner] if pa.types.is_struct(inner) else _dtype(inner),
    }


def _dtype(kind: pa.DataType) -> str:
    return {"double": "float64"}.get(str(kind), str(kind))


def _size_category(rows: int) -> str:
    bounds = ["1K", "10K", "100K", "1M", "10M", "100M", "1B"]
    for index, bound in enumerate(bounds):
        if rows < 1000 * 10**index:
            return f"{bounds[index - 1]}<n<{bound}" if index else f"n<{bound}"
    return "n>1B"


def _figures(figures: Stats) -> Iterator[str]:
    yield "## Figures"
    yield f"![The figures below as a picture]({PICTURE_NAME})"
    if figures.trajectories:
        made = figures.trajectories
        yield (
            f"Trajectories: {made.solved:.1%} solved, {made.problems_solved:.1%} of the problems solved by at least one, "
            f"{made.perturbed:.1%} perturbed, {made.duplicates:.1%} duplicates."
        )
        yield _table(
            ("turn", "programs", "pass all hidden tests", "mean pass rate", "mean tokens of a completion"),
            [
                (
                    turn.turn,
                    turn.programs,
                    _share(turn.pass_at_1),
                    f"{turn.pass_rate:.3f}",
                    f"{turn.completion_tokens:.0f}",
                )
                for turn in made.turns
            ],
        )
    if figures.prompts:
        cut = figures.prompts
        yield (
            f"Prompts: {cut.mean_tokens:.0f} tokens on average, at most {cut.most_tokens}; {cut.perturbed:.1%} perturbed, "
            f"{cut.duplicates:.1%} duplicates; by turn: "
            + ", ".join(f"{turn}: {rows}" for turn, rows in sorted(cut.by_turn.items()))
            + "."
        )
    if figures.difficulty:
        yield (
            "Problems by difficulty: "
            + ", ".join(f"{level} {rows}" for level, rows in figures.difficulty.items())
            + "."
        )


def _lineage(lineage: Sequence[Entry]) -> Iterator[str]:
    yield "## How it was made"
    yield _table(
        ("version", "operation", "arguments", "seed", "rows", "dropped"),
        [
            (
                f"`{entry.version}`",
                entry.operation,
                f"`{json.dumps(entry.arguments, ensure_ascii=False, sort_keys=True)}`",
                "" if entry.seed is None else entry.seed,
                ", ".join(f"{name} {rows}" for name, rows in entry.rows.items()),
                "; ".join(
                    _dropped(entry.counts[name].dropped, name) for name in entry.counts if entry.counts[name].dropped
                ),
            )
            for entry in lineage
        ],
    )


def _dropped(reasons: Mapping[str, int], name: str) -> str:
    return f"{name}: " + ", ".join(f"{rows} {reason}" for reason, rows in reasons.items())


def _how_to_load(location: str, manifest: Manifest, tables: Sequence[str]) -> str:
    on_the_hub = location != THIS_FOLDER
    table = _default_table(tables)
    sides = manifest.splits(table)
    side = "train" if "train" in sides or not sides else sides[0]
    revision = f', revision="{manifest.id}"' if on_the_hub else ""
    lines = [
        "## How to load it",
        "```python\nfrom datasets import load_dataset\n\n"
        f'rows = load_dataset("{location}", "{table}", split="{side}"{revision})  # streaming=True works too\n```',
    ]
    if on_the_hub:
        lines.append(f"```sh\ncobalt data pull {location}@{manifest.id} -o DATASET  # checks every shard and row\n```")
    lines.append(
        "Columns that hold JSON are text: `json.loads` them. `manifest.json` names every shard with its sha256, and what was "
        "dropped on the way, by reason."
    )
    return "\n\n".join(lines)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )
