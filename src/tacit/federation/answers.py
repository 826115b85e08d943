"""Answers of silos as bytes: the messages of every statistic."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import cast

import msgspec
import numpy as np

from tacit.errors import ParameterError, RefusalError
from tacit.federation.circle import Circle
from tacit.federation.drawn import DrawnStep, new_word
from tacit.federation.plan import Plan
from tacit.federation.query import Query
from tacit.federation.steps import AnyStep
from tacit.means import Message, Round, SumEncoder
from tacit.numerics import IntArray
from tacit.privacy import TrustModel
from tacit.randomness import simulated

__all__ = [
    "Answer",
    "answer_bytes",
    "binding",
    "digest_of_run",
    "encode_answer",
    "one_message",
    "open_answer",
    "open_sum",
    "zero_answer",
]


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a silo sends back.

    Attributes:
        messages: Of every statistic, as bytes.
        bound: Under shuffle trust, 16 bytes that stand for all that the answer belongs to (`binding`).
        version: Of the form: 2 where an answer is bound, else 1.
    """

    messages: tuple[tuple[bytes, ...], ...]
    bound: bytes = b""
    version: int = 1


class _Received(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same as it arrives: views of what was received, since messages of bits are long."""

    messages: tuple[tuple[memoryview, ...], ...]
    bound: bytes = b""
    version: int = 1


_BOUND = 2
_UNBOUND = bytes(16)
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Received)


def encode_answer(messages: tuple[tuple[bytes, ...], ...], bound: bytes = b"") -> bytes:
    """Write what `open_answer` reads."""
    return _ENCODER.encode(Answer(messages, bound, _BOUND) if bound else Answer(messages))


def digest_of_run(plan: Plan, run: str) -> bytes:
    """Return 32 bytes that differ for any other plan, or other run of one."""
    return hashlib.blake2b(plan.digest() + run.encode(), digest_size=32).digest()


def binding(query: Query, circle: Circle, run: bytes) -> bytes:
    """Return 16 bytes that differ for any other query, circle or run.

    Every answer to a shuffler carries them, so that also one that has forgotten what it released mixes only
    answers that were made for one another: not some of an older, larger circle, nor of another run.

    Args:
        query: What is asked.
        circle: Whose answers are mixed.
        run: What `digest_of_run` returned.
    """
    return query.digest(circle=circle.digest + run)


def zero_answer(step: AnyStep, size: int) -> tuple[list[Message], ...]:
    """Return messages about zeros, which have the form of all answers of a silo of that public size."""
    rng, rows = simulated(0, "lengths"), step.batch.size_for(size)
    groups = []
    for measure in step.measures:
        estimator, this_round = measure.estimator, Round(n=rows, radius=measure.max_radius)
        if estimator.sums:  # however many rows there are
            zero, encoder = np.zeros(estimator.dim), cast(SumEncoder, estimator)
            sent = encoder.encode_sum(zero, rows=rows, round=this_round, party=0, rng=rng)
        else:
            sent = estimator.encode(np.zeros((rows, estimator.dim)), this_round, party=0, rng=rng)
        groups.append(sent)
    if isinstance(step, DrawnStep):
        groups.append([new_word(rng)])
    if step.trust is TrustModel.AGGREGATE:
        return ([one_message(groups)],)
    return tuple(groups)


def one_message(groups: Sequence[Sequence[Message]]) -> Message:
    """Return the messages of a step of aggregate trust, one of each mean, as the one that is sent."""
    sent = [message for (message,) in groups]
    return Message(payload=np.concatenate([one.payload for one in sent]), width=sent[0].width)


def open_sum(step: AnyStep, data: bytes, *, party: int) -> IntArray:
    """Read what a silo sent in a step of aggregate trust: one vector, shape (d,), of centred residues.

    Raises:
        ParameterError: The bytes are no answer, or one of another length or width than the step's.
    """
    groups = open_answer(data, party=party)
    dim, width = sum(one.dim for one in step.summed), step.summed[0].width
    sent = groups[0][0] if [len(group) for group in groups] == [1] else None
    if sent is None or sent.width != width or sent.payload.shape != (dim,) or sent.label or sent.symbols:
        raise ParameterError(
            f"party {party} must send one message of {dim} numbers of {width} bits in this step."
        )
    return sent.payload


def answer_bytes(step: AnyStep, size: int) -> int:
    """Return the bytes of one answer, which depend on public facts only: those of one about zeros."""
    groups = tuple(tuple(message.to_bytes() for message in sent) for sent in zero_answer(step, size))
    return len(encode_answer(groups, _UNBOUND if step.trust is TrustModel.SHUFFLE else b""))


def open_answer(data: bytes, *, party: int, bound: bytes = b"") -> tuple[list[Message], ...]:
    """Read what `Silo.answer` returned: for every statistic its messages.

    Args:
        data: What was sent.
        party: Who sent it.
        bound: What the answer must be bound to, under shuffle trust; empty reads any.

    Raises:
        ParameterError: The bytes are not an answer, or one of an unknown version.
        RefusalError: The answer is bound to something else, or to nothing.
    """
    try:
        answer = _DECODER.decode(data)
        if answer.version != (_BOUND if answer.bound else 1):
            raise ParameterError(f"the answer has the unknown version {answer.version}.")
        groups = tuple([Message.from_bytes(m, sender=party) for m in group] for group in answer.messages)
    except (msgspec.MsgspecError, ParameterError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"party {party} sent something that is not an answer: {str(error)[:200]}"
        ) from error
    if bound and answer.bound != bound:
        raise RefusalError(f"party {party} sent an answer that was made for another query, circle or run.")
    return groups
