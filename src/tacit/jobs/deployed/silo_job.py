"""One silo of a job between machines: its own records, its plan with a price, its service."""

from __future__ import annotations

import asyncio
import logging
import math
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from tacit import data
from tacit.errors import DataError, ParameterError, PrivacyWarning, TacitError, printable
from tacit.federation import Plan, Silo
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.network.certificates import client_context
from tacit.federation.network.consent import Consent, Consents
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.masked_rounds import masking_roster_of
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.network.roster import Roster
from tacit.federation.network.shuffler_client import RemoteShuffler
from tacit.federation.network.silo_doors import hub_client, poll_hub, serve_socket
from tacit.federation.network.silo_service import CONSENT_FILE, LEDGER_FILE, SiloService
from tacit.federation.network.silo_start import open_own_ledger
from tacit.jobs.deployed.federation_job import FederationJob, read_job
from tacit.jobs.deployed.own_model import own_model_path, write_own_model
from tacit.jobs.deployed.silo_config import SiloConfig
from tacit.learning.algorithms import algorithm_name, traits_of
from tacit.learning.objective import Grouped, Records
from tacit.learning.preparation import Prepared
from tacit.learning.settings import Settings
from tacit.learning.training import silo_for
from tacit.ledger import Cost, Ledger
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel

__all__ = ["PricedPlan", "SiloJob"]

_LOGGER: Final = logging.getLogger("tacit.silo")


@dataclass(frozen=True, kw_only=True)
class PricedPlan:
    """What a silo's owner is asked to agree to.

    Attributes:
        prepared: The plan, with what it was made of.
        algorithm: Name of what is run.
        run: Name of the run.
        price: What everybody outside the silo can learn.
        alone: The same of one message alone, with its sender; None where the guarantee is about that.
        limit: What the plan may cost by a consent; None where the silo adds no noise.
        left: What the ledger has left; None without one.
        reserved: Whether the run is paid for already.
        consent: That was given; None where there is none.
    """

    prepared: Prepared
    algorithm: str
    run: str
    price: Guarantee
    alone: Guarantee | None
    limit: PrivacyBudget | None
    left: Cost | None
    reserved: bool
    consent: Consent | None

    @property
    def plan(self) -> Plan:
        """All that will be asked."""
        return self.prepared.plan


