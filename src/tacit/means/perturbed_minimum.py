"""Objective perturbation: the minimum of a regularised logistic loss with a random linear term."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

import msgspec
import numpy as np

from tacit.errors import check_positive
from tacit.means.message import Message
from tacit.means.minimum import OFFERED, Minimum, offered
from tacit.means.noise import GaussianNoise, NoNoise
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.violations import OnViolation
from tacit.mechanisms import sample_gamma_length, sample_gaussian
from tacit.numerics import NORM_SLACK, Array, settle
from tacit.privacy import (
    Compose,
    Event,
    Gaussian,
    Neighbours,
    NonPrivate,
    ObjectivePerturbed,
    PureDP,
    TrustModel,
    gamma_epsilon,
)

__all__ = ["GammaNoise", "PerturbedMinimum"]

_FAR = 40.0
"""A standard Gaussian vector is longer than sqrt(d) plus that with probability below e^-800; a vector with a
Gamma length than d + 40 sqrt(d) + 800."""


class GammaNoise(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="noise", tag="gamma"):
    """A vector b of density proportional to e^(-|b| / s), whose length has a Gamma law: for a pure epsilon.

    Attributes:
        noise_multiplier: s over how far one unit moves the sum of gradients. Finite, > 0.
    """

    noise_multiplier: float

    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self)
        check_positive("noise_multiplier", self.noise_multiplier)


class PerturbedMinimum(
    Minimum,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="perturbed-minimum",
):
    """The minimum of sum log(1 + e^-<v, z/r>) + strength |v|^2 / 2 + <b, v>, for a random b.

    The minimum itself is released, and costs about what the sum of gradients at one point would with the
    noise b on it (docs/theory/perturbation.md). It is found to a gradient of norm `tolerance`, and so not
    further than tolerance / strength away; a second noise, on the solution, hides where. The proofs are about
    a b that has a density, and so there is no exact noise on a grid: this is for simulation, or for those who
    accept what a statement says about continuous noise.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        strength: Of the penalty over the square of the radius, at least 1e-6.
        tolerance: Norm of the gradient that a solution may have, in radii; more than rounding hides.
        output: Deviation or scale of the noise on a solution, whose law is that of b, over how far two
            solutions of one b may be apart.
        noise: The linear term: deviation or scale of b over how far one unit moves the sum of gradients.
        trust: `local` (every party draws its own b, and solves for itself) or `central` (the server does,
            once, on the rows of all parties).
        neighbours: Relation for the price.
        on_violation: What becomes of a row outside of the ball, as in `AdditiveMean`.

    Raises:
        ParameterError: A value is out of its range, or a name stands where its enumeration is needed.

    Example:
        >>> from tacit.privacy import guarantee
        >>> mean = PerturbedMinimum(
        ...     dim=4, strength=30.0, tolerance=1e-6, output=200.0, noise=GaussianNoise(3.732)
        ... )
        >>> guarantee(mean.event(100, TrustModel.LOCAL), 1e-5, observer="the server").epsilon < 1.0
        True

    Reference:
        Chaudhuri, Monteleoni and Sarwate (2011), JMLR 12, Algorithm 2; Kifer, Smith and Thakurta (2012),
        COLT; solutions that are not exact: Iyengar et al. (2019), IEEE S&P, Algorithm 1.
    """

    dim: int
    strength: float
    tolerance: float
    output: float
    noise: NoNoise | GaussianNoise | GammaNoise = NoNoise()
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None

    def __post_init__(self) -> None:
        self.check()
        check_positive("output", self.output)

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterable[Proposal]:
        """Offer it to audits; plans rank means."""

        def build(z: float) -> PerturbedMinimum:
            made = cls(
                dim=problem.dim,
                strength=OFFERED,
                tolerance=1.0,
                output=50 * z,
                noise=GaussianNoise(z),
                trust=problem.observer,
                neighbours=problem.near,
            )
            return msgspec.structs.replace(made, tolerance=made.least(problem.n))

        return offered(build, problem, str(cls.__struct_config__.tag))

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
        solved = ObjectivePerturbed(self.noise_multiplier, self.strength, neighbours=self.neighbours)
        if isinstance(self.noise, GammaNoise):
            # `solved` has refused neighbours of which one still has a loss: no proof is about those.
            level = gamma_epsilon(self.noise_multiplier, self.strength, relation=self.neighbours.relation)
            return Compose((PureDP(level, self.neighbours), PureDP(1 / self.output, self.neighbours)))
        return Compose((solved, Gaussian(self.output, self.neighbours)))

    def _noisy(self, unit: Array, rng: np.random.Generator | None) -> Array:
        if rng is None or not self.private:
            return self._solved(unit)
        # In double precision: what a price is about has a density, of which floats are but a shadow.
        draw = sample_gamma_length if isinstance(self.noise, GammaNoise) else sample_gaussian
        push = draw(self._deviation, self.dim, rng)
        hidden = self._solved(unit, push) + draw(self._blur, self.dim, rng)
        return hidden.astype(np.float32)

    def _message(self, noisy: Array, rows: int, party: int) -> Message:  # noqa: ARG002 - as of other minima
        return Message(payload=noisy, sender=party)

    def _entry_bits(self, rows: int) -> int:  # noqa: ARG002 - as of other minima
        return 32 if self.private else 64

    def _variance(self) -> float:
        # A solution moves by at most |b - b'| / strength, whose mean square is twice that of b / strength;
        # and by what is left of it.
        square = self.dim * (self.dim + 1 if isinstance(self.noise, GammaNoise) else 1)
        moved = math.sqrt(square) * math.hypot(self._deviation / self.strength, self._blur)
        return (moved + self.tolerance / self.strength) ** 2 if self.private else 0.0

    def _push(self) -> float:
        root = math.sqrt(self.dim)
        long = self.dim + _FAR * root + _FAR**2 / 2 if isinstance(self.noise, GammaNoise) else root + _FAR
        return self._deviation * long

    @property
    def _deviation(self) -> float:
        """Deviation of a coordinate of b, for rows in the unit ball."""
        return self.noise_multiplier * self.sensitivity * (1 + 2 * NORM_SLACK)

    @property
    def _blur(self) -> float:
        """Deviation of the noise on a coordinate of a solution."""
        return self.output * 2 * self.tolerance / self.strength
