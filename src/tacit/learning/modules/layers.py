"""The layers whose rows are made of factors, and what one call of such a layer adds to its parameters.

Layers are known by their very type: what inherits from one may compute something else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from tacit.learning.modules.parts import Dense, Outer, Scattered

__all__ = ["added_by", "is_known"]

_PRODUCTS = (nn.Linear, nn.Conv1d, nn.Conv2d)
"""A weight is multiplied with what the layer is told, at one position or several."""

_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def is_known(layer: Any) -> bool:
    """Whether rows of the layer's parameters are made of what goes in and what comes back."""
    if type(layer) is nn.Embedding:
        return not layer.sparse
    return type(layer) in _PRODUCTS or (
        type(layer) in _NORMS and not getattr(layer, "track_running_stats", False)
    )


def added_by(layer: Any, kind: str, inputs: Any, slopes: Any, dtype: Any) -> Dense | Outer | Scattered:
    """Return what one call of a known layer adds to the rows of one of its parameters.

    Args:
        layer: Of a type that is known.
        kind: "weight" or "bias".
        inputs: What it was told, shape (n, ...).
        slopes: Derivatives of the losses in what it returned, in that shape.
        dtype: That rows are in.
    """
    if isinstance(layer, nn.Embedding):
        ids, back = inputs.flatten(1), slopes.reshape(len(slopes), -1, slopes.shape[-1])
        if layer.padding_idx is not None:
            back = back.masked_fill((ids == layer.padding_idx)[:, :, None], 0)
        return Scattered(ids, back, layer.num_embeddings)
    inputs = inputs.to(dtype)
    if isinstance(layer, _PRODUCTS):
        if kind == "weight":
            return Outer(layer, inputs, slopes)
        # A bias is added at every position.
        if isinstance(layer, nn.Linear):
            return Dense(
                slopes.reshape(len(slopes), -1, slopes.shape[-1]).sum(1) if slopes.ndim > 2 else slopes
            )
        return Dense(slopes.flatten(2).sum(2))
    if kind == "weight":
        slopes = slopes * _normalised(layer, inputs)
    if isinstance(layer, nn.LayerNorm):
        return Dense(slopes.reshape(len(slopes), -1, int(np.prod(layer.normalized_shape))).sum(1))
    return Dense(slopes.flatten(2).sum(2))


def _normalised(layer: Any, inputs: Any) -> Any:
    """Return what a normalisation multiplies with its weight."""
    if isinstance(layer, nn.LayerNorm):
        return nn.functional.layer_norm(inputs, layer.normalized_shape, eps=layer.eps)
    if isinstance(layer, nn.GroupNorm):
        return nn.functional.group_norm(inputs, layer.num_groups, eps=layer.eps)
    return nn.functional.instance_norm(inputs, eps=layer.eps)
