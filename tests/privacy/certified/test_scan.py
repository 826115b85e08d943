"""The certificate of a noisy majority: equal to enumeration, and to independently computed tables."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.privacy import (
    Certified,
    epsilon_of,
)
from tacit.privacy.certified import (
    MOST_TEACHERS,
    Teachers,
    exact_worst_case,
    is_monotone,
    monotone_pairs,
    number_of_types,
    output_probabilities,
    types,
    vertex_pairs,
    worst_case,
    worst_types,
)
from tacit.randomness import simulated
from tacit.voting import Setting, Ties
from tests.voting.reference import brute_force, law, phi, random_pairs


def teachers(count: int, epsilon: float, delta: float = 0.0) -> Teachers:
    return Teachers(count=count, epsilon=epsilon, delta=delta)


def setting(voters: Teachers, target: float) -> Setting:
    """The same numbers as the reference takes them; its target_delta plays no part."""
    return Setting(
        teachers=voters.count,
        epsilon=voters.epsilon,
        delta=voters.delta,
        target_epsilon=target,
        target_delta=0.9,
        ties=None if voters.count % 2 else Ties.COIN,
    )


@settings(max_examples=30, deadline=None)
@given(
    count=st.sampled_from([1, 3, 5]),
    epsilon=st.floats(0.01, 2.0),
    delta=st.sampled_from([0.0, 1e-6, 0.05, 0.4]),
    m=st.floats(1.0, 2.0),
    seed=st.integers(0, 1000),
    rising=st.booleans(),
)
def test_the_scan_is_brute_force(
    count: int, epsilon: float, delta: float, m: float, seed: int, *, rising: bool
) -> None:
    gamma = simulated(seed, "gamma").random((count + 1) // 2)
    gamma = np.sort(gamma) if rising else gamma
    voters, target = teachers(count, epsilon, delta), min(m, count) * epsilon
    whole = brute_force(setting(voters, target), gamma)
    scanned = max(violator.value for violator in worst_types(voters, gamma, target))
    # Enumeration includes teachers that do not move; they need (1 - E) times a probability, below 0.
    still = (1 - math.exp(target)) * output_probabilities(count, gamma).min()
    assert max(scanned, still) == pytest.approx(whole, abs=1e-12)
    assert worst_case(voters, gamma, target).needed >= whole - 1e-15 or whole == pytest.approx(still)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05])
@pytest.mark.parametrize(("count", "affected"), [(1, 1), (3, 1), (5, 1), (5, 2), (5, 4), (5, 5), (4, 2)])
def test_a_change_that_reaches_few_teachers_is_brute_force(count: int, affected: int, delta: float) -> None:
    voters = Teachers(count=count, epsilon=0.4, delta=delta, affected=affected)
    asked = Setting(
        teachers=count,
        epsilon=0.4,
        delta=delta,
        target_epsilon=0.4,
        target_delta=0.9,
        ties=None if count % 2 else Ties.COIN,
        affected=affected,
    )
    for seed, rising in itertools.product(range(4), (False, True)):
        gamma = np.round(simulated(seed, "few").random((count + 1) // 2) * 2**20) / 2**20
        gamma = np.sort(gamma) if rising else gamma
        still = (1 - math.exp(0.4)) * output_probabilities(count, gamma).min()
        found = worst_case(voters, gamma, 0.4)
        assert max(found.needed, still) == pytest.approx(brute_force(asked, gamma), abs=1e-12)
        exact, counts = exact_worst_case(voters, gamma, 0.4)
        assert float(exact) == pytest.approx(found.needed, abs=1e-12)
        assert found.needed >= exact
        for case in (found.counts, counts):
            assert sum(case) == count
            assert sum(case[2:]) <= affected


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_one_reached_teacher_makes_the_plain_majority_free(delta: float) -> None:
    """For s = 1, gamma = 1 satisfies m = 1 with delta = Delta exactly."""
    voters = Teachers(count=11, epsilon=0.1, delta=delta, affected=1)
    assert worst_case(voters, np.ones(6), 0.1).needed == pytest.approx(delta, abs=1e-13)
    one = Certified(11, 0.1, delta, (1.0,) * 6, 0.1, affected=1)
    assert epsilon_of(one, delta + 1e-12) == pytest.approx(0.1, rel=1e-9)
    everywhere = Certified(11, 0.1, delta, (1.0,) * 6, 0.1)
    assert one.curve().forward(np.array([0.05])) < everywhere.curve().forward(np.array([0.05]))


@pytest.mark.parametrize("level", [301.0, 800.0, 1e308])
def test_absurd_levels_are_refused(level: float) -> None:
    for make in (
        lambda: Teachers(count=3, epsilon=level),
        lambda: Certified(3, level, 0.0, (0.5, 0.5), 1.0),
        lambda: Certified(3, 1.0, 0.0, (0.5, 0.5), level),
        lambda: worst_case(teachers(3, 1.0), np.ones(2), level),
        lambda: exact_worst_case(teachers(3, 1.0), np.ones(2), level),
        lambda: Setting(teachers=3, epsilon=150.0, target_epsilon=level),
    ):
        with pytest.raises(ParameterError, match="must be at most 300"):
            make()
    most = Certified(3, 300.0, 1e-9, (1.0, 1.0), 300.0)
    assert 0 <= epsilon_of(most, 1e-6) <= 600


def test_more_reached_teachers_need_more_and_all_are_the_default() -> None:
    gamma = np.sort(simulated(3, "more").random(6))
    needed = [
        worst_case(Teachers(count=11, epsilon=0.3, delta=1e-3, affected=s), gamma, 0.3).needed
        for s in range(1, 12)
    ]
    assert needed == sorted(needed)
    assert needed[-1] == worst_case(teachers(11, 0.3, 1e-3), gamma, 0.3).needed
    with pytest.raises(ParameterError, match="affected"):
        Teachers(count=11, epsilon=0.3, affected=12)
    with pytest.raises(ParameterError, match="would take too long"):
        Teachers(count=501, epsilon=0.3, affected=375)


@pytest.mark.parametrize("count", [2, 4, 6])
def test_the_scan_is_brute_force_for_even_numbers(count: int) -> None:

    gamma = simulated(count, "gamma").random(count // 2)
    voters = teachers(count, 0.4, 0.02)
    asked = Setting(
        teachers=count, epsilon=0.4, delta=0.02, target_epsilon=0.6, target_delta=0.9, ties=Ties.COIN
    )
    assert worst_case(voters, gamma, 0.6).needed == pytest.approx(brute_force(asked, gamma), abs=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_three_vertices_suffice_for_a_monotone_gamma(delta: float) -> None:
    voters = teachers(11, 0.3, delta)
    for seed in range(6):
        gamma = np.sort(simulated(seed, "monotone").random(6))
        assert is_monotone(gamma)
        everything = max(violator.value for violator in worst_types(voters, gamma, 0.7))
        chain = worst_case(voters, gamma, 0.7)
        assert chain.needed == pytest.approx(everything, abs=1e-13)
        assert sum(chain.counts) == 11
    # And not for others: here the worst case is off the chain.
    gamma = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    upper, lower, _ = monotone_pairs(voters, gamma)
    assert worst_case(voters, gamma, 0.7).needed > float((upper - math.exp(0.7) * lower).max()) + 1e-5


@pytest.mark.parametrize("delta", [0.0, 0.03])
def test_the_reported_case_needs_what_is_reported(delta: float) -> None:
    voters = teachers(9, 0.5, delta)
    pairs = vertex_pairs(voters)
    for seed in range(5):
        gamma = simulated(seed, "case").random(5)
        found = worst_case(voters, gamma, 1.0)
        here, there = (law(np.repeat(pairs[:, side], found.counts)) for side in (0, 1))
        chance = phi(9, gamma)
        assert chance @ here - math.e * (chance @ there) == pytest.approx(found.needed, abs=1e-12)


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_types_are_all_different_and_as_many_as_counted(*, monotone: bool, delta: float) -> None:
    for count in (1, 2, 5, 7):
        found = list(types(teachers(count, 1.0, delta), monotone=monotone))
        assert (
            len(set(found)) == len(found) == number_of_types(teachers(count, 1.0, delta), monotone=monotone)
        )
        assert {sum(counts) for counts in found} == {count}
    assert number_of_types(teachers(41, 0.1, 1e-5), monotone=False) == 73_629_072  # C(48, 7)
    assert number_of_types(teachers(101, 0.1), monotone=False) == 182_104


def test_random_teachers_never_need_more() -> None:
    voters = teachers(7, 0.4, 0.02)
    asked = setting(voters, 0.9)
    rng = simulated(1, "teachers")
    gamma = rng.random(4)
    worst, chance = worst_case(voters, gamma, 0.9).needed, phi(7, gamma)
    for _ in range(2000):
        p, q = random_pairs(asked, rng)
        assert chance @ law(p) - math.exp(0.9) * (chance @ law(q)) <= worst


TABLE = {  # delta by m, four digits
    (11, 0.0): {1: 8.917e-2, 2: 5.230e-2, 3: 2.568e-2, 4: 9.473e-3, 5: 1.992e-3},
    (11, 1e-5): {1: 8.920e-2, 2: 5.233e-2, 3: 2.571e-2, 4: 9.495e-3, 5: 2.008e-3, 6: 6.000e-5},
    (35, 0.0): {
        1: 1.939e-1,
        2: 1.566e-1,
        3: 1.229e-1,
        4: 9.343e-2,
        5: 6.845e-2,
        6: 4.809e-2,
        8: 2.039e-2,
        10: 6.659e-3,
        15: 5.028e-5,
    },
    (101, 0.0): {
        1: 3.532e-1,
        2: 3.213e-1,
        3: 2.902e-1,
        4: 2.601e-1,
        5: 2.312e-1,
        6: 2.037e-1,
        8: 1.538e-1,
        10: 1.115e-1,
        15: 4.047e-2,
        20: 1.017e-2,
    },
}


@pytest.mark.parametrize(
    ("count", "delta", "m", "needed"), [(*key, m, d) for key, row in TABLE.items() for m, d in row.items()]
)
def test_the_plain_majority_needs_the_tabled_delta(count: int, delta: float, m: int, needed: float) -> None:
    found = worst_case(teachers(count, 0.1, delta), np.ones((count + 1) // 2), m * 0.1)
    assert found.delta == pytest.approx(needed, rel=5e-4)


@pytest.mark.parametrize(("count", "m"), [(11, 6), (35, 18)])
def test_the_plain_majority_needs_no_delta_from_the_majority_of_its_votes_on(count: int, m: int) -> None:
    """The zeros of the table, in whole numbers: (K + 1) / 2 votes are enough, one less is not."""
    voters, ones = teachers(count, 0.1), np.ones((count + 1) // 2)
    level = m * 0.1
    if Fraction(level) < m * Fraction(0.1):
        # 1.8 is 5.5e-17 below 18 times the float 0.1: short of the target by that, it needs 5.1e-22.
        assert 0 < exact_worst_case(voters, ones, level)[0] < 1e-21
        level = math.nextafter(level, math.inf)
    for at in (level, (m + 2) * 0.1):
        assert exact_worst_case(voters, ones, at)[0] == 0
        assert 0 <= worst_case(voters, ones, at).delta < 1e-15
    assert exact_worst_case(voters, ones, (m - 1) * 0.1)[0] > 8e-7


def test_the_majority_of_2m_minus_1_needs_exactly_the_union_of_m_deltas() -> None:
    assert worst_case(teachers(3, 0.1, 0.01), np.ones(2), 0.2).delta == pytest.approx(0.0199, rel=1e-12)
    assert worst_case(teachers(11, 0.1, 1e-5), np.ones(6), 0.6).delta == pytest.approx(5.99985e-5, rel=1e-7)
    assert worst_case(teachers(3, math.log(2)), np.ones(2), math.log(2)).delta == pytest.approx(
        2 / 9, rel=1e-12
    )
    assert worst_case(teachers(35, 0.1), np.ones(18), 1.81).delta == 0.0


def test_too_many_cases_are_refused() -> None:
    gamma = np.ones(MOST_TEACHERS // 2 + 2)
    gamma[-1] = 0.5
    with pytest.raises(ParameterError, match="must be monotone for 63 teachers"):
        worst_case(teachers(MOST_TEACHERS + 2, 0.1, 1e-5), gamma, 0.2)
