"""The shuffler keeps the multiset of symbols of every label, and nothing else."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.means import Message, shuffle
from tacit.randomness import simulated
from tests.statistics import z_bound


def symbols(*values: int, label: int = 0, sender: int = 0, width: int = 4) -> Message:
    return Message(payload=np.array(values), width=width, label=label, sender=sender)


def test_symbols_of_a_label_stay_together_and_lose_their_senders() -> None:
    sent = [symbols(1, 2, label=7, sender=0), symbols(3, label=2, sender=1), symbols(4, 5, label=7, sender=2)]
    second, seventh = shuffle(sent, rng=simulated(0, "shuffle"))
    assert (second.label, second.payload.tolist(), second.sender) == (2, [3], None)
    assert (seventh.label, sorted(seventh.payload.tolist()), seventh.sender) == (7, [1, 2, 4, 5], None)


def test_float_messages_stay_whole() -> None:
    sent = [Message(payload=np.array([k, -k], dtype=np.float64), sender=k) for k in range(5)]
    batch = shuffle(sent, rng=simulated(1, "shuffle"))
    assert sorted(m.payload.tolist() for m in batch) == sorted(m.payload.tolist() for m in sent)
    assert all(m.sender is None for m in batch)


def test_all_orders_are_equally_likely() -> None:
    rng, trials = simulated(2, "shuffle"), 6000
    sent = [symbols(k, sender=k) for k in range(3)]
    seen = Counter(tuple(shuffle(sent, rng=rng)[0].payload.tolist()) for _ in range(trials))
    assert len(seen) == 6
    spread = np.sqrt(trials * (1 / 6) * (5 / 6))
    assert max(abs(count - trials / 6) for count in seen.values()) < z_bound(6) * spread


def test_too_few_parties_get_no_batch() -> None:
    rng = simulated(4, "shuffle")
    # One colluder sends as much as three parties: it counts once.
    sent = [symbols(1, label=0, sender=k) for k in (0, 1, 1, 1)]
    assert shuffle(sent, rng=rng, n_min=2)[0].payload.size == 4
    state = rng.bit_generator.state
    with pytest.raises(RefusalError, match="2 parties is not released: n_min is 3"):
        shuffle(sent, rng=rng, n_min=3)
    # Only whole parties may be missing: every label counts.
    with pytest.raises(RefusalError, match="1 parties"):
        shuffle([*sent, symbols(1, label=7, sender=0)], rng=rng, n_min=2)
    with pytest.raises(RefusalError, match="0 parties"):
        shuffle([], rng=rng, n_min=2)
    with pytest.raises(ParameterError, match="senders"):
        shuffle(shuffle(sent, rng=simulated(5, "shuffle")), rng=rng, n_min=2)
    with pytest.raises(ParameterError, match="n_min"):
        shuffle(sent, rng=rng, n_min=0)
    assert rng.bit_generator.state == state


def test_messages_that_their_form_tells_apart_are_refused() -> None:
    with pytest.raises(ParameterError, match="one form"):
        shuffle([symbols(1), symbols(1, width=5)], rng=simulated(3, "shuffle"))
    floats = [Message(payload=np.zeros(k)) for k in (2, 3)]
    with pytest.raises(ParameterError, match="one form"):
        shuffle(floats, rng=simulated(3, "shuffle"))


def test_of_single_bits_their_number_and_that_of_the_ones_is_left() -> None:
    rng = np.random.default_rng(41)
    for trial in range(50):
        sizes = rng.integers(1, 90, 4).tolist()
        sent = [
            Message(payload=rng.integers(0, size + 1, 5), symbols=size, label=label, sender=party)
            for label in range(3)
            for party, size in enumerate(sizes)
        ]
        batch = shuffle(sent, rng=np.random.default_rng(trial))
        again = shuffle([sent[k] for k in rng.permutation(len(sent))], rng=np.random.default_rng(trial + 1))
        assert [m.to_bytes() for m in batch] == [m.to_bytes() for m in again]
        assert [(m.label, m.sender, m.symbols) for m in batch] == [(k, None, sum(sizes)) for k in range(3)]
        for label, message in enumerate(batch):
            counts = [m.payload for m in sent if m.label == label]
            assert message.payload.tolist() == np.sum(counts, axis=0).tolist()
            # On the wire stand these bits, ones first, for every entry up to a whole byte.
            bits = np.unpackbits(np.frombuffer(message.to_bytes()[15:], dtype=np.uint8)).reshape(5, -1)
            written = [[1] * k + [0] * (bits.shape[1] - k) for k in message.payload.tolist()]
            assert bits.tolist() == written
            assert bits.shape[1] == -(-sum(sizes) // 8) * 8


def test_counts_of_other_forms_are_refused() -> None:
    rng, counts = simulated(6, "shuffle"), Message(payload=np.array([3, 1]), symbols=4)
    longer = Message(payload=np.array([3, 1, 2]), symbols=4)
    for other in (longer, Message(payload=np.array([3, 1])), Message(payload=np.array([-1, 0]), width=1)):
        with pytest.raises(ParameterError, match="one form"):
            shuffle([counts, other], rng=rng)
        with pytest.raises(ParameterError, match="one form"):
            shuffle([other, counts], rng=rng)
