"""Any OpenAI-compatible endpoint: `vllm serve`, `transformers serve`, a gateway or a hosted model.

Text goes in and comes out, which is enough to collect and to evaluate but not to train. Every completion is a request of its
own with its own seed, since many servers ignore `n`; whether they honour the seed is theirs to say. The `openai` client
retries what is worth it (connection errors, 408, 409, 429, 5xx) with growing pauses; what still fails ends the call.

The key is read from `COBALT_API_KEY` or `OPENAI_API_KEY`, goes into the request and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai

from cobalt_data.engines.base import Completion, Sampling
from cobalt_data.errors import EngineError, one_line
from cobalt_data.rows import Chat
from cobalt_data.tokens import estimated_chat_tokens, estimated_tokens

NO_KEY = "none"  # local servers take any


class OpenAIEngine:
    name = "openai"
    model_revision = "unknown"
    parallel_calls = 8

    def __init__(
        self, base_url: str, model: str, *, concurrency: int = 32, timeout_s: float = 600, retries: int = 5
    ) -> None:
        """Asks the endpoint for its models, so that a wrong address or key shows at once. Raises EngineError."""
        self.model = model
        self.base_url = base_url
        key = os.environ.get("COBALT_API_KEY") or os.environ.get("OPENAI_API_KEY") or NO_KEY
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=key,
            timeout=openai.Timeout(timeout_s, connect=10),
            max_retries=retries,
        )
        self._requests = ThreadPoolExecutor(concurrency, thread_name_prefix="openai-engine")
        self.context = self._greet()

    def complete(
        self, chats: Sequence[Chat], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        groups = [
            [self._requests.submit(self._complete_one, chat, seed, sampling) for seed in group]
            for chat, group in zip(chats, seeds, strict=True)
        ]
        try:
            return [[request.result() for request in group] for group in groups]
        finally:
            for group in groups:
                for request in group:
                    request.cancel()

    def session(self) -> OpenAIEngine:
        """Itself: what it remembers is the server's to say."""
        return self

    def count_tokens(self, chat: Chat) -> int:
        """An estimate from the number of characters: the endpoint's tokenizer is not here."""
        return estimated_chat_tokens(chat)

    def close(self) -> None:
        self._requests.shutdown(cancel_futures=True)
        self._client.close()

    def _greet(self) -> int | None:
        """The context of the model, where the endpoint tells it, as vLLM does."""
        try:
            answer = self._client.with_options(max_retries=1, timeout=30).get("/models", cast_to=object)
        except openai.NotFoundError:
            return None  # not every endpoint lists its models; a wrong path shows at the first completion
        except (openai.OpenAIError, ValueError) as error:
            raise self._failure(error) from None
        cards = answer.get("data") if isinstance(answer, dict) else None
        return next((card.get("max_model_len") for card in cards or [] if card.get("id") == self.model), None)

    def _complete_one(self, chat: Chat, seed: int, sampling: Sampling) -> Completion:
        messages: Any = [dict(message) for message in chat]
        try:
            answer = self._client.chat.completions.create(
                model=self.model,
                messages=messages,
                seed=seed % 2**31,  # some servers take no more bits
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=sampling.max_tokens,
            )
        except (openai.OpenAIError, ValueError) as error:
            raise self._failure(error) from None
        if not getattr(answer, "choices", None):
            raise EngineError(f"{self.base_url} answered without a completion: is it an OpenAI-compatible endpoint?")
        choice, usage = answer.choices[0], answer.usage
        text = choice.message.content or ""
        return Completion(
            text=text,
            finish_reason="length" if choice.finish_reason == "length" else "stop",
            prompt_tokens=usage.prompt_tokens if usage else self.count_tokens(chat),
            completion_tokens=usage.completion_tokens if usage else estimated_tokens(text),
        )

    def _failure(self, error: Exception) -> EngineError:
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            what = f"refuses the key ({error.status_code}): set COBALT_API_KEY or OPENAI_API_KEY to one that it knows"
        elif isinstance(error, openai.APITimeoutError):
            what = "does not answer in time: is it overloaded, or max_tokens too high?"
        elif isinstance(error, openai.NotFoundError):
            what = f"knows no chat completions or no model {self.model!r} (404): check both; most URLs end in /v1"
        elif isinstance(error, openai.APIStatusError):
            what = f"answers {error.status_code} for model {self.model!r}: {one_line(error)}"
        elif isinstance(error, openai.APIConnectionError):
            what = f"cannot be reached ({one_line(error.__cause__ or error)}): is the server up, and the address right?"
        else:
            what = f"gave no usable answer: {one_line(error)}"
        return EngineError(f"{self.base_url} {what}")
