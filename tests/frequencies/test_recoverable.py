"""Recoverable responses and keyed mechanisms: published numbers, enumeration, errata."""

from __future__ import annotations

import math
import multiprocessing
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.frequencies import (
    CyclicResponse,
    HadamardResponse,
    JointKey,
    KaryResponse,
    KeyedMechanism,
    LevelledHadamard,
    OneTimeKeys,
    RecoverableHadamard,
    RecoverableOracle,
    SeparateLevels,
    SequenceResponse,
    column_sum_test,
    entropy_bits_of,
    least_key_entropy,
)
from tacit.numerics import Array
from tacit.privacy import Neighbours, Relation, pure_epsilon_of, verify
from tacit.randomness import SecretStateError

TABLE = [
    (3, math.log(3), (2, 3), 2, 2.370951, 12.104167, 0.700000),
    (5, 1, (2, 3), 2, 2.407101, 17.919576, 0.894029),
    (6, 2, (4, 3), 2, 2.910096, 8.188925, 0.757851),
    (10, 1, (2, 7), 4, 3.632053, 47.941230, 0.808366),
    (10, 3, (16, 1), 1, 2.655091, 2.569293, 0.828989),
    (100, 1, (2, 63), 32, 6.806338, 552.755501, 0.856342),
    (4, 6, (4, 1), 1, 0.074583, 0.764984, 1.0),
]
SMALL: list[RecoverableOracle] = [
    *(CyclicResponse(k=k, epsilon=e) for k, e in ((2, 1.0), (4, 0.1), (5, 2.0), (10, 1.0))),
    *(RecoverableHadamard(k=k, epsilon=e) for k, e in ((2, 0.5), (3, 1.2), (5, 1.0), (6, 2.0), (10, 3.0))),
]


@pytest.mark.parametrize(("k", "epsilon", "shape", "heavy", "bits", "error", "column"), TABLE)
def test_recoverable_hadamard_response(
    k: int, epsilon: float, shape: tuple[int, int], heavy: int, bits: float, error: float, column: float
) -> None:
    oracle = RecoverableHadamard(k=k, epsilon=epsilon)
    assert (oracle.shape, oracle.heavy.size) == (shape, heavy)
    assert oracle.entropy_bits == pytest.approx(bits, abs=1e-6)
    assert oracle.mse(1) == pytest.approx(error, abs=1e-6)
    channel = oracle.channel_matrix()
    assert channel.sum(axis=0).max() == pytest.approx(column, abs=1e-6)
    assert column_sum_test(channel)
    assert oracle.entropy_bits <= HadamardResponse(k=k, epsilon=epsilon).entropy_bits


def _every_key(oracle: RecoverableOracle, **facts: Any) -> OneTimeKeys:
    """All keys of a mechanism, as if they had just been drawn."""
    given: dict[str, Any] = {"law": oracle.key_law.digest, "fresh": True} | facts
    return OneTimeKeys(np.arange(oracle.outcomes), oracle.outcomes, **given)


def _written_out(oracle: RecoverableOracle) -> KeyedMechanism:
    """Every message of every value under every key, by the code that hides values."""
    keys = np.arange(oracle.outcomes)
    table = [oracle.hide(np.full(keys.size, x), _every_key(oracle)) for x in range(oracle.k)]
    return KeyedMechanism(np.array(table), oracle.key_law.pmf())


@pytest.mark.parametrize("oracle", SMALL, ids=lambda o: f"{type(o).__name__}-{o.k}-{o.epsilon:g}")
def test_private_without_the_key_and_exact_with_it(oracle: RecoverableOracle) -> None:
    keyed = _written_out(oracle)
    np.testing.assert_allclose(keyed.channel_matrix(), oracle.channel_matrix(), atol=1e-14)
    assert keyed.is_recoverable
    assert keyed.epsilon == pytest.approx(oracle.level, rel=1e-12)
    assert oracle.level <= oracle.epsilon
    assert keyed.key_entropy_bits == pytest.approx(oracle.entropy_bits, rel=1e-12)
    assert keyed.key_entropy_bits >= least_key_entropy(oracle.k, oracle.level) - 1e-9
    assert column_sum_test(keyed.channel_matrix())
    for x in range(oracle.k):
        keys = _every_key(oracle)
        assert np.all(oracle.recover(oracle.hide(np.full(oracle.outcomes, x), keys), keys) == x)
    assert pure_epsilon_of(oracle.price().event) == oracle.level
    assert oracle.price(with_keys=True).epsilon == math.inf
    verify(oracle.price())


