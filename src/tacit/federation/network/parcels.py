"""Parcels: an answer as a shuffler may carry it, and a batch of them as the server reads it.

In one process a shuffler sees messages and mixes them (`tacit.means.shuffle`). Between machines it must do
the same without reading them. There are two lanes:

* Symbols and messages of floats are **sealed** one by one to the server, all of a round at one length. The
  shuffler permutes the sealed messages of all parties.
* Of one-bit symbols, which messages count, mixing leaves their sum only. To seal every bit would take
  hundreds of times the bits. So a party adds to its counts a **mask**, modulo 2**64, that it expands from a
  fresh seed, and sends the seed to the server through the sealed lane. The shuffler adds masked counts up,
  the server takes all masks off.

Why this shows the server nothing but what the ideal shuffler would, and the shuffler nothing:
docs/theory/shuffling.md, "A shuffler that cannot read".

How many sealed messages a parcel has, and all lengths, follow from the plan, the step and the public size of
the party (`ParcelForm`), so that a parcel is bytes without any header.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, Self

import msgspec
import numpy as np

from tacit.errors import ParameterError
from tacit.federation.answers import open_answer, zero_answer
from tacit.federation.drawn import DrawnStep, read_word
from tacit.federation.network.draws import SEALED_DRAW_BYTES, seal_draw
from tacit.federation.network.keys import OpeningKey, SealingKey
from tacit.federation.network.sealing import (
    MASK_SEED_BYTES,
    SEALED_OVERHEAD,
    Words,
    mask,
    open_sealed,
    seal_padded,
)
from tacit.federation.shuffler import Batched
from tacit.federation.steps import AnyStep
from tacit.means import Message
from tacit.numerics import IntArray

__all__ = [
    "ParcelForm",
    "SealedBatch",
    "form_of",
    "make_parcel",
    "open_batch",
    "parcel_form",
]

_WORD_BYTES: Final = 8

_VERSION: Final = 2
_PLACE: Final = struct.Struct(">H")
_WIRE: Final[dict[str, np.dtype[Any]]] = {"f4": np.dtype(">f4"), "f8": np.dtype(">f8")}
_NATIVE: Final[dict[str, type[np.floating[Any]]]] = {"f4": np.float32, "f8": np.float64}


@dataclass(frozen=True, slots=True)
class Slot:
    """What all messages about one statistic under one label have in common; the same for all parties.

    Attributes:
        statistic: Index of the statistic in the step.
        label: Of the messages.
        kind: Symbols ("symbols", sealed one by one), floats of 32 or 64 bits ("f4", "f8", sealed message by
            message), or counts of one-bit symbols ("counts", masked; sealed are their seeds).
        width: Bits of a symbol; else 0.
        entries: Numbers of a message of floats or counts; 1 for symbols.
    """

    statistic: int
    label: int
    kind: Literal["symbols", "f4", "f8", "counts"]
    width: int
    entries: int

    @property
    def content_bytes(self) -> int:
        """Bytes of what is sealed, without the number of the slot."""
        match self.kind:
            case "symbols":
                return (self.width + 7) // 8
            case "counts":
                return MASK_SEED_BYTES
            case kind:
                return _WIRE[kind].itemsize * self.entries

    @property
    def words(self) -> int:
        """Numbers of the sum lane."""
        return self.entries if self.kind == "counts" else 0


@dataclass(frozen=True)
class ParcelForm:
    """What a parcel of a party of some public size looks like, or a batch of several; all of it is public.

    Attributes:
        slots: By statistic and label.
        sealed: How many sealed messages there are of each slot; of counts, one for each party.
        symbols: One-bit symbols behind every count of each slot; 0 where nothing is counted.
        draws: Whether a parcel ends in a sealed word, by which its party is drawn; no batch does.
    """

    slots: tuple[Slot, ...]
    sealed: tuple[int, ...]
    symbols: tuple[int, ...]
    draws: bool = False

    @cached_property
    def blob_bytes(self) -> int:
        """Bytes of every sealed message."""
        return _PLACE.size + max(slot.content_bytes for slot in self.slots) + SEALED_OVERHEAD

    @cached_property
    def blobs(self) -> int:
        """Number of sealed messages."""
        return sum(self.sealed)

    @cached_property
    def words(self) -> int:
        """Numbers of the sum lane."""
        return sum(slot.words for slot in self.slots)

    @cached_property
    def sums_at(self) -> int:
        """Where the numbers of the sum lane begin."""
        return self.blobs * self.blob_bytes

    @cached_property
    def sums_end(self) -> int:
        """Where they end."""
        return self.sums_at + self.words * _WORD_BYTES

    @cached_property
    def size(self) -> int:
        """Bytes in all: sealed messages, then the numbers of the sum lane, then the word."""
        return self.sums_end + SEALED_DRAW_BYTES * self.draws

    def plus(self, other: ParcelForm) -> ParcelForm:
        """Return the form of two parcels mixed.

        Raises:
            ParameterError: They are of different steps.
        """
        if other.slots != self.slots:
            raise ParameterError("parcels that are mixed must belong to one step.")
        return replace(
            self,
            sealed=tuple(a + b for a, b in zip(self.sealed, other.sealed, strict=True)),
            symbols=tuple(a + b for a, b in zip(self.symbols, other.symbols, strict=True)),
        )

    @classmethod
    def total(cls, forms: Iterable[ParcelForm]) -> ParcelForm:
        """Return the form of a batch; errors as `plus`, and ParameterError for no parcels."""
        first, *others = forms
        for other in others:
            first = first.plus(other)
        return first


class SealedBatch(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What leaves the shuffler: the body of a parcel that has been mixed of all, and public numbers.

    Attributes:
        rows: Units behind every mean.
        parties: Of how many parties messages are in it: of all that sent, or of those that were drawn.
        came: How many sent.
        sealed: As in `ParcelForm`, of all these parties together.
        symbols: Likewise.
        body: The permuted sealed messages, then the summed masked counts.
        version: Of this form.
    """

    rows: int
    parties: int
    came: int
    sealed: tuple[int, ...]
    symbols: tuple[int, ...]
    body: bytes
    version: int = _VERSION

    def to_bytes(self) -> bytes:
        """Return what `from_bytes` reads."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a batch.

        Raises:
            ParameterError: Not a batch, or one of another version.
        """
        try:
            batch = msgspec.msgpack.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ParameterError("the shuffler's batch cannot be read.") from error
        if batch.version != _VERSION:
            raise ParameterError(f"the batch has version {batch.version}; this tacit reads {_VERSION}.")
        return batch


