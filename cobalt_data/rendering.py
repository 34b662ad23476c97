"""What `show`, `stats`, `log` and `diff` found, for people: rich renderables, and nothing computed here.

Programs, feedback and statements come from models and strangers, so they never reach the terminal as they are: no markup is
read in them, and control characters, which a terminal would obey, are shown as their code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from cobalt_data.schemas import ID_COLUMNS, TABLES

if TYPE_CHECKING:  # each of them would bring DuckDB or Polars along, which the others do not need
    from cobalt_data.diff import Diff
    from cobalt_data.history import Entry
    from cobalt_data.show import Shown, ShownTurn
    from cobalt_data.stats import Stats, TurnStats

LONGEST_TABLE_NAME = max(map(len, TABLES))
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, style: str = "") -> Text:
    """`text` as it reads, with nothing in it that a terminal or rich would obey."""
    return Text(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text), style=style)


def _indented(text: str, style: str = "") -> Text:
    """The same two columns further in. Lines stay whole: a terminal wraps them, a pipe takes them as they are."""
    return plain("\n".join(f"  {line}" for line in text.split("\n")), style)


def render_shown(shown: Shown) -> RenderableType:
    facts = [f"{name}: {_in_a_word(value)}" for name, value in shown.facts.items() if value is not None]
    return Group(
        plain(f"{ID_COLUMNS[shown.table].removesuffix('_id')} {shown.id}", "bold"),
        *(_indented(fact, "dim") for fact in facts),
        *(part for message in shown.opening for part in (Rule(message["role"]), plain(message["content"]))),
        *(part for turn in shown.turns for part in _turn(turn)),
        *(part for number, test in enumerate(shown.tests) for part in _test(number, test)),
    )


def render_stats(stats: Stats) -> RenderableType:
    return Group(plain(f"version {stats.version}", "bold"), *_stats_tables(stats))


def render_history(entries: Sequence[Entry]) -> RenderableType:
    return Group(*(line for entry in entries for line in _entry(entry)))


def render_diff(diff: Diff) -> RenderableType:
    table = _table("table", "added", "removed", "changed", "unchanged")
    for name, rows in diff.tables.items():
        table.add_row(name, str(rows.added), str(rows.removed), str(rows.changed), str(rows.unchanged))
    steps = [plain(f"{step.version}  {step.operation}", "dim") for step in diff.steps]
    dropped = [
        plain(f"{name}: {count} left out, {reason}")
        for name, reasons in diff.dropped.items()
        for reason, count in sorted(reasons.items())
    ]
    return Group(*steps, table, *dropped)


def _turn(turn: ShownTurn) -> Iterator[RenderableType]:
    rates = ("all", turn.pass_rate), ("public", turn.public_pass_rate), ("hidden", turn.hidden_pass_rate)
    passed = ", ".join(f"{name} {rate:.0%}" for name, rate in rates if rate is not None)
    yield Rule(f"turn {turn.turn}: {passed}")
    if turn.program is None:
        yield plain(f"no program ({turn.finish_reason} after {turn.tokens} tokens)", "yellow")
    elif turn.diff == "":
        yield plain("the same program again", "yellow")
    elif turn.diff is not None and len(turn.diff) < len(turn.program):
        yield Syntax(plain(turn.diff).plain, "diff", theme="ansi_dark", background_color="default")
    else:
        yield Syntax(plain(turn.program).plain, "python", theme="ansi_dark", background_color="default")
    if turn.verdicts:
        yield plain("public tests: " + ", ".join(turn.verdicts), "cyan")
    if turn.feedback:
        yield _indented(turn.feedback)


def _test(number: int, test: Mapping[str, object]) -> Iterator[RenderableType]:
    yield Rule(f"public test {number}")
    for name, value in test.items():
        if name not in ("kind", "public"):
            yield plain(f"{name}: {value}")


def _stats_tables(stats: Stats) -> Iterator[RenderableType]:
    sides = sorted({side for rows in stats.rows.values() for side in rows})
    rows = _table("rows", *sides, "all")
    for name, by_side in stats.rows.items():
        rows.add_row(name, *(str(by_side.get(side, 0)) for side in sides), str(sum(by_side.values())))
    yield rows
    if len(stats.difficulty) > 1:
        yield plain("difficulty: " + ", ".join(f"{level} {problems}" for level, problems in stats.difficulty.items()))
    if stats.trajectories is not None:
        yield _turns_table(stats.trajectories.turns)
        yield plain(
            f"trajectories: {stats.trajectories.solved:.1%} solved (problems {stats.trajectories.problems_solved:.1%}), "
            f"{stats.trajectories.perturbed:.1%} perturbed, {stats.trajectories.duplicates:.1%} duplicates"
        )
    if stats.prompts is not None:
        by_turn = ", ".join(f"turn {turn}: {prompts}" for turn, prompts in stats.prompts.by_turn.items())
        yield plain(
            f"prompts: {by_turn}; {stats.prompts.perturbed:.1%} perturbed, {stats.prompts.duplicates:.1%} duplicates, "
            f"{stats.prompts.mean_tokens:.0f} tokens on average, {stats.prompts.most_tokens} at most"
        )


def _turns_table(turns: Sequence[TurnStats]) -> Table:
    table = _table("turn", "programs", "Pass@1", "public", "pass rate", "no program", "prompt tokens", "tokens")
    for turn in turns:
        shares = (turn.pass_at_1, turn.passes_public, turn.pass_rate, turn.without_program)
        tokens = (f"{turn.prompt_tokens:.0f}", f"{turn.completion_tokens:.0f}")
        table.add_row(str(turn.turn), str(turn.programs), *map(_share, shares), *tokens)
    return table


def _entry(entry: Entry) -> Iterator[RenderableType]:
    rows = ", ".join(f"{table} {rows}" for table, rows in entry.rows.items())
    yield plain(f"{entry.version}  {entry.operation}  {entry.created_at}", "bold")
    yield _indented(rows)
    settings = ", ".join(f"{name}={_in_a_word(value)}" for name, value in entry.arguments.items())
    if settings:
        yield _indented(settings, "dim")
    for name, counts in entry.counts.items():
        if name not in TABLES:
            yield _indented(f"{name}: {counts.rows_out} of {counts.rows_in}", "dim")
        for reason, dropped in sorted(counts.dropped.items()):
            yield _indented(f"{name}: {dropped} left out, {reason}", "dim")
    if entry.parents_elsewhere:
        yield _indented(f"from {', '.join(entry.parents_elsewhere)}, which this dataset does not hold", "yellow")


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(plain(first), no_wrap=True, min_width=LONGEST_TABLE_NAME)
    for name in others:
        table.add_column(plain(name), justify="right", min_width=len(name))
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _in_a_word(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
