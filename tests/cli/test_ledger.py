"""`tacit ledger`: what was created and spent is what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from tacit.cli import main
from tacit.data import load_table
from tacit.errors import PrivacyWarning
from tacit.jobs import JobConfig, load_job_data
from tacit.ledger import CENTRAL, DATA_SET, Ledger, ledger_path, open_ledgers
from tacit.privacy import Neighbours, PrivacyBudget, Relation, Unit

LIMIT = ["--epsilon", "2", "--delta", "1e-5"]
CLINICS = Path(__file__).parents[1] / "data" / "clinics.csv"


def shown(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["ledger", "show", str(path), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def reserve(ledger: Ledger, run: str = "run-1") -> None:
    ledger.reserve(run, price=PrivacyBudget(0.5, 1e-6), plan_digest=b"\x01\x02", event=b"")


def test_a_ledger_is_created_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ward.ledger"
    options = ["--neighbours", "zero-out", "--unit", "person", "--label", "ward 3"]
    assert main(["ledger", "create", str(path), *LIMIT, *options]) == 0
    assert "epsilon 2.0 at delta 1e-05, for blanking out one person" in capsys.readouterr().out
    with Ledger.open(path) as ledger:
        assert ledger.limit == PrivacyBudget(2.0, 1e-5)
        assert ledger.neighbours == Neighbours(Relation.ZERO_OUT, Unit.PERSON)
        reserve(ledger)
        time = ledger.entries()[0].time
    entry = {"time": time, "run": "run-1", "epsilon": 0.5, "delta": 1e-6, "plan_digest": "0102"}
    assert shown(path, capsys) == {
        "version": 1, "path": str(path), "label": "ward 3",
        "neighbours": {"relation": "zero-out", "unit": "person", "part": "all"},
        "limit": {"epsilon": 2.0, "delta": 1e-5}, "spent": {"epsilon": 0.5, "delta": 1e-6},
        "remaining": {"epsilon": 1.5, "delta": 9e-6}, "entries": [entry], "sums": [],
    }  # fmt: skip
    assert main(["ledger", "show", str(path)]) == 0
    out = capsys.readouterr().out
    for text in ("ward 3", "blanking out one person", "epsilon 1.5 at delta 9e-06", "run-1", time):
        assert text in out


def test_a_folder_has_a_ledger_for_each_silo_and_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ledgers"
    assert main(["ledger", "create", str(folder), *LIMIT, "--silos", "St. Mary's, b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": 1,
        "created": [str(ledger_path(folder, name)) for name in ("St. Mary's", "b", CENTRAL, DATA_SET)],
        "limit": {"epsilon": 2.0, "delta": 1e-5},
        "neighbours": {"relation": "replace-one", "unit": "record", "part": "all"},
    }
    (ledger,) = open_ledgers(folder, ["b"])
    reserve(ledger)
    ledger.close()
    found = shown(folder, capsys)
    assert (found["version"], found["folder"]) == (1, str(folder))
    spent = [(one["label"], one["spent"]["epsilon"], len(one["entries"])) for one in found["ledgers"]]
    assert spent == [(DATA_SET, 0.0, 0), ("b", 0.5, 1), ("St. Mary's", 0.0, 0), (CENTRAL, 0.0, 0)]
    assert main(["ledger", "show", str(folder)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["b", "2.0", "0.5", "1.5", "1e-05", "1e-06", "9e-06", "1"] in rows
    assert ["data", "set", "2.0", "0.0", "2.0", "1e-05", "0.0", "1e-05", "0"] in rows
    assert ["central", "2.0", "0.0", "2.0", "1e-05", "0.0", "1e-05", "0"] in rows
    assert sum("run-1" in row for row in rows) == 1


def test_silos_come_from_a_table_under_the_names_that_training_uses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("site,x,y\n2.0,1,0\n10.0,2,1\n2.0,3,1\n")
    with pytest.warns(PrivacyWarning):
        names = load_table(table, label="y", silo_column="site").silo_names
    folder = tmp_path / "ledgers"
    source = ["--silos-from", str(table), "--silo-column", "site"]
    assert main(["ledger", "create", str(folder), *LIMIT, *source]) == 0
    capsys.readouterr()
    for ledger in open_ledgers(folder, [*names, CENTRAL]):
        ledger.close()
    assert len(list(folder.iterdir())) == len(names) + 2 == 4


def test_silos_of_a_description_are_those_that_training_asks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One cell names no silo, and one silo has a name that does not print."""
    table, described = tmp_path / "table.csv", tmp_path / "public.toml"
    table.write_text("site,x,y\nelsewhere,1,0\n" + "a,1,0\nb\ufe0f,2,1\n" * 6)
    described.write_text(
        "[columns.site]\nkind = 'categorical'\ncategories = ['a', 'b\ufe0f']\n"
        "[columns.x]\nkind = 'numeric'\nlower = 0\nupper = 3\n[label]\nkind = 'classes'\nclasses = [0, 1]\n"
    )
    for ending, folder, silos in (([], "found", 3), (["--columns", str(described)], "described", 2)):
        create = [*LIMIT, "--silos-from", str(table), "--silo-column", "site", *ending]
        assert main(["ledger", "create", str(tmp_path / folder), *create]) == 0
        assert len(list((tmp_path / folder).iterdir())) == silos + 2
    capsys.readouterr()
    config = JobConfig(data=str(table), label="y", silo_column="site", columns=str(described), epsilon=1.0)
    names = load_job_data(config).silo_names
    assert names == ["a", "b\\ufe0f"]
    for ledger in open_ledgers(tmp_path / "described", names):
        ledger.close()


