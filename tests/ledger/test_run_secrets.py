"""What a run keeps secret in its ledger: kept once, found by all, and really deleted."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.errors import LedgerError, ParameterError
from tacit.ledger import Ledger, WipedSecretError
from tacit.privacy import Neighbours, PrivacyBudget

PRICE = PrivacyBudget(1.0, 1e-6)


def reserve(ledger: Ledger, run: str = "run") -> None:
    ledger.reserve(run, price=PRICE, plan_digest=b"p" * 32, event=b"e")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "l", limit=PrivacyBudget(10.0, 1e-4), neighbours=Neighbours()) as made:
        yield made


def test_whoever_is_first_decides_what_a_secret_is(ledger: Ledger) -> None:
    reserve(ledger)
    assert ledger.secrets("run").find("key") is None
    assert ledger.secrets("run").keep("key", lambda: b"first") == b"first"
    with Ledger.open(ledger.path) as again:
        assert again.secrets("run").keep("key", lambda: b"second") == b"first"
        assert again.secrets("run").find("key") == b"first"
    assert ledger.secrets("run").keep("other", lambda: b"second") == b"second"


def test_runs_and_files_keep_secrets_of_their_own(ledger: Ledger) -> None:
    for run in ("a", "b"):
        reserve(ledger, run)
        ledger.secrets(run).keep("key", run.encode)
    ledger.secrets("a").wipe()
    assert (ledger.secrets("a").find("key"), ledger.secrets("b").find("key")) == (None, b"b")


def test_what_is_wiped_is_not_in_the_file_and_never_kept_again(ledger: Ledger) -> None:
    reserve(ledger)
    secret = bytes(range(64, 128)) * 100  # longer than a page
    kept = ledger.secrets("run")
    kept.keep("masks/key", lambda: secret)
    kept.keep("masks/short", lambda: b"SHORTSECRET")
    kept.keep("else", lambda: b"STAYS-WHERE-IT-IS")
    assert secret[:1000] in ledger.path.read_bytes()
    kept.wipe("masks/")
    left = ledger.path.read_bytes()
    assert secret[:64] not in left
    assert b"SHORTSECRET" not in left
    assert b"STAYS-WHERE-IT-IS" in left
    with Ledger.open(ledger.path) as again:
        for one in (ledger, again):
            assert one.secrets("run").find("masks/key") is None
            with pytest.raises(WipedSecretError, match="was wiped"):
                one.secrets("run").keep("masks/key", lambda: b"new")
            assert one.secrets("run").find("else") == b"STAYS-WHERE-IT-IS"
    kept.wipe("masks/")


def test_a_ledger_knows_what_it_has_ever_kept(ledger: Ledger) -> None:
    kept = ledger.secrets("run")
    assert kept.lacking(["a/1", "b/1"]) == ["a/1", "b/1"]
    reserve(ledger)
    kept.keep("a/1", lambda: b"first")
    assert kept.lacking(["a/1", "b/1"]) == ["b/1"]
    kept.wipe("a/")
    assert kept.lacking(["a/1", "b/1"]) == ["b/1"]
    assert ledger.secrets("other").lacking({"a/1": 0}) == ["a/1"]


def test_secrets_need_a_reservation(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no reservation"):
        ledger.secrets("run").keep("key", lambda: b"x")
    ledger.secrets("run").wipe()
    assert ledger.secrets("run").find("key") is None


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb"])
def test_names_are_short_texts(ledger: Ledger, name: str) -> None:
    reserve(ledger)
    with pytest.raises(ParameterError, match="name"):
        ledger.secrets("run").keep(name, lambda: b"x")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE secrets SET value = x'00'",
        "DELETE FROM secrets",
        "INSERT OR REPLACE INTO secrets SELECT run, owner, name, seal, x'00' FROM secrets",
        "DELETE FROM wiped",
    ],
)
def test_no_secret_changes_by_accident(ledger: Ledger, statement: str) -> None:
    reserve(ledger)
    ledger.secrets("run").keep("key", lambda: b"x")
    ledger.secrets("run").keep("gone/key", lambda: b"y")
    ledger.secrets("run").wipe("gone/")
    with sqlite3.connect(ledger.path) as raw, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement)


def test_a_secret_that_was_changed_by_hand_is_refused(ledger: Ledger) -> None:
    reserve(ledger)
    ledger.secrets("run").keep("key", lambda: b"x")
    with sqlite3.connect(ledger.path) as raw:
        (made,) = raw.execute("SELECT sql FROM sqlite_schema WHERE name = 'secrets_update'").fetchone()
        raw.execute("DROP TRIGGER secrets_update")
        raw.execute("UPDATE secrets SET value = x'00'")
        raw.execute(made)
    with pytest.raises(LedgerError, match="does not fit its seal"):
        ledger.secrets("run").find("key")


def test_nothing_is_left_of_secrets_whose_rows_were_moved(ledger: Ledger) -> None:
    """Of all lengths, between answers and states that grow and change, in many writes."""
    rng, kept = random.Random(0), []  # noqa: S311 - what is kept need not be secret here
    reserve(ledger, "over")
    reserve(ledger, "on")
    for step in range(12):
        with ledger.together():
            for k in range(8):
                secret = rng.randbytes(rng.choice([32, 64, 200, 1000, 3000, 5000, 20_000]))
                run = rng.choice(["over", "on"])
                ledger.secrets(run).keep(f"masks/{step}/{k}", lambda secret=secret: secret)  # type: ignore[misc]
                kept.append((run, secret))
            answer, state = rng.randbytes(rng.choice([50, 500, 5000])), rng.randbytes(rng.choice([30, 3000]))
            ledger.store_answer("over", step, query_digest=b"q", answer=answer, state=state)
        ledger.secrets("on").wipe(f"masks/{rng.randrange(step + 1)}/")
    ledger.secrets("over").wipe()
    left = ledger.path.read_bytes()
    secrets = [secret for run, secret in kept if run == "over"]
    assert not [one for one in secrets if any(one[k : k + 16] in left for k in (0, 8, len(one) - 16))]
    assert any(secret[:16] in left for run, secret in kept if run == "on")
