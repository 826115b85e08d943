"""Several values of a client: enumeration of joint keys, and what a reused key gives away."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.frequencies import (
    CyclicResponse,
    JointKey,
    KaryResponse,
    KeyedMechanism,
    OneTimeKeys,
    RecoverableHadamard,
    SequenceResponse,
    least_key_entropy,
    least_sequence_entropy,
)
from tacit.privacy import pure_epsilon_of
from tests.statistics import FALSE_ALARM


def _written_out(key: JointKey) -> KeyedMechanism:
    """All messages, as numbers below k^T, of all sequences under all keys."""
    size, shape = key.weights.size, key.weights.shape
    table = []
    for values in itertools.product(range(key.k), repeat=key.samples):
        keys = OneTimeKeys(np.arange(size), size, law=key.digest, fresh=True)
        messages = key.hide(np.tile(values, (size, 1)), keys)
        table.append(np.ravel_multi_index(tuple(messages.T), shape))
    return KeyedMechanism(np.array(table), key.pmf().ravel())


def _level_of_one_value(mechanism: KeyedMechanism, k: int, samples: int) -> float:
    channel = mechanism.channel_matrix().reshape(*[k] * samples, -1)
    return max(float(np.log(channel.max(axis=t) / channel.min(axis=t)).max()) for t in range(samples))


def test_joint_keys_by_enumeration() -> None:
    rng = np.random.default_rng(4)
    single = np.array([2**20, 3 * 2**20, 2**20])
    for weights in (np.multiply.outer(single, single), rng.integers(50, 100, (3, 3)), np.array([3, 1])):
        key = JointKey(weights)
        mechanism = _written_out(key)
        assert mechanism.is_recoverable
        assert np.array_equal(np.unique(mechanism.table), np.arange(weights.size))
        exact = _level_of_one_value(mechanism, key.k, key.samples)
        assert exact * (1 - 1e-15) <= key.epsilon <= exact * (1 + 1e-12)
        assert pure_epsilon_of(key.event()) == key.epsilon
        # All may change: T times the level at most.
        assert mechanism.epsilon <= key.samples * key.epsilon * (1 + 1e-12)
        assert key.entropy_bits >= least_sequence_entropy(key.k, key.epsilon, key.samples) - 1e-9
        # Lemma 7.6.2: one value costs at least what it costs alone.
        if key.samples == 2:
            parts = least_sequence_entropy(key.k, key.epsilon, 1) + least_key_entropy(key.k, key.epsilon)
            assert key.entropy_bits >= parts - 1e-9


def test_joint_keys_follow_their_law_and_give_back() -> None:
    key, n = JointKey(np.array([[4, 2], [2, 1]])), 9000
    keys = key.draw_keys(n, np.random.default_rng(6))
    assert stats.chisquare(np.bincount(keys.read(), minlength=4), n * key.pmf().ravel()).pvalue > FALSE_ALARM
    values = np.random.default_rng(7).integers(0, 2, (n, 2))
    assert np.array_equal(key.recover(key.hide(values, keys), keys), values)
    with pytest.raises(ParameterError, match="fresh"):
        key.hide(values, keys)
    other = JointKey(np.array([[9, 2], [2, 1]])).draw_keys(n, np.random.default_rng(6))
    with pytest.raises(ParameterError, match="another law"):
        key.hide(values, other)


@pytest.mark.parametrize("oracle", [CyclicResponse(k=3, epsilon=1.0), RecoverableHadamard(k=5, epsilon=1.0)])
def test_a_key_for_each_value(oracle: CyclicResponse | RecoverableHadamard) -> None:
    sequence = SequenceResponse(oracle, 4)
    values = np.random.default_rng(9).integers(0, oracle.k, (50, 4))
    keys = sequence.draw_keys(50, np.random.default_rng(10))
    assert len(keys) == 200
    assert np.array_equal(sequence.recover(sequence.hide(values, keys), keys), values)
    assert sequence.entropy_bits >= least_sequence_entropy(oracle.k, oracle.level, 4) - 1e-9
    assert pure_epsilon_of(sequence.event()) == oracle.level
    assert pure_epsilon_of(sequence.event(whole=True)) == pytest.approx(4 * oracle.level, rel=1e-12)
    with pytest.raises(ParameterError, match="shape"):
        sequence.hide(values[:, :3], sequence.draw_keys(50, np.random.default_rng(11)))


def test_one_key_for_two_values_shows_their_difference() -> None:
    k, law = 3, CyclicResponse(k=3, epsilon=1.0).key_law.pmf()
    pairs = list(itertools.product(range(k), repeat=2))
    table = np.array([[(a + u) % k * k + (b + u) % k for u in range(k)] for a, b in pairs])
    twice = KeyedMechanism(table, law)
    assert twice.is_recoverable
    assert twice.epsilon == math.inf
    differences = (table // k - table % k) % k
    assert np.array_equal(differences, np.array([[(a - b) % k] * k for a, b in pairs]))
    # With a key each, the pair has twice the level.
    both = np.array([[(a + u) % k * k + (b + v) % k for u in range(k) for v in range(k)] for a, b in pairs])
    assert KeyedMechanism(both, np.multiply.outer(law, law).ravel()).epsilon == pytest.approx(2.0, rel=1e-9)


def test_what_is_refused() -> None:
    for weights in (
        np.ones((2, 3), dtype=int),
        np.array([1]),
        np.array([0, 1]),
        np.array([0.5, 0.5]),
        np.array(3),
    ):
        with pytest.raises(ParameterError, match="weights"):
            JointKey(weights)
    with pytest.raises(ParameterError, match="sum"):
        JointKey(np.full(4, 2**61))
    with pytest.raises(ParameterError, match="rows of one length"):
        JointKey([[1, 2], [3]])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="recoverable"):
        SequenceResponse(KaryResponse(k=3, epsilon=1.0), 2)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="samples"):
        SequenceResponse(CyclicResponse(k=3, epsilon=1.0), 0)
