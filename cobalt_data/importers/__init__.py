"""Rows from the files of others: `import_problems` reads a source in one of `FORMATS`.

A row that cannot become a problem stops the import with its place, field and remedy, or is counted by reason where bad rows
may be skipped; a row that is in order, but that no sandbox could judge, is always left out and counted. One module per format
maps a row to a `Problem`; the order of the rows does not matter to the result. Of the reference code's rows the conversations
come along as trajectories, and format `cobalt` brings rows of all tables.

Left out: writing a dataset (`cobalt_data.commit`) and running solutions (`cobalt_data.check_solutions`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cobalt_data.errors import InputError
from cobalt_data.ids import canonical_json, digest
from cobalt_data.importers.fields import BadRow, UnusableRow
from cobalt_data.importers.formats import EMBEDDED, FORMATS, OWN, TO_PROBLEM, looks_like
from cobalt_data.importers.imported import Imported
from cobalt_data.importers.own_tables import to_typed
from cobalt_data.importers.prepare import PAPER, prepare_as_paper
from cobalt_data.importers.reader import SourceRow
from cobalt_data.importers.reference_trajectories import UNKNOWN, to_trajectories
from cobalt_data.importers.sources import open_rows
from cobalt_data.manifest import SIDE
from cobalt_data.rows import Problem, Prompt, Trajectory
from cobalt_data.schemas import TABLES
from sandbox.judging import payload

__all__ = ["FORMATS", "ImportConfig", "Imported", "import_problems"]

Typed = Problem | Trajectory | Prompt
Identity = tuple[str, str]  # table and id


@dataclass(frozen=True, slots=True)
class ImportConfig:
    """How a source is read.

    `public`: how many tests are public where the source does not say (None: see `importers.public`). `limit`: only the first
    so many rows. `side`: where all problems stand; of a dataset on the Hub, whose splits are sides, this one alone, and of
    its configurations `subset`. `prepare`: `paper` selects as `importers.prepare` says. `model`: who wrote the conversations.
    """

    format: str
    public: int | None = None
    limit: int | None = None
    side: str | None = None
    subset: str | None = None
    prepare: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise InputError(f"format {self.format!r} is unknown; formats: {', '.join(FORMATS)}")
        for name, value, least in (("public", self.public, 0), ("limit", self.limit, 1)):
            if value is not None and value < least:
                raise InputError(f"{name} is {value}: give at least {least}")
        if self.side is not None and not SIDE.fullmatch(self.side):
            raise InputError(f"side is {self.side[:80]!r}: give a name such as train or test")
        if self.prepare not in (None, PAPER):
            raise InputError(f"prepare is {self.prepare!r}: there is {PAPER!r} alone")
        for name in ("side", "prepare"):
            if self.format == OWN and getattr(self, name) is not None:
                raise InputError(f"format {OWN!r} takes rows as they are: leave {name} out")


def import_problems(
    source: str | Path | None, format: str, *, skip_bad_rows: bool = False, **settings: Any
) -> Imported:
    """The rows of `source`, sorted by id. `settings` are the other fields of `ImportConfig`.

    Raises InputError for a source that cannot be read to its end and, without `skip_bad_rows`, the first bad row; HubError.
    """
    config = ImportConfig(format, **settings)
    if config.format == EMBEDDED:
        return _embedded(source, config.limit)
    if source is None:
        raise InputError(f"format {config.format!r} needs a source: name a file of JSON lines or Parquet")
    rows = open_rows(str(source), config.format, config.side, config.subset)
    found = _Found(skip_bad_rows)
    for row in islice(rows, config.limit):
        found.add(row, config)
    return found.as_imported(str(source))


def _embedded(source: str | Path | None, limit: int | None) -> Imported:
    if source is not None and str(source) != EMBEDDED:
        raise InputError(f"format 'embedded' takes no source, but got {source}: leave it out or choose its format")
    from cobalt_data.embedded import embedded_problems

    problems = [Problem.from_row(row) for row in islice(embedded_problems(), limit)]
    return Imported(problems, {"problems": len(problems)}, {}, [])


@dataclass(slots=True)
class _Found:
    skip_bad_rows: bool
    kept: dict[Identity, tuple[Sequence[Typed], str]] = field(default_factory=dict)  # what a row holds, and its place
    read: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    bad_rows: list[str] = field(default_factory=list)

    def add(self, row: SourceRow, config: ImportConfig) -> None:
        self.read[row.table] += 1
        try:
            self._keep(_to_typed(row, config), row.place)
        except BadRow as error:
            self._leave_out(row.table, row.place, error)

    def _leave_out(self, table: str, place: str, error: BadRow) -> None:
        message = f"{place}: {error}"
        if not (self.skip_bad_rows or isinstance(error, UnusableRow)):
            raise InputError(f"{message} (--skip-bad-rows leaves such rows out)") from None
        self.left_out.setdefault(table, Counter())[error.reason] += 1
        self.bad_rows.append(message)

    def _keep(self, typed: Sequence[Typed], place: str) -> None:
        """Of several rows with one id, where bad rows may be skipped, the same one is kept whatever their order."""
        identity = _identity(typed[0])
        before, first = self.kept.setdefault(identity, (typed, place))
        if before is typed:
            return
        if before == typed:
            raise UnusableRow("repeated row", f"is the row at {first} again")
        self.kept[identity] = min((before, first), (typed, place), key=lambda each: _content(each[0]))
        origin = typed[0].metadata.get("origin_id") if isinstance(typed[0], Problem) else None
        raise BadRow("duplicate id", f"id {origin or identity[1]!r} was used before, at {first}: make ids unique")

    def _leave_out_misfits(self) -> None:
        """Prompts that have more turns than their trajectory, which may stand anywhere in the source."""
        rows = [(identity, typed[0], place) for identity, (typed, place) in self.kept.items()]
        turns = {row_id: len(row.turns) for (_, row_id), row, _ in rows if isinstance(row, Trajectory)}
        for identity, row, place in rows:
            if isinstance(row, Prompt) and row.trajectory_id in turns and row.turn > turns[row.trajectory_id]:
                del self.kept[identity]
                what = f"prompt {identity[1]} has {row.turn} turns, more than its trajectory"
                self._leave_out("prompts", place, BadRow("not sound", f"{what}: cut it again"))

    def as_imported(self, source: str) -> Imported:
        if not self.read:
            raise InputError(f"{source} holds no rows: nothing to import")
        self._leave_out_misfits()
        if not self.kept:
            count = self.read.total()
            raise InputError(f"{source}: none of its {count} rows could be imported; the first: {self.bad_rows[0]}")
        found = {_identity(typed): typed for row, _ in self.kept.values() for typed in row}
        in_order: dict[str, list[Any]] = {name: [] for name in TABLES}
        for table, row_id in sorted(found):
            in_order[table].append(found[table, row_id])
        return Imported(
            **in_order,
            read=dict(self.read),
            left_out={table: dict(reasons) for table, reasons in self.left_out.items()},
            bad_rows=self.bad_rows,
        )


def _content(typed: Sequence[Typed]) -> str:
    return digest([each.to_row() for each in typed])


def _identity(typed: Typed) -> Identity:
    match typed:
        case Problem(problem_id=row_id):
            return "problems", row_id
        case Trajectory():
            return "trajectories", typed.trajectory_id
        case Prompt():
            return "prompts", typed.prompt_id


def _to_typed(row: SourceRow, config: ImportConfig) -> Sequence[Typed]:
    """Raises BadRow, with a hint where the row looks like one of another format."""
    if isinstance(row.fields, BadRow):
        raise row.fields
    try:
        if config.format == OWN:
            return [to_typed(row, row.fields)]
        problem = _prepared(TO_PROBLEM[config.format](row.fields, config.public), row, config)
        if config.format != "reference":
            return [problem]
        return [problem, *to_trajectories(row.fields, problem, config.model or UNKNOWN)]
    except BadRow as error:
        other = looks_like(row.fields) if error.reason == "missing field" else None
        if other in (None, config.format):
            raise
        raise BadRow("other format", f"{error}; the row looks like {other}: give the right --format") from None
    except RecursionError:
        raise BadRow("too deep", "the row holds values or source nested too deeply: simplify or leave it out") from None


def _prepared(problem: Problem, row: SourceRow, config: ImportConfig) -> Problem:
    """The problem on its side, selected as asked for and fit to be stored and judged."""
    if config.prepare == PAPER:
        problem = prepare_as_paper(problem)
    _check_storable(problem)
    side = config.side or row.side
    return problem if side is None else replace(problem, split=side)


def _check_storable(problem: Problem) -> None:
    """Test values come from source text, which can spell what neither JSON nor UTF-8 can hold, nor a sandbox take."""
    try:
        canonical_json(problem.tests).encode()
    except (ValueError, RecursionError) as error:
        raise BadRow(
            "not storable", f"field 'test' holds a value that cannot be stored ({error}): correct it"
        ) from None
    for index, test in enumerate(problem.tests):
        try:
            payload(test, problem.judge)
        except InputError as error:
            raise UnusableRow("unusable tests", f"test {index} cannot be judged ({error}): left out") from None
