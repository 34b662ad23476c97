"""Verbs that make prompts of trajectories and change them, and those that drop rows: cut, augment, dedup and decontaminate."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cobalt_data.commands.collecting import show_collection
from cobalt_data.commands.options import Backend, BaseUrl, Json, Output, Quiet, Reference, Seed, Tokenizer
from cobalt_data.console import Screen

if TYPE_CHECKING:
    from cobalt_data.dataset import Version

LEAKS_NAMED = 10  # on the screen


def cut(
    dataset: Reference,
    select: Annotated[str, typer.Option(help="paper, improving or all.")] = "paper",
    n: Annotated[int | None, typer.Option("-n", help="Look at so many trajectories per problem. Default: all.")] = None,
    m: Annotated[int, typer.Option("-m", help="Trajectories per problem, by max-variance down-sampling.")] = 4,
    turns: Annotated[int, typer.Option(help="The horizon: contexts of 1 to this many programs.")] = 3,
    max_prompt_tokens: Annotated[int, typer.Option(help="Longer prompts end their trajectory.")] = 10_000,
    keep_turn0: Annotated[bool, typer.Option(help="Also the prompt before the first program.")] = True,
    skip_solved: Annotated[bool, typer.Option(help="Skip problems whose turn-0 programs all pass everything.")] = True,
    stop_when_passing: Annotated[
        bool, typer.Option(help="Stop where two successive programs pass all public tests.")
    ] = True,
    look_ahead: Annotated[bool, typer.Option(help="Cut nothing where programs 0 and 2 both pass everything.")] = True,
    validation_rule: Annotated[
        bool, typer.Option(help="On the validation side: one trajectory per problem, of the smallest positive range.")
    ] = True,
    tokenizer: Tokenizer = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prompts: the partial trajectories worth completing. The defaults are what the paper's code does."""
    from cobalt_data.commit import open_to_change
    from cobalt_data.cut import CutConfig
    from cobalt_data.cut import cut as verb
    from cobalt_data.tokens import token_counter, tokenizer_of

    screen, version = Screen(json, quiet), open_to_change(dataset, output)
    config = CutConfig(
        tokenizer=tokenizer or tokenizer_of(version),
        select=select,  # type: ignore[arg-type]
        n=n,
        m=m,
        turns=turns,
        max_prompt_tokens=max_prompt_tokens,
        keep_turn0=keep_turn0,
        skip_solved=skip_solved,
        stop_when_passing=stop_when_passing,
        look_ahead=look_ahead,
        validation_rule=validation_rule,
    )
    count_tokens = token_counter(config.tokenizer, of=None if tokenizer else version)
    with screen.bar("cutting", stays=False):
        change = verb(version, config, count_tokens)
    screen.change(change, version, output)


