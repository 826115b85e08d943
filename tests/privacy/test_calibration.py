"""Calibration: the budget is met, hardly anything is wasted, and what cannot be met is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tacit.errors import BudgetError, ParameterError
from tacit.privacy import (
    Budget,
    Compose,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    PrivacyBudget,
    PureDP,
    Repeat,
    Sampled,
    Shuffled,
    Zcdp,
    ZcdpBudget,
    calibrate,
    epsilon_of,
    guarantee,
    meets,
    rho_of,
)

EVENT_AT: dict[str, Callable[[float], Event]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "repeated laplace": lambda x: Repeat(Laplace(x), 30),
    "sampled": lambda x: Repeat(Sampled(Gaussian(x), 0.02), 200),
    "two noises": lambda x: Compose((Gaussian(3 * x), Laplace(2 * x))),
    "beside a fixed part": lambda x: Compose((Gaussian(x), PureDP(0.05))),
    "on a grid": lambda x: DiscreteGaussian(50.0 * x, 50.0),
}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-10])
@pytest.mark.parametrize("name", EVENT_AT)
def test_budget_is_met_and_not_wasted(name: str, epsilon: float, delta: float) -> None:
    budget = PrivacyBudget(epsilon, delta)
    x = calibrate(EVENT_AT[name], budget)
    assert meets(EVENT_AT[name](x), budget)
    assert epsilon_of(EVENT_AT[name](x), delta) <= epsilon * (1 + 1e-14)
    assert guarantee(EVENT_AT[name](x), delta, observer="anybody").epsilon <= epsilon
    assert not meets(EVENT_AT[name](x * 0.999), budget)


@pytest.mark.parametrize(
    ("epsilon", "delta", "noise"),
    [(1.0, 1e-5, 3.730632), (1.0, 1e-6, 4.224679), (2.0, 1e-5, 1.993812), (8.0, 1e-5, 0.600229)],
)
def test_the_least_noise_of_one_gaussian(epsilon: float, delta: float, noise: float) -> None:
    assert calibrate(Gaussian, PrivacyBudget(epsilon, delta)) == pytest.approx(noise, abs=6e-7)


def test_a_level_of_next_to_no_privacy_is_met_too() -> None:
    # Of a Gaussian of level 196; a search among levels of 100 at most ended in an error.
    budget = PrivacyBudget(20_000.0, 1e-5)
    x = calibrate(Gaussian, budget)
    assert 0.004 < x < 0.006
    assert not meets(Gaussian(x * 0.999), budget)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.0])
def test_pure_budgets_need_one_over_epsilon(epsilon: float) -> None:
    budget = PrivacyBudget(epsilon)
    x = calibrate(Laplace, budget)
    assert x == pytest.approx(1 / epsilon, rel=2e-9)
    assert meets(Laplace(x), budget)
    assert not meets(Laplace(x * 0.999), budget)
    scale = calibrate(lambda b: DiscreteLaplace(b, 3, dim=2), budget)
    assert scale == pytest.approx(3 / epsilon, rel=2e-9)


def test_concentrated_budgets() -> None:
    budget = PrivacyBudget.zcdp(0.1)
    x = calibrate(lambda z: Repeat(Gaussian(z), 4), budget)
    assert x == pytest.approx(math.sqrt(4 / 0.2), rel=2e-9)
    assert rho_of(Repeat(Gaussian(x), 4)) <= 0.1 * (1 + 1e-14)
    assert not meets(Repeat(Gaussian(x * 0.999), 4), budget)
    assert meets(Zcdp(0.0999999), budget)
    assert not meets(Zcdp(0.1000001), budget)


def test_a_budget_is_met_by_exactly_itself() -> None:
    assert meets(PureDP(0.3), PrivacyBudget(0.3))
    assert meets(Repeat(PureDP(0.1), 3), PrivacyBudget(0.3))  # 0.1 * 3 > 0.3 in binary
    assert not meets(PureDP(0.3 * (1 + 1e-12)), PrivacyBudget(0.3))


@pytest.mark.parametrize(("epsilon", "low"), [(1.0, 10.0), (40.0, 0.3), (40.0, 0.25)])
def test_no_noise_below_low(epsilon: float, low: float) -> None:
    assert calibrate(Gaussian, PrivacyBudget(epsilon, 1e-5), low=low) == low


def test_noise_that_takes_the_widest_grids_is_not_priced_in_vain() -> None:
    priced: list[float] = []

    def event_at(x: float) -> Event:
        priced.append(x)
        return Repeat(Sampled(Gaussian(x), 0.05), 50)

    calibrate(event_at, PrivacyBudget(1.0, 1e-6))
    assert min(priced) >= 0.5


def test_the_upper_end_is_found() -> None:
    x = calibrate(Gaussian, PrivacyBudget(1.0, 1e-5))
    assert calibrate(Gaussian, PrivacyBudget(1.0, 1e-5), low=x, high=x) == x
    assert calibrate(Gaussian, PrivacyBudget(1.0, 1e-5), high=x) == pytest.approx(x, rel=1e-9)


@pytest.mark.parametrize(
    ("event_at", "budget", "message"),
    [
        (
            Gaussian,
            PrivacyBudget(1.0),
            "pure privacy, which this kind of noise never gives: choose delta > 0",
        ),
        (lambda _: NonPrivate(), PrivacyBudget(1.0, 1e-5), "epsilon = 1, delta = 1e-05 cannot be met"),
        (lambda _: NonPrivate(), ZcdpBudget(1.0), "rho = 1 cannot be met"),
        (
            lambda z: Compose((Gaussian(z), PureDP(2.0))),
            PrivacyBudget(1.0, 1e-5),
            "cannot be met, even at 1e.07",
        ),
        (
            lambda z: Compose((Laplace(z), PureDP(2.0))),
            PrivacyBudget(1.0),
            "epsilon = 1, delta = 0 cannot be",
        ),
        (Laplace, ZcdpBudget(0.1), "rho = 0.1 cannot be met"),
    ],
)
def test_budgets_that_no_noise_meets_are_refused(
    event_at: Callable[[float], Event], budget: Budget, message: str
) -> None:
    with pytest.raises(BudgetError, match=message):
        calibrate(event_at, budget)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (0.0, 1.0, "low must be"),
        (math.nan, 1.0, "low must be"),
        (1.0, math.inf, "high must be"),
        (1.0, math.nan, "high must be"),
        (2.0, 1.0, "low must be <= high"),
    ],
)
def test_ends_out_of_order_are_refused(low: float, high: float, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        calibrate(Gaussian, PrivacyBudget(1.0, 1e-5), low=low, high=high)


def test_a_pure_level_that_just_fits_is_no_reason_to_stop() -> None:
    # The first guess is 1, where the local level equals the budget; what delta buys lies beyond.
    x = calibrate(lambda x: Shuffled(1 / x, 100), PrivacyBudget(1.0, 1e-6), low=1 / 30, high=1e6)
    assert 1 / x > 1.2
    assert 1 - 1e-6 < epsilon_of(Shuffled(1 / x, 100), 1e-6) <= 1


@pytest.mark.parametrize("epsilon", [0.125, 0.25, 0.5, 1.0, 2.0, 4.0])
def test_a_budget_met_exactly_at_an_end_of_the_bracket_is_found(epsilon: float) -> None:
    x = calibrate(lambda x: PureDP(1 / x), PrivacyBudget(epsilon), low=1 / 30, high=1e6)
    assert x == pytest.approx(1 / epsilon, rel=1e-8)
    assert 1 / x <= epsilon * (1 + 1e-12)


def test_an_answer_is_taken_again_only_where_it_is_right() -> None:
    """Releases that are alike at the upper end of the search, and cost more or less below."""
    budget, end = PrivacyBudget(1.0, 1e-5), 1e6
    alike: list[Callable[[float], Event]] = [
        Gaussian,
        lambda z: Gaussian(z if z == end else z / 2),
        lambda z: Gaussian(z if z == end else z / (1 - 1e-8)),
        lambda z: Gaussian(min(3 * z, end)),
    ]
    for first in alike:
        for then in alike:
            expected = calibrate(then, budget, high=end)
            calibrate(first, budget, high=end)
            found = calibrate(then, budget, high=end)
            assert found == pytest.approx(expected, rel=2e-9)
            assert meets(then(found), budget)
            assert not meets(then(found * (1 - 2e-9)), budget)


def test_a_question_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.privacy.calibration._answers", {})
    asked: list[float] = []

    def release(z: float) -> Event:
        asked.append(z)
        return Repeat(Sampled(Gaussian(z), 0.02), 200)

    first = calibrate(release, PrivacyBudget(1.0, 1e-5))
    searched, asked[:] = len(asked), []
    assert calibrate(release, PrivacyBudget(1.0, 1e-5)) == first
    assert len(asked) <= 3 < searched
    assert calibrate(release, PrivacyBudget(2.0, 1e-5)) < first
