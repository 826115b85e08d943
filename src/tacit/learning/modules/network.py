"""One pass through a module, forth and back to what its layers say, and what that makes of each parameter."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from tacit.learning.modules.folded import combined
from tacit.learning.modules.parts import (
    SINGLE_SLACK,
    Dense,
    Outer,
    ParameterRows,
    Product,
    Scattered,
    rounds_to_single,
)
from tacit.learning.modules.plain import PlainSequence
from tacit.numerics import Array

__all__ = ["HookedModule", "tensor_of"]

_SIZES = (nn.Linear, nn.Conv1d, nn.Conv2d)
_ALIGNED = 64
"""Bytes that memory of PyTorch begins at a multiple of."""

_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def tensor_of(values: Array, dtype: Any, device: Any) -> Any:
    """Return numbers as a tensor in memory of its own.

    That of an array begins anywhere, and products may be rounded by where their numbers begin.
    """
    held = torch.empty(np.shape(values), dtype=dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.copyto(held.numpy(), values, casting="unsafe")
    return held.to(device)


class HookedModule:
    """A module whose parameters are one flat vector, and the rows of each parameter for a chunk of records.

    Layers that are known by type give factors of rows; the parameters of all others have their rows by
    `torch.func`, or one record at a time where that cannot run. Buffers stay what they are. The module is in
    evaluation mode.

    Args:
        module: Its copy, on its device.
        shape: Of a record.
        tokens: Whether records are whole numbers.
        autocast: Whether layers compute in bfloat16.
    """

    def __init__(self, module: Any, *, shape: tuple[int, ...], tokens: bool, autocast: bool) -> None:
        self._bare = module.eval()  # to be copied
        self.module, self.shape, self.tokens = deepcopy(module), shape, tokens
        module = self.module
        self.named = {name: one for name, one in module.named_parameters() if one.requires_grad}
        first = next(iter(self.named.values()))
        self.dtype, self.device = first.dtype, first.device
        sizes = [one.numel() for one in self.named.values()]
        self.size = sum(sizes)
        ends = np.cumsum(sizes).tolist()
        self.places = {
            name: slice(end - size, end) for name, size, end in zip(self.named, sizes, ends, strict=True)
        }
        self.autocast = autocast
        self.slack = SINGLE_SLACK if self.dtype == torch.float32 else 0.0
        self._names = {id(one): name for name, one in self.named.items()}
        plain = not (tokens or autocast)
        self._sequence = PlainSequence.of(module, shape, self._names) if plain else None
        self._last = len(shape) == 3 and self.device.type == "cpu" and self._sequence is None
        if self._last:
            module.to(memory_format=torch.channels_last)
        self._flat = None if self._last or self.device.type != "cpu" else self._flattened()
        self._calls: list[tuple[Any, Any, Any]] | None = None
        self.known: set[str] = set()
        self._pairs: dict[str, str] = {}
        self._alone: dict[int, str] = {}
        self._memory: Any = None
        self._held: Any = None
        self._sums: Any = None
        self._untouched, self.rewrites = False, False
        for layer in module.modules():
            if _known(layer):
                own = {self._names[id(p)] for p in layer.parameters(recurse=False) if id(p) in self._names}
                if own:
                    layer.register_forward_hook(self._note)
                    self.known |= own
                    self._pair(layer)
        self.by_vmap = True

    def _context(self) -> Any:
        """Return the context in which layers compute."""
        if not self.autocast:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    @property
    def others(self) -> list[str]:
        """Names of the parameters whose rows are not made of factors."""
        return [name for name in self.named if name not in self.known]

    @property
    def sequence(self) -> PlainSequence | None:
        """The module as a sequence of layers whose rules are known; None where it is no such one."""
        return self._sequence if len(self.known) == len(self.named) else None

    def unknow(self, names: Iterable[str]) -> None:
        """Leave parameters to `torch.func`: their layers are not what their type says."""
        self.known -= set(names)
        self._alone = {
            at: name for at, name in self._alone.items() if {name, self._pairs[name]} <= self.known
        }

    def flat(self) -> Array:
        """Return the parameters, shape (size,), float64."""
        parts = [one.detach().double().cpu().numpy().ravel() for one in self.named.values()]
        return np.concatenate(parts)

    def load(self, w: Array) -> None:
        """Give the module these parameters, shape (size,)."""
        if self._flat is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                np.copyto(self._flat.numpy(), w, casting="unsafe")
            return
        values = tensor_of(w, self.dtype, self.device)
        with torch.no_grad():
            for name, one in self.named.items():
                one.copy_(values[self.places[name]].view_as(one))

    def _flattened(self) -> Any:
        """Return memory that all parameters are views of."""
        flat = tensor_of(self.flat(), self.dtype, self.device)
        for name, one in self.named.items():
            one.data = flat[self.places[name]].view(one.shape)
        return flat

    def rounding(self) -> tuple[int, bool]:
        """Return what decides how products are rounded."""
        return torch.get_num_threads(), rounds_to_single()

    @contextlib.contextmanager
    def alike(self) -> Iterator[None]:
        """Compute as the module alone says: no autocast of a caller's, and each product rounded as before."""
        flags: Any = contextlib.nullcontext()
        if self.device.type == "cuda":
            flags = torch.backends.cudnn.flags(
                enabled=True, benchmark=False, deterministic=True, allow_tf32=False
            )
        asked = torch.is_autocast_enabled(self.device.type)
        with flags, torch.autocast(self.device.type, enabled=False) if asked else contextlib.nullcontext():
            yield

    def records(self, X: Array) -> Any:
        """Return records as the module takes them, shape (n, *shape), in memory that the next ones take.

        Where the module is known not to write them, and memory begins as that of PyTorch does, it is theirs.
        """
        if self.sequence is not None and self.device.type == "cpu" and _as_it_is(X, self.dtype):
            return torch.from_numpy(X).view(len(X), *self.shape)
        dtype = torch.int64 if self.tokens else self.dtype
        if self._memory is None or len(self._memory) < len(X):
            self._memory = torch.empty(np.shape(X), dtype=dtype)
        self._held = self._memory[: len(X)]
        with np.errstate(over="ignore", invalid="ignore"):
            np.copyto(self._held.numpy(), X, casting="unsafe")
        found = self._held.to(self.device).reshape(len(X), *self.shape)
        # Pooling is several times as fast so, and patches are copied in longer runs.
        return found.contiguous(memory_format=torch.channels_last) if self._last else found

    def measured(self, parts: Mapping[str, Any], X: Array, norms: Array) -> None:
        """Tell first layers, which get records as they are, how long these are, shape (n,).

        A module may change its input in place. Where PyTorch did not see it, and it did not do so to records
        that were tried, a record that is changed has no length, and counts as zero.
        """
        if self.sequence is not None:
            first = parts.get(self.sequence.first)
            if isinstance(first, Product) and not self.sequence.constant:
                first.lengths = torch.from_numpy(norms).to(self.device)
            return
        if self.rewrites or not self._untouched:
            return
        held = self._held
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
                part.lengths = tensor_of(lengths, torch.float64, self.device)

    def room(self, silos: int, *, exact: bool) -> Any:
        """Return memory for sums, shape (silos, size): zeros in float64, or what the last call left."""
        if exact:
            return torch.zeros(silos, self.size, dtype=torch.float64, device=self.device)
        if self._sums is None or len(self._sums) != silos:
            self._sums = torch.zeros(silos, self.size, dtype=self.dtype, device=self.device)
        return self._sums

    def written(
        self, records: Any, slopes_of: Callable[[Any], Any], norms: Array, radius: float, n: int
    ) -> Array | None:
        """Return what `PlainSequence.write` writes, shape (size,), until it does again; None where not."""
        (held,) = self.room(1, exact=False)
        wrote = self._sequence is not None and self._sequence.write(
            held, records.flatten(1), slopes_of, norms, radius, n
        )
        return np.asarray(held.numpy()) if wrote else None

    def place(self, name: str, part: ParameterRows) -> slice:
        """Return where the rows of a parameter are, and those of its bias, if they are with them."""
        where = self.places[name]
        if isinstance(part, Product) and part.biased:
            return slice(where.start, self.places[self._pairs[name]].stop)
        return where

    def predictions(self, records: Any) -> Any:
        """Return what the module says, in the dtype of its parameters."""
        with torch.no_grad(), self._context():
            said = self.module(records)
        if not isinstance(said, torch.Tensor):
            raise TypeError(
                f"it returns a {type(said).__name__}; wrap it in a module that returns one tensor"
            )
        return said.to(self.dtype)

    def copy(self) -> Any:
        """Return a module with the parameters of this one, without its hooks."""
        copied = deepcopy(self._bare)
        copied.load_state_dict(self.module.state_dict())
        return copied

    def back(
        self, records: Any, slopes_of: Callable[[Any], Any], *, together: bool = False
    ) -> dict[str, ParameterRows]:
        """Return the rows of each parameter.

        Args:
            records: Shape (n, *shape).
            slopes_of: The derivatives of the losses in predictions.
            together: Whether those of a bias may be with those of its weight, which are just before.
        """
        if self.sequence is not None:
            with torch.no_grad():
                said = self.sequence.said(records.flatten(1))
                return self.sequence.back(said, slopes_of(said[-1]), together=together)
        again = records.clone() if self.others else records  # a module may change what it is given
        predictions, calls = self.called(records)
        slopes = slopes_of(predictions.detach())
        parts: dict[str, ParameterRows] = {}
        found: dict[str, list[Any]] = {}
        if calls:
            edges = [edge for _, _, edge in calls]
            backs = torch.autograd.grad(predictions, edges, slopes, allow_unused=True)
            once = together and len({id(layer) for layer, _, _ in calls}) == len(calls)
            for (layer, inputs, _), back in zip(calls, backs, strict=True):
                if once and back is not None and back.ndim == 2 and id(layer) in self._alone:
                    left, right = back.to(self.dtype)[:, None], inputs.to(self.dtype)[:, None]
                    parts[self._alone[id(layer)]] = Product(left, right, biased=True)
                elif back is not None:
                    self._add(found, layer, inputs, back.to(self.dtype))
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
        parts.update(self._by_record(again, slopes))
        return parts

    def called(self, records: Any) -> tuple[Any, list[tuple[Any, Any, Any]]]:
        """Return predictions that can be differentiated; and each known layer's calls, inputs and edges."""
        calls: list[tuple[Any, Any, Any]] = []
        self._calls, version = calls, records._version
        try:
            with torch.enable_grad(), self._context():
                predictions = self.module(records).to(self.dtype)
            self._untouched = records._version == version
            return predictions, calls
        finally:
            self._calls = None

    def plain(self, record: Any, slopes: Any) -> dict[str, Any]:
        """Return the gradient of one record, or the sum over many, by plain differentiation."""
        with torch.enable_grad(), self._context():
            predictions = self.module(record).to(self.dtype)
        slopes = slopes.reshape(predictions.shape)
        found = torch.autograd.grad(predictions, list(self.named.values()), slopes, allow_unused=True)
        return {
            name: torch.zeros_like(one) if back is None else back
            for (name, one), back in zip(self.named.items(), found, strict=True)
        }

    def pulled(self, records: Any, slopes: Array) -> Array:
        """Return the Jacobian of what the module says of all records times slopes, shape (size,), float64."""
        found = self.plain(records, tensor_of(slopes, self.dtype, self.device))
        return np.concatenate([one.double().cpu().numpy().ravel() for one in found.values()])

    def _pair(self, layer: Any) -> None:
        """Remember a linear layer whose bias comes right after its weight."""
        if isinstance(layer, nn.Linear) and layer.bias is not None:
            weight, bias = (self._names.get(id(one), "") for one in (layer.weight, layer.bias))
            if weight and bias and self.places[weight].stop == self.places[bias].start:
                owners = [
                    one
                    for one in self.module.modules()
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

    def _add(self, found: dict[str, list[Any]], layer: Any, inputs: Any, slopes: Any) -> None:
        """Add what one call says about the parameters of its layer."""
        for kind, parameter in layer.named_parameters(recurse=False):
            name = self._names.get(id(parameter))
            if name in self.known and name is not None:
                found.setdefault(name, []).append(_part(layer, kind, inputs, slopes, self.dtype))

    def _by_record(self, records: Any, slopes: Any) -> Mapping[str, ParameterRows]:
        """Return the rows of the parameters whose layers are not known."""
        others = {name: self.named[name] for name in self.others}
        if not others:
            return {}
        rows = (
            self._mapped(others, records, slopes) if self.by_vmap else self._looped(others, records, slopes)
        )
        return {name: Dense(each.detach().flatten(1)) for name, each in rows.items()}

    def _mapped(self, others: Mapping[str, Any], records: Any, slopes: Any) -> Mapping[str, Any]:
        """Return rows by vectorised differentiation."""

        def said(parameters: Mapping[str, Any], record: Any, slope: Any) -> Any:
            with self._context():
                (prediction,) = functional_call(self.module, parameters, (record[None],)).to(self.dtype)
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
        each = [self.plain(records[i : i + 1], slopes[i : i + 1]) for i in range(len(records))]
        if not each:
            return {name: one.new_zeros(0, *one.shape) for name, one in others.items()}
        return {name: torch.stack([one[name] for one in each]) for name in others}


def _as_it_is(X: Array, dtype: Any) -> bool:
    """Whether an array is as a tensor of PyTorch: in one piece, beginning where those do."""
    return (
        X.dtype == (np.float64 if dtype == torch.float64 else np.float32)
        and X.flags.c_contiguous
        and X.flags.writeable
        and torch.from_numpy(X).data_ptr() % _ALIGNED == 0
    )


def _equal(held: Array, X: Array) -> bool:
    """Whether all numbers are the same to the last bit; faster than a look at each."""
    if not X.flags.c_contiguous or held.dtype != X.dtype or X.nbytes % 8:
        return False
    return bool((held.reshape(-1).view(np.int64) == X.reshape(-1).view(np.int64)).all())


def _where_equal(held: Array, X: Array, norms: Array) -> Array:
    """Return the lengths of records that are what they were, and NaN for others."""
    return np.asarray(np.where((held == X).all(axis=1), norms, np.nan))


def _known(layer: Any) -> bool:
    """Whether rows of the layer's parameters are made of what goes in and what comes back.

    Only of these very types: what inherits from them may compute something else.
    """
    if type(layer) is nn.Embedding:
        return not layer.sparse
    return type(layer) in _SIZES or (
        type(layer) in _NORMS and not getattr(layer, "track_running_stats", False)
    )


def _part(layer: Any, kind: str, inputs: Any, slopes: Any, dtype: Any) -> Any:
    """Return what one call of a layer adds to the rows of its weight or bias."""
    if isinstance(layer, nn.Embedding):
        ids, back = inputs.flatten(1), slopes.reshape(len(slopes), -1, slopes.shape[-1])
        if layer.padding_idx is not None:
            back = back.masked_fill((ids == layer.padding_idx)[:, :, None], 0)
        return Scattered(ids, back, layer.num_embeddings)
    inputs = inputs.to(dtype)
    if isinstance(layer, _SIZES):
        if kind == "weight":
            return Outer(layer, inputs, slopes)
        # A bias is added at every position.
        if isinstance(layer, nn.Linear):
            return Dense(
                slopes.reshape(len(slopes), -1, slopes.shape[-1]).sum(1) if slopes.ndim > 2 else slopes
            )
        return Dense(slopes.flatten(2).sum(2))
    last = isinstance(layer, nn.LayerNorm)
    if kind == "weight":
        slopes = slopes * _normalised(layer, inputs)
    if last:
        return Dense(slopes.reshape(len(slopes), -1, int(np.prod(layer.normalized_shape))).sum(1))
    return Dense(slopes.flatten(2).sum(2))


def _normalised(layer: Any, inputs: Any) -> Any:
    """Return what a normalisation multiplies with its weight."""
    if isinstance(layer, nn.LayerNorm):
        return nn.functional.layer_norm(inputs, layer.normalized_shape, eps=layer.eps)
    if isinstance(layer, nn.GroupNorm):
        return nn.functional.group_norm(inputs, layer.num_groups, eps=layer.eps)
    return nn.functional.instance_norm(inputs, eps=layer.eps)
