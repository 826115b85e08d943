from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.means import (
    Bins,
    HadamardMean,
    Round,
    UserLevelScalarMean,
    UserLevelVectorMean,
    central_user_mean,
    subgaussian_tau,
    user_means,
)
from tacit.privacy import TrustModel, Unit, epsilon_of, neighbours_of
from tests.statistics import FALSE_ALARM, z_bound

N, M, B, MU = 5000, 100, 10.0, 2.3
TAU = 0.4940864832


def test_tau_covers_all_user_means_and_the_printed_one_does_not() -> None:
    tau = subgaussian_tau(1.0, n=N, samples=M, gamma=0.05)
    assert tau == pytest.approx(TAU, abs=5e-11)
    rng, runs = np.random.default_rng(1), 200
    worst = np.array([np.abs(rng.standard_normal(N)).max() / math.sqrt(M) for _ in range(runs)])
    assert (worst > tau).mean() <= 0.05
    assert (worst > tau / math.sqrt(2)).mean() > 0.8  # the printed tau


def test_bins_and_predictions() -> None:
    mean = UserLevelScalarMean(bound=B, tau=TAU, local_epsilon=2.0)
    assert mean.bins.count == 21
    assert mean.range_mean.coded_dim == 32
    # Means of 2.3 with standard deviation 0.1 in their bin: their rounding is a little less than the worst.
    centre = mean.bins.centre(int(mean.bins.index(np.array([MU]))[0]))
    saved = 4 * (3 * TAU) ** 2 * ((MU - centre) ** 2 + 0.01) / (6 * TAU) ** 2 / N
    assert mean.error(N).variance - saved == pytest.approx(0.0020551, abs=6e-8)
    assert mean.failure(N, 0.05) == pytest.approx(0.05000002, abs=5e-9)
    naive = UserLevelScalarMean(bound=B, tau=B, local_epsilon=2.0)  # one bin: one bit on the whole interval
    assert naive.error(N).variance == pytest.approx(0.034481, abs=5e-7)


def test_the_range_covers_and_the_mean_is_found() -> None:
    rng, runs = np.random.default_rng(2), 60
    mean = UserLevelScalarMean(bound=B, tau=TAU, local_epsilon=2.0)
    squares = []
    for _ in range(runs):
        y = np.clip(MU + rng.standard_normal(N) / math.sqrt(M), -B, B)
        shares = mean.range_mean.estimate(mean.bins.one_hot(y), Round(n=N, radius=1.0), rng=rng)
        centre, half = mean.bins.window(shares)
        assert half == 3 * TAU
        assert np.all(np.abs(y - centre) <= half)
        squares.append((mean.estimate(np.repeat(y[:, None], 2, axis=1), rng=rng) - y.mean()) ** 2)
    # Chi-square with 60 degrees of freedom, of which the stated error is the largest variance.
    assert 0.3 * 0.0020551 < np.mean(squares) < 2.3 * 0.0020551


def test_bins_cover_the_interval_once() -> None:
    bins = Bins(bound=1.0, tau=0.3)
    assert bins.count == 4
    values = np.linspace(-1.5, 1.5, 301)
    index = bins.index(values)
    centres = np.array([bins.centre(int(k)) for k in index])
    assert np.all(np.abs(np.clip(values, -1, 1) - centres) <= 0.3 + 1e-12)
    assert bins.one_hot(values).sum() == 301
    assert Bins(bound=1.0, tau=2.0).window(np.zeros(1)) == (0.0, 1.0)


def test_shares_of_bins_are_unbiased_and_levels_add_up() -> None:
    mean = UserLevelScalarMean(bound=B, tau=TAU, local_epsilon=2.0, split=0.25, planes=2)
    assert mean.range_mean == HadamardMean(
        dim=21, local_epsilon=0.5, neighbours=neighbours_of(mean.event(N, TrustModel.LOCAL))
    )
    event = mean.event(N, TrustModel.LOCAL)
    assert neighbours_of(event).unit is Unit.PARTY
    assert epsilon_of(event, 0.0) == pytest.approx(2.0, rel=1e-12)
    alone = UserLevelScalarMean(bound=1.0, tau=2.0, local_epsilon=2.0)
    assert epsilon_of(alone.event(N, TrustModel.LOCAL), 0.0) == pytest.approx(2.0, rel=1e-12)
    shuffled = UserLevelScalarMean(bound=B, tau=TAU, local_epsilon=2.0, trust=TrustModel.SHUFFLE)
    assert epsilon_of(shuffled.event(N, TrustModel.SHUFFLE), 1e-6) < 0.2


def test_user_means_clip_every_sample() -> None:
    samples = np.array([[0.5, 3.0], [-9.0, 1.0], [np.nan, 1.0]])
    assert user_means(samples, 1.0).tolist() == [0.75, 0.0, 0.0]


