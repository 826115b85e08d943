"""A ledger checks what it writes and what it reads, and sees when its file went back."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tacit.errors import LedgerError, ParameterError
from tacit.ledger import Cost, Ledger
from tacit.ledger.rows import seal
from tacit.privacy import Neighbours, PrivacyBudget
from tests.ledger.test_ledger import DIGEST, LIMIT, create, filled, reserve


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "silo.ledger"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return filled(tmp_path_factory.mktemp("filled") / "silo.ledger").read_bytes()


# What is written

NO_EPSILON = [
    -1.0, -1e-300, 0.0, math.nan, math.inf, -math.inf, True, np.True_, "0.5", b"1", None, 10**5000, 1j,
    np.array([0.5]), np.float32("nan"), Decimal("0.5"), np.complex128(1),
]  # fmt: skip
NO_DELTA = [-1e-9, 1.0, 2, 10**400, math.nan, False, "0", None]


def test_no_ledger_writes_what_is_no_price_or_limit(path: Path) -> None:
    wrong = [(value, 0.0, "epsilon") for value in NO_EPSILON] + [(0.5, value, "delta") for value in NO_DELTA]
    with create(path) as ledger:
        before = path.read_bytes()
        for epsilon, delta, which in wrong:
            forged: Any = SimpleNamespace(epsilon=epsilon, delta=delta)
            with pytest.raises(ParameterError, match=rf"limit\.{which} must be"):
                Ledger.create(path.with_name("new"), limit=forged, neighbours=Neighbours())
            with pytest.raises(ParameterError, match=rf"price\.{which} must be"):
                ledger.reserve("run", price=forged, plan_digest=DIGEST, event=b"")
        assert (ledger.entries(), path.read_bytes()) == ([], before)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_negative_price_does_not_refund(path: Path) -> None:
    with create(path, PrivacyBudget(1.0)) as ledger:
        reserve(ledger, "run-1", 1.0)
        with pytest.raises(ParameterError, match=r"price.epsilon must be a finite number > 0, got -1\.0"):
            ledger.reserve("back", price=Cost(-1.0, 0.0), plan_digest=DIGEST, event=b"")
        assert ledger.spent() == Cost(1.0, 0.0)


@pytest.mark.parametrize("value", [np.float16(0.3), np.float32(0.3), np.float64(0.3), np.int8(1), 1])
def test_numbers_of_other_libraries_become_pythons(path: Path, value: Any) -> None:
    with create(path) as ledger:
        ledger.reserve(
            "run", price=SimpleNamespace(epsilon=value, delta=np.float32(0)),  # type: ignore[arg-type]
            plan_digest=DIGEST, event=b"",
        )  # fmt: skip
    with Ledger.open(path) as ledger:
        (entry,) = ledger.entries()
        assert (type(entry.epsilon), entry.epsilon) == (float, float(value))


def test_a_number_between_two_floats_is_rounded_up(path: Path) -> None:
    price: Any = SimpleNamespace(epsilon=2**53 + 1, delta=0.0)
    with create(path, PrivacyBudget(1e17)) as ledger:
        ledger.reserve("run", price=price, plan_digest=DIGEST, event=b"")
        assert ledger.spent().epsilon >= 2**53 + 1


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", "\ud800", "\x1b[2J", None, 7, b"run"])
def test_every_door_refuses_a_name_that_cannot_be_printed(path: Path, name: Any) -> None:
    with create(path) as ledger:
        doors: tuple[Callable[[], object], ...] = (
            lambda: ledger.reserve(name, price=PrivacyBudget(0.5), plan_digest=DIGEST, event=b""),
            lambda: ledger.store_answer(name, 0, query_digest=b"q", answer=b""),
            lambda: ledger.answer(name, 0),
            lambda: ledger.state(name),
        )
        for door in doors:
            with pytest.raises(ParameterError, match="run must"):
                door()
        assert ledger.entries() == []
    if name != "":  # a ledger may have no label
        with pytest.raises(ParameterError, match="label must"):
            Ledger.create(path.with_name("b"), limit=LIMIT, neighbours=Neighbours(), label=name)


@pytest.mark.parametrize("wrong", ["text", None, 7, bytearray(b"d"), memoryview(b"d")])
def test_a_row_takes_bytes_only(path: Path, wrong: Any) -> None:
    with create(path) as ledger:
        reserve(ledger, "run")
        price = PrivacyBudget(0.1)
        doors: dict[str, Callable[[], object]] = {
            "plan_digest": lambda: ledger.reserve("b", price=price, plan_digest=wrong, event=b""),
            "event": lambda: ledger.reserve("b", price=price, plan_digest=b"d", event=wrong),
            "query_digest": lambda: ledger.store_answer("run", 0, query_digest=wrong, answer=b""),
            "answer": lambda: ledger.store_answer("run", 0, query_digest=b"q", answer=wrong),
            "state": lambda: ledger.store_answer("run", 0, query_digest=b"q", answer=b"", state=wrong),
        }
        for name, door in doors.items():
            if (name, wrong) != ("state", None):
                with pytest.raises(ParameterError, match=f"{name} must be bytes"):
                    door()
        for step in (-1, 2**63, True, "0"):
            with pytest.raises(ParameterError, match="step must be a whole number"):
                ledger.answer("run", step)  # type: ignore[arg-type]
        assert ledger.answer("run", 0) is None


def test_more_than_a_row_holds_is_refused_before_it_is_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.ledger.rows.check_bytes.__kwdefaults__", {"low": 1, "most": 100})
    with create(path) as ledger:
        reserve(ledger, "run")
        with pytest.raises(ParameterError, match="answer must have 0 to 100 bytes, got 101"):
            ledger.store_answer("run", 0, query_digest=b"q", answer=b"a" * 101)


def test_neighbours_and_paths_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="neighbours must be Neighbours, got a str"):
        Ledger.create(tmp_path / "a", limit=LIMIT, neighbours="record")  # type: ignore[arg-type]
    for name in ("a\x00b", "\ud800"):
        with pytest.raises(LedgerError, match="cannot be the name of a file"):
            Ledger.create(tmp_path / name, limit=LIMIT, neighbours=Neighbours())
        with pytest.raises(LedgerError, match="is missing or not a file"):
            Ledger.open(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# What is read


def rewrite(path: Path, table: str, **changes: Any) -> None:
    """Change the last row of a table past its triggers, and seal all reservations anew."""
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA synchronous = OFF")
    raw.execute("BEGIN")
    triggers = raw.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        raw.execute(f"DROP TRIGGER {name}")
    for column, value in changes.items():
        last = raw.execute(f"SELECT max(number) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
        raw.execute(f"UPDATE {table} SET {column} = ? WHERE number = {last}", [value])  # noqa: S608
    head = raw.execute(
        "SELECT epsilon, delta, relation, unit, part, label, time, nonce, account FROM ledger"
    ).fetchone()
    sealed = seal(b"", head)
    raw.execute("UPDATE ledger SET seal = ?", [sealed])
    for number, *row in raw.execute(
        "SELECT number, run, epsilon, delta, time, plan_digest, event FROM reservations"
    ).fetchall():
        sealed = seal(sealed, row)
        raw.execute("UPDATE reservations SET seal = ? WHERE number = ?", [sealed, number])
    for _, sql in triggers:
        raw.execute(sql)
    raw.execute("COMMIT")
    raw.close()


@pytest.mark.parametrize(
    ("table", "change", "said"),
    [
        ("reservations", {"epsilon": -1.0}, r"reservation 2: price.epsilon must be .* got -1\.0"),
        ("reservations", {"epsilon": math.inf}, "reservation 2: price.epsilon must be"),
        ("reservations", {"delta": 1.0}, "reservation 2: price.delta must be"),
        ("reservations", {"delta": -1e-9}, "reservation 2: price.delta must be"),
        ("reservations", {"run": "two\nlines"}, "reservation 2: run must be a printable text of 1 to 200"),
        ("reservations", {"run": "x" * 201}, "reservation 2: run must be a printable text of 1 to 200"),
        ("reservations", {"plan_digest": b""}, "reservation 2: plan_digest must have 1 to 64 bytes"),
        ("reservations", {"plan_digest": b"d" * 65}, "reservation 2: plan_digest must have 1 to 64 bytes"),
        ("reservations", {"epsilon": 1.75}, r"epsilon 2\.25 at delta 0\.0 is reserved, above its limit 2\.0"),
        ("reservations", {"delta": 0.5}, r"epsilon 1\.0 at delta 0\.5 is reserved, above its limit 2\.0"),
        ("ledger", {"epsilon": -2.0}, "limit.epsilon must be|epsilon must be"),
        ("ledger", {"epsilon": math.inf}, "limit.epsilon must be|epsilon must be"),
        ("ledger", {"delta": 1.0}, "delta must be"),
        ("ledger", {"relation": "sideways"}, "'sideways' is not a valid Relation"),
        ("ledger", {"unit": ""}, "'' is not a valid Unit"),
        ("ledger", {"part": "none"}, "'none' is not a valid Part"),
        ("ledger", {"label": "two\nlines"}, "label must be a printable text of 0 to 200"),
        ("ledger", {"account": b"a" * 65}, "account must have 0 to 64 bytes"),
    ],
)
def test_an_edit_with_the_right_seals_is_refused(
    path: Path, content: bytes, table: str, change: dict[str, Any], said: str
) -> None:
    path.write_bytes(content)
    rewrite(path, table)
    Ledger.open(path).close()  # the seals are right: what is refused below is the value
    with Ledger.open(path) as ledger:
        rewrite(path, table, **change)
        with pytest.raises(LedgerError, match=r"is damaged|rolled back"):
            ledger.spent()
    with pytest.raises(LedgerError, match=rf"is damaged: .*({said})"):
        Ledger.open(path)


@pytest.mark.parametrize("value", [math.nan, "0.5 of it", b"1", None])
def test_the_table_itself_takes_numbers_only(path: Path, content: bytes, value: Any) -> None:
    path.write_bytes(content)
    with pytest.raises(sqlite3.IntegrityError, match=r"NOT NULL|cannot store"):
        rewrite(path, "reservations", epsilon=value)


def test_a_text_that_is_no_unicode_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content.replace(b"ward 3", b"ward \xff"))
    with pytest.raises(LedgerError, match=r"cannot be used as a ledger|is damaged"):
        Ledger.open(path)


# A file that goes back


def spends(ledger: Ledger) -> list[Callable[[], object]]:
    return [
        ledger.spent,
        ledger.remaining,
        ledger.entries,
        lambda: reserve(ledger, "run-9", 0.1),
        lambda: ledger.answer("run-1", 0),
        lambda: ledger.state("run-1"),
        lambda: ledger.store_answer("run-1", 9, query_digest=b"q", answer=b"a"),
    ]


def forked(path: Path, older: bytes) -> None:
    """Put an older copy in place, and go on with it until it has as many rows as before."""
    path.write_bytes(older)
    with Ledger.open(path) as other:
        reserve(other, "run-7", 0.5)
        for step in range(4):
            other.store_answer("run-7", step, query_digest=b"q", answer=b"another")


def another(path: Path, _: bytes) -> None:
    """Put another ledger in place."""
    create(path.with_name("copy"), PrivacyBudget(9.0)).close()
    path.write_bytes(path.with_name("copy").read_bytes())


CHANGES: dict[str, Callable[[Path, bytes], object]] = {
    "an older copy, written in place": lambda path, older: path.write_bytes(older),
    "an older copy that others used on": forked,
    "an older copy, renamed": lambda path, older: (
        path.with_name("copy").write_bytes(older),
        path.with_name("copy").replace(path),
    ),
    "another ledger": another,
    "nothing": lambda path, _: path.write_bytes(b""),
    "half of it": lambda path, _: path.write_bytes(path.read_bytes()[:8192]),
    "no file": lambda path, _: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("answers_only", [False, True])
def test_an_open_ledger_refuses_a_file_that_went_back(
    path: Path, change: Callable[[Path, bytes], object], answers_only: bool
) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1")
        if not answers_only:
            older = path.read_bytes()
            reserve(ledger, "run-2")
        else:
            older = path.read_bytes()
        for step in range(4):
            ledger.store_answer("run-1", step, query_digest=b"q", answer=b"a%d" % step)
        change(path, older)
        left = path.read_bytes() if path.is_file() else None
        for spend in spends(ledger):
            with pytest.raises(LedgerError):
                spend()
        assert (path.read_bytes() if path.is_file() else None) == left  # and nothing was written into it


def test_what_other_processes_add_is_no_way_back(path: Path) -> None:
    with create(path) as one, Ledger.open(path) as other:
        for number in range(3):
            reserve(one, f"one-{number}", 0.1)
            reserve(other, f"other-{number}", 0.1)
            other.store_answer(f"one-{number}", 0, query_digest=b"q", answer=b"a")
            assert one.answer(f"one-{number}", 0) == (b"q", b"a")
        assert one.spent() == other.spent() == Cost(0.6, 0.0)


def test_a_ledger_opened_after_the_file_went_back_cannot_know(path: Path) -> None:
    """Nothing in a file tells that it was newer once; docs/limits.md says so."""
    with create(path) as ledger:
        older = path.read_bytes()
        reserve(ledger, "run-1")
    path.write_bytes(older)
    with Ledger.open(path) as ledger:
        assert ledger.spent() == Cost(0.0, 0.0)
