"""Curves of single releases against quadrature, enumeration and closed forms."""

from __future__ import annotations

import decimal
import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy import Compose, PureDP, Zcdp, curve_sampling, curves, epsilon_of
from tests.privacy.reference import Array, gaussian_delta, hockey_stick

EPSILONS = np.array([0.0, 1e-6, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0])


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("deviations", [-3.0, 0.0, 1.0, 4.0, 7.0])
def test_gaussian_curve_is_the_hockey_stick_integral(mu: float, deviations: float) -> None:
    epsilon = max(mu * (mu / 2 + deviations), 0.0)
    exact = gaussian_delta(mu, epsilon)
    bound = float(curves.gaussian_curve(mu).delta(epsilon))
    assert bound == pytest.approx(exact, rel=1e-8)
    assert bound >= exact * (1 - 1e-9)


def test_gaussian_curve_has_no_warnings_or_holes_at_the_ends() -> None:
    wide = np.array([-1e9, -50.0, 0.0, 1e-9, 1.0, 1e3, 1e9])
    for mu in (0.0, 1e-300, 1e-9, 1.0, 1e4, 1e200, math.inf):
        delta = curves.gaussian_curve(mu).delta(wide)
        assert np.all((delta >= 0) & (delta <= 1)), mu
        assert np.all(np.diff(delta) <= 0), mu
    assert float(curves.gaussian_curve(1e200).delta(1e9)) == 1.0


def test_what_cannot_be_computed_proves_nothing() -> None:
    broken = curves.symmetric(lambda epsilon: np.full_like(epsilon, np.nan))
    assert float(broken.delta(1.0)) == 1.0


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_laplace_curve_is_the_hockey_stick_integral(scale: float) -> None:
    x = np.linspace(-40 * scale, 40 * scale + 1, 2_000_001)
    p, q = (np.exp(-np.abs(x - m) / scale) / (2 * scale) for m in (1.0, 0.0))
    curve = curves.laplace_curve(1 / scale)
    for epsilon in (0.0, 0.2 / scale, 0.9 / scale, 1 / scale, 2 / scale):
        exact = np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), x)
        assert float(curve.delta(epsilon)) == pytest.approx(exact, abs=3e-6)


def _discrete_laplace(scale: float, shift: int, width: int) -> tuple[Array, Array]:
    y = np.arange(-width, width + 1)
    weight = [np.exp(-np.abs(y - s) / scale) for s in (0, shift)]
    norm = (1 + math.exp(-1 / scale)) / -math.expm1(-1 / scale)
    return weight[0] / norm, weight[1] / norm


@pytest.mark.parametrize(("scale", "sensitivity"), [(0.4, 1), (1.0, 1), (1.0, 3), (2.7, 4), (5.0, 7)])
def test_discrete_laplace_curve_is_the_enumeration(scale: float, sensitivity: int) -> None:
    curve = curves.discrete_laplace_curve(scale, sensitivity)
    level = sensitivity / scale
    for epsilon in np.linspace(0.0, 1.1, 23) * level:
        p, q = _discrete_laplace(scale, sensitivity, 40 + int(60 * scale))
        exact = hockey_stick(p, q, epsilon)
        assert float(curve.delta(epsilon)) == pytest.approx(exact, abs=1e-13)
        for shift in range(sensitivity):
            smaller = hockey_stick(*_discrete_laplace(scale, shift, 40 + int(60 * scale)), epsilon)
            assert smaller <= exact + 1e-13
    assert float(curve.delta(level)) == 0.0
    assert float(curve.delta(level * 0.99)) > 0.0


