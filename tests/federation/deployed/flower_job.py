"""A server's job that Flower starts in a process of its own, and the silos that it asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.federation import Silo
from tacit.federation.flower import FlowerChannel
from tacit.federation.network.remote import RemoteFederation
from tacit.learning import NoisyMinibatchSGD, Settings, train
from tacit.learning.training import silo_for
from tacit.ledger import Ledger
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.federation.deployed.partitions import OBJECTIVE, records_of
from tests.federation.network.deployed_world import parties_of
from tests.federation.network.parties import NOW

SIZES = [len(records_of(k)) for k in range(2)]
PARTIES = parties_of(SIZES)
SETTINGS = Settings(
    objective=OBJECTIVE,
    algorithm=NoisyMinibatchSGD(rounds=3),
    trust=TrustModel.LOCAL,
    budget=PrivacyBudget(4.0, 1e-5),
    noise="discrete-gaussian",
)


def silo(k: int, ledger: Ledger | None) -> Silo:
    """A silo whose noise can be repeated."""
    name, rng = PARTIES.roster.silos[k].name, simulated(5, "silo", k)
    return silo_for(SETTINGS, records_of(k), name=name, ledger=ledger, rng=rng)


def run(channel: FlowerChannel, config: Path) -> None:
    """Train, and write beside `config` how far it is and the model."""
    rounds = config.with_suffix(".rounds")

    def follow(facts: object) -> None:
        with rounds.open("a", encoding="utf-8") as file:
            file.write(f"{facts}\n")

    federation = RemoteFederation(
        PARTIES.roster,
        PARTIES.server,
        channel,
        opening=PARTIES.opening,
        deadline=60.0,
        follow=follow,
        clock=lambda: NOW,
    )
    np.save(config.with_suffix(".npy"), train(federation, SETTINGS).w)
