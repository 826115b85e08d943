"""A new federation: keys, certificates, roster, job and plan, and one configuration for every party.

All of it is made in a folder beside the final one, which then takes its name, for all or nothing.
"""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from tacit import data
from tacit.errors import ParameterError, check_count, printable, shown
from tacit.federation.network.certificates import Credential, make_authority
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.roster import Roster, ServerEntry, ShufflerEntry, SiloEntry
from tacit.jobs.config import JobConfig
from tacit.jobs.data import load_job_data
from tacit.jobs.deployed.configs import CONFIG_VERSION
from tacit.jobs.deployed.federation_job import FederationJob, read_job
from tacit.jobs.deployed.founding_words import readme
from tacit.learning.preparation import Prepared
from tacit.privacy import TrustModel, guarantee

__all__ = ["ELSEWHERE", "Founded", "Founding", "found", "hosts_of", "price", "silos_of_tables"]

ELSEWHERE: Final = ("columns", "public", "ledger", "out", "silo_column", "seed")
"""Settings of a job that it has not between machines."""

_COPIED: Final = ("columns", "public", "test")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - silos are elsewhere; what is asked there is signed
_PORT: Final = 443
_PRIVATE: Final = 0o700


@dataclass(frozen=True, kw_only=True)
class Founding:
    """What a new federation is to be.

    Attributes:
        name: Of the federation.
        job: What is trained; for tables its `data` is only a title.
        silos: Name and public number of units of each; for a data set the numbers are found out.
        columns: Public description of the columns of the silos' tables; None for a data set.
        public: Public records that features are scaled by.
        test: Public records to score on.
        tables: The table of each silo, where whoever founds the federation knows; else each fills it in.
        server: Where parties reach the server.
        shuffler: Where they reach the shuffler.
    """

    name: str
    job: JobConfig
    silos: Sequence[tuple[str, int]]
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
    """

    folder: Path
    roster: Roster
    job: FederationJob
    prepared: Prepared
    files: tuple[str, ...]


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
    _check_new(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        roster = _write_keys(founding, made, now=now)
        job, prepared = _write_public(founding, roster, made)
        _write_configs(founding, made)
        (made / "README.md").write_text(readme(founding.name, roster, job), encoding="utf-8")
        made.chmod(_PRIVATE)
        files = tuple(sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()))
        _check_new(out)
        made.replace(out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return Founded(folder=out, roster=roster, job=job, prepared=prepared, files=files)


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
        table = data.load_table(file, label=label, person_column=person, columns=spec, task=job.task)
        if table.bounds_source:
            raise ParameterError(
                f"columns must describe every column of {file}: nobody else sees it, and "
                f"{', '.join(map(printable, table.bounds_source))} would be read off it."
            )
        units = table.n if table.persons is None else len(set(table.persons))
        silos.append((printable(name), units))
    return silos, description, tables.files


def _check_new(out: Path) -> None:
    """Refuse a folder that holds anything."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ParameterError(
            f"{out} is there already, and its keys are never overwritten: name another folder, or move "
            "that one away."
        )


def _write_keys(founding: Founding, folder: Path, *, now: dt.datetime) -> Roster:
    """Write all private keys, the certificates and the roster."""
    check_count("the number of silos", len(founding.silos))
    if len({name for name, _ in founding.silos}) < len(founding.silos):
        raise ParameterError("names must be different, got one of them twice.")
    entries = []
    for name, size in _sized(founding):
        key = SigningKey.make()
        # Made first: it refuses a name that is no part of a path.
        entries.append(SiloEntry(name=name, size=size, verify=key.public.to_text()))
        key.save(folder / name / "signing.pem")
    server, opening = SigningKey.make(), OpeningKey.make()
    server.save(folder / "server" / "signing.pem")
    opening.save(folder / "server" / "opening.pem")
    key = SigningKey.make()  # of a shuffler, whatever this job trusts: the next one has the same parties
    key.save(folder / "shuffler" / "signing.pem")
    roster = Roster(
        federation=founding.name,
        server=ServerEntry(
            verify=server.public.to_text(), seal=opening.public.to_text(), url=founding.server
        ),
        shuffler=ShufflerEntry(verify=key.public.to_text(), url=founding.shuffler),
        silos=tuple(entries),
    )
    roster.save(folder / "roster.toml")
    authority = make_authority(founding.name, now=now)
    authority.save(folder / "ca.pem", folder / "authority" / "ca.key")
    _issue(authority, founding.server, folder / "server", now=now)
    _issue(authority, founding.shuffler, folder / "shuffler", now=now)
    return roster


def _sized(founding: Founding) -> list[tuple[str, int]]:
    """Return the silos with the numbers of units that they train on."""
    if founding.job.is_table:
        return list(founding.silos)
    found = load_job_data(founding.job)
    if len(found.sizes) != len(founding.silos):
        raise ParameterError(
            f"silos={founding.job.silos!r} makes {len(found.sizes)} silos of {founding.job.source}, got "
            f"{len(founding.silos)} names."
        )
    return [(name, size) for (name, _), size in zip(founding.silos, found.sizes, strict=True)]


def hosts_of(host: str) -> list[str]:
    """Return the names of a service that is reached by one of them: this machine has several."""
    return [host, *(one for one in _LOOPBACK if one != host)] if host in _LOOPBACK else [host]


def _issue(authority: Credential, url: str, folder: Path, *, now: dt.datetime) -> None:
    """Write the certificate of a service."""
    authority.issue(hosts_of(urlsplit(url).hostname or ""), now=now).save(
        folder / "tls.pem", folder / "tls.key"
    )


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
    most = max(guarantee(plan.event(one, plan.trust), plan.delta, observer="anybody").epsilon for one in each)
    return f"Under {plan.trust} trust this plan costs at most epsilon {most:.6g} at delta {plan.delta:.3g}."


def _write_configs(founding: Founding, folder: Path) -> None:
    """Write one configuration for every party."""
    copied = {name: path.name for name in _COPIED for path in folder.glob(f"{name}.*")}
    shared: dict[str, Any] = {"roster": "roster.toml", "job": "job.toml", "plan": "plan.toml", **copied}
    test = {"test": shared.pop("test")} if "test" in shared else {}
    _config(folder / "server.toml", shared | test | _service("server", founding.server) | {
        "opening": "server/opening.pem", "authority": "ca.pem", "out": "runs",
    })  # fmt: skip
    _config(folder / "shuffler.toml", {"roster": "roster.toml", **_service("shuffler", founding.shuffler)})
    for k, (name, _) in enumerate(founding.silos):
        table = {}
        if founding.job.is_table:
            told = None if founding.tables is None else founding.tables[k]
            table = {"data": data.FILL_IN if told is None else str(told.absolute())}
        _config(folder / f"{name}.toml", shared | table | {
            "name": name, "signing": f"{name}/signing.pem", "authority": "ca.pem", "state": f"{name}/state",
        })  # fmt: skip


def _service(role: str, url: str) -> dict[str, Any]:
    """Return what the configuration of a service has."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return {
        "signing": f"{role}/signing.pem",
        "certificate": f"{role}/tls.pem",
        "certificate_key": f"{role}/tls.key",
        "state": f"{role}/state",
        "host": host if host in _LOOPBACK else _EVERYWHERE,
        "port": parts.port or _PORT,
    }


def _config(path: Path, values: dict[str, Any]) -> None:
    """Write a configuration that no other file has the place of."""
    if path.exists():
        raise ParameterError(f"a silo must not be called {shown(path.stem)}: a file of that name is needed.")
    path.write_bytes(msgspec.toml.encode({"version": CONFIG_VERSION, **values}))