def parcel_form(step: AnyStep, size: int) -> ParcelForm:
    """Return the form of the parcels of a step by parties of a public size: that of an answer about zeros.

    About as much work as one answer, so callers keep it.
    """
    groups = zero_answer(step, size)
    return replace(form_of(groups[:-1]), draws=True) if isinstance(step, DrawnStep) else form_of(groups)


def make_parcel(
    answer: bytes,
    *,
    form: ParcelForm,
    party: int,
    bound: bytes,
    info: bytes,
    key: SealingKey,
    draw: SealingKey | None = None,
) -> bytes:
    """Return an answer as a parcel: `form.size` bytes, different ones every time.

    Args:
        answer: What `Silo.answer` returned for the circle of the descriptor.
        form: Of the step, for the size of the silo.
        party: Index of the silo.
        bound: `tacit.federation.answers.binding` of query, circle and run: the answer is refused if it was
            made for others.
        info: `SignedDescriptor.info`.
        key: The server's.
        draw: The shuffler's, for the word of a round of drawn parties.

    Raises:
        ParameterError: The answer has another form, or there is no key for its word.
        RefusalError: It is bound to something else.
    """
    groups, word = open_answer(answer, party=party, bound=bound), b""
    if form.draws and draw is not None:
        *rest, sent = groups
        groups, number = tuple(rest), read_word(sent, party=party)
        word = seal_draw(number, party=party, info=info, key=draw)
    if form.draws != bool(word) or replace(form_of(groups), draws=form.draws) != form:
        raise ParameterError("an answer must have the form that plan, step and size of the silo say.")
    length, blobs, sums = form.blob_bytes - SEALED_OVERHEAD, [], []
    for place, slot in enumerate(form.slots):
        messages = [m for m in groups[slot.statistic] if m.label == slot.label]
        if slot.kind == "counts":
            seed = secrets.token_bytes(MASK_SEED_BYTES)
            counts = np.stack([m.payload for m in messages]).sum(axis=0, dtype=np.int64)
            sums.append(counts.astype(np.uint64) + mask(seed, slot.entries))
            contents = [seed]
        elif slot.kind == "symbols":
            octets = slot.content_bytes
            symbols = np.concatenate([m.payload for m in messages]).tolist()
            contents = [symbol.to_bytes(octets, "big", signed=True) for symbol in symbols]
        else:
            contents = [m.payload.astype(_WIRE[slot.kind]).tobytes() for m in messages]
        head = _PLACE.pack(place)
        blobs += [seal_padded(head + one, length=length, key=key, info=info) for one in contents]
    return b"".join([*blobs, *(one.astype("<u8").tobytes() for one in sums), word])


