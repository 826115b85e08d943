"""The same seed and plan give the same model in one process and between machines, to the last bit."""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from tacit.federation import Fixed, RandomSubset, Silo
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.network.certificates import client_context, make_authority
from tacit.federation.network.channel import Channel
from tacit.federation.network.hub import Hub, serving
from tacit.federation.network.masked_rounds import masking_roster_of
from tacit.federation.network.shuffler_client import LocalShuffler
from tacit.federation.network.shuffling import Shuffling
from tacit.federation.network.silo_doors import hub_client, poll_hub
from tacit.federation.network.silo_service import SiloService
from tacit.learning import (
    ALGORITHMS,
    LinearObjective,
    Logistic,
    PublicObjective,
    Records,
    Settings,
    Squared,
    Trained,
    about,
    in_process,
    train,
)
from tacit.learning.algorithms import make_algorithm
from tacit.learning.preparation import prepare
from tacit.learning.training import silo_for
from tacit.numerics import SquaredL2, Zero, clip_rows
from tacit.privacy import PrivacyBudget, TrustModel, Unit
from tacit.randomness import simulated
from tests.federation.network import deployed_world
from tests.federation.network import parties as parties_world
from tests.federation.network.deployed_world import channel_of, consent, parties_of, server, service
from tests.federation.network.parties import NOW, Parties

D, SIZES, SEED = 3, (60, 100, 80), 7
NAMES = [f"silo-{k + 1}" for k in range(len(SIZES))]
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
BUDGET = PrivacyBudget(4.0, 1e-4)
ROUNDS = {"multistage": 30, "output-perturbation": 1, "objective-perturbation": 1}
NO_PENALTY = (
    *("sufficient-statistics", "sign-vote", "output-perturbation", "objective-perturbation", "local"),
    *("ce-psgm", "adaped", "fed-avg"),
)
DRAWN: dict[str, dict[str, Any]] = {"cldp-sgd": {"clients": Fixed(size=2)}, "dss-sgd": {"rate": 0.4}}
"""Of three silos, under shuffle trust; of some rounds of the second, nobody."""

ALIKE = (
    *("accelerated", "multistage", "p-sgd", "lan", "phases", "prox-sgd"),
    *("clipped-ac-sa", "clipped-sgd", "clipped-prox-sgd", "clipped-subgradient"),
)
"""Whose rounds ask for one mean gradient each, as those of minibatch do, which runs under every trust."""


def trusts_of(which: int, name: str) -> tuple[str, ...]:
    """Those that one algorithm is run under: of those alike, one each in turn.

    Without noise all rounds are answered as under local trust: every third algorithm tells.
    """
    trusts = about(name).trusts
    private = (trusts[which % len(trusts)],) if name in ALIKE else trusts
    return (*private, "none") if which % 3 == 0 else private


CASES = [(name, trust) for which, name in enumerate(ALGORITHMS) for trust in trusts_of(which, name)]


def records(k: int) -> Records:
    rng = np.random.default_rng(k)
    n = (*SIZES, max(SIZES))[k]
    X = clip_rows(rng.standard_normal((n, D)), 1.0)
    return Records.of(X, (X[:, 0] + 0.3 * rng.standard_normal(n) > 0).astype(np.float64))


def sizes_of(settings: Settings) -> tuple[int, ...]:
    """What a roster counts: records, or whole parties, each of which is one."""
    return (1,) * len(SIZES) if settings.unit is Unit.PARTY else SIZES


def settings_of(name: str, trust: str, **changes: Any) -> Settings:
    options: dict[str, Any] = {"rounds": ROUNDS.get(name, 5)} if "rounds" in about(name).options else {}
    options |= {"epochs": 4} if "epochs" in about(name).options else {}  # of many the price takes seconds
    private = trust != "none"
    options |= DRAWN.get(name, {}) if trust == "shuffle" else {}
    objective = replace(OBJECTIVE, loss=Squared()) if name == "pda" else OBJECTIVE
    if getattr(ALGORITHMS[name], "needs_public", False):
        changes |= {"public": PublicObjective(objective, records(len(SIZES))), "clip": 1.0}
    return Settings(
        objective=objective,
        algorithm=make_algorithm(name, **options),
        trust=TrustModel(trust) if private else None,
        budget=BUDGET if private else None,
        noise="gaussian" if name == "objective-perturbation" else "discrete-gaussian",
        regularizer=Zero() if name in NO_PENALTY else SquaredL2(0.1),
        unit=ALGORITHMS[name].unit or Unit.RECORD,
        **changes,
    )


def masked_by(settings: Settings) -> list[MaskedSums] | None:
    """The word of every owner about sums that only the silos of the roster hide."""
    known = parties_of(sizes_of(settings))
    roster = masking_roster_of(known.roster)
    masked = settings.trust is TrustModel.AGGREGATE and settings.roster
    return [MaskedSums(roster, known.silos[name]) for name in NAMES] if masked else None


