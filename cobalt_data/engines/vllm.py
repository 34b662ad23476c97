"""vLLM, started by this process: prompts share what they have in common through its prefix cache.

On a CPU it computes in this process, on a GPU in a child with a CUDA context of its own. Requests of several threads are
computed together, each drawing from its own seed; what a request draws may still depend, by rounding, on which others happen
to be computed with it. So nothing is lost or repeated, but a resumed run need not repeat to the last token.

Left out: several GPUs, several adapters, speculative decoding, and whatever else vLLM can that `vllm serve` and the
engine openai give to collection and evaluation.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, GenerationConfig

from cobalt_data.engines.base import NOT_FINITE, Sampling
from cobalt_data.engines.token_engine import Decoded, Drawn, TokenEngine, best_dtype, stop_ids
from cobalt_data.engines.vllm_weights import CheckpointNames, InProcess, OverIpc
from cobalt_data.errors import EngineError, InputError, one_line
from cobalt_data.models import ResolvedModel, load_tokenizer, resolve_model, whole_directory

for _name, _value in {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # standard output is for results
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # the trainer and the programs being judged need the cores as well
}.items():
    os.environ.setdefault(_name, _value)

from vllm import LLM, SamplingParams  # noqa: E402 (reads these when it is imported)
from vllm.platforms import current_platform  # noqa: E402
from vllm.sampling_params import RequestOutputKind  # noqa: E402

from cobalt_data.engines.vllm_adapter import AdapterAlone  # noqa: E402

SLEEP_LEVELS = (0, 1, 2)  # keep everything; weights to the host's memory, cache dropped; weights dropped too
GPU_SHARE, GPU_SHARE_BESIDE_A_TRAINER = 0.9, 0.3
CPU_SHARE = 0.1  # of the machine's memory, for the cache alone
CPU_BLOCK = 32  # tokens that are shared as one; by default 128, and a prompt shares only whole blocks


class VllmEngine(TokenEngine):
    name = "vllm"
    parallel_calls = 4  # their requests are computed together, so that no call waits for the longest row of another

    def __init__(
        self,
        resolved: ResolvedModel,
        *,
        dtype: str = "auto",
        memory_share: float | None = None,
        max_model_len: int | None = None,
        trains: bool = False,
        adapted: Any = None,
        sleep_level: int = 0,
    ) -> None:
        """Loads a model. Raises InputError for what is asked wrongly, EngineError for what vLLM says.

        `memory_share` is the part of a GPU's memory for weights and cache, or of the machine's memory for the cache on a CPU.
        `max_model_len` is the longest row that will be asked for; by default the longest that the model allows. `trains` says
        that a trainer will hand over weights, those of its adapter alone where `adapted` is a network with one in it (on the
        meta device, if one likes), and `sleep_level` what `sleep` gives back to it on a GPU: not 2 where weights must stay.
        """
        if memory_share is not None and not 0 < memory_share < 1:
            raise InputError(f"memory_share is {memory_share}: give a number in (0, 1)")
        if sleep_level not in SLEEP_LEVELS:
            raise InputError(f"sleep_level is {sleep_level}: use one of {', '.join(map(str, SLEEP_LEVELS))}")
        tokenizer = load_tokenizer(resolved)
        config = AutoConfig.from_pretrained(resolved.path)
        limit = _longest_row(config, max_model_len)
        on_cpu = current_platform.is_cpu()
        self._adapter = AdapterAlone(adapted) if adapted is not None else None
        self._handover = self._adapter or (
            (InProcess if on_cpu else OverIpc)(CheckpointNames(config)) if trains else None
        )
        self._sleep_level = 0 if on_cpu else sleep_level
        self._llm = _start(
            resolved,
            dtype=best_dtype("cpu" if on_cpu else "cuda") if dtype == "auto" else dtype,
            max_model_len=limit,
            **_memory(memory_share, trains, on_cpu),
            **({"enable_sleep_mode": True} if self._sleep_level else {}),
            **(self._handover.options if self._handover else {}),
        )
        ends = stop_ids(tokenizer, _generation_config(resolved.path, config))
        super().__init__(tokenizer, name=resolved.name, revision=resolved.revision, context=limit, stop_ids=ends)
        self._engine = self._llm.llm_engine
        self._numbers = itertools.count()
        self._finished: dict[str, Any] = {}
        self._turn = Lock()
        self._ready, self._asleep = self._adapter is None, False

    @classmethod
    def load(cls, name: str, **settings: Any) -> VllmEngine:
        return cls(resolve_model(name), **settings)

    def draw(self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling) -> Drawn:
        """One request per seed: their common prompt is computed once, by the prefix cache."""
        with self._turn:
            if not self._ready:
                raise EngineError("engine vllm has no weights, or not all of them: hand them over first")
            groups = [
                [self._submit(prompt, seed, sampling) for seed in group]
                for prompt, group in zip(prompts, seeds, strict=True)
            ]
        outputs = self._wait({request for group in groups for request in group})
        return [[_decoded(outputs[request], sampling) for request in group] for group in groups]

    def update_weights(self, state: Iterable[tuple[str, Tensor]]) -> None:
        """Wakes the engine, replaces its weights and forgets the keys and values that old weights computed.

        Where that fails the engine is of no use any more: it draws nothing, and a process that wants another starts afresh.
        """
        if self._handover is None:
            raise InputError("this engine was not opened to be trained with")
        with self._turn, _told("takes no weights"):
            self._ready = False
            self._wake("weights")  # the cache comes back only when the new weights are in their place
            self._handover.push(self._llm, state)
            self._wake("kv_cache")
            if not self._llm.reset_prefix_cache():
                raise EngineError("engine vllm cannot forget what old weights computed: requests are still running")
            self._asleep, self._ready = False, True

    def sleep(self) -> None:
        if self._sleep_level:
            with self._turn, _told("does not sleep"):
                self._ready, self._asleep = False, True
                self._llm.sleep(level=self._sleep_level)

    def close(self) -> None:
        """Ends the child process, where there is one."""
        self._engine.engine_core.shutdown()

    def _wake(self, part: str) -> None:
        if self._asleep:
            self._llm.wake_up(tags=[part])

    def _submit(self, prompt: Sequence[int], seed: int, sampling: Sampling) -> str:
        request = str(next(self._numbers))
        params = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            seed=seed,
            stop_token_ids=sorted(self.stop_ids),
            logprobs=0,  # of the token drawn alone
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        with _told("refuses a request"):
            self._engine.add_request(
                request,
                {"type": "token", "prompt_token_ids": list(prompt)},
                params,
                lora_request=self._adapter.request if self._adapter else None,
            )
        return request

    def _wait(self, requests: set[str]) -> dict[str, Any]:
        """Whoever waits computes: one thread after the other takes a step for all requests there are."""
        while True:
            with self._turn:
                if requests <= self._finished.keys():
                    return {request: self._finished.pop(request) for request in requests}
                with _told("failed"):
                    outputs = self._engine.step()
                self._finished |= {output.request_id: output.outputs[0] for output in outputs if output.finished}


def _longest_row(config: Any, asked: int | None) -> int:
    positions: int = config.get_text_config().max_position_embeddings
    return positions if asked is None else min(positions, asked)


def _generation_config(path: Path, config: Any) -> Any:
    if (path / "generation_config.json").is_file():
        return GenerationConfig.from_pretrained(path)
    return GenerationConfig.from_model_config(config)


def _memory(share: float | None, trains: bool, on_cpu: bool) -> dict[str, Any]:
    if not on_cpu:
        default = GPU_SHARE_BESIDE_A_TRAINER if trains else GPU_SHARE
        return {"gpu_memory_utilization": share or default}
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"kv_cache_memory_bytes": int((share or CPU_SHARE) * machine), "block_size": CPU_BLOCK}


def _start(resolved: ResolvedModel, **options: Any) -> Any:
    with _contained(), _told(f"cannot serve {resolved.name}"), whole_directory(resolved) as directory:
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0" if current_platform.is_cpu() else "1"
        return LLM(
            str(directory),
            skip_tokenizer_init=True,
            use_tqdm_on_load=False,
            enable_prefix_caching=True,
            logprobs_mode="processed_logprobs",  # those that tokens are drawn with, after temperature and top-p
            enforce_eager=current_platform.is_cpu(),  # compiling takes a CPU a minute
            **options,
        )


@contextmanager
def _contained() -> Iterator[None]:
    """Undoes what vLLM does to the process that starts it: its libraries print, it preloads some in every child process, and
    it takes `torch.set_num_threads` away."""
    preloaded, set_num_threads = os.environ.get("LD_PRELOAD"), torch.set_num_threads
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)
        torch.set_num_threads = set_num_threads
        os.environ.pop("LD_PRELOAD", None)
        if preloaded is not None:
            os.environ["LD_PRELOAD"] = preloaded


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever vLLM raises is one line."""
    try:
        yield
    except (EngineError, InputError):
        raise
    except Exception as error:
        raise EngineError(f"engine vllm {what}: {one_line(error)}") from error


def _decoded(output: Any, sampling: Sampling) -> Decoded:
    tokens = list(output.token_ids)
    logprobs = [drawn[token].logprob for token, drawn in zip(tokens, output.logprobs, strict=True)]
    if not all(map(math.isfinite, logprobs)):
        raise EngineError(NOT_FINITE)
    return Decoded(tokens, logprobs if sampling.temperature else [0.0] * len(tokens))
