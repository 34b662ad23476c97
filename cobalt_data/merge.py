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

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.history import ancestry
from cobalt_data.manifest import Counts
from cobalt_data.rows import UNSPLIT
from cobalt_data.schemas import ID_COLUMNS, TABLES

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
    tables = {name: _united(name, parents) for name in TABLES if any(parent.has(name) for parent in parents)}
    read = {name: sum(parent.manifest.rows(name) for parent in parents) for name in tables}
    dropped = {name: {REPEATED: read[name] - table.num_rows} for name, table in tables.items()}
    if "problems" in tables:
        tables["problems"], contradicting = _placed(tables["problems"], parents, config)
        dropped["problems"][TWO_SIDES] = contradicting
    return Change(
        operation="merge",
        arguments=asdict(config),
        seed=None,
        tables=tables,
        counts={
            name: Counts(read[name], table.num_rows, {reason: rows for reason, rows in dropped[name].items() if rows})
            for name, table in tables.items()
        },
        recorded={"templates": _templates(parents)},
    )


def _united(name: str, versions: Sequence[Version]) -> pa.Table:
    """The rows of all versions, each once. Where a problem is at hand it says the side, so sides may differ here."""
    key, united = ID_COLUMNS[name], TABLES[name].empty_table()
    has_problems = any(version.has("problems") for version in versions)
    for version in versions:
        if version.has(name):
            table = version.table(name)
            known = pc.is_in(table[key], value_set=united[key].combine_chunks())
            compared = [column for column in TABLES[name].names if column != "split" or not has_problems]
            _refuse_contradiction(name, united, table.filter(known), compared, versions)
            united = pa.concat_tables([united, table.filter(pc.invert(known))])
    return united


def _refuse_contradiction(
    name: str, united: pa.Table, repeated: pa.Table, columns: Sequence[str], versions: Sequence[Version]
) -> None:
    key = ID_COLUMNS[name]
    place = pc.index_in(repeated[key], value_set=united[key].combine_chunks())
    before = united.take(place)
    differing = [column for column in columns if not before[column].equals(repeated[column])]
    if not differing:
        return
    for row in range(repeated.num_rows):
        wrong = [column for column in differing if before[column][row] != repeated[column][row]]
        if wrong:
            row_id = repeated[key][row].as_py()
            raise InputError(
                f"{name} {row_id} differs in {', '.join(wrong)} between {_holders(name, row_id, versions)}: "
                "merge versions that agree on it, or remove it from all but one"
            )


def _holders(name: str, row_id: str, versions: Sequence[Version]) -> str:
    holding = [
        version.reference
        for version in versions
        if version.has(name)
        and any(row[ID_COLUMNS[name]] == row_id for row in version.rows(name, columns=[ID_COLUMNS[name]]))
    ]
    return " and ".join(holding)


def _placed(problems: pa.Table, versions: Sequence[Version], config: MergeConfig) -> tuple[pa.Table, int]:
    """The problems on their sides, those on two sides refused or left out, and how many were left out."""
    sides: dict[str, dict[str, Version]] = {}
    for version in versions:
        if version.has("problems"):
            for row in version.rows("problems", columns=["problem_id", "split"]):
                if row["split"] != UNSPLIT:
                    sides.setdefault(row["problem_id"], {}).setdefault(row["split"], version)
    contradicting = sorted(problem_id for problem_id, found in sides.items() if len(found) > 1)
    if contradicting and config.sides == REFUSE:
        first = contradicting[0]
        where = " and ".join(f"{side} in {version.reference}" for side, version in sorted(sides[first].items()))
        more = f", and {len(contradicting) - 1} others like it" if contradicting[1:] else ""
        raise InputError(
            f"problem {first} stands on side {where}{more}: split the collections alike, or leave such problems out "
            f"(--sides {LEAVE_OUT})"
        )
    kept = problems.filter(pc.invert(pc.is_in(problems["problem_id"], value_set=pa.array(contradicting, pa.string()))))
    placed = [next(iter(sides.get(problem_id, {})), UNSPLIT) for problem_id in kept["problem_id"].to_pylist()]
    column = kept.schema.get_field_index("split")
    return kept.set_column(column, kept.schema.field("split"), pa.array(placed, pa.string())), len(contradicting)


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
