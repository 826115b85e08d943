"""The divergence of the clones pair: against the same law in groups, and against exact sums.

Its tables, and other bounds beside it: tests/literature/shuffling/test_upper.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.privacy.renyi import renyi_to_epsilon
from tacit.privacy.shuffling.pair import ShuffledPair
from tacit.privacy.shuffling.renyi import clones_renyi

ORDERS = np.array([2.0, 4, 8, 16, 32, 64])


@pytest.mark.parametrize("blanket", [None, "response"])
@pytest.mark.parametrize(("e", "n"), [(0.5, 10), (1.0, 500), (3.0, 100), (2.0, 1000), (1.0, 10**5)])
def test_clones_agree_with_the_dominating_pair(e: float, n: int, blanket: str | None) -> None:
    share = 2 / (math.exp(e) + 1) if blanket else math.exp(-e)
    pair = ShuffledPair.randomized_response(e, n, blanket=share)
    mine = clones_renyi(e, n, ORDERS, blanket=share if blanket else None, accuracy=1e-3 if n > 1e4 else 1e-6)
    assert mine == pytest.approx(pair.renyi(ORDERS), rel=1e-8 if n <= 1000 else 2e-3)


def test_clones_divergences_compose_to_the_value_of_the_spec() -> None:
    orders = np.arange(2.0, 200.0)
    found = renyi_to_epsilon(orders, 100 * clones_renyi(0.5, 10_000, orders), 1e-6)
    assert found.epsilon == pytest.approx(0.26278, rel=2e-3)


def test_large_orders_keep_the_whole_left_tail() -> None:
    # The full sum over all counts of others, at orders whose moments sit in the far left tail.
    orders = np.array([300.0, 1e3, 3e3, 1e4])
    exact = np.array([0.13026223, 0.61064836, 1.53271932, 1.85984846])
    found = clones_renyi(2.0, 20_000, orders)
    assert np.all(found >= exact * (1 - 1e-8))
    assert np.all(found <= exact * 1.04)
