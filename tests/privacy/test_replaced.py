"""A replaced unit of a Poisson sample: the antipodal pair is never exceeded, and reached."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from tacit.errors import ParameterError
from tacit.privacy import (
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Neighbours,
    Part,
    PrivacyBudget,
    Relation,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    Unit,
    Zcdp,
    calibrate,
    curve_of,
    delta_of,
    epsilon_of,
    event_from_json,
    event_to_json,
    guarantee,
    neighbours_of,
    renyi_of,
)
from tacit.privacy.curve_sampling import replaced_curve
from tests.privacy.event_examples import ADD_REMOVE, ZERO_OUT
from tests.privacy.reference import Array, hockey_stick, optimistic_delta, poisson_law

DELTA = 1e-5


def replaced(sigma: float, rate: float, count: int = 1) -> Event:
    """Noise of sigma times the norm of a row, on a Poisson sample, under replace-one."""
    return Repeat(Replaced(Gaussian(sigma, ZERO_OUT), rate), count)


BRACKETS = [
    # rate, sigma, releases, and epsilon at delta = 1e-5 from a grid of 2**21 losses rounded down and up
    (0.01, 0.7, 1, 0.8616, 0.8617),
    (0.01, 0.7, 10, 1.5308, 1.5315),
    (0.01, 0.7, 100, 2.5042, 2.5118),
    (0.01, 1.0, 1, 0.2093, 0.2094),
    (0.01, 1.0, 10, 0.4073, 0.4078),
    (0.01, 1.0, 100, 0.8927, 0.8975),
    (0.01, 2.0, 1, 0.0365, 0.0366),
    (0.01, 2.0, 10, 0.1025, 0.1028),
    (0.01, 2.0, 100, 0.3429, 0.3458),
    (0.1, 0.7, 1, 3.6728, 3.6729),
    (0.1, 0.7, 10, 6.6556, 6.6564),
    (0.1, 0.7, 100, 18.8357, 18.8433),
    (0.1, 1.0, 1, 1.7891, 1.7892),
    (0.1, 1.0, 10, 3.4340, 3.4345),
    (0.1, 1.0, 100, 10.5140, 10.5188),
    (0.1, 2.0, 1, 0.4604, 0.4605),
    (0.1, 2.0, 10, 1.2527, 1.2530),
    (0.1, 2.0, 100, 4.3667, 4.3695),
]


@pytest.mark.parametrize(("rate", "sigma", "count", "low", "high"), BRACKETS)
def test_prices_lie_in_brackets_of_another_computation(
    rate: float, sigma: float, count: int, low: float, high: float
) -> None:
    found = epsilon_of(replaced(sigma, rate, count), DELTA)
    assert low <= found <= high
    # Never dearer than a fixed-size sample with the same noise, whose rows are two norms apart.
    assert found < epsilon_of(Repeat(Sampled(Gaussian(sigma / 2), rate), count), DELTA)


@pytest.mark.parametrize(
    ("rate", "sigma", "count", "epsilon", "delta"),
    [
        (0.1, 1.0, 1, 1.0, 0.000327),
        (0.1, 1.0, 10, 1.0, 0.0265),
        (0.1, 0.7, 1, 1.0, 0.00487),
        (0.1, 2.0, 1, 1.0, 6.49e-10),
        (0.01, 1.0, 1, 1.0, 2.96e-9),
        (0.01, 0.7, 100, 1.0, 0.0021),
        (0.02, math.sqrt(2), 1, 1.0, 3.37e-12),
        (0.9, 2.0, 8, 0.1, 0.7812),
    ],
)
def test_deltas_of_another_computation(
    rate: float, sigma: float, count: int, epsilon: float, delta: float
) -> None:
    assert delta_of(replaced(sigma, rate, count), epsilon) == pytest.approx(delta, rel=5e-3)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.3, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("mu", [1e-3, 0.3, 1.0, 4.0])
def test_the_curve_is_the_integral_of_the_pair(rate: float, mu: float) -> None:
    curve = replaced_curve(mu, rate)

    x = np.linspace(-13.0, 13.0 + mu, 400_001)

    def density(at: float) -> Array:
        return np.asarray((1 - rate) * stats.norm.pdf(x) + rate * stats.norm.pdf(x - at))

    for epsilon in (0.0, 1e-3, 0.2, 1.0):
        exact = hockey_stick(density(mu), density(-mu), epsilon) * (x[1] - x[0])
        assert float(curve.delta(epsilon)) == pytest.approx(exact, rel=1e-4, abs=1e-14)
        below = -math.expm1(-epsilon) + math.exp(-epsilon) * exact
        assert float(curve.forward(np.array(-epsilon))) == pytest.approx(below, rel=1e-4, abs=1e-14)


@pytest.mark.parametrize(("rate", "mu", "epsilon"), [(1e-3, 1.0, 0.5), (0.1, 0.05, 0.4), (0.5, 1.0, 30.0)])
def test_small_deltas_keep_their_digits(rate: float, mu: float, epsilon: float) -> None:
    a = math.exp(epsilon)
    c = rate * math.exp(-mu * mu / 2) / (1 - rate)
    t = (
        math.log(((a - 1) + math.sqrt((a - 1) ** 2 + 4 * a * c * c)) / (2 * c)) / mu
    )  # where the loss is epsilon

    def gained(x: float) -> float:
        # The ratio to N(0, 1), less its value at t, where it is 0: all terms positive.
        there, back = (
            math.exp(mu * t) * math.expm1(mu * (x - t)),
            math.exp(-mu * t) * math.expm1(mu * (t - x)),
        )
        return rate * math.exp(-mu * mu / 2 - x * x / 2) * (there - a * back) / math.sqrt(2 * math.pi)

    exact = integrate.quad(gained, t, t + 5 / t + 3, epsabs=0, epsrel=1e-11, limit=500)[0]
    assert float(replaced_curve(mu, rate).delta(epsilon)) == pytest.approx(exact, rel=1e-8, abs=0)


def pair_delta(g: Array, other: float, rate: float, epsilon: float) -> float:
    """Return the divergence of (1-q) N(0) + q N(g) from (1-q) N(0) + q N((other, 0)) in the plane.

    Along the second axis the ratio is a lognormal number less a constant, whose positive part has a closed
    form; along the first it is integrated.
    """
    a, h = math.exp(epsilon), 0.005
    x = np.arange(-12, 12 + h, h)
    scale = rate * np.exp(g[0] * x - g[0] ** 2 / 2)
    strike = a * rate * np.exp(other * x - other**2 / 2) - (1 - rate) * (1 - a)
    s = max(abs(float(g[1])), 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.log(scale / strike) / s + s / 2
    call = scale * special.ndtr(up) - strike * special.ndtr(up - s)
    return float((np.where(strike > 0, call, scale - strike) * stats.norm.pdf(x)).sum() * h)


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("mu", [0.5, 1.43])
def test_no_two_units_of_the_ball_exceed_the_pair(rate: float, mu: float) -> None:
    rng = np.random.default_rng(7)
    curve, worst = replaced_curve(mu, rate), 0.0
    for epsilon in (-2.0, -0.3, 0.0, 0.4, 1.0, 2.0):
        bound = float(curve.forward(np.array(epsilon)))
        for _ in range(40):
            radius, angle = mu * np.sqrt(rng.random()), 2 * np.pi * rng.random()
            g = radius * np.array([np.cos(angle), np.sin(angle)])
            worst = max(worst, pair_delta(g, mu * rng.uniform(-1, 1), rate, epsilon) - bound)
    assert worst <= 1e-9


@pytest.mark.parametrize(("rate", "mu", "epsilon"), [(0.1, 1.0, 0.5), (0.9, 0.5, 0.1), (0.3, 2.0, -0.5)])
def test_an_optimised_adversary_ends_at_the_pair(rate: float, mu: float, epsilon: float) -> None:
    bound = float(replaced_curve(mu, rate).forward(np.array(epsilon)))

    def loss(at: Array) -> float:  # two radii and an angle; norms are kept inside of the ball
        first, second = mu / (1 + np.exp(-at[:2]))
        return -pair_delta(first * np.array([np.cos(at[2]), np.sin(at[2])]), second, rate, epsilon)

    for start in ((0.0, 0.0, 1.0), (-2.0, 1.0, 2.0)):
        found = optimize.minimize(loss, np.array(start), method="Nelder-Mead", options={"maxiter": 400})
        assert -found.fun <= bound + 1e-6  # its integrand has a kink there
        assert -found.fun == pytest.approx(bound, rel=1e-3)
        assert math.cos(found.x[2]) == pytest.approx(-1, abs=0.05)


@pytest.mark.parametrize(("rate", "mu"), [(0.2, 1.0), (0.8, 0.7)])
def test_a_second_release_chosen_by_the_first_costs_no_more(rate: float, mu: float) -> None:
    """Two releases on one sample, the second query chosen by the outcome of the first."""
    h = 0.03
    x = np.arange(-8, 8 + h, h)
    part = Replaced(Compose((Gaussian(1 / mu, ZERO_OUT), Gaussian(1 / mu, ZERO_OUT))), rate)
    absent = stats.norm.pdf(x)[:, None] * stats.norm.pdf(x)[None, :]
    for turn in (np.where(x > 0, 1.0, -0.5), np.tanh(3 * x), np.ones_like(x)):
        for ends in ((1.0, -1.0), (1.0, 0.2), (-0.6, 1.0)):
            p, q = (
                (1 - rate) * absent
                + rate * stats.norm.pdf(x - mu * v)[:, None] * stats.norm.pdf(x - mu * v * turn[:, None])
                for v in ends
            )
            for epsilon in (0.0, 0.3, 1.0):
                exact = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) * h * h
                assert exact <= delta_of(part, epsilon) + 1e-5


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("std", "most"), [(7.0, 4), (7.0, 20)])
def test_every_data_set_with_discrete_noise_costs_no_more(rate: float, std: float, most: int) -> None:
    """Sums of whole numbers with discrete Gaussian noise: all data sets of 3 records."""
    values, epsilons = (-most, 0, most // 2, most), np.linspace(-1.5, 1.5, 13)
    y = np.arange(-14 * int(std), 14 * int(std) + 1)
    sums = np.arange(-3 * most, 3 * most + 1)
    table = np.exp(-((y[None, :] - sums[:, None]) ** 2) / (2 * std * std))
    table /= table.sum(axis=1, keepdims=True)
    shifted = np.concatenate([table[3 * most :], table[: 3 * most]])  # row s, from s = 0 on and then below 0
    part = Replaced(DiscreteGaussian(std, float(most), ZERO_OUT, dim=1), rate)
    curve, worst = curve_of(part, accuracy=1e-9), -1.0
    twice = curve_of(Repeat(part, 2), accuracy=1e-9)
    bounds = curve.forward(epsilons)
    for rest in itertools.combinations_with_replacement(values, 2):
        for a, b in itertools.permutations(values, 2):
            p, q = (poisson_law((*rest, v), rate, shifted) for v in (a, b))
            found = np.array([hockey_stick(p, q, e) for e in epsilons])
            worst = max(worst, float((found - bounds).max()))
            if rest == (0, 0):
                joint = (np.outer(p, p), np.outer(q, q))
                assert hockey_stick(*joint, 0.4) <= float(twice.forward(np.array(0.4))) + 1e-12
    assert -0.02 <= worst <= 1e-12  # and the price is nearly reached


def test_many_releases_of_the_pair_lie_between() -> None:
    rate, mu, count, epsilon = 0.9, 0.5, 8, 0.1
    x = np.linspace(-12.0, 12.0, 200_001)
    absent = (1 - rate) * stats.norm.pdf(x)
    mass = np.diff((1 - rate) * stats.norm.cdf(x) + rate * stats.norm.cdf(x - mu))
    losses = np.log(absent + rate * stats.norm.pdf(x - mu)) - np.log(absent + rate * stats.norm.pdf(x + mu))
    truth = optimistic_delta(losses[:-1], mass, count, epsilon, step=1e-4)
    priced = delta_of(replaced(1 / mu, rate, count), epsilon)
    assert truth == pytest.approx(0.7812, abs=2e-4)
    assert truth <= priced <= truth + 5e-4


def test_accounting_for_absent_units_is_too_little() -> None:
    # With and without the unit, the pair of zero-out neighbours: a replaced unit has 1.8 times its delta.
    claimed = epsilon_of(Sampled(Gaussian(1.0, ZERO_OUT), 0.1, Sample.POISSON), DELTA)
    assert claimed == pytest.approx(1.6845, abs=1e-4)
    assert delta_of(replaced(1.0, 0.1), claimed) > 1.5 * DELTA
    assert epsilon_of(replaced(1.0, 0.1), DELTA) == pytest.approx(1.7891, abs=1e-4)


@pytest.mark.parametrize("rate", [1e-12, 1e-6, 0.3, 1 - 1e-12, 1.0])
def test_no_warnings_at_any_epsilon_and_noise(rate: float) -> None:
    epsilon = np.concatenate([-np.geomspace(1e9, 1e-15, 200), [0.0], np.geomspace(1e-15, 1e9, 200)])
    for mu in (1e-200, 1e-9, 0.01, 1.0, 40.0, 1e4, 1e6):
        delta = replaced_curve(mu, rate).delta(epsilon)
        assert np.all(np.isfinite(delta))
        assert np.all(np.diff(delta) <= 1e-14)
        assert np.all(delta[epsilon >= 0] <= min(rate, 1.0) + 1e-15)


def test_all_records_are_two_norms_apart() -> None:
    for part, mu in ((Gaussian(2.0, ZERO_OUT), 1.0), (Repeat(Gaussian(2.0, ZERO_OUT), 4), 2.0)):
        assert epsilon_of(Replaced(part, 1.0), DELTA) == epsilon_of(Gdp(mu), DELTA)
        near = epsilon_of(Replaced(part, 1 - 1e-9), DELTA)
        assert near == pytest.approx(epsilon_of(Gdp(mu), DELTA), rel=1e-6)


def test_several_means_of_one_sample_are_one_release() -> None:
    joint = Replaced(Compose((Gaussian(math.sqrt(2), ZERO_OUT), Gaussian(math.sqrt(2), ZERO_OUT))), 0.1)
    assert epsilon_of(joint, DELTA) == pytest.approx(epsilon_of(replaced(1.0, 0.1), DELTA), rel=1e-9)
    apart = Compose((Replaced(Gaussian(math.sqrt(2), ZERO_OUT), 0.1),) * 2)
    assert epsilon_of(apart, DELTA) < epsilon_of(joint, DELTA)


def test_roundings_of_all_releases_on_one_sample_are_paid_for() -> None:
    noise = DiscreteGaussian(7.0, 4.0, ZERO_OUT, dim=1)
    fine = noise.rounded(12)  # two branches, the first of two, the last of three
    assert fine is not None
    tree = Compose((Compose((Gaussian(9.0, ZERO_OUT), Repeat(noise, 3))), Repeat(noise, 6)))
    expected = 9 / fine.noise_multiplier**2 + 1 / 81
    assert Replaced(tree, 0.1).mu ** 2 == pytest.approx(expected, rel=1e-12)
    assert Replaced(Repeat(noise, 3), 0.1).mu > math.sqrt(3) * Replaced(noise, 0.1).mu


def test_it_composes_with_others_and_is_calibrated() -> None:
    whole = Compose((replaced(1.0, 0.1, 10), Gaussian(5.0), Laplace(8.0)))
    assert neighbours_of(whole) == Neighbours()
    parts = [epsilon_of(p, DELTA / 3) for p in whole.parts]
    assert max(epsilon_of(p, DELTA) for p in whole.parts) < epsilon_of(whole, DELTA) < sum(parts)
    budget = PrivacyBudget(1.0, DELTA)
    z = calibrate(lambda z: replaced(z, 0.05, 50), budget)
    assert epsilon_of(replaced(z, 0.05, 50), DELTA) <= 1.0
    assert epsilon_of(replaced(z * 0.999, 0.05, 50), DELTA) > 1.0
    fixed = calibrate(lambda z: Repeat(Sampled(Gaussian(z), 0.05), 50), budget)
    assert z < 2 * fixed  # in norms of a row, of which a replaced one is two away


def test_renyi_bounds_lie_above_the_divergences_of_the_pair() -> None:
    orders, x = np.array([1.5, 2.0, 4.0, 8.0, 32.0]), np.linspace(-30, 60, 90_001)
    for rate, mu in ((0.01, 0.5), (0.1, 1.0), (0.9, 0.3)):
        log_p, log_q = (
            np.logaddexp(math.log1p(-rate), math.log(rate) + s * mu * x - mu * mu / 2) for s in (1, -1)
        )
        found = renyi_of(Replaced(Gaussian(1 / mu, ZERO_OUT), rate), orders)
        for alpha, bound in zip(orders, found, strict=True):
            terms = alpha * log_p + (1 - alpha) * log_q - x * x / 2
            log_moment = special.logsumexp(terms) + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
            assert log_moment / (alpha - 1) <= bound * (1 + 1e-9)
        assert found[1] <= 2 * 2 * mu * mu  # no more than without a sample


def test_statements_say_what_the_price_rests_on() -> None:
    person = Neighbours(Relation.ZERO_OUT, Unit.PERSON)
    event = Repeat(Replaced(Gaussian(1.0, person), 0.1), 3)
    said = guarantee(event, DELTA, observer="the server")
    assert said.neighbours == Neighbours(Relation.REPLACE_ONE, Unit.PERSON)
    assert "nobody learns which persons are sampled" in str(said)
    assert event_from_json(event_to_json(event)) == event


@pytest.mark.parametrize(
    ("part", "rate", "said"),
    [
        (Gaussian(1.0), 0.1, "must be priced under zero-out neighbours, .* got replace-one"),
        (Gaussian(1.0, ADD_REMOVE), 0.1, "must be priced under zero-out neighbours, .* got add-remove"),
        (Gaussian(1.0, ZERO_OUT), 0.0, r"rate must be in \(0, 1\]"),
        (Gaussian(1.0, ZERO_OUT), math.nan, r"rate must be"),
        (Laplace(1.0, 1, ZERO_OUT), 0.1, "priced for Gaussian noise only, .* got Laplace"),
        (Zcdp(0.1, ZERO_OUT), 0.1, "got Zcdp: use a fixed size"),
        (DiscreteGaussian(2.0, 2.0, ZERO_OUT), 0.1, "on a fine grid, .* got DiscreteGaussian"),
        (Compose((Gaussian(1.0, ZERO_OUT), Laplace(1.0, 1, ZERO_OUT))), 0.1, "got Laplace"),
        (
            Gaussian(1.0, Neighbours(Relation.ZERO_OUT, part=Part.SENSITIVE)),
            0.1,
            "a sample hides nobody where neighbours differ in the sensitive part only",
        ),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(part: Event, rate: float, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Replaced(part, rate)
