"""One message for several analysts, each of whom learns at a level of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.frequencies.binary_hadamard import BinaryHadamard
from tacit.frequencies.oracle import check_replaced
from tacit.frequencies.secrets import OneTimeKeys, check_keys, law_digest
from tacit.frequencies.wire import bytes_of_rows, rows_of_bytes
from tacit.mechanisms import check_level, lie_threshold, whole_values
from tacit.mechanisms.bernoulli import draw_words
from tacit.numerics import Array, IntArray, binary_entropy
from tacit.privacy import Compose, Event, Guarantee, Neighbours, PureDP, guarantee

__all__ = ["LevelledHadamard", "SeparateLevels"]

MOST_ANALYSTS = 64
_RECORDS = Neighbours()
_WORD = 2**64
_CODE = 9
"""Names the scheme on the wire, beside the codes of mechanisms."""


@dataclass(frozen=True)
class LevelledHadamard:
    """Publish one private bit of a Hadamard column; analysts hold keys that take some of its noise off.

    The public bit has the lowest level. Analyst j gets a key of one bit a client, and sees what it would see
    of a message at its own level. A coalition learns no more than its most trusted member: its other keys
    tell nothing about value or noise of that member's bit.

    Attributes:
        k: Number of values, from 2 to 2**24 - 1.
        epsilons: Levels of analysts 0, ..., d - 1, strictly decreasing, d <= 64; see `of_levels` for others.

    Guarantee:
        Pure, exact: flips are whole multiples of 2**-64, rounded up one after the other so that no analyst's
        noise is less than its level needs.

    Raises:
        ParameterError: Levels that do not decrease, equal ones, or none.

    Example:
        >>> scheme = LevelledHadamard.of_levels(4, [0.5, 1, 2])
        >>> scheme.epsilons, round(scheme.random_bits, 6), scheme.coalition_level([1, 2]) <= 1.0
        ((2.0, 1.0, 0.5), 2.028798, True)
        >>> messages, keys = scheme.publish([0, 3], np.random.default_rng(0))
        >>> scheme.view(0, messages, keys[0]).shape, keys[1]
        ((2,), OneTimeKeys(2 secret keys))

    Reference:
        Girgis (2023), Theorem 7.4.1.
    """

    k: int
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        levels = _many("epsilons", self.epsilons)
        if not 1 <= len(levels) <= MOST_ANALYSTS:
            raise ParameterError(f"epsilons must be 1 to {MOST_ANALYSTS} levels, got {len(levels)}.")
        oracles = tuple(BinaryHadamard(k=self.k, epsilon=level) for level in levels)
        levels = tuple(oracle.epsilon for oracle in oracles)
        if any(a <= b for a, b in itertools.pairwise(levels)):
            raise ParameterError(
                f"epsilons must decrease strictly, got {levels}; analysts of one level share one key."
            )
        object.__setattr__(self, "k", oracles[0].k)
        object.__setattr__(self, "epsilons", levels)

    @classmethod
    def of_levels(cls, k: int, levels: Iterable[float]) -> LevelledHadamard:
        """Sort levels, which may come in any order, the most trusted analyst first.

        Raises:
            ParameterError: Two are equal, or one is out of range.
        """
        numbers = [check_level("levels", level) for level in _many("levels", levels)]
        return cls(k, tuple(sorted(numbers, reverse=True)))

    @cached_property
    def oracles(self) -> tuple[BinaryHadamard, ...]:
        """What each analyst counts and estimates with.

        Its flips and those that are drawn agree to 2**-63, which no estimate can show.
        """
        return tuple(BinaryHadamard(k=self.k, epsilon=level) for level in self.epsilons)

    @cached_property
    def _law(self) -> tuple[tuple[int, ...], tuple[Fraction, ...]]:
        """Words that flip for the first time at each analyst, and how often its bit is flipped in all."""
        words: list[int] = []
        flipped: list[Fraction] = []
        before = Fraction(0)
        for level in self.epsilons:
            needed = Fraction(lie_threshold(level), _WORD)
            q = max((needed - before) / (1 - 2 * before), Fraction(0))
            words.append(math.ceil(q * _WORD))
            q = Fraction(words[-1], _WORD)
            before = before + q * (1 - 2 * before)
            flipped.append(before)
        return tuple(words), tuple(flipped)

    @property
    def flip_probs(self) -> tuple[float, ...]:
        """Probability q_j of the flip that is added for each analyst, as sampled."""
        return tuple(word / _WORD for word in self._law[0])

    @property
    def noises(self) -> tuple[float, ...]:
        """Probability z_j that the bit of each analyst is flipped, as sampled."""
        return tuple(map(float, self._law[1]))

    @property
    def levels(self) -> tuple[float, ...]:
        """Pure level of each analyst, as sampled, rounded up; at most `epsilons`."""
        excess = (float((1 - 2 * z) / z) for z in self._law[1])
        return tuple(
            min(level, math.log1p(over) * (1 + 2.0**-50))
            for level, over in zip(self.epsilons, excess, strict=True)
        )

    @property
    def random_bits(self) -> float:
        """Entropy of all flips of a client."""
        return sum(map(binary_entropy, self.flip_probs))

    @property
    def private_bits(self) -> int:
        """Bits of keys of a client, over private channels: one for each analyst but the last."""
        return len(self.epsilons) - 1

    def publish(
        self, values: npt.ArrayLike, rng: np.random.Generator
    ) -> tuple[IntArray, tuple[OneTimeKeys, ...]]:
        """Draw public messages, and the key of every analyst but the last one.

        Args:
            values: Shape (n,), whole numbers from 0 to k - 1.
            rng: Private randomness; a deployment passes `randomness.secure()`.

        Returns:
            Shape (n,): symbols 2 j + bit with column j; and d - 1 secret keys. Key i is for analyst i alone:
            whoever has it learns at its level.

        Raises:
            ParameterError: A value is out of range.
        """
        held = whole_values("values", values, self.k)
        if held.ndim != 1:
            raise ParameterError(f"values must have shape (n,), got {held.shape}.")
        dim = self.oracles[0].dim
        columns = rng.integers(1, dim, size=held.size)
        inside = (np.bitwise_count(held & columns) & 1) ^ 1
        flips = np.array(
            [draw_words(held.size, rng) < np.uint64(word) for word in self._law[0]], dtype=np.uint8
        ).reshape(-1, held.size)
        # The key of an analyst is the sum of all flips after its own.
        later = np.bitwise_xor.accumulate(flips[::-1])[::-1]
        keys = tuple(
            OneTimeKeys(later[j + 1], 2, law=self.key_digest(j)) for j in range(len(self.epsilons) - 1)
        )
        messages = 2 * columns + (inside.astype(np.int64) ^ later[0])
        flips[:], later[:] = 0, 0
        return messages, keys

    def view(self, analyst: int, messages: npt.ArrayLike, key: OneTimeKeys | None = None) -> IntArray:
        """Return what an analyst sees: messages of `oracles[analyst]`, to be aggregated and estimated.

        Args:
            analyst: 0 to d - 1.
            messages: Shape (n,), as published.
            key: The analyst's key, n bits; None for the last analyst, who has none.

        Raises:
            ParameterError: No such analyst, a key that is missing, too many or of another kind, or messages
                that cannot have been published.
        """
        j = check_count("analyst", analyst, low=0, high=len(self.epsilons) - 1)
        symbols = self._published(messages)
        if (key is None) is not (j == len(self.epsilons) - 1):
            raise ParameterError("key must be given to every analyst but the last one, who has none.")
        if key is None:
            return symbols
        return np.asarray(symbols ^ check_keys(key, 2, self.key_digest(j)).read(symbols.size))

    def to_bytes(self, messages: npt.ArrayLike) -> bytes:
        """Write public messages, all of one number of bytes, with a digest of the levels of all analysts.

        Raises:
            ParameterError: Messages that cannot have been published.
        """
        return bytes_of_rows(_CODE, repr(self), self.oracles[-1]._packed(self._published(messages)))

    def from_bytes(self, data: bytes) -> IntArray:
        """Read what `to_bytes` wrote, shape (n,).

        Raises:
            ParameterError: Another version or scheme, messages of one level alone, or ones that cannot have
                been published.
        """
        last = self.oracles[-1]
        rows = rows_of_bytes(_CODE, repr(self), data, -(-last.message_bits // 8))
        return self._published(last._unpacked(rows, 0))

    def _published(self, messages: npt.ArrayLike) -> IntArray:
        """Return messages that can have been published."""
        symbols = whole_values("messages", messages, self.oracles[-1].outcomes)
        if symbols.ndim != 1:
            raise ParameterError(f"messages must have shape (n,), got {symbols.shape}.")
        if symbols.size and symbols.min() < 2:
            raise ParameterError("a message is about column 0, which nobody uses.")
        return symbols

    def key_digest(self, analyst: int) -> bytes:
        """Name the keys of an analyst, so that no other one, and no other scheme, takes them for its own."""
        return law_digest(f"{self!r} {analyst}")

    def coalition_level(self, members: Collection[int]) -> float:
        """Return the pure level of all that some analysts see together: that of the most trusted one.

        Args:
            members: Some of 0 to d - 1; none for somebody who sees public messages alone.
        """
        return max((self.levels[j] for j in _members(members, len(self.epsilons))), default=self.levels[-1])

    def event(self, members: Collection[int], neighbours: Neighbours = _RECORDS) -> Event:
        """Return what a coalition learns; see `coalition_level`."""
        check_replaced(neighbours)
        return PureDP(self.coalition_level(members), neighbours)

    def price(
        self, members: Collection[int] = (), *, neighbours: Neighbours = _RECORDS, simulated: bool = False
    ) -> Guarantee:
        """Return the guarantee against analysts who pool all they have, or against an outsider.

        Args:
            members: The analysts, 0 to d - 1; none: an outsider.
            neighbours: A replace-one relation.
            simulated: Whether flips came from a seeded stream.
        """
        return guarantee(
            self.event(members, neighbours),
            0.0,
            observer=_observer(members, len(self.epsilons)),
            assumptions=("keys reach the analysts that they are for, and nobody else",),
            simulated=simulated,
        )


@dataclass(frozen=True)
class SeparateLevels:
    """The baseline: a message of its own for every analyst, over a private channel.

    It takes more random bits than `LevelledHadamard`, and levels of a coalition add up.

    Attributes:
        k: Number of values.
        epsilons: Levels of the analysts, as in `LevelledHadamard`.

    Example:
        >>> scheme = SeparateLevels(4, (2.0, 1.0, 0.5))
        >>> round(scheme.random_bits, 6), round(scheme.coalition_level([1, 2]), 6)
        (2.323293, 1.5)

    Reference:
        Girgis (2023), section 7.4.
    """

    k: int
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        scheme = LevelledHadamard(self.k, self.epsilons)
        object.__setattr__(self, "k", scheme.k)
        object.__setattr__(self, "epsilons", scheme.epsilons)

    @cached_property
    def oracles(self) -> tuple[BinaryHadamard, ...]:
        """What each analyst counts and estimates with."""
        return LevelledHadamard(self.k, self.epsilons).oracles

    @property
    def random_bits(self) -> float:
        """Entropy of all answers of a client."""
        return sum(oracle.entropy_bits for oracle in self.oracles)

    def publish(self, values: npt.ArrayLike, rng: np.random.Generator) -> tuple[Array, ...]:
        """Draw the messages of each analyst, shape (n,); each is for one analyst alone."""
        return tuple(oracle.encode(values, rng) for oracle in self.oracles)

    def coalition_level(self, members: Collection[int]) -> float:
        """Return the pure level of some analysts together: the sum of theirs; 0 for nobody."""
        return math.fsum(self.oracles[j].level for j in _members(members, len(self.epsilons)))

    def price(
        self, members: Collection[int], *, neighbours: Neighbours = _RECORDS, simulated: bool = False
    ) -> Guarantee:
        """Return the guarantee against analysts who pool their messages; see `LevelledHadamard.price`."""
        event, chosen = self.event(members, neighbours), _members(members, len(self.epsilons))
        names = ", ".join(map(str, chosen))
        who = f"analyst {names}" if len(chosen) == 1 else f"the coalition of analysts {names}"
        return guarantee(
            event,
            0.0,
            observer=f"{who}, with every message to its members,",
            assumptions=("messages reach the analysts that they are for, and nobody else",),
            simulated=simulated,
        )

    def event(self, members: Collection[int], neighbours: Neighbours = _RECORDS) -> Event:
        """Return what a coalition of at least one analyst learns."""
        check_replaced(neighbours)
        chosen = _members(members, len(self.epsilons))
        if not chosen:
            raise ParameterError("members must be at least one analyst: an outsider sees no message.")
        return Compose(tuple(PureDP(self.oracles[j].level, neighbours) for j in chosen))


def _many(name: str, levels: Iterable[float]) -> tuple[float, ...]:
    """Return levels one by one."""
    try:
        return tuple(levels)
    except TypeError:
        raise ParameterError(f"{name} must be several levels, got {levels!r}.") from None


def _members(members: Collection[int], analysts: int) -> Sequence[int]:
    """Return analysts, each once."""
    if not isinstance(members, Collection):
        raise ParameterError(f"members must be several analysts, got {members!r}.")
    return sorted({check_count("members", j, low=0, high=analysts - 1) for j in members})


def _observer(members: Collection[int], analysts: int) -> str:
    """Return who a coalition is."""
    chosen = _members(members, analysts)
    if not chosen:
        return "an observer of all public messages"
    if len(chosen) == 1:
        who = f"analyst {chosen[0]}"
    elif chosen == list(range(chosen[0], analysts)):
        who = f"analyst {chosen[0]}, alone or together with all less trusted ones"
    else:
        who = f"the coalition of analysts {', '.join(map(str, chosen))}"
    return f"{who}, with all public messages and keys of its own,"
