"""Checkpoints: a model directory in Hugging Face format that is also all a run needs to go on.

    OUTPUT/run.json                 what the run is: dataset version, model, settings
    OUTPUT/checkpoint-000010/       config.json, model.safetensors (the float32 masters), tokenizer with its chat template,
                                    generation_config.json
        cobalt.json                 where it came from: run.json's content, code version, step, prompts used so far
        adapter_*                   in place of the weights where only an adapter is trained (`cobalt_train.lora`)
        optimizer.pt                the moments of AdamW; `optimizer/`, by torch.distributed.checkpoint, where several
                                    processes hold a shard each, whose number may change
    OUTPUT/best                     a link to the checkpoint that was best in validation, where there was one

A checkpoint is filled aside, synced and renamed: it is there whole or not at all. Everything random in a run is seeded by what
it is drawn for, so a step number and a cursor stand in for the state of random generators.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict

from cobalt_data.adapters import is_adapted, save_adapter
from cobalt_data.errors import CobaltError, InputError, one_line
from cobalt_data.models import CHECKPOINT, checkpoints
from cobalt_data.references import refuse_among_versions
from cobalt_data.staging import ASIDE_PREFIX, locked, remove, sync, write_whole
from cobalt_train.config import FREE_ON_RESUME, TrainConfig
from cobalt_train.ranks import Ranks, whole_weights

MACHINES_ERRORS = (errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
RUN, STATE, OPTIMIZER, SHARDS, BEST = "run.json", "cobalt.json", "optimizer.pt", "optimizer", "best"


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What makes two runs the same one."""

    dataset: str  # version id
    model: str
    model_revision: str
    template: Mapping[str, Any] | None  # name and hash of the prompt template, where the dataset tells
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrainState:
    """How far a run is: steps and updates made, prompts used, and the validated step that scored best."""

    step: int = 0
    updates: int = 0
    cursor: int = 0
    best_step: int = 0  # 0 where nothing was validated
    best_score: float | None = None

    def __post_init__(self) -> None:
        for name in ("step", "updates", "cursor", "best_step"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)!r}: a run counts from 0")

    def with_validation(self, score: float | None) -> TrainState:
        """With this step as the best so far, if it is: of equals, the earlier stays."""
        better = score is not None and (self.best_score is None or score > self.best_score)
        return replace(self, best_step=self.step, best_score=score) if better else self


@contextlib.contextmanager
def held_output(output: Path, resume: bool) -> Iterator[None]:
    """Makes the directory and keeps other processes from training in it.

    Raises InputError where one does already, there is no run to `resume`, or a dataset's versions lie there.
    """
    refuse_among_versions(output, "-o")
    if resume and not (output / RUN).exists():
        raise InputError(f"{output} holds no run to resume: begin one without --resume")
    with contextlib.ExitStack() as held:
        try:
            output.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(output, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            raise InputError(
                f"another process trains in {output}: wait until it is done, or choose another directory"
            ) from None
        except OSError as error:
            raise InputError(f"{output}: cannot be written ({error.strerror})") from None
        yield


@contextlib.contextmanager
def saying_how_to_go_on(output: Path) -> Iterator[None]:
    """Ctrl-C within is raised again with a message, which depends on whether the run in `output` has begun."""
    try:
        yield
    except KeyboardInterrupt:
        begun = (output / RUN).exists()
        raise KeyboardInterrupt(
            "interrupted: what was saved is whole; give the same command with --resume to go on from the last checkpoint"
            if begun
            else "interrupted before the run began: nothing was written, give the same command again"
        ) from None


def open_output(output: Path, run: RunIdentity, resume: bool) -> None:
    """Claims a held directory for this run. Raises InputError if it holds another, or this one and `resume` was not asked."""
    file = output / RUN
    if file.exists():
        if not resume:
            raise InputError(f"{output} holds a run already: resume it, or choose another directory")
        _refuse_another_run(output, _read_json(file, ("dataset", "model_revision", "config")), run)
        _refuse_strangers(output)
    elif any(path.name != f"{ASIDE_PREFIX}{RUN}" for path in output.iterdir()):  # which a killed process left
        raise InputError(f"{output} is not empty and holds no run: choose another directory")
    try:
        for leftover in output.glob(".checkpoint-*"):
            remove(leftover)
        write_whole(file, _json(asdict(run)))
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror})") from None


