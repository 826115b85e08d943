"""One file per silo, from the command line to the ledgers: one data set, however the files are named."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from tacit.cli import main
from tacit.cli.train_flags import TrainFlags
from tacit.ledger import CENTRAL, DATA_SET, TOGETHER, Ledger
from tests.data.make_clinics import PATH

WARDS = ("Bergen", "Gdansk", "Porto", "Tartu")
ALL = {DATA_SET, CENTRAL, *WARDS}
PRICE = ["--epsilon", "1", "--delta", "1e-6", "--rounds", "2"]


@pytest.fixture
def wards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The clinics as hospitals hand them over: a file of each, all in other forms, and one description."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "wards"
    folder.mkdir()
    frame = pd.read_csv(PATH, dtype=str, keep_default_na=False)
    texts = {str(site): rows.drop(columns="site") for site, rows in frame.groupby("site")}
    texts["Bergen"].to_csv(folder / "Bergen.csv", index=False)
    texts["Gdansk"].replace(r"\.", ",", regex=True).to_csv(folder / "Gdansk.csv", sep=";", index=False)
    texts["Porto"][::-1].to_csv(folder / "Porto.tsv", sep="\t", index=False, encoding="utf-16")
    texts["Tartu"].iloc[:, ::-1].to_csv(folder / "Tartu.csv.gz", index=False)
    shutil.copy(PATH.with_name("clinics.columns.toml"), folder / "columns.toml")
    return folder


def train(*words: str, name: str = "june") -> int:
    return main(["train", *words, "--label", "y", *PRICE, "--name", name])


def create(*words: str, at: str = f"wards/{TOGETHER}", epsilon: str = "9") -> int:
    return main(["ledger", "create", at, "--silos-from", *words, "--epsilon", epsilon, "--delta", "1e-3"])


def mean(table: str, *words: str) -> int:
    bounds = ["--lower", "18", "--upper", "95", "--epsilon", "0.25"]
    return main(["mean", table, "--columns", "age", *bounds, *words])


def spent(folder: Path) -> dict[str, float]:
    """Epsilon by owner."""
    found = {}
    for path in (folder / TOGETHER).glob("*.ledger"):
        with Ledger.open(path) as ledger:
            found[ledger.label] = ledger.spent().epsilon
    return found


def test_files_are_silos_however_they_are_named(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One data set, one model: a folder, a pattern, a list in any order, by arguments, --data or TOML."""
    files = [str(path.relative_to(wards.parent)) for path in wards.iterdir() if path.name != "columns.toml"]
    Path("job.toml").write_text(f"data = {json.dumps(sorted(files))}\nlabel = 'y'\nseed = 1\n")
    forms: tuple[list[str], ...] = (
        ["wards"],
        ["wards/"],
        ["wards/*"],
        sorted(files, reverse=True),
        ["--data", "wards"],
        ["--data", "wards/*sv*"],
        [word for file in files for word in ("--data", file)],
        ["job.toml"],
    )
    models, names = set(), []
    for k, words in enumerate(forms):
        assert main(["train", *words, "--label", "y", "--seed", "1", "--rounds", "2", "--name", str(k)]) == 0
        said = capsys.readouterr()
        assert "no ledger counts this run" in said.err
        assert "read off" not in said.err
        assert ": 4 silos with" in said.out
        model = json.loads(Path(f"runs/{k}/model.json").read_text())
        models.add(json.dumps({key: value for key, value in model.items() if key != "run"}))
        statement = json.loads(Path(f"runs/{k}/statement.json").read_text())
        assert set(statement["data"]["sizes"]) == set(WARDS)
        names.append(statement["data"]["name"])
        assert {about["silo"] for about in statement["about"]} == set(WARDS)
        metrics = json.loads(Path(f"runs/{k}/metrics.json").read_text())
        assert metrics["data"]["name"] == names[-1]
        assert Path(f"runs/{k}/columns.toml").read_bytes() == (wards / "columns.toml").read_bytes()
        assert main(["account", "verify", f"runs/{k}/statement.json"]) == 0
        capsys.readouterr()
    assert len(models) == 1
    assert names == ["wards"] * 3 + [
        "Tartu.csv.gz and 3 more",
        "wards",
        "wards",
        names[6],
        "Bergen.csv and 3 more",
    ]


