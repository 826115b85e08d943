"""Means of vectors in an L2 ball whose rows each send a message with Gaussian noise of its own, shuffled."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.means.base import Error
from tacit.means.calibrated import Scale, usual_v
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.vectors import Vectors
from tacit.mechanisms import discrete_gaussian_variance, level_from_v, sample_discrete_gaussian
from tacit.numerics import NORM_SLACK, Array
from tacit.privacy import (
    DiscreteGaussian,
    Event,
    PrivacyBudget,
    ShuffledGaussian,
    TrustModel,
    clones_level,
)
from tacit.privacy.arrivals import least_honest

__all__ = ["ShuffledGaussianMean"]

_STEPS = 2**10
_FAR = 40.0
"""Deviations that a message has room for: noise beyond them does not happen."""

_SHARE = 0.05
"""Of a delta that is calibrated to, what clones may leave open."""


class ShuffledGaussianMean(RandomizedMean, frozen=True, kw_only=True, tag="shuffled-gaussian"):
    """Every row of an L2 ball is sent with discrete Gaussian noise of its own, and a shuffler mixes messages.

    A message protects its row by itself, as under local trust, and better among the others. What an observer
    sees is all noisy rows, not their sum alone: for the same guarantee the noise of a mean is far larger than
    that of `BinomialMean`, whose messages in turn hide next to nothing before they are shuffled.

    Attributes:
        dim: Number of coordinates, >= 1.
        noise_multiplier: Parameter sigma of the noise of one coordinate of one message, over two radii, which
            is how far a row can be replaced. Finite, > 0.
        slack: Chance in every round, of the delta, that the price gives to noise for which a message is no
            clone of another. In (0, 1).
        steps: Grid steps per radius, 1 to 2**20; rows are rounded to them at random.
        trust: `shuffle`.
        neighbours: A replace-one relation.
        honest_fraction: Fraction of the planned rows, in (0, 1], whose parties are honest. The others
            collude, and are among those that answer.
        n_min: Rows below which the shuffler gives a round up, >= 1. The price counts n_min rows less those of
            all colluders. None: all planned rows must arrive.
        on_violation: What becomes of a row outside of the ball; see `AdditiveMean`. None is "clip" here.

    Raises:
        ParameterError: A value is out of its range, or messages have no room for the noise.

    Example:
        >>> from tacit.privacy import PrivacyBudget
        >>> mean = ShuffledGaussianMean.calibrated(
        ...     dim=10, budget=PrivacyBudget(0.5, 1e-6), n=10_000
        ... )
        >>> round(mean.noise_multiplier, 2), mean.bits_per_party()
        (1.82, 408)

    Reference:
        Lowy and Razaviyayn (2023), Theorem 135 (shuffled noisy minibatch SGD), with one record a message;
        the price is that of docs/theory/shuffling.md, section 9.
    """

    noise_multiplier: float
    slack: float = 1e-9
    steps: int = _STEPS
    trust: TrustModel = TrustModel.SHUFFLE

    @classmethod
    def calibrated(cls, *, trust: TrustModel = TrustModel.SHUFFLE, **fields: Any) -> Self:
        """Build the least noisy one that meets a budget behind the shuffler; see `EachRow.calibrated`."""
        return super().calibrated(trust=trust, **fields)

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        """Offer it behind a shuffler."""
        if problem.trust != "shuffle" or problem.known_budget.delta == 0:
            return ()
        return cls._one_message(problem, note="every message hides its row by itself too")

    @classmethod
    def _scale(cls, budget: PrivacyBudget, n: int, **fields: Any) -> Scale[Self]:
        fields = {"slack": _SHARE * (budget.delta or 1e-9), **fields}
        steps, dim = fields.get("steps", _STEPS), fields["dim"]
        # Noise of an approximate level e is about sqrt(2 ln(1 / delta)) / e.
        tail = math.sqrt(2 * math.log(2 * n / fields["slack"]))
        guess = level_from_v(usual_v(budget, n, 1)) / tail
        most = 2.0**52 / (2 * _FAR * steps + dim)
        return Scale(
            lambda scale: cls(noise_multiplier=min(1 / scale, most), **fields), high=1e3, guess=guess
        )

    @property
    def pure_epsilon(self) -> float:
        """Infinite: Gaussian noise has no pure level."""
        return math.inf

    @property
    def randomizer(self) -> Vectors:
        """How a row becomes a noisy one, in grid steps."""
        check_positive("noise_multiplier", self.noise_multiplier)
        check_probability("slack", self.slack, low_open=True, high_open=True)
        check_count("steps", self.steps, high=2**20)
        if self.trust is not TrustModel.SHUFFLE:
            raise ParameterError(
                f"trust must be shuffle, got {self.trust.value}: `AdditiveMean` adds noise to sums of rows."
            )
        # Whole numbers that floats hold exactly: a shuffler mixes floats row by row.
        top = self.steps + _FAR * self._std
        if top > 2.0**53:
            raise ParameterError(
                f"noise_multiplier must leave room for {_FAR:g} deviations in 53 bits at steps = "
                f"{self.steps}, got {self.noise_multiplier!r}."
            )
        small = top <= 2.0**24
        most = 2**24 if small else 2**53
        return Vectors(
            ball="l2",
            dim=self.dim,
            level=math.inf,
            law="general",
            dtype=np.float32 if small else np.float64,
            steps=self.steps,
            whole=True,
            drawn=lambda rows, rng: self._noisy(rows, rng, most),
            worst=lambda: Error(
                variance=self.dim * (discrete_gaussian_variance(self._std) + 0.25), exact=False
            ),
        )

    @property
    def _std(self) -> float:
        """Parameter of the noise in grid steps."""
        return 2 * self.steps * self.noise_multiplier

    @property
    def alone(self) -> DiscreteGaussian:
        """What one message shows to whoever sees it with its sender.

        Rounding with the same uniform numbers moves a coordinate by less than a step more than the row.
        """
        moved = 2 * self.steps * (1 + 4 * NORM_SLACK) + math.sqrt(self.dim)
        return DiscreteGaussian(self._std, moved, self.neighbours, self.dim)

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round.

        Args:
            n: Planned number of rows.
            trust: Whose view is priced. Local: messages with their senders, each of which hides its own row.

        Raises:
            ParameterError: `n` is not a whole number >= 1 or below `n_min`, or `n_min` is not above the
                number of rows that are not honest.
        """
        check_count("n", n)
        alone = self.alone
        if trust == TrustModel.LOCAL:
            return alone
        honest = least_honest(n, honest_fraction=self.honest_fraction, n_min=self.n_min)
        level = clones_level(alone, honest, self.slack)
        return ShuffledGaussian(
            alone.std, alone.sensitivity, self.dim, honest, level, neighbours=self.neighbours
        )

    def _noisy(self, rows: Array, rng: np.random.Generator, most: int) -> Array:
        """Round rows at random and add noise; what is beyond a float's whole numbers saturates."""
        scaled = rows.astype(np.float64, copy=False) * self.steps
        low = np.floor(scaled)
        whole = low.astype(np.int64) + (rng.random(scaled.shape) < scaled - low)
        noisy = whole + sample_discrete_gaussian(self._std, rows.shape, rng)
        return np.asarray(np.clip(noisy, -most, most))
