"""A histogram of tables that trust in nothing but a sum: its law, price and intervals."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import BudgetError, ParameterError
from tacit.frequencies import FrequenciesQuery, SummedHistogram, estimate_frequencies
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel, delta_of
from tacit.randomness import secure, simulated

AGGREGATE, LOCAL = TrustModel.AGGREGATE, TrustModel.LOCAL
BUDGET = PrivacyBudget(1.0, 1e-6)
SIZES = (300, 200, 500)


def histogram(k: int = 10, **fields: Any) -> SummedHistogram:
    usual: dict[str, Any] = {"k": k, "sizes": SIZES, "budget": BUDGET}
    return SummedHistogram.calibrated(**(usual | fields))


def query(**fields: Any) -> FrequenciesQuery:
    usual: dict[str, Any] = {"k": 10, "n": 1000, "budget": BUDGET, "trust": AGGREGATE, "parties": SIZES}
    return FrequenciesQuery.calibrated(**(usual | fields))


def test_counts_have_the_noise_of_all_tables_and_no_bias() -> None:
    made, k = histogram(5000), 5000
    values = np.arange(1000) % 7
    off = made.counts(values, np.random.default_rng(0)) - np.bincount(values, minlength=k)
    # 5,000 counts of Gaussian noise: six deviations of mean and variance.
    assert abs(off.mean()) < 6 * made.std / math.sqrt(k)
    assert off.var() == pytest.approx(made.std**2, rel=6 * math.sqrt(2 / k))
    assert made.mse(1000) == pytest.approx(k * made.std**2 / 1e6)


def test_half_the_noise_costs_more_than_is_claimed() -> None:
    made = histogram()
    less = msgspec.structs.replace(made.mean.noise, noise_multiplier=made.mean.noise.noise_multiplier / 2)
    halved = msgspec.structs.replace(made.mean, noise=less)
    assert delta_of(made.event(), 1.0) <= 1e-6
    assert delta_of(halved.event(1, AGGREGATE), 1.0) > 1e-3


def test_colluding_tables_leave_their_share_out_of_the_price() -> None:
    all_of_them, fewer = histogram(sizes=(10,) * 12), histogram(sizes=(10,) * 12, colluding=8)
    assert fewer.mean.shares == 4
    assert fewer.std == pytest.approx(math.sqrt(3) * all_of_them.std, rel=0.01)
    # What is left without the colluders' noise is exactly what the budget allows.
    for made in (all_of_them, fewer):
        assert 0.98e-6 < delta_of(made.event(), 1.0) <= 1e-6
    assert delta_of(all_of_them.event(LOCAL), 1.0) > 0.01


def test_the_price_does_not_depend_on_the_number_of_values_nor_of_rows() -> None:
    one, many = histogram(2), histogram(10**5, sizes=(10**6, 10**7))
    assert many.std == pytest.approx(one.std, rel=0.01)
    assert many.mean.width < 35
    # All rows of all tables may hold one value: half of the residues are for counts that large.
    crowd = histogram(sizes=(2**17,) * 16).mean
    assert 2 ** (crowd.width - 1) > 2**21 * crowd.noise.steps


def test_intervals_hold_at_their_confidence() -> None:
    made, k, misses = histogram(200), 200, 0
    truth = np.bincount(np.arange(1000) % 3, minlength=k) / 1000
    rng = np.random.default_rng(1)
    for _ in range(100):
        band = made.band(made.counts(np.arange(1000) % 3, rng), 1000, 0.5)
        misses += bool(np.any((truth < band.lower) | (truth > band.upper)))
    # Binomial, at most 1/2 of 100, and not far below: six deviations.
    assert 15 <= misses <= 80


def test_a_query_says_what_is_seen_of_the_sum_and_of_one_table() -> None:
    asked = query(colluding=1)
    assert asked.mechanism == "summed-histogram"
    assert asked.tables == 3
    assert asked.price.epsilon <= 1
    assert asked.price_alone is not None
    assert asked.price_alone.epsilon > 1.2
    assert "up to 1 of them together" in asked.price.observer
    assert any(
        "nobody sees a message before all of them are added up" in one for one in asked.price.assumptions
    )
    found = estimate_frequencies(np.arange(1000) % 10, asked, rng=secure())
    assert not found.guarantee.simulated
    assert np.abs(found.estimates - 0.1).max() < 0.1
    assert found.guarantee_alone is not None
    assert estimate_frequencies(np.arange(1000) % 10, asked, rng=simulated(0, "x")).guarantee.simulated


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"parties": (1000,)}, "two tables or more"),
        ({"parties": (500, 400)}, "parties must have 1000 units together, got 900"),
        ({"parties": (1000, 0)}, "a number of units of a table"),
        ({"colluding": 2}, "colluding must be at most 1 of 3 tables"),
        ({"colluding": -1}, "colluding must be"),
        ({"budget": PrivacyBudget(1.0)}, "delta must be > 0 under aggregate trust"),
        ({"mechanism": "krr"}, "under aggregate trust none does"),
        ({"trust": LOCAL}, "parties and colluding are for aggregate trust, got 3 parties"),
        ({"neighbours": Neighbours(Relation.ADD_REMOVE)}, "replace-one"),
        ({"k": 1}, "k must be"),
    ],
)
def test_what_has_no_price_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        query(**fields)


def test_too_small_a_budget_and_other_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="a number of units of a table must be"):
        SummedHistogram.calibrated(k=3, sizes=[5, 10**400], budget=PrivacyBudget(1.0, 1e-6))
    with pytest.raises(BudgetError):
        query(budget=PrivacyBudget(1e-13, 1e-12))
    with pytest.raises(ParameterError, match=r"values must have shape \(1000,\)"):
        histogram().counts([0, 1], np.random.default_rng(0))
    with pytest.raises(ParameterError, match="confidence must leave 1e-9"):
        histogram().band(np.zeros(10), 1000, 1 - 1e-12)
    made = histogram()
    with pytest.raises(ParameterError, match="count on a share of every honest table"):
        SummedHistogram(mean=made.mean, sizes=(10, 10))
