"""Parties that die, come back, are late, lie or send what nobody can read: processes on this machine.

Whatever happens, no silo answers a step twice with fresh noise, and no ledger pays twice or for a refusal.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from tacit.federation import Plan, Query
from tacit.federation.network.bodies import ProposedPlan, Refused
from tacit.federation.network.certificates import client_context, make_authority
from tacit.federation.network.hub import Hub, serving
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.polling import LONGEST_POLL, make_poll
from tacit.federation.network.wire import open_reply, seal_request
from tests.federation.deployed.runs import Found, answered, ends_well, running, words
from tests.federation.deployed.world import Federated, impostor, until

pytestmark = pytest.mark.deployed

LOCAL, SHUFFLE, SUMS = (words(trust, rounds=14) for trust in ("local", "shuffle", "aggregate"))


def query(plan: Plan, step: int = 0, value: float = 0.0, *, radius: float | None = None) -> Query:
    """What a server may ask in a round."""
    (measure,) = plan.kinds[0][0].measures
    return Query(
        step,
        {"w": np.full(measure.estimator.dim, value)},
        (measure.max_radius if radius is None else radius,),
    )


def code(reply: Any) -> str:
    assert isinstance(reply.body, Refused), reply
    return str(reply.body.code)


# Parties that die


@pytest.mark.parametrize("trust", [LOCAL, SHUFFLE, SUMS], ids=["local", "shuffle", "sums"])
def test_silos_that_die_mid_run_come_back(trust: tuple[str, ...], found: Found) -> None:
    fed = running(found, *trust)
    for k, name in enumerate(fed.silos):
        answered(fed, name, 3 * (k + 1))
        fed.kill(name)
        fed.start(name)
    ends_well(fed)


def test_sums_are_opened_without_a_silo_that_is_gone_for_good_by_a_server_that_died(
    found: Found,
) -> None:
    fed = running(found, *SUMS, "--recover", "--n-min", "2", deadline=2.0)
    gone, *others = fed.silos
    answered(fed, gone, 3)
    fed.kill(gone)
    answered(fed, others[0], 8)
    fed.kill("server", others[0])
    fed.start("server", others[0])
    assert fed.ended("server") == 0, fed.log("server")
    fed.stop(*fed.pids)
    for name in fed.silos:
        assert fed.spent(name) == [(fed.run, *fed.price(name))]  # whether or not it stayed to the end
    for name in others:
        assert list(fed.answers(name)) == list(range(fed.plan.rounds))
    assert len(fed.answers(gone)) < fed.plan.rounds
    lines = (fed.folder / "runs" / "lab" / "rounds.jsonl").read_text().splitlines()
    sums = [tuple(json.loads(line)["answered"]) for line in lines]
    assert sums[0] == (0, 1, 2)
    assert sums[-1] == (1, 2)


def test_a_silo_that_died_after_it_had_answered_gives_the_same_answer(found: Found) -> None:
    fed = found(*LOCAL)
    fed.agree()
    plan, name = fed.plan, fed.silos[0]
    with impostor(fed) as server:
        fed.start(name)
        accepted = server.propose(name, "accept", plan)
        assert accepted is not None
        assert accepted.envelope.kind == "accepted"
        first = server.answer(name, query(plan))
        fed.kill(name)
        fed.start(name)
        assert server.answer(name, query(plan)) == first
        assert server.answer(name, query(plan, 1)) != first
    assert fed.spent(name) == [(fed.run, *fed.price(name))]


@pytest.mark.parametrize("trust", [LOCAL, SHUFFLE], ids=["local", "shuffle"])
def test_a_server_that_died_goes_on_and_nobody_pays_again(trust: tuple[str, ...], found: Found) -> None:
    fed = running(found, *trust)
    for times in (3, 9):
        answered(fed, fed.silos[0], times)
        fed.kill("server")
        fed.start("server")
    ends_well(fed)
    for name in fed.silos:
        assert len(fed.lines(name, "accepted")) == 1


def test_a_shuffler_that_died_goes_on(found: Found) -> None:
    fed = running(found, *SHUFFLE)
    for times in (3, 9):
        answered(fed, fed.silos[0], times)
        fed.kill("shuffler")
        fed.start("shuffler")
    ends_well(fed)


# Parties that are late


def test_a_server_waits_for_a_slow_silo(found: Found) -> None:
    fed = running(found, *LOCAL, deadline=1.0)
    slow = fed.silos[1]
    answered(fed, slow, 3)
    os.kill(fed.pids[slow], signal.SIGSTOP)
    until(lambda: "no word from" in fed.log("server"), "a server that misses a silo")
    os.kill(fed.pids[slow], signal.SIGCONT)
    ends_well(fed)


def test_a_late_answer_is_not_taken_for_that_of_another_round(found: Found) -> None:
    fed = found(*LOCAL)
    fed.agree()
    plan, name = fed.plan, fed.silos[0]
    with impostor(fed) as server:
        fed.start(name)
        server.propose(name, "accept", plan)
        os.kill(fed.pids[name], signal.SIGSTOP)
        assert server.ask(name, query(plan, 0), seconds=0.5) is None
        os.kill(fed.pids[name], signal.SIGCONT)
        other = server.answer(name, query(plan, 1))
        assert server.answer(name, query(plan, 0)) != other
        assert server.answer(name, query(plan, 1)) == other


# A server that asks for what was not agreed


def test_what_was_not_agreed_is_refused_and_costs_nothing(found: Found) -> None:
    fed = found(*LOCAL)
    fed.agree()
    plan, name = fed.plan, fed.silos[0]
    ((kind, rounds),) = plan.steps
    longer = msgspec.structs.replace(plan, steps=((kind, rounds + 1),))
    with impostor(fed) as server:
        fed.start(name)
        refused: list[str] = []

        def refuse(reply: Any, why: str) -> None:
            assert code(reply) == why
            refused.append(why)

        refuse(server.ask(name, query(plan)), "plan")  # nothing was accepted
        refuse(server.propose(name, "accept", longer), "consent")
        refuse(server.propose(name, "accept", plan, run="another"), "consent")
        assert not fed.spent(name)
        server.propose(name, "accept", plan)
        first = server.answer(name, query(plan))
        refuse(server.ask(name, query(plan, 0, 1.0)), "answered")  # a round with another model
        refuse(server.ask(name, query(plan, rounds)), "query")
        refuse(server.ask(name, query(plan, 1, radius=2 * query(plan).radius[0])), "query")
        refuse(server.propose(name, "accept", longer), "plan")  # in the run that was paid for
        refuse(server.ask(name, query(plan, 1), run="another"), "plan")
        assert server.answer(name, query(plan)) == first
    said = [str(line.facts["code"]) for line in fed.lines(name, "refused")]
    assert said == refused
    assert fed.spent(name) == [(fed.run, *fed.price(name))]
    assert set(fed.answers(name)) == {0}


# What nobody can read


def client(fed: Federated, role: str) -> httpx.Client:
    url = fed.roster.server.url if role == "server" else (fed.roster.shuffler or fed.roster.server).url
    return httpx.Client(
        base_url=url, verify=client_context(fed.folder / "ca.pem"), trust_env=False, timeout=20
    )


def memory(pid: int) -> int:
    """Bytes that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def stream(size: int) -> Any:
    """A body without a stated length."""
    for _ in range(size // 2**16):
        yield bytes(2**16)


def listens(fed: Federated, role: str) -> None:
    def there() -> bool:
        try:
            with client(fed, role) as door:
                return door.get("/health").status_code in (200, 404)
        except httpx.TransportError:
            return False

    until(there, f"the {role}")


def test_malformed_and_oversized_messages_to_the_server_change_nothing(found: Found) -> None:
    fed = found(*LOCAL)
    fed.agree()
    fed.start("server")
    listens(fed, "server")
    stranger = make_poll(
        SigningKey.make(), federation=fed.roster.federation, name=fed.silos[0], now=dt.datetime.now(dt.UTC)
    )
    rng = np.random.default_rng(0)
    with client(fed, "server") as door:
        before = 0
        for again in range(4):
            for body in (b"", b"\x00", rng.bytes(200), stranger, stranger[:-1], b"\x96" * LONGEST_POLL):
                assert door.post("/v1/poll", content=body).status_code == 401
                assert door.post("/v1/reply", content=body, headers={"tacit-poll": "?"}).status_code == 401
            assert door.post("/v1/poll", content=stream(2**24)).status_code == 413
            assert door.post("/v1/reply", content=stream(2**24)).status_code == 401
            if not again:  # until then the process is still starting
                before = memory(fed.pids["server"])
        assert memory(fed.pids["server"]) < before + 2**25
    fed.start(*fed.silos)
    ends_well(fed)


def test_malformed_and_oversized_messages_to_the_shuffler_change_nothing(found: Found) -> None:
    fed = found(*SHUFFLE)
    fed.agree()
    fed.start("shuffler")
    listens(fed, "shuffler")
    rng = np.random.default_rng(0)
    with client(fed, "shuffler") as door:
        before = memory(fed.pids["shuffler"])
        for path in ("/runs", "/rounds"):
            for body in (b"", b"\x00", rng.bytes(2000)):
                assert door.post(path, content=body).status_code in (401, 422)
            assert door.post(path, content=stream(2**25)).status_code == 413
        for path in ("/rounds/none/parcel", "/rounds/none/batch"):
            assert door.request("GET" if "batch" in path else "POST", path).status_code in (401, 404)
        assert memory(fed.pids["shuffler"]) < before + 2**26
    fed.start("server", *fed.silos)
    ends_well(fed)


def test_malformed_messages_to_a_silo_change_nothing(found: Found) -> None:
    fed = found(*LOCAL)
    fed.agree()
    plan, name = fed.plan, fed.silos[0]
    rng = np.random.default_rng(0)
    with impostor(fed) as server:
        fed.start(name)
        server.propose(name, "accept", plan)
        before = memory(fed.pids[name])
        for body in (b"\x00", rng.bytes(500), b"\x99" * 10_000, bytes(2**24)):
            assert len(list(server.hub.exchange({name: body}, deadline=10.0))) == 1
        server.answer(name, query(plan))
        assert memory(fed.pids[name]) < before + 2**27
    assert [str(line.facts["code"]) for line in fed.lines(name, "refused")] == ["failed"] * 4
    assert fed.spent(name) == [(fed.run, *fed.price(name))]


def test_malformed_and_oversized_messages_to_the_socket_of_a_silo_change_nothing(
    found: Found,
) -> None:
    """The door for a relay on the same machine: whoever may enter its folder may send anything."""
    fed = found(*LOCAL)
    fed.agree()
    plan, name = fed.plan, fed.silos[0]
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:  # a socket's path has at most 107 letters
        Path(folder).chmod(0o700)
        path = Path(folder) / "s"
        fed.change(name, socket=str(path))
        fed.start(name)
        until(path.exists, "the socket")
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(path)), base_url="http://silo", timeout=20
        ) as door:
            until(lambda: door.get("/v1/health").status_code == 200, "the silo")
            before = memory(fed.pids[name])
            for body in (b"", b"\x00", rng.bytes(500), b"\x99" * 10_000):
                assert door.post("/v1/request", content=body).status_code == 200
            assert door.post("/v1/request", content=stream(2**26)).status_code == 200
            assert door.get("/v1/request").status_code == 405
            assert memory(fed.pids[name]) < before + 2**28
            key = SigningKey.load(fed.folder / "server" / "signing.pem")
            proposal = ProposedPlan(plan.to_toml(), fed.run, 0, None, None)
            asked = seal_request("accept", proposal, roster=fed.roster, run=fed.run, to=name, key=key)
            reply = door.post("/v1/request", content=asked).content
            opened = open_reply(reply, request=asked, roster=fed.roster, now=dt.datetime.now(dt.UTC))
            assert opened.envelope.kind == "accepted"
        fed.stop(name)
    assert fed.spent(name) == [(fed.run, *fed.price(name))]


