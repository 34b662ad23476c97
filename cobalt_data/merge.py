"""`merge`: several collections become one.

A row that several of them hold is taken once. Two rows of one id must say the same: a problem that means one thing here and
another there would give a verdict that nobody can explain, so the merge is refused and names the row, the column and both
collections. Trajectories of the same problems by different models have different ids, and come together.

A problem stands on the side that any of the collections gave it. One that stands on two sides is refused as well, for it would
carry a test into training; `sides="leave-out"` leaves it out instead, with all that was made from it, and counts it.

The order of the collections does not matter. Which templates their manifests name is recorded, since the manifests themselves
may lie elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc

from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.history import ancestry
from cobalt_data.manifest import Counts
from cobalt_data.rows import UNSPLIT, Row
from cobalt_data.schemas import ID_COLUMNS, TABLES
from cobalt_data.spool import Spool

REFUSE, LEAVE_OUT = "refuse", "leave-out"
REPEATED = "in several of the collections"
TWO_SIDES = "on two sides"


@dataclass(frozen=True, slots=True)
class MergeConfig:
    """`sides`: what becomes of problems that stand on different sides, `refuse` or `leave-out`."""

    sides: str = REFUSE

    def __post_init__(self) -> None:
        if self.sides not in (REFUSE, LEAVE_OUT):
            raise InputError(f"merge.sides is {self.sides!r}: use {REFUSE} or {LEAVE_OUT}")


def in_order(versions: Sequence[Version]) -> list[Version]:
    """Each version once, in the order of their ids: the parents of a merge. Raises InputError if fewer than two are left."""
    distinct = {version.id: version for version in versions}
    if len(distinct) < 2:
        raise InputError("merge takes at least two different versions: name another collection")
    return [distinct[version_id] for version_id in sorted(distinct)]


def merge(versions: Sequence[Version], config: MergeConfig) -> Change:
    """The change to be committed with `in_order(versions)` as its parents. Raises InputError where they contradict."""
    parents = in_order(versions)
    sides = _sides(parents, config)
    tables = {name: _united(name, parents, sides) for name in TABLES if any(parent.has(name) for parent in parents)}
    read = {name: sum(parent.manifest.rows(name) for parent in parents) for name in tables}
    dropped = {name: Counter({REPEATED: read[name] - table.num_rows}) for name, table in tables.items()}
    if left_out := sum(side is None for side in sides.values()):
        dropped["problems"].update({TWO_SIDES: left_out, REPEATED: -left_out})
    return Change(
        operation="merge",
        arguments=asdict(config),
        seed=None,
        tables=tables,
        counts={name: Counts(read[name], table.num_rows, dict(+dropped[name])) for name, table in tables.items()},
        recorded={"templates": _templates(parents)},
    )


def _sides(versions: Sequence[Version], config: MergeConfig) -> dict[str, str | None]:
    """Of every problem that has a side, which it is; None where it is to be left out."""
    found: dict[str, dict[str, Version]] = {}
    for version in versions:
        if version.has("problems"):
            for row in version.rows("problems", columns=["problem_id", "split"]):
                if row["split"] != UNSPLIT:
                    found.setdefault(row["problem_id"], {}).setdefault(row["split"], version)
    contradicting = sorted(problem_id for problem_id, sides in found.items() if len(sides) > 1)
    if contradicting and config.sides == REFUSE:
        first = contradicting[0]
        where = " and ".join(f"{side} in {version.reference}" for side, version in sorted(found[first].items()))
        more = f", and {len(contradicting) - 1} others like it" if contradicting[1:] else ""
        raise InputError(
            f"problem {first} stands on side {where}{more}: split the collections alike, or leave such problems out "
            f"(--sides {LEAVE_OUT})"
        )
    return {problem_id: next(iter(sides)) if len(sides) == 1 else None for problem_id, sides in found.items()}


def _united(name: str, versions: Sequence[Version], sides: Mapping[str, str | None]) -> Spool:
    """The rows of all versions, each once. Where a problem is at hand it says the side, so sides may differ here.

    In memory stay all ids, and of the rows that several versions hold a hash.
    """
    key, repeated, united = ID_COLUMNS[name], _repeated(name, versions), Spool(name)
    has_problems = any(version.has("problems") for version in versions)
    compared = [column for column in TABLES[name].names if column != "split" or not has_problems]
    known: dict[str, bytes] = {}
    for version in versions:
        for piece in version.pieces(name) if version.has(name) else ():
            ids = piece[key].to_pylist()
            new = pa.array([row_id not in known for row_id in ids], pa.bool_())
            for row in piece.filter(pa.array([row_id in repeated for row_id in ids], pa.bool_())).to_pylist():
                says = sha256(repr([row[column] for column in compared]).encode()).digest()
                if known.setdefault(row[key], says) != says:
                    raise InputError(_contradiction(name, row[key], compared, versions))
            piece = piece.filter(new)
            united.add(_placed(piece, sides) if name == "problems" else piece)
    return united


def _repeated(name: str, versions: Sequence[Version]) -> set[str]:
    """The ids that several of the versions hold."""
    key, seen, repeated = ID_COLUMNS[name], set[str](), set[str]()
    for version in versions:
        if version.has(name):
            ids = {row_id for piece in version.pieces(name, columns=[key]) for row_id in piece[key].to_pylist()}
            repeated |= seen & ids
            seen |= ids
    return repeated


def _placed(problems: pa.Table, sides: Mapping[str, str | None]) -> pa.Table:
    """The problems on their sides, less those that are to be left out."""
    placed = [sides.get(problem_id, UNSPLIT) for problem_id in problems["problem_id"].to_pylist()]
    column = problems.schema.get_field_index("split")
    kept = problems.filter(pa.array([side is not None for side in placed], pa.bool_()))
    column_of_sides = pa.array([side for side in placed if side is not None], pa.string())
    return kept.set_column(column, kept.schema.field("split"), column_of_sides)


def _contradiction(name: str, row_id: str, columns: Sequence[str], versions: Sequence[Version]) -> str:
    """In which columns the first two different rows of that id differ, and who holds such rows."""
    found = {version.reference: _row(version, name, row_id) for version in versions if version.has(name)}
    holders = {reference: row for reference, row in found.items() if row is not None}
    first, *others = holders.values()
    wrong = next(filter(None, ([column for column in columns if first[column] != other[column]] for other in others)))
    return (
        f"{name} {row_id} differs in {', '.join(wrong)} between {' and '.join(holders)}: "
        "merge versions that agree on it, or remove it from all but one"
    )


def _row(version: Version, name: str, row_id: str) -> Row | None:
    for piece in version.pieces(name):
        found = piece.filter(pc.equal(piece[ID_COLUMNS[name]], row_id))
        if found.num_rows:
            return dict(found.to_pylist()[0])
    return None


def _templates(versions: Sequence[Version]) -> list[Mapping[str, str]]:
    """What the manifests of the versions and of their ancestors say of templates: names and hashes."""
    found: set[tuple[str, str]] = set()
    for manifest in (manifest for version in versions for manifest in ancestry(version).values()):
        named = [manifest.arguments, manifest.recorded, *manifest.recorded.get("templates", ())]
        found |= {
            (facts["template"], str(facts.get("template_hash") or ""))
            for facts in named
            if isinstance(facts, Mapping) and isinstance(facts.get("template"), str)
        }
    return [{"template": name, "template_hash": template_hash} for name, template_hash in sorted(found)]
