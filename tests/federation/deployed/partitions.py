"""Virtual silos by the number of the partition: other processes import this file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.federation import OpenSums, Silo
from tacit.learning import LinearObjective, Logistic, Records
from tacit.learning.algorithms import statistics_of
from tacit.ledger import Ledger
from tacit.numerics import clip_rows

D = 6
SILOS = 10
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)


def records_of(partition: int) -> Records:
    """Records of a logistic regression; silos differ in size."""
    rng = np.random.default_rng(1000 + partition)
    n = 40 + partition % 3
    X = clip_rows(rng.normal(size=(n, D)), 1.0)
    return Records.of(X, (X[:, 0] + rng.normal(size=n) / 3 > 0).astype(np.float64))


def trusting(partition: int, rng: np.random.Generator | None) -> Silo:
    """A silo that answers whatever a plan asks, whoever is trusted."""
    return Silo(
        records_of(partition),
        statistics_of(OBJECTIVE),
        name=f"silo {partition}",
        trusts_server=True,
        trusts_shuffler=True,
        sums=OpenSums(),
        rng=rng,
    )


def accounted(folder: Path, partition: int, rng: np.random.Generator | None) -> Silo:
    """A silo with a ledger in a folder."""
    return Silo(
        records_of(partition),
        statistics_of(OBJECTIVE),
        name=f"silo {partition}",
        ledger=Ledger.open(folder / f"{partition}.sqlite"),
        rng=rng,
    )


def failing(partition: int, rng: np.random.Generator | None) -> Silo:
    """A maker that quotes a record."""
    if partition == 1:
        raise KeyError("a record: 4711")
    return trusting(partition, rng)
