"""What shows that a problem is one of a benchmark's: its statement, where it comes from, its samples.

- **statement**: of the benchmark's statement, the share that the problem's holds word for word, counted in runs of `NGRAM` words
  that are weighted by how rare they are over all statements (log(1 + N / df), in integers, so that no order of adding
  matters). A run that very many statements hold is the boilerplate of a contest and weighs nothing. Those of a leak that a
  dataset holds in many variants look the same; so a share of `COPIED` is a copy however many hold it, counted without weights
  in the runs that no more than `COMMON` problems of the benchmark have, of which there must be `COPIED_RUNS`.
- **identity**: the same address; or the same platform and there the same id, or the same title where that is more than a
  word and only one problem of the benchmark has it.
- **samples**: the same input with the same output, as sequences of words and numbers. One such test tells if it is long; short
  ones, which meet by chance, count for nothing, middling ones if there are two. One that more than `COMMON` problems of the
  benchmark have does not tell, nor does one that so many of the dataset have, but for two long ones together.

Left out: what reads differently throughout (translated, paraphrased), and solutions.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import pyarrow as pa

from cobalt_data.answers import told
from cobalt_data.duck import open_duckdb

NGRAM = 5  # words
FEWEST_RUNS = 3  # that must be shared, unless the whole statement is
BOILERPLATE = 20  # statements that may share a run before it weighs nothing, or
BOILERPLATE_SHARE = 0.02  # this share of them, if that is more
COPIED = 0.7  # of a statement's own runs
COPIED_RUNS = 10
SHORT_SAMPLE = 6  # words and numbers, input and output together: fewer tell nothing
LONG_SAMPLE = 20  # so many tell alone
COMMON = 3  # problems on one side that may have a run or a sample before it tells nothing by itself

STATEMENT, IDENTITY, SAMPLES = "statement", "identity", "samples"

ROWS_PER_BATCH = 512
MILLION = 1_000_000

_WORD = re.compile(r"[^\W_]+")
_NUMBERING = re.compile(r"^[A-Za-z]\d?[.):]\s+")  # the place of a problem in its contest

Row = Mapping[str, Any]  # of the table of problems
Pair = tuple[str, str]  # the ids of a problem and of a problem of the benchmark


@dataclass(frozen=True, slots=True)
class Span:
    """Words that both statements hold: where in each (characters), and what they are in the problem's."""

    start: int
    end: int
    against_start: int
    against_end: int
    text: str


def shared_statements(ours: Iterable[Row], theirs: Iterable[Row], least: float) -> dict[Pair, float]:
    """The pairs whose coverage is at least `least`. DuckDB joins the hashes of the runs, out of core."""
    with open_duckdb() as database:
        for side, rows in (("ours", ours), ("theirs", theirs)):
            database.execute(f"CREATE TABLE {side} (text UBIGINT, run UBIGINT)")
            database.execute(f"CREATE TABLE {side}_ids (text UBIGINT, id VARCHAR)")
            remaining = iter(rows)
            while batch := list(islice(remaining, ROWS_PER_BATCH)):
                runs, ids = _tables(batch)
                database.register("runs", runs).execute(f"INSERT INTO {side} SELECT * FROM runs")
                database.register("ids", ids).execute(f"INSERT INTO {side}_ids SELECT * FROM ids")
        found = database.execute(_COVERAGE, {"least": least}).fetchall()
    return {(problem, against): coverage / MILLION for problem, against, coverage in found}


_COVERAGE = f"""
    WITH our_runs AS (SELECT DISTINCT text, run FROM ours),
         their_runs AS (SELECT DISTINCT text, run FROM theirs),
         texts AS (SELECT count(DISTINCT text) AS number FROM (SELECT text FROM ours_ids UNION ALL SELECT text FROM theirs_ids)),
         weights AS (
             SELECT run, CAST({MILLION} * ln(1 + any_value(number) / count(DISTINCT text)) AS BIGINT) AS weight
             FROM (SELECT * FROM our_runs SEMI JOIN their_runs USING (run) UNION ALL SELECT * FROM their_runs), texts
             GROUP BY run
             HAVING count(DISTINCT text) <= greatest({BOILERPLATE}, any_value(number) * {BOILERPLATE_SHARE})
         ),
         weighted AS (SELECT text, run, weight FROM their_runs JOIN weights USING (run)),
         totals AS (SELECT text, sum(weight) AS total, count(*) AS number FROM weighted GROUP BY text),
         rare AS (
             SELECT our_runs.text AS our_text, weighted.text AS their_text, sum(weight) AS weight, count(*) AS number
             FROM our_runs JOIN weighted USING (run) GROUP BY ALL
         ),
         own AS (
             SELECT text, run, count(*) OVER (PARTITION BY text) AS number
             FROM their_runs SEMI JOIN (SELECT run FROM their_runs GROUP BY run HAVING count(*) <= {COMMON}) USING (run)
         ),
         copied AS (
             SELECT our_runs.text AS our_text, own.text AS their_text, {MILLION} * count(*) // number AS coverage
             FROM our_runs JOIN own USING (run) WHERE number >= {COPIED_RUNS} GROUP BY our_runs.text, own.text, number
         ),
         pairs AS (
             SELECT our_text, their_text, CAST({MILLION} * rare.weight // totals.total AS BIGINT) AS coverage
             FROM rare JOIN totals ON totals.text = their_text WHERE rare.number >= least({FEWEST_RUNS}, totals.number)
             UNION ALL
             SELECT * FROM copied WHERE coverage >= {MILLION} * {COPIED}
         )
    SELECT ours_ids.id, theirs_ids.id, max(coverage) AS coverage
    FROM pairs
    JOIN ours_ids ON ours_ids.text = pairs.our_text
    JOIN theirs_ids ON theirs_ids.text = pairs.their_text
    WHERE coverage >= {MILLION} * $least
    GROUP BY ALL
    ORDER BY ALL
"""


