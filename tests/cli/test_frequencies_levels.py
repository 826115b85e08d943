"""`tacit frequencies --levels` from the outside: several analysts, and their statement."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tacit.cli import main
from tacit.frequencies import BinaryHadamard
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget
from tests.cli.test_frequencies import CLINICS

ASKED = ["--column", "smoker", "--values", "yes,no", "--trust", "local"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    shutil.copy(CLINICS, tmp_path)
    return tmp_path / "clinics.csv"


def answer(table: Path, *more: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["frequencies", "--data", str(table), *ASKED, *more, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def _narrower(intervals: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return intervals of half the width around the same middles."""
    return {
        name: [0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high] for name, (low, high) in intervals.items()
    }


def test_every_analyst_has_estimates_intervals_and_a_guarantee(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(table, "--levels", "0.5,1,2", "--confidence", "0.9999999", capsys=capsys)
    assert (found["kind"], found["levels"]) == ("frequencies levels", [2.0, 1.0, 0.5])
    assert (found["epsilon"], found["delta"], found["n"], found["k"]) == (2.0, 0.0, 768, 3)
    exact = pd.read_csv(table)["smoker"].value_counts(normalize=True)
    for one, level in zip(found["analysts"], (2, 1, 0.5), strict=True):
        assert one["epsilon"] == level
        assert f"epsilon = {level:g})" in one["guarantee"]
        assert sum(one["estimates"].values()) == pytest.approx(1)
        for name, share in {"yes": exact["yes"], "no": exact["no"], "other": 0.0}.items():
            low, high = one["intervals"][name]
            assert low <= share <= high
        error = BinaryHadamard(k=3, epsilon=level).frequency_mse(768)
        assert one["rmse"] == pytest.approx(math.sqrt(error / 3), rel=1e-9)
    assert "alone or together with all less trusted ones" in found["analysts"][0]["guarantee"]
    assert [claim["epsilon"] for claim in found["guarantees"]] == [2.0, 1.0, 0.5, 0.5]
    assert "an observer of all public messages" in found["guarantees"][3]["sentence"]
    assert (found["bits_per_client"], found["private_bits_per_client"]) == (3, 2)
    assert found["random_bits_per_client"] == pytest.approx(2.028798, abs=1e-6)
    assert found["separate_messages"] == {
        "bits_per_client": 9,
        "random_bits_per_client": pytest.approx(2.323293, abs=1e-6),
        "epsilon_together": pytest.approx(3.5),
    }
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(found))
    assert main(["account", "verify", str(file)]) == 0
    analysts = found["analysts"]
    for field, wrong in (
        ("n", 769),
        ("levels", [2.0, 1.0, 0.4]),
        ("levels", [0.5, 1.0, 2.0]),
        ("levels", "2"),
        ("k", 4),
        ("epsilon", 0.5),
        ("trust", "central"),
        ("unit", "person"),
        ("bits_per_client", 2),
        ("random_bits_per_client", 1.0),
        ("separate_messages", {**found["separate_messages"], "epsilon_together": 2.0}),
        ("separate_messages", {}),
        ("analysts", analysts[:2]),
        ("analysts", analysts[::-1]),
        ("analysts", [{**analysts[0], "rmse": 1e-3}, *analysts[1:]]),
        ("analysts", [{**analysts[0], "epsilon": 0.5}, *analysts[1:]]),
        ("analysts", [{**analysts[0], "guarantee": analysts[1]["guarantee"]}, *analysts[1:]]),
        ("analysts", [{**analysts[0], "estimates": {"yes": 1.0}}, *analysts[1:]]),
        ("analysts", [{**analysts[0], "intervals": {n: [0.5, 0.4] for n in exact.index}}, *analysts[1:]]),
        ("analysts", [{**analysts[0], "intervals": _narrower(analysts[0]["intervals"])}, *analysts[1:]]),
        ("notes", []),
        ("guarantees", found["guarantees"][::-1]),
        ("guarantees", [{**one, "assumptions": []} for one in found["guarantees"]]),
        ("guarantees", [{**found["guarantees"][0], "observer": "nobody"}, *found["guarantees"][1:]]),
    ):
        file.write_text(json.dumps({**found, field: wrong}))
        assert main(["account", "verify", str(file)]) == 1, field
    for cut in ("levels", "analysts", "separate_messages", "confidence"):
        file.write_text(json.dumps({name: fact for name, fact in found.items() if name != cut}))
        assert main(["account", "verify", str(file)]) == 1, cut
    capsys.readouterr()


