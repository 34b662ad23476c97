"""What is counted while a step learns, as sums over tokens: any cut into micro-batches gives the same figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from torch import Tensor

from cobalt_train.scoring import Scores


@dataclass(slots=True)
class Figures:
    """Sums over the trained tokens of one step; the mismatch is that of the first update, where the weights are equal."""

    loss: float = 0.0  # summed over the updates
    tokens: int = 0
    entropy_sum: float = 0.0
    kl_tokens: int = 0
    kl_sum: float = 0.0
    clipped_tokens: int = 0
    capped_tokens: int = 0  # whose importance weight was cut off
    mismatch_tokens: int = 0
    mismatch_ratio_sum: float = 0.0
    mismatch_kl_sum: float = 0.0
    mismatch_largest: float = 0.0
    grad_norms: list[float] = field(default_factory=list)

    def add(self, loss: Tensor, scores: Scores) -> None:
        self.loss += loss.item()
        self.tokens += int(scores.mask.sum())
        self.entropy_sum += scores.entropies.sum().item()

    def add_divergence(self, divergence: Tensor, mask: Tensor) -> None:
        """The divergence from the reference model, an estimate per token (n, T)."""
        self.kl_tokens += int(mask.sum())
        self.kl_sum += divergence.detach()[mask].sum().item()

    def add_mismatch(self, scores: Scores, engine_logprobs: Tensor) -> None:
        """How far the trainer's log-probabilities are from those that the engine sampled with."""
        engine = engine_logprobs.to(scores.logprobs.device)
        difference = (scores.logprobs.detach() - engine)[scores.mask].double()
        self.mismatch_tokens += len(difference)
        self.mismatch_ratio_sum += difference.exp().sum().item()
        self.mismatch_kl_sum += (difference.exp() - 1 - difference).sum().item()
        self.mismatch_largest = max(self.mismatch_largest, difference.abs().max().item())

    @property
    def mismatch_ratio(self) -> float:
        """The mean of p_trainer / p_engine over sampled tokens: near 1 where both are the same distribution."""
        return self.mismatch_ratio_sum / self.mismatch_tokens


def total(parts: Sequence[Figures]) -> Figures:
    """The figures of processes that shared the rows of the same updates."""
    merged = Figures(grad_norms=parts[0].grad_norms)
    for summed in fields(Figures):
        if summed.name != "grad_norms":
            values = [getattr(part, summed.name) for part in parts]
            setattr(merged, summed.name, max(values) if summed.name == "mismatch_largest" else sum(values))
    return merged
