"""The account of a whole data set, charged by a federation before anybody else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BudgetError, LedgerError, RefusalError
from tacit.federation import Fixed, InProcess
from tacit.ledger import Ledger
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.world import GAUSSIAN, GRID, ledger_at, mean_of, plan_of, rows, silo_of

DATA = [rows(k, n) for k, n in enumerate((8, 20))]


@pytest.fixture
def whole(tmp_path: Path) -> Ledger:
    return ledger_at(tmp_path / "whole")


def test_under_local_trust_the_dearest_silo_is_charged_once(tmp_path: Path, whole: Ledger) -> None:
    plan = plan_of(mean_of(GRID), parties=2)
    with whole, ledger_at(tmp_path / "a") as a, ledger_at(tmp_path / "b") as b:
        prices = []
        for _ in range(2):
            silos = [silo_of(v, seed=None, ledger=one)[0] for v, one in zip(DATA, (a, b), strict=True)]
            prices = InProcess(silos, data_ledger=whole).open(plan).guarantees
        assert whole.spent().epsilon == max(price.epsilon for price in prices)
        assert whole.spent().delta == plan.delta
        assert len(whole.entries()) == len(a.entries()) == 1


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
def test_a_known_run_of_another_cut_or_of_new_ledgers_is_refused(
    tmp_path: Path, whole: Ledger, trust: TrustModel
) -> None:
    """Their answers are not stored: with fresh noise they would be a second release for one price."""
    plan = plan_of(mean_of(GRID, trust=trust), parties=2)

    def run(*names: str, folder: str = "") -> None:
        central = trust is TrustModel.CENTRAL
        ledgers = [
            Ledger.open(path) if path.exists() else ledger_at(path)
            for path in (tmp_path / f"{folder}{name}" for name in (["server"] if central else names))
        ]
        kept = [None] * len(names) if central else ledgers
        silos = [
            silo_of(values, seed=None, ledger=one, name=name)[0]
            for values, one, name in zip(DATA, kept, names, strict=True)
        ]
        InProcess(silos, ledger=ledgers[0] if central else None, data_ledger=whole).open(plan)
        for one in ledgers:
            one.close()

    with whole:
        run("a", "b")
        run("a", "b")
        for names, folder in ((("c", "d"), ""), (("b", "a"), ""), (("a", "b"), "new-")):
            with pytest.raises(LedgerError, match=r"other payers.* nothing was spent.* name a new run"):
                run(*names, folder=folder)
        assert len(whole.entries()) == 1
    for path in tmp_path.glob("[cdn]*"):
        with Ledger.open(path) as ledger:
            assert ledger.entries() == []


@pytest.mark.parametrize("poor", ["data set", "silo"])
def test_what_one_account_cannot_bear_no_account_is_charged(tmp_path: Path, poor: str) -> None:
    plan = plan_of(mean_of(GRID), parties=2)
    with (
        ledger_at(tmp_path / "whole", epsilon=0.01 if poor == "data set" else 10.0) as whole,
        ledger_at(tmp_path / "a") as a,
        ledger_at(tmp_path / "b", epsilon=0.01 if poor == "silo" else 10.0) as b,
    ):
        silos = [silo_of(v, seed=None, ledger=one)[0] for v, one in zip(DATA, (a, b), strict=True)]
        with pytest.raises(BudgetError, match=f"costs .*{poor}.* nothing was spent"):
            InProcess(silos, data_ledger=whole).open(plan)
        assert whole.entries() == a.entries() == b.entries() == []


def test_whoever_adds_the_noise_must_remember_its_answers(tmp_path: Path, whole: Ledger) -> None:
    """Else a run that starts again would have new noise, and be paid for already."""
    with whole, ledger_at(tmp_path / "a") as a:
        silos = [silo_of(DATA[0], seed=None, ledger=a)[0], silo_of(DATA[1], seed=None)[0]]
        with pytest.raises(LedgerError, match=r"silo .* must keep a ledger where the data set has one"):
            InProcess(silos, data_ledger=whole).open(plan_of(mean_of(GRID), parties=2))
        assert whole.entries() == a.entries() == []


def test_continuous_noise_is_not_what_the_data_set_is_charged_for(tmp_path: Path, whole: Ledger) -> None:
    with whole, ledger_at(tmp_path / "a") as a:
        (silo, _) = silo_of(DATA[0], seed=5, ledger=a)
        plan = plan_of(mean_of(GAUSSIAN), parties=1)
        InProcess([silo], data_ledger=whole, rng=np.random.default_rng(1)).open(plan)  # a simulation
        assert len(whole.entries()) == 1
        (silo, _) = silo_of(DATA[0], seed=None, ledger=a)
        with pytest.raises(RefusalError, match="refuses continuous noise"):
            InProcess([silo], data_ledger=whole).open(plan, run="real")
        assert len(whole.entries()) == 1


def test_under_central_trust_the_server_and_the_data_set_pay_the_same(tmp_path: Path, whole: Ledger) -> None:
    plan = plan_of(mean_of(GRID, trust=TrustModel.CENTRAL), parties=2)
    with whole, ledger_at(tmp_path / "server") as server, ledger_at(tmp_path / "poor", epsilon=0.01) as poor:
        silos = [silo_of(values, seed=None)[0] for values in DATA]
        with pytest.raises(LedgerError, match="the trusted server must keep a ledger"):
            InProcess(silos, data_ledger=whole).open(plan)
        with pytest.raises(BudgetError, match="costs the trusted server"):
            InProcess(silos, ledger=poor, data_ledger=whole).open(plan)
        assert whole.entries() == []
        InProcess(silos, ledger=server, data_ledger=whole).open(plan)
        assert whole.spent() == server.spent()
        assert whole.spent().epsilon > 0


def test_of_silos_with_different_prices_the_dearest_is_charged(tmp_path: Path, whole: Ledger) -> None:
    plan = plan_of(mean_of(GRID), parties=2, batch=Fixed(size=4))  # a half of one silo, a fifth of the other
    with whole, ledger_at(tmp_path / "a") as a, ledger_at(tmp_path / "b") as b:
        silos = [silo_of(v, seed=None, ledger=one)[0] for v, one in zip(DATA, (a, b), strict=True)]
        low, high = sorted(one.epsilon for one in InProcess(silos, data_ledger=whole).open(plan).guarantees)
        assert low < high == whole.spent().epsilon


def test_what_the_server_refuses_costs_the_data_set_nothing(tmp_path: Path, whole: Ledger) -> None:
    silos = [silo_of(values, seed=None)[0] for values in DATA]
    with whole, ledger_at(tmp_path / "server") as server:
        plan = plan_of(mean_of(GRID, trust=TrustModel.CENTRAL), parties=2)
        with pytest.raises(BudgetError, match="above the agreed"):
            InProcess(silos, ledger=server, data_ledger=whole).open(plan, budget=PrivacyBudget(0.01, 1e-6))
        assert whole.entries() == server.entries() == []
        plan = plan_of(mean_of(GAUSSIAN, trust=TrustModel.CENTRAL), parties=2)
        with pytest.raises(RefusalError, match="refuses continuous noise"):
            InProcess(silos, ledger=server, data_ledger=whole).open(plan)
        assert whole.entries() == server.entries() == []


def test_a_run_that_a_silo_knows_with_another_plan_costs_the_data_set_nothing(
    tmp_path: Path, whole: Ledger
) -> None:
    with whole, ledger_at(tmp_path / "a") as a:
        silo, _ = silo_of(DATA[0], seed=None, ledger=a)
        silo.accept(plan_of(mean_of(GRID), parties=1))
        other = plan_of(mean_of(GRID), parties=1, max_radius=2.0)  # at the same price
        with pytest.raises(LedgerError, match="another plan"):
            InProcess([silo], data_ledger=whole).open(other)
        assert whole.entries() == []
