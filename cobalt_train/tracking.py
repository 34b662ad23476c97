"""A run's metrics handed on to TensorBoard, wandb or trackio, beside the JSON lines that are always written.

The metrics of a step are flattened (`seconds/learn`), and what is no number stays out. A resumed run goes on in the same place:
in TensorBoard the steps that are done again hide the earlier ones, wandb and trackio find the run by its name.
"""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cobalt_data.errors import InputError, one_line

PROJECT = "cobalt"
NAME_FILE = "tracked-as"
TRACKERS = ("tensorboard", "wandb", "trackio")
MODULES = {"tensorboard": "torch.utils.tensorboard"}

Metrics = Mapping[str, Any]
Track = Callable[[Metrics], None]


@dataclass(frozen=True, slots=True)
class _Tracker:
    log: Callable[[Mapping[str, float], int], None]  # the numbers of a step
    close: Callable[[], None]


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
def tracking(
    names: Sequence[str], output: Path, settings: Mapping[str, Any], first_step: int, say: Callable[[str], None] = print
) -> Iterator[Track]:
    """Opens the trackers of a run that makes `first_step` next; what is yielded takes the metrics of each step.

    Raises as `require_trackers`, and InputError for one that does not open. One that fails later is left alone from then on,
    and `say` is told: no run ends for the sake of a copy of its metrics.
    """
    require_trackers(names)
    trackers = {name: _open(name, output, settings, first_step) for name in dict.fromkeys(names)}

    def guarded(name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # whatever the client of a service raises
            trackers.pop(name, None)
            say(f"{name} takes no more metrics ({one_line(error)}); the run goes on, and metrics.jsonl has them")

    def track(metrics: Metrics) -> None:
        numbers = dict(flat(metrics))
        for name, tracker in list(trackers.items()):
            guarded(name, partial(tracker.log, numbers, metrics["step"]))

    try:
        yield track
    finally:
        for name, tracker in list(trackers.items()):
            guarded(name, tracker.close)


def flat(metrics: Metrics, prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a record by their path."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and name != "step":
            yield f"{prefix}{name}", float(value)


def _open(name: str, output: Path, settings: Mapping[str, Any], first_step: int) -> _Tracker:
    try:
        if name == "tensorboard":
            return _tensorboard(output / name, first_step)
        return _service(name, output, settings)
    except Exception as error:  # such as somebody who is not logged in
        raise InputError(
            f"{name} cannot be opened ({one_line(error)}): mend that or leave it out, then give the command with --resume"
        ) from None


def _tensorboard(directory: Path, first_step: int) -> _Tracker:
    writer = importlib.import_module(MODULES["tensorboard"]).SummaryWriter(str(directory), purge_step=first_step)

    def log(numbers: Mapping[str, float], step: int) -> None:
        for path, value in numbers.items():
            writer.add_scalar(path, value, step)
        writer.flush()

    return _Tracker(log, writer.close)


def _service(name: str, output: Path, settings: Mapping[str, Any]) -> _Tracker:
    service: Any = importlib.import_module(name)
    called = _run_name(output)
    place = {"id": called, "dir": str(output)} if name == "wandb" else {}
    run = service.init(project=PROJECT, name=called, config=dict(settings), resume="allow", **place)
    return _Tracker(lambda numbers, step: run.log(dict(numbers), step=step), run.finish)


def _run_name(output: Path) -> str:
    """The directory's name with a mark of this run, drawn once: other runs may lie in directories of the same name."""
    kept = output / NAME_FILE
    if not kept.exists():
        kept.write_text(f"{output.resolve().name}-{secrets.token_hex(4)}", encoding="utf-8")
    return kept.read_text(encoding="utf-8")
