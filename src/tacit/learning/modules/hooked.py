"""One pass through a module: forth, back to what its layers return, and the rows of each parameter."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from tacit.learning.modules.flat import FlatModule, tensor_of
from tacit.learning.modules.folded import combined
from tacit.learning.modules.layers import added_by, is_known
from tacit.learning.modules.parts import Dense, ParameterRows, Product
from tacit.learning.modules.plain import PlainSequence
from tacit.numerics import Array

__all__ = ["HookedModule"]

Call = tuple[Any, Any, Any]
"""A known layer, what one call of it was told, and the edge of the graph where its derivatives come back."""


class HookedModule:
    """A module whose layers are watched, so that one pass back says the rows of every parameter.

    A row is what one record adds to the gradient in one parameter. Layers that are known by type give rows as
    factors; the parameters of all others have theirs by `torch.func`, or one record at a time where that
    cannot run.

    Args:
        flat: The module; its layers are watched from now on.

    Attributes:
        known: Names of the parameters whose rows are made of factors.
        by_vmap: Whether `torch.func` runs for the others.
        rewrites: Whether the module wrote into the records that were tried.
    """

    def __init__(self, flat: FlatModule) -> None:
        self.flat = flat
        self._calls: list[Call] | None = None
        self.known: set[str] = set()
        self._pairs: dict[str, str] = {}
        self._alone: dict[int, str] = {}
        self._sums: Any = None
        self._untouched, self.rewrites = False, False
        names = flat.names
        for layer in flat.module.modules():
            if is_known(layer):
                own = {names[id(p)] for p in layer.parameters(recurse=False) if id(p) in names}
                if own:
                    layer.register_forward_hook(self._note)
                    self.known |= own
                    self._pair(layer)
        self.by_vmap = True

    @property
    def others(self) -> list[str]:
        """Names of the parameters whose rows are not made of factors."""
        return [name for name in self.flat.named if name not in self.known]

    @property
    def sequence(self) -> PlainSequence | None:
        """The module as a sequence of layers whose rules are known; None where it is no such one."""
        return self.flat.sequence

    def unknow(self, names: Iterable[str]) -> None:
        """Leave parameters to `torch.func`: their layers are not what their type says."""
        self.known -= set(names)
        self._alone = {
            at: name for at, name in self._alone.items() if {name, self._pairs[name]} <= self.known
        }
        if self.others:
            self.flat.forget_sequence()

    def measured(self, parts: Mapping[str, Any], X: Array, norms: Array) -> None:
        """Tell first layers, which get records as they are, how long these are.

        A module may change its input in place. Where PyTorch did not see it, and it did not do so to records
        that were tried, a record that is changed has no length, and counts as zero.

        Args:
            parts: The rows, as `back` has returned them.
            X: The records, shape (n, features).
            norms: Of the records, shape (n,), float64.
        """
        if self.sequence is not None:
            first = parts.get(self.sequence.first)
            if isinstance(first, Product) and not self.sequence.constant:
                first.lengths = torch.from_numpy(norms).to(self.flat.device)
            return
        if self.rewrites or not self._untouched:
            return
        held = self.flat.held
        told = [
            part
            for part in parts.values()
            if isinstance(part, Product)
            and part.groups == 1
            and part.right.data_ptr() == held.data_ptr()
            and part.right.numel() == held.numel()
        ]
        if told:
            lengths = norms if _equal(held.numpy(), X) else _where_equal(held.numpy(), X, norms)
            for part in told:
                part.lengths = tensor_of(lengths, torch.float64, self.flat.device)

    def room(self, silos: int, *, exact: bool) -> Any:
        """Return memory for sums, shape (silos, size): zeros in float64, or what the last call left."""
        flat = self.flat
        if exact:
            return torch.zeros(silos, flat.size, dtype=torch.float64, device=flat.device)
        if self._sums is None or len(self._sums) != silos:
            self._sums = torch.zeros(silos, flat.size, dtype=flat.dtype, device=flat.device)
        return self._sums

    def written(
        self, records: Any, slopes_of: Callable[[Any], Any], norms: Array, radius: float, n: int
    ) -> Array | None:
        """Return the sum that `PlainSequence.write` writes, with the same arguments.

        Returns:
            Shape (size,), in memory that the next call writes over; None where it writes none.
        """
        (held,) = self.room(1, exact=False)
        wrote = self.sequence is not None and self.sequence.write(
            held, records.flatten(1), slopes_of, norms, radius, n
        )
        return np.asarray(held.numpy()) if wrote else None

    def place(self, name: str, part: ParameterRows) -> slice:
        """Return where the rows of a parameter are, and those of its bias, if they are with them."""
        where = self.flat.places[name]
        if isinstance(part, Product) and part.biased:
            return slice(where.start, self.flat.places[self._pairs[name]].stop)
        return where

    def back(
        self, records: Any, slopes_of: Callable[[Any], Any], *, together: bool = False
    ) -> dict[str, ParameterRows]:
        """Return the rows of each parameter.

        Args:
            records: Shape (n, *shape).
            slopes_of: Returns the derivatives of the losses in the predictions it is given.
            together: Whether those of a bias may be with those of its weight, which are just before.
        """
        if self.sequence is not None:
            with torch.no_grad():
                said = self.sequence.said(records.flatten(1))
                return self.sequence.back(said, slopes_of(said[-1]), together=together)
        again = records.clone() if self.others else records  # a module may change what it is given
        predictions, calls = self.called(records)
        slopes = slopes_of(predictions.detach())
        parts = self._by_call(predictions, calls, slopes, together=together)
        parts.update(self._by_record(again, slopes))
        return parts

    def called(self, records: Any) -> tuple[Any, list[Call]]:
        """Return predictions that can be differentiated, and the calls of known layers."""
        calls: list[Call] = []
        self._calls, version = calls, records._version
        try:
            with torch.enable_grad(), self.flat.precision():
                predictions = self.flat.module(records).to(self.flat.dtype)
            self._untouched = records._version == version
            return predictions, calls
        finally:
            self._calls = None

    def _pair(self, layer: Any) -> None:
        """Remember a linear layer whose bias comes right after its weight."""
        names, places = self.flat.names, self.flat.places
        if isinstance(layer, nn.Linear) and layer.bias is not None:
            weight, bias = (names.get(id(one), "") for one in (layer.weight, layer.bias))
            if weight and bias and places[weight].stop == places[bias].start:
                owners = [
                    one
                    for one in self.flat.module.modules()
                    if any(own is layer.weight or own is layer.bias for own in one.parameters(recurse=False))
                ]
                self._pairs[weight] = bias
                if len(owners) == 1:
                    self._alone[id(layer)] = weight

    def _note(self, layer: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what a layer is told, and where its derivatives will be."""
        if self._calls is not None and inputs:
            edge = torch.autograd.graph.get_gradient_edge(output)
            self._calls.append((layer, inputs[0].detach(), edge))

    def _by_call(
        self, predictions: Any, calls: list[Call], slopes: Any, *, together: bool
    ) -> dict[str, ParameterRows]:
        """Return the rows of the parameters of known layers."""
        parts: dict[str, ParameterRows] = {}
        if not calls:
            return parts
        found: dict[str, list[Any]] = {}
        dtype, edges = self.flat.dtype, [edge for _, _, edge in calls]
        backs = torch.autograd.grad(predictions, edges, slopes, allow_unused=True)
        once = together and len({id(layer) for layer, _, _ in calls}) == len(calls)
        for (layer, inputs, _), back in zip(calls, backs, strict=True):
            if once and back is not None and back.ndim == 2 and id(layer) in self._alone:
                left, right = back.to(dtype)[:, None], inputs.to(dtype)[:, None]
                parts[self._alone[id(layer)]] = Product(left, right, biased=True)
            elif back is not None:
                self._add(found, layer, inputs, back.to(dtype))
        parts.update((name, combined(each)) for name, each in found.items())
        if together:
            for name, bias in self._pairs.items():
                weight = parts.get(name)
                if (
                    isinstance(weight, Product)
                    and name in found
                    and bias in parts
                    and len(found[name]) == len(found[bias]) == 1
                ):
                    parts[name] = Product(weight.left, weight.right, biased=True)
                    del parts[bias]
        return parts

    def _add(self, found: dict[str, list[Any]], layer: Any, inputs: Any, slopes: Any) -> None:
        """Add what one call says about the parameters of its layer."""
        for kind, parameter in layer.named_parameters(recurse=False):
            name = self.flat.names.get(id(parameter))
            if name in self.known and name is not None:
                found.setdefault(name, []).append(added_by(layer, kind, inputs, slopes, self.flat.dtype))

    def _by_record(self, records: Any, slopes: Any) -> Mapping[str, ParameterRows]:
        """Return the rows of the parameters whose layers are not known."""
        others = {name: self.flat.named[name] for name in self.others}
        if not others:
            return {}
        rows = (
            self._mapped(others, records, slopes) if self.by_vmap else self._looped(others, records, slopes)
        )
        return {name: Dense(each.detach().flatten(1)) for name, each in rows.items()}

    def _mapped(self, others: Mapping[str, Any], records: Any, slopes: Any) -> Mapping[str, Any]:
        """Return rows by vectorised differentiation."""

        def said(parameters: Mapping[str, Any], record: Any, slope: Any) -> Any:
            with self.flat.precision():
                called = functional_call(self.flat.module, parameters, (record[None],))
                (prediction,) = called.to(self.flat.dtype)
            return (prediction * slope).sum()

        values = {name: one.detach() for name, one in others.items()}
        with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):  # the one that has a rule of its own
            warnings.filterwarnings("ignore", "There is a performance drop")
            rows: Mapping[str, Any] = vmap(grad(said), in_dims=(None, 0, 0), randomness="error")(
                values, records, slopes
            )
        return rows

    def _looped(self, others: Mapping[str, Any], records: Any, slopes: Any) -> Mapping[str, Any]:
        """Return rows one record at a time."""
        each = [self.flat.plain(records[i : i + 1], slopes[i : i + 1]) for i in range(len(records))]
        if not each:
            return {name: one.new_zeros(0, *one.shape) for name, one in others.items()}
        return {name: torch.stack([one[name] for one in each]) for name in others}


def _equal(held: Array, X: Array) -> bool:
    """Whether all numbers are the same to the last bit; faster than a look at each."""
    if not X.flags.c_contiguous or held.dtype != X.dtype or X.nbytes % 8:
        return False
    return bool((held.reshape(-1).view(np.int64) == X.reshape(-1).view(np.int64)).all())


def _where_equal(held: Array, X: Array, norms: Array) -> Array:
    """Return the lengths of records that are what they were, and NaN for others."""
    return np.asarray(np.where((held == X).all(axis=1), norms, np.nan))
