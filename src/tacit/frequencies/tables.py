"""Tables of several columns: the joint one, or all pairs, or single columns, made consistent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import (
    BudgetError,
    ParameterError,
    check_choice,
    check_count,
    check_probability,
)
from tacit.frequencies.bands import Band
from tacit.frequencies.oracle import MOST_VALUES, FrequencyOracle
from tacit.frequencies.query import FrequenciesQuery, observer_of_frequencies, split_budget
from tacit.mechanisms import whole_values
from tacit.numerics import Array, IntArray
from tacit.privacy import Compose, Guarantee, Neighbours, Parallel, PrivacyBudget, TrustModel, guarantee
from tacit.privacy.run_clauses import clauses_of_ids
from tacit.randomness import is_secure

__all__ = [
    "TABLES",
    "MarginalTable",
    "TableFrequencies",
    "TablesQuery",
    "consistent_tables",
    "estimate_tables",
    "places_in_table",
]

TABLES: Final = {
    "joint": "one table of all columns",
    "pairs": "a table for each pair of columns",
    "singles": "a table for each column",
}
"""Which tables are asked for, each with what that is."""

_RECORDS = Neighbours()
_TRUSTS = (TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL)


def places_in_table(values: npt.ArrayLike, sizes: Sequence[int], columns: Sequence[int]) -> IntArray:
    """Return the cell of each row in the table of some columns, in the order of `numpy.ravel`.

    Args:
        values: Shape (n, m), whole numbers: column j from 0 to sizes[j] - 1.
        sizes: Number of values of each of m columns.
        columns: Which of them; no product but theirs is ever made.

    Returns:
        Shape (n,).

    Raises:
        ParameterError: A value outside of its column's domain.
    """
    held = np.asarray(values)
    if held.ndim != 2 or held.shape[1] != len(sizes):
        raise ParameterError(f"values must have shape (n, {len(sizes)}), got {held.shape}.")
    place = np.zeros(len(held), dtype=np.int64)
    for column in columns:
        place = place * sizes[column] + whole_values(f"column {column}", held[:, column], sizes[column])
    return place


def consistent_tables(
    sizes: Sequence[int],
    tables: Sequence[Sequence[int]],
    estimates: Sequence[npt.ArrayLike],
    variances: Sequence[float],
) -> list[Array]:
    """Make estimated tables agree on what they share: least squares, exact, without a joint table.

    A table is the sum of one part for each set of its columns: what is left of that marginal when the parts
    of smaller sets are taken off. Parts are orthogonal, so the nearest consistent tables have, for every
    set, the mean of the parts of all tables that hold it, each by its weight. The total is 1.

    Args:
        sizes: Number of values of each column.
        tables: Columns of each table, increasing.
        estimates: One array for each, of the shape of its columns' sizes.
        variances: Of one cell of each table, which weigh the squares.

    Returns:
        Arrays of the same shapes, still unbiased; cells may lie below 0. Every two of them have the same
        marginals on their common columns.

    Raises:
        ParameterError: Shapes, or numbers of tables, that do not fit together.

    Reference:
        Barak et al. (2007), PODS, for consistent marginals; Qardaji, Yang and Li (2014), SIGMOD, for means
        over common columns by weight. docs/theory/frequencies.md shows that parts solve the least squares.
    """
    found = [np.asarray(one, dtype=np.float64) for one in estimates]
    shapes = [tuple(sizes[column] for column in columns) for columns in tables]
    if not len(found) == len(shapes) == len(variances) or [one.shape for one in found] != shapes:
        raise ParameterError(f"estimates must be arrays of shapes {shapes}, and one variance for each.")
    parts: dict[tuple[int, ...], tuple[float, Array | float]] = {}
    for columns, one, variance in zip(tables, found, variances, strict=True):
        for chosen in _subsets(columns):
            away = math.prod(sizes[column] for column in set(columns) - set(chosen))
            weight = 1 / (variance * away)
            total, mean = parts.get(chosen, (0.0, 0.0))
            parts[chosen] = total + weight, mean + weight * _part(one, tuple(columns), chosen)
    # The number of rows is public: the part of no column is 1.
    means = {chosen: np.asarray(mean / total if chosen else 1.0) for chosen, (total, mean) in parts.items()}
    made = []
    for columns, shape in zip(tables, shapes, strict=True):
        whole = np.zeros(shape)
        for chosen in _subsets(columns):
            away = math.prod(sizes[column] for column in set(columns) - set(chosen))
            spread = [sizes[column] if column in chosen else 1 for column in columns]
            whole += means[chosen].reshape(spread) / away
        made.append(whole)
    return made


def _subsets(columns: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all sets of columns, the empty one first."""
    return [chosen for size in range(len(columns) + 1) for chosen in itertools.combinations(columns, size)]


