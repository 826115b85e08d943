"""Whatever arrives is read or refused: byte strings, and messages that no party can have written.

Only `ParameterError` may be raised; what is decoded is finite; memory stays in proportion to what was sent.
"""

from __future__ import annotations

import functools
import struct
import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Estimator,
    GaussianNoise,
    Induced,
    LaplaceNoise,
    MeanMapPinv,
    Message,
    PerPartyPinv,
    QuantizedMean,
    RandK,
    RandKSpatial,
    RandProjSpatial,
    Round,
    SignVoteMean,
    TopKMean,
    Wangni,
)
from tacit.numerics import Array
from tacit.privacy import TrustModel
from tacit.randomness import simulated

DIM = 6
ROUND = Round(n=3, parties=3, radius=1.0, number=2, seed=9)

MEANS: list[Estimator] = [
    AdditiveMean(dim=DIM),
    AdditiveMean(dim=DIM, noise=GaussianNoise(1.0)),
    AdditiveMean(dim=DIM, noise=LaplaceNoise(1.0)),
    AdditiveMean(dim=DIM, noise=DiscreteGaussianNoise(1.0)),
    AdditiveMean(dim=DIM, noise=DiscreteLaplaceNoise(1.0), trust=TrustModel.CENTRAL),
    AdditiveMean(dim=DIM, trust=TrustModel.CENTRAL),
    RandK(dim=DIM, k=2),
    RandK(dim=DIM, k=3, rotate=True, value_bits=64),
    RandK(dim=DIM, k=2, noise=DiscreteLaplaceNoise(1.0)),
    RandKSpatial(dim=DIM, k=2, transform="max", value_bits=64),
    RandKSpatial(dim=DIM, k=2, noise=GaussianNoise(1.0)),
    RandProjSpatial(dim=DIM, k=2, value_bits=64),
    RandProjSpatial(dim=DIM, k=3, transform="max", projection="subsample", backend="lsmr", value_bits=64),
    RandProjSpatial(dim=DIM, k=3, projection="subsample", backend="cg", value_bits=64),
    RandProjSpatial(dim=DIM, k=3, transform="one"),
    RandProjSpatial(dim=DIM, k=2, projection="count_sketch", transform="one", value_bits=64),
    RandProjSpatial(dim=DIM, k=8, transform="max", noise=DiscreteGaussianNoise(1.0, steps=8)),
    PerPartyPinv(dim=DIM, k=2, value_bits=64),
    MeanMapPinv(dim=DIM, k=2, value_bits=64),
    Wangni(dim=DIM, k=2),
    TopKMean(dim=DIM, k=2),
    TopKMean(dim=1, k=1),
    Induced(dim=DIM, k=4),
    Induced(dim=DIM, k=4, restrict=True),
    QuantizedMean(dim=DIM, levels=3),
    QuantizedMean(dim=DIM, levels=5, rotate=True),
    QuantizedMean(dim=DIM, levels=2, scheme="qsgd"),
    SignVoteMean(dim=DIM),
    SignVoteMean(dim=DIM, noise=DiscreteGaussianNoise(1.0)),
    SignVoteMean(dim=DIM, noise=DiscreteGaussianNoise(1.0), trust=TrustModel.CENTRAL),
]
MEANS = [msgspec.structs.replace(mean, on_violation="clip") for mean in MEANS]

every = pytest.mark.parametrize("mean", MEANS, ids=lambda m: f"{type(m).__name__} {MEANS.index(m)}")


@functools.cache
def sent_honestly(index: int) -> tuple[bytes, ...]:
    """What three parties send, as bytes, with the sender in front of every message."""
    mean = MEANS[index]
    rng, rows = simulated(0, "honest"), np.random.default_rng(0).normal(size=(3, mean.dim))
    return tuple(
        bytes([party]) + message.to_bytes()
        for party, row in enumerate(rows)
        for message in mean.encode(row[None], ROUND, party=party, rng=rng)
    )


def honest(mean: Estimator) -> list[bytes]:
    """The same for an estimator of the list."""
    return list(sent_honestly(MEANS.index(mean)))


def decoded_or_refused(mean: Estimator, messages: list[Message]) -> Array | None:
    """Decode; a refusal gives None, anything else but a finite vector is a failure."""
    try:
        found = mean.decode(messages, ROUND, rng=simulated(1, "server"))
    except ParameterError:
        return None
    assert found.shape == (mean.dim,)
    assert found.dtype == np.float64
    assert np.all(np.isfinite(found))
    return found


