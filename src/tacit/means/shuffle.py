"""What an ideal shuffler does to messages; the simulation of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.errors import ParameterError
from tacit.means.message import Message

__all__ = ["shuffle"]


def shuffle(messages: Sequence[Message], *, rng: np.random.Generator) -> list[Message]:
    """Forget who sent what, and in which order.

    Every entry of an integer message is one sealed symbol, every float message is one. Symbols of one label
    are permuted among each other: labels tell parallel shufflers apart.

    Args:
        messages: Of all parties.
        rng: Draws the permutation; in a deployment, the shuffler's own.

    Returns:
        For each label in increasing order: one integer message with all its symbols, or its float messages.
        No message has a sender.

    Raises:
        ParameterError: Messages of one label differ in their type or width, or float ones in their shape.

    Reference:
        Spec 04 §0 (multi-message shuffling), spec 09 §1 (the view is the multiset).

    Example:
        >>> sent = [Message(payload=np.array([k]), width=3, sender=k) for k in range(3)]
        >>> (batch,) = shuffle(sent, rng=np.random.default_rng(1))
        >>> sorted(batch.payload.tolist()), batch.sender
        ([0, 1, 2], None)
    """
    by_label: defaultdict[int, list[Message]] = defaultdict(list)
    for message in messages:
        by_label[message.label].append(message)
    batch: list[Message] = []
    for label in sorted(by_label):
        batch.extend(_mixed(by_label[label], rng))
    return batch


def _mixed(messages: list[Message], rng: np.random.Generator) -> list[Message]:
    """Return the messages of one label as the shuffler releases them."""
    first = messages[0]
    integers = first.payload.dtype == np.int64
    for message in messages:
        same_form = message.payload.dtype == first.payload.dtype and message.width == first.width
        if not same_form or (not integers and message.payload.shape != first.payload.shape):
            raise ParameterError(
                f"messages with the label {first.label} must all have one form, or it would tell them apart; "
                f"got {message.payload.dtype} of {message.width} bits beside {first.payload.dtype} of "
                f"{first.width} bits."
            )
    if integers:
        symbols = np.concatenate([message.payload for message in messages])
        return [replace(first, payload=rng.permutation(symbols), sender=None)]
    order = rng.permutation(len(messages))
    return [replace(messages[k], sender=None) for k in order]
