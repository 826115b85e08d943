"""The experiment on embedded digits: every method runs, budgets are kept, and noise costs accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data import load, split_by_label
from tacit.errors import UnknownNameError
from tacit.experiments import find, isrl_mnist_logistic
from tacit.experiments.isrl_mnist_logistic import Task, compute, methods
from tacit.learning import FeatureMap, LinearObjective, Logistic, Records


@pytest.fixture(scope="module")
def task() -> Task:
    digits = load("digits-odd-even")
    assert digits.groups is not None
    features = FeatureMap(lower=np.zeros(64), upper=np.ones(64))
    rows, labels = features(digits.X), np.asarray(digits.y, dtype=np.float64)
    silos = [index[:60] for index in split_by_label(digits.groups)]
    held = np.setdiff1d(np.arange(digits.n), np.concatenate(silos))
    return Task(
        objective=LinearObjective(loss=Logistic(), features=65, feature_norm=1.0),
        silos=[Records.of(rows[index], labels[index]) for index in silos],
        rows=rows[held],
        labels=labels[held] > 0,
        notes=(),
    )


def test_every_method_is_measured_at_every_budget(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isrl_mnist_logistic, "ROUNDS", 12)
    seen: list[tuple[int, int]] = []
    report = compute(
        task,
        methods=methods(12, coarse=True),
        epsilons=(0.5, 20.0),
        participations=(10, 2),
        trials=2,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert {(r["method"], r["silos per round"], r["epsilon"]) for r in report.rows} == {
        (m, s, e) for m in ("accelerated", "minibatch", "local") for s in (10, 2) for e in (None, 0.5, 20.0)
    }
    assert seen[-1] == (len(report.rows), len(report.rows))
    error = {
        (r["method"], r["epsilon"]): float(str(r["test error"]))
        for r in report.rows
        if r["silos per round"] == 10
    }
    # 10 silos of 60 records: epsilon 0.5 is close to guessing, no privacy is far from it.
    assert error["accelerated", None] < 0.2 < error["accelerated", 0.5]
    assert all(0 <= value <= 1 for value in error.values())
    assert report.markdown().count("\n") == len(report.rows) + 2


def test_an_unknown_experiment_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'isrl-mnist-logistic'"):
        find("mnist-logistic")
