"""One data set has one account: trust models, silo columns and commands share its limit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.federation import Silo
from tacit.ledger import CENTRAL, DATA_SET, Ledger, ledger_path
from tests.jobs.tables import SILOS, write_patients

WARDS = ("left", "right")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Patients in three sites, and by another column in two wards; votes and a noise function beside them."""
    monkeypatch.chdir(tmp_path)
    path = write_patients(tmp_path, per_silo=30)
    frame = pd.read_csv(path)
    frame["ward"] = np.resize(WARDS, len(frame))
    frame.to_csv(path, index=False)
    bounds = path.with_name("patients.columns.toml")
    bounds.write_text(bounds.read_text() + '[columns.ward]\nkind = "ignore"\n')
    np.save("votes.npy", np.ones((1, 3), dtype=np.int8))
    assert (
        main(["vote", "design", "--teachers", "3", "--m", "1", "--epsilon", "0.25", "--out", "g.json"]) == 0
    )
    return path


def create(table: Path, *, epsilon: float, silo_column: str = "site", **more: str) -> int:
    options = [str(table.with_suffix(".ledger")), "--silos-from", str(table), "--silo-column", silo_column]
    extra = [word for name, value in more.items() for word in (f"--{name}", value)]
    return main(["ledger", "create", *options, "--epsilon", str(epsilon), "--delta", "1e-3", *extra])


def train(
    table: Path, *, epsilon: float = 1.0, trust: str = "local", silo_column: str = "site", **more: str
) -> int:
    options = ["--data", str(table), "--label", "ill", "--silo-column", silo_column, "--trust", trust]
    extra = [word for name, value in more.items() for word in (f"--{name}", value)]
    return main(["train", *options, "--epsilon", str(epsilon), "--delta", "1e-6", "--rounds", "2", *extra])


def mean(table: Path, *, epsilon: float = 1.0, trust: str = "central", ledger: Path | None = None) -> int:
    options = ["--columns", "age", "--lower", "18", "--upper", "90", "--trust", trust]
    account = [] if ledger is None else ["--ledger", str(ledger)]
    return main(["mean", str(table), *options, "--epsilon", str(epsilon), *account])


def vote(ledger: Path) -> int:
    """Costs epsilon 0.25 for one answer of fresh teachers."""
    options = ["--votes", "votes.npy", "--out", "labels.npy", "--teachers-are", "fresh"]
    return main(["vote", "release", "g.json", *options, "--ledger", str(ledger)])


def spent(table: Path) -> dict[str, float]:
    """Epsilon by owner."""
    found = {}
    for path in table.with_suffix(".ledger").glob("*.ledger"):
        with Ledger.open(path) as ledger:
            found[ledger.label] = ledger.spent().epsilon
    return found


