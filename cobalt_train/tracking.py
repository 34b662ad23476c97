"""A run's metrics handed on to TensorBoard, wandb or trackio, beside the JSON lines that are always written.

The metrics of a step are flattened (`seconds/learn`), and what is no number stays out. A resumed run goes on in the same place:
in TensorBoard the steps that are done again hide the earlier ones, wandb and trackio find the run by its name.
"""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cobalt_data.errors import InputError

PROJECT = "cobalt"
NAME_FILE = "tracked-as"
TRACKERS = ("tensorboard", "wandb", "trackio")
MODULES = {"tensorboard": "torch.utils.tensorboard"}

Metrics = Mapping[str, Any]
Track = Callable[[Metrics], None]


def require_trackers(names: Iterable[str]) -> None:
    """Raises InputError for a tracker that is unknown or not installed."""
    for name in names:
        if name not in TRACKERS:
            raise InputError(f"tracker {name!r} is unknown: use one of {', '.join(TRACKERS)}")
        try:
            importlib.import_module(MODULES.get(name, name))
        except ImportError:
            raise InputError(f"{name} is not installed: pip install {name}") from None


@contextmanager
def tracking(names: Sequence[str], output: Path, settings: Mapping[str, Any], first_step: int) -> Iterator[Track]:
    """Opens the trackers of a run that makes `first_step` next; what is yielded takes the metrics of each step.

    Raises as `require_trackers`.
    """
    require_trackers(names)
    with ExitStack() as opened:
        trackers = [opened.enter_context(_open(name, output, settings, first_step)) for name in dict.fromkeys(names)]

        def track(metrics: Metrics) -> None:
            numbers = dict(flat(metrics))
            for log in trackers:
                log(numbers, metrics["step"])

        yield track


def flat(metrics: Metrics, prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a record by their path."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and name != "step":
            yield f"{prefix}{name}", float(value)


@contextmanager
def _open(
    name: str, output: Path, settings: Mapping[str, Any], first_step: int
) -> Iterator[Callable[[Mapping[str, float], int], None]]:
    if name == "tensorboard":
        writer = importlib.import_module(MODULES[name]).SummaryWriter(str(output / name), purge_step=first_step)

        def log(numbers: Mapping[str, float], step: int) -> None:
            for path, value in numbers.items():
                writer.add_scalar(path, value, step)
            writer.flush()

        try:
            yield log
        finally:
            writer.close()
        return
    service: Any = importlib.import_module(name)
    called = _run_name(output)
    place = {"id": called, "dir": str(output)} if name == "wandb" else {}
    run = service.init(project=PROJECT, name=called, config=dict(settings), resume="allow", **place)
    try:
        yield lambda numbers, step: run.log(dict(numbers), step=step)
    finally:
        run.finish()


def _run_name(output: Path) -> str:
    """The directory's name with a mark of this run, drawn once: other runs may lie in directories of the same name."""
    kept = output / NAME_FILE
    if not kept.exists():
        kept.write_text(f"{output.resolve().name}-{secrets.token_hex(4)}", encoding="utf-8")
    return kept.read_text(encoding="utf-8")
