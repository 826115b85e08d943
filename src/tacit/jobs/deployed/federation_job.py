"""The job of a federation: what its server trains without a record, and what each silo prepares of its own.

Everybody makes it of the same public files: the job, the roster and the description of the columns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tacit import data
from tacit.errors import DataError, ParameterError, shown
from tacit.federation import Federation, Plan
from tacit.federation.network.masked_rounds import masking_roster_of
from tacit.federation.network.roster import Roster
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData, held_out_records, load_job_data
from tacit.jobs.facts import facts_of_description
from tacit.jobs.results import JobResult, result_of
from tacit.jobs.scores import HeldOut, Scores
from tacit.jobs.terms import JobTerms
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.settings import Settings
from tacit.learning.training import train
from tacit.numerics import Array
from tacit.privacy import TrustModel, Unit

__all__ = ["FederationJob", "read_job"]

_ROUNDING = 1e-6

_ELSEWHERE = ("columns", "public", "ledger", "out", "silo_column")
"""Settings of a job that a party's own configuration has, or that have no meaning between machines."""


@dataclass(frozen=True, kw_only=True)
class FederationJob:
    """A job between machines: one training run, under one trust model.

    Attributes:
        terms: What it means.
        records: A public data set, which everybody has; None where silos have tables of their own.
        test: Public records to score on, features and truth; None without.
        agreed: The plan as the founder wrote it; None makes it of the terms. Machines may calibrate noise
            to other last digits, and all parties must mean one plan.
        masking: Digest of those whose masks hide messages in a sum, under aggregate trust; else empty.
    """

    terms: JobTerms
    records: JobData | None = None
    test: tuple[Array, HeldOut] | None = None
    agreed: Plan | None = None
    masking: str = ""

    @classmethod
    def of(
        cls,
        job: JobConfig,
        roster: Roster,
        *,
        columns: Path | None = None,
        public: Path | None = None,
        test: Path | None = None,
        plan: Path | None = None,
    ) -> FederationJob:
        """Return the job of a federation.

        Args:
            job: As `read_job` returns it.
            roster: Who takes part.
            columns: Description of the columns of the silos' tables; None for a data set.
            public: Public records, with labels or without; for tables.
            test: Public records to score on; for tables.
            plan: The plan as the founder wrote it; None makes it of the job.

        Raises:
            TacitError: The files do not fit each other.
        """
        agreed = None if plan is None else _read_plan(plan)
        names, sizes = [one.name for one in roster.silos], [one.size for one in roster.silos]
        # One silo has nobody to hide it: what the plan says of that is clearer than what a roster would.
        summed = job.trust == TrustModel.AGGREGATE and len(names) > 1
        masking = masking_roster_of(roster).digest if summed else ""
        if job.is_table:
            if columns is None:
                raise ParameterError("columns must describe the tables of the silos, got None.")
            known = job if public is None else msgspec.structs.replace(job, public=str(public))
            known = _with_roles(known, columns)
            facts = facts_of_description(known, columns, silo_names=names, sizes=sizes)
            if facts.unit is Unit.PARTY and set(sizes) != {1}:
                raise ParameterError(
                    "the size of a silo must be 1 in the roster, and on its card, where whole parties are "
                    f"protected: each is one unit, whatever it holds; got {_listed(sizes)}."
                )
            terms = JobTerms(known, facts)
            scored = None if test is None else _read_test(test, terms)
            return cls(terms=terms, test=scored, agreed=agreed, masking=masking)
        for name, value in (("columns", columns), ("public", public), ("test", test)):
            if value is not None:
                raise ParameterError(f"{name} is for tables, got {value} with data={job.data!r}.")
        found = load_job_data(job)
        if found.sizes != sizes:
            raise ParameterError(
                f"the roster must have a silo for each part of {job.source}, of {_listed(found.sizes)} "
                f"{found.facts.unit.plural}, got {_listed(sizes)}."
            )
        records = replace(found, silo_names=names)
        return cls(terms=JobTerms(job, records.facts), records=records, agreed=agreed, masking=masking)

    @property
    def trust(self) -> str:
        """The trust model."""
        return self.terms.config.trust

    @property
    def run(self) -> str:
        """What ledgers, consents and messages call the run."""
        return self.terms.run_name(self.trust)

    @property
    def settings(self) -> Settings:
        """Everything about the training that is not data."""
        return replace(self.terms.settings(self.trust), roster=self.masking)

    def prepared(self) -> Prepared:
        """Return the plan of the run with what it was made of; nobody is asked.

        Raises:
            ParameterError: The plan that was agreed on is not that of the job; rounding is no difference.
        """
        made = self._made
        if self.agreed is None:
            return made
        if not _same(msgspec.to_builtins(self.agreed), msgspec.to_builtins(made.plan)):
            raise ParameterError(
                "the plan is not the one that job, roster and columns make: have all files from one founder."
            )
        return replace(made, plan=self.agreed)

    @cached_property
    def _made(self) -> Prepared:
        return prepare(self.settings, self.terms.facts.sizes)

    @property
    def plan(self) -> Plan:
        """All that will be asked."""
        return self.prepared().plan

    def train(
        self,
        federation: Federation,
        *,
        begin: Callable[[int], None] | None = None,
        follow: Callable[[int], None] | None = None,
    ) -> JobResult:
        """Train across the parties of a federation, and score where that shows nobody's records.

        Args:
            federation: Who answers.
            begin: Called with the number of rounds when all have accepted.
            follow: Called with the number of each round that is done.

        Raises:
            TacitError: As `tacit.learning.training.train`.
        """
        start = time.perf_counter()
        trained = train(
            federation,
            self.settings,
            prepared=self.prepared(),
            begin=begin,
            follow=None if follow is None else lambda r, _w: follow(r),
        )
        seconds = time.perf_counter() - start
        result = result_of(self.terms, self.trust, trained, scores=self._scores(trained.w), seconds=seconds)
        return JobResult(
            job=self.terms.config,
            facts=self.terms.facts,
            records=self.records,
            delta=self.terms.delta,
            loss=self.terms.loss,
            results=(result,),
        )

    def _scores(self, w: Array) -> Scores | None:
        """Return the scores on public records; None without any."""
        if self.records is not None:
            X = self.records.X[self.records.test]
            return self.terms.score(w, self.terms.rows(X), held_out_records(self.records))
        if self.test is None:
            return None
        X, truth = self.test
        return self.terms.score(w, self.terms.rows(X), truth)