def open_batch(batch: SealedBatch, *, form: ParcelForm, info: bytes, key: OpeningKey) -> Batched:
    """Return what `tacit.means.shuffle` would have returned for the parties of a batch.

    Nobody can say who sent what, so also not who sent something that cannot be read: then the whole batch is
    of no use, and the round has to be given up.

    Args:
        batch: As the shuffler released it.
        form: Of the step, for a party of any size.
        info: `SignedDescriptor.info` of the round.
        key: The server's.

    Returns:
        For every statistic, by label: one message with all symbols, the messages of floats, or one with the
        sums of all counts. Order within a label is the shuffler's.

    Raises:
        ParameterError: Another form than the plan's, a message that is no message of the step, or not the
            number of them that parties sent.
        AuthenticationError: A message that was not sealed for this server and round.
    """
    of_all = _form_of_batch(batch, form)
    statistics = 1 + max(slot.statistic for slot in form.slots)
    if batch.parties == 0:
        return Batched(messages=tuple([] for _ in range(statistics)), rows=0, parties=0)
    found: list[list[bytes]] = [[] for _ in form.slots]
    blob_bytes, end = of_all.blob_bytes, of_all.sums_at
    for start in range(0, end, blob_bytes):
        plain = open_sealed(batch.body[start : start + blob_bytes], key=key, info=info)
        (place,) = _PLACE.unpack_from(plain)
        if place >= len(found):
            raise _unreadable("it is about a statistic that was not asked for")
        stop = _PLACE.size + form.slots[place].content_bytes
        if any(plain[stop:]):
            raise _unreadable("its padding is not zero")
        found[place].append(plain[_PLACE.size : stop])
    if tuple(map(len, found)) != of_all.sealed:
        raise ParameterError("the messages of a batch are not as many as its parties were to send of each.")
    sums = np.frombuffer(batch.body, dtype="<u8", offset=end).astype(np.uint64)
    messages: list[list[Message]] = [[] for _ in range(statistics)]
    used = 0
    for slot, contents, symbols in zip(form.slots, found, of_all.symbols, strict=True):
        held = sums[used : used + slot.words]
        used += slot.words
        messages[slot.statistic].extend(_read(slot, contents, held, symbols))
    return Batched(messages=tuple(messages), rows=batch.rows, parties=batch.parties)


