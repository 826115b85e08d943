"""A module of PyTorch whose parameters are one flat vector, with memory for its records."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from tacit.learning.modules.parts import SINGLE_SLACK, rounds_to_single
from tacit.learning.modules.plain import PlainSequence
from tacit.numerics import Array

__all__ = ["FlatModule", "tensor_of"]

_ALIGNED = 64
"""Bytes that memory of PyTorch begins at a multiple of."""


def tensor_of(values: Array, dtype: Any, device: Any) -> Any:
    """Return numbers as a tensor in memory of its own.

    That of an array begins anywhere, and products may be rounded by where their numbers begin.
    """
    held = torch.empty(np.shape(values), dtype=dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.copyto(held.numpy(), values, casting="unsafe")
    return held.to(device)


class FlatModule:
    """A module in evaluation mode, called at a point: one vector of all parameters that need a gradient.

    It runs forwards, and backwards by plain differentiation; it knows nothing of single layers, nor of rows.
    Buffers stay what they are.

    Args:
        module: On its device; what is called is a copy.
        shape: Of a record.
        tokens: Whether records are whole numbers.
        autocast: Whether layers compute in bfloat16.

    Attributes:
        module: The copy, which holds the point that was loaded last.
        named: Its parameters that need a gradient, by name, a shared one once.
        names: Their names, by the identity of the parameter.
        places: Where each is in the vector.
        size: Length of the vector.
        slack: Relative error of the norm of a row that is measured in the dtype of the parameters.
        sequence: The module as layers whose rules are known, one after the other; None for another module.
        held: The records that were given last, where they were copied: the module may have changed them.
    """

    def __init__(self, module: Any, *, shape: tuple[int, ...], tokens: bool, autocast: bool) -> None:
        self._bare = module.eval()  # to be copied
        self.module, self.shape, self.tokens, self.autocast = deepcopy(module), shape, tokens, autocast
        self.named = {name: one for name, one in self.module.named_parameters() if one.requires_grad}
        first = next(iter(self.named.values()))
        self.dtype, self.device = first.dtype, first.device
        sizes = [one.numel() for one in self.named.values()]
        self.size, ends = sum(sizes), np.cumsum(sizes).tolist()
        self.places = {
            name: slice(end - size, end) for name, size, end in zip(self.named, sizes, ends, strict=True)
        }
        self.slack = SINGLE_SLACK if self.dtype == torch.float32 else 0.0
        self.names = {id(one): name for name, one in self.named.items()}
        plain = not (tokens or autocast)
        self.sequence = PlainSequence.of(self.module, shape, self.names) if plain else None
        self._last = len(shape) == 3 and self.device.type == "cpu" and self.sequence is None
        if self._last:
            self.module.to(memory_format=torch.channels_last)
        self._flat = None if self._last or self.device.type != "cpu" else self._flattened()
        self._memory: Any = None
        self.held: Any = None

    def _flattened(self) -> Any:
        """Return memory that all parameters are views of."""
        flat = tensor_of(self.flat(), self.dtype, self.device)
        for name, one in self.named.items():
            one.data = flat[self.places[name]].view(one.shape)
        return flat

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

    def copy(self) -> Any:
        """Return a module with the parameters of this one, without what watches its layers."""
        copied = deepcopy(self._bare)
        copied.load_state_dict(self.module.state_dict())
        return copied

    def forget_sequence(self) -> None:
        """Treat the module as any other: layers of it are not what their type says."""
        self.sequence = None

    def precision(self) -> Any:
        """Return the context in which layers compute: in bfloat16 where that was asked for."""
        if not self.autocast:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    @contextlib.contextmanager
    def full_precision(self) -> Iterator[None]:
        """Let layers compute in the dtype of their parameters for a while, whatever was asked for."""
        asked, self.autocast = self.autocast, False
        try:
            yield
        finally:
            self.autocast = asked

    def rounding(self) -> tuple[int, bool]:
        """Return what decides how products are rounded: threads, and whether in single precision."""
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
        """Return records as the module takes them.

        They are copied, since a module may write into its input. Only where it is a sequence of known layers,
        which never do, and where the memory of the array begins as that of PyTorch does, is it handed on.

        Args:
            X: Shape (n, features).

        Returns:
            Shape (n, *shape); good until the next call, which may take the same memory.
        """
        if self.sequence is not None and self.device.type == "cpu" and _as_it_is(X, self.dtype):
            return torch.from_numpy(X).view(len(X), *self.shape)
        dtype = torch.int64 if self.tokens else self.dtype
        if self._memory is None or len(self._memory) < len(X):
            self._memory = torch.empty(np.shape(X), dtype=dtype)
        self.held = self._memory[: len(X)]
        with np.errstate(over="ignore", invalid="ignore"):
            np.copyto(self.held.numpy(), X, casting="unsafe")
        found = self.held.to(self.device).reshape(len(X), *self.shape)
        # Pooling is several times as fast so, and patches are copied in longer runs.
        return found.contiguous(memory_format=torch.channels_last) if self._last else found

    def predictions(self, records: Any) -> Any:
        """Return what the module predicts, in the dtype of its parameters, without a way back."""
        with torch.no_grad(), self.precision():
            said = self.module(records)
        if not isinstance(said, torch.Tensor):
            raise TypeError(
                f"it returns a {type(said).__name__}; wrap it in a module that returns one tensor"
            )
        return said.to(self.dtype)

    def plain(self, record: Any, slopes: Any) -> dict[str, Any]:
        """Return the gradient of one record, or the sum over many, by plain differentiation.

        Args:
            record: Shape (n, *shape).
            slopes: Derivatives of the losses in the predictions, in their shape.
        """
        with torch.enable_grad(), self.precision():
            predictions = self.module(record).to(self.dtype)
        slopes = slopes.reshape(predictions.shape)
        found = torch.autograd.grad(predictions, list(self.named.values()), slopes, allow_unused=True)
        return {
            name: torch.zeros_like(one) if back is None else back
            for (name, one), back in zip(self.named.items(), found, strict=True)
        }

    def pulled(self, records: Any, slopes: Array) -> Array:
        """Return the Jacobian of the predictions of all records times slopes, shape (size,), float64."""
        found = self.plain(records, tensor_of(slopes, self.dtype, self.device))
        return np.concatenate([one.double().cpu().numpy().ravel() for one in found.values()])


def _as_it_is(X: Array, dtype: Any) -> bool:
    """Whether an array is as a tensor of PyTorch: in one piece, beginning where those do."""
    return (
        X.dtype == (np.float64 if dtype == torch.float64 else np.float32)
        and X.flags.c_contiguous
        and X.flags.writeable
        and torch.from_numpy(X).data_ptr() % _ALIGNED == 0
    )
