"""The training loop: let the algorithm practise, learn from it, hand the weights to the engine, write it down.

Float32 masters in the learner, a copy in the engine's type in the engine, the sandbox in processes of its own; under
`torchrun`, each process rolls out some of the prompts and holds a shard of the masters (`cobalt_train.ranks`). Killed at any
moment, a run resumes from its last checkpoint and repeats exactly what it did after it (on one machine and its library
versions, with the engine transformers): completions are seeded by (run seed, step, prompt, sample).

Left out: engines that do not work in token ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cobalt_data.dataset import Version
from cobalt_data.engines import engine_class
from cobalt_data.engines.token_engine import TokenEngine
from cobalt_data.models import ResolvedModel, latest_checkpoint, load_model, load_tokenizer, resolve_model
from cobalt_data.split import VALIDATION
from cobalt_train.algorithms import Practice, open_algorithm, practise_together
from cobalt_train.checkpoint import (
    RunIdentity,
    TrainState,
    clear_up,
    held_output,
    load_state,
    open_output,
    save_checkpoint,
    undamaged,
)
from cobalt_train.config import TrainConfig, with_engine
from cobalt_train.journal import Journal
from cobalt_train.learner import Learner
from cobalt_train.lora import adapt, restore_adapter
from cobalt_train.metrics import step_metrics, step_samples
from cobalt_train.prompts import groups_per_step, total_steps
from cobalt_train.ranks import Ranks, join, whole_weights
from cobalt_train.skeleton import fitting_skeleton
from cobalt_train.validation import score, validate
from sandbox import Pool

Metrics = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrainResult:
    """Where a finished run lies: the last checkpoint (a model directory), its metrics and its sample completions.

    `prompts` of the training split fitted, `prompts_too_long` were left out; online algorithms have one per problem.
    """

    checkpoint: Path
    metrics: Path
    samples: Path
    steps: int
    prompts: int
    prompts_too_long: int


class Trainer:
    """Trains a model on the prompts of a dataset version.

    Raises InputError for a dataset without usable prompts, a model that cannot be trained, an output directory that holds
    something else, or a resumed run that is not the same.
    """

    def __init__(
        self,
        config: TrainConfig,
        version: Version,
        model: str,
        output: Path,
        *,
        pool: Pool,
        resume: bool = False,
    ) -> None:
        self._output = output
        self._ranks = ranks = join()
        resolved = resolve_model(model)
        self._config = config = with_engine(config, ranks.size)
        skeleton = fitting_skeleton(config, resolved)
        self.engine = _open_engine(config, resolved, skeleton, ranks)
        self._algorithm = open_algorithm(version, self.engine, pool, config)
        self._validation = open_algorithm(version, self.engine, pool, config, VALIDATION) if config.eval_every else None
        self._prompts = self._algorithm.prompts
        self._groups = groups_per_step(config, len(self._prompts.by_id))
        self.steps = total_steps(config, len(self._prompts.by_id))
        self._run = RunIdentity(version.id, resolved.name, resolved.revision, self._algorithm.template, asdict(config))
        with ExitStack() as held:
            if ranks.writes:
                held.enter_context(held_output(output, resume))
                open_output(output, self._run, resume)
            ranks.wait()
            self._restore(resolved)
            self._held = held.pop_all()

    def _restore(self, resolved: ResolvedModel) -> None:
        """Stands where the last checkpoint does, or at the beginning."""
        config, ranks, output = self._config, self._ranks, self._output
        checkpoint = latest_checkpoint(output)
        policy = _load_policy(config, resolved, checkpoint).to(ranks.device)
        reference = load_model(resolved, "float32").to(ranks.device) if config.kl_coefficient else None
        longest = min(config.max_prompt_tokens + config.max_tokens, self.engine.context)
        self.learner = Learner(policy, reference, resolved.name, longest, config, ranks)
        self._state = load_state(checkpoint, policy, self.learner.optimizer, ranks) if checkpoint else TrainState()
        self.learner.updates = self._state.updates
        if checkpoint:
            clear_up(output, self._state, config.keep_last, ranks)
        self.engine.update_weights(whole_weights(policy))
        self._metrics = Journal(output / "metrics.jsonl", self._state.step, ranks.writes)
        self._samples = Journal(output / "samples.jsonl", self._state.step, ranks.writes)

    @property
    def next_step(self) -> int:
        return self._state.step + 1

    def run(self, progress: Callable[[Metrics], None] | None = None) -> TrainResult:
        """Trains to the last step; `progress` gets each step's metrics. Raises CobaltError, with the last checkpoint intact.

        A run that has come so far already is only told where it lies.
        """
        with self._held:
            checkpoint = latest_checkpoint(self._output)
            while self._state.step < self.steps:
                metrics = self._step()
                if progress is not None:
                    progress(metrics)
                if self._is_due(self._config.save_every) or self._state.best_step == self._state.step:
                    checkpoint = save_checkpoint(
                        self._output,
                        self._state,
                        self._run,
                        self.learner.model,
                        self.engine.tokenizer,
                        self.learner.optimizer,
                        self._config.keep_last,
                        self._ranks,
                    )
        assert checkpoint is not None  # one at least was saved, now or before
        return TrainResult(
            checkpoint=checkpoint,
            metrics=self._metrics.path,
            samples=self._samples.path,
            steps=self._state.step,
            prompts=len(self._prompts.by_id),
            prompts_too_long=self._prompts.too_long,
        )

    def _is_due(self, every: int) -> bool:
        """Of what is done every so many steps, and at the last."""
        return bool(every) and (self._state.step % every == 0 or self._state.step == self.steps)

    def _practise(self, step: int) -> Practice:
        prompts = self._prompts.take(self._config.seed, self._state.cursor, self._groups)
        return practise_together(self._algorithm, step, prompts, self._ranks)

    def _step(self) -> Metrics:
        config, step = self._config, self._state.step + 1
        learning_rate = self.learner.learning_rate
        practice = self._practise(step)
        self.engine.sleep()

        started = time.perf_counter()
        figures = self.learner.learn(practice.lesson.batches)
        learned = time.perf_counter()
        self.engine.update_weights(whole_weights(self.learner.model))
        handed_over = time.perf_counter()

        cursor = self._state.cursor + self._groups
        self._state = replace(self._state, step=step, updates=self.learner.updates, cursor=cursor)
        metrics = {"step": step, "steps": self.steps, "epoch": self._state.cursor / len(self._prompts.by_id)}
        metrics |= step_metrics(practice.groups, practice.lesson, figures)
        metrics["learning_rate"] = learning_rate
        if self._validation is not None and self._is_due(config.eval_every):
            metrics["validation"] = validate(self._validation, self._ranks)
            self._state = self._state.with_validation(score(metrics["validation"], config.algo))
        metrics["tokens_per_second"] = metrics["generated_tokens"] / practice.generate_seconds
        metrics["seconds"] = {
            "generate": practice.generate_seconds,
            "judge": practice.judge_seconds,
            "learn": learned - started,
            "hand_over": handed_over - learned,
        }
        for sample in step_samples(step, practice.groups):
            self._samples.append(sample)
        self._metrics.append(metrics)
        return metrics


def _load_policy(config: TrainConfig, resolved: ResolvedModel, checkpoint: Path | None) -> Any:
    """The float32 masters, as they are at the beginning or in a checkpoint."""
    if checkpoint and not config.lora_rank:
        with undamaged(checkpoint):
            return load_model(ResolvedModel(resolved.name, checkpoint, resolved.revision), "float32")
    policy = load_model(resolved, "float32")
    if config.lora_rank:
        adapt(policy, config, resolved.path)
    if checkpoint:
        with undamaged(checkpoint):
            restore_adapter(policy, checkpoint)
    return policy


def _open_engine(config: TrainConfig, resolved: ResolvedModel, skeleton: Any, ranks: Ranks) -> TokenEngine:
    """The engine that completions are drawn with; it is handed the weights before the first."""
    engine = engine_class(config.engine)
    if config.engine == "vllm":
        return engine(
            resolved,
            dtype=config.engine_dtype,
            memory_share=config.engine_memory_share,
            max_model_len=config.max_prompt_tokens + config.max_tokens,
            trains=True,
            adapted=skeleton if config.lora_rank else None,
            sleep_level=config.sleep_level,
        )
    served = load_model(resolved, config.engine_dtype)
    if config.lora_rank:
        adapt(served, config, resolved.path)
    served.to(ranks.device)
    return engine(served, load_tokenizer(resolved), name=resolved.name, revision=resolved.revision)
