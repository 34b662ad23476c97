"""One step of learning: the policy, its optimizer, and the updates that a step's batches make.

Weights are float32 masters and AdamW's moments with them; forward and backward passes compute in bfloat16, by autocast,
where asked to. The gradients of an update add up over micro-batches, each already weighted by the denominator of the whole
update (`cobalt_train.objectives.row_weights`), so how rows are cut does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from cobalt_data.errors import CobaltError
from cobalt_train.batch import Batch, MicroBatch, micro_batches, split_evenly
from cobalt_train.config import TrainConfig
from cobalt_train.figures import Figures, total
from cobalt_train.heap import give_back
from cobalt_train.lean_layers import make_lean
from cobalt_train.objectives import KL_TERMS, OBJECTIVES, clipped, importance_weights, kl_k3, reduce, row_weights
from cobalt_train.ranks import Ranks, shard, whole
from cobalt_train.scoring import Scorer, Scores, check_scores, checkpoint_layers, prepare

MISMATCH_RANGE = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A micro-batch of this process and what its rows weigh; one that only keeps step with other processes counts nothing."""

    rows: MicroBatch
    weights: Tensor  # (N,)
    counts: bool

    def with_old(self, logprobs: Tensor) -> _Piece:
        return replace(self, rows=replace(self.rows, old_logprobs=logprobs))


class Learner:
    """Trains `model` in place. `reference` is the model before training, needed where `config.kl_coefficient` is above 0."""

    def __init__(
        self,
        model: Any,
        reference: Any | None,
        name: str,
        longest: int,
        config: TrainConfig,
        ranks: Ranks | None = None,
    ) -> None:
        for network in (model, reference):
            if network is not None:
                prepare(network, name, longest, config.shared_prefix)
                make_lean(network)
        if config.gradient_checkpointing:
            checkpoint_layers(model, name)
        self.model = model.eval()
        if not config.lora_rank:
            model.requires_grad_(True)
        self._policy = Scorer(model)
        self._reference = Scorer(reference) if reference is not None else None
        self._ranks = ranks or Ranks(model.device.type)
        if self._ranks.size > 1:
            for scorer in filter(None, (self._policy, self._reference)):
                shard(scorer)
        self.optimizer = torch.optim.AdamW(
            [weight for weight in model.parameters() if weight.requires_grad],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.updates = 0
        self._name = name
        self._config = config
        self._checked = False

    @property
    def learning_rate(self) -> float:
        """That of the next update: a linear warm-up, then constant."""
        warmup = self._config.warmup_steps
        return self._config.learning_rate * min(1.0, (self.updates + 1) / warmup if warmup else 1.0)

    def learn(self, batches: Sequence[Batch]) -> Figures:
        """Makes the updates of one step. Raises CobaltError before an update that would do harm.

        The first step of a process first makes sure that the log-probabilities computed here are those of the model, and
        that the engine sampled from the same distribution.
        """
        figures = Figures()
        parts = split_evenly(batches, self._config.optimizer_steps)
        if parts and not self._checked:
            self._check_scores(parts[0][0])
        pieces = [self._pieces(part, first=part is parts[0]) for part in parts]
        for part, of_part in zip(parts, pieces, strict=True):
            self._accumulate(of_part, figures, on_policy=part is parts[0])
            if not self._checked:
                self._check_mismatch(total(self._ranks.gather(figures)))
                self._checked = True
            self._update(part, figures)
        return total(self._ranks.gather(figures))

    def _pieces(self, part: Sequence[Batch], first: bool) -> list[_Piece]:
        """What this process computes of an update. Only the first of a step sees the policy that drew the completions."""
        config = self._config
        rows = micro_batches(part, config.micro_batch_tokens, config.shared_prefix)
        lengths = [length for piece in rows for length in piece.lengths]
        weights = row_weights(config.objective, torch.tensor(lengths), config.max_tokens)
        shares = weights.split([len(piece.lengths) for piece in rows])
        dealt = self._ranks.deal(list(zip(rows, shares, strict=True)))
        pieces = [_Piece(piece, share if counts else 0 * share, counts) for (piece, share), counts in dealt]
        if config.old_logprobs == "engine":
            return [piece.with_old(piece.rows.engine_logprobs) for piece in pieces]
        if first:
            return pieces
        with torch.no_grad():
            return [piece.with_old(self._score(self._policy, piece.rows).logprobs) for piece in pieces]

    def _accumulate(self, pieces: Sequence[_Piece], figures: Figures, on_policy: bool) -> None:
        """Adds up the gradient of one update's loss, a micro-batch at a time."""
        for piece in pieces:
            counted = figures if piece.counts else Figures()
            scores = self._score(self._policy, piece.rows)
            token_losses = self._token_losses(piece.rows, scores, counted)
            loss = reduce(token_losses, scores.mask, piece.weights.to(token_losses.device))
            give_back()
            loss.backward()
            counted.add(loss, scores)
            if on_policy:
                counted.add_mismatch(scores, piece.rows.engine_logprobs)

    def _token_losses(self, rows: MicroBatch, scores: Scores, figures: Figures) -> Tensor:
        """(n, T) the objective, its correction for the engine, and the divergence from the reference."""
        config, device = self._config, scores.logprobs.device
        old = scores.logprobs.detach() if rows.old_logprobs is None else rows.old_logprobs.to(device)
        ratio_of = (scores.logprobs, old, rows.advantages.to(device), scores.mask, config.clip())
        losses = OBJECTIVES[config.objective](*ratio_of)
        figures.clipped_tokens += int(clipped(config.objective, *ratio_of).sum())
        if config.importance_cap is not None:
            weights = importance_weights(old, rows.engine_logprobs.to(device), config.importance_cap)
            figures.capped_tokens += int(((weights == config.importance_cap) & scores.mask).sum())
            losses = losses * weights
        if self._reference is not None:
            with torch.no_grad():
                reference = self._score(self._reference, rows).logprobs
            losses = losses + config.kl_coefficient * KL_TERMS[config.kl](scores.logprobs, reference)
            figures.add_divergence(kl_k3(scores.logprobs, reference), scores.mask)
        return losses

    def _update(self, part: Sequence[Batch], figures: Figures) -> None:
        norm = whole(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._config.max_grad_norm)).item()
        if not norm < float("inf"):
            ids = ", ".join(batch.prompt_id for batch in part)
            raise CobaltError(
                f"the gradient of update {self.updates + 1} is not finite (norm {norm}); its prompts: {ids}"
            )
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        give_back()
        self.updates += 1
        figures.grad_norms.append(norm)

    def _check_scores(self, batch: Batch) -> None:
        config = self._config
        check_scores(
            self._policy, self._name, batch.prompt, batch.completions, config.temperature, config.shared_prefix
        )

    def _check_mismatch(self, figures: Figures) -> None:
        low, high = MISMATCH_RANGE
        if not low <= figures.mismatch_ratio <= high:
            raise CobaltError(
                f"trainer and engine disagree on {self._name}: the mean ratio of their probabilities for the same tokens is "
                f"{figures.mismatch_ratio:.3g}, outside [{low}, {high}]; the engine does not serve the weights that are trained"
            )

    def _score(self, scorer: Scorer, rows: MicroBatch) -> Scores:
        config = self._config
        narrow = config.compute_dtype == "bfloat16"
        with torch.autocast(scorer.model.device.type, dtype=torch.bfloat16, enabled=narrow):
            return scorer.score(rows.groups, config.temperature, config.shared_prefix)
