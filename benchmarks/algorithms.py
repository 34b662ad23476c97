"""What a step of each algorithm costs: cobalt, grpo-mt and verpo on the same model, problems and settings, in one run.

`python -m benchmarks.algorithms [--quick]`: SmolLM2-135M collects a few trajectories of easy embedded problems, which are cut
into prompts for cobalt; the online algorithms start from the training problems themselves. Each then makes 5 steps of 2
groups of 4 (1 group, fewer turns and shorter programs, given `--quick`); the table shows what a step took on average. With equal
groups an online step writes a program per turn where cobalt writes one; which of them learns more from it is not measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import torch

from benchmarks.claims import Claim, print_machine, report
from cobalt_data.collection import CollectConfig, collect
from cobalt_data.commit import commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.dataset import Version
from cobalt_data.engines.base import Sampling
from cobalt_data.engines.transformers import TransformersEngine
from cobalt_data.importers import import_problems
from cobalt_data.models import EMBEDDED
from cobalt_data.split import SplitConfig, split
from cobalt_train.config import ALGORITHMS, load_config
from cobalt_train.trainer import Trainer
from sandbox import Pool

COLUMNS = ("generated_tokens", "trained_tokens", "executed_tests", "seconds")
STEPS, SAMPLES = 5, 4


@dataclass(frozen=True, slots=True)
class Size:
    """Of a step: groups, programs per trajectory, tokens of a program at most."""

    groups: int
    turns: int
    max_tokens: int


FULL, QUICK = Size(2, 3, 96), Size(1, 2, 32)


def make_dataset(directory: Path, pool: Pool, size: Size) -> Version:
    """Prompts of the model's own trajectories on the training side of the easy embedded problems."""
    imported = import_problems(None, "embedded").of_difficulty("easy")
    version = commit(imported.as_change("embedded", format="embedded", difficulty="easy"), dataset=directory)
    version = commit(split(version, SplitConfig()), [version])
    engine = TransformersEngine.load(EMBEDDED)
    sampling = Sampling(temperature=0.6, top_p=0.95, max_tokens=size.max_tokens)
    wanted = CollectConfig(n=SAMPLES, turns=size.turns, sampling=sampling, split="train", limit=2 * size.groups)
    with collect(version, engine, pool, wanted) as collected:
        version = commit(collected.change, [version])
    return commit(cut(version, CutConfig(EMBEDDED, "improving"), engine.count_tokens), [version])


def run(algo: str, dataset: Version, directory: Path, pool: Pool, size: Size) -> dict[str, float]:
    """The mean of every column over the steps of a run."""
    config = load_config(
        preset="cpu-small",
        algo=algo,
        steps=STEPS,
        save_every=STEPS,
        prompts_per_step=size.groups,
        group_size=SAMPLES,
        turns=size.turns,
        max_tokens=size.max_tokens,
    )
    result = Trainer(config, dataset, EMBEDDED, directory / algo, pool=pool).run()
    rows: list[dict[str, Any]] = [json.loads(line) for line in result.metrics.read_text().splitlines()]
    for row in rows:
        row["seconds"] = sum(row["seconds"].values())
    return {name: statistics.fmean(row[name] for row in rows) for name in COLUMNS}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a group of 2 turns of 32 tokens, not 2 of 3 of 96")
    parser.add_argument("--backend", default="auto", help="of the sandbox")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else FULL
    print_machine()
    print(f"torch {installed('torch')}, {torch.get_num_threads()} threads")
    print(f"per step, mean of {STEPS}  " + "".join(f"{name.replace('_', ' '):>18}" for name in COLUMNS), flush=True)
    costs = {}
    with tempfile.TemporaryDirectory() as directory, Pool(backend=arguments.backend) as pool:
        dataset = make_dataset(Path(directory) / "dataset", pool, size)
        for algo in ALGORITHMS:
            costs[algo] = run(algo, dataset, Path(directory), pool, size)
            print(f"{algo:21}" + "".join(f"{costs[algo][name]:18.1f}" for name in COLUMNS), flush=True)
    ratio = min(costs[algo]["generated_tokens"] for algo in ("grpo-mt", "verpo")) / costs["cobalt"]["generated_tokens"]
    return report([Claim("algorithms: tokens that an online step writes against cobalt's", ratio, 1.0, unit="x")])


if __name__ == "__main__":
    sys.exit(main())
