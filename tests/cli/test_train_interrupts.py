"""What `tacit train` costs when it does not end: nothing that was not said, and nothing twice."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tacit.jobs import Job, TrainedModel, load_model
from tacit.ledger import Entry, Ledger
from tacit.reports.run_folder import UNFINISHED
from tests.cli.stopping import stop_at

TABLE = Path(__file__).parents[1] / "data" / "clinics.csv"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A table in a folder with a blank in its name, with ledgers beside it; it is where commands run."""
    place = tmp_path / "our clinics"
    place.mkdir()
    for name in ("clinics.csv", "clinics.columns.toml"):
        shutil.copy(TABLE.with_name(name), place / name)
    path = place / "clinics.csv"
    create = ["ledger", "create", str(path.with_suffix(".ledger")), "--silos-from", str(path)]
    assert main([*create, "--silo-column", "site", "--epsilon", "3", "--delta", "1e-3"]) == 0
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    return path


def arguments(table: Path, *more: str) -> list[str]:
    common = ["--label", "y", "--silo-column", "site", "--rounds", "4", "--algorithm", "minibatch"]
    return ["train", "--data", str(table), *common, *more]


def charged(table: Path) -> dict[str, list[Entry]]:
    """What is reserved, by ledger."""
    found = {}
    for path in sorted(table.with_suffix(".ledger").glob("*.ledger")):
        with Ledger.open(path) as ledger:
            found[ledger.label] = ledger.entries()
    return found


def model(folder: Path) -> Any:
    return load_model(folder).fitted.w


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("trust", "more"),
    [
        ("local", ["--participants", "2"]),
        ("central", ["--batch", "20", "--sampling", "disjoint"]),
    ],
)
def test_a_stopped_run_says_what_stays_spent_and_the_command_that_goes_on_at_no_cost(
    table: Path,
    trust: str,
    more: list[str],
    number: signal.Signals,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop_at(monkeypatch, 3, lambda: signal.raise_signal(number))
    assert main(arguments(table, "--trust", trust, "--epsilon", "2", "--json", *more)) == 130
    assert signal.getsignal(signal.SIGTERM) is before
    captured = capsys.readouterr()
    said, spent, again = captured.err.splitlines()
    assert (captured.out, said) == ("", "tacit: interrupted.")
    assert not Path("runs").exists()
    paid = {name: entries for name, entries in charged(table).items() if entries}
    assert len(paid) == (5 if trust == "local" else 2)  # one is that of the whole data set
    for name, (entry,) in paid.items():
        assert f"epsilon {entry.epsilon!r} at delta {entry.delta!r} for run {entry.run!r}" in spent
        owners = {"data set": "the data set", "central": "the trusted server"}
        assert owners.get(name, f"silo {name!r}") in spent
    assert spent.endswith("It stays spent.")

    label, command = again.split(": ", 1)
    assert label == "resume at no cost"
    words = shlex.split(command)
    assert words[:1] == ["tacit"]
    folders = []
    for _ in range(2):
        assert main(words[1:]) == 0
        folders.append(Path(json.loads(capsys.readouterr().out)["run"]))
    assert [folder.name for folder in folders] == [words[words.index("--name") + 1], f"{folders[0].name}-2"]
    np.testing.assert_array_equal(model(folders[0]), model(folders[1]))  # of stored answers alone
    assert {name: entries for name, entries in charged(table).items() if entries} == paid


def test_a_run_that_is_stopped_before_it_spends_says_so(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Job, "run", stopped)
    assert main(arguments(table)) == 130
    assert capsys.readouterr().err == "tacit: interrupted; nothing was spent.\n"
    assert main(arguments(table, "--seed", "1")) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "tacit: interrupted; no ledger counts this run, and nothing of it was kept."
    assert not Path("runs").exists()


@pytest.mark.parametrize("out", ["a file", "a file/deeper", "/proc/no/runs", "n" * 300])
def test_a_folder_that_cannot_be_written_is_found_before_anything_is_spent(
    table: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a file").write_text("")
    assert main(arguments(table, "--out", out)) == 3
    err = capsys.readouterr().err
    assert err.startswith("tacit: the run folder ")
    assert err.count("\n") == 1
    assert all(entries == [] for entries in charged(table).values())


def test_a_disk_that_is_full_at_the_end_costs_no_second_budget(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(TrainedModel, "save", full)
        assert main(arguments(table, "--epsilon", "2", "--name", "june")) == 3
    spent, again, error = capsys.readouterr().err.splitlines()
    assert spent.startswith("spent: epsilon ")
    assert error.endswith("No space left on device.")
    command = again.removeprefix("resume at no cost: ")
    assert command in (Path("runs/june") / UNFINISHED).read_text()
    paid = charged(table)
    assert main(shlex.split(command)[1:]) == 0
    assert charged(table) == paid
    assert (Path("runs/june-2") / "model.json").is_file()


def test_an_error_that_costs_nothing_says_nothing_of_costs(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(table, "--epsilon", "2", "--name", "june")) == 0
    capsys.readouterr()
    for other in (["--rounds", "5"], ["--epsilon", "1"]):
        assert main(arguments(table, "--epsilon", "2", "--name", "june", *other)) == 5
        err = capsys.readouterr().err
        assert "is reserved already, with another plan or price" in err
        assert err.count("\n") == 1
