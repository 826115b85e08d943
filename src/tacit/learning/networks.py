"""Networks with one hidden layer: losses that are not convex, with sums of clipped gradients in closed form.

A gradient of a layer is an outer product of what goes in and what comes back, so its norm is a product of
norms (Goodfellow 2015, "Efficient per-example gradient computations"), and clipping it is clipping what comes
back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from tacit.errors import check_choice, check_count, check_positive
from tacit.learning.joined import packs
from tacit.learning.losses import Loss, check_outputs
from tacit.learning.objective import Records, clip_factors
from tacit.numerics import Array, row_norms, row_products, settle, weighted_sum
from tacit.randomness import PublicStream

__all__ = ["Activation", "NetworkObjective"]

Activation = Literal["relu", "tanh", "softplus"]
"""What a hidden unit does with its sum."""

_AT_ONCE = 2**19
"""Numbers of a layer that are in memory at once: they stay in the cache."""

_KEPT = 2**23
"""Most numbers that are kept of records until the next round."""


@dataclass(frozen=True, kw_only=True)
class NetworkObjective:
    """The mean over records of loss(V^T (a(W^T x), 1), y): a perceptron with one hidden layer.

    No bound on the norm of a record's gradient is known, nor on how fast it changes: a clip has to be given,
    and step sizes, and a guess of the smoothness where an algorithm counts on one.

    Attributes:
        loss: Loss of a prediction.
        features: Length of x, a constant feature included.
        hidden: Units of the hidden layer.
        outputs: Predictions per record: 1, or the number of classes of a multinomial loss.
        activation: a: "relu", "tanh" or "softplus", log(1 + e^s).

    Example:
        >>> from tacit.learning import Logistic
        >>> NetworkObjective(loss=Logistic(), features=31, hidden=5).size
        161
    """

    loss: Loss
    features: int
    hidden: int
    outputs: int = 1
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        settle(self)
        check_count("features", self.features)
        check_count("hidden", self.hidden)
        check_outputs(self.loss, self.outputs)
        check_choice("activation", self.activation, get_args(Activation))

    @property
    def size(self) -> int:
        """Number of parameters: W, shape (features, hidden), then V, shape (hidden + 1, outputs)."""
        return self.features * self.hidden + (self.hidden + 1) * self.outputs

    @property
    def lipschitz(self) -> float:
        """Return infinity: only clipping bounds a gradient."""
        return math.inf

    @property
    def smoothness(self) -> float:
        """Return infinity: it grows with the weights, and where a unit of "relu" turns on, it is none."""
        return math.inf

    @property
    def strong_convexity(self) -> float:
        """Return 0: it is not convex."""
        return 0.0

    @property
    def clip_safe(self) -> bool:
        """False: the loss is not convex to begin with."""
        return False

    def start(self, seed: int = 0, *, length: float = 1.0) -> Array:
        """Return random public weights to start from: at zero, no hidden unit would ever differ from another.

        Weights are uniform, of variance g / length^2 in the hidden layer and 2 / (hidden + outputs) in the
        other, so that predictions are about as large as labels; g is 2 for "relu", and 1 else. They come
        from a public stream: they cost no privacy, and are the same on all machines.

        Args:
            seed: Of the stream, >= 0.
            length: About the norm of a record x, from public facts.

        Returns:
            Shape (size,).

        Reference:
            Glorot and Bengio (2010), equation 16; He, Zhang, Ren and Sun (2015), equation 10.
        """
        check_positive("length", length)
        first, second = self.features * self.hidden, self.hidden * self.outputs
        words = PublicStream(seed, 0, purpose="network").words(first + second)
        uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1
        gain = 2.0 if self.activation == "relu" else 1.0
        widths = math.sqrt(3 * gain) / length, math.sqrt(6 / (self.hidden + self.outputs))
        return np.concatenate(
            [uniform[:first] * widths[0], uniform[first:] * widths[1], np.zeros(self.outputs)]
        )

    def predictions(self, w: Array, X: Array) -> Array:
        """Return what the network says of each record, shape (n,), or (n, outputs)."""
        W, V = self._layers(w, X.dtype)
        return self._output(self._hidden(W, X), V)

    def pullback(self, w: Array, X: Array, slopes: Array) -> Array:
        """Return the sum over records of the Jacobian of predictions times slopes, shape (size,).

        Args:
            w: Parameters, shape (size,).
            X: Shape (n, features).
            slopes: In the shape of predictions.
        """
        back = self._back(w, X, lambda _: slopes)
        return np.concatenate([(X.T @ back.hidden).ravel(), (back.inputs.T @ back.slopes).ravel()])

    def value(self, w: Array, records: Records) -> Array:
        """Return the loss of each record, shape (n,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.loss.value(self.predictions(w, records.X), records.y)

    def gradients(self, w: Array, records: Records) -> Array:
        """Return one gradient per record, shape (n, size).

        A row is the same to the last bit wherever its record stands and however many others there are.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            back = self._losses_back(w, records)
            rows = np.empty((len(records), self.size), dtype=records.X.dtype)
            split = self.features * self.hidden
            _outer(records.X, back.hidden, out=rows[:, :split])
            _outer(back.inputs, back.slopes, out=rows[:, split:])
            return rows

    def clipped_sum(
        self, w: Array, records: Records, radius: float, dtype: type[np.floating[Any]] = np.float64
    ) -> Array:
        """Return the sum of the clipped gradients, without a matrix of them, shape (size,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            backs = ((some.X, back) for some, back in self._clipped_back(w, records, radius))
            return self._sum(backs, dtype)

    def clipped_sums(
        self,
        w: Array,
        silos: Sequence[Records],
        radius: float,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> Array:
        """Return `clipped_sum` of each of several silos, shape (silos, size), to the last bit."""
        if any("factors" in one.memo for one in silos):  # kept ones are faster still
            return np.array([self.clipped_sum(w, one, radius, dtype) for one in silos])
        sums = []
        for pack in packs(silos, self._step):
            if len(pack.places) == 1:
                sums.append(self.clipped_sum(w, pack.records, radius, dtype))
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                back = self._losses_back(w, pack.records).clipped(pack.records.norms, radius)
                X = pack.records.X
                sums += [self._sum([(X[one], back.taken(one))], dtype) for one in pack.places]
        return np.array(sums)

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

        Of the large layer, x is the same at both points, so a difference is an outer product again. Of the
        small one, both factors change, and differences are rows. The factors at "w" are kept with the
        records: of all records, the next difference is from there, and the next gradient at it.
        """
        total, rest = np.zeros((self.hidden, self.features)), np.zeros((self.hidden + 1) * self.outputs)
        with np.errstate(over="ignore", invalid="ignore"):
            before, after = (self._clipped_back(point, records, clip) for point in (previous, w))
            kept: list[tuple[Records, _Back]] = []
            for (some, first), (_, second) in zip(after, before, strict=True):
                kept += [(some, first)] if self._fits(records) else []
                hidden = first.hidden - second.hidden
                rows = _outer(first.inputs, first.slopes) - _outer(second.inputs, second.slopes)
                sizes = np.hypot(some.norms * row_norms(hidden), row_norms(rows))
                factors = clip_factors(sizes, radius, rows.dtype.type)
                rows[factors == 0] = 0
                total += weighted_sum(some.X, _scaled(hidden, factors), dtype=dtype).T
                rest += weighted_sum(rows, factors, dtype=dtype)
        records.memo["factors"] = _Kept((self, w.tobytes(), clip), kept) if kept else None
        return np.concatenate([total.T.ravel(), rest])

    def _sum(self, backs: Iterable[tuple[Array, _Back]], dtype: type[np.floating[Any]]) -> Array:
        """Return the sum of gradients, shape (size,), from parts of the records and their factors."""
        # Sums come with their columns first, and are turned round once.
        first, second = np.zeros((self.hidden, self.features)), np.zeros((self.outputs, self.hidden + 1))
        for X, back in backs:
            first += weighted_sum(X, back.hidden, dtype=dtype).T
            second += weighted_sum(back.inputs, back.slopes, dtype=dtype).T
        return np.concatenate([first.T.ravel(), second.T.ravel()])

    def _layers(self, w: Array, dtype: Any) -> tuple[Array, Array]:
        """Return W and V."""
        w, split = w.astype(dtype, copy=False), self.features * self.hidden
        return w[:split].reshape(self.features, -1), w[split:].reshape(-1, self.outputs)

    def _hidden(self, W: Array, X: Array) -> Array:
        """Return what the hidden units say of each record by itself, shape (n, hidden)."""
        sums = row_products(X, W)
        match self.activation:
            case "relu":
                return np.maximum(sums, 0, out=sums)
            case "tanh":
                return np.tanh(sums, out=sums)
            case _:
                # As np.logaddexp(sums, 0), in a seventeenth of its time.
                return np.asarray(np.maximum(sums, 0) + np.log1p(np.exp(-np.abs(sums))))

    def _output(self, hidden: Array, V: Array) -> Array:
        """Return the predictions, shape (n,), or (n, outputs)."""
        if self.outputs == 1:
            return np.asarray(row_products(hidden, V[:-1, 0]) + V[-1, 0])
        return np.asarray(row_products(hidden, V[:-1]) + V[-1])

    def _losses_back(self, w: Array, records: Records) -> _Back:
        """Return the factors of each record's gradient."""
        return self._back(w, records.X, lambda predictions: self.loss.slope(predictions, records.y))

    def _back(self, w: Array, X: Array, slope: Callable[[Array], Array]) -> _Back:
        """Return the factors of the gradient of whatever has these slopes in the predictions."""
        W, V = self._layers(w, X.dtype)
        hidden = self._hidden(W, X)
        slopes = slope(self._output(hidden, V)).astype(X.dtype, copy=False).reshape(-1, self.outputs)
        back = slopes * V[:-1, 0] if self.outputs == 1 else row_products(slopes, V[:-1].T)
        match self.activation:
            case "relu":
                back *= hidden > 0
            case "tanh":
                back *= 1 - hidden**2
            case _:
                back *= -np.expm1(-hidden)  # 1 - e^-log(1 + e^s), the logistic function of s
        ones = np.ones((len(X), 1), dtype=hidden.dtype)
        return _Back(hidden=back, inputs=np.hstack([hidden, ones]), slopes=slopes)

    def _clipped_back(
        self, w: Array, records: Records, clip: float | None
    ) -> Iterator[tuple[Records, _Back]]:
        """Yield all records in parts, with the clipped factors of their gradients, kept ones if there are."""
        kept: _Kept | None = records.memo.get("factors")
        if kept is not None and kept.of == (self, w.tobytes(), clip):
            yield from kept.parts
            return
        for some in self._parts(records):
            back = self._losses_back(w, some)
            yield some, back if clip is None else back.clipped(some.norms, clip)

    def _fits(self, records: Records) -> bool:
        """Return whether the factors of all records are few enough to be kept."""
        return len(records) * (2 * self.hidden + 1 + self.outputs) <= _KEPT

    @property
    def _step(self) -> int:
        """Records of a part."""
        return max(64, _AT_ONCE // (self.features + self.hidden * (3 + self.outputs)))

    def _parts(self, records: Records) -> Iterator[Records]:
        """Yield all records, in order, in parts whose layers stay in the cache."""
        step = self._step
        if len(records) <= step:
            yield records
            return
        for start in range(0, len(records), step):
            part = slice(start, start + step)
            yield Records(records.X[part], records.y[part], records.norms[part])


class _Back(NamedTuple):
    """What a gradient is made of, record by record: x hidden^T for W, and inputs slopes^T for V.

    Attributes:
        hidden: Derivative of the loss in the sums of the hidden units, shape (n, hidden).
        inputs: What goes into the second layer: hidden units and a one, shape (n, hidden + 1).
        slopes: Derivative of the loss in the predictions, shape (n, outputs).
    """

    hidden: Array
    inputs: Array
    slopes: Array

    def taken(self, part: slice) -> _Back:
        """Return the factors of some of the gradients."""
        return _Back(*(one[part] for one in self))

    def clipped(self, norms: Array, radius: float) -> _Back:
        """Return the factors of gradients clipped to a radius; a bad one counts as zero.

        Args:
            norms: Of each x, shape (n,).
            radius: Finite, >= 0.
        """
        first, second = norms * row_norms(self.hidden), row_norms(self.inputs) * row_norms(self.slopes)
        factors = clip_factors(np.hypot(first, second), radius, self.slopes.dtype.type)
        inputs = self.inputs
        inputs[factors == 0] = 0  # or an infinity times zero would spoil the sum of all
        return _Back(
            hidden=_scaled(self.hidden, factors), inputs=inputs, slopes=_scaled(self.slopes, factors)
        )


class _Kept(NamedTuple):
    """Factors of all records, from one difference to the next.

    Attributes:
        of: Whose they are: the objective, the point, and the clip of gradients.
        parts: Records in parts, with their factors.
    """

    of: tuple[NetworkObjective, bytes, float | None]
    parts: list[tuple[Records, _Back]]


def _outer(left: Array, right: Array, out: Array | None = None) -> Array:
    """Return the outer product of each record's factors as rows, shape (n, left size * right size)."""
    shape = (len(left), left.shape[1], right.shape[1])
    if out is None:
        out = np.empty((len(left), shape[1] * shape[2]), dtype=left.dtype)
    np.multiply(left[:, :, None], right[:, None, :], out=out.reshape(shape))
    return out


def _scaled(values: Array, factors: Array) -> Array:
    """Return values times their record's factor; zero for bad records, and below the normal numbers.

    Args:
        values: Shape (n, k).
        factors: Shape (n,), 0 for bad records.
    """
    scaled = values * factors[:, None]
    scaled[factors == 0] = 0  # an infinity times zero is none
    scaled *= np.abs(scaled) >= np.finfo(scaled.dtype).tiny
    return np.asarray(scaled)
