"""The certificate of a noisy majority: equal to enumeration, rounded up, and the price of its event."""

from __future__ import annotations

import decimal
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.privacy import (
    ApproximateDP,
    Certified,
    PureDP,
    Repeat,
    curve_of,
    delta_of,
    epsilon_of,
    event_from_builtins,
    pure_epsilon_of,
    rho_of,
)
from tacit.privacy.certified import (
    GRID,
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
    """Spec 02 §10: for s = 1, gamma = 1 satisfies m = 1 with delta = Delta exactly."""
    voters = Teachers(count=11, epsilon=0.1, delta=delta, affected=1)
    assert worst_case(voters, np.ones(6), 0.1).needed == pytest.approx(delta, abs=1e-13)
    one = Certified(11, 0.1, delta, (1.0,) * 6, 0.1, affected=1)
    assert epsilon_of(one, delta + 1e-12) == pytest.approx(0.1, rel=1e-9)
    everywhere = Certified(11, 0.1, delta, (1.0,) * 6, 0.1)
    assert one.curve().forward(np.array([0.05])) < everywhere.curve().forward(np.array([0.05]))


@pytest.mark.parametrize("target", [0.3, 3.0, 30.0, 150.0])
@pytest.mark.parametrize("delta", [0.0, 2.0**-10])
def test_whole_numbers_are_above_the_truth_by_next_to_nothing(delta: float, target: float) -> None:
    """The truth in decimals of 300 digits; rounding any one step the wrong way would fall below it."""
    decimal.getcontext().prec = 300
    one, d = Decimal(1), Decimal(delta)
    for epsilon, seed in itertools.product((0.1, 0.7, 2.0), range(3)):
        gamma = np.round(simulated(seed, "whole").random(2) * 2**52) / 2**52
        b = (one - d) / (Decimal(epsilon).exp() + 1)
        pairs = [(0 * one, 0 * one), (one, one), (d, 0 * one), (0 * one, d)]
        pairs += [(one - d, one), (one, one - d), (one - b, b), (b, one - b)]
        chances = [Decimal(c) for c in output_probabilities(3, gamma).tolist()]
        truth = max(
            Decimal(
                sum(c * (x - Decimal(target).exp() * y) for c, x, y in zip(chances, here, there, strict=True))
            )
            for chosen in itertools.combinations_with_replacement(range(8), 3)
            if any(pairs[v][0] != pairs[v][1] for v in chosen)
            for here, there in [[decimal_law([pairs[v][side] for v in chosen]) for side in (0, 1)]]
        )
        found, _ = exact_worst_case(teachers(3, epsilon, delta), gamma, target)
        above = Decimal(found.numerator) / Decimal(found.denominator) - truth
        assert 0 <= above <= Decimal(2) ** -100 * max(one, abs(truth))


def decimal_law(p: list[Decimal]) -> list[Decimal]:
    """The law of the number of ones, in decimals."""
    found = [Decimal(1)]
    for chance in p:
        none, more = (
            [x * (1 - chance) for x in found] + [Decimal(0)],
            [Decimal(0)] + [x * chance for x in found],
        )
        found = [x + y for x, y in zip(none, more, strict=True)]
    return found


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
    assert number_of_types(teachers(41, 0.1, 1e-5), monotone=False) == 73_629_072  # spec 02 §12.1
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


TABLE = {  # spec 02 §10: delta by m, four digits
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
    """The zeros of spec 02 §10, in whole numbers: (K + 1) / 2 votes are enough, one less is not."""
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


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05])
def test_floats_are_rounded_above_exact_numbers_by_almost_nothing(delta: float) -> None:
    for seed, rising in itertools.product(range(4), (True, False)):
        gamma = np.floor(simulated(seed, "exact").random(5) * GRID) / GRID
        gamma = np.sort(gamma) if rising else gamma
        voters = teachers(9, 0.3, delta)
        exact, counts = exact_worst_case(voters, gamma, 0.6)
        assert sum(counts) == 9
        rounded = worst_case(voters, gamma, 0.6).needed
        assert exact <= Fraction(rounded) <= exact + Fraction(1e-12)
        if rising:
            assert exact == exact_worst_case(voters, gamma, 0.6, full=True)[0]


def test_exact_numbers_agree_with_fractions() -> None:
    # epsilon = ln 2 up to its rounding: then a = (2 + D)/3 and E = 4 are known fractions.
    gamma, d = [Fraction(1, 4), Fraction(7, 8)], Fraction(1, 16)
    chance = [(1 - gamma[1]) / 2, (1 - gamma[0]) / 2, (1 + gamma[0]) / 2, (1 + gamma[1]) / 2]
    a = (2 + d) / 3
    pairs = [
        (Fraction(0), Fraction(0)),
        (Fraction(1), Fraction(1)),
        (Fraction(0), d),
        (d, Fraction(0)),
        (1 - d, Fraction(1)),
        (Fraction(1), 1 - d),
        (a, 1 - a),
        (1 - a, a),
    ]

    def mean(p: list[Fraction]) -> Fraction:
        values = list(chance)
        for one in p:
            values = [(1 - one) * low + one * high for low, high in itertools.pairwise(values)]
        return values[0]

    best = max(
        mean([pairs[v][0] for v in chosen]) - 4 * mean([pairs[v][1] for v in chosen])
        for chosen in itertools.product(range(8), repeat=3)
    )
    found, _ = exact_worst_case(
        teachers(3, math.log(2), 1 / 16), np.array([0.25, 0.875]), 2 * math.log(2), full=True
    )
    assert float(found) == pytest.approx(float(best), abs=1e-15)