@dataclass(frozen=True)
class SiloJob:
    """A silo with its records read and checked.

    Attributes:
        config: As its owner wrote it.
        roster: Who takes part.
        job: What is trained.
        units: The protected units.
        key: The silo's.
    """

    config: SiloConfig
    roster: Roster
    job: FederationJob
    units: Records | Grouped
    key: SigningKey

    @classmethod
    def of(cls, config: SiloConfig) -> SiloJob:
        """Read all files of a silo, its table among them.

        Raises:
            TacitError: A file cannot be read or does not fit the others; no message quotes a record.
        """
        roster = Roster.load(config.roster)
        place = roster.index(config.name)
        key = SigningKey.load(config.signing)
        if roster.verify_key(config.name) != key.public:
            raise ParameterError(
                f"signing must be the key that the roster has for silo {config.name!r}, got {config.signing}."
            )
        job = FederationJob.of(
            read_job(config.job), roster, columns=config.columns, public=config.public, plan=config.plan
        )
        units = _own_table(config, job) if job.records is None else _part(config, job, place)
        if len(units) != (size := roster.silos[place].size):
            raise DataError(
                f"silo {config.name!r} must hold the {size} {job.terms.facts.unit.plural} that the roster "
                f"says, got {len(units)}."
            )
        return cls(config, roster, job, units, key)

    @property
    def limit(self) -> PrivacyBudget | None:
        """Limit of the ledger; None where the silo adds no noise, and so keeps none."""
        if self._settings.trusts_server:
            return None
        if self.config.epsilon is None:
            return self._settings.budget
        return PrivacyBudget(self.config.epsilon, self.config.delta or 0.0)

    def priced(self) -> PricedPlan:
        """Price the plan as the service will; nothing is reserved, and nothing is written.

        Raises:
            BudgetError: The price is above what the ledger has left.
            LedgerError: The ledger knows the run with another plan.
            RefusalError: The owner does not trust whom the plan trusts.
        """
        prepared, run = self.job.prepared(), self.job.run
        plan = prepared.plan
        with self._ledger() as ledger:
            silo = self.silo(ledger)
            price = silo.consider(plan, run=run)
            claims = [price, silo.alone(plan)] if plan.hides_among_others else [price]
            left = ledger.remaining() if ledger is not None else None
            reserved = ledger is not None and ledger.knows(run)
        price, *alone = self.job.terms.with_clauses(claims)
        claimed = plan.trust is not TrustModel.CENTRAL and math.isfinite(price.epsilon)
        return PricedPlan(
            prepared=prepared,
            algorithm=algorithm_name(self._settings.algorithm),
            run=run,
            price=price,
            alone=alone[0] if alone else None,
            limit=PrivacyBudget(price.epsilon, price.delta) if claimed else None,
            left=left,
            reserved=reserved,
            consent=self.consents.find(self.roster.federation, plan.digest(), run),
        )

    @property
    def consents(self) -> Consents:
        """What the owner has agreed to."""
        return Consents(self.config.state / CONSENT_FILE)

    def agree(self, priced: PricedPlan) -> Consent:
        """Write down that the owner agrees to a plan at its price."""
        return self.consents.give(
            self.roster.federation, priced.plan.digest(), priced.run, limit=priced.limit
        )

    def silo(self, ledger: Ledger | None) -> Silo:
        """Return the silo that answers.

        Args:
            ledger: Its account; None without one.
        """
        # Whom it trusts is in the job beside the owner's configuration, and in the plan that is agreed to.
        return silo_for(
            self._settings,
            self.units,
            name=self.config.name,
            ledger=ledger,
            trusts_server=self.config.trusts_server is not False,
            trusts_shuffler=self.config.trusts_shuffler is not False,
            sums=self._sums,
        )

    @property
    def _sums(self) -> MaskedSums | None:
        """What the owner says about sums, in files that the server does not write; None without any."""
        if self._settings.trust is not TrustModel.AGGREGATE:
            return None
        return MaskedSums(
            masking_roster_of(self.roster),
            self.key,
            colluding=self.config.colluding,
            most_alone=self.config.most_alone,
        )

    @contextmanager
    def service(self) -> Iterator[SiloService]:
        """Open ledger, log and the way to the shuffler, and let go of them at the end.

        Raises:
            TacitError: As `SiloService`, `open_own_ledger` and `client_context`.
        """
        limit, config, entry = self.limit, self.config, self.roster.shuffler
        ledger = None
        if limit is not None:
            ledger = open_own_ledger(
                make_private_folder(config.state),
                limit=limit,
                neighbours=self.job.terms.neighbours,
                label=config.name,
                given=config.epsilon is not None,
            )
        door = None
        try:
            if entry is not None and self._settings.trust is TrustModel.SHUFFLE:
                door = RemoteShuffler(entry.url, trust=client_context(config.authority))
            silo = self.silo(ledger)
            service = SiloService(
                silo,
                roster=self.roster,
                key=self.key,
                state=config.state,
                encoding=self._settings.encoding,
                clauses=lambda _: self.job.terms.clauses(self._settings.trained_with),
                door=door,
                after=lambda run: self._keep_own_model(silo, run),
            )
            try:
                yield service
            finally:
                service.close()
        finally:
            if door is not None:
                door.close()
            if ledger is not None:
                ledger.close()

    def _keep_own_model(self, silo: Silo, run: str) -> None:
        """Write the silo's personal model after an answer, where an algorithm makes one.

        A file that cannot be written, as on a full disk, holds up no answer: the model itself is stored with
        that, and every further answer and the end of the run write it anew.
        """
        personal, state = traits_of(self._settings.algorithm).personal, self.config.state
        if not personal:
            return
        try:
            write_own_model(silo, personal, terms=self.job.terms, run=run, state=state)
        except (OSError, TacitError) as error:  # the latter of its folder or its ledger
            facts = {"run": run, "file": str(own_model_path(state, run)), "why": error}
            _LOGGER.error(
                "the silo's own model is not written, and is that of an earlier round; the next round and "
                "the end of the run write it again",
                extra={"facts": facts},
            )

    async def serve(self, service: SiloService, stop: asyncio.Event) -> None:
        """Answer requests, by whichever door the configuration names, until `stop` is set."""
        if self.config.socket is not None:
            await serve_socket(service, self.config.socket, stop=stop)
            return
        client = hub_client(self.roster.server.url, client_context(self.config.authority))
        async with client:
            await poll_hub(service, roster=self.roster, key=self.key, client=client, stop=stop)

    @cached_property
    def _settings(self) -> Settings:
        """Everything about the training that is not data."""
        return self.job.settings

    @contextmanager
    def _ledger(self) -> Iterator[Ledger | None]:
        """Open the ledger to look at it, or one that is like the first that will be; None keeps none."""
        if self.limit is None:
            yield None
        elif (path := self.config.state / LEDGER_FILE).exists():
            with Ledger.open(path) as ledger:
                yield ledger
        else:
            with (
                tempfile.TemporaryDirectory(prefix="tacit-silo-") as folder,
                Ledger.create(
                    Path(folder) / LEDGER_FILE,
                    limit=self.limit,
                    neighbours=self.job.terms.neighbours,
                    label=self.config.name,
                ) as ledger,
            ):
                yield ledger


def _own_table(config: SiloConfig, job: FederationJob) -> Records | Grouped:
    """Read the silo's own table, all of whose records train."""
    terms = job.terms
    facts, settings = terms.facts, terms.config
    if config.data is None:
        raise ParameterError("data must name the silo's own table, as the job is not of a named data set.")
    described = data.ColumnsSpec.from_toml(facts.description or b"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # what is read off the data is refused below
        table = data.load_table(
            config.data,
            label=settings.label or "",
            person_column=settings.person,
            columns=described,
            task=settings.task,
            raw=settings.stated is not None,
        )
    # Without bounds nothing is read off: such a column would be one more feature.
    more = tuple(name for name in table.columns.columns if name not in described.columns)
    if open_columns := table.bounds_source or more:
        names = ", ".join(map(printable, open_columns))
        raise DataError(
            f"{config.data}: the description of the federation leaves open {names}; leave these columns out "
            "of the table, or have them described as ignored."
        )
    if table.columns != facts.columns:
        raise DataError(f"{config.data}: the table must have all the columns that are described.")
    y = np.asarray(table.y, dtype=np.float64)
    if table.classes:
        y = np.where(y < 0, np.nan, y)
    return terms.units(terms.rows(table.X), y, table.persons)


def _part(config: SiloConfig, job: FederationJob, place: int) -> Records | Grouped:
    """Return the silo's part of a named data set, which everybody has."""
    records, terms = job.records, job.terms
    if records is None or config.data is not None:
        raise ParameterError(
            f"data is for tables, got {config.data} with the job's data={terms.config.data!r}."
        )
    index = records.train[place]
    persons = None if records.persons is None else records.persons[index]
    return terms.units(terms.rows(records.X)[index], records.y[index], persons)
