"""The table of rates at round numbers, and hard instances on which private means have exactly such errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.literature import (
    SHUFFLED_ORDERS,
    PaperProblem,
    hard_linear_rows,
    lower_bounds_miss,
    shuffled_rate,
    silo_rates,
)
from tacit.privacy import Gaussian, PrivacyBudget, calibrate

ROUND = {
    "n": 100,
    "silos": 25,
    "dim": 4,
    "budget": PrivacyBudget(1.0, 1e-6),
    "smoothness": 1.0,
    "diameter": 1.0,
}
"""s = 1/50; r = 2 / (100 x 5) = 1/250 under local trust and 2/2500 else."""


def problem(**changes: Any) -> PaperProblem:
    return PaperProblem(**{**ROUND, **changes})


def test_the_convex_table_at_round_numbers() -> None:
    s, r = 1 / 50, 1 / 250
    table = silo_rates(problem())
    assert [one.upper for one in table] == pytest.approx(
        [s + r, s + r**0.8, r, (math.sqrt(0.5) * r) ** (4 / 3)]
    )
    # C_2 = (eps n sqrt(N/d))^(2/5) = r^(-2/5).
    assert [one.lower for one in table] == pytest.approx([s + r, s + r / (250**0.4), r, r**2])
    assert [one.of for one in table] == ["excess"] * 3 + ["squared gradient"]


def test_the_strongly_convex_table_at_round_numbers() -> None:
    s2, r2 = 1 / 50**2, 1 / 250**2
    table = silo_rates(problem(mu=0.25, lipschitz=2.0))  # L^2 / mu = 16, kappa = 4
    expected = [s2 + r2, s2 + 2 * r2, r2, 16 * r2 + 4 * s2, 4 * r2]
    assert [one.upper for one in table] == pytest.approx([16 * x for x in expected])
    assert table[1].lower is None
    lower = [one.lower for one in table if one.lower is not None]
    assert lower == pytest.approx([16 * x for x in (s2 + r2, r2, s2 + r2, r2)])


@pytest.mark.parametrize("mu", [0.0, 0.25])
def test_a_shuffler_is_worth_the_root_of_the_silos(mu: float) -> None:
    local, shuffled = silo_rates(problem(mu=mu)), silo_rates(problem(mu=mu), trust="shuffle")
    assert [one.problem for one in local] == [one.problem for one in shuffled]
    assert silo_rates(problem(mu=mu), trust="central") == shuffled
    for a, b in zip(local, shuffled, strict=True):
        assert b.upper < a.upper
        assert b.lower is not None
        assert b.lower <= b.upper * (1 + 1e-12)
        assert a.lower is None or a.lower <= a.upper * (1 + 1e-12)
    # Of the records themselves the privacy term is all there is: sqrt(25) = 5 if convex, else 25.
    assert local[2].upper / shuffled[2].upper == pytest.approx(5.0 if mu == 0 else 25.0)


def test_conditions_of_lower_bounds() -> None:
    # 16 ln(2 / (1e-6 x 100)) = 158.5
    assert lower_bounds_miss(problem()) == ("there are fewer than 16 ln(2 / (delta records)) silos",)
    assert lower_bounds_miss(problem(silos=159)) == ()
    assert "epsilon" in lower_bounds_miss(problem(silos=159, budget=PrivacyBudget(13.0, 1e-6)))[0]
    assert "delta" in lower_bounds_miss(problem(silos=159, budget=PrivacyBudget(1.0, 1e-4)))[0]


def test_trust_is_one_of_three() -> None:
    with pytest.raises(ParameterError, match="trust must be one of local, shuffle, central"):
        silo_rates(problem(), trust="none")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("convex, one batch a party", 64 ** (1 / 3) / 1000 ** (2 / 3) + 1 / math.sqrt(2000)),
        ("convex and smooth, one batch a party", 64**0.4 / 1000**0.8 + 1 / math.sqrt(2000)),
        ("strongly convex, one batch a party", 64 ** (2 / 3) / 1000 ** (4 / 3) + 1 / 2000),
        ("strongly convex and smooth, one batch a party", 64 / 1000**2 + 1 / 2000),
        ("convex, all parties in all rounds", 8 / 1000 + 1 / math.sqrt(2000)),
        ("strongly convex, all parties in all rounds", 64 / 1000**2 + 1 / 2000),
        ("convex, plain steps, one batch a party", 64**0.25 / math.sqrt(1000) + 1 / math.sqrt(2000)),
    ],
)
def test_the_table_of_one_record_a_party(name: str, value: float) -> None:
    assert shuffled_rate(name, n=2000, dim=64, epsilon=0.5) == pytest.approx(value)
    assert len(SHUFFLED_ORDERS) == 7


# Hard instances: what the best known private answer reaches on them is the lower bound, up to logarithms.


def log_factor(budget: PrivacyBudget) -> float:
    """(eps times the exact noise multiplier)^2: the logarithm that orders leave out."""
    return (budget.epsilon * calibrate(Gaussian, budget)) ** 2


@pytest.mark.parametrize("silos", [4, 100])
@pytest.mark.parametrize("dim", [5, 80])
def test_squared_distances_cost_the_strongly_convex_order(silos: int, dim: int) -> None:
    """f = (mu/2) |w - x|^2: the excess is mu/2 times the error of a private mean, which is known exactly."""
    n, mu, D, budget = 50, 0.5, 2.0, PrivacyBudget(1.0, 1e-6)
    z = calibrate(Gaussian, budget)
    noise_std = 2 * (D / 2) * z / n  # of a silo's mean of records of norm D/2
    excess = mu / 2 * dim * noise_std**2 / silos
    measured = np.random.default_rng(0).normal(0, noise_std, (2000, silos, dim)).mean(axis=1)
    assert mu / 2 * (measured**2).sum(axis=1).mean() == pytest.approx(excess, rel=0.2)
    facts = problem(
        n=n, silos=silos, dim=dim, mu=mu, smoothness=mu, lipschitz=mu * D, diameter=D, budget=budget
    )
    order = silo_rates(facts)[2]
    assert order.lower is not None
    assert order.lower / 10 < excess / log_factor(budget) < 10 * order.lower


@pytest.mark.parametrize("silos", [4, 100])
@pytest.mark.parametrize("dim", [5, 80])
def test_a_linear_loss_costs_the_convex_order(silos: int, dim: int) -> None:
    """f = -<w, x> on the ball of diameter D: all that can be done is to guess the direction of the mean."""
    n, D, budget = 2000, 2.0, PrivacyBudget(1.0, 1e-6)
    rng = np.random.default_rng(1)
    rows = hard_linear_rows(n * silos, dim, D, rng=rng)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(D)
    mean = rows.mean(axis=0)
    noise_std = 2 * D * calibrate(Gaussian, budget) / n / math.sqrt(silos)
    seen = mean + rng.normal(0, noise_std, (2000, dim))
    w = D / 2 * seen / np.linalg.norm(seen, axis=1, keepdims=True)
    excess = float((D / 2 * np.linalg.norm(mean) - w @ mean).mean())
    facts = problem(n=n, silos=silos, dim=dim, lipschitz=D, diameter=D, budget=budget)
    order = silo_rates(facts)[0]
    assert order.lower is not None
    # Neither the sampling of records nor the logarithm makes it less or more by more than that.
    assert order.lower / 100 < excess < 4 * math.sqrt(log_factor(budget)) * order.lower
    # The exact records: privacy alone, r.
    r = silo_rates(facts)[2].lower
    assert r is not None
    assert excess < 4 * math.sqrt(log_factor(budget)) * r