def silos(settings: Settings) -> list[Silo]:
    masked: Sequence[MaskedSums | None] = masked_by(settings) or [None] * len(SIZES)
    return [
        silo_for(settings, records(k), name=name, sums=masked[k], rng=simulated(SEED, "silo", k))
        for k, name in enumerate(NAMES)
    ]


@contextmanager
def over_tls(known: Parties, services: list[SiloService], folder: Path) -> Iterator[Channel]:
    """The way to silos that poll a hub on this machine, each as its process would."""
    authority = make_authority("lab", now=NOW)
    (folder / "keys").mkdir(mode=0o700)
    authority.save(folder / "ca.pem", folder / "keys" / "ca")
    authority.issue(["127.0.0.1"], now=NOW).save(folder / "tls.pem", folder / "keys" / "tls")
    trust, loop, stop = client_context(folder / "ca.pem"), asyncio.new_event_loop(), asyncio.Event()

    async def poll(one: SiloService, url: str) -> None:
        async with hub_client(url, trust) as client:
            await poll_hub(one, roster=known.roster, key=known.silos[one.name], client=client, stop=stop)

    async def work(url: str) -> None:
        await asyncio.gather(*(poll(one, url) for one in services))

    hub = Hub(known.roster)
    with serving(
        hub, host="127.0.0.1", port=0, certificate=folder / "tls.pem", key=folder / "keys" / "tls"
    ) as url:
        thread = Thread(target=lambda: loop.run_until_complete(work(url)))
        thread.start()
        try:
            yield hub
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()
            loop.close()


@contextmanager
def in_threads(_: Parties, services: list[SiloService], __: Path) -> Iterator[Channel]:
    """The way to silos of this process."""
    channel = channel_of(services)
    yield channel
    channel.close()


def deployed(settings: Settings, folder: Path, way: Any = in_threads) -> Trained:
    sizes = sizes_of(settings)
    known, plan = parties_of(sizes), prepare(settings, sizes).plan
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
        channel = stack.enter_context(way(known, services, folder))
        federation = server(known, channel, shuffler=door, rng=simulated(SEED, "server"), public_seed=SEED)
        return train(federation, settings)


def over_machines(settings: Settings) -> Settings:
    """The same between machines, where sums are of a roster."""
    if settings.trust is not TrustModel.AGGREGATE:
        return settings
    return replace(settings, roster=masking_roster_of(parties_of(sizes_of(settings)).roster).digest)


@pytest.mark.parametrize(("name", "trust"), CASES)
def test_every_algorithm_gives_the_same_model_under_every_trust(
    name: str, trust: str, tmp_path: Path
) -> None:
    settings = settings_of(name, trust)
    here = train(in_process(silos(settings), seed=SEED), settings)
    there = deployed(over_machines(settings), tmp_path)
    assert here.w.any()
    np.testing.assert_array_equal(there.w, here.w)
    if trust == "aggregate":  # the assumptions say whether messages are masked
        assert [one.epsilon for one in there.guarantees] == [one.epsilon for one in here.guarantees]
        assert there.guarantees_alone == here.guarantees_alone
        return
    assert there.guarantees == here.guarantees
    assert there.guarantees_alone == here.guarantees_alone
    np.testing.assert_array_equal(there.traffic.answered, here.traffic.answered)
    assert there.traffic.skipped == here.traffic.skipped
    if trust != "shuffle":  # what goes to a shuffler is sealed
        np.testing.assert_array_equal(there.traffic.bits_up, here.traffic.bits_up)


@pytest.mark.parametrize("name", ["adaped", "fed-avg"])
def test_parties_that_the_server_draws_are_the_same_and_pay_as_if_asked_in_every_round(
    name: str, tmp_path: Path
) -> None:
    """K of n, as DP-AdaPeD prints it: who draws sees who was drawn, so that drawing amplifies nothing."""
    settings = settings_of(name, "local", participation=RandomSubset(2))
    here = train(in_process(silos(settings), seed=SEED), settings)
    there = deployed(settings, tmp_path)
    np.testing.assert_array_equal(there.w, here.w)
    np.testing.assert_array_equal(there.traffic.answered, here.traffic.answered)
    assert here.traffic.answered.sum() == 2 * here.rounds
    assert len(set(here.traffic.answered.tolist())) > 1  # nobody knows beforehand who is asked how often
    everybody = settings_of(name, "local")
    all_asked = train(in_process(silos(everybody), seed=SEED), everybody)
    assert there.guarantees == here.guarantees == all_asked.guarantees


@pytest.mark.parametrize(
    ("name", "trust"),
    [
        ("spider", "local"),
        ("minibatch", "aggregate"),
        ("p-sgd", "central"),
        ("minibatch", "shuffle"),
        ("local", "none"),
    ],
)
def test_so_do_silos_that_poll_over_tls(
    name: str, trust: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (parties_world, deployed_world, sys.modules[__name__]):  # certificates expire by the clock
        monkeypatch.setattr(module, "NOW", dt.datetime.now(dt.UTC))
    settings = settings_of(name, trust)
    here = train(in_process(silos(settings), seed=SEED), settings)
    np.testing.assert_array_equal(deployed(over_machines(settings), tmp_path, over_tls).w, here.w)
