"""`decontaminate`: drops the problems that are those of a benchmark, or of contests outside a window of time.

What counts as evidence is in `cobalt_data.leaks`: the statement, of which the problem's holds at least `coverage`; where the
problem comes from; its samples. Any of them is enough, and the report names each with the spans that both statements hold.
All of a dataset is looked at, whatever its sides. `after` and `before` keep the problems of contests from the first day on and
until the day before the second; a problem without a date, or with one in another form, stays, unless `drop_undated`, and is
counted.

What was made from a dropped problem is dropped with it, by `commit`.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from cobalt_data.against import Against
from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.leaks import (
    IDENTITY,
    SAMPLES,
    STATEMENT,
    Span,
    shared_identities,
    shared_samples,
    shared_spans,
    shared_statements,
)
from cobalt_data.manifest import Counts

TOO_EARLY = "its contest is before the window"
TOO_LATE = "its contest is after the window"
UNDATED = "its contest has no date"
SPAN_SHOWN = 80  # characters
LEAKED = "in what it was compared with"
AGAINST_VERSION = "against_version"  # what a manifest calls the id of a dataset's version


@dataclass(frozen=True, slots=True)
class DecontaminateConfig:
    """`against` is the hash of the problems compared with, None for a window alone; the rest is described above."""

    against: str | None = None
    coverage: float = 0.3
    after: str | None = None
    before: str | None = None
    drop_undated: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.coverage <= 1:
            raise InputError(f"decontaminate.coverage is {self.coverage}: give a share in (0, 1]")
        for name in ("after", "before"):
            if getattr(self, name) is not None:
                _check_day(name, getattr(self, name))
        if self.after and self.before and self.after >= self.before:
            raise InputError(
                f"decontaminate.after is {self.after}, which is not before {self.before}: the window is empty"
            )
        if self.drop_undated and not self.has_window:
            raise InputError("decontaminate.drop_undated needs a window: give after or before")
        if self.against is None and not self.has_window:
            raise InputError("decontaminate has nothing to do: give against, after or before")

    @property
    def has_window(self) -> bool:
        return bool(self.after or self.before)


@dataclass(frozen=True, slots=True)
class Leak:
    """A problem and the one of the benchmark that it is taken for. `coverage` is 0 where the statements tell nothing."""

    problem_id: str
    against: str
    evidence: tuple[str, ...]  # of "statement", "identity" and "samples"
    coverage: float
    samples: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Decontaminated:
    change: Change
    leaks: Sequence[Leak]


def decontaminate(version: Version, config: DecontaminateConfig, against: Against | None = None) -> Decontaminated:
    """Drops leaked problems and those outside the window. `against` is what `config.against` is the hash of."""
    leaks = find_leaks(version, against, config.coverage) if against else []
    leaked = {leak.problem_id for leak in leaks}
    removed, dropped, undated = [], Counter[str](), 0
    for row in version.rows("problems", columns=["problem_id", "metadata"]):
        reason = LEAKED if row["problem_id"] in leaked else _outside_window(json.loads(row["metadata"]), config)
        if reason == UNDATED and not config.drop_undated:
            undated += 1
        elif reason:
            removed.append(row["problem_id"])
            dropped[reason] += 1
    rows = version.manifest.rows("problems")
    change = Change(
        operation="decontaminate",
        arguments=asdict(config),
        seed=None,
        tables={},
        counts={"problems": Counts(rows, rows - len(removed), dict(dropped))},
        recorded=({"undated": undated} if config.has_window else {}) | (_recorded(against, leaks) if against else {}),
        removed={"problems": removed},
        consulted=[against.version] if against and against.version else [],
    )
    return Decontaminated(change, leaks)


def find_leaks(version: Version, against: Against, coverage: float) -> list[Leak]:
    """Every pair of a problem and one of the benchmark for which there is evidence, ordered by their ids."""
    ours: Callable[[Sequence[str]], Iterator[dict[str, Any]]] = partial(version.rows, "problems", None)
    statements = shared_statements(ours(["problem_id", "statement"]), against.rows, coverage)
    identities = shared_identities(ours(["problem_id", "source", "title", "metadata"]), against.rows)
    samples = shared_samples(ours(["problem_id", "tests"]), against.rows)
    pairs = sorted({*statements, *identities, *samples})
    leaked = {problem_id for problem_id, _ in pairs}
    texts = {
        row["problem_id"]: row["statement"] for row in ours(["problem_id", "statement"]) if row["problem_id"] in leaked
    }
    their_texts = {row["problem_id"]: row["statement"] for row in against.rows}
    return [
        Leak(
            problem_id=pair[0],
            against=pair[1],
            evidence=tuple(
                name
                for name, found in ((STATEMENT, statements), (IDENTITY, identities), (SAMPLES, samples))
                if pair in found
            ),
            coverage=statements.get(pair, 0.0),
            samples=samples.get(pair, 0),
            spans=tuple(shared_spans(texts[pair[0]], their_texts[pair[1]])),
        )
        for pair in pairs
    ]


def leak_line(leak: Leak) -> str:
    """What the screen shows of a leak: the pair, the evidence and the longest span."""
    longest = max((" ".join(span.text.split()) for span in leak.spans), key=len, default="")
    shown = f': "{longest[:SPAN_SHOWN]}{"..." if len(longest) > SPAN_SHOWN else ""}"' if longest else ""
    return f"{leak.problem_id} is {leak.against} by {', '.join(leak.evidence)}{shown}"


def _outside_window(metadata: Mapping[str, Any], config: DecontaminateConfig) -> str | None:
    if not config.has_window:
        return None
    day = metadata.get("contest_date")
    if not isinstance(day, str) or not _is_day(day[:10]):
        return UNDATED
    if config.after and day < config.after:
        return TOO_EARLY
    return TOO_LATE if config.before and day >= config.before else None


def _recorded(against: Against, leaks: Sequence[Leak]) -> dict[str, Any]:
    evidence = Counter(name for leak in leaks for name in leak.evidence)
    return {
        "against": against.name,
        **({AGAINST_VERSION: against.version.id} if against.version else {}),
        "compared_with": len(against.rows),
        "leaked": len({leak.against for leak in leaks}),
        "evidence": dict(sorted(evidence.items())),
    }


def _check_day(name: str, value: str) -> None:
    if not _is_day(value):
        raise InputError(f"decontaminate.{name} is {value!r}: give a day as YYYY-MM-DD")


def _is_day(value: str) -> bool:
    """Days are compared as text, so only this one form will do."""
    try:
        return datetime.date.fromisoformat(value).isoformat() == value
    except (TypeError, ValueError):
        return False
