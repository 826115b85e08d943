"""`tacit train` from the outside: what it prints, what it leaves, and what it refuses in one line."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tacit.cli.train_flags import TrainFlags
from tacit.federation import Batch, Full, Step
from tacit.jobs import JobConfig, load_model
from tacit.learning import ALGORITHMS, NoisyMinibatchSGD, Problem, about
from tacit.learning.algorithms import Kinds
from tacit.ledger import Ledger, ledger_path
from tacit.numerics import Array
from tacit.privacy import TrustModel

TABLE = Path(__file__).parents[1] / "data" / "clinics.csv"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A copy of the table with its public column description, in a folder of its own."""
    for name in ("clinics.csv", "clinics.columns.toml"):
        shutil.copy(TABLE.with_name(name), tmp_path / name)
    return tmp_path / "clinics.csv"


def run(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["train", "--out", str(tmp_path / "runs"), *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def results(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    code, out, _ = run([*arguments, "--json"], tmp_path, capsys)
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_demo_meets_its_promises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = results([], tmp_path, capsys)
    by_trust = {r["trust"]: r for r in found["results"]}
    assert list(by_trust) == ["none", "central", "aggregate", "shuffle", "local"]
    assert by_trust["none"]["epsilon"] is None
    for trust in ("central", "aggregate", "local"):
        assert (by_trust[trust]["epsilon"], by_trust[trust]["delta"]) == (2.0, 1e-5)
        assert "replacing one record" in by_trust[trust]["guarantee"]
        assert by_trust[trust]["bits_per_silo"] > 0
    assert by_trust["none"]["accuracy"] >= 0.88
    assert by_trust["central"]["accuracy"] >= by_trust["none"]["accuracy"] - 0.05
    assert by_trust["local"]["accuracy"] >= 0.78
    assert by_trust["aggregate"]["accuracy"] >= by_trust["central"]["accuracy"] - 0.03
    assert by_trust["local"]["accuracy"] < by_trust["shuffle"]["accuracy"] < by_trust["none"]["accuracy"]
    assert 1.9 < by_trust["shuffle"]["epsilon"] <= 2.0

    statement = Path(found["run"]) / "statement.json"
    assert main(["account", "verify", str(statement)]) == 0
    text = statement.read_text()
    assert '"epsilon": 2.0' in text or '"epsilon":2.0' in text
    statement.write_text(
        text.replace('"epsilon": 2.0', '"epsilon": 1.9').replace('"epsilon":2.0', '"epsilon":1.9')
    )
    capsys.readouterr()
    assert main(["account", "verify", str(statement)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_people_see_a_table_a_sentence_and_where_things_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(["--trust", "local", "--rounds", "10"], tmp_path, capsys)
    assert code == 0
    assert err == ""
    for piece in ("digits-odd-even: 10 silos", "accuracy", "local", "replacing one record", "report.html"):
        assert piece in out


def test_flags_and_toml_have_the_same_names() -> None:
    flags = {field.name for field in fields(TrainFlags)} - {"files", "dry_run", "json"}
    assert flags - {"option"} == set(JobConfig.__struct_fields__) - {"options"}


def test_flags_and_toml_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "job.toml"
    config.write_text(
        'data = "breast-cancer"\nsilos = "iid:3"\nrounds = 10\nepsilon = 4.0\ntrust = "central"\n'
    )
    written = results([str(config)], tmp_path, capsys)["results"][0]
    flags = [
        "--data",
        "breast-cancer",
        "--silos",
        "iid:3",
        "--rounds",
        "10",
        "--epsilon",
        "4",
        "--trust",
        "central",
    ]
    typed = results(flags, tmp_path, capsys)["results"][0]
    overruled = results([str(config), "--epsilon", "1"], tmp_path, capsys)["results"][0]
    assert {k: v for k, v in written.items() if k != "seconds"} == {
        k: v for k, v in typed.items() if k != "seconds"
    }
    assert overruled["epsilon"] == 1.0
    assert overruled["noise_multiplier"] > written["noise_multiplier"]


def test_a_table_trains_with_exact_noise_and_says_that_nothing_counts_it(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", str(table), "--label", "y", "--silo-column", "site", "--epsilon", "3"]
    code, out, err = run([*arguments, "--rounds", "10", "--json"], tmp_path, capsys)
    assert code == 0
    assert "no ledger counts this run" in err
    entry = json.loads(out)["results"][0]
    assert entry["trust"] == "local"
    assert "Simulated" not in entry["guarantee"]
    plan = (Path(json.loads(out)["run"]) / "plan.toml").read_text()
    assert "discrete-gaussian" in plan


def test_persons_are_protected_where_a_column_names_them(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", str(table), "--label", "y", "--silo-column", "site", "--person", "patient"]
    entry = results([*arguments, "--rounds", "10"], tmp_path, capsys)["results"][0]
    assert "replacing one person" in entry["guarantee"]


def test_the_ledger_beside_the_table_is_charged_and_refuses_an_overdraft(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = table.with_suffix(".ledger")
    create = ["ledger", "create", str(folder), "--silos-from", str(table), "--silo-column", "site"]
    assert main([*create, "--epsilon", "3", "--delta", "1e-3"]) == 0
    capsys.readouterr()
    arguments = ["--data", str(table), "--label", "y", "--silo-column", "site", "--rounds", "10"]
    code, _, err = run([*arguments, "--epsilon", "2", "--name", "first"], tmp_path, capsys)
    assert (code, err) == (0, "")
    for site in _sites():
        with Ledger.open(ledger_path(folder, site)) as ledger:
            assert ledger.spent().epsilon == 2.0
    code, _, err = run([*arguments, "--epsilon", "2", "--name", "second"], tmp_path, capsys)
    assert code == 4
    assert err.count("\n") == 1
    for site in _sites():
        with Ledger.open(ledger_path(folder, site)) as ledger:
            assert ledger.spent().epsilon == 2.0  # nothing was spent by the refused run


def _sites() -> list[str]:
    lines = TABLE.read_text().splitlines()
    column = lines[0].split(",").index("site")
    return sorted({line.split(",")[column] for line in lines[1:]})


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--epsilon", "0"], 2, "epsilon must be a finite number > 0"),
        (["--epsilon", "nan"], 2, "epsilon must be a finite number > 0"),
        (["--delta", "1"], 2, r"delta must be in [0, 1)"),
        (["--delta", "0"], 2, "delta must be > 0"),
        (["--clip", "0"], 2, "clip must be a finite number > 0"),
        (["--data", "nope"], 2, "did you mean"),
        (["--algorithm", "acelerated"], 2, "did you mean 'accelerated'"),
        (["--trust", "locl"], 2, "did you mean 'local'"),
        (["--silos", "iid:x"], 2, "silos must look like"),
        (["--batch", "5000"], 2, "must be at most the"),
        (["--batch", "100", "--sampling", "disjoint", "--rounds", "5"], 2, "rounds x batch"),
        (["--data", "missing.csv", "--label", "y"], 3, "missing.csv"),
        (["--data", "missing.csv"], 3, "missing.csv is not there"),
        (["--rounds", "many"], 2, "rounds"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(arguments, tmp_path, capsys)
    assert found == code, err
    assert said in err
    assert err.count("\n") == 1
    assert out == ""
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [line.replace("bmi", "bmj", 1) for line in lines], "bmi"),
        (
            lambda lines: [lines[0], *(_with(line, "age", "v7q,5", lines[0]) for line in lines[1:])],
            "line 2: ",
        ),
        (lambda lines: [*lines[:9], _with(lines[9], "age", 'v7q,"5', lines[0])], "line 10: "),
    ],
)
def test_bad_tables_name_the_column_or_the_line_and_quote_no_value(
    change: Any, said: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text("\n".join(change(table.read_text().splitlines())) + "\n")
    arguments = ["--data", str(table), "--label", "y", "--silo-column", "site"]
    code, _, err = run(arguments, tmp_path, capsys)
    assert code in (2, 3)
    assert said in err
    assert "v7q" not in err


@pytest.mark.parametrize("cell", ["v7q", "inf", ""])
def test_of_a_bad_cell_nothing_is_said(
    cell: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "--data",
        str(table),
        "--label",
        "y",
        "--silo-column",
        "site",
        "--rounds",
        "2",
        "--name",
        "r",
    ]
    before = run(arguments, tmp_path, capsys)
    lines = table.read_text().splitlines()
    for column in ("age", "smoker", "y"):
        lines[7] = _with(lines[7], column, cell, lines[0])
    table.write_text("\n".join(lines) + "\n")
    shutil.rmtree(tmp_path / "runs")  # a second run beside it would say where it goes
    after = run(arguments, tmp_path, capsys)
    assert before[0] == after[0] == 0
    assert before[2] == after[2]
    assert before[1].splitlines()[0] == after[1].splitlines()[0]


def _with(line: str, column: str, value: str, header: str) -> str:
    cells = line.split(",")
    cells[header.split(",").index(column)] = value
    return ",".join(cells)


def test_secret_runs_differ_and_seeded_runs_repeat(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", str(table), "--label", "y", "--silo-column", "site", "--rounds", "10"]
    seeded = [results([*arguments, "--seed", "1"], tmp_path, capsys) for _ in range(2)]
    assert seeded[0]["results"][0]["accuracy"] == seeded[1]["results"][0]["accuracy"]
    assert "Simulated" in seeded[0]["results"][0]["guarantee"]
    models = []
    for _ in range(2):
        found = results(arguments, tmp_path, capsys)
        models.append(trained_model(Path(found["run"])))
    assert not np.array_equal(models[0], models[1])


def test_every_algorithm_is_a_run_under_its_name(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = {}
    common = ["--data", str(table), "--label", "y", "--silo-column", "site", "--seed", "0"]
    # What needs public records runs in tests of its own.
    for name, kind in ((name, kind) for name, kind in ALGORITHMS.items() if not kind.needs_public):
        # Each unit once: no more rounds than units.
        one_pass = name in ("prox-sgd", "semi-ldp") or name.startswith("clipped")
        many = "16" if one_pass else "160" if name == "multistage" else "60"
        rounds = [] if kind().rounds == 1 else ["--rounds", many]
        rounds += ["--delta", "1e-4"] if kind.unit is not None else []  # of few parties
        # With as much noise as here both ask for gradients only, by default, and are the same method.
        rounds += {"diff2": ["--option", "period=3"], "mb-psgm": ["--option", "beta=0.5"]}.get(name, [])
        trust = "local" if TrustModel.LOCAL in kind.trusts else "shuffle"
        rounds += [] if trust == "local" else ["--trust", trust]
        code, out, _ = run([*common, *rounds, "--algorithm", name, "--name", name], tmp_path, capsys)
        assert code == 0, name
        assert [line.split()[:2] for line in out.splitlines() if line.startswith(f"{trust} ")] == [
            [trust, name]
        ]
        folder = tmp_path / "runs" / name
        metrics = json.loads((folder / "metrics.json").read_text())
        assert [one["algorithm"] for one in metrics["results"]] == [name]
        assert json.loads((folder / "statement.json").read_text())["algorithm"] == name
        assert f"<td>{name}</td>" in (folder / "report.html").read_text()
        models[name] = trained_model(folder)
    pairs = itertools.combinations(models.values(), 2)
    assert all(np.abs(one - other).max() > 1e-3 for one, other in pairs)


def test_all_trust_models_of_walks_are_two_and_the_output_says_so(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table_of = ["--data", str(table), "--label", "y", "--silo-column", "site", "--seed", "0"]
    arguments = [*table_of, "--trust", "all", "--algorithm", "local", "--rounds", "2", "--local-steps", "2"]
    code, out, _ = run(arguments, tmp_path, capsys)
    assert code == 0
    assert "central is left out" in out
    found = results(arguments, tmp_path, capsys)
    assert [(one["trust"], one["algorithm"]) for one in found["results"]] == [
        ("none", "local"),
        ("local", "local"),
    ]
    assert any("No trusted server was compared" in note for note in found["notes"])


def test_a_list_says_what_there_is_to_choose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(["--algorithm", "list"], tmp_path, capsys)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    starts = {name: [k for k, line in enumerate(lines) if line.startswith(f"{name} ")] for name in ALGORITHMS}
    for name, found in starts.items():
        (start,) = found
        ends = [k for (k,) in starts.values() if k > start]
        paragraph = " ".join(lines[start : min(ends, default=len(lines))])
        assert all(word in paragraph for word in (*about(name).trusts, *about(name).options))
    assert len(lines) <= 4 * len(ALGORITHMS)  # a few lines each
    code, out, _ = run(["--algorithm", "list", "--json"], tmp_path, capsys)
    assert code == 0
    known = json.loads(json.dumps([asdict(about(name)) for name in ALGORITHMS]))
    assert json.loads(out) == {"version": 1, "algorithms": known}
    assert not (tmp_path / "runs").exists()  # nothing was run


def test_help_leads_to_the_list_and_the_page_has_all_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "800")
    assert main(["train", "--help"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "--algorithm" in line)
    assert "`list` shows what they are" in line
    page = (Path(__file__).parents[2] / "docs/how-to/train-on-your-table.md").read_text()
    (row,) = (line for line in page.splitlines() if line.startswith("| `--algorithm`"))
    named = set(re.findall(r"`([\w-]+)`", row)) - {"--algorithm", "list"}
    assert named == {"auto", *ALGORITHMS}, (
        "the row --algorithm of docs/how-to/train-on-your-table.md names them all"
    )


def test_options_reach_the_algorithm_and_the_file_of_the_run(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--data", str(table), "--label", "y", "--silo-column", "site", "--seed", "0", "--rounds", "3"]
    chosen = ["--algorithm", "minibatch", "--option", "step-size=0.25", "--option", "average=1"]
    assert run([*common, *chosen, "--name", "flags"], tmp_path, capsys)[0] == 0
    job = tmp_path / "runs" / "flags" / "job.toml"
    assert tomllib.loads(job.read_text())["options"] == {"step_size": 0.25, "average": 1}
    assert run([str(job), "--name", "file"], tmp_path, capsys)[0] == 0  # the file says the same
    # A flag wins over the file, option by option.
    assert run([str(job), "--option", "step_size=0.5", "--name", "both"], tmp_path, capsys)[0] == 0
    again = tomllib.loads((tmp_path / "runs" / "both" / "job.toml").read_text())
    assert again["options"] == {"step_size": 0.5, "average": 1}
    models = {name: trained_model(tmp_path / "runs" / name) for name in ("flags", "file", "both")}
    np.testing.assert_array_equal(models["flags"], models["file"])
    # The mean of w_0, w_1, w_2 on the same noise: a step of twice the length goes about twice as far.
    assert np.linalg.norm(models["both"]) > 1.5 * np.linalg.norm(models["flags"])


class _Two(NoisyMinibatchSGD, frozen=True, kw_only=True, tag="two-batches"):
    """Takes a batch that has no flag of its own."""

    difference_batch: Batch = Full()

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        return ((Step(measures=(problem.measure("gradient"),), batch=self.difference_batch), rounds),)


def test_an_option_says_a_batch_as_its_flag_and_as_toml_do(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ALGORITHMS, "two-batches", _Two)
    common = ["--data", str(table), "--label", "y", "--silo-column", "site", "--seed", "0", "--rounds", "3"]
    common += ["--algorithm", "two-batches", "--option"]
    spelled = {"flag": "8", "share": "0.1", "toml": '{batch = "disjoint", size = 8}'}
    asked = {}
    for name, text in spelled.items():
        assert run([*common, f"difference-batch={text}", "--name", name], tmp_path, capsys)[0] == 0
        folder = tmp_path / "runs" / name
        asked[name] = tomllib.loads((folder / "plan.toml").read_text())["steps"][0][0]["batch"]
        assert run([str(folder / "job.toml"), "--name", f"{name}-again"], tmp_path, capsys)[0] == 0
        again = tmp_path / "runs" / f"{name}-again"
        np.testing.assert_array_equal(trained_model(folder), trained_model(again))
    assert asked == {
        "flag": {"batch": "poisson", "size": 8},  # cheaper than a fixed size
        "share": {"batch": "poisson", "rate": 0.1},
        "toml": {"batch": "disjoint", "size": 8},
    }
    code, _, err = run([*common, "difference-batch=none"], tmp_path, capsys)
    assert code == 2
    assert "difference_batch must be 'full', a whole number, or a share below 1, or" in " ".join(err.split())


def trained_model(folder: Path) -> Array:
    return np.asarray(load_model(folder).fitted.w)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["step_size"], "option must be KEY=VALUE, got 'step_size'"),
        (["=0.5"], "option must be KEY=VALUE, got '=0.5'"),
        (["step_size="], "option must be KEY=VALUE, got 'step_size='"),
        (["nu=1"], "nu is not an option of the algorithm 'minibatch', got 1; it has rounds, batch"),
        (["rounds=5"], "options must not hold rounds, which is a setting of its own"),
        (["step_size=far"], "step_size must be a number"),
        (["average=2"], "average must be in (0, 1], got 2"),
        (["average={"], "average must be a number, a word, or a value of TOML, got '{'"),
        (["average=[1]\nseed=2"], "average must be a number, a word, or a value of TOML, got '[1]"),
        (["average=true"], "average must be a number, at most 1.8e308, got True"),
        (["average={x = 1}"], "average must be a number, at most 1.8e308, got {'x': 1}"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    flags = [word for option in options for word in ("--option", option)]
    arguments = ["--data", str(table), "--label", "y", "--silo-column", "site", "--algorithm", "minibatch"]
    code, _, err = run([*arguments, *flags], tmp_path, capsys)
    assert code == 2
    assert message in " ".join(err.split())
    assert not (tmp_path / "runs").exists()


def test_the_statement_of_one_silo_and_a_trusted_server_names_no_silo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("x,y\n" + "\n".join(f"{k % 7},{k % 2}" for k in range(60)) + "\n")
    argv = ["train", "--data", "t.csv", "--label", "y", "--trust", "central", "--rounds", "2", "--seed", "1"]
    assert main([*argv, "--out", "runs", "--name", "one"]) == 0
    statement = Path("runs/one/statement.json")
    assert json.loads(statement.read_text())["about"][0]["silo"] is None
    assert main(["account", "verify", str(statement)]) == 0
    capsys.readouterr()


@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
def test_a_name_that_no_ledger_counts_is_not_trained_again(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "--data",
        str(table),
        "--label",
        "y",
        "--silo-column",
        "site",
        "--rounds",
        "2",
        "--name",
        "june",
    ]
    assert run(arguments, tmp_path, capsys)[0] == 0
    for more in ([], ["--epsilon", "1"]):
        code, out, err = run([*arguments, *more], tmp_path, capsys)
        assert (code, out) == (2, "")
        assert "name must be another than 'june'" in err
    assert [folder.name for folder in (tmp_path / "runs").iterdir()] == ["june"]
    assert run([*arguments, "--dry-run"], tmp_path, capsys)[0] == 0  # which tells nothing
    assert run([*arguments, "--seed", "1"], tmp_path, capsys)[0] == 0  # nor does a simulation count
    assert (tmp_path / "runs" / "june-2").is_dir()


def test_a_second_run_says_where_it_goes_and_leaves_the_first_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["train", "--trust", "local", "--rounds", "2"]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    first = {path: path.read_bytes() for path in Path("runs/demo").iterdir()}
    assert main([*command, "--epsilon", "1"]) == 0
    said = capsys.readouterr()
    assert said.err == "note: runs/demo is there already and stays as it is; this run is in runs/demo-2.\n"
    assert "Check:   tacit account verify runs/demo-2/statement.json" in said.out
    assert {path: path.read_bytes() for path in Path("runs/demo").iterdir()} == first
    # A statement beside the model of another run is refused by the digest that it holds.
    Path("runs/demo/statement.json").write_bytes(Path("runs/demo-2/statement.json").read_bytes())
    assert main(["account", "verify", "runs/demo/statement.json"]) == 1
    assert "model.json is not the file that the statement is about" in capsys.readouterr().err
