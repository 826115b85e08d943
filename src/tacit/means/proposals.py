"""What an estimator offers for one mean: candidates that are cheap to rank, and calibrated on demand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tacit.means.base import Error, MeanEstimator
from tacit.means.noise import DiscreteGaussianNoise, DiscreteLaplaceNoise
from tacit.means.problem import MeanProblem
from tacit.numerics import Norm
from tacit.privacy import calibrate

__all__ = ["ComputeCost", "Proposal", "counts_that_fit", "geometric", "noisy"]

_LEAST, _MOST = 2.0**-10, 1e7
"""Noise multipliers that are tried."""

_SHARES = (1, 4, 16, 64)
"""Numbers that a party sends, as shares of the most that it may."""


class ComputeCost(NamedTuple):
    """What a computation takes.

    Attributes:
        order: In O-notation.
        operations: About how many additions, multiplications and random draws; the order without constants.
    """

    order: str
    operations: float


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A mechanism before its calibration.

    Attributes:
        name: Family and parameters, in words.
        family: Its family.
        make: Builds the calibrated estimator; raises BudgetError where the budget cannot be met.
        norm: Norm that the estimator clips in.
        encode: Cost of one party.
        decode: Cost of the server.
        guess: An estimator of the same form with about the right noise: its bits are those of the calibrated
            one, up to the width of noisy integers, and its error ranks it among its family. None: the
            calibrated one does.
        bias: Root mean squared bias over the public map for rows of norm 1, where a bound sharper than the
            estimator's own is known; else None.
        note: What the error assumes, and what else to know.
        ranked: Whether plans rank it; else it is an ablation, or its rows are not all those of a ball, and
            it is built for audits.
        cube: Whether rows are clipped coordinate by coordinate.
    """

    name: str
    family: str
    make: Callable[[], MeanEstimator]
    norm: Norm
    encode: ComputeCost
    decode: ComputeCost
    guess: MeanEstimator | None = None
    bias: float | None = None
    note: str = ""
    ranked: bool = True
    cube: bool = False

    def error(self, estimator: MeanEstimator, problem: MeanProblem) -> Error:
        """Return the predicted error of an estimator of this form, against the mean of the n rows."""
        facts = problem.facts(self.norm)
        found = estimator.error(problem.n, facts)
        bias = found.bias if self.bias is None else min(found.bias, facts.radius * self.bias)
        # Where an error is a difference of equal numbers, rounding may leave less than nothing.
        return Error(variance=max(found.variance, 0.0), bias=bias, exact=found.exact, stderr=found.stderr)


IntegerNoise = type[DiscreteGaussianNoise] | type[DiscreteLaplaceNoise]


def noisy(
    build: Callable[[float], MeanEstimator], problem: MeanProblem, kind: IntegerNoise, *, longer: float = 1.0
) -> tuple[MeanEstimator, Callable[[], MeanEstimator]]:
    """Return a guess of an estimator with additive noise, and what builds the least noisy one.

    Args:
        build: Builds it for a noise multiplier.
        problem: What is asked, with a budget.
        kind: Of noise.
        longer: By how much rounding to the grid lengthens the distance of two sums.
    """
    budget = problem.known_budget
    # Without delta there is no Gaussian noise, and the calibration will say so.
    log = math.log(1 / budget.delta) if budget.delta > 0 else 50.0
    scale = (1.0 if kind is DiscreteLaplaceNoise else math.sqrt(2 * max(1.0, log))) / budget.epsilon
    guess = build(min(max(scale, _LEAST), _MOST) * longer)

    def make() -> MeanEstimator:
        z = calibrate(lambda z: build(z).event(problem.n, problem.observer), budget, low=_LEAST, high=_MOST)
        return build(z)

    return guess, make


def counts_that_fit(build: Callable[[int], MeanEstimator], problem: MeanProblem) -> list[int]:
    """Return numbers k to send: the most that the bits allow (or half the row), and fractions of it."""
    most = max(1, problem.dim // 2)
    if problem.bits is not None:
        low, top = 1, problem.dim + 1
        while top - low > 1:
            middle = (low + top) // 2
            low, top = (middle, top) if build(middle).bits_per_party(1) <= problem.bits else (low, middle)
        most = low
    return sorted({max(1, most // share) for share in _SHARES}, reverse=True)


def geometric(D: int) -> list[int]:
    """Return 1, 2, 4, ... and D."""
    return [*(2**k for k in range(D.bit_length()) if 2**k < D), D]
