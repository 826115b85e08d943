"""Laplace noise on every row: the baseline of local privacy."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means.base import Error
from tacit.means.calibrated import Scale, one_level
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.vectors import Vectors
from tacit.mechanisms import check_level, discrete_laplace_variance, sample_discrete_laplace, sample_laplace
from tacit.numerics import NORM_SLACK, Array
from tacit.privacy import PrivacyBudget, TrustModel

__all__ = ["LocalLaplaceMean"]

_STEPS = 2**16
_LARGEST_SCALE = 2.0**55
"""Of discrete Laplace noise that is sampled exactly, in grid steps."""


class LocalLaplaceMean(RandomizedMean, frozen=True, kw_only=True, tag="local-laplace"):
    """Every row of an L1 ball is sent with Laplace noise of scale 2 radius / epsilon in each coordinate.

    Attributes:
        dim: Number of coordinates, >= 1; 1 for whole numbers behind a shuffler, which mixes them.
        local_epsilon: Pure level of one report, in [2**-30, 30].
        steps: Grid steps per radius, up to 2**30: noise is a whole number of them, sampled exactly. 0:
            reports are real numbers, for simulation.
        trust: `local` or `shuffle`.
        neighbours: A replace-one relation.
        honest_fraction: Behind a shuffler: fraction of the planned rows, in (0, 1], whose parties are honest.
            The others collude, and are among those that answer.
        n_min: Behind a shuffler: rows below which it gives a round up. The price counts n_min rows less those
            of all colluders. None: all planned rows must arrive.
        on_violation: What becomes of a row outside of the ball; see `AdditiveMean`. None is "clip" here.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> mean = LocalLaplaceMean(dim=1, local_epsilon=2.0, steps=0)
        >>> mean.error(1).variance, LocalLaplaceMean(dim=1, local_epsilon=2.0).bits_per_party()
        (2.0, 120)

    Reference:
        Dwork et al. (2006), TCC; behind a shuffler, Feldman, McMillan and Talwar (2022), FOCS.
    """

    local_epsilon: float
    steps: int = _STEPS

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        """Offer it to audits: `AdditiveMean` offers the same noise to plans, with grids of several widths."""
        # Behind a shuffler, whole numbers are mixed coordinate by coordinate.
        fits = problem.trust != "shuffle" or problem.dim == 1
        return cls._one_message(problem, ranked=False) if fits else ()

    @classmethod
    def _scale(cls, _: PrivacyBudget, _n: int, *, steps: int = _STEPS, **fields: Any) -> Scale[Self]:
        # Noise of a larger scale is not sampled exactly; this is a little above that level.
        least = (2 * steps + fields["dim"] + 2) * (1 + 2.0**-20) / _LARGEST_SCALE if steps else 0.0
        return one_level(cls, {"steps": steps, **fields}, least=least)

    @property
    def randomizer(self) -> Vectors:
        """How a row becomes a noisy one, in grid steps, or in radii for real numbers."""
        level = check_level("local_epsilon", self.local_epsilon)
        steps = check_count("steps", self.steps, low=0, high=2**30)
        if self.trust is TrustModel.SHUFFLE and steps and self.dim > 1:
            raise ParameterError("dim must be 1 for whole numbers under shuffle trust; or choose steps = 0.")
        if steps and self.scale > _LARGEST_SCALE:
            raise ParameterError(
                f"local_epsilon is too small for steps = {steps}: the noise would have a scale above "
                f"2**55 grid steps, got {self.local_epsilon!r}."
            )
        # Bits that hold a row and 64 scales of noise on either side.
        width = min(64, 2 + math.ceil(math.log2(steps + 64 * self.scale + 1))) if steps else 0
        return Vectors(
            ball="l1",
            dim=self.dim,
            level=level,
            # Rounding to a grid is covered by the general law.
            law="laplace" if steps == 0 and self.dim == 1 else "general",
            dtype=np.int64 if steps else np.float64,
            width=width,
            steps=max(steps, 1),
            drawn=lambda rows, rng: self._noisy(rows, rng, 2 ** (width - 1)),
            worst=self._worst,
        )

    @property
    def scale(self) -> float:
        """Scale of the noise in grid steps, or in radii for real numbers."""
        if self.steps == 0:
            return 2 / self.local_epsilon
        # Rounding moves every coordinate by at most half a step in either data set; whole vectors are a whole
        # distance apart.
        moved = math.floor(2 * self.steps * (1 + 4 * NORM_SLACK) + self.dim)
        # Up: the level that this scale gives must not exceed the one that is claimed.
        return math.nextafter(moved / self.local_epsilon, math.inf)

    def _noisy(self, rows: Array, rng: np.random.Generator, top: int) -> Array:
        """Add noise to rows; whole numbers saturate at -top and top - 1."""
        if self.steps == 0:
            return rows + sample_laplace(self.scale, rows.size, rng).reshape(rows.shape)
        whole = np.rint(rows * self.steps).astype(np.int64)
        return np.asarray(
            np.clip(whole + sample_discrete_laplace(self.scale, rows.shape, rng), -top, top - 1)
        )

    def _worst(self) -> Error:
        """Error of the report on any row; rounding to a grid is a bias, as a bound."""
        if self.steps == 0:
            return Error(variance=self.dim * 2 * self.scale**2)
        variance = self.dim * discrete_laplace_variance(self.scale)
        return Error(variance=variance, bias=math.sqrt(self.dim) / 2, exact=False)
