"""A silo of an owner's own units and statistics: its ledger is made once, and never again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tacit.errors import LedgerError, ParameterError
from tacit.federation.network.consent import Consents
from tacit.federation.network.silo_service import CONSENT_FILE, LEDGER_FILE, LOG_FILE, SiloService
from tacit.federation.network.silo_start import start_service
from tacit.federation.network.wire import ProposedPlan, open_reply, seal_request
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel
from tests.federation.network.parties import NOW, parties
from tests.federation.world import GRID, Rows, mean_of, plan_of, row, rows

LAB = parties(2, size=40)
LIMIT = PrivacyBudget(10.0, 1e-4)


def started(state: Path, **changes: Any) -> SiloService:
    given: dict[str, Any] = {
        "name": "silo-1",
        "roster": LAB.roster,
        "key": LAB.silos["silo-1"],
        "state": state,
        "limit": LIMIT,
    }
    return start_service(Rows(rows(1, 40)), {"mine": row}, **(given | changes))


def accepted(service: SiloService, state: Path, *, run: str = "mine", **changes: Any) -> str:
    """What the silo replies to a plan about its statistic, which its owner has agreed to."""
    plan = plan_of(mean_of(GRID, **changes), statistics=("mine",), parties=2)
    limit = None if plan.trust is TrustModel.CENTRAL else LIMIT
    Consents(state / CONSENT_FILE).give("lab", plan.digest(), run, limit=limit)
    body = ProposedPlan(plan.to_toml(), run, 0)
    request = seal_request("accept", body, roster=LAB.roster, run=run, to="silo-1", key=LAB.server)
    return open_reply(service.handle(request), request=request, roster=LAB.roster, now=NOW).envelope.kind


def test_a_statistic_of_the_owners_own_is_asked_for_by_name(tmp_path: Path) -> None:
    for _ in range(2):  # the second time, the run goes on
        service = started(tmp_path)
        assert accepted(service, tmp_path) == "accepted"
        service.close()
    with Ledger.open(tmp_path / LEDGER_FILE) as ledger:
        assert (ledger.limit, ledger.label, len(ledger.entries())) == (LIMIT, "silo-1", 1)


def test_without_a_limit_there_is_no_ledger_and_only_what_the_owner_allows(tmp_path: Path) -> None:
    for trusts in (False, True):
        service = started(tmp_path, limit=None, trusts_server=trusts)
        expected = "accepted" if trusts else "refused"
        assert accepted(service, tmp_path, trust=TrustModel.CENTRAL) == expected
        service.close()
    assert not (tmp_path / LEDGER_FILE).exists()


def test_a_ledger_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    started(tmp_path).close()
    (tmp_path / LEDGER_FILE).unlink()
    service = started(tmp_path)  # nothing was ever paid for
    accepted(service, tmp_path)
    service.close()
    (tmp_path / LEDGER_FILE).unlink()
    with pytest.raises(LedgerError, match=f"is gone, and .*{LOG_FILE} says that it paid for run 'mine'"):
        started(tmp_path)


def test_a_silo_without_a_ledger_may_have_one_later(tmp_path: Path) -> None:
    """What it answered before were exact sums, which no ledger counts."""
    service = started(tmp_path, limit=None, trusts_server=True)
    assert accepted(service, tmp_path, trust=TrustModel.CENTRAL) == "accepted"
    service.close()
    for _ in range(2):
        service = started(tmp_path)
        assert accepted(service, tmp_path, run="later") == "accepted"
        service.close()


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"limit": PrivacyBudget(11.0, 1e-4)}, ParameterError, "can never be changed; got 11.0 and"),
        ({"neighbours": Neighbours(Relation.ZERO_OUT)}, LedgerError, "is about replacing one record, the"),
    ],
)
def test_a_ledger_of_another_limit_or_relation(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], match: str
) -> None:
    started(tmp_path).close()
    with pytest.raises(error, match=match):
        started(tmp_path, **changes)
    started(tmp_path).close()


def test_a_limit_with_more_decimals_than_a_ledger_keeps_is_the_same_at_every_start(tmp_path: Path) -> None:
    for epsilon in (1 / 3, 1 / 3, 0.333334):
        started(tmp_path, limit=PrivacyBudget(epsilon, 1e-4)).close()
    for epsilon in (0.333333, 0.333335):
        with pytest.raises(ParameterError, match="can never be changed"):
            started(tmp_path, limit=PrivacyBudget(epsilon, 1e-4))


def test_what_fails_at_the_start_leaves_nothing_open(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="another key"):
        started(tmp_path, key=LAB.silos["silo-2"])
    assert not (tmp_path / LOG_FILE).exists()
    started(tmp_path).close()
