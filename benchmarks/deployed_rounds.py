"""Rounds between processes: four silos poll a server over TLS on loopback, with and without a shuffler."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import multiprocessing
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import uvicorn

from benchmarks.case import Case
from tacit.federation import InProcess, Measure, Plan, Silo, Step, with_honest
from tacit.federation.network.certificates import client_context, make_authority
from tacit.federation.network.consent import Consents
from tacit.federation.network.hub import Hub, serving
from tacit.federation.network.journal import RunJournal
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.remote import RemoteFederation
from tacit.federation.network.roster import Roster, ServerEntry, ShufflerEntry, SiloEntry
from tacit.federation.network.shuffler_app import shuffler_config
from tacit.federation.network.shuffler_client import RemoteShuffler
from tacit.federation.network.shuffling import Shuffling
from tacit.federation.network.silo_doors import hub_client, poll_hub
from tacit.federation.network.silo_service import CONSENT_FILE, SiloService
from tacit.learning import LinearObjective, Logistic, Records, make_silos
from tacit.ledger import Ledger
from tacit.means import AdditiveMean, BinomialMean, DiscreteGaussianNoise
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel

SILOS, ROWS, DIM, RADIUS = 4, 8, 25_000, 1.0
"""25,000 numbers of 32 bits: 100 kB."""

STOCK_SECONDS = 6.2
"""A round of four silos and 100 kB on stock Flower 1.41 SuperNodes, the median of what was measured on two
cores; its SuperNodes look for work every 3 s."""

NAMES = [f"silo-{k + 1}" for k in range(SILOS)]
_DEADLINE = 60.0


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _plan(trust: TrustModel, rounds: int) -> Plan:
    if trust is TrustModel.LOCAL:
        exact = AdditiveMean(dim=DIM, noise=DiscreteGaussianNoise(20.0), trust=trust)
        step = Step(measures=(Measure(statistic="gradient", estimator=exact, max_radius=RADIUS),))
        return Plan(steps=((step, rounds),), parties=SILOS, trust=trust, delta=1e-5)
    bits = BinomialMean(dim=DIM, noise_bits=60, resolution=30)
    step = Step(measures=(Measure(statistic="gradient", estimator=bits, max_radius=RADIUS),))
    kinds = with_honest(((step, rounds),), [ROWS] * SILOS, n_min=SILOS, colluding=0)
    return Plan(steps=kinds, parties=SILOS, trust=trust, delta=1e-5, n_min=SILOS)


def _silo(name: str, folder: Path) -> Silo:
    rng = np.random.default_rng(NAMES.index(name))
    X = rng.standard_normal((ROWS, DIM)).astype(np.float32)
    X /= 2 * np.linalg.norm(X, axis=1, keepdims=True)
    path = folder / name / "ledger.sqlite"
    limit = PrivacyBudget(1e9, 0.5)
    ledger = Ledger.open(path) if path.exists() else Ledger.create(path, limit=limit, neighbours=Neighbours())
    objective = LinearObjective(loss=Logistic(), features=DIM, feature_norm=1.0)
    records = [Records.of(X, (rng.random(ROWS) < 0.5).astype(np.float32))]
    (silo,) = make_silos(records, objective, names=[name], ledgers=[ledger], trusts_shuffler=True)
    return silo


def _serve_silo(name: str, folder: Path, hub: str, shuffler: str, stop: Event | None = None) -> None:
    """The process of a silo; a thread that somebody stops, in the smallest size."""
    roster, key = Roster.load(folder / "roster.toml"), SigningKey.load(folder / "keys" / name)
    trust = client_context(folder / "ca.pem")
    service = SiloService(
        _silo(name, folder),
        roster=roster,
        key=key,
        state=folder / name,
        door=RemoteShuffler(shuffler, trust=trust),
    )

    async def work() -> None:
        ended = asyncio.Event()
        async with hub_client(hub, trust) as client:
            polling = asyncio.create_task(
                poll_hub(service, roster=roster, key=key, client=client, stop=ended)
            )
            if stop is not None:
                await asyncio.to_thread(stop.wait)
                ended.set()
            await polling

    asyncio.run(work())
    service.close()


def _serve_shuffler(folder: Path, port: int, stop: Event | None = None) -> None:
    """The process of the shuffler, or a thread."""
    roster, key = Roster.load(folder / "roster.toml"), SigningKey.load(folder / "keys" / "shuffler")
    shuffling = Shuffling(folder / "shuffler.sqlite", roster=roster, key=key)
    config = shuffler_config(
        shuffling,
        host="127.0.0.1",
        port=port,
        certificate=str(folder / "tls.pem"),
        key=str(folder / "tls.key"),
    )
    server = uvicorn.Server(config)

    def end(stop: Event) -> None:
        stop.wait()
        server.should_exit = True

    if stop is not None:
        Thread(target=end, args=(stop,)).start()
    server.run()
    shuffling.close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _found(folder: Path, port: int) -> tuple[Roster, SigningKey, OpeningKey]:
    """Write the keys, certificates and the roster of a federation."""
    server, opening, keys = SigningKey.make(), OpeningKey.make(), {n: SigningKey.make() for n in NAMES}
    shuffler = SigningKey.make()
    (folder / "keys").mkdir(mode=0o700)
    for name, key in (*keys.items(), ("shuffler", shuffler)):
        key.save(folder / "keys" / name)
        (folder / name).mkdir(mode=0o700)
    authority = make_authority("bench", now=_now())
    authority.save(folder / "ca.pem", folder / "keys" / "ca")
    authority.issue(["127.0.0.1"], now=_now()).save(folder / "tls.pem", folder / "tls.key")
    entry = ShufflerEntry(verify=shuffler.public.to_text(), url=f"https://127.0.0.1:{port}")
    roster = Roster(
        federation="bench",
        server=ServerEntry(
            verify=server.public.to_text(), seal=opening.public.to_text(), url="https://127.0.0.1"
        ),
        shuffler=entry,
        silos=tuple(SiloEntry(name=n, size=ROWS, verify=key.public.to_text()) for n, key in keys.items()),
    )
    roster.save(folder / "roster.toml")
    return roster, server, opening


def _deployed(trust: TrustModel, rounds: int, *, threads: bool) -> tuple[list[float], float]:
    """Seconds of each round between processes, and bytes on the wire of one of them."""
    plan, here = _plan(trust, rounds), multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = _free_port()
        roster, key, opening = _found(folder, port)
        limit = PrivacyBudget(1e9, 0.5)
        for name in NAMES:
            Consents(folder / name / CONSENT_FILE).give("bench", plan.digest(), "run", limit=limit)
        hub = Hub(roster)
        url = stack.enter_context(
            serving(hub, host="127.0.0.1", port=0, certificate=folder / "tls.pem", key=folder / "tls.key")
        )
        door = RemoteShuffler(f"https://127.0.0.1:{port}", trust=client_context(folder / "ca.pem"))
        stack.callback(door.close)
        url_of_shuffler = f"https://127.0.0.1:{port}"
        works: list[tuple[Any, tuple[Any, ...]]] = [
            (_serve_silo, (name, folder, url, url_of_shuffler)) for name in NAMES
        ]
        works.append((_serve_shuffler, (folder, port)))
        stop = Event()
        for work, args in works:
            one = Thread(target=work, args=(*args, stop)) if threads else here.Process(target=work, args=args)
            one.start()
            stack.callback(one.join)
            stack.callback(stop.set if threads else one.kill)
        until = time.monotonic() + _DEADLINE
        while len(hub.present()) < SILOS and time.monotonic() < until:
            time.sleep(0.05)
        federation = RemoteFederation(
            roster,
            key,
            hub,
            journal=stack.enter_context(RunJournal(folder / "run.journal")),
            shuffler=door,
            opening=opening,
            deadline=_DEADLINE,
        )
        ask, w, times = federation.open(plan), np.zeros(DIM), []
        for step in range(rounds):
            start = time.perf_counter()
            (mean,) = ask(step, {"w": w}, (RADIUS,))
            times.append(time.perf_counter() - start)
            w = w - 0.1 * mean
        traffic = ask.traffic
        wire = float(traffic.bytes_up.sum() + traffic.bytes_down.sum()) / rounds
    return times, wire


def _in_process(trust: TrustModel, rounds: int) -> float:
    """Least seconds of a round of the same plan without a network."""
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            (Path(folder) / name).mkdir()
        silos = [_silo(name, Path(folder)) for name in NAMES]
        ask, w, best = InProcess(silos).open(_plan(trust, rounds)), np.zeros(DIM), math.inf
        for step in range(rounds):
            start = time.perf_counter()
            ask(step, {"w": w}, (RADIUS,))
            best = min(best, time.perf_counter() - start)
    return best


def _measured(trust: TrustModel, smoke: bool) -> dict[str, float]:
    rounds = 2 if smoke else 20
    times, wire = _deployed(trust, rounds, threads=smoke)
    median = float(np.median(times))
    return {
        "rounds": rounds,
        "seconds": median,
        "least_seconds": min(times),
        "in_process_seconds": _in_process(trust, min(rounds, 5)),
        "bytes": wire,
        "stock_seconds": STOCK_SECONDS,
        "times_faster_than_stock": STOCK_SECONDS / median,
    }


def _say(found: dict[str, float]) -> str:
    return (
        f"median {1e3 * found['seconds']:.0f} ms a round, best {1e3 * found['least_seconds']:.0f}; in one "
        f"process {1e3 * found['in_process_seconds']:.0f}; {found['times_faster_than_stock']:.0f} times "
        f"faster than the {found['stock_seconds']} s of stock Flower"
    )


CASES = (
    Case(
        "deployed/local",
        "four silo processes, 100 kB, TLS, ledgers on disk: ten times faster than stock Flower",
        lambda smoke: _measured(TrustModel.LOCAL, smoke),
        _say,
    ),
    Case(
        "deployed/shuffled",
        "the same through a shuffler process: at most 1 s more",
        lambda smoke: _measured(TrustModel.SHUFFLE, smoke),
        _say,
    ),
)

if __name__ == "__main__":
    print(_measured(TrustModel(sys.argv[1]), smoke=False))
