"""A federation over channels in this process: silos as services with state on disk, server, shuffler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from tacit.federation import Plan, Silo
from tacit.federation.network.channel import Channel, LocalChannel
from tacit.federation.network.consent import Consents
from tacit.federation.network.journal import RunJournal
from tacit.federation.network.remote import RemoteFederation
from tacit.federation.network.rounds import RemoteRounds
from tacit.federation.network.shuffler_client import LocalShuffler, ShufflerDoor
from tacit.federation.network.shuffling import Shuffling
from tacit.federation.network.silo_service import CONSENT_FILE, SiloService
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.federation.network.parties import NOW, Parties, parties
from tests.federation.world import DIM, RADIUS, STATISTICS, Rows, ledger_at, rows


def parties_of(sizes: Sequence[int]) -> Parties:
    """A federation of silos of these sizes."""
    known = parties(len(sizes))
    silos = tuple(
        msgspec.structs.replace(one, size=size) for one, size in zip(known.roster.silos, sizes, strict=True)
    )
    roster = msgspec.structs.replace(known.roster, silos=silos)
    return Parties(roster, known.server, known.opening, known.shuffler, known.silos)


def service(known: Parties, silo: Silo, state: Path, *, door: ShufflerDoor | None = None) -> SiloService:
    """A silo as a service; its state outlives it."""
    key = known.silos[silo.name]
    return SiloService(silo, roster=known.roster, key=key, state=state, door=door, clock=lambda: NOW)


def consent(known: Parties, plan: Plan, run: str, state: Path) -> None:
    """Have the owner of a silo agree to whatever the plan costs."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    priced = plan.trust is not TrustModel.CENTRAL and plan.delta > 0
    limit = PrivacyBudget(1e6, 0.5) if priced else None
    Consents(state / CONSENT_FILE).give(known.roster.federation, plan.digest(), run, limit=limit)


def channel_of(services: Iterable[SiloService]) -> LocalChannel:
    """The way to services of this process."""
    return LocalChannel({one.name: one.handle for one in services})


def server(known: Parties, channel: Channel, **fields: Any) -> RemoteFederation:
    """The server's federation."""
    fields = {"deadline": 5.0, "clock": lambda: NOW, "opening": known.opening, **fields}
    return RemoteFederation(known.roster, known.server, channel, **fields)


