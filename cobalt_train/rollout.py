"""Groups: the completions of a prompt, drawn, executed and rewarded.

Programs run in the sandbox as soon as their completions are there, while the engine draws the next group. A completion's seed
is a hash of (run seed, step, prompt, sample index), and groups come back in the order of their prompts: neither timing nor
the number of workers can change a result. Where the sandbox itself failed, the completion has no reward and is masked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

import torch
from torch import Tensor

from cobalt_data.engines.base import Completion
from cobalt_data.engines.token_engine import TokenEngine
from cobalt_data.errors import InputError, SandboxError
from cobalt_data.ids import derive_seed
from cobalt_data.programs import extract_program
from cobalt_data.rows import Prompt
from cobalt_data.units import work_through
from cobalt_train.config import TrainConfig
from cobalt_train.rewarding import Rewarder
from sandbox import Pool, ProgramResult, Verdict

ROWS_PER_CALL = 128  # of the engine: enough to keep it busy, and early enough for the sandbox to run meanwhile


@dataclass(frozen=True, slots=True)
class Row:
    """One completion. `verdict`, `pass_rate` and `reward` are None where the sandbox failed to judge its program."""

    sample_index: int
    completion: Completion
    program: str | None
    verdict: Verdict | None
    pass_rate: float | None
    reward: float | None
    executed_tests: int = 0

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
    """A prompt, as the token ids that were served, and its completions by sample index."""

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
    prompts: Mapping[str, Prompt],
    step: int,
    engine: TokenEngine,
    pool: Pool,
    rewarder: Rewarder,
    config: TrainConfig,
) -> RolledOut:
    """Completes each prompt `config.group_size` times. Raises InputError, EngineError or SandboxUnavailable."""
    started = time.perf_counter()
    ids = list(prompts)
    size = max(1, ROWS_PER_CALL // config.group_size)
    parts = [ids[start : start + size] for start in range(0, len(ids), size)]

    def draw(part: int, _: threading.Event) -> list[_Drawn]:
        return _draw({prompt_id: prompts[prompt_id] for prompt_id in parts[part]}, step, engine, pool, config)

    if len(parts) == 1:  # in this thread: memory that another one frees does not serve the learner, which comes next
        drawn = draw(0, threading.Event())
    else:
        finished = dict(work_through(range(len(parts)), draw, engine.parallel_calls))
        drawn = [group for part in range(len(parts)) for group in finished[part]]
    generated = time.perf_counter()
    groups = tuple(_judged(group, prompts[group.prompt_id], rewarder) for group in drawn)
    return RolledOut(groups, generated - started, time.perf_counter() - generated)


def executed(verdicts: Iterable[Verdict]) -> int:
    """How many of a program's tests ran: none, where there was nothing to run."""
    return sum(verdict not in (Verdict.NO_CODE, Verdict.SYNTAX_ERROR) for verdict in verdicts)


@dataclass(frozen=True, slots=True)
class _Drawn:
    prompt_id: str
    prompt_ids: tuple[int, ...]
    completions: tuple[Completion, ...]
    programs: tuple[str | None, ...]
    results: tuple[Future[ProgramResult], ...]


def _draw(
    prompts: Mapping[str, Prompt], step: int, engine: TokenEngine, pool: Pool, config: TrainConfig
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


def _judged(drawn: _Drawn, prompt: Prompt, rewarder: Rewarder) -> Group:
    """Waits for the verdicts of a group and turns them into rewards."""
    rows = []
    for sample, (completion, program, future) in enumerate(
        zip(drawn.completions, drawn.programs, drawn.results, strict=True)
    ):
        try:
            result = future.result()
        except SandboxError:
            rows.append(Row(sample, completion, program, verdict=None, pass_rate=None, reward=None))
            continue
        except InputError as error:
            raise InputError(f"prompt {drawn.prompt_id}: {error}") from None
        label = f"completion {sample} of prompt {drawn.prompt_id}"
        reward = rewarder(label, completion, program, result.pass_rate, prompt.prev_best_pass_rate)
        tests = executed(test.verdict for test in result.tests)
        rows.append(Row(sample, completion, program, result.verdict, result.pass_rate, reward, tests))
    return Group(drawn.prompt_id, prompt, drawn.prompt_ids, tuple(rows))
