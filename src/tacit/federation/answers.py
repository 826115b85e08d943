"""Answers of silos as bytes: the messages of every statistic."""

from __future__ import annotations

from typing import cast

import msgspec
import numpy as np

from tacit.errors import ParameterError
from tacit.federation.steps import AnyStep
from tacit.means import Message, Round, SumEncoder
from tacit.randomness import simulated

__all__ = ["Answer", "answer_bytes", "encode_answer", "open_answer"]


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a silo sends back: the messages of every statistic, as bytes."""

    messages: tuple[tuple[bytes, ...], ...]


class _Received(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same as it arrives: views of what was received, since messages of bits are long."""

    messages: tuple[tuple[memoryview, ...], ...]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Received)


def encode_answer(messages: tuple[tuple[bytes, ...], ...]) -> bytes:
    """Write what `open_answer` reads."""
    return _ENCODER.encode(Answer(messages))


def answer_bytes(step: AnyStep, size: int) -> int:
    """Return the bytes of one answer, which depend on public facts only: those of one about zeros."""
    rng, rows = simulated(0, "lengths"), step.batch.size_for(size)
    groups = []
    for measure in step.measures:
        estimator, this_round = measure.estimator, Round(n=rows, radius=measure.max_radius)
        if estimator.sums:  # however many rows there are
            zero, encoder = np.zeros(estimator.dim), cast(SumEncoder, estimator)
            sent = encoder.encode_sum(zero, rows=rows, round=this_round, party=0, rng=rng)
        else:
            sent = estimator.encode(np.zeros((rows, estimator.dim)), this_round, party=0, rng=rng)
        groups.append(tuple(message.to_bytes() for message in sent))
    return len(encode_answer(tuple(groups)))


def open_answer(data: bytes, *, party: int) -> tuple[list[Message], ...]:
    """Read what `Silo.answer` returned: for every statistic its messages.

    Raises:
        ParameterError: The bytes are not an answer.
    """
    try:
        answer = _DECODER.decode(data)
        return tuple([Message.from_bytes(m, sender=party) for m in group] for group in answer.messages)
    except (msgspec.MsgspecError, ParameterError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"party {party} sent something that is not an answer: {str(error)[:200]}"
        ) from error
