"""Budgets: their ranges, and that NaN is never within one."""

from __future__ import annotations

import math

import pytest

from tacit.errors import ParameterError
from tacit.privacy import Gaussian, PrivacyBudget, ZcdpBudget, calibrate, guarantee


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_outside_its_range_is_refused(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon must be a finite number > 0"):
        PrivacyBudget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
def test_delta_outside_its_range_is_refused(delta: float) -> None:
    with pytest.raises(ParameterError, match=r"delta must be in \[0, 1\)"):
        PrivacyBudget(1.0, delta)


@pytest.mark.parametrize("rho", [0.0, -1.0, math.nan, math.inf])
def test_rho_outside_its_range_is_refused(rho: float) -> None:
    with pytest.raises(ParameterError, match="rho must be a finite number > 0"):
        PrivacyBudget.zcdp(rho)


def test_zcdp_builds_a_concentrated_budget() -> None:
    assert PrivacyBudget.zcdp(0.5) == ZcdpBudget(0.5)


def test_covers_needs_both_numbers() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    assert budget.covers(1.0, 1e-6)
    assert not budget.covers(1.0 + 1e-9, 1e-6)
    assert not budget.covers(1.0, 2e-6)
    assert not budget.covers(math.inf, 0.0)


@pytest.mark.parametrize("epsilon", [1 / 3, math.pi, math.log(3), 0.8420056902336962, 0.1 + 0.2])
def test_what_is_calibrated_to_any_number_is_within_it_as_stated(epsilon: float) -> None:
    """A stated price is rounded up: were the budget not, nothing could be made for 1/3."""
    budget = PrivacyBudget(epsilon, 1e-5)
    price = guarantee(Gaussian(calibrate(Gaussian, budget)), 1e-5, observer="the server")
    assert budget.covers(price.epsilon, price.delta)
    assert price.epsilon < epsilon + 1e-6
    assert not budget.covers(price.epsilon + 1e-6, price.delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(math.nan, 0.0), (0.0, math.nan)])
def test_covers_refuses_nan(epsilon: float, delta: float) -> None:
    with pytest.raises(ParameterError, match="cannot be NaN"):
        PrivacyBudget(1.0, 1e-6).covers(epsilon, delta)
