"""Problems from the files of others: `import_problems` reads a source in one of `FORMATS`.

A row that cannot become a problem stops the import with its place, field and remedy, or is counted by reason where bad rows
may be skipped; a row that is in order, but that no sandbox could judge, is always left out and counted. One module per format
maps a row to a `Problem`; the order of the rows does not matter to the result.

Left out: writing a dataset (`cobalt_data.commit`) and running solutions (`cobalt_data.check_solutions`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cobalt_data.commit import Change
from cobalt_data.dataset import table_from_rows
from cobalt_data.errors import InputError
from cobalt_data.ids import canonical_json
from cobalt_data.importers import humaneval, kickstart_codejam, leetcode, mbpp, reference
from cobalt_data.importers.fields import BadRow, Fields, UnusableRow
from cobalt_data.importers.reader import SourceRow, read_rows
from cobalt_data.manifest import Counts
from cobalt_data.rows import Problem
from cobalt_data.sources import source_digest

TO_PROBLEM: dict[str, Callable[[Fields, int | None], Problem]] = {
    "humaneval": humaneval.to_problem,
    "mbpp": mbpp.to_problem,
    "leetcode": leetcode.to_problem,
    "kickstart_codejam": kickstart_codejam.to_problem,
    "reference": reference.to_problem,
}
FORMATS = ("embedded", *TO_PROBLEM)
LATER_FORMATS = ("taco", "apps", "livecodebench", "package", "cobalt")
KNOWN_FIELDS = {
    "humaneval": humaneval.FIELDS,
    "mbpp": mbpp.FIELDS,
    "leetcode": leetcode.FIELDS,
    "kickstart_codejam": kickstart_codejam.FIELDS,
    "reference": reference.FIELDS,
    "MBPP's original release (take the one of mxeval)": ("text", "code", "test_list"),
    "sanitized MBPP (take the release of mxeval)": ("prompt", "code", "test_list"),
    "taco or apps": ("question", "solutions", "input_output"),
    "livecodebench": ("question_content", "public_test_cases", "private_test_cases"),
    "cobalt's own table of problems": ("problem_id", "statement", "tests", "judge"),
}


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import found. `dropped` counts the rows that became no problem, by reason; `bad_rows` says each."""

    problems: list[Problem]
    rows_in: int
    dropped: dict[str, int]
    bad_rows: list[str]

    def of_difficulty(self, wanted: str) -> Imported:
        """Only the problems of one difficulty; the others are counted as dropped. Raises InputError if none is left."""
        kept = [problem for problem in self.problems if problem.difficulty == wanted]
        if not kept:
            known = sorted({problem.difficulty or "none" for problem in self.problems})
            raise InputError(f"no problem has the difficulty {wanted!r}; there are {', '.join(known)}")
        dropped = {**self.dropped, "another difficulty": len(self.problems) - len(kept)}
        return replace(self, problems=kept, dropped=dropped)

    def as_change(self, source: str, **arguments: Any) -> Change:
        """The version to be made of it. `arguments` are those of the import; what was not asked for is not named."""
        return Change(
            operation="import",
            arguments={name: value for name, value in arguments.items() if value not in (None, False)},
            seed=None,
            tables={"problems": table_from_rows("problems", (problem.to_row() for problem in self.problems))},
            counts={"problems": Counts(self.rows_in, len(self.problems), self.dropped)},
            recorded={"source": source, "source_sha256": source_digest(source)},
        )


