"""Published bits: the law is the certified one; what is no vote is refused; a broken gamma is caught."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.audits import audit
from tacit.errors import ParameterError
from tacit.privacy import PureDP
from tacit.privacy.certified import GRID, Teachers, vertex_pairs, worst_case
from tacit.randomness import simulated
from tacit.voting import (
    GNMax,
    NoiseFunction,
    Ties,
    allowance,
    ballot_counts,
    certified,
    design,
    gamma_subsampling,
    noisy_majority,
    output_probability,
)
from tests.statistics import FALSE_ALARM


def pvalue(bits: np.ndarray[Any, Any], chance: float) -> float:
    return float(stats.binomtest(int(bits.sum()), bits.size, chance).pvalue)


def test_published_bits_follow_the_law_at_every_count() -> None:
    noise = certified([0.2, 0.55, 1.0], allowance(5, 2.0, 4))
    assert noise.gamma == pytest.approx((0.2, 0.55, 1.0), abs=1e-15)
    rng, chances = simulated(1, "release"), noise.output_probabilities()
    for ones, chance in enumerate(chances.tolist()):
        bits = noise.release_counts(np.full(200_000, ones), rng)
        assert set(np.unique(bits)) <= {0, 1}
        if chance in (0.0, 1.0):
            assert np.all(bits == chance)
        else:
            assert pvalue(bits, chance) > FALSE_ALARM
            assert pvalue(bits, chance * 0.97) < FALSE_ALARM  # negative control
    assert chances[0] == 0.0
    assert chances[5] == 1.0


class Words(np.random.Generator):
    """A generator whose 64-bit words are given."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(np.random.PCG64(0))
        self.words = np.array(words, dtype=np.uint64)

    def integers(self, *args: Any, **kwargs: Any) -> Any:
        return self.words


def test_the_threshold_is_the_probability_and_not_a_rounding_of_it() -> None:
    # 63 bits decide, the last one is the coin: gamma = 1 - 2^-52 has 2^63 - 2^11 words.
    gamma, limit = 1 - 2.0**-52, 2**63 - 2**11
    last_in, first_out = (limit - 1) << 1, limit << 1
    bits = noisy_majority(
        np.ones(4, dtype=int), [gamma], 1, Words([last_in, first_out, first_out | 1, 2**64 - 1])
    )
    assert bits.tolist() == [1, 0, 1, 1]
    certain = noisy_majority(np.zeros(2, dtype=int), [1.0], 1, Words([2**64 - 1, 0]))
    assert certain.tolist() == [0, 0]
    never = noisy_majority(np.ones(2, dtype=int), [0.0], 1, Words([0, 1]))
    assert never.tolist() == [0, 1]
    assert GRID == 2**52


def test_votes_and_counts_give_the_same_bits() -> None:
    noise = design(allowance(11, 0.3, 3), "double-subsampling")
    votes = simulated(2, "votes").random((1000, 11)) < 0.7
    bits = noise.release(votes, simulated(3, "coins"))
    assert np.array_equal(bits, noise.release(votes.astype(np.uint8), simulated(3, "coins")))
    assert np.array_equal(bits, noise.release_counts(votes.sum(axis=1), simulated(3, "coins")))
    assert noise.release(np.zeros((0, 11), dtype=int), simulated(4)).shape == (0,)


def test_subsampling_and_its_noise_function_publish_the_same_law() -> None:
    # p = linspace(0.2, 0.9, 11), exact 0.576220.
    p = np.linspace(0.2, 0.9, 11)
    exact = float(output_probability(gamma_subsampling(11, 3), p))
    assert exact == pytest.approx(0.576220, abs=5e-7)
    rng = simulated(5, "subsampling")
    votes = (rng.random((200_000, 11)) < p).astype(np.int8)
    some = rng.permuted(votes, axis=1)
    assert pvalue((some[:, :3].sum(axis=1) >= 2).astype(np.int64), exact) > FALSE_ALARM
    assert pvalue(noisy_majority(votes.sum(axis=1), gamma_subsampling(11, 3), 11, rng), exact) > FALSE_ALARM
    assert pvalue((some[:, :5].sum(axis=1) >= 3).astype(np.int64), exact) < FALSE_ALARM


def test_ties_are_fair_coins() -> None:
    noise = certified(np.ones(2), allowance(4, 1.0, 4, ties=Ties.COIN))
    rng = simulated(6, "ties")
    votes = np.tile([1, 0, 1, 0], (200_000, 1))
    assert pvalue(noise.release(votes, rng), 0.5) > FALSE_ALARM


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (np.zeros(11, dtype=int), "must have shape"),
        (np.zeros((5, 10), dtype=int), r"must have shape \(queries, 11\)"),
        (np.zeros((5, 11)), "must be whole numbers 0 and 1, got dtype float64"),
        (np.full((5, 11), 2), "must be 0 or 1; for more classes use GNMax"),
        (np.full((5, 11), -1), "must be 0 or 1"),
        (np.full((5, 11), "1"), "must be whole numbers"),
    ],
)
def test_what_is_no_vote_is_refused(votes: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ballot_counts(votes, 11)


def test_counts_that_cannot_be_are_refused() -> None:
    rng = simulated(7)
    for counts, message in (
        ([12], "from 0 to"),
        ([-1], "from 0 to"),
        ([1.0], "whole numbers"),
        ([[1]], "shape"),
    ):
        with pytest.raises(ParameterError, match=message):
            noisy_majority(np.array(counts), np.ones(6), 11, rng)


def _attack(gamma: tuple[float, ...], voters: Teachers, target: float) -> Any:
    """Return a run of the worst teachers for this gamma; the published bit is the score."""
    counts = worst_case(voters, np.array(gamma), target).counts
    pairs = vertex_pairs(voters)
    p, q = (np.repeat(pairs[:, side], counts) for side in (0, 1))

    def run(present: bool, size: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        votes = (rng.random((size, voters.count)) < (p if present else q)).astype(np.int8)
        return noisy_majority(ballot_counts(votes), gamma, voters.count, rng).astype(np.float64)

    return run


def test_an_attack_on_the_worst_teachers_stays_below_the_claim_and_catches_a_broken_gamma() -> None:
    asked = allowance(7, 0.6, 1)
    noise: NoiseFunction = design(asked, "optimal")
    found = audit(
        _attack(noise.gamma, asked.voters, 0.6),
        (noise.event(), 0.0),
        runs=100_000,
        rng=simulated(8, "audit"),
        confidence=1 - FALSE_ALARM,
    )
    assert not found.refuted
    assert found.empirical_epsilon_lower > 0.4  # the attack is worth something
    broken = audit(
        _attack((1.0,) * 4, asked.voters, 0.6),
        (PureDP(0.6), 0.0),
        runs=100_000,
        rng=simulated(9, "audit"),
        confidence=1 - FALSE_ALARM,
    )
    assert broken.refuted
    assert broken.empirical_epsilon_lower > 1.0
    assert math.isclose(noise.event().target_epsilon, 0.6)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint32, np.uint64])
def test_counts_of_any_width_are_counts(kind: Any) -> None:
    teachers = 125 if kind is np.int8 else 251
    counts = np.arange(teachers + 1, dtype=np.int64).astype(kind)
    noise = certified(np.ones((teachers + 1) // 2), allowance(teachers, 0.1, teachers))
    expected = (np.arange(teachers + 1) > teachers / 2).astype(int)
    assert noise.release_counts(counts, simulated(1)).tolist() == expected.tolist()
    assert GNMax(sigma=1e-2).release(np.ones((3, 5), dtype=kind), simulated(2)).tolist() == [1, 1, 1]
