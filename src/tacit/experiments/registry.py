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
    isrl_mnist_logistic,
    private_dme,
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
        source: Paper, figure and spec section.
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
            source="Lowy and Razaviyayn (2023), Figures 3.5 and B.1; spec 11 §13.1",
            run=isrl_mnist_logistic.run,
        ),
        Experiment(
            name="dme-power-iteration",
            title="Distributed power iteration on compressed means, correlated parties",
            source="Jiang (2025), Figures 2.4, A.3 and A.6; spec 01 §15",
            run=dme_power_iteration.run,
        ),
        Experiment(
            name="dme-kmeans",
            title="Distributed k-means on compressed means, correlated parties",
            source="Jiang (2025), Figures 2.4, A.4 and A.7; spec 01 §15",
            run=dme_kmeans.run,
        ),
        Experiment(
            name="dme-linear-regression",
            title="Distributed linear regression on compressed means, correlated parties",
            source="Jiang (2025), Figures 2.4, A.5 and A.8; spec 01 §15",
            run=dme_linear_regression.run,
        ),
        Experiment(
            name="private-dme",
            title="Private means of numbers and vectors by bit planes, against Laplace noise and PrivUnit",
            source="Thesis on private mean estimation, Figures 3.2a to 3.2c; spec 04 §10",
            run=private_dme.run,
        ),
        Experiment(
            name="vote-simulation",
            title="Private majorities of simulated teachers, every design at equal privacy",
            source="Jiang (2025), Figures 3.2 and B.4 to B.7, Table B.1; spec 02 §18.1 to §18.5",
            run=vote_simulation.run,
        ),
        Experiment(
            name="vote-knowledge-transfer",
            title="Labels for a student by the votes of 11 teachers: private majorities against GNMax",
            source="Jiang (2025), Tables 3.1, 3.2 and B.2 to B.8, Figure B.8; spec 02 §15 to §18.6",
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