def save_checkpoint(
    output: Path,
    state: TrainState,
    run: RunIdentity,
    model: Any,
    tokenizer: Any,
    optimizer: torch.optim.Optimizer,
    keep: int,
    ranks: Ranks,
) -> Path:
    """Writes a checkpoint, then removes all but the last `keep` and the best. Raises CobaltError, with the earlier ones intact.

    All processes call it together; process 0 writes what is not sharded.
    """
    place = output / f"checkpoint-{state.step:06d}"
    aside = output / f".{place.name}"
    try:
        if ranks.writes:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
        ranks.wait()
        weights = _whole_on_the_cpu(model) if ranks.size > 1 else None
        if state.updates:  # before the first there is nothing to keep, and to ask for it would begin it
            _write_optimizer(aside, model, optimizer, ranks)
        if ranks.writes:
            _write_model(aside, model, weights)
            tokenizer.save_pretrained(aside)
            facts = {**asdict(run), **asdict(state), "code_version": metadata.version("cobalt-rl")}
            (aside / STATE).write_bytes(_json(facts))
            for path in [*aside.rglob("*"), aside]:
                sync(path)
            aside.rename(place)
            sync(output)
    except (Exception, dcp.api.CheckpointException) as error:  # libraries wrap a full disk in exceptions of their own
        shutil.rmtree(aside, ignore_errors=True)
        raise CobaltError(
            f"{place}: the checkpoint cannot be written ({one_line(error)}); earlier ones are whole: make room, then resume"
        ) from error
    clear_up(output, state, keep, ranks)
    return place


def clear_up(output: Path, state: TrainState, keep: int, ranks: Ranks) -> None:
    """Removes all checkpoints but the last `keep` and the best, as after each save. Raises CobaltError.

    All processes call it together; process 0 does it, and again where a run that was killed may not have come so far.
    """
    try:
        if ranks.writes:
            _forget(output, keep, state.best_step)
    except OSError as error:
        raise CobaltError(
            f"checkpoint {state.step} is whole, but {output} cannot be cleared up ({error.strerror}: {error.filename}); "
            "mend that, then resume"
        ) from None
    ranks.wait()


def _forget(output: Path, keep: int, best_step: int) -> None:
    """The link `best` leads to the best one."""
    best = output / f"checkpoint-{best_step:06d}"
    if best.exists():
        link = output / f".{BEST}"
        link.unlink(missing_ok=True)
        link.symlink_to(best.name)
        link.replace(output / BEST)
    for old in checkpoints(output)[:-keep]:
        if old != best:
            aside = output / f".{old.name}"
            old.rename(aside)  # so that a kill leaves no part of it under its name
            shutil.rmtree(aside)


def _write_model(directory: Path, model: Any, weights: dict[str, Tensor] | None) -> None:
    """In Hugging Face format; of an adapted model the adapter, with the configuration of its base."""
    if is_adapted(model):
        save_adapter(model, dict(whole_weights(model)) if weights is None else weights, directory)
        model.config.save_pretrained(directory)
        model.generation_config.save_pretrained(directory)
    else:
        model.save_pretrained(directory, state_dict=weights)


def _write_optimizer(directory: Path, model: Any, optimizer: torch.optim.Optimizer, ranks: Ranks) -> None:
    if ranks.size == 1:
        torch.save(optimizer.state_dict(), directory / OPTIMIZER)
    else:
        dcp.save({SHARDS: get_optimizer_state_dict(model, optimizer)}, checkpoint_id=directory / SHARDS)


