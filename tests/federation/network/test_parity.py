"""The same seed and plan give the same model in one process and between machines, to the last bit."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.federation import Silo
from tacit.federation.network.shuffler_client import LocalShuffler
from tacit.federation.network.shuffling import Shuffling
from tacit.learning import (
    ALGORITHMS,
    LinearObjective,
    Logistic,
    Records,
    Settings,
    Trained,
    about,
    in_process,
    make_silos,
    train,
)
from tacit.learning.algorithms import make_algorithm, statistics_of
from tacit.learning.preparation import prepare
from tacit.numerics import SquaredL2, Zero, clip_rows
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.federation.network.deployed_world import channel_of, consent, parties_of, server, service
from tests.federation.network.parties import NOW

D, SIZES, SEED = 3, (60, 100, 80), 7
NAMES = [f"silo-{k + 1}" for k in range(len(SIZES))]
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
BUDGET = PrivacyBudget(4.0, 1e-4)
ROUNDS = {"multistage": 30, "output-perturbation": 1, "objective-perturbation": 1}
NO_PENALTY = ("sufficient-statistics", "sign-vote", "output-perturbation", "objective-perturbation", "local")
CASES = [(name, trust) for name in ALGORITHMS for trust in (*about(name).trusts, "none")]


def records(k: int) -> Records:
    rng = np.random.default_rng(k)
    X = clip_rows(rng.standard_normal((SIZES[k], D)), 1.0)
    return Records.of(X, (X[:, 0] + 0.3 * rng.standard_normal(SIZES[k]) > 0).astype(np.float64))


def settings_of(name: str, trust: str, **changes: Any) -> Settings:
    options = {"rounds": ROUNDS.get(name, 5)} if "rounds" in about(name).options else {}
    private = trust != "none"
    return Settings(
        objective=OBJECTIVE,
        algorithm=make_algorithm(name, **options),
        trust=TrustModel(trust) if private else None,
        budget=BUDGET if private else None,
        noise="gaussian" if name == "objective-perturbation" else "discrete-gaussian",
        regularizer=Zero() if name in NO_PENALTY else SquaredL2(0.1),
        **changes,
    )


def silos(settings: Settings) -> list[Silo]:
    own = {name: make(OBJECTIVE) for name, make in settings.algorithm.statistics.items()}
    return make_silos(
        [records(k) for k in range(len(SIZES))],
        OBJECTIVE,
        names=NAMES,
        statistics={**statistics_of(OBJECTIVE), **own},
        trusts_server=settings.trusts_server,
        trusts_shuffler=settings.trusts_shuffler,
        seed=SEED,
    )


def deployed(settings: Settings, folder: Path) -> Trained:
    known, plan = parties_of(SIZES), prepare(settings, SIZES).plan
    with ExitStack() as stack:
        door = None
        if plan.trust is TrustModel.SHUFFLE:
            shuffling = Shuffling(
                folder / "shuffler", roster=known.roster, key=known.shuffler, now=lambda: NOW
            )
            stack.callback(shuffling.close)
            door = LocalShuffler(shuffling)
        services = []
        for silo in silos(settings):
            consent(known, plan, settings.run, folder / silo.name)
            services.append(service(known, silo, folder / silo.name, door=door))
            stack.callback(services[-1].close)
        channel = channel_of(services)
        stack.callback(channel.close)
        federation = server(known, channel, shuffler=door, rng=simulated(SEED, "server"), public_seed=SEED)
        return train(federation, settings)


@pytest.mark.parametrize(("name", "trust"), CASES)
def test_every_algorithm_gives_the_same_model_under_every_trust(
    name: str, trust: str, tmp_path: Path
) -> None:
    settings = settings_of(name, trust)
    here = train(in_process(silos(settings), seed=SEED), settings)
    there = deployed(settings, tmp_path)
    assert here.w.any()
    np.testing.assert_array_equal(there.w, here.w)
    assert there.guarantees == here.guarantees
    assert there.guarantees_before_shuffling == here.guarantees_before_shuffling
    np.testing.assert_array_equal(there.traffic.answered, here.traffic.answered)
    if trust != "shuffle":  # what goes to a shuffler is sealed
        np.testing.assert_array_equal(there.traffic.bits_up, here.traffic.bits_up)
