"""Means of rows whose coordinates are clipped one by one: an outlier in one costs the others nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np

from tacit.means.additive import AdditiveMean
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.message import LARGEST_RADIUS, Message, Round
from tacit.means.noise import DiscreteGaussianNoise, GaussianNoise, NoNoise
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal, noisy
from tacit.means.traits import SumOfRows
from tacit.means.violations import OnViolation, check_on_violation, clipped_rows
from tacit.numerics import Array, settle
from tacit.privacy import Event, Neighbours, TrustModel

__all__ = ["CoordinateClippedMean", "widened"]

_STEPS = 2**16


class CoordinateClippedMean(
    SumOfRows,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="coordinate-clipped",
):
    """The sum of rows that are clipped coordinate by coordinate, plus Gaussian noise, over the planned n.

    Rows of the cube [-radius, radius]^dim lie in the L2 ball of sqrt(dim) radii: the sum, its noise and its
    price are those of `AdditiveMean` there. So a row moves the mean by at most 2 sqrt(dim) radii / n. With
    the same noise, the bias is smaller than that of clipping to the ball where a row is long because of few
    of its coordinates.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        noise: What is added; Gaussian, of real or whole numbers.
        trust: `local` (every party adds noise) or `central` (the server does).
        neighbours: Relation for the sensitivity of the sum; see `AdditiveMean`.
        on_violation: What becomes of a row outside of the cube: "clip" moves its coordinates to the nearest
            that are inside; see `AdditiveMean`.

    Raises:
        ParameterError: A value is out of its range, or a name stands where its enumeration is needed.

    Example:
        >>> from tacit.privacy import guarantee
        >>> mean = CoordinateClippedMean(dim=4, noise=GaussianNoise(3.730632), trust=TrustModel.CENTRAL)
        >>> guarantee(mean.event(100, TrustModel.CENTRAL), 1e-5, observer="everybody").epsilon
        1.0

    Reference:
        The coordinate-wise oracle of Kamath, Liu and Zhang (2022), as Lowy (2023), Appendix C.3 uses it.
    """

    dim: int
    noise: NoNoise | GaussianNoise | DiscreteGaussianNoise = NoNoise()
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None

    def __post_init__(self) -> None:
        settle(self)
        check_on_violation(self.on_violation)
        self._in_ball  # noqa: B018 - which checks the other fields

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer exact integer noise where a moment is known; for rows of a cube, the ball does as well."""
        d = problem.dim
        if problem.trust not in ("central", "local"):
            return

        def build(z: float) -> CoordinateClippedMean:
            noise = DiscreteGaussianNoise(z, steps=_STEPS)
            return cls(dim=d, noise=noise, trust=problem.observer, neighbours=problem.near)

        guess, make = noisy(build, problem, DiscreteGaussianNoise, longer=1 + math.sqrt(d) / (2 * _STEPS))
        yield Proposal(
            name="coordinate-wise clip",
            family="coordinate-wise clip",
            guess=guess,
            make=make,
            norm="linf",
            encode=ComputeCost("d", 2.0 * d),
            decode=ComputeCost("n d", float(problem.n) * d),
            ranked=problem.moment is not None,
            cube=True,
        )

    @property
    def moved(self) -> float:
        """Radii by which one unit moves a sum, in the L2 norm."""
        return self.sensitivity * math.sqrt(self.dim)

    @property
    def sums(self) -> tuple[()]:
        """Sums of rows that others have clipped to a ball: none."""
        return ()

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip the coordinates of the rows of one party and write one message with their (noisy) sum.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round; the radius is half the side of the cube.
            party: Index of the party.
            rng: Source of the noise, under local trust.

        Returns:
            One message, as long as that of `AdditiveMean`.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        return self._in_ball.encode(
            self._clipped(rows, round), widened(round, self.dim), party=party, rng=rng
        )

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Add the messages, and the noise under central trust, and divide by the planned n; shape (dim,).

        Raises:
            ParameterError: As `AdditiveMean.decode`.
        """
        return self._in_ball.decode(messages, widened(round, self.dim), rng=rng)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once on all rows, shape (n, dim); returns shape (dim,)."""
        return self._in_ball.estimate(self._clipped(X, round), widened(round, self.dim), rng=rng)

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round, as `AdditiveMean.event`."""
        return self._in_ball.event(n, trust)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the length in bits, header included, of a message made for that many rows."""
        return self._in_ball.bits_per_party(rows)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error against the mean of the clipped rows; `facts.radius` is half a side."""
        return self._in_ball.error(n, replace(facts, radius=facts.radius * math.sqrt(self.dim)))

    @property
    def _in_ball(self) -> AdditiveMean:
        """The mean of rows of the ball around the cube; they need no clipping but for rounding."""
        return AdditiveMean(
            dim=self.dim,
            noise=self.noise,
            trust=self.trust,
            neighbours=self.neighbours,
            on_violation="clip",
        )

    def _clipped(self, rows: Array, round: Round) -> Array:
        return clipped_rows(rows, round.radius, ball="cube", dim=self.dim, refuse=self.refuses)


def widened(round: Round, dim: int, factor: float = 1.0) -> Round:
    """Return a round with the radius of the L2 ball around a cube of `factor` times its radius.

    The largest radii there are stay as they are: rows are then clipped to a ball inside the cube.
    """
    return replace(round, radius=min(factor * round.radius * math.sqrt(dim), LARGEST_RADIUS))
