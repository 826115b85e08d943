"""Which clip, and what error, where all that is known of rows is a moment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from tacit.errors import ParameterError, check_choice, check_count, check_positive
from tacit.means.additive import AdditiveMean
from tacit.means.base import Error, Facts, MeanEstimator
from tacit.means.binomial import BinomialMean
from tacit.means.coordinate_clipped import CoordinateClippedMean
from tacit.means.modular import ModularSumMean
from tacit.means.moments import ClipBall, MomentBound, MomentKind, balanced_clip, clip_bias, clip_variance
from tacit.means.noise import DiscreteGaussianNoise
from tacit.means.robust import MOST_INFLUENCE, CatoniSmoothedMean
from tacit.means.shuffled_coordinate import ShuffledCoordinateMean
from tacit.privacy import Event, Neighbours, PrivacyBudget, Repeat, TrustModel, calibrate

__all__ = ["BalancedMean", "balanced_mean", "clip_for", "error_under_moment"]

_LEAST, _MOST = 2.0**-10, 1e7
"""Noise multipliers that are tried."""


@dataclass(frozen=True, kw_only=True)
class BalancedMean:
    """A private mean of heavy-tailed rows, ready to use.

    Attributes:
        estimator: Calibrated to the budget.
        clip: Radius of its rounds.
        error: Bound on its error against the mean of the law.
    """

    estimator: MeanEstimator
    clip: float
    error: Error


def balanced_mean(
    moment: MomentBound,
    *,
    n: int,
    dim: int,
    budget: PrivacyBudget,
    trust: TrustModel = TrustModel.CENTRAL,
    ball: ClipBall = "l2",
    releases: int = 1,
    parties: int = 1,
    neighbours: Neighbours = Neighbours(),  # noqa: B008 - immutable
) -> BalancedMean:
    """Return a mean whose noise meets a budget, and whose clip balances that noise with the bias.

    Exact integer noise for `central` and `local` trust, binomial sums for `shuffle`. Noise scales with the
    clip, so that the clip needs no privacy: it depends on the moment and on public sizes only.

    Args:
        moment: Of the rows.
        n: Number of rows, >= 1; behind a shuffler >= 2.
        dim: Number of coordinates, >= 1.
        budget: For all releases together.
        trust: `central`, `local` or `shuffle`.
        ball: Whether rows are clipped as a whole (`l2`) or coordinate by coordinate (`linf`).
        releases: How many means of the same rows the budget is for, each possibly chosen after the last.
        parties: That hold the rows; under local trust each adds noise.
        neighbours: Replace-one.

    Raises:
        ParameterError: A value is out of its range.
        BudgetError: The budget cannot be met.

    Example:
        >>> found = balanced_mean(MomentBound(2, 2.0), n=100, dim=4, budget=PrivacyBudget(1.0, 1e-5))
        >>> round(found.clip, 2), round(found.error.mse, 2)
        (2.59, 0.34)

    Reference:
        Lowy (2023), Algorithm 5 and Appendix C.7, with the clip of `balanced_clip`.
    """
    check_choice("ball", ball, get_args(ClipBall))
    check_count("releases", releases)
    check_count("parties", parties)

    def repeated(event: Event) -> Event:
        return event if releases == 1 else Repeat(event, releases)

    if trust is TrustModel.SHUFFLE:
        shuffled = BinomialMean if ball == "l2" else ShuffledCoordinateMean
        estimator: MeanEstimator = shuffled.calibrated(budget, n, dim, rounds=releases, neighbours=neighbours)
    else:
        summed = AdditiveMean if ball == "l2" else CoordinateClippedMean

        def build(z: float) -> AdditiveMean | CoordinateClippedMean:
            return summed(dim=dim, noise=DiscreteGaussianNoise(z), trust=trust, neighbours=neighbours)

        z = calibrate(lambda z: repeated(build(z).event(n, trust)), budget, low=_LEAST, high=_MOST)
        estimator = build(z)
    clip = clip_for(estimator, n, moment, ball=ball, parties=parties)
    return BalancedMean(
        estimator=estimator,
        clip=clip,
        error=error_under_moment(estimator, n, moment, radius=clip, parties=parties),
    )


def clip_for(
    estimator: MeanEstimator, n: int, moment: MomentBound, *, ball: ClipBall, parties: int | None = None
) -> float:
    """Return the clip that balances what an estimator errs by itself with the bias.

    Args:
        estimator: Whose squared error grows as the square of the radius.
        n: Number of rows, >= 1.
        moment: Of the rows.
        ball: What it clips to.
        parties: That hold the rows; None for the worst number.
    """
    error, dim = estimator.error(n, Facts(parties=parties)), estimator.dim
    # As the multiplier of Gaussian noise with that error; a cube moves sqrt(d) times as far.
    further = dim if ball == "linf" else 1
    multiplier = math.sqrt(error.mse / dim / further) * n / 2
    return balanced_clip(moment, rows=n, dim=dim, noise_multiplier=multiplier, ball=ball)


def error_under_moment(
    estimator: MeanEstimator | CatoniSmoothedMean,
    n: int,
    moment: MomentBound,
    *,
    radius: float,
    parties: int | None = None,
    ball: ClipBall | None = None,
) -> Error:
    """Bound the error of an estimate against the mean of the law of independent rows with a bounded moment.

    To what `estimator.error` says of the mean of the clipped rows comes how far clipping moves the mean of
    the law, and the sampling of the rows.

    Args:
        estimator: One that clips to an L2 ball or to a cube, or `CatoniSmoothedMean`.
        n: Number of rows, >= 1.
        moment: Of the rows.
        radius: Of the round, > 0.
        parties: That hold the rows; None for the worst number.
        ball: What it clips to, for other estimators; None where only those above are allowed.

    Returns:
        A bound on both parts, whatever the law is.

    Raises:
        ParameterError: An estimator that clips to another ball, or a value out of its range.

    Reference:
        Lowy (2023), Lemma 49, with the constants of `clip_bias` and `clip_variance`.
    """
    check_positive("radius", radius)
    given = estimator.error(n, Facts(parties=parties, radius=radius))
    dim = estimator.dim
    match estimator:
        case CatoniSmoothedMean():
            reach = MOST_INFLUENCE * radius
            bias, sampled = _of_cube(estimator.counted_moment(moment), reach, dim)
        case CoordinateClippedMean() | ShuffledCoordinateMean():
            bias, sampled = _of_cube(moment, radius, dim)
        case AdditiveMean() | ModularSumMean() if estimator.noise.norm == "l2":
            bias, sampled = _of_ball(moment, radius, dim)
        case BinomialMean():
            bias, sampled = _of_ball(moment, radius, dim)
        case _ if ball is not None:
            bias, sampled = (_of_ball if ball == "l2" else _of_cube)(moment, radius, dim)
        case _:
            raise ParameterError(f"rows must be clipped to an l2 ball or to a cube, got {estimator!r}.")
    # What an estimator is off by may go with the sample: variances of such sums add by their roots.
    return Error(
        variance=given.variance + (math.sqrt(sampled / n) + given.bias) ** 2,
        bias=bias + given.bias,
        exact=False,
    )


def _of_ball(moment: MomentBound, radius: float, dim: int) -> tuple[float, float]:
    """Return the bounds on the bias and on the variance of one row that is clipped as a whole."""
    inside = moment.for_ball("l2", dim=dim)
    return clip_bias(inside, radius), clip_variance(inside, radius)


def _of_cube(moment: MomentBound, radius: float, dim: int) -> tuple[float, float]:
    """Return the same where every coordinate is clipped: the cube is between two balls."""
    if moment.kind in (MomentKind.SUP_INSIDE, MomentKind.SUP_OUTSIDE):
        return clip_bias(moment, radius), clip_variance(moment, radius * math.sqrt(dim))
    inside = moment.for_ball("linf", dim=dim)
    return math.sqrt(dim) * clip_bias(inside, radius), dim * clip_variance(inside, radius)