# Keys and certificates


def test_a_silo_with_another_key_does_not_start(found: Found) -> None:
    fed = found(*LOCAL)
    fed.agree()
    name = fed.silos[0]
    (fed.folder / name / "signing.pem").unlink()
    SigningKey.make().save(fed.folder / name / "signing.pem")
    fed.start(name)
    assert fed.ended(name) not in (0, None)
    (said,) = (line for line in fed.log(name).splitlines() if "signing must be the key" in line)
    assert name in said


@pytest.mark.parametrize("why", ["revoked", "expired", "unknown"])
def test_a_silo_that_does_not_count_is_not_let_in(why: str, found: Found) -> None:
    """The server's roster says so; a silo that has an older one says in its log that it is refused."""
    fed = found(*LOCAL)
    fed.agree()
    name, path = fed.silos[-1], fed.folder / "server" / "roster.toml"
    roster = fed.roster
    entries: dict[str, dict[str, Any]] = {
        "revoked": {"revoked": True},
        "expired": {"expires": dt.date(2020, 1, 1)},
    }
    silos = [
        msgspec.structs.replace(one, **entries.get(why, {})) if one.name == name else one
        for one in roster.silos
    ]
    if why == "unknown":
        silos = silos[:-1]
    msgspec.structs.replace(roster, silos=tuple(silos)).save(path)
    with serving(
        Hub(type(roster).load(path)),
        host="127.0.0.1",
        port=int(roster.server.url.rsplit(":", 1)[1]),
        certificate=fed.folder / "server" / "tls.pem",
        key=fed.folder / "server" / "tls.key",
    ):
        fed.start(name)
        until(lambda: "401" in fed.log(name), "a silo that was refused")
    fed.change("server", roster="server/roster.toml", patience=1.0, deadline=1.0)
    if why != "unknown":
        fed.start("server")
        assert fed.ended("server") not in (0, None)
        assert name in fed.log("server")
    assert not fed.spent(name)


def test_an_expired_certificate_ends_a_server_and_keeps_silos_away(found: Found) -> None:
    fed = found(*LOCAL)
    fed.agree()
    then = dt.datetime.now(dt.UTC) - dt.timedelta(days=30)
    folder, name = fed.folder / "server", fed.silos[0]
    for path in (fed.folder / "ca.pem", folder / "tls.pem", folder / "tls.key"):
        path.unlink()
    authority = make_authority("lab", now=then)
    authority.save(fed.folder / "ca.pem", fed.folder / "authority" / "old.key")
    authority.issue(["127.0.0.1"], now=then, days=7).save(folder / "tls.pem", folder / "tls.key")
    fed.start("server")
    assert fed.ended("server") not in (0, None)
    assert "expired" in fed.log("server")
    with impostor(fed) as server:
        fed.start(name)
        until(lambda: "certificate" in fed.log(name).lower(), "a silo that sees an expired certificate")
        assert server.propose(name, "consider", fed.plan, seconds=0.5) is None
        assert not server.hub.present()
