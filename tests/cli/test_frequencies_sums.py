"""`tacit frequencies --trust aggregate`: tables that hide each other in a sum of counts, and who pays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.ledger import CENTRAL, DATA_SET, Ledger, create_ledgers, ledger_path
from tacit.privacy import Neighbours, PrivacyBudget

Data = dict[str, Any]
SUMMED = ["--column", "smoker", "--values", "yes,no", "--epsilon", "1", "--trust", "aggregate"]


@pytest.fixture
def wards(tmp_path: Path) -> Path:
    """Four tables with 500 to 800 rows, of which a third smoke; two rows for each patient of a table."""
    folder = tmp_path / "wards"
    folder.mkdir()
    for k, name in enumerate(("braga", "coimbra", "faro", "porto")):
        rows = [f"{'yes' if i % 3 == 0 else 'no'},p{i // 2}" for i in range(500 + 100 * k)]
        (folder / f"{name}.csv").write_text("\n".join(["smoker,patient", *rows]) + "\n")
    return folder


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> Data:
    assert main(["frequencies", "--data", *words, "--json"]) == 0
    found: Data = json.loads(capsys.readouterr().out)
    return found


def test_both_prices_are_said_and_verified(
    wards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(wards), *SUMMED, "--colluding", "2", "--seed", "0"]
    found = answer([*words, "--confidence", "0.999999"], capsys)
    assert (found["n"], found["k"], found["tables"], found["colluding"]) == (2600, 3, 4, 2)
    assert (found["mechanism"], found["local_epsilon"], found["delta"]) == ("summed-histogram", None, 1e-6)
    assert found["epsilon"] == 1.0 < found["epsilon_alone"]
    assert "the sum of all tables and up to 2 of them together" in found["guarantee"]
    assert "who see the message of one table alone" in found["guarantee_alone"]
    assert [one.get("alone", False) for one in found["about"]] == [False, True]
    events = [claim["event"] for claim in found["guarantees"]]
    assert [(event["event"], event["count"]) for event in events] == [("Repeat", 2), ("Repeat", 2)]
    assert [event["part"]["event"] for event in events] == ["DiscreteGaussianSum", "DiscreteGaussian"]
    for name, share in (("yes", 868 / 2600), ("no", 1732 / 2600), ("other", 0.0)):
        low, high = found["intervals"][name]
        assert low <= share <= high
    statement = tmp_path / "statement.json"
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "verified: 2 guarantees" in out
    assert main(["frequencies", "--data", *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "one message alone: (epsilon = " in said
    assert "bits a table; root mean square error" in said


def test_the_noise_does_not_grow_with_the_tables_but_with_the_colluders(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = [str(wards / f"{name}.csv") for name in ("braga", "porto")]
    of_two, of_four = (answer([*files, *SUMMED, "--seed", "0"], capsys) for files in (two, [str(wards)]))
    guarded = answer([str(wards), *SUMMED, "--seed", "0", "--colluding", "2"], capsys)
    noise = {name: one["rmse"] * one["n"] for name, one in (("two", of_two), ("four", of_four))}
    assert noise["two"] == pytest.approx(noise["four"], rel=0.01)
    assert guarded["rmse"] == pytest.approx(2**0.5 * of_four["rmse"], rel=0.01)
    local = answer([str(wards), *SUMMED, "--trust", "local", "--seed", "0", "--delta", "0"], capsys)
    assert guarded["rmse"] < local["rmse"] / 4


def test_persons_count_once_in_every_table(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([str(wards), *SUMMED, "--seed", "0", "--person", "patient"], capsys)
    assert found["n"] == 1300  # p0 of one table and p0 of another count twice
    assert "no person has records in two silos" in found["guarantee"]
    assert "no person has records in two silos" in found["guarantee_alone"]
    central = [str(wards), *SUMMED, "--trust", "central", "--seed", "0", "--person", "patient"]
    assert answer(central, capsys)["n"] == 400


def test_every_table_pays_the_price_of_the_sum(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [file.stem for file in sorted(wards.glob("*.csv"))]
    accounts = wards / "silos.ledger"
    create_ledgers(accounts, names, limit=PrivacyBudget(1.5, 1e-5), neighbours=Neighbours())
    words = ["frequencies", "--data", str(wards), *SUMMED, "--colluding", "2"]
    assert main(words) == 0
    capsys.readouterr()
    spent = {name: Ledger.open(ledger_path(accounts, name)).spent() for name in [*names, DATA_SET, CENTRAL]}
    assert {name: (one.epsilon, one.delta) for name, one in spent.items()} == {
        **dict.fromkeys([*names, DATA_SET], (1.0, 1e-6)),
        CENTRAL: (0.0, 0.0),
    }
    assert main(["ledger", "show", str(wards), "--json"]) == 0
    shown = {one["label"]: one for one in json.loads(capsys.readouterr().out)["ledgers"]}
    assert len(shown["faro"]["sums"]) == 1
    assert main(words) != 0
    assert "nothing was spent" in capsys.readouterr().err


def cut(found: Data) -> None:
    found["guarantees"].pop()
    found["about"].pop()
    found["count"] = 1


def swap(found: Data) -> None:
    found["guarantees"].reverse()


def one_trust(found: Data) -> None:
    found["trust"] = "central"
    for one in found["about"]:
        one["trust"] = "central"


def fewer(found: Data) -> None:
    found["colluding"] = 1
    claim = found["guarantees"][0]
    claim["observer"] = claim["observer"].replace("up to 2", "up to 1")
    del claim["sentence"], found["guarantee"]


def cheaper(found: Data) -> None:
    found["epsilon_alone"] = found["guarantees"][1]["epsilon"] = 0.5
    del found["guarantees"][1]["sentence"], found["guarantee_alone"]


def unsaid(found: Data) -> None:
    claim = found["guarantees"][0]
    claim["assumptions"] = [one for one in claim["assumptions"] if "before all" not in one]
    del claim["sentence"], found["guarantee"]


def once(found: Data) -> None:
    for claim in found["guarantees"]:
        claim["event"] = claim["event"]["part"]


def noisier(found: Data) -> None:
    for claim in found["guarantees"]:
        claim["event"]["part"]["std"] *= 2


def more_accurate(found: Data) -> None:
    found["rmse"] /= 2


def shorter(found: Data) -> None:
    found["bits_per_client"] -= 8


def other_mechanism(found: Data) -> None:
    found["mechanism"] = "histogram"


def fewer_tables(found: Data) -> None:
    found["tables"] = 3


def without_tables(found: Data) -> None:
    del found["tables"]


def about_others(found: Data) -> None:
    found["about"][1]["units"] = 1_000


def surer(found: Data) -> None:
    for ends in found["intervals"].values():
        if ends[0] > 0 and ends[1] < 1:
            ends[0] = (ends[0] + ends[1]) / 2


CHANGES = [
    surer,
    *(cut, swap, one_trust, fewer, cheaper, unsaid, once, noisier, more_accurate, shorter),
    *(other_mechanism, fewer_tables, without_tables, about_others),
]


def test_changed_answers_are_refused(wards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([str(wards), *SUMMED, "--seed", "0", "--colluding", "2"], capsys)
    statement = tmp_path / "statement.json"
    change: Callable[[Data], None]
    for change in CHANGES:
        changed = json.loads(json.dumps(found))
        change(changed)
        statement.write_text(json.dumps(changed))
        assert main(["account", "verify", str(statement)]) == 1, change.__name__
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
    local = answer([str(wards), *SUMMED, "--trust", "local", "--delta", "0", "--seed", "0"], capsys)
    statement.write_text(json.dumps({**local, "tables": 4}))
    assert main(["account", "verify", str(statement)]) == 1
    assert "has no 'tables'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--colluding", "3"], "colluding must be at most 2 of 4 tables"),
        (["--colluding", "-1"], "colluding must be a whole number >= 0, got -1"),
        (["--delta", "0"], "delta must be > 0 under aggregate trust"),
        (["--mechanism", "krr"], "under aggregate trust none does"),
        (["--trust", "central", "--colluding", "1"], "colluding is for trust 'aggregate'"),
    ],
)
def test_what_no_sum_hides_is_refused(
    words: list[str], said: str, wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["frequencies", "--data", str(wards), *SUMMED, *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_a_plan_says_what_a_sum_of_tables_costs(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["plan", "frequencies", "--k", "100", "--n", "10000", "--epsilon", "1", "--trust", "aggregate"]
    found = {}
    for tables in ("10", "10000"):
        assert main([*base, "--parties", tables, "--json"]) == 0
        found[tables] = json.loads(capsys.readouterr().out)
        (row,) = found[tables]["candidates"]
        assert row["name"] == found[tables]["pick"] == "summed-histogram"
        assert 0.99 < row["epsilon"] <= 1
        # Of 5.98 rows a count, however many tables there are.
        assert row["mse"] == pytest.approx(100 * (5.98 / 10_000) ** 2, rel=0.01)
    assert found["10"]["problem"]["parties"] == 10
    assert main(base) == 0
    assert "a share from each of 10,000 tables" in capsys.readouterr().out
    assert main([*base, "--independent"]) == 2
    assert "independent is for clients who randomise" in capsys.readouterr().err
    assert main([*base[:-1], "local", "--parties", "3"]) == 2
    assert "parties and colluding are for trust 'aggregate'" in capsys.readouterr().err
    assert main([*base, "--parties", "20000"]) == 2
    assert "parties must be" in capsys.readouterr().err
