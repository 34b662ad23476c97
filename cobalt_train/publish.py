"""A trained model as others use it: a plain Hugging Face directory with a model card, on disk or on the Hub.

The card names the dataset version, the base model with its revision, the settings and what the last step measured, all from
the checkpoint's own record. Optimizer states stay behind.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData

from cobalt_data.errors import InputError
from cobalt_data.hub import hub
from cobalt_data.models import EMBEDDED, EMBEDDED_REPOSITORY, load_model, load_tokenizer, resolve_model
from cobalt_data.references import HubReference, refuse_among_versions, refuse_unwritable
from cobalt_data.staging import clear_disk_errors
from cobalt_train.checkpoint import STATE
from cobalt_train.config import DTYPES, TrainConfig
from cobalt_train.journal import lines_up_to
from cobalt_train.reporting import CURVE_NAME, learning_curve

COMMIT_LENGTH = 40
CARD_NAME = "README.md"
METRICS_NAME = "metrics.jsonl"
TOLD = ("dataset", "model", "model_revision", "config", "step", "code_version")  # by a checkpoint of itself
SHOWN = ("reward", "pass_rate", "solved_share", "no_code_share", "kl", "entropy")


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """`directory` holds the model, `url` is its page on the Hub; either is None where it was not asked for."""

    directory: Path | None
    url: str | None
    step: int


def publish_model(
    source: str,
    output: Path | None = None,
    repository: str | None = None,
    *,
    private: bool = True,
    licence: str | None = None,
    dtype: str = "bfloat16",
    token: str | None = None,
) -> PublishedModel:
    """Writes the checkpoint `source` (a training run means its last) into the new directory `output`, or to the Hub, or both.

    Raises InputError where there is nothing to publish or no place for it, HubError where the Hub refuses.
    """
    if output is None and repository is None:
        raise InputError("there is no place to export to: give a directory with -o, or a repository with --push")
    if dtype not in DTYPES:
        raise InputError(f"dtype is {dtype!r}: use one of {', '.join(DTYPES)}")
    if output is not None:
        if output.exists():
            raise InputError(f"{output} is there already: choose another directory, or remove it")
        refuse_among_versions(output, "-o")
        refuse_unwritable(output, "-o")
    target = HubReference(repository) if repository else None
    resolved = resolve_model(source)
    facts = _facts(source, resolved.path)
    model, tokenizer = load_model(resolved, dtype), load_tokenizer(resolved)
    with clear_disk_errors(output or Path(tempfile.gettempdir())), _scratch_beside(output) as scratch:
        made = scratch / "model"
        with _disk_errors_as_such():
            model.save_pretrained(made)
            tokenizer.save_pretrained(made)
        metrics = _copy_metrics(resolved.path.parent / METRICS_NAME, made / METRICS_NAME, facts["step"])
        name = target.repository if target else resolved.path.parent.name
        (made / CARD_NAME).write_text(render_model_card(name, facts, metrics, licence), encoding="utf-8")
        url = _push(made, target.repository, facts, private, token) if target else None
        if output is not None:
            made.rename(output)
    return PublishedModel(output, url, facts["step"])


@contextmanager
def _scratch_beside(output: Path | None) -> Iterator[Path]:
    """A directory from which one rename leads to `output`; where there is none, one for temporary files."""
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent if output is not None else None) as scratch:
        yield Path(scratch)


@contextmanager
def _disk_errors_as_such() -> Iterator[None]:
    """The libraries that write weights and tokenizers raise errors of their own, whose text alone holds the system's number."""
    try:
        yield
    except Exception as error:
        told = re.search(r"\(os error (\d+)\)", str(error))
        if isinstance(error, OSError) or told is None:
            raise
        raise OSError(int(told[1]), os.strerror(int(told[1]))) from None


def _facts(source: str, checkpoint: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
        return {name: facts[name] for name in TOLD}
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(f"{source}: no checkpoint of `cobalt train` there: {STATE} is missing or damaged") from None


def _copy_metrics(journal: Path, copy: Path, last_step: int) -> list[dict[str, Any]]:
    """The run's metrics up to the checkpoint, with their picture; none where the checkpoint lies alone."""
    lines = lines_up_to(journal, last_step)
    if lines:
        copy.write_bytes(b"".join(lines))
        copy.with_name(CURVE_NAME).write_bytes(learning_curve(copy))
    return [json.loads(line) for line in lines]


def render_model_card(
    name: str, facts: Mapping[str, Any], metrics: list[dict[str, Any]], licence: str | None = None
) -> str:
    header = ModelCardData(
        base_model=_on_the_hub(facts["model"], facts["model_revision"]),
        license=licence,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["code", "reinforcement-learning", "cobalt"],
    )
    return (
        "\n\n".join([f"---\n{header.to_yaml()}\n---", f"# {name}", *_story(facts), *_course(metrics), _use(name)])
        + "\n"
    )


def _on_the_hub(model: str, revision: str) -> str | None:
    """The repository of a base model; None where it was a directory on somebody's disk, whose revision is no commit."""
    if model == EMBEDDED:
        return EMBEDDED_REPOSITORY
    return model.partition("@")[0] if len(revision) == COMMIT_LENGTH else None


def _story(facts: Mapping[str, Any]) -> Iterator[str]:
    template = facts.get("template") or {}
    yield (
        f"`{facts['model']}` (revision `{facts['model_revision']}`) after {facts['step']} steps of `cobalt train` "
        f"{facts['code_version']} on dataset version `{facts['dataset']}`"
        + (
            f", whose prompts are worded by the template `{template['name']}` (`{template['hash']}`)."
            if template
            else "."
        )
    )
    usual = TrainConfig()
    changed = {key: value for key, value in facts["config"].items() if value != getattr(usual, key, None)}
    rows = "\n".join(f"| {key} | {value} |" for key, value in changed.items())
    yield "Settings that differ from those of the paper:"
    yield f"| setting | value |\n|---|---|\n{rows}" if changed else "none."


def _course(metrics: list[dict[str, Any]]) -> Iterator[str]:
    if metrics:
        first, last = metrics[0], metrics[-1]
        shown = [
            name for name in SHOWN if None not in (first.get(name), last.get(name))
        ]  # as a step without lesson has
        rows = "\n".join(f"| {name} | {first[name]:.4g} | {last[name]:.4g} |" for name in shown)
        yield f"| on training prompts | step {first['step']} | step {last['step']} |\n|---|---|---|\n{rows}"
        yield f"![Figures over the steps]({CURVE_NAME})"


def _use(name: str) -> str:
    return (
        "```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        f'model = AutoModelForCausalLM.from_pretrained("{name}")\n'
        f'tokenizer = AutoTokenizer.from_pretrained("{name}")\n```\n\n'
        f"```sh\ncobalt eval {name} DATASET --split test\n```"
    )


def _push(made: Path, repository: str, facts: Mapping[str, Any], private: bool, token: str | None) -> str:
    """One commit with all of it."""
    with hub(f"the model {repository}", token) as api:
        url = api.create_repo(repository, repo_type="model", private=private, exist_ok=True)
        if private and not api.model_info(repository).private:
            raise InputError(
                f"{repository} is there already and everybody can read it; push with --public, or elsewhere"
            )
        message = f"Step {facts['step']} on dataset version {facts['dataset']}"
        api.upload_folder(repo_id=repository, folder_path=made, repo_type="model", commit_message=message)
    return str(url)
