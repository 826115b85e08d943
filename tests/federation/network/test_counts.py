"""Histograms and bandits between machines: the same as in one process, to the last bit, under every trust."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.bandits import (
    DEALT_REWARDS,
    OWN_REWARDS,
    BanditPlan,
    DealtRewards,
    FederatedBandit,
    OwnRewards,
    Players,
    RewardPrivacy,
    bandit_rounds,
    federated_bandit,
)
from tacit.federation import Federation, InProcess, OpenSums, Plan, Silo
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.network.masked_rounds import masking_roster_of
from tacit.federation.network.shuffler_client import LocalShuffler
from tacit.federation.network.shuffling import Shuffling
from tacit.frequencies import (
    ITEMS,
    FederatedHistogram,
    ItemCounts,
    Items,
    federated_histogram,
    histogram_plan,
)
from tacit.numerics import Array, IntArray
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.federation.network.deployed_world import channel_of, consent, parties_of, server, service
from tests.federation.network.parties import NOW

SIZES, RUN, SEED = (60, 100, 80), "run", 7
ACTIONS, THETA = np.eye(2), np.array([0.6, -0.2])
KNOWN = parties_of(SIZES)
ROSTER = masking_roster_of(KNOWN.roster)
NAMES = [one.name for one in KNOWN.roster.silos]


def play(clients: IntArray, actions: Array) -> Array:
    return np.where((clients * 37 % 101) / 101 < (1 + actions @ THETA) / 2, 1.0, -1.0)


def silos(trust: TrustModel, *, masked: bool) -> list[Silo]:
    """The same silos, on machines of their own where their sums are masked."""
    found = []
    for k, (name, n) in enumerate(zip(NAMES, SIZES, strict=True)):
        units: Any = Players.of(n, simulated(SEED, "deal", k))
        found.append(
            Silo(
                units,
                {DEALT_REWARDS: DealtRewards(play, 2), OWN_REWARDS: OwnRewards(play)},
                name=name,
                rng=simulated(SEED, name),
                trusts_server=trust is TrustModel.CENTRAL,
                trusts_shuffler=trust is TrustModel.SHUFFLE,
                sums=MaskedSums(ROSTER, KNOWN.silos[name]) if masked else OpenSums(),
            )
        )
    return found


def counting(trust: TrustModel, *, masked: bool) -> list[Silo]:
    return [
        Silo(
            Items(np.arange(n) % 3),
            {ITEMS: ItemCounts(4)},
            name=name,
            rng=simulated(SEED, name),
            trusts_server=trust is TrustModel.CENTRAL,
            trusts_shuffler=trust is TrustModel.SHUFFLE,
            sums=MaskedSums(ROSTER, KNOWN.silos[name]) if masked else OpenSums(),
        )
        for name, n in zip(NAMES, SIZES, strict=True)
    ]


def between_machines(plan: Plan, parties: list[Silo], folder: Path, stack: ExitStack) -> Federation:
    """The federation of a server, services of silos and, if the plan has one, a shuffler."""
    door = None
    if plan.trust is TrustModel.SHUFFLE:
        shuffling = Shuffling(folder / "shuffler", roster=KNOWN.roster, key=KNOWN.shuffler, now=lambda: NOW)
        stack.callback(shuffling.close)
        door = LocalShuffler(shuffling)
    services = []
    for silo in parties:
        consent(KNOWN, plan, RUN, folder / silo.name)
        services.append(service(KNOWN, silo, folder / silo.name, door=door))
        stack.callback(services[-1].close)
    channel = channel_of(services)
    stack.callback(channel.close)
    return server(KNOWN, channel, shuffler=door, rng=simulated(SEED, "server"), public_seed=SEED)


def masked_plan(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, roster=ROSTER.digest) if plan.trust is TrustModel.AGGREGATE else plan


@pytest.mark.parametrize("trust", list(TrustModel))
def test_a_histogram_is_the_same(trust: TrustModel, tmp_path: Path) -> None:
    plan = histogram_plan(k=4, sizes=SIZES, budget=PrivacyBudget(2.0, 1e-4), trust=trust)
    here = federated_histogram(
        InProcess(counting(trust, masked=False), rng=simulated(SEED, "server")), plan, run=RUN
    )
    summed = trust is TrustModel.AGGREGATE
    with ExitStack() as stack:
        far = between_machines(masked_plan(plan), counting(trust, masked=summed), tmp_path, stack)
        there: FederatedHistogram = federated_histogram(far, masked_plan(plan), run=RUN)
    assert here.estimates.any()
    np.testing.assert_array_equal(there.estimates, here.estimates)
    assert [one.epsilon for one in there.guarantees] == [one.epsilon for one in here.guarantees]
    assert there.guarantees_alone == here.guarantees_alone


@pytest.mark.parametrize("trust", list(TrustModel))
def test_a_bandit_is_the_same(trust: TrustModel, tmp_path: Path) -> None:
    summed = trust is TrustModel.AGGREGATE
    delta = 1e-4 if summed or trust is TrustModel.SHUFFLE else 0.0
    privacy = RewardPrivacy(trust=trust, epsilon=2.0, delta=delta, parties=3 if summed else 0)
    bandit = BanditPlan(actions=ACTIONS, horizon=180, privacy=privacy)
    # The owners of this world agree to what has a delta.
    plan = msgspec.structs.replace(bandit_rounds(bandit, SIZES, slots=8), delta=1e-4)
    here = federated_bandit(
        bandit, InProcess(silos(trust, masked=False), rng=simulated(SEED, "server")), asked=plan, run=RUN
    )
    with ExitStack() as stack:
        far = between_machines(masked_plan(plan), silos(trust, masked=summed), tmp_path, stack)
        there: FederatedBandit = federated_bandit(bandit, far, asked=masked_plan(plan), run=RUN)
    assert len(here.decisions) == len(there.decisions) == len(plan.kinds) > 2
    for one, other in zip(here.decisions, there.decisions, strict=True):
        np.testing.assert_array_equal(one.estimates, other.estimates)
    assert there.best == here.best
    assert [one.epsilon for one in there.guarantees] == [one.epsilon for one in here.guarantees]
