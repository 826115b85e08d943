"""`tacit mean` from the outside: how columns are named, what it says, charges and refuses."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tacit.cli import main
from tacit.ledger import CENTRAL, DATA_SET, Ledger, create_ledgers, ledger_path
from tacit.privacy import Neighbours, PrivacyBudget, Relation, Unit

CLINICS = Path(__file__).parents[1] / "data" / "clinics.csv"
BOUNDS = ["--lower", "0", "0", "--upper", "100", "60"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for file in (CLINICS, CLINICS.with_name("clinics.columns.toml")):
        shutil.copy(file, tmp_path)
    return tmp_path / "clinics.csv"


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["mean", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_means_are_near_and_nothing_is_simulated(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(table), "--columns", "age", "bmi", *BOUNDS, "--epsilon", "1"]
    assert main(["mean", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert "no ledger counts this answer" in captured.err
    found = json.loads(captured.out)
    exact = pd.read_csv(table)[["age", "bmi"]].mean()
    for name in ("age", "bmi"):
        # Laplace noise: beyond 15 deviations with probability 6e-10.
        assert abs(found["mean"][name] - exact[name]) < 15 * found["noise_std"][name]
        low, high = found["confidence_interval"][name]
        assert low < found["mean"][name] < high
    assert found["n"] == 768
    assert (found["epsilon"], found["delta"]) == (1.0, 0.0)
    assert not found["simulated"]
    assert "Simulated" not in found["guarantee"]
    assert "replacing one record" in found["guarantee"]
    again = answer(arguments, capsys)
    assert again["mean"] != found["mean"]


@pytest.mark.parametrize(
    "spelt",
    [
        ["--columns", "age", "bmi", "--lower", "0", "-5", "--upper", "100", "60"],
        ["--columns", "age", "--columns", "bmi", "--lower", "0", "--lower", "-5", "--upper", "100", "60"],
        ["--columns", "age,bmi", "--lower", "0,-5", "--upper", "100, 60"],
        ["--columns=age", "bmi", "--lower=0,-5", "--upper=100", "60.0"],
        ["--upper", "1e2", "60", "--lower", "0", "-5e0", "--columns", "age", "bmi"],
    ],
)
def test_several_values_can_be_written_in_several_ways(
    spelt: list[str], table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer([str(table), *spelt, "--epsilon", "2", "--seed", "1"], capsys)
    usual = ["--columns", "age", "bmi", "--lower", "0", "-5", "--upper", "100", "60"]
    assert found == answer([str(table), *usual, "--epsilon", "2", "--seed", "1"], capsys)
    assert found["columns"] == ["age", "bmi"]


def test_the_table_may_stand_behind_the_options(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["--columns", "age", "bmi", *BOUNDS, "--epsilon", "1", "--seed", "3", str(table)], capsys)
    assert found["columns"] == ["age", "bmi"]


def test_a_column_may_have_a_comma_in_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"a,b",c\n1,2\n3,4\n')
    bounds = ["--lower", "0", "--upper", "5", "--epsilon", "1", "--seed", "0"]
    assert answer([str(path), "--columns", "a,b", *bounds], capsys)["columns"] == ["a,b"]


def test_delta_and_local_trust_change_the_noise(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = [str(table), "--columns", "age", "bmi", *BOUNDS, "--epsilon", "1", "--seed", "0"]
    pure = answer(base, capsys)
    approximate = answer([*base, "--delta", "1e-6"], capsys)
    local = answer([*base, "--trust", "local"], capsys)
    zero = answer([*base, "--neighbours", "zero-out"], capsys)
    assert "DiscreteLaplace" in json.dumps(pure["guarantees"])
    assert "DiscreteGaussian" in json.dumps(approximate["guarantees"])
    assert "delta = 1e-06" in approximate["guarantee"]
    assert local["noise_std"]["age"] == pytest.approx(768**0.5 * pure["noise_std"]["age"], rel=1e-4)
    assert zero["noise_std"]["age"] == pytest.approx(pure["noise_std"]["age"] / 2, rel=1e-4)
    assert "blanking out one record" in zero["guarantee"]
    for found in (pure, approximate, local, zero):
        assert "Simulated" in found["guarantee"]
    wider = answer([*base, "--confidence", "0.999"], capsys)
    assert wider["confidence_interval"]["age"][1] > pure["confidence_interval"]["age"][1]


def test_an_answer_is_a_statement(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([str(table), "--columns", "age", "bmi", *BOUNDS, "--epsilon", "1"], capsys)
    statement = tmp_path / "statement.json"
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 0
    found["guarantees"][0]["epsilon"] = 0.9
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 1


def test_people_see_a_table_and_what_it_means(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["mean", str(table), "--columns", "age", "bmi", *BOUNDS, "--epsilon", "1", "--seed", "0"]) == 0
    )
    captured = capsys.readouterr()
    assert captured.err == ""
    for piece in (
        "768 records",
        "noise std",
        "95 % for the noise",
        "sampling error is not in it",
        "epsilon = 1",
    ):
        assert piece in " ".join(captured.out.split())


def test_zero_out_has_blank_cells_count_as_the_middle_or_none_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From 0 to a missing cell that counts as 100 is twice as far as the noise of zero-out hides."""
    path = tmp_path / "t.csv"
    path.write_text("x\n0\n\n50\n")
    asked = ["mean", str(path), "--columns", "x", "--lower", "0", "--upper", "100", "--epsilon", "1"]
    description = '[columns.x]\nkind = "numeric"\nlower = 0\nupper = 100\nmissing = {}\n'
    sidecar = tmp_path / "t.columns.toml"
    sidecar.write_text(description.format(100))
    assert main([*asked, "--neighbours", "zero-out"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "must count as the middle of the bounds, 50.0" in captured.err
    assert main(asked) == 0
    for missing in ("50", '"middle"', '"indicator"'):
        sidecar.write_text(description.format(missing))
        assert main([*asked, "--neighbours", "zero-out"]) == 0


def test_missing_values_are_the_middle_and_never_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + ",1\n" * 60 + "10,1\n" * 40)
    found = answer(
        [str(path), "--columns", "x", "--lower", "0", "--upper", "10", "--epsilon", "500", "--seed", "0"],
        capsys,
    )
    assert found["n"] == 100
    assert found["mean"]["x"] == pytest.approx(0.6 * 5 + 0.4 * 10, abs=0.02)
    assert "60" not in json.dumps(found["notes"])


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (["--columns", "aeg", "bmi", *BOUNDS], 3, "did you mean 'age'"),
        (["--columns", "smoker", "bmi", *BOUNDS], 3, "column 'smoker' is not numeric by its description"),
        (["--columns", "age", "age", *BOUNDS], 2, "'age' more than once"),
        (["--columns", "age", *BOUNDS], 2, "one bound for each of the 1 columns, got 2"),
        (["--columns", "age", "bmi", "--lower", "0", "--upper", "1", "1"], 2, "lower must give one bound"),
        (["--columns", "age", "--lower", "5", "--upper", "5"], 2, "lower must be below upper"),
        (["--columns", "age", "--lower", "nan", "--upper", "5"], 2, "lower must be below upper"),
        (["--columns", "age", "--lower", "0", "--upper", "inf"], 2, "both finite"),
        (["--columns", "age", "--lower", "zero", "--upper", "5"], 2, "'zero' is not a valid float"),
        (["--columns", "age", "--lower", "0", "--upper"], 2, "--upper"),
        (["--columns", "age", "--lower", "0"], 2, "Missing option '--upper'"),
        (["--columns", "age", "--lower", "0", "--upper", "9", "--epsilon", "0"], 2, "epsilon must be"),
        (["--columns", "age", "--lower", "0", "--upper", "9", "--epsilon", "nan"], 2, "epsilon must be"),
        (["--columns", "age", "--lower", "0", "--upper", "9", "--delta", "1"], 2, "delta must be"),
        (
            ["--columns", "age", "--lower", "0", "--upper", "9", "--trust", "shuffle"],
            2,
            "trust must be one of",
        ),
        (
            [
                *("--columns", "age", "--lower", "0", "--upper", "9"),
                *("--neighbours", "add-remove", "--trust", "local"),
            ],
            2,
            "whoever counts the messages sees that one is missing",
        ),
        (["--columns", "age", "--lower", "0", "--upper", "9", "--confidence", "1"], 2, "confidence must be"),
        (
            ["--columns", "age", "--lower", "0", "--upper", "9", "--person", "patiant"],
            3,
            "person must be one of site, patient",
        ),
        (
            ["--columns", "age", "--lower", "0", "--upper", "9", "--person", "age"],
            2,
            "person must be a column without a mean, got 'age'",
        ),
        (
            ["--columns", "age", "--lower", "0", "--upper", "9", "--seed", "1", "--ledger", "x"],
            2,
            "--ledger is",
        ),
    ],
)
def test_what_is_refused_in_one_line(
    change: list[str], code: int, said: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    epsilon = [] if "--epsilon" in change else ["--epsilon", "1"]
    assert main(["mean", str(table), *epsilon, *change]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tacit: ")
    assert len(captured.err.splitlines()) == 1
    assert said in captured.err


def test_a_ledger_beside_the_table_is_charged_before_every_answer(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table.with_suffix(".ledger")
    Ledger.create(path, limit=PrivacyBudget(2.0, 1e-6), neighbours=Neighbours(), label="clinics").close()
    arguments = [str(table), "--columns", "age", "bmi", *BOUNDS, "--epsilon", "0.8"]
    for spent in (0.8, 1.6):
        answer(arguments, capsys)
        with Ledger.open(path) as ledger:
            assert ledger.spent().epsilon == pytest.approx(spent)
    assert main(["mean", *arguments, "--json"]) == 4
    refused = capsys.readouterr()
    assert refused.out == ""
    assert "nothing was spent" in refused.err
    assert main(["mean", *arguments, "--neighbours", "zero-out"]) == 5  # an account of other neighbours
    assert "replacing one record" in capsys.readouterr().err
    assert main(["mean", *arguments, "--confidence", "2"]) == 2
    answer([*arguments, "--seed", "1"], capsys)  # a simulation is not charged
    with Ledger.open(path) as ledger:
        assert len(ledger.entries()) == 2


def test_an_answer_is_charged_even_if_the_clock_stands_still(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Stopped:
            return cls(2026, 1, 1, tzinfo=tz)

    monkeypatch.setattr("tacit.ledger.charging.datetime", Stopped)
    path = table.with_suffix(".ledger")
    Ledger.create(path, limit=PrivacyBudget(2.0, 1e-6), neighbours=Neighbours(), label="clinics").close()
    for _ in range(2):
        answer([str(table), "--columns", "age", "bmi", *BOUNDS, "--epsilon", "0.5"], capsys)
    with Ledger.open(path) as ledger:
        assert ledger.spent().epsilon == pytest.approx(1.0)


def test_in_a_folder_of_ledgers_trust_says_who_is_charged(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "accounts"
    create_ledgers(folder, ["a", "b"], limit=PrivacyBudget(1.9), neighbours=Neighbours())
    arguments = [str(table), "--columns", "age", "--lower", "0", "--upper", "99", "--epsilon", "0.6"]

    def spent() -> list[float]:
        found = []
        for name in ("a", "b", CENTRAL, DATA_SET):
            with Ledger.open(ledger_path(folder, name)) as ledger:
                found.append(ledger.spent().epsilon)
        return found

    answer([*arguments, "--ledger", str(folder)], capsys)
    assert spent() == [0, 0, 0.6, 0.6]
    answer([*arguments, "--ledger", str(folder), "--trust", "local"], capsys)
    assert spent() == [0.6, 0.6, 0.6, 1.2]
    # One ledger of a folder does not pay alone: the records are those of the data set.
    answer([*arguments, "--ledger", str(ledger_path(folder, "a"))], capsys)
    assert spent() == [1.2, 0.6, 0.6, 1.8]
    for trust in ("central", "local"):
        assert main(["mean", *arguments, "--ledger", str(folder), "--trust", trust]) == 4
        assert "the plan costs the data set epsilon 0.6" in capsys.readouterr().err
    assert spent() == [1.2, 0.6, 0.6, 1.8]
    assert main(["mean", *arguments, "--ledger", str(tmp_path / "none")]) == 5


def test_ledgers_of_other_relations_go_with_their_own(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table.with_suffix(".ledger")
    zero_out = Neighbours(Relation.ZERO_OUT)
    Ledger.create(path, limit=PrivacyBudget(2.0, 1e-6), neighbours=zero_out).close()
    arguments = [str(table), "--columns", "age", "--lower", "0", "--upper", "99", "--epsilon", "1"]
    answer([*arguments, "--neighbours", "zero-out", "--delta", "1e-6"], capsys)
    with Ledger.open(path) as ledger:
        assert (ledger.spent().epsilon, ledger.spent().delta) == (1.0, 1e-6)


def test_values_outside_are_refused_in_simulations_only(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["mean", str(table), "--columns", "age", "--lower", "0", "--epsilon", "1"]
    assert main([*arguments, "--upper", "50", "--on-violation", "error"]) != 0
    assert "--on-violation error needs --seed" in capsys.readouterr().err
    assert main([*arguments, "--upper", "50", "--on-violation", "error", "--seed", "1"]) != 0
    assert "values must be inside their bounds" in capsys.readouterr().err
    assert main([*arguments, "--upper", "50", "--seed", "1"]) == 0
    assert main([*arguments, "--upper", "50", "--on-violation", "keep"]) != 0
    assert "on-violation must be one of clip, error" in capsys.readouterr().err


def of_persons(path: Path, rows: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    path.write_text("who,x\n" + "\n".join(rows) + "\n")
    arguments = ["--columns", "x", "--lower", "0", "--upper", "10", "--person", "who"]
    return answer([str(path), *arguments, "--epsilon", "500", "--seed", "1"], capsys)


def test_with_persons_each_counts_once_and_everything_says_persons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["1,2", "1,", "1,99", "2,1", "2,3", "3,none", ",4"]
    found = of_persons(tmp_path / "t.csv", rows, capsys)
    assert (found["n"], found["unit"], found["about"][0]["units"]) == (4, "person", 4)
    assert found["mean"]["x"] == pytest.approx((6 + 2 + 5 + 4) / 4, abs=0.3)
    assert "replacing one person" in found["guarantee"]
    assert all("record" not in note or "however many records" in note or "without an id" in note
               for note in found["notes"])  # fmt: skip
    # As many other rows of one person as one likes, moved and misspelt: nothing that is said changes.
    other = of_persons(tmp_path / "t.csv", ["9,7", *rows[3:5], "9,oops", *rows[5:], *["9,"] * 20], capsys)
    for each in (found, other):
        each.pop("mean"), each.pop("confidence_interval")
    assert found == other


def test_ids_keep_all_their_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["9007199254740993,1", "9007199254740992,1", "1.5,1", "0007,1", "7,1"]
    assert of_persons(tmp_path / "t.csv", rows, capsys)["n"] == 5


def test_a_ledger_of_persons_pays_for_persons_only(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table.with_suffix(".ledger")
    persons = Neighbours(unit=Unit.PERSON)
    arguments = [str(table), "--columns", "age", "--lower", "0", "--upper", "99", "--epsilon", "1"]
    assert main(["mean", *arguments, "--person", "patient"]) == 0
    shown = capsys.readouterr()
    assert "--unit person` sets a limit" in " ".join(shown.err.split())
    assert f"{pd.read_csv(table)['patient'].nunique()} persons" in shown.out
    Ledger.create(path, limit=PrivacyBudget(2.0, 1e-6), neighbours=persons).close()
    assert main(["mean", *arguments]) == 5
    assert "is about replacing one person, the plan about replacing one record" in capsys.readouterr().err
    answer([*arguments, "--person", "patient"], capsys)
    with Ledger.open(path) as ledger:
        assert ledger.spent().epsilon == 1.0


@pytest.mark.parametrize("name", ["clinics.columns.toml", "columns.toml"])
def test_a_description_names_the_person(name: str, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the table or of its whole folder, and as if a flag had named it."""
    sidecar = table.with_name("clinics.columns.toml")
    arguments = [
        str(table),
        "--columns",
        "age",
        "--lower",
        "0",
        "--upper",
        "99",
        "--epsilon",
        "1",
        "--seed",
        "1",
    ]
    records, persons = answer(arguments, capsys), answer([*arguments, "--person", "patient"], capsys)
    described = sidecar.read_text().replace("version = 1", 'version = 1\nperson = "patient"')
    sidecar.unlink()
    table.with_name(name).write_text(described)
    found = answer(arguments, capsys)
    assert (found["unit"], found) == ("person", persons)
    assert records["unit"] == "record"
    columns = ["--columns", "patient", *arguments[3:]]
    assert main(["mean", str(table), *columns]) == 2
    assert "person must be a column without a mean, got 'patient'" in capsys.readouterr().err
    table.with_name(name).write_text(described.replace('"patient"', '"patients"', 1))
    assert main(["mean", *arguments]) == 3
    assert "no such column: person must be one of" in capsys.readouterr().err


def test_the_number_of_records_is_said_to_be_public_where_one_comes_or_goes(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["mean", str(table), "--columns", "age", "--lower", "0", "--upper", "99", "--epsilon", "1"]
    assert main([*arguments, "--neighbours", "add-remove", "--seed", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    clause = "the number of records that means are divided by is public"
    assert clause in found["guarantees"][0]["assumptions"]
    statement = tmp_path / "mean.json"
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 0
    assert main([*arguments, "--neighbours", "add-remov"]) == 2
    assert "must be one of replace-one, add-remove, zero-out, got 'add-remov'" in capsys.readouterr().err


@pytest.fixture
def wards(table: Path, tmp_path: Path) -> Path:
    """A folder of two files of the table's records, and their description."""
    folder = tmp_path / "wards"
    folder.mkdir()
    lines = table.read_text().splitlines(keepends=True)
    for name, records in (("left", lines[1:301]), ("right", lines[301:])):
        (folder / f"{name}.csv").write_text("".join([lines[0], *records]))
    shutil.copy(table.with_name("clinics.columns.toml"), folder / "columns.toml")
    return folder


@pytest.mark.parametrize("more", [[], ["--person", "patient"]])
def test_several_files_are_one_table_of_all_records(
    more: list[str], table: Path, wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--columns", "age", "bmi", *BOUNDS, "--epsilon", "1", "--seed", "1", *more]
    whole = answer([str(table), *asked], capsys)
    for files in ([wards], [wards / "*.csv"], [wards / "right.csv", wards / "left.csv"]):
        found = answer([*map(str, files), *asked], capsys)
        assert found["n"] == whole["n"]
        assert found["mean"] == pytest.approx(whole["mean"])


def test_several_files_are_charged_as_training_charges_them(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--columns", "age", "--lower", "0", "--upper", "99", "--epsilon", "0.5"]
    assert main(["mean", str(wards), *asked]) == 0
    command = f"tacit ledger create {wards}/silos.ledger --silos-from {wards}/left.csv {wards}/right.csv"
    assert f"`{command} --epsilon E --delta D` sets a limit" in capsys.readouterr().err
    create_ledgers(
        folder := wards / "silos.ledger",
        ["left", "right", "other"],
        limit=PrivacyBudget(3.0),
        neighbours=Neighbours(),
    )

    def spent() -> list[float]:
        found = []
        for name in ("left", "right", "other", CENTRAL, DATA_SET):
            with Ledger.open(ledger_path(folder, name)) as ledger:
                found.append(ledger.spent().epsilon)
        return found

    answer([str(wards), *asked], capsys)
    assert spent() == [0, 0, 0, 0.5, 0.5]
    answer([str(wards), *asked, "--trust", "local"], capsys)
    assert spent() == [0.5, 0.5, 0, 0.5, 1.0]
    shutil.copy(wards / "left.csv", wards / "third.csv")
    assert main(["mean", str(wards), *asked, "--trust", "local"]) == 5
    assert "has no account of" in capsys.readouterr().err
    (wards / "third.csv").write_text("age\n1\n")
    assert main(["mean", str(wards), "--columns", "bmi", *asked[2:]]) == 3
    assert f"{wards}/third.csv: the table has no such column" in capsys.readouterr().err
    assert spent() == [0.5, 0.5, 0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ('[columns.smoker]\nkind = "categorical"\ncategories = ["no", "yes"]', "is not numeric by its"),
        ('[columns.smoker]\nkind = "ignore"', "is ignored by its description"),
        ('[label]\nkind = "classes"\nclasses = ["no", "yes"]\ncolumn = "smoker"', "is not numeric by its"),
    ],
)
def test_a_column_that_is_described_as_no_number_costs_nothing(
    described: str, said: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.with_name("clinics.columns.toml").write_text(described)
    path = table.with_suffix(".ledger")
    Ledger.create(path, limit=PrivacyBudget(2.0), neighbours=Neighbours()).close()
    asked = ["--columns", "smoker", "--lower", "0", "--upper", "1", "--epsilon", "1"]
    assert main(["mean", str(table), *asked]) == 3
    assert said in capsys.readouterr().err
    with Ledger.open(path) as ledger:
        assert ledger.spent().epsilon == 0