@pytest.mark.parametrize(
    ("epsilon0", "delta0"), [(0.0, 0.0), (0.3, 0.0), (2.0, 0.0), (0.5, 0.01), (40.0, 0.1)]
)
def test_approximate_curve_is_the_worst_pair(epsilon0: float, delta0: float) -> None:
    # Kairouz, Oh and Viswanath (2015): outcomes "only P", "more P", "more Q", "only Q".
    more = (1 - delta0) / (1 + math.exp(-epsilon0))
    less = (1 - delta0) / (1 + math.exp(epsilon0))
    p, q = [delta0, more, less, 0.0], [0.0, less, more, delta0]
    curve = curves.approximate_dp_curve(epsilon0, delta0)
    for epsilon in (0.0, 0.1, 0.29, 0.5, 1.9, 39.0, 41.0):
        assert float(curve.delta(epsilon)) == pytest.approx(hockey_stick(p, q, epsilon), abs=1e-14)
    assert float(curve.delta(epsilon0)) == delta0


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon", "gaussian"),
    [
        (0.5, 1e-5, 4.728387, 4.377178),
        (0.1, 1e-6, 2.141939, 1.994527),
        (0.005, 1e-5, 0.375261, 0.340669),
        (2.0, 1e-5, 10.724824, 9.997256),
    ],
)
def test_concentrated_curve_has_the_tabled_values(
    rho: float, delta: float, epsilon: float, gaussian: float
) -> None:
    curve = curves.zcdp_curve(rho)
    assert float(curve.delta(epsilon)) == pytest.approx(delta, rel=1e-4)
    assert float(curves.gaussian_curve(math.sqrt(2 * rho)).delta(gaussian)) == pytest.approx(delta, rel=1e-4)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@pytest.mark.parametrize("rho", [1e-4, 0.05, 1.0, 30.0])
def test_concentrated_curve_is_the_least_over_orders(rho: float) -> None:
    alpha = 1 + np.geomspace(1e-6, 1e6, 200_001)
    for epsilon in (0.0, rho, 3 * rho, rho + 4 * math.sqrt(rho)):
        log_delta = (alpha - 1) * (alpha * rho - epsilon) - np.log(alpha - 1) + alpha * np.log1p(-1 / alpha)
        expected = min(1.0, math.exp(log_delta.min()))
        assert float(curves.zcdp_curve(rho).delta(epsilon)) == pytest.approx(expected, rel=1e-6)


def test_concentrated_curve_covers_every_gaussian() -> None:
    epsilon = np.linspace(0.0, 30.0, 301)
    for rho in (1e-3, 0.1, 1.0, 10.0):
        assert np.all(
            curves.zcdp_curve(rho).delta(epsilon) >= curves.gaussian_curve(math.sqrt(2 * rho)).delta(epsilon)
        )


def test_the_max_form_fails_above_one_over_e() -> None:
    # Girgis (2023), Lemma 2.1.5 states epsilon <= 3 max(rho L, sqrt(rho L)) for every delta, but proves it
    # for delta <= 1/e.
    rho, delta = 100.0, 0.9
    log = math.log(1 / delta)
    printed = 3 * max(rho * log, math.sqrt(rho * log))
    assert printed == pytest.approx(31.608, abs=1e-3)
    assert gaussian_delta(math.sqrt(2 * rho), printed) == pytest.approx(0.999999, abs=1e-6)
    assert float(curves.zcdp_curve(rho).delta(printed)) >= gaussian_delta(math.sqrt(2 * rho), printed)
    for rho in (0.01, 1.0, 100.0):
        for delta in (1 / math.e, 1e-3, 1e-9):
            log = math.log(1 / delta)
            assert float(curves.zcdp_curve(rho).delta(3 * max(rho * log, math.sqrt(rho * log)))) <= delta


def test_pmf_curve_is_the_definition_in_both_directions() -> None:
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.1, 0.3, 0.35, 0.25])
    with np.errstate(divide="ignore"):
        curve = curves.pmf_curve(np.log(p), np.log(q))
    for epsilon in (-800.0, -2.0, -0.3, 0.0, 0.4, 1.6, 1.7, 800.0):
        finite = min(epsilon, 700.0)
        at = np.array(epsilon)
        assert float(curve.forward(at)) == pytest.approx(hockey_stick(p, q, finite), abs=1e-15)
        assert float(curve.backward(at)) == pytest.approx(hockey_stick(q, p, finite), abs=1e-15)
    assert math.isinf(curve.max_loss)


