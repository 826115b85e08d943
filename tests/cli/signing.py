"""Runs of a deployed federation as its tests need them: every party signs what the statement says of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.federation.network.keys import SigningKey
from tacit.federation.network.roster import SERVER, Roster, SiloEntry
from tacit.federation.network.signatures import sign_claims
from tacit.jobs import Job, JobConfig, JobResult
from tacit.privacy.signed import ClaimSignature
from tacit.reports import write_run
from tacit.reports.statement import guarantees_about, released
from tests.federation.network.parties import parties, signing_key
from tests.jobs.tables import write_patients

SILOS = ("a", "b", "c")
SERVER_KEY = signing_key("server")


def key_of(name: str) -> SigningKey:
    return SERVER_KEY if name == SERVER else signing_key(f"signs for {name}")


def roster(*, federation: str = "lab", **changed: Any) -> Roster:
    """Return the roster of three silos; `changed` are fields of the entry of silo "a"."""
    entries = [
        {
            "name": name,
            "size": 48,
            "verify": key_of(name).public.to_text(),
            **(changed if name == "a" else {}),
        }
        for name in SILOS
    ]
    return Roster(
        federation=federation,
        server=parties().roster.server,
        silos=tuple(SiloEntry(**one) for one in entries),
    )


@cache
def trained(trust: str) -> JobResult:
    """Return a run of three silos."""
    with TemporaryDirectory() as folder:
        path = write_patients(Path(folder), silos=SILOS)
        job = JobConfig(data=str(path), label="ill", silo_column="site", rounds=2, trust=trust, delta=1e-4)
        return Job(job).run()


def signatures(
    result: JobResult, *, run: str = "winter", federation: str = "lab", plan: Any = None
) -> list[ClaimSignature]:
    """Return what all parties sign of a result."""
    claims, about = guarantees_about(result)
    plan = released(result).trained.plan if plan is None else plan
    names = dict.fromkeys(SERVER if one.silo is None else one.silo for one in about)
    return [
        sign_claims(
            key_of(name),
            [claim for claim, one in zip(claims, about, strict=True) if (one.silo or SERVER) == name],
            federation=federation,
            run=run,
            plan=plan,
            signer=name,
        )
        for name in names
    ]


def written(folder: Path, trust: str, signed: Sequence[ClaimSignature] | None = None) -> Path:
    """Write a run folder with its roster, and return the folder."""
    result = trained(trust)
    write_run(result, folder / "run", signatures=signatures(result) if signed is None else signed)
    roster().save(folder / "roster.toml")
    return folder
