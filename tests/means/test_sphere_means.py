from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.audits import audit_mean
from tacit.errors import ParameterError
from tacit.means import HemisphereMean, LocalLaplaceMean, Message, PrivUnitGMean, PrivUnitMean, Round
from tacit.mechanisms import hemisphere_scale
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, PureDP, Shuffled, TrustModel, epsilon_of
from tests.statistics import FALSE_ALARM, z_bound

LOCAL, SHUFFLE = TrustModel.LOCAL, TrustModel.SHUFFLE
ONE = Round(n=1, radius=1.0)
Estimator = PrivUnitMean | PrivUnitGMean | HemisphereMean


def test_errors_on_the_sphere() -> None:
    unit = PrivUnitMean(dim=10, local_epsilon=1.0, lift=False)
    assert unit.error(1).variance == pytest.approx(59.732635, rel=1e-7)
    surrogate = PrivUnitGMean(dim=10, local_epsilon=2.0, lift=False)
    assert surrogate.error(2).variance == pytest.approx(16.142296 / 2, rel=1e-6)
    hemisphere = HemisphereMean(dim=10, local_epsilon=1.0)
    assert hemisphere.error(1).variance == pytest.approx(8.3650466656**2, rel=1e-9)


@pytest.mark.parametrize("kind", [PrivUnitMean, PrivUnitGMean, HemisphereMean])
@pytest.mark.parametrize("length", [0.0, 0.5, 1.0])
def test_the_variance_on_a_row(kind: type[Estimator], length: float) -> None:
    mean: Estimator = kind(dim=3, local_epsilon=2.0)
    x = np.array([[0.6, 0.0, 0.8]]) * length
    n = 20_000
    many, facts = np.repeat(x, n, axis=0), Round(n=n, radius=1.0)
    rng = np.random.default_rng(1)
    if isinstance(mean, HemisphereMean):
        stated = mean.variance_on(x, ONE)
        found = np.stack([mean.estimate(x, ONE, rng=rng) for _ in range(4000)])
    else:
        stated = mean.variance_on(x, ONE)
        found = np.stack([m.payload for m in mean.encode(many, facts, party=0, rng=rng)]).astype(np.float64)
    squares = ((found - x) ** 2).sum(axis=1)
    tolerance = z_bound(1) * squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - stated) <= tolerance + 1e-6
    assert tolerance < 0.2 * stated
    assert stated <= mean.error(1).variance * (1 + 1e-12)
    assert np.all(np.abs(found.mean(axis=0) - x[0]) <= z_bound(3) * found.std(axis=0) / math.sqrt(len(found)))


def test_second_moments_of_a_hemisphere_report() -> None:
    mean, x = HemisphereMean(dim=3, local_epsilon=1.0), np.array([[0.3, -0.2, 0.4]])
    rng = np.random.default_rng(2)
    found = np.stack([mean.estimate(x, ONE, rng=rng) for _ in range(6000)])
    assert (found**2).sum(axis=1) == pytest.approx(4.3279068275**2, rel=1e-9)  # of constant norm
    moments = found[:, :, None] * found[:, None, :]
    tolerance = z_bound(9) * moments.std(axis=0) / math.sqrt(6000)
    assert np.all(np.abs(moments.mean(axis=0) - 6.2435925 * np.eye(3)) <= tolerance)


