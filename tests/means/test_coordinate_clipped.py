"""Means of rows that are clipped coordinate by coordinate: added up, and shuffled bit by bit."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.means import (
    AdditiveMean,
    BinomialMean,
    CoordinateClippedMean,
    DiscreteGaussianNoise,
    Facts,
    GaussianNoise,
    HadamardMean,
    MomentBound,
    MomentKind,
    Round,
    ShuffledCoordinateMean,
    balanced_clip,
    balanced_mean,
    error_under_moment,
)
from tacit.numerics import Array
from tacit.privacy import (
    Binomial,
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    TrustModel,
    calibrate,
    delta_of,
    meets,
)
from tests.statistics import z_bound

LOCAL, CENTRAL, SHUFFLE = TrustModel.LOCAL, TrustModel.CENTRAL, TrustModel.SHUFFLE


def test_the_sum_is_that_of_the_ball_around_the_cube() -> None:
    """Same bytes for the clipped rows, and so the same price: 2 sqrt(d) half sides."""
    noise = DiscreteGaussianNoise(1.5, steps=64)
    cube, ball = (kind(dim=4, noise=noise) for kind in (CoordinateClippedMean, AdditiveMean))
    rows = np.random.default_rng(0).standard_t(2, (7, 4)) * 5
    rows[0] = [1e200, -1e200, np.inf, 0]
    clipped = np.clip(rows, -3, 3)
    clipped[0] = 0
    first = cube.encode(rows, Round(n=7, radius=3.0), party=0, rng=np.random.default_rng(1))
    second = ball.encode(clipped, Round(n=7, radius=6.0), party=0, rng=np.random.default_rng(1))
    assert [m.to_bytes() for m in first] == [m.to_bytes() for m in second]
    for trust in TrustModel:
        assert cube.event(7, trust) == ball.event(7, trust)
    assert cube.error(7, Facts(parties=1, radius=3.0)) == ball.error(7, Facts(parties=1, radius=6.0))
    assert cube.moved == 4.0


def test_a_row_moves_the_mean_by_the_diagonal_of_the_cube() -> None:
    mean, n = CoordinateClippedMean(dim=3, on_violation="clip"), 5
    rows = np.zeros((n, 3))
    low, high = rows.copy(), rows.copy()
    low[0], high[0] = -1e200, 1e200
    found = [mean.estimate(x, Round(n=n, radius=2.0), rng=np.random.default_rng(0)) for x in (low, high)]
    assert np.linalg.norm(found[1] - found[0]) == pytest.approx(2 * 2.0 * math.sqrt(3) / n, rel=1e-12)


def test_the_error_of_one_number() -> None:
    """z = 4 with probability 0.05, tau = 2, s = 50, epsilon = 1 (rho = 1/2): to the digit."""
    p, tau, s = 0.05, 2.0, 50
    mean = CoordinateClippedMean(dim=1, noise=GaussianNoise(1.0), trust=CENTRAL)
    bias, variance = p * (4 - tau), p * (1 - p) * tau**2 / s
    noise = mean.error(s, Facts(radius=tau)).variance
    assert (bias, variance, math.sqrt(noise)) == pytest.approx((0.1, 0.0038, 0.08))
    assert bias**2 + variance + noise == pytest.approx(0.0202)
    moment = MomentBound(2, math.sqrt(p * 16), MomentKind.ENTRY)
    bound = error_under_moment(mean, s, moment, radius=tau)
    assert bound.bias == pytest.approx(bias)  # this law attains it
    assert variance + noise <= bound.variance
    assert not bound.exact


def test_errors_against_the_law_are_bounded_and_measured() -> None:
    """The hard instance: rows 0, or p^(-1/2) (1, 1, 1, 1) with probability p."""
    n, dim, p = 100, 4, 2 / (100 * math.sqrt(0.5))
    moment, rng, trials = MomentBound(2, 2.0), np.random.default_rng(3), 1500
    exact, target = 0.0952675396, p**0.5
    mean = AdditiveMean(dim=dim, noise=GaussianNoise(1.0), trust=CENTRAL)
    this_round, squares = Round(n=n, radius=6.0), np.empty(trials)
    for t in range(trials):
        rows = np.where(rng.random((n, 1)) < p, p**-0.5, 0.0) * np.ones(dim)
        squares[t] = np.sum((mean.estimate(rows, this_round, rng=rng) - target) ** 2)
    assert abs(squares.mean() - exact) <= z_bound(1) * squares.std() / math.sqrt(trials)
    bound = error_under_moment(mean, n, moment, radius=6.0)
    assert exact <= bound.mse
    # Clipped at C* or close by, the bound is the least.
    best = balanced_clip(moment, rows=n, dim=dim, noise_multiplier=1.0)
    assert best == pytest.approx(5.0)
    for radius in (best / 2, best * 2):
        assert (
            error_under_moment(mean, n, moment, radius=best).mse
            < error_under_moment(mean, n, moment, radius=radius).mse
        )


@pytest.mark.parametrize("ball", ["l2", "linf"])
@pytest.mark.parametrize("trust", [CENTRAL, LOCAL, SHUFFLE])
def test_balanced_means_meet_their_budget(trust: TrustModel, ball: str) -> None:
    moment, budget, n = MomentBound(3, 2.0), PrivacyBudget(1.0, 1e-5), 500
    found = balanced_mean(moment, n=n, dim=3, budget=budget, trust=trust, ball=ball, releases=4)  # type: ignore[arg-type]
    assert meets(Repeat(found.estimator.event(n, trust), 4), budget)
    for factor in (0.8, 1.25):
        other = error_under_moment(found.estimator, n, moment, radius=factor * found.clip, parties=1)
        assert found.error.mse < other.mse
    with pytest.raises(ParameterError, match="l2 ball or to a cube"):
        error_under_moment(HadamardMean(dim=3, local_epsilon=1.0), n, moment, radius=1.0)


def test_a_moment_of_norms_bounds_what_a_cube_clips() -> None:
    """Rows move no further to the cube than to the ball inside it, and end in the ball around it."""
    rows = np.random.default_rng(6).standard_t(1.5, (2000, 3)) * [1, 5, 0.2]
    mean = CoordinateClippedMean(dim=3)
    for order, radius in ((1.3, 0.5), (2.0, 3.0), (3.0, 10.0)):
        norms = np.linalg.norm(rows, axis=1)
        moment = MomentBound(order, float(np.mean(norms**order) ** (1 / order)))
        bound = error_under_moment(mean, 1, moment, radius=radius)
        clipped = np.clip(rows, -radius, radius)
        assert np.linalg.norm((clipped - rows).mean(axis=0)) <= bound.bias
        assert np.mean(np.sum(clipped**2, axis=1)) <= bound.variance


# Shuffled bits


@pytest.mark.parametrize(("g", "trials"), [(1, 80), (8, 4578), (64, 292_429)])
def test_the_fewest_noise_bits_of_one_number(g: int, trials: int) -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    assert meets(Binomial(trials, g), budget)
    assert not meets(Binomial(trials - 1, g), budget)


def law_of_sum(mean: ShuffledCoordinateMean, column: Array) -> Array:
    """Law of the ones of one coordinate of rows in [-1, 1], by its definition."""
    law = np.ones(1)
    for value in np.clip(column, -1, 1):
        place = (value + 1) * mean.resolution / 2
        low = min(math.floor(place), mean.resolution - 1)
        row = np.zeros(mean.resolution + 1)
        row[low : low + 2] = [1 - (place - low), place - low]
        law = np.convolve(law, row)
    bits = mean.noise_bits * len(column)
    return np.convolve(law, stats.binom.pmf(np.arange(bits + 1), bits, 0.5))


@pytest.mark.parametrize(("bits", "g"), [(40, 1), (60, 2), (100, 3)])
def test_no_two_data_sets_are_easier_to_tell_apart_than_claimed(bits: int, g: int) -> None:
    """Two rows of two coordinates: all of the replaced row may change, in any direction."""
    mean, n = ShuffledCoordinateMean(dim=2, noise_bits=bits, resolution=g), 2
    event, worst = mean.event(n, SHUFFLE), 0.0
    values = np.array([-1.0, 0.4, 1.0])
    rows = [np.array(row) for row in product(values, repeat=2)]
    other = np.array([0.3, -0.7])
    laws = [
        np.multiply.outer(*(law_of_sum(mean, np.array([row[j], other[j]])) for j in range(2))) for row in rows
    ]
    for epsilon in (0.1, 0.5, 1.0):
        claimed = delta_of(event, epsilon)
        largest = max(
            float(np.maximum(one - math.exp(epsilon) * two, 0).sum()) for one in laws for two in laws
        )
        assert largest <= claimed + 1e-12
        worst = max(worst, largest / claimed)
    assert worst > 0.2  # the claim is of this size: rows of a ball would have half of the divergence


def test_the_sampled_law_is_the_written_one() -> None:
    mean = ShuffledCoordinateMean(dim=2, noise_bits=3, resolution=4)
    rows, rng = np.array([[0.3, -5.0], [-0.9, 0.1]]), np.random.default_rng(5)
    ones = np.stack(
        [mean.encode(rows, Round(n=2, radius=1.0), party=0, rng=rng)[0].payload for _ in range(3000)]
    )
    for j in range(2):
        law = law_of_sum(mean, rows[:, j])
        counts = np.bincount(ones[:, j], minlength=law.size)
        keep = law * 3000 > 5
        rest = [counts[~keep].sum()], [law[~keep].sum() * 3000]
        observed = np.concatenate([counts[keep], rest[0]])
        expected = np.concatenate([law[keep] * 3000, rest[1]])
        if expected[-1] < 1:
            observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
        assert stats.chisquare(observed, expected).pvalue > 1e-7


def test_coordinates_take_fewer_bits_than_the_ball_around_them() -> None:
    budget, n, dim = PrivacyBudget(1.0, 1e-6), 10_000, 100
    cube = ShuffledCoordinateMean.calibrated(budget, n, dim)
    ball = BinomialMean.calibrated(budget, n, dim)
    assert meets(cube.event(n, SHUFFLE), budget)
    assert (cube.bits_per_coordinate, ball.bits_per_coordinate) == (32, 72)
    z = calibrate(Gaussian, budget, low=1e-6, high=1e9)
    central = dim * dim * (2 * z / n) ** 2
    assert 1.0 < cube.error(n).variance / central <= 1.1
    with pytest.raises(BudgetError, match="mse_overhead"):
        ShuffledCoordinateMean.calibrated(budget, 10, 10**4, mse_overhead=0.0)


def test_too_few_rows_are_not_decoded() -> None:
    mean = ShuffledCoordinateMean(dim=2, noise_bits=3, resolution=4, n_min=3)
    rows, rng = np.zeros((2, 2)), np.random.default_rng(0)
    this_round = Round(n=4, radius=1.0)
    with pytest.raises(RefusalError, match="at least 3 rows"):
        mean.estimate(rows, this_round, rng=rng)
    with pytest.raises(RefusalError, match="at least"):
        mean.decode(mean.encode(rows, this_round, party=0, rng=rng), this_round)
    with pytest.raises(ParameterError, match="replace-one"):
        ShuffledCoordinateMean(dim=1, noise_bits=1, resolution=1, neighbours=Neighbours(Relation.ADD_REMOVE))
