"""Noise functions with a formula: tabled values, and what their theorems promise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.privacy import general_composition
from tacit.voting import (
    Setting,
    allowance,
    certify,
    full_gamma,
    gamma_constant,
    gamma_double_subsampling,
    gamma_subsampling,
    output_probability,
    rr_probability_composed,
    rr_probability_tight,
)

SUBSAMPLING = {  # K = 11, l = 6..11
    1: [1 / 11, 3 / 11, 5 / 11, 7 / 11, 9 / 11, 1],
    3: [0.1515152, 0.4424242, 0.6969697, 0.8909091, 1, 1],
    5: [0.2164502, 0.6060606, 0.8787879, 1, 1, 1],
    7: [0.3030303, 0.7878788, 1, 1, 1, 1],
    9: [0.4545455, 1, 1, 1, 1, 1],
    11: [1, 1, 1, 1, 1, 1],
}


@pytest.mark.parametrize("size", SUBSAMPLING)
def test_subsampling_has_the_tabled_values(size: int) -> None:
    assert gamma_subsampling(11, size).tolist() == pytest.approx(SUBSAMPLING[size], abs=5e-8)


def test_subsampling_facts() -> None:
    assert full_gamma(5, gamma_subsampling(5, 3)).tolist() == [1, 1, 0.4, 0.4, 1, 1]
    for k in (1, 5, 12, 30):
        ones = np.arange(k // 2 + 1, k + 1)
        assert gamma_subsampling(k, 1).tolist() == pytest.approx((2 * ones / k - 1).tolist(), abs=1e-15)
        for half in range(1, k // 2 + 1):
            assert np.array_equal(gamma_subsampling(k, 2 * half), gamma_subsampling(k, 2 * half - 1))
        for low, high in itertools.pairwise(range(1, k + 1, 2)):
            assert np.all(gamma_subsampling(k, low) <= gamma_subsampling(k, high))
        assert np.array_equal(gamma_subsampling(k, k), np.ones((k + 1) // 2))
        assert np.all(np.diff(gamma_subsampling(k, min(3, k))) >= 0)


def test_subsampling_of_equal_votes_does_not_depend_on_how_many_there_are() -> None:
    # Lemma B.2.9: P(1) = P(Bin(m, p) > m/2).
    for k, p in itertools.product((5, 9, 31), (0.1, 0.37, 0.8)):
        exact = stats.binom.sf(2, 5, p)
        assert float(output_probability(gamma_subsampling(k, 5), np.full(k, p))) == pytest.approx(
            exact, rel=1e-12
        )


def test_subsampling_is_the_enumerated_majority_of_samples() -> None:
    for k, size, ones in itertools.product((5, 6), (1, 2, 3, 4, 5), (3, 4, 5)):
        if 2 * ones <= k:
            continue
        votes = [1] * ones + [0] * (k - ones)
        score = [Fraction(2 * sum(sample), size) for sample in itertools.combinations(votes, size)]
        leads = sum(1 if s > 1 else 0.5 if s == 1 else 0 for s in score) / len(score)
        assert gamma_subsampling(k, size)[ones - k // 2 - 1] == pytest.approx(2 * leads - 1, abs=1e-15)


def test_double_subsampling_takes_2m_minus_1_votes() -> None:
    for m in (1, 2, 3, 5):
        assert np.array_equal(gamma_double_subsampling(11, m), gamma_subsampling(11, 2 * m - 1))
    assert np.array_equal(gamma_double_subsampling(11, 6), np.ones(6))
    assert np.array_equal(gamma_double_subsampling(11, 3.9), gamma_subsampling(11, 5))
    # The printed form: 2 h_m - 1 with h_m = sum_{i >= m} C(l, i) C(K-l, 2m-1-i) / C(K, 2m-1).
    for m, ones in itertools.product((1, 2, 4), range(6, 12)):
        h = stats.hypergeom(11, ones, 2 * m - 1).sf(m - 1)
        assert gamma_double_subsampling(11, m)[ones - 6] == pytest.approx(2 * h - 1, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("teachers", [3, 7, 11, 21])
def test_double_subsampling_costs_m_votes_whoever_the_teachers_are(teachers: int, epsilon: float) -> None:
    # Theorem 3.5.1 of Jiang (2025) without its restrictions, over all vertices.
    for delta, m in itertools.product((0.0, 1e-5, 0.05), range(1, (teachers + 1) // 2 + 1)):
        asked = allowance(teachers, epsilon, m, delta=delta)
        found = certify(gamma_double_subsampling(teachers, m), asked)
        assert found.delta_required <= asked.target_delta + 4e-14 * math.exp(asked.target_epsilon)


def test_the_tight_delta_of_double_subsampling_is_attained_by_the_majority() -> None:
    for m, delta in itertools.product((2, 4), (0.01, 0.2)):
        asked = allowance(2 * m - 1, 0.3, m, delta=delta)
        needed = certify(np.ones(m), asked).delta_required
        assert needed == pytest.approx(asked.target_delta, rel=1e-12)


def test_constants_from_composition_have_the_tabled_values() -> None:
    # Jiang (2025), Lemma B.1.1: delta = 0, K = 11.
    for m, constant in {1: 0.099813, 3: 0.297461, 5: 0.489328, 7: 0.672052}.items():
        assert rr_probability_composed(allowance(11, 0.1, m)) == pytest.approx(constant, abs=5e-7)
    for m, constant in {3: 0.2974789, 5: 0.4893499}.items():
        assert rr_probability_composed(allowance(11, 0.1, m, delta=1e-5)) == pytest.approx(constant, abs=5e-8)
    assert rr_probability_composed(allowance(3, math.log(2), 1)) == pytest.approx(3 / 7, rel=1e-12)


def test_constants_of_table_b1() -> None:
    # Jiang (2025), K = 35: both guarantees by general composition, the constants from printed digits.
    whole = general_composition(0.1, 1e-5, 35, 0.1)
    assert whole.epsilon / 0.1 == pytest.approx(14.0328, abs=5e-5)
    assert whole.delta == pytest.approx(0.1003, abs=5e-5)
    rows = {
        10: (6.4521, 0.1001, 0.590313),
        13: (7.5742, 0.1001, 0.659692),
        15: (8.2708, 0.1001, 0.701394),
        20: (9.8823, 0.1002, 0.793564),
    }
    for size, (m, delta, constant) in rows.items():
        part = general_composition(0.1, 1e-5, size, 0.1)
        assert part.epsilon / 0.1 == pytest.approx(m, abs=5e-5)
        assert part.delta == pytest.approx(delta, abs=5e-5)
        asked = Setting(teachers=35, epsilon=0.1, delta=1e-5, target_epsilon=m * 0.1, target_delta=delta)
        found = rr_probability_composed(asked, votes_epsilon=1.40328, votes_delta=0.1003)
        assert found == pytest.approx(constant, abs=3e-6)  # what rounding the parameters moves
        # General composition buys nothing here: the plain majority meets the target by itself.
        assert certify(np.ones(18), asked).delta_required < 0.42 * delta


def test_where_the_votes_cost_no_more_than_the_target_nothing_is_added() -> None:
    asked = allowance(11, 0.1, 3, delta=1e-5)
    same = {"votes_epsilon": asked.target_epsilon, "votes_delta": asked.target_delta}
    assert rr_probability_composed(asked, **same) == pytest.approx(1.0, abs=1e-12)
    # tau < m: the worst vertex is (lambda, 0), which the printed formula overlooks.
    half, lam = math.expm1(0.3) / 2, 0.4
    found = rr_probability_composed(asked, votes_epsilon=0.1, votes_delta=lam)
    assert found == pytest.approx((half + asked.target_delta) / (lam + half), rel=1e-12)


def test_the_tight_constant_has_the_tabled_values() -> None:
    for m, constant in {1: 0.370947, 3: 0.871986, 5: 0.993896, 7: 1.0}.items():
        assert rr_probability_tight(allowance(11, 0.1, m)) == pytest.approx(constant, abs=5e-7)
    for m, constant in {10: 0.885116, 20: 0.996826, 30: 0.999986, 51: 1.0}.items():
        assert rr_probability_tight(allowance(101, 0.1, m)) == pytest.approx(constant, abs=5e-7)
    assert rr_probability_tight(allowance(3, math.log(2), 1)) == pytest.approx(9 / 13, rel=1e-12)


def test_the_tight_constant_is_where_the_certificate_turns() -> None:
    asked = allowance(9, 0.4, 2, delta=1e-3)
    largest = rr_probability_tight(asked)
    assert certify(gamma_constant(9, largest * (1 - 1e-9)), asked).holds
    assert not certify(gamma_constant(9, largest * (1 + 1e-6)), asked).holds


def test_a_mean_step_of_double_subsampling_has_its_closed_form() -> None:
    # E[u(X+1) - u(X)] of double subsampling is (2m-1)/K C(2m-2, m-1) (p (1-p))^{m-1}.
    m, k, p = 3, 11, 0.3
    gamma = gamma_double_subsampling(k, m)
    u = np.concatenate([(1 - gamma[::-1]) / 2, (1 + gamma) / 2])
    mean = float(stats.binom.pmf(np.arange(k), k - 1, p) @ np.diff(u))
    assert mean == pytest.approx(
        (2 * m - 1) / k * math.comb(2 * m - 2, m - 1) * (p * (1 - p)) ** (m - 1), rel=1e-12
    )


@pytest.mark.parametrize("size", [0, 12, 1.5])
def test_a_size_that_is_no_number_of_votes_is_refused(size: int) -> None:
    with pytest.raises(ParameterError, match="size must be a whole number from 1 to 11"):
        gamma_subsampling(11, size)


def test_other_bad_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"allowance must be in \[1, 11\]"):
        gamma_double_subsampling(11, 0.5)
    with pytest.raises(ParameterError, match="probability must be in"):
        gamma_constant(11, 1.1)
    with pytest.raises(ParameterError, match="votes_epsilon"):
        rr_probability_composed(allowance(11, 0.1, 1), votes_epsilon=-1.0)


def test_the_printed_constant_is_too_large_where_the_votes_cost_less_than_the_target() -> None:
    # Jiang (2025), Lemma B.1.1, at tau = 1 < m = 3 and lambda = .4. A majority that is (epsilon, lambda)-DP
    # may say 1 with probability lambda on one data set and never on the other.
    lam, asked = 0.4, allowance(11, 0.1, 3, delta=1e-5)
    grown, cost, delta = math.exp(asked.target_epsilon), math.exp(0.1), asked.target_delta
    printed = (grown - 1 + 2 * delta) / (2 * (cost - grown + (1 + grown) * lam) / (cost + 1) + grown - 1)
    right = rr_probability_composed(asked, votes_epsilon=0.1, votes_delta=lam)

    def needed(kept: float) -> float:
        with_it, without = kept * lam + (1 - kept) / 2, (1 - kept) / 2
        return with_it - grown * without

    assert (printed, right) == pytest.approx((0.346324, 0.304314), abs=1e-6)
    assert needed(right) <= delta * (1 + 1e-9)
    assert needed(printed) > 800 * delta


def test_constants_of_table_b1_without_rounded_parameters() -> None:
    whole = general_composition(0.1, 1e-5, 35, 0.1)
    for size, constant in {10: 0.590301, 13: 0.659705, 15: 0.701422, 20: 0.793540}.items():
        part = general_composition(0.1, 1e-5, size, 0.1)
        asked = Setting(
            teachers=35, epsilon=0.1, delta=1e-5, target_epsilon=part.epsilon, target_delta=part.delta
        )
        found = rr_probability_composed(asked, votes_epsilon=whole.epsilon, votes_delta=whole.delta)
        assert found == pytest.approx(constant, abs=1e-6)
