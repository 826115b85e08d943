from __future__ import annotations

import shutil

import pytest

from tacit.errors import LedgerError
from tacit.federation.network.silo_service import LEDGER_FILE
from tests.federation.network.silo_world import Lab
from tests.federation.world import GRID, ask_at, mean_of, plan_of

PLAN = plan_of(mean_of(GRID), rounds=4, parties=3)


def test_a_ledger_from_a_backup_is_not_gone_on_with(lab: Lab) -> None:
    """Or the silo would answer step 1 twice, with noise that was paid for once."""
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)
    lab.ask(service, ask_at(0))
    service.close()
    backup = shutil.copy(lab.state / LEDGER_FILE, lab.state / "backup")
    again = lab.service()
    kept = lab.answer(again, ask_at(1))
    again.close()
    newest = shutil.copy(lab.state / LEDGER_FILE, lab.state / "newest")
    shutil.copy(backup, lab.state / LEDGER_FILE)
    with pytest.raises(
        LedgerError, match=r"older than the log beside it, .*step 1 of run 'trial' was answered"
    ):
        lab.service()
    shutil.copy(newest, lab.state / LEDGER_FILE)
    assert lab.answer(lab.service(), ask_at(1)) == kept


def test_a_ledger_that_was_made_anew_is_not_gone_on_with(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)
    service.close()
    (lab.state / LEDGER_FILE).unlink()
    with pytest.raises(LedgerError, match="another one has paid for run 'trial'"):
        lab.service()