def test_no_trust_model_silo_column_or_command_spends_the_limit_again(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = table.with_suffix(".ledger")
    assert create(table, epsilon=1.0) == create(table, epsilon=1.0, silo_column="ward") == 0
    assert train(table, epsilon=1.0) == 0
    once = spent(table)
    assert once == {
        DATA_SET: 1.0, CENTRAL: 0.0, **dict.fromkeys(SILOS, 1.0), **dict.fromkeys(WARDS, 0.0)
    }  # fmt: skip
    capsys.readouterr()
    spends: tuple[Callable[[], int], ...] = (
        lambda: train(table, epsilon=1.0, trust="central"),
        lambda: train(table, epsilon=1.0, silo_column="ward"),
        lambda: train(table, epsilon=0.01, silo_column="ward"),
        lambda: mean(table, epsilon=1.0),
        lambda: mean(table, epsilon=0.01, trust="local"),
        lambda: mean(table, epsilon=0.01, ledger=ledger_path(folder, "left")),
        lambda: vote(folder),
        lambda: vote(ledger_path(folder, "right")),
    )
    for again in spends:
        assert again() == 4
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "the data set" in captured.err
        assert "nothing was spent" in captured.err
    assert spent(table) == once
    assert not Path("labels.npy").exists()


def test_silos_are_charged_in_parallel_and_runs_add_up(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = table.with_suffix(".ledger")
    assert create(table, epsilon=9.0) == create(table, epsilon=9.0, silo_column="ward") == 0
    assert train(table, epsilon=1.0, name="june") == 0
    dearest = max(spent(table)[site] for site in SILOS)
    assert spent(table)[DATA_SET] == dearest  # not three times
    total = dearest
    runs: tuple[tuple[Callable[[], int], Callable[[], float]], ...] = (
        (lambda: train(table, epsilon=0.5, trust="central"), lambda: spent(table)[CENTRAL]),
        (lambda: train(table, epsilon=0.5, silo_column="ward"), lambda: spent(table)["left"]),
        (lambda: mean(table, epsilon=0.25), lambda: 0.25),
        (lambda: mean(table, epsilon=0.25, trust="local"), lambda: 0.25),
        (lambda: vote(folder), lambda: 0.25),
        (lambda: vote(ledger_path(folder, "left")), lambda: 0.25),
    )
    for run, price in runs:
        assert run() == 0
        total += price()
        assert spent(table)[DATA_SET] == pytest.approx(total, abs=1e-9)
    assert train(table, epsilon=1.0, name="june") == 0  # a known run is charged once, everywhere
    assert spent(table)[DATA_SET] == pytest.approx(total, abs=1e-9)
    capsys.readouterr()
    assert main(["ledger", "show", str(folder), "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    first, *_, last = shown["ledgers"]
    assert (first["label"], last["label"]) == (DATA_SET, CENTRAL)
    assert len(first["entries"]) == 7
    assert first["spent"]["epsilon"] == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("silo", range(3))
def test_a_run_that_is_cut_short_while_it_pays_pays_once_when_it_is_repeated(
    table: Path, silo: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert create(table, epsilon=1.0) == 0
    accept = Silo.accept
    accepted: list[str] = []

    def killed(self: Silo, *arguments: Any, **named: Any) -> Any:
        if len(accepted) == silo:
            raise KeyboardInterrupt
        accepted.append(self.name)
        return accept(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Silo, "accept", killed)
        assert train(table, name="june") == 130
    paid = spent(table)
    assert paid[DATA_SET] == 1.0  # first of all: no other run can spend it meanwhile
    assert sum(paid[site] for site in SILOS) == silo
    assert train(table, name="july") == 4
    assert train(table, name="june") == 0
    assert spent(table) == {DATA_SET: 1.0, CENTRAL: 0.0, **dict.fromkeys(SILOS, 1.0)}


def test_a_folder_without_the_account_of_its_data_set_pays_nothing(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of an earlier tacit, or one whose account was removed: what was spent is unknown."""
    folder = table.with_suffix(".ledger")
    assert create(table, epsilon=1.0) == 0
    ledger_path(folder, DATA_SET).unlink()
    before = spent(table)
    capsys.readouterr()
    uses: tuple[Callable[[], int], ...] = (
        lambda: train(table),
        lambda: train(table, trust="central"),
        lambda: mean(table),
        lambda: mean(table, trust="local"),
        lambda: vote(folder),
        lambda: create(table, epsilon=1.0, silo_column="ward"),
    )
    for use in uses:
        assert use() == 5
        assert "has no account of the data set: data-set.ledger is not there" in capsys.readouterr().err
    assert spent(table) == before
    assert main(["ledger", "show", str(folder)]) == 0


def test_a_folder_has_one_relation(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(table, epsilon=1.0) == 0
    assert create(table, epsilon=1.0, silo_column="ward", neighbours="zero-out") == 5
    assert "is protected under replacing one record, got blanking out one record" in capsys.readouterr().err
    assert set(spent(table)) == {DATA_SET, CENTRAL, *SILOS}


def test_a_known_run_is_known_of_its_silos_and_their_ledgers_only(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another silo column or a ledger made anew stores no answers: they would draw noise for free."""
    folder = table.with_suffix(".ledger")
    assert create(table, epsilon=9.0) == create(table, epsilon=9.0, silo_column="ward") == 0
    assert train(table, name="june") == 0
    once = spent(table)
    capsys.readouterr()
    assert train(table, name="june", silo_column="ward") == 5
    assert "name a new run" in capsys.readouterr().err
    ledger_path(folder, SILOS[0]).unlink()
    assert (
        main(["ledger", "create", str(folder), "--silos", SILOS[0], "--epsilon", "9", "--delta", "1e-3"]) == 0
    )
    capsys.readouterr()
    assert train(table, name="june") == 5
    assert (
        "with another plan or price or other payers, in the ledger of the data set" in capsys.readouterr().err
    )
    assert spent(table) == {**once, SILOS[0]: 0.0}


def test_a_ledger_of_a_folder_pays_nothing_without_the_account_beside_it(
    table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert create(table, epsilon=1.0) == 0
    folder, own = table.with_suffix(".ledger"), ledger_path(table.with_suffix(".ledger"), SILOS[0])
    alias, copy, other = tmp_path / "alias.ledger", tmp_path / "copy.ledger", tmp_path / "other"
    alias.symlink_to(own)
    copy.write_bytes(own.read_bytes())
    assert mean(table, epsilon=0.25, ledger=alias) == 0
    paid = spent(table)
    assert (paid[DATA_SET], paid[SILOS[0]]) == (0.25, 0.25)
    capsys.readouterr()
    assert main(["ledger", "create", str(other), "--silos", "x", "--epsilon", "9", "--delta", "0.1"]) == 0
    (other / "moved.ledger").write_bytes(own.read_bytes())
    for place in (copy, other / "moved.ledger"):
        assert mean(table, epsilon=0.25, ledger=place) == vote(place) == 5
        assert "the account of its data set does not lie beside it" in capsys.readouterr().err
    ledger_path(folder, SILOS[1]).write_bytes(ledger_path(other, "x").read_bytes())
    assert mean(table, epsilon=0.25, trust="local") == 5
    alias.unlink()
    alias.hardlink_to(own)
    assert mean(table, epsilon=0.25, ledger=alias) == 5
    assert "hard links" in capsys.readouterr().err
    alias.unlink()
    with Ledger.open(ledger_path(folder, DATA_SET)) as whole:
        assert whole.spent().epsilon == 0.25


def test_a_link_to_a_table_has_the_ledger_of_the_table(
    table: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert create(table, epsilon=9.0) == 0
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    assert mean(link, epsilon=0.25) == 0
    assert spent(table)[DATA_SET] == 0.25
    capsys.readouterr()
    for name in ("link.ledger", "other.ledger"):
        alone = tmp_path / name
        assert main(["ledger", "create", str(alone), "--epsilon", "9", "--delta", "0"]) == 0
        assert mean(link, epsilon=0.25) == 5  # two ledgers lie beside its names
        assert mean(link, epsilon=0.25, ledger=alone) == 0
        assert "not charged: " in capsys.readouterr().err
    assert spent(table)[DATA_SET] == 0.25


def test_one_file_is_the_account_of_a_table_for_every_command(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table.with_suffix(".ledger")
    assert main(["ledger", "create", str(path), "--epsilon", "2.5", "--delta", "1e-3"]) == 0

    def paid() -> float:
        with Ledger.open(path) as ledger:
            return ledger.spent().epsilon

    assert train(table, trust="central", epsilon=0.5) == 0
    assert mean(table, epsilon=0.5) == 0
    assert vote(path) == 0
    assert paid() == pytest.approx(1.25)
    assert main(["train", "--data", str(table), "--label", "ill", "--epsilon", "0.5", "--delta", "1e-6",
                 "--rounds", "2", "--trust", "local", "--name", "one silo"]) == 0  # fmt: skip
    assert paid() == pytest.approx(1.75)
    capsys.readouterr()
    # Several silos store answers of their own, so that one file cannot be theirs.
    assert train(table, epsilon=0.1) == 5
    assert "under local trust each of the 3 silos keeps its own" in capsys.readouterr().err
    assert train(table, trust="central", epsilon=1.0) == 4
    assert "left: 0.75" in capsys.readouterr().err
    assert paid() == pytest.approx(1.75)
