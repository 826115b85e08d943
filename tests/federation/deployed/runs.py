"""Whole runs of a federation of processes: how they begin, and what must hold when they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tacit.federation.network.audit_log import verify_log
from tacit.federation.network.silo_service import LEDGER_FILE, LOG_FILE
from tacit.ledger import Ledger
from tests.federation.deployed.world import Federated, until

Found = Callable[..., Federated]
"""Makes federations; a fixture."""


def words(trust: str, *, rounds: int) -> tuple[str, ...]:
    """What `tacit federation init` is told of a run."""
    return ("--trust", trust, "--algorithm", "minibatch", "--rounds", str(rounds), "--epsilon", "8")


def running(found: Found, *more: str, **server: Any) -> Federated:
    """A federation whose owners have agreed, and all of whose roles run."""
    fed = found(*more)
    fed.agree()
    fed.change("server", **server)
    if "shuffle" in more:
        fed.start("shuffler")
    fed.start("server", *fed.silos)
    return fed


def answered(fed: Federated, name: str, times: int) -> None:
    """Wait until a silo has answered so often."""
    until(lambda: len(fed.answers(name)) >= times, f"{times} answers of {name}")


def ends_well(fed: Federated) -> None:
    """Wait for the end of the run: it has learned, everything was paid and answered once, and logs hold."""
    assert fed.ended("server") == 0, fed.log("server")
    fed.stop(*fed.pids)
    for name in fed.silos:
        assert fed.spent(name) == [(fed.run, *fed.price(name))]
        assert list(fed.answers(name)) == list(range(fed.plan.rounds))
        with Ledger.open(fed.state(name) / LEDGER_FILE) as ledger:
            assert len(ledger.answered(fed.run)) == fed.plan.rounds
        verify_log(fed.state(name) / LOG_FILE, fed.roster.verify_key(name))
    (result,) = json.loads((fed.folder / "runs" / "lab" / "metrics.json").read_text())["results"]
    assert result["score"] > 0.85
