"""Any PyTorch module with a loss of records as an objective: sums of clipped gradients in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from tacit.errors import ParameterError, TacitError, check_count, install_extra, shown
from tacit.learning.joined import packs
from tacit.learning.losses import Loss
from tacit.learning.modules.chunks import Totals, filled, isolated
from tacit.learning.objective import Records, clip_factors
from tacit.numerics import Array

__all__ = ["ModuleObjective", "torch_objective"]


class ModuleObjective:
    """The mean loss of a PyTorch module over records; `torch_objective` makes one.

    The module is in evaluation mode, so that dropout does nothing: a gradient depends on its record and on
    the point only. Buffers are taken to be public and never change. The point is one flat vector of all
    parameters that need a gradient, in the order of `named_parameters()`; a shared one is in it once. No
    bound on the norm of a gradient is known: a clip has to be given, and step sizes.

    Records go through the module in chunks of a few public sizes, and the last chunk is filled up with zeros.
    So how a gradient is rounded depends on its record and on the point, and not on which other records there
    are; the bound on exact sums rests on it. Whether the code treats all places of a chunk alike is tried out
    once, with copies of one record in all places; where it does not, records go one by one. It holds to the
    last bit on one machine with one number of threads (docs/theory/sums.md, section 4).

    Attributes:
        size: Number of parameters.
        features: Length of a record.
        outputs: Predictions per record.
        straight_norm: About the norm of the features that predictions are linear in where the module starts.
            Default step sizes go by it. It is the module's attribute of that name, infinite without one.
        chunk: Records that usually go through the module at once.
    """

    lipschitz = math.inf
    smoothness = math.inf
    strong_convexity = 0.0
    clip_safe = False

    def __init__(
        self,
        module: Any,
        loss: Loss | Callable[..., Any],
        *,
        shape: Sequence[int] | None = None,
        tokens: int | None = None,
        device: str = "cpu",
        chunk: int | None = None,
        autocast: bool = False,
    ) -> None:
        self._torch = _torch()
        from tacit.learning.modules import checks
        from tacit.learning.modules.flat import FlatModule
        from tacit.learning.modules.hooked import HookedModule
        from tacit.learning.modules.passes import Passes, floats
        from tacit.learning.modules.slopes import LossSlopes

        checks.check_module(module)
        where = checks.check_device(device)
        if tokens is not None:
            check_count("tokens", tokens)
        if chunk is not None:
            check_count("chunk", chunk)
        if not isinstance(autocast, bool):
            raise ParameterError(f"autocast must be True or False, got {shown(autocast)}: it is bfloat16.")
        self.shape, self.tokens, self.loss = checks.check_record_shape(module, shape), tokens, loss
        self._options: dict[str, Any] = {"device": device, "chunk": chunk, "autocast": autocast}
        self.features = math.prod(self.shape)
        self.straight_norm = float(getattr(module, "straight_norm", math.inf))
        self._flat = FlatModule(
            deepcopy(module).to(where), shape=self.shape, tokens=tokens is not None, autocast=autocast
        )
        self._network, self.size = HookedModule(self._flat), self._flat.size
        records = checks.probe_records(self._flat, tokens=tokens)
        predictions = checks.check_rows(self._flat, records)
        self._slopes = LossSlopes(loss, predictions)
        self.outputs = self._slopes.outputs

        def slopes(said: Any) -> Any:
            return self._slopes(said, np.full(len(said), self._slopes.label))

        with self._flat.full_precision():
            numbers = checks.check_factors(self._network, records, slopes)
        checks.check_autocast(self._network, records, slopes)
        self._passes = Passes(
            self._network, self._slopes, predictions[0] * 0, tokens=tokens, chunk=chunk, numbers=numbers
        )
        self._floats = floats(self._flat.dtype)

    def __reduce__(self) -> Any:
        """Say how a copy is made: of the module, since what watches its layers is of this process."""
        make = partial(ModuleObjective, shape=self.shape, tokens=self.tokens, **self._options)
        return make, (self.module(self._passes.start), self.loss)

    @property
    def chunk(self) -> int:
        """Records that usually go through the module at once."""
        return self._passes.sizes.usual

    def start(self) -> Array:
        """Return the parameters that the module came with, shape (size,)."""
        return self._passes.start.copy()

    def module(self, w: Array) -> Any:
        """Return a copy of the module with these parameters, shape (size,), in evaluation mode."""
        with self._passes.alone():
            self._flat.load(self._passes.point(w))
            return self._flat.copy()

    def predictions(self, w: Array, X: Array) -> Array:
        """Return the predictions of each record, shape (n,), or (n, outputs); 0 where the module raises."""
        parts = [self._slopes.said(said).cpu().numpy() for _, said in self._passes.predicted(w, X)]
        return np.concatenate(parts)

    def pullback(self, w: Array, X: Array, slopes: Array) -> Array:
        """Return the sum over records of the Jacobian of predictions times slopes, shape (size,), float64.

        Args:
            w: Parameters, shape (size,).
            X: Shape (n, features); with tokens, a record that has another number counts as zero.
            slopes: In the shape of predictions.
        """
        if np.shape(slopes)[:1] != np.shape(X)[:1] or np.size(slopes) != len(X) * self.outputs:
            shape = (len(X),) if self.outputs == 1 else (len(X), self.outputs)
            raise ParameterError(f"slopes must have shape {shape}, got {np.shape(slopes)}.")
        total = np.zeros(self.size)
        with self._passes.alone(), self._flat.alike():
            chunk = self.chunk
            self._flat.load(self._passes.point(w))
            X, bad = self._passes.taken(X)
            slopes = slopes if bad is None else np.where(bad, 0, slopes.T).T
            for start in range(0, len(X), chunk):
                part = slice(start, start + chunk)
                total += self._flat.pulled(self._flat.records(X[part]), slopes[part])
        return total

    def value(self, w: Array, records: Records) -> Array:
        """Return the loss of each record, shape (n,); NaN where it is not defined."""
        parts = []
        for part, said in self._passes.predicted(w, records.X):
            found, bad = isolated(partial(self._valued, said, records.y[part]), len(said))
            parts.append(np.full(len(said), np.nan) if found is None else found)
            if bad is not None:
                parts[-1][bad] = np.nan
        return np.concatenate(parts)

    def gradients(self, w: Array, records: Records) -> Array:
        """Return one gradient per record, shape (n, size), in the dtype of the parameters.

        A row is the same to the last bit wherever its record stands and however many others there are.
        """
        rows = np.zeros((len(records), self.size), dtype=self._floats)
        for part, (parts,) in self._passes.through(records, [w]):
            n = part.stop - part.start
            for name, one in parts.items():
                rows[part, self._network.place(name, one)] = one.rows(slice(0, n)).cpu().numpy()
        return rows

    def clipped_sum(
        self, w: Array, records: Records, radius: float, dtype: type[np.floating[Any]] = np.float64
    ) -> Array:
        """Return the sum of the clipped gradients, without a matrix of them, shape (size,).

        Args:
            w: The point, shape (size,).
            records: n of them.
            radius: Finite, >= 0.
            dtype: float64 for sums that integer noise is priced for: no row is longer than the radius in
                exact arithmetic on the numbers that are added up in float64. float32, for simulation, may
                take ghost norms, and adds up in single precision within a chunk.
        """
        return np.asarray(self.clipped_sums(w, [records], radius, dtype)[0])

    def clipped_sums(
        self,
        w: Array,
        silos: Sequence[Records],
        radius: float,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> Array:
        """Return `clipped_sum` of each of several silos, whose records go through the module together.

        Returns:
            Shape (silos, size): as silo by silo, to the last bit.
        """
        found, exact = list[Array](), dtype is np.float64
        if len(silos) == 1 and not exact and self._network.sequence is not None and self._slopes.plain:
            total = self._written(w, silos[0], radius)
            if total is not None:
                return total[None]
        for pack in packs(silos, self.chunk, label=self._slopes.label):
            totals = Totals(self._network, len(pack.places), exact=exact)
            for part, (parts,) in self._passes.through(pack.records, [w]):
                totals.add(parts, self._factors(parts, radius, exact=exact), pack.within(part))
            found.append(totals.sums)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _written(self, w: Array, records: Records, radius: float) -> Array | None:
        """Return what `clipped_sums` returns of one silo, in fewer steps: for sequences of known layers only.

        Returns:
            Shape (size,), the same numbers. None where there are no records, some have another dtype than the
            module, or one of them counts as zero; then the general way is taken.
        """
        flat, total = self._flat, None
        if records.X.dtype != self._floats or flat.device.type != "cpu":
            return None
        with self._passes.alone(), flat.alike():
            cuts = [*self._passes.sizes.cut(len(records))]  # which may be tried out at another point
            flat.load(self._passes.point(w))
            for part, chunk in cuts:
                X, norms = filled(records.X[part], chunk), filled(records.norms[part], chunk)
                slopes = partial(self._slopes, y=filled(records.y[part], chunk, self._slopes.label))
                n, inside = part.stop - part.start, radius * (1 - self._slack)
                held = self._network.written(flat.records(X), slopes, norms, inside, n)
                if held is None:
                    return None
                total = held.astype(np.float64) if total is None else total + held
        return total

    def clipped_difference(
        self,
        w: Array,
        previous: Array,
        records: Records,
        radius: float,
        dtype: type[np.floating[Any]] = np.float64,
        *,
        clip: float | None = None,
    ) -> Array:
        """Return the sum of the clipped rows of `RecordDifference`, shape (size,).

        Args:
            w: The point, shape (size,).
            previous: Another one, shape (size,).
            records: n of them.
            radius: Norm that each difference of gradients is clipped to, finite, >= 0.
            dtype: As in `clipped_sum`.
            clip: Norm that each gradient is clipped to before; None leaves them as they are.
        """
        return np.asarray(self.clipped_differences(w, previous, [records], radius, dtype, clip=clip)[0])

    def clipped_differences(
        self,
        w: Array,
        previous: Array,
        silos: Sequence[Records],
        radius: float,
        dtype: type[np.floating[Any]] = np.float64,
        *,
        clip: float | None = None,
    ) -> Array:
        """Return `clipped_difference` of each of several silos, whose records go through together.

        Returns:
            Shape (silos, size): as silo by silo, to the last bit.
        """
        from tacit.learning.modules.folded import difference

        found, exact = list[Array](), dtype is np.float64
        for pack in packs(silos, self.chunk, label=self._slopes.label):
            totals = Totals(self._network, len(pack.places), exact=exact)
            for part, (first, second) in self._passes.through(pack.records, [w, previous]):
                size = self._passes.sizes.next(len(pack.records) - part.start)
                both = self._both(first, second, size, clip, exact=exact)
                parts = {name: difference(one, second[name], both) for name, one in first.items()}
                totals.add(parts, self._factors(parts, radius, exact=exact), pack.within(part))
            found.append(totals.sums)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _both(
        self,
        first: Mapping[str, Any],
        second: Mapping[str, Any],
        size: int,
        clip: float | None,
        *,
        exact: bool,
    ) -> tuple[Any, Any]:
        """Return what rows at two points are to be multiplied with before one is taken from the other."""
        if clip is None:
            ones = self._torch.ones(size, dtype=self._torch.float64, device=self._flat.device)
            return ones, ones
        return self._factors(first, clip, exact=exact), self._factors(second, clip, exact=exact)

    @property
    def _slack(self) -> float:
        """Relative error of the norm of a row, in whatever order its squares were added up."""
        return float((self.size + 256) * 2.0**-53 + self._flat.slack)

    def _valued(self, said: Any, y: Array, places: Any, _bad: Array | None) -> Array:
        """Return the losses of the records at some places."""
        return self._slopes.values(said[places], y[places])

    def _factors(self, parts: Mapping[str, Any], radius: float, *, exact: bool) -> Any:
        """Return what rows are to be multiplied with, shape (chunk,); 0 for what is not finite."""
        squares = reduce(add, (part.squared(exact=exact) for part in parts.values()))
        inside = radius * (1 - self._slack)
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.sqrt(squares.cpu().numpy())
            factors = clip_factors(sizes, inside, np.float64 if exact else self._floats)
        return self._torch.from_numpy(factors).to(self._flat.device)


def torch_objective(
    module: Any,
    loss: Loss | Callable[..., Any],
    *,
    shape: Sequence[int] | None = None,
    tokens: int | None = None,
    device: str = "cpu",
    chunk: int | None = None,
    autocast: bool = False,
) -> ModuleObjective:
    """Return a PyTorch module with a loss of records as an objective of every private method.

    Clipping is over all parameters together, to the numbers of one gradient per record, and none of those is
    formed where factors say its norm: for linear layers, convolutions, embeddings and normalisations, shared
    parameters included. Parameters of all other layers have theirs by `torch.func`.

    Args:
        module: A `torch.nn.Module` that takes a tensor of shape (n, *shape) and returns (n,), (n, 1) or
            (n, outputs), of each record by itself. It is copied; its parameters are float32 or float64.
        loss: A loss of this room, as `Logistic()` or `Multinomial()`; or what takes predictions and labels,
            shape (n,), as tensors and returns one number per record, as
            `functools.partial(torch.nn.functional.cross_entropy, reduction="none")`.
        shape: Of one record, whose numbers are a row of `Records.X`; None is one dimension, as long as the
            first linear layer takes it.
        tokens: Where records are whole numbers, as an embedding takes them: how many there are, from 0 on. A
            record with another number counts as zero. None: records are numbers.
        device: Where the module computes: "cpu", "cuda" or "cuda:0".
        chunk: Records that go through the module at once, at most: the largest power of two that is no more,
            or a smaller one; None goes by the memory that layers take.
        autocast: Whether layers compute in bfloat16 where PyTorch thinks that it does. Clipping measures what
            is added up, so that it is as exact as without.

    Raises:
        TacitError: The extra `tacit[torch]` is not installed.
        ParameterError: The module has no parameters; it mixes records, as batch normalisation does, or draws
            random numbers; the loss averages; the device is not there; or shapes do not fit.

    Example:
        >>> import pytest
        >>> torch = pytest.importorskip("torch")
        >>> from tacit.learning import Logistic, torch_objective
        >>> network = torch.nn.Sequential(torch.nn.Linear(30, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
        >>> torch_objective(network, Logistic()).size
        161

    Reference:
        Goodfellow (2015), "Efficient per-example gradient computations"; Li, Tramer, Liang and Hashimoto
        (2022), ICLR, for ghost norms; Bu, Wang, Zha and Karypis (2022), for sums of what one backward pass
        has kept.
    """
    return ModuleObjective(
        module, loss, shape=shape, tokens=tokens, device=device, chunk=chunk, autocast=autocast
    )


def _torch() -> Any:
    """Return PyTorch, or say how to install it."""
    try:
        import torch
    except ImportError as error:
        raise TacitError(f"an objective of a PyTorch module needs it; {install_extra('torch')}.") from error
    return torch
