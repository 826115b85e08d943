"""The printed parameters of SPIDER, and that its two families of queries overspend."""

from __future__ import annotations

import math

import pytest

from tacit.errors import ParameterError
from tacit.literature import spider_noise, spider_overspent, spider_period, spider_rounds
from tacit.privacy import Compose, Gaussian, PrivacyBudget, Repeat
from tacit.privacy import guarantee as guarantee_of

BUDGET = PrivacyBudget(1.0, 1e-6)


def test_the_noise_of_the_reference() -> None:
    noise = spider_noise(1000, BUDGET, rounds=50, period=4)
    assert noise == pytest.approx((0.0525652, 0.1051304, 0.2102609), abs=5e-8)
    scaled = spider_noise(1000, BUDGET, rounds=50, period=4, lipschitz=3.0, smoothness=5.0)
    assert scaled == pytest.approx((3 * noise.gradient, 5 * noise.change, 3 * noise.largest))


@pytest.mark.parametrize(
    ("rounds", "period", "spent"),
    [(25, 1, 1.04), (25, 2, 1.56), (50, 2, 1.54), (50, 4, 1.80), (100, 8, 1.92)],
)
def test_what_the_printed_noise_spends(rounds: int, period: int, spent: float) -> None:
    assert spider_overspent(rounds, period) == pytest.approx(spent, abs=0.005)
    # By hand, as zCDP of the queries with their sensitivities.
    n, (first, change, _) = 500, spider_noise(500, BUDGET, rounds=rounds, period=period)
    gradients = sum(r % period == 0 for r in range(rounds + 1))
    rho = gradients * (2 / n / first) ** 2 / 2 + (rounds + 1 - gradients) * (2 / n / change) ** 2 / 2
    assert rho / (1 / (8 * math.log(1e6))) == pytest.approx(spider_overspent(rounds, period))


@pytest.mark.parametrize(("epsilon", "low", "high"), [(6.0, 4.8, 5.6), (18.0, 18.1, 21.0)])
@pytest.mark.parametrize(("rounds", "period"), [(25, 2), (50, 2), (50, 4), (100, 8)])
def test_small_budgets_are_saved_by_slack_and_large_ones_are_not(
    epsilon: float, low: float, high: float, rounds: int, period: int
) -> None:
    n, budget = 1000, PrivacyBudget(epsilon, 1e-6)
    noise = spider_noise(n, budget, rounds=rounds, period=period)
    gradients = rounds // period + 1
    event = Compose(
        (
            Repeat(Gaussian(noise.gradient * n / 2), gradients),
            Repeat(Gaussian(noise.change * n / 2), rounds + 1 - gradients),
        )
    )
    assert low < guarantee_of(event, 1e-6, observer="all").epsilon < high


def test_period_and_rounds_of_the_theorem() -> None:
    facts = {"silos": 25, "dim": 50, "gap": 0.7}
    scale = 30000 * 5 / math.sqrt(50 * math.log(1e6) * 0.7)
    assert spider_period(30000, BUDGET, **facts) == math.floor((scale / 32) ** (2 / 3))  # type: ignore[arg-type]
    rounds = spider_rounds(30000, BUDGET, period=4, **facts)  # type: ignore[arg-type]
    assert rounds == math.ceil(30000 * 10 * math.sqrt(0.7) / math.sqrt(50 * math.log(1e6)))


def test_what_the_theorem_does_not_cover_is_refused() -> None:
    with pytest.raises(ParameterError, match="the period q must be at least 1"):
        spider_period(100, BUDGET, silos=1, dim=1000, gap=10.0)
    with pytest.raises(ParameterError, match=r"period must be a whole number >= 1"):
        spider_noise(100, BUDGET, rounds=5, period=0)
    with pytest.raises(ParameterError, match=r"epsilon must be at most 27.631 in this theorem"):
        spider_noise(100, PrivacyBudget(28.0, 1e-6), rounds=5, period=1)
    with pytest.raises(ParameterError, match="delta must be > 0"):
        spider_noise(100, PrivacyBudget(1.0), rounds=5, period=1)