def test_a_preview_names_several_files_on_one_line(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("wards/Bergen.csv", "wards/Gdansk.csv", "--dry-run") == 0
    assert capsys.readouterr().out.startswith("wards/Bergen.csv and 1 more: 2 silos, ")


def test_a_run_goes_on_by_its_own_file_and_by_the_command_that_is_printed(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create("wards") == 0
    assert train("wards/*.csv*", "wards/Porto.tsv") == 0
    assert spent(wards) == {CENTRAL: 0.0, **dict.fromkeys(ALL - {CENTRAL}, 1.0)}
    job = tomllib.loads(Path("runs/june/job.toml").read_text())
    assert job["data"] == ["wards/*.csv*", "wards/Porto.tsv"]
    assert main(["train", "runs/june/job.toml"]) == 0
    assert train("wards") == 0
    flags = TrainFlags(
        files=["wards/*.csv*", "wards/Porto.tsv"], label="y", epsilon=1.0, delta="1e-6", rounds="2"
    )
    assert flags.command("june").startswith("tacit train 'wards/*.csv*' wards/Porto.tsv --label y")
    assert main(shlex.split(flags.command("june"))[1:]) == 0
    named = TrainFlags(data=["a b/", "c.csv"], json=True)
    assert named.command("x") == "tacit train --data 'a b/' --data c.csv --name x --json"
    assert spent(wards)[DATA_SET] == 1.0
    (wards / "Bergen.csv").write_text((wards / "Bergen.csv").read_text() + "P1,30,25,120,no,0\n" * 50)
    capsys.readouterr()
    assert main(["train", "runs/june/job.toml"]) == 5
    assert "is reserved already, with another plan" in capsys.readouterr().err


def test_all_ways_to_the_records_are_charged_to_the_accounts_of_their_folder(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create("wards/*.csv*", "wards/Porto.tsv", at=str(wards / TOGETHER)) == 0
    assert set(spent(wards)) == ALL
    capsys.readouterr()
    charged: tuple[tuple[list[str], set[str]], ...] = (
        (["wards"], set(WARDS)),
        (["wards/Porto.tsv", "wards/Bergen.csv"], {"Bergen", "Porto"}),
        (["wards/B*.csv"], {"Bergen"}),  # a pattern that finds one file
        (["wards/Gdansk.csv", "--columns", "wards/columns.toml"], {"Gdansk"}),  # one table by itself
        (["wards", "--trust", "central"], {CENTRAL}),
        ([str(wards)], set(WARDS)),
    )
    for k, (words, payers) in enumerate(charged):
        before = spent(wards)
        assert train(*words, name=f"run{k}") == 0
        assert capsys.readouterr().err == ""
        after = spent(wards)
        assert {owner for owner in ALL if after[owner] > before[owner]} == {DATA_SET, *payers}
    for words, payer in ((["--trust", "central"], "Porto"), (["--trust", "local"], "Porto")):
        before = spent(wards)
        assert mean("wards/Porto.tsv", *words) == 0
        assert mean("wards/Porto.tsv", *words, "--ledger", f"wards/{TOGETHER}") == 0
        assert capsys.readouterr().err == ""
        after = spent(wards)
        assert {owner for owner in ALL if after[owner] > before[owner]} == {DATA_SET, payer}
        assert after[payer] == pytest.approx(before[payer] + 0.5)
    link = wards.parent / "linked"
    link.symlink_to(wards)
    Path("Porto.tsv").symlink_to(wards / "Porto.tsv")
    before = spent(wards)
    assert mean("linked/Porto.tsv") == mean("Porto.tsv") == 0
    assert spent(wards)["Porto"] == pytest.approx(before["Porto"] + 0.5)


def test_no_way_spends_the_limit_again(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create("wards", epsilon="1") == 0
    assert train("wards") == 0
    once = spent(wards)
    capsys.readouterr()
    for again in (
        ["wards"],
        ["wards/B*.csv"],
        ["wards/Porto.tsv"],
        ["--data", "wards", "--trust", "central"],
    ):
        assert train(*again, "--columns", "wards/columns.toml", name="july") == 4
        assert "above what the data set has left" in capsys.readouterr().err
    assert mean("wards/Tartu.csv.gz") == 4
    assert spent(wards) == once


def test_other_ledgers_beside_the_files_are_named(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with an account of its own is counted twice: nobody may choose silently which counts."""
    assert create("wards/Porto.tsv", at="wards/Porto.ledger") == 0
    assert train("wards/Porto.tsv", "--columns", "wards/columns.toml") == 0
    with Ledger.open(next(Path("wards/Porto.ledger").glob("porto-*"))) as own:
        assert own.spent().epsilon == 1.0
    assert create("wards") == 0
    capsys.readouterr()
    assert train("wards", name="july") == 0
    said = capsys.readouterr().err
    assert "wards/Porto.ledger, the ledger of this table, is not charged: wards/silos.ledger is." in said
    assert mean("wards/Porto.tsv") == train("wards/Porto.tsv", name="august") == 5
    assert "has accounts in two places, wards/" in capsys.readouterr().err
    assert mean("wards/Porto.tsv", "--ledger", "wards/Porto.ledger") == 0
    assert "wards/silos.ledger, the ledger of this table, is not charged" in capsys.readouterr().err


def test_a_file_without_an_account_is_refused_with_its_name(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create("wards/*.csv") == 0
    capsys.readouterr()
    assert train("wards") == 5
    assert "silo 'Porto' has no ledger in wards/silos.ledger" in capsys.readouterr().err
    assert create("wards/Porto.tsv", "wards/Tartu.csv.gz") == 0
    assert train("wards") == 0


def test_files_of_several_folders_have_one_place_above_them(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("north").mkdir()
    shutil.move(wards / "Bergen.csv", "north/Bergen.csv")
    shutil.copy(wards / "columns.toml", "columns.toml")
    assert train("wards", "north") == 0
    command = capsys.readouterr().err.split("`")[1]
    assert command.startswith(f"tacit ledger create {TOGETHER} --silos-from wards/ north/ --epsilon E")
    words = shlex.split(command.replace(" E ", " 9 ").replace(" D", " 1e-3"))
    assert main(words[1:]) == 0
    assert train("north/Bergen.csv", "wards", name="july") == 0
    assert spent(wards.parent)["Bergen"] == 1.0
    assert create("wards") == 0
    capsys.readouterr()
    assert train("north/Bergen.csv", "wards", name="august") == 5
    assert f"accounts in two places, wards/{TOGETHER} and {TOGETHER}" in capsys.readouterr().err


def test_one_of_several_folders_is_charged_to_the_accounts_above_it(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("north").mkdir()
    shutil.move(wards / "Bergen.csv", "north/Bergen.csv")
    shutil.copy(wards / "columns.toml", "north/columns.toml")
    assert create("wards", "north", at=TOGETHER) == 0
    ways = ("north", "north/", "north/*.csv", "north/Bergen.csv", str(Path("north").absolute()))
    for count, said in enumerate(ways, start=1):
        assert train(said, name=f"run {count}") == 0
        assert spent(wards.parent)["Bergen"] == spent(wards.parent)[DATA_SET] == count
    assert train("wards", name="others") == 0
    assert mean("north/Bergen.csv") == 0
    assert spent(wards.parent)["Bergen"] == spent(wards.parent)[DATA_SET] - 1 == len(ways) + 0.25
    assert "no ledger" not in capsys.readouterr().err
    assert create("north", at=f"north/{TOGETHER}") == 0
    capsys.readouterr()
    assert train("north", name="two places") == 5
    assert f"north/{TOGETHER} and {TOGETHER}; name the one that counts" in capsys.readouterr().err


def test_accounts_above_are_those_of_another_table_that_lies_beside_them(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last year's files in a folder of their own, under the names of this year's."""
    assert create("wards") == 0
    shutil.copytree(wards, wards / "last year", ignore=shutil.ignore_patterns(TOGETHER))
    capsys.readouterr()
    assert train("wards/last year") == 0
    assert "no ledger counts this run" in capsys.readouterr().err
    assert spent(wards) == dict.fromkeys(ALL, 0.0)


def test_ledgers_of_single_tables_are_named_where_no_ledger_counts_all(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = ["--epsilon", "9", "--delta", "1e-3"]
    assert main(["ledger", "create", "wards/Bergen.ledger", *limit]) == 0
    assert train("wards") == 0
    assert "no ledger counts this run, and not wards/Bergen.ledger of single" in capsys.readouterr().err
    for said in ("wards/Bergen.csv", "wards/B*.csv"):
        assert train(said, name=said[6:].replace("*", "")) == 0
    with Ledger.open(Path("wards/Bergen.ledger")) as ledger:
        assert ledger.spent().epsilon == 2.0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["wards", "--silo-column", "patient"], 2, "silo-column must be None where every file is a silo"),
        (["wards/Bergen.csv", "more/Bergen.csv.gz"], 3, "wards/Bergen.csv; rename one of them"),
        (["wards/columns.toml", "wards/Bergen.csv"], 2, "a pattern in quotes, leaves out what is no table"),
        (["wards", "--data", "wards"], 2, "data must be named once"),
        (["wards/*.parquet"], 3, "the pattern 'wards/*.parquet' matches no table"),
        (["more"], 3, "wards/Bergen.csv"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], code: int, said: str, wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("more").mkdir()
    Path("more/Bergen.csv.gz").write_bytes(gzip.compress((wards / "Bergen.csv").read_bytes()))
    if words == ["more"]:
        (wards / "Bergen.csv").write_text("age,y\n30,1\n")
        words = ["wards"]
    assert train(*words) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert said in captured.err
    assert not Path("runs").exists()


def test_a_folder_of_the_name_of_a_data_set_is_not_taken_for_it(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wards.rename("digits-odd-even")
    assert main(["train", "digits-odd-even", "--rounds", "1", "--trust", "none"]) == 0
    assert "10 silos" in capsys.readouterr().out
    assert main(["train", "digits-odd-even/", "--label", "y", "--rounds", "1", "--seed", "1"]) == 0
    assert "digits-odd-even/: 4 silos" in capsys.readouterr().out


def test_a_folder_is_described_and_checked_as_it_is_trained_on(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "scaffold", "wards", "--label", "y", "--out", "gaps.toml"]) == 0
    assert "tacit data check wards --columns gaps.toml" in capsys.readouterr().out
    assert main(["data", "check", "wards", "--label", "y", "--columns", "wards/columns.toml"]) == 0
    assert "4 files, 768 records: 0 to mend" in capsys.readouterr().out
    (wards / "Porto.tsv").write_text("age\ty\n30\t1\n")
    assert main(["data", "check", "wards/*.*sv*", "--label", "y", "--columns", "wards/columns.toml"]) == 3
    assert "bmi: wards/Porto.tsv has no such column" in capsys.readouterr().out
