from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tacit.errors import BudgetError, LedgerError
from tacit.federation.account import check_price, price_of, reserve
from tacit.ledger import Ledger
from tacit.privacy import Gaussian, Guarantee, NonPrivate, PrivacyBudget, Relation, guarantee
from tests.federation.world import DELTA, GAUSSIAN, ledger_at, mean_of, plan_of

PLAN = plan_of(mean_of(GAUSSIAN))
PRICE = guarantee(Gaussian(5.0), DELTA, observer="x")


def check(
    price: Guarantee = PRICE, *, budget: PrivacyBudget | None = None, ledger: Ledger | None = None
) -> None:
    check_price(price, who="silo 'a'", run="new", budget=budget, ledger=ledger, plan=PLAN)


def test_a_price_is_that_of_privacy_whoever_looks() -> None:
    event = Gaussian(5.0)
    for observer, simulated in (("one", True), ("two", False)):
        price = price_of(event, DELTA, observer=observer, assumptions=("a",), simulated=simulated)
        assert price == guarantee(event, DELTA, observer=observer, assumptions=("a",), simulated=simulated)


def test_a_budget_is_met_or_refused_to_the_last_stated_digit() -> None:
    check(budget=PrivacyBudget(PRICE.epsilon, PRICE.delta))
    for epsilon, delta in ((PRICE.epsilon - 1e-6, DELTA), (PRICE.epsilon, DELTA / 2)):
        with pytest.raises(BudgetError, match=r"above the agreed .*; nothing was spent"):
            check(budget=PrivacyBudget(epsilon, delta))


def test_without_privacy_only_a_silo_that_asks_for_none_agrees(tmp_path: Path) -> None:
    nothing = guarantee(NonPrivate(), 0.0, observer="x")
    check(nothing)
    with pytest.raises(BudgetError, match="epsilon inf at delta 0, above the agreed"):
        check(nothing, budget=PrivacyBudget(1e300, 0.5))
    with (
        ledger_at(tmp_path / "l", epsilon=1e300) as ledger,
        pytest.raises(BudgetError, match="the plan claims no privacy; the ledger of silo 'a' refuses it"),
    ):
        check(nothing, ledger=ledger)


def test_a_ledger_of_other_neighbours_refuses(tmp_path: Path) -> None:
    with (
        ledger_at(tmp_path / "l", relation=Relation.ADD_REMOVE) as ledger,
        pytest.raises(LedgerError, match="about adding or removing one record, the plan about replacing one"),
    ):
        check(ledger=ledger)


def test_what_a_ledger_cannot_pay_is_refused_unless_it_is_paid_already(tmp_path: Path) -> None:
    price = guarantee(PLAN.event([9], PLAN.trust), DELTA, observer="x")
    with ledger_at(tmp_path / "l", epsilon=price.epsilon) as ledger:
        check(price, ledger=ledger)
        reserve(ledger, PLAN, price, run="old")
        reserve(ledger, PLAN, price, run="old")
        assert ledger.spent().epsilon == price.epsilon
        with pytest.raises(BudgetError, match="above what its ledger has left: epsilon 0 at"):
            check(price, ledger=ledger)
        check_price(price, who="silo 'a'", run="old", budget=None, ledger=ledger, plan=PLAN)


def test_a_free_plan_is_entered_as_well(tmp_path: Path) -> None:
    free = msgspec.structs.replace(PRICE, epsilon=0.0)
    with ledger_at(tmp_path / "l") as ledger:
        reserve(ledger, PLAN, free, run="free")
        assert [entry.run for entry in ledger.entries()] == ["free"]
