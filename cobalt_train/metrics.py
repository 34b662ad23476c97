"""What a step is reported as: one flat record for the journal, the screen and whoever plots it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cobalt_train.batch import Lesson
from cobalt_train.figures import Figures
from cobalt_train.rollout import Group, Row
from sandbox import Verdict

SAMPLED_GROUPS = 2  # per step whose best and worst completion are kept


def reward_metrics(groups: Sequence[Group]) -> dict[str, Any]:
    """Means and shares over the completions that have a reward; None where none has."""
    judged = [row for group in groups for row in group.rows if row.reward is not None]
    return {
        "reward": _mean([row.reward for row in judged]),
        "pass_rate": _mean([row.pass_rate for row in judged]),
        "solved_share": _mean([row.pass_rate == 1 for row in judged]),
        "no_code_share": _mean([row.verdict is Verdict.NO_CODE for row in judged]),
    }


def step_metrics(groups: Sequence[Group], lesson: Lesson, figures: Figures) -> dict[str, Any]:
    """Those of the rewards, and means and shares over all completions or tokens; None where there is nothing to divide by."""
    rows = [row for group in groups for row in group.rows]
    return {
        **reward_metrics(groups),
        "truncated_share": _mean([row.completion.finish_reason == "length" for row in rows]),
        "dead_groups": lesson.dead_groups,
        "masked_rows": lesson.masked_rows,
        "loss": figures.loss if figures.tokens else None,
        "entropy": _ratio(figures.entropy_sum, figures.tokens),
        "kl": _ratio(figures.kl_sum, figures.kl_tokens),
        "clipped_share": _ratio(figures.clipped_tokens, figures.tokens),
        "capped_share": _ratio(figures.capped_tokens, figures.tokens),
        "grad_norm": _mean(figures.grad_norms),
        "mismatch_ratio": _ratio(figures.mismatch_ratio_sum, figures.mismatch_tokens),
        "mismatch_kl": _ratio(figures.mismatch_kl_sum, figures.mismatch_tokens),
        "mismatch_largest": figures.mismatch_largest if figures.mismatch_tokens else None,
        "completion_tokens": _mean([len(row.token_ids) for row in rows]),
        "generated_tokens": sum(len(row.token_ids) for row in rows),
        "trained_tokens": figures.tokens,
        "executed_tests": sum(row.executed_tests for row in rows),
    }


def step_samples(step: int, groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    """The best and the worst completion of the first groups of a step, for reading."""
    for group in groups[:SAMPLED_GROUPS]:
        judged = sorted((row for row in group.rows if row.reward is not None), key=lambda row: row.reward)
        for row in [*judged[:1], *judged[1:][-1:]]:
            yield _sample(step, group, row)


def _sample(step: int, group: Group, row: Row) -> dict[str, Any]:
    return {
        "step": step,
        "prompt_id": group.prompt_id,
        "problem_id": group.prompt.problem_id,
        "turn": group.prompt.turn,
        "sample_index": row.sample_index,
        "reward": row.reward,
        "pass_rate": row.pass_rate,
        "verdict": row.verdict,
        "finish_reason": row.completion.finish_reason,
        "text": row.completion.text,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [float(value) for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _ratio(total: float, count: int) -> float | None:
    return total / count if count else None
