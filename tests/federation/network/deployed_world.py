"""A federation over channels in this process: silos as services with state on disk, server, shuffler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tacit.federation import Plan, Silo
from tacit.federation.network.channel import Channel, LocalChannel
from tacit.federation.network.consent import Consents
from tacit.federation.network.rounds import RemoteFederation
from tacit.federation.network.shuffler_client import ShufflerDoor
from tacit.federation.network.silo_service import CONSENT_FILE, SiloService
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.network.parties import NOW, Parties, parties


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
