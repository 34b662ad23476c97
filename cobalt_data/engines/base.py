"""What an engine is: chats in, completions out.

Three engines share this interface: `transformers` (embedded, runs on a CPU), `vllm` (in process) and `openai` (an
OpenAI-compatible endpoint). The first two work in token ids and return them with their log-probabilities; `openai` returns
text alone (`token_ids` is None), which is enough to collect and to evaluate but not to train.

An engine is called from several threads at once and serialises itself where it must. What `complete` returns depends on its
arguments alone, never on earlier calls or on timing; within a session, on the session's calls alone. That is what lets a
killed collection resume to the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from cobalt_data.errors import InputError
from cobalt_data.rows import Chat

NOT_FINITE = "the model's logits are not finite: its weights are damaged, or the training that made them diverged"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How completions are drawn. `temperature` 0 is greedy; `max_tokens` bounds one completion."""

    temperature: float = 0.6
    top_p: float = 0.95
    max_tokens: int = 512

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 5:
            raise InputError(f"temperature is {self.temperature}: give a number in [0, 5]")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}: give a number in (0, 1]")
        if self.max_tokens < 1:
            raise InputError(f"max_tokens is {self.max_tokens}: give at least 1")


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer to one chat.

    `token_ids` are as sampled, the end token included where the model stopped by itself; `logprobs` are natural logarithms
    of the probabilities they were drawn with (after temperature and top-p), one per token. Both are None on text engines,
    where the token counts are those that the server reports.
    """

    text: str
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


class Session(Protocol):
    """What completes chats; one that `Engine.session` gave is for conversations whose chats grow from call to call."""

    def complete(
        self, chats: Sequence[Chat], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """Draws `len(seeds[i])` completions of `chats[i]`, one per seed, in that order. Raises EngineError."""
        ...


class Engine(Session, Protocol):
    name: str  # "transformers" | "vllm" | "openai"
    model: str  # as the user named it
    model_revision: str  # a content hash or a Hub commit; "unknown" on text engines
    parallel_calls: int  # how many calls of `complete` at once keep the engine busy

    @property
    def context(self) -> int | None:
        """Tokens of a prompt and its completion together at most; None where a text engine cannot know."""
        ...

    def session(self) -> Session:
        """For a unit of conversations, its calls one after the other: what one call computed serves the next."""
        ...

    def count_tokens(self, chat: Chat) -> int:
        """Tokens of the rendered prompt, generation header included (an estimate on text engines)."""
        ...

    def close(self) -> None: ...
