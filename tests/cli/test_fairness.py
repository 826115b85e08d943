"""Fair training and `tacit fairness` from the outside: models, audits, curves, and mistakes."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.jobs import load_model
from tacit.ledger import Ledger
from tests.cli.stopping import stop_at

N = 3000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table in which one group has higher scores, with public bounds beside it."""
    rng = np.random.default_rng(5)
    s, t = rng.integers(0, 2, N), rng.integers(0, 3, N)
    x = rng.standard_normal(N) + 1.2 * s
    other = np.clip(rng.standard_normal(N), -4, 4)
    frame = pd.DataFrame(
        {
            "score": np.clip(x, -4, 5),
            "other": other,
            "sex": np.where(s == 1, "m", "f"),
            "town": np.array(["a", "b", "c"])[t],
            "measured": rng.standard_normal(N),
            "id": [f"p{row}" for row in range(N)],
            "hired": np.where(x + 2 * other + rng.standard_normal(N) > 0.6, "yes", "no"),
        }
    )
    path = tmp_path_factory.mktemp("fair") / "people.csv"
    frame.to_csv(path, index=False)
    path.with_suffix(".columns.toml").write_text(
        "[columns]\nscore = {kind = 'numeric', lower = -4, upper = 5}\n"
        "other = {kind = 'numeric', lower = -4, upper = 4}\n"
        "measured = {kind = 'numeric', lower = -5, upper = 5}\n"
        "town = {kind = 'categorical', categories = ['a', 'b', 'c']}\n"
        "sex = {kind = 'categorical', categories = ['f', 'm']}\n"
        "id = {kind = 'ignore'}\n"
        "[label]\nkind = 'classes'\ncolumn = 'hired'\nclasses = ['no', 'yes']\n"
    )
    return path


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    """Return what a command prints as JSON."""
    assert main([*argv, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Return the one line that a command is refused with."""
    assert main([*argv]) in (2, 3)
    return capsys.readouterr().err


def test_a_fair_model_is_fairer_and_its_folder_can_be_used(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = said(capsys, "train", str(table), "--sensitive", "sex", "--fairness-weight", "10", "--name", "f")
    assert found["violation"] < 0.5 * found["unconstrained_violation"]
    assert found["accuracy"] > 0.6
    assert found["unconstrained_accuracy"] >= found["accuracy"] - 0.02
    assert next(point["weight"] for point in found["curve"]) == 0
    folder = tmp_path / "runs/f"
    assert "guarantee" not in found
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert "without privacy" in capsys.readouterr().out
    # The saved model says what the numbers were about, and needs no sensitive column.
    model = load_model(folder)
    frame = pd.read_csv(table).drop(columns="sex")
    labels = model.predict(frame)
    assert set(labels) == {"no", "yes"}
    page = (folder / "report.html").read_text()
    assert "Fairness report" in page
    assert page.count("<svg") == 2
    (rates,) = found["rates"]
    assert rates["positive"] == "yes"
    assert rates["by_group"]["f"]["selection_rate"] == found["held_out"]["groups"][0]["predicted"]["yes"]
    assert abs(rates["difference"]["selection_rate"] - found["violation"]) < 1e-12
    assert f"<td>largest difference</td><td></td><td>{rates['difference']['accuracy']:.4f}</td>" in page
    assert main(["predict", str(folder), str(table), "--out", "scored.csv"]) == 0
    capsys.readouterr()
    audit = said(
        capsys, "fairness", "audit", "--data", "scored.csv", "--label", "hired", "--sensitive", "sex",
        "--prediction", "prediction",
    )  # fmt: skip
    assert abs(audit["violations"]["demographic-parity"]["gap"] - found["violation"]) < 0.1


def test_a_violation_can_be_asked_for(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("train", str(table), "--sensitive", "sex", "--max-violation", "0.05", "--seed", "0")
    found = said(capsys, *asked)
    assert found["violation"] < 0.1 < found["unconstrained_violation"]
    odds = said(capsys, *asked, "--fairness", "equalized-odds", "--name", "odds")
    assert odds["fairness"] == "equalized-odds"
    assert odds["held_out"]["groups"][0]["group"] == "f"


def test_combinations_of_columns_are_groups(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("fairness", "audit", "--data", str(table), "--label", "hired", "--prediction", "hired")
    found = said(capsys, *argv, "--sensitive", "sex", "--sensitive", "town")
    assert len(found["groups"]) == 6
    assert found["accuracy"] == 1
    assert found["violations"]["equalized-odds"]["gap"] < 1e-12
    assert main([*argv, "--sensitive", "sex"]) == 0
    assert "demographic-parity" in capsys.readouterr().out


def test_the_curve_is_drawn(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = said(
        capsys,
        "fairness",
        "curve",
        "--data",
        str(table),
        "--sensitive",
        "sex",
        "--at",
        "3,0,3",
        "--out",
        "c.svg",
    )
    assert [point["weight"] for point in found["points"]] == [0, 3]
    assert found["points"][1]["violation"] < found["points"][0]["violation"]
    assert "<svg" in (tmp_path / "c.svg").read_text()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--fairness", "equalized-odds"), "fairness needs a sensitive column"),
        (("--fairness-weight", "2"), "fairness-weight needs a sensitive column"),
        (("--protect", "record"), "protect needs a sensitive column"),
        (("--sensitive", "sex", "--fairness-weight", "-1"), "fairness-weight must be a finite number >= 0"),
        (("--sensitive", "sex", "--max-violation", "2"), "max-violation must be in [0, 1]"),
        (("--sensitive", "sex", "--max-violation", ".1", "--fairness-weight", "1"), "exclude each other"),
        (("--sensitive", "sex", "--sensitive", "sex"), "each column once"),
        (("--sensitive", "sex", "--l1", "0.1"), "l1 is not for a fair model"),
        (("--sensitive", "sex", "--algorithm", "spider"), "algorithm is not for a fair model"),
        (("--sensitive", "sex", "--task", "regression"), "task is not for a fair model"),
        (("--sensitive", "sx"), "sx"),
        (("--sensitive", "sex", "--epsilon", "1"), "without protect"),
        (("--sensitive", "sex", "--trust", "central"), "without protect"),
        (("--sensitive", "sex", "--protect", "record", "--trust", "all"), "trust must be one trust model"),
        (("--sensitive", "sex", "--protect", "record", "--clip", "auto"), "clip must be a number"),
        (("--sensitive", "measured"), "continuous"),
        (("--sensitive", "id"), "more than 100 different values"),
        (("--sensitive", "id", "--protect", "sensitive"), "needs its groups as a public list"),
        (("--missing",), "missing needs a sensitive column"),
        (("--sensitive", "sex", "--protect", "record", "--trust", "shuffle"), "with one silo"),
        (("--sensitive", "sex", "--protect", "record", "--trust", "aggregate"), "with one silo"),
        (("--sensitive", "sex", "--dry-run"), "dry-run is not for a fair model"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    argv: tuple[str, ...],
    message: str,
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "train", str(table), *argv)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "sensitive needs data that has such a column"),
        (("--data", "digits-odd-even"), "comes with no sensitive attribute"),
    ],
)
def test_data_without_such_a_column_is_refused(
    argv: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "train", *argv, "--sensitive", "sex")


def test_empty_cells_are_refused_unless_they_are_declared(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.read_csv(table, dtype=str)
    frame.loc[::2, "sex"] = ""
    frame.to_csv("half.csv", index=False)
    Path("half.columns.toml").write_text(table.with_suffix(".columns.toml").read_text())
    asked = ("train", "half.csv", "--sensitive", "sex", "--fairness-weight", "10")
    assert "--missing" in refused(capsys, *asked)
    found = said(capsys, *asked, "--missing", "--name", "m")
    assert found["violation"] < 0.5 * found["unconstrained_violation"]
    assert found["held_out"]["unknown"] > 200
    assert "missing = true" in Path("runs/m/job.toml").read_text()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--sensitive", "measured", "--prediction", "hired"), "is continuous"),
        (("--sensitive", "nobody", "--prediction", "hired"), "nobody"),
        (("--sensitive", "sex", "--prediction", "score"), "more than 100 different values"),
        (("--sensitive", "sex", "--prediction", "town"), "no prediction is one of its labels"),
        (
            ("--sensitive", "sex", "--prediction", "hired", "--advantaged", "maybe"),
            "advantaged must be",
        ),
        (("--sensitive", "sex", "--prediction", "hired", "--min-count", "0"), "min-count must be"),
    ],
)
def test_an_audit_refuses_what_it_cannot_say(
    argv: tuple[str, ...], message: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "fairness", "audit", "--data", str(table), "--label", "hired", *argv)


def test_weights_of_a_curve_are_numbers(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("fairness", "curve", "--data", str(table), "--sensitive", "sex", "--at")
    for wrong in ("a", "-1", "", "0,nan"):
        assert "at must be numbers >= 0" in refused(capsys, *argv, wrong)


@pytest.mark.parametrize("protect", ["sensitive", "record"])
def test_a_private_run_is_paid_once_and_its_statement_holds(
    protect: str,
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    part = "sensitive" if protect == "sensitive" else "all"
    argv = ["ledger", "create", "led", "--epsilon", "3", "--delta", "1e-5", "--part", part]
    assert main([*argv, "--silos-from", str(table)]) == 0
    asked = [
        "train",
        str(table),
        "--sensitive",
        "sex",
        "--protect",
        protect,
        "--epsilon",
        "2",
        "--ledger",
        "led",
        "--rounds",
        "3",
    ]
    capsys.readouterr()
    found = said(capsys, *asked)
    assert (found["protect"], found["epsilon"], found["simulated"]) == (protect, 2.0, False)
    assert ("sensitive attributes" in found["guarantee"]) is (protect == "sensitive")
    # Of private records, another model on them or a curve would be one more release.
    assert found["curve"] == []
    assert found["unconstrained_accuracy"] is None
    folder = Path(found["folder"])
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert "verified: 1 guarantee" in capsys.readouterr().out
    statement = json.loads((folder / "statement.json").read_text())
    statement["guarantees"][0]["epsilon"] = 1.0
    (folder / "statement.json").write_text(json.dumps(statement))
    assert main(["account", "verify", str(folder / "statement.json")]) == 1
    assert main(asked) == 4
    assert "nothing was spent" in capsys.readouterr().err
    other = "record" if protect == "sensitive" else "sensitive"
    assert main([*asked[:5], other, *asked[6:]]) == 5
    assert "the plan about" in capsys.readouterr().err


@pytest.mark.parametrize("protect", ["sensitive", "record"])
def test_a_private_violation_is_aimed_at_for_the_one_price_of_the_run(
    protect: str,
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["train", str(table), "--sensitive", "sex", "--protect", protect, "--epsilon", "3"]
    found = {
        most: said(capsys, *asked, "--max-violation", most, "--seed", "1", "--name", f"v{most}")
        for most in ("0.05", "1")
    }
    tight, loose = found["0.05"], found["1"]
    assert tight["epsilon"] == loose["epsilon"] == 3.0
    assert tight["max_violation"] == 0.05
    assert tight["fairness_weight"] > 1 > loose["fairness_weight"] == 0
    assert tight["violation"] < 0.15 < loose["violation"]
    folder = tmp_path / "runs/v0.05"
    told = json.loads((folder / "statement.json").read_text())["notes"]
    assert any("for a violation of 0.05" in note and "is in the guarantee" in note for note in told)
    assert "group-decisions" in (folder / "plan.toml").read_text()
    assert "for a violation of 0.05" in (folder / "report.html").read_text()
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert main([*asked, "--max-violation", "0.2", "--rounds", "3"]) == 0
    assert "found by the run, for a violation of 0.2" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("protect", "trust"), [("sensitive", "central"), ("record", "local")])
def test_a_stopped_run_says_what_stays_spent_and_goes_on_at_no_cost(
    protect: str,
    trust: str,
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    create = ["ledger", "create", "led", "--epsilon", "2.5", "--delta", "1e-4", "--silos-from", str(table)]
    assert main([*create, "--part", "sensitive" if protect == "sensitive" else "all"]) == 0
    asked = ["train", str(table), "--sensitive", "sex", "--protect", protect, "--epsilon", "2"]
    asked += ["--max-violation", "0.05", "--rounds", "4", "--ledger", "led", "--trust", trust, "--json"]
    capsys.readouterr()

    def reserved() -> dict[str, list[str]]:
        found = {}
        for file in sorted(Path("led").glob("*.ledger")):
            with Ledger.open(file) as ledger:
                found[file.name] = [entry.run for entry in ledger.entries()]
        return found

    with monkeypatch.context() as patch:
        stop_at(patch, 3, lambda: signal.raise_signal(signal.SIGINT))
        assert main(asked) == 130
    interrupted, spent, again = capsys.readouterr().err.splitlines()
    assert interrupted == "tacit: interrupted."
    assert spent.startswith("spent: epsilon ")
    assert spent.endswith("It stays spent.")
    assert ("about sex" in spent) is (protect == "sensitive")
    assert not Path("runs").exists()
    paid = reserved()
    assert sum(map(len, paid.values())) == 2  # of who adds the noise, and of the data set

    words = shlex.split(again.removeprefix("resume at no cost: "))
    folders = []
    for _ in range(2):  # the second time it is finished, and is told again
        assert main(words[1:]) == 0
        folders.append(Path(json.loads(capsys.readouterr().out)["folder"]))
    assert folders[0] != folders[1]
    one, two = (load_model(folder).fitted.w for folder in folders)
    np.testing.assert_array_equal(one, two)
    weights = {json.loads((folder / "fairness.json").read_text())["fairness_weight"] for folder in folders}
    assert len(weights) == 1
    assert reserved() == paid
    assert main([*words[1:], "--rounds", "5"]) == 5  # another plan of that name
    assert main(asked) == 4  # and a fresh run costs what is not there
    assert "nothing was spent" in capsys.readouterr().err
    assert reserved() == paid


def test_a_private_run_of_a_known_name_needs_a_ledger(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["train", str(table), "--sensitive", "sex", "--protect", "sensitive", "--rounds", "2"]
    assert main([*asked, "--name", "june"]) == 0
    assert "name must be another than 'june'" in refused(capsys, *asked, "--name", "june")


def test_two_tables_of_one_record_apart_leave_the_same_but_for_noise(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell that is no group, no label or no number changes no count, no error and no other record."""
    monkeypatch.chdir(tmp_path)
    frame = pd.read_csv(table, dtype=str)
    plans = []
    for k, (column, cell) in enumerate(
        [("sex", "f"), ("sex", ""), ("sex", "x" * 50), ("hired", "?"), ("score", "?")]
    ):
        at = slice(0, 40)  # of which some are held out
        frame.loc[at, "sex"], frame.loc[at, "hired"], frame.loc[at, "score"] = "f", "no", "0"
        frame.loc[at, column] = cell
        (tmp_path / "people.csv").write_text(frame.to_csv(index=False))
        (tmp_path / "people.columns.toml").write_text(table.with_suffix(".columns.toml").read_text())
        asked = ("train", "people.csv", "--sensitive", "sex", "--protect", "record", "--epsilon", "2")
        found = said(capsys, *asked, "--name", f"r{k}", "--seed", "1", "--rounds", "2")
        plans.append((tmp_path / f"runs/r{k}/plan.toml").read_text())
        sizes = json.loads((tmp_path / f"runs/r{k}/statement.json").read_text())["data"]["sizes"]
        assert (found["epsilon"], sizes) == (2.0, {"people": 2400})
    assert len(set(plans)) == 1


def paid(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, table: Path, *more: str, cells: dict[int, str]
) -> dict[str, Any]:
    """Train on forty records of one cell in a column that is private, and return what is said."""
    frame = pd.read_csv(table, dtype=str).head(40)
    frame["sex"] = "x"
    for row, cell in cells.items():
        frame.loc[row, "sex"] = cell
    (tmp_path / "few.csv").write_text(frame.to_csv(index=False))
    (tmp_path / "few.columns.toml").write_text(table.with_suffix(".columns.toml").read_text())
    return said(capsys, "train", "few.csv", "--sensitive", "sex", "--delta", "1e-3", "--epsilon", "1", *more)


@pytest.mark.parametrize("protect", ["sensitive", "record"])
def test_what_was_paid_for_is_handed_out_whatever_is_held_out(
    protect: str,
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error after training would tell that no held-out record has a group, and the model would be gone."""
    monkeypatch.chdir(tmp_path)
    for name, cells in (("none", {}), ("all", dict.fromkeys(range(40), "f"))):
        found = paid(capsys, tmp_path, table, "--protect", protect, "--name", name, cells=cells)
        assert (found["held_out"] is None) is (name == "none")
        assert found["epsilon"] == 1.0
        assert main(["account", "verify", f"runs/{name}/statement.json"]) == 0
        capsys.readouterr()
    again = ["train", "few.csv", "--sensitive", "sex", "--delta", "1e-3", "--epsilon", "1"]
    (tmp_path / "few.csv").write_text((tmp_path / "few.csv").read_text().replace(",f,", ",x,"))
    assert main([*again, "--protect", protect, "--name", "words"]) == 0
    assert "nothing to score" in capsys.readouterr().out


def test_a_ledger_of_one_attribute_pays_for_no_other(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit about towns takes sex for a public feature, which no noise covers."""
    monkeypatch.chdir(tmp_path)
    argv = ["ledger", "create", "led", "--epsilon", "9", "--delta", "1e-4", "--part", "sensitive"]
    assert main([*argv, "--silos-from", str(table)]) == 0
    asked = ["train", str(table), "--protect", "sensitive", "--epsilon", "1", "--rounds", "3"]
    asked += ["--ledger", "led", "--sensitive"]
    assert main([*asked, "sex", "--name", "one"]) == 0
    assert main([*asked, "sex", "--name", "two"]) == 0
    for other in (["town"], ["town", "--sensitive", "sex"]):
        capsys.readouterr()
        assert main([*asked, *other]) == 5
        assert "nothing was spent" in (heard := capsys.readouterr().err)
        assert "'sex'" in heard
    with Ledger.open(tmp_path / "led" / "data-set.ledger") as ledger:
        assert len(ledger.entries()) == 2
    said_of = json.loads((tmp_path / "runs/one/statement.json").read_text())["guarantees"][0]["assumptions"]
    assert any("only its group is not (sex)" in clause for clause in said_of)


def test_the_attributes_cannot_be_cut_out_of_a_statement(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["train", str(table), "--protect", "sensitive", "--epsilon", "1", "--rounds", "3"]
    assert main([*asked, "--sensitive", "sex", "--name", "one"]) == 0
    whole = json.loads((tmp_path / "runs/one/statement.json").read_text())
    alone = tmp_path / "statement.json"  # without the model beside it, which says the same
    alone.write_text(json.dumps(whole))
    assert main(["account", "verify", str(alone)]) == 0
    clause = whole["guarantees"][0]["assumptions"][0]
    for change in ("clause", "attribute", "both"):
        forged = json.loads(json.dumps(whole))
        if change != "attribute":
            claim = forged["guarantees"][0]
            claim["assumptions"].remove(clause)
            claim["sentence"] = claim["sentence"].replace(f"(1) {clause}; (2) ", "")
        if change != "clause":
            del forged["data"]["sensitive"]
        alone.write_text(json.dumps(forged))
        capsys.readouterr()
        assert main(["account", "verify", str(alone)]) == 1
        heard = capsys.readouterr().err
        assert ("leaves out what its facts say" if change == "clause" else "it is about") in heard


@pytest.mark.parametrize("trust", ["local", "shuffle", "aggregate"])
def test_statements_of_many_silos_hold_in_any_order_of_names(
    trust: str,
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of eleven silos '10' is sorted before '2'; mixed messages come with what each shows alone."""
    monkeypatch.chdir(tmp_path)
    asked = ["train", str(table), "--protect", "sensitive", "--epsilon", "2", "--rounds", "2"]
    asked += ["--silos", "iid:11", "--delta", "1e-5", "--trust", trust]
    assert main([*asked, "--sensitive", "sex", "--name", "one"]) == 0
    capsys.readouterr()
    assert main(["account", "verify", "runs/one/statement.json"]) == 0
    assert len(json.loads(Path("runs/one/statement.json").read_text())["about"]) == (
        11 if trust == "local" else 22
    )


def test_a_silo_without_labels_is_refused_before_anything_is_spent(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.read_csv(table, dtype=str)
    frame.loc[::3, "hired"] = ""
    frame["bank"] = np.array(["b10", "b2", "b3"])[np.arange(N) % 3]
    (tmp_path / "banks.csv").write_text(frame.to_csv(index=False))
    (tmp_path / "banks.columns.toml").write_text(table.with_suffix(".columns.toml").read_text())
    asked = ["train", "banks.csv", "--silo-column", "bank", "--protect", "sensitive", "--epsilon", "1"]
    assert "'b10' has no training record" in refused(capsys, *asked, "--sensitive", "sex")
