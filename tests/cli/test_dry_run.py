"""`tacit train --dry-run`: what a run would do and cost, it then does and costs; nothing is spent before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.cli import main
from tacit.federation import Plan, Step
from tacit.learning import Method
from tacit.learning.algorithms.registry import ALGORITHMS
from tests.jobs.tables import write_patients


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_patients(tmp_path).relative_to(tmp_path)


TRAIN = (
    "train --data patients.csv --label ill --silo-column site --epsilon 2 --delta 1e-4 --rounds 10 --name j"
)


def said(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(command.split()) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("trust", ["local", "central", "all"])
def test_the_plan_is_the_one_that_runs(trust: str, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = said(f"{TRAIN} --trust {trust} --dry-run --json", capsys)
    assert not Path("runs").exists()
    assert planned["version"] == 1
    found = said(f"{TRAIN} --trust {trust} --json", capsys)
    for one, ran in zip(planned["runs"], found["results"], strict=True):
        for name in ("trust", "algorithm", "rounds", "epsilon", "noise_multiplier"):
            assert one[name] == ran[name]
        assert one["guarantee"] == ran["guarantee"] or one["trust"] == "none"
        name = "plan.toml" if trust != "all" else f"plan-{one['trust']}.toml"
        assert msgspec.convert(one["plan"], Plan) == Plan.from_toml(Path("runs/j", name).read_text())
        assert one["gradient_error"] >= 0
        assert one["error_bound"] is None or one["error_bound"] > 0  # none is known of the default here


def test_nothing_is_spent_and_what_is_left_is_looked_at(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create = (
        "ledger create patients.ledger --silos-from patients.csv --silo-column site --epsilon 3 --delta 1e-3"
    )
    assert main(create.split()) == 0
    before = {path.name: path.read_bytes() for path in Path("patients.ledger").iterdir()}
    for _ in range(3):
        assert main([*TRAIN.split(), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "Nothing was spent; its ledgers have that much left." in out
    assert {path.name: path.read_bytes() for path in Path("patients.ledger").iterdir()} == before
    assert main([*TRAIN.replace("--epsilon 2", "--epsilon 4").split(), "--dry-run"]) == 4
    assert "above what the data set has left: 3.0 at 0.001; nothing was spent" in capsys.readouterr().err


def test_rounds_that_are_mostly_noise_are_said_to_teach_little_before_they_are_paid_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reports = ["train", "--algorithm", "cldp-sgd", "--trust", "local", "--seed", "0"]
    for words in ([*reports, "--rounds", "10", "--dry-run"], [*reports, "--rounds", "9"]):
        assert main(words) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert "cldp-sgd under trust 'local' will learn little or nothing: noise and sampling move" in said
        assert said.count("will learn little") == 1  # not of the other budgets of the picture
    assert main(["train", "--trust", "local", "--rounds", "10", "--dry-run"]) == 0
    assert "will learn little" not in capsys.readouterr().err


def test_silos_that_are_drawn_send_in_their_rounds_alone(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"{TRAIN} --dry-run --json --trust local --batch full"
    bits = [said(f"{words}{more}", capsys)["runs"][0]["bits_per_silo"] for more in ("", " --participants 1")]
    assert bits[1] == pytest.approx(bits[0] / 3)


def test_people_read_what_the_noise_means(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN.split(), "--dry-run", "--trust", "all"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "patients.csv: 3 silos, each trains on 48 records; 2 features" in out
    assert "gradient error: of a round's mean gradient" in out
    assert "local (the weakest of 3): (epsilon = 2, delta = 0.0001)" in out
    assert "no ledger would count it" in out


@pytest.mark.parametrize("algorithm", ["spider", "fed-spider", "minibatch"])
def test_a_bound_on_stationarity_is_not_called_one_on_the_excess(
    algorithm: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TRAIN.split(), "--dry-run", "--trust", "all", "--algorithm", algorithm]) == 0
    out = " ".join(capsys.readouterr().out.split())
    said_so = f"{algorithm}: its bound is on the squared gradient of the loss" in out
    assert said_so == (algorithm != "minibatch")


def test_it_says_what_is_added_to_the_loss(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    added = "--l2 0.1 --group-lasso 0.02 --domain ball:3"
    assert said(f"{TRAIN} {added} --dry-run --json", capsys)["regularization"] == {
        "l2": 0.1,
        "group_lasso": 0.02,
        "domain": "ball:3",
    }
    assert said(f"{TRAIN} --dry-run --json", capsys)["regularization"] == {}
    assert main([*f"{TRAIN} {added}".split(), "--dry-run"]) == 0
    assert "with it: l2 0.1, group_lasso 0.02, domain ball:3" in capsys.readouterr().out


def test_sizes_that_are_not_shown_stay_hidden(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(f"{TRAIN} --neighbours zero-out --dry-run --json", capsys)
    assert found["units"] is None
    assert main([*TRAIN.split(), "--neighbours", "zero-out", "--dry-run"]) == 0
    assert "48" not in capsys.readouterr().out.split("\n")[0]


class TwoKinds(Method, frozen=True, kw_only=True, tag="two-kinds"):
    """Plans a round of two means, which share the budget, and then rounds of one."""

    def steps(self, problem: Any, rounds: int) -> Any:
        first = (
            problem.measure("gradient", share=0.8),
            problem.measure("gradient", max_radius=0.1, share=0.2),
        )
        return (Step(measures=first), 1), (Step(measures=(problem.measure("gradient"),)), rounds - 1)

    def error_bound(self, problem: Any, rounds: int) -> float:
        return 1.0 / rounds

    def check(self, problem: Any, rounds: int) -> None: ...

    def run(self, ask: Any, w: Any, **rest: Any) -> Any:
        raise AssertionError("a dry run asks nothing")


def test_every_kind_of_round_has_its_noise(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ALGORITHMS, "two-kinds", TwoKinds)
    command = f"{TRAIN} --algorithm two-kinds --clip 0.5 --dry-run"
    (found,) = said(f"{command} --json", capsys)["runs"]
    whole = found["noise_multiplier"]
    assert [(one["kind"], one["rounds"], one["statistic"], one["clip"]) for one in found["means"]] == [
        (1, 1, "gradient", 0.5), (1, 1, "gradient", 0.1), (2, 9, "gradient", 0.5)
    ]  # fmt: skip
    noises = [whole / 0.8**0.5, whole / 0.2**0.5, whole]
    assert [one["noise_multiplier"] for one in found["means"]] == pytest.approx(noises, rel=1e-9)
    assert main(command.split()) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for kind, rounds, clip, noise in zip("112", "119", ("0.5", "0.1", "0.5"), noises, strict=True):
        assert ["local", kind, rounds, "gradient", clip, f"{noise:.4g}"] in lines
    assert main([*TRAIN.split(), "--algorithm", "accelerated", "--dry-run"]) == 0
    assert "kind of round" not in capsys.readouterr().out, "one number is in the table"
    (open_run,) = said(f"{command} --trust none --json", capsys)["runs"]
    assert {one["noise_multiplier"] for one in open_run["means"]} == {0.0}


def test_a_clip_that_a_round_chooses_is_priced_and_said(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its price is in the plan, the clip in the results; a run that a ledger knows chooses the same again."""
    auto = f"{TRAIN} --clip auto --trust central"
    (planned,) = said(f"{auto} --dry-run --json", capsys)["runs"]
    assert "clip" not in said(f"{TRAIN} --trust none --json --name other", capsys)["results"][0]
    assert [mean["statistic"] for mean in planned["means"]] == ["gradient-norms", "gradient"]
    assert (
        "The first round chooses the clip" in (main(f"{auto} --dry-run".split()), capsys.readouterr().out)[1]
    )
    assert main(["ledger", "create", "patients.ledger", "--epsilon", "2", "--delta", "1e-4"]) == 0
    once, again = said(f"{auto} --json", capsys), said(f"{auto} --json", capsys)
    (first,), (second,) = once["results"], again["results"]
    assert first["clip"] == second["clip"] > 0
    assert first["guarantee"] == planned["guarantee"]
    assert "which a first noisy histogram has chosen" in Path("runs/j/report.html").read_text()
    assert main(["account", "verify", "runs/j/statement.json"]) == 0


def test_of_whole_parties_it_says_that_they_are_protected(capsys: pytest.CaptureFixture[str]) -> None:
    argv = (
        "train --data digits-odd-even --silos pairs --trust local --epsilon 8 --algorithm fed-avg --dry-run"
    )
    assert main(argv.split()) == 0
    said = capsys.readouterr().out
    assert "25 silos, protected as a whole" in said
    assert "1 records" not in said
