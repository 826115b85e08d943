"""`tacit plan train` from the outside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.cli import main
from tacit.cli.forms import OUTPUTS
from tacit.learning import ALGORITHMS
from tacit.privacy import Gaussian, PrivacyBudget, calibrate

MODEL = [
    *["plan", "train", "--silos", "25", "--records", "320"],
    *["--features", "64", "--classes", "10", "--epsilon", "3", "--delta", "1e-5"],
]
ISSUE = ("ce-psgm", "mb-psgm", "diff2", "cldp-sgd", "adaped")
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
        ([*PRIVATE, "--n-min", "5"], "n-min and colluding are for trust 'shuffle'"),
        ([*PRIVATE, "--trust", "shuffle", "--n-min", "26"], "n-min must be"),
        ([*PRIVATE, "--l1", "-1"], "l1 must be"),
        ([*PRIVATE, "--diameter", "0"], "diameter must be"),
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
    assert "colluding must be at most n-min - 2" in " ".join(capsys.readouterr().out.split())
    assert main([*PRIVATE, "--trust", "local", "--recover"]) == 2
    assert "recover is for trust 'aggregate', got 'local'" in capsys.readouterr().err


@pytest.mark.parametrize("trust", ["local", "shuffle"])
def test_a_network_has_prices_and_no_bounds(
    trust: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {name: ALGORITHMS[name] for name in (*ISSUE, "minibatch", "accelerated")}
    monkeypatch.setattr("tacit.planning.train.ALGORITHMS", asked)
    found = answer([*MODEL, "--model", "mlp:8", "--trust", trust], capsys)
    msgspec.convert(found, OUTPUTS["plan train"])
    assert found["problem"]["dim"] == 65 * 8 + 9 * 10 - 8 + 8  # with a constant feature in both layers
    assert found["problem"]["convexity"] == "non-convex"
    assert found["problem"]["lipschitz"] is found["problem"]["smoothness"] is None
    lines = {one["name"]: one for one in found["algorithms"]}
    assert sorted(lines) == sorted(asked)
    assert not any(one["valid"] for one in lines.values())
    assert not lines["accelerated"]["runs"]
    assert all(lines[name]["runs"] for name in ISSUE)
    running = [one for one in found["algorithms"] if one["runs"]]
    assert found["algorithms"][: len(running)] == running
    errors = [one["gradient_error"] / one["rounds"] ** 0.5 for one in running]
    assert errors == sorted(errors)
    assert found["auto"]["name"] == "minibatch"
    assert lines["minibatch"]["algorithm"]["step_size"] > 0  # as training takes it
    assert {one["rounds"] for one in running} == {lines["minibatch"]["rounds"]}
    assert lines["ce-psgm"]["caveat"].startswith("give it ")
    assert lines["ce-psgm"]["algorithm"]["smoothness"] is None


def test_the_noise_of_a_network_is_that_of_training(capsys: pytest.CaptureFixture[str]) -> None:
    job = "train --data digits-odd-even --silos pairs --model mlp:8 --trust local --epsilon 3 --delta 1e-5"
    (run,) = answer([*job.split(), "--seed", "1", "--dry-run"], capsys)["runs"]
    facts = "plan train --silos 25 --records 57 --features 64 --epsilon 3 --delta 1e-5 --model mlp:8"
    lines = {
        one["name"]: one
        for one in answer([*facts.split(), "--rounds", str(run["rounds"])], capsys)["algorithms"]
    }
    planned = lines["minibatch"]
    assert planned["noise_multiplier"] == pytest.approx(run["noise_multiplier"], rel=1e-6)
    assert planned["bits_per_silo"] == run["bits_per_silo"]
    assert planned["gradient_error"] == pytest.approx(run["gradient_error"], rel=0.02)  # of 56 to 58 records
    assert run["error_bound"] is None  # no bound holds for a network
    one = calibrate(Gaussian, PrivacyBudget(3.0, 1e-5))
    assert planned["noise_multiplier"] == pytest.approx(one * np.sqrt(run["rounds"]), rel=1e-6)


@pytest.mark.usefixtures("few")
def test_a_linear_model_by_name_has_its_constants(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([*MODEL, "--model", "linear"], capsys)
    assert found["problem"]["dim"] == 65 * 10
    assert found["problem"]["lipschitz"] == pytest.approx(2**0.5)
    assert found["problem"]["diameter"] == 150
    assert found["problem"]["convexity"] == "convex"
    assert found["algorithms"][0]["valid"]
    assert found["auto"]["name"] == "whitened"


@pytest.mark.usefixtures("few")
def test_a_regression_by_name_is_planned_as_training_plans_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).uniform(size=(100, 3))
    np.savetxt("t.csv", rows, delimiter=",", header="a,b,y", comments="")
    columns = "".join(f'[columns.{name}]\nkind = "numeric"\nlower = 0\nupper = 1\n' for name in "ab")
    label = '[label]\ncolumn = "y"\nkind = "numeric"\nlower = 0\nupper = 1\n'
    Path("t.columns.toml").write_text(columns + label)
    run = "train t.csv --task regression --silos iid:4 --test-fraction 0.2 --algorithm minibatch"
    budget = ["--epsilon", "2", "--delta", "1e-5", "--trust", "local"]
    (trained,) = answer([*run.split(), *budget, "--seed", "1", "--dry-run"], capsys)["runs"]
    plan = "plan train --silos 4 --records 20 --features 2 --model linear --task regression"
    found = answer([*plan.split(), *budget], capsys)
    line = next(one for one in found["algorithms"] if one["name"] == "minibatch")
    assert found["problem"]["lipschitz"] is None
    assert found["orders"] == []
    assert line["rounds"] == trained["rounds"]
    assert line["noise_multiplier"] == pytest.approx(trained["noise_multiplier"], rel=1e-6)
    assert line["predicted_excess_risk"] == pytest.approx(trained["error_bound"], rel=1e-6)
    assert main([*plan.split(), *budget]) == 0
    assert "gradients clipped" in capsys.readouterr().out
    median = answer([*plan.split(), *budget, "--loss", "absolute"], capsys)
    assert median["problem"]["lipschitz"] == 1


def test_a_network_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MODEL, "--model", "mlp:8"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "25 silos of 320 records; mlp:8, 610 parameters" in said
    assert re.search(r"adaped +party", said)
    assert re.search(r"ce-psgm +record [^-]* --option smoothness", said)
    assert "no bound on the error of a network is known" in said
    assert "auto takes minibatch" in said
    assert "not usable: dss-sgd: trust must be shuffle" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (MODEL, "dim must be given"),
        ([*PRIVATE, "--model", "mlp:8"], "dim must be left out with a model"),
        ([*PRIVATE, "--classes", "3"], "classes needs a model, got 3 without"),
        ([*PRIVATE, "--task", "regression"], "task needs a model, got regression without"),
        ([*MODEL, "--model", "linear", "--task", "regression"], "classes must be left out"),
        ([*MODEL, "--model", "linear", "--loss", "huber"], "loss must be logistic or hinge where"),
        ([*MODEL, "--model", "linear@28x28"], "tacit: shape must be of 64 pixels"),
        ([*MODEL[:6], "--epsilon", "1", "--model", "mlp:8"], "features must be given"),
        ([*MODEL, "--model", "mlp:8", "--smoothness", "1"], "smoothness must be left out with a model"),
        (
            [*MODEL, "--model", "mlp:8", "--moment", "2:1"],
            "moment must be left out with a model, which has its own, got 2:1.",
        ),
        (
            [*MODEL, "--model", "mlp:8", "--convexity", "convex"],
            "convexity must be 'non-convex' for a network",
        ),
        ([*MODEL, "--model", "mlp:8", "--one-pass"], "tacit: one-pass must be left out for a network"),
        ([*MODEL, "--model", "mlp"], "model must look like one of linear, "),
        ([*MODEL[:6], "--features", "50", "--epsilon", "1", "--model", "scattering"], "50"),
    ],
)
def test_bad_models(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("trust", ["central", "local"])
def test_no_error_of_a_gradient_is_told_of_votes_that_a_server_makes_noisy(
    trust: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer([*MODEL, "--model", "mlp:4", "--trust", trust], capsys)["algorithms"]
    errors = {one["name"]: one["gradient_error"] for one in found if one["runs"]}
    assert (errors["sign-vote"] is None) is (trust == "central")
    assert errors["minibatch"] > 0.05
    assert (list(errors)[-1] == "sign-vote") or trust == "local"