class IdleTime:
    """Stands for the module `time`: only waiting takes any."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


class PatientChannel(LocalChannel):
    """A channel whose deadline passes at once where a silo is away, and never where one is slow."""

    def __init__(self, handlers: Mapping[str, Callable[[bytes], bytes]], idle: IdleTime) -> None:
        super().__init__(handlers)
        self._idle = idle

    def exchange(self, requests: Mapping[str, bytes], *, deadline: float) -> Iterator[tuple[str, bytes]]:
        def ask(name: str) -> tuple[str, bytes] | None:
            with suppress(ConnectionError):
                return name, self._handlers[name](requests[name])
            return None

        came = [one.result() for one in as_completed([self._pool.submit(ask, name) for name in requests])]
        yield from filter(None, came)
        if None in came:
            self._idle.sleep(deadline)


class SteadySilo(Silo):
    """A silo whose noise follows from its name and the step alone, so that a restart changes nothing."""

    def _compute(self, begun: Any, kept: Any) -> Any:
        self._rng = simulated(7, self.name, begun.task.query.step)
        return super()._compute(begun, kept)


@dataclass
class World:
    """A federation whose parties live as long as they are not killed; what they remember is in `folder`.

    Attributes:
        plan: What is asked.
        folder: Of all state.
        run: Name of the run.
        keeps: Whether silos keep ledgers.
        clock: Of the shuffler.
    """

    plan: Plan
    folder: Path
    sizes: Sequence[int] = (8, 20, 13)
    run: str = "run"
    keeps: bool = True
    clock: Callable[[], float] = time.monotonic
    services: dict[str, SiloService] = field(default_factory=dict)
    shuffling: Shuffling | None = None
    journal: RunJournal | None = None
    channel: LocalChannel | None = None

    def __post_init__(self) -> None:
        self.known = parties_of(self.sizes)
        self.names = [one.name for one in self.known.roster.silos]
        for name in self.names:
            consent(self.known, self.plan, self.run, self.folder / name)
        if self.plan.trust is TrustModel.SHUFFLE:
            self.shuffling = self.shuffler()

    def silo(self, name: str) -> Silo:
        """A silo as a new process makes it."""
        k = self.names.index(name)
        central = self.plan.trust is TrustModel.CENTRAL
        path = self.folder / name / "ledger.sqlite"
        ledger = None
        if self.keeps and not central and self.plan.delta > 0:
            ledger = Ledger.open(path) if path.exists() else ledger_at(path, epsilon=1e6)
        return SteadySilo(
            Rows(rows(k, self.sizes[k])),
            STATISTICS,
            name=name,
            ledger=ledger,
            trusts_server=ledger is None,
            trusts_shuffler=True,
            rng=simulated(7, name),
        )

    def service(self, name: str) -> SiloService:
        """The service of a silo; started anew where it was killed."""
        if name not in self.services:
            self.services[name] = service(self.known, self.silo(name), self.folder / name, door=self.door)
        return self.services[name]

    def kill(self, name: str) -> None:
        """End the service of a silo."""
        if name in self.services:
            self.services.pop(name).close()

    def shuffler(self) -> Shuffling:
        """The shuffler as a new process makes it."""
        path = self.folder / "shuffler.sqlite"
        known = self.known
        return Shuffling(path, roster=known.roster, key=known.shuffler, clock=self.clock, now=lambda: NOW)

    def kill_shuffler(self) -> None:
        """End the shuffler, and start it anew."""
        assert self.shuffling is not None
        self.shuffling.close()
        self.shuffling = self.shuffler()

    @property
    def door(self) -> ShufflerDoor | None:
        """The way to whichever shuffler lives now."""
        return None if self.plan.trust is not TrustModel.SHUFFLE else cast(ShufflerDoor, _Door(self))

    def handler(self, name: str) -> Callable[[bytes], bytes]:
        """What takes the requests of a silo, whichever process of it lives now."""
        return lambda request: self.service(name).handle(request)

    def begin(self, channel: Channel | None = None, **fields: Any) -> RemoteRounds:
        """Start the server, or start it anew: it knows what is in its journal."""
        if self.journal is not None:
            self.journal.close()
        self.journal = RunJournal(self.folder / "run.journal")
        if channel is None:
            if self.channel is not None:
                self.channel.close()
            channel = self.channel = LocalChannel({name: self.handler(name) for name in self.names})
        federation = server(self.known, channel, journal=self.journal, shuffler=self.door, **fields)
        return federation.open(self.plan, run=self.run)

    def spent(self) -> list[float]:
        """What each ledger was charged, run by run."""
        found = []
        for name in self.names:
            with Ledger.open(self.folder / name / "ledger.sqlite") as ledger:
                (entry,) = ledger.entries()
                found.append(entry.epsilon)
        return found

    def close(self) -> None:
        """End everybody."""
        for name in list(self.services):
            self.kill(name)
        for one in (self.channel, self.journal, self.shuffling):
            if one is not None:
                one.close()


@dataclass
class _Door:
    """Goes to the shuffler that lives now."""

    world: World

    def __getattr__(self, name: str) -> Any:
        assert self.world.shuffling is not None
        return getattr(LocalShuffler(self.world.shuffling), name)


def whole_run(ask: Any, rounds: int) -> Array:
    """An algorithm whose every query rests on all answers before."""
    w = np.zeros(DIM)
    for step in range(rounds):
        (mean,) = ask(step, {"w": w}, (RADIUS,))
        w = w - 0.1 * mean
    return w
