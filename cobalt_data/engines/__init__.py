"""Engines complete chats. `open_engine` imports the one that is asked for, and no other."""

from __future__ import annotations

from cobalt_data.engines.base import Completion, Engine, Sampling
from cobalt_data.errors import EngineError, InputError

__all__ = ["Completion", "Engine", "Sampling", "open_engine"]


def open_engine(name: str, model: str, *, base_url: str | None = None) -> Engine:
    """Opens an engine by name: auto, transformers, openai or vllm.

    `auto` is openai where `base_url` is given and transformers otherwise. Raises InputError for what is asked wrongly,
    EngineError for what this machine or the endpoint lacks.
    """
    if name == "auto":
        name = "openai" if base_url else "transformers"
    if base_url and name != "openai":
        raise InputError(f"engine {name} takes no base URL: leave it out, or ask for the engine openai")
    if name == "transformers":
        try:
            from cobalt_data.engines.transformers import TransformersEngine
        except ImportError as error:
            raise EngineError(f"engine transformers needs {error.name}: pip install 'cobalt-rl[train]'") from None
        engine: Engine = TransformersEngine.load(model)
        return engine
    if name == "openai":
        try:
            from cobalt_data.engines.openai import OpenAIEngine
        except ImportError as error:
            raise EngineError(f"engine openai needs {error.name}: pip install 'cobalt-rl[openai]'") from None
        if not base_url:
            raise InputError("engine openai needs a base URL, such as http://localhost:8000/v1")
        return OpenAIEngine(base_url, model)
    if name == "vllm":
        raise EngineError("engine vllm is not built yet: use transformers, or openai against `vllm serve`")
    raise InputError(f"engine {name!r} is unknown: give auto, transformers, openai or vllm")
