"""Verbs that share datasets and clear them up: push, pull, export and gc."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cobalt_data.commands.options import Json, Quiet, Reference
from cobalt_data.console import Screen


def push(
    dataset: Reference,
    repository: Annotated[str, typer.Argument(metavar="USER/NAME", help="The dataset repository on the Hub.")],
    private: Annotated[bool, typer.Option("--private/--public", help="Who may read it, where it is new.")] = True,
    licence: Annotated[str | None, typer.Option("--license", help="Such as cc-by-4.0; goes into the card.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag for the card; may be repeated.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Publishes a version on the Hub: one commit, tagged with the version's id. The token is taken from HF_TOKEN."""
    from cobalt_data.dataset import open_version
    from cobalt_data.push import push as verb

    screen, version = Screen(json, quiet), open_version(dataset)
    with screen.bar(
        "pushing", "interrupted; what the Hub has is not sent again: give the same command to go on"
    ) as show:
        pushed = verb(
            version,
            repository,
            private=private,
            licence=licence,
            tags=tuple(tag or ()),
            progress=lambda done, total: show(done, total, ""),
        )
    if pushed.private and not private:
        screen.remark(f"{repository} was there already and stays private: open it in its settings on the Hub")
    for name, rows in pushed.too_large.items():
        screen.remark(
            f"{name}: rows of more than 2 MB, which the Hub's viewer does not show, though all of them load: {rows}"
        )
    screen.result(asdict(pushed), pushed.url, pushed.reference)


def pull(
    repository: Annotated[str, typer.Argument(metavar="USER/NAME[@VERSION]", help="A dataset that cobalt pushed.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DATASET", help="The dataset to make or to go on with.")
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetches a version from the Hub and verifies all of it before it is used."""
    from cobalt_data.dataset import latest_id
    from cobalt_data.pull import pull as verb
    from cobalt_data.references import parse_target

    screen, before = Screen(json, quiet), latest_id(parse_target(output))
    with screen.bar("pulling", "interrupted; what has arrived is kept: give the same command to go on") as show:
        version = verb(repository, output, progress=lambda done, total: show(done, total, ""))
    latest = version.latest_when_opened
    if latest != version.id:
        screen.remark(f"the latest version is still {latest}, which {repository} does not have")
    elif before not in (None, latest):
        screen.remark(f"the latest version is now {latest}; {output}@{before}, which was that, is still there")
    screen.version(version, latest=latest)


def export(
    dataset: Reference,
    format: Annotated[
        str, typer.Option("--format", "-f", help="trl, verl, verifiers, openrlhf, slime, or reference (problems).")
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIRECTORY", help="A new directory.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prompts in the columns that another trainer reads, a file per side."""
    from cobalt_data.dataset import open_version
    from cobalt_data.export import export as verb

    screen = Screen(json, quiet)
    with screen.bar("exporting", stays=False):
        made = verb(open_version(dataset), format, output)
    sides = ", ".join(f"{side} {rows}" for side, rows in made.rows.items())
    left_out = [f"left out: {rows} with {reason}" for reason, rows in made.dropped.items()]
    screen.result({**asdict(made), "directory": output}, f"{output}: {sides}", *left_out)


def gc(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="The path of a dataset.")],
    runs: Annotated[bool, typer.Option("--runs", help="Also unfinished runs that nobody works on.")] = False,
    versions: Annotated[
        bool, typer.Option("--versions", help="Also versions that the latest was not made from.")
    ] = False,
    keep: Annotated[
        list[str] | None, typer.Option(help="A version to keep, with its ancestors; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Removes what nothing needs; by default only what killed processes left behind."""
    from cobalt_data.gc import gc as verb

    screen = Screen(json, quiet)
    removed = verb(dataset, runs=runs, versions=versions, keep=tuple(keep or ()), dry_run=dry_run)
    freed = sum(entry.bytes for entry in removed)
    screen.result(
        {"removed": [asdict(entry) for entry in removed], "bytes": freed},
        *(f"{entry.kind:8} {entry.path}" for entry in removed),
        f"{len(removed)} removed, {freed} bytes",
    )
