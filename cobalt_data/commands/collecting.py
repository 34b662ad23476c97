"""What `collect` and `augment --recollect` share: a collection on the screen, from its start to its version."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cobalt_data.console import Screen, moment

if TYPE_CHECKING:
    from cobalt_data.collection import CollectConfig, Lies
    from cobalt_data.dataset import Version
    from cobalt_data.engines import Engine


def show_collection(
    screen: Screen,
    version: Version,
    engine: Engine,
    config: CollectConfig,
    backend: str,
    lies: Lies | None = None,
    output: str | None = None,
) -> None:
    """Collects, commits, and says what came of it."""
    from cobalt_data.collection import collect
    from cobalt_data.commit import commit, target_of
    from sandbox import Pool

    target = target_of([version], output)
    unfinished = target if version.origin else version.dataset
    with (
        Pool(backend=backend) as pool,
        screen.bar("collecting") as show,
        collect(
            version, engine, pool, config, lies=lies, dataset=unfinished, progress=lambda at: show(*moment(at))
        ) as collected,
    ):
        committed = commit(collected.change, [version], output) if collected.added else version
    measured, dropped = collected.progress, collected.change.counts["trajectories"].dropped
    if not collected.added:
        why = ", ".join(f"{rows} {reason}" for reason, rows in sorted(dropped.items())) or "all of them are there"
        screen.result(
            {"reference": version.reference, "version": version.id, "added": 0, "dropped": dict(dropped)},
            f"0 trajectories added ({why}); no version was written",
            version.reference,
        )
        return
    screen.remark(
        f"{collected.added} trajectories added ({collected.resumed} found from an earlier run), "
        f"{measured.problems_solved} of {measured.problems} problems solved, {measured.tokens_per_second:.0f} tokens/s, "
        f"{measured.model_share:.0%} of the time in the model"
    )
    screen.version(committed, added=collected.added, resumed=collected.resumed, **asdict(measured))
