"""What estimates share that minimise a regularised logistic loss of rows, at a party or at a server.

With labels -1 and 1, a record enters the logistic loss only through the signed row z = y x. So a model is an
estimate from rows in a ball as a mean is, which minimises squared distances instead; a row of zeros is the
record that is not there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NoReturn

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive
from tacit.means.base import WORST_CASE, Error, Facts, MeanEstimator, Weighs, worst_error
from tacit.means.message import (
    HEADER_BYTES,
    MOST_COORDINATES,
    Message,
    Round,
    check_senders,
    total,
)
from tacit.means.noise import DiscreteGaussianNoise
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal, noisy
from tacit.means.traits import SumOfRows
from tacit.means.violations import check_on_violation, clipped_to_unit
from tacit.numerics import Array, least_tolerance, logistic_minimum, settle
from tacit.privacy import Relation, TrustModel

__all__ = ["OFFERED", "Minimum", "offered"]

OFFERED = 64.0
"""Strength of what is offered to audits, of few rows: at short solutions every row has half of its slope."""

_LEAST_STRENGTH = 1e-6
"""Below, a solution may take very long, and be very far away."""


class Minimum(SumOfRows):
    """What estimates have in common that minimise sum log(1 + e^-<v, z/r>) + strength |v|^2 / 2.

    r is the radius of the round, and the estimate r v: so it scales with the rows, as a mean does, and
    w = r v / r^2 is the model for the rows themselves, of which the penalty is strength r^2 |w|^2 / 2.
    """

    dim: int
    strength: float
    tolerance: float
    trust: TrustModel

    linear: ClassVar[bool] = False
    sums: ClassVar[tuple[type[np.floating[Any]], ...]] = ()

    @property
    def weighs(self) -> Weighs:  # type: ignore[override]  # what counts is not the same for both
        """What counts: every row of a server's, or every party's solution once."""
        return "rows" if self.trust is TrustModel.CENTRAL else "parties"

    def check(self) -> None:
        """Refuse what is out of its range."""
        settle(self)
        check_count("dim", self.dim, high=MOST_COORDINATES)
        check_positive("strength", self.strength)
        check_positive("tolerance", self.tolerance)
        if self.strength < _LEAST_STRENGTH:
            raise ParameterError(f"strength must be at least {_LEAST_STRENGTH:g}, got {self.strength!r}.")
        # A plain string would match no case below, and then nobody would add the noise.
        if type(self.trust) is not TrustModel or self.trust not in (TrustModel.LOCAL, TrustModel.CENTRAL):
            raise ParameterError(f"trust must be TrustModel.LOCAL or TrustModel.CENTRAL, got {self.trust!r}.")
        check_on_violation(self.on_violation)

    def against_nothing(self) -> NoReturn:
        """Refuse: a minimum is that of all rows."""
        raise ParameterError(f"a Poisson batch needs sums of rows, got {type(self).__name__}.")

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip the rows of one party, and write one message: the noisy minimum, or the rows in full.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Index of the party.
            rng: Source of the noise, under local trust.

        Returns:
            One message of `bits_per_party` bits, of k rows or, under add-remove, of `round.n`: there k is
            secret, and rows of zeros that change nothing fill the message up to twice that.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        unit = clipped_to_unit(rows, round, self.dim, "l2", refuse=self.refuses)
        if self.trust is TrustModel.LOCAL:
            return [self._message(self._noisy(unit, rng), round.n, party)]
        padded = np.zeros((max(self._sent(round.n), len(unit)), self.dim)) if self._counted else unit
        padded[: len(unit)] = unit
        return [Message(payload=padded.ravel(), sender=party)]

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Average the minima of parties; under central trust, find that of all rows and add the noise.

        Args:
            messages: One of each party that answered, in any order.
            round: Public facts of the round; its n does not matter, since minima are not divided.
            rng: Source of the noise; needed under central trust only.

        Returns:
            Shape (dim,), float64: the radius times v.

        Raises:
            ParameterError: No messages, one that `encode` cannot have written, under central trust two of one
                sender or no `rng`.
        """
        if self.trust is TrustModel.LOCAL:
            summed = total(messages, self.dim, self._dtype)
            return summed * (self._unit * round.radius / len(messages))
        if rng is None and self.private:
            raise ParameterError("decode needs rng under central trust: the server adds the noise.")
        check_senders(messages)
        if not messages:
            raise ParameterError("decode needs at least one message, got none.")
        # Sorted, so that neither the order of arrival nor rounding in it shows in the last digits.
        parts = sorted(messages, key=lambda message: -1 if message.sender is None else message.sender)
        whole = [self.dim * (one.payload.size // self.dim) for one in parts]
        rows = [
            total([one], size, np.float64).reshape(-1, self.dim)
            for one, size in zip(parts, whole, strict=True)
        ]
        # The server, who adds the noise, answers for the length of rows.
        unit = clipped_to_unit(np.concatenate(rows), Round(n=1, radius=1.0), self.dim, "l2")
        return self._units(self._noisy(unit, rng)) * round.radius

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once: the law of `decode` on the messages of all parties.

        Args:
            X: Shape (n, dim): all rows, dealt to the parties in order and as evenly as possible, as
                `np.array_split` does.
            round: Public facts of the round.
            rng: Source of all noise.

        Returns:
            Shape (dim,), float64.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        unit = clipped_to_unit(X, round, self.dim, "l2", refuse=self.refuses)
        parts = np.array_split(unit, round.parties) if self.trust is TrustModel.LOCAL else [unit]
        found = [self._units(self._noisy(part, rng)) for part in parts]
        return np.asarray(np.mean(found, axis=0) * round.radius)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the length in bits of a message, header included, for that many planned rows."""
        check_count("rows", rows, low=0)
        if self.trust is TrustModel.CENTRAL:
            return 8 * HEADER_BYTES + 64.0 * self._sent(rows) * self.dim
        return 8 * (HEADER_BYTES + (self.dim * self._entry_bits(rows) + 7) // 8)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return bounds on the error against the mean of the clipped rows, which a minimum is only akin to.

        A solution is at most n / strength radii long without noise, and no further away with it than the
        noise itself.
        """
        check_count("n", n)
        return worst_error(lambda known: self._error(n, known), n, facts)

    def _error(self, n: int, facts: Facts) -> Error:
        """Return the bounds for a known number of parties."""
        variance = self._variance() / (facts.parties or 1 if self.trust is TrustModel.LOCAL else 1)
        # The mean of a solution is no further from the one without noise than it moves on average.
        bias = 1 + (n + self.tolerance) / self.strength + math.sqrt(self._variance())
        return Error(variance=variance * facts.radius**2, bias=bias * facts.radius, exact=False)

    def least(self, n: int) -> float:
        """Return the least tolerance that is reached on any n rows."""
        return least_tolerance(n, self.dim, strength=self.strength, push=self._push())

    def _priced(self, n: int, trust: TrustModel) -> bool:
        """Whether a claim is made to that observer; refuse rows of which a minimum is not found so exactly.

        Raises:
            ParameterError: `n` is not a whole number >= 1, or too large for the tolerance.
        """
        check_count("n", n)
        least = self.least(n)
        if self.tolerance < least:
            # A power of ten: how many rows there are may be hidden, and both would say it.
            raise ParameterError(
                f"tolerance must be at least {10.0 ** math.ceil(math.log10(least)):g} for these rows, got "
                f"{self.tolerance!r}: shorter gradients are lost in rounding."
            )
        if self._sent(n) * self.dim >= MOST_COORDINATES and self.trust is TrustModel.CENTRAL:
            raise ParameterError(f"{n} rows of {self.dim} numbers are too long for a message.")
        return self.private and (self.trust is TrustModel.LOCAL or trust is TrustModel.CENTRAL)

    @property
    def _counted(self) -> bool:
        """Whether the number of rows is secret."""
        return self.neighbours.relation is Relation.ADD_REMOVE

    def _sent(self, n: int) -> int:
        """Return how many rows a message to a trusted server has room for; a silo holds at most 2 n."""
        return 2 * n if self._counted else n

    def _solved(self, unit: Array, push: Array | None = None) -> Array:
        """Return v for rows in the unit ball, to a gradient of at most the tolerance.

        A long sum of steps that each look at the rows tells no more of them than that: what is released
        differs from the minimum by at most tolerance / strength, which the noise is for, however it was found
        and in whatever order rows were added up (docs/theory/sums.md has what other methods need).
        """
        return logistic_minimum(
            unit,
            strength=self.strength,
            push=np.zeros(self.dim) if push is None else push,
            tolerance=self.tolerance,
        )

    # What the kinds of noise decide

    def _noisy(self, unit: Array, rng: np.random.Generator | None) -> Array:
        """Return the noisy minimum of rows in the unit ball, in units of the noise."""
        raise NotImplementedError

    def _message(self, noisy: Array, rows: int, party: int) -> Message:
        """Write what a party sends of it."""
        raise NotImplementedError

    def _units(self, noisy: Array) -> Array:
        """Return v from it."""
        return noisy.astype(np.float64) * self._unit

    def _entry_bits(self, rows: int) -> int:
        """Bits of a coordinate of a message."""
        raise NotImplementedError

    def _variance(self) -> float:
        """Bound on the variance of a party's v, all coordinates together."""
        raise NotImplementedError

    def _push(self) -> float:
        """Bound on the norm of the noise within the objective, but for a probability below e^-800."""
        return 0.0

    @property
    def _unit(self) -> float:
        """What numbers on the wire are multiples of."""
        return 1.0

    @property
    def _dtype(self) -> type[np.generic]:
        """Type of numbers on the wire."""
        return np.float32 if self.private else np.float64


def offered(build: Callable[[float], MeanEstimator], problem: MeanProblem, name: str) -> Iterable[Proposal]:
    """Return a candidate for audits, for a noise multiplier that its budget decides."""
    if problem.trust not in ("local", "central"):
        return ()
    guess, make = noisy(build, problem, DiscreteGaussianNoise)
    cost = ComputeCost("n d", float(problem.n) * problem.dim)
    return (
        Proposal(
            name=name,
            family=name,
            guess=guess,
            make=make,
            norm="l2",
            encode=cost,
            decode=cost,
            ranked=False,
        ),
    )
