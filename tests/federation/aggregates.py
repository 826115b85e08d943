"""A small federation of aggregate trust for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.federation import Full, InProcess, Measure, OpenSums, Plan, Silo, Step, Sums, with_widths
from tacit.means import DiscreteGaussianNoise, ModularSumMean
from tacit.numerics import Array
from tacit.privacy import Neighbours, TrustModel
from tests.federation.world import DIM, STATISTICS, Rows, rows

SIZES = (5, 9, 7, 6)
DATA = [rows(k, n) for k, n in enumerate(SIZES)]
STEPS = 64
RADII = (1.0,)


def mean_of(
    shares: int = 4, *, z: float = 3.0, dim: int = DIM, steps: int = STEPS, **fields: Any
) -> ModularSumMean:
    """A mean whose honest sum has the noise multiplier z, whatever the shares."""
    return ModularSumMean(
        dim=dim, noise=DiscreteGaussianNoise(z / shares**0.5, steps=steps), shares=shares, **fields
    )


def step_of(*means: ModularSumMean, statistics: tuple[str, ...] = ("row", "fused"), **fields: Any) -> Step:
    """A kind of round with these means."""
    return Step(
        measures=tuple(
            Measure(statistic=statistic, estimator=mean, max_radius=1.0)
            for statistic, mean in zip(statistics, means, strict=False)
        ),
        batch=fields.pop("batch", Full()),
    )


def plan_of(
    *steps: Step,
    rounds: int = 4,
    sizes: Sequence[int] = SIZES,
    n_min: int | None = None,
    colluding: int = 0,
    z: float = 3.0,
    delta: float = 1e-6,
    neighbours: Neighbours = Neighbours(),  # noqa: B008 - immutable
    **fields: Any,
) -> Plan:
    """A plan in which every share counts that is honest."""
    fewest = len(sizes) if n_min is None else n_min
    kinds = steps or (step_of(mean_of(fewest - colluding, z=z, neighbours=neighbours)),)
    return Plan(
        steps=with_widths(tuple((step, rounds) for step in kinds), sizes),
        parties=len(sizes),
        trust=TrustModel.AGGREGATE,
        delta=delta,
        n_min=fewest,
        colluding=colluding,
        **fields,
    )


def silos(
    *,
    seed: int | None = 1,
    ledgers: Any = None,
    sums: Sums | None = None,
    data: Sequence[Array] = DATA,
    **fields: Any,
) -> list[Silo]:
    """Silos whose owners let them be added up in this process."""
    chosen = OpenSums() if sums is None else sums
    return [
        Silo(
            Rows(values),
            STATISTICS,
            name=f"s{k}",
            ledger=None if ledgers is None else ledgers[k],
            sums=chosen,
            rng=None if seed is None else np.random.default_rng(seed + k),
            **fields,
        )
        for k, values in enumerate(data)
    ]


def federation(down: Callable[[int, int], bool] | None = None, **fields: Any) -> InProcess:
    """All of them."""
    return InProcess(silos(**fields), is_down=down)
