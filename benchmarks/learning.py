"""Does a model learn? Forty steps of Cobalt on the embedded problems, and Pass@1 on held-out ones before and after.

`python -m benchmarks.learning [-o DIRECTORY]` gives the commands that a user would, one after the other, and prints them:
SmolLM2-135M collects trajectories of easy problems, which are cut, perturbed and deduplicated; it is trained on the prompts; both
models are evaluated on all problems of the two held-out sides, easy or not: new variants of families that were trained on
(`test_variants`) and families that were not (`test_families`). Then the table of what changed, with paired intervals, and a
picture of it. An hour or two on two cores. What is finished is kept in the directory: given again, the command goes on.

The claim is that the paired difference on `test_variants` is above 0 at the last turn, with its whole interval.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.claims import Claim, print_machine, report
from cobalt_data.charts import curve_picture, write_picture
from cobalt_data.models import checkpoint_directory
from cobalt_train.evaluation import Evaluation, compare
from cobalt_train.reporting import CURVES, scores_table

COBALT = (sys.executable, "-c", "import cli; cli.main()")
MODEL = ("-m", "smollm2-135m", "--engine", "transformers")
TOKENS = ("--max-tokens", "64")
SIDES = ("test_variants", "test_families")
Pair = tuple[Evaluation, Evaluation]  # before and after
ENDS = 5  # steps whose mean reward is the reward at the beginning and at the end


def make_dataset(home: Path) -> None:
    """The prompts to learn from, in `home/dataset`, and the problems to be evaluated on, in `home/problems`."""
    dataset, problems = str(home / "dataset"), str(home / "problems")
    for words in (
        ("import", "embedded", "-o", problems),
        ("split", problems),
        ("import", "embedded", "--difficulty", "easy", "-o", dataset),
        ("split", dataset),
        ("collect", dataset, *MODEL, "--split", "train", "--limit", "120", "-n", "4", "--turns", "3", *TOKENS),
        ("cut", dataset, "--select", "improving"),
        ("augment", dataset, "--perturb", "--fraction", "0.3"),
        ("dedup", dataset),
    ):
        run(home, "data", *words)


def train(home: Path) -> None:
    run(
        home,
        *("train", str(home / "dataset"), *MODEL, "--preset", "cpu-small", "--steps", "40", *TOKENS),
        *("--set", "prompts_per_step=8", "--set", "save_every=10", "-o", str(home / "model")),
    )


def evaluate(home: Path, model: str, side: str) -> Evaluation:
    words = ("eval", model, str(home / "problems"), "--split", side, "--turns", "3", "-n", "2", *TOKENS)
    printed = run(home, *words, "--engine", "transformers", "--json")
    return Evaluation.from_json(json.loads(printed))


def run(home: Path, *words: str) -> str:
    """What a command prints, now or when it was first given here."""
    kept = home / "printed.json"
    printed: dict[str, str] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    command = " ".join(words).replace(f"{home}/", "")
    if command not in printed:
        print(f"cobalt {command}", flush=True)
        resume = ("--resume",) if (home / "model" / "run.json").exists() and words[0] == "train" else ()
        done = subprocess.run([*COBALT, *words, *resume], check=True, stdout=subprocess.PIPE, text=True)
        printed[command] = done.stdout
        kept.write_text(json.dumps(printed, indent=1), encoding="utf-8")
    return printed[command]


def metrics_of(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "model" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def draw(home: Path, metrics: Sequence[Mapping[str, Any]], pairs: Mapping[str, Pair]) -> Path:
    curves = {name: CURVES[name] for name in ("reward", "solved_share", "entropy", "grad_norm")}
    scores = {
        f"Pass@1, {side}": {
            name: [(score.pass_at_1, score.low, score.high) for score in evaluation.scores]
            for name, evaluation in zip(("before", "after"), pair, strict=True)
        }
        for side, pair in pairs.items()
    }
    file = home / "learning.png"
    write_picture(curve_picture(metrics, curves, scores), file)
    return file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("learning"), help="a directory for all that is made")
    home: Path = parser.parse_args().output
    home.mkdir(parents=True, exist_ok=True)
    print_machine()
    make_dataset(home)
    before = {side: evaluate(home, "smollm2-135m", side) for side in SIDES}
    train(home)
    trained = str(checkpoint_directory(home / "model"))
    pairs = {side: (before[side], evaluate(home, trained, side)) for side in SIDES}
    metrics = metrics_of(home)
    at_first, at_last = ([row["reward"] for row in part] for part in (metrics[:ENDS], metrics[-ENDS:]))
    console = Console(width=120)
    print(
        f"mean reward on training prompts: {statistics.mean(at_first):+.3f} in the first {ENDS} of {len(metrics)} steps, "
        f"{statistics.mean(at_last):+.3f} in the last"
    )
    for side, (first, last) in pairs.items():
        columns = {"before": first.scores, "after": last.scores, "difference": compare(first, last)}
        console.print(scores_table(columns, f"Pass@1 per turn, {side}, {len(first.programs)} problems"))
    print(draw(home, metrics, pairs))
    gain = compare(*pairs["test_variants"])[-1]
    name = f"gain at turn {gain.turn} on test_variants, lower end of its 95 % interval"
    return report([Claim(name, 100 * gain.low, 0.1, unit=" points")])


if __name__ == "__main__":
    sys.exit(main())
