"""Laplace noise on every row: the baseline of local privacy."""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.calibrated import calibrated_mean
from tacit.means.message import HEADER_BYTES, Message, Round, check_released
from tacit.means.randomized import RECORDS, RandomizedMean, check_level
from tacit.mechanisms import discrete_laplace_variance, sample_discrete_laplace, sample_laplace
from tacit.numerics import NORM_SLACK, Array
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel

__all__ = ["LocalLaplaceMean"]

_NUMBERS_AT_ONCE = 2**20
_LARGEST_SCALE = 2.0**55
"""Of discrete Laplace noise that is sampled exactly, in grid steps."""


class LocalLaplaceMean(
    RandomizedMean,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="local-laplace",
):
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
    steps: int = 2**16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level("local_epsilon", self.local_epsilon)
        check_count("steps", self.steps, low=0, high=2**30)
        if self.trust is TrustModel.SHUFFLE and self.steps and self.dim > 1:
            raise ParameterError("dim must be 1 for whole numbers under shuffle trust; or choose steps = 0.")
        if self.steps and self.scale > _LARGEST_SCALE:
            raise ParameterError(
                f"local_epsilon is too small for steps = {self.steps}: the noise would have a scale above "
                f"2**55 grid steps, got {self.local_epsilon!r}."
            )

    @classmethod
    def calibrated(
        cls,
        *,
        dim: int,
        budget: PrivacyBudget,
        n: int,
        trust: TrustModel = TrustModel.LOCAL,
        honest_fraction: float = 1.0,
        n_min: int | None = None,
        steps: int = 2**16,
        neighbours: Neighbours = RECORDS,
    ) -> LocalLaplaceMean:
        """Build the most accurate such estimator that meets a budget, on n rows.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: The budget cannot be met.
        """
        # Noise of a larger scale is not sampled exactly; this is a little above that level.
        least = (2 * steps + dim + 2) * (1 + 2.0**-20) / _LARGEST_SCALE if steps else 0.0

        def make(level: float) -> LocalLaplaceMean:
            epsilon = max(min(level, 30.0), 2.0**-30, least)
            return cls(
                dim=dim,
                local_epsilon=epsilon,
                steps=steps,
                trust=trust,
                honest_fraction=honest_fraction,
                n_min=n_min,
                neighbours=neighbours,
            )

        return calibrated_mean(make, budget, n=n, trust=trust)

    @property
    def exact(self) -> bool:
        """Whether reports are drawn on a grid; real numbers are not."""
        return self.steps > 0

    def levels(self) -> Array:
        """The level of the one message."""
        return np.array([self.local_epsilon])

    def randomizer(self) -> str:
        """The Laplace law where it applies; rounding to a grid is covered by the general one."""
        return "laplace" if self.steps == 0 and self.dim == 1 else "general"

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

    def _reports(self, rows: Array, round: Round, rng: np.random.Generator) -> Array:
        """Noisy rows in grid steps, or in radii for real numbers."""
        x = self._unit_rows(rows, round, "l1")
        if self.steps == 0:
            return x + sample_laplace(self.scale, x.size, rng).reshape(x.shape)
        top = 2 ** (self._width() - 1) - 1
        noisy = np.rint(x * self.steps).astype(np.int64) + sample_discrete_laplace(self.scale, x.shape, rng)
        return np.asarray(np.clip(noisy, -top - 1, top))

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip the rows of one party and add noise to each.

        Returns:
            One message with all rows; one of float64 for every row where reports are real numbers.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        reports = self._reports(rows, round, rng)
        if self.steps == 0:
            return [Message(payload=report, sender=party) for report in reports]
        return [Message(payload=reports.ravel(), width=self._width(), sender=party)]

    def decode(
        self,
        messages: list[Message],
        round: Round,
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the parties added all noise
    ) -> Array:
        """Add the reports, and divide by the planned n.

        Raises:
            ParameterError: No messages, one that `encode` cannot have written, or numbers that overflow.
        """
        if not messages:
            raise ParameterError("decode needs at least one message, got none.")
        kind = np.float64 if self.steps == 0 else np.int64
        for message in messages:
            payload, width = message.payload, self._width() if self.steps else 0
            right = payload.dtype == kind and payload.ndim == 1 and message.width == width
            if not right or payload.size % self.dim or not np.isfinite(payload).all():
                raise ParameterError(
                    f"a message must hold rows of {self.dim} finite numbers of {np.dtype(kind).name}, got "
                    f"{payload.dtype} of shape {payload.shape}."
                )
        reports = np.concatenate([m.payload for m in messages]).reshape(-1, self.dim)
        self._check_arrived(len(reports), round.n)
        unit = round.radius / max(self.steps, 1) / round.n
        with np.errstate(over="ignore", invalid="ignore"):
            return check_released(np.asarray(reports.sum(axis=0) * unit, dtype=np.float64))

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once: the law of `decode` on the messages of all parties."""
        X, total = self._inside(X, round, "l1"), np.zeros(self.dim)
        self._check_arrived(len(X), round.n)
        step = max(1, _NUMBERS_AT_ONCE // self.dim)
        for start in range(0, max(len(X), 1), step):
            total += self._reports(X[start : start + step], round, rng).sum(axis=0)
        return total * (round.radius / max(self.steps, 1) / round.n)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends, headers included."""
        check_count("rows", rows, low=0)
        if self.steps == 0:
            return 8 * rows * (HEADER_BYTES + 8 * self.dim)
        return 8 * (HEADER_BYTES + (rows * self.dim * self._width() + 7) // 8)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error against the mean of the clipped rows; rounding to a grid is a bias, as a bound."""
        check_count("n", n)
        if self.steps == 0:
            return Error(variance=self.dim * 2 * self.scale**2 * facts.radius**2 / n)
        unit = facts.radius / self.steps
        variance = self.dim * discrete_laplace_variance(self.scale) * unit**2 / n
        return Error(variance=variance, bias=math.sqrt(self.dim) * unit / 2, exact=False)

    def _width(self) -> int:
        """Bits that hold a row and 64 scales of noise on either side."""
        return min(64, 2 + math.ceil(math.log2(self.steps + 64 * self.scale + 1)))
