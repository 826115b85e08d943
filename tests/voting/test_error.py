"""Errors, priors and objectives: enumeration, tabled values, the structural lemmas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError
from tacit.numerics import Array
from tacit.randomness import simulated
from tacit.voting import (
    allowance,
    certify,
    design,
    expected_error,
    expected_majority_error,
    gamma_constant,
    gamma_double_subsampling,
    gamma_subsampling,
    majority_error,
    monte_carlo,
    one_sided,
    output_probability,
    poisson_binomial_pmf,
    polarised_prior,
    rr_probability_tight,
    uniform_prior,
)
from tests.statistics import z_bound
from tests.voting.reference import law

P = np.linspace(0.2, 0.9, 11)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_the_law_of_the_count_is_enumerated(p: list[float]) -> None:
    exact = np.zeros(len(p) + 1)
    for votes in itertools.product((0, 1), repeat=len(p)):
        exact[sum(votes)] += math.prod(q if v else 1 - q for q, v in zip(p, votes, strict=True))
    assert np.allclose(poisson_binomial_pmf(p), exact, rtol=1e-12, atol=1e-15)


def test_tails_keep_their_digits() -> None:
    found = poisson_binomial_pmf(np.full((2, 100), 0.01))
    assert found.shape == (2, 101)
    assert np.allclose(found[0], stats.binom.pmf(np.arange(101), 100, 0.01), rtol=1e-10, atol=0)


def test_errors_have_the_stated_values() -> None:
    # Jiang (2025), Definition 3.3.4.
    assert float(output_probability(np.ones(6), P)) == pytest.approx(0.647570517, abs=5e-10)
    rows = {3: (0.576220000, 0.071350517), 5: (0.596876771, 0.050693746)}
    for size, (one, error) in rows.items():
        assert float(output_probability(gamma_subsampling(11, size), P)) == pytest.approx(one, abs=5e-10)
        assert float(majority_error(gamma_subsampling(11, size), P)) == pytest.approx(error, abs=5e-10)
    constant = gamma_constant(11, 0.297461)
    assert float(output_probability(constant, P)) == pytest.approx(0.543896474, abs=5e-7)
    assert float(majority_error(constant, P)) == pytest.approx(0.103674044, abs=5e-7)


@settings(max_examples=50)
@given(st.integers(1, 8), st.integers(0, 1000))
def test_the_error_is_the_distance_of_the_published_bit_from_the_majority(teachers: int, seed: int) -> None:
    rng = simulated(seed, "error")
    gamma, p = rng.random((teachers + 1) // 2), rng.random(teachers)
    distance = abs(output_probability(gamma, p) - output_probability(np.ones_like(gamma), p))
    assert float(majority_error(gamma, p)) == pytest.approx(float(distance), abs=1e-14)
    assert float(majority_error(gamma, np.full(teachers, 0.5))) == pytest.approx(0.0, abs=1e-15)


def test_two_samples_beat_one_where_all_votes_lean_to_one_side() -> None:
    # Lemma B.2.11.
    rng = simulated(3, "one-sided")
    for m, low in itertools.product((1, 2, 3, 4), (0.0, 0.5)):
        p = low + rng.random((200, 11)) / 2
        double, single = (majority_error(g(11, m), p) for g in (gamma_double_subsampling, gamma_subsampling))
        assert np.all(double <= single + 1e-14)


def test_a_constant_errs_by_its_share_of_the_lead() -> None:
    lead, std = expected_majority_error(np.zeros(6), 11, uniform_prior(), draws=200_000, rng=simulated(4))
    assert lead == pytest.approx(0.2010, abs=z_bound(1) * std + 1e-4)
    for constant in (0.3, 0.9):
        assert np.allclose(
            majority_error(gamma_constant(11, constant), P), (1 - constant) * majority_error(np.zeros(6), P)
        )


def test_the_one_sided_objective_is_in_closed_form() -> None:
    objective = one_sided(11)
    for m, value in {1: 0.25, 3: 0.34375, 5: 0.39648438, 7: 0.42944336, 11: 0.46567249}.items():
        assert objective.value(gamma_subsampling(11, m)) == pytest.approx(value, abs=5.1e-9)
        assert objective.value(gamma_subsampling(11, m)) == pytest.approx(
            stats.binom.sf(m / 2, m, 0.75) - 0.5
        )
    means = np.linspace(0.6, 0.9, 9)
    exact = law(means)
    assert one_sided(9, means).coefficients == pytest.approx(
        ((exact - exact[::-1]) / 2)[5:].tolist(), abs=1e-15
    )


def test_simulated_objectives_agree_with_the_closed_form() -> None:
    # Algorithm 9 of Jiang (2025) under a one-sided prior.
    draws = 40_000
    direct = monte_carlo(11, uniform_prior(0.5, 1.0), draws=draws, rng=simulated(5))
    off = np.abs(np.array(direct.coefficients) - np.array(one_sided(11).coefficients))
    # One coefficient lies in [-1/2, 1/2]; its spread over the prior is below 0.12.
    assert np.all(off <= z_bound(6) * 0.12 / math.sqrt(draws))
    # The signed objective of a symmetric prior is 0, whatever gamma: Eq. B.57 of Jiang (2025).
    symmetric = monte_carlo(11, uniform_prior(), draws=draws, rng=simulated(7))
    assert np.all(np.abs(symmetric.coefficients) <= z_bound(6) * 0.2 / math.sqrt(draws))


def test_the_expected_error_is_what_its_objective_says() -> None:
    prior, draws = uniform_prior(), 20_000
    objective = expected_error(11, prior, draws=draws, rng=simulated(8))
    lead, _ = expected_majority_error(np.zeros(6), 11, prior, draws=draws, rng=simulated(8))
    # Linear in gamma where the sign does not turn: exact for constants.
    for constant in (0.0, 0.4, 1.0):
        error, _ = expected_majority_error(
            gamma_constant(11, constant), 11, prior, draws=draws, rng=simulated(8)
        )
        assert lead - objective.value(gamma_constant(11, constant)) == pytest.approx(error, abs=1e-12)


def test_the_coefficients_of_the_expected_error_have_the_tabled_values() -> None:
    """For U[0, 1]^11, tabled by 10^6 draws, five digits."""
    tabled = np.array([0.03834, 0.07712, 0.05730, 0.02307, 0.00505, 0.00048])
    draws, seen = 400_000, []

    def prior(size: int, teachers: int, rng: np.random.Generator) -> Array:
        seen.append(rng.random((size, teachers)))
        return seen[-1]

    found = np.array(expected_error(11, prior, draws=draws, rng=simulated(11)).coefficients)
    law_of_ones = np.zeros((draws, 12))
    law_of_ones[:, 0] = 1
    for p in np.concatenate(seen).T[:, :, None]:
        law_of_ones[:, 1:] = law_of_ones[:, 1:] * (1 - p) + law_of_ones[:, :-1] * p
        law_of_ones[:, :1] *= 1 - p
    lead = law_of_ones[:, 6:] - law_of_ones[:, 5::-1]
    share = np.sign(lead.sum(axis=1, keepdims=True)) * lead / 2
    assert found == pytest.approx(share.mean(axis=0), abs=1e-12)
    std = share.std(axis=0, ddof=1) * math.sqrt(1 / draws + 1e-6)
    assert np.all(std < 3e-4)
    assert np.all(np.abs(found - tabled) <= z_bound(6) * std + 5e-6)


def test_priors_stay_where_they_say() -> None:
    p = polarised_prior(0.3)(1000, 7, simulated(9))
    assert np.all((p <= 0.3) | (p >= 0.7))
    assert abs(float((p > 0.5).mean()) - 0.5) < z_bound(1) * 0.5 / math.sqrt(7000)
    u = uniform_prior(0.2, 0.4)(1000, 7, simulated(10))
    assert 0.2 <= u.min() <= u.max() <= 0.4


def test_any_algorithm_that_is_right_half_the_time_is_a_noise_function() -> None:
    # Lemma 3.4.3: a round trip over all vote vectors of five teachers.
    right = []
    for votes in itertools.product((0, 1), repeat=5):
        samples = [sum(s) >= 2 for s in itertools.combinations(votes, 3)]
        right.append(sum(bit == (sum(votes) >= 3) for bit in samples) / len(samples))
    gamma = 2 * np.array(right) - 1
    for votes, kept in zip(itertools.product((0, 1), repeat=5), gamma.tolist(), strict=True):
        winners = max(sum(votes), 5 - sum(votes))
        assert kept == pytest.approx(gamma_subsampling(5, 3)[winners - 3], abs=1e-15)


def test_the_lower_bound_for_one_vote_is_false_for_teachers_that_differ() -> None:
    # Jiang (2025), Lemma 3.4.2: six certain ones and five certain zeros.
    question = allowance(11, 0.1, 1)
    constant = gamma_constant(11, rr_probability_tight(question))
    assert certify(constant * (1 - 1e-12), question).holds
    p = np.repeat([1.0, 0.0], [6, 5])
    assert float(majority_error(constant, p)) == pytest.approx(0.314527, abs=5e-7)
    assert abs(1.0 - p.mean()) == pytest.approx(0.454545, abs=5e-7)


def test_the_chain_of_the_lower_bound_is_one_of_neighbours() -> None:
    # Jiang (2025), Appendix B.1.3: 1 - p_{j+1} = e^-epsilon (1 - p_j) is DP, p_j = e^{j epsilon} / 2 is not.
    epsilon, right, printed = 0.1, 0.5, 0.5
    for _ in range(5):
        following = 1 - math.exp(-epsilon) * (1 - right)
        assert following <= math.exp(epsilon) * right + 1e-15
        assert 1 - right <= math.exp(epsilon) * (1 - following) + 1e-15
        grown = math.exp(epsilon) * printed
        assert 1 - printed > math.exp(epsilon) * (1 - grown)
        right, printed = following, grown


def test_designs_err_as_tabled_where_teachers_agree() -> None:
    # Exact E[Err] under p_i ~ U[0, 0.1], where L ~ Bin(11, 0.05).
    equal = np.full(11, 0.05)
    question = allowance(11, 0.1, 3)
    rows = {
        "optimal": 4.065e-3,
        "optimal-monotone": 7.270e-4,
        "subsampling": 7.244e-3,
        "constant-composed": 0.35127,
    }
    for name, error in rows.items():
        assert float(majority_error(design(question, name).gamma, equal)) == pytest.approx(error, rel=2e-4)
    strong = design(question, "optimal", one_sided(11, 0.85))
    assert float(majority_error(strong.gamma, equal)) == pytest.approx(6.533e-4, rel=2e-4)


def _outside(draws: int, teachers: int, rng: np.random.Generator) -> Array:
    return 1.5 * rng.random((draws, teachers))


def test_bad_arguments_are_refused() -> None:
    for mean in (0.5, 1.1, math.nan):
        with pytest.raises(ParameterError, match="mean must be in"):
            one_sided(11, mean)
    with pytest.raises(ParameterError, match="p must be a vector of probabilities"):
        poisson_binomial_pmf([0.5, 1.5])
    with pytest.raises(ParameterError, match="prior must return probabilities"):
        expected_error(11, _outside, draws=10, rng=simulated(1))
    with pytest.raises(ParameterError, match="low must be at most"):
        uniform_prior(0.7, 0.3)
    with pytest.raises(ParameterError, match="edge must be in"):
        polarised_prior(0.6)
    with pytest.raises(ParameterError, match="must have shape"):
        majority_error(np.ones(5), P)