def test_a_description_says_what_is_protected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wards, elsewhere = tmp_path / "wards", tmp_path / "public.toml"
    wards.mkdir()
    for name in ("a", "b"):
        (wards / f"{name}.csv").write_text("who,x,y\n1,1,0\n")
    (wards / "columns.toml").write_text('person = "who"\n')
    elsewhere.write_text("version = 1\n")

    def unit(*options: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        create = [str(folder), *LIMIT, "--silos-from", str(wards), *options, "--json"]
        assert main(["ledger", "create", *create]) == 0
        return str(json.loads(capsys.readouterr().out)["neighbours"]["unit"])

    assert unit() == "person"
    assert unit("--unit", "record") == "record"
    assert unit("--columns", str(elsewhere)) == "record"
    (wards / "columns.toml").unlink()
    assert unit() == "record"
    assert unit("--unit", "person") == "person"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--epsilon", "nan", "--delta", "0"], 2, "epsilon must be a finite number > 0, got nan"),
        (["--epsilon", "1", "--delta", "1"], 2, "delta must be in [0, 1), got 1.0"),
        ([*LIMIT, "--neighbours", "replace"], 2, "did you mean 'replace-one'?"),
        ([*LIMIT, "--unit", "records"], 2, "unit must be one of record, person, party, got 'records'"),
        ([*LIMIT, "--label", "x" * 201], 2, "label must be a printable text of 0 to 200 characters"),
        ([*LIMIT, "--silos", "a,,b"], 2, "printable text of 1 to 200 characters, got ''"),
        ([*LIMIT, "--silos", "a,a"], 2, "must be distinct"),
        ([*LIMIT, "--silos", "a", "--label", "x"], 2, "label is for a single ledger"),
        ([*LIMIT, "--silo-column", "site"], 2, "the table of --silos-from, which is not given"),
        ([*LIMIT, "--silos-from", str(CLINICS), str(CLINICS)], 3, "two tables have the name 'clinics'"),
        ([*LIMIT, "--silos-from", str(CLINICS), "t.csv", "--silo-column", "site"], 2, "and 2 files"),
        ([*LIMIT, "--silos-from", "wardz"], 3, "a table must be a file that ends in .csv"),
        ([*LIMIT, "--silos-from", str(CLINICS), "none.csv"], 3, "none.csv is not there"),
        ([*LIMIT, "--silos", "a", "--silos-from", str(CLINICS), "--silo-column", "site"], 2, "not from both"),
        (
            [*LIMIT, "--silos", "a", "--columns", "c.toml"],
            2,
            "the tables of --silos-from, which is not given",
        ),
        ([*LIMIT, "--silos-from", str(CLINICS), "--columns", "c.toml"], 3, "c.toml cannot be read"),
        ([*LIMIT, "--silos-from", "none.csv", "--silo-column", "site"], 3, "none.csv is not there"),
        ([*LIMIT, "--silos-from", str(CLINICS), "--silo-column", "sites"], 3, "did you mean 'site'?"),
    ],
)
def test_what_cannot_be_created_is_one_line_and_leaves_nothing(
    options: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "create", str(tmp_path / "new"), *options]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert said in captured.err
    assert list(tmp_path.iterdir()) == []


def test_missing_names_in_the_silo_column_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("site,x\na,1\n,2\n")
    source = ["--silos-from", str(table), "--silo-column", "site"]
    assert main(["ledger", "create", str(tmp_path / "new"), *LIMIT, *source]) == 3
    assert "column 'site' says who holds a record, and has missing names" in capsys.readouterr().err


def test_a_ledger_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ward.ledger"
    assert main(["ledger", "create", str(path), *LIMIT]) == 0
    before = path.read_bytes()
    assert main(["ledger", "create", str(path), *LIMIT]) == 5
    captured = capsys.readouterr()
    assert captured.err == f"tacit: {path} exists already; a ledger is never overwritten.\n"
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"no ledger", b"SQLite format 3\x00" + b"\x00" * 500])
def test_what_is_no_ledger_is_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "corrupt.ledger"
    path.write_bytes(content)
    for target in (path, tmp_path):
        assert main(["ledger", "show", str(target)]) == 5
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert str(path) in captured.err


def test_a_flipped_bit_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ward.ledger"
    assert main(["ledger", "create", str(path), *LIMIT, "--label", "ward 3"]) == 0
    path.write_bytes(path.read_bytes().replace(b"ward 3", b"ward 4"))
    assert main(["ledger", "show", str(path)]) == 5
    assert "is damaged: its limit does not fit its seal" in capsys.readouterr().err


