"""A training step against TRL's `GRPOTrainer`: same model, prompts, number of completions and tokens, on the same machine.

`python -m benchmarks.trainer [--quick]`: SmolLM2-135M in bfloat16, two prompts a step, 16 completions of 64 tokens each, the
reward a function of the text on both sides (no sandbox, no logging: what is compared is generating, scoring and updating).
Each side runs alone in a process of its own, so that its peak memory is its own. TRL has its defaults but for what must be
equal; it trains bfloat16 weights, cobalt float32 masters. `--quick`: one step of TRL's, and no long prompts.

Needs `trl` (the extra dev) beside cobalt.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.claims import Claim, print_machine, report
from benchmarks.generation import TASKS

MODEL = "smollm2-135m"
COMPLETIONS = 16
NEW_TOKENS = 64
LEARNING_RATE = 1e-6
SHORT, LONG = 430, 1_500  # tokens of a prompt, roughly
TRL_ROWS = {SHORT: 16, LONG: 4}  # of one backward pass: what fits into the memory of a laptop

GOAL_STEP, GOAL_MEMORY, GOAL_UPDATE = 6.0, 0.5, 4.0


def chats(tokens: int) -> list[list[dict[str, str]]]:
    lines = (tokens - 70) * 24 // 360  # 24 lines of the table are about 360 tokens
    table = "\n".join(f"row {row}: {row * 7 % 13}, {row * 11 % 17}, {row * 5 % 19}" for row in range(lines))
    return [[{"role": "user", "content": f"{task}\n{table}\n{task}"}] for task in TASKS]


def reward(text: str) -> float:
    """Something that varies within a group: the share of its characters that are letters."""
    return sum(character.isalpha() for character in text) / max(1, len(text))


def peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


class Cobalt:
    """The parts of `cobalt_train.trainer`, stepped without dataset, sandbox and checkpoints."""

    def __init__(self, tokens: int, shared_prefix: bool = True) -> None:
        from cobalt_data.engines.transformers import TransformersEngine
        from cobalt_data.models import load_model, resolve_model
        from cobalt_train.config import load_config
        from cobalt_train.learner import Learner

        self.config = load_config(
            preset="cpu-small",
            group_size=COMPLETIONS,
            prompts_per_step=len(TASKS),
            max_tokens=NEW_TOKENS,
            temperature=1.0,
            learning_rate=LEARNING_RATE,
            shared_prefix=shared_prefix,
            micro_batch_tokens=4_096,
        )
        self.engine = TransformersEngine.load(MODEL, "bfloat16")
        self.engine.stop_ids = frozenset()  # every completion runs to its last token, on both sides
        self.prompts = [self.engine.render(chat) for chat in chats(tokens)]
        self.learner = Learner(load_model(resolve_model(MODEL), "float32"), None, MODEL, 2 * tokens, self.config)
        self.engine.update_weights(self.learner.model.state_dict().items())
        self.drawn = 0

    def step(self) -> tuple[float, float]:
        """Seconds of generating and of updating."""
        began = time.perf_counter()
        batches = self.draw()
        drawn = time.perf_counter()
        self.engine.sleep()
        self.learner.learn(batches)
        self.engine.update_weights(self.learner.model.state_dict().items())
        return drawn - began, time.perf_counter() - drawn

    def draw(self) -> list[Any]:
        import torch

        from cobalt_train.advantages import ADVANTAGES
        from cobalt_train.batch import Batch, padded

        self.drawn += 1
        seeds = [[1_000 * self.drawn + sample for sample in range(COMPLETIONS)] for _ in self.prompts]
        groups = self.engine.complete_tokens(self.prompts, seeds, self.config.sampling())
        batches = []
        for index, (prompt, group) in enumerate(zip(self.prompts, groups, strict=True)):
            rewards = torch.tensor([[reward(completion.text) for completion in group]], dtype=torch.float64)
            advantages = ADVANTAGES[self.config.advantage](rewards, torch.ones_like(rewards, dtype=torch.bool))
            batches.append(
                Batch(
                    prompt_id=str(index),
                    prompt=tuple(prompt),
                    completions=tuple(completion.token_ids for completion in group),
                    advantages=advantages[0].float(),
                    engine_logprobs=padded([completion.logprobs for completion in group]),
                )
            )
        return batches


def run_cobalt(tokens: int, steps: int) -> dict[str, Any]:
    cobalt = Cobalt(tokens)
    cobalt.step()  # the first step checks the log-probabilities against the plain path
    seconds = [cobalt.step() for _ in range(steps)]
    return {
        "seconds": [sum(parts) for parts in seconds],
        "generate": statistics.median(parts[0] for parts in seconds),
        "update": statistics.median(parts[1] for parts in seconds),
        "prompt_tokens": list(map(len, cobalt.prompts)),
        "peak_mib": peak_mib(),
    }


def run_update(tokens: int, shared_prefix: bool) -> dict[str, Any]:
    """One update, after a first one that warms up, of the same completions on either path."""
    cobalt = Cobalt(tokens, shared_prefix)
    batches = cobalt.draw()
    cobalt.learner.learn(batches)
    began = time.perf_counter()
    cobalt.learner.learn(batches)
    return {"seconds": [time.perf_counter() - began], "peak_mib": peak_mib()}


def run_trl(tokens: int, steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as output:
        return _run_trl(tokens, steps, output)


def _run_trl(tokens: int, steps: int, output: str) -> dict[str, Any]:
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from cobalt_data.models import load_model, load_tokenizer, resolve_model

    resolved = resolve_model(MODEL)
    rows = TRL_ROWS[tokens]
    settings = GRPOConfig(
        output_dir=output,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=len(TASKS) * COMPLETIONS // rows,
        num_generations=COMPLETIONS,
        max_completion_length=NEW_TOKENS,
        generation_kwargs={"min_new_tokens": NEW_TOKENS},
        learning_rate=LEARNING_RATE,
        max_steps=steps,
        bf16=True,
        use_cpu=not torch.cuda.is_available(),
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    seconds: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            seconds.append(-time.perf_counter())

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            seconds[-1] += time.perf_counter()

    def rewards(completions: Sequence[Any], **_: Any) -> list[float]:
        return [reward(completion[0]["content"]) for completion in completions]

    trainer = GRPOTrainer(
        model=load_model(resolved, "bfloat16"),
        reward_funcs=rewards,
        args=settings,
        train_dataset=Dataset.from_list([{"prompt": chat} for chat in chats(tokens)]),
        processing_class=load_tokenizer(resolved),
        callbacks=[Clock()],
    )
    trainer.train()
    return {"seconds": seconds, "peak_mib": peak_mib()}


SIDES = {
    "cobalt": run_cobalt,
    "trl": run_trl,
    "update-shared": lambda tokens, steps: run_update(tokens, shared_prefix=True),
    "update-plain": lambda tokens, steps: run_update(tokens, shared_prefix=False),
}


def measure(side: str, tokens: int, steps: int) -> dict[str, Any]:
    """Runs one side alone, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.trainer",
        "--side",
        side,
        "--tokens",
        str(tokens),
        "--steps",
        str(steps),
    ]
    with tempfile.NamedTemporaryFile("r") as result:
        subprocess.run([*command, "--result", result.name], check=True, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.load(result)
    found["median"] = statistics.median(found["seconds"])
    print(
        f"{side}, prompts of about {tokens} tokens: {found['median']:.1f} s, peak {found['peak_mib']} MiB", flush=True
    )
    return found


def claims(quick: bool) -> Iterator[Claim]:
    ours, theirs = measure("cobalt", SHORT, 3 if quick else 8), measure("trl", SHORT, 1 if quick else 3)
    faster, share = theirs["median"] / ours["median"], ours["peak_mib"] / theirs["peak_mib"]
    print(
        f"cobalt: {ours['generate']:.1f} s generating, {ours['update']:.1f} s updating; prompts {ours['prompt_tokens']}"
    )
    yield Claim("steps/s against TRL", faster, GOAL_STEP, unit="x")
    yield Claim("peak memory against TRL", share, GOAL_MEMORY, at_most=True, unit="x")
    update = measure("update-plain", SHORT, 1)["median"] / measure("update-shared", SHORT, 1)["median"]
    yield Claim("update against the plain path", update, GOAL_UPDATE, unit="x")
    if not quick:
        ours, theirs = measure("cobalt", LONG, 3), measure("trl", LONG, 1)
        grown = theirs["median"] / ours["median"]
        yield Claim(f"steps/s against TRL, prompts of {LONG} tokens", grown, round(faster, 2), unit="x")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer steps, and short prompts alone")
    for name, kind in (("--side", str), ("--tokens", int), ("--steps", int), ("--result", Path)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        given.result.write_text(json.dumps(SIDES[given.side](given.tokens, given.steps)))
        return 0
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "trl"))
    print_machine()
    print(versions)
    return report(claims(given.quick))


if __name__ == "__main__":
    sys.exit(main())
