"""What a new federation says to whoever founded it: what to give to whom."""

from __future__ import annotations

from tacit.federation.network.roster import Roster
from tacit.jobs.deployed.federation_job import FederationJob

__all__ = ["readme"]


def readme(name: str, roster: Roster, job: FederationJob) -> str:
    """Return the README of the folder.

    Args:
        name: Of the federation.
        roster: Who takes part.
        job: What they train.
    """
    shared = ["roster.toml", "job.toml", "plan.toml", "ca.pem"]
    shared += [] if job.records is not None else ["columns.toml"]
    everybody = ", ".join(f"`{one}`" for one in shared)
    silos = "\n".join(
        f"| {one.name} | `{one.name}.toml`, `{one.name}/` | `tacit silo check --config {one.name}.toml "
        f"--accept`, then `tacit silo --config {one.name}.toml` |"
        for one in roster.silos
    )
    idle = "" if job.trust == "shuffle" else "; this job asks nothing of it"
    shuffler = (
        ""
        if roster.shuffler is None
        else f"| shuffler | `shuffler.toml`, `shuffler/` | `tacit shuffler --config shuffler.toml`{idle} |\n"
    )
    return f"""# The federation {name}

It trains `{job.run}` under {job.trust} trust. Everybody gets {everybody}: they are public, and the same
for all. Each party also gets its own configuration and the folder of its private keys, on a way that nobody
else reads.

| party | gets besides | starts |
|---|---|---|
| server | `server.toml`, `server/` | `tacit server --config server.toml` |
{shuffler}{silos}

- `authority/ca.key` issues certificates. Keep it off every machine that is on the network.
- Remove from this folder what you have handed out. Whoever has `server/` is the server; whoever has the
  folder of a silo can answer in its name, but has none of its records.
- New keys for a party, between two runs: `tacit federation rotate FOLDER --party NAME`, or `--revoke`.
- A silo answers nothing before its owner has agreed to the plan (`tacit silo check`).
"""