def read_job(path: Path) -> JobConfig:
    """Read the job of a federation.

    Raises:
        ParameterError: The file cannot be read, is no job, or says what a job between machines cannot have:
            a seed, several trust models, or what every party has a configuration for.
    """
    try:
        values = msgspec.toml.decode(path.read_bytes())
        job = JobConfig.of(values)
    except OSError as error:
        raise ParameterError(f"the job {path} cannot be read: {error.strerror}.") from error
    except (ParameterError, msgspec.MsgspecError, ValueError) as error:
        raise ParameterError(f"{path}: {str(error).removesuffix('.')}.") from error
    for name in _ELSEWHERE:
        if name in values:
            raise ParameterError(
                f"{path}: {name} must not be set between machines, got {shown(values[name])}: the "
                "configuration of each party says what it needs."
            )
    if job.seed is not None:
        raise ParameterError(f"{path}: seed must not be set, got {job.seed}: seeded noise protects nobody.")
    if job.trust == "all":
        raise ParameterError(f"{path}: trust must be one trust model between machines, got 'all'.")
    return job


def _read_plan(path: Path) -> Plan:
    """Read the plan of a federation.

    Raises:
        ParameterError: The file cannot be read, or is no plan.
    """
    try:
        return Plan.from_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"the plan {path} cannot be read: {error.strerror}.") from error
    except (ParameterError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: {error}") from error


def _same(a: Any, b: Any) -> bool:
    """Whether two plans say the same, but for the rounding of calibrated noise."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=_ROUNDING)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _with_roles(job: JobConfig, columns: Path) -> JobConfig:
    """Return a job with the label and the person that the description of its tables names."""
    spec = data.ColumnsSpec.read(columns)
    label = job.label or (None if spec.label is None else spec.label.column)
    return msgspec.structs.replace(job, label=label, person=job.person or spec.person)


def _read_test(file: Path, terms: JobTerms) -> tuple[Array, HeldOut]:
    """Read public records with labels, which must be described as those of the silos are."""
    job, facts = terms.config, terms.facts
    spec = data.ColumnsSpec.from_toml(facts.description or b"")
    table = data.load_table(
        file,
        label=job.label or "",
        person_column=job.person,
        columns=spec,
        task=job.task,
        raw=job.stated is not None,
    )
    if table.columns != facts.columns:
        raise DataError(f"{file}: the test records must have the described columns, and no others.")
    y = np.asarray(table.y, dtype=np.float64)
    owners = np.arange(len(y)) if table.persons is None else np.unique(table.persons, return_inverse=True)[1]
    return table.X, HeldOut(
        y=np.where(y < 0, np.nan, y) if table.classes else y,
        units=owners,
        silos=None,
        silo_names=facts.silo_names,
        classes=facts.classes,
        target=facts.target,
    )


def _listed(sizes: list[int]) -> str:
    """Return numbers as a sentence lists them, the first ones of many."""
    shown_first = ", ".join(f"{size:,}" for size in sizes[:8])
    return shown_first if len(sizes) <= 8 else f"{shown_first}, ... ({len(sizes)} in all)"
