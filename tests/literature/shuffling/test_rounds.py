"""Rounds of CLDP-SGD and DSS-SGD by every accountant: the values of the chapter, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.literature.shuffling.rounds import WHOLE_ORDERS, cldp_epsilons, cldp_renyi, dss_renyi
from tacit.literature.shuffling.subsampled import subsampled_renyi
from tacit.privacy import renyi_to_epsilon


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
