"""`cobalt demo`: the whole loop on the embedded model and problems, small enough for a laptop.

It calls what the commands call, with settings that fit into ten minutes on two cores, and shows how the parts are used from
Python. All that it makes lies in one directory. What is there already, from a demo that was interrupted, is not made again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cobalt_data.collection import CollectConfig, collect
from cobalt_data.commit import Change, commit
from cobalt_data.console import Screen, clock, moment
from cobalt_data.cut import CutConfig, Select, cut
from cobalt_data.dataset import Version, open_version, version_ids
from cobalt_data.dedup import DedupConfig, dedup
from cobalt_data.engines.base import Sampling
from cobalt_data.engines.transformers import TransformersEngine
from cobalt_data.errors import InputError
from cobalt_data.ids import canonical_json
from cobalt_data.importers import import_problems
from cobalt_data.models import EMBEDDED, checkpoint_directory
from cobalt_data.perturb import PerturbConfig, perturb
from cobalt_data.problems import choose_problems
from cobalt_data.split import SplitConfig, split
from cobalt_data.staging import write_whole
from cobalt_data.templates import template_for
from cobalt_train.config import load_config
from cobalt_train.evaluation import Evaluation, compare, evaluate
from cobalt_train.reporting import scores_table, step_line
from cobalt_train.trainer import Trainer
from sandbox import Pool

SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=64)
# A few large steps, for something to be seen; a longer run would fall for them (docs/training.md).
FAST = {"learning_rate": 1e-4, "advantage": "group_std"}
COLLECT = CollectConfig(n=4, turns=3, sampling=SAMPLING, split="train", limit=16)


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """By default what fits into ten minutes on two cores, and what a model of 135M parameters solves now and then."""

    difficulty: str = "easy"
    held_out: str = "test_variants"  # new variants of families that are trained on
    collect: CollectConfig = COLLECT
    select: Select = "improving"
    evaluated_problems: int = 24
    evaluated_samples: int = 2
    steps: int = 5


INTERRUPTED = "interrupted; what is finished is kept: give the same command again to go on"


def run_demo(output: Path, backend: str, screen: Screen, settings: DemoSettings | None = None) -> None:
    """Runs the demo in the directory `output`. Raises CobaltError as its parts do."""
    started = time.monotonic()
    demo = _Demo(output, screen, settings or DemoSettings())
    with Pool(backend=backend) as pool:
        demo.say(f"programs run in: {pool.backend}")
        version = demo.problems()
        version, before = demo.before_training(version, pool)
        checkpoint = demo.training(version, pool)
        after = demo.evaluation("after training", version, TransformersEngine.load(str(checkpoint)), pool)
    demo.report(version, checkpoint, before, after, time.monotonic() - started)


class _Demo:
    """The stages, each of which finds its result in the directory or makes it."""

    def __init__(self, output: Path, screen: Screen, settings: DemoSettings) -> None:
        self._dataset, self._run = output / "dataset", output / "model"
        self._output, self._screen, self._settings = output, screen, settings
        self.say = screen.remark
        self._claim(output / "demo.json")

    def _claim(self, file: Path) -> None:
        """Marks the directory as that of a demo with these settings. Raises InputError if it is that of another."""
        settings = canonical_json(asdict(self._settings))
        if file.exists() and file.read_text(encoding="utf-8") != settings:
            raise InputError(f"{self._output} holds a demo with other settings: remove it, or choose another with -o")
        self._output.mkdir(parents=True, exist_ok=True)
        write_whole(file, settings.encode())

    def problems(self) -> Version:
        difficulty = self._settings.difficulty
        imported = import_problems(None, "embedded").of_difficulty(difficulty)
        change = imported.as_change("embedded", format="embedded", difficulty=difficulty)
        version = self._told(commit(change, dataset=self._dataset))
        return self._made("split", version, lambda: split(version, SplitConfig()))

    def before_training(self, version: Version, pool: Pool) -> tuple[Version, Evaluation]:
        """The prompts and the score of the model as it comes, which leaves the memory on return: training needs it."""
        engine = TransformersEngine.load(EMBEDDED)
        before = self.evaluation("before training", version, engine, pool)
        return self.prompts(version, engine, pool), before

    def prompts(self, version: Version, engine: TransformersEngine, pool: Pool) -> Version:
        """Trajectories of the model, cut into prompts, some of them perturbed, none of them twice."""
        with self._screen.bar("collecting") as show:

            def collected() -> Version:
                with collect(
                    version, engine, pool, self._settings.collect, progress=lambda at: show(*moment(at))
                ) as outcome:
                    return commit(outcome.change, [version])

            trajectories = self._found("collect", version) or self._told(collected())
        cut_version = self._made(
            "cut",
            trajectories,
            lambda: cut(trajectories, CutConfig(EMBEDDED, self._settings.select), engine.count_tokens),
        )
        perturbed = self._made(
            "augment", cut_version, lambda: perturb(cut_version, PerturbConfig(EMBEDDED), pool, engine.count_tokens)
        )
        return self._made("dedup", perturbed, lambda: dedup(perturbed, DedupConfig()))

    def training(self, version: Version, pool: Pool) -> Path:
        """The last checkpoint of a short run."""
        steps, max_tokens = self._settings.steps, self._settings.collect.sampling.max_tokens
        config = load_config(preset="cpu-small", **FAST, steps=steps, save_every=3, max_tokens=max_tokens)
        begun = (self._run / "run.json").exists()
        if checkpoint_directory(self._run).name == f"checkpoint-{steps:06d}":
            return checkpoint_directory(self._run)
        with self._screen.bar("training", INTERRUPTED) as show:
            trainer = Trainer(config, version, EMBEDDED, self._run, pool=pool, resume=begun)

            def report(metrics: Mapping[str, Any]) -> None:
                show(metrics["step"], metrics["steps"], "")
                self.say(step_line(metrics))

            return trainer.run(report).checkpoint

    def evaluation(self, label: str, version: Version, engine: TransformersEngine, pool: Pool) -> Evaluation:
        settings = self._settings
        kept = self._output / f"{label.replace(' ', '-')}-{engine.model_revision[:12]}.json"
        if kept.exists():
            return Evaluation.from_json(json.loads(kept.read_text(encoding="utf-8")))
        problems = choose_problems(version, settings.held_out, settings.evaluated_problems)
        with self._screen.bar(f"Pass@1 {label}", INTERRUPTED) as show:
            measured = evaluate(
                problems,
                engine,
                pool,
                template_for("auto", engine.model),
                settings.collect.sampling,
                turns=settings.collect.turns,
                n=settings.evaluated_samples,
                progress=lambda at: show(*moment(at)),
            )
        write_whole(kept, json.dumps(measured.to_json()).encode())
        shares = ", ".join(f"{score.pass_at_1:.1%}" for score in measured.scores)
        self.say(f"Pass@1 {label}: {shares} at turns 0 to {settings.collect.turns - 1}")
        return measured

    def report(self, version: Version, checkpoint: Path, before: Evaluation, after: Evaluation, seconds: float) -> None:
        columns = {"before": before.scores, "after": after.scores, "difference": compare(before, after)}
        problems = f"{self._settings.evaluated_problems} held-out problems, 95 % intervals over problems"
        self._screen.result(
            {
                "dataset": version.reference,
                "checkpoint": str(checkpoint),
                "metrics": str(self._run / "metrics.jsonl"),
                "seconds": round(seconds, 1),
                "before": before.to_json(),
                "after": after.to_json(),
            },
            "",
            scores_table(columns, f"Pass@1 per turn ({problems})"),
            "",
            f"dataset     {version.reference}",
            f"checkpoint  {checkpoint}",
            f"metrics     {self._run / 'metrics.jsonl'}",
            f"total time  {clock(seconds)}",
            "",
            "What to type next:",
            f"  cobalt data show {self._dataset}      one trajectory, turn by turn",
            f"  cobalt data stats {self._dataset}     what the dataset holds",
            f"  cobalt eval {self._run} {self._dataset} --split test_families --turns 3",
        )

    def _made(self, operation: str, parent: Version, make: Callable[[], Change]) -> Version:
        """The version that `operation` makes of `parent`, found or committed now."""
        return self._found(operation, parent) or self._told(commit(make(), [parent]))

    def _found(self, operation: str, parent: Version) -> Version | None:
        for version_id in version_ids(self._dataset):
            version = open_version(f"{self._dataset}@{version_id}")
            manifest = version.manifest
            if (manifest.operation, manifest.parents) == (operation, (parent.id,)):
                return version
        return None

    def _told(self, version: Version) -> Version:
        self._screen.version_line(version)
        return version
