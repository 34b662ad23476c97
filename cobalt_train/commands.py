"""`cobalt train`, `cobalt train export`, `cobalt eval` and `cobalt demo`. What they need is imported when they are called."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cobalt_data.commands.options import (
    Backend,
    BaseUrl,
    Dtype,
    EngineName,
    Json,
    Limit,
    MemoryShare,
    Model,
    Quiet,
    Reference,
    Seed,
    TemplateName,
)
from cobalt_data.console import Screen, moment
from cobalt_data.errors import CobaltError

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN, EXPORT = "run", "export"


class TrainOrExport(TyperGroup):
    """`cobalt train DATASET ...` is the run itself; only the word `export` in its place is another command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args[:1] == [EXPORT] else [RUN, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return ("" if name == RUN else name), command, rest


training = typer.Typer(
    cls=TrainOrExport, help="Learns from the training prompts of a dataset, or exports a checkpoint."
)


@training.command(RUN, epilog="`cobalt train export --help`: a checkpoint as a plain model, on disk or on the Hub.")
def train(
    dataset: Reference,
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="A new directory for checkpoints and metrics.")],
    preset: Annotated[str | None, typer.Option(help="paper, modern or cpu-small; the base of all settings.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; may be repeated.")
    ] = None,
    algo: Annotated[str | None, typer.Option(help="cobalt, grpo-mt or verpo.")] = None,
    reward: Annotated[
        str | None, typer.Option(help="paper, pass_rate, binary, or a function of yours: rewards.py:function.")
    ] = None,
    steps: int | None = None,
    prompts_per_step: int | None = None,
    group_size: Annotated[int | None, typer.Option("--group-size", "-n", help="Completions per prompt.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="At most so many tokens per completion.")] = None,
    engine: Annotated[str | None, typer.Option(help="auto, transformers or vllm.")] = None,
    learning_rate: float | None = None,
    seed: int | None = None,
    backend: Backend = "auto",
    track: Annotated[
        list[str] | None, typer.Option(help="tensorboard, wandb or trackio, beside the JSON lines; may be repeated.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in the directory.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what the run would do and take, and stop.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learns from the training prompts of a dataset: complete, execute, reward, update."""
    from cobalt_data.dataset import open_version
    from cobalt_train.config import load_config, parse_settings

    screen = Screen(json, quiet)
    flags = {
        "algo": algo,
        "reward": reward,
        "steps": steps,
        "prompts_per_step": prompts_per_step,
        "group_size": group_size,
        "max_tokens": max_tokens,
        "engine": engine,
        "learning_rate": learning_rate,
        "seed": seed,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    settings = load_config(config, preset, **{**parse_settings(set_ or []), **given})
    version = open_version(dataset)
    if dry_run:
        from cobalt_train.plan import plan
        from cobalt_train.ranks import place
        from cobalt_train.reporting import plan_lines

        with redirect_stdout(sys.stderr):  # of what a reward of the user's may print
            expected = asdict(plan(settings, version, model))
        if place()[0] == 0:
            screen.result(expected | {"settings": asdict(settings)}, *plan_lines(expected, asdict(settings)))
        return

    from cobalt_train.checkpoint import saying_how_to_go_on
    from cobalt_train.ranks import join, leave
    from cobalt_train.reporting import draw_curve, step_line, time_left
    from cobalt_train.tracking import require_trackers, tracking
    from cobalt_train.trainer import Trainer
    from sandbox import Pool

    ranks = join()
    if not ranks.writes:  # of several processes one speaks
        screen, track = Screen(quiet=True), None
    require_trackers(track or ())
    printed = redirect_stdout(sys.stderr)  # by a reward of the user's or a tracker: standard output is for the result
    with Pool(backend=backend) as pool, screen.bar("training") as show, saying_how_to_go_on(output), printed:
        trainer = Trainer(settings, version, model, output, pool=pool, resume=resume)
        if trainer.next_step > trainer.steps:
            screen.remark(f"{output} has made its {trainer.next_step - 1} steps already: raise steps to go on")
        with tracking(track or (), output, asdict(settings), trainer.next_step, screen.remark) as tracked:

            def report(metrics: Mapping[str, Any]) -> None:
                show(metrics["step"], metrics["steps"], time_left(metrics))
                screen.remark(step_line(metrics))
                tracked(metrics)

            result = trainer.run(report)
    leave()
    if not ranks.writes:
        return
    told = f"{result.steps} steps; metrics in {result.metrics}, completions to read in {result.samples}"
    try:
        curve = draw_curve(result.metrics)
    except CobaltError:
        screen.result({**asdict(result), "curve": None}, told, str(result.checkpoint))
        raise
    screen.result({**asdict(result), "curve": curve}, told, f"learning curve in {curve}", str(result.checkpoint))


@training.command(EXPORT)
def export(
    checkpoint: Annotated[str, typer.Argument(help="A checkpoint, or a training run, whose last one is meant.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new directory for the model.")] = None,
    push: Annotated[str | None, typer.Option(metavar="USER/NAME", help="The model repository on the Hub.")] = None,
    private: Annotated[bool, typer.Option("--private/--public", help="Who may read it, where it is new.")] = True,
    licence: Annotated[str | None, typer.Option("--license", help="Such as apache-2.0; goes into the card.")] = None,
    dtype: Annotated[str, typer.Option(help="Of the weights: bfloat16 or float32.")] = "bfloat16",
    json: Json = False,
) -> None:
    """A checkpoint as a plain model with a card that says how it was trained. The token is taken from HF_TOKEN."""
    from cobalt_train.publish import publish_model

    made = publish_model(checkpoint, output, push, private=private, licence=licence, dtype=dtype)
    Screen(json).result(asdict(made), *(str(place) for place in (made.directory, made.url) if place))


def evaluate(
    model: Annotated[str, typer.Argument(help="A checkpoint or training run, a model on the Hub, or smollm2-135m.")],
    dataset: Reference,
    split: Annotated[str, typer.Option(help="The side whose problems are solved.")] = "test",
    turns: Annotated[int, typer.Option(help="Programs per conversation.")] = 3,
    n: Annotated[int, typer.Option("-n", help="Conversations per problem.")] = 1,
    temperature: float = 0.6,
    top_p: float = 0.95,
    max_tokens: Annotated[int, typer.Option(help="At most so many tokens per completion.")] = 512,
    engine: EngineName = "auto",
    base_url: BaseUrl = None,
    dtype: Dtype = "auto",
    memory_share: MemoryShare = None,
    template: TemplateName = "auto",
    perturb: Annotated[bool, typer.Option("--perturb", help="Public tests lie; count programs that give in.")] = False,
    limit: Limit = None,
    seed: Seed = 0,
    backend: Backend = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pass@1 per turn, judged by hidden tests, with 95 % bootstrap intervals over problems."""
    from cobalt_data.dataset import open_version
    from cobalt_data.engines import Sampling, open_engine
    from cobalt_data.problems import choose_problems
    from cobalt_data.templates import template_for
    from cobalt_train.evaluation import evaluate as measure
    from cobalt_train.reporting import scores_table
    from sandbox import Pool

    screen = Screen(json, quiet)
    problems = choose_problems(open_version(dataset), split, limit)
    chosen, sampling = template_for(template, model), Sampling(temperature, top_p, max_tokens)
    opened = open_engine(engine, model, base_url=base_url, dtype=dtype, memory_share=memory_share)
    try:
        with Pool(backend=backend) as pool, screen.bar("evaluating") as show:
            measured = measure(
                problems,
                opened,
                pool,
                chosen,
                sampling,
                turns=turns,
                n=n,
                seed=seed,
                perturb=perturb,
                progress=lambda at: show(*moment(at)),
            )
    finally:
        opened.close()
    for reason, count in measured.left_out.items():
        screen.remark(f"{count} left out: {reason}")
    columns = {"Pass@1": measured.scores} | ({"hacks": measured.hack_rates} if perturb else {})
    screen.result(measured.to_json(), scores_table(columns))


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="A directory for all that is made.")] = Path("demo"),
    backend: Backend = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The whole loop on the embedded model and problems: collect, cut, perturb, train, evaluate."""
    from cobalt_train.demo import run_demo

    run_demo(output, backend, Screen(json, quiet))
