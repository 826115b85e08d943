"""Means with additive noise: parties sum clipped rows; the party or the server adds noise to the sum."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means.message import HEADER_BYTES, MOST_COORDINATES, Message, Round, check_senders, total
from tacit.means.noise import AnyNoise, DiscreteGaussianNoise, DiscreteLaplaceNoise, GaussianNoise, NoNoise
from tacit.means.noisy_sums import NoisySum, check_shape
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, IntegerNoise, Proposal, noisy
from tacit.means.violations import OnViolation, check_on_violation
from tacit.numerics import Array, settle
from tacit.privacy import Event, Neighbours, NonPrivate, TrustModel

__all__ = ["AdditiveMean", "is_acute", "is_gaussian", "is_one_hot", "is_plain"]

_STEPS = (2**16, 2**11, 2**8)
_LAWS: dict[str, IntegerNoise] = {"Gaussian": DiscreteGaussianNoise, "Laplace": DiscreteLaplaceNoise}
"""What is proposed: grid steps of a radius, and exact noise."""


class AdditiveMean(
    NoisySum,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="additive",
):
    """The sum of clipped rows, plus noise, divided once by the planned n.

    Under local trust every party adds its own noise and the noises add up; under central trust the server
    adds it once, in `decode`. Noise scales with the round's radius, so the price does not depend on it.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        noise: What is added; its norm is the norm that rows are clipped in.
        trust: `local` (every party adds noise) or `central` (the server does).
        neighbours: Relation for the sensitivity of the sum: 2 radii under replace-one, else 1.
        on_violation: What becomes of a row outside of the ball: "clip" scales it into the ball and takes one
            that is not finite for zero; "error" refuses it. None: "error" without noise, else "clip". Errors
            tell of a row, which no price covers: with noise, they are for simulations and public data only.
        acute: No two rows that there could be are at more than a right angle, as no two matrices x x^T are:
            replacing one then moves the sum by at most sqrt(2) radii instead of 2. A promise of whoever makes
            the rows, which cannot be seen from one of them; silos hold plans against their own statistics.
        one_hot: Rows are a radius in one coordinate, or zero: sums are counts, no grid rounds them, and
            replacing a row moves two of them by one. Any other row counts as zero; of sums that others have
            added up it is a promise, as for acute rows. Not with `acute`, which promises less.

    Raises:
        ParameterError: A value is out of its range, or a name stands where its enumeration is needed.

    Example:
        >>> from tacit.means import AdditiveMean, GaussianNoise
        >>> from tacit.privacy import TrustModel, guarantee
        >>> mean = AdditiveMean(dim=4, noise=GaussianNoise(3.730632))
        >>> guarantee(mean.event(100, TrustModel.LOCAL), 1e-5, observer="the server").epsilon
        1.0

    Reference:
        Noisy means of clipped rows: Abadi et al. (2016), CCS, Algorithm 1; silos: Lowy (2023), Algorithm 14.
    """

    dim: int
    noise: AnyNoise = NoNoise()
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None
    acute: bool = False
    one_hot: bool = False

    def __post_init__(self) -> None:
        settle(self)
        check_count("dim", self.dim, high=MOST_COORDINATES)
        # A plain string would match no case below, and then nobody would add the noise.
        if type(self.trust) is not TrustModel or self.trust not in (TrustModel.LOCAL, TrustModel.CENTRAL):
            raise ParameterError(f"trust must be TrustModel.LOCAL or TrustModel.CENTRAL, got {self.trust!r}.")
        check_on_violation(self.on_violation)
        if self.acute and self.noise.norm != "l2":
            raise ParameterError("acute rows need noise for rows in an L2 ball: angles bound no L1 distance.")
        check_shape(acute=self.acute, one_hot=self.one_hot)

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer rows in full, or exact integer noise on their sum: the server's, or a share of every party.

        Laplace noise has a pure level, and goes with rows of an L1 ball; Gaussian noise needs delta > 0.
        """
        d, n = problem.dim, problem.n
        encode, decode = ComputeCost("d", float(d)), ComputeCost("n d", float(n) * d)
        if problem.trust == "none":
            yield Proposal(
                name="rows in full",
                family="rows in full",
                make=lambda: cls(dim=d),
                norm="l2",
                encode=encode,
                decode=decode,
            )
        central = problem.trust == "central"
        for law, kind in _LAWS.items() if problem.trust in ("central", "local") else ():
            # The server's noise goes on 64-bit sums, however fine the grid is.
            for steps in _STEPS[:1] if central else _STEPS:

                def build(z: float, kind: IntegerNoise = kind, steps: int = steps) -> AdditiveMean:
                    return cls(
                        dim=d,
                        noise=kind(z, steps=steps),
                        trust=problem.observer,
                        neighbours=problem.near,
                    )

                distance = d if law == "Laplace" else math.sqrt(d)
                guess, make = noisy(build, problem, kind, longer=1 + distance / (2 * steps))
                fineness = "" if central else f", {steps} steps"
                yield Proposal(
                    name=f"{law} noise of {'the server' if central else 'every party'}{fineness}",
                    family=f"additive {law.lower()}",
                    guess=guess,
                    make=make,
                    norm="l1" if law == "Laplace" else "l2",
                    encode=ComputeCost("d", 2.0 * d),
                    decode=decode,
                    note="the party sends its row as it is" if central else "",
                )

    def encode_sum(
        self, clipped_sum: Array, *, rows: int, round: Round, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write one message from the sum of a party's clipped rows.

        Args:
            clipped_sum: Shape (dim,): the sum of rows c_i x_i, each of norm at most `round.radius` within
                `NORM_SLACK`, bad rows as zero. Any order of summation; for noise on a grid, float64
                throughout.
            rows: Public number of rows that the length of the message is made for; never the secret size of
                a sample.
            round: Public facts of the round.
            party: Index of the party.
            rng: Source of the noise, under local trust.

        Returns:
            One message of `bits_per_party(rows)` bits.

        Raises:
            ParameterError: `clipped_sum` has another shape or dtype.
        """
        noise = self.noise
        summed = self._units(clipped_sum, round.radius)
        if self.trust is TrustModel.CENTRAL:
            return [self._in_full(summed, party)]
        moved = self.moved
        width = noise.entry_bits(rows, sensitivity=moved)
        summed = summed + noise.sample(self.dim, sensitivity=moved, radius=round.radius, rng=rng)
        payload = noise.published(summed, width)
        return [Message(payload=payload, width=width if noise.on_grid else 0, sender=party)]

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Add the messages, and the noise under central trust, and divide by the planned n.

        Args:
            messages: One of each party that answered, in any order.
            round: Public facts of the round.
            rng: Source of the noise; needed under central trust only.

        Returns:
            Shape (dim,), float64, not projected: its norm may exceed the radius.

        Raises:
            ParameterError: No messages, one that `encode` cannot have written, under central trust two of one
                sender or no `rng`.
        """
        noise = self.noise
        if self.trust is TrustModel.LOCAL:
            return total(messages, self.dim, noise.dtype) * (noise.unit(round.radius) / round.n)
        if rng is None and not isinstance(noise, NoNoise):
            raise ParameterError("decode needs rng under central trust: the server adds the noise.")
        check_senders(messages)
        summed = total(messages, self.dim, np.int64 if noise.on_grid else np.float64)
        return self._released(summed, round, noises=1, rng=rng)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once.

        Args:
            X: Shape (n, dim): all rows, dealt to the parties in order and as evenly as possible, as
                `np.array_split` does.
            round: Public facts of the round.
            rng: Source of all noise.

        Returns:
            Shape (dim,), float64: the law of `decode` on the messages of all parties, except that their
            single float32 roundings, and saturation (probability below 1e-27), are left out.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        summed = self._summed(X, round)
        local = self.trust is TrustModel.LOCAL
        return self._released(summed, round, noises=round.parties if local else 1, rng=rng)

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round.

        Noise that parties add also protects from observers behind a shuffler or a server; noise that the
        server adds protects from nobody who sees the messages.

        Args:
            n: The most rows that a sum may hold (for a Poisson sample: all units that it is drawn from); it
                bounds the rounding of the sum.
            trust: Whose view is priced.

        Raises:
            ParameterError: `n` is not a whole number >= 1, or above 2**40 for noise on a grid.
        """
        check_count("n", n)
        if self.trust is TrustModel.CENTRAL and trust != TrustModel.CENTRAL:
            return NonPrivate(self.neighbours)
        return self._of_unit(self._noise_event(n))

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the length in bits, header included, of a message made for that many rows."""
        check_count("rows", rows, low=0)
        local = self.trust is TrustModel.LOCAL
        entry = self.noise.entry_bits(rows, sensitivity=self.moved) if local else 64
        return 8 * (HEADER_BYTES + (self.dim * entry + 7) // 8)

    def _in_full(self, summed: Array, party: int) -> Message:
        """Write a sum that the server will add noise to: nothing may be lost before."""
        if self.noise.on_grid:
            return Message(payload=summed, width=64, sender=party)
        return Message(payload=summed.astype(np.float64, copy=False), sender=party)

    def _released(
        self, summed: Array, round: Round, *, noises: int, rng: np.random.Generator | None
    ) -> Array:
        """Return the mean from a sum in units, after adding the noise of that many parties."""
        noise = self.noise
        if rng is not None and not isinstance(noise, NoNoise):
            drawn = noise.sample(
                self.dim, sensitivity=self.moved, radius=round.radius, rng=rng, parties=noises
            )
            # Float32 noise would leave the low bits of a float64 sum in the open.
            summed = noise.published(summed + drawn, 64)
        return np.asarray(summed, dtype=np.float64) * (noise.unit(round.radius) / round.n)


def is_plain(mean: object) -> bool:
    """Whether a mean is that of the clipped rows plus continuous Gaussian noise, or none, and no more."""
    return isinstance(mean, AdditiveMean) and isinstance(mean.noise, GaussianNoise | NoNoise)


def is_gaussian(mean: object) -> bool:
    """Whether a mean is that of the clipped rows plus Gaussian noise, of real or whole numbers, or none."""
    gaussian = NoNoise | GaussianNoise | DiscreteGaussianNoise
    return isinstance(mean, AdditiveMean) and isinstance(mean.noise, gaussian)


def is_acute(mean: object) -> bool:
    """Whether the price of a mean rests on angles between rows that there could be."""
    return isinstance(mean, NoisySum) and mean.acute


def is_one_hot(mean: object) -> bool:
    """Whether the price of a mean rests on rows that are one-hot, or zero."""
    return isinstance(mean, NoisySum) and mean.one_hot
