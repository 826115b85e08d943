"""The silo's side of a deployed federation: request bytes in, reply bytes out; no transport in it.

Whatever goes wrong becomes one word of a closed set (`RefusalCode`) and a line in the silo's own log, and
costs nothing. The length of a reply follows from plan, step and public sizes, whatever the records are.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import (
    AuthenticationError,
    BudgetError,
    LedgerError,
    ParameterError,
    RefusalError,
    TacitError,
    printable,
)
from tacit.federation.masking.recoverable import name_kept_for
from tacit.federation.network.accepted_runs import AcceptedRuns, AnswerFile
from tacit.federation.network.audit_log import AuditLog, read_log
from tacit.federation.network.consent import Consents
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.ledger_age import (
    check_not_older,
    check_order_is_there,
    check_state_not_older,
)
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.network.roster import SERVER, Roster
from tacit.federation.network.sealing import said_at, said_in, seal_padded
from tacit.federation.network.silo_claims import SiloClaims
from tacit.federation.network.silo_proposals import ConsentedPlans
from tacit.federation.network.silo_refusals import LogQuota, code_of, words_of
from tacit.federation.network.silo_uploads import Uploads
from tacit.federation.network.wire import (
    WIRE_VERSION,
    Accepted,
    Answered,
    AskedRound,
    Closed,
    Closing,
    Considered,
    Envelope,
    MaskReply,
    MaskRequest,
    Opened,
    ProposedPlan,
    RefusalCode,
    Refused,
    ReplyBody,
    ReplyKind,
    Uploaded,
    WireError,
    decode_query,
    open_request,
    seal_reply,
)
from tacit.federation.plan import Plan
from tacit.federation.protocols import Memory
from tacit.federation.schedule import Schedule
from tacit.federation.silo import Silo
from tacit.privacy import Guarantee, Neighbours, TrustModel

if TYPE_CHECKING:
    from tacit.federation.network.descriptor import SignedDescriptor
    from tacit.federation.network.shuffler_client import ShufflerDoor

__all__ = ["CONSENT_FILE", "LEDGER_FILE", "LOG_FILE", "SiloService"]

LEDGER_FILE: Final = "ledger.sqlite"
CONSENT_FILE: Final = "consent.toml"
LOG_FILE: Final = "log.jsonl"
"""Names in the state folder of a silo."""

_RUNS: Final = "runs"
_PATIENCE: Final = 60.0  # seconds that a request waits for the one before it
_DIGESTS: Final = ("account", "roster", "plan", "query", "answer", "request")  # in the log only
_LOGGER: Final = logging.getLogger("tacit.silo")


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _nothing(_run: str) -> None:
    return None


def _no_clauses(_neighbours: Neighbours) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class _Run:
    """The run that the silo answers now; `noisy` where its answers carry noise of the silo's own."""

    name: str
    plan: Plan
    schedule: Schedule
    party: int
    noisy: bool


