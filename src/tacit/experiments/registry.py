"""The experiments that can be redrawn, and what one returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any, Literal

import msgspec

from tacit.errors import ParameterError, check_choice
from tacit.experiments import (
    cldp_sgd,
    defaults,
    dme_kmeans,
    dme_linear_regression,
    dme_power_iteration,
    dme_synthetic,
    fermi_adult,
    fermi_batch,
    fermi_color_mnist,
    fermi_communities,
    fermi_corrupted,
    fermi_small,
    frequencies_randomness,
    heavy_tails,
    isrl_insurance,
    isrl_mnist_logistic,
    isrl_mnist_network,
    isrl_nonconvex,
    isrl_obesity,
    nonconvex_shuffled,
    optimisers,
    personal_models,
    private_bandits,
    private_dme,
    private_fairness,
    semi_dp_regression,
    shuffle_rdp_curves,
    shuffled_gradient,
    shuffled_sco,
    successive_refinement,
    trust_models,
    vote_knowledge_transfer,
    vote_simulation,
)
from tacit.experiments.report import Report
from tacit.privacy import Relation

__all__ = ["EXPERIMENTS", "Experiment", "Report", "find"]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure or table of a paper.

    Attributes:
        name: What people type.
        title: One line.
        source: Author, year and figures.
        run: Computes it; `quick` takes fewer trials and points, `progress` is called with (done, total).
            Where neighbours may be chosen, `relation` says what they differ in.
        fixed: Why neighbours cannot be chosen; None where they can.
    """

    name: str
    title: str
    source: str
    run: Callable[..., Report]
    fixed: str | None = None

    def under(self, relation: Relation) -> Callable[[bool, Callable[[int, int], Any]], Report]:
        """Return what computes it under these neighbours.

        Raises:
            ParameterError: They are others than replace-one, and what is shown holds under that only.
        """
        if relation is Relation.REPLACE_ONE:
            return self.run
        if self.fixed is not None:
            raise ParameterError(
                f"neighbours must be replace-one for {self.name}, got {relation.value!r}: {self.fixed}."
            )
        return partial(self.run, relation=relation)


_RUNS: Mapping[str, Callable[..., Report]] = {
    "isrl-mnist-logistic": isrl_mnist_logistic.run,
    "isrl-insurance": isrl_insurance.run,
    "isrl-obesity": isrl_obesity.run,
    "isrl-nonconvex": isrl_nonconvex.run,
    "isrl-mnist-network": isrl_mnist_network.run,
    "nonconvex-shuffled": nonconvex_shuffled.run,
    "dme-synthetic": dme_synthetic.run,
    "dme-power-iteration": dme_power_iteration.run,
    "dme-kmeans": dme_kmeans.run,
    "dme-linear-regression": dme_linear_regression.run,
    "shuffle-rdp-curves": shuffle_rdp_curves.run,
    "cldp-sgd": cldp_sgd.run,
    "private-dme": private_dme.run,
    "shuffled-sco": shuffled_sco.run,
    "shuffled-gradient": shuffled_gradient.run,
    "semi-dp-regression": semi_dp_regression.run,
    "vote-simulation": vote_simulation.run,
    "vote-knowledge-transfer": vote_knowledge_transfer.run,
    "defaults": defaults.run,
    "optimisers": optimisers.run,
    "trust-models": trust_models.run,
    "personal-models": personal_models.run,
    "heavy-tails": heavy_tails.run,
    "private-bandits": private_bandits.run,
    "frequencies-randomness": frequencies_randomness.run,
    "successive-refinement": successive_refinement.run,
    "fermi-adult": fermi_adult.run,
    "fermi-batch": fermi_batch.run,
    "fermi-missing": fermi_corrupted.run_missing,
    "fermi-noisy": fermi_corrupted.run_noisy,
    "fermi-compas": fermi_small.run_compas,
    "fermi-german": fermi_small.run_german,
    "fermi-communities": fermi_communities.run,
    "fermi-color-mnist": fermi_color_mnist.run,
    **private_fairness.RUNS,
}

EXPERIMENTS = {
    name: Experiment(name=name, run=_RUNS[name], **said)
    for name, said in msgspec.toml.decode(
        (resources.files("tacit.experiments") / "catalogue.toml").read_bytes(),
        type=dict[str, dict[Literal["title", "source", "fixed"], str]],
    ).items()
}
"""Every experiment by name."""


def find(name: str) -> Experiment:
    """Return an experiment by name.

    Raises:
        UnknownNameError: There is none; the nearest name is suggested.
    """
    check_choice("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
