"""The file under the ledger: append-only, refused when damaged, shared by processes, killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TextIO

import numpy as np
import pytest

from tacit.errors import LedgerError
from tacit.ledger import Cost, Ledger
from tacit.privacy import PrivacyBudget
from tests.ledger import ledger_worker as worker
from tests.ledger.test_ledger import create, filled, reserve


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "silo.ledger"


# Append-only


@pytest.mark.parametrize("table", ["ledger", "reservations", "answers"])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {} SET number = number + 100",
        "DELETE FROM {}",
        "INSERT OR REPLACE INTO {0} SELECT * FROM {0}",
        "INSERT OR REPLACE INTO {0} SELECT number + 77, {1} FROM {0}",
    ],
)
def test_the_file_itself_refuses_changes(path: Path, table: str, change: str) -> None:
    filled(path)
    before = path.read_bytes()
    raw = sqlite3.connect(path)
    columns = ", ".join(row[1] for row in raw.execute(f"PRAGMA table_info({table})") if row[1] != "number")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(change.format(table, columns))
    raw.commit()
    raw.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE states SET run = 'run-3' WHERE run = 'run-1'",
        "DELETE FROM states",
        "INSERT OR REPLACE INTO states SELECT * FROM states",
        "INSERT INTO states VALUES ('run-3', x'', x'00')",
    ],
)
def test_the_file_itself_keeps_one_state_for_each_run(path: Path, change: str) -> None:
    filled(path)
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(change)
    raw.close()


@pytest.mark.parametrize("old", [b"s1", b"s0"])
def test_another_state_than_the_last_one_is_seen_when_read(path: Path, old: bytes) -> None:
    filled(path)
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("UPDATE states SET state = ? WHERE run = 'run-1'", [old])
    raw.close()
    with Ledger.open(path) as ledger:
        assert ledger.state("run-2") == b"s1"
        if old == b"s1":
            assert ledger.state("run-1") == b"s1"
            return
        with pytest.raises(LedgerError, match="the state of run 'run-1' does not fit its seal"):
            ledger.state("run-1")


def test_a_file_does_not_grow_with_rounds_times_state(path: Path) -> None:
    """A state as large as a silo's data was stored again with every answer."""
    size, sizes = 300_000, []
    with create(path) as ledger:
        reserve(ledger, "run-1")
        for step in range(12):
            state = bytes([step]) * size
            ledger.store_answer("run-1", step, query_digest=b"q", answer=b"a", state=state)
            assert ledger.state("run-1") == state
            sizes.append(path.stat().st_size)
    assert size < sizes[0] < 1.2 * size
    assert sizes[-1] == sizes[0]


def test_the_file_itself_refuses_an_answer_without_a_reservation(path: Path) -> None:
    filled(path)
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute("INSERT INTO answers VALUES (5, 'unpaid', x'', 0, x'00', NULL, x'00', x'00')")
    raw.close()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("UPDATE reservations SET epsilon = 0.001 WHERE number = 1", "reservation 1 does not fit its seal"),
        ("DELETE FROM reservations WHERE number = 1", "reservation 1 does not fit its seal"),
        ("UPDATE ledger SET epsilon = 1000.0", "its limit does not fit its seal"),
        ("DELETE FROM ledger", "its limit does not fit its seal"),
        ("", "its tables or triggers are not those of a ledger"),
    ],
)
def test_an_edit_around_the_triggers_is_seen(path: Path, edit: str, message: str) -> None:
    filled(path)
    raw = sqlite3.connect(path, isolation_level=None)
    triggers = raw.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        raw.execute(f"DROP TRIGGER {name}")
    raw.execute(edit or "SELECT 1")
    for _, sql in triggers if edit else ():
        raw.execute(sql)
    raw.close()
    with pytest.raises(LedgerError, match=message):
        Ledger.open(path)


def test_an_edited_answer_is_seen_when_read(path: Path) -> None:
    filled(path)
    content = path.read_bytes()
    assert content.count(b"run-2" * 100) == 2
    path.write_bytes(content.replace(b"run-2" * 100, b"run-2" * 99 + b"run-3"))
    with Ledger.open(path) as ledger:
        assert ledger.answer("run-1", 1) is not None
        for read in (lambda: ledger.answer("run-2", 1), lambda: ledger.state("run-2")):
            with pytest.raises(LedgerError, match="step 1 of run 'run-2' does not fit its seal"):
                read()


# Files that are refused


