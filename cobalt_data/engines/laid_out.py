"""Linear layers with their weights as oneDNN computes with them, laid out once for all products of a call.

The products of decoding have few rows, so that laying out the weights again for each costs as much as the arithmetic. Numbers
stay the same to the bit for rows that lie one behind the other, as those of a forward pass do. For bfloat16 on a CPU;
elsewhere nothing is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def laid_out(model: nn.Module) -> Iterator[None]:
    """The linear layers of a model with a second copy of their weights, until this ends."""
    layers: list[nn.Linear] = []
    try:
        for layer in model.modules():
            if type(layer) is nn.Linear and "forward" not in vars(layer) and _can_be_laid_out(layer.weight):
                weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach())
                layer.forward = partial(_linear, weight=weight, bias=layer.bias)
                layers.append(layer)
        yield
    finally:
        for layer in layers:
            del layer.forward


def _can_be_laid_out(weight: Tensor) -> bool:
    known: Any = torch.ops.mkldnn  # its operators for weights that are laid out are not torch's public interface
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.bfloat16
        and torch.backends.mkldnn.is_available()
        and known._is_mkldnn_bf16_supported()
        and hasattr(known, "_reorder_linear_weight")
        and hasattr(known, "_linear_pointwise")
    )


def _linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(..., I) -> (..., O)"""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return product
