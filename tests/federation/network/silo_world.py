"""A federation of three silos on paper, of which one is here, and a server that writes to it as it likes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tacit.federation import Plan, Query, Silo
from tacit.federation.network.audit_log import LogLine, read_log
from tacit.federation.network.consent import Consents
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.roster import Roster, ServerEntry, ShufflerEntry, SiloEntry
from tacit.federation.network.silo_service import CONSENT_FILE, LEDGER_FILE, LOG_FILE, SiloService
from tacit.federation.network.wire import (
    AskedRound,
    Closing,
    Opened,
    ProposedPlan,
    RequestBody,
    RequestKind,
    encode_query,
    open_reply,
    seal_request,
)
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Neighbours, PrivacyBudget
from tests.federation.network.parties import answer_in
from tests.federation.world import STATISTICS, Rows, ask_at, rows

NOW = dt.datetime(2031, 5, 1, 12, tzinfo=dt.UTC)
SIZE = 40
NAMES = ("a", "b", "c")
LIMIT = PrivacyBudget(10.0, 1e-4)


@dataclass
class Lab:
    """Keys of everybody, and the state folder of silo "b".

    Attributes:
        values: Its records.
        state: Its folder.
        statistics: What it can compute.
        door: Its way to the shuffler.
        now: The time.
    """

    state: Path
    values: Array = field(default_factory=lambda: rows(1, SIZE))
    statistics: Mapping[str, Any] = field(default_factory=lambda: STATISTICS)
    door: Any = None
    now: dt.datetime = NOW
    name: str = "b"
    trusts_server: bool = False
    trusts_shuffler: bool = True
    keeps: bool = True
    encoding: str | None = None
    made: list[SiloService] = field(default_factory=list)
    silos: list[Silo] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server, self.shuffler, self.opening = SigningKey.make(), SigningKey.make(), OpeningKey.make()
        self.keys = {name: SigningKey.make() for name in NAMES}
        self.roster = self.roster_with()

    def roster_with(self, **changes: Any) -> Roster:
        """The roster, with changes to the entry of the silo."""
        entries = [
            msgspec.structs.replace(
                SiloEntry(name=name, size=SIZE, verify=key.public.to_text()),
                **(changes if name == self.name else {}),
            )
            for name, key in self.keys.items()
        ]
        return Roster(
            federation="lab",
            server=ServerEntry(
                verify=self.server.public.to_text(),
                seal=self.opening.public.to_text(),
                url="https://server.test",
            ),
            shuffler=ShufflerEntry(verify=self.shuffler.public.to_text(), url="https://shuffler.test"),
            silos=tuple(entries),
        )

    @property
    def party(self) -> int:
        return NAMES.index(self.name)

    @property
    def consents(self) -> Consents:
        return Consents(self.state / CONSENT_FILE)

    def ledger(self) -> Ledger:
        """The silo's account, made the first time."""
        path = self.state / LEDGER_FILE
        if path.exists():
            return Ledger.open(path)
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Ledger.create(path, limit=LIMIT, neighbours=Neighbours())

    def silo(self) -> Silo:
        made = Silo(
            Rows(self.values),
            self.statistics,
            name=self.name,
            ledger=self.ledger() if self.keeps else None,
            trusts_server=self.trusts_server,
            trusts_shuffler=self.trusts_shuffler,
        )
        self.silos.append(made)
        return made

    def service(self) -> SiloService:
        """The service, as a process makes it when it starts; it ends with the test."""
        made = SiloService(
            self.silo(),
            roster=self.roster,
            key=self.keys[self.name],
            state=self.state,
            encoding=self.encoding,
            clauses=lambda _: ("the clause of the run holds",),
            door=self.door,
            clock=lambda: self.now,
        )
        self.made.append(made)
        return made

    def close(self) -> None:
        """Let go of all files, as the end of a process does."""
        for service in self.made:
            service.close()
        for silo in self.silos:
            if silo.ledger is not None:
                silo.ledger.close()

    def agree(self, plan: Plan, run: str = "trial", limit: PrivacyBudget | None = LIMIT) -> None:
        """Give the owner's consent."""
        self.consents.give("lab", plan.digest(), run, limit=limit)

    def request(
        self, kind: RequestKind, body: RequestBody, *, run: str = "trial", key: SigningKey | None = None
    ) -> bytes:
        """What the server sends."""
        chosen = self.server if key is None else key
        return seal_request(kind, body, roster=self.roster, run=run, to=self.name, key=chosen)

    def proposal(
        self, plan: Plan, *, run: str = "trial", party: int | None = None, budget: PrivacyBudget | None = None
    ) -> ProposedPlan:
        return ProposedPlan(
            plan.to_toml(),
            run,
            self.party if party is None else party,
            None if budget is None else budget.epsilon,
            None if budget is None else budget.delta,
        )

    def sent(
        self, service: SiloService, kind: RequestKind, body: RequestBody, *, run: str = "trial"
    ) -> Opened:
        """What the server reads of the reply to a request."""
        request = self.request(kind, body, run=run)
        return open_reply(service.handle(request), request=request, roster=self.roster, now=self.now)

    def accept(self, service: SiloService, plan: Plan, *, run: str = "trial") -> Opened:
        return self.sent(service, "accept", self.proposal(plan, run=run), run=run)

    def ask(
        self, service: SiloService, query: Query | None = None, *, run: str = "trial", descriptor: bytes = b""
    ) -> Opened:
        chosen = ask_at(0) if query is None else query
        return self.sent(service, "ask", AskedRound(encode_query(chosen), descriptor), run=run)

    def answer(self, service: SiloService, query: Query | None = None, *, run: str = "trial") -> bytes:
        """What the server finds in the answer to a query."""
        chosen = ask_at(0) if query is None else query
        return answer_in(self.ask(service, chosen, run=run), chosen.step, opening=self.opening)

    def end(self, service: SiloService, *, run: str = "trial") -> Opened:
        return self.sent(service, "close", Closing(), run=run)

    def lines(self, kind: str | None = None) -> list[LogLine]:
        """What the log holds."""
        return [line for line in read_log(self.state / LOG_FILE) if kind in (None, line.kind)]

    def spent(self) -> tuple[float, int]:
        """What the ledger has reserved, and how many answers of the run "trial" it holds."""
        with self.ledger() as ledger:
            return ledger.spent().epsilon, len(ledger.answered("trial"))


def code(reply: Opened) -> str:
    """Why the silo refused."""
    assert reply.envelope.kind == "refused", reply
    return str(reply.body.code)


def at(step: int, value: float) -> Query:
    """A query at another point."""
    return ask_at(step, np.full(3, value))


def words(lines: list[LogLine]) -> str:
    """All that a log says of some lines."""
    return json.dumps([line.facts for line in lines])


Labs = Callable[..., Lab]
"""Makes silos; a fixture."""
