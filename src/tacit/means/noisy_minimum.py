"""Output perturbation: the minimum of a regularised logistic loss, plus noise."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from tacit.means.message import Message
from tacit.means.minimum import OFFERED, Minimum, offered
from tacit.means.noise import DiscreteGaussianNoise, GaussianNoise, NoNoise
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.violations import OnViolation
from tacit.numerics import NORM_SLACK, Array, least_tolerance
from tacit.privacy import Event, Neighbours, NonPrivate, TrustModel

__all__ = ["NoisyMinimum"]


class NoisyMinimum(
    Minimum,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="noisy-minimum",
):
    """The minimum of a regularised logistic loss of all rows, plus noise: output perturbation.

    A row moves the gradient at the minimum by at most its norm, and strong convexity turns that into
    1 / strength radii: two rows' worth under replace-one. That the minimum is found only to a gradient of
    norm `tolerance` adds as much for either data set.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        strength: Of the penalty over the square of the radius, at least 1e-6.
        tolerance: Norm of the gradient that a solution may have, in radii; more than rounding hides.
        noise: Gaussian noise on the minimum, which it is a multiple of how far one unit moves.
        trust: `local` (every party solves for itself, and adds noise) or `central` (the server does, once, on
            the rows of all parties).
        neighbours: Relation for the price.
        on_violation: What becomes of a row outside of the ball, as in `AdditiveMean`.

    Raises:
        ParameterError: A value is out of its range, or a name stands where its enumeration is needed.

    Example:
        >>> from tacit.privacy import guarantee
        >>> mean = NoisyMinimum(dim=4, strength=80.0, tolerance=1e-6, noise=GaussianNoise(3.730632))
        >>> guarantee(mean.event(100, TrustModel.LOCAL), 1e-5, observer="the server").epsilon
        1.0

    Reference:
        Chaudhuri, Monteleoni and Sarwate (2011), JMLR 12, Algorithm 1, with Gaussian noise and solutions that
        are not exact.
    """

    dim: int
    strength: float
    tolerance: float
    noise: NoNoise | GaussianNoise | DiscreteGaussianNoise = NoNoise()
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None

    def __post_init__(self) -> None:
        self.check()

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterable[Proposal]:
        """Offer it to audits; plans rank means."""
        least = least_tolerance(problem.n, problem.dim, strength=OFFERED, push=0.0)

        def build(z: float) -> NoisyMinimum:
            return cls(
                dim=problem.dim,
                strength=OFFERED,
                tolerance=least,
                noise=DiscreteGaussianNoise(z),
                trust=problem.observer,
                neighbours=problem.near,
            )

        return offered(build, problem, str(cls.__struct_config__.tag))

    @property
    def reach(self) -> float:
        """How far one unit moves the minimum that is found, in radii."""
        return (self.sensitivity * (1 + 2 * NORM_SLACK) + 2 * self.tolerance) / self.strength

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round.

        Args:
            n: The most rows that there may be; it bounds rounding.
            trust: Whose view is priced.

        Raises:
            ParameterError: `n` is not a whole number >= 1, or rounding of n rows exceeds the tolerance.
        """
        if not self._priced(n, trust):
            return NonPrivate(self.neighbours)
        return self.noise.event(n, self.dim, sensitivity=1.0, neighbours=self.neighbours)

    def _noisy(self, unit: Array, rng: np.random.Generator | None) -> Array:
        found = self.noise.prepare(self._solved(unit), self.reach)
        if rng is None or not self.private:
            return found
        drawn = self.noise.sample(self.dim, sensitivity=1.0, radius=self.reach, rng=rng)
        return self.noise.published(found + drawn, 64)

    def _message(self, noisy: Array, rows: int, party: int) -> Message:
        width = self._entry_bits(rows)
        payload = self.noise.published(noisy, width)
        return Message(payload=payload, width=width if self.noise.on_grid else 0, sender=party)

    def _entry_bits(self, rows: int) -> int:
        return self.noise.entry_bits(rows, sensitivity=1.0)

    def _variance(self) -> float:
        noise = self.noise.variance(sensitivity=1.0, radius=self.reach) * self._unit**2
        # On a grid, a coordinate is rounded by at most half a step.
        return self.dim * (noise + (self._unit**2 if self.noise.on_grid else 0.0))

    @property
    def _unit(self) -> float:
        return self.noise.unit(self.reach)

    @property
    def _dtype(self) -> type[np.generic]:
        return self.noise.dtype