def read(pieces: list[bytes]) -> list[Message]:
    """The messages among byte strings whose first byte is the sender."""
    messages = []
    for piece in pieces:
        try:
            messages.append(Message.from_bytes(piece[1:], sender=piece[0]))
        except ParameterError:
            continue
    return messages


# Bytes


@settings(max_examples=200, deadline=None)
@given(
    index=st.integers(0, len(MEANS) - 1),
    which=st.integers(0, 100),
    edits=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=6),
    cut=st.integers(-12, 12),
    tail=st.binary(max_size=12),
)
def test_mutated_messages_are_read_as_they_are_or_refused(
    index: int, which: int, edits: list[tuple[int, int]], cut: int, tail: bytes
) -> None:
    mean = MEANS[index]
    pieces = honest(mean)
    data = bytearray(pieces[which % len(pieces)])
    for place, value in edits:
        data[place % len(data)] = value
    data = data[:cut] + tail if cut < 0 else data + tail[:cut]
    if len(data) > 1:
        try:
            message = Message.from_bytes(bytes(data[1:]))
        except ParameterError:
            pass
        else:
            assert message.to_bytes() == bytes(data[1:])
    pieces[which % len(pieces)] = bytes(data) or b"\0"
    decoded_or_refused(mean, read(pieces))


@settings(max_examples=200, deadline=None)
@given(
    index=st.integers(0, len(MEANS) - 1),
    bits=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10_000)), min_size=1, max_size=20),
)
def test_flipped_bits_are_survived(index: int, bits: list[tuple[int, int]]) -> None:
    mean = MEANS[index]
    pieces = [bytearray(piece) for piece in honest(mean)]
    for which, place in bits:
        piece = pieces[which % len(pieces)]
        byte, bit = divmod(place % (8 * len(piece)), 8)
        piece[byte] ^= 1 << bit
    decoded_or_refused(mean, read([bytes(piece) for piece in pieces]))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=60), max_size=5), st.integers(0, len(MEANS) - 1))
@example(pieces=[], index=0)
def test_noise_of_the_line_is_survived(pieces: list[bytes], index: int) -> None:
    decoded_or_refused(MEANS[index], read(pieces))