def test_vectors_of_users() -> None:
    rng, target = np.random.default_rng(3), np.array([0.5, -0.2, 0.6])
    X = target + rng.normal(0, 0.02, size=(40_000, 3))
    mean = UserLevelVectorMean(dim=3, bound=1.0, tau=0.1, local_epsilon=4.0, samples=4, planes=1)
    assert epsilon_of(mean.event(len(X), TrustModel.LOCAL), 0.0) == pytest.approx(4.0, rel=1e-12)
    found = mean.estimate(X, seed=5, rng=rng)
    one_round = mean.report_mean.error(len(X)).variance * 0.3**2
    assert ((found - X.mean(axis=0)) ** 2).sum() < 20 * one_round
    tau = UserLevelVectorMean.coordinate_tau(1.0, dim=1000, n=100, gamma=0.05)
    assert tau == pytest.approx(math.sqrt(2 * math.log(2 * 100 * 1024 / 0.05) / 1024), rel=1e-12)


def test_the_central_baseline_is_far_more_accurate() -> None:
    rng = np.random.default_rng(4)
    samples = rng.normal(MU, 1.0, size=(1000, M))
    found = [central_user_mean(samples, bound=B, tau=0.5, epsilon=1.0, rng=rng) for _ in range(200)]
    errors = np.array(found) - samples.mean()
    # Laplace noise of scale 12 tau / (n epsilon) = 0.006 after the right bin is found.
    assert np.abs(errors).max() < 0.006 * math.log(200 / FALSE_ALARM) + 0.01
    assert np.std(errors) > 0.003


def test_bad_input_is_refused() -> None:
    for changed in (
        {"tau": 0.0},
        {"bound": math.inf},
        {"local_epsilon": -1.0},
        {"split": 1.0},
        {"planes": 0},
    ):
        good = {"bound": 1.0, "tau": 0.1, "local_epsilon": 1.0}
        with pytest.raises(ParameterError, match=f"{next(iter(changed))}|the number of planes"):
            UserLevelScalarMean(**{**good, **changed})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"tau must be at least bound / 2\*\*20"):
        Bins(bound=1.0, tau=1e-9)
    with pytest.raises(ParameterError, match="gamma must be in"):
        subgaussian_tau(1.0, n=2, samples=2, gamma=0.0)
    mean = UserLevelVectorMean(dim=3, bound=1.0, tau=0.1, local_epsilon=4.0, samples=4)
    with pytest.raises(ParameterError, match=r"means must have shape \(n, 3\) with n >= 4"):
        mean.estimate(np.zeros((3, 3)), seed=0, rng=np.random.default_rng(0))


def test_a_bad_mean_counts_as_zero_in_both_rounds() -> None:
    mean = UserLevelScalarMean(bound=1.0, tau=0.1, local_epsilon=1.0)
    bad = np.array([np.nan, np.inf, -np.inf, 0.0])
    assert mean.bins.index(bad).tolist() == [5, 9, 0, 5]
    assert mean.bins.one_hot(bad).sum(axis=1).tolist() == [1.0] * 4
    assert mean.centred(bad, (0.5, 0.3)).ravel().tolist() == [-0.3, 0.3, -0.3, -0.3]


def test_the_printed_chance_of_failure_is_too_large() -> None:
    # Girgis (2023), Theorem 3.7.1: n / 200 in the exponent, from four times the variance proxy of a report.
    half = math.tanh(2.0 / 4)  # (e^(epsilon0 / 2) - 1) / (e^(epsilon0 / 2) + 1)
    printed = 0.05 + 2 * B / TAU * math.exp(-N * half**2 / 200)
    assert printed == pytest.approx(0.24436, abs=5e-6)
    mean = UserLevelScalarMean(bound=B, tau=TAU, local_epsilon=2.0)
    right = 0.05 + 2 * mean.bins.count * math.exp(-N * half**2 / 50)
    assert mean.failure(N, 0.05) == pytest.approx(right, rel=1e-9)
    assert right < 0.0500001


def test_the_central_baseline_has_the_noise_that_is_said() -> None:
    # All users agree, so the bin is certain but for exp(-n epsilon / 4), and the rest is Laplace noise alone.
    n, tau, epsilon = 400, 0.5, 1.0
    rng = np.random.default_rng(11)
    found = [
        central_user_mean(np.full((n, 2), 0.3), bound=B, tau=tau, epsilon=epsilon, rng=rng)
        for _ in range(3000)
    ]
    away = np.abs(np.array(found) - 0.3)
    scale = 12 * tau / (n * epsilon)
    tolerance = z_bound(1) * scale / math.sqrt(away.size)  # an exponential number deviates by its mean
    assert tolerance < 0.15 * scale
    assert abs(away.mean() - scale) < tolerance
