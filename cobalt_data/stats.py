"""What a version holds, in figures: rows, sides, difficulty, pass rates per turn, tokens, perturbed and duplicate shares.

Polars scans the shards lazily and decodes of the JSON columns only what the figures need. Duplicates are counted by exact text
here (the programs of a trajectory within its problem, the chat of a prompt); `dedup` also sees through renaming.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from cobalt_data.dataset import Version
from cobalt_data.schemas import TABLES

_TURNS = pl.List(
    pl.Struct(
        {
            "program": pl.String,
            "hidden_pass_rate": pl.Float64,
            "public_pass_rate": pl.Float64,
            "pass_rate": pl.Float64,
            "prompt_tokens": pl.Int64,
            "completion_tokens": pl.Int64,
        }
    )
)


@dataclass(frozen=True, slots=True)
class TurnStats:
    """The programs of one turn. Shares are of programs whose problem has tests of that kind, None where none has."""

    turn: int
    programs: int
    pass_at_1: float | None  # passed all hidden tests
    passes_public: float | None
    pass_rate: float  # over all tests, mean
    without_program: float
    prompt_tokens: float  # mean
    completion_tokens: float  # mean


@dataclass(frozen=True, slots=True)
class TrajectoryStats:
    turns: tuple[TurnStats, ...]
    solved: float
    problems_solved: float  # of the problems with a trajectory, those that one of them solves
    perturbed: float
    duplicates: float


@dataclass(frozen=True, slots=True)
class PromptStats:
    by_turn: Mapping[int, int]
    perturbed: float
    duplicates: float
    mean_tokens: float
    most_tokens: int


@dataclass(frozen=True, slots=True)
class Stats:
    """`rows` by table and side; what follows is None, or empty, where the version has no such table."""

    version: str
    rows: Mapping[str, Mapping[str, int]]
    difficulty: Mapping[str, int]
    trajectories: TrajectoryStats | None
    prompts: PromptStats | None


def stats(version: Version) -> Stats:
    return Stats(
        version=version.id,
        rows={
            table: {split: version.manifest.rows(table, split) for split in version.manifest.splits(table)}
            for table in TABLES
            if version.has(table)
        },
        difficulty=_difficulty(version) if version.has("problems") else {},
        trajectories=_trajectory_stats(version) if version.has("trajectories") else None,
        prompts=_prompt_stats(version) if version.has("prompts") else None,
    )


def _difficulty(version: Version) -> dict[str, int]:
    level = pl.col("difficulty").fill_null("unknown")
    counted = version.scan("problems").group_by(level).len().sort("difficulty")
    return dict(counted.collect().iter_rows())


def _trajectory_stats(version: Version) -> TrajectoryStats:
    scan = version.scan("trajectories").select(
        "problem_id", "solved", "perturbation", pl.col("turns").str.json_decode(_TURNS)
    )
    programs = pl.col("turns").list.eval(pl.element().struct.field("program").fill_null("\0")).list.join("\0\0")
    summary = scan.select(
        pl.col("solved").mean(),
        pl.col("problem_id")
        .filter("solved")
        .n_unique()
        .truediv(pl.col("problem_id").n_unique())
        .alias("problems_solved"),
        pl.col("perturbation").is_not_null().mean().alias("perturbed"),
        _repeated(pl.struct("problem_id", programs.hash().alias("programs"))).alias("duplicates"),
    )
    return TrajectoryStats(turns=_turn_stats(scan), **_only_row(summary))


def _turn_stats(scan: pl.LazyFrame) -> tuple[TurnStats, ...]:
    by_turn = (
        scan.select(pl.col("turns"), pl.int_ranges(pl.col("turns").list.len()).alias("turn"))
        .explode("turns", "turn")
        .unnest("turns")
        .group_by("turn")
        .agg(
            pl.len().alias("programs"),
            (pl.col("hidden_pass_rate") == 1).mean().alias("pass_at_1"),
            (pl.col("public_pass_rate") == 1).mean().alias("passes_public"),
            pl.col("pass_rate").mean(),
            pl.col("program").is_null().mean().alias("without_program"),
            pl.col("prompt_tokens").mean(),
            pl.col("completion_tokens").mean(),
        )
        .sort("turn")
    )
    return tuple(TurnStats(**row) for row in by_turn.collect(engine="streaming").to_dicts())


def _prompt_stats(version: Version) -> PromptStats:
    scan = version.scan("prompts")
    by_turn = scan.group_by("turn").len().sort("turn").collect()
    message = pl.concat_str(pl.element().struct.field("role"), pl.lit("\0"), pl.element().struct.field("content"))
    summary = scan.select(
        pl.col("perturbation").is_not_null().mean().alias("perturbed"),
        _repeated(pl.col("prompt").list.eval(message).list.join("\0\0").hash()).alias("duplicates"),
        pl.col("prompt_tokens").mean().alias("mean_tokens"),
        pl.col("prompt_tokens").max().alias("most_tokens"),
    )
    return PromptStats(by_turn=dict(by_turn.iter_rows()), **_only_row(summary))


def _repeated(key: pl.Expr) -> pl.Expr:
    """The share of rows whose key an earlier row has already."""
    return 1 - key.n_unique() / pl.len()


def _only_row(frame: pl.LazyFrame) -> dict[str, Any]:
    return frame.collect(engine="streaming").row(0, named=True)
