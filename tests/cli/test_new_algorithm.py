"""An algorithm is one class and one line in the registry: every door then has it.

The method here asks two kinds of rounds in turn, with statistics, radii and shares of their own, like SPIDER.
"""

from __future__ import annotations

import json
import os
import signal
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tacit.cli.app import main
from tacit.errors import ParameterError
from tacit.federation import Ask, Batch, Full, Group, Step
from tacit.learning import (
    ALGORITHMS,
    FederatedLogisticRegression,
    Method,
    Objective,
    Problem,
    RecordGradient,
    make_algorithm,
)
from tacit.learning.algorithms import Follow, Kinds
from tacit.learning.algorithms.base import MakeStatistic
from tacit.ledger import Ledger
from tacit.numerics import Array, Regularizer
from tacit.privacy import PrivacyBudget, verify

NAME = "zigzag"
SHARE = 0.7


@dataclass(frozen=True)
class Change:
    """How the gradient of each record has changed since the point "before"."""

    objective: Objective

    def __call__(self, units: Any, at: Mapping[str, Array]) -> Array:
        return self.objective.gradients(at["w"], units) - self.objective.gradients(at["before"], units)


class Zigzag(Method, frozen=True, kw_only=True, tag=NAME):
    """A gradient, then changes of it, and the same again.

    Attributes:
        batch: Units per round.
        period: Rounds of a turn, of which the first asks for a gradient.
        step_size: Length of a step over that of the estimate.
    """

    batch: Batch = Full()
    period: int = 3
    step_size: float = 1.0

    paper: ClassVar[str] = "None: the tests' own"
    statistics: ClassVar[Mapping[str, MakeStatistic]] = {"gradient": RecordGradient, "change": Change}

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        slope = problem.measure("gradient", share=SHARE, batch=self.batch)
        change = problem.measure(
            "change", max_radius=2 * problem.radius, share=(1 - SHARE) / (self.period - 1), batch=self.batch
        )
        first, other = (Step(measures=(one,), batch=self.batch) for one in (slope, change))
        return ((Group(steps=((first, 1), (other, self.period - 1))), rounds // self.period),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        return problem.diameter**2 / (self.step_size * rounds) + self.step_size * problem.variance

    def check(self, problem: Problem, rounds: int) -> None:
        if rounds % self.period:
            raise ParameterError(f"rounds must be a multiple of {self.period}, got {rounds}.")

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        v = before = w
        for r in range(rounds):
            if r % self.period == 0:
                (v,) = ask(r, {"w": w}, (problem.radius,))
            else:
                far = float(np.linalg.norm(w - before))
                radius = min(2 * problem.radius, problem.known_smoothness * far)
                v = v + ask(r, {"w": w, "before": before}, (radius,))[0]
            before, w = w, prox(self.step_size, w - self.step_size * v)
            follow(r, w)
        return w


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setitem(ALGORITHMS, NAME, Zigzag)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    lines = ["a,b,site,y"]
    for k in range(150):
        a, b = rng.uniform(-1, 1, 2)
        lines.append(f"{a:.4f},{b:.4f},{'nsw'[k % 3]},{'yes' if a > b else 'no'}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    (tmp_path / "t.columns.toml").write_text(
        'label = {kind = "classes", column = "y", classes = ["no", "yes"]}\n'
        '[columns]\na = {kind = "numeric", lower = -1.0, upper = 1.0}\n'
        'b = {kind = "numeric", lower = -1.0, upper = 1.0}\n'
    )
    return path


def words(table: Path, *more: str) -> list[str]:
    what = ["--label", "y", "--silo-column", "site", "--delta", "1e-4", "--algorithm", NAME, "--name", "r"]
    return ["train", str(table), *what, "--out", str(table.parent / "runs"), *more]


def run(given: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    return main(given), *capsys.readouterr()


def test_the_list_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(["train", "--algorithm", "list", "--json"], capsys)
    assert code == 0
    (one,) = (one for one in json.loads(out)["algorithms"] if one["name"] == NAME)
    assert one["summary"] == "A gradient, then changes of it, and the same again."
    assert one["statistics"] == ["gradient", "change"]
    assert one["options"] == ["rounds", "batch", "period", "step_size"]
    assert one["trusts"] == ["local", "aggregate", "shuffle", "central"]
    assert NAME in run(["train", "--algorithm", "list"], capsys)[1]


@pytest.mark.parametrize("trust", ["local", "shuffle", "central"])
def test_flags_files_statements_and_reports_take_it(
    trust: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = words(table, "--trust", trust, "--rounds", "4", "--option", "period=2", "--seed", "0", "--json")
    code, out, err = run(given, capsys)
    assert code == 0, err
    (found,) = json.loads(out)["results"]
    assert (found["algorithm"], found["rounds"], found["trust"]) == (NAME, 4, trust)
    folder = table.parent / "runs" / "r"
    assert tomllib.loads((folder / "job.toml").read_text())["options"] == {"period": 2}
    ((group, turns),) = tomllib.loads((folder / "plan.toml").read_text())["steps"]
    assert (turns, [count for _, count in group["steps"]]) == (2, [1, 1])
    kinds = [step["measures"][0]["statistic"] for step, _ in group["steps"]]
    radii = [step["measures"][0]["max_radius"] for step, _ in group["steps"]]
    assert (kinds, radii[1]) == (["gradient", "change"], 2 * radii[0])
    assert json.loads((folder / "metrics.json").read_text())["results"][0]["algorithm"] == NAME
    assert json.loads((folder / "statement.json").read_text())["algorithm"] == NAME
    assert NAME in (folder / "report.html").read_text()
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    capsys.readouterr()
    again = ["train", str(folder / "job.toml"), "--name", "again"]  # the file says the same
    assert run(again, capsys)[0] == 0
    models = [json.loads((table.parent / "runs" / one / "model.json").read_text()) for one in ("r", "again")]
    assert models[0].pop("run") != models[1].pop("run")
    assert models[0] == models[1]


def test_a_dry_run_shows_both_kinds_of_rounds(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(words(table, "--rounds", "6", "--seed", "0", "--dry-run", "--json"), capsys)
    assert code == 0
    (planned,) = json.loads(out)["runs"]
    assert [(one["statistic"], one["rounds"]) for one in planned["means"]] == [("gradient", 2), ("change", 4)]
    first, other = (one["noise_multiplier"] for one in planned["means"])
    assert other / first == pytest.approx((SHARE / ((1 - SHARE) / 2)) ** 0.5, rel=1e-6)  # unequal shares


def test_estimators_take_the_name_and_the_object() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (90, 2))
    given: dict[str, Any] = {"budget": PrivacyBudget(3.0, 1e-4), "bounds": (-1.0, 1.0), "random_state": 0}
    found = []
    for algorithm, rounds in ((NAME, 6), (make_algorithm(NAME, rounds=6), "auto")):
        model = FederatedLogisticRegression(algorithm=algorithm, rounds=rounds, classes=[0, 1], **given).fit(
            X, (X[:, 0] > 0).astype(int), silos=np.arange(90) % 3
        )
        for one in model.guarantees_:
            verify(one)
        found.append(model.coef_)
    np.testing.assert_array_equal(*found)


def test_its_own_check_comes_before_anything_is_spent(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(words(table, "--rounds", "4", "--seed", "0"), capsys)
    assert code != 0
    assert "rounds must be a multiple of 3, got 4" in err


def test_a_run_that_was_stopped_goes_on_at_no_cost(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = table.parent / "accounts"
    made = ["ledger", "create", str(accounts), "--silos", "n,s,w", "--epsilon", "2", "--delta", "1e-4"]
    assert main(made) == 0
    given = words(table, "--rounds", "6", "--ledger", str(accounts))
    whole = Zigzag.run

    def stopped(self: Zigzag, ask: Ask, w: Array, **more: Any) -> Array:
        def until(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
            if step == 4:
                os.kill(os.getpid(), signal.SIGINT)
            return ask(step, at, radius)

        return whole(self, until, w, **more)

    monkeypatch.setattr(Zigzag, "run", stopped)
    code, _, err = run(given, capsys)
    assert code == 130
    assert "resume at no cost" in err
    paths = sorted(accounts.glob("*.ledger"))
    spent = [Ledger.open(path).spent().epsilon for path in paths]
    assert max(spent) == pytest.approx(2.0, abs=1e-4)
    monkeypatch.setattr(Zigzag, "run", whole)
    assert run(given, capsys)[0] == 0
    assert [Ledger.open(path).spent().epsilon for path in paths] == spent
