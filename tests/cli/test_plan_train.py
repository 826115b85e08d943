"""`tacit plan train` from the outside."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tacit.cli import main
from tacit.learning import ALGORITHMS

FACTS = ["plan", "train", "--silos", "25", "--records", "347", "--dim", "50"]
PRIVATE = [*FACTS, "--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan with five algorithms: what a test asks is not about the others, which take their time."""
    names = ("minibatch", "accelerated", "ftrl", "local", "sign-vote")
    monkeypatch.setattr("tacit.planning.train.ALGORITHMS", {name: ALGORITHMS[name] for name in names})


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        # As they are by themselves, trust models are in tests/planning/test_train.py.
        [*PRIVATE, "--trust", "shuffle", "--n-min", "20", "--colluding", "3", "--l1", "0.01"],
        [*PRIVATE, "--trust", "aggregate", "--n-min", "20", "--colluding", "2", "--recover"],
        [*PRIVATE, "--trust", "local", "--one-pass"],
        [*PRIVATE, "--trust", "central", "--strong-convexity", "0.01"],
        [*PRIVATE, "--convexity", "prox-pl", "--strong-convexity", "0.01"],
        [*PRIVATE, "--convexity", "non-convex"],
        [*PRIVATE, "--non-smooth"],
    ],
)
def test_algorithms_for_programs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(arguments, capsys)
    algorithms = found["algorithms"]
    assert sorted(one["name"] for one in algorithms) == sorted(ALGORITHMS)
    valid = [one for one in algorithms if one["valid"]]
    assert algorithms[: len(valid)] == valid
    excess = [one["predicted_excess_risk"] for one in valid if one["predicted_excess_risk"] is not None]
    assert excess == sorted(excess)
    for one in algorithms:
        assert one["valid"] == (one["reason"] == "")
        promised = (one["predicted_excess_risk"], one["predicted_squared_gradient"])
        assert [value is not None for value in promised].count(True) == one["valid"]
        if one["valid"]:
            assert one["bits_per_silo"] > 0
            assert one["rounds"] > 0
            assert one["algorithm"]["algorithm"] == one["name"]


@pytest.mark.usefixtures("few")
def test_behind_a_shuffler_it_says_what_parties_with_one_record_each_would_get(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = answer([*PRIVATE, "--trust", "shuffle"], capsys)["one_record_each"]
    assert [one["name"] for one in found if one["valid"]][-1] == "pan-private AC-SA"
    bounds = [one["bound"] for one in found if one["valid"]]
    assert bounds == sorted(bounds)
    assert all((one["bound"] is None) != one["valid"] for one in found)
    assert answer(PRIVATE, capsys)["one_record_each"] == []
    assert answer([*PRIVATE, "--trust", "shuffle", "--colluding", "2"], capsys)["one_record_each"] == []


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(PRIVATE) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "25 silos of 347 records, 50 parameters, convex: L = 1, beta = 0.25, D = 10" in said
    assert "the start has an excess of at most 10" in said
    assert "nobody beats" in said
    assert "those lower bounds are not proven here: there are fewer than 16 ln" in said
    assert re.search(r"without a bound: [a-z, -]*whitened: it can run", said)
    assert "multistage, phases: it needs strong convexity" in said
    notes = re.findall(r"(?:without a bound|not usable): [a-z, -]+: (.+?)(?= - |$)", said)
    assert len(notes) == len({*notes}) > 1  # each reason once, with all algorithms that it keeps out
    assert "local: how far silos drift apart is not in its bound." in said


@pytest.mark.usefixtures("few")
def test_delta_is_made_from_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer([*FACTS, "--epsilon", "1"], capsys)["problem"]["delta"] == 347**-2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (FACTS, "epsilon must be given with trust 'local'"),
        ([*FACTS, "--trust", "none", "--epsilon", "1"], "must not be given with trust 'none'"),
        ([*PRIVATE, "--non-smooth", "--smoothness", "1"], "smoothness must be left out"),
        ([*PRIVATE, "--strong-convexity", "0.5"], "mu must be at most the smoothness 0.25, got 0.5"),
        ([*PRIVATE, "--strong-convexity", "0.1", "--convexity", "convex"], "mu must be > 0 exactly"),
        ([*PRIVATE, "--convexity", "concave"], "convexity must be one of"),
        ([*PRIVATE, "--n-min", "5"], "n_min and colluding are for trust 'shuffle'"),
        ([*PRIVATE, "--trust", "shuffle", "--n-min", "26"], "n_min must be"),
        ([*PRIVATE, "--l1", "-1"], "l1 must be"),
        ([*PRIVATE[:-4], "--epsilon", "-1"], "epsilon must be"),
        ([*FACTS[:4], "--records", "0", "--dim", "5", "--epsilon", "1"], "records must be"),
    ],
)
def test_bad_questions(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("few")
def test_where_only_sums_are_seen_bounds_are_nearly_those_of_a_trusted_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """25 silos of which 2 collude add 25 / 23 noises, and silos that trust nobody 25."""
    found = {
        trust: {one["name"]: one for one in answer([*PRIVATE, "--trust", trust, *more], capsys)["algorithms"]}
        for trust, more in (("central", []), ("aggregate", ["--colluding", "2"]), ("local", []))
    }
    central, summed, local = (
        found[trust]["minibatch"]["predicted_excess_risk"] for trust in ("central", "aggregate", "local")
    )
    assert central < summed < 1.1 * central < local
    for name in ("ftrl", "local", "sign-vote"):
        assert "got aggregate: " in found["aggregate"][name]["reason"]
    assert answer([*PRIVATE, "--trust", "aggregate"], capsys)["orders"] == []
    assert main([*PRIVATE, "--trust", "aggregate", "--colluding", "24"]) == 0
    assert "colluding must be at most n_min - 2" in " ".join(capsys.readouterr().out.split())
    assert main([*PRIVATE, "--trust", "local", "--recover"]) == 2
    assert "recover is for trust 'aggregate', got 'local'" in capsys.readouterr().err
