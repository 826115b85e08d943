"""Attacks at many values: what analysts, coalitions and observers without keys see stays below its claim.

Each has a negative control with half of the noise. Lower bounds hold with probability 1 - 1e-7 each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tacit.audits import audit, coalition_target, oracle_target
from tacit.audits.attack import Audit
from tacit.frequencies import (
    CyclicResponse,
    JointKey,
    LevelledHadamard,
    RecoverableHadamard,
    RecoverableOracle,
    SeparateLevels,
    SequenceResponse,
)
from tacit.numerics import Array
from tacit.privacy import Event, pure_epsilon_of, verify

K, RUNS = 200, 60_000
SURE = 1 - 1e-7


def _attack(run: Callable[[bool, int, np.random.Generator], Array], event: Event) -> Audit:
    return audit(run, (event, 0.0), runs=RUNS, confidence=SURE, rng=np.random.default_rng(1))


@pytest.mark.parametrize("kind", [CyclicResponse, RecoverableHadamard])
def test_messages_without_their_keys(kind: type[RecoverableOracle]) -> None:
    claimed, weak = kind(k=K, epsilon=1.0), kind(k=K, epsilon=2.0)
    for made, refuted in ((claimed, False), (weak, True)):
        target = oracle_target(made, claim=claimed)
        found = _attack(target.run, target.event)
        assert found.refuted is refuted
        assert found.empirical_epsilon_lower > 0.8


def _columns_apart(bits: Array, columns: Array) -> Array:
    """Score a bit of a column for value 0 against value K - 1: zero where both have the same entry."""
    other = (np.bitwise_count(np.int64(K - 1) & columns) & 1) ^ 1
    return np.where(other == 1, 0.0, 2.0 * bits - 1)


@pytest.mark.parametrize("members", [(), (2,), (1, 2), (0, 1, 2), (0, 2)])
def test_coalitions_pool_keys(members: tuple[int, ...]) -> None:
    """The best member's bit is a sufficient statistic; adding the other members' keys may not help."""
    claimed = LevelledHadamard(K, (2.0, 1.0, 0.5))

    found = _attack(coalition_target(claimed, members).run, claimed.event(members))
    assert not found.refuted
    assert found.empirical_epsilon_lower > 0.7 * claimed.coalition_level(members)
    half = LevelledHadamard(K, (4.0, 2.0, 1.0))
    weak = coalition_target(half, members, claim=claimed)
    assert _attack(weak.run, weak.event).refuted


def test_separate_messages_add_up() -> None:
    """Both messages together refute the level of the better one, and not the sum."""
    scheme = SeparateLevels(K, (2.0, 1.5))

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        messages = scheme.publish(np.full(size, 0 if present else K - 1), rng)
        a, b = (_columns_apart(m & 1, m >> 1) for m in messages)
        return np.asarray(2 * a + 1.5 * b)

    assert not _attack(run, scheme.event([0, 1])).refuted
    assert _attack(run, scheme.event([0])).refuted
    verify(scheme.price([0, 1]))
    assert scheme.price([1, 0]).epsilon == pytest.approx(3.5, abs=1e-5)


def test_sequences_of_values() -> None:
    oracle = CyclicResponse(k=K, epsilon=0.7)
    sequence, law = SequenceResponse(oracle, 2), np.log(oracle.key_law.pmf())

    def scoring(place: int) -> Callable[[bool, int, np.random.Generator], Array]:
        def run(present: bool, size: int, rng: np.random.Generator) -> Array:
            values = np.zeros((size, 2), dtype=np.int64)
            values[:, place:] = 0 if present else K - 1
            messages = sequence.hide(values, sequence.draw_keys(size, rng))
            return np.asarray((law[messages] - law[(messages - (K - 1)) % K]).sum(axis=1))

        return run

    assert not _attack(scoring(1), sequence.event()).refuted  # one value differs
    assert not _attack(scoring(0), sequence.event(whole=True)).refuted
    assert _attack(scoring(0), sequence.event()).refuted  # both do, against the level of one
    verify(sequence.price(whole=True))
    assert sequence.price(whole=True).epsilon == pytest.approx(1.4, abs=1e-5)


def test_joint_keys() -> None:
    outer = np.multiply.outer([4, 2, 1], [2, 1, 2])
    claimed, weak = JointKey(outer), JointKey(outer**2)

    def attacking(key: JointKey) -> Callable[[bool, int, np.random.Generator], Array]:
        def run(present: bool, size: int, rng: np.random.Generator) -> Array:
            # y = v - x: values that differ by 2 in the first place set weights 4 and 1 against each other.
            values = np.tile([0 if present else 2, 0], (size, 1))
            y = key.hide(values, key.draw_keys(size, rng))
            at = key.weights[y[:, 0], y[:, 1]], key.weights[(y[:, 0] + 2) % 3, y[:, 1]]
            return np.log(at[0]) - np.log(at[1])

        return run

    assert not _attack(attacking(claimed), claimed.event()).refuted
    assert _attack(attacking(weak), claimed.event()).refuted
    assert claimed.price().epsilon == pytest.approx(np.log(4), abs=1e-5)
    assert pure_epsilon_of(claimed.price(whole=True).event) == pytest.approx(2 * np.log(4), rel=1e-9)
    verify(claimed.price(whole=True))
