"""`collect`: multi-turn trajectories of a model on the problems of a version.

Which conversations are to be had, and which of them share a unit, follows from the version and the configuration; so does
the outcome, with an engine that is deterministic. Finished units are kept on disk (`cobalt_data.runs`): a collection that was
killed or interrupted goes on when the same command is given again, and ends in the version that it would have ended in.

Trajectories are added to those that the version has; one that it has already (same problem, model, sampling, seed and
sample index) is not collected again. Several units are worked on at once, so that programs run while the model writes.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.engines.base import Engine, Sampling
from cobalt_data.errors import InputError
from cobalt_data.manifest import Counts
from cobalt_data.perturbation import Lie
from cobalt_data.problems import choose_problems
from cobalt_data.progress import Meter, Progress
from cobalt_data.rollouts import blank_trajectory, recorded_sampling, roll_out
from cobalt_data.runs import Run, open_run
from cobalt_data.spool import Spool
from cobalt_data.templates import AUTO, Template, template_for
from cobalt_data.units import Unit, make_units, problems_filling_a_unit, work_through
from sandbox import Pool

OPERATION, RECOLLECT = "collect", "recollect"
DETERMINED = (
    "engine",
    "model",
    "model_revision",
    "template_hash",
    "perturb",
)  # arguments that are no settings of their own


@dataclass(frozen=True, slots=True)
class CollectConfig:
    """What to collect: `n` conversations of `turns` programs on each problem.

    `split` takes the problems of one side only, `limit` that many of them: the first in the order of a hash of their ids, which
    is a fair sample, the same for every seed and a part of every larger one. `template` is a name, the path of a `.toml`
    file, or `auto`. `problems_per_unit` is how many problems share a call of the engine, a group of `n` programs each; by
    default as many as fill it.
    """

    n: int = 16
    turns: int = 3
    sampling: Sampling = field(default_factory=Sampling)
    template: str = AUTO
    seed: int = 0
    split: str | None = None
    limit: int | None = None
    problems_per_unit: int | None = None

    def __post_init__(self) -> None:
        for name in ("n", "turns", "problems_per_unit"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"collect.{name} is {getattr(self, name)}: give at least 1")
        if self.limit is not None and self.limit < 1:
            raise InputError(f"collect.limit is {self.limit}: give at least 1, or leave it out for all problems")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"collect.seed is {self.seed}: give an integer in [0, 2^63)")

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> CollectConfig:
        """The configuration that a manifest's arguments came from. Raises TypeError where they hold anything unknown."""
        settings = {name: value for name, value in arguments.items() if name not in DETERMINED}
        return cls(**{**settings, "sampling": Sampling(**settings["sampling"])})

    @property
    def unit_size(self) -> int:
        return self.problems_per_unit or problems_filling_a_unit(self.n)


@dataclass(frozen=True, slots=True)
class Lies:
    """Public tests that lie during a collection, by problem_id; a problem without lies takes no part in it.

    `arguments` are what they follow from, `counts` say which problems have none.
    """

    by_problem: Mapping[str, Lie]
    arguments: Mapping[str, Any]
    counts: Mapping[str, Counts]


@dataclass(frozen=True, slots=True)
class Work:
    """What a collection has to do: fixed by version, engine and configuration."""

    template: Template
    recorded: Mapping[str, Any]  # the sampling that trajectories will record
    units: tuple[Unit, ...]
    conversations: int  # had or to be had
    present: int  # of these, in the version already

    @property
    def problems(self) -> int:
        return sum(len(unit.problems) for unit in self.units)


@dataclass(frozen=True, slots=True)
class Collected:
    """A finished collection. `added` is 0 where the version had everything; `resumed` trajectories were found on disk."""

    change: Change
    added: int
    resumed: int
    progress: Progress


def lay_out(version: Version, engine: Engine, config: CollectConfig, lies: Lies | None = None) -> Work:
    """Decides what is to be collected. Raises InputError where the version holds no such problems."""
    template = template_for(config.template, engine.model)
    recorded = recorded_sampling(config.sampling, template, config.turns)
    problems = choose_problems(version, config.split, config.limit)
    lie_of = lies.by_problem if lies else {}
    if lies:
        problems = [problem for problem in problems if problem.problem_id in lie_of]
    present = (
        set(version.table("trajectories", columns=["trajectory_id"])["trajectory_id"].to_pylist())
        if version.has("trajectories")
        else set()
    )
    samples = [
        [
            index
            for index in range(config.n)
            if blank_trajectory(
                problem, index, engine, recorded, config.seed, lie_of.get(problem.problem_id)
            ).trajectory_id
            not in present
        ]
        for problem in problems
    ]
    units = make_units(problems, samples, config.unit_size)
    conversations = config.n * len(problems)
    return Work(template, recorded, tuple(units), conversations, conversations - sum(map(len, samples)))


