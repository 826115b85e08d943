"""Means from what every party sends of one vector, the sum of its clipped rows, written in a code.

`PartySum` does what all of them share, and asks its code what the messages are: a linear map of the vector
(`tacit.means.sketched`), with or without noise, or a code of its own (`tacit.means.coded`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from tacit.errors import LARGEST_COUNT, ParameterError, check_count
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.message import HEADER_BYTES, MOST_COORDINATES, Message, Round, by_sender, check_released
from tacit.means.noise import AnyNoise
from tacit.means.traits import COPIES, SumOfRows
from tacit.means.violations import OnViolation, check_on_violation, clipped_rows
from tacit.numerics import Array, settle
from tacit.privacy import Event, Neighbours, TrustModel

__all__ = ["Code", "Form", "PartySum", "float_values", "party_sums"]

Public = TypeVar("Public")
"""What a code draws from public randomness, for parties and server alike."""


_COPIES_OF_MAPS = 5
"""Of a map that is a matrix, while it is drawn."""


class Form(NamedTuple):
    """Form of one message.

    Attributes:
        entries: How many numbers.
        dtype: A float type, or int64 for integers.
        width: Bits of an integer; 0 for floats; None where it grows with the rows that a message is about.
    """

    entries: int
    dtype: type[np.generic]
    width: int | None = 0

    def bits(self, width: int) -> int:
        """Bits of the message, header and padding included, with that width where it is open."""
        entry = (width if self.width is None else self.width) or 8 * np.dtype(self.dtype).itemsize
        return 8 * (HEADER_BYTES + (self.entries * entry + 7) // 8)


class Code(Protocol[Public]):
    """What vectors become on the wire, and what the server makes of it."""

    @property
    def forms(self) -> tuple[Form, ...]:
        """Forms of a party's messages with the labels 0, 1, ..."""
        ...

    @property
    def roundings(self) -> int:
        """Rows more that cover, in the price of noise on a grid, how the code rounds; 0 where it cannot."""
        ...

    @property
    def map_numbers(self) -> int:
        """Numbers of the map of one party, where it is a matrix."""
        ...

    def public(self, senders: Sequence[int], round: Round) -> Public:
        """Draw what all know of these parties in this round, such as their maps."""
        ...

    def write(
        self, vectors: Array, public: Public, round: Round, rng: np.random.Generator, *, width: int
    ) -> list[Array]:
        """Return, for every form, the payloads of n parties, shape (n, entries), from vectors (n, dim).

        Noise is added here, where the code allows it; `width` is that of an entry whose form leaves it open.
        """
        ...

    def read(self, payloads: list[Array], public: Public, round: Round) -> Array:
        """Estimate 1 / n (planned) times the sum of the vectors that the payloads stand for, shape (dim,).

        Raises:
            ParameterError: An entry that no party can have written.
        """
        ...

    def error(self, n: int, facts: Facts) -> Error:
        """Return the error against the mean of n clipped rows."""
        ...


class _HasCode(Protocol):
    """What `PartySum` asks of an estimator: fields that all have, and a code."""

    @property
    def dim(self) -> int: ...
    @property
    def noise(self) -> AnyNoise: ...
    @property
    def trust(self) -> TrustModel: ...
    @property
    def neighbours(self) -> Neighbours: ...
    @property
    def on_violation(self) -> OnViolation | None: ...
    @property
    def refuses(self) -> bool: ...
    @property
    def sensitivity(self) -> int: ...
    @property
    def code(self) -> Code[Any]: ...

    def _settle(self) -> None: ...
    def encode_sum(
        self, clipped_sum: Array, *, rows: int, round: Round, party: int, rng: np.random.Generator
    ) -> list[Message]: ...