def test_hadamard_response_is_not_recoverable() -> None:
    """Its constant column is likely under all values of a block, as the printed theorem overlooks."""
    for k, epsilon, total in ((100, 1.0, 1.1381), (1000, 1.0, 1.2829), (100, 4.0, 1.0102)):
        channel = HadamardResponse(k=k, epsilon=epsilon).channel_matrix()
        assert channel.sum(axis=0).max() == pytest.approx(total, abs=5e-5)
        assert not column_sum_test(channel)
    # The test is necessary, not sufficient.
    assert column_sum_test(HadamardResponse(k=10, epsilon=1.0).channel_matrix())


def test_its_randomness_is_within_twice_the_least() -> None:
    for k in (3, 10, 60, 199, 1000):
        for epsilon in (0.05, 1.0, 3.0, 7.0, 12.0):
            bits = RecoverableHadamard(k=k, epsilon=epsilon).entropy_bits
            assert 1 - 1e-9 <= bits / least_key_entropy(k, epsilon) <= 1.991


def test_the_public_loses_what_storage_saves() -> None:
    oracle = CyclicResponse(k=10, epsilon=1.0)
    channel = oracle.channel_matrix()
    told = float((channel * np.log2(channel * 10)).sum()) / 10  # mutual information, uniform values
    assert told == pytest.approx(math.log2(10) - oracle.entropy_bits, rel=1e-9)
    assert told * math.log(2) <= oracle.epsilon


def test_a_key_without_an_inverse_sends_the_public_elsewhere() -> None:
    oracle = CyclicResponse(k=4, epsilon=0.1)
    assert oracle.spectral_gap == 0
    with pytest.raises(ParameterError, match="RecoverableHadamard"):
        oracle.mse(1)


def test_likely_shifts_that_are_twice_as_likely_break_the_level() -> None:
    """Negative control: the enumeration sees half of the noise."""
    oracle = RecoverableHadamard(k=5, epsilon=1.0)
    law = oracle.key_law.pmf()
    law[oracle.heavy] *= 2
    assert KeyedMechanism(_written_out(oracle).table, law / law.sum()).epsilon > 1.5


def test_a_key_as_large_and_random_as_needed_need_not_do() -> None:
    """The printed conditions are necessary only: entropy enough, k keys, and yet no level of 1."""
    pmf = np.array([0.5, 0.2, 0.2, 0.1])
    shifts = KeyedMechanism((np.arange(4)[:, None] + np.arange(4)) % 4, pmf)
    ratio = math.log(5)
    assert shifts.key_entropy_bits >= least_key_entropy(4, 1.5)
    assert shifts.epsilon == pytest.approx(ratio)
    assert ratio > 1.5


def test_dropping_the_rarest_symbol_lowers_the_entropy() -> None:
    assert entropy_bits_of([0.4, 0.3, 0.2, 0.1]) == pytest.approx(1.846439, abs=1e-6)
    assert entropy_bits_of(np.array([4, 3, 2]) / 9) == pytest.approx(1.530493, abs=1e-6)


def _random_keyed(rng: np.random.Generator) -> KeyedMechanism:
    """A recoverable mechanism of 3 values, whose 6 keys are the permutations of the messages."""
    orders = np.array([rng.permutation(3) for _ in range(6)] + [np.roll(np.arange(3), s) for s in range(3)]).T
    law = rng.dirichlet(np.ones(9))
    return KeyedMechanism(orders, law)


def test_reduced_keys_have_the_level_and_no_more_entropy() -> None:
    rng = np.random.default_rng(8)
    for mechanism in [_random_keyed(rng) for _ in range(20)] + [_written_out(SMALL[-3])]:
        reduced: Array = mechanism.reduce_key()
        k = mechanism.table.shape[0]
        assert reduced.shape == (k,)
        assert math.log(reduced[0] / reduced[-1]) <= mechanism.epsilon * (1 + 1e-12)
        assert entropy_bits_of(reduced) <= mechanism.key_entropy_bits + 1e-12
        assert entropy_bits_of(reduced) >= least_key_entropy(k, mechanism.epsilon) - 1e-12
        cyclic = KeyedMechanism((np.arange(k)[:, None] + np.arange(k)) % k, reduced)
        assert cyclic.is_recoverable
        assert cyclic.epsilon <= mechanism.epsilon * (1 + 1e-12)