@contextlib.contextmanager
def collect(
    version: Version,
    engine: Engine,
    pool: Pool,
    config: CollectConfig,
    *,
    lies: Lies | None = None,
    dataset: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[Collected]:
    """Collects, with `lies` under public tests that lie, and gives back the change to be committed within the `with` block.

        with collect(version, engine, pool, config) as collected:
            commit(collected.change, [version])

    The run on disk (in `dataset`, by default the version's) is held until the block ends and removed if it ends well.
    `progress` is called from several threads, one at a time. Raises EngineError, SandboxUnavailable, InputError, and
    KeyboardInterrupt with a message that says how to go on.
    """
    work = lay_out(version, engine, config, lies)
    arguments = _arguments(config, engine, work.template) | ({"perturb": lies.arguments} if lies else {})
    operation = RECOLLECT if lies else OPERATION
    with open_run(dataset or version.dataset, operation, arguments, version.id) as run:
        resumed = {
            unit.name: _summary(result) for unit in work.units if (result := run.finished(unit.name)) is not None
        }
        todo = [unit for unit in work.units if unit.name not in resumed]
        meter = Meter(work.problems, steps=len(todo) * config.turns, report=progress)
        for problems, solved, _ in resumed.values():
            meter.unit_done(problems, solved)
        _work_through(todo, run, engine, pool, work, config, lies, meter)
        measured = meter.snapshot()
        results = (run.finished(unit.name) for unit in work.units)
        table, counts = _table(version, results)
        change = Change(
            operation,
            arguments,
            config.seed,
            {},
            counts | (dict(lies.counts) if lies else {}),
            _recorded(pool, measured),
            {"trajectories": table},
        )
        yield Collected(change, table.num_rows, sum(rows for _, _, rows in resumed.values()), measured)
        run.discard()


def _work_through(
    todo: list[Unit],
    run: Run,
    engine: Engine,
    pool: Pool,
    work: Work,
    config: CollectConfig,
    lies: Lies | None,
    meter: Meter,
) -> None:
    def collect_unit(unit: Unit, abandoned: threading.Event) -> None:
        rolled = roll_out(
            unit,
            engine=engine,
            pool=pool,
            template=work.template,
            sampling=config.sampling,
            turns=config.turns,
            run_seed=config.seed,
            lies=lies.by_problem if lies else {},
            meter=meter,
            abandoned=abandoned,
        )
        rows = [trajectory.to_row() for trajectory in rolled.trajectories]
        result = {"problems": len(unit.problems), "rows": rows, "dropped": dict(rolled.dropped)}
        run.finish(unit.name, result)
        problems, solved, _ = _summary(result)
        meter.unit_done(problems, solved)

    finished = 0
    try:
        for _ in work_through(todo, collect_unit, engine.parallel_calls):
            finished += 1
    except KeyboardInterrupt:
        kept = len(work.units) - len(todo) + finished
        raise KeyboardInterrupt(
            f"interrupted: {kept} of {len(work.units)} units are kept in {run.path}; give the same command again to go on"
        ) from None


def _table(version: Version, results: Iterable[Any]) -> tuple[Spool, dict[str, Counts]]:
    """The trajectories that are new, and the counts of all."""
    dropped: Counter[str] = Counter()

    def rows() -> Iterator[Mapping[str, Any]]:
        for result in results:
            dropped.update(result["dropped"])
            yield from result["rows"]

    collected = Spool.of_rows("trajectories", rows())
    total = version.manifest.rows("trajectories") + collected.num_rows
    return collected, {"trajectories": Counts(total + dropped.total(), total, dict(dropped))}


def _arguments(config: CollectConfig, engine: Engine, template: Template) -> dict[str, Any]:
    """All that the outcome depends on, besides the version and this machine."""
    return {
        **asdict(config),
        "problems_per_unit": config.unit_size,
        "template": template.name,
        "template_hash": template.hash,
        "engine": engine.name,
        "model": engine.model,
        "model_revision": engine.model_revision,
    }


def _summary(result: Mapping[str, Any]) -> tuple[int, int, int]:
    """Of a unit's result: its problems, those solved by one of its trajectories, its trajectories."""
    solved = {row["problem_id"] for row in result["rows"] if row["solved"]}
    return result["problems"], len(solved), len(result["rows"])


def _recorded(pool: Pool, measured: Progress) -> dict[str, Any]:
    return {
        "backend": pool.backend,
        "seconds": round(measured.seconds, 1),
        "tokens_per_second": round(measured.tokens_per_second, 1),
        "model_share": round(measured.model_share, 3),
    }