@pytest.mark.parametrize(("kind", "width"), [(1, 32), (2, 64), (3, 1), (3, 7), (3, 8), (3, 64)])
@pytest.mark.parametrize("count", [2**31, 2**32 - 1])
@pytest.mark.parametrize("extra", [0, 1, 4096])
def test_a_header_that_lies_costs_nothing(kind: int, width: int, count: int, extra: int) -> None:
    data = struct.pack(">BBIIB", 1, kind, 0, count, width) + bytes(extra)
    tracemalloc.start()
    with pytest.raises(ParameterError, match="must have"):
        Message.from_bytes(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000


@every
def test_oversized_messages_are_refused_without_work(mean: Estimator) -> None:
    large = [Message(payload=np.zeros(200_000, dtype), width=w, sender=0) for dtype, w in FORMS]
    tracemalloc.start()
    for message in large:
        with pytest.raises(ParameterError):
            mean.decode([message], ROUND, rng=simulated(1, "server"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


# Parsed messages

FORMS: list[tuple[Any, int]] = [(np.float32, 0), (np.float64, 0), (np.int64, 8), (np.int64, 64)]
WIDTHS = [1, 2, 3, 4, 24, 35, 50, 64]

numbers = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 1.0, -1.0, 1e-320, 3.4e38, -3.4e38, 1e300, -1.7e308, np.nan, np.inf, -np.inf]
    ),
    st.floats(width=32),
)
integers = st.one_of(
    st.sampled_from([0, 1, -1, 2**62, -(2**63), 2**63 - 1]), st.integers(-(2**63), 2**63 - 1)
)
lengths = st.one_of(st.sampled_from([1, 2, 3, 4, DIM, 8]), st.integers(0, 12))


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message that `from_bytes` may return, from any sender."""
    count = draw(lengths)
    sender = draw(st.sampled_from([None, 0, 1, 2, 2, 7, 2**62]))
    label = draw(st.sampled_from([0, 0, 0, 1, 2, 2**32 - 1]))
    dtype, _ = draw(st.sampled_from(FORMS))
    if dtype is np.int64:
        width = draw(st.sampled_from(WIDTHS))
        low = 64 - width
        # Arithmetic shift: what fits into the width, as the wire does it.
        payload = np.array(draw(st.lists(integers, min_size=count, max_size=count)), dtype=np.int64)
        return Message(payload=(payload << low) >> low, width=width, label=label, sender=sender)
    values = draw(st.lists(numbers, min_size=count, max_size=count))
    with np.errstate(over="ignore"):
        return Message(payload=np.array(values).astype(dtype), label=label, sender=sender)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(MEANS) - 1), st.lists(messages(), max_size=4))
def test_any_messages_are_decoded_or_refused(index: int, batch: list[Message]) -> None:
    decoded_or_refused(MEANS[index], batch)


@settings(max_examples=300, deadline=None)
@given(st.data(), st.integers(0, len(MEANS) - 1))
def test_any_numbers_in_the_right_form_are_decoded_or_refused(data: st.DataObject, index: int) -> None:
    mean = MEANS[index]
    batch = []
    for message in read(honest(mean)):
        count = message.payload.size
        if message.width:
            drawn = data.draw(st.lists(integers, min_size=count, max_size=count))
            low = 64 - message.width
            payload = (np.array(drawn, dtype=np.int64) << low) >> low
        else:
            values = data.draw(st.lists(numbers, min_size=count, max_size=count))
            with np.errstate(over="ignore"):
                payload = np.array(values).astype(message.payload.dtype)
        batch.append(
            Message(payload=payload, width=message.width, label=message.label, sender=message.sender)
        )
    found = decoded_or_refused(mean, batch)
    floats = np.concatenate([m.payload for m in batch if not m.width] or [np.zeros(1)])
    if not np.all(np.isfinite(floats)):
        assert found is None  # a NaN never counts as a number


@every
def test_honest_messages_pass_and_one_bad_number_does_not(mean: Estimator) -> None:
    batch = read(honest(mean))
    assert decoded_or_refused(mean, batch) is not None
    for at, message in enumerate(batch):
        for wrong in wrongs(message):
            assert decoded_or_refused(mean, [*batch[:at], wrong, *batch[at + 1 :]]) is None


def wrongs(message: Message) -> list[Message]:
    """Versions of a message that no party can have written."""
    payload, sender, label = message.payload, message.sender, message.label
    other = np.float64 if payload.dtype == np.float32 else np.float32
    found = [
        Message(payload=payload[:-1], width=message.width, sender=sender, label=label),
        Message(payload=np.append(payload, payload[:1]), width=message.width, sender=sender, label=label),
        Message(payload=np.tile(payload, (2, 1)), width=message.width, sender=sender, label=label),
        Message(payload=payload.astype(other), sender=sender, label=label),
    ]
    if not message.width:
        for bad in (np.nan, np.inf, -np.inf):
            spoiled = payload.copy()
            spoiled[-1] = bad
            found.append(Message(payload=spoiled, sender=sender, label=label))
    return found


def test_signalling_nans_raise_nothing_else() -> None:
    for pattern in (0x7F800001, 0xFF800001, 0x7FC00000):
        body = struct.pack(">I", pattern) * 2
        message = Message.from_bytes(struct.pack(">BBIIB", 1, 1, 0, 2, 32) + body, sender=0)
        with pytest.raises(ParameterError, match="finite"):
            RandK(dim=DIM, k=2).decode([message], ROUND)


def test_huge_finite_numbers_overflow_into_a_refusal() -> None:
    two = [Message(payload=np.full(DIM, 1.7e308), sender=s) for s in (0, 1)]
    with pytest.raises(ParameterError, match="overflow"):
        AdditiveMean(dim=DIM).decode(two, ROUND)
    one = [Message(payload=np.full(2, 1.7e308), sender=0)]
    for kind in (RandK, RandProjSpatial):
        with pytest.raises(ParameterError, match="overflow"):
            kind(dim=60, k=2, value_bits=64).decode(one, Round(n=1, radius=1.0))
    # Finite where the result is: scaling keeps the solver in range.
    assert np.all(np.isfinite(RandProjSpatial(dim=2, k=2, value_bits=64).decode(one, Round(n=9, radius=1.0))))
