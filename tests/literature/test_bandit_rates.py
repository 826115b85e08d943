"""Orders of the regret of private bandits: Table 6.1 of Girgis (2023)."""

from __future__ import annotations

import math

import pytest

from tacit.errors import ParameterError
from tacit.literature import BANDIT_ORDERS, bandit_order


def test_values_of_the_table() -> None:
    found = {name: bandit_order(name, horizon=10**6, epsilon=0.1) for name in BANDIT_ORDERS}
    assert found["SS18"] == found["HLW21"] == pytest.approx(1e4)
    assert found["ZCH20"] == pytest.approx(10**5.5)
    assert found["GCP22"] == pytest.approx(1e4 * 10 ** (1 / 3))
    assert found["CZ22"] == pytest.approx(10**3.6)
    assert found["central"] == found["shuffle"] == pytest.approx(1010)
    assert found["local"] == pytest.approx(11_000)
    assert found["lower"] == pytest.approx(1000)
    assert all(found["lower"] <= value for value in found.values())


@pytest.mark.parametrize("wrong", [{"name": "LS20"}, {"horizon": 0}, {"epsilon": 0.0}, {"epsilon": math.nan}])
def test_what_has_no_order_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        bandit_order(**{"name": "SS18", "horizon": 100, "epsilon": 1.0, **wrong})  # type: ignore[arg-type]
