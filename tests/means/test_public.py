"""Means with public data: weights, errors and prices against closed forms, simulation and an attack."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import BudgetError, ParameterError
from tacit.means import (
    AdditiveMean,
    AnyNoise,
    DiscreteGaussianNoise,
    Facts,
    GaussianNoise,
    LaplaceNoise,
    Message,
    NoNoise,
    Round,
)
from tacit.means.binomial import BinomialMean
from tacit.means.public import (
    PRIVATE_RECORD,
    SemiPrivateMean,
    optimal_private_weight,
    public_mean,
    public_variance,
    throw_away_mean,
    weighted_private_mean,
)
from tacit.means.public_noise import (
    semi_local_mean,
    semi_private_empirical_mean,
    weighted_gaussian_mean,
    weighted_laplace_mean,
)
from tacit.mechanisms import PrivUnit
from tacit.numerics import Array
from tacit.privacy import (
    Gaussian,
    Neighbours,
    Part,
    PrivacyBudget,
    PureDP,
    TrustModel,
    calibrate,
    epsilon_of,
    guarantee,
    meets,
    neighbours_of,
    pure_epsilon_of,
    rho_of,
)
from tacit.randomness import simulated
from tests.statistics import z_bound

CENTRAL, LOCAL, SHUFFLE = TrustModel.CENTRAL, TrustModel.LOCAL, TrustModel.SHUFFLE


def noisy(noise: AnyNoise, dim: int = 3, trust: TrustModel = CENTRAL) -> AdditiveMean:
    return AdditiveMean(dim=dim, noise=noise, trust=trust, neighbours=PRIVATE_RECORD)


def zcdp_noise(rho: float) -> GaussianNoise:
    return GaussianNoise(1 / math.sqrt(2 * rho))


def spread_rows(n: int, dim: int, length: float, rng: np.random.Generator) -> Array:
    """Rows +-length e_j: total variance length**2, mean 0."""
    rows = np.zeros((n, dim))
    rows[np.arange(n), rng.integers(dim, size=n)] = length * rng.choice([-1.0, 1.0], size=n)
    return rows


# Lowy (2023), Example 19 and the formulas around it, computed independently

TABLE = [
    (10_000, 25, 1, 100, 7.33877e-6, 0.01, 0.1251, 0.00927346, 1.07835),
    (1000, 25, 1, 100, 4.41964e-5, 0.01, 0.0126, 0.00562455, 1.77792),
    (10_000, 25, 10, 100, 4.41964e-5, 0.01, 0.0126, 0.00562455, 1.77792),
    (100, 25, 0.1, 100, 4.41964e-5, 0.01, 0.0126, 0.00562455, 1.77792),
    (100, 25, 0.1, 80, 4.97992e-5, 0.0125, 0.0126, 0.00632490, 1.97632),
    (100, 25, 0.01, 10, 4.44197e-5, 0.1, 0.1251, 0.0556247, 1.79776),
    (100, 500, 1, 10, 1.66528e-5, 0.1, 0.5001, 0.0833639, 1.19956),
    (10_000, 1, 1, 5000, 3.33333e-5, 2e-4, 3e-4, 1.66667e-4, 1.2),
]


@pytest.mark.parametrize(("d", "ratio", "rho", "n_pub", "r", "thrown", "all_", "best", "gain"), TABLE)
def test_the_table_of_the_weighted_gaussian_mean(
    d: int,
    ratio: float,
    rho: float,
    n_pub: int,
    r: float,
    thrown: float,
    all_: float,
    best: float,
    gain: float,
) -> None:
    n_priv, radius = 10_000 - n_pub, Facts(radius=float(ratio))  # V = 1, B = ratio
    private = noisy(zcdp_noise(rho), dim=d)
    weighted = weighted_private_mean(
        private, n_private=n_priv, n_public=n_pub, population_variance=1.0, facts=radius
    )

    def mse(weight: float) -> float:
        mean = SemiPrivateMean(private=private, weight=weight)
        return mean.population_error(n_priv, n_pub, population_variance=1.0, facts=radius).mse

    assert weighted.weight / n_priv == pytest.approx(r, rel=1e-5)
    assert mse(0.0) == pytest.approx(thrown, rel=1e-6)
    assert mse(n_priv / 10_000) == pytest.approx(all_, rel=1e-4)
    assert mse(weighted.weight) == pytest.approx(best, rel=1e-5)
    assert min(mse(0.0), mse(n_priv / 10_000)) / mse(weighted.weight) == pytest.approx(gain, rel=1e-5)
    # q / (q + s^2), the closed form of the optimum (Lowy 2023, (2.6), calls it a bound: it is exact).
    q, s2 = 2 + n_priv * rho / (d * ratio**2), n_priv**2 * rho / (ratio**2 * d * n_pub)
    assert mse(weighted.weight) == pytest.approx(1 / n_pub * q / (q + s2), rel=1e-12)
    slope = (mse(weighted.weight * 1.001) - mse(weighted.weight * 0.999)) / mse(weighted.weight)
    assert abs(slope) < 1e-9


def test_a_small_case_of_gaussian_noise() -> None:
    n_priv, n_pub, facts = 15, 5, Facts(radius=1.0)
    private = noisy(zcdp_noise(0.5))
    mean = weighted_private_mean(
        private, n_private=n_priv, n_public=n_pub, population_variance=0.25, facts=facts
    )
    assert mean.weight / n_priv == pytest.approx(0.0277777778, rel=1e-9)
    assert mean.population_error(15, 5, population_variance=0.25).mse == pytest.approx(0.0291666667, rel=1e-8)
    everything = SemiPrivateMean(private=private, weight=0.75)
    assert everything.population_error(15, 5, population_variance=0.25).mse == pytest.approx(0.0425)
    thrown = SemiPrivateMean(private=private, weight=0.0)
    assert thrown.population_error(15, 5, population_variance=0.25).mse == pytest.approx(0.05)


def test_a_small_case_of_laplace_noise() -> None:
    # The L1 radius of the unit L2 ball in three dimensions is sqrt(3).
    private, facts = noisy(LaplaceNoise(1.0)), Facts(radius=math.sqrt(3))
    mean = weighted_private_mean(private, n_private=15, n_public=5, population_variance=0.25, facts=facts)
    assert mean.weight / 15 == pytest.approx(0.00862068966, rel=1e-8)
    error = mean.population_error(15, 5, population_variance=0.25, facts=facts)
    assert error.mse == pytest.approx(0.0435344828, rel=1e-8)
    everything = SemiPrivateMean(private=private, weight=0.75)
    assert everything.population_error(15, 5, population_variance=0.25, facts=facts).mse == pytest.approx(
        0.1925
    )
    # Noise exp(-eps ||u|| / Delta) has variance d (d + 1) Delta^2 / eps^2 with Delta = 2 / n_private.
    w = optimal_private_weight(12 * (2 / 15) ** 2, population_variance=0.25, n_private=15, n_public=5)
    assert w / 15 == pytest.approx(0.0119047619, rel=1e-8)
    best = w**2 * (12 * (2 / 15) ** 2 + 0.25 / 15) + (1 - w) ** 2 * 0.05
    assert best == pytest.approx(0.0410714286, rel=1e-8)


def test_the_empirical_mean_is_thrown_away_by_sizes_alone() -> None:
    few = semi_private_empirical_mean(1.0, 4, n_private=5, n_public=95)
    assert few.weight == 0
    assert few.empirical_error(5, 95, row_norm=1.0).mse == pytest.approx(0.0025)
    many = semi_private_empirical_mean(1.0, 4, n_private=50, n_public=50)
    assert (many.weight, many.public_weight) == (0.5, 0.5)
    # sqrt(8) d / (n eps), squared: 0.0128, but for the discrete noise.
    error = many.empirical_error(50, 50, Facts(radius=2.0), row_norm=1.0)
    assert error.mse == pytest.approx(0.0128, rel=1e-3)
    assert error.bias < 1e-3
    edge = math.sqrt(8) * 4
    for n, weight in ((math.floor(edge), 0), (math.ceil(edge), 1)):
        assert bool(semi_private_empirical_mean(1.0, 4, n_private=n, n_public=9).weight) == bool(weight)


def test_a_small_semi_local_case() -> None:
    mean = semi_local_mean(2.0, 3, n_private=6, n_public=4, on_sphere=True)
    assert mean.empirical_error(6, 4).variance == pytest.approx(0.2209616626, abs=1e-9)
    assert mean.private.error(10).variance == pytest.approx(0.3682694377, abs=1e-9)  # everybody randomises
    noise = PrivUnit(3, 2.0).mse
    best = semi_local_mean(2.0, 3, n_private=6, n_public=4, on_sphere=True, population_variance=0.5)
    r = (0.5 / 4) / (noise + 0.5 + 6 * 0.5 / 4)
    assert best.weight / 6 == pytest.approx(r, rel=1e-9)
    assert mean.event(6, LOCAL) == PureDP(2.0, PRIVATE_RECORD)
    lifted = semi_local_mean(2.0, 3, n_private=6, n_public=4)
    assert lifted.empirical_error(6, 4).variance <= 0.36 * PrivUnit(4, 2.0).squared_norm / 6 + 1e-12


# Laws


@pytest.mark.parametrize(
    "mean",
    [
        SemiPrivateMean(private=noisy(zcdp_noise(0.5)), weight=0.4),
        SemiPrivateMean(private=noisy(DiscreteGaussianNoise(1.0)), weight=0.4),
        SemiPrivateMean(private=noisy(GaussianNoise(1.0), trust=LOCAL), weight=0.75),
        SemiPrivateMean(private=noisy(zcdp_noise(0.5)), weight=0.0),
        semi_local_mean(2.0, 3, n_private=15, n_public=5),
        SemiPrivateMean(
            private=BinomialMean(dim=3, noise_bits=9, resolution=8, neighbours=PRIVATE_RECORD), weight=0.3
        ),
    ],
    ids=lambda mean: type(mean.private).__name__,
)
def test_population_errors_are_those_of_simulation(mean: SemiPrivateMean) -> None:
    rng, trials, facts = simulated(1, "public"), 2000, Round(n=15, radius=1.0)
    squares = np.empty(trials)
    errors = np.empty((trials, 3))
    for trial in range(trials):
        private, public = spread_rows(15, 3, 0.5, rng), spread_rows(5, 3, 0.5, rng)
        errors[trial] = mean.estimate(private, public, facts, rng=rng)
        squares[trial] = np.square(errors[trial]).sum()
    stated = mean.population_error(15, 5, population_variance=0.25, facts=Facts(parties=1))
    slack = z_bound(4) * squares.std() / math.sqrt(trials)
    assert slack < 0.2 * stated.mse
    assert squares.mean() <= stated.mse + slack
    assert squares.mean() >= (stated.mse - slack if stated.exact else 0.5 * stated.mse)
    assert np.all(np.abs(errors.mean(axis=0)) < z_bound(4) * errors.std(axis=0) / math.sqrt(trials))


def test_encode_and_decode_have_the_law_of_estimate() -> None:
    mean, facts = SemiPrivateMean(private=noisy(GaussianNoise(0.3)), weight=0.4), Round(n=4, radius=1.0)
    private, public = np.full((4, 3), 0.2), np.full((2, 3), -0.5)
    sent = mean.encode(private, facts, party=0, rng=simulated(2, "party"))
    assert sum(8 * len(m.to_bytes()) for m in sent) == mean.bits_per_party(4)
    decoded = mean.decode(sent, public, facts, rng=simulated(3, "server"))
    assert np.array_equal(decoded, mean.estimate(private, public, facts, rng=simulated(3, "server")))


def test_the_estimate_is_affine_in_private_rows_with_the_stated_sensitivity() -> None:
    weight, facts = 0.4, Round(n=4, radius=2.0)
    mean = SemiPrivateMean(private=noisy(GaussianNoise(1.0), trust=LOCAL), weight=weight)
    private, public = simulated(4, "rows").normal(size=(4, 3)) * 0.3, np.zeros((2, 3))

    def at(row: Array) -> Array:
        rows = private.copy()
        rows[1] = row
        return mean.estimate(rows, public, facts, rng=simulated(5, "noise"))

    ends = np.array([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])
    assert np.linalg.norm(at(ends[0]) - at(ends[1])) == pytest.approx(weight / 4 * 2 * 2.0, rel=1e-6)
    assert np.allclose(at(ends.mean(axis=0)), (at(ends[0]) + at(ends[1])) / 2, atol=1e-6)
    assert np.allclose(at(100 * ends[0]), at(ends[0]), atol=1e-6)


def test_with_weight_zero_private_rows_leave_no_trace() -> None:
    facts, public = Round(n=2, radius=1.0), np.array([[0.5, 0.0, 0.25]])
    mean = SemiPrivateMean(private=noisy(GaussianNoise(1.0)), weight=0.0)
    results = [
        mean.estimate(rows, public, facts, rng=simulated(6, "noise"))
        for rows in (np.zeros((2, 3)), np.ones((2, 3)), np.full((2, 3), np.nan))
    ]
    assert all(np.array_equal(result, public[0]) for result in results)
    assert mean.encode(np.ones((2, 3)), facts, party=0, rng=simulated(6, "noise")) == []
    assert mean.bits_per_party(2) == 0
    assert np.array_equal(mean.decode([], public, facts), public[0])
    for trust in TrustModel:
        assert mean.event(2, trust) == PureDP(0.0, PRIVATE_RECORD)


def test_messages_of_public_rows_are_the_rows_and_others_are_not_touched() -> None:
    mean, facts = semi_local_mean(2.0, 3, n_private=2, n_public=1), Round(n=2, radius=1.0)
    first, second = (
        [mean.encode(row[None], facts, party=k, rng=simulated(7, "party", k)) for k, row in enumerate(rows)]
        for rows in (np.array([[0.5, 0, 0], [0, 0.5, 0]]), np.array([[-0.5, 0, 0], [0, 0.5, 0]]))
    )

    def payload(sent: list[Message]) -> Array:
        return sent[0].payload

    assert not np.array_equal(payload(first[0]), payload(second[0]))
    assert np.array_equal(payload(first[1]), payload(second[1]))


# Prices


def test_prices_are_those_of_the_private_mean_whatever_the_weight() -> None:
    means = [SemiPrivateMean(private=noisy(GaussianNoise(3.730632)), weight=w) for w in (1.0, 0.5, 0.01)]
    assert all(mean.event(15, CENTRAL) == Gaussian(3.730632, PRIVATE_RECORD) for mean in means)
    mean = means[-1]
    said = str(guarantee(mean.event(15, CENTRAL), 1e-5, observer="the analyst"))
    assert "replacing one private record" in said
    assert neighbours_of(mean.event(15, LOCAL)).part is Part.PRIVATE
    assert epsilon_of(mean.event(15, LOCAL), 1e-5) == math.inf


def test_an_attack_stays_below_the_claim_and_breaks_half_the_noise() -> None:
    n, trials = 2, 200_000
    whole = weighted_gaussian_mean(
        PrivacyBudget(1.0, 1e-2), 1, n_private=n, n_public=3, population_variance=0.5
    )
    noise = whole.private.noise  # type: ignore[attr-defined]
    half = SemiPrivateMean(
        private=noisy(DiscreteGaussianNoise(noise.noise_multiplier / 2), dim=1), weight=whole.weight
    )
    delta = 1e-2
    for mean, broken in ((whole, False), (half, True)):
        # One wide coordinate at a time: the noise of coordinates is independent.
        wide = SemiPrivateMean(
            private=noisy(mean.private.noise, dim=trials),  # type: ignore[attr-defined]
            weight=mean.weight,
        )
        this_round = Round(n=n, radius=1.0)
        released = []
        for end in (1.0, -1.0):
            summed = np.full(trials, end - 1.0)
            sent = wide.private.encode_sum(  # type: ignore[attr-defined]
                summed, rows=n, round=this_round, party=0, rng=simulated(8, "unused")
            )
            released.append(
                wide.decode(sent, np.zeros((1, trials)), this_round, rng=simulated(8, "noise", str(end)))
            )
        high, low = released
        gaps = []
        for threshold in np.linspace(-2, 2, 9) * whole.weight - 0.5 * whole.weight:
            p, q = (high > threshold).mean(), (low > threshold).mean()
            slack = z_bound(18) * (math.sqrt(p * (1 - p) / trials) + math.e * math.sqrt(q * (1 - q) / trials))
            gaps.append(p - math.e * q - slack)
        assert (max(gaps) > delta) == broken


@pytest.mark.parametrize("budget", [PrivacyBudget(1.0, 1e-5), PrivacyBudget.zcdp(0.5)], ids=str)
def test_the_calibrated_gaussian_mean_meets_its_budget(budget: Any) -> None:
    mean = weighted_gaussian_mean(budget, 3, n_private=15, n_public=5, population_variance=0.25, radius=1.0)
    assert meets(mean.event(15, CENTRAL), budget)
    z = 1.0 if budget == PrivacyBudget.zcdp(0.5) else calibrate(Gaussian, budget)
    ideal = weighted_private_mean(noisy(GaussianNoise(z)), n_private=15, n_public=5, population_variance=0.25)
    assert mean.weight == pytest.approx(ideal.weight, rel=1e-3)
    error, best = (m.population_error(15, 5, population_variance=0.25).mse for m in (mean, ideal))
    assert error == pytest.approx(best, rel=1e-3)
    assert error >= best
    if budget == PrivacyBudget.zcdp(0.5):
        assert rho_of(mean.event(15, CENTRAL)) <= 0.5 * (1 + 1e-9)


def test_the_calibrated_laplace_mean_meets_its_budget() -> None:
    mean = weighted_laplace_mean(
        1.0, 3, n_private=15, n_public=5, population_variance=0.25, radius=math.sqrt(3)
    )
    assert pure_epsilon_of(mean.event(15, CENTRAL)) <= 1.0 + 1e-9
    assert mean.weight / 15 == pytest.approx(0.00862068966, rel=1e-3)
    # A public row in the L1 ball, but outside the unit L2 ball, is left as it is.
    rows = np.array([[1.5, 0.0, 0.0]])
    zero = SemiPrivateMean(private=mean.private, weight=0.0, norm=mean.norm)
    this_round = Round(n=15, radius=math.sqrt(3))
    assert zero.estimate(np.zeros((15, 3)), rows, this_round, rng=simulated(9, "noise")).tolist() == [
        1.5,
        0,
        0,
    ]


# Public rows


def test_public_means() -> None:
    rows = [[3.0, 4.0], [0.0, 0.0]]
    assert np.allclose(public_mean(rows, 1.0, on_violation="clip"), [0.3, 0.4])
    assert np.allclose(throw_away_mean(rows, 5.0, n=10), [0.3, 0.4])
    assert public_variance([[1.0], [-1.0]], 1.0) == 1.0  # 2 / (2 - 1), capped at the radius squared
    rng = simulated(10, "rows")
    found = [public_variance(spread_rows(5, 3, 0.5, rng), 1.0) for _ in range(4000)]
    assert abs(np.mean(found) - 0.25) < z_bound(1) * np.std(found) / math.sqrt(4000)


def test_the_worst_case_of_throwing_away_is_reached() -> None:
    private, public = np.tile([[1.0, 0.0]], (3, 1)), np.zeros((7, 2))
    mean = SemiPrivateMean(private=noisy(GaussianNoise(1.0), dim=2), weight=0.0, public_weight=0.7)
    rows = np.concatenate([private, public])
    error = np.linalg.norm(throw_away_mean(public, 1.0, n=10) - rows.mean(axis=0))
    assert error == pytest.approx(0.3)
    assert mean.empirical_error(3, 7).mse == pytest.approx(0.09)
    lost = mean.population_error(3, 7, population_variance=0.0)
    assert lost.bias == pytest.approx(0.3)


# Bad input


def test_bad_public_rows_are_refused() -> None:
    for bad in (np.zeros((0, 2)), [[np.nan, 1.0]], [[np.inf, 1.0]], [1.0, 2.0]):
        with pytest.raises(ParameterError, match="public"):
            public_mean(bad, 1.0)
    with pytest.raises(ParameterError, match="public rows"):
        public_variance([[1.0]], 1.0)
    with pytest.raises(ParameterError, match="n must"):
        throw_away_mean(np.zeros((3, 1)), 1.0, n=2)
    mean = SemiPrivateMean(private=noisy(GaussianNoise(1.0)), weight=0.5)
    rng = simulated(11, "noise")
    before = rng.bit_generator.state
    for bad in (np.zeros((0, 3)), np.zeros((2, 4)), np.full((2, 3), np.nan)):
        with pytest.raises(ParameterError, match="public"):
            mean.estimate(np.zeros((2, 3)), bad, Round(n=2, radius=1.0), rng=rng)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": -0.1},
        {"weight": 1.1},
        {"weight": float("nan")},
        {"public_weight": 1.5},
        {"weight": 0.6, "public_weight": 0.5},
        {"private": AdditiveMean(dim=3, noise=GaussianNoise(1.0))},
        {"private": AdditiveMean(dim=3, neighbours=Neighbours(part=Part.SENSITIVE))},
    ],
)
def test_bad_estimators_are_refused(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"private": noisy(GaussianNoise(1.0)), "weight": 0.5}
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        SemiPrivateMean(**good | wrong)


def test_bad_sizes_and_budgets_are_refused() -> None:
    good: dict[str, Any] = {"n_private": 15, "n_public": 5, "population_variance": 0.25}
    for wrong in ({"n_private": 0}, {"n_public": 0}, {"population_variance": -1.0}):
        with pytest.raises(ParameterError):
            optimal_private_weight(1.0, **good | wrong)
        with pytest.raises(ParameterError):
            weighted_gaussian_mean(PrivacyBudget(1.0, 1e-5), 3, **good | wrong)
    assert optimal_private_weight(1.0, **good | {"population_variance": 0.0}) == 0
    with pytest.raises(ParameterError, match="radius"):
        weighted_gaussian_mean(PrivacyBudget(1.0, 1e-5), 3, radius=0.0, **good)
    with pytest.raises(BudgetError, match="delta"):
        weighted_gaussian_mean(PrivacyBudget(1.0), 3, **good)
    for epsilon in (0.0, -1.0, float("nan")):
        with pytest.raises(ParameterError, match="epsilon"):
            weighted_laplace_mean(epsilon, 3, **good)
        with pytest.raises(ParameterError, match="epsilon"):
            semi_private_empirical_mean(epsilon, 3, n_private=5, n_public=5)
    mean = SemiPrivateMean(private=noisy(GaussianNoise(1.0)), weight=0.5)
    with pytest.raises(ParameterError, match="population_variance"):
        mean.population_error(15, 5, population_variance=1.5)
    with pytest.raises(ParameterError, match="n_public"):
        mean.empirical_error(15, 0)
    with pytest.raises(ParameterError, match="n_private"):
        mean.event(0, CENTRAL)


def test_public_rows_outside_of_the_ball_are_refused_unless_they_are_to_be_clipped() -> None:
    long, inside = np.array([[0.0, 3.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    rng, facts = simulated(9, "public"), Round(n=2, radius=1.0)
    noiseless = AdditiveMean(dim=2, noise=NoNoise(), neighbours=PRIVATE_RECORD)
    mean = SemiPrivateMean(private=noiseless, weight=0.5)
    clipping = SemiPrivateMean(private=noiseless, weight=0.5, on_violation="clip")
    for refused in (
        lambda: public_mean(long, 1.0),
        lambda: throw_away_mean(long, 1.0, n=4),
        lambda: public_variance(long, 1.0),
        lambda: mean.estimate(inside, long, facts, rng=rng),
        lambda: mean.decode(noiseless.encode(inside, facts, party=0, rng=rng), long, facts),
    ):
        with pytest.raises(ParameterError, match="of l2 norm at most"):
            refused()
    assert np.allclose(public_mean(long, 1.0, on_violation="clip"), public_mean(inside, 1.0))
    assert np.allclose(throw_away_mean(long, 1.0, n=4, on_violation="clip"), [0.25, 0.25])
    assert public_variance(long, 1.0, on_violation="clip") == pytest.approx(public_variance(inside, 1.0))
    assert np.allclose(clipping.estimate(inside, long, facts, rng=rng), [0.5, 0.5])
    with pytest.raises(ParameterError, match="on_violation"):
        SemiPrivateMean(private=noiseless, weight=0.5, on_violation="keep")  # type: ignore[arg-type]
