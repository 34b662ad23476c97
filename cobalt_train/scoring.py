"""Log-probabilities of the completions of prompts under a model, with gradients, each shared token computed once.

`shared_prefix=True` runs the packed row through `cobalt_train.tree_attention`; `False` is the plain path, one row per
completion with the prompt in each, by the model's own attention. Both give the same numbers, and `check_scores` makes sure.

Dropout is off: sampled and trained probabilities would differ. Models that carry a state from token to token (linear
attention) would mix the completions of a row silently, so they are refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from cobalt_data.errors import InputError
from cobalt_train import tree_attention
from cobalt_train.logprobs import chosen_logprobs
from cobalt_train.packing import Rows, pack, padded_targets

LOGITS_CHANGED_BY = ("logits_scaling", "logit_scale", "final_logit_softcapping")  # after the output layer
FULL, SLIDING = "full_attention", "sliding_attention"
CHECKED_COMPLETIONS, CHECKED_TOKENS = 2, 32
TOLERANCE = 2e-3  # in log-probability: float32 over a few hundred layers stays far below, a wrong mask far above


@dataclass(frozen=True, slots=True)
class Scores:
    """Of n completions of at most T tokens, all (n, T); 0 where `mask` is False."""

    logprobs: Tensor
    entropies: Tensor
    mask: Tensor


def prepare(model: Any, name: str, longest: int, shared_prefix: bool) -> None:
    """Readies a model for a `Scorer`. Raises InputError, naming the model, if its layers cannot share a prompt or its
    logits are not those of its output layer.

    `longest` is the most tokens that a prompt and a completion have together: within a sliding window, layers that slide
    are ordinary ones.
    """
    config = model.config
    for setting in LOGITS_CHANGED_BY:
        if getattr(config, setting, None) not in (None, 1):
            raise InputError(
                f"model {name} changes its logits ({setting} = {getattr(config, setting)}): it cannot be trained"
            )
    if not shared_prefix:
        return
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or [SLIDING if window else FULL]) - {FULL}
    if kinds == {SLIDING} and window and longest <= window:
        kinds = set()
    if kinds:
        raise InputError(
            f"model {name} has layers of type {', '.join(sorted(kinds))}, over which completions cannot share their prompt: "
            "set shared_prefix = false"
        )
    try:
        model.set_attn_implementation(tree_attention.NAME)
    except ValueError as error:
        raise InputError(
            f"model {name} does not let its attention be replaced ({error}): set shared_prefix = false"
        ) from None


def checkpoint_layers(model: Any, name: str) -> None:
    """From now on a training pass keeps the input of each layer alone, and the backward pass computes the layer again.

    Over a shared prefix it keeps the output of each attention as well, which is small beside what it costs.

    Exact: nothing in a layer is random. Raises InputError, naming the model, if it does not tell what its layers are.
    """
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    if not layers:
        raise InputError(f"model {name} does not mark its layers: set gradient_checkpointing = false")
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False)


def _is_checkpointed(module: nn.Module) -> bool:
    return isinstance(module.forward, partial) and module.forward.func is checkpoint


class Scorer(nn.Module):
    """A model as its completions are scored: a module, so that weights that are sharded are gathered for its passes."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def score(self, groups: Sequence[Rows], temperature: float = 1.0, shared_prefix: bool = True) -> Scores:
        """Scores the completions of some prompts, group by group, under the model's distribution at `temperature`."""
        targets, mask = (tensor.to(self.model.device) for tensor in padded_targets(groups))
        logprobs, entropies = self(groups, targets[mask], temperature, shared_prefix)
        empty = torch.zeros(mask.shape, dtype=logprobs.dtype, device=logprobs.device)
        return Scores(empty.masked_scatter(mask, logprobs), empty.masked_scatter(mask, entropies), mask)

    def forward(
        self, groups: Sequence[Rows], targets: Tensor, temperature: float, shared_prefix: bool
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies of the M tokens of the completions, both (M,)."""
        hidden = _shared_hidden(self.model, groups) if shared_prefix else _plain_hidden(self.model, groups)
        return chosen_logprobs(hidden, self.model.get_output_embeddings().weight, targets, temperature)


def check_scores(
    scorer: Scorer,
    name: str,
    prompt: Sequence[int],
    completions: Sequence[Sequence[int]],
    temperature: float,
    shared_prefix: bool,
) -> None:
    """Compares the scores with the model's own logits on the beginning of a group. Raises InputError where they differ."""
    heads = [completion[:CHECKED_TOKENS] for completion in completions[:CHECKED_COMPLETIONS]]
    with torch.no_grad():
        scored = scorer.score([(prompt, heads)], temperature, shared_prefix)
        for row, completion in enumerate(heads):
            token_ids = torch.tensor([[*prompt, *completion]], device=scorer.model.device)
            output = scorer.model(token_ids, use_cache=False, logits_to_keep=len(completion) + 1)
            logits = output.logits[0, :-1].float() / temperature
            expected = logits.log_softmax(-1).gather(-1, token_ids[0, len(prompt) :, None]).squeeze(-1)
            difference = (scored.logprobs[row, : len(completion)] - expected).abs().max().item()
            if not difference <= TOLERANCE:
                raise InputError(
                    f"model {name}: log-probabilities computed for training differ from those of its own logits by "
                    f"{difference:.3g}; "
                    + ("set shared_prefix = false" if shared_prefix else "this architecture cannot be trained here")
                )


def _shared_hidden(model: Any, groups: Sequence[Rows]) -> Tensor:
    """The hidden states (M, H) that predict the M tokens of the completions."""
    packed = pack(groups).to(model.device)
    twice = torch.is_grad_enabled() and any(map(_is_checkpointed, model.modules()))
    output = model.base_model(
        input_ids=packed.token_ids,
        position_ids=packed.positions,
        segments=packed.segments,
        kept_attention={} if twice else None,
        use_cache=False,
    )
    return output.last_hidden_state[0, packed.scored_by]


def _plain_hidden(model: Any, groups: Sequence[Rows]) -> Tensor:
    """As above, from rows padded at their right end, where causal attention never looks."""
    rows = [(prompt, completion) for prompt, completions in groups for completion in completions]
    token_ids = pad_sequence([torch.tensor([*prompt, *completion]) for prompt, completion in rows], batch_first=True)
    output = model.base_model(input_ids=token_ids.to(model.device), use_cache=False)
    return torch.cat(
        [
            states[len(prompt) - 1 : len(prompt) + len(completion) - 1]
            for states, (prompt, completion) in zip(output.last_hidden_state, rows, strict=True)
        ]
    )