def import_problems(
    source: str | Path | None,
    format: str,
    *,
    public: int | None = None,
    skip_bad_rows: bool = False,
    limit: int | None = None,
) -> Imported:
    """The problems of `source`, sorted by id; the first `limit` rows of it alone, where given.

    `public`: how many tests are public where the source does not say (None: see `importers.public`). Raises InputError for
    a file that cannot be read to its end, a format that does not exist and, without `skip_bad_rows`, the first bad row.
    """
    for name, value, least in (("public", public, 0), ("limit", limit, 1)):
        if value is not None and value < least:
            raise InputError(f"{name} is {value}: give at least {least}")
    if format == "embedded":
        return _embedded(source, limit)
    if format in LATER_FORMATS:
        raise InputError(f"format {format!r} cannot be imported yet; formats: {', '.join(FORMATS)}")
    if format not in TO_PROBLEM:
        raise InputError(f"format {format!r} is unknown; formats: {', '.join(FORMATS)}")
    if source is None:
        raise InputError(f"format {format!r} needs a source: name a file of JSON lines or Parquet")
    if "://" in str(source):
        raise InputError(f"{source} is an address: download the file and name it")
    rows = islice(read_rows(Path(source)), limit)
    return _collect(rows, format, public, skip_bad_rows, str(source))


def _embedded(source: str | Path | None, limit: int | None) -> Imported:
    if source is not None and str(source) != "embedded":
        raise InputError(f"format 'embedded' takes no source, but got {source}: leave it out or choose its format")
    from cobalt_data.embedded import embedded_problems

    problems = [Problem.from_row(row) for row in islice(embedded_problems(), limit)]
    return Imported(problems, len(problems), {}, [])


def _collect(rows: Iterator[SourceRow], format: str, public: int | None, skip_bad_rows: bool, source: str) -> Imported:
    problems: dict[str, Problem] = {}
    places: dict[str, str] = {}
    dropped: Counter[str] = Counter()
    bad_rows: list[str] = []
    rows_in = 0
    for row in rows:
        rows_in += 1
        try:
            problem = _to_problem(row, format, public)
            if problem.problem_id in problems:
                origin_id, first = problem.metadata["origin_id"], places[problem.problem_id]
                raise BadRow("duplicate id", f"id {origin_id!r} was used before, at {first}: make ids unique")
        except BadRow as error:
            message = f"{row.place}: {error}"
            if not (skip_bad_rows or isinstance(error, UnusableRow)):
                raise InputError(f"{message} (--skip-bad-rows leaves such rows out)") from None
            dropped[error.reason] += 1
            bad_rows.append(message)
        else:
            problems[problem.problem_id] = problem
            places[problem.problem_id] = row.place
    if not rows_in:
        raise InputError(f"{source} holds no rows: nothing to import")
    if not problems:
        raise InputError(f"{source}: none of its {rows_in} rows could be imported; the first: {bad_rows[0]}")
    return Imported([problems[key] for key in sorted(problems)], rows_in, dict(dropped), bad_rows)


def _to_problem(row: SourceRow, format: str, public: int | None) -> Problem:
    """Raises BadRow, with a hint where the row looks like one of another format."""
    if isinstance(row.fields, BadRow):
        raise row.fields
    try:
        problem = TO_PROBLEM[format](row.fields, public)
    except BadRow as error:
        other = _looks_like(row.fields) if error.reason == "missing field" else None
        if other in (None, format):
            raise
        raise BadRow("other format", f"{error}; the row looks like {other}: give the right --format") from None
    except RecursionError:
        raise BadRow("too deep", "the row holds source that is nested too deeply: simplify or leave it out") from None
    _check_storable(problem)
    return problem


def _looks_like(fields: Fields) -> str | None:
    """The format whose fields the row has, the most telling first."""
    fitting = [name for name, names in KNOWN_FIELDS.items() if all(field in fields for field in names)]
    return max(fitting, key=lambda name: len(KNOWN_FIELDS[name]), default=None)


def _check_storable(problem: Problem) -> None:
    """Test values come from source text, which can spell what neither JSON nor UTF-8 can hold."""
    try:
        canonical_json(problem.tests).encode()
    except (ValueError, RecursionError) as error:
        raise BadRow(
            "not storable", f"field 'test' holds a value that cannot be stored ({error}): correct it"
        ) from None