def test_the_normal_limit_has_the_mean_and_the_squared_error_of_reports() -> None:
    mean, rng, trials = HemisphereMean(dim=4, local_epsilon=1.0), np.random.default_rng(5), 4000
    inside = np.array([[0.6, 0.0, -0.3, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    rows, this_round = inside * [[1.0], [4.5], [1.0]], Round(n=3, radius=2.0)  # the second is clipped
    found = np.array([mean.normal_limit(rows, this_round, rng=rng) for _ in range(trials)])
    error = found - inside.mean(axis=0)
    # A report is 2 B long; what it says on average is the row itself.
    wanted = (3 * 4 * hemisphere_scale(4, 1.0) ** 2 - float((inside**2).sum())) / 9
    sizes = (error**2).sum(axis=1)
    assert sizes.mean() == pytest.approx(wanted, abs=z_bound(5) * sizes.std() / math.sqrt(trials))
    assert np.abs(error.mean(axis=0)).max() < z_bound(5) * math.sqrt(wanted / 4 / trials)


def test_in_one_dimension_a_hemisphere_is_randomised_response() -> None:
    mean, rng = HemisphereMean(dim=1, local_epsilon=1.0), np.random.default_rng(3)
    for x in (-1.0, 0.4):
        this_round = Round(n=1, radius=1.0)
        plus = sum(mean.estimate(np.array([[x]]), this_round, rng=rng)[0] > 0 for _ in range(1500))
        wanted = 0.5 + math.tanh(0.5) * x / 2
        assert stats.binomtest(int(plus), 1500, wanted).pvalue > FALSE_ALARM


def test_a_seed_means_one_direction_for_all() -> None:
    mean = HemisphereMean(dim=5, local_epsilon=1.0)
    plus = mean.decode([Message(payload=np.array([12345]), width=64)], ONE)
    minus = mean.decode([Message(payload=~np.array([12345]), width=64)], ONE)
    assert np.array_equal(plus, -minus)
    other = mean.decode([Message(payload=np.array([12346]), width=64)], ONE)
    assert abs(plus @ other) < 0.999 * (plus @ plus)


@pytest.mark.parametrize("kind", [PrivUnitMean, PrivUnitGMean])
def test_without_lift_a_row_counts_as_its_direction(kind: type[PrivUnitMean]) -> None:
    mean = kind(dim=4, local_epsilon=8.0, lift=False)
    x = np.repeat([[0.0, 0.25, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], 10_000, axis=0)
    found = mean.estimate(x, Round(n=20_000, radius=1.0), rng=np.random.default_rng(4))
    assert np.allclose(found, [0.5, 0.5, 0, 0], atol=0.05)
    assert mean.error(1).bias == 1.0


def test_shuffled_events_and_calibration() -> None:
    budget = PrivacyBudget(1.0, 1e-5)
    unit = PrivUnitMean.calibrated(dim=300, budget=budget, n=1000, trust=SHUFFLE, lift=False)
    event = unit.event(1000, SHUFFLE)
    assert isinstance(event, Shuffled)
    assert event.randomizer.startswith("privunit:0.")
    assert epsilon_of(event, 1e-5) <= 1.0 + 1e-12
    # The general clones bound gives level 2.924 and MSE 0.2330; two-level laws hide more.
    assert unit.local_epsilon > 2.924
    assert unit.error(1000).variance < 0.2330
    clones = PrivUnitMean(dim=300, local_epsilon=2.924, lift=False)
    assert clones.error(1000).variance == pytest.approx(0.2330, rel=1e-2)
    hemisphere = HemisphereMean.calibrated(dim=300, budget=budget, n=1000, trust=SHUFFLE)
    assert hemisphere.local_epsilon == pytest.approx(3.495508, abs=2e-6)
    assert unit.event(10, LOCAL) == PureDP(unit.local_epsilon)


@pytest.mark.parametrize(("epsilon", "level"), [(0.25, 1.373), (0.5, 2.077), (1.0, 2.924), (2.0, 3.645)])
def test_shuffled_laplace_levels(epsilon: float, level: float) -> None:
    # n = 1000, delta = 1e-5, by the general clones bound; for a law of its own, continuous noise does better.
    budget = PrivacyBudget(epsilon, 1e-5)
    exact = LocalLaplaceMean.calibrated(dim=1, budget=budget, n=1000, trust=SHUFFLE)
    assert exact.local_epsilon == pytest.approx(level, abs=6e-4)
    real = LocalLaplaceMean.calibrated(dim=1, budget=budget, n=1000, trust=SHUFFLE, steps=0)
    assert real.local_epsilon > exact.local_epsilon


def test_local_laplace_variances() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        half = 0.5
        real = LocalLaplaceMean(dim=1, local_epsilon=epsilon, steps=0)
        assert real.error(1).variance * half**2 == pytest.approx(2 / epsilon**2, rel=1e-12)
        grid = LocalLaplaceMean(dim=1, local_epsilon=epsilon)
        assert grid.error(1).variance == pytest.approx(real.error(1).variance, rel=1e-4)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("dim", [1, 2])
def test_the_level_of_discrete_laplace_noise_by_enumeration(steps: int, dim: int) -> None:
    mean = LocalLaplaceMean(dim=dim, local_epsilon=1.0, steps=steps)
    grid: list[Array] = [np.array(x) for x in np.ndindex(*(2 * steps + 1,) * dim)]
    centres = {tuple(np.rint(c - steps).tolist()) for c in grid if np.abs(c - steps).sum() <= steps + dim / 2}
    # The log-ratio of two discrete Laplace laws is at most their distance over the scale.
    worst = max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x in centres for y in centres)
    assert worst / mean.scale <= 1.0 + 1e-12
    assert worst / mean.scale >= 2 * steps / (2 * steps + dim) - 1e-12


@pytest.mark.parametrize("kind", [PrivUnitMean, PrivUnitGMean, HemisphereMean, LocalLaplaceMean])
@pytest.mark.parametrize("broken", [False, True])
def test_audits_stay_below_the_claim_and_catch_half_the_noise(kind: type[Estimator], broken: bool) -> None:
    claim = 1.0
    mean = kind(dim=2, local_epsilon=2 * claim if broken else claim)

    def first(messages: list[Message]) -> float:
        """The first coordinate of what the first row sent; its sign is the best bet for all of them."""
        payload = messages[0].payload[: 1 if isinstance(mean, HemisphereMean) else 2]
        width = messages[0].width
        return float(mean.decode([Message(payload=payload, width=width)], ONE)[0])

    found = audit_mean(
        mean,
        0.0,
        score=first,
        runs=3000,
        confidence=1 - FALSE_ALARM,
        rng=np.random.default_rng(5),
    )
    assert not found.refuted
    assert (found.empirical_epsilon_lower > claim) == broken
    assert found.empirical_epsilon_lower > 0.5 * claim


@pytest.mark.parametrize("kind", [PrivUnitMean, PrivUnitGMean, HemisphereMean, LocalLaplaceMean])
def test_bad_input_is_refused(kind: type[Estimator]) -> None:
    # Private unit vectors in floating point go further than exact integers.
    for level in (0.0, math.nan, 257.0 if kind in (PrivUnitMean, PrivUnitGMean) else 31.0):
        with pytest.raises(ParameterError, match="local_epsilon must be in"):
            kind(dim=2, local_epsilon=level)
    with pytest.raises(ParameterError, match="trust must be"):
        kind(dim=2, local_epsilon=1.0, trust=TrustModel.CENTRAL)
    mean = kind(dim=2, local_epsilon=1.0)
    with pytest.raises(ParameterError, match="at least one message"):
        mean.decode([], ONE)
    for payload in (np.zeros(3), np.zeros(2, dtype=np.float16), np.full(2, np.nan, dtype=np.float32)):
        with pytest.raises(ParameterError, match="a message must hold"):
            mean.decode([Message(payload=payload)], ONE)
    with pytest.raises(ParameterError, match=r"rows must have shape \(k, 2\)"):
        mean.encode(np.zeros((2, 3)), ONE, party=0, rng=np.random.default_rng(0))
    assert mean.estimate(np.zeros((0, 2)), ONE, rng=np.random.default_rng(0)).tolist() == [0.0, 0.0]


def test_combinations_without_a_meaning_are_refused() -> None:
    with pytest.raises(ParameterError, match="dim, without lift, must be a whole number >= 2"):
        PrivUnitMean(dim=1, local_epsilon=1.0, lift=False)
    with pytest.raises(ParameterError, match="dim must be 1 for whole numbers under shuffle trust"):
        LocalLaplaceMean(dim=2, local_epsilon=1.0, trust=SHUFFLE)
    with pytest.raises(ParameterError, match="steps must be a whole number from 0"):
        LocalLaplaceMean(dim=2, local_epsilon=1.0, steps=-1)
