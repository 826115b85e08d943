"""The closed forms of composition against printed totals."""

from __future__ import annotations

import math

import pytest

from tacit.errors import ParameterError
from tacit.privacy import ApproximateDP, Compose, Repeat, Sampled, delta_of, epsilon_of
from tacit.privacy.composition import basic_composition, general_composition

TABLES = [  # per query (epsilon, delta); totals at 20, 50 and 100 queries: Jiang (2025), Table 3.2
    (0.0892, 1e-4, (1.704, 0.002), (2.837, 0.005), (4.202, 0.010)),
    (0.0852, 1e-4, (1.620, 0.002), (2.695, 0.005), (3.988, 0.010)),
    (0.2676, 3e-4, (5.352, 0.006), (9.901, 0.015), (15.044, 0.030)),
    (0.2556, 3e-4, (5.112, 0.006), (9.382, 0.015), (14.219, 0.030)),
    (0.4460, 5e-4, (8.920, 0.010), (18.428, 0.025), (28.926, 0.049)),
    (0.4260, 5e-4, (8.520, 0.010), (17.398, 0.025), (27.223, 0.049)),
    (0.6244, 7e-4, (12.488, 0.014), (28.392, 0.035), (45.683, 0.068)),
    (0.5964, 7e-4, (11.928, 0.014), (26.738, 0.035), (42.873, 0.068)),
]


@pytest.mark.parametrize(("epsilon", "delta", "at_20", "at_50", "at_100"), TABLES)
def test_totals_of_tables_3_2_and_b3_to_b7(
    epsilon: float,
    delta: float,
    at_20: tuple[float, float],
    at_50: tuple[float, float],
    at_100: tuple[float, float],
) -> None:
    for count, printed in ((20, at_20), (50, at_50), (100, at_100)):
        total = general_composition(epsilon, delta, count, 1e-4)
        assert (round(total.epsilon, 3), round(total.delta, 3)) == printed


@pytest.mark.parametrize(
    ("count", "epsilon", "delta"),
    [
        (10, 0.6452, 0.1001),
        (13, 0.7574, 0.1001),
        (15, 0.8271, 0.1001),
        (20, 0.9882, 0.1002),
        (35, 1.40328, 0.1003),
    ],
)
def test_totals_of_table_b1(count: int, epsilon: float, delta: float) -> None:
    total = general_composition(0.1, 1e-5, count, 0.1)
    assert total.epsilon == pytest.approx(epsilon, abs=5.1e-5)
    assert round(total.delta, 4) == delta


def test_active_term_is_named() -> None:
    assert general_composition(0.2676, 3e-4, 20, 1e-4).term == "basic"
    assert general_composition(0.2676, 3e-4, 50, 1e-4).term == "KOV"
    # At a large slack ln(e + epsilon sqrt(T) / delta') is the smaller one.
    assert general_composition(0.0892, 1e-4, 50, 1e-4).term == "KOV, large slack"
    total = general_composition(0.1, 1e-3, 3, 1e-9)
    assert total.term == "basic"
    assert total.delta == pytest.approx(1 - 0.999**3, rel=1e-12)  # basic composition needs no slack
    assert general_composition(0.1, 1e-3, 3, 1.0).epsilon <= 0.3


def test_releases_of_different_levels_cost_less_than_the_printed_bound() -> None:
    # Cheu, Joseph, Mao and Peng (2022), Lemma 3.3, as printed, with slack 1e-6.
    drift = 20 * 0.1 * math.expm1(0.1) + 50 * 0.03 * math.expm1(0.03)
    epsilon = drift + 2 * math.sqrt(math.log(1e6) * (20 * 0.01 + 50 * 0.0009))
    whole = Compose((Repeat(ApproximateDP(0.1, 1e-9), 20), Repeat(ApproximateDP(0.03, 1e-9), 50)))
    assert delta_of(whole, epsilon) <= 1e-6 + 7e-8


def test_a_claim_on_a_sample_costs_the_amplified_claim() -> None:
    # (ln(1 + q (e^epsilon - 1)), q delta): Balle, Barthe and Gaboardi (2018), Theorems 8 and 9.
    event = Sampled(ApproximateDP(1.0, 1e-4), 0.01)
    assert delta_of(event, 0.017036863236) == pytest.approx(1e-6, rel=1e-6)
    assert epsilon_of(event, 1.000001e-6) == pytest.approx(0.017036863236, rel=1e-6)


def test_what_is_no_claim_is_refused() -> None:
    for epsilon, delta, count, message in (
        (math.nan, 0.0, 3, "epsilon must be a finite number > 0"),
        (0.1, 1.0, 3, r"delta must be in \[0, 1\)"),
        (0.1, 0.0, 0, "count must be a whole number from 1 to"),
    ):
        with pytest.raises(ParameterError, match=message):
            basic_composition(epsilon, delta, count)
        with pytest.raises(ParameterError, match=message):
            general_composition(epsilon, delta, count, 0.1)
    for slack in (0.0, 1.1, math.nan):
        with pytest.raises(ParameterError, match=r"slack must be in \(0, 1"):
            general_composition(0.1, 0.0, 3, slack)
