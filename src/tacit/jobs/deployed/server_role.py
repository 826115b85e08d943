"""The server as a process: it waits for silos, runs the job, and goes on where it was after a restart."""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from tacit.errors import LedgerError, ParameterError
from tacit.federation import Participation, Plan
from tacit.federation.network.certificates import client_context
from tacit.federation.network.channel import Channel
from tacit.federation.network.journal import RoundFacts, RunJournal
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.network.progress import Progress
from tacit.federation.network.remote import RemoteFederation
from tacit.federation.network.roster import SERVER, Roster
from tacit.federation.network.rounds import MissingSilosError, RemoteRounds
from tacit.federation.network.shuffler_client import RemoteShuffler
from tacit.federation.network.signatures import received_signature, sign_claims
from tacit.federation.protocols import Weights
from tacit.jobs.deployed.configs import ServerConfig
from tacit.jobs.deployed.federation_job import FederationJob, read_job
from tacit.jobs.results import JobResult
from tacit.ledger import Ledger
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.privacy.signed import ClaimSignature

__all__ = ["ServedRun", "ServerRole", "rounds_jsonl"]

LEDGER_FILE: Final = "ledger.sqlite"
JOURNAL_ENDING: Final = ".journal"
_LOOK: Final = 0.1
_AGAIN: Final = 2.0
_LONGEST: Final = 30.0
_LOGGER: Final = logging.getLogger("tacit.server")


@dataclass(frozen=True, kw_only=True)
class ServedRun:
    """A run that is over.

    Attributes:
        result: What it gave.
        rounds: What may be told of each round.
        signatures: Of the parties, under their guarantees.
        bytes_up: Bytes that the server got of all silos.
        bytes_down: Bytes that it sent to them.
    """

    result: JobResult
    rounds: tuple[RoundFacts, ...]
    signatures: tuple[ClaimSignature, ...]
    bytes_up: int
    bytes_down: int


class ServerRole:
    """A server with all its files read and checked, before anybody is asked.

    Args:
        config: Of the role.

    Raises:
        TacitError: A file cannot be used, or they do not fit each other.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.config, self.roster = config, Roster.load(config.roster)
        self.job = FederationJob.of(
            read_job(config.job),
            self.roster,
            columns=config.columns,
            public=config.public,
            test=config.test,
            plan=config.plan,
        )
        if self.job.trust == TrustModel.SHUFFLE and self.roster.shuffler is None:
            raise ParameterError(f"{config.roster} names no shuffler, and the job has shuffle trust.")
        self.key, self._opening = SigningKey.load(config.signing), OpeningKey.load(config.opening)
        self.prepared = self.job.prepared()
        self.plan: Plan = self.prepared.plan
        self.state = make_private_folder(config.state)
        self.channel: Channel | None = None
        self.progress = Progress(self.roster, self.plan, self.job.run, present=self._present)

    @property
    def folder(self) -> Path:
        """Where the run will be written."""
        return self.config.out / self.job.terms.config.run

    def _present(self) -> set[str]:
        """Return who can be reached now."""
        return set() if self.channel is None else self.channel.present()

    def run(self, channel: Channel, *, follow: Callable[[RoundFacts], None] | None = None) -> ServedRun:
        """Run the job, or go on with it, and wait for silos that are missing.

        Args:
            channel: How silos are reached.
            follow: Called with the facts of every round.

        Raises:
            MissingSilosError: Silos were missing for longer than the patience of the configuration.
            TacitError: The plan is refused, or a price exceeds a budget; nothing is asked then.
        """

        def told(facts: RoundFacts) -> None:
            self.progress.follow(facts)
            self._moved = time.monotonic()
            told = {"facts": _told(facts) | {"epsilon": self.progress.epsilon}}
            _LOGGER.info("round %d of %d", facts.step + 1, self.prepared.rounds, extra=told)
            if follow is not None:
                follow(facts)

        self.channel = channel
        with self._parts() as (journal, shuffler, ledger), self._told_of_the_end():
            federation = _Remembering(
                self.progress,
                RemoteFederation(
                    self.roster,
                    self.key,
                    channel,
                    journal=journal,
                    shuffler=shuffler,
                    opening=self._opening,
                    ledger=ledger,
                    deadline=self.config.deadline,
                    follow=told,
                ),
            )
            # A sum that is opened without silos that are gone needs not wait for them, once all have agreed.
            begun = self.plan.recover and bool(journal.rounds())
            result = self._patiently(federation, channel, self.config.deadline if begun else None)
            opened = federation.opened
            if opened is None:
                raise AssertionError("unreachable")
            opened.close()
            traffic = opened.traffic
            return ServedRun(
                result=result,
                rounds=tuple(journal.rounds()),
                signatures=self._signatures(result, opened),
                bytes_up=int(traffic.bytes_up.sum()),
                bytes_down=int(traffic.bytes_down.sum()),
            )

    def _signatures(self, result: JobResult, opened: RemoteRounds) -> tuple[ClaimSignature, ...]:
        """Return who stands behind the claims: silos, or a server that adds the noise."""
        run, plan, federation = self.job.run, self.plan, self.roster.federation
        if self.job.trust == "none":
            return ()
        (one,) = result.results
        if plan.trust is TrustModel.CENTRAL:
            return (
                sign_claims(
                    self.key, one.guarantees, federation=federation, run=run, plan=plan, signer=SERVER
                ),
            )
        return tuple(
            received_signature(kept.signature, federation=federation, run=run, plan=plan, signer=silo.name)
            for silo, kept in zip(self.roster.silos, opened.terms, strict=True)
        )

    def _patiently(
        self, federation: _Remembering, channel: Channel, at_first: float | None = None
    ) -> JobResult:
        """Train; where silos are missing, wait for them and go on."""
        self._moved = time.monotonic()
        self._wait(channel, self._moved + (self.config.patience if at_first is None else at_first))
        said, pause, moved = "", _AGAIN, self._moved
        while True:
            try:
                return self.job.train(federation)
            except MissingSilosError as error:
                if time.monotonic() + _AGAIN >= (until := self._moved + self.config.patience):
                    raise
                pause, moved = (_AGAIN if self._moved > moved else pause), self._moved
                self.progress.end("waiting")
                if str(error) != said:
                    _LOGGER.warning("waiting", extra={"facts": {"why": error}})
                said = str(error)
                _rest(channel, min(pause, until - time.monotonic()))
                pause = min(2.0 * pause, _LONGEST)  # silos log every plan that they consider

    def _wait(self, channel: Channel, until: float) -> None:
        """Wait until all silos are there, or no longer."""
        names, said = {one.name for one in self.roster.active(dt.datetime.now(dt.UTC))}, ""
        while (missing := names - channel.present()) and time.monotonic() < until:
            text = ", ".join(sorted(missing))
            if text != said:
                _LOGGER.info("waiting for silos", extra={"facts": {"missing": text}})
            said = text
            time.sleep(_LOOK)

    @contextlib.contextmanager
    def _told_of_the_end(self) -> Iterator[None]:
        """Show on the status page how the block ends."""
        try:
            yield
        except BaseException:
            self.progress.end("failed")
            raise
        self.progress.end("done")

    @contextlib.contextmanager
    def _parts(self) -> Iterator[tuple[RunJournal, RemoteShuffler | None, Ledger | None]]:
        """Open the journal of the run, the way to the shuffler and the trusted server's ledger."""
        with contextlib.ExitStack() as stack:
            journal = stack.enter_context(RunJournal(self.state / f"{self.job.run}{JOURNAL_ENDING}"))
            shuffler, ledger = None, None
            if self.plan.trust is TrustModel.SHUFFLE and self.roster.shuffler is not None:
                trust = client_context(self.config.authority)
                shuffler = stack.enter_context(RemoteShuffler(self.roster.shuffler.url, trust=trust))
            if self.plan.trust is TrustModel.CENTRAL:
                ledger = self._ledger(journal)
                stack.callback(ledger.close)
            yield journal, shuffler, ledger

    def _ledger(self, journal: RunJournal) -> Ledger:
        """Open the trusted server's account; where none is named, make one with the budget of the job.

        Raises:
            LedgerError: It is gone or older than the journal, which holds rounds of the run that it paid for.
        """
        path, run, terms = self.config.ledger or self.state / LEDGER_FILE, self.job.run, self.job.terms
        begun = bool(journal.rounds())
        if self.config.ledger is None and not path.exists():
            if begun:
                raise _lost(path, "is gone", run)
            limit = PrivacyBudget(terms.config.epsilon, terms.delta)
            return Ledger.create(path, limit=limit, neighbours=terms.neighbours, label=self.roster.federation)
        ledger = Ledger.open(path)
        if begun and not ledger.knows(run):
            ledger.close()
            raise _lost(path, f"does not know run {run!r}", run)
        return ledger


