"""Private means of the columns of one table: clamp, rescale, one noisy sum, and how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_probability
from tacit.means.additive import AdditiveMean
from tacit.means.message import Message, Round
from tacit.means.modular import ModularSumMean, modular_width
from tacit.means.noise import DiscreteGaussianNoise, DiscreteLaplaceNoise
from tacit.means.violations import OnViolation
from tacit.mechanisms import discrete_gaussian_sum_quantile, discrete_laplace_sum_quantile
from tacit.numerics import Array
from tacit.privacy import (
    Guarantee,
    Neighbours,
    PrivacyBudget,
    Relation,
    TrustModel,
    Unit,
    calibrate,
    guarantee,
)
from tacit.privacy.run_clauses import clauses_of_ids, clauses_of_silos, clauses_of_sums
from tacit.randomness import is_secure

__all__ = ["ColumnMeans", "ColumnMeansQuery", "clauses_of_means", "column_means", "observer_of_means"]

_STEPS = 2**20
_RECORDS = Neighbours()


def observer_of_means(trust: TrustModel, unit: Unit, *, colluding: int = 0, alone: bool = False) -> str:
    """Return who looks at an answer: under local trust, at the noisy message of every unit.

    Args:
        trust: Of the answer.
        unit: Who is protected.
        colluding: Under aggregate trust, how many tables may tell what they added to the sum.
        alone: Whether at the message of one table alone, under aggregate trust.
    """
    if alone:
        return "the server and all other tables together, who see the message of one table alone,"
    if trust is TrustModel.LOCAL:
        return f"an observer of every {unit.value}'s own noisy message"
    if trust is TrustModel.AGGREGATE:
        return f"an observer of the sum of all tables and up to {colluding} of them together"
    return "an observer of the released means"


@dataclass(frozen=True, kw_only=True)
class ColumnMeansQuery:
    """What is asked of a table, calibrated to a budget; everything in it is public.

    Attributes:
        n: Number of records, or of persons where they are the unit, which counts as public.
        lower: Shape (d,): lower bounds.
        upper: Shape (d,): upper bounds.
        estimator: The noisy sum of rescaled rows: discrete Laplace noise, where the columns share the budget
            through the L1 norm, for a delta of 0; else discrete Gaussian noise and the L2 norm. Under
            aggregate trust it is always that, in shares.
        price: What the answer costs; not yet marked as simulated.
        parties: Under aggregate trust, the number of units of each table, in order; else empty.
        price_alone: Under aggregate trust, what the message of one table alone shows; else None.
    """

    n: int
    lower: Array
    upper: Array
    estimator: AdditiveMean | ModularSumMean
    price: Guarantee
    parties: tuple[int, ...] = ()
    price_alone: Guarantee | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.estimator.noise, DiscreteLaplaceNoise | DiscreteGaussianNoise):
            raise ParameterError(
                f"estimator must have discrete noise, got {type(self.estimator.noise).__name__}."
            )

    @classmethod
    def calibrated(
        cls,
        *,
        n: int,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        budget: PrivacyBudget,
        trust: TrustModel = TrustModel.CENTRAL,
        neighbours: Neighbours = _RECORDS,
        on_violation: OnViolation | None = None,
        parties: Sequence[int] = (),
        colluding: int = 0,
    ) -> ColumnMeansQuery:
        """Find the least noise for a budget.

        Args:
            n: Number of records, or of persons where `neighbours` names them as the unit, >= 1.
            lower: Shape (d,), finite: public lower bounds of the columns.
            upper: Shape (d,), finite, above `lower`.
            budget: What the answer may cost.
            trust: `central`: who holds the table adds noise once. `local`: every record gets noise of its
                own, as if its owner trusted nobody; the noise of the mean is sqrt(n) times as large.
                `aggregate`: every table gets a share of the noise, and only their sum is seen.
            neighbours: Replace-one, zero-out, which puts a unit to the middle of the bounds, or add-remove
                under central trust, with the same n for both data sets: it is public, and the price says so.
            on_violation: "clip", the default, clamps values; "error" refuses those outside of their bounds
                and those that are missing, which tells of them: for simulations and public data only.
            parties: Under aggregate trust and only there: public numbers of units of the tables, 2 or more,
                which add up to n.
            colluding: How many of the tables may add no noise and tell what they added, at most all but 2.

        Raises:
            ParameterError: A number or bound is out of range, add-remove under local trust, or a delta of 0
                under aggregate trust.
            BudgetError: No noise meets the budget.
        """
        check_count("n", n)
        low, high = _bounds(lower, upper)
        summed = trust is TrustModel.AGGREGATE
        _check_parties(n, parties, colluding, budget, summed=summed)
        counted = neighbours.relation is Relation.ADD_REMOVE
        if counted and trust is TrustModel.LOCAL:
            raise ParameterError(
                "neighbours must be replace-one or zero-out where everybody adds noise of their own, got "
                "add-remove: whoever counts the messages sees that one is missing."
            )
        # The most rows that one noisy sum holds; where a table's number is secret, it must not show.
        held = 1 if trust is TrustModel.LOCAL else n + 1 if counted else max(parties, default=n)
        shares = len(parties) - colluding

        def at(noise_multiplier: float) -> AdditiveMean | ModularSumMean:
            if summed:
                share = DiscreteGaussianNoise(noise_multiplier / math.sqrt(shares), steps=_STEPS)
                bare = ModularSumMean(
                    dim=low.size, noise=share, shares=shares, neighbours=neighbours, on_violation=on_violation
                )
                width = modular_width(
                    rows=n, parties=len(parties), steps=_STEPS, std=bare.std, dim=low.size, rounds=1
                )
                return msgspec.structs.replace(bare, width=width)
            kind = DiscreteLaplaceNoise if budget.delta == 0 else DiscreteGaussianNoise
            noise = kind(noise_multiplier, steps=_STEPS)
            return AdditiveMean(
                dim=low.size, noise=noise, trust=trust, neighbours=neighbours, on_violation=on_violation
            )

        estimator = at(calibrate(lambda x: at(x).event(held, trust), budget))

        def priced(view: TrustModel, *, alone: bool = False) -> Guarantee:
            return guarantee(
                estimator.event(held, view),
                budget.delta,
                observer=observer_of_means(trust, neighbours.unit, colluding=colluding, alone=alone),
                assumptions=clauses_of_means(trust, neighbours, alone=alone),
            )

        return cls(
            n=n,
            lower=low,
            upper=high,
            estimator=estimator,
            price=priced(trust),
            parties=tuple(parties),
            price_alone=priced(TrustModel.LOCAL, alone=True) if summed else None,
        )

    @property
    def round(self) -> Round:
        """The round of mean estimation: rescaled rows lie in [-1, 1]^d."""
        d = self.estimator.dim
        radius = float(d) if self.estimator.noise.norm == "l1" else math.sqrt(d)
        return Round(n=self.n, radius=radius, parties=self._noises)

    @property
    def noise_std(self) -> Array:
        """Standard deviation of the noise of every mean, in the units of the columns; shape (d,)."""
        noise, radius = self.estimator.noise, self.round.radius
        variance = self._noises * noise.variance(sensitivity=self.estimator.sensitivity, radius=radius)
        return self._in_columns(math.sqrt(variance))

    def half_width(self, confidence: float) -> Array:
        """Return how far noise and rounding move a mean at most, with a probability, for every column.

        Args:
            confidence: The probability, for each column by itself; above 0 and at most 1 - 1e-9.

        Returns:
            Shape (d,), in the units of the columns. It holds for the noise only: how far the mean of these
            records is from that of a population is another matter.

        Raises:
            ParameterError: `confidence` is out of range.
        """
        check_probability("confidence", confidence, low_open=True, high_open=True)
        noise, sensitivity = self.estimator.noise, self.estimator.sensitivity
        if isinstance(noise, DiscreteLaplaceNoise):
            scale = noise.noise_multiplier * sensitivity * noise.steps
            steps = discrete_laplace_sum_quantile(scale, confidence, count=self._noises)
        else:
            assert isinstance(noise, DiscreteGaussianNoise)  # noqa: S101 - checked; narrows the type
            sigma = noise.noise_multiplier * sensitivity * noise.steps
            steps = discrete_gaussian_sum_quantile(sigma, confidence, count=self._noises)
        # Every noisy sum was rounded to the grid before: half a step each.
        return self._in_columns(steps + self._noises / 2)

    def answer(
        self, values: npt.ArrayLike, *, persons: npt.ArrayLike | None = None, rng: np.random.Generator
    ) -> Array:
        """Answer once; every call is a release at the full price.

        Args:
            values: Shape (n, d); with `persons`, any number of rows. Clamped to the bounds; a NaN counts as
                the middle of its bounds. (Unless the query refuses both.)
            persons: The person of each row, n different ones, where persons are the unit and only there. Each
                of them counts as one row, the mean of the clamped values; a NaN is left out of it, and counts
                as the middle only where a person has no other value in that column.
            rng: Source of the noise.

        Returns:
            Shape (d,), unbiased for the mean of the clamped values, or over persons of their means of them;
            so it may lie outside the bounds.

        Raises:
            ParameterError: `values` or `persons` has another shape, or a value is refused.
        """
        table = np.asarray(values, dtype=np.float64)
        rows = len(table) if persons is not None and table.ndim == 2 else self.n
        if table.shape != (rows, self.estimator.dim):
            raise ParameterError(f"values must have shape {(rows, self.estimator.dim)}, got {table.shape}.")
        if (persons is not None) != (self.estimator.neighbours.unit is Unit.PERSON):
            raise ParameterError(
                "persons must be given where the query protects persons, and only there; it protects "
                f"{self.estimator.neighbours.unit.plural}."
            )
        # Stated as what is allowed: a NaN fails it.
        if self.estimator.refuses and not ((table >= self.lower) & (table <= self.upper)).all():
            raise ParameterError(
                "values must be inside their bounds and not missing, and at least one is not; "
                "on_violation='clip' clamps, and takes the middle of the bounds for what is missing."
            )
        middle = self.lower / 2 + self.upper / 2
        half = self.upper / 2 - self.lower / 2
        scaled = np.clip((np.clip(table, self.lower, self.upper) - middle) / half, -1.0, 1.0)
        units = np.nan_to_num(scaled if persons is None else self._per_person(scaled, persons))
        return np.asarray(middle + half * self._mean(units, rng))

    def _mean(self, units: Array, rng: np.random.Generator) -> Array:
        """Return the noisy mean of rescaled rows; tables that hide each other send a message each."""
        if not self.parties:
            return self.estimator.estimate(units, self.round, rng=rng)
        sent: list[Message] = []
        for party, rows in enumerate(np.split(units, np.cumsum(self.parties[:-1]))):
            sent += self.estimator.encode(rows, self.round, party=party, rng=rng)
        return self.estimator.decode(sent, self.round)

    def _per_person(self, rows: Array, persons: npt.ArrayLike) -> Array:
        """Return the mean row of each person, shape (n, d); NaN where a person has no value.

        A person's row depends on the person's own rows only, so that other rows of one person, however many,
        move one row of the sum and within the bounds (the sensitivity of a mean of means; group privacy would
        multiply it by the most rows that a person may have).
        """
        ids = persons if isinstance(persons, np.ndarray) else np.array(persons, dtype=object)
        if ids.shape != (len(rows),):
            raise ParameterError(f"persons must have one entry per row, got shape {ids.shape}.")
        # Not as an array of text: all of it is as wide as its longest, and NULs at an end are lost.
        found: dict[str, int] = {}
        codes = np.array([found.setdefault(str(one), len(found)) for one in ids.tolist()], dtype=np.int64)
        if len(found) != self.n:
            raise ParameterError(
                f"persons must be {self.n} different ones, as the query says, got {len(found)}."
            )
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(self.n))
        known = ~np.isnan(rows[order])
        sums = np.add.reduceat(np.where(known, rows[order], 0.0), starts, axis=0)
        with np.errstate(invalid="ignore"):
            means = sums / np.add.reduceat(known, starts, axis=0, dtype=np.int64)
        return np.clip(means, -1.0, 1.0)

    @property
    def _noises(self) -> int:
        """How many noises the mean carries."""
        return self.n if self.estimator.trust is TrustModel.LOCAL else max(len(self.parties), 1)

    def _in_columns(self, steps: float) -> Array:
        """Return a length in grid steps of the sum as lengths of the means, in the units of the columns."""
        of_mean = steps * self.estimator.noise.unit(self.round.radius) / self.n
        return np.asarray(of_mean * (self.upper / 2 - self.lower / 2))


@dataclass(frozen=True, kw_only=True)
class ColumnMeans:
    """Private means of columns.

    Attributes:
        mean: Shape (d,): unbiased for the means of the clamped values, or over persons of their means of
            them; may lie outside the bounds.
        noise_std: Shape (d,): standard deviation of the noise.
        interval: Shape (d, 2): where the mean without noise lies with probability `confidence`, for each
            column by itself, over the noise only.
        confidence: That probability.
        n: Number of records or persons, public.
        guarantee: What the answer reveals at most.
        guarantee_alone: Under aggregate trust, what the message of one table alone does; else None.
        tables: Under aggregate trust, how many tables there are; else 0.
    """

    mean: Array
    noise_std: Array
    interval: Array
    confidence: float
    n: int
    guarantee: Guarantee
    guarantee_alone: Guarantee | None = None
    tables: int = 0


def column_means(
    values: npt.ArrayLike,
    query: ColumnMeansQuery,
    *,
    persons: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> ColumnMeans:
    """Estimate the means of the columns of one table.

    Args:
        values: Shape (n, d), or one row per record where persons are the unit. Clamped to the bounds; a NaN
            counts as the middle of its bounds, since how many values are missing is as private as the values.
        query: The bounds and the calibrated noise.
        persons: As in `ColumnMeansQuery.answer`.
        confidence: Of the intervals.
        rng: Source of the noise; a seeded one marks the guarantee as simulated.

    Returns:
        Means, their noise and what they reveal.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> from tacit.randomness import simulated
        >>> values = np.tile([[30.0, 20.0], [50.0, 30.0]], (5000, 1))
        >>> query = ColumnMeansQuery.calibrated(
        ...     n=10_000, lower=[0, 0], upper=[100, 60], budget=PrivacyBudget(1.0)
        ... )
        >>> found = column_means(values, query, rng=simulated(1, "example"))
        >>> found.mean.round(1).tolist(), found.noise_std.round(3).tolist()
        ([40.0, 25.0], [0.028, 0.017])

    Reference:
        Dwork et al. (2006), TCC: Laplace noise on sums of bounded rows.
    """
    half_width = query.half_width(confidence)  # refuses a bad confidence before anything is drawn
    mean = query.answer(values, persons=persons, rng=rng)
    simulated, alone = not is_secure(rng), query.price_alone
    return ColumnMeans(
        mean=mean,
        noise_std=query.noise_std,
        interval=np.stack([mean - half_width, mean + half_width], axis=1),
        confidence=confidence,
        n=query.n,
        guarantee=msgspec.structs.replace(query.price, simulated=simulated),
        guarantee_alone=alone and msgspec.structs.replace(alone, simulated=simulated),
        tables=len(query.parties),
    )


def _check_parties(
    n: int, parties: Sequence[int], colluding: int, budget: PrivacyBudget, *, summed: bool
) -> None:
    """Refuse tables that cannot hide each other in a sum, and tables where nothing is hidden in one."""
    check_count("colluding", colluding, low=0)
    if not summed:
        if parties or colluding:
            raise ParameterError(
                "parties and colluding are for aggregate trust, got "
                f"{len(parties)} parties and colluding {colluding}."
            )
        return
    if len(parties) < 2:
        raise ParameterError(
            f"aggregate trust needs two tables or more, of which only the sum is seen, got {len(parties)}."
        )
    for size in parties:
        check_count("a number of units of a table", size)
    if sum(parties) != n:
        raise ParameterError(f"parties must have {n} units together, got {sum(parties)}.")
    if colluding > len(parties) - 2:
        raise ParameterError(
            f"colluding must be at most {len(parties) - 2} of {len(parties)} tables, so that two shares of "
            f"noise are left, got {colluding}."
        )
    if budget.delta == 0:
        raise ParameterError("delta must be > 0 under aggregate trust, whose noise is Gaussian, got 0.0.")


def clauses_of_means(trust: TrustModel, neighbours: Neighbours, *, alone: bool = False) -> tuple[str, ...]:
    """Return what the price of means rests on besides its event.

    Args:
        trust: Of the answer; under aggregate trust one process adds the messages of all tables.
        neighbours: Of the price.
        alone: Whether it is about the message of one table alone.
    """
    if trust is not TrustModel.AGGREGATE:
        return clauses_of_ids(neighbours)
    unseen = () if alone else clauses_of_sums()
    return (*clauses_of_ids(neighbours), *clauses_of_silos(neighbours), *unseen)


def _bounds(lower: npt.ArrayLike, upper: npt.ArrayLike) -> tuple[Array, Array]:
    """Return bounds as vectors, checked."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if low.ndim != 1 or low.size == 0 or low.shape != high.shape:
        raise ParameterError(
            f"lower and upper must have one shape (d,) with d >= 1, got {low.shape} and {high.shape}."
        )
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        if not (
            math.isfinite(a) and math.isfinite(b) and a < b and math.isfinite(b - a) and b / 2 - a / 2 > 0
        ):
            raise ParameterError(f"lower must be below upper, both finite, got {a!r} and {b!r}.")
    return low, high
