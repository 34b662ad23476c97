"""Verbs that bring rows into a dataset: import, from the files of others, and merge, from other datasets."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from cobalt_data.commands.options import Backend, Json, Limit, Quiet
from cobalt_data.console import Screen

SOURCE = (
    "A file of JSON lines (also gzip) or Parquet, a problem package or a directory of them, a dataset on the Hub as "
    "hf://datasets/USER/NAME or .../NAME/FILE, or `embedded`."
)
FORMAT = (
    "embedded, humaneval, mbpp, leetcode, kickstart_codejam, taco, apps, livecodebench, package, reference or cobalt."
)


def import_(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DATASET", help="The dataset to make.")],
    format: Annotated[str | None, typer.Option("--format", help=FORMAT)] = None,
    public: Annotated[int | None, typer.Option(help="How many tests are public where the source does not say.")] = None,
    limit: Limit = None,
    difficulty: Annotated[str | None, typer.Option(help="Only problems of this difficulty.")] = None,
    side: Annotated[
        str | None, typer.Option(help="The side of these problems; of a dataset on the Hub, the split to take.")
    ] = None,
    subset: Annotated[str | None, typer.Option(help="The configuration of a dataset on the Hub.")] = None,
    prepare: Annotated[str | None, typer.Option(help="paper: select problems and tests as the paper did.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Who wrote the conversations of a source.")] = None,
    check_solutions: Annotated[
        bool, typer.Option("--check-solutions", help="Run the reference solutions of the rows.")
    ] = False,
    skip_bad_rows: Annotated[bool, typer.Option("--skip-bad-rows", help="Leave bad rows out, and count them.")] = False,
    backend: Backend = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Problems, and conversations about them, from files, the Hub or what comes with cobalt."""
    from cobalt_data.commit import commit
    from cobalt_data.errors import InputError
    from cobalt_data.importers import import_problems
    from cobalt_data.references import parse_target

    screen = Screen(json, quiet)
    embedded = source == "embedded" and format in (None, "embedded")
    if format is None and not embedded:
        raise InputError(f"{source}: say with --format what it holds")
    parse_target(output)
    settings: dict[str, Any] = {
        "public": public,
        "limit": limit,
        "side": side,
        "subset": subset,
        "prepare": prepare,
        "model": model,
    }
    found = import_problems(None if embedded else source, format or "embedded", skip_bad_rows=skip_bad_rows, **settings)
    if difficulty is not None:
        found = found.of_difficulty(difficulty)
    for message in found.bad_rows:
        screen.remark(message)
    fields: dict[str, Any] = {}
    if check_solutions:
        found, fields = _checked(found, backend, screen)
    change = found.as_change(
        source, format=format or "embedded", difficulty=difficulty, check_solutions=check_solutions, **settings
    )
    fields |= {"rows_in": found.rows_in, "rows_out": found.rows_out, "dropped": found.dropped}
    screen.version(commit(change, dataset=output), **fields)


def merge(
    datasets: Annotated[list[str], typer.Argument(metavar="DATASET", help="Two or more of PATH or PATH@VERSION.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DATASET", help="The dataset to make.")],
    sides: Annotated[
        str, typer.Option(help="Of problems that stand on two sides: refuse, or leave-out with all made from them.")
    ] = "refuse",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Several collections become one, whatever their order. Rows that contradict each other are refused by name."""
    from cobalt_data.commit import commit
    from cobalt_data.dataset import open_version
    from cobalt_data.merge import MergeConfig, in_order
    from cobalt_data.merge import merge as verb
    from cobalt_data.references import parse_target

    parse_target(output)
    versions = [open_version(dataset) for dataset in datasets]
    screen = Screen(json, quiet)
    with screen.bar("merging", stays=False):
        version = commit(verb(versions, MergeConfig(sides)), in_order(versions), output)
    screen.version(version)


def _checked(found: Any, backend: str, screen: Screen) -> tuple[Any, dict[str, int]]:
    """The same import with the verdicts of its solutions, and how many passed."""
    from cobalt_data.check_solutions import check_solutions
    from sandbox import Pool

    with Pool(backend=backend) as pool, screen.bar("reference solutions") as show:
        checked = check_solutions(found.problems, pool, lambda done: show(done, len(found.problems), ""))
    for problem_id, verdict, detail in checked.failures:
        screen.remark(f"{problem_id}: its solution fails: {verdict} {detail}".rstrip())
    screen.remark(
        f"solutions: {checked.passed} passed, {checked.failed} failed, {checked.without_solution} problems have none"
    )
    counts = {
        "solutions_passed": checked.passed,
        "solutions_failed": checked.failed,
        "without_solution": checked.without_solution,
    }
    return replace(found, problems=checked.problems), counts
