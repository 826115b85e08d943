"""The experiments that can be redrawn, and what one returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.errors import check_choice
from tacit.experiments import (
    dme_kmeans,
    dme_linear_regression,
    dme_power_iteration,
    dme_synthetic,
    isrl_mnist_logistic,
    private_dme,
    shuffle_rdp_curves,
    vote_knowledge_transfer,
    vote_simulation,
)
from tacit.experiments.report import Report

__all__ = ["EXPERIMENTS", "Experiment", "Report", "find"]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure or table of a paper.

    Attributes:
        name: What people type.
        title: One line.
        source: Author, year and figures.
        run: Computes it; `quick` takes fewer trials and points, `progress` is called with (done, total).
    """

    name: str
    title: str
    source: str
    run: Callable[[bool, Callable[[int, int], Any]], Report]


EXPERIMENTS = {
    e.name: e
    for e in (
        Experiment(
            name="isrl-mnist-logistic",
            title="Odd against even digits by logistic regression, 25 heterogeneous silos, no trusted server",
            source="Lowy (2023), Figures 3.5 and B.1",
            run=isrl_mnist_logistic.run,
        ),
        Experiment(
            name="dme-synthetic",
            title="Compressed means of made-up vectors: errors at known correlation, ranks and times",
            source="Jiang (2025), Figures 2.2, 2.3, 2.5, A.1 and A.2",
            run=dme_synthetic.run,
        ),
        Experiment(
            name="dme-power-iteration",
            title="Distributed power iteration on compressed means, correlated parties",
            source="Jiang (2025), Figures 2.4, A.3 and A.6",
            run=dme_power_iteration.run,
        ),
        Experiment(
            name="dme-kmeans",
            title="Distributed k-means on compressed means, correlated parties",
            source="Jiang (2025), Figures 2.4, A.4 and A.7",
            run=dme_kmeans.run,
        ),
        Experiment(
            name="dme-linear-regression",
            title="Distributed linear regression on compressed means, correlated parties",
            source="Jiang (2025), Figures 2.4, A.5 and A.8",
            run=dme_linear_regression.run,
        ),
        Experiment(
            name="shuffle-rdp-curves",
            title="Bounds on shuffled messages by order: alone, composed and on samples",
            source="Girgis (2023), Figures 5.2 to 5.6",
            run=shuffle_rdp_curves.run,
        ),
        Experiment(
            name="private-dme",
            title="Private means of numbers and vectors by bit planes, against Laplace noise and PrivUnit",
            source="Girgis (2023), Figures 3.2a to 3.2c",
            run=private_dme.run,
        ),
        Experiment(
            name="vote-simulation",
            title="Private majorities of simulated teachers, every design at equal privacy",
            source="Jiang (2025), Figures 3.2 and B.4 to B.7, Table B.1",
            run=vote_simulation.run,
        ),
        Experiment(
            name="vote-knowledge-transfer",
            title="Labels for a student by the votes of 11 teachers: private majorities against GNMax",
            source="Jiang (2025), Tables 3.1, 3.2 and B.2 to B.8, Figure B.8",
            run=vote_knowledge_transfer.run,
        ),
    )
}


def find(name: str) -> Experiment:
    """Return an experiment by name.

    Raises:
        UnknownNameError: There is none; the nearest name is suggested.
    """
    check_choice("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
