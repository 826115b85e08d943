"""Risk minimisation with public data: bounds of throwing away hold, and rates are those of the table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError, UnknownNameError
from tacit.literature import (
    public_data_helps,
    semi_private_rate,
    semi_private_risk_rate,
    throw_away_excess_bound,
    throw_away_regression_error,
)


def test_throwing_away_on_means_costs_what_it_must_and_the_bounds_hold() -> None:
    """f = |w - x|^2 / 2 on the unit ball: L = 2, D = 2, mu = 1."""
    rng = np.random.default_rng(0)
    for n_private, n_public in ((5, 95), (50, 50), (95, 5)):
        x = rng.standard_normal((100, 3))
        x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
        x[:n_private] = [1.0, 0.0, 0.0]
        public, everybody = x[n_private:].mean(axis=0), x.mean(axis=0)
        excess = np.mean(np.sum((public - x) ** 2, axis=1) - np.sum((everybody - x) ** 2, axis=1)) / 2
        gap = np.sum((public - x[:n_private].mean(axis=0)) ** 2)
        assert excess == pytest.approx((n_private / 100) ** 2 * gap / 2)
        sizes = {"n_private": n_private, "n_public": n_public}
        bounds = [
            throw_away_excess_bound(**sizes, lipschitz=2.0, diameter=2.0),
            throw_away_excess_bound(**sizes, lipschitz=2.0, strong_convexity=1.0),
        ]
        assert excess <= min(bounds)
        assert bounds[0] == pytest.approx(4.0 * n_private / 100)
        assert bounds[1] == pytest.approx(4.0 * n_private / 100 * min(n_private / n_public, 1))
    assert throw_away_excess_bound(n_private=0, n_public=1, lipschitz=1.0) == 0
    assert throw_away_excess_bound(n_private=1, n_public=1, lipschitz=1.0) == math.inf


@pytest.mark.parametrize(
    ("share", "error"),
    [
        (0.03, 2.258032), (0.04, 0.750501), (0.05, 0.535878), (0.1, 0.340926), (0.2, 0.288464),
        (0.25, 0.279853), (0.5, 0.264085), (0.75, 0.259217), (0.9, 0.257634), (0.95, 0.257220),
    ],
)  # fmt: skip
def test_least_squares_on_public_records_have_the_printed_errors(share: float, error: float) -> None:
    found = throw_away_regression_error(n_public=round(share * 75_000), dim=2000, noise_std=0.5)
    assert found == pytest.approx(error, abs=6e-7)


def test_that_error_is_exact() -> None:
    rng, errors = np.random.default_rng(1), []
    for _ in range(4000):
        X = rng.standard_normal((20, 3))
        errors.append(0.25 + np.sum(np.linalg.lstsq(X, 0.5 * rng.standard_normal(20), rcond=None)[0] ** 2))
    exact = throw_away_regression_error(n_public=20, dim=3, noise_std=0.5)
    assert abs(np.mean(errors) - exact) < 5.5 * np.std(errors) / math.sqrt(4000)


def test_rates_are_those_of_the_table() -> None:
    n, d, eps = 1000, 20, 0.5
    facts: dict[str, Any] = {"n_private": 900, "n_public": 100, "dim": d, "epsilon": eps, "lipschitz": 3.0}
    rate = {
        name: semi_private_risk_rate(name, **facts, diameter=2.0, strong_convexity=0.5, delta=1e-5)
        for name in (
            "erm", "erm-strongly-convex", "sco", "sco-approximate", "sco-strongly-convex",
            "sco-strongly-convex-approximate", "local-sco",
        )
    }  # fmt: skip
    noise, log = d / (n * eps), math.log(1e5)
    assert rate["erm"] == pytest.approx(6 * noise)
    sizes = {name: facts[name] for name in ("n_private", "n_public", "dim", "epsilon")}
    assert rate["erm"] == pytest.approx(6 * math.sqrt(semi_private_rate("empirical-mean", **sizes)))
    assert rate["erm-strongly-convex"] == pytest.approx(18 * noise**2 * math.log(n))
    assert rate["sco"] == pytest.approx(6 * (noise + n**-0.5))
    assert rate["sco-approximate"] == pytest.approx(6 * (math.sqrt(d * log) / (n * eps) + n**-0.5))
    assert rate["sco-strongly-convex"] == pytest.approx(18 * min(0.01, noise**2 * math.log(n) + 1e-3))
    assert rate["sco-strongly-convex-approximate"] == pytest.approx(18 * (d * log / (n * eps) ** 2 + 1e-3))
    assert rate["local-sco"] == pytest.approx(6 * 0.1)
    # Few private records are thrown away, and exactly then public data help.
    for n_private in (39, 41):
        few = {**facts, "n_private": n_private}
        thrown = semi_private_risk_rate("erm", **few) == pytest.approx(3 * n_private / (n_private + 100))
        helps = public_data_helps("erm", n_private=n_private, n_public=100, dim=d, epsilon=eps)
        assert helps == (n_private < 40)
        assert helps == thrown
    assert semi_private_risk_rate("sco", **{**facts, "n_public": 0}) > 0


def test_bad_input_is_refused() -> None:
    good: dict[str, Any] = {"n_private": 1, "n_public": 1, "dim": 1, "epsilon": 1.0}
    with pytest.raises(UnknownNameError, match="problem"):
        semi_private_risk_rate("magic", **good)
    for problem, bad, name in (
        ("erm", {"epsilon": 0.0}, "epsilon"), ("erm", {"n_private": 0, "n_public": 0}, "n_private"),
        ("erm", {"diameter": 0.0}, "diameter"), ("sco-approximate", {}, "delta"),
        ("sco-strongly-convex", {}, "strong_convexity"), ("erm", {"lipschitz": -1.0}, "lipschitz"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=name):
            semi_private_risk_rate(problem, **{**good, **bad})
    with pytest.raises(ParameterError, match="n_public"):
        throw_away_excess_bound(n_private=1, n_public=0, lipschitz=1.0)
    with pytest.raises(ParameterError, match="n_public"):
        throw_away_regression_error(n_public=4, dim=3, noise_std=1.0)
