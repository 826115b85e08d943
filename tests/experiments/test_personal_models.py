"""Personal models on silos that differ: a run in small, and verdicts that follow the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.experiments.personal_models import compute, label_skewed, statements
from tacit.learning import Multinomial, NetworkObjective, Records


def test_a_small_run_has_all_lines_and_corrected_prices() -> None:
    rng = np.random.default_rng(0)
    centres = np.eye(6)

    def records(n: int) -> Records:
        y = rng.integers(0, 6, n)
        X = centres[y] + 0.4 * rng.normal(size=(n, 6))
        return Records.of(X / np.linalg.norm(X, axis=1, keepdims=True), y.astype(float))

    worlds = [
        label_skewed(records(240), records(200), silos=6, own_classes=3, classes=6, rng=rng) for _ in range(2)
    ]
    assert sum(map(len, worlds[0].parties)) <= 240
    assert all(len(np.unique(one.y)) <= 3 for one in (*worlds[0].parties, *worlds[0].held))
    rows = list(compute("few", worlds, rounds=2, epsilons=(8.0,)))
    assert [(row["line"], row["epsilon"]) for row in rows] == [
        ("alone", None),
        ("MAP, Gaussian law", None),
        *((name, e) for e in (None, 8.0) for name in ("AdaPeD", "FedAvg", "FedAvg, then alone")),
    ]
    (private,) = [row for row in rows if row["line"] == "AdaPeD" and row["epsilon"] == 8.0]
    assert 0 < float(str(private["printed epsilon"])) < 8.0
    assert len(list(statements(rows))) == 5 + 4

    network = NetworkObjective(loss=Multinomial(), features=6, hidden=3, outputs=6)
    others = list(compute("net", [replace(one, objective=network) for one in worlds], rounds=2, epsilons=()))
    assert [row["line"] for row in others] == ["alone", "AdaPeD", "FedAvg", "FedAvg, then alone"]
    assert replace(worlds[0], objective=network).start.any()  # at zero, no hidden unit differs from another
    assert not worlds[0].start.any()
    assert len(list(statements(others))) == 2 + 2


def test_verdicts_turn_with_the_rows() -> None:
    def rows(mine: float, slack: float) -> list[dict[str, object]]:
        known = {"AdaPeD": mine, "FedAvg": 0.7, "FedAvg, then alone": 0.78, "alone": 0.8}
        return [
            {
                "deal": "few", "line": name, "epsilon": epsilon, "accuracy": accuracy,
                "standard error": slack, "gain": accuracy - 0.8, "error of gain": slack,
            }
            for epsilon in (None, 2.0)
            for name, accuracy in known.items()
            if name != "alone" or epsilon is None
        ]  # fmt: skip

    for mine, slack, expected in (
        (0.9, 0.01, ["yes", "yes", "yes", "no"]),
        (0.9, 0.06, ["yes", "no", "no", "no"]),
        (0.75, 0.01, ["yes", "no", "no", "no"]),
        (0.5, 0.0, ["no"] * 4),
    ):
        said = [one.split(": ")[-1].split(",")[0] for one in statements(rows(mine, slack))]
        assert said == expected * 2
