"""The figures of a version, and the course of a training run, as pictures.

matplotlib is imported when a picture is asked for, and drawn with straight onto a file: no display is needed, and equal
figures give equal bytes with one version of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cobalt_data.references import refuse_unwritable_file
from cobalt_data.staging import clear_disk_errors, write_whole

if TYPE_CHECKING:
    from cobalt_data.stats import Stats, TurnStats

WIDTH, HEIGHT, DOTS_PER_INCH = 4.2, 3.0, 150  # inches, of one panel
BLUE, ORANGE, GREY = "#3b6fb6", "#d9822b", "#8a8f98"

Panel = Any  # a matplotlib Axes
Interval = tuple[float, float, float]  # a value, and the ends of its interval


def stats_picture(stats: Stats) -> bytes:
    """A PNG with a panel for each kind of figure that the version has."""
    panels = [("rows", lambda panel: _rows(panel, stats.rows))]
    if stats.difficulty:
        panels.append(("problems by difficulty", lambda panel: _bars(panel, stats.difficulty)))
    if stats.trajectories is not None:
        turns = stats.trajectories.turns
        panels.append(("programs by turn", lambda panel: _turns(panel, turns)))
        panels.append(("mean tokens by turn", lambda panel: _tokens(panel, turns)))
    if stats.prompts is not None:
        by_turn = {f"turn {turn}": rows for turn, rows in stats.prompts.by_turn.items()}
        panels.append(("prompts", lambda panel: _bars(panel, by_turn)))
    return _picture(panels, f"version {stats.version}")


def write_picture(picture: bytes, file: Path) -> None:
    """Puts the picture in its place, whole. Raises InputError where that is a directory or a part of a dataset."""
    refuse_unwritable_file(file, "--png")
    with clear_disk_errors(file):
        write_whole(file, picture)


def curve_picture(
    metrics: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    scores: Mapping[str, Mapping[str, Sequence[Interval]]] = MappingProxyType({}),
) -> bytes:
    """A PNG of some figures of a run over its steps: `names` maps a figure to what its panel is called.

    `scores` adds a panel per name: the scores of up to three models, turn by turn.
    """
    shown = [name for name in names if any(isinstance(row.get(name), int | float) for row in metrics)]
    panels = [(names[name], lambda panel, name=name: _curve(panel, metrics, name)) for name in shown]
    panels += [(name, lambda panel, models=models: _scores(panel, models)) for name, models in scores.items()]
    return _picture(panels, "")


def _picture(panels: Sequence[tuple[str, Any]], title: str) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=10)
    for place, (name, draw) in enumerate(panels, 1):
        panel = figure.add_subplot(rows, columns, place)
        panel.set_title(name, fontsize=9)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
        draw(panel)
    picture = BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _rows(panel: Panel, rows: Mapping[str, Mapping[str, int]]) -> None:
    sides = sorted({side for by_side in rows.values() for side in by_side})
    below = dict.fromkeys(rows, 0)
    for index, side in enumerate(sides):
        counts = [by_side.get(side, 0) for by_side in rows.values()]
        panel.bar(list(rows), counts, bottom=list(below.values()), label=side, color=f"C{index}")
        below = {name: below[name] + count for name, count in zip(rows, counts, strict=True)}
    panel.legend(fontsize=7)


def _bars(panel: Panel, counts: Mapping[str, int]) -> None:
    panel.bar_label(panel.bar(list(counts), list(counts.values()), color=BLUE), fontsize=7)


def _turns(panel: Panel, turns: Sequence[TurnStats]) -> None:
    at = [turn.turn for turn in turns]
    panel.plot(at, [_number(turn.pass_at_1) for turn in turns], "o-", color=BLUE, label="Pass@1")
    panel.plot(at, [turn.pass_rate for turn in turns], "s--", color=ORANGE, label="pass rate")
    panel.plot(at, [turn.without_program for turn in turns], "x:", color=GREY, label="no program")
    panel.set_ylim(bottom=0)
    panel.set_xticks(at)
    panel.legend(fontsize=7)


def _tokens(panel: Panel, turns: Sequence[TurnStats]) -> None:
    at = [turn.turn for turn in turns]
    prompt, completion = ([getattr(turn, f"{part}_tokens") for turn in turns] for part in ("prompt", "completion"))
    panel.bar(at, prompt, color=GREY, label="prompt")
    panel.bar(at, completion, bottom=prompt, color=BLUE, label="completion")
    panel.set_xticks(at)
    panel.legend(fontsize=7)


def _curve(panel: Panel, metrics: Sequence[Mapping[str, Any]], name: str) -> None:
    """The values, faint, and their running mean over a tenth of the run."""
    known = [(row["step"], row[name]) for row in metrics if isinstance(row.get(name), int | float)]
    steps, values = zip(*known, strict=True)
    window = max(1, len(values) // 10)
    smooth = [sum(values[max(0, end - window) : end]) / min(window, end) for end in range(1, len(values) + 1)]
    panel.plot(steps, values, color=BLUE, alpha=0.35, linewidth=0.8)
    panel.plot(steps, smooth, color=BLUE)
    panel.set_xlabel("step", fontsize=8)


def _scores(panel: Panel, models: Mapping[str, Sequence[Interval]]) -> None:
    width = 0.8 / len(models)
    for place, ((name, scores), color) in enumerate(zip(models.items(), (GREY, BLUE, ORANGE), strict=False)):
        at = [turn + width * (place - (len(models) - 1) / 2) for turn in range(len(scores))]
        shares, lows, highs = zip(*scores, strict=True)
        ends = [[share - low for share, low in zip(shares, lows, strict=True)]]
        ends.append([high - share for share, high in zip(shares, highs, strict=True)])
        panel.bar(at, shares, width, yerr=ends, color=color, label=name, error_kw={"linewidth": 0.8})
    panel.set_xticks(range(max(map(len, models.values()))))
    panel.set_ylim(top=1.25 * max(high for scores in models.values() for _, _, high in scores) or 1)
    panel.set_xlabel("turn", fontsize=8)
    panel.legend(fontsize=7, ncols=len(models), loc="upper right")


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
