"""Whether a version is what it says it is: files, contents, ids and the links between rows.

The version's id covers the digests of all contents, so whoever trusts the id needs nothing else: a changed byte, a changed
value, an added or missing file, an id that does not follow from its row, a row whose problem is gone are all found. Single
shards are checked in `cobalt_data.shard_checks`, on all processors. Of what the id does not cover (the rest of the manifest,
the card, hashes of rows) damage is found by checksums of their own.

Left out: whether programs still earn the verdicts that are stored; nothing is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cobalt_data.card import CARD_NAME, wrong_with_card
from cobalt_data.dataset import Version
from cobalt_data.inheritance import KEY_COLUMNS
from cobalt_data.manifest import Manifest
from cobalt_data.row_hashes import FOLDER, wrong_with_hashes
from cobalt_data.schemas import ID_COLUMNS, TABLES
from cobalt_data.shard_checks import Finding, check_shards

Progress = Callable[[int, int], None]  # rows that have been checked, of how many


@dataclass(slots=True)
class _Links:
    """The columns of a table that lead to other rows, and the sides; filled while its shards are checked."""

    columns: dict[str, list[pa.ChunkedArray]] = field(default_factory=dict)
    complete: bool = True

    def add(self, name: str, path: Path) -> None:
        """Takes these columns of a shard of the table `name` that has been checked."""
        table = pq.read_table(path, columns=[*KEY_COLUMNS[name], *_TURNS.get(name, ())], partitioning=None)
        for column in table.column_names:
            self.columns.setdefault(column, []).append(table[column])

    def column(self, name: str) -> pa.Array:
        return pa.concat_arrays([chunk for part in self.columns.get(name, []) for chunk in part.chunks] or [_NOTHING])


_NOTHING = pa.array([], pa.string())
_TURNS = {"trajectories": ("num_turns",), "prompts": ("turn",)}


def verify(version: Version, progress: Progress | None = None) -> Iterator[Finding]:
    """Everything that is wrong with `version`, as it is found; nothing where it is sound."""
    if version.path.is_symlink():
        yield Finding(f"versions/{version.id}", "is a symbolic link; a version is a folder of its dataset")
    problem = wrong_with_card(version.path)
    if problem and version.manifest.checksum:  # older cards cannot be told from changed ones
        yield Finding(CARD_NAME, problem)
    yield from verify_directory(version.path, version.manifest, progress)


def verify_directory(directory: Path, manifest: Manifest, progress: Progress | None = None) -> Iterator[Finding]:
    """The same for a version that does not yet stand in its place."""
    if manifest.id != manifest.expected_id:
        yield Finding("manifest.json", f"what it says makes version {manifest.expected_id}, not {manifest.id}")
    elif manifest.checksum not in (None, manifest.expected_checksum):
        yield Finding("manifest.json", "is not as it was written, in what its id does not cover")
    yield from _stray_files(directory, manifest)
    links = {name: _Links() for name in TABLES}
    rows, rows_checked = sum(shard.rows for shard in manifest.shards), 0
    for shard, checked in zip(manifest.shards, check_shards(directory, manifest.shards), strict=True):
        yield from checked.findings
        if not checked.is_whole:
            links[shard.table].complete = False
            continue
        links[shard.table].add(shard.table, directory / shard.path)
        problem = wrong_with_hashes(directory, shard.path)
        if problem:
            yield Finding(f"{FOLDER}/{shard.path}", problem)
        rows_checked += shard.rows
        if progress is not None:
            progress(rows_checked, rows)
    yield from _check_links(links)


def _stray_files(directory: Path, manifest: Manifest) -> Iterator[Finding]:
    """Files that readers of a whole folder would take for shards, and folders that are really somewhere else."""
    named = {shard.path for shard in manifest.shards}
    for name in TABLES:
        folder = directory / name
        if folder.is_symlink():
            yield Finding(name, "is a symbolic link; a table is a folder of the version itself")
        elif folder.is_dir():
            for path in sorted(folder.iterdir()):
                if f"{name}/{path.name}" not in named:
                    yield Finding(f"{name}/{path.name}", "is not in the manifest; remove it")


def _check_links(links: dict[str, _Links]) -> Iterator[Finding]:
    for name, key in ID_COLUMNS.items():
        counted = pc.value_counts(links[name].column(key))
        for repeated in counted.filter(pc.greater(counted.field("counts"), 1)).to_pylist():
            yield Finding(f"{name} {repeated['values']}", f"stands in {repeated['counts']} rows")
    for name, parent in (("trajectories", "problems"), ("prompts", "problems"), ("prompts", "trajectories")):
        if links[parent].complete and links[parent].columns:
            yield from _check_parents(name, links[name], parent, links[parent])
    if links["prompts"].columns and links["trajectories"].columns:
        yield from _check_turns(links["prompts"], links["trajectories"])


def _check_parents(name: str, children: _Links, parent: str, parents: _Links) -> Iterator[Finding]:
    """Every row's parent must be there, and on the same side. A null stands for no parent."""
    key = ID_COLUMNS[parent]
    wanted = children.column(key)
    place = pc.index_in(wanted, value_set=parents.column(key))
    side = parents.column("split").take(place)
    lost = pc.and_(pc.is_valid(wanted), pc.is_null(place))
    strayed = pc.fill_null(pc.not_equal(side, children.column("split")), False)
    for mask, what in ((lost, f"its {key} is none of the {parent}"), (strayed, f"is on another side than its {key}")):
        for row in children.column(ID_COLUMNS[name]).filter(mask).to_pylist():
            yield Finding(f"{name} {row}", what)


def _check_turns(prompts: _Links, trajectories: _Links) -> Iterator[Finding]:
    """No prompt can have more programs than its trajectory."""
    place = pc.index_in(prompts.column("trajectory_id"), value_set=trajectories.column("trajectory_id"))
    too_many = pc.greater(prompts.column("turn"), trajectories.column("num_turns").take(place))
    for row in prompts.column("prompt_id").filter(pc.fill_null(too_many, False)).to_pylist():
        yield Finding(f"prompts {row}", "has more turns than its trajectory")
