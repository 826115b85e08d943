"""Public records with their labels: a silo of their own that needs no noise, and that a server has itself."""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import optimize

from tacit.errors import ParameterError, check_choice, check_count
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Squared
from tacit.learning.objective import Objective, Records
from tacit.numerics import Array, ElasticNet, Regularizer, SquaredL2, Zero, clip_rows, row_norms
from tacit.randomness import PublicStream

__all__ = ["PublicNorm", "PublicObjective"]

PublicNorm = Literal["raw", "clip", "rescale"]
"""What becomes of public gradients: nothing, clipped as private ones are, or all of that length."""

_NORMS = ("raw", "clip", "rescale")
_STEPS = 20_000
_SHORT, _ROUGH = 1e-6, 1e-3
"""A gradient below that share of the first one is the minimum's; and of those that are only compared."""

_UNCLIPPED = 1e200
"""A radius that the gradient of no public record reaches."""

_FEWEST = 20
"""Records that say how long gradients of others are; of five, the clip was measured to be too short."""

_FOLDS = 5
_RIDGES = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Of those that are compared, in units of the smoothness of the mean loss."""


@dataclass(frozen=True)
class PublicObjective:
    """What is minimised, on records that nobody protects.

    Attributes:
        objective: As that of the private records.
        records: Mapped rows and outcomes, as the objective takes them; at least one.
    """

    objective: Objective
    records: Records

    def __post_init__(self) -> None:
        if len(self.records) == 0:
            raise ParameterError("public must hold at least one record, got none.")

    def __len__(self) -> int:
        return len(self.records)

    @property
    def digest(self) -> str:
        """SHA-256 of the records, in hexadecimal."""
        both = (np.asarray(part, dtype="<f8").tobytes() for part in (self.records.X, self.records.y))
        return hashlib.sha256(b"".join(both)).hexdigest()

    def take(self, index: Array) -> PublicObjective:
        """Return the objective on some of the records."""
        return replace(self, records=self.records.take(index))

    def batch(self, number: int, size: int, *, seed: int = 0) -> PublicObjective:
        """Return a uniform batch without replacement, which everybody can draw again.

        Args:
            number: Of the batch, >= 0.
            size: From 1 to the number of records.
            seed: Of the sequence of batches, public.
        """
        check_count("size", size, high=len(self))
        if size == len(self):
            return self
        return self.take(PublicStream(seed, number, purpose="public batch").permutation(len(self))[:size])

    def gradients(self, w: Array, *, radius: float = math.inf, norm: PublicNorm = "raw") -> Array:
        """Return one gradient per public record, shape (m, size).

        Args:
            w: Shape (size,).
            radius: What "clip" clips to, and "rescale" makes all of them but zeros; >= 0.
            norm: What becomes of them.
        """
        check_choice("public_norm", norm, _NORMS)
        rows = self.objective.gradients(w, self.records)
        if norm == "raw":
            return rows
        if norm == "clip":
            return clip_rows(rows, radius)
        norms = row_norms(rows)
        return np.asarray(rows * np.divide(radius, norms, out=np.zeros_like(norms), where=norms > 0)[:, None])

    def gradient(self, w: Array, *, radius: float = math.inf, norm: PublicNorm = "raw") -> Array:
        """Return the mean gradient, shape (size,); arguments as of `gradients`."""
        if norm == "rescale":
            return np.asarray(self.gradients(w, radius=radius, norm=norm).mean(axis=0))
        check_choice("public_norm", norm, _NORMS)
        longest = min(radius, _UNCLIPPED) if norm == "clip" else _UNCLIPPED
        return np.asarray(self.objective.clipped_sum(w, self.records, longest, np.float64) / len(self))

    def variance(self, w: Array, *, radius: float = math.inf, norm: PublicNorm = "raw") -> float:
        """Return V^2, the total variance of a record's gradient, estimated without bias.

        At a point that these records were fitted to, gradients are shorter than those of others: there it
        says too little.

        Args:
            w: As of `gradients`, and so are the others.
            radius: The same.
            norm: The same.

        Raises:
            ParameterError: Fewer than two records.
        """
        check_count("the number of public records", len(self), low=2)
        rows = self.gradients(w, radius=radius, norm=norm)
        return float(np.square(rows - rows.mean(axis=0)).sum() / (len(rows) - 1))

    def minimum(
        self,
        regularizer: Regularizer = Zero(),  # noqa: B008 - immutable
        *,
        start: Array | None = None,
    ) -> Array:
        """Minimise the mean loss of the records and a regulariser: what throws the private records away.

        Least squares are solved at once, with the least norm of all solutions where there are several; other
        losses by L-BFGS where there is at most a squared penalty; else by accelerated proximal steps with
        restarts (O'Donoghue and Candes 2015). Classes that a plane separates have no minimum: the point is
        then one where the gradient is short. A `ConvergenceWarning` says where it is not.

        Args:
            regularizer: Penalties and domain.
            start: First point, shape (size,); None is zero.

        Raises:
            ParameterError: A loss with a kink, or of unknown smoothness beside such a regulariser.

        Reference:
            Lowy (2023), Section 2.2.2: its excess on all n records is at most L D n_private / n.
        """
        return self._minimum(regularizer, start, short=_SHORT)

    def fitted(self, *, start: Array | None = None) -> Array:
        """Return the minimum with the squared penalty that does best on public records left out in turn.

        Few records are fitted too well without a penalty. They are split into five parts at random, and
        compared are six penalties, in units of the smoothness of the mean loss.

        Args:
            start: As of `minimum`, and so are the errors.
        """
        return self._minimum(SquaredL2(self._penalty(start)), start, short=_SHORT)

    @cached_property
    def clip(self) -> float | None:
        """About how long gradients of other records are at `fitted`, to which private ones may be clipped.

        The mean norm of those of every part at the minimum on the others, to two digits, so that machines
        that round otherwise agree on it; None of fewer than 20 records, which say too little, where all of
        them are 0, and of losses that it was not measured for: of classes, of such that a clip makes another
        loss, and with a kink.
        """
        loss = self.objective.loss if isinstance(self.objective, LinearObjective) else None
        if loss is None or loss.classifies or loss.clips_to_another or not math.isfinite(loss.smoothness):
            return None
        if len(self) < _FEWEST:
            return None
        penalty = SquaredL2(self._penalty(None))
        norms = [
            row_norms(left_out.gradients(kept._minimum(penalty, None, short=_ROUGH)))
            for kept, left_out in self._parts()
        ]
        mean = float(np.concatenate(norms).mean())
        return float(f"{mean:.2g}") if mean > 0 else None

    def _parts(self) -> list[tuple[PublicObjective, PublicObjective]]:
        """Return each of up to five random parts of two or more records, after all the others."""
        order = PublicStream(0, 0, purpose="public folds").permutation(len(self))
        folds = np.array_split(order, min(_FOLDS, len(self)))
        return [(self.take(np.setdiff1d(order, fold)), self.take(fold)) for fold in folds]

    def _penalty(self, start: Array | None) -> float:
        """Return the strength of the squared penalty that does best on parts left out in turn."""
        beta = self.smoothness
        if len(self) == 1 or not beta > 0:
            return max(beta, 1.0)
        parts = self._parts()
        points: list[Array | None] = [start] * len(parts)
        losses: list[float] = []
        for factor in _RIDGES:
            total = 0.0
            for k, (kept, left_out) in enumerate(parts):
                points[k] = w = kept._minimum(SquaredL2(factor * beta), points[k], short=_ROUGH)
                total += float(np.sum(self.objective.value(w, left_out.records)))
            losses.append(total)
            if total > 1.1 * min(losses):  # weaker penalties do worse still
                break
        return float(_RIDGES[int(np.argmin(losses))] * beta)

    def _minimum(self, regularizer: Regularizer, start: Array | None, *, short: float) -> Array:
        """Return the minimum, to a gradient that is `short` as a share of the first one."""
        ridge, objective = _ridge(regularizer), self.objective
        linear = objective.loss if isinstance(objective, LinearObjective) else None
        if ridge is not None and isinstance(linear, Squared):
            return self._least_squares(ridge)
        if not math.isfinite(self.smoothness) and (linear is not None or ridge is None):
            raise ParameterError(
                "the minimum on public records needs a smooth loss of known smoothness: give the loss a "
                "smoothing > 0, or start at no such minimum."
            )
        w = np.zeros(objective.size) if start is None else np.array(start, dtype=np.float64)
        return self._proximal(regularizer, w) if ridge is None else self._smooth(ridge, w, short)

    @property
    def has_minimum(self) -> bool:
        """Whether `fitted` finds one: the loss is known to be smooth."""
        return math.isfinite(self.smoothness)

    @property
    def smoothness(self) -> float:
        """Of the mean loss: of linear models that of a prediction, times the top eigenvalue of X^T X / m."""
        if not isinstance(self.objective, LinearObjective):
            return self.objective.smoothness
        X = self.records.X
        return float(self.objective.loss.smoothness * np.linalg.norm(X, ord=2) ** 2 / len(X))

    def _least_squares(self, ridge: float) -> Array:
        """Return the solution of least norm."""
        X, y = self.records.X.astype(np.float64), self.records.y.astype(np.float64)
        if ridge:
            d = X.shape[1]
            X = np.vstack([X, math.sqrt(ridge * len(X)) * np.eye(d)])
            y = np.concatenate([y, np.zeros(d)])
        return np.asarray(np.linalg.lstsq(X, y, rcond=None)[0])

    def _smooth(self, ridge: float, w: Array, short: float) -> Array:
        """Minimise the mean loss and (ridge / 2) |w|^2."""

        def value_and_gradient(w: Array) -> tuple[float, Array]:
            value = float(np.mean(self.objective.value(w, self.records))) + ridge / 2 * float(w @ w)
            return value, self.gradient(w) + ridge * w

        first = float(np.abs(value_and_gradient(w)[1]).max())
        found = optimize.minimize(
            value_and_gradient,
            w,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": 0.0, "gtol": short * first},
        )
        if np.abs(found.jac).max() > 100 * short * first:
            _warn()
        return np.asarray(found.x)

    def _proximal(self, regularizer: Regularizer, w: Array) -> Array:
        """Minimise the mean loss and a regulariser by accelerated proximal steps."""
        step, weight = 1 / self.smoothness, 1.0
        w = ahead = regularizer(step, w)
        first = float(np.linalg.norm(self.gradient(w))) * step
        for _ in range(_STEPS):
            before, w = w, regularizer(step, ahead - step * self.gradient(ahead))
            if np.linalg.norm(w - ahead) <= _SHORT * first:
                return w
            grown = (1 + math.sqrt(1 + 4 * weight**2)) / 2
            weight, share = (1.0, 0.0) if (ahead - w) @ (w - before) > 0 else (grown, (weight - 1) / grown)
            ahead = w + share * (w - before)
        _warn()
        return w


def _ridge(regularizer: Regularizer) -> float | None:
    """Return m of a regulariser that is (m / 2) |w|^2; None of others."""
    match regularizer:
        case Zero():
            return 0.0
        case SquaredL2() as squared:
            return squared.strong_convexity
        case ElasticNet(l1=0.0, l2=l2):
            return l2
        case _:
            return None


def _warn() -> None:
    """Warn that a minimum was not reached."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        "the minimum on public records was not reached: bounds on it gain what is left.",
        ConvergenceWarning,
        stacklevel=5,
    )
