"""The three algorithms. The trainer is one; what differs is who makes the prompts, the reward and the advantage.

- `cobalt` (arXiv 2602.03806): the dataset makes the prompts, each is completed with one program, the n completions of a
  prompt are a group.
- `grpo-mt`: the policy makes the prompts, in whole trajectories; the reward of the final (or best) program is the
  trajectory's, and so is the advantage, for all of its turns.
- `verpo` (arXiv 2601.03525): as `grpo-mt`, with a dense reward for every turn beside the outcome.

Each takes the same problems in the same order for the same seed, as far as its dataset lets it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cobalt_data.dataset import Version
from cobalt_data.engines.token_engine import TokenEngine
from cobalt_data.errors import InputError
from cobalt_data.rows import Problem, Prompt
from cobalt_data.split import TRAIN
from cobalt_data.templates import AUTO, Template, template_for
from cobalt_train.batch import Lesson, batch_of, make_lesson
from cobalt_train.config import TrainConfig
from cobalt_train.online import Attempts, Credit, grpo_mt_credit, roll_out_problems, rows_of, verpo_credit
from cobalt_train.prompts import PromptSet, load_problems, load_prompts, longest_prompt
from cobalt_train.ranks import Ranks
from cobalt_train.rewarding import Rewarder
from cobalt_train.rollout import Group, roll_out_groups
from sandbox import Pool


@dataclass(frozen=True, slots=True)
class Practice:
    """What the policy did in one step and what there is to learn from it; seconds of wall-clock time."""

    groups: tuple[Group, ...]
    lesson: Lesson
    generate_seconds: float
    judge_seconds: float


def merged(parts: Sequence[Practice | None]) -> Practice:
    """What several processes did at the same time, each with the prompts that follow those of the one before, if any."""
    done = [part for part in parts if part is not None]
    lessons = [part.lesson for part in done]
    return Practice(
        tuple(group for part in done for group in part.groups),
        Lesson(
            tuple(batch for lesson in lessons for batch in lesson.batches),
            sum(lesson.dead_groups for lesson in lessons),
            sum(lesson.masked_rows for lesson in lessons),
        ),
        max(part.generate_seconds for part in done),
        max(part.judge_seconds for part in done),
    )


class Algorithm(Protocol):
    prompts: PromptSet[Any]
    template: Mapping[str, Any] | None  # name and hash of what words the prompts, where that is known

    def practise(self, step: int, prompts: Mapping[str, Any]) -> Practice:
        """Rolls out some of its prompts, by id. Raises InputError, EngineError or SandboxUnavailable."""
        ...


def practise_together(algorithm: Algorithm, step: int, prompts: Mapping[str, Any], ranks: Ranks) -> Practice:
    """What all processes did, each with consecutive prompts of these; to be called by all of them."""
    own = {prompt_id: prompts[prompt_id] for prompt_id in ranks.share(list(prompts))}
    return merged(ranks.gather(algorithm.practise(step, own) if own else None))


def open_algorithm(
    version: Version, engine: TokenEngine, pool: Pool, config: TrainConfig, side: str = TRAIN
) -> Algorithm:
    """The algorithm over the prompts of a side.

    Raises InputError for a dataset that the algorithm cannot use, or a reward that cannot be loaded.
    """
    return (Cobalt if config.algo == "cobalt" else Online)(version, engine, pool, config, side)


class Cobalt:
    """Groups of single completions of the dataset's prompts."""

    def __init__(self, version: Version, engine: TokenEngine, pool: Pool, config: TrainConfig, side: str) -> None:
        self._engine, self._pool, self._config = engine, pool, config
        self._rewarder = Rewarder(config.reward, engine.tokenizer)
        self.template = collected_with(version)
        self.prompts = load_prompts(version, engine.count_tokens, longest_prompt(config, engine.context), side)

    def practise(self, step: int, prompts: Mapping[str, Prompt]) -> Practice:
        rolled = roll_out_groups(prompts, step, self._engine, self._pool, self._rewarder, self._config)
        lesson = make_lesson(rolled.groups, self._config.advantage)
        return Practice(rolled.groups, lesson, rolled.generate_seconds, rolled.judge_seconds)


class Online:
    """Groups of whole trajectories of the dataset's problems, for `grpo-mt` and `verpo`."""

    def __init__(self, version: Version, engine: TokenEngine, pool: Pool, config: TrainConfig, side: str) -> None:
        self._engine, self._pool, self._config = engine, pool, config
        self._rewarder = Rewarder(config.reward, engine.tokenizer)
        self._template = online_template(version, engine.model, config)
        self._longest = longest_prompt(config, engine.context)
        self.template = {"name": self._template.name, "hash": self._template.hash}
        self.prompts = load_problems(version, self._template, engine.count_tokens, self._longest, side)

    def practise(self, step: int, prompts: Mapping[str, Problem]) -> Practice:
        rolled = roll_out_problems(
            list(prompts.values()), step, self._engine, self._pool, self._template, self._longest, self._config
        )
        groups, batches, dead = [], [], 0
        for attempts in rolled.attempts:
            if not attempts.trajectories:
                dead += 1
                continue
            credit = self._credit(attempts)
            dead += credit.dead
            for group, advantages in rows_of(attempts, credit, self._engine):
                groups.append(group)
                if not credit.dead:
                    batches.append(batch_of(group, advantages))
        lesson = Lesson(tuple(batches), dead, rolled.masked)
        return Practice(tuple(groups), lesson, rolled.generate_seconds, rolled.judge_seconds)

    def _credit(self, attempts: Attempts) -> Credit:
        if self._config.algo == "verpo":
            return verpo_credit(attempts, self._config)
        return grpo_mt_credit(attempts, self._rewarder, self._config)


def collected_with(version: Version) -> Mapping[str, Any] | None:
    """Name and hash of the template that the version's trajectories were collected with; None where they do not tell."""
    first = next(version.rows("trajectories", columns=["sampling"]), None) if version.has("trajectories") else None
    sampling = json.loads(first["sampling"]) if first else {}
    return {"name": sampling["template"], "hash": sampling["template_hash"]} if sampling.get("template") else None


def online_template(version: Version, model: str, config: TrainConfig) -> Template:
    """What words the prompts of a rollout: as set, else as the dataset's trajectories, else what suits the model.

    Raises InputError where the trajectories' template is not to be had any more.
    """
    collected = collected_with(version)
    if config.template != AUTO or collected is None:
        return template_for(config.template, model)
    template = Template.load(collected["name"])
    if template.hash != collected["hash"]:
        raise InputError(
            f"template {template.name} has changed since the trajectories of {version.reference} were made: name the one to "
            "roll out with, such as --set template=paper"
        )
    return template