def test_hidden_mass_is_charged() -> None:
    curve = curves.pmf_curve(np.log([0.5, 0.49]), np.log([0.49, 0.5]), hidden_mass=0.01)
    assert float(curve.delta(5.0)) == 0.01
    assert math.isinf(curve.max_loss)


@pytest.mark.parametrize(
    ("p", "q", "hidden", "message"),
    [
        ([0.5, 0.4], [0.5, 0.5], 0.0, "log_p must have probabilities that sum to 1"),
        ([0.5, 0.5], [0.5, 0.4], 0.01, "log_q must have probabilities that sum to 1"),
        ([0.8, 0.8], [0.5, 0.5], 0.0, "log_p must have probabilities that sum to 1"),
        ([0.5, math.nan], [0.5, 0.5], 0.0, "log_p must be a vector of log-probabilities"),
        ([1.0], [0.5, 0.5], 0.0, "one shape"),
        ([0.5, 0.5], [0.5, 0.5], math.nan, "hidden_mass must be in"),
    ],
)
def test_tables_that_are_no_laws_are_refused(
    p: list[float], q: list[float], hidden: float, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        curves.pmf_curve(np.log(p), np.log(q), hidden_mass=hidden)


def test_amplification_of_a_level_has_the_tabled_value() -> None:
    assert curve_sampling.amplified(1.0, 0.01) == pytest.approx(0.017036863236, abs=1e-12)
    assert curve_sampling.amplified(1.0, 1.0) == pytest.approx(1.0, abs=1e-15)
    assert curve_sampling.amplified(0.0, 0.3) == 0.0
    assert math.isinf(curve_sampling.amplified(math.inf, 0.3))
    exact = 1000 + math.log(1e-3)
    assert curve_sampling.amplified(1000.0, 1e-3) == pytest.approx(exact, rel=1e-15)
    assert curve_sampling.amplified(601.0, 1e-3) >= 601 + math.log(1e-3)


def test_maximum_and_minimum_are_pointwise() -> None:
    one, other = curves.gaussian_curve(0.5), curves.laplace_curve(0.8)
    stacked = np.stack([one.delta(EPSILONS), other.delta(EPSILONS)])
    assert np.array_equal(curves.maximum([one, other]).delta(EPSILONS), stacked.max(axis=0))
    assert np.array_equal(curves.minimum([one, other]).delta(EPSILONS), stacked.min(axis=0))
    assert curves.maximum([one, other]).max_loss == math.inf
    assert curves.minimum([one, other]).max_loss == 0.8


@pytest.mark.parametrize("rho", [1e-6, 1e-12, 1e-15])
def test_concentrated_curve_keeps_its_digits_at_large_orders(rho: float) -> None:
    # The best order is about sqrt(log(1 / delta) / rho), where alpha log alpha would swallow the rest.
    delta = 1e-10
    epsilon = epsilon_of(Zcdp(rho), delta)
    with decimal.localcontext() as context:
        context.prec = 60
        level, price = decimal.Decimal(rho), decimal.Decimal(epsilon)

        def log_delta(log_m: decimal.Decimal) -> decimal.Decimal:
            m = log_m.exp()
            return m * ((1 + m) * level - price) + m * m.ln() - (1 + m) * (1 + m).ln()

        middle = (-decimal.Decimal(delta).ln() / level).sqrt().ln()
        low, high = middle - 1, middle + 1
        for _ in range(100):
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
        least = log_delta(low) - decimal.Decimal(delta).ln()
    assert -1e-9 < float(least) <= 1e-10


def test_levels_that_overflow_together_are_infinite() -> None:
    assert math.isinf(curves.total_loss([1e308, 1e308]))
    assert math.isinf(epsilon_of(Compose((PureDP(1e308), PureDP(1e308))), 0.0))
    assert curves.total_loss([0.1] * 10) == 1.0
