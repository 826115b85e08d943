"""Rounds of CLDP-SGD and DSS-SGD by every accountant: the values of the chapter, and their order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError, PlanWarning
from tacit.literature.shuffling.rounds import (
    WHOLE_ORDERS,
    cldp_epsilons,
    cldp_renyi,
    dss_renyi,
    dss_round,
)
from tacit.literature.shuffling.rule import cldp_rule
from tacit.literature.shuffling.subsampled import subsampled_renyi
from tacit.privacy import Repeat, Shuffled, epsilon_of, renyi_to_epsilon
from tacit.privacy.shuffling import drawn_round


def test_renyi_of_one_record_of_each() -> None:
    sizes: Any = {"clients": 10_000, "sampled_clients": 1000, "records": 10}
    found = cldp_renyi(1.0, [2.0, 8.0, 32.0], variant="printed", **sizes)
    assert found == pytest.approx([2.36121736e-06, 9.75896311e-06, 4.41798298e-05], rel=1e-8)
    one = cldp_renyi(1.0, WHOLE_ORDERS, variant="printed", **sizes)
    found_epsilon = renyi_to_epsilon(WHOLE_ORDERS, 500 * one, 1e-6)
    assert found_epsilon.epsilon == pytest.approx(0.174059, rel=1e-5)
    assert found_epsilon.order == 89


def test_renyi_of_several_records_is_a_mixture() -> None:
    inner = subsampled_renyi(1.0, 5000, 0.5, [2.0, 6.0], variant="printed")
    found = cldp_renyi(
        1.0, [2.0, 6.0], clients=4000, sampled_clients=1000, records=10, sampled_records=5, variant="printed"
    )
    orders = np.array([2.0, 6.0])
    wanted = np.log1p(0.25 * np.expm1((orders - 1) * inner)) / (orders - 1)
    assert found == pytest.approx(wanted, rel=1e-12)


def test_renyi_of_clients_that_join() -> None:
    found = dss_renyi(1.0, [2.0, 4.0, 8.0], clients=1000, rate=0.1)
    assert found == pytest.approx([0.00291085156, 0.00759559821, 0.0225069814], rel=1e-8)
    assert dss_renyi(0.5, [4.0], clients=1000, rate=0.5) == pytest.approx([0.0041126365], rel=1e-8)
    everybody = dss_renyi(1.0, [4.0], clients=200, rate=1.0, records=3)
    fixed = cldp_renyi(1.0, [4.0], clients=200, sampled_clients=200, records=3, variant="printed")
    assert everybody == pytest.approx(fixed, rel=1e-9)
    with pytest.raises(ParameterError, match="rate"):
        dss_renyi(1.0, [4.0], clients=200, rate=0.0)


def test_all_accountants_beside_one_another() -> None:
    sizes: Any = {"rounds": 500, "clients": 10_000, "sampled_clients": 1000, "records": 10}
    one = cldp_epsilons(1.0, 1e-6, **sizes)
    assert one["Rényi, printed"] == pytest.approx(0.174059, rel=1e-5)
    assert one["composition"] == pytest.approx(0.203153, rel=0.02)  # at the best of several splits of delta
    assert one["strong"] <= 0.280300 * (1 + 1e-4)
    assert min(one.values()) == one["curve"]
    several = cldp_epsilons(1.0, 1e-6, sampled_records=5, **sizes)
    assert min(several.values()) == several["curve"] > one["curve"]
    assert several["composition"] <= 5.573231 * (1 + 1e-4)


def test_closed_tails_where_hardly_anybody_joins_are_exact_ones_and_it_is_said() -> None:
    """Of 40 who join on average, 2 E e^(-q n / 12) is above .19: q n >= 24 (epsilon0 + ln 2) = 40.6."""
    few: Any = {"clients": 400, "rate": 0.1}
    with pytest.warns(PlanWarning, match=r"closed ones need clients \* rate >= 40\.64, got 40"):
        found = dss_round(1.0, 1e-6, tails="thesis", **few)
    assert found == dss_round(1.0, 1e-6, **few)
    enough: Any = {"clients": 410, "rate": 0.1}
    assert dss_round(1.0, 1e-6, tails="thesis", **enough).delta > dss_round(1.0, 1e-6, **enough).delta


@pytest.mark.parametrize(("clients", "rate"), [(1000, 0.1), (10_000, 0.5)])
def test_the_rule_of_thumb_stays_below_its_budget_and_is_the_central_order(clients: int, rate: float) -> None:
    epsilon, delta, dim = 1.0, 1e-6, 20
    rule = cldp_rule(epsilon, delta, clients=clients, dim=dim, rate=rate)
    assert rule.rounds == round(clients / rate)
    # T = m n / q: epsilon0 is epsilon over both logarithms.
    assert rule.local_epsilon == pytest.approx(
        epsilon / math.sqrt(math.log(2 * clients / delta) * math.log(2 / delta))
    )
    drawn = round(rate * clients)
    once = drawn_round(lambda k: Shuffled(rule.local_epsilon, k), clients=clients, drawn=drawn)
    assert 0.1 * epsilon < epsilon_of(Repeat(once, rule.rounds), delta) < epsilon
    central = math.sqrt(dim * math.log(1 / delta)) / (clients * epsilon)
    assert rule.order == pytest.approx(central * math.log(clients / delta) ** 1.5)
    with pytest.raises(ParameterError, match="rate"):
        cldp_rule(epsilon, delta, clients=clients, dim=dim, rate=0.0)


@pytest.mark.parametrize("changes", [{"clients": 10**400}, {"dim": 10**400}, {"rate": 1e-320}])
def test_the_rule_of_thumb_counts_no_further_than_one_can(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(changes))} must be"):
        cldp_rule(1.0, 1e-6, **{"clients": 10, "dim": 3, **changes})
