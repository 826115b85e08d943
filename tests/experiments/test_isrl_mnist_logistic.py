"""The experiment on embedded digits: every method runs, budgets are kept, and noise costs accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tacit.data import load, split_by_label
from tacit.errors import UnknownNameError
from tacit.experiments import find, isrl_mnist_logistic
from tacit.experiments.isrl_compare import SiloTask, tuned
from tacit.experiments.isrl_mnist_logistic import compute, methods, pairs_task
from tacit.experiments.isrl_statements import statements
from tacit.learning import FeatureMap, NoisyLocalSGD, Records
from tacit.privacy import Relation


@pytest.fixture(scope="module")
def task() -> SiloTask:
    digits = load("digits-odd-even")
    assert digits.groups is not None
    features = FeatureMap(lower=np.zeros(64), upper=np.ones(64))
    rows, labels = features(digits.X), np.asarray(digits.y, dtype=np.float64)
    silos = [index[:60] for index in split_by_label(digits.groups)]
    held = np.setdiff1d(np.arange(digits.n), np.concatenate(silos))
    return pairs_task(
        [Records.of(rows[index], labels[index]) for index in silos], Records.of(rows[held], labels[held])
    )


def test_every_method_is_measured_at_every_budget(task: SiloTask, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_other_neighbours_take_less_noise_and_poisson_samples(task: SiloTask) -> None:
    # Full batches of 600 records: half the noise. A record in a round of local steps: a Poisson sample.
    first, _, local = methods(12, coarse=True)
    other = replace(task, relation=Relation.ADD_REMOVE)
    assert other.error(first.build(None), 2.0, 1, 10) < task.error(first.build(None), 2.0, 1, 10)
    built = local.build(0.5)
    assert isinstance(built, NoisyLocalSGD)
    short = msgspec.structs.replace(built, rounds=3, local_steps=4)
    assert 0 < other.error(short, 2.0, 1, 10) < 1
    assert other.error(short, None, 1, 10) == task.error(short, None, 1, 10)


def test_a_best_step_at_an_end_continues_the_grid() -> None:
    tried: list[float] = []

    def error(best: float) -> Callable[[float], float]:
        def at(x: float) -> float:
            tried.append(x)
            return abs(math.log(x / best))

        return at

    assert tuned(error(2.0), (1.0, 2.0, 4.0), 5) == (2.0, True)
    assert tried == [1.0, 2.0, 4.0]  # nothing is added where the best step is inside
    assert tuned(error(20.0), (1.0, 2.0, 4.0), 5) == (16.0, True)
    assert tuned(error(0.3), (1.0, 2.0, 4.0), 5) == (0.25, True)
    assert tuned(error(20.0), (1.0, 2.0, 4.0), 0) == (4.0, False)
    step, inside = tuned(error(1e9), (1.0, 2.0, 4.0), 5)
    assert not inside
    assert step == max(tried)  # it gives up after a while, and says so


def test_what_is_said_follows_the_rows() -> None:
    def rows(local: float, bare: float, *, inside: bool) -> list[dict[str, object]]:
        return [
            {"method": method, "silos per round": 5, "epsilon": epsilon, "inside": inside}
            | {"test error": error if epsilon != 1.0 else error + 0.1, "standard error": 0.001}
            for method, error in (("accelerated", 0.1), ("minibatch", 0.2), ("local", local))
            for epsilon, error in ((None, bare), (1.0, error), (12.0, error))
        ]

    text = "\n".join(statements(rows(0.3, 0.25, inside=True)))
    assert ": no" not in text
    assert "minibatch errs less than local: yes, at 2 of 2" in text
    assert "from epsilon 12 on: yes; local without privacy errs 0.2500, private minibatch 0.2000" in text
    assert "inside of the steps that were tried in 9 of 9 rows." in text
    text = "\n".join(statements(rows(0.15, 0.05, inside=False)))
    assert "minibatch errs less than local: no, at 0 of 2" in text
    assert "from epsilon 12 on: no" in text
    assert "in 0 of 9 rows; at an end: accelerated, 5 silos, epsilon None" in text
    up = rows(0.3, 0.25, inside=True)
    up[2]["test error"] = 0.5
    assert "of accelerated falls with epsilon: no, it rises from 1.0 to 12.0" in "\n".join(statements(up))


def test_an_unknown_experiment_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'isrl-mnist-logistic'"):
        find("mnist-logistic")
