"""The experiment with networks: tuned on some splits, measured on others; what is said follows the rows."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.experiments import isrl_mnist_network, isrl_nonconvex
from tacit.experiments.isrl_nonconvex import (
    Grid,
    NetworkTask,
    breast_cancer,
    compute,
    local_steps,
    measured,
)
from tacit.experiments.nonconvex_statements import gains, statements
from tacit.learning import NoisySpider, Settings
from tacit.learning.preparation import prepare
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel

METHODS = ("minibatch", "local", "spider", "fed-spider", "best spider")
TINY = Grid(
    steps=(0.5, 2.0), local=(0.05,), clips=(1.0,), periods=(2,), guesses=(0.1,), splits=(0.9,), further=0
)


@pytest.fixture(scope="module")
def task() -> NetworkTask:
    return breast_cancer()


def test_splits_are_four_fifths_of_every_silo(task: NetworkTask) -> None:
    assert [len(one) for one in task.silos] == [212, 357]
    assert [np.ptp(task.y[one]) for one in task.silos] == [0, 0]
    parts, held = task.split(3)
    assert [len(one) for one in parts] == [170, 286]
    assert sorted(np.concatenate([*parts, held])) == list(range(569))
    assert (task.split(3)[1] == held).all()
    assert (task.split(4)[1] != held).any()
    assert task.size == 170
    assert task.objective.size == 31 * 5 + 6
    np.testing.assert_allclose(task.X[:, :-1].std(axis=0), 1.0)
    assert task.length == pytest.approx(math.sqrt((task.X**2).sum(axis=1).mean()))


def test_every_method_is_measured_at_every_budget(task: NetworkTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isrl_nonconvex, "local_steps", lambda *_: 3)
    seen: list[tuple[int, int]] = []
    report = compute(
        [(replace(task, rounds=8), TINY, (0.1, 20.0), 1, 2)],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert {(r["method"], r["epsilon"]) for r in report.rows} == {
        (m, e) for m in METHODS for e in (None, 0.1, 20.0)
    }
    assert seen[-1] == (12, 12)
    error = {(r["method"], r["epsilon"]): float(str(r["test error"])) for r in report.rows}
    # Silos of 170 records: epsilon 0.1 is close to guessing, no privacy is far from it.
    assert error["minibatch", None] < 0.1 < error["minibatch", 0.1]
    assert error["spider", None] < 0.1 < error["spider", 0.1]
    assert all(0 <= value <= 1 for value in error.values())
    better = {m: error[m, 20.0] for m in ("minibatch", "spider", "fed-spider")}
    assert error["best spider", 20.0] in better.values()
    gained = report.more["gains"].rows
    assert len(gained) == 3 * 2 * 2
    (row,) = [r for r in gained if (r["method"], r["epsilon"]) == ("spider against local", 20.0)]
    expected = 100 * (1 - error["spider", 20.0] / error["local", 20.0])
    assert row["gain in %"] == pytest.approx(expected)


def test_the_best_of_a_grid_is_found_on_other_splits_than_it_is_measured_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def error(_task: Any, algorithm: Any, *, clip: float, epsilon: float | None, seed: int) -> float:
        asked.append(seed)
        good = (clip, algorithm.step_size, algorithm.period) == (5.0, 0.2, 3)
        return (0.1 if good else 0.2) + 0.01 * seed

    monkeypatch.setattr(NetworkTask, "error", error)
    grid = Grid(steps=(0.25, 1.0, 4.0), clips=(1.0, 5.0), periods=(2, 3), guesses=(None,), splits=(0.5,))
    families = grid.families(5)["spider"]
    least, row, errors = measured(breast_cancer(), families, 1.0, tuning=2, trials=3, further=0)
    assert least == pytest.approx(0.105)
    assert (row["clip"], row["step"], row["period"], row["inside"]) == (5.0, 0.2, 3, True)
    np.testing.assert_allclose(errors, [0.12, 0.13, 0.14])
    assert asked == [0, 1] * 12 + [2, 3, 4]


def test_minibatch_is_the_spider_of_period_one() -> None:
    (family, *_) = Grid().families(5)["minibatch"]
    built = family.build(0.5, 25)
    assert built == NoisySpider(rounds=25, period=1, step_size=5.0, split=None)


def made(spider: float, minibatch: float, local: float, *, noise: float = 0.001) -> Any:
    """Rows and gains of one task whose methods err so much at every epsilon."""
    errors: dict[tuple[str, float | None], Array] = {}
    rows: list[dict[str, object]] = []
    mean = {
        "spider": spider,
        "minibatch": minibatch,
        "local": local,
        "fed-spider": 0.5,
        "best spider": spider,
    }
    for at, (method, value) in enumerate(mean.items()):
        for epsilon in (1.0, 18.0):
            each = value + noise * np.cos(np.arange(4) + at)
            errors[method, epsilon] = each
            rows.append(
                {"task": "t", "method": method, "epsilon": epsilon, "test error": float(each.mean())}
                | {"standard error": float(each.std(ddof=1) / 2), "inside": method != "local"}
            )
    return rows, list(gains("t", errors))


def test_what_is_said_follows_the_rows() -> None:
    rows, gained = made(0.09, 0.1, 0.2)
    text = "\n".join(statements(rows, gained))
    assert "t: best spider errs less than local on average over epsilon: yes, by 5" in text
    assert "t: spider errs less than minibatch on average over epsilon: yes, by" in text
    assert "t: fed-spider errs less than minibatch on average over epsilon: no, by -4" in text
    assert "t: spider errs no more than minibatch at any epsilon: yes, at 2 of 2." in text
    assert "for epsilon up to 1.5: no, at 0 of 1." in text
    assert "in 6 of 8 rows; at an end: t, local, epsilon 1; t, local, epsilon 18." in text
    rows, gained = made(0.101, 0.1, 0.2, noise=0.02)
    text = "\n".join(statements(rows, gained))
    assert (
        "spider errs less than minibatch on average over epsilon: within two standard errors of none" in text
    )
    assert "for epsilon up to 1.5: yes, at 1 of 1." in text
    rows, gained = made(0.3, 0.1, 0.2)
    text = "\n".join(statements(rows, gained))
    assert (
        "t: spider errs no more than minibatch at any epsilon: no, at 0 of 2; more at epsilon 1, 18, beyond "
        "two standard errors at 1, 18." in text
    )


def test_gains_have_the_error_of_a_ratio_of_paired_means() -> None:
    """What all splits have in common is no error of the ratio; what they do not is, as the bootstrap says."""
    rng = np.random.default_rng(1)
    base = rng.uniform(0.1, 0.3, 400)
    ahead = 0.8 * base + 0.01 * rng.standard_normal(400)
    errors: dict[tuple[str, float | None], Array] = {(m, 1.0): base for m in ("minibatch", "local")}
    errors |= {(m, 1.0): ahead for m in ("best spider", "spider", "fed-spider")}
    row, *_ = gains("t", errors)
    assert row["gain in %"] == row["mean gain"] == pytest.approx(20, abs=0.6)
    assert row["standard error"] == pytest.approx(row["its error"])
    picks = rng.integers(400, size=(2000, 400))
    resampled = 100 * (1 - ahead[picks].mean(axis=1) / base[picks].mean(axis=1))
    assert row["standard error"] == pytest.approx(resampled.std(), rel=0.1)


@pytest.mark.skipif("TACIT_DATA_HOME" not in os.environ, reason="needs TACIT_DATA_HOME")
def test_digits_have_the_sizes_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    setups: list[Any] = []
    monkeypatch.setattr(isrl_mnist_network, "compute", lambda some, **_: setups.extend(some))
    isrl_mnist_network.run(False, lambda *_: None)
    found = [one for one, *_ in setups]
    assert [(one.drawn, one.rounds) for one in found] == [(None, 25), (12, 25), (None, 50), (12, 50)]
    digits = found[1]
    assert [len(one) for one in digits.silos] == [2 * 774] * 25
    assert digits.size == 1238
    assert local_steps(digits, 18.0) == round(1238 * math.sqrt(18) / (2 * math.sqrt(25))) == 525
    assert digits.objective.size == 51 * 64 + 65
    assert digits.length**2 == pytest.approx((digits.X**2).sum(axis=1).mean(), rel=0.05)
    # An image that five silos hold is trained on by all five, or by none.
    parts, held = digits.split(3)
    assert [len(one) for one in parts] == [1238] * 25
    assert len(held) == len(set(held)) == 10 * (774 - 619)
    assert not set(held) & set(np.concatenate(parts))
    assert all(digits.y[one].mean() == 0.5 for one in parts)
    assert "local" in setups[1][1].families(2)
    assert "local" not in setups[0][1].families(2)


def test_a_task_without_local_sgd_says_nothing_of_it() -> None:
    rows, _ = made(0.09, 0.1, 0.2)
    errors: dict[tuple[str, float | None], Array] = {
        (str(r["method"]), 1.0): np.array([0.1, 0.2]) for r in rows if r["method"] != "local"
    }
    assert {str(row["method"]) for row in gains("t", errors)} == {
        f"{ahead} against minibatch" for ahead in ("best spider", "spider", "fed-spider")
    }


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
@pytest.mark.parametrize(("period", "split"), [(2, 0.5), (2, 0.9), (5, 0.5), (5, 0.99), (25, 0.9)])
def test_reusing_gradients_moves_the_last_point_no_less(
    task: NetworkTask, trust: TrustModel, period: int, split: float
) -> None:
    """Noise of R steps: R z^2 with a gradient each, and (R / q) (q z_1)^2 where q steps share one."""

    def multiplier(q: int) -> float:
        algorithm = NoisySpider(rounds=25, period=q, step_size=1.0, smoothness=1e-3, split=split)
        budget = PrivacyBudget(3.0, 1e-5)
        settings = Settings(
            objective=task.objective, algorithm=algorithm, trust=trust, budget=budget, clip=1.0
        )
        (mean,) = {m.noise_multiplier for m in prepare(settings, [170]).means if m.statistic == "gradient"}
        return mean

    shared = 25 * period * multiplier(period) ** 2
    if 25 % period == 0:
        assert shared == pytest.approx(25 * multiplier(1) ** 2 / split, rel=1e-6)
    assert shared > 25 * multiplier(1) ** 2
