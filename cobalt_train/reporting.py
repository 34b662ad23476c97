"""Training steps and evaluations as people read them: lines and tables for a terminal, the course of a run as a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from cobalt_data.charts import curve_picture
from cobalt_data.console import clock
from cobalt_data.errors import CobaltError
from cobalt_data.staging import write_whole
from cobalt_train.config import NONE
from cobalt_train.evaluation import HackRate, TurnScore

CURVE_NAME = "learning-curve.png"
CURVES = {
    "reward": "mean reward of a completion",
    "solved_share": "completions that pass all tests",
    "no_code_share": "completions without a program",
    "entropy": "entropy of a token (nats)",
    "kl": "KL to the model before training",
    "grad_norm": "norm of the gradient",
    "completion_tokens": "tokens of a completion",
    "tokens_per_second": "generated tokens/s",
}


def learning_curve(metrics: Path) -> bytes:
    """The picture of a run's figures, from its metrics (JSON lines, one a step)."""
    with metrics.open(encoding="utf-8") as lines:
        return curve_picture([json.loads(line) for line in lines], CURVES)


def draw_curve(metrics: Path) -> Path:
    """Draws the figures of a finished run beside its metrics and says where. Raises CobaltError if the disk refuses."""
    picture = metrics.with_name(CURVE_NAME)
    try:
        write_whole(picture, learning_curve(metrics))
    except OSError as error:
        raise CobaltError(
            f"{picture}: cannot be written ({error.strerror}); the run is whole, only its picture is missing: make room, "
            "then `cobalt train export` draws it beside the model"
        ) from None
    return picture


def scores_table(columns: Mapping[str, Sequence[TurnScore | HackRate]], title: str | None = None) -> Table:
    """`columns` are named scores of the same problems, the first of all turns; a cell is a share and its 95 % interval."""
    first = next(iter(columns.values()))
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    table.add_column("turn", justify="right")
    for name in columns:
        table.add_column(name, justify="right")
    table.add_column("programs", justify="right")
    by_turn = [{score.turn: score for score in scores} for scores in columns.values()]
    for score in first:
        cells = (_cell(scores.get(score.turn)) for scores in by_turn)
        table.add_row(str(score.turn), *cells, str(score.programs))
    return table


def _cell(score: TurnScore | HackRate | None) -> str:
    if score is None:
        return "-"
    share = score.rate if isinstance(score, HackRate) else score.pass_at_1
    return f"{share:6.1%} [{score.low:.1%}, {score.high:.1%}]"


def plan_lines(expected: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """What a run would do and take, and its settings as they stand in a file."""
    forms = {int: ",d", float: ",.2f"}
    return [
        *(f"{name}: {value:{forms.get(type(value), '')}}" for name, value in expected.items()),
        "",
        *(f"{name} = {_toml(value)}" for name, value in settings.items()),
    ]


def _toml(value: Any) -> str:
    """A setting as it stands in a file."""
    if value is None:
        return json.dumps(NONE)
    return str(value) if value in (math.inf, -math.inf) else json.dumps(value)


def step_line(metrics: Mapping[str, Any]) -> str:
    """One step of training, as the screen shows it."""
    parts = [f"step {metrics['step']}/{metrics['steps']}"]
    for name, label, form in (
        ("reward", "reward", "+.3f"),
        ("pass_rate", "pass rate", ".3f"),
        ("solved_share", "solved", ".3f"),
        ("kl", "kl", ".1e"),
        ("clipped_share", "clipped", ".3f"),
        ("dead_groups", "dead groups", "d"),
        ("masked_rows", "masked", "d"),
        ("tokens_per_second", "tokens/s", ".0f"),
    ):
        if metrics.get(name) is not None:
            parts.append(f"{label} {metrics[name]:{form}}")
    return ", ".join([*parts, f"{sum(metrics['seconds'].values()):.0f} s"])


def time_left(metrics: Mapping[str, Any]) -> str:
    """How long the rest of a run takes if its steps take as long as this one."""
    return f"{clock((metrics['steps'] - metrics['step']) * sum(metrics['seconds'].values()))} left"
