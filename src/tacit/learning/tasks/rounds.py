"""What every task shares: one mean a round over parties, measured against the exact mean."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.means import MeanEstimator, Round
from tacit.numerics import Array, as_rows
from tacit.randomness import PublicStream

__all__ = ["Asked", "Asking", "TaskRound", "TaskRun", "check_shards", "normals"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One estimated mean.

    Attributes:
        estimate: Shape (d,).
        squared_error: ||estimate - exact mean||^2.
        squared_norms: S1 = sum of the squared norms of the parties' vectors.
        correlation: R = (||sum of the vectors||^2 - S1) / S1; None where all vectors are 0.
        bits: What all parties sent.
        seconds: What encoding and decoding took.
    """

    estimate: Array
    squared_error: float
    squared_norms: float
    correlation: float | None
    bits: float
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRound:
    """One round of a task; numbers that compare with the exact mean exist in simulation only.

    Attributes:
        number: Which round, from 0.
        loss: Of the task, after the round.
        squared_error: ||estimate - exact mean||^2; the average over the means of a round, if there are more.
        squared_norms: S1, averaged in the same way.
        correlation: R, averaged in the same way; None where all vectors were 0.
        bits: What all parties sent.
        seconds: What encoding and decoding took.
    """

    number: int
    loss: float
    squared_error: float
    squared_norms: float
    correlation: float | None
    bits: float
    seconds: float

    @classmethod
    def of(cls, number: int, loss: float, asked: Sequence[Asked]) -> TaskRound:
        """Summarise the means of one round, at least one."""
        known = [one.correlation for one in asked if one.correlation is not None]
        return cls(
            number=number,
            loss=loss,
            squared_error=float(np.mean([one.squared_error for one in asked])),
            squared_norms=float(np.mean([one.squared_norms for one in asked])),
            correlation=float(np.mean(known)) if known else None,
            bits=sum(one.bits for one in asked),
            seconds=sum(one.seconds for one in asked),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRun:
    """A finished task.

    Attributes:
        result: The vector, the centroids or the parameters that were found.
        rounds: One entry per round.
    """

    result: Array
    rounds: tuple[TaskRound, ...]

    @property
    def losses(self) -> Array:
        """Loss after every round."""
        return np.array([one.loss for one in self.rounds])


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Asks parties for means: an estimator with the public seed of its maps and the source of its noise."""

    estimator: MeanEstimator
    seed: int
    rng: np.random.Generator

    def __call__(self, X: Array, *, radius: float, number: int) -> Asked:
        """Estimate the mean of the parties' vectors.

        Args:
            X: Shape (n, d): row i is the vector of party i.
            radius: Public bound on the norm of a row, from what was broadcast; longer rows would be clipped.
            number: Of the mean, never used twice in a run: it draws the maps.
        """
        n = len(X)
        asked = Round(n=n, radius=radius, number=number, parties=n, seed=self.seed)
        began = time.perf_counter()
        estimate = self.estimator.estimate(X, asked, rng=self.rng)
        seconds = time.perf_counter() - began
        total = X.sum(axis=0)
        S1 = float(np.vdot(X, X))
        off = estimate - total / n
        return Asked(
            estimate=estimate,
            squared_error=float(off @ off),
            squared_norms=S1,
            correlation=(float(total @ total) - S1) / S1 if S1 > 0 else None,
            bits=n * self.estimator.bits_per_party(1),
            seconds=seconds,
        )


def check_shards(shards: Sequence[npt.ArrayLike], estimator: MeanEstimator, rounds: int) -> list[Array]:
    """Return the parties' points as float64, after checking them, the estimator's dimension and the rounds.

    Raises:
        ParameterError: No party, one without points or with another dimension, NaN or infinities, an
            estimator of another dimension, or no rounds.
    """
    check_count("rounds", rounds)
    if not shards:
        raise ParameterError("shards must hold the points of at least one party, got none.")
    found = [as_rows("a shard", shard).astype(np.float64, copy=False) for shard in shards]
    for shard in found:
        if len(shard) == 0:
            raise ParameterError("every party must hold at least one point, got an empty shard.")
        if shard.shape[1] != estimator.dim:
            raise ParameterError(
                f"every shard must have the {estimator.dim} coordinates of the estimator, "
                f"got {shard.shape[1]}."
            )
        if not np.all(np.isfinite(shard)):
            raise ParameterError("shards must be finite, got a NaN or an infinity.")
    return found


def normals(seed: int, n: int, purpose: str) -> Array:
    """Return public normal numbers, shape (n,): the same start for all estimators under one seed."""
    stream = PublicStream(seed, 0, purpose=purpose)
    # Box and Muller (1958); 1 - u is never 0.
    size = np.sqrt(-2 * np.log1p(-stream.uniform(n)))
    return np.asarray(size * np.cos(2 * np.pi * stream.uniform(n)))
