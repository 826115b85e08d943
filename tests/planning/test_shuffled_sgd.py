"""Plans of shuffled reports: the bound, what the budget allows, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.learning.algorithms.shuffled_reports import report_mean
from tacit.means import multiset_bits
from tacit.planning import plan_reports, report_risk
from tacit.privacy import PrivacyBudget

BUDGET = PrivacyBudget(1.0, 1e-5)


def test_plans_meet_the_budget_and_come_by_their_bound() -> None:
    found = [
        *plan_reports(BUDGET, clients=60, dim=8, records=4, drawn=[6, 60], rounds=[5], randomizer="hadamard"),
        *plan_reports(
            BUDGET, clients=60, dim=8, records=4, drawn=[60], sampled=[2], rounds=[5], randomizer="hadamard"
        ),
    ]
    assert len(found) == 3
    assert all(0.99 < plan.epsilon <= 1.0 for plan in found)
    assert found[0].risk <= found[1].risk
    by = {(plan.drawn, plan.sampled): plan for plan in found}
    assert by[6, 1].bits == pytest.approx(0.1 * 4)
    assert by[60, 2].bits == multiset_bits(2, 16) == 8
    # One record of few clients is hidden best, and so may say the most.
    assert by[6, 1].local_epsilon > by[60, 1].local_epsilon
    assert by[60, 1].local_epsilon > by[60, 2].local_epsilon


def test_a_report_of_an_l_infinity_ball_has_the_risk_of_long_gradients() -> None:
    (plan,) = plan_reports(BUDGET, clients=6, dim=9, drawn=[6], rounds=[2], randomizer="bitplane")
    sizes: dict[str, Any] = {"dim": 9, "messages": 6, "rounds": 2, "lipschitz": 1.0, "diameter": 1.0}
    mean = report_mean("bitplane", 1 / (2 * math.sinh(plan.local_epsilon / 2)), dim=9)
    assert plan.risk == pytest.approx(report_risk(mean.error(1).mse, p=math.inf, **sizes))


def test_long_gradients_of_other_norms_count() -> None:
    # Girgis (2023) has 1 for every p; of p > 2 a gradient may be as long as d^(1/2 - 1/p).
    facts = {"dim": 100, "messages": 10**9, "rounds": 100, "lipschitz": 1.0, "diameter": 1.0}
    near = report_risk(1.0, p=2.0, **facts)  # type: ignore[arg-type]
    assert report_risk(1.0, p=1.0, **facts) == pytest.approx(near)  # type: ignore[arg-type]
    assert report_risk(1.0, p=math.inf, **facts) == pytest.approx(10 * near, rel=1e-6)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="p must be"):
        report_risk(1.0, p=0.5, **facts)  # type: ignore[arg-type]


def test_rejects() -> None:
    with pytest.raises(ParameterError, match="drawn"):
        plan_reports(BUDGET, clients=10, dim=2, drawn=[11])
    with pytest.raises(ParameterError, match="sampled"):
        plan_reports(BUDGET, clients=10, dim=2, records=2, sampled=[3], rounds=[5])
    with pytest.raises(ParameterError, match="rounds"):
        report_risk(1.0, p=2, dim=1, messages=1, rounds=0, lipschitz=1, diameter=1)
