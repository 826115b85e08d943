"""Levels of obesity across silos of one class each: splits, what is said of rows, and sizes of runs."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.experiments import EXPERIMENTS, isrl_obesity
from tacit.experiments.isrl_compare import SiloTask
from tacit.experiments.isrl_convex_statements import obesity_statements
from tacit.experiments.isrl_obesity import compute, levels
from tacit.experiments.report import Report
from tacit.privacy import Relation
from tacit.randomness import simulated

Row = dict[str, object]


@pytest.fixture(scope="module")
def classes() -> SiloTask:
    """Three classes of different sizes, told apart by one feature each."""
    y = np.repeat([0, 1, 2], [60, 50, 40])
    X = 0.3 * simulated(0, "features").standard_normal((150, 3)).clip(-1, 1)
    X[np.arange(150), y] += 0.7
    return levels(X, y)


def test_every_silo_has_one_class_and_all_have_the_same_size(classes: SiloTask) -> None:
    split = classes.split(0)
    assert [(len(one), set(one.y)) for one in split.silos] == [(32, {0.0}), (32, {1.0}), (32, {2.0})]
    assert [int((split.held.y == k).sum()) for k in range(3)] == [12, 10, 8]
    assert classes.measure(np.zeros(classes.objective.size), split, split.held) == pytest.approx(18 / 30)


def test_the_figure_has_both_methods_and_the_noise_beside_it(classes: SiloTask) -> None:
    report = compute(classes, (3,), epsilons=(8.0,), trials=2, coarse=True, progress=lambda *_: None)
    found = {(row["method"], row["epsilon"]): float(str(row["test error"])) for row in report.rows}
    assert set(found) == {(method, e) for method in ("minibatch", "local") for e in (None, 8.0)}
    assert found["minibatch", None] <= found["minibatch", 8.0]
    assert found["minibatch", None] < 0.1
    assert [row["epsilon"] for row in report.more["noise"].rows] == [8.0, 8.0]
    assert any("3 silos of 32 records, each of one class; 30 held out" in note for note in report.notes)


def test_what_is_said_of_levels_follows_the_rows() -> None:
    good = "\n".join(obesity_statements(rows_of(0.4, 0.6)))
    assert "errs less than local: yes, at 2 of 2." in good
    assert "by 10 to 30 points or more at all epsilons: yes; by 20.0, 17.9 points." in good
    bad = "\n".join(obesity_statements(rows_of(0.55, 0.6)))
    assert "at all epsilons: no; by 5.0, 4.5 points." in bad


def rows_of(plain: float, local: float) -> list[Row]:
    rows: list[Row] = []
    for method, error in (("minibatch", plain), ("local", local)):
        for epsilon in (None, 1.0, 3.0):
            row: Row = {"method": method, "silos per round": 7, "epsilon": epsilon, "inside": True}
            rows.append(row | {"test error": error / (epsilon or 4) ** 0.1, "standard error": 0.001})
    return rows


def test_quick_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    empty = Report(rows=[], x="x", y="y", error=None, line="l", title="t")

    def noted(
        _task: object, some: object, *, epsilons: tuple[float, ...], trials: int, **_: object
    ) -> Report:
        asked.append((some, len(epsilons), trials))
        return empty

    class Table:
        X = np.zeros((14, 2))
        y = np.repeat(np.arange(7), 2)

    monkeypatch.setattr(isrl_obesity, "load", lambda _name: Table())
    monkeypatch.setattr(isrl_obesity, "compute", noted)
    for quick in (True, False):
        isrl_obesity.run(quick, lambda *_: None)
    assert asked == [((7,), 2, 2), ((7, 3), 5, 3)]


def test_other_neighbours_are_refused() -> None:
    with pytest.raises(ParameterError, match="which replaces a record"):
        EXPERIMENTS["isrl-obesity"].under(Relation.ADD_REMOVE)
