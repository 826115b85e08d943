"""The experiment with gradients that differences carry on: its methods run, and verdicts follow the rows."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tacit.experiments.nonconvex_shuffled import EACH, SILOS, HousingTask, compute
from tacit.experiments.nonconvex_shuffled_statements import statements
from tacit.learning import HalvingTuner, NoisyStorm


def test_the_task_has_the_shape_of_the_paper() -> None:
    task = HousingTask.made(20)
    assert (SILOS * EACH, task.goal.size) == (16510, 101)
    assert task.rows.X.shape == (200, 9)
    assert task.error(np.zeros(101)) == pytest.approx(1.0)
    skewed = HousingTask.made(20, skewed=True)
    assert (np.diff(skewed.rows.y) >= 0).all()


def test_steps_that_are_too_long_are_halved_as_in_the_paper() -> None:
    task, method = HousingTask.made(20), NoisyStorm(rounds=40, beta=1.0, smoothness=1.5)
    found = task.tuned(method, None, 0, tuner=HalvingTuner(start=8.0, check_every=4, patience=1))
    assert (found.step_size, found.runs, found.stable) == (2.0, 3, True)
    assert found.losses[-1] == task.error(found.w) < found.losses[0]
    again = msgspec.structs.replace(method, step_size=found.step_size)
    assert task.shuffled(again, None, 0) == found.losses[-1]


def test_a_small_run_has_all_rows_and_statements() -> None:
    seen: list[tuple[int, int]] = []
    report = compute(30, 2, (8.0,), seeds=1, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (26, 26)
    assert len(report.rows) == 26
    assert {row["panel"] for row in report.rows} == {
        "shuffled reports", "trusted server", "walks, equal silos", "walks, sorted silos",
    }  # fmt: skip
    assert all(np.isfinite(float(str(row["squared error"]))) for row in report.rows)
    said = list(statements(report.rows))
    assert len(said) == 13 + 1 + 2 + 3 + 4


def test_verdicts_follow_the_rows() -> None:
    panels = {
        "shuffled reports": ("mb-psgm-fg, beta 0.05", "mb-psgm-fg, beta 0.1", "plain"),
        "trusted server": ("mb-psgm-fg, beta 0.1", "mb-psgm, beta 0.1", "diff2-gd, period 10", "dp-gd"),
        **{
            f"walks, {one} silos": ("1 local step", "5 local steps", "10 local steps")
            for one in ("equal", "sorted")
        },
    }
    rows: list[dict[str, object]] = [
        {"panel": panel, "method": method, "epsilon": epsilon}
        for panel, methods in panels.items()
        for method in methods
        for epsilon in (0.4, 1.6)
    ]
    for row in rows:
        row["standard error"], row["squared error"] = 0.0, 0.5 if row["epsilon"] == 1.6 else 0.6
    assert all("yes" in line for line in statements(rows))
    for row in rows:
        if row["method"] in ("plain", "mb-psgm-fg, beta 0.1", "5 local steps", "10 local steps"):
            row["squared error"] = 0.9 if row["epsilon"] == 1.6 else 0.8
    lines = list(statements(rows))
    assert "trusted server, mb-psgm-fg, beta 0.1: the error falls with epsilon: no." in lines
    assert any(line.endswith("dp-gd: no, at 0 of 2; more at epsilon 0.4, 1.6.") for line in lines)
