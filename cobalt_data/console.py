"""How commands speak: results on standard output, everything else on standard error.

`--json` prints one object and nothing more, `--quiet` only what was asked for; progress bars need a terminal and neither.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cobalt_data.errors import Interrupted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

    from cobalt_data.commit import Change
    from cobalt_data.dataset import Version
    from cobalt_data.progress import Progress as Moment


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a command's words go; one is made per command from its `--json` and `--quiet`."""

    json: bool = False
    quiet: bool = False

    def result(self, fields: Mapping[str, Any], *lines: RenderableType) -> None:
        """The answer of a command: `fields` for machines, `lines` for people."""
        if self.json:
            sys.stdout.write(json.dumps(fields, ensure_ascii=False, default=str) + "\n")
        else:
            console = _console(stderr=False)
            for line in lines:
                console.print(line)

    def remark(self, line: RenderableType) -> None:
        """Something worth knowing on the way that is not part of the answer."""
        if not (self.json or self.quiet):
            _console(stderr=True).print(line)

    @contextlib.contextmanager
    def bar(
        self, label: str, interrupted: str = "interrupted; nothing was written", stays: bool = True
    ) -> Iterator[Callable[[int, int, str], None]]:
        """A progress bar for long work, fed with (done, of all, a remark); silent where nobody could watch it.

        Until it is fed it only says that work goes on. Ctrl-C within is raised as `Interrupted`, which says `interrupted`
        unless the work itself knows better.
        """
        with self._progress(stays) as progress:
            task = progress.add_task(label, total=None, note="")
            try:
                yield lambda done, total, note: progress.update(
                    task, completed=done, total=total, note=f"{done}/{total} {note}"
                )
            except KeyboardInterrupt as interrupt:
                raise Interrupted(str(interrupt) or interrupted) from None

    def _progress(self, stays: bool) -> Progress:
        from rich.progress import BarColumn, Progress, TextColumn

        console = _console(stderr=True)
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=not stays,
            disable=self.json or self.quiet or not console.is_terminal,
        )

    def change(self, change: Change, parent: Version, output: str | None = None) -> None:
        """Commits what a verb made of `parent` and says what was written."""
        from cobalt_data.commit import commit

        with self.bar("writing", stays=False):
            version = commit(change, [parent], output)
        self.version(version)

    def version(self, version: Version, **more: Any) -> None:
        """What a verb wrote: its reference, and where every row went."""
        manifest = version.manifest
        sides = {name: {side: manifest.rows(name, side) for side in manifest.splits(name)} for name in manifest.tables}
        counts = {
            name: {"rows_in": count.rows_in, "rows_out": count.rows_out, "dropped": dict(count.dropped)}
            for name, count in manifest.counts.items()
        }
        fields = {"reference": version.reference, "version": version.id, "operation": manifest.operation}
        self.result(
            {**fields, "counts": counts, "rows": sides, **more},
            *(line for name, count in counts.items() for line in _count_lines(name, count)),
            *(f"{name}: {_listing(rows)}" for name, rows in sides.items() if name in counts or len(rows) > 1),
            version.reference,
        )

    def version_line(self, version: Version) -> None:
        """The same in one remark, for a step on the way."""
        manifest = version.manifest
        outcomes = ", ".join(f"{count.rows_out} {name}" for name, count in manifest.counts.items())
        self.remark(f"{manifest.operation:8} {version.reference}: {outcomes}")


def _count_lines(name: str, count: Mapping[str, Any]) -> list[str]:
    dropped = [f"  {number:>7} {reason}" for reason, number in sorted(count["dropped"].items())]
    return [f"{name}: {count['rows_in']} in, {count['rows_out']} out", *dropped]


def _listing(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{side} {number}" for side, number in rows.items()) or "none"


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, soft_wrap=True)


def moment(at: Moment) -> tuple[int, int, str]:
    """What a bar shows of a collection or an evaluation: done, of all, and the rest in words."""
    left = "" if at.seconds_left is None else f", {clock(at.seconds_left)} left"
    return at.problems_done, at.problems, f"{at.problems_solved} solved, {at.tokens_per_second:.0f} tokens/s{left}"


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