def _tables(rows: Sequence[Row]) -> tuple[pa.Table, pa.Table]:
    """The runs of the statements, each by the hash of its whole text, and which problems have that text."""
    texts: list[int] = []
    runs: list[int] = []
    owners: list[int] = []
    for row in rows:
        words = [word for word, _, _ in _words(row["statement"])]
        text = _hash(" ".join(words))
        of_text = {_hash(run) for run in _runs(words) if run}
        texts += [text] * len(of_text)
        runs += of_text
        owners.append(text)
    ids = pa.array([row["problem_id"] for row in rows], pa.string())
    hashes = [pa.array(values, pa.uint64()) for values in (texts, runs, owners)]
    return pa.table(hashes[:2], ["text", "run"]), pa.table([hashes[2], ids], ["text", "id"])


def shared_spans(statement: str, against: str) -> list[Span]:
    """The longest runs of words that stand in both, at least `NGRAM` words each; the first place in `against` counts."""
    ours, theirs = list(_words(statement)), list(_words(against))
    our_words, their_words = [word for word, _, _ in ours], [word for word, _, _ in theirs]
    size = min(NGRAM, len(theirs))
    places: dict[str, int] = {}
    for place, run in enumerate(_runs(their_words)):
        places.setdefault(run, place)
    found, at = [], 0
    while size and at + size <= len(ours):
        first = places.get(" ".join(our_words[at : at + size]))
        if first is None:
            at += 1
            continue
        length = _common(our_words[at:], their_words[first:])
        start, end = ours[at][1], ours[at + length - 1][2]
        found.append(Span(start, end, theirs[first][1], theirs[first + length - 1][2], statement[start:end]))
        at += length
    return found


def _common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """How many words at the beginning are the same."""
    differing = (place for place, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other)
    return next(differing, min(len(ours), len(theirs)))


def shared_identities(ours: Iterable[Row], theirs: Iterable[Row]) -> set[Pair]:
    """The pairs that have the same address, or the same id or title on the same platform."""
    known: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in theirs:
        for identity in _identities(row):
            known[identity].add(row["problem_id"])
    telling = {key: ids for key, ids in known.items() if key[0] != "title" or (len(ids) == 1 and " " in key[-1])}
    return {
        (row["problem_id"], against)
        for row in ours
        for identity in _identities(row)
        for against in telling.get(identity, ())
    }


def _identities(row: Row) -> Iterator[tuple[str, ...]]:
    metadata = json.loads(row["metadata"])
    facts = {name: value.strip() for name, value in metadata.items() if isinstance(value, str) and value.strip()}
    platform = str(facts.get("platform", row["source"])).casefold()
    if "url" in facts:
        yield ("url", re.sub(r"^https?://(www\.)?|/+$", "", facts["url"].casefold()))
    if "origin_id" in facts:
        yield ("id", platform, facts["origin_id"].casefold())
    title = " ".join(word for word, _, _ in _words(_NUMBERING.sub("", row["title"].strip())))
    if title:
        yield ("title", platform, title)


def shared_samples(ours: Iterable[Row], theirs: Iterable[Row]) -> dict[Pair, int]:
    """The pairs that have telling tests in common, and how many."""
    known: dict[int, set[str]] = defaultdict(set)
    lengths: dict[int, int] = {}
    for row in theirs:
        for sample, length in _samples(row):
            known[sample].add(row["problem_id"])
            lengths[sample] = length
    met: dict[int, set[str]] = defaultdict(set)
    for row in ours:
        for sample, _ in _samples(row):
            if sample in known:
                met[sample].add(row["problem_id"])
    shared: Counter[Pair] = Counter()
    alone: set[Pair] = set()
    for sample, problems in met.items():
        is_long, is_rare = lengths[sample] >= LONG_SAMPLE, len(problems) <= COMMON
        if len(known[sample]) <= COMMON and (is_long or is_rare):
            pairs = list(product(problems, known[sample]))
            shared.update(pairs)
            alone.update(pairs if is_long and is_rare else ())
    return {pair: number for pair, number in shared.items() if number > 1 or pair in alone}


def _samples(row: Row) -> set[tuple[int, int]]:
    """The hash and the length of every test that says enough to be compared."""
    found = set()
    for test in json.loads(row["tests"]):
        given, wanted = told(test)
        if len(given) + len(wanted) >= SHORT_SAMPLE and given and wanted:
            found.add((_hash(" ".join((*given, "->", *wanted))), len(given) + len(wanted)))
    return found


def _words(text: str) -> Iterator[tuple[str, int, int]]:
    """The words of a text, case folded, with their places."""
    for match in _WORD.finditer(text):
        yield match.group().casefold(), match.start(), match.end()


def _runs(words: Sequence[str]) -> Iterator[str]:
    """Every `NGRAM` words in a row; of a shorter text all of it. Blank where most of them are numbers or single letters:
    data that stands in the examples of many problems."""
    size = min(NGRAM, len(words))
    for start in range(len(words) - size + 1 if words else 0):
        run = words[start : start + size]
        said = sum(len(word) > 1 and word.isalpha() for word in run)
        yield " ".join(run) if said * 2 > size else ""


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
