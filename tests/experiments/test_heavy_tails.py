"""Heavy-tailed tasks: what is stated of them is true, everybody spends the same, verdicts follow the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.experiments import Report
from tacit.experiments.heavy_tails import LONG, METHODS, Case, compute
from tacit.experiments.heavy_tails_means import clip_sweep, power_table, trust_table
from tacit.experiments.heavy_tails_statements import statements
from tacit.experiments.heavy_tails_tasks import (
    Absolutes,
    Lasso,
    LeastSquares,
    ParetoLogistic,
    ParetoMean,
    Task,
)
from tacit.learning import AutoClip
from tacit.learning.preparation import prepare
from tacit.numerics import row_norms
from tacit.privacy import TrustModel, epsilon_of
from tacit.randomness import simulated

TASKS: list[Task] = [LeastSquares(), Lasso(), ParetoMean(), ParetoLogistic(4000), Absolutes(4000)]


@pytest.fixture(scope="module")
def report() -> Report:
    return compute(
        [ParetoMean()],
        sizes=(300, 1200),
        seeds=range(2),
        methods=METHODS[2:3],
        grid=(1.0, 32.0),
        progress=lambda *_: None,
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_solution_has_the_least_risk_and_lies_in_the_ball(task: Task) -> None:
    best = task.best
    assert math.isfinite(task.ball.value(best))
    there, start = task.excess(best), task.excess(np.zeros(best.size))
    assert abs(there) < 0.02
    assert start > there + 0.04
    if task.fresh > 4000:  # the risk has a formula
        around = best + 0.05 * np.random.default_rng(0).standard_normal((200, best.size))
        assert min(map(task.excess, around)) > 0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_moment_of_a_sample_is_far_above_what_is_stated(task: Task) -> None:
    """At the start and across the ball; the sample's own moment is mostly below that of the law."""
    records, goal = task.draw(20_000, simulated(1, "test")), task.objective
    for w in (np.zeros(task.best.size), task.best, -task.radius * task.best):
        norms = row_norms(goal.gradients(w, records))
        found = float(np.mean(norms**task.moment.order)) ** (1 / task.moment.order)
        assert 0.1 * task.moment.value < found < 1.1 * task.moment.value


@pytest.mark.parametrize("clip", [None, 1.0, math.inf])
def test_all_spend_the_same_budget(clip: float | None) -> None:
    task = ParetoMean()
    case = Case(task, 400, "clipped-sgd" if clip is None else "minibatch", clip=clip)
    plan = prepare(case.settings(7.0), [400]).plan
    assert epsilon_of(plan.event([400], TrustModel.CENTRAL), task.budget.delta) == pytest.approx(
        1.0, abs=1e-4
    )
    automatic = prepare(Case(task, 400, "minibatch", auto=AutoClip()).settings(7.0), [400]).plan
    assert automatic.kinds[0][0].measures[0].statistic == "gradient-norms"
    assert epsilon_of(automatic.event([400], TrustModel.CENTRAL), 1e-6) == pytest.approx(1.0, abs=1e-4)


def test_rows_are_of_every_method_and_the_best_clip(report: Report) -> None:
    methods = [row["method"] for row in report.rows if row["records"] == 1200]
    assert methods[:3] == ["clipped-sgd, full", "clipped-sgd, full, automatic clip", "automatic clip"]
    assert methods[3:] == ["DP-SGD, best clip", "DP-SGD, longest"]
    assert len(report.more["all-clips"].rows) == 2 * 6
    assert len(report.notes) == 1 + 4


def test_a_task_may_have_methods_and_sizes_of_its_own() -> None:
    """A loss with a kink, for phases and subgradients; a penalty, for proximal steps."""

    class Few(Absolutes):
        sizes = (256,)

    found = compute([Few(4000), Lasso()], sizes=(300,), seeds=range(2), grid=(2.0,), progress=lambda *_: None)
    shown = {(row["task"], row["records"]) for row in found.rows}
    assert shown == {("absolute errors", 256), ("t6, lasso", 300)}
    named = {str(row["method"]) for row in found.rows if row["bound"] is not None}
    assert named == {"localized", "clipped-subgradient", "clipped-prox-sgd", "clipped-prox-sgd, full"}
    assert all(row["excess"] <= row["bound"] for row in found.rows if row["bound"] is not None)  # type: ignore[operator]


def test_an_automatic_clip_goes_out_with_the_records_and_stays_far_below_the_longest() -> None:
    """Its bias falls with n: that of the default, at the same quantile for every n, does not."""
    found = []
    for n in (500, 5000):
        case = Case(ParetoMean(), n, "clipped-sgd", auto=LONG.around(ParetoMean().moment.value))
        ours, _ = case.outcomes([0, 1])
        longest, _ = Case(ParetoMean(), n, "minibatch", clip=math.inf).outcomes([0, 1])
        assert ours.mean() < longest.mean() / 5
        found.append(float(ours.mean()))
    assert found[1] < found[0] / 3


def test_verdicts_follow_the_rows() -> None:
    def row(n: int, method: str, excess: float, bound: float | None = None) -> dict[str, object]:
        return {"task": "t", "records": n, "method": method, "excess": excess, "bound": bound}

    rows = [
        *(row(1, "a", 0.5, 1.0), row(1, "b", 0.4, 2.0), row(1, "automatic clip", 0.3)),
        *(row(1, "DP-SGD, clip 1", 0.2), row(1, "DP-SGD, clip 2", 0.45), row(1, "DP-SGD, longest", 0.6)),
        *(row(2, "a", 0.3, 0.2), row(2, "b", 0.4, 0.5), row(2, "automatic clip", 0.1)),
        *(row(2, "DP-SGD, clip 1", 0.2), row(2, "DP-SGD, clip 2", 0.3), row(2, "DP-SGD, longest", 0.35)),
    ]
    one, two, least, best, auto = statements(rows)
    assert one == "a, t: excess 0.5, 0.3; below its bound no, falling yes."
    assert two == "b, t: excess 0.4, 0.4; below its bound yes, falling no."
    assert "(0.5, 0.3) is below" in least
    assert "yes (2 of 2); below DP-SGD with the best clip" in least
    assert "no (0 of 2)" in least
    assert "(0.4, 0.3) is below" in best
    assert "(0.3, 0.1) is below" in auto
    assert auto.endswith("more: yes (1 of 2).")


def test_means_are_as_printed() -> None:
    for part in (clip_sweep(), power_table(), trust_table(quick=True)):
        for note in part.notes:
            assert ": yes" in note
            assert ": no" not in note