def test_levels_are_shown_drawn_and_paid_for(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table.with_suffix(".ledger")
    Ledger.create(path, limit=PrivacyBudget(2.5, 0.0), neighbours=Neighbours()).close()
    picture = table.with_name("levels.png")
    levels = ["--levels", "2", "0.5", "--plot", str(picture)]
    assert main(["frequencies", "--data", str(table), *ASKED, *levels]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "analyst 0, epsilon 2" in shown
    assert "separate messages would take" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    with Ledger.open(path) as ledger:  # what all analysts learn together, not the sum
        assert ledger.spent().epsilon == 2.0
    assert main(["frequencies", "--data", str(table), *ASKED, *levels]) == 4
    capsys.readouterr()
    who = answer(table, "--levels", "1", "--person", "patient", "--seed", "1", capsys=capsys)
    assert (who["unit"], who["private_bits_per_client"], who["simulated"]) == ("person", 0, True)


def test_a_plan_says_what_each_analyst_would_find(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["plan", "frequencies", "--k", "1000", "--n", "100000"]
    assert main([*base, "--levels", "0.5,1,2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["problem"]["levels"] == [2.0, 1.0, 0.5]
    for one, level in zip(found["analysts"], (2.0, 1.0, 0.5), strict=True):
        error = BinaryHadamard(k=1000, epsilon=level).frequency_mse(100_000)
        assert one["mse"] == pytest.approx(error, rel=1e-9)
        assert f"(epsilon = {level:g})" in one["guarantee"]
    assert found["separate_messages"]["epsilon_together"] == pytest.approx(3.5)
    assert main([*base, "--levels", "1", "2"]) == 0
    assert "random bits a client" in " ".join(capsys.readouterr().out.split())
    for more, said in (
        (["--levels", "1,1"], "each another one"),
        (["--levels", "1", "--trust", "shuffle"], "trust must not be given"),
        (["--levels", "1", "--independent"], "independent must not be given"),
        (["--levels", "2", "--epsilon", "1"], "levels must be at most"),
        ([], "--epsilon must be given"),
    ):
        assert main([*base, *more]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--levels", "1,0.5,2"], "levels must increase or decrease"),
        (["--levels", "1,1"], "each another one"),
        (["--levels", "0,1"], "levels must be a finite number > 0"),
        (["--levels", "-1"], "levels must be a finite number > 0"),
        (["--levels", "nan"], "levels must be a finite number > 0"),
        (["--levels", "1,40"], "levels must be in"),
        (["--levels", ",".join(map(str, range(1, 67)))], "levels"),
        (["--levels", "one"], "--levels"),
        (["--levels", "0.5,1,2", "--epsilon", "1"], "levels must be at most epsilon = 1.0"),
        (["--levels", "1", "--trust", "shuffle"], "trust must not be given beside --levels"),
        (["--levels", "1", "--mechanism", "oue"], "mechanism must not be given beside --levels"),
        (["--levels", "1", "--delta", "1e-6"], "delta must not be given beside --levels"),
        (["--levels", "1", "--heavy-hitters"], "heavy-hitters must not be given beside --levels"),
        (["--levels", "1", "--max-random-bits", "1"], "max-random-bits must not be given beside --levels"),
        ([], "--epsilon must be given, or --levels"),
    ],
)
def test_bad_levels_are_refused_and_nothing_is_spent(
    table: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table.with_suffix(".ledger")
    Ledger.create(path, limit=PrivacyBudget(99, 0.0), neighbours=Neighbours()).close()
    assert main(["frequencies", "--data", str(table), *ASKED, *more]) == 2
    assert said in capsys.readouterr().err
    with Ledger.open(path) as ledger:
        assert ledger.spent().epsilon == 0
