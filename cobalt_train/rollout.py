"""Groups: the completions of a prompt, drawn, executed and rewarded.

Programs run in the sandbox as soon as their completions are there, while the engine draws the next group. A completion's seed
is a hash of (run seed, step, prompt, sample index), and groups come back in the order of their prompts: neither timing nor
the number of workers can change a result. Where the sandbox itself failed, the completion has no reward and is masked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cobalt_data.engines.base import Completion
from cobalt_data.engines.transformers import TransformersEngine
from cobalt_data.errors import InputError, SandboxError
from cobalt_data.ids import derive_seed
from cobalt_data.programs import THINK_END, extract_program
from cobalt_data.rows import Prompt
from cobalt_train.config import TrainConfig
from cobalt_train.reward import REWARDS, Reward, RewardInput, count_parts
from sandbox import Pool, ProgramResult, Verdict

ROWS_PER_CALL = 128  # of the engine: enough to keep it busy, and early enough for the sandbox to run meanwhile


@dataclass(frozen=True, slots=True)
class Row:
    """One completion. `verdict`, `pass_rate` and `reward` are None where the sandbox failed to judge its program."""

    completion: Completion
    program: str | None
    verdict: Verdict | None
    pass_rate: float | None
    reward: float | None

    @property
    def token_ids(self) -> tuple[int, ...]:
        assert self.completion.token_ids is not None  # token engines only
        return self.completion.token_ids

    @property
    def logprobs(self) -> tuple[float, ...]:
        assert self.completion.logprobs is not None
        return self.completion.logprobs


@dataclass(frozen=True, slots=True)
class Group:
    """A prompt, as the token ids that were served, and its rows by sample index."""

    prompt_id: str
    prompt: Prompt
    prompt_ids: tuple[int, ...]
    rows: tuple[Row, ...]

    @property
    def rewards(self) -> Tensor:
        """(n,) float64; 0 where there is no reward."""
        return torch.tensor([row.reward or 0.0 for row in self.rows], dtype=torch.float64)

    @property
    def valid(self) -> Tensor:
        """(n,) bool: the rows that have a reward."""
        return torch.tensor([row.reward is not None for row in self.rows])


@dataclass(frozen=True, slots=True)
class RolledOut:
    """Wall-clock seconds: until the last completion was drawn, and from then until the last verdict."""

    groups: tuple[Group, ...]
    generate_seconds: float
    judge_seconds: float


def roll_out_groups(
    prompts: Mapping[str, Prompt], step: int, engine: TransformersEngine, pool: Pool, config: TrainConfig
) -> RolledOut:
    """Completes each prompt `config.group_size` times. Raises InputError, EngineError or SandboxUnavailable."""
    started = time.perf_counter()
    ids = list(prompts)
    size = max(1, ROWS_PER_CALL // config.group_size)
    parts = [ids[start : start + size] for start in range(0, len(ids), size)]

    def draw(part: Sequence[str]) -> list[_Drawn]:
        return _draw({prompt_id: prompts[prompt_id] for prompt_id in part}, step, engine, pool, config)

    if len(parts) == 1:
        drawn = draw(ids)  # in this thread: memory that another one frees does not serve the learner, which comes next
    else:
        with ThreadPoolExecutor(engine.parallel_calls) as threads:
            drawn = [group for part in threads.map(draw, parts) for group in part]
    generated = time.perf_counter()
    rewarder = _Rewarder(REWARDS[config.reward], engine.tokenizer)
    groups = tuple(rewarder.group(group, prompts[group.prompt_id]) for group in drawn)
    return RolledOut(groups, generated - started, time.perf_counter() - generated)


@dataclass(frozen=True, slots=True)
class _Drawn:
    prompt_id: str
    prompt_ids: tuple[int, ...]
    completions: tuple[Completion, ...]
    programs: tuple[str | None, ...]
    results: tuple[Future[ProgramResult], ...]


def _draw(
    prompts: Mapping[str, Prompt], step: int, engine: TransformersEngine, pool: Pool, config: TrainConfig
) -> list[_Drawn]:
    """Draws the completions of some prompts in one call and hands their programs to the sandbox."""
    rendered = [engine.render(prompt.prompt) for prompt in prompts.values()]
    seeds = [
        [derive_seed(config.seed, "completion", step, prompt_id, sample) for sample in range(config.group_size)]
        for prompt_id in prompts
    ]
    drawn = []
    for (prompt_id, prompt), prompt_ids, completions in zip(
        prompts.items(), rendered, engine.complete_tokens(rendered, seeds, config.sampling()), strict=True
    ):
        programs = tuple(extract_program(completion.text) for completion in completions)
        try:
            results = tuple(pool.submit(program, prompt.tests, prompt.judge) for program in programs)
        except InputError as error:
            raise InputError(f"prompt {prompt_id}: {error}") from None
        drawn.append(_Drawn(prompt_id, tuple(prompt_ids), tuple(completions), programs, results))
    return drawn


class _Rewarder:
    """Turns verdicts into rewards."""

    def __init__(self, reward: Reward, tokenizer: Any) -> None:
        self._reward = reward
        self._thinks = THINK_END in (tokenizer.chat_template or "")
        self._tokenizer = tokenizer

    def group(self, drawn: _Drawn, prompt: Prompt) -> Group:
        rows = tuple(
            self._row(drawn.prompt_id, prompt, *row)
            for row in zip(drawn.completions, drawn.programs, drawn.results, strict=True)
        )
        return Group(drawn.prompt_id, prompt, drawn.prompt_ids, rows)

    def _row(
        self,
        prompt_id: str,
        prompt: Prompt,
        completion: Completion,
        program: str | None,
        future: Future[ProgramResult],
    ) -> Row:
        try:
            result = future.result()
        except SandboxError:
            return Row(completion, program, verdict=None, pass_rate=None, reward=None)
        except InputError as error:
            raise InputError(f"prompt {prompt_id}: {error}") from None
        given = RewardInput(
            completion=completion.text,
            program=program,
            pass_rate=result.pass_rate,
            prev_best_pass_rate=prompt.prev_best_pass_rate,
            finish_reason=completion.finish_reason,
            thinks=self._thinks,
            **count_parts(completion.text, program, self._count_tokens),
        )
        reward = self._reward(given)
        if not math.isfinite(reward):
            raise InputError(
                f"the reward of a completion of prompt {prompt_id} is {reward}: a reward is a finite number"
            )
        return Row(completion, program, result.verdict, result.pass_rate, reward)

    def _count_tokens(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])
