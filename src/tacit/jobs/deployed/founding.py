"""A new federation: certificates, roster, job and plan, and one configuration for every party.

Parties that made their keys where they live bring a card each. For a trial on one machine, keys and cards are
made here, and nothing else is different. All of it is made in a folder for all or nothing.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from tacit import data
from tacit.errors import ParameterError, check_count, printable, shown
from tacit.federation.network.cards import Card, roster_of_cards
from tacit.federation.network.certificates import Credential, make_authority, save_certificate
from tacit.federation.network.roster import Roster
from tacit.jobs.config import JobConfig
from tacit.jobs.data import load_job_data
from tacit.jobs.deployed.configs import CONFIG_VERSION
from tacit.jobs.deployed.federation_job import FederationJob, read_job
from tacit.jobs.deployed.founding_words import readme
from tacit.jobs.deployed.joining import OPENING, SIGNING, TLS_KEY, make_keys, new_folder
from tacit.learning.algorithms.named import protected
from tacit.learning.preparation import Prepared
from tacit.privacy import TrustModel, Unit, guarantee

__all__ = [
    "CA_FILE",
    "CA_KEY",
    "ELSEWHERE",
    "ROSTER_FILE",
    "Founded",
    "Founding",
    "found",
    "price",
    "silos_of_tables",
    "write_certificate",
]

ELSEWHERE: Final = ("columns", "public", "ledger", "out", "silo_column", "seed")
"""Settings of a job that it has not between machines."""

_COPIED: Final = ("columns", "public", "test")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - silos are elsewhere; what is asked there is signed
_PORT: Final = 443
_RUNS: Final = "runs"
_AUTHORITY: Final = "authority"
CA_FILE: Final = "ca.pem"
CA_KEY: Final = f"{_AUTHORITY}/ca.key"
ROSTER_FILE: Final = "roster.toml"
"""Where the folder of a federation has its authority and its roster."""


@dataclass(frozen=True, kw_only=True)
class Founding:
    """What a new federation is to be.

    Attributes:
        name: Of the federation.
        job: What is trained; for tables its `data` is only a title.
        silos: Name and public number of units of each; for a data set the numbers are found out.
        cards: Of parties that have made their own keys; without any, keys are made for everybody.
        columns: Public description of the columns of the silos' tables; None for a data set.
        public: Public records, as in `tacit train`.
        test: Public records to score on.
        tables: The table of each silo, where whoever founds the federation knows; else each fills it in.
        server: Where parties reach the server.
        shuffler: Where they reach the shuffler.
    """

    name: str
    job: JobConfig
    silos: Sequence[tuple[str, int]]
    cards: Sequence[Card] = ()
    columns: Path | None = None
    public: Path | None = None
    test: Path | None = None
    tables: Sequence[Path] | None = None
    server: str = "https://127.0.0.1:8443"
    shuffler: str = "https://127.0.0.1:8444"


@dataclass(frozen=True, kw_only=True)
class Founded:
    """What was made.

    Attributes:
        folder: Where.
        roster: Who takes part.
        job: What they train.
        prepared: Its plan.
        files: Every file, by its path in the folder.
        cards: Of all parties.
    """

    folder: Path
    roster: Roster
    job: FederationJob
    prepared: Prepared
    files: tuple[str, ...]
    cards: tuple[Card, ...]


def found(founding: Founding, out: Path, *, now: dt.datetime) -> Founded:
    """Make the folder of a new federation.

    Args:
        founding: What it is to be.
        out: A folder that is not there yet, or is empty.
        now: The time, with its zone.

    Raises:
        ParameterError: There is something in the folder: keys are never overwritten; or the job fits no plan.
        OSError: The folder cannot be written.
    """
    with new_folder(out) as made:
        sizes = _sizes(founding)
        cards = tuple(founding.cards) or _make_cards(founding, sizes, made)
        roster = roster_of_cards(founding.name, cards, sizes)
        if roster.shuffler is None and founding.job.trust == "shuffle":
            raise ParameterError("cards must have that of a shuffler, because the job trusts one.")
        roster.save(made / ROSTER_FILE)
        _write_certificates(founding.name, cards, made, now=now)
        job, prepared = _write_public(founding, roster, made)
        _write_configs(founding, roster, made)
        text = readme(founding.name, roster, job, cards=cards, joined=bool(founding.cards))
        (made / "README.md").write_text(text, encoding="utf-8")
        files = tuple(sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()))
    return Founded(folder=out, roster=roster, job=job, prepared=prepared, files=files, cards=cards)


def silos_of_tables(
    job: JobConfig, columns: Path | None
) -> tuple[list[tuple[str, int]], Path, tuple[Path, ...]]:
    """Return names and numbers of units of the silos of tables, their description, and the tables.

    Raises:
        ParameterError: The tables are not described in full.
        DataError: They cannot be read.
    """
    tables = data.find_tables(job.data)
    description = tables.description if columns is None else columns
    spec = data.ColumnsSpec.read(description)
    label = job.label or (None if spec.label is None else spec.label.column)
    if label is None:
        raise ParameterError(f"label must be named, by --label or by {description}, got None.")
    person = job.person or spec.person
    silos = []
    for name, file in zip(tables.silos, tables.files, strict=True):
        raw = job.stated is not None
        table = data.load_table(file, label=label, person_column=person, columns=spec, task=job.task, raw=raw)
        more = tuple(name for name in table.columns.columns if name not in spec.columns)
        if open_columns := table.bounds_source or more:
            names = ", ".join(map(printable, open_columns))
            why = f"{names} would be read off it" if table.bounds_source else f"it leaves open {names}"
            raise ParameterError(
                f"columns must describe every column of {file}: nobody else sees it, and {why}."
            )
        units = table.n if table.persons is None else len(set(table.persons))
        if protected(job.algorithm, persons=person is not None) is Unit.PARTY:
            units = 1
        silos.append((printable(name), units))
    return silos, description, tables.files


def _sizes(founding: Founding) -> list[int]:
    """Return the numbers of units that silos train on."""
    check_count("the number of silos", len(founding.silos))
    if len({name for name, _ in founding.silos}) < len(founding.silos):
        raise ParameterError("names must be different, got one of them twice.")
    for name, _ in founding.silos:
        # Its folder is given to it: with another's in its place, it would get the key of the authority.
        if name.casefold() in (_AUTHORITY, _RUNS):
            raise ParameterError(f"a silo must not be called {shown(name)}: a folder of that name is needed.")
    if founding.job.is_table:
        return [size for _, size in founding.silos]
    found = load_job_data(founding.job)
    if len(found.sizes) != len(founding.silos):
        raise ParameterError(
            f"silos={founding.job.silos!r} makes {len(found.sizes)} silos of {founding.job.source}, got "
            f"{len(founding.silos)} names."
        )
    return found.sizes


def _make_cards(founding: Founding, sizes: Sequence[int], folder: Path) -> tuple[Card, ...]:
    """Write the keys of all parties, and return their cards."""
    return (
        make_keys(folder, "server", name="server", url=founding.server),
        # Whatever this job trusts: the next one has the same parties.
        make_keys(folder, "shuffler", name="shuffler", url=founding.shuffler),
        *(
            make_keys(folder, "silo", name=name, size=size)
            for (name, _), size in zip(founding.silos, sizes, strict=True)
        ),
    )


def _write_certificates(name: str, cards: Sequence[Card], folder: Path, *, now: dt.datetime) -> None:
    """Write a new authority, and the certificates of server and shuffler."""
    authority = make_authority(name, now=now)
    authority.save(folder / CA_FILE, folder / CA_KEY)
    for one in cards:
        if one.role != "silo":
            write_certificate(authority, one, folder / one.name / "tls.pem", now=now)


def write_certificate(authority: Credential, card: Card, path: Path, *, now: dt.datetime) -> None:
    """Write the certificate of a service to a new file; errors as `Credential.certify` and `save`."""
    host = urlsplit(card.url or "").hostname or ""
    hosts = [host, *(one for one in _LOOPBACK if one != host)] if host in _LOOPBACK else [host]
    save_certificate(path, authority.certify(card.tls or "", hosts, now=now))


def _write_public(founding: Founding, roster: Roster, folder: Path) -> tuple[FederationJob, Prepared]:
    """Write what everybody gets: job, columns, public records and the priced plan."""
    values = {
        name: value
        for name, value in msgspec.to_builtins(founding.job).items()
        if value is not None and value != {} and name not in ELSEWHERE
    }
    (folder / "job.toml").write_bytes(msgspec.toml.encode(values))
    copies: dict[str, Path] = {}
    for name in _COPIED:
        source: Path | None = getattr(founding, name)
        if source is None:
            continue
        ending = ".toml" if name == "columns" else "".join(source.suffixes)
        copies[name] = folder / f"{name}{ending}"
        try:
            shutil.copyfile(source, copies[name])
        except OSError as error:
            raise ParameterError(f"{name}: {source} cannot be read: {error.strerror}.") from error
    job = FederationJob.of(read_job(folder / "job.toml"), roster, **copies)
    prepared = job.prepared()
    (folder / "plan.toml").write_text(
        f"# {price(job, prepared)}\n{prepared.plan.to_toml()}", encoding="utf-8"
    )
    return job, prepared


def price(job: FederationJob, prepared: Prepared) -> str:
    """Say in one line what a plan costs whoever it costs most."""
    plan, sizes = prepared.plan, job.terms.facts.sizes
    if job.settings.budget is None:
        return "This plan adds no noise: nothing is claimed."
    each = [sizes] if plan.trust is TrustModel.CENTRAL else [[size] for size in sorted(set(sizes))]

    def most(trust: TrustModel) -> float:
        return max(guarantee(plan.event(one, trust), plan.delta, observer="anybody").epsilon for one in each)

    costs = f"this plan costs at most epsilon {most(plan.trust):.6g} at delta {plan.delta:.3g}"
    alone = f"; who sees all messages of a silo alone learns up to {most(TrustModel.LOCAL):.6g}"
    return f"Under {plan.trust} trust {costs}{alone if plan.trust is TrustModel.AGGREGATE else ''}."


def _write_configs(founding: Founding, roster: Roster, folder: Path) -> None:
    """Write one configuration for every party."""
    copied = {name: path.name for name in _COPIED for path in folder.glob(f"{name}.*")}
    shared: dict[str, Any] = {"roster": ROSTER_FILE, "job": "job.toml", "plan": "plan.toml", **copied}
    test = {"test": shared.pop("test")} if "test" in shared else {}
    _config(folder / "server.toml", shared | test | _service("server", roster.server.url) | {
        "opening": f"server/{OPENING}", "authority": CA_FILE, "out": _RUNS,
    })  # fmt: skip
    if roster.shuffler is not None:
        shuffler = _service("shuffler", roster.shuffler.url)
        _config(folder / "shuffler.toml", {"roster": ROSTER_FILE, **shuffler})
    owned: dict[str, Any] = {}
    if founding.job.trust == TrustModel.AGGREGATE and not founding.cards:
        owned["colluding"] = founding.job.colluding  # of a trial; owners of their own keys say it themselves
    for k, (name, _) in enumerate(founding.silos):
        table = {}
        if founding.job.is_table:
            told = None if founding.tables is None else founding.tables[k]
            table = {"data": data.FILL_IN if told is None else str(told.absolute())}
        _config(folder / f"{name}.toml", shared | table | owned | {
            "name": name, "signing": f"{name}/{SIGNING}", "authority": CA_FILE, "state": f"{name}/state",
        })  # fmt: skip


def _service(role: str, url: str) -> dict[str, Any]:
    """Return what the configuration of a service has."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return {
        "signing": f"{role}/{SIGNING}",
        "certificate": f"{role}/tls.pem",
        "certificate_key": f"{role}/{TLS_KEY}",
        "state": f"{role}/state",
        "host": host if host in _LOOPBACK else _EVERYWHERE,
        "port": parts.port or _PORT,
    }


def _config(path: Path, values: dict[str, Any]) -> None:
    """Write a configuration that no other file has the place of."""
    if path.exists() or path.stem == _AUTHORITY:
        raise ParameterError(f"a silo must not be called {shown(path.stem)}: a file of that name is needed.")
    path.write_bytes(msgspec.toml.encode({"version": CONFIG_VERSION, **values}))
