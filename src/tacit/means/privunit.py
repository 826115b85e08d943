"""Means of vectors in an L2 ball from private unit vectors: PrivUnit and its Gaussian surrogate."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.calibrated import calibrated_mean
from tacit.means.message import HEADER_BYTES, SMALLEST_RADIUS, Message, Round
from tacit.means.randomized import RECORDS, RandomizedMean, check_level, clipped_to_unit
from tacit.mechanisms import Cap, PrivUnit, PrivUnitG, ball_to_sphere
from tacit.numerics import Array, row_norms
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel

__all__ = ["PrivUnitGMean", "PrivUnitMean"]

_NUMBERS_AT_ONCE = 2**21


class _UnitRandomizer(Protocol):
    """What PrivUnit and its surrogate have in common."""

    @property
    def cap(self) -> Cap: ...

    @property
    def squared_norm(self) -> float: ...

    def sample(self, rows: npt.ArrayLike, rng: np.random.Generator) -> Array: ...


class _UnitMean(RandomizedMean, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mean of float reports on the unit vectors of rows."""

    local_epsilon: float
    lift: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.lift:
            check_count("dim, without lift,", self.dim, low=2)
        check_level("local_epsilon", self.local_epsilon)

    @property
    def exact(self) -> bool:
        """Reports are real numbers, which prices take for exact."""
        return False

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
        lift: bool = True,
        neighbours: Neighbours = RECORDS,
    ) -> Self:
        """Build the most accurate such estimator that meets a budget, on n rows.

        Args:
            dim: Number of coordinates.
            budget: For the observer of the trust model.
            n: Planned number of rows.
            trust: `local` or `shuffle`.
            honest_fraction: Behind a shuffler: fraction of the n rows whose parties are honest, in (0, 1].
            n_min: Behind a shuffler: rows below which it gives a round up, 1 to n; None: all n.
            lift: See the class.
            neighbours: A replace-one relation.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: The budget cannot be met.
        """
        return calibrated_mean(
            lambda level: cls(
                dim=dim,
                local_epsilon=max(min(level, 30.0), 2.0**-30),
                lift=lift,
                trust=trust,
                honest_fraction=honest_fraction,
                n_min=n_min,
                neighbours=neighbours,
            ),
            budget,
            n=n,
            trust=trust,
        )

    def _unit(self) -> _UnitRandomizer:
        """Return the randomizer of unit vectors."""
        raise NotImplementedError

    def levels(self) -> Array:
        """The level of the one message."""
        return np.array([self.local_epsilon])

    def randomizer(self) -> str:
        """Sets of the measure of the cap, on which the density is e^epsilon times as high."""
        return f"privunit:{self._unit().cap.measure!r}"

    @property
    def _unit_dim(self) -> int:
        return self.dim + self.lift

    def _reports(self, rows: Array, round: Round, rng: np.random.Generator) -> Array:
        """Randomise rows; shape (k, dim), for rows divided by the radius."""
        x = self._unit_rows(rows, round, "l2")
        if self.lift:
            return self._unit().sample(ball_to_sphere(x), rng)[:, : self.dim]
        norms = row_norms(x)
        # A row without direction gets a fixed one: that is its best known value, and no error. Subnormal rows
        # have none either: divided by their rounded norms, they are not unit vectors.
        known = norms >= SMALLEST_RADIUS
        units = np.where(known[:, None], x, np.eye(1, self.dim)) / np.where(known, norms, 1.0)[:, None]
        return self._unit().sample(units, rng)

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip and randomise the rows of one party.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Index of the party; nothing else depends on it.
            rng: Private randomness.

        Returns:
            One message of float32 for every row, for the unit ball: the server multiplies by the radius.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        reports = self._reports(rows, round, rng).astype(np.float32)
        return [Message(payload=report, sender=party) for report in reports]

    def decode(
        self,
        messages: list[Message],
        round: Round,
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the parties added all noise
    ) -> Array:
        """Add the reports, and divide by the planned n.

        Args:
            messages: Of the parties that answered, or the batch of a shuffler; in any order.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected.

        Raises:
            ParameterError: No messages, or one that `encode` cannot have written.
        """
        if not messages:
            raise ParameterError("decode needs at least one message, got none.")
        for message in messages:
            payload = message.payload
            right = payload.shape == (self.dim,) and payload.dtype == np.float32
            if not right or not np.isfinite(payload).all():
                raise ParameterError(
                    f"a message must hold {self.dim} finite numbers of float32, got {payload.dtype} of shape "
                    f"{payload.shape}."
                )
        self._check_arrived(len(messages), round.n)
        reports = np.stack([message.payload for message in messages])
        return np.asarray(reports.sum(axis=0, dtype=np.float64) * (round.radius / round.n))

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once: the law of `decode`, but for its float32 roundings.

        Args:
            X: Shape (n, dim): all rows.
            round: Public facts of the round.
            rng: Source of all randomness.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        X, total = self._inside(X, round, "l2"), np.zeros(self.dim)
        self._check_arrived(len(X), round.n)
        step = max(1, _NUMBERS_AT_ONCE // self.dim)
        for start in range(0, max(len(X), 1), step):
            total += self._reports(X[start : start + step], round, rng).sum(axis=0)
        return total * (round.radius / round.n)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends, headers included."""
        check_count("rows", rows, low=0)
        return 8 * rows * (HEADER_BYTES + 4 * self.dim)

    def variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim)."""
        x = clipped_to_unit(rows, round, self.dim, "l2")
        squares = (x**2).sum(axis=1) if self.lift else np.ones(len(x))
        return float(sum(self._row_variance(s) for s in squares)) * (round.radius / round.n) ** 2

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the largest error against the mean of the clipped rows, over all rows of the ball.

        Without lift, a row counts as its direction: the bias is up to one radius.
        """
        check_count("n", n)
        # Linear in the squared norm of the row, so that one end is the worst.
        variance = max(self._row_variance(s) for s in ((0.0, 1.0) if self.lift else (1.0,)))
        bias = 0.0 if self.lift else facts.radius
        return Error(variance=facts.radius**2 * variance / n, bias=bias, exact=False)

    def _row_variance(self, square: float) -> float:
        """Variance of the report on a row of the unit ball with that squared norm.

        The last entry of the lifted vector has the square u = 1 - square; the report's last entry, dropped,
        has the second moment (A u + (norm - A) (1 - u) / d) / m^2 with A = E<V, v>^2.
        """
        unit = self._unit()
        if not self.lift:
            return unit.squared_norm - square
        cap, u = unit.cap, 1 - square
        along = cap.second_moment / cap.scale**2
        dropped = along * u + (unit.squared_norm - along) * (1 - u) / self.dim
        return unit.squared_norm - dropped - square


class PrivUnitMean(
    _UnitMean, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="estimator", tag="privunit"
):
    """Every row sends one PrivUnit report of its unit vector: real numbers, for simulation.

    The report with the least error of all unbiased ones on the sphere, at d floats a row.

    Attributes:
        dim: Number of coordinates, >= 1; >= 2 without `lift`.
        local_epsilon: Pure level of one report, in [2**-30, 30] (in exact arithmetic).
        lift: True: a row x of norm < radius becomes (x, sqrt(radius^2 - ||x||^2)) in one dimension more,
            unbiased. False: it counts as radius x / ||x||; right for rows of norm radius, biased else.
        trust: `local` or `shuffle`.
        neighbours: A replace-one relation.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import Facts
        >>> mean = PrivUnitMean(dim=10, local_epsilon=1.0, lift=False)
        >>> round(mean.error(1).variance, 3)
        59.733

    Reference:
        Bhowmick et al. (2018); Asi, Feldman and Talwar (2022), ICML.
    """

    def _unit(self) -> PrivUnit:
        return PrivUnit(self._unit_dim, self.local_epsilon)


class PrivUnitGMean(
    _UnitMean, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="estimator", tag="privunit-g"
):
    """Every row sends one report of PrivUnit's Gaussian surrogate; attributes as `PrivUnitMean`.

    Example:
        >>> mean = PrivUnitGMean(dim=100, local_epsilon=1.0, lift=False)
        >>> round(mean.error(1).variance, 3)
        633.002

    Reference:
        Asi, Feldman and Talwar (2022), ICML.
    """

    def _unit(self) -> PrivUnitG:
        return PrivUnitG(self._unit_dim, self.local_epsilon)