def augment(
    dataset: Reference,
    perturb: Annotated[
        bool, typer.Option("--perturb", help="Add prompts whose last feedback comes from perturbed tests.")
    ] = False,
    unperturb: Annotated[
        bool, typer.Option("--unperturb", help="Undo it all: put the originals back, bit for bit.")
    ] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[=FRACTION]",
            help="swap (two public tests trade their expected outputs), off-by-one (a number is changed by one), stale "
            "(feedback to another program) or misreport (a passing program fails); may be repeated. Default: swap.",
        ),
    ] = None,
    fraction: Annotated[float, typer.Option(help="Share of the eligible, for kinds that name none.")] = 0.5,
    replace: Annotated[
        bool, typer.Option("--replace", help="Rewrite prompts instead of adding to them; originals are kept inside.")
    ] = False,
    spare_statement: Annotated[
        bool, typer.Option("--spare-statement", help="Make no test lie whose true output the first message shows.")
    ] = False,
    seed: Seed = 0,
    tokenizer: Tokenizer = None,
    recollect: Annotated[
        bool,
        typer.Option(
            "--recollect",
            help="Roll out trajectories again under perturbed tests, with the settings of the last collection: swap and "
            "off-by-one, for a fraction of the problems. Before cut.",
        ),
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="With --recollect: another model than the collecting one.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="With --recollect: another engine.")] = None,
    base_url: BaseUrl = None,
    n: Annotated[int | None, typer.Option("-n", help="With --recollect: another number per problem.")] = None,
    template: Annotated[
        str | None,
        typer.Option(help="The .toml file that words the feedback, where the trajectories have one of yours."),
    ] = None,
    backend: Backend = "auto",
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Feedback that a model should learn to distrust."""
    from cobalt_data.commit import open_to_change
    from cobalt_data.errors import InputError
    from cobalt_data.perturb import PerturbConfig
    from cobalt_data.perturb import perturb as verb
    from cobalt_data.templates import Template
    from cobalt_data.tokens import token_counter, tokenizer_of
    from cobalt_data.unperturb import unperturb as undo
    from sandbox import Pool

    if perturb == unperturb:
        raise InputError("augment: say how: --perturb or --unperturb")
    screen, version = Screen(json, quiet), open_to_change(dataset, output)
    if unperturb:
        screen.change(undo(version), version, output)
        return
    kinds = _fractions(kind or ["swap"], fraction)
    if recollect:
        _recollect(screen, version, kinds, spare_statement, seed, model, engine, base_url, n, backend, output)
        return
    config = PerturbConfig(tokenizer or tokenizer_of(version), kinds, seed, replace, spare_statement)
    given = Template.load(template) if template else None
    count_tokens = token_counter(config.tokenizer, of=None if tokenizer else version)
    with Pool(backend=backend) as pool, screen.bar("running against perturbed tests") as show:
        change = verb(version, config, pool, count_tokens, given, progress=lambda done, of: show(done, of, ""))
    for name, eligible in change.recorded["eligible"].items():
        if not eligible:
            screen.remark(f"{name}: no prompt is eligible; the reasons follow")
    screen.change(change, version, output)


def _recollect(
    screen: Screen,
    version: Version,
    kinds: dict[str, float],
    spare_statement: bool,
    seed: int,
    model: str | None,
    engine: str | None,
    base_url: str | None,
    n: int | None,
    backend: str,
    output: str | None,
) -> None:
    """What is not given is as in the last collection."""
    from dataclasses import replace

    from cobalt_data.collection import CollectConfig
    from cobalt_data.engines import open_engine
    from cobalt_data.recollection import RecollectConfig, draw_lies, last_collection

    before = last_collection(version).arguments
    config = replace(CollectConfig.from_arguments(before), seed=seed, n=n or before["n"])
    lies = draw_lies(version, model or before["model"], config, RecollectConfig(kinds, spare_statement))
    opened = open_engine(
        engine or ("auto" if base_url else before["engine"]), model or before["model"], base_url=base_url
    )
    try:
        show_collection(screen, version, opened, config, backend, lies, output)
    finally:
        opened.close()
    if version.has("prompts"):
        screen.remark("cut again to make prompts of the new trajectories")


def _fractions(kinds: list[str], default: float) -> dict[str, float]:
    """`KIND` or `KIND=FRACTION`, each once. Raises InputError."""
    from cobalt_data.errors import InputError

    fractions: dict[str, float] = {}
    for text in kinds:
        kind, has_own, own = text.partition("=")
        if kind in fractions:
            raise InputError(f"--kind {kind} is given twice: give each kind once")
        try:
            fractions[kind] = float(own) if has_own else default
        except ValueError:
            raise InputError(f"--kind {text}: {own!r} is no number: give a share in [0, 1]") from None
    return fractions


def dedup(
    dataset: Reference,
    level: Annotated[
        list[str] | None, typer.Option(help="problems, trajectories or prompts; may be repeated. Default: all.")
    ] = None,
    near: Annotated[bool, typer.Option("--near", help="Also drop near-duplicate problems and trajectories.")] = False,
    threshold: Annotated[float, typer.Option(help="Jaccard similarity from which rows are near-duplicates.")] = 0.8,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="List every cluster here, as JSON lines.")] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Drops problems with the same statement, trajectories with the same programs and prompts with the same text."""
    from cobalt_data.commit import open_to_change
    from cobalt_data.dedup import LEVELS, DedupConfig, drop_duplicates, find_duplicates
    from cobalt_data.references import refuse_unwritable_file
    from cobalt_data.reports import write_report

    screen, config = Screen(json, quiet), DedupConfig(tuple(level or LEVELS), near, threshold)
    version = open_to_change(dataset, output)
    if report is not None:
        refuse_unwritable_file(report, "--report")
    with screen.bar("comparing rows", stays=False):
        clusters = find_duplicates(version, config)
    if report is not None:
        write_report(report, (cluster.to_json() for cluster in clusters))
    screen.change(drop_duplicates(version, config, clusters), version, output)


def decontaminate(
    dataset: Reference,
    against: Annotated[
        str | None,
        typer.Option(help="A file of problems, a dataset, or humaneval, mbpp or livecodebench (from the Hub)."),
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Share of a statement that must stand in a problem's, rare words counting most.")
    ] = 0.3,
    after: Annotated[
        str | None, typer.Option(metavar="DAY", help="Keep problems of contests from this day (YYYY-MM-DD) on.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="DAY", help="Keep problems of contests until the day before.")
    ] = None,
    drop_undated: Annotated[bool, typer.Option("--drop-undated", help="Also drop problems without a date.")] = False,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="List every leak here, as JSON lines.")] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Drops problems that a benchmark has, with all that was made from them; or those outside a window of time."""
    from cobalt_data.against import load_against
    from cobalt_data.commit import open_to_change
    from cobalt_data.decontaminate import DecontaminateConfig, leak_line
    from cobalt_data.decontaminate import decontaminate as verb
    from cobalt_data.references import refuse_unwritable_file
    from cobalt_data.reports import write_report

    screen, version = Screen(json, quiet), open_to_change(dataset, output)
    if report is not None:
        refuse_unwritable_file(report, "--report")
    compared = load_against(against) if against else None
    config = DecontaminateConfig(compared.hash if compared else None, coverage, after, before, drop_undated)
    with screen.bar("comparing problems", stays=False):
        found = verb(version, config, compared)
    if report is not None:
        write_report(report, map(asdict, found.leaks))
    for leak in found.leaks[:LEAKS_NAMED]:
        screen.remark(leak_line(leak))
    if len(found.leaks) > LEAKS_NAMED:
        screen.remark(f"and {len(found.leaks) - LEAKS_NAMED} more; --report FILE lists all")
    if undated := found.change.recorded.get("undated"):
        screen.remark(
            f"problems that stay because their contest has no date as YYYY-MM-DD: {undated} (--drop-undated drops them)"
        )
    screen.change(found.change, version, output)