def _lost(path: Path, how: str, run: str) -> LedgerError:
    """Return the refusal of a ledger that is not the one that has paid."""
    return LedgerError(
        f"{path} {how}, and the server's journal holds rounds of run {run!r} that it paid for: what else was "
        "spent is unknown. Put the newest ledger back; if it is lost, all that it allowed counts as spent."
    )


def _rest(channel: Channel, seconds: float) -> None:
    """Wait, but, after a while that is always waited, no longer than until somebody comes."""
    now, here = time.monotonic(), channel.present()
    while (been := time.monotonic() - now) < seconds and (been < _AGAIN or channel.present() <= here):
        time.sleep(_LOOK)


class _Remembering:
    """A federation that remembers the run that it has opened last, and shows it."""

    def __init__(self, progress: Progress, federation: RemoteFederation) -> None:
        self._progress, self._federation = progress, federation
        self.opened: RemoteRounds | None = None

    @property
    def sizes(self) -> list[int]:
        """Public number of units of each silo."""
        return self._federation.sizes

    def open(
        self,
        plan: Plan,
        *,
        run: str,
        participation: Participation | None,
        weights: Weights,
        budget: PrivacyBudget | None,
    ) -> RemoteRounds:
        """Have the plan accepted, and start the run or go on with it."""
        self.opened = self._federation.open(
            plan, run=run, participation=participation, weights=weights, budget=budget
        )
        self._progress.begin(self.opened)
        return self.opened


def rounds_jsonl(rounds: tuple[RoundFacts, ...]) -> bytes:
    """Return what may be told of rounds, one JSON object a line."""
    return b"".join(msgspec.json.encode(one) + b"\n" for one in rounds)


def _told(facts: RoundFacts) -> dict[str, object]:
    """Return what a log says of a round."""
    return {
        "silos": f"{len(facts.answered)}/{len(facts.asked)}",
        "bytes_up": sum(facts.bytes_up),
        "bytes_down": sum(facts.bytes_down),
        "seconds": round(facts.seconds, 3),
        **({"given_up": facts.why or "nobody answered"} if facts.skipped else {}),
    }
