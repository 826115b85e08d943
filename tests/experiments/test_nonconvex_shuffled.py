"""The experiment with gradients that differences carry on: its methods run, and verdicts follow the rows."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest

from tacit.experiments.nonconvex_shuffled import EACH, SILOS, HousingTask, _cases, _levels, compute
from tacit.experiments.nonconvex_shuffled_statements import level_statements, statements
from tacit.learning import HalvingTuner, NoisyStorm


def test_the_task_has_the_shape_of_the_paper() -> None:
    task = HousingTask.made(20)
    assert (SILOS * EACH, task.goal.size) == (16510, 101)
    assert task.rows.X.shape == (200, 9)
    assert task.error(np.zeros(101)) == pytest.approx(1.0)
    assert task.held.X.shape == (50, 9)
    assert not (task.held.X[:, None, 0] == task.rows.X[:, 0]).any()
    # The error, its squared gradient by differences of the error itself, and the error of other records.
    w, step = task.start, 1e-5
    slope = [(task.error(w + step * e) - task.error(w - step * e)) / (2 * step) for e in np.eye(101)]
    held = np.mean((task.goal.predictions(w, task.held.X) - task.held.y) ** 2)
    assert task.scores(w) == pytest.approx([task.error(w), np.dot(slope, slope), held], rel=1e-6)
    skewed = HousingTask.made(20, skewed=True)
    assert (np.diff(skewed.rows.y) >= 0).all()


def test_steps_that_are_too_long_are_halved_as_in_the_paper() -> None:
    task, method = HousingTask.made(20), NoisyStorm(rounds=40, beta=1.0, smoothness=1.5)
    found = task.tuned(method, None, 0, tuner=HalvingTuner(start=128.0, check_every=4, patience=1))
    assert (found.step_size, found.runs, found.stable) == (32.0, 3, True)
    assert found.losses[-1] == task.error(found.w) < found.losses[0]
    again = msgspec.structs.replace(method, step_size=found.step_size)
    assert task.error(task.shuffled(again, None, 0)) == found.losses[-1]


def test_a_small_run_has_all_rows_and_statements() -> None:
    seen: list[tuple[int, int]] = []
    report = compute(20, 2, (), seeds=1, progress=lambda done, total: seen.append((done, total)))
    methods = {"behind a shuffler": 5, "trusted server": 5, "walks, equal silos": 6, "walks, sorted silos": 6}
    assert seen[-1] == (22 + 24, 22 + 24)
    rows = [*report.rows, *report.more["walks"].rows]
    assert Counter(row["panel"] for row in rows) == methods
    assert [row["panel"] for row in report.rows] == ["behind a shuffler"] * 5 + ["trusted server"] * 5
    levels = report.more["levels"].rows
    assert len(levels) == 2 * 3 * 4
    assert all(np.isfinite(float(str(row["squared error"]))) for row in (*rows, *levels))
    assert len(list(statements(rows))) == 22 + 1 + 2 + 1 + 2 * 4 + 1 + 2 * (5 + 2) + 1
    assert len(list(level_statements(levels))) == 2 * (3 + 2 + 1)
    private = {(panel, method): measure for panel, method, _, measure in _cases(20, 2)}
    for case in (
        ("behind a shuffler", "plain, reports"),
        ("behind a shuffler", "spider, sums"),
        ("walks, sorted silos", "diff2-bvr-lsgd, 5 steps"),
    ):
        bare, noisy = (private[case](epsilon, 0) for epsilon in (None, 8.0))
        assert np.isfinite(noisy).all()
        assert (noisy != bare).any()


def test_the_printed_rule_subtracts_before_it_clips() -> None:
    task = HousingTask.made(20)
    method = NoisyStorm(rounds=3, beta=0.1, step_size=0.1, smoothness=1e3)
    plain = msgspec.structs.replace(method, beta=1.0)
    # Differences that are not clipped carry on the gradient of one function: with gradients clipped before
    # it is the one whose gradients plain steps follow, and as printed another.
    expected = task.walked(plain, None, 0)
    np.testing.assert_allclose(task.walked(method, None, 0), expected, atol=1e-12)
    assert np.abs(task.walked(method, None, 0, printed=True) - expected).max() > 1e-3


def test_verdicts_follow_the_rows() -> None:
    rows: list[dict[str, object]] = [
        {"panel": panel, "method": method, "epsilon": epsilon}
        for panel, method, _, _ in _cases(2, 1)
        for epsilon in (0.4, 1.6)
    ]
    for row in rows:
        row["squared gradient"], row["its error"], row["held-out error"] = 0.1, 0.0, 0.65
        row["standard error"], row["squared error"] = 0.0, 0.5 if row["epsilon"] == 1.6 else 0.6
    *lines, held = statements(rows)
    assert all("yes" in line for line in lines)
    assert held.startswith("Records held out err at most 0.150 more")
    rows[1]["squared error"], rows[1]["standard error"] = 0.61, 0.01  # up by 0.01, from 0.6
    level = "falls with epsilon: not everywhere, but rises by no more than two standard errors."
    assert next(statements(rows)).endswith(level)
    rows[1]["squared error"], rows[1]["standard error"] = 0.5, 0.0
    for row in rows:
        if row["method"] in ("plain, reports", "mb-psgm-fg", "ce-psgm-fg, 5 steps"):
            row["squared error"] = 0.9 if row["epsilon"] == 1.6 else 0.8
        if row["method"] in ("mb-psgm-fg", "ce-psgm-fg, 10 steps") and row["epsilon"] == 1.6:
            row["squared gradient"], row["its error"] = (
                0.2,
                0.04 if row["panel"] == "trusted server" else 0.06,
            )
    lines = list(statements(rows))
    longer = (
        "the squared gradient of mb-psgm-fg, is no larger than that of dp-gd, up to two standard errors: "
    )
    assert f"trusted server: {longer}no, at 1 of 2; more at epsilon 1.6." in lines
    level = "walks, sorted silos: the squared gradient of ce-psgm-fg, 10 steps, is no larger than that of "
    assert f"{level}diff2-bvr-lsgd, 10 steps, up to two standard errors: yes, at 2 of 2." in lines
    assert "trusted server, mb-psgm-fg: the error falls with epsilon: no." in lines
    assert any(
        line.endswith("dp-gd, up to two standard errors: no, at 0 of 2; more at epsilon 0.4, 1.6.")
        for line in lines
    )

    levels = [facts | {"squared error": facts["known"]} for facts, _ in _levels(2, 1)]
    assert all(line.endswith("yes.") for line in level_statements(levels))
    for row in levels:
        row["squared error"] = -float(str(row["known"]))
    lines = list(level_statements(levels))
    assert all("no" in line for line in lines)
    assert any(line.endswith("no; more at 0.4252, 0.7459, 1.2539.") for line in lines)
