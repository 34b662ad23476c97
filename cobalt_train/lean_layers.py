"""What layers of a model do otherwise than in its library while it is trained, to write less memory.

On a CPU a layer's temporary tensors cost more time than the arithmetic on them. RMS norms make a dozen in a training pass, those
here make four. Queries and keys are rotated in autocast's type, as engines rotate them, and not in that of the hidden states.

Which modules are RMS norms is found by trying: one that yields anything else, such as a norm whose weight has an offset, stays
as it is.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from cobalt_train.logprobs import accumulation_dtype

ROUNDINGS = 8  # by which a norm may differ from the model's own


def make_lean(model: nn.Module) -> None:
    """Changes how a transformers model computes its RMS norms and rotary embeddings, in place."""
    for name, module in model.named_modules():
        epsilon = getattr(module, "variance_epsilon", None)
        if isinstance(epsilon, float) and _is_rms_norm(module, epsilon):
            module.forward = partial(_normed, module)
        if name.endswith("rotary_emb"):
            module.register_forward_hook(_as_autocast)


def _normed(module: Any, rows: Tensor) -> Tensor:
    normed: Tensor = _RmsNorm.apply(rows, module.weight, module.variance_epsilon)
    return normed


@torch.no_grad()
def _is_rms_norm(module: Any, epsilon: float) -> bool:
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor):
        return False
    rows = torch.linspace(-3, 5, 4 * weight.numel(), device=weight.device).view(4, -1).to(weight.dtype)
    own, ours = module(rows), _RmsNorm.apply(rows, weight, epsilon)
    return own.dtype == ours.dtype and torch.allclose(own, ours, rtol=ROUNDINGS * torch.finfo(own.dtype).eps)


class _RmsNorm(torch.autograd.Function):
    """Rows (..., D) divided by the root of their mean square, times weight (D,); the root in float32 or wider."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        wide = rows.to(accumulation_dtype(rows.dtype))
        norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        scale = norm.square_().div_(rows.shape[-1]).add_(epsilon).rsqrt_()
        ctx.save_for_backward(rows, weight, scale)
        normed = (wide * scale).to(rows.dtype)
        return normed.mul_(weight) if weight.dtype == rows.dtype else normed * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:  # type: ignore[override]
        rows, weight, scale = ctx.saved_tensors
        normed = rows * scale
        product = grad * normed
        d_weight = product.flatten(0, -2).sum(0).to(weight.dtype) if ctx.needs_input_grad[1] else None
        weighted = grad * weight
        share = torch.mul(weighted, normed, out=product).mean(-1, keepdim=True)
        return weighted.sub_(normed.mul_(share)).mul_(scale).to(rows.dtype), d_weight, None


def _as_autocast(module: nn.Module, given: Any, tables: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Cosines and sines in the type that products are computed in."""
    device = tables[0].device.type
    if not torch.is_autocast_enabled(device):
        return tables
    return tuple(table.to(torch.get_autocast_dtype(device)) for table in tables)
