"""Personal models on silos that differ: a run in small, and verdicts that follow the rows."""

from __future__ import annotations

import math

import numpy as np

from tacit.experiments.personal_models import compute, label_skewed, statements
from tacit.learning import Records


def test_a_small_run_has_all_lines_and_corrected_prices() -> None:
    rng = np.random.default_rng(0)
    centres = np.eye(6)

    def records(n: int) -> Records:
        y = rng.integers(0, 6, n)
        X = centres[y] + 0.4 * rng.normal(size=(n, 6))
        return Records.of(X / np.linalg.norm(X, axis=1, keepdims=True), y.astype(float))

    world = label_skewed(records(240), records(200), silos=6, classes=6, rng=rng)
    assert sum(map(len, world.parties)) <= 240
    assert all(len(np.unique(one.y)) <= 3 for one in (*world.parties, *world.held))
    report = compute([world], rounds=2, epsilons=(8.0,), progress=lambda done, total: None)
    assert [(row["line"], row["epsilon"]) for row in report.rows] == [
        ("alone", math.inf),
        *((name, epsilon) for epsilon in (math.inf, 8.0) for name in ("AdaPeD", "FedAvg")),
    ]
    (private,) = [row for row in report.rows if row["line"] == "AdaPeD" and row["epsilon"] == 8.0]
    assert 0 < float(str(private["printed epsilon"])) < 8.0


def test_verdicts_turn_with_the_rows() -> None:
    def rows(mine: float) -> list[dict[str, object]]:
        found: list[dict[str, object]] = [
            {"line": name, "epsilon": epsilon, "accuracy": accuracy, "gain": accuracy - 0.8}
            for epsilon in (math.inf, 2.0)
            for name, accuracy in (("AdaPeD", mine), ("FedAvg", 0.7))
        ]
        return [{"line": "alone", "epsilon": math.inf, "accuracy": 0.8, "gain": 0.0}, *found]

    for mine, expected in ((0.9, ["yes"] * 4), (0.75, ["no", "yes", "yes", "no"]), (0.5, ["no"] * 4)):
        said = list(statements(rows(mine)))
        assert [one.split(": ")[-1].split(",")[0] for one in said] == expected
