"""A majority vote on signs: one bit per coordinate of each party, noise before the sign or on the votes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means.base import WORST_CASE, Error, Facts, Weighs
from tacit.means.message import (
    HEADER_BYTES,
    MOST_COORDINATES,
    SMALLEST_RADIUS,
    Message,
    Round,
    check_senders,
    total,
)
from tacit.means.noise import DiscreteGaussianNoise, GaussianNoise, NoNoise
from tacit.means.party_sums import party_sums
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal, noisy
from tacit.means.traits import SumOfRows
from tacit.means.violations import OnViolation, check_on_violation, clipped_rows
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import Event, Neighbours, NonPrivate, TrustModel

__all__ = ["SignVoteMean"]

_Noise = NoNoise | GaussianNoise | DiscreteGaussianNoise

_FLIPPED = 2
"""Radii that a vote vector of norm 1 moves by when all of its signs flip."""


class SignVoteMean(
    SumOfRows,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="sign-vote",
):
    """Parties send the signs of their sums; the majority of each coordinate, at a public length, is the mean.

    A biased stand-in for the mean, whose direction is all that it knows: sizes of parties and of coordinates
    are lost, and where parties disagree the majority of the signs need not be the sign of the mean. What it
    buys is one bit per coordinate, and that no single party can outweigh another, whatever it sends.

    Under local trust every party adds noise to the sum of its clipped rows and sends the signs of that: the
    price is that of the noisy sum. Under central trust parties send exact signs, and the trusted server
    publishes the signs of the noisy vote totals. One record may tip all signs of its party, so noise is
    scaled to two lengths of a vote vector under every relation; one round on all units therefore costs no
    more if a party's whole data are exchanged.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        noise: On the sums of parties (local) or on the vote totals (central).
        trust: `local` (every party adds noise) or `central` (the server does).
        neighbours: Relation of the price; under local trust, replace-one moves a sum by 2 radii, others by 1.
        on_violation: What becomes of a row outside of the ball: "clip" scales it into the ball and takes one
            that is not finite for zero; "error" refuses it. None: "error" without noise, else "clip". Errors
            tell of a row, which no price covers: with noise, they are for simulations and public data only.

    Raises:
        ParameterError: A value is out of its range, or the grid of the noise is too coarse for central votes.

    Example:
        >>> from tacit.privacy import guarantee
        >>> mean = SignVoteMean(dim=64, noise=GaussianNoise(3.730632))
        >>> guarantee(mean.event(100, TrustModel.LOCAL), 1e-5, observer="the server").epsilon
        1.0
        >>> mean.bits_per_party(100) - 8 * HEADER_BYTES
        64

    Reference:
        Bernstein, Wang, Azizzadenesheli and Anandkumar 2018, signSGD (arXiv:1802.04434), Algorithm 3;
        Bernstein, Zhao, Azizzadenesheli and Anandkumar 2019, signSGD with majority vote (arXiv:1810.05291).
        Prices: post-processing of a noisy sum (Dwork and Roth 2014, Proposition 2.1).
    """

    dim: int
    noise: _Noise = NoNoise()
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None

    linear: ClassVar[bool] = False
    weighs: ClassVar[Weighs] = "parties"

    def __post_init__(self) -> None:
        settle(self)
        check_count("dim", self.dim, high=MOST_COORDINATES)
        # A plain string would match no case below, and then nobody would add the noise.
        if type(self.trust) is not TrustModel or self.trust not in (TrustModel.LOCAL, TrustModel.CENTRAL):
            raise ParameterError(f"trust must be TrustModel.LOCAL or TrustModel.CENTRAL, got {self.trust!r}.")
        check_on_violation(self.on_violation)
        if self.trust is TrustModel.CENTRAL and not self._vote():
            raise ParameterError(
                f"steps must be more than sqrt(dim) / 2 for votes that a server adds noise to, got "
                f"{self.noise!r} with dim = {self.dim}: a vote would be rounded to nothing."
            )

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterable[Proposal]:
        """Offer it to audits; plans rank means, of which a vote knows the direction only."""
        if problem.trust not in ("local", "central"):
            return ()

        def build(z: float) -> SignVoteMean:
            noise = DiscreteGaussianNoise(z)
            return cls(dim=problem.dim, noise=noise, trust=problem.observer, neighbours=problem.near)

        guess, make = noisy(build, problem, DiscreteGaussianNoise)
        cost = ComputeCost("n d", float(problem.n) * problem.dim)
        return (
            Proposal(
                name="sign-vote",
                family="sign-vote",
                guess=guess,
                make=make,
                norm="l2",
                encode=ComputeCost("d", 2.0 * problem.dim),
                decode=cost,
                ranked=False,
            ),
        )

    @property
    def sensitivity(self) -> int:
        """Radii by which one unit moves what the noise goes on: a sum, or a vote vector of length 1."""
        return _FLIPPED if self.trust is TrustModel.CENTRAL else super().sensitivity

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip and add up the rows of one party, and write one message with the signs of the (noisy) sum.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Index of the party.
            rng: Source of the noise, under local trust, and of a fair coin for each exact zero.

        Returns:
            One message of `bits_per_party` bits: -1 for a negative coordinate, 0 for a positive one.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        clipped = clipped_rows(rows, round.radius, ball=self.noise.norm, dim=self.dim, refuse=self.refuses)
        summed = clipped.sum(axis=0, dtype=np.float64)
        if self.trust is TrustModel.CENTRAL:
            summed = _whole_sum(clipped, round.radius)
        return self.encode_sum(summed, rows=len(clipped), round=round, party=party, rng=rng)

    def encode_sum(
        self,
        clipped_sum: Array,
        *,
        rows: int,  # noqa: ARG002 - a message has one bit a coordinate, whatever it is about
        round: Round,
        party: int,
        rng: np.random.Generator,
    ) -> list[Message]:
        """Write one message from the sum of a party's clipped rows; see `AdditiveMean.encode_sum`.

        Args:
            clipped_sum: Shape (dim,): the sum of rows of norm at most `round.radius` each; for noise on a
                grid, float64 throughout.
            rows: Not used.
            round: Public facts of the round.
            party: Index of the party.
            rng: Source of the noise, under local trust, and of a fair coin for each exact zero.

        Returns:
            One message of `bits_per_party` bits.

        Raises:
            ParameterError: `clipped_sum` has another shape or dtype.
        """
        # Broadcasting would write one private number into all coordinates.
        if clipped_sum.shape != (self.dim,):
            raise ParameterError(f"clipped_sum must have shape ({self.dim},), got {clipped_sum.shape}.")
        payload = self._negative(clipped_sum, round.radius, rng=rng)
        return [Message(payload=payload, width=1, sender=party)]

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Count the votes, add the noise under central trust, and return the signs of the majorities.

        Args:
            messages: One of each party that answered, in any order.
            round: Public facts of the round; its n does not matter, since votes are not divided.
            rng: Source of the noise; needed under central trust only.

        Returns:
            Shape (dim,), float64: for every coordinate -1, 1, or 0 at a tie, times radius / sqrt(dim).

        Raises:
            ParameterError: No messages, one that `encode` cannot have written, two of one sender, or under
                central trust no `rng`.
        """
        if rng is None and self.trust is TrustModel.CENTRAL and not isinstance(self.noise, NoNoise):
            raise ParameterError("decode needs rng under central trust: the server adds the noise.")
        check_senders(messages)
        if self.trust is TrustModel.CENTRAL and any(message.sender is None for message in messages):
            raise ParameterError("decode needs the sender of every message under central trust.")
        negative = total(messages, self.dim, np.int64)
        for message in messages:
            if message.label or message.width != 1:
                raise ParameterError(
                    f"a vote must have label 0 and entries of one bit, got label {message.label} and "
                    f"{message.width} bits an entry."
                )
        bits = np.concatenate([message.payload for message in messages])
        if not -1 <= bits.min() <= bits.max() <= 0:
            raise ParameterError("a vote must have entries of one bit, got an entry that is not -1 or 0.")
        return self._majority(len(messages) + 2 * negative, round, rng=rng)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once.

        Args:
            X: Shape (n, dim): all rows, dealt to the parties in order and as evenly as possible, as
                `np.array_split` does. Parties without rows vote too.
            round: Public facts of the round.
            rng: Source of all noise and of all coins.

        Returns:
            Shape (dim,), float64: the law of `decode` on the messages of all parties.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        clipped = clipped_rows(X, round.radius, ball=self.noise.norm, dim=self.dim, refuse=self.refuses)
        negative = self._negative(party_sums(clipped, round.parties), round.radius, rng=rng)
        return self._majority(round.parties + 2 * negative.sum(axis=0), round, rng=rng)

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round.

        Signs of a noisy sum cost at most what the sum costs. Noise on the votes protects from nobody who sees
        the messages.

        Args:
            n: The most rows that a sum may hold (for a Poisson sample: all units that it is drawn from).
            trust: Whose view is priced.

        Raises:
            ParameterError: `n` is not a whole number >= 1, or above 2**40 for noise on a grid.
        """
        check_count("n", n)
        if self.trust is TrustModel.CENTRAL and trust != TrustModel.CENTRAL:
            return NonPrivate(self.neighbours)
        # Under central trust, vote vectors of norm 1 are added exactly. On a grid, the size of a vote is
        # rounded by at most half a step a coordinate, as the price allows for sums.
        return self.noise.event(n, self.dim, sensitivity=self.sensitivity, neighbours=self.neighbours)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the length in bits of a message, header included; it does not depend on `rows`."""
        check_count("rows", rows, low=0)
        return 8 * (HEADER_BYTES + (self.dim + 7) // 8)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return bounds on the error against the mean of the clipped rows.

        The estimate is in the ball, so its variance is at most radius^2, which rows of zeros reach, and its
        bias at most 2 radii. With one party, noise is symmetric, so that every expected sign agrees with its
        coordinate: two vectors of the ball with an inner product >= 0 are at most sqrt(2) radii apart.
        """
        check_count("n", n)
        farthest = math.sqrt(2) if facts.parties == 1 else 2.0
        return Error(variance=facts.radius**2, bias=farthest * facts.radius, exact=False)

    def _vote(self) -> float:
        """Return the size of one vote, 1 / sqrt(dim), in units of the noise; a whole number on a grid."""
        return float(self.noise.prepare(np.array([1 / math.sqrt(self.dim)]), 1.0)[0])

    def _negative(self, sums: Array, radius: float, *, rng: np.random.Generator) -> IntArray:
        """Return -1 where a party's (noisy) sum is negative, else 0; shape of `sums`."""
        if self.trust is TrustModel.LOCAL:
            noise = self.noise.sample(sums.size, sensitivity=self.sensitivity, radius=radius, rng=rng)
            sums = self.noise.prepare(sums, radius) + noise.reshape(sums.shape)
        # Drawn whether needed or not, so that neither time nor the stream tells where a sum is zero.
        coins = rng.integers(0, 2, size=sums.shape, dtype=np.bool_)
        negative: IntArray = ((sums < 0) | ((sums == 0) & coins)).astype(np.int64)
        return -negative

    def _majority(self, votes: IntArray, round: Round, *, rng: np.random.Generator | None) -> Array:
        """Return the published signs of vote totals, shape (dim,), times radius / sqrt(dim)."""
        counted: Array = votes
        if rng is not None and self.trust is TrustModel.CENTRAL and not isinstance(self.noise, NoNoise):
            vote = votes.dtype.type(self._vote()) if self.noise.on_grid else self._vote()
            counted = votes * vote + self.noise.sample(self.dim, sensitivity=_FLIPPED, radius=1.0, rng=rng)
        return np.sign(counted).astype(np.float64) * (round.radius / math.sqrt(self.dim))


def _whole_sum(rows: Array, radius: float) -> Array:
    """Return the sum of rows of norm at most `radius`, in multiples of 2^-40 radii: exact, in any order.

    A row of zeros that comes or goes must change no sign, as it might where floats are added in other groups.
    """
    if radius < SMALLEST_RADIUS:
        return np.zeros(rows.shape[1])
    whole = np.rint(np.ldexp(rows.astype(np.float64) / radius, 40)).astype(np.int64)
    return np.asarray(whole.sum(axis=0), dtype=np.float64)