def _part(table: Array, columns: tuple[int, ...], chosen: tuple[int, ...]) -> Array:
    """Return the part of a set of columns: its marginal, off which the mean along each is taken."""
    away = tuple(axis for axis, column in enumerate(columns) if column not in chosen)
    marginal = table.sum(axis=away)
    for axis in range(marginal.ndim):
        marginal = marginal - marginal.mean(axis=axis, keepdims=True)
    return np.asarray(marginal)


@dataclass(frozen=True, kw_only=True)
class TablesQuery:
    """What is asked about several columns, calibrated to a budget; everything in it is public.

    Attributes:
        sizes: Number of values of each column.
        tables: Columns of each table that is released.
        n: Number of records, or of persons where they are the unit, which counts as public.
        trust: `local`, `shuffle` or `central`.
        dealt: Whether every row answers for one table, dealt at random, with the whole budget; else for each
            of them, with a part of it.
        queries: Of each table, over its cells.
        price: What the answer costs; not yet marked as simulated.
        price_alone: Under shuffle trust, what one row's messages show before they are shuffled; else None.

    Guarantee:
        That of its event: `Parallel` over tables where rows are dealt to them, else `Compose`.

    Example:
        >>> budget = PrivacyBudget(1.0)
        >>> query = TablesQuery.calibrated(sizes=(2, 3, 40), n=10_000, budget=budget, kind="pairs")
        >>> query.tables, query.dealt
        (((0, 1), (0, 2), (1, 2)), True)
    """

    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    n: int
    trust: TrustModel
    dealt: bool
    queries: tuple[FrequenciesQuery, ...]
    price: Guarantee
    price_alone: Guarantee | None = None

    @classmethod
    def calibrated(
        cls,
        *,
        sizes: Sequence[int],
        n: int,
        budget: PrivacyBudget,
        kind: str | None = None,
        trust: TrustModel = TrustModel.LOCAL,
        neighbours: Neighbours = _RECORDS,
        mechanism: str | None = None,
        dealt: bool | None = None,
    ) -> TablesQuery:
        """Find the way of the least error to ask for tables at a budget.

        Args:
            sizes: Number of values of each column, two columns or more.
            n: Number of records, or of persons where `neighbours` names them as the unit.
            budget: What all tables together may cost.
            kind: One of `TABLES`; None: the joint table if all pairs that are read off it have less
                error than pairs that are asked for, else pairs.
            trust: As in `FrequenciesQuery.calibrated`, but for `aggregate`.
            neighbours: A replace-one relation.
            mechanism: One of `MECHANISMS`; None: the best of each table. Not under central trust.
            dealt: Whether rows are dealt to tables; None: as has less error.

        Raises:
            ParameterError: A value is out of range, or a table of more than 2**24 - 1 cells.
            BudgetError: The budget cannot be met.
        """
        shape = tuple(check_count("a size", size, low=2, high=MOST_VALUES) for size in sizes)
        if len(shape) < 2:
            raise ParameterError(f"sizes must be those of two columns or more, got {len(shape)}.")
        n = check_count("n", n)
        if trust not in _TRUSTS:
            raise ParameterError(f"trust must be local, shuffle or central for tables, got {trust!s}.")
        if kind is not None:
            check_choice("kind", kind, TABLES)

        def made(tables: tuple[tuple[int, ...], ...], *, deal: bool) -> TablesQuery:
            return cls._of(shape, tables, n, budget, trust, neighbours, mechanism, dealt=deal)

        candidates = []
        every = range(len(shape))
        if kind in (None, "joint") and math.prod(shape) <= MOST_VALUES:
            candidates.append(made((tuple(every),), deal=False))
        elif kind == "joint":
            raise ParameterError(
                f"sizes must make at most {MOST_VALUES} cells of the joint table, got {math.prod(shape)}; "
                "ask for pairs."
            )
        if kind != "joint":
            parts = tuple(itertools.combinations(every, 1 if kind == "singles" else 2))
            if len(parts) > n:
                raise ParameterError(f"n must be at least {len(parts)}, one row a table, got {n}.")
            ways = [dealt] if dealt is not None else [True, False]
            if trust is TrustModel.CENTRAL and dealt is None:
                ways = [False]  # the server's noise does not grow with the rows
            candidates += [made(parts, deal=deal and len(parts) > 1) for deal in ways]
        return min(candidates, key=lambda one: one._error)

    @classmethod
    def _of(
        cls,
        sizes: tuple[int, ...],
        tables: tuple[tuple[int, ...], ...],
        n: int,
        budget: PrivacyBudget,
        trust: TrustModel,
        neighbours: Neighbours,
        mechanism: str | None,
        *,
        dealt: bool,
    ) -> TablesQuery:
        """Calibrate every table."""
        count = len(tables)
        share = split_budget(budget, 1 if dealt else count)
        rows = [n // count + (k < n % count) if dealt else n for k in range(count)]
        known: dict[tuple[int, int], FrequenciesQuery] = {}
        for columns, own in zip(tables, rows, strict=True):
            k = math.prod(sizes[column] for column in columns)
            if k > MOST_VALUES:
                raise ParameterError(f"a table must have at most {MOST_VALUES} cells, got {k}.")
            if (k, own) not in known:
                known[k, own] = FrequenciesQuery.calibrated(
                    k=k, n=own, budget=share, trust=trust, neighbours=neighbours, mechanism=mechanism
                )
        queries = tuple(
            known[math.prod(sizes[column] for column in columns), own]
            for columns, own in zip(tables, rows, strict=True)
        )

        def priced(view: TrustModel, delta: float) -> Guarantee:
            events = tuple(
                query.price.event if view is trust or query.price_alone is None else query.price_alone.event
                for query in queries
            )
            return guarantee(
                events[0] if count == 1 else (Parallel if dealt else Compose)(events),
                delta,
                observer=observer_of_frequencies(trust, neighbours.unit, alone=view is not trust),
                assumptions=clauses_of_ids(neighbours),
            )

        price = priced(trust, budget.delta)
        if not budget.covers(price.epsilon, price.delta):
            raise BudgetError(f"the budget epsilon = {budget.epsilon!r} cannot be met by {count} tables.")
        return cls(
            sizes=sizes,
            tables=tables,
            n=n,
            trust=trust,
            dealt=dealt,
            queries=queries,
            price=price,
            price_alone=priced(TrustModel.LOCAL, 0.0) if trust is TrustModel.SHUFFLE else None,
        )

    @property
    def _error(self) -> float:
        """About the mean squared l2 error of all tables, or of all pairs read off a joint one."""
        if len(self.tables) == 1:
            # Errors of cells add up, so every marginal of a joint table has about the error of all of it.
            return self.queries[0].mse * math.comb(len(self.sizes), 2)
        # Which rows answer is drawn: at most 1 / rows for every table.
        return math.fsum(query.mse + (1 / query.n if self.dealt else 0.0) for query in self.queries)

    @property
    def message_bits(self) -> int:
        """Bits that a client sends at most: one message where rows are dealt to tables, else all."""
        own = [query.message_bits for query in self.queries]
        return max(own) if self.dealt else sum(own)

    @property
    def random_bits(self) -> float:
        """Fair bits that a client needs on average for its messages, at least."""
        own = [query.random_bits for query in self.queries]
        return max(own) if self.dealt else math.fsum(own)

    def answer(
        self, values: npt.ArrayLike, confidence: float = 0.95, *, rng: np.random.Generator
    ) -> tuple[MarginalTable, ...]:
        """Answer once; every call is a release at the full price.

        Args:
            values: Shape (n, m), whole numbers: column j from 0 to sizes[j] - 1.
            confidence: That none of the intervals of all tables misses.
            rng: Source of all noise, and of which rows answer for which table.

        Raises:
            ParameterError: An argument is out of range.
        """
        confidence = check_probability("confidence", confidence, low_open=True, high_open=True)
        held = np.asarray(values)
        if held.shape != (self.n, len(self.sizes)):
            raise ParameterError(f"values must have shape ({self.n}, {len(self.sizes)}), got {held.shape}.")
        for column in range(len(self.sizes)):
            places_in_table(held, self.sizes, [column])
        order = rng.permutation(self.n) if self.dealt else np.arange(self.n)
        sure = 1 - (1 - confidence) / len(self.tables)
        raw, bands = [], []
        first = 0
        for columns, query in zip(self.tables, self.queries, strict=True):
            rows = order[first : first + query.n]
            first += query.n if self.dealt else 0
            places = places_in_table(held[rows], self.sizes, columns)
            estimates, band = query.answer(places, (1 + sure) / 2 if self._apart(query) else sure, rng=rng)
            if self._apart(query):
                band = band.of_all(query.n, min(query.k, self.n), (1 + sure) / 2)
            raw.append(estimates.reshape([self.sizes[column] for column in columns]))
            bands.append(band)
        variances = [query.mse / query.k for query in self.queries]
        whole = consistent_tables(self.sizes, self.tables, raw, variances)
        return tuple(
            MarginalTable(columns=columns, estimates=made, unadjusted=seen, band=band)
            for columns, made, seen, band in zip(self.tables, whole, raw, bands, strict=True)
        )

    def _apart(self, query: FrequenciesQuery) -> bool:
        """Whether intervals of the rows that answered do not hold for all rows as they are."""
        # A number of supports among dealt rows is a sum of independent bits; other scores are not.
        return self.dealt and not (isinstance(query.oracle, FrequencyOracle) and query.oracle.support)


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalTable:
    """The frequencies of the combinations of some columns' values.

    Attributes:
        columns: Which columns, increasing.
        estimates: Of the shape of their sizes; tables of one answer agree on what they share, and cells of
            each add up to 1. Unbiased: cells may lie below 0.
        unadjusted: The same as estimated from the messages about this table alone.
        band: Intervals of all cells in the order of `numpy.ravel`; those of all tables hold at once.
    """

    columns: tuple[int, ...]
    estimates: Array
    unadjusted: Array
    band: Band


@dataclass(frozen=True, kw_only=True, eq=False)
class TableFrequencies:
    """Private tables of several columns.

    Attributes:
        tables: What was found.
        query: What was asked.
        guarantee: What the answer reveals at most.
        guarantee_alone: Under shuffle trust, what one row's messages do before they are shuffled.
    """

    tables: tuple[MarginalTable, ...]
    query: TablesQuery
    guarantee: Guarantee
    guarantee_alone: Guarantee | None = None


def estimate_tables(
    values: npt.ArrayLike, query: TablesQuery, *, confidence: float = 0.95, rng: np.random.Generator
) -> TableFrequencies:
    """Estimate how often combinations of values of several columns are held.

    Args:
        values: Shape (n, m), whole numbers: column j from 0 to sizes[j] - 1.
        query: The calibrated question.
        confidence: That none of the intervals of all tables misses.
        rng: Source of the noise; a seeded one marks the guarantee as simulated.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> from tacit.randomness import simulated
        >>> query = TablesQuery.calibrated(sizes=(2, 2), n=100_000, budget=PrivacyBudget(2.0), kind="joint")
        >>> rows = np.repeat([[0, 0], [1, 1]], [70_000, 30_000], axis=0)
        >>> estimate_tables(rows, query, rng=simulated(1, "example")).tables[0].estimates.round(1).tolist()
        [[0.7, 0.0], [0.0, 0.3]]
    """
    tables = query.answer(values, confidence, rng=rng)
    simulated, alone = not is_secure(rng), query.price_alone
    return TableFrequencies(
        tables=tables,
        query=query,
        guarantee=msgspec.structs.replace(query.price, simulated=simulated),
        guarantee_alone=alone and msgspec.structs.replace(alone, simulated=simulated),
    )
