"""Finished jobs for tests of what is written about them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tacit.jobs import Job, JobConfig, JobResult
from tests.jobs.tables import write_charges, write_patients

NASTY = ('<script>alert("x")</script>', "north & south", "{{ 7 * 7 }}")


@cache
def compared() -> JobResult:
    """All trust models on public data with a seed: a simulation."""
    return Job(JobConfig(trust="all", epsilon=2.0, delta=1e-5, rounds=12, seed=0, name="demo")).run()


@cache
def private() -> JobResult:
    """A table of the user's own, with names that no page should take for markup."""
    return _of_table(silos=NASTY)


@cache
def persons() -> JobResult:
    """A table in which patients come three times."""
    return _of_table(silos=("a", "b"), visits=3, person="patient")


@cache
def regression() -> JobResult:
    """A regression on a table, trusting the server."""
    with TemporaryDirectory() as folder:
        path = write_charges(Path(folder))
        job = JobConfig(
            data=str(path), label="charges", silo_column="site", task="regression", trust="central", rounds=5
        )
        return Job(job).run()


@cache
def open_run() -> JobResult:
    """A run without privacy."""
    return Job(JobConfig(trust="none", rounds=5, seed=0)).run()


def _of_table(*, silos: tuple[str, ...], visits: int = 1, person: str | None = None) -> JobResult:
    """Train on a table that is gone afterwards."""
    with TemporaryDirectory() as folder:
        path = write_patients(Path(folder), silos=silos, visits=visits)
        job = JobConfig(data=str(path), label="ill", silo_column="site", person=person, rounds=5)
        return Job(job).run()
