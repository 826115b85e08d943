"""`charge`: several accounts pay for one run, all of them once or none."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from tacit.errors import BudgetError, LedgerError
from tacit.ledger import Cost, Ledger, charge
from tacit.privacy import (
    ApproximateDP,
    Guarantee,
    Neighbours,
    NonPrivate,
    PrivacyBudget,
    PureDP,
    Relation,
    guarantee,
)

PLAN = b"digest of a plan"


def price_of(epsilon: float) -> Guarantee:
    return guarantee(PureDP(epsilon), 0.0, observer="everybody")


def make(folder: Path, **limits: float) -> list[Path]:
    for name, limit in limits.items():
        Ledger.create(folder / name, limit=PrivacyBudget(limit), neighbours=Neighbours(), label=name).close()
    return [folder / name for name in limits]


def pay(files: list[Path], epsilon: float, run: str = "run") -> None:
    with ExitStack() as opened:
        charge(
            [opened.enter_context(Ledger.open(file)) for file in files], price_of(epsilon), run=run, plan=PLAN
        )


def spent(files: list[Path]) -> list[float]:
    found = []
    for file in files:
        with Ledger.open(file) as ledger:
            found.append(ledger.spent().epsilon)
    return found


def test_all_pay_once_or_none_pays(tmp_path: Path) -> None:
    files = make(tmp_path, a=1.0, b=0.7, c=1.0)
    for _ in range(2):
        pay(files, 0.5)
    assert spent(files) == [0.5] * 3
    for order in (files, files[::-1]):
        with pytest.raises(BudgetError, match=r"the plan costs b epsilon 0\.5 .*; nothing was spent"):
            pay(order, 0.5, "second")
    assert spent(files) == [0.5] * 3
    with pytest.raises(LedgerError, match="another plan or price"):
        pay(files, 0.25)
    pay([*files, *files], 0.1, "third")  # a file that is named twice
    link = tmp_path / "link"
    link.symlink_to(files[0])
    pay([files[0], link], 0.1, "fourth")
    assert spent(files) == [0.7, 0.6, 0.6]


def test_an_account_without_delta_refuses_what_needs_some(tmp_path: Path) -> None:
    price = guarantee(ApproximateDP(0.5, 1e-6), 1e-6, observer="everybody")
    for name, delta, allowed in (("just", 1e-6, True), ("less", 0.9e-6, False), ("none", 0.0, False)):
        limit = PrivacyBudget(1.0, delta)
        with Ledger.create(tmp_path / name, limit=limit, neighbours=Neighbours()) as ledger:
            refused = pytest.raises(
                BudgetError, match=rf"the plan costs {name} .*ledger has left: epsilon 1 at"
            )
            with nullcontext() if allowed else refused:
                charge([ledger], price, run="run", plan=PLAN)
            assert len(ledger.entries()) == allowed


def test_what_no_account_takes_costs_none_anything(tmp_path: Path) -> None:
    files = make(tmp_path, a=1.0, b=1.0)
    with Ledger.create(
        tmp_path / "c", limit=PrivacyBudget(1.0), neighbours=Neighbours(Relation.ZERO_OUT)
    ) as other, Ledger.open(files[0]) as ledger:  # fmt: skip
        with pytest.raises(LedgerError, match="the ledger of c is about blanking out one record"):
            charge([ledger, other], price_of(0.1), run="run", plan=PLAN)
        nothing = guarantee(NonPrivate(), 0.0, observer="everybody")
        with pytest.raises(BudgetError, match="claims no privacy"):
            charge([ledger], nothing, run="run", plan=PLAN)
        charge([], price_of(0.1), run="run", plan=PLAN)
    assert spent(files) == [0.0, 0.0]


def test_a_run_that_comes_between_leaves_nobody_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last account is emptied after all were looked at, and before the first is charged."""
    files = make(tmp_path, a=1.0, b=1.0)
    looked = []

    def emptied(account: Ledger, *_: object, **__: object) -> None:
        looked.append(account.label)
        if len(looked) == 2:
            pay_alone = Ledger.open(files[1])
            pay_alone.reserve("between", price=PrivacyBudget(1.0), plan_digest=PLAN, event=b"")
            pay_alone.close()

    monkeypatch.setattr("tacit.ledger.charging.check_account", emptied)
    with pytest.raises(BudgetError, match="run 'run' would reserve"):
        pay(files, 0.5)
    assert spent(files) == [0.0, 1.0]


def test_runs_that_lock_the_same_accounts_in_other_orders_do_not_wait_for_each_other(tmp_path: Path) -> None:
    files = make(tmp_path, a=2.0, b=2.0)
    refused: list[str] = []

    def work(name: str, order: list[Path]) -> None:
        for number in range(6):
            try:
                pay(order, 0.25, f"{name}-{number}")
            except BudgetError:
                refused.append(name)

    threads = [
        threading.Thread(target=work, args=(f"thread-{k}", files[:: 1 if k % 2 else -1])) for k in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=50)
    assert not any(thread.is_alive() for thread in threads)
    assert (spent(files), len(refused)) == ([2.0, 2.0], 4)


class _Countdown:
    """Kills this process before the writing SQLite statement of a number, whichever ledger it is of."""

    def __init__(self, statements: int) -> None:
        self._left = statements

    def __call__(self, statement: str) -> None:
        self._left -= statement.startswith(("BEGIN", "INSERT", "COMMIT"))
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


# Looking takes 4 statements in each file, reserving 4 (an INSERT is reported again by its trigger), of which
# the two COMMIT are the last of all.
@pytest.mark.parametrize("statement", [0, 7, 9, 11, 13, 14, 15, 16])
def test_a_run_that_is_killed_while_it_pays_pays_once_when_it_is_repeated(
    tmp_path: Path, statement: int
) -> None:
    files = make(tmp_path, a=0.5, b=0.5)
    child = os.fork()
    if child == 0:
        try:
            opened = [Ledger.open(file) for file in files]
            dies = _Countdown(statement)
            for ledger in opened:
                ledger._file._connection.set_trace_callback(dies)
            charge(opened, price_of(0.5), run="run", plan=PLAN)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == (0 if statement == 16 else signal.SIGKILL)
    assert sum(spent(files)) == {16: 1.0, 15: 0.5}.get(statement, 0.0)
    pay(files, 0.5)
    with Ledger.open(files[0]) as first, Ledger.open(files[1]) as second:
        assert first.spent() == second.spent() == Cost(0.5, 0.0)
        assert len(first.entries()) == len(second.entries()) == 1