class SiloService:
    """Answers a server's requests for one silo, one at a time; any thread may call it.

    A service that is made anew on the same state goes on with all runs that were accepted: from stored
    answers, at no cost.

    Args:
        silo: Data, statistics and ledger.
        roster: Of the federation; it must name the silo with this key and its size.
        key: The silo's.
        state: Folder of what must survive a restart: consent, log, accepted runs; made where it is missing.
        encoding: Fingerprint of the map from records to units: a plan with another one is refused. None
            answers plans with any, for statistics of the owner's own.
        clauses: Returns what guarantees rest on besides their events, given the neighbours of a plan; they
            stand in the signed guarantee.
        door: Of the shuffler; None for a silo that trusts none.
        after: Called with the name of the run when an answer is stored, before it leaves, and when it ends.
        clock: Returns the time, with its zone.

    Raises:
        ParameterError: The roster has another key or size for the silo; the state cannot be used.
        AuthenticationError: The roster does not name the silo.
        VerificationError: The log was changed.
        LedgerError: The ledger has forgotten what the log says was answered.
    """

    def __init__(
        self,
        silo: Silo,
        *,
        roster: Roster,
        key: SigningKey,
        state: Path,
        encoding: str | None = None,
        clauses: Callable[[Neighbours], Sequence[str]] = _no_clauses,
        door: ShufflerDoor | None = None,
        after: Callable[[str], None] = _nothing,
        clock: Callable[[], dt.datetime] = _now,
    ) -> None:
        entry = roster.silo(silo.name)
        if roster.verify_key(silo.name) != key.public:
            raise ParameterError(f"the roster has another key for silo {silo.name!r} than the one given.")
        if entry.size != silo.size:
            raise ParameterError(
                f"the roster says that silo {silo.name!r} has {entry.size} units, its data have {silo.size}."
            )
        make_private_folder(state)
        self._silo, self._roster, self._key, self._clock = silo, roster, key, clock
        self._after, self._state = after, state
        self._claims = SiloClaims(silo=silo, clauses=clauses, federation=roster.federation, key=key)
        self._proposals = ConsentedPlans(
            silo, roster=roster, consents=Consents(state / CONSENT_FILE), encoding=encoding
        )
        self._accepted = AcceptedRuns(state / _RUNS)
        self._uploads = Uploads(silo, roster=roster, key=key, door=door)
        self._quota, self._lock = LogQuota(), Lock()
        self._run: _Run | None = None
        self._log = AuditLog(state / LOG_FILE, key)
        if silo.ledger is not None:
            try:
                check_not_older(silo.ledger, read_log(state / LOG_FILE))
            except BaseException:
                self._log.close()
                raise
        self._note("started", federation=roster.federation, roster=roster.digest().hex(), silo=silo.name)

    @property
    def name(self) -> str:
        """Of the silo."""
        return self._silo.name

    def close(self) -> None:
        """Answer nothing more, and let go of log and ledger; may be called again."""
        with self._lock:
            self._silo.rest()
            self._log.close()
            if self._silo.ledger is not None:
                self._silo.ledger.close()

    def handle(self, request: bytes) -> bytes:
        """Return the reply to a request, whatever it is; nothing is raised."""
        if not self._lock.acquire(timeout=_PATIENCE):
            return self._sealed("refused", Refused(RefusalCode.BUSY), _unread(self.name))
        try:
            return self._handled(request)
        finally:
            self._lock.release()

    def _handled(self, request: bytes) -> bytes:
        """Return the reply, while nobody else asks."""
        opened: Opened | None = None
        try:
            opened = open_request(request, roster=self._roster, silo=self.name, now=self._clock())
            kind, body = self._done(opened, request)
            return self._sealed(kind, body, opened.envelope)
        except Exception as error:  # noqa: BLE001 - its words may tell of a record, and must not leave
            return self._refused(error, opened)

    def _done(self, opened: Opened, request: bytes) -> tuple[ReplyKind, ReplyBody]:
        """Do what a request says."""
        envelope, body = opened
        match body:
            case ProposedPlan() if envelope.kind == "consider":
                return "considered", self._considered(body)
            case ProposedPlan():
                return "accepted", self._accept(body, request)
            case MaskRequest():
                return "masked", self._exchange(body, envelope)
            case AskedRound():
                return self._ask(body, run=envelope.run)
            case Closing():
                return "closed", self._close(envelope.run)
            case _:
                raise WireError(RefusalCode.FAILED, f"nobody knows the request {envelope.kind!r}.")

    def _considered(self, proposal: ProposedPlan) -> Considered:
        """Price a plan that the owner has agreed to; reserve nothing."""
        plan, price, _ = self._proposals.priced(proposal)
        self._note("considered", **_about(proposal.run, plan), epsilon=price.epsilon, delta=price.delta)
        return self._claims.considered(plan, price)

    def _accept(self, proposal: ProposedPlan, request: bytes) -> Accepted:
        """Reserve the price of a plan, and remember that it was accepted."""
        plan, price = self._begin(proposal)
        ledger = self._silo.ledger
        self._note(
            "accepted",
            **_about(proposal.run, plan),
            party=proposal.party,
            rounds=plan.rounds,
            epsilon=price.epsilon,
            delta=price.delta,
            left=None if ledger is None else ledger.remaining().epsilon,
            **({} if ledger is None else {"account": ledger.fingerprint.hex()}),
        )
        self._accepted.keep(proposal.run, request)
        return self._claims.accepted(plan, price, run=proposal.run)

    def _begin(self, proposal: ProposedPlan) -> tuple[Plan, Guarantee]:
        """Make the silo ready to answer a run, whose price is reserved once."""
        plan, _, limit = self._proposals.priced(proposal)
        run, party = proposal.run, proposal.party
        self._run = None
        price = self._silo.accept(plan, party=party, run=run, budget=limit, memory=self._memory(plan, run))
        self._run = _Run(run, plan, plan.schedule(), party, noisy=math.isfinite(price.epsilon))
        return plan, price

    def _memory(self, plan: Plan, run: str) -> Memory | AnswerFile | None:
        """Return where a silo without a ledger keeps what a run must not lose."""
        if self._silo.ledger is not None:
            return None
        lines = read_log(self._state / LOG_FILE)
        if self._silo.keeps(plan):
            answers = self._accepted.answers(run)
            check_state_not_older(answers.newest, lines, run=run)
            return answers
        if not self._accepted.has_secret(run):
            check_order_is_there(lines, run=run, schedule=plan.schedule())
        return self._accepted.memory(run)

    def _ask(self, asked: AskedRound, *, run: str) -> tuple[ReplyKind, ReplyBody]:
        """Answer one round."""
        current = self._ready(run)
        query = decode_query(asked.query)
        facts = {"run": run, "step": query.step, "query": query.digest().hex()}
        alone = current.schedule.step(query.step).alone
        if current.plan.trust is TrustModel.SHUFFLE and not alone:

            def note(kind: str, signed: SignedDescriptor) -> None:
                if kind == "answered":
                    self._after(run)
                circle = ",".join(map(str, signed.descriptor.parties))
                self._note(kind, **facts, round=signed.round_id, circle=circle)

            # A log that did not know of what a silo sent before it died would pass an older ledger. Nor has
            # it a digest: with that and a sum of all silos, an auditor could guess one silo's messages.
            signed = self._uploads.send(
                asked.descriptor,
                query,
                plan=current.plan,
                run=run,
                party=current.party,
                leaving=lambda signed: note("answered", signed),
            )
            note("uploaded", signed)
            return "uploaded", Uploaded()
        if asked.descriptor:
            raise WireError(RefusalCode.CIRCLE, "no shuffler is in such a round, and a descriptor came.")
        answer = self._silo.answer(query)
        self._after(run)
        # Whoever reads the log could try records until the hash of an exact sum comes out.
        shown = {"answer": hashlib.sha256(answer).hexdigest()} if current.noisy else {}
        self._note("answered", **facts, bytes=len(answer), **shown)
        return "answered", Answered(self._for_server(answer, run=run, step=query.step))

    def _exchange(self, asked: MaskRequest, request: Envelope) -> MaskReply:
        """Take part in a stage of the protocol by which sums are opened."""
        current = self._ready(request.run)
        try:
            said = self._silo.exchange(asked.stage, asked.data)
        except (RefusalError, AuthenticationError, ParameterError, LedgerError) as error:
            raise WireError(RefusalCode.MASKS, str(error)) from error
        kept = name_kept_for(asked.stage, asked.data) if current.plan.recover else None
        self._note("masked", run=request.run, stage=printable(asked.stage), kept=kept, bytes=len(said))
        about = said_at(
            asked.stage,
            asked.data,
            federation=request.federation,
            run=request.run,
            silo=self.name,
        )
        return MaskReply(seal_padded(said, length=len(said), key=self._roster.sealing_key, info=about))

    def _for_server(self, answer: bytes, *, run: str, step: int) -> bytes:
        """Return an answer that nobody reads on its way: not a relay, nor who ends its TLS connection."""
        about = said_in(federation=self._roster.federation, run=run, step=step, silo=self.name)
        return seal_padded(answer, length=len(answer), key=self._roster.sealing_key, info=about)

    def _ready(self, run: str) -> _Run:
        """Return an accepted run; after a restart, or another run, the silo is made ready for it again."""
        if self._run is not None and self._run.name == run:
            return self._run
        request = self._accepted.find(run)
        if request is None:
            raise WireError(RefusalCode.PLAN, f"no plan was accepted for run {run!r}.")
        opened = open_request(request, roster=self._roster, silo=self.name, now=self._clock())
        if not isinstance(opened.body, ProposedPlan):
            raise WireError(RefusalCode.PLAN, f"what was kept of run {run!r} is no proposal.")
        try:
            plan, _ = self._begin(opened.body)
        except (ParameterError, RefusalError, BudgetError) as error:
            raise WireError(code_of(error, proposed=True), str(error)) from error
        self._note("resumed", **_about(run, plan))
        assert self._run is not None  # noqa: S101 - `_begin` has set it
        return self._run

    def _close(self, run: str) -> Closed:
        """End a run."""
        if (self._run is None or self._run.name != run) and self._accepted.find(run) is not None:
            try:
                self._ready(run)  # so that keys for masks are deleted from the disk too
            except TacitError:  # whatever has become of the run since, as when its owner takes back consent
                if self._silo.ledger is not None:
                    self._silo.ledger.secrets(run).wipe()
        if self._run is not None and self._run.name == run:
            self._after(run)
            self._silo.close()
            self._run = None
        self._accepted.forget(run)
        self._note("closed", run=run)
        return Closed()

    def _refused(self, error: Exception, opened: Opened | None) -> bytes:
        """Write down why, and return the one word that leaves."""
        request = getattr(error, "request", None) if opened is None else opened.envelope
        proposed = opened is not None and isinstance(opened.body, ProposedPlan)
        code = code_of(error, proposed=proposed)
        try:
            if (unsaid := self._quota.take()) is not None:
                self._note(
                    "refused",
                    code=code.value,
                    why=words_of(error),
                    asked=None if request is None else printable(request.kind),
                    run=None if request is None else printable(request.run),
                    sender=None if request is None else printable(request.sender),
                    request=None if request is None else request.digest.hex(),
                    left_out=unsaid,
                )
        except Exception as problem:  # noqa: BLE001 - a reply is all that is left
            _LOGGER.error("the log cannot be written", extra={"facts": {"why": words_of(problem)}})
            code = RefusalCode.FAILED
        return self._sealed("refused", Refused(code), request or _unread(self.name))

    def _sealed(self, kind: ReplyKind, body: ReplyBody, request: Envelope) -> bytes:
        """Return a signed reply."""
        return seal_reply(kind, body, request=request, roster=self._roster, silo=self.name, key=self._key)

    def _note(self, kind: str, **facts: Any) -> None:
        """Write a line into the audit log, and then a copy for whoever watches."""
        line = self._log.write(kind, **facts)
        level = logging.WARNING if kind == "refused" else logging.INFO
        seen = {name: value for name, value in facts.items() if value is not None and name not in _DIGESTS}
        _LOGGER.log(level, kind, extra={"facts": {"line": line.number, **seen}})


def _about(run: str, plan: Plan) -> dict[str, str]:
    """Return what a line says of a plan."""
    return {"run": run, "plan": plan.digest().hex(), "trust": plan.trust.value}


def _unread(name: str) -> Envelope:
    """Return what stands for a request that could not be read: no request has its digest."""
    return Envelope(WIRE_VERSION, "", "unknown", SERVER, name, "", b"", b"", b"")
