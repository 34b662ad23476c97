"""Verbs that place problems and collect trajectories: split and collect."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cobalt_data.commands.collecting import show_collection
from cobalt_data.commands.options import (
    Backend,
    BaseUrl,
    Dtype,
    EngineName,
    Json,
    Limit,
    MemoryShare,
    Model,
    Output,
    Quiet,
    Reference,
    Seed,
    TemplateName,
)
from cobalt_data.console import Screen


def split(
    dataset: Reference,
    train: float = 0.8,
    validation: float = 0.1,
    test: float = 0.1,
    seed: Seed = 0,
    reassign: Annotated[bool, typer.Option("--reassign", help="Also move problems that have a side already.")] = False,
    threshold: Annotated[float, typer.Option(help="Jaccard similarity from which statements stay together.")] = 0.8,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Places every problem on a side, near-duplicates together; all that is made from it follows."""
    from cobalt_data.commit import open_to_change
    from cobalt_data.split import SplitConfig
    from cobalt_data.split import split as verb

    screen, version = Screen(json, quiet), open_to_change(dataset, output)
    with screen.bar("comparing problems", stays=False):
        change = verb(version, SplitConfig(train, validation, test, seed, reassign, threshold))
    for problem, sides in change.recorded["left_out"].items():
        screen.remark(f"{problem}: left out, it is like problems on the sides {' and '.join(sides)}")
    if across := change.recorded["copies_across_sides"]:
        screen.remark(
            f"copies on two sides, pair by pair: {across}. Problems that have a side do not move: `cobalt data dedup --near` "
            "drops copies, `cobalt data split --reassign` places all problems anew"
        )
    screen.change(change, version, output)


def collect(
    dataset: Reference,
    model: Model,
    engine: EngineName = "auto",
    base_url: BaseUrl = None,
    dtype: Dtype = "auto",
    memory_share: MemoryShare = None,
    n: Annotated[int, typer.Option("-n", help="Trajectories per problem.")] = 16,
    turns: Annotated[int, typer.Option(help="Programs per trajectory.")] = 3,
    temperature: float = 0.6,
    top_p: float = 0.95,
    max_tokens: Annotated[int, typer.Option(help="At most so many tokens per completion.")] = 512,
    template: TemplateName = "auto",
    split: Annotated[str | None, typer.Option(help="Only problems of this side.")] = None,
    limit: Limit = None,
    seed: Seed = 0,
    problems_per_unit: Annotated[
        int | None, typer.Option(help="Problems that share a batch of the engine; by default as many as fill it.")
    ] = None,
    backend: Backend = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and stop.")] = False,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Multi-turn trajectories of a model. Goes on where it was when it is stopped and started again."""
    from cobalt_data.collection import CollectConfig
    from cobalt_data.commit import open_to_change
    from cobalt_data.dataset import open_version
    from cobalt_data.engines import Sampling, open_engine
    from cobalt_data.planning import plan

    screen = Screen(json, quiet)
    version = open_version(dataset) if dry_run else open_to_change(dataset, output)
    sampling = Sampling(temperature, top_p, max_tokens)
    config = CollectConfig(n, turns, sampling, template, seed, split, limit, problems_per_unit)
    opened = open_engine(engine, model, base_url=base_url, dtype=dtype, memory_share=memory_share)
    try:
        if dry_run:
            expected = plan(version, opened, config)
            screen.result(asdict(expected), *(f"{name}: {value}" for name, value in asdict(expected).items()))
            return
        show_collection(screen, version, opened, config, backend, output=output)
    finally:
        opened.close()
