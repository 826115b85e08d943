"""Rates and stability bounds of heavy-tailed optimisation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.literature import (
    erm_stability,
    full_batch_rate,
    heavy_tail_lower_rate,
    heavy_tail_rate_table,
    heavy_tail_upper_rate,
    regularized_erm_gap,
    stability_generalization_bound,
)
from tacit.means import MomentBound, MomentKind
from tests.statistics import z_bound


def test_rates_of_both_classes() -> None:
    moment, n, dim, rho = MomentBound(3, 2.0), 10_000, 9, 0.5
    private = 3 / (math.sqrt(rho) * n)
    convex = heavy_tail_lower_rate(moment, n=n, dim=dim, rho=rho, diameter=5.0)
    assert convex == pytest.approx(2 * 5 * (0.01 + private ** (2 / 3)))
    strong = heavy_tail_lower_rate(moment, n=n, dim=dim, rho=rho, strong_convexity=0.5)
    assert strong == pytest.approx(4 / 0.5 * (1e-4 + private ** (4 / 3)))
    coordinates = MomentBound(3, 2.0, MomentKind.COORDINATE)
    assert heavy_tail_lower_rate(coordinates, n=n, dim=dim, rho=rho, diameter=5.0) == pytest.approx(
        3 * convex
    )
    # Under rho = epsilon^2 / 2 upper rates have a logarithm and a constant more.
    upper = heavy_tail_upper_rate(moment, n=n, dim=dim, epsilon=1.0, diameter=5.0)
    assert convex / 2 < upper < 5 * convex
    worse = heavy_tail_upper_rate(moment, n=n, dim=dim, epsilon=1.0, strong_convexity=0.5, condition=9.0)
    better = heavy_tail_upper_rate(moment, n=n, dim=dim, epsilon=1.0, strong_convexity=0.5)
    assert better < worse
    with pytest.raises(ParameterError, match="one of diameter"):
        heavy_tail_lower_rate(moment, n=n, dim=dim, rho=rho)
    with pytest.raises(ParameterError, match="condition"):
        heavy_tail_upper_rate(moment, n=n, dim=dim, epsilon=1.0, diameter=1.0, condition=0.5)


def test_the_table_of_rates() -> None:
    rows = {row.losses: row for row in heavy_tail_rate_table(n=10_000, dim=25, epsilon=2.0, condition=4.0)}
    private = 5 / 20_000
    assert rows["convex"].lower == pytest.approx(5 * (0.01 + math.sqrt(private)))
    smooth = rows["smooth convex"]
    assert smooth.linear_time == pytest.approx(smooth.lower * (1 + (2e4 / 125) ** (1 / 18)))
    strong = rows["smooth strongly convex"]
    assert strong.lower == pytest.approx(25 * (1e-4 + private))
    assert strong.linear_time == pytest.approx(25 * (1e-4 + 2 * private))
    assert strong.prior == pytest.approx(25 * (64e-4 + 8 * private))
    assert rows["proximal-PL"].linear_time == pytest.approx(100 * (1e-4 + private))
    assert rows["proximal-PL"].prior == pytest.approx(16 * 25**3 / (1e4 * 16))
    for row in rows.values():
        known = [rate for rate in (row.upper, row.linear_time, row.prior) if rate is not None]
        assert min(known) >= row.lower * (1 - 1e-12)
    with pytest.raises(ParameterError, match="condition"):
        heavy_tail_rate_table(n=10, dim=2, epsilon=1.0, condition=0.0)


def test_full_batches_pay_for_the_condition() -> None:
    """At k = 2 it is the prior rate of the table; only well-conditioned losses come near the lower bound."""
    moment = MomentBound(2, 1.0, MomentKind.COORDINATE)
    for condition in (1.0, 10.0):
        found = full_batch_rate(
            moment, n=10_000, dim=25, epsilon=2.0, strong_convexity=1.0, condition=condition
        )
        table = heavy_tail_rate_table(n=10_000, dim=25, epsilon=2.0, condition=condition)
        assert found == pytest.approx(table[3].prior)
        assert found >= table[3].lower
    with pytest.raises(ParameterError, match="condition"):
        full_batch_rate(moment, n=10, dim=2, epsilon=1.0, strong_convexity=1.0, condition=0.5)


def test_a_squared_expectation_bounds_no_expected_square() -> None:
    """Normal noise: E |z|^2 = 1, and (E |z|)^2 = 2 / pi."""
    points, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    expected, squared = float(weights @ np.abs(points)), float(weights @ points**2)
    assert squared == pytest.approx(1.0)
    assert expected**2 == pytest.approx(2 / math.pi, abs=0.01)
    assert squared > 1.5 * expected**2


def test_the_printed_sizes_do_not_make_the_constant_positive() -> None:
    """Theorem 168, part 3: 1 - 60 / sqrt(n) - 20 ln 2 / d for d >= 40 and n > 7202."""

    def constant(d: int, n: int) -> float:
        return 1 - 60 / math.sqrt(n) - 20 * math.log(2) / d

    assert constant(40, 7203) == pytest.approx(-0.0535, abs=1e-4)
    assert constant(40, 8431) < 0 < constant(40, 8432)
    assert constant(47, 7203) < 0 < constant(48, 7203)


def test_the_minimiser_of_squares_generalises_as_it_should() -> None:
    """f = |w - x|^2 / 2: E[F(mean) - F_X(mean)] is exactly V / n, for V = 3 and n = 20: 0.15."""
    V, n, trials = 3.0, 20, 4000
    rows = np.random.default_rng(3).normal(size=(trials, n, 3))
    mean = rows.mean(axis=1)
    empirical = ((rows - mean[:, None]) ** 2).sum(axis=2).mean(axis=1) / 2
    gaps = (np.sum(mean**2, axis=1) + V) / 2 - empirical
    assert abs(gaps.mean() - V / n) <= z_bound(1) * gaps.std() / math.sqrt(trials)
    # Replacing a record moves the mean by |x - x'| / n; the second moment of gradients near it is about V.
    alpha, r = math.sqrt(2 * V) / n, math.sqrt(V)
    assert V / n == pytest.approx(0.15)
    assert (
        V / n
        <= stability_generalization_bound(r, alpha)
        <= stability_generalization_bound(r, erm_stability(r, strong_convexity=1.0, n=n))
    )
    assert alpha <= erm_stability(r, strong_convexity=1.0, n=n)
    assert stability_generalization_bound(r, erm_stability(r, strong_convexity=1.0, n=n)) == pytest.approx(
        2 * V / n
    )


def test_the_best_choices_are_the_best() -> None:
    r, alpha, n, distance = 2.0, 0.3, 50, 1.5
    for zeta in np.geomspace(0.01, 100, 50):
        assert stability_generalization_bound(r, alpha, balance=zeta) >= stability_generalization_bound(
            r, alpha
        )
        assert regularized_erm_gap(r, n=n, distance=distance, regularization=zeta) >= regularized_erm_gap(
            r, n=n, distance=distance
        )
    assert stability_generalization_bound(r, alpha, balance=r / alpha) == pytest.approx(r * alpha)
    best = 2 * r / (distance * math.sqrt(n))
    assert regularized_erm_gap(r, n=n, distance=distance, regularization=best) == pytest.approx(
        regularized_erm_gap(r, n=n, distance=distance)
    )
    with pytest.raises(ParameterError, match="strong_convexity"):
        erm_stability(r, strong_convexity=0.0, n=n)
