"""`tacit frequencies` and `tacit plan frequencies` from the outside."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget

CLINICS = Path(__file__).parents[1] / "data" / "clinics.csv"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for file in (CLINICS, CLINICS.with_name("clinics.columns.toml")):
        shutil.copy(file, tmp_path)
    return tmp_path / "clinics.csv"


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["frequencies", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def asked(table: Path, *more: str) -> list[str]:
    return ["--data", str(table), "--column", "smoker", "--values", "yes,no", "--epsilon", "1", *more]


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str], *, code: int = 2) -> str:
    assert main(["frequencies", *arguments]) == code
    return capsys.readouterr().err


@pytest.mark.parametrize("trust", ["local", "shuffle", "central"])
def test_frequencies_are_inside_their_intervals_and_the_statement_is_verified(
    table: Path, trust: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # At a confidence of 1 - 1e-7 the intervals hold the truth in every run.
    found = answer(asked(table, "--trust", trust, "--confidence", "0.9999999"), capsys)
    exact = pd.read_csv(table)["smoker"].value_counts(normalize=True)
    assert found["n"] == 768
    assert found["k"] == 3
    assert set(found["estimates"]) == set(found["intervals"]) == {"yes", "no", "other"}
    for name, share in {"yes": exact["yes"], "no": exact["no"], "other": 0.0}.items():
        low, high = found["intervals"][name]
        assert low <= share <= high
    assert sum(found["estimates"].values()) == pytest.approx(1)
    assert (found["trust"], found["unit"], found["simulated"]) == (trust, "record", False)
    assert found["epsilon"] <= 1
    assert found["delta"] == (1e-6 if trust == "shuffle" else 0)
    assert "replacing one record" in found["guarantee"]
    if trust == "central":
        assert (found["mechanism"], found["random_bits_per_client"]) == ("histogram", 0)
    else:
        assert found["bits_per_client"] == 2
        assert 0 < found["random_bits_per_client"] < 1.5
    assert ("epsilon_alone" in found) == (trust == "shuffle")
    if trust == "shuffle":
        assert found["epsilon_alone"] == pytest.approx(found["local_epsilon"], abs=1e-6)
        assert found["local_epsilon"] > 2
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(found))
    assert main(["account", "verify", str(file)]) == 0
    for field, wrong in (
        ("n", 769),
        ("mechanism", "oue"),
        ("bits_per_client", 1),
        ("random_bits_per_client", 0.1),
        ("rmse", 1e-3),
        ("local_epsilon", 1.5),
        ("unit", "person"),
        ("trust", "local" if trust != "local" else "central"),
        ("estimates", {"yes": 1.0}),
        ("intervals", {name: [0.5, 0.4] for name in found["intervals"]}),
        (
            "intervals",
            {
                n: [0.6 * low + 0.4 * high, 0.4 * low + 0.6 * high]
                for n, (low, high) in found["intervals"].items()
            },
        ),
        ("notes", []),
        ("table", 1),
        ("column", ["smoker"]),
        ("estimates", {"yes": 0.5, "no": 0.6, "other": -0.1}),
        ("estimates", {"yes": 0.5, "no": 0.4, "other": 0.0}),
    ):
        file.write_text(json.dumps({**found, field: wrong}))
        assert main(["account", "verify", str(file)]) == 1, field
    for place in range(len(found["about"])):
        forged = json.loads(json.dumps(found))
        forged["about"][place]["units"] = 769
        file.write_text(json.dumps(forged))
        assert main(["account", "verify", str(file)]) == 1, place
    capsys.readouterr()


@pytest.mark.parametrize("projection", ["none", "sum", "clip", "clip-normalize", "simplex"])
def test_a_statement_of_estimates_that_their_projection_cannot_have_is_refused(
    table: Path, projection: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(asked(table, "--seed", "1", "--projection", projection), capsys)
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(found))
    assert main(["account", "verify", str(file)]) == 0
    for shift in (-1.0, 1.0) if projection != "clip" else (-1.0,):
        forged = {name: share + shift for name, share in found["estimates"].items()}
        file.write_text(json.dumps({**found, "estimates": forged}))
        assert main(["account", "verify", str(file)]) == 1, shift
    notes = [note.replace(projection, "magic") for note in found["notes"]]
    file.write_text(json.dumps({**found, "projection": "magic", "notes": notes}))
    assert main(["account", "verify", str(file)]) == 1
    capsys.readouterr()


def test_no_row_changes_what_another_one_sends(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The first cell becomes a text that nobody described, and all other answers stay as they were.
    frame = pd.read_csv(table, dtype=str)
    arguments = asked(table, "--seed", "3", "--mechanism", "krr", "--projection", "none")
    before = answer(arguments, capsys)
    was = frame.loc[0, "smoker"]
    for cell in ("", "sometimes", "1e999", "yes, no", "\u2028", "NaN"):
        frame.loc[0, "smoker"] = cell
        frame.to_csv(table, index=False)
        after = answer(arguments, capsys)
        moved = {name: after["estimates"][name] - before["estimates"][name] for name in after["estimates"]}
        assert len(moved) == 3
        # With the noise of that row as it was, it moves from one value to another or lies as before.
        steps = sorted(round(step / max(map(abs, moved.values()), default=1), 6) for step in moved.values())
        assert steps in ([-1.0, 0.0, 1.0], [0.0, 0.0, 0.0])
        assert set(after) == set(before)
        assert after["guarantee"] == before["guarantee"]
    assert was in {"yes", "no"}


def test_the_domain_is_public(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.txt"
    file.write_text("no\n\nyes\nother\n", encoding="utf-8")
    base = ["--data", str(table), "--column", "smoker", "--epsilon", "1", "--seed", "1"]
    listed = answer([*base, "--domain", str(file)], capsys)
    assert list(listed["estimates"]) == ["no", "yes", "other"]
    described = answer(base, capsys)  # the categories of the column description
    assert set(described["estimates"]) == {"no", "yes", "other"}
    spelt = answer([*base, "--values", "yes", "no"], capsys)
    assert list(spelt["estimates"]) == ["yes", "no", "other"]
    assert "values and domain must not both" in refusal(
        [*base, "--values", "a", "--domain", str(file)], capsys
    )
    assert "'a' more than once" in refusal([*base, "--values", "a,b,a"], capsys)
    assert "at least one text that is not empty" in refusal([*base, "--values", "a,,b"], capsys)
    assert "values must have one that is not 'other'" in refusal([*base, "--values", "other"], capsys)
    assert "domain must be a readable file" in refusal([*base, "--domain", str(tmp_path / "none")], capsys)
    ages = ["--data", str(table), "--column", "age", "--epsilon", "1"]
    assert "must be public" in refusal(ages, capsys)
    assert "got 'age2'" in refusal([*ages[:-3], "age2", *ages[-2:], "--values", "1"], capsys, code=3)


def test_persons_count_once(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    persons = pd.read_csv(table)["patient"].nunique()
    found = answer(asked(table, "--person", "patient", "--seed", "1", "--confidence", "0.9999999"), capsys)
    assert (found["n"], found["unit"]) == (persons, "person")
    assert "replacing one person" in found["guarantee"]
    first = pd.read_csv(table).drop_duplicates("patient")["smoker"].value_counts(normalize=True)
    low, high = found["intervals"]["yes"]
    assert low <= first["yes"] <= high
    # With hardly any noise: by the first record, not by another one.
    visits = table.with_name("visits.csv")
    visits.write_text("who,item\n" + "".join(f"p{k},a\np{k},b\np{k},b\n" for k in range(50)))
    sharp = ["--trust", "central", "--epsilon", "40", "--projection", "none", "--seed", "1"]
    who = ["--data", str(visits), "--column", "item", "--values", "a,b", "--person", "who"]
    assert answer([*who, *sharp], capsys)["estimates"] == {"a": 1.0, "b": 0.0, "other": 0.0}
    assert "person must be another column" in refusal(asked(table, "--person", "smoker"), capsys)


def test_a_ledger_pays_and_refuses(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table.with_suffix(".ledger")
    Ledger.create(path, limit=PrivacyBudget(1.5, 1e-6), neighbours=Neighbours()).close()
    found = answer(asked(table), capsys)
    assert found["epsilon"] == 1.0
    assert "epsilon" in refusal(asked(table), capsys, code=4)
    simulated = answer(asked(table, "--seed", "1"), capsys)
    assert simulated["simulated"]


def test_heavy_hitters_lie_above_their_threshold(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = asked(table, "--seed", "1", "--heavy-hitters", "--threshold", "0.4")
    found = answer(arguments, capsys)
    assert found["heavy_hitters"] == ["no"]
    assert found["false_alarm"] == pytest.approx(0.025)
    assert main(["frequencies", *arguments]) == 0
    shown = capsys.readouterr().out
    picture = table.with_name("heavy.png")
    page = table.with_name("page.html")
    answer([*arguments, "--plot", str(picture), "--report", str(page)], capsys)
    assert "Heavy hitters" in page.read_text()
    assert "report must be a file that ends with .html" in refusal(asked(table, "--report", "x.txt"), capsys)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "plot must be a file that ends with" in refusal(asked(table, "--plot", "x.txt"), capsys)
    assert "with probability 97.5 % no value is listed here that is not more frequent than 0.4" in shown
    assert "\nyes" not in shown
    assert "threshold is for --heavy-hitters" in refusal(asked(table, "--threshold", "0.4"), capsys)


def test_many_values_are_answered_by_a_short_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    items = np.where(rng.random(20_000) < 0.4, 123, rng.integers(0, 5000, 20_000))
    table, values = tmp_path / "items.csv", tmp_path / "values.txt"
    pd.DataFrame({"item": [f"i{one}" for one in items]}).to_csv(table, index=False)
    values.write_text("\n".join(f"i{k}" for k in range(5000)), encoding="utf-8")
    base = ["--data", str(table), "--column", "item", "--domain", str(values), "--epsilon", "1"]
    found = answer([*base, "--max-message-bits", "14", "--heavy-hitters", "--seed", "1"], capsys)
    assert (found["mechanism"], found["bits_per_client"]) == ("bh", 14)
    assert found["heavy_hitters"] == ["i123"]
    few = answer([*base, "--max-random-bits", "0.3", "--seed", "1"], capsys)
    assert few["random_bits_per_client"] <= 0.3
    assert main(["frequencies", *base, "--seed", "1", "--mechanism", "hr"]) == 0
    assert "more; --json has them all" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "nan"], "epsilon"),
        (["--trust", "aggregate"], "aggregate trust needs two tables or more"),
        (["--trust", "sum"], "trust must be one of local, shuffle, aggregate, central"),
        (["--colluding", "1"], "colluding is for trust 'aggregate', got 1 with trust 'local'"),
        (["--mechanism", "olh"], "mechanism must be one of bh, hr"),
        (["--trust", "central", "--mechanism", "bh"], "for clients who randomise"),
        (["--trust", "shuffle", "--delta", "0"], "delta must be > 0 under shuffle trust"),
        (["--max-random-bits", "0"], "max-random-bits must be a finite number > 0"),
        (["--confidence", "1"], "confidence must be in"),
        (["--projection", "norm"], "projection must be one of none, sum"),
    ],
)
def test_bad_questions_are_refused(
    table: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(asked(table, *more), capsys)


def test_a_plan_ranks_by_exact_error(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["plan", "frequencies", "--k", "1000", "--n", "100000", "--epsilon", "1"]
    assert main([*base, "--json"]) == 0
    local = json.loads(capsys.readouterr().out)
    names = [one["name"] for one in local["candidates"]]
    assert local["pick"] == names[0] == "ss"
    assert sorted(names) == ["bh", "hr", "krr", "oue", "rappor", "rhr", "ss"]
    errors = [one["mse"] for one in local["candidates"]]
    assert errors == sorted(errors)
    assert 0 < local["lower_bound"] < errors[0]
    assert main([*base, "--trust", "shuffle", "--json"]) == 0
    mixed = json.loads(capsys.readouterr().out)
    assert mixed["pick"] == "krr"
    assert mixed["problem"]["delta"] == 1e-6
    assert mixed["lower_bound"] is None
    for one in mixed["candidates"]:
        assert 0.999 < one["epsilon"] <= 1
        assert one["local_epsilon"] > 5
    # A shuffler is worth the factor that the levels say: here in the variance of an estimate.
    assert mixed["candidates"][0]["mse"] < errors[0] / 1000
    assert main([*base, "--trust", "central"]) == 0
    assert "histogram" in capsys.readouterr().out
    assert main([*base, "--independent", "--max-message-bits", "1", "--json"]) == 0
    bit = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["bits_per_client"]) for one in bit["candidates"]] == [("bh", 1)]
    assert main([*base, "--max-random-bits", "0.1"]) == 0
    assert "bh" in capsys.readouterr().out
    assert main(["plan", "frequencies", "--k", "1", "--n", "10", "--epsilon", "1"]) == 2
    assert "k must be a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    "mechanism", ["bh:1000", "oue:1000", "rappor:1000", "hr:1000", "ss:1000", "rhr:1000", "two-level:0.3"]
)
def test_accounts_know_the_laws(mechanism: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--local-epsilon", "1", "--n", "100000", "--delta", "1e-6", "--json"]
    found = {}
    for name in (mechanism, "general"):
        assert main(["account", "shuffle", "--mechanism", name, *options]) == 0
        found[name] = json.loads(capsys.readouterr().out)["epsilon"]
    assert 0 < found[mechanism] < found["general"] < 0.02
    assert math.isfinite(found[mechanism])
