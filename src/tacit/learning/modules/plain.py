"""A sequence of linear layers and functions of single numbers, forth and back by the rules of these layers.

What PyTorch notes down to go back through any code takes as long as the products of a small network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tacit.learning.modules.parts import UNSEEN, Dense, ParameterRows, Product, exact_squares, squares
from tacit.learning.objective import clip_factors
from tacit.numerics import Array

__all__ = ["PlainSequence"]

_aten = torch.ops.aten

_SAME = (nn.Identity, nn.Dropout)
"""Layers that do nothing in evaluation mode."""

_BACK: dict[type, Callable[[Any, Any, Any, Any], Any]] = {
    nn.ReLU: lambda _layer, back, _told, said: _aten.threshold_backward(back, said, 0),
    nn.Tanh: lambda _layer, back, _told, said: _aten.tanh_backward(back, said),
    nn.Sigmoid: lambda _layer, back, _told, said: _aten.sigmoid_backward(back, said),
    nn.Softplus: lambda layer, back, told, _said: _aten.softplus_backward(
        back, told, layer.beta, layer.threshold
    ),
}
"""Derivatives of functions at what they are told and say, times what comes back: the code of PyTorch."""


class PlainSequence:
    """Linear layers, each with its own weight, and functions between them.

    Records are read and never written, so that they need no copy, and are what the first layer is told.

    Args:
        layers: The first one is linear.
        names: The name of each parameter, by its identity, in the order of the layers.
        constant: Whether records end in a feature that no layer gets.
    """

    def __init__(self, layers: Sequence[Any], names: Mapping[int, str], *, constant: bool) -> None:
        self._layers, self.constant = layers, constant
        self._named = [
            [names.get(id(getattr(layer, kind, None)), "") for kind in ("weight", "bias")] for layer in layers
        ]

    @classmethod
    def of(cls, module: Any, shape: Sequence[int], names: Mapping[int, str]) -> PlainSequence | None:
        """Return a module as such a sequence; None where it is another one, or somebody watches its layers.

        Args:
            module: In evaluation mode.
            shape: Of a record.
            names: Of its parameters that need a gradient, by their identity.
        """
        from tacit.learning.modules.architectures import OnRows  # which imports this file

        # Those of the estimators, which get rows; not any module that happens to have a shape of records.
        constant = type(module) is OnRows
        if constant:
            module, shape = module.module, module.record_shape
        layers = _layers(module) or []
        flat = len(shape) == 1 or type(next(iter(layers), None)) is nn.Flatten
        layers = [one for one in layers if type(one) is not nn.Flatten]
        if not flat or not layers or type(layers[0]) is not nn.Linear:
            return None
        # A bias may have been declared before its weight, and sums are written weight by weight.
        pairs = [(getattr(layer, "weight", None), getattr(layer, "bias", None)) for layer in layers]
        own = [id(one) for pair in pairs for one in pair if one is not None]
        return cls(layers, names, constant=constant) if own == list(names) else None

    @property
    def first(self) -> str:
        """Name of the weight that records are multiplied with."""
        return self._named[0][0]

    def said(self, records: Any) -> list[Any]:
        """Return what each layer is told, and what the last one says.

        Args:
            records: Shape (n, features).
        """
        found = [records[:, :-1] if self.constant else records]
        for layer in self._layers:
            found.append(layer.forward(found[-1]))
        return found

    def back(self, said: list[Any], slopes: Any, *, together: bool) -> dict[str, ParameterRows]:
        """Return the rows of each parameter.

        Args:
            said: As `said` returns it.
            slopes: The derivatives of the losses in predictions.
            together: Whether rows of a bias are with those of its weight.
        """
        parts: dict[str, ParameterRows] = {}
        for k in reversed(range(len(self._layers))):
            layer = self._layers[k]
            if type(layer) is not nn.Linear:
                slopes = _BACK[type(layer)](layer, slopes, said[k], said[k + 1])
                continue
            weight, bias = self._named[k]
            parts[weight] = Product(slopes[:, None], said[k][:, None], biased=together and bias != "")
            if bias and not together:
                parts[bias] = Dense(slopes)
            if k:
                slopes = slopes @ layer.weight
        return parts

    def write(
        self,
        sums: Any,
        records: Any,
        slopes_of: Callable[[Any], Any],
        norms: Array,
        radius: float,
        n: int,
    ) -> bool:
        """Write the sum of the clipped gradients of some records; False where one of them counts as zero.

        The same numbers as by the rows of each parameter: to make and to ask those takes as long as the
        products of a small network.

        Args:
            sums: Shape (size,), of parameters in the order of the layers.
            records: A full chunk, shape (chunk, features).
            slopes_of: Returns the derivatives of the losses in predictions.
            norms: Of the records, shape (chunk,), float64.
            radius: No gradient is measured to be longer.
            n: Only the first ones are added up.
        """
        kind = np.float32 if sums.dtype == torch.float32 else np.float64
        tiny = float(np.finfo(kind).tiny)
        with torch.no_grad():
            said = self.said(records)
            slopes, squared, products = slopes_of(said[-1]), list[Any](), list[tuple[Any, Any, Any]]()
            for k in reversed(range(len(self._layers))):
                layer = self._layers[k]
                if type(layer) is not nn.Linear:
                    slopes = _BACK[type(layer)](layer, slopes, said[k], said[k + 1])
                    continue
                left, first = exact_squares(slopes), k == 0 and not self.constant
                right = torch.from_numpy(norms).square() + UNSEEN if first else squares(said[k])
                squared.append(left * right if layer.bias is None else torch.addcmul(left, left, right))
                products.append((layer, slopes, said[k]))
                if k:
                    slopes = slopes @ layer.weight
            factors = clip_factors(np.sqrt(reduce(add, squared).numpy()), radius, kind)
            if not factors.all():
                return False
            if n < len(factors):
                products = [(layer, slopes[:n], told[:n]) for layer, slopes, told in products]
            scale, stop = torch.from_numpy(factors[:n])[:, None], len(sums)
            for layer, slopes, told in products:
                left, (p, d) = functional.hardshrink(slopes * scale, tiny), layer.weight.shape
                if layer.bias is not None:
                    torch.sum(left, 0, out=sums[stop - p : stop])
                    stop -= p
                torch.mm(left.T, told, out=sums[stop - p * d : stop].view(p, d))
                stop -= p * d
        return True


def _layers(module: Any) -> list[Any] | None:
    """Return what a module does one after the other; None where it may be something else.

    Only of these very types: what inherits from them may compute something else.
    """
    watched = any(
        getattr(module, f"_{kind}", None)
        for kind in ("forward_hooks", "forward_pre_hooks", "backward_hooks", "backward_pre_hooks")
    )
    if watched or "forward" in vars(module):
        return None
    if type(module) is nn.Sequential:
        parts = [_layers(each) for each in module]
        return None if None in parts else [one for part in parts for one in part or ()]
    if type(module) in _SAME:
        return []
    plain = type(module) in (nn.Linear, *_BACK) or (
        type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)
    )
    return [module] if plain else None