def _read(slot: Slot, contents: list[bytes], sums: Words, symbols: int) -> list[Message]:
    """Return the messages of one slot, as `tacit.means.shuffle` returns them."""
    if slot.kind == "symbols":
        values = _symbols(slot, contents)
        return [Message(payload=values, width=slot.width, label=slot.label)] if contents else []
    if slot.kind == "counts":
        for seed in contents:
            sums = sums - mask(seed, slot.entries)
        ones = sums.view(np.int64)
        if ones.size and not 0 <= ones.min() <= ones.max() <= symbols:
            raise _unreadable("its mask and its seed do not belong together")
        return [Message(payload=ones, label=slot.label, symbols=symbols)]
    wire, native = _WIRE[slot.kind], _NATIVE[slot.kind]
    return [
        Message(payload=np.frombuffer(one, dtype=wire).astype(native), label=slot.label) for one in contents
    ]


def _symbols(slot: Slot, contents: list[bytes]) -> IntArray:
    """Return symbols that were sealed one by one."""
    values = np.array([int.from_bytes(one, "big", signed=True) for one in contents], dtype=np.int64)
    half = 1 << (slot.width - 1)
    if slot.width < 64 and values.size and not -half <= values.min() <= values.max() < half:
        raise _unreadable(f"it does not fit into {slot.width} bits")
    return values


def form_of(groups: tuple[list[Message], ...]) -> ParcelForm:
    """Return the form of the messages of one party about every statistic.

    Raises:
        ParameterError: None about one of them, or messages of one label that differ in their form.
    """
    if not groups or not all(groups):
        raise ParameterError("an answer must have messages about every statistic.")
    sealed: dict[tuple[int, int], int] = {}
    symbols: dict[tuple[int, int], int] = {}
    slots: dict[tuple[int, int], Slot] = {}
    for statistic, messages in enumerate(groups):
        for message in messages:
            slot, at = _slot(statistic, message), (statistic, message.label)
            if slots.setdefault(at, slot) != slot:
                raise ParameterError(f"messages with the label {message.label} must all have one form.")
            counts = slot.kind == "counts"
            many = message.payload.size if slot.kind == "symbols" else 1
            sealed[at] = 1 if counts else sealed.get(at, 0) + many
            symbols[at] = symbols.get(at, 0) + message.symbols
    order = sorted(slots)
    if len(order) > 2 ** (8 * _PLACE.size):
        raise ParameterError(f"an answer must have at most {2 ** (8 * _PLACE.size)} labels.")
    return ParcelForm(
        tuple(slots[at] for at in order),
        tuple(sealed[at] for at in order),
        tuple(symbols[at] for at in order),
    )


def _slot(statistic: int, message: Message) -> Slot:
    """Return what one message says of the form of all."""
    payload, label = message.payload, message.label
    if message.symbols:
        return Slot(statistic, label, "counts", 0, payload.size)
    if payload.dtype == np.int64:
        return Slot(statistic, label, "symbols", message.width, 1)
    return Slot(statistic, label, "f4" if payload.dtype == np.float32 else "f8", 0, payload.size)


def _form_of_batch(batch: SealedBatch, form: ParcelForm) -> ParcelForm:
    """Return the form of a batch, checked before anything of that size is made."""
    if not len(batch.sealed) == len(batch.symbols) == len(form.slots):
        raise ParameterError("a batch must be about the statistics and labels of its step.")
    nobody = form.draws and batch.rows == batch.parties == 0 == sum(batch.sealed)  # was drawn
    if min(batch.rows, batch.parties, *batch.sealed, *batch.symbols) < 0 or not (
        nobody or (batch.rows >= 1 and 1 <= batch.parties <= batch.came)
    ):
        raise ParameterError("a batch must have whole numbers of rows, parties and messages.")
    of_all = ParcelForm(form.slots, batch.sealed, batch.symbols)
    seeds = {n for slot, n in zip(form.slots, batch.sealed, strict=True) if slot.kind == "counts"}
    if seeds - {batch.parties}:
        raise ParameterError(
            f"a batch must have a seed of each of its {batch.parties} parties, got {max(seeds)} of a count."
        )
    if len(batch.body) != of_all.size:
        raise ParameterError(f"a batch must have {of_all.size} bytes, got {len(batch.body)}.")
    return of_all


def _unreadable(why: str) -> ParameterError:
    return ParameterError(f"a message of the batch cannot be read: {why}. Nobody can say who sent it.")