class PartySum(SumOfRows):
    """A party adds up its clipped rows and writes the sum in a code; the server needs to know who sent it."""

    def __post_init__(self: _HasCode) -> None:
        self._settle()
        check_count("dim", self.dim, high=MOST_COORDINATES)
        if type(self.trust) is not TrustModel or self.trust is not TrustModel.LOCAL:
            raise ParameterError(
                f"trust must be TrustModel.LOCAL, got {self.trust!r}: a message is decoded by who sent it, "
                "and a shuffler hides that."
            )
        if type(self.neighbours) is not Neighbours:
            raise ParameterError(f"neighbours must be Neighbours, got {self.neighbours!r}.")
        check_on_violation(self.on_violation)
        _ = self.code  # which refuses what it cannot do

    def _settle(self) -> None:
        """Give every field its plain type."""
        settle(self)

    @property
    def sums(self) -> tuple[()]:
        """No sums are taken that others added up."""
        return ()

    def encode(
        self: _HasCode, rows: Array, round: Round, *, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Clip and add up the rows of one party, and write the sum in the code.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Public index of the party, from 0 to 2**63 - 1; decides its map, where there are maps.
            rng: Private randomness of the party.

        Returns:
            Messages of `bits_per_party(k)` bits in all under replace-one, where k is public; else of
            `bits_per_party(round.n)` bits.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        clipped = clipped_rows(rows, round.radius, ball=self.noise.norm, dim=self.dim, refuse=self.refuses)
        planned = len(clipped) if self.sensitivity == 2 else round.n
        summed = clipped.sum(axis=0, dtype=np.float64)
        return self.encode_sum(summed, rows=planned, round=round, party=party, rng=rng)

    def encode_sum(
        self: _HasCode, clipped_sum: Array, *, rows: int, round: Round, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write the sum of a party's clipped rows; see `AdditiveMean.encode_sum`.

        Args:
            clipped_sum: Shape (dim,), float64 where noise is on a grid.
            rows: Public number of rows that the length of the messages is made for.
            round: Public facts of the round.
            party: Public index of the party.
            rng: Private randomness of the party.

        Returns:
            Messages of `bits_per_party(rows)` bits in all.

        Raises:
            ParameterError: `clipped_sum` has another shape or dtype.
        """
        if clipped_sum.shape != (self.dim,):
            raise ParameterError(f"clipped_sum must have shape ({self.dim},), got {clipped_sum.shape}.")
        # Single precision loses more than the price of noise on a grid covers.
        if self.noise.on_grid and clipped_sum.dtype != np.float64:
            raise ParameterError(f"sums for exact integer noise must be float64, got {clipped_sum.dtype}.")
        check_count("a party", party, low=0, high=LARGEST_COUNT)
        code, width = self.code, self.noise.entry_bits(rows, sensitivity=self.sensitivity)
        vectors = clipped_sum[None].astype(np.float64)
        payloads = code.write(vectors, code.public([party], round), round, rng, width=width)
        return [
            Message(
                payload=payload[0], width=width if form.width is None else form.width, label=k, sender=party
            )
            for k, (payload, form) in enumerate(zip(payloads, code.forms, strict=True))
        ]

    def decode(
        self: _HasCode, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Estimate the mean from the messages of all parties that answered.

        A factor that removes a bias is that of the parties that answered, so some may drop out; the divisor
        stays the planned n.

        Args:
            messages: Of all parties that answered, with their senders, in any order.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected.

        Raises:
            ParameterError: No messages, one without a sender, a sender whose messages are incomplete or
                doubled, one that `encode` cannot have written (another form, a NaN, an infinity), or an
                estimate that overflows.
        """
        code = self.code
        senders, payloads = by_sender(messages, code.forms)
        return check_released(code.read(payloads, code.public(senders, round), round))

    def estimate(self: _HasCode, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once.

        Args:
            X: Shape (n, dim): all rows, dealt to the parties in order and as evenly as possible, as
                `np.array_split` does; with `round.parties` = n, one to each.
            round: Public facts of the round.
            rng: Source of the randomness of all parties.

        Returns:
            Shape (dim,), float64: the law of `decode` on the messages of all parties, up to saturation of
            integers (probability below 1e-27).

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        clipped = clipped_rows(X, round.radius, ball=self.noise.norm, dim=self.dim, refuse=self.refuses)
        code = self.code
        public = code.public(range(round.parties), round)
        payloads = code.write(party_sums(clipped, round.parties), public, round, rng, width=64)
        return check_released(code.read(payloads, public, round))

    def event(self: _HasCode, n: int, trust: TrustModel) -> Event:
        """Return what any observer learns from one round: the price of the noise on the numbers of a message.

        Args:
            n: The most rows that a party's sum may hold; it bounds the rounding of the sum.
            trust: Whose view is priced; the noise of a party protects from all of them alike.

        Raises:
            ParameterError: `n` is not a whole number >= 1, or too large for noise on a grid.
        """
        check_count("n", n)
        code = self.code
        sent = sum(form.entries for form in code.forms)
        return self.noise.event(
            n + code.roundings, sent, sensitivity=self.sensitivity, neighbours=self.neighbours
        )

    def bits_per_party(self: _HasCode, rows: int = 1) -> float:
        """Return the length in bits, headers included, of a party's messages made for that many rows."""
        check_count("rows", rows, low=0)
        width = self.noise.entry_bits(rows, sensitivity=self.sensitivity)
        return sum(form.bits(width) for form in self.code.forms)

    def numbers_per_party(self: _HasCode, rows: int = 1) -> int:
        """Return a bound on the numbers that a party keeps to write its messages, besides its rows."""
        check_count("rows", rows, low=0)
        code = self.code
        return (
            COPIES * max(self.dim, sum(form.entries for form in code.forms))
            + _COPIES_OF_MAPS * code.map_numbers
        )

    def error(self: _HasCode, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error against the mean of the clipped rows, over the code and the noise.

        Of linear maps, it depends on the rows only through S1 and R of the parties' sums, and is exact where
        `facts` gives both, as far as the moments are: 1e-3 where they are a limit, and to a standard error of
        one per cent where they are simulated; what a server leaves that iterates is below 0.1 per cent. Else
        it is a bound, or an estimate with the standard error that it states: the transform `max` errs by
        inverse eigenvalues, which have no mean where n k is next to d. Where the number of parties is not
        given, it is the largest error of 1, 2, d / k and n parties. Of codes of single vectors, it is a bound
        from S1 alone, largest for one party.

        Reference:
            Derived in `tacit.compression.spectral` and `tacit.compression.moments`.
        """
        check_count("n", n)
        return self.code.error(n, facts)


def party_sums(clipped: Array, parties: int) -> Array:
    """Add up the rows of every party, dealt in order and as evenly as possible, as `np.array_split` does.

    Args:
        clipped: Shape (n, d).
        parties: How many, >= 1; those without rows have the sum zero.

    Returns:
        Shape (parties, d), float64.
    """
    sums = np.zeros((parties, clipped.shape[1]))
    filled = min(parties, len(clipped))
    if filled:
        size, more = divmod(len(clipped), filled)
        starts = np.arange(filled) * size + np.minimum(np.arange(filled), more)
        np.add.reduceat(clipped, starts, axis=0, dtype=np.float64, out=sums[:filled])
    return sums


def float_values(values: Array, bits: int) -> Array:
    """Return values as floats of 32 or 64 bits; larger ones than float32 holds saturate."""
    if bits == 64:
        return values.astype(np.float64, copy=False)
    top = float(np.finfo(np.float32).max)
    return np.clip(values, -top, top).astype(np.float32)
