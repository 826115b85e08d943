"""A founded federation in a folder, with its silos as services of this process."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tacit.federation import Silo
from tacit.federation.network.channel import LocalChannel
from tacit.federation.network.consent import Consents
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.network.silo_service import CONSENT_FILE, LEDGER_FILE, SiloService
from tacit.jobs import JobConfig
from tacit.jobs.deployed.configs import ServerConfig, read_config
from tacit.jobs.deployed.demo import change_config
from tacit.jobs.deployed.founding import Founded, Founding, found
from tacit.learning.algorithms import statistics_of
from tacit.ledger import Ledger
from tacit.privacy import PrivacyBudget

SILOS = 3
NAMES = [f"silo-{k}" for k in range(1, SILOS + 1)]


def founded(folder: Path, **job: Any) -> Founded:
    config = {"silos": f"iid:{SILOS}", "delta": 1e-5, "epsilon": 4.0, "name": "ward", "rounds": 4}
    founding = Founding(name="ward", job=JobConfig.of(config | job), silos=[(name, 1) for name in NAMES])
    return found(founding, folder / "fed", now=dt.datetime.now(dt.UTC))


def server_config(fed: Founded, **changes: Any) -> ServerConfig:
    change_config(fed.folder / "server.toml", {"deadline": 20.0, "patience": 30.0, **changes})
    return read_config(fed.folder / "server.toml", ServerConfig)


def consent(fed: Founded, name: str) -> None:
    state = make_private_folder(fed.folder / name / "state")
    limit = fed.job.settings.budget if fed.job.trust in ("local", "shuffle") else None
    Consents(state / CONSENT_FILE).give("ward", fed.prepared.plan.digest(), fed.job.run, limit=limit)


@contextmanager
def silos_of(fed: Founded) -> Iterator[LocalChannel]:
    """Start the service of every silo anew, on the state that it has."""
    services = [_service(fed, k, name) for k, name in enumerate(NAMES)]
    channel = LocalChannel({one.name: one.handle for one in services})
    try:
        yield channel
    finally:
        channel.close()
        for one in services:
            one.close()


def ledger_of(fed: Founded, name: str) -> Path:
    return fed.folder / name / "state" / LEDGER_FILE


def _service(fed: Founded, k: int, name: str) -> SiloService:
    terms, records, settings = fed.job.terms, fed.job.records, fed.job.settings
    assert records is not None
    index, path = records.train[k], ledger_of(fed, name)
    own = fed.job.trust in ("local", "shuffle")
    make_private_folder(path.parent)
    ledger = None
    if own and path.exists():
        ledger = Ledger.open(path)
    elif own:
        limit = PrivacyBudget(terms.config.epsilon, terms.delta)
        ledger = Ledger.create(path, limit=limit, neighbours=terms.neighbours)
    silo = Silo(
        terms.units(terms.rows(records.X[index]), records.y[index]),
        statistics_of(settings.objective),
        name=name,
        ledger=ledger,
        trusts_server=not own,
    )
    return SiloService(
        silo,
        roster=fed.roster,
        key=SigningKey.load(fed.folder / name / "signing.pem"),
        state=path.parent,
        encoding=settings.encoding,
        clauses=lambda _: terms.clauses(),
    )


def toml(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.toml.decode(path.read_bytes())
    return found
