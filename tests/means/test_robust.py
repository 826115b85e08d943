"""The smooth influence function and the median of means: their laws, their bounds and their price."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from tacit.audits import audit
from tacit.errors import ParameterError
from tacit.means import (
    CatoniSmoothedMean,
    CoordinateClippedMean,
    DiscreteGaussianNoise,
    Facts,
    GaussianNoise,
    MedianOfMeans,
    Message,
    MomentBound,
    MomentKind,
    NoNoise,
    Round,
    clip_bias,
    clip_variance,
    error_under_moment,
    smoothed_influence,
)
from tacit.means.message import LARGEST_RADIUS
from tacit.means.robust import MOST_INFLUENCE
from tacit.numerics import Array
from tacit.privacy import Gaussian, Neighbours, NonPrivate, PrivacyBudget, Relation, TrustModel, calibrate
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM, z_bound

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL


@pytest.mark.parametrize(
    ("a", "spread", "value"),
    [(0.3, 0.5, 0.258556629), (1.2, 0.7, 0.746555865), (-2, 0.4, -0.940265648), (3, 1, 0.933058237)],
)
def test_the_influence_has_its_closed_form(a: float, spread: float, value: float) -> None:
    assert smoothed_influence(np.array([a]), spread / abs(a))[0] == pytest.approx(value, abs=1e-9)

    def integrand(u: float) -> float:
        y = a + spread * u
        psi = y - y**3 / 6 if abs(y) <= math.sqrt(2) else math.copysign(MOST_INFLUENCE, y)
        return psi * float(stats.norm.pdf(u))

    kinks = [(s * math.sqrt(2) - a) / spread for s in (-1, 1)]
    found = integrate.quad(integrand, -12, 12, points=sorted(kinks), limit=200)[0]
    assert found == pytest.approx(value, abs=1e-9)


def test_the_influence_is_odd_and_bounded_however_large_entries_are() -> None:
    a = np.concatenate([np.geomspace(1e-300, 1e300, 400), [0.0, math.sqrt(2), 1e-9]])
    for smoothing in (0.0, 1e-9, 0.1, 1.0, 30.0):
        found = smoothed_influence(a, smoothing)
        assert np.abs(found).max() <= MOST_INFLUENCE
        assert np.array_equal(smoothed_influence(-a, smoothing), -found)
        small = a < 1e-4
        assert np.allclose(found[small], a[small], rtol=1e-4 * (1 + smoothing) ** 2)
    assert smoothed_influence(np.array([0.5]), 0.0)[0] == pytest.approx(0.5 - 0.5**3 / 6)


@pytest.mark.parametrize("order", [1.5, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.6])
def test_the_bias_of_the_influence_is_bounded(order: float, smoothing: float) -> None:
    """At every point: |E psi - a| over |a|^k, which two-point laws turn into biases."""
    mean, tau = CatoniSmoothedMean(dim=1, smoothing=smoothing), 2.0
    size = np.geomspace(1e-3, 100, 2000)
    shift = np.abs(tau * smoothed_influence(size / tau, smoothing) - size)
    counted = tau * np.abs(smoothed_influence(size / tau, smoothing))
    for value in (0.5, 2.0):
        moment = MomentBound(order, value, MomentKind.ENTRY)
        bound = error_under_moment(mean, 1, moment, radius=tau)
        # The law with mass min(1, (r / size)^k) at a size has that moment.
        mass = np.minimum(1.0, (value / size) ** order)
        assert np.max(mass * shift) <= bound.bias * (1 + 1e-12)
        assert np.max(mass * counted**2) <= bound.variance * (1 + 1e-12)
        if smoothing == 0 and order <= 3 and value == 2.0:
            assert np.max(mass * shift) >= 0.9 * bound.bias


def test_what_an_estimator_is_off_by_may_go_with_the_sample() -> None:
    """Variances of sums that may be tied add by their roots."""
    mean: Any = MedianOfMeans(dim=2, groups=3, noise=GaussianNoise(0.5))  # its median is off by something
    moment = MomentBound(2, 1.0)
    own = mean.error(30, Facts(radius=4.0))
    assert own.bias > 0
    bound = error_under_moment(mean, 30, moment, radius=4.0, ball="linf")
    sampled = clip_variance(moment, 4.0 * math.sqrt(2)) / 30
    assert bound.variance == pytest.approx(own.variance + (math.sqrt(sampled) + own.bias) ** 2)
    assert bound.bias == pytest.approx(own.bias + clip_bias(moment, 4.0))


def test_an_outlier_counts_no_more_than_the_influence_and_a_bad_row_not_at_all() -> None:
    mean = CatoniSmoothedMean(dim=2, smoothing=0.5)
    rows = np.array([[0.1, 0.2], [1e200, -1e200], [np.nan, 1.0], [0.0, 0.3]])
    found = mean.estimate(rows, Round(n=4, radius=2.0), rng=np.random.default_rng(0))
    counted = 2 * smoothed_influence(np.array([[0.05, 0.1], [1e3, -1e3], [0, 0], [0, 0.15]]), 0.5)
    assert np.allclose(found, counted.mean(axis=0), rtol=1e-12)
    assert np.array_equal(mean.estimate(rows, Round(n=4, radius=0.0), rng=np.random.default_rng(0)), [0, 0])


def test_the_noise_of_the_influence_is_that_of_its_range() -> None:
    """Two rows are at most 2 A tau sqrt(d) apart: (4 sqrt(2) / 3) tau sqrt(d) / s of the mean."""
    mean, s = CatoniSmoothedMean(dim=3, noise=GaussianNoise(1.5)), 10
    apart = 4 * math.sqrt(2) / 3 * 0.7 * math.sqrt(3) / s
    assert mean.error(s, Facts(radius=0.7)).variance == pytest.approx(3 * (1.5 * apart) ** 2)
    assert mean.event(s, CENTRAL) == Gaussian(1.5)
    assert isinstance(mean.event(s, LOCAL), NonPrivate)
    this_round, rng = Round(n=s, radius=0.7), np.random.default_rng(1)
    rows = np.random.default_rng(2).standard_t(3, (s, 3))
    bare = CatoniSmoothedMean(dim=3).estimate(rows, this_round, rng=rng)
    found = np.stack([mean.estimate(rows, this_round, rng=rng) for _ in range(3000)]) - bare
    assert np.all(np.abs(found.mean(axis=0)) <= z_bound(3) * found.std(axis=0) / math.sqrt(3000))
    squares = (found**2).sum(axis=1)
    wide = z_bound(1) * squares.std() / math.sqrt(3000)
    assert abs(squares.mean() - 3 * (1.5 * apart) ** 2) <= wide


# Median of means


def wire(messages: list[Message]) -> list[Message]:
    return [Message.from_bytes(message.to_bytes(), sender=message.sender) for message in messages]


def test_one_group_is_the_clipped_mean() -> None:
    noise, rows = DiscreteGaussianNoise(1.0, steps=256), np.random.default_rng(0).standard_t(2, (9, 3))
    this_round = Round(n=9, radius=2.0)
    one, plain = (
        MedianOfMeans(dim=3, groups=1, noise=noise),
        CoordinateClippedMean(dim=3, noise=noise, trust=CENTRAL),
    )
    bare = MedianOfMeans(dim=3, groups=1)
    found = bare.estimate(rows, this_round, rng=np.random.default_rng(1))
    assert np.allclose(found, np.clip(rows, -2, 2).mean(axis=0))
    assert one.event(9, CENTRAL) == plain.event(9, CENTRAL)
    assert one.error(9, Facts(parties=1)) == plain.error(9, Facts(parties=1))
    assert one.bits_per_party(9) == plain.bits_per_party(9)


def test_replacing_a_row_moves_one_group_only() -> None:
    mean, this_round = MedianOfMeans(dim=2, groups=4), Round(n=18, radius=1.0)
    rows = np.random.default_rng(1).normal(size=(18, 2))
    other = rows.copy()
    rows[5], other[5] = 1e9, -1e9
    first, second = (
        np.stack([m.payload for m in mean.encode(x, this_round, party=0, rng=np.random.default_rng(2))])
        for x in (rows, other)
    )
    moved = np.linalg.norm(first - second, axis=1)
    assert np.count_nonzero(moved) == 1
    assert moved.max() == pytest.approx(2 * math.sqrt(2), rel=1e-12)


def test_no_radius_lets_a_row_move_a_group_further_than_is_priced() -> None:
    dim, noise = 100, 1.0
    mean = MedianOfMeans(dim=dim, noise=GaussianNoise(noise), trust=TrustModel.LOCAL)
    largest = Round(n=1, radius=LARGEST_RADIUS)
    ends = []
    for sign in (-1, 1):
        rng = simulated(0)
        row = np.full((1, dim), sign * LARGEST_RADIUS)
        ends.append([mean.estimate(row, largest, rng=rng) for _ in range(40)])
    # The same noise on both sides: what is left is what the row moved, of which the noise is priced by.
    moved = np.linalg.norm(ends[1][0] - ends[0][0])
    spread = np.std(np.asarray(ends[0]) - np.mean(ends[0], axis=0), ddof=0) * math.sqrt(40 / 39)
    # Of 3,900 degrees of freedom: 10 % off is 8.8 standard deviations, less than 1 in 10^17.
    assert moved / spread < 1.1 / noise


def test_groups_are_drawn_evenly_and_without_bias() -> None:
    mean, n, trials = MedianOfMeans(dim=1, groups=3), 8, 3000
    rows, this_round = np.arange(n)[:, None] / 10, Round(n=n, radius=1.0)
    rng = np.random.default_rng(3)
    sums = np.stack(
        [[m.payload[0] for m in mean.encode(rows, this_round, party=0, rng=rng)] for _ in range(trials)]
    )
    assert np.allclose(sums.sum(axis=1), rows.sum())
    means = sums * 3 / n
    assert np.all(
        np.abs(means.mean(axis=0) - rows.mean()) <= z_bound(3) * means.std(axis=0) / math.sqrt(trials)
    )


@pytest.mark.parametrize("trust", [CENTRAL, LOCAL])
def test_the_error_is_bounded_and_outliers_cost_little(trust: TrustModel) -> None:
    mean = MedianOfMeans(dim=2, groups=5, noise=GaussianNoise(0.2), trust=trust)
    n, parties = 60, 2
    rows = np.clip(np.random.default_rng(4).standard_t(1.5, (n, 2)), -4, 4)
    this_round, rng = Round(n=n, radius=4.0, parties=parties), np.random.default_rng(5)
    found = np.stack([mean.estimate(rows, this_round, rng=rng) for _ in range(400)])
    squares = ((found - rows.mean(axis=0)) ** 2).sum(axis=1)
    bound = mean.error(n, Facts(parties=parties, radius=4.0))
    assert squares.mean() + z_bound(1) * squares.std() / 20 <= bound.variance
    assert bound.variance <= mean.error(n, Facts(radius=4.0)).variance
    messages = wire(mean.encode(rows, this_round, party=0, rng=rng))
    assert sum(8 * len(m.to_bytes()) for m in messages) == mean.bits_per_party(n)
    assert mean.decode(messages, this_round, rng=rng).shape == (2,)


def test_what_the_median_refuses() -> None:
    mean, this_round = MedianOfMeans(dim=1, groups=3), Round(n=6, radius=1.0)
    rng = np.random.default_rng(0)
    messages = mean.encode(np.zeros((6, 1)), this_round, party=0, rng=rng)
    for bad in (messages[:2], [], [*messages, Message(payload=np.zeros(1), label=3, sender=1)]):
        with pytest.raises(ParameterError):
            mean.decode(bad, this_round, rng=rng)
    with pytest.raises(ParameterError, match="groups"):
        mean.encode(np.zeros((2, 1)), Round(n=2, radius=1.0), party=0, rng=rng)
    with pytest.raises(ParameterError, match="groups"):
        MedianOfMeans(dim=1, groups=0)
    with pytest.raises(ParameterError, match="replace-one"):
        MedianOfMeans(dim=1, groups=2, neighbours=Neighbours(Relation.ADD_REMOVE))
    with pytest.raises(ParameterError, match="failure"):
        mean.groups_for(0.0)
    assert MedianOfMeans(dim=5).groups_for(0.01) == math.ceil(8 * math.log(1000))
    with pytest.raises(ParameterError, match="smoothing"):
        CatoniSmoothedMean(dim=1, smoothing=-1.0)


# Privacy


@pytest.mark.parametrize("kind", ["median", "influence"])
def test_what_is_right_stands_and_too_little_noise_is_caught(kind: str) -> None:
    """The observer sees all groups; the row that is replaced is in one of them."""
    budget, n = PrivacyBudget(1.0, 1e-3), 2
    z = calibrate(Gaussian, budget, low=1e-3, high=1e3)
    rows = {True: np.array([[1e9], [-1e9]]), False: np.array([[-1e9], [-1e9]])}
    this_round = Round(n=n, radius=1.0)
    for factor in (1.0, 0.1):
        noise = GaussianNoise(z * factor)
        mean: MedianOfMeans | CatoniSmoothedMean = (
            MedianOfMeans(dim=1, groups=2, noise=noise, trust=LOCAL)
            if kind == "median"
            else CatoniSmoothedMean(dim=1, noise=noise, trust=LOCAL)
        )

        def run(
            there: bool, size: int, rng: np.random.Generator, mean: MedianOfMeans | CatoniSmoothedMean = mean
        ) -> Array:
            return np.array(
                [
                    max(float(m.payload[0]) for m in mean.encode(rows[there], this_round, party=0, rng=rng))
                    for _ in range(size)
                ]
            )

        claim = MedianOfMeans(dim=1, groups=2, noise=GaussianNoise(z), trust=LOCAL).event(n, LOCAL)
        found = audit(
            run, (claim, budget.delta), runs=600, confidence=1 - FALSE_ALARM, rng=simulated(1, kind)
        )
        assert found.refuted == (factor < 1)


def test_without_noise_nothing_is_claimed() -> None:
    for mean in (MedianOfMeans(dim=1, groups=2), CatoniSmoothedMean(dim=1)):
        assert isinstance(mean.noise, NoNoise)
        assert not mean.private
        assert isinstance(mean.event(4, CENTRAL), NonPrivate)