def test_ledgers_may_be_named_by_the_folder_of_their_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "a.csv"
    table.write_text("age,y\n" + "30,1\n40,0\n" * 50)
    folder = tmp_path / "silos.ledger"
    assert main(["ledger", "create", str(folder), *LIMIT, "--silos-from", str(tmp_path)]) == 0
    capsys.readouterr()
    query = ["--columns", "age", "--lower", "0", "--upper", "100", "--epsilon", "0.1"]
    assert main(["mean", str(table), *query, "--ledger", str(tmp_path)]) == 0
    assert "warning" not in capsys.readouterr().err
    assert shown(tmp_path, capsys) == shown(folder, capsys)
    train = ["train", str(tmp_path), "--label", "y", "--ledger", str(tmp_path)]
    assert main([*train, "--epsilon", "1", "--dry-run"]) == 4  # what is asked for delta is not left
    assert "above what the data set has left: 1.9" in capsys.readouterr().err


def test_a_table_of_prices_shows_no_more_digits_than_people_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "t.ledger"
    assert main(["ledger", "create", str(folder), *LIMIT, "--silos", "a"]) == 0
    (a,) = open_ledgers(folder, ["a"])
    a.reserve("run-1", price=PrivacyBudget(2 / 3, 1e-5 / 3), plan_digest=b"1", event=b"")
    a.close()
    capsys.readouterr()
    assert main(["ledger", "show", str(folder)]) == 0
    out = capsys.readouterr().out
    assert " 0.666667 " in out
    assert " 3.33333e-06" in out
    assert "0.6666666" not in out
    assert "3.333333" not in out


def test_nothing_to_show_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show", str(tmp_path)]) == 5
    assert (
        capsys.readouterr().err == f"tacit: {tmp_path} holds no ledgers; `tacit ledger create` makes them.\n"
    )
    assert main(["ledger", "show", str(tmp_path / "none.ledger")]) == 5
    assert "is missing or not a file" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_a_bar_for_each_account_fits_the_terminal(
    columns: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    folder, silo = tmp_path / "t.ledger", "a silo with a name that is longer than many a terminal"
    assert main(["ledger", "create", str(folder), *LIMIT, "--silos", f"b,{silo},c"]) == 0
    (b, long, c) = open_ledgers(folder, ["b", silo, "c"])
    for ledger, price in (
        (b, PrivacyBudget(1.0, 1e-6)),
        (long, PrivacyBudget(2.0, 0.0)),
        (c, PrivacyBudget(1e-3)),
    ):
        ledger.reserve("run-1", price=price, plan_digest=b"1", event=b"")
        ledger.close()
    capsys.readouterr()
    assert main(["ledger", "show", str(folder)]) == 0
    out = capsys.readouterr().out
    bars = {line.split("[")[0].strip(): line for line in out.splitlines() if line.endswith(" %")}
    assert len(bars) == 5
    assert max(map(len, bars.values())) <= columns
    assert len({line.index("[") for line in bars.values()}) == 1
    assert bars["b"].endswith("]  50 %")
    assert bars["b"].count("#") == bars["b"].count(".")
    assert bars["c"].endswith("]   1 %")  # little is not nothing
    assert bars["c"].count("#") == 1
    assert bars["data set"].endswith("]   0 %")
    assert "#" not in bars["data set"]
    (full,) = (line for line in bars.values() if line.startswith("a silo"))
    assert full.endswith("] 100 %")
    assert "." not in full


def test_a_bar_shows_delta_where_it_is_scarcer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.ledger"
    assert main(["ledger", "create", str(path), *LIMIT]) == 0
    with Ledger.open(path) as ledger:
        ledger.reserve("run-1", price=PrivacyBudget(0.5, 9e-6), plan_digest=b"1", event=b"")
    capsys.readouterr()
    assert main(["ledger", "show", str(path)]) == 0
    assert "]  90 %" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_plot_is_a_picture_of_every_account(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    folder, picture = tmp_path / "t.ledger", tmp_path / f"spent.{kind}"
    assert main(["ledger", "create", str(folder), *LIMIT, "--silos", "b,c"]) == 0
    (ledger,) = open_ledgers(folder, ["b"])
    for name in ("run-1", "run-2"):
        reserve(ledger, name)
    ledger.close()
    capsys.readouterr()
    assert main(["ledger", "show", str(folder), "--plot", str(picture), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == 1
    if kind == "svg":
        text = picture.read_text()
        assert all(f">{name}<" in text for name in ("data set", "b", "c", "central", "limit"))
    else:
        assert picture.read_bytes().startswith(b"\x89PNG")
    (single, bad) = ledger_path(folder, "b"), tmp_path / "spent.gif"
    assert main(["ledger", "show", str(single), "--plot", str(picture)]) == 0
    assert main(["ledger", "show", str(single), "--plot", str(bad)]) == 2
    assert "plot must be a file that ends with" in capsys.readouterr().err
    assert not bad.exists()
