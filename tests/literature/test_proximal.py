"""The printed parameters of proximal SGD and SVRG: reference values, and what they really cost."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.literature import (
    proximal_noise_std,
    shuffled_spider_budgets,
    shuffled_svrg_budgets,
    svrg_gap_kept,
    svrg_least_batch,
    svrg_noise,
    svrg_restarts,
)
from tacit.privacy import Compose, Gaussian, PrivacyBudget, PureDP, Repeat, Sampled, epsilon_of

BUDGET = PrivacyBudget(1.0, 1e-6)
RUN: dict[str, Any] = {"restarts": 2, "epochs": 3, "period": 4}


@pytest.mark.parametrize(
    ("target", "delta", "real"), [(8.0, 1e-5, 8.007), (8.0, 1e-3, 8.35), (15.0, 1e-5, 17.6)]
)
def test_one_pass_of_proximal_sgd_costs_more_than_it_says_from_epsilon_8_on(
    target: float, delta: float, real: float
) -> None:
    """Sensitivity 2 L / K: with the 16 of its own proposition it is sound."""
    found = []
    for mended in (False, True):
        std = proximal_noise_std(100, PrivacyBudget(target, delta), lipschitz=3.0, mended=mended)
        found.append(epsilon_of(Gaussian(std / (2 * 3.0 / 100)), delta))
    assert found[0] == pytest.approx(real, rel=3e-3)
    assert found[0] > target > found[1]


@pytest.mark.parametrize("target", [0.5, 2.0, 6.0])
def test_below_it_has_slack(target: float) -> None:
    std = proximal_noise_std(100, PrivacyBudget(target, 1e-5))
    assert epsilon_of(Gaussian(std * 50), 1e-5) < target


def test_the_noise_of_svrg_in_the_reference() -> None:
    printed, right = (svrg_noise(1000, BUDGET, **RUN, mended=mended) for mended in (False, True))
    assert printed == pytest.approx((0.606822, 2.477675), abs=5e-7)
    assert right == pytest.approx((0.606822, 5.054117), abs=5e-7)
    scaled = svrg_noise(500, PrivacyBudget(2.0, 1e-6), **RUN, lipschitz=3.0)
    assert scaled == pytest.approx((3 * printed.gradient, 3 * printed.change))


def test_the_noise_of_svrg_is_sound_by_its_slack_alone() -> None:
    """The printed sigma_2 is half of what its proof gives, and some ten times what is needed."""
    rounds, batch = 2 * 12, 250
    spent = []
    for mended in (False, True):
        noise = svrg_noise(1000, BUDGET, **RUN, mended=mended)
        full = Repeat(Gaussian(noise.gradient * 1000 / 2), 2 * 3)
        sampled = Repeat(Sampled(Gaussian(noise.change * batch / 4), batch / 1000), rounds)
        spent.append(epsilon_of(Compose((full, sampled)), 1e-6))
    assert spent[1] < spent[0] < 0.2


def test_twelve_times_the_condition_is_a_quarter_of_the_steps_that_halve_the_gap() -> None:
    assert svrg_gap_kept(12 * 7, 7.0) == 2.0
    assert svrg_gap_kept(48 * 7, 7.0) == 0.5


def test_batches_and_restarts() -> None:
    sampled = 1000 / (4 * math.sqrt(2 * 2 * 12 * math.log(2e6)))
    assert svrg_least_batch(1000, BUDGET, silos=25, rounds=12, restarts=2) == max(35, math.ceil(sampled))
    large = PrivacyBudget(20.0, 1e-6)
    assert svrg_least_batch(1000, large, silos=25, rounds=12, restarts=2) == math.ceil(20 * sampled)
    assert svrg_least_batch(10, large, silos=1, rounds=1) == 10
    facts: dict[str, Any] = {"silos": 25, "dim": 50, "smoothness": 1.0, "mu": 0.1, "lipschitz": 1.0}
    assert svrg_restarts(1000, BUDGET, gap=1.0, **facts) == math.ceil(math.log2(0.1 * 25 * 1e6 / (10 * 50)))
    assert svrg_restarts(1000, BUDGET, gap=1e-9, **facts) == 1


def amplified(level: float, rate: float) -> PureDP:
    return PureDP(math.log1p(rate * math.expm1(level)))


def test_the_full_batches_of_shuffled_svrg_may_not_spend_as_if_they_were_sampled() -> None:
    """Of many short batches an epoch, the printed level of a full one is sqrt(Q / 2) times what is proven."""
    n, epochs, period = 50_000, 16, 50_000
    spent = []
    for mended in (False, True):
        full, change = shuffled_svrg_budgets(n, BUDGET, batch=1, epochs=epochs, period=period, mended=mended)
        slack = BUDGET.delta - epochs * full.delta - epochs * period / n * change.delta
        parts = (
            Repeat(PureDP(full.epsilon), epochs),
            Repeat(amplified(change.epsilon, 1 / n), epochs * period),
        )
        spent.append(epsilon_of(Compose(parts), slack))
    assert spent[1] < BUDGET.epsilon
    assert spent[0] > 12
    few = [
        shuffled_svrg_budgets(1000, BUDGET, batch=100, epochs=3, period=10, mended=mended)
        for mended in (False, True)
    ]
    assert few[0][1] == few[1][1]
    assert few[0][0].epsilon == pytest.approx(few[1][0].epsilon * math.sqrt(10 / 2))


@pytest.mark.parametrize(("rounds", "period"), [(64, 4), (100, 8), (5, 9)])
def test_shuffled_spider_spends_its_budget_once_and_not_more(rounds: int, period: int) -> None:
    spent = []
    for mended in (False, True):
        gradient, change = shuffled_spider_budgets(
            1000, BUDGET, batch=1000, rounds=rounds, period=period, mended=mended
        )
        often = max(rounds // period, 1)
        slack = BUDGET.delta - often * gradient.delta - (rounds - often) * change.delta
        assert slack >= 0
        parts = (Repeat(PureDP(gradient.epsilon), often), Repeat(PureDP(change.epsilon), rounds - often))
        spent.append(epsilon_of(Compose(parts), max(slack, 1e-7)))
    assert spent[1] < BUDGET.epsilon
    assert spent[0] > 1.5 * spent[1]


def test_with_a_gradient_now_and_then_it_would_exceed_its_budget_as_printed() -> None:
    """sqrt(R / q) too much for each of them: 500 of 1000 rounds."""
    gradient, _ = shuffled_spider_budgets(1000, BUDGET, batch=1000, rounds=1000, period=2)
    assert epsilon_of(Repeat(PureDP(gradient.epsilon), 500), 1e-6) > 5
    right, _ = shuffled_spider_budgets(1000, BUDGET, batch=1000, rounds=1000, period=2, mended=True)
    assert epsilon_of(Repeat(PureDP(right.epsilon), 500), 1e-6) < 0.5


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: proximal_noise_std(0, BUDGET), "batch must be a whole number >= 1"),
        (lambda: proximal_noise_std(9, PrivacyBudget(1.0)), "delta must be > 0"),
        (lambda: proximal_noise_std(9, PrivacyBudget(200.0, 1e-6)), "epsilon must be at most"),
        (lambda: svrg_noise(10, PrivacyBudget(90.0, 1e-6), epochs=1, period=1), "epsilon must be at most"),
        (lambda: svrg_noise(10, BUDGET, epochs=0, period=1), "epochs must be a whole number >= 1"),
        (lambda: svrg_noise(10, BUDGET, epochs=1, period=1, lipschitz=0.0), "lipschitz must be"),
        (lambda: shuffled_svrg_budgets(10, BUDGET, batch=11, epochs=1, period=1), "batch must be"),
        (
            lambda: shuffled_svrg_budgets(10**6, BUDGET, batch=1, epochs=1, period=1),
            "epsilon must give levels of at most 1",
        ),
        (
            lambda: shuffled_spider_budgets(10**6, BUDGET, batch=1, rounds=1, period=1),
            "epsilon must give levels of at most 1",
        ),
        (lambda: svrg_gap_kept(3, 0.0), "kappa must be"),
    ],
)
def test_what_is_refused(call: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        call()