def test_a_gamma_off_the_grid_has_no_exact_certificate() -> None:
    with pytest.raises(ParameterError, match="multiples of 2"):
        exact_worst_case(teachers(3, 1.0), np.array([1 / 3, 1.0]) * (1 - 2.0**-53), 1.0)


def test_too_many_cases_are_refused() -> None:
    gamma = np.ones(MOST_TEACHERS // 2 + 2)
    gamma[-1] = 0.5
    with pytest.raises(ParameterError, match="must be monotone for 63 teachers"):
        worst_case(teachers(MOST_TEACHERS + 2, 0.1, 1e-5), gamma, 0.2)


@pytest.mark.parametrize(
    ("gamma", "message"),
    [
        ((0.5,), "must have shape"),
        ((0.5, 1.1), r"in \[0, 1\]"),
        ((0.5, math.nan), r"in \[0, 1\]"),
        ((-0.1, 1.0), r"in \[0, 1\]"),
    ],
)
def test_what_is_no_noise_function_is_refused(gamma: tuple[float, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Certified(3, 1.0, 0.0, gamma, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teachers": 0}, "teachers must be a whole number"),
        ({"teachers": 10**9}, "teachers must be a whole number from 1 to 501"),
        ({"epsilon": 0.0}, "epsilon must be a finite number > 0"),
        ({"epsilon": math.nan}, "epsilon must be a finite number > 0"),
        ({"delta": 1.0}, "delta must be in"),
        ({"target_epsilon": -1.0}, "target_epsilon must be a finite number > 0"),
        ({"gamma": [0.5, 1.0]}, "gamma must be a tuple"),
    ],
)
def test_numbers_out_of_range_are_refused(change: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {
        "teachers": 3,
        "epsilon": 1.0,
        "delta": 0.0,
        "gamma": (0.5, 1.0),
        "target_epsilon": 1.0,
    }
    with pytest.raises(ParameterError, match=message):
        Certified(**{**fields, **change})


def test_the_curve_of_the_event_is_the_certificate_at_every_level() -> None:
    for gamma in ((0.7, 0.7, 0.92, 0.99, 0.99, 0.99), (1.0, 0.5, 1.0, 0.6, 1.0, 1.0)):
        event, voters = Certified(11, 0.3, 1e-6, gamma, 0.9), teachers(11, 0.3, 1e-6)
        for epsilon in (0.0, 0.2, 0.55, 0.9):
            exact = worst_case(voters, np.array(gamma), epsilon).delta
            priced = delta_of(event, epsilon)
            assert priced >= exact
            assert priced <= exact * (1 + 1e-9) + (0.0 if is_monotone(gamma) else 0.003)


def test_one_answer_costs_its_target_and_many_less_than_their_targets() -> None:
    gamma = (0.71, 0.71, 0.926, 0.999, 0.999, 0.999)
    event = Certified(11, 0.1, 1e-6, gamma, 0.3)
    delta = event.certified_delta
    assert 0 < delta < 1e-3
    assert epsilon_of(event, delta * (1 + 1e-9)) <= 0.3 * (1 + 1e-9)
    total = 20 * delta + 1e-5
    assert epsilon_of(Repeat(event, 20), total) < 0.9 * epsilon_of(
        Repeat(ApproximateDP(0.3, delta), 20), total
    )


def test_a_pure_certificate_is_a_pure_level() -> None:
    event = Certified(5, 0.5, 0.0, (0.1, 0.45, 0.9), 0.5)
    assert event.certified_delta == 0.0
    assert pure_epsilon_of(event) == 0.5
    assert rho_of(event) == pytest.approx(rho_of(PureDP(0.5)))
    weak = Certified(5, 0.5, 0.0, (1.0, 1.0, 1.0), 0.5)
    assert math.isinf(pure_epsilon_of(weak))
    assert math.isinf(rho_of(weak))


def test_a_forged_event_costs_more_not_less() -> None:
    honest = {
        "event": "Certified",
        "teachers": 5,
        "epsilon": 0.5,
        "delta": 0.0,
        "gamma": [0.1, 0.45, 0.9],
        "target_epsilon": 0.5,
    }
    for forged in ({"gamma": [1.0, 1.0, 1.0]}, {"target_epsilon": 0.01}):
        price = epsilon_of(event_from_builtins({**honest, **forged}), 1e-6)
        assert price >= epsilon_of(event_from_builtins(honest), 1e-6)
    with pytest.raises(ParameterError, match="no field 'target_delta'"):
        event_from_builtins({**honest, "target_delta": 0.0})


def test_the_curve_stays_finite_far_out() -> None:
    curve = curve_of(Certified(3, 1.0, 1e-6, (0.5, 1.0), 1.0), accuracy=1e-9)
    far = curve.delta(np.array([5.0, 800.0, 1e6]))
    assert np.all(np.isfinite(far))
    assert np.all(np.diff(far) <= 0)
    assert far[-1] > 0  # the delta of the teachers never goes away
