"""Flower's simulation runtime gives what one process gives, bit for bit, and leaves no process behind."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BudgetError
from tacit.federation import Disjoint, Federation, Fixed, RandomSubset, Traffic
from tacit.federation.flower import FlowerFederation
from tacit.federation.flower.processes import descendants
from tacit.learning import (
    NoisyFTRL,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    Settings,
    Trained,
    in_process,
    train,
)
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.federation.deployed.partitions import OBJECTIVE, SILOS, accounted, trusting

pytestmark = [
    pytest.mark.deployed,
    # Ray closes neither its files nor what stands for its processes.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SEED = 3
LOCAL, CENTRAL, SHUFFLE = TrustModel.LOCAL, TrustModel.CENTRAL, TrustModel.SHUFFLE
SETTINGS = Settings(
    objective=OBJECTIVE,
    algorithm=NoisyMinibatchSGD(rounds=3),
    trust=LOCAL,
    budget=PrivacyBudget(4.0, 1e-5),
)
# In this order: the generators of silos and server go on from run to run.
CASES = {
    "samples, local": replace(SETTINGS, algorithm=NoisyMinibatchSGD(rounds=3, batch=Fixed(rate=0.3))),
    "correlated noise and disjoint batches, local": replace(
        SETTINGS, algorithm=NoisyFTRL(batch=Disjoint(rate=0.25))
    ),
    "walks, local": replace(SETTINGS, algorithm=NoisyLocalSGD(rounds=2, local_steps=2)),
    "disjoint batches, central": replace(
        SETTINGS, algorithm=NoisyMinibatchSGD(batch=Disjoint(rate=0.25)), trust=CENTRAL
    ),
    "shuffle": replace(SETTINGS, trust=SHUFFLE),
    "sums": replace(SETTINGS, trust=TrustModel.AGGREGATE, noise="discrete-gaussian"),
    "sums without those who drop out": replace(
        SETTINGS,
        trust=TrustModel.AGGREGATE,
        noise="discrete-gaussian",
        n_min=8,
        colluding=1,
        recover=True,
    ),
    "some of them": replace(SETTINGS, participation=RandomSubset(4)),
    "no privacy": replace(SETTINGS, trust=None, budget=None),
}


@pytest.fixture(scope="module", autouse=True)
def _nothing_left() -> Iterator[None]:
    """No process is left when all is over, and the environment is as it was."""
    before, path = descendants(os.getpid()), os.environ.get("PYTHONPATH")
    yield
    gc.collect()
    assert not [one for one in descendants(os.getpid()) - before if one.alive]
    assert os.environ.get("PYTHONPATH") == path


def shown(traffic: Traffic) -> tuple[list[float], list[int], int]:
    return traffic.bits_up.tolist(), traffic.answered.tolist(), traffic.skipped


def all_runs(federation: Federation) -> dict[str, Trained]:
    return {name: train(federation, settings) for name, settings in CASES.items()}


def test_it_is_what_one_process_gives_bit_for_bit() -> None:
    silos = [trusting(k, simulated(SEED, "silo", k)) for k in range(SILOS)]
    wanted = all_runs(in_process(silos, seed=SEED))
    came: list[tuple[int, int]] = []
    with FlowerFederation.simulate(
        trusting, SILOS, seed=SEED, workers=2, progress=lambda *at: came.append(at)
    ) as virtual:
        assert virtual.sizes == [silo.size for silo in silos]
        found = all_runs(virtual)
        with pytest.raises(BudgetError, match=r"above the agreed epsilon 0\.5"):
            virtual.open(wanted["samples, local"].plan, budget=PrivacyBudget(0.5, 1e-5))
    for name, want in wanted.items():
        got = found[name]
        assert np.array_equal(got.w, want.w), name
        assert got.guarantees == want.guarantees, name
        assert got.guarantees_alone == want.guarantees_alone, name
        assert shown(got.traffic) == shown(want.traffic), name
    assert (SILOS, SILOS) in came
    assert (4, 4) in came


def spent_in(folder: Path) -> list[float]:
    found = []
    for path in sorted(folder.glob("*.sqlite")):
        with Ledger.open(path) as ledger:
            found.append(ledger.spent().epsilon)
    return found


def test_silos_with_ledgers_are_charged_once_and_repeat_their_answers(tmp_path: Path) -> None:
    settings = replace(SETTINGS, noise="discrete-gaussian")
    for k in range(3):
        Ledger.create(
            tmp_path / f"{k}.sqlite", limit=PrivacyBudget(6.0, 1e-4), neighbours=Neighbours()
        ).close()
    with FlowerFederation.simulate(partial(accounted, tmp_path), 3, workers=2) as virtual:
        first = train(virtual, settings)
        spent = spent_in(tmp_path)
        assert [round(one, 2) for one in spent] == [4.0] * 3
        again = train(virtual, settings)  # the same run of the same plan
    assert np.array_equal(first.w, again.w)
    assert not first.guarantee.simulated
    assert spent_in(tmp_path) == spent
