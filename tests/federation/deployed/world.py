"""A federation whose parties are processes on this machine, to be killed and started again."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
import numpy as np

from tacit.cli import main
from tacit.federation import Plan, Query
from tacit.federation.network.audit_log import LogLine, read_log
from tacit.federation.network.consent import Consents
from tacit.federation.network.hub import Hub, serving
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.network.roster import Roster
from tacit.federation.network.silo_service import CONSENT_FILE, LEDGER_FILE, LOG_FILE
from tacit.federation.network.wire import (
    AskedRound,
    Opened,
    ProposedPlan,
    RequestBody,
    RequestKind,
    encode_query,
    open_reply,
    seal_request,
)
from tacit.jobs.deployed.federation_job import FederationJob, read_job
from tacit.ledger import Ledger
from tacit.privacy import PrivacyBudget, TrustModel, guarantee
from tests.federation.deployed import nursery as nursery_program
from tests.federation.network.parties import answer_in

ROOT = Path(__file__).parents[3]
PATIENCE = 60.0
"""Seconds after which a test gives up: what is waited for takes a hundredth of them."""
_LOOK = 0.005


class Nursery:
    """Where processes come from; tests end those that they have started, by pid."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", nursery_program.__name__]
        self._process = subprocess.Popen(  # noqa: S603 - ours
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self.alive: set[int] = set()

    def close(self) -> None:
        """End it; what a test has left is killed with it."""
        self._process.communicate(timeout=PATIENCE)

    def _asked(self, **what: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, words: Sequence[str], log: Path) -> int:
        """Start `tacit WORDS`; return its pid."""
        pid = int(self._asked(start=list(words), log=str(log)))
        self.alive.add(pid)
        return pid

    def reap(self, pid: int, *, seconds: float = PATIENCE) -> int | None:
        """Wait for a process to end; return its exit code, or None if it runs on."""
        code: int | None = self._asked(reap=pid, seconds=seconds)
        if code is not None:
            self.alive.discard(pid)
        return code


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def until(true: Callable[[], Any], what: str, *, seconds: float = PATIENCE) -> Any:
    """Wait until something is true, and return it."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"waited {seconds} s in vain for {what}"
        time.sleep(_LOOK)
    return found


@dataclass
class Federated:
    """A folder that `tacit federation init` made, and the processes of its parties.

    Attributes:
        folder: Where.
        nursery: What starts processes.
        silos: Their names.
        run: Name of the run.
        pids: Of the roles that run, by name.
    """

    folder: Path
    nursery: Nursery
    silos: tuple[str, ...]
    run: str
    pids: dict[str, int] = field(default_factory=dict)

    def words(self, role: str) -> list[str]:
        """The command of a role."""
        kind = role if role in ("server", "shuffler") else "silo"
        return [kind, "--config", str(self.folder / f"{role}.toml")]

    def start(self, *roles: str) -> None:
        """Start roles."""
        for role in roles:
            assert role not in self.pids
            self.pids[role] = self.nursery.start(self.words(role), self.folder / f"{role}.log")

    def kill(self, *roles: str) -> None:
        """Kill roles, which have no time to say goodbye."""
        for role in roles:
            os.kill(self.pids[role], signal.SIGKILL)
            assert self.nursery.reap(self.pids.pop(role)) == -signal.SIGKILL, self.log(role)

    def stop(self, *roles: str) -> None:
        """End roles as an operator does; all of them end well."""
        for role in roles:
            os.kill(self.pids[role], signal.SIGTERM)
        for role in roles:
            assert self.nursery.reap(self.pids.pop(role)) == 0, self.log(role)

    def ended(self, role: str, *, seconds: float = PATIENCE) -> int | None:
        """Wait for a role to end by itself; return its exit code, None where it runs on."""
        code = self.nursery.reap(self.pids[role], seconds=seconds)
        if code is not None:
            del self.pids[role]
        return code

    def log(self, role: str) -> str:
        """All that a role has said."""
        path = self.folder / f"{role}.log"
        return path.read_text() if path.exists() else ""

    def state(self, name: str) -> Path:
        """The folder of what must survive a restart."""
        return self.folder / name / "state"

    def lines(self, name: str, kind: str) -> list[LogLine]:
        """What the log of a silo says of one kind."""
        path = self.state(name) / LOG_FILE
        return [line for line in read_log(path) if line.kind == kind] if path.exists() else []

    def spent(self, name: str) -> list[tuple[str, float, float]]:
        """What the ledger of a silo has reserved: runs with their epsilon and delta."""
        with Ledger.open(self.state(name) / LEDGER_FILE) as ledger:
            return [(entry.run, entry.epsilon, entry.delta) for entry in ledger.entries()]

    @property
    def roster(self) -> Roster:
        return Roster.load(self.folder / "roster.toml")

    @property
    def plan(self) -> Plan:
        return Plan.from_toml((self.folder / "plan.toml").read_text())

    def price(self, name: str) -> tuple[float, float]:
        """What the plan costs a silo."""
        plan, roster = self.plan, self.roster
        sizes = list(roster.sizes) if plan.trust is TrustModel.SHUFFLE else [roster.silo(name).size]
        price = guarantee(plan.event(sizes, plan.trust), plan.delta, observer="the server")
        return price.epsilon, price.delta

    def change(self, role: str, **fields: Any) -> None:
        """Change the configuration of a role."""
        path = self.folder / f"{role}.toml"
        path.write_bytes(msgspec.toml.encode(msgspec.toml.decode(path.read_bytes()) | fields))

    def answers(self, name: str) -> dict[int, str]:
        """What a silo has answered each step with; whatever was asked twice had one answer, in one circle."""
        found: dict[int, str] = {}
        for line in self.lines(name, "answered"):
            facts, step = line.facts, int(str(line.facts["step"]))
            said = f"{facts['query']} {facts.get('answer')} {facts.get('circle')}"
            assert found.setdefault(step, said) == said, f"{name} answered step {step} twice"
        return dict(sorted(found.items()))

    def progress(self, name: str) -> int:
        """The last step that a silo has answered; -1 before the first."""
        path = self.state(name) / LOG_FILE
        with path.open("rb") if path.exists() else open(os.devnull, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 4096))
            steps = re.findall(rb'"step":(\d+)', log.read())
        return int(steps[-1]) if steps else -1

    def agree(self) -> None:
        """Have every silo's owner agree to the plan."""
        for name in self.silos:
            consents = Consents(make_private_folder(self.state(name)) / CONSENT_FILE)
            consents.give(
                self.roster.federation, self.plan.digest(), self.run, limit=PrivacyBudget(*self.price(name))
            )

    def close(self) -> None:
        """Kill what runs."""
        self.kill(*self.pids)


@dataclass
class Impostor:
    """A server that has the server's key, and sends whatever it likes to silos that poll it.

    Attributes:
        fed: Whose key it has.
        hub: What silos poll.
    """

    fed: Federated
    hub: Hub

    def sent(
        self,
        name: str,
        kind: RequestKind,
        body: RequestBody,
        *,
        run: str | None = None,
        seconds: float = 10.0,
    ) -> Opened | None:
        """What a silo replies; None if it does not in time."""
        key = SigningKey.load(self.fed.folder / "server" / "signing.pem")
        request = seal_request(kind, body, roster=self.fed.roster, run=run or self.fed.run, to=name, key=key)
        for _, reply in self.hub.exchange({name: request}, deadline=seconds):
            return open_reply(reply, request=request, roster=self.fed.roster, now=dt.datetime.now(dt.UTC))
        return None

    def propose(
        self, name: str, kind: Literal["consider", "accept"], plan: Plan, **more: Any
    ) -> Opened | None:
        body = ProposedPlan(
            plan.to_toml(), more.get("run") or self.fed.run, self.fed.roster.index(name), None, None
        )
        return self.sent(name, kind, body, **more)

    def ask(self, name: str, query: Query, **more: Any) -> Opened | None:
        return self.sent(name, "ask", AskedRound(encode_query(query), b""), **more)

    def answer(self, name: str, query: Query) -> bytes:
        """What a silo answers, as the server reads it."""
        reply = self.ask(name, query)
        assert reply is not None
        opening = OpeningKey.load(self.fed.folder / "server" / "opening.pem")
        return answer_in(reply, query.step, opening=opening)


@contextmanager
def impostor(fed: Federated) -> Iterator[Impostor]:
    """Listen where the silos expect their server."""
    hub, folder = Hub(fed.roster), fed.folder / "server"
    port = urlsplit(fed.roster.server.url).port or 0
    with serving(hub, host="127.0.0.1", port=port, certificate=folder / "tls.pem", key=folder / "tls.key"):
        yield Impostor(fed, hub)


def write_tables(folder: Path, sizes: Sequence[int]) -> None:
    """Write one table a silo, of two features and a label that a line tells, and what the columns mean."""
    folder.mkdir()
    rng = np.random.default_rng(3)
    for k, size in enumerate(sizes, start=1):
        lines = ["a,b,y"]
        for a, b in rng.uniform(-1, 1, (size, 2)):
            lines.append(f"{a:.4f},{b:.4f},{'yes' if a + rng.normal() / 10 > b else 'no'}")
        (folder / f"silo-{k}.csv").write_text("\n".join(lines) + "\n")
    columns = "".join(f'{name} = {{kind = "numeric", lower = -1.0, upper = 1.0}}\n' for name in "ab")
    label = 'label = {kind = "classes", column = "y", classes = ["no", "yes"]}\n'
    (folder / "columns.toml").write_text(f"{label}[columns]\n{columns}")


def founded(folder: Path, nursery: Nursery, *more: str, sizes: Sequence[int] = (200, 300, 250)) -> Federated:
    """Found a federation on loopback; `more` goes to `tacit federation init`."""
    write_tables(folder / "tables", sizes)
    test = ["--test", str(folder / "tables" / "silo-1.csv")]
    urls = [f"--{role}=https://127.0.0.1:{free_port()}" for role in ("server", "shuffler")]
    tables = [f"--data={folder / 'tables' / f'silo-{k}.csv'}" for k in range(1, len(sizes) + 1)]
    columns = ["--columns", str(folder / "tables" / "columns.toml")]
    made = folder / "fed"
    words = ["--name", "lab", *tables, *columns, *test, *urls, *more]
    assert main(["federation", "init", "--out", str(made), *words]) == 0
    job = FederationJob.of(
        read_job(made / "job.toml"), Roster.load(made / "roster.toml"), columns=made / "columns.toml"
    )
    return Federated(made, nursery, tuple(f"silo-{k}" for k in range(1, len(sizes) + 1)), job.run)