@pytest.mark.parametrize("oracle", [CyclicResponse(k=10, epsilon=0.1), RecoverableHadamard(k=5, epsilon=0.1)])
def test_keys_of_another_law_hide_nothing(oracle: RecoverableOracle) -> None:
    """At level 5 the key of cyclic shifts is 0 in most cases: the message would be the value."""
    weaker = type(oracle)(k=oracle.k, epsilon=0.2)
    n = oracle.outcomes
    for keys in (weaker.draw_keys(n, np.random.default_rng(1)), OneTimeKeys(np.arange(n), n)):
        assert keys.size == n
        with pytest.raises(ParameterError, match="another law"):
            oracle.hide(np.zeros(n, dtype=int), keys)
    kept = _every_key(oracle).to_bytes()
    assert OneTimeKeys.from_bytes(kept, n, n).law == oracle.key_law.digest
    with pytest.raises(ParameterError, match="fresh"):  # keys that somebody chose
        oracle.hide(np.zeros(n, dtype=int), _every_key(oracle, fresh=False))


def test_a_fork_cannot_hide_with_its_parents_keys() -> None:
    oracle = CyclicResponse(k=5, epsilon=1.0)
    keys = oracle.draw_keys(1, np.random.default_rng(1))
    reader, writer = multiprocessing.Pipe(duplex=False)

    def hide() -> None:
        try:
            oracle.hide([0], keys)
        except SecretStateError:
            writer.send("refused")

    child = multiprocessing.get_context("fork").Process(target=hide)
    child.start()
    child.join()
    assert reader.poll()
    assert reader.recv() == "refused"
    assert oracle.hide([0], keys).shape == (1,)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.ZERO_OUT])
def test_who_counts_messages_sees_that_one_is_missing(relation: Relation) -> None:
    near = Neighbours(relation)
    oracle = CyclicResponse(k=5, epsilon=1.0)
    for price in (
        lambda: oracle.price(neighbours=near),
        lambda: oracle.price(with_keys=True, neighbours=near),
        lambda: oracle.event(10, neighbours=near),
        lambda: KaryResponse(k=3, epsilon=1.0).event(10, neighbours=near),
        lambda: SequenceResponse(oracle, 2).event(neighbours=near),
        lambda: JointKey(np.array([[2, 1], [1, 2]])).event(near),
        lambda: LevelledHadamard(4, (2.0, 1.0)).price([0], neighbours=near),
        lambda: SeparateLevels(4, (2.0, 1.0)).event([0], near),
    ):
        with pytest.raises(ParameterError, match="replace-one"):
            price()


def test_what_is_refused() -> None:
    oracle = RecoverableHadamard(k=5, epsilon=1.0)
    keys = oracle.draw_keys(2, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="values"):
        oracle.hide([5, 0], keys)
    with pytest.raises(ParameterError, match="one for each of 3"):
        oracle.hide([0, 1, 2], keys)
    with pytest.raises(ParameterError, match="keys must be of 6 kinds"):
        oracle.hide([0], OneTimeKeys([0], 7))
    messages = oracle.hide([0, 1], keys)  # what was refused has spent nothing
    with pytest.raises(ParameterError, match="fresh"):
        oracle.hide([0, 1], keys)
    assert oracle.recover(messages, keys).tolist() == [0, 1]
    with pytest.raises(ParameterError, match="no value"):
        oracle.recover([5], OneTimeKeys([0], 6, law=oracle.key_law.digest))
    not_recoverable = KeyedMechanism(np.array([[0, 1], [0, 1]]), [0.5, 0.5])
    assert not not_recoverable.is_recoverable
    assert KaryResponse(k=3, epsilon=1.0).channel_matrix().sum(axis=0).max() <= 1 + 1e-12
    for mechanism in (not_recoverable, KeyedMechanism(np.array([[0, 1], [1, 2]]), [0.5, 0.5])):
        with pytest.raises(ParameterError, match="reduced"):
            mechanism.reduce_key()
    for channel in ([[math.nan, 1.0]], [[-1.0, 2.0]], [[0.1, 0.1]], np.zeros((0, 0))):
        with pytest.raises(ParameterError, match="laws"):
            column_sum_test(channel)
    for bad in (2**20 + 1, 1):
        with pytest.raises(ParameterError, match="k must be"):
            CyclicResponse(k=bad, epsilon=1.0)
    with pytest.raises(ParameterError, match="message must be"):
        _written_out(oracle).reduce_key(0.0)  # type: ignore[arg-type]
    for table, law in (([[0.5]], [1.0]), ([[0, 1]], [0.5, 0.6]), ([[0, -1]], [0.5, 0.5])):
        with pytest.raises(ParameterError):
            KeyedMechanism(np.array(table), law)
