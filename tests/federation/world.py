"""Small silos for the tests of this room: units that are rows, statistics that go wrong on purpose, plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tacit.federation import (
    AnyStep,
    Batch,
    CorrelatedStep,
    Full,
    Measure,
    Plan,
    Query,
    Silo,
    Statistic,
    Step,
    Walk,
)
from tacit.ledger import Ledger
from tacit.means import (
    AdditiveMean,
    AnyNoise,
    DiscreteGaussianNoise,
    Estimator,
    GaussianNoise,
    NoNoise,
)
from tacit.numerics import Array, IntArray, clip_rows
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel

DIM = 3
RADIUS = 1.0
AT = {"w": np.zeros(DIM)}
DELTA = 1e-6
PASSES = 3
"""How often a unit may take part in rounds with correlated noise."""


@dataclass(frozen=True)
class Rows:
    """Units that are rows; every batch that is taken of them is written down."""

    values: Array
    index: IntArray | None = None
    taken: list[list[int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: IntArray) -> Self:
        if len(index):
            self.taken.append(index.tolist())
        return type(self)(self.values[index], taken=[])


def row(units: Rows, at: Mapping[str, Array]) -> Array:
    """What most tests ask for: the row itself, whatever the point."""
    return units.values


def shifted(units: Rows, at: Mapping[str, Array]) -> Array:
    """The gradient of |w - x|^2 / 2."""
    return at["w"] - units.values


@dataclass
class Counting:
    """`row`, with the number of times that it was evaluated on units."""

    calls: int = 0

    def __call__(self, units: Rows, at: Mapping[str, Array]) -> Array:
        self.calls += len(units) > 0
        return units.values


class Fused:
    """`row`, which also adds up its clipped rows; a NaN in one of them is a NaN in the sum."""

    def __call__(self, units: Rows, at: Mapping[str, Array]) -> Array:
        return units.values

    def clipped_sum(self, units: Rows, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
        bad = units.values[~np.isfinite(units.values).all(axis=1)]
        return np.asarray(clip_rows(units.values, radius).sum(axis=0) + bad.sum(axis=0))


def fails_on_large(units: Rows, at: Mapping[str, Array]) -> Array:
    """Raises, quoting the record, as a lookup of an unknown label would."""
    if (units.values > 5).any():
        raise KeyError(f"no such label: {units.values.max()}")
    return units.values


def drops_bad(units: Rows, at: Mapping[str, Array]) -> Array:
    """Leaves records with a NaN out, as a careless statistic would."""
    return np.asarray(units.values[~np.isnan(units.values).any(axis=1)])


STATISTICS: dict[str, Statistic] = {
    "row": row,
    "shifted": shifted,
    "fused": Fused(),
    "fails": fails_on_large,
    "drops": drops_bad,
}


def rows(seed: int, n: int, *, dim: int = DIM) -> Array:
    """Rows inside the ball of RADIUS."""
    return clip_rows(np.random.default_rng(seed).normal(size=(n, dim)) / 2, RADIUS)


def mean_of(
    noise: AnyNoise | None = None,
    *,
    trust: TrustModel = TrustModel.LOCAL,
    relation: Relation = Relation.REPLACE_ONE,
    dim: int = DIM,
) -> AdditiveMean:
    """An estimator; no noise unless it is given, and rows are clipped with noise and without."""
    return AdditiveMean(
        dim=dim,
        noise=NoNoise() if noise is None else noise,
        trust=trust,
        neighbours=Neighbours(relation),
        on_violation="clip",
    )


def step_of(
    estimator: Estimator | None = None,
    *,
    statistics: tuple[str, ...] = ("row",),
    batch: Batch | None = None,
    walks: int | None = None,
    bands: int | None = None,
    max_radius: float = RADIUS,
) -> AnyStep:
    """A kind of round: one mean of every statistic, a walk of that many steps, or noise of so many bands."""
    mean = mean_of() if estimator is None else estimator
    measures = tuple(Measure(statistic=s, estimator=mean, max_radius=max_radius) for s in statistics)
    chosen = Full() if batch is None else batch
    if bands is not None:
        return CorrelatedStep(measures=measures, batch=chosen, bands=bands, passes=PASSES)
    if walks is None:
        return Step(measures=measures, batch=chosen)
    return Walk(measures=measures, batch=chosen, steps=walks)


def plan_of(
    estimator: Estimator | None = None,
    *,
    rounds: int = 4,
    parties: int = 1,
    batch: Batch | None = None,
    statistics: tuple[str, ...] = ("row",),
    walks: int | None = None,
    bands: int | None = None,
    max_radius: float = RADIUS,
) -> Plan:
    """A plan with one kind of round."""
    mean = mean_of() if estimator is None else estimator
    kind = step_of(mean, batch=batch, statistics=statistics, walks=walks, bands=bands, max_radius=max_radius)
    return Plan(
        steps=((kind, rounds),),
        parties=parties,
        trust=mean.trust,
        delta=DELTA if mean.private else 0.0,
    )


def silo_of(
    values: Array,
    *,
    seed: int | None = 0,
    ledger: Ledger | None = None,
    planned: int | None = None,
    statistics: Mapping[str, Any] | None = None,
    trusts_server: bool = True,
    name: str = "silo",
) -> tuple[Silo, Rows]:
    """A silo and its units; `seed` None is secret randomness. Its owner allows exact sums."""
    units = Rows(values)
    rng = None if seed is None else np.random.default_rng(seed)
    chosen = STATISTICS if statistics is None else statistics
    made = Silo(
        units, chosen, name=name, ledger=ledger, planned=planned, trusts_server=trusts_server, rng=rng
    )
    return made, units


def silos_of(values: Sequence[Array], *, seed: int = 0) -> list[Silo]:
    """Silos with seeds of their own."""
    return [silo_of(v, seed=seed + k)[0] for k, v in enumerate(values)]


def ask_at(step: int, w: Array | None = None, *, radius: tuple[float, ...] = (RADIUS,)) -> Query:
    """A query."""
    return Query(step, AT if w is None else {"w": w}, radius)


def ledger_at(path: Any, *, epsilon: float = 10.0, relation: Relation = Relation.REPLACE_ONE) -> Ledger:
    """A new ledger."""
    return Ledger.create(path, limit=PrivacyBudget(epsilon, 1e-4), neighbours=Neighbours(relation))


GAUSSIAN = GaussianNoise(5.0)
GRID = DiscreteGaussianNoise(5.0)
