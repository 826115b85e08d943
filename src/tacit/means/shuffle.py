"""What an ideal shuffler does to messages; the simulation of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from tacit.errors import ParameterError, RefusalError, check_count
from tacit.means.message import Message

__all__ = ["shuffle"]


def shuffle(messages: Sequence[Message], *, rng: np.random.Generator, n_min: int = 1) -> list[Message]:
    """Forget who sent what, and in which order, or release nothing where too few have sent.

    It is the shuffler who must give a round up: whoever reads the batch is the one that it protects from.

    Every entry of an integer message is one sealed symbol, every float message is one. Symbols of one label
    are permuted among each other: labels tell parallel shufflers apart. Where entries count one-bit symbols,
    each entry is a shuffler of its own, of whose symbols only their number and that of the ones is left.

    Args:
        messages: Of all parties.
        rng: Draws the permutation; in a deployment, the shuffler's own.
        n_min: Distinct senders, in every label, below which nothing is released, >= 1.

    Returns:
        For each label in increasing order: one integer message with all its symbols, or its float messages.
        No message has a sender. Counts of bits are added up, which tells as much as a permutation of the
        bits; nothing is drawn for them.

    Raises:
        ParameterError: Messages of one label differ in their form, or floats and counts in their shape; or
            `n_min` is above 1 and a message has no sender, so that nobody can count them.
        RefusalError: Fewer senders than `n_min`. What is sent in a new try has fresh noise and costs nothing
            more, because nothing was released.

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Definition 2.6: the view of a shuffled batch is the multiset.

    Example:
        >>> sent = [Message(payload=np.array([k]), width=3, sender=k) for k in range(3)]
        >>> (batch,) = shuffle(sent, rng=np.random.default_rng(1))
        >>> sorted(batch.payload.tolist()), batch.sender
        ([0, 1, 2], None)
    """
    check_count("n_min", n_min)
    by_label: defaultdict[int, list[Message]] = defaultdict(list)
    for message in messages:
        by_label[message.label].append(message)
    if n_min > 1:
        _check_arrived(by_label.values(), n_min)
    batch: list[Message] = []
    for label in sorted(by_label):
        batch.extend(_mixed(by_label[label], rng))
    return batch


def _check_arrived(batches: Collection[list[Message]], n_min: int) -> None:
    """Refuse to release anything where a batch comes from too few parties."""
    senders = [{message.sender for message in batch} for batch in batches]
    if any(None in parties for parties in senders):
        raise ParameterError("messages must have senders for n_min: one without a sender counts for nobody.")
    fewest = min(map(len, senders), default=0)
    if fewest < n_min:
        raise RefusalError(f"a batch of {fewest} parties is not released: n_min is {n_min}.")


def _mixed(messages: list[Message], rng: np.random.Generator) -> list[Message]:
    """Return the messages of one label as the shuffler releases them."""
    first = messages[0]
    counts, integers = first.symbols > 0, first.payload.dtype == np.int64
    for message in messages:
        same_form = message.payload.dtype == first.payload.dtype and message.width == first.width
        same_form = same_form and (message.symbols > 0) == counts
        if not same_form or ((counts or not integers) and message.payload.shape != first.payload.shape):
            raise ParameterError(
                f"messages with the label {first.label} must all have one form, or it would tell them apart; "
                f"got {message.payload.dtype} of {message.width} bits beside {first.payload.dtype} of "
                f"{first.width} bits."
            )
    if counts:
        # Entry by entry, all symbols of all parties: as many, and as many ones among them.
        ones = np.stack([message.payload for message in messages]).sum(axis=0, dtype=np.int64)
        return [
            replace(first, payload=np.asarray(ones), symbols=sum(m.symbols for m in messages), sender=None)
        ]
    if integers:
        symbols = np.concatenate([message.payload for message in messages])
        return [replace(first, payload=rng.permutation(symbols), sender=None)]
    order = rng.permutation(len(messages))
    return [replace(messages[k], sender=None) for k in order]