def refuse(path: Path, message: str) -> None:
    """Opening raises, and leaves every file as it was."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    with pytest.raises(LedgerError, match=message) as caught:
        Ledger.open(path)
    assert "\n" not in str(caught.value)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()} == before


def test_a_missing_file_is_refused_and_not_made(path: Path) -> None:
    refuse(path, "is missing or not a file")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    refuse(tmp_path, "is missing or not a file")


@pytest.mark.parametrize("size", [0, 1, 99, 4096, 20_000])
def test_a_truncated_file_is_refused(path: Path, size: int) -> None:
    content = filled(path).read_bytes()
    assert len(content) > 20_480
    path.write_bytes(content[:size])
    refuse(path, "is empty: its content was lost" if size < 2 else "cannot be used as a ledger|is damaged")


@pytest.mark.parametrize("size", [10, 4096, 50_000])
def test_random_bytes_are_refused(path: Path, size: int) -> None:
    path.write_bytes(np.random.default_rng(5).bytes(size))
    refuse(path, "cannot be used as a ledger: file is not a database")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_database_is_refused(path: Path, mode: str) -> None:
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA journal_mode = {mode}")
    raw.execute("CREATE TABLE things (x)")
    raw.close()
    refuse(path, "is not a ledger but another SQLite database")


def test_a_database_with_a_write_ahead_log_is_left_alone(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA journal_mode = wal")
    raw.execute("CREATE TABLE things (x)")
    with pytest.raises(LedgerError, match="has a write-ahead log, which a ledger never has"):
        Ledger.open(path)
    raw.close()


@pytest.mark.parametrize(
    ("version", "cure"),
    [(5, "use .* or a newer one"), (3, "what it counts stays spent: .* make a new ledger with that limit")],
)
def test_another_version_is_refused_with_the_cure(path: Path, version: int, cure: str) -> None:
    filled(path)
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA user_version = {version}")
    raw.close()
    refuse(path, f"is a ledger of version {version}; this tacit reads version 4: {cure}")


def test_another_journal_mode_is_refused(path: Path) -> None:
    filled(path)
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA journal_mode = wal")
    raw.close()
    refuse(path, "its journal mode is wal, not delete")


def everything(ledger: Ledger) -> object:
    answers = [ledger.answer(run, step) for run in ("run-1", "run-2") for step in range(3)]
    states = [ledger.state(run) for run in ("run-1", "run-2")]
    return ledger.limit, ledger.neighbours, ledger.label, ledger.entries(), ledger.spent(), answers, states


def test_a_flipped_byte_is_refused_or_harmless(path: Path) -> None:
    content = filled(path).read_bytes()
    with Ledger.open(path) as ledger:
        right = everything(ledger)
    # All that is not zero matters most; of the empty space between the cells, a sample is enough.
    used = [place for place, byte in enumerate(content) if byte]
    rng = np.random.default_rng(11)
    places = [*rng.choice(used, 700, replace=False), *rng.choice(len(content), 200), *range(100)]
    refused = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            with Ledger.open(path) as ledger:
                assert everything(ledger) == right, f"byte {place} was changed unseen"
        except LedgerError:
            refused += 1
    assert refused > 500


def test_a_ledger_removed_or_replaced_while_open_is_noticed(path: Path) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1")
        path.rename(path.with_name("moved"))
        with pytest.raises(LedgerError, match="was removed or replaced while it was open"):
            reserve(ledger, "run-2")
        create(path).close()
        with pytest.raises(LedgerError, match="was removed or replaced while it was open"):
            ledger.store_answer("run-1", 0, query_digest=b"q", answer=b"a")


def test_a_closed_ledger_is_a_clear_error(path: Path) -> None:
    ledger = create(path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed database"):
        ledger.spent()


# Many at once


def run_worker(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, worker.__file__ or "", *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours


def test_processes_together_cannot_overspend_or_answer_twice(path: Path) -> None:
    racers, tries = 5, 4
    with create(path, PrivacyBudget(0.71)) as ledger:
        reserve(ledger, "shared", 0.01)
    processes = [run_worker("race", path, f"racer-{n}", tries) for n in range(racers)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = [
        line.split() for process in processes for line in process.communicate(timeout=60)[0].splitlines()
    ]
    assert [process.returncode for process in processes] == [0] * racers
    won = {run for word, run, *_ in lines if word == "reserved"}
    sent = {tuple(rest) for word, *rest in lines if word == "sent"}
    assert len(won) == 7
    assert sum(word == "refused" for word, *_ in lines) == racers * tries - 7
    assert len(sent) == tries  # one answer for each step, whoever was asked
    with Ledger.open(path) as ledger:
        assert {entry.run for entry in ledger.entries()} == won | {"shared"}
        assert ledger.remaining() == Cost(0.0, 0.0)


def test_a_second_ledger_in_the_process_does_not_drop_the_first_ones_lock(path: Path) -> None:
    with create(path, PrivacyBudget(0.3)) as first:
        with first._file.transaction():
            Ledger.open(path).close()
            probe = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
            command = [sys.executable, "-c", probe, str(path)]
            other = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        assert "database is locked" in other.stderr


def test_a_fork_must_open_the_ledger_anew(path: Path) -> None:
    with create(path) as ledger:
        ledger._file._pid += 1  # as a forked child sees it
        with pytest.raises(LedgerError, match="opened by another process; open it anew after a fork"):
            reserve(ledger, "run-1")


# Killed at any moment


class Nursery:
    """Where workers come from that are to be killed."""

    def __init__(self, folder: Path) -> None:
        self._process, self._fifo = run_worker("nursery"), folder / "said"
        os.mkfifo(self._fifo)

    def close(self) -> None:
        self._process.communicate(timeout=60)
        self._fifo.unlink()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    @contextmanager
    def worker(
        self, path: Path, first: int, size: int, die_at: int | None = None
    ) -> Iterator[tuple[int, TextIO]]:
        """A worker that is killed, by itself or by the caller: its pid, and what it says."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(self._fifo), str(path), first, size, die_at]) + "\n")
        self._process.stdin.flush()
        pid = self._answer()
        with self._fifo.open() as said:
            yield pid, said
        assert self._answer() == -signal.SIGKILL


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


