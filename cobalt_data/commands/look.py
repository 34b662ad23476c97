"""Verbs that only look: show, stats, log, diff, verify and replay."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cobalt_data.commands.options import Backend, Json, Output, Quiet, Reference
from cobalt_data.console import Screen
from cobalt_data.errors import CobaltError, DamagedManifest


def show(
    dataset: Reference,
    row: Annotated[
        str | None, typer.Argument(metavar="ID", help="Of a problem, trajectory or prompt, or how it begins.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One row, turn by turn. Without an id: a trajectory that solves its problem, if there is one."""
    from cobalt_data.dataset import open_version
    from cobalt_data.rendering import render_shown
    from cobalt_data.show import show as verb

    shown = verb(open_version(dataset), row)
    Screen(json, quiet).result(asdict(shown), render_shown(shown))


def stats(
    dataset: Reference,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the figures into this file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rows by side, pass rates per turn, tokens, difficulty, perturbed and repeated rows."""
    from cobalt_data.charts import stats_picture, write_picture
    from cobalt_data.dataset import open_version
    from cobalt_data.references import refuse_unwritable_file
    from cobalt_data.rendering import render_stats
    from cobalt_data.stats import stats as verb

    version = open_version(dataset)
    if png is not None:
        refuse_unwritable_file(png, "--png")
    figures = verb(version)
    if png is not None:
        write_picture(stats_picture(figures), png)
    Screen(json, quiet).result(asdict(figures), render_stats(figures), *([str(png)] if png else []))


def log(dataset: Reference, json: Json = False, quiet: Quiet = False) -> None:
    """The versions that led to this one, newest first, and where the rows went."""
    from cobalt_data.dataset import open_version
    from cobalt_data.history import history
    from cobalt_data.rendering import render_history

    entries = history(open_version(dataset))
    Screen(json, quiet).result({"versions": [asdict(entry) for entry in entries]}, render_history(entries))


def diff(
    before: Reference,
    after: Annotated[str, typer.Argument(metavar="DATASET", help="PATH or PATH@VERSION, compared to the first.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rows added, removed and changed from one version to another, and what the steps between dropped."""
    from cobalt_data.dataset import open_version
    from cobalt_data.diff import diff as verb
    from cobalt_data.rendering import render_diff

    difference = verb(open_version(before), open_version(after))
    Screen(json, quiet).result(asdict(difference), render_diff(difference))


def verify(dataset: Reference, json: Json = False, quiet: Quiet = False) -> None:
    """Checks every shard against its hash, every id against its content, and that every row leads somewhere."""
    from cobalt_data.dataset import open_version
    from cobalt_data.verify import verify as verb

    screen = Screen(json, quiet)
    try:
        version = open_version(dataset)
    except DamagedManifest as error:
        raise CobaltError(str(error)) from None
    with screen.bar("checking", stays=False) as show:
        findings = [str(finding) for finding in verb(version, lambda done, rows: show(done, rows, "rows"))]
    sound = f"{version.reference}: sound"
    screen.result({"reference": version.reference, "findings": findings}, *(findings or [sound]))
    if findings:
        raise CobaltError(
            f"{version.reference}: {len(findings)} findings; go back to a sound version, or pull it again"
        )


def replay(
    dataset: Reference,
    source: Annotated[
        str | None, typer.Option(help="Where what was imported, or compared with, lies now, if not where it lay.")
    ] = None,
    backend: Backend = "auto",
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Repeats what made a version, from its manifest, and says whether the same id comes out. Writes only with -o."""
    from cobalt_data.dataset import open_version
    from cobalt_data.replay import replay as verb

    screen, version = Screen(json, quiet), open_version(dataset)
    with screen.bar(f"repeating {version.manifest.operation}") as show:
        again = verb(version, output, backend=backend, source=source, progress=show)
    fields = {"reference": again.reference, "version": again.id, "operation": version.manifest.operation}
    screen.result(fields, f"{version.manifest.operation}, repeated, gives the same version", again.reference)
