"""The rows of a ledger: what they hold, checked when they are written and again when they are read."""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from tacit.errors import (
    LONGEST_NAME,
    LedgerError,
    ParameterError,
    check_name,
    check_positive,
    check_probability,
    check_text,
    real,
)
from tacit.privacy.budget import PrivacyBudget
from tacit.privacy.neighbours import Neighbours, Part, Relation, Unit

__all__ = [
    "Cost",
    "Entry",
    "Head",
    "check_bytes",
    "check_cost",
    "read_answer",
    "read_entries",
    "read_head",
    "read_state",
    "read_steps",
    "seal",
    "write_answer",
]

_MAX_BYTES: Final = 500_000_000  # SQLite takes 10^9 in a row


class Cost(msgspec.Struct, frozen=True):
    """A sum of prices, or what is left of a limit; unlike a budget it may be zero.

    Attributes:
        epsilon: >= 0.
        delta: In [0, 1).
    """

    epsilon: float
    delta: float


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One reservation.

    Attributes:
        run: The run that the price was reserved for.
        epsilon: Reserved epsilon.
        delta: Reserved delta.
        time: When, UTC, ISO 8601; for people only.
        plan_digest: Digest of the plan, hexadecimal.
        event: The plan's event, as the silo encoded it.
    """

    run: str
    epsilon: float
    delta: float
    time: str
    plan_digest: str
    event: bytes


class Head(NamedTuple):
    """What a ledger was created with, checked.

    Attributes:
        limit: What all plans together may cost.
        neighbours: What the limit and all prices are relative to.
        label: A public name.
        account: Fingerprint of the account of the data set, which pays besides; empty where there is none.
        seal: Digest of all of it and of a random number: no other ledger has it.
    """

    limit: PrivacyBudget
    neighbours: Neighbours
    label: str
    account: bytes
    seal: bytes


def check_cost(name: str, cost: PrivacyBudget | Cost) -> Cost:
    """Return a price or a limit as Python floats, rounded up; refuse all but epsilon > 0, delta in [0, 1)."""
    epsilon = _no_less(f"{name}.epsilon", getattr(cost, "epsilon", None))
    delta = _no_less(f"{name}.delta", getattr(cost, "delta", None))
    check_positive(f"{name}.epsilon", epsilon)
    check_probability(f"{name}.delta", delta, high_open=True)
    return Cost(epsilon, delta)


def _no_less(name: str, value: Any) -> float:
    """Return a number as a Python float that is no less."""
    number = real(name, value)
    return math.nextafter(number, math.inf) if number < value else number


def check_bytes(name: str, value: object, *, low: int = 1, most: int = _MAX_BYTES) -> None:
    """Refuse anything but bytes of a length that a row can hold."""
    if not isinstance(value, bytes):
        raise ParameterError(f"{name} must be bytes, got a {type(value).__name__}.")
    if not low <= len(value) <= most:
        raise ParameterError(f"{name} must have {low} to {most} bytes, got {len(value)}.")


def seal(previous: bytes, fields: Sequence[Any]) -> bytes:
    """Digest that ties a row to an earlier one: SQLite does not notice a flipped bit inside a value."""
    return hashlib.sha256(previous + msgspec.msgpack.encode(fields)).digest()


def _digest(state: bytes) -> bytes:
    """Digest by which an answer names the state that was stored with it."""
    return hashlib.sha256(state).digest()


def read_head(connection: sqlite3.Connection, path: Path) -> Head:
    """Return what a ledger was created with, checked."""
    columns = "epsilon, delta, relation, unit, part, label, time, nonce, account, seal"
    found = connection.execute(f"SELECT {columns} FROM ledger").fetchone()  # noqa: S608 - a literal above
    if found is None or seal(b"", found[:-1]) != found[-1]:
        raise LedgerError(f"{path} is damaged: its limit does not fit its seal.")
    epsilon, delta, relation, unit, part, label, _, _, account, sealed = found
    try:
        limit = check_cost("limit", PrivacyBudget(epsilon, delta))
        neighbours = Neighbours(relation=Relation(relation), unit=Unit(unit), part=Part(part))
        check_text("label", label, high=LONGEST_NAME)
        check_bytes("account", account, low=0, most=64)
    except ValueError as error:  # a ParameterError is one
        raise LedgerError(f"{path} is damaged: {error}") from error
    return Head(PrivacyBudget(limit.epsilon, limit.delta), neighbours, label, account, sealed)


def read_entries(
    connection: sqlite3.Connection, path: Path, previous: bytes, *, after: int = 0
) -> tuple[list[Entry], bytes]:
    """The reservations after one of them, checked from its seal on (the head's for 0), and the last seal."""
    entries: list[Entry] = []
    last = previous
    rows = connection.execute(
        "SELECT run, epsilon, delta, time, plan_digest, event, seal FROM reservations "
        "WHERE number > ? ORDER BY number",
        [after],
    )
    for number, (*row, sealed) in enumerate(rows, start=after + 1):
        if (last := seal(last, row)) != sealed:
            raise LedgerError(f"{path} is damaged: reservation {number} does not fit its seal.")
        run, epsilon, delta, time, digest, event = row
        try:
            check_name("run", run)
            check_cost("price", Cost(epsilon, delta))
            check_bytes("plan_digest", digest, most=64)
        except ParameterError as error:
            raise LedgerError(f"{path} is damaged: reservation {number}: {error}") from error
        entry = Entry(run=run, epsilon=epsilon, delta=delta, time=time, plan_digest=digest.hex(), event=event)
        entries.append(entry)
    return entries, last


def read_steps(connection: sqlite3.Connection, run: str, owner: bytes) -> set[int]:
    """The steps that have answers."""
    rows = connection.execute("SELECT step FROM answers WHERE run = ? AND owner = ?", [run, owner])
    return {step for (step,) in rows}


def read_answer(
    connection: sqlite3.Connection, path: Path, run: str, owner: bytes, step: int
) -> tuple[bytes, bytes, bytes | None] | None:
    """Query digest, answer and digest of the state of a step, checked, or None."""
    found = connection.execute(
        "SELECT answers.run, owner, step, query_digest, state_digest, answer, answers.seal, "
        "reservations.seal FROM answers LEFT JOIN reservations USING (run) "
        "WHERE answers.run = ? AND owner = ? AND step = ?",
        [run, owner, step],
    ).fetchone()
    if found is None:
        return None
    *row, sealed, reserved = found
    if reserved is None or seal(reserved, row) != sealed:
        raise LedgerError(f"{path} is damaged: step {step} of run {run!r} does not fit its seal.")
    query_digest, state_digest, answer = row[3:]
    return query_digest, answer, state_digest


def write_answer(
    connection: sqlite3.Connection,
    run: str,
    owner: bytes,
    step: int,
    *,
    query_digest: bytes,
    answer: bytes,
    state: bytes | None,
) -> None:
    """Add an answer to a run that is reserved, and put the state in the place of the owner's last one."""
    (reserved,) = connection.execute("SELECT seal FROM reservations WHERE run = ?", [run]).fetchone()
    row = [run, owner, step, query_digest, None if state is None else _digest(state)]
    connection.execute(
        "INSERT INTO answers SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ? FROM answers",
        [*row, seal(reserved, [*row, answer]), answer],
    )
    if state is None:
        return
    # The digest of the state is in the answer above: of both, all is stored or nothing.
    key = [run, owner]
    if not connection.execute(
        "UPDATE states SET state = ? WHERE run = ? AND owner = ?", [state, *key]
    ).rowcount:
        connection.execute("INSERT INTO states VALUES (?, ?, ?)", [*key, state])


def read_state(connection: sqlite3.Connection, path: Path, run: str, owner: bytes) -> bytes | None:
    """The state that was stored last, checked, or None."""
    key = [run, owner]
    steps = connection.execute(
        "SELECT step FROM answers WHERE run = ? AND owner = ? ORDER BY number DESC", key
    )
    # A damaged row must not pass for one without a state, so each is checked before it is skipped.
    answers = (read_answer(connection, path, run, owner, step) for (step,) in steps)
    expected = next((found[2] for found in answers if found is not None and found[2] is not None), None)
    stored = connection.execute("SELECT state FROM states WHERE run = ? AND owner = ?", key).fetchone()
    if expected != (None if stored is None else _digest(stored[0])):
        raise LedgerError(f"{path} is damaged: the state of run {run!r} does not fit its seal.")
    return None if stored is None else stored[0]
