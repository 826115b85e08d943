"""A folder of ledgers: one file for every name, all made or none, each opened by its own silo only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import LedgerError, ParameterError
from tacit.ledger import CENTRAL, DATA_SET, Cost, Ledger, create_ledgers, ledger_path, open_ledgers
from tacit.privacy import Neighbours, PrivacyBudget

LIMIT = PrivacyBudget(2.0, 1e-5)
NAMES = ["St. Mary's", "north/south", "ÆØÅ", "St Mary s", "st. mary's"]


def create(folder: Path, names: list[str]) -> list[Path]:
    return create_ledgers(folder, names, limit=LIMIT, neighbours=Neighbours())


@given(name=st.text(alphabet=st.characters(exclude_categories=[])))
def test_any_name_has_a_plain_file_name(name: str) -> None:
    path = ledger_path(Path("folder"), name)
    assert path.parent == Path("folder")
    assert path.suffix == ".ledger"
    assert len(path.name) <= 60
    assert set(path.stem) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@given(
    names=st.sets(st.text(alphabet="aA. /-", max_size=6) | st.just("x" * 60) | st.just("x" * 61), min_size=2)
)
def test_no_two_names_share_a_file_even_where_case_is_ignored(names: set[str]) -> None:
    assert (
        len({ledger_path(Path(), name).name.lower() for name in names | {CENTRAL, DATA_SET}})
        == len(names) + 2
    )


def test_all_ledgers_are_made_with_the_limit_and_open_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "ledgers"
    made = create(folder, NAMES)
    assert made == [ledger_path(folder, name) for name in [*NAMES, CENTRAL, DATA_SET]]
    assert sorted(folder.iterdir()) == sorted(made)
    assert folder.stat().st_mode & 0o777 == 0o700
    ledgers = open_ledgers(folder, [CENTRAL, *reversed(NAMES)])
    assert [ledger.label for ledger in ledgers] == [CENTRAL, *reversed(NAMES)]
    assert all((ledger.limit, ledger.neighbours) == (LIMIT, Neighbours()) for ledger in ledgers)
    ledgers[0].reserve("run", price=PrivacyBudget(0.5), plan_digest=b"d", event=b"")
    assert [ledger.spent().epsilon for ledger in ledgers] == [0.5] + [0.0] * len(NAMES)
    for ledger in ledgers:
        ledger.close()


def test_a_silo_that_comes_later_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    create(tmp_path, ["a"])
    first, server = open_ledgers(tmp_path, ["a", CENTRAL])
    for ledger in (first, server):
        ledger.reserve("run", price=PrivacyBudget(0.5), plan_digest=b"d", event=b"")
    assert create(tmp_path, ["b"]) == [ledger_path(tmp_path, "b")]
    assert first.spent() == server.spent() == Cost(0.5, 0.0)
    first.close()
    server.close()


def test_all_ledgers_are_made_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path, ["b"])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(LedgerError, match=r"silo 'b' has the ledger .*b-.*ledger already; a ledger is never"):
        create(tmp_path, ["a", "b"])
    whole = Ledger.create

    def failing(path: Path, *, label: str, **more: Any) -> Ledger:
        if label == "d":
            raise LedgerError("the disk is full.")
        return whole(path, label=label, **more)

    monkeypatch.setattr(Ledger, "create", failing)
    with pytest.raises(LedgerError, match="the disk is full"):
        create(tmp_path, ["c", "d"])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "at least one silo"),
        (["a", ""], "printable text of 1 to 200 characters, got ''"),
        (["a\nb"], "printable text of 1 to 200 characters"),
        (["x" * 201], "printable text of 1 to 200 characters"),
        (["a", "b", "a"], "must be distinct, got 'a' more than once"),
    ],
)
def test_names_that_cannot_be_told_apart_are_refused(names: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=said):
        create(tmp_path / "folder", names)
    with pytest.raises(ParameterError, match=said):
        open_ledgers(tmp_path / "folder", names)
    assert not (tmp_path / "folder").exists()


def test_no_silo_can_pass_for_the_server(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="'central' is the name of the trusted server's ledger"):
        create(tmp_path, ["a", "central"])
    assert list(tmp_path.iterdir()) == []
    create(tmp_path, ["Central"])
    with pytest.raises(ParameterError, match="'data set' is the name of the data set's ledger"):
        create(tmp_path, ["data set"])
    assert len(list(tmp_path.iterdir())) == 3


def test_a_missing_or_swapped_ledger_is_refused(tmp_path: Path) -> None:
    create(tmp_path, ["a", "b"])
    with pytest.raises(LedgerError, match=r"silo 'c' has no ledger in .*: c-.*ledger is not there"):
        open_ledgers(tmp_path, ["a", "c"])
    ledger_path(tmp_path, "a").replace(ledger_path(tmp_path, "b"))
    with pytest.raises(LedgerError, match="is the ledger of 'a', not of silo 'b'"):
        open_ledgers(tmp_path, ["b"])
    ledger_path(tmp_path, CENTRAL).unlink()
    with pytest.raises(LedgerError, match="the trusted server has no ledger"):
        open_ledgers(tmp_path, [CENTRAL])


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be made"):
        create(tmp_path / "file", ["a"])