def kill_after(
    nursery: Nursery, path: Path, first: int, size: int, *, lines: int, seconds: float
) -> list[list[str]]:
    """What a worker had acknowledged that was killed `seconds` after it had said `lines` lines."""
    with nursery.worker(path, first, size) as (pid, out):
        said = [out.readline() for _ in range(1 + lines)]
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        said += out
    assert said[0] == "ready\n"
    return [line.split() for line in said[1:]]


def check_after_kill(path: Path, acknowledged: list[list[str]], size: int) -> int:
    """Everything acknowledged is there, nothing is there in part; returns the number of the run cut short."""
    with Ledger.open(path) as ledger:
        runs = [entry.run for entry in ledger.entries()]
        assert runs == [f"run-{number}" for number in range(len(runs))]
        assert {run for word, run, *_ in acknowledged if word == "reserved"} <= set(runs)
        epsilon, delta = (Fraction(str(price)) * len(runs) for price in worker.PRICE)
        assert ledger.spent() == Cost(float(epsilon), float(delta))
        assert ledger.spent().epsilon <= ledger.limit.epsilon
        for run in {run for _, run, *_ in acknowledged} | set(runs[-1:]):
            stored = [ledger.answer(run, step) for step in range(worker.STEPS)]
            there = sum(answer is not None for answer in stored)
            right = [
                (worker.digest(f"{run}/{step}"), worker.answer_bytes(run, step, size))
                for step in range(there)
            ]
            assert stored == right + [None] * (worker.STEPS - there)
            assert ["answered", run, str(there)] not in acknowledged
            assert all(int(step[0]) < there for word, name, *step in acknowledged if step and name == run)
            assert ledger.state(run) == (worker.state_bytes(run, there - 1) if there else None)
        before = ledger.spent()
        if runs:
            ledger.reserve(
                runs[-1],
                price=PrivacyBudget(*worker.PRICE),
                plan_digest=worker.digest(runs[-1]),
                event=runs[-1].encode(),
            )
        assert ledger.spent() == before
    return max(len(runs) - 1, 0)


def test_a_ledger_survives_being_killed_at_random_times(nursery: Nursery, path: Path) -> None:
    create(path, PrivacyBudget(20.0, 1e-4)).close()
    rng, first, size = np.random.default_rng(2), 0, 20_000
    for _ in range(16):
        lines, seconds = int(rng.integers(0, 40)), rng.uniform(0.0, 0.003)
        acknowledged = kill_after(nursery, path, first, size, lines=lines, seconds=seconds)
        assert len(acknowledged) >= lines
        first = check_after_kill(path, acknowledged, size)
    assert first > 10


def die_at(nursery: Nursery, path: Path, statement: int, size: int) -> list[list[str]]:
    """What a new ledger's worker, killed just before an SQLite statement, had acknowledged."""
    create(path).close()
    with nursery.worker(path, 0, size, statement) as (_, said):
        ready, *lines = [line.split() for line in said]
    assert ready == ["ready"]
    return lines


# What is written is reported again by its trigger: a reservation takes 4, a look at it 2, the first answer
# with its state 7, and the next one, which changes the state, 6; these are all places of them.
@pytest.mark.parametrize("statement", range(19))
def test_a_ledger_survives_being_killed_before_any_statement(
    nursery: Nursery, path: Path, statement: int
) -> None:
    lines = die_at(nursery, path, statement, 1000)
    assert len(lines) == (statement >= 4) + (statement >= 13)
    check_after_kill(path, lines, 1000)


def test_an_answer_that_is_half_in_the_file_is_undone(nursery: Nursery, tmp_path: Path) -> None:
    # Larger than SQLite's cache, so that much of the answer is in the file before the COMMIT.
    size, undone = 6_000_000, 0
    for statement in range(8, 14):
        path = tmp_path / f"{statement}.ledger"
        lines = die_at(nursery, path, statement, size)
        journal = path.with_name(path.name + "-journal")
        undone += journal.exists() and path.stat().st_size > size / 2 and len(lines) == 1
        check_after_kill(path, lines, size)
    assert undone == 4
