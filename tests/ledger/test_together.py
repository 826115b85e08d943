"""Ledgers of a folder keep their answers in the account of all records: those of a round are one write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tacit.errors import BudgetError, LedgerError, RefusalError
from tacit.ledger import CENTRAL, DATA_SET, Ledger, create_ledgers, ledger_path, open_ledgers, reservations
from tacit.ledger.rows import read_entries
from tacit.privacy import Neighbours, PrivacyBudget

NAMES = ["a", "b", "c"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create_ledgers(tmp_path, NAMES, limit=PrivacyBudget(2.0), neighbours=Neighbours())
    return tmp_path


@pytest.fixture
def ledgers(folder: Path) -> Iterator[list[Ledger]]:
    """The account, then those of the silos; a run is reserved in all of them."""
    with ExitStack() as opened:
        found = [opened.enter_context(one) for one in open_ledgers(folder, [DATA_SET, *NAMES])]
        for ledger in found:
            reserve(ledger, "run")
        yield found


def reserve(ledger: Ledger, run: str, epsilon: float = 0.5) -> None:
    ledger.reserve(run, price=PrivacyBudget(epsilon), plan_digest=b"p", event=b"")


def store(ledger: Ledger, step: int, answer: bytes, query: bytes = b"q") -> bytes:
    return ledger.store_answer("run", step, query_digest=query, answer=answer, state=answer + b" kept")


def writes(ledger: Ledger) -> int:
    """How often the file of a ledger has been written."""
    return int.from_bytes(ledger.path.read_bytes()[24:28], "big")  # SQLite's change counter


def test_silos_have_their_own_answers_in_one_file(folder: Path, ledgers: list[Ledger]) -> None:
    account, *silos = ledgers
    before = [writes(ledger) for ledger in ledgers]
    with account.together():
        for name, silo in zip(NAMES, silos, strict=True):
            assert store(silo, 0, name.encode()) == name.encode()
    assert [writes(ledger) - old for ledger, old in zip(ledgers, before, strict=True)] == [1, 0, 0, 0]
    with ExitStack() as opened:
        for names in (NAMES, NAMES[::-1], NAMES[1:]):  # whatever the order, and whoever takes part
            _, *others = [opened.enter_context(one) for one in open_ledgers(folder, [DATA_SET, *names])]
            assert [one.answer("run", 0) for one in others] == [(b"q", name.encode()) for name in names]
            assert [one.state("run") for one in others] == [name.encode() + b" kept" for name in names]
            assert [store(one, 0, b"new noise") for one in others] == [name.encode() for name in names]
            assert [one.answered("run") for one in others] == [{0}] * len(names)
            with pytest.raises(RefusalError, match="answered at another point"):
                store(others[0], 0, b"new noise", query=b"another")
    assert account.answer("run", 0) is None


def test_of_a_round_all_answers_are_stored_or_none(folder: Path, ledgers: list[Ledger]) -> None:
    account, first, second, _ = ledgers
    store(second, 0, b"at another point", query=b"another")
    with pytest.raises(RefusalError), account.together():
        _ = [store(silo, 0, b"a") for silo in (first, second)]
    assert first.answer("run", 0) is None
    assert first.state("run") is None
    with suppress(KeyboardInterrupt), account.together():
        store(first, 1, b"a")
        raise KeyboardInterrupt
    with ExitStack() as opened:
        _, again = [opened.enter_context(one) for one in open_ledgers(folder, [DATA_SET, "a"])]
        assert again.answered("run") == set()


def test_without_the_account_a_ledger_of_a_folder_stores_nothing(folder: Path, ledgers: list[Ledger]) -> None:
    with Ledger.open(ledger_path(folder, "a")) as alone:
        reserve(alone, "another")
        for ask in (
            lambda: store(alone, 0, b"a"),
            lambda: alone.answer("run", 0),
            lambda: alone.state("run"),
            lambda: alone.answered("run"),
        ):
            with pytest.raises(
                LedgerError, match="keeps its answers in the account of the data set; open both"
            ):
                ask()
        with pytest.raises(LedgerError, match=r"is not the account that .* was made with"):
            alone.join(alone)
        alone.join(ledgers[0])
        with pytest.raises(LedgerError, match=r"'another' has no reservation in .*data-set"):
            alone.store_answer("another", 0, query_digest=b"q", answer=b"a")
        assert store(alone, 0, b"a") == b"a"
    assert ledgers[1].answer("run", 0) == (b"q", b"a")


def test_a_silo_that_has_not_reserved_answers_nothing(folder: Path) -> None:
    with ExitStack() as opened:
        account, silo = [opened.enter_context(one) for one in open_ledgers(folder, [DATA_SET, CENTRAL])]
        reserve(account, "run")
        with pytest.raises(LedgerError, match=r"no reservation in .*central"):
            store(silo, 0, b"a")


def test_a_ledger_of_a_folder_that_is_replaced_stores_nothing(folder: Path, ledgers: list[Ledger]) -> None:
    store(ledgers[1], 0, b"a")  # from here on it knows its reservation, and does not read its own file
    path = ledger_path(folder, "a")
    copy = folder / "copy"
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    with pytest.raises(LedgerError, match="was removed or replaced"):
        store(ledgers[1], 1, b"a")


def test_reservations_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def reading(*args: object, **kwargs: object) -> object:
        found = read_entries(*args, **kwargs)  # type: ignore[arg-type]
        read.append(len(found[0]))
        return found

    monkeypatch.setattr(reservations, "read_entries", reading)
    whole = ledger_path(folder, DATA_SET)
    with Ledger.open(whole) as one, Ledger.open(whole) as other:
        for number in range(20):
            reserve((one, other)[number % 2], f"run {number}", 0.01)
        assert one.spent() == other.spent()
        assert sum(read) == 40  # each row by each of the two, once
        assert one.find("run 7") == other.find("run 7") == one.entries()[7]


def test_a_reservation_that_is_taken_back_is_forgotten(folder: Path) -> None:
    with Ledger.open(ledger_path(folder, DATA_SET)) as ledger:
        reserve(ledger, "first")
        with (
            suppress(KeyboardInterrupt),
            ledger.reserving("second", price=PrivacyBudget(1.5), plan_digest=b"p", event=b""),
        ):
            assert ledger.knows("second")  # read before the block ends
            raise KeyboardInterrupt
        assert [entry.run for entry in ledger.entries()] == ["first"]
        assert ledger.remaining().epsilon == 1.5
        reserve(ledger, "third", 1.5)
        with pytest.raises(BudgetError, match=r"2 runs have reserved 2\.0"):
            reserve(ledger, "fourth", 0.1)


def test_what_a_block_took_back_leaves_room_for_nothing_else(folder: Path) -> None:
    """A reservation that is remembered and not in the file would hide the next one, which has its number."""
    path = ledger_path(folder, DATA_SET)
    with Ledger.open(path) as ledger:
        with suppress(KeyboardInterrupt), ledger.together():
            reserve(ledger, "first", 0.1)
            assert ledger.knows("first")  # read before the block ends
            raise KeyboardInterrupt
        assert not ledger.knows("first")
        reserve(ledger, "second", 1.8)
        assert ledger.spent().epsilon == 1.8
        with pytest.raises(BudgetError, match=r"1 runs have reserved 1\.8"):
            reserve(ledger, "third", 1.8)
    with Ledger.open(path) as again:
        assert [entry.run for entry in again.entries()] == ["second"]
