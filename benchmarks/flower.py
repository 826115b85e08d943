"""Federations on Flower: virtual silos in its simulation, and a round between processes on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation import Silo
from tacit.learning import (
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    PartitionSilos,
    Records,
    Settings,
    in_process,
    train,
)
from tacit.ledger import Ledger
from tacit.numerics import clip_rows
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel
from tacit.randomness import simulated

ROOT = Path(__file__).resolve().parent.parent
VIRTUAL, ROUNDS, FEATURES = 1000, 5, 6
SETTINGS = Settings(
    objective=LinearObjective(loss=Logistic(), features=FEATURES, feature_norm=1.0),
    algorithm=NoisyMinibatchSGD(rounds=ROUNDS),
    trust=TrustModel.LOCAL,
    budget=PrivacyBudget(4.0, 1e-5),
)


def records_of(partition: int) -> Records:
    """Records of a virtual silo."""
    rng = np.random.default_rng(partition)
    X = clip_rows(rng.normal(size=(40, FEATURES)), 1.0)
    return Records.of(X, (X[:, 0] > 0).astype(np.float64))


def _virtual(smoke: bool) -> dict[str, float]:
    make, parties = PartitionSilos(SETTINGS, records_of), 20 if smoke else VIRTUAL
    silos = [make(k, simulated(0, "silo", k)) for k in range(parties)]
    here = best_seconds(lambda: train(in_process(silos, seed=0), SETTINGS), 1)
    found = {"parties": float(parties), "rounds": float(ROUNDS), "in_process": here}
    if smoke:  # Ray takes longer to start than all other benchmarks
        return {**found, "seconds": here, "started": 0.0, "trained": here}
    from tacit.federation.flower import FlowerFederation

    start = time.perf_counter()
    with FlowerFederation.simulate(make, parties, seed=0) as federation:
        started = time.perf_counter()
        train(federation, SETTINGS)
        trained = time.perf_counter()
    end = time.perf_counter()
    return {**found, "seconds": end - start, "started": started - start, "trained": trained - started}


def _deployed(smoke: bool) -> dict[str, float]:
    if smoke:  # a round of Flower's programs takes 6 s, and they take longer to start
        return dict.fromkeys(("ours", "strategy", "bare", "ratio", "ratio_to_bare"), 0.0)
    rounds, seconds = 4, {}
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        link, ours, stock = _loopback(folder, stack, rounds=rounds)
        for what, job, bare in (("ours", ours, False), ("strategy", stock, False), ("bare", stock, True)):
            facts = {"folder": name, "rounds": rounds, "bare": bare, "out": str(folder / f"{what}.out")}
            config = folder / f"{what}.json"
            config.write_text(json.dumps(facts), encoding="utf-8")
            bundle = None if what == "ours" else folder / "stock"
            link.run(job, config, deadline=200.0, bundle=bundle)
            seconds[what] = float(np.median(json.loads((folder / f"{what}.out").read_text(encoding="utf-8"))))
    ratios = {
        "ratio": seconds["ours"] / seconds["strategy"],
        "ratio_to_bare": seconds["ours"] / seconds["bare"],
    }
    return {**seconds, **ratios}


def _loopback(folder: Path, stack: contextlib.ExitStack, *, rounds: int):  # type: ignore[no-untyped-def]
    """Start silo services, a SuperLink and its nodes."""
    from benchmarks import flower_apps as apps
    from tacit.federation.flower.bundle import write_bundle
    from tacit.federation.flower.loopback import LoopbackFlower, ServerTls
    from tacit.federation.network.certificates import make_authority
    from tacit.federation.network.consent import Consents
    from tacit.federation.network.keys import OpeningKey, SigningKey
    from tacit.federation.network.roster import Roster, ServerEntry, SiloEntry
    from tacit.federation.network.silo_service import CONSENT_FILE, LEDGER_FILE, SiloService

    now, plan = dt.datetime.now(dt.UTC), apps.plan(rounds)
    server, opening, keys = (
        SigningKey.make(),
        OpeningKey.make(),
        [SigningKey.make() for _ in range(apps.SILOS)],
    )
    names = [f"silo-{k + 1}" for k in range(apps.SILOS)]
    roster = Roster(
        federation="bench",
        server=ServerEntry(
            verify=server.public.to_text(), seal=opening.public.to_text(), url="https://127.0.0.1"
        ),
        silos=tuple(
            SiloEntry(name=name, size=apps.ROWS, verify=key.public.to_text())
            for name, key in zip(names, keys, strict=True)
        ),
    )
    (folder / "roster.toml").write_text(roster.to_toml(), encoding="utf-8")
    server.save(folder / "server.key")
    opening.save(folder / "opening.key")
    for name, key in zip(names, keys, strict=True):
        rows = apps.Rows(np.random.default_rng(1).normal(size=(apps.ROWS, apps.DIM)).astype(np.float32))
        state = folder / name
        state.mkdir(mode=0o700)
        consents = Consents(state / CONSENT_FILE)
        consents.give("bench", plan.digest(), "run", limit=PrivacyBudget(1e6, 0.5))
        ledger = Ledger.create(state / LEDGER_FILE, limit=PrivacyBudget(100.0, 1e-3), neighbours=Neighbours())
        silo = Silo(rows, {"difference": apps.difference}, name=name, ledger=ledger)
        service = SiloService(silo, roster=roster, key=key, state=state)
        stack.enter_context(_served(service, folder / f"{name}.sock"))
    authority = make_authority("bench", now=now)
    tls = ServerTls(folder / "ca.pem", folder / "link.pem", folder / "link.key")
    authority.save(tls.authority, folder / "ca.key")
    authority.issue(["127.0.0.1"], now=now).save(tls.certificate, tls.key)
    components = {f"{one}app": f"benchmarks.flower_apps:stock_{one}" for one in ("server", "client")}
    write_bundle(folder / "stock", name="stock", components=components)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    sockets = {name: folder / f"{name}.sock" for name in names}
    link = LoopbackFlower(folder / "flower", tls, sockets, environment={"PYTHONPATH": path})
    return stack.enter_context(link), "benchmarks.flower_apps:ours", "stock"


@contextlib.contextmanager
def _served(service, path: Path) -> Iterator[None]:  # type: ignore[no-untyped-def]
    """Serve a silo on its socket in a thread."""
    from tacit.federation.network.silo_doors import serve_socket

    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=partial(loop.run_until_complete, serve_socket(service, path, stop=stop)))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        service.close()


CASES = (
    Case(
        "flower/virtual-silos",
        "1,000 virtual silos, 5 rounds: < 120 s in all",
        _virtual,
        lambda m: (
            f"{m['parties']:,.0f} virtual silos, {m['rounds']:.0f} rounds: {m['seconds']:.0f} s in all, "
            f"{m['started']:.0f} s to start; one process {m['in_process']:.1f} s"
        ),
    ),
    Case(
        "flower/deployed-round",
        "4 silos, 100 kB each way, through SuperLink and SuperNodes: <= 1.10 x a stock app with FedAvg",
        _deployed,
        lambda m: (
            f"{m['ours']:.2f} s a round: {m['ratio']:.2f} x FedAvg ({m['strategy']:.2f} s), "
            f"{m['ratio_to_bare']:.2f} x a stock ClientApp under our loop ({m['bare']:.2f} s)"
        ),
    ),
)
