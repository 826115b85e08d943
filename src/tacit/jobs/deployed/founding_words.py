"""What a new federation says to whoever founded it: what to give to whom."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.federation.network.cards import Card
from tacit.federation.network.roster import Roster
from tacit.jobs.deployed.federation_job import FederationJob

__all__ = ["readme"]

_MADE_HERE = """\
Everybody gets {everybody}: they are public, and the same
for all. Each party also gets its own configuration and the folder of its private keys, on a way that nobody
else reads."""
_JOINED = """\
Everybody gets {everybody}: they are public, and the same
for all. Each party also gets its own configuration, the server and the shuffler a certificate. Nothing of it
is secret: private keys were made where they are used, and are nowhere else. Each party puts what it gets into
the folder that `tacit federation join` made for it, beside the folder of its keys."""

_LAST_MADE_HERE = """\
- Remove from this folder what you have handed out. Whoever has `server/` is the server; whoever has the
  folder of a silo can answer in its name, but has none of its records. All keys were made here, for a trial:
  in a real federation each party makes its own (`tacit federation join`)."""
_LAST_JOINED = """\
- Compare the digits below with each party, by phone, before you hand anything out: they show that the card
  you have is the one that it made.
- Each party compares those of the roster, `tacit federation fingerprint roster.toml`, before it starts."""


def _owners(job: FederationJob, *, joined: bool) -> str:
    """Return what owners have to say themselves, as lines of a list."""
    if job.trust != "aggregate":
        return ""
    plan = job.plan
    said = "says it already, for a trial" if not joined else "leaves it open"
    return f"""\
- The plan counts on at most {plan.colluding} silos that collude with the server. How many may, each owner
  says in the silo's own configuration, `colluding = ...`, which {said}: a larger number costs more, and
  without one the silo's ledger is charged for what its messages show alone, to the server and all others.
  A new key of a silo is a new plan here: found another federation.
"""


def _code(job: FederationJob) -> str:
    """Return what silos must know of a job that names code, as lines of a list."""
    code = job.terms.config.architecture.code
    if not code:
        return ""
    return f"""\
- The job names code, `{code}`: whoever takes part runs it, on their own machine and, in a silo, with
  their records. No file here holds it. Get it on a way that you trust, read it, put it where the role is
  started, and let nobody change it: the plan's digits do not vouch for it.
"""


def readme(name: str, roster: Roster, job: FederationJob, *, cards: Sequence[Card], joined: bool) -> str:
    """Return the README of the folder.

    Args:
        name: Of the federation.
        roster: Who takes part.
        job: What they train.
        cards: Of all parties.
        joined: Whether parties have made their own keys.
    """
    shared = ["roster.toml", "job.toml", "plan.toml", "ca.pem"]
    shared += [] if job.records is not None else ["columns.toml"]
    everybody = ", ".join(f"`{one}`" for one in shared)

    def row(party: str, role: str, keys: str, starts: str) -> str:
        besides = f"`{party}.toml`" + (f", `{keys}`" if keys else "")
        return f"| {party} | {besides} | {starts.format(f'{role} --config {party}.toml')} |"

    service = "{}/tls.pem" if joined else "{}/"
    rows = [row("server", "server", service.format("server"), "`tacit {}`")]
    if roster.shuffler is not None:
        idle = "" if job.trust == "shuffle" else "; this job asks nothing of it"
        rows.append(row("shuffler", "shuffler", service.format("shuffler"), "`tacit {}`" + idle))
    rows += [
        row(
            one.name,
            "silo",
            "" if joined else f"{one.name}/",
            f"`tacit silo check --config {one.name}.toml --accept`, then `tacit {{}}`",
        )
        for one in roster.silos
    ]
    listed = "\n".join(rows)
    given = (_JOINED if joined else _MADE_HERE).format(everybody=everybody)
    digits = "\n".join(f"| {one.name} | {one.fingerprint()} |" for one in cards)
    return f"""# The federation {name}

It trains `{job.run}` under {job.trust} trust.

{given}

| party | gets besides | starts |
|---|---|---|
{listed}

- `authority/ca.key` issues certificates. Keep it off every machine that is on the network.
{_LAST_JOINED if joined else _LAST_MADE_HERE}
- A silo answers nothing before its owner has agreed to the plan (`tacit silo check`).
{_code(job)}{_owners(job, joined=joined)}
| card | digits |
|---|---|
{digits}
| roster | {roster.fingerprint()} |
"""
