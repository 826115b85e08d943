from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tacit.errors import LedgerError, RefusalError
from tacit.federation.store import AnswerStore, LastAnswer, LedgerStore
from tacit.ledger import WipedSecretError
from tacit.privacy import PrivacyBudget
from tests.federation.world import ledger_at

Make = Callable[[], AnswerStore]


@pytest.fixture(params=["memory", "ledger"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a store; from a ledger, every call is another process of the same run."""
    if request.param == "memory":
        yield LastAnswer
        return
    with ledger_at(tmp_path / "silo.ledger") as ledger:
        ledger.reserve("run", price=PrivacyBudget(1.0), plan_digest=b"p", event=b"")
        yield lambda: LedgerStore(ledger, "run")


def test_the_same_query_finds_the_same_bytes(make: Make) -> None:
    store = make()
    assert store.find(0, b"q0") is None
    assert store.keep(0, b"q0", b"first") == b"first"
    assert store.find(0, b"q0") == b"first"
    assert store.find(1, b"q1") is None


def test_an_answered_step_at_another_point_is_refused(make: Make) -> None:
    store = make()
    store.keep(3, b"q3", b"answer")
    with pytest.raises(RefusalError, match="step 3 has been answered at another point"):
        store.find(3, b"other")


def test_the_secret_is_drawn_once(make: Make) -> None:
    store = make()
    assert store.secret(lambda: b"order") == b"order"
    assert store.secret(lambda: pytest.fail("drawn again")) == b"order"


def test_named_secrets_are_kept_once_and_wiped_for_good(make: Make) -> None:
    secrets = make().secrets
    assert secrets.find("masks/root/1/") is None
    assert secrets.keep("masks/root/1/", lambda: b"first") == b"first"
    assert secrets.keep("masks/root/1/", lambda: pytest.fail("drawn again")) == b"first"
    assert secrets.keep("masks/root/10/", lambda: b"tenth") == b"tenth"
    secrets.wipe("masks/root/1/")
    assert secrets.find("masks/root/1/") is None
    assert secrets.find("masks/root/10/") == b"tenth"
    with pytest.raises(WipedSecretError, match="wiped"):
        secrets.keep("masks/root/1/", lambda: b"second")
    secrets.wipe()
    assert secrets.find("masks/root/10/") is None
    with pytest.raises(WipedSecretError):
        secrets.keep("anything", lambda: b"else")


def test_memory_keeps_the_newest_answer_only_and_refuses_what_is_gone() -> None:
    store = LastAnswer()
    for step in range(5):
        store.keep(step, b"q%d" % step, b"a%d" % step)
    assert store.find(4, b"q4") == b"a4"
    with pytest.raises(RefusalError, match="step 2 has been answered"):
        store.find(2, b"q2")


def test_a_ledger_keeps_all_answers_for_every_process(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "silo.ledger") as ledger:
        ledger.reserve("run", price=PrivacyBudget(1.0), plan_digest=b"p", event=b"")
        one, before = LedgerStore(ledger, "run"), LedgerStore(ledger, "run")
        for step in range(5):
            one.keep(step, b"q%d" % step, b"a%d" % step)
        after = LedgerStore(ledger, "run")
        kept = [b"a0", b"a1", b"a2", b"a3", b"a4"]
        assert [after.find(step, b"q%d" % step) for step in range(5)] == kept
        assert [before.keep(step, b"q%d" % step, b"new noise") for step in range(5)] == kept


def test_where_two_processes_answer_at_once_one_answer_leaves(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "silo.ledger") as ledger:
        ledger.reserve("run", price=PrivacyBudget(1.0), plan_digest=b"p", event=b"")
        one, two = LedgerStore(ledger, "run"), LedgerStore(ledger, "run")
        assert one.find(0, b"q") is None
        assert two.find(0, b"q") is None
        assert one.keep(0, b"q", b"first") == b"first"
        assert two.keep(0, b"q", b"second") == b"first"
        with pytest.raises(RefusalError, match="answered at another point"):
            two.keep(0, b"other", b"third")


def test_two_processes_share_one_secret_and_two_runs_do_not(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "silo.ledger") as ledger:
        for run in ("a", "b"):
            ledger.reserve(run, price=PrivacyBudget(1.0), plan_digest=b"p", event=b"")
        assert LedgerStore(ledger, "a").secret(lambda: b"mine") == b"mine"
        assert LedgerStore(ledger, "a").secret(lambda: b"other") == b"mine"
        assert LedgerStore(ledger, "b").secret(lambda: b"other") == b"other"


def test_nothing_is_stored_for_a_run_without_a_reservation(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "silo.ledger") as ledger:
        store = LedgerStore(ledger, "run")
        with pytest.raises(LedgerError, match="no reservation"):
            store.keep(0, b"q", b"answer")
        with pytest.raises(LedgerError, match="no reservation"):
            store.secret(lambda: b"order")
