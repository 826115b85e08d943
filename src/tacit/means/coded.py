"""Means from codes of single vectors: what every party sends stands for its vector by itself.

What is sent depends on the vector in other ways than by its values (which coordinates, which range), so noise
on the values would protect nothing, and no privacy is offered.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np

from tacit.errors import LARGEST_COUNT, ParameterError, check_count
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.message import HEADER_BYTES, Message, Round, by_sender, check_released
from tacit.means.noise import NoNoise
from tacit.means.party_sums import party_sums
from tacit.means.sketched import check_local
from tacit.means.traits import SumOfRows
from tacit.means.violations import OnViolation, check_on_violation, clipped_rows
from tacit.numerics import Array, settle
from tacit.privacy import Event, Neighbours, NonPrivate, TrustModel

__all__ = ["CodedMean", "Form"]


class Form(NamedTuple):
    """Form of one message.

    Attributes:
        entries: How many numbers.
        dtype: float32, or int64 for integers.
        width: Bits of an integer; 0 for floats.
    """

    entries: int
    dtype: type[np.generic]
    width: int = 0

    @property
    def bits(self) -> int:
        """Bits of the message, header and padding included."""
        entry = self.width or 8 * np.dtype(self.dtype).itemsize
        return 8 * (HEADER_BYTES + (self.entries * entry + 7) // 8)


class CodedMean(
    SumOfRows, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="estimator"
):
    """What these estimators share; each of them names the forms of its messages, its code and its error.

    Attributes:
        dim: Number d of coordinates of a row, from 1 to 2**31.
        noise: `NoNoise` only.
        trust: `local` only: the messages of a party belong together.
        neighbours: Carried by the event, which claims nothing.
        on_violation: What becomes of a row outside of the ball: "clip" scales it into the ball and takes one
            that is not finite for zero; "error", the default, refuses it.
    """

    dim: int
    noise: NoNoise = NoNoise()
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None

    def __post_init__(self) -> None:
        check_on_violation(self.on_violation)
        if type(self.noise) is not NoNoise:
            raise ParameterError(
                "noise must be NoNoise: which coordinates or levels are sent depends on the data, so noise "
                "on values would protect nothing; for privacy take RandK, RandKSpatial or RandProjSpatial."
            )
        settle(self)
        check_count("dim", self.dim, high=2**31)
        check_local(self.trust, self.neighbours)
        self._check_options()

    def _check_options(self) -> None:
        """Refuse options that only this estimator has."""

    @property
    def sums(self) -> tuple[()]:
        """No sums are taken that others added up."""
        return ()

    @property
    def _forms(self) -> tuple[Form, ...]:
        """Forms of the messages with the labels 0, 1, ..."""
        raise NotImplementedError

    def _coded(
        self, vectors: Array, senders: list[int], round: Round, rng: np.random.Generator
    ) -> list[Array]:
        """Return, for every label, the payloads of all senders, shape (n, entries)."""
        raise NotImplementedError

    def _decoded_sum(self, payloads: list[Array], senders: list[int], round: Round) -> Array:
        """Return the sum of the vectors that the payloads stand for, shape (dim,).

        Raises:
            ParameterError: An entry that no party can have written.
        """
        raise NotImplementedError

    def _relative_error(self) -> tuple[float, float]:
        """Return the most E||Q(x) - E Q(x)||^2 / ||x||^2 and ||E Q(x) - x||^2 / ||x||^2."""
        raise NotImplementedError

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip and add up the rows of one party, and write its code.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Public index of the party.
            rng: Private randomness of the party.

        Returns:
            Messages of `bits_per_party()` bits in all, whatever the rows.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        clipped = clipped_rows(rows, round.radius, ball="l2", dim=self.dim, refuse=self.refuses)
        summed = clipped.sum(axis=0, dtype=np.float64)
        return self.encode_sum(summed, rows=len(clipped), round=round, party=party, rng=rng)

    def encode_sum(
        self, clipped_sum: Array, *, rows: int, round: Round, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write the code of the sum of a party's clipped rows.

        Args:
            clipped_sum: Shape (dim,).
            rows: Not used: the length does not depend on it.
            round: Public facts of the round.
            party: Public index of the party.
            rng: Private randomness of the party.

        Raises:
            ParameterError: `clipped_sum` has another shape.
        """
        if clipped_sum.shape != (self.dim,):
            raise ParameterError(f"clipped_sum must have shape ({self.dim},), got {clipped_sum.shape}.")
        check_count("party", party, low=0, high=LARGEST_COUNT)
        payloads = self._coded(clipped_sum[None].astype(np.float64), [party], round, rng)
        return [
            Message(payload=payload[0], width=form.width, label=label, sender=party)
            for label, (payload, form) in enumerate(zip(payloads, self._forms, strict=True))
        ]

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Add what all codes stand for, and divide by the planned n.

        Args:
            messages: Of all parties that answered, with their senders, in any order.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected.

        Raises:
            ParameterError: No messages, one without a sender, a sender whose messages are incomplete or
                doubled, or one that `encode` cannot have written.
        """
        senders, payloads = by_sender(messages, self._forms)
        return check_released(self._decoded_sum(payloads, senders, round) / round.n)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once.

        Args:
            X: Shape (n, dim): all rows, dealt to the parties as `np.array_split` does.
            round: Public facts of the round.
            rng: Source of the randomness of all parties.

        Returns:
            Shape (dim,), float64: the law of `decode` on the messages of all parties.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        clipped = clipped_rows(X, round.radius, ball="l2", dim=self.dim, refuse=self.refuses)
        senders = list(range(round.parties))
        payloads = self._coded(party_sums(clipped, round.parties), senders, round, rng)
        return check_released(self._decoded_sum(payloads, senders, round) / round.n)

    def event(self, n: int, trust: TrustModel) -> Event:
        """Claim nothing."""
        check_count("n", n)
        return NonPrivate(self.neighbours)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits of all messages of a party, headers included."""
        check_count("rows", rows, low=0)
        return sum(form.bits for form in self._forms)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return a bound on the error against the mean of the clipped rows, from S1 alone.

        Where the number of parties is not given, it is largest for one party, who holds all rows.
        """
        check_count("n", n)
        variance, squared_bias = self._relative_error()
        bias = math.sqrt(squared_bias) * facts.most_norms(n) / n
        return Error(variance=variance * facts.most_squared_norms(n) / n**2, bias=bias, exact=False)
