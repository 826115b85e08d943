"""Costs across sorted silos: splits, errors, noise beside the printed one, and verdicts."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import DataError, ParameterError
from tacit.experiments import EXPERIMENTS, isrl_insurance
from tacit.experiments.isrl_compare import Case, SiloTask, compare
from tacit.experiments.isrl_convex import noise_report, silo_methods
from tacit.experiments.isrl_convex_statements import insurance_statements
from tacit.experiments.isrl_insurance import costs, relative_error
from tacit.learning import NoisyLocalSGD, NoisyMinibatchSGD
from tacit.privacy import Relation
from tacit.randomness import simulated

Row = dict[str, object]


@pytest.fixture(scope="module")
def bills() -> SiloTask:
    """Made-up costs: 2000 dollars and 9000 times the first feature."""
    X = np.sign(simulated(0, "features").standard_normal((240, 2)))
    return costs(X, 11_000 + 9_000 * X[:, 0] + 10 * X[:, 1], 3)


def test_silos_are_sorted_by_cost_and_a_fifth_of_each_is_held_out(bills: SiloTask) -> None:
    split = bills.split(1)
    assert [len(one) for one in split.silos] == [64, 64, 64]
    assert len(split.held) == 48
    ranges = [(one.y.min(), one.y.max()) for one in split.silos]
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ranges))
    assert (split.held.X[:, -1] == 1).all()
    other = bills.split(2)
    assert not np.array_equal(split.held.X, other.held.X)
    assert bills.split(1) is split


def test_the_relative_error_is_one_for_the_mean_cost_and_none_for_the_truth(bills: SiloTask) -> None:
    split = bills.split(0)
    mean = float(split.pooled.y.mean())
    assert relative_error(np.array([0.0, 0.0, mean]), split, split.held) == pytest.approx(1.0)
    assert relative_error(np.array([9000.0, 10.0, 11_000.0]), split, split.held) == pytest.approx(
        0.0, abs=1e-12
    )
    off = split.held.y - mean
    by_hand = math.sqrt(((off - 500) ** 2).sum() / (off**2).sum())
    assert relative_error(np.array([0.0, 0.0, mean + 500]), split, split.held) == pytest.approx(by_hand)


def test_methods_are_those_of_the_paper() -> None:
    # 1338 records in 3 and in 5 silos: the paper prints K = 65 and 39.
    for silos, taken in ((3, 65), (5, 39)):
        plain, local = isrl_insurance.lines(-(-1338 // silos), isrl_insurance.EPSILONS, coarse=False)
        one, other = plain.build(0.5), local.build(0.25)
        assert isinstance(one, NoisyMinibatchSGD)
        assert (one.rounds, one.step_size, round(one.average * 35)) == (35, 0.5, 8)
        assert isinstance(other, NoisyLocalSGD)
        assert (other.rounds, other.step_size, other.local_steps) == (35, 0.25, taken)
        assert np.log([plain.grid[0], plain.grid[-1]]) == pytest.approx([-8, 1])
        assert np.log([local.grid[0], local.grid[-1]]) == pytest.approx([-10, 0])


def test_methods_are_measured_with_the_best_steps_and_bounds(bills: SiloTask) -> None:
    seen: list[tuple[int, int]] = []
    rows = compare(
        [Case(task=bills, silos=some, panel=f"{some}") for some in (3, 2)],
        methods=lambda _task: silo_methods(
            60, most_epsilon=0.5, steps=(1e-4, 0.3), local_steps=(1e-4, 0.03), clips=(100.0, 1e5)
        ),
        epsilons=(0.5, 50.0),
        trials=2,
        further=1,
        metric="error",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (12, 12)
    found = {(r["method"], r["silos per round"], r["epsilon"]): float(str(r["error"])) for r in rows}
    assert len(found) == 12
    for method in ("minibatch", "local"):
        bare, large, small = (found[method, "3", e] for e in (None, 50.0, 0.5))
        assert bare < 0.4
        assert bare < small
        assert large < small
    bare_row = next(row for row in rows if row["epsilon"] is None)
    assert bare_row["clip"] == 1e5  # 100 dollars a step reach nothing


def test_a_step_that_diverges_is_the_worst_of_all(bills: SiloTask) -> None:
    lost = replace(bills, measure=lambda _w, _split, _records: math.nan)
    assert lost.error(NoisyMinibatchSGD(rounds=1, step_size=0.1), None, 0, 3) == math.inf
    assert bills.error(NoisyMinibatchSGD(rounds=30, step_size=50.0), None, 0, 3, clip=1e30) > 1e9


def test_noise_stands_beside_the_printed_one(bills: SiloTask) -> None:
    rows = {(r["method"], r["epsilon"]): r for r in noise_report([("3", bills, 5)], (0.5, 6.0)).rows}
    n, log = 64, math.log(64**2)
    for epsilon in (0.5, 6.0):
        plain, local = rows["minibatch", epsilon], rows["local", epsilon]
        assert plain["printed noise"] == pytest.approx(math.sqrt(2 * 35 * log) / epsilon)
        assert local["printed noise"] == pytest.approx(math.sqrt(2 * 35 * 5 * log) / (n * epsilon))
        # What is too little noise costs more than was asked, and the other way round.
        for row in (plain, local):
            cost, here, printed = (
                float(str(row[key]))
                for key in ("what the printed noise costs", "noise here", "printed noise")
            )
            assert (cost > epsilon) == (printed < here)
    # The noise of the plan is what is calibrated here.
    assert float(str(rows["minibatch", 0.5]["noise here"])) < float(
        str(rows["minibatch", 0.5]["printed noise"])
    )


def rows_of(metric: str, plain: float, local: float, *, inside: bool = True) -> list[Row]:
    rows: list[Row] = []
    for method, error in (("minibatch", plain), ("local", local)):
        for epsilon in (None, 1.0, 3.0):
            row: Row = {"method": method, "silos per round": "2 of 3", "epsilon": epsilon, "inside": inside}
            rows.append(row | {metric: error / (epsilon or 4) ** 0.1, "standard error": 0.001})
    return rows


def test_what_is_said_of_costs_follows_the_rows() -> None:
    good = "\n".join(insurance_statements(rows_of("relative RMSE", 0.65, 0.9)))
    assert "errs less than local, up to epsilon 2: yes, at 1 of 1." in good
    assert "errs less than local: yes, at 2 of 2." in good
    assert "minibatch is ahead at 2 of 2 budgets, local at 0." in good
    assert "from epsilon 2 on: yes; 0.582 at 3, local 0.783." in good
    assert "30 to 40 % better than the mean cost: yes; by 35 %." in good
    assert "local errs less at epsilon 3: no, 0.806 against 0.582." in good
    assert "in 6 of 6 rows." in good
    bad = "\n".join(insurance_statements(rows_of("relative RMSE", 0.9, 0.65, inside=False)))
    assert "errs less than local: no, at 0 of 2." in bad
    assert "minibatch is ahead at 0 of 2 budgets, local at 2." in bad
    assert "from epsilon 2 on: no;" in bad
    assert "better than the mean cost: no; by 10 %." in bad
    assert "local errs less at epsilon 3: yes" in bad
    assert "in 0 of 6 rows; at an end" in bad


def test_quick_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def compute(
        _panels: object, *, epsilons: tuple[float, ...], trials: int, coarse: bool, **_: object
    ) -> None:
        asked.append((len(epsilons), trials, coarse))

    monkeypatch.setattr(isrl_insurance, "compute", compute)
    for quick in (True, False):
        isrl_insurance.run(quick, lambda *_: None)
    assert asked == [(3, 2, True), (6, 8, False)]


def test_missing_files_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TACIT_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("tacit.data.datasets.fetch", refuse)
    with pytest.raises(DataError, match=r"insurance\.csv"):
        isrl_insurance.run(True, lambda *_: None)


def refuse(name: str, **_: object) -> None:
    raise DataError(f"{name}.csv cannot be fetched.")


def test_other_neighbours_are_refused() -> None:
    with pytest.raises(ParameterError, match="which replaces a record"):
        EXPERIMENTS["isrl-insurance"].under(Relation.ADD_REMOVE)