def _whole_on_the_cpu(model: Any) -> dict[str, Tensor]:
    """The weights that are trained, each once; all processes call it together."""
    tied = getattr(model, "_tied_weights_keys", None) or () if model.config.tie_word_embeddings else ()
    return {name: tensor.cpu() for name, tensor in whole_weights(model) if name not in tied}


def load_state(checkpoint: Path, model: Any, optimizer: torch.optim.Optimizer, ranks: Ranks) -> TrainState:
    """Restores the optimizer in place. Raises InputError for a damaged checkpoint, or one of too few processes."""
    is_sharded = (checkpoint / SHARDS).is_dir()
    names = list(asdict(TrainState()))
    facts = _read_json(checkpoint / STATE, names)
    with undamaged(checkpoint):
        state = TrainState(**{name: facts[name] for name in names})
    if not state.updates:
        return state  # the optimizer is as it begins
    if ranks.size > 1 and not is_sharded:
        raise InputError(f"{checkpoint} was written by one process: resume without torchrun")
    with undamaged(checkpoint):
        if is_sharded:
            moments = {SHARDS: get_optimizer_state_dict(model, optimizer)}
            dcp.load(moments, checkpoint_id=checkpoint / SHARDS, no_dist=ranks.size == 1)
            set_optimizer_state_dict(model, optimizer, moments[SHARDS])
        else:
            optimizer.load_state_dict(torch.load(checkpoint / OPTIMIZER, map_location="cpu", weights_only=True))
    return state


@contextlib.contextmanager
def undamaged(checkpoint: Path) -> Iterator[None]:
    """Turns what goes wrong while a checkpoint is read into InputError, which says what to do about it.

    What the machine refuses says nothing against the checkpoint: CobaltError, and nobody is told to remove it.
    """
    try:
        yield
    except (Exception, dcp.api.CheckpointException) as error:  # over a torn file libraries stumble in many ways
        if _is_the_machines(error):
            raise CobaltError(
                f"{checkpoint} cannot be read ({one_line(error)}), which may be whole: mend that, then resume"
            ) from None
        raise InputError(
            f"{checkpoint} is damaged ({one_line(error)}): remove it to resume from the one before"
        ) from None


def _is_the_machines(error: BaseException | None) -> bool:
    """Whether memory, rights or the system's own limits were what failed, in whatever errors it was wrapped."""
    while error is not None:
        if isinstance(error, MemoryError | torch.OutOfMemoryError):
            return True
        if isinstance(error, OSError) and error.errno in MACHINES_ERRORS:
            return True
        error = error.__context__
    return False


def _refuse_another_run(output: Path, before: Mapping[str, Any], run: RunIdentity) -> None:
    now = asdict(run)
    for name, label in (("dataset", "dataset version"), ("model_revision", "model revision")):
        if before[name] != now[name]:
            raise InputError(
                f"{output} was trained with {label} {before[name]}, not {now[name]}: resume with the same one"
            )
    if before.get("template") != now["template"]:
        raise InputError(f"{output} was trained with another template or other words in it: resume with the same one")
    for name in asdict(TrainConfig()):
        old, new = before["config"].get(name), now["config"][name]
        if old != new and name not in FREE_ON_RESUME:
            raise InputError(f"{output} was trained with {name} = {old}, not {new}: resume with the same setting")


def _refuse_strangers(output: Path) -> None:
    """What bears the name of a checkpoint without being one would be in the way of the one that is due there."""
    for path in output.glob("checkpoint-*"):
        if CHECKPOINT.fullmatch(path.name) and not (path / STATE).is_file():
            raise InputError(f"{path} is no checkpoint, though it is called one: move it elsewhere, then resume")


def _json(facts: Mapping[str, Any]) -> bytes:
    return (json.dumps(facts, indent=1, sort_keys=True) + "\n").encode()


def _read_json(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """An object that has these names. Raises InputError where it has not."""
    try:
        facts = dict(json.loads(path.read_text(encoding="utf-8")))
        if missing := [name for name in names if name not in facts]:
            raise ValueError(f"it lacks {', '.join(missing)}")
        return facts
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}): remove {path.parent}, what it held cannot be resumed") from None
