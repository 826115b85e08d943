"""Guarantees of whole silos: group privacy against the worst chain, and the least noise for a silo."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import norm

from tacit.errors import BudgetError, ParameterError
from tacit.literature import user_level_budget
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, calibrate_user_level, whole_silo_budget

EPS = 2.0


def gaussian_delta(multiplier: float, rounds: int, epsilon: float) -> float:
    """Return delta of `rounds` Gaussian releases, by the closed form of Balle and Wang (2018)."""
    mu = math.sqrt(rounds) / multiplier
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def beyond(p: Array, q: Array, epsilon: float) -> float:
    """Return delta at epsilon of one pair of laws, by its definition."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def test_the_reference_value() -> None:
    silo = whole_silo_budget(PrivacyBudget(0.1, 1e-8), 10)
    assert silo.epsilon == pytest.approx(1.0, rel=1e-11)
    assert silo.delta == pytest.approx(2.459603e-7, rel=2e-7)
    assert whole_silo_budget(PrivacyBudget(0.1, 1e-8), 1) == PrivacyBudget(0.1, 1e-8)
    assert whole_silo_budget(PrivacyBudget(0.1), 7).delta == 0


@pytest.mark.parametrize(("n", "epsilon", "delta"), [(2, 1.0, 1e-3), (10, 0.1, 1e-3), (10, 0.1, 1e-8)])
def test_the_worst_chain_is_below_the_claim_and_refutes_half_of_it(
    n: int, epsilon: float, delta: float
) -> None:
    # One bit that is 1 with probability p_k where k records are replaced: every step takes all it may.
    chain = [0.0]
    for _ in range(n):
        chain.append(math.exp(epsilon) * chain[-1] + delta)
    laws = [np.array([p, 1 - p]) for p in chain]
    for before, after in pairwise(laws):
        assert beyond(after, before, epsilon) <= delta * (1 + 1e-9) + 1e-16
        assert beyond(before, after, epsilon) <= delta * (1 + 1e-9) + 1e-16
    silo = whole_silo_budget(PrivacyBudget(epsilon, delta), n)
    attained = beyond(laws[-1], laws[0], silo.epsilon)
    assert silo.delta / 2 < attained <= silo.delta
    # n randomized responses take all of the epsilon.
    bit = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    all_bits = np.array([np.prod(p) for p in product(bit, repeat=n)])
    others = np.array([np.prod(p) for p in product(bit[::-1], repeat=n)])
    assert math.log(np.max(all_bits / others)) == pytest.approx(silo.epsilon, rel=1e-9)
    assert np.max(all_bits / others) <= math.exp(silo.epsilon)


def test_a_claim_that_says_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"n must be small enough .* got n=10000 at epsilon=1\.0"):
        whole_silo_budget(PrivacyBudget(1.0, 1e-8), 10_000)
    with pytest.raises(ParameterError, match="n must be"):
        whole_silo_budget(PrivacyBudget(1.0, 1e-8), 0)
    with pytest.raises(ParameterError, match="rounds must be"):
        calibrate_user_level(PrivacyBudget(1.0, 1e-8), rounds=0)
    with pytest.raises(BudgetError, match="pure privacy"):
        calibrate_user_level(PrivacyBudget(1.0), rounds=1)


def test_the_budget_of_the_theorem_gives_the_silo_its_target() -> None:
    for n, epsilon in product((1, 2, 10, 1000), (0.1, 1.0)):
        silo = whole_silo_budget(user_level_budget(PrivacyBudget(epsilon, 1e-6), n), n)
        assert silo.epsilon == pytest.approx(epsilon, rel=1e-9)
        assert silo.delta <= 1e-6


def test_a_replaced_silo_moves_its_mean_by_at_most_2l_whatever_the_batch() -> None:
    rng = np.random.default_rng(20)
    for K in (1, 7, 50):
        rows = rng.normal(size=(2000, 2, K, 3))
        rows /= np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1.0)  # L = 1
        means = rows.mean(axis=2)
        assert np.linalg.norm(means[:, 0] - means[:, 1], axis=-1).max() <= 2 + 1e-12
        worst = np.tile([1.0, 0.0, 0.0], (K, 1))
        assert np.linalg.norm(worst.mean(axis=0) - -worst.mean(axis=0)) == pytest.approx(2)


@pytest.mark.parametrize("rounds", [1, 35, 1000])
def test_the_noise_for_a_silo_meets_the_closed_form_and_half_of_it_does_not(rounds: int) -> None:
    delta = 1e-6
    multiplier = calibrate_user_level(PrivacyBudget(EPS, delta), rounds=rounds)
    assert gaussian_delta(multiplier, rounds, EPS) == pytest.approx(delta, rel=1e-5)
    assert gaussian_delta(multiplier, rounds, EPS) <= delta * (1 + 1e-9)
    # The opposite silo attains 2L: whoever halves the noise claims what is false.
    assert gaussian_delta(multiplier / 2, rounds, EPS) > 100 * delta


@pytest.mark.parametrize("n", [2, 10, 100, 1000])
@pytest.mark.parametrize("rounds", [1, 35])
def test_it_needs_less_noise_than_eps_over_n_per_record(n: int, rounds: int) -> None:
    target = PrivacyBudget(1.0, 1e-6)
    direct = 2 * calibrate_user_level(target, rounds=rounds)  # noise / L
    # One record moves the mean of a full batch by 2L/n; the same curve at eps/n and delta/(4n).
    per_record = 2 / n * calibrate_user_level(user_level_budget(target, n), rounds=rounds)
    assert direct < per_record
    # Disjoint batches: one release per record, but a mean of n / rounds rows.
    if n >= rounds:
        one_pass = 2 / (n // rounds) * calibrate_user_level(user_level_budget(target, n), rounds=1)
        assert direct < one_pass
