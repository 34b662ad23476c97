"""Generation of the embedded engine against `generate` of transformers: same model, prompts, sampling and token counts.

`python -m benchmarks.generation [--quick]`: two prompts of about 430 tokens, 16 completions of 64 tokens each, SmolLM2-135M.
Both sides run in this process and take turns, so that what else the machine does falls on both; the medians are compared.

The engine vllm is printed beside them, warm, where an interpreter that has it is found (`.ci/vllm` makes one) or given:
`--vllm PYTHON`. It runs in a process of its own, after the others.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.claims import Claim, print_machine, report
from cobalt_data.engines import Sampling
from cobalt_data.engines.token_engine import TokenEngine
from cobalt_data.engines.transformers import TransformersEngine

GOAL = 3.0
COMPLETIONS = 16
NEW_TOKENS = 64
VLLM_PYTHON = ".venv-vllm/bin/python"
TASKS = (
    "Write a Python program that reads the table below and prints the sum of each column.",
    "Write a Python program that reads the table below and prints its rows, the longest first.",
)


def prompt_ids(engine: TokenEngine, task: str) -> list[int]:
    table = "\n".join(f"row {row}: {row * 7 % 13}, {row * 11 % 17}, {row * 5 % 19}" for row in range(24))
    return engine.render([{"role": "user", "content": f"{task}\n{table}\n{task}"}])


def run_engine(engine: TokenEngine, prompts: list[list[int]]) -> int:
    seeds = [list(range(COMPLETIONS)) for _ in prompts]
    sampling = Sampling(temperature=1.0, top_p=1.0, max_tokens=NEW_TOKENS)
    groups = engine.complete_tokens(prompts, seeds, sampling)
    return sum(completion.completion_tokens for group in groups for completion in group)


def run_generate(engine: TransformersEngine, prompts: list[list[int]]) -> int:
    batch = engine.tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt")
    rows = engine.module.generate(
        **batch.to(engine.module.device),
        do_sample=True,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        num_return_sequences=COMPLETIONS,
        min_new_tokens=NEW_TOKENS,
        max_new_tokens=NEW_TOKENS,
    )
    return rows.shape[0] * (rows.shape[1] - batch["input_ids"].shape[1])


def tokens_per_second(work: Callable[[], int]) -> float:
    began = time.perf_counter()
    return work() / (time.perf_counter() - began)


def measure_vllm(rounds: int) -> None:
    """Prints the speed of the engine vllm in this process, once it is warm."""
    from cobalt_data.engines import vllm_version
    from cobalt_data.engines.vllm import VllmEngine

    engine = VllmEngine.load("smollm2-135m", max_model_len=1024)
    engine.stop_ids = frozenset()
    prompts = [prompt_ids(engine, task) for task in TASKS]
    run_engine(engine, prompts)
    speeds = [tokens_per_second(lambda: run_engine(engine, prompts)) for _ in range(rounds)]
    print(f"engine vllm, warm: {statistics.median(speeds):.0f} tokens/s ({vllm_version()})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round instead of five")
    parser.add_argument("--vllm", metavar="PYTHON", default=VLLM_PYTHON, help="an interpreter that has vLLM")
    parser.add_argument("--vllm-alone", action="store_true", help="measure the engine vllm here, and nothing else")
    chosen = parser.parse_args()
    rounds = 1 if chosen.quick else 5
    if chosen.vllm_alone:
        measure_vllm(rounds)
        return 0
    engine = TransformersEngine.load("smollm2-135m")
    engine.stop_ids = frozenset()  # every completion runs to its last token, on both sides
    prompts = [prompt_ids(engine, task) for task in TASKS]
    print_machine()
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    print(
        f"{versions}, {torch.get_num_threads()} threads, {engine.module.dtype}, prompts of {list(map(len, prompts))} tokens"
    )
    run_engine(engine, [prompt[:64] for prompt in prompts])
    pairs = []
    for _ in range(rounds):
        pairs.append(
            (
                tokens_per_second(lambda: run_engine(engine, prompts)),
                tokens_per_second(lambda: run_generate(engine, prompts)),
            )
        )
        print(f"engine {pairs[-1][0]:.0f} tokens/s, generate {pairs[-1][1]:.0f} tokens/s", flush=True)
    if Path(chosen.vllm).is_file():
        quick = ["--quick"] if chosen.quick else []
        subprocess.run([chosen.vllm, "-m", "benchmarks.generation", "--vllm-alone", *quick], check=False)
    ratio = statistics.median(ours for ours, _ in pairs) / statistics.median(theirs for _, theirs in pairs)
    return report([Claim("generation against generate of transformers", ratio, GOAL, unit="x")])


if __name__ == "__main__":
    sys.exit(main())
