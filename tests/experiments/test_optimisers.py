"""All algorithms at equal privacy: minima, what is tried, rows, and verdicts that follow the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.experiments import Report, optimisers
from tacit.experiments.optimisers import TRUSTS, Variant, compute, variants
from tacit.experiments.optimisers_conditioning import conditioning
from tacit.experiments.optimisers_statements import conditioning_statements, statements
from tacit.experiments.optimisers_tasks import Task, made_up
from tacit.learning import ALGORITHMS
from tacit.privacy import TrustModel
from tacit.randomness import simulated

SMALL = made_up(silos=3, records=60, features=3, fresh=400)
NAMES = ("minibatch", "accelerated", "whitened", "multistage")


@pytest.fixture(scope="module")
def report() -> Report:
    return compute([SMALL], epsilons=(3.0,), trials=2, names=NAMES, progress=lambda *_: None)


def test_every_listed_algorithm_is_tried() -> None:
    assert [one.name for one in variants(SMALL) if not one.one_pass] == list(ALGORITHMS)
    silos = Task("x", SMALL.objective, SMALL.silos)
    assert not [one for one in variants(silos) if one.one_pass]


def test_rows_are_of_what_runs_and_the_notes_say_why_others_do_not(report: Report) -> None:
    found = {(row["method"], row["trust"]) for row in report.rows}
    assert found >= {(name, trust.value) for name in NAMES[:2] for trust in TRUSTS}
    assert ("whitened", "shuffle") not in found
    assert ("minibatch, one pass", "local") in found
    assert "multistage" not in {name for name, _ in found}
    assert any(note.startswith("multistage: it needs strong convexity") for note in report.notes)
    for row in report.rows:
        assert str(row["method"]).endswith("one pass") == (row["passes"] == "one")
        assert int(str(row["rounds"])) <= optimisers.MOST


def test_all_spend_the_same_budget() -> None:
    for trust in TRUSTS:
        for name in NAMES[:2]:
            settings, found = Variant(SMALL, name).planned(trust, 3.0)
            assert found.runs
            assert settings.budget is not None
            assert (settings.budget.epsilon, settings.budget.delta) == (3.0, optimisers.DELTA)
            assert settings.trust is trust
            assert settings.clip is None


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (1e-2, 0.0), (1e-3, 1e-2)])
@pytest.mark.parametrize("diameter", [1.0, 50.0])
def test_no_point_of_the_ball_is_below_the_minimum(l1: float, l2: float, diameter: float) -> None:
    task = Task("x", SMALL.objective, SMALL.silos, fresh=SMALL.fresh, diameter=diameter, l1=l1, l2=l2)
    assert np.linalg.norm(task.best) <= diameter * 1.01
    rng = simulated(3, "points")
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            w = task.best + scale * rng.standard_normal(task.objective.size)
            w *= min(1.0, diameter / float(np.linalg.norm(w)))
            assert task.excess(w) >= -1e-5


def test_the_made_up_law_has_the_minimum_where_it_was_put() -> None:
    # n (F(w*) - F(min)) is about a chi-square of 3 degrees of freedom over 2: above 40 with chance < 1e-16.
    task = made_up(silos=2, records=50, features=3, fresh=20_000)
    truth = simulated(0, "optimisers/records").standard_normal(3)
    truth *= 4 / np.linalg.norm(truth)
    assert 0 <= task.excess(truth) + 1e-9 < 40 / 20_000


def test_a_bound_on_rounds_is_kept_where_the_bound_would_take_more() -> None:
    large = made_up(silos=25, records=200, fresh=100)
    _, found = Variant(large, "minibatch").planned(TrustModel.CENTRAL, 9.0)
    assert found.rounds == optimisers.MOST


def row(method: str, trust: str, excess: float, **other: object) -> dict[str, object]:
    said = {"task": "strongly convex", "passes": "many", "epsilon": 3.0, "standard error": 0.01}
    return {**said, "bound": None, "method": method, "trust": trust, "excess": excess, **other}


def test_verdicts_follow_the_rows() -> None:
    rows = [
        row("minibatch", "local", 0.5, bound=0.4),
        row("minibatch", "shuffle", 0.3, bound=0.4),
        row("minibatch", "central", 0.1),
        row("accelerated", "local", 0.51),
        row("accelerated", "shuffle", 0.2),
        row("local", "local", 0.6),
        row("prox-svrg", "local", 0.2),
        row("prox-sgd", "local", 0.1),
        row("minibatch, one pass", "local", 0.7, passes="one"),
    ]
    assert list(statements(rows)) == [
        "accelerated below minibatch, strongly convex, local trust, epsilon 3: did not hold, within chance "
        "(0.51 against 0.5).",
        "accelerated below minibatch, strongly convex, shuffle trust, epsilon 3: held (0.2 against 0.3).",
        "prox-svrg below prox-sgd, strongly convex, local trust, epsilon 3: did not hold (0.2 against 0.1).",
        "minibatch below local, strongly convex, local trust, epsilon 3: held (0.5 against 0.6).",
        "minibatch in many passes below one pass, strongly convex, local trust, epsilon 3: held "
        "(0.5 against 0.7).",
        "Shuffle strictly between central and local, strongly convex, epsilon 3: 1 of 1 methods, held.",
        "Every excess below its own bound: 1 of 2, did not hold for minibatch (local, strongly convex).",
    ]
    swapped = [row("minibatch", t, x) for t, x in (("local", 0.3), ("shuffle", 0.5), ("central", 0.1))]
    assert list(statements(swapped)) == [
        "Shuffle strictly between central and local, strongly convex, epsilon 3: 0 of 1 methods, "
        "did not hold for minibatch."
    ]
    assert not list(statements([row("minibatch", "local", 0.1)]))


def test_variance_reduction_saves_a_factor_of_the_condition_number() -> None:
    # Without noise both would be at their minimum; a factor 2 of kappa is 4 in one and about 2 in the other.
    # Standard errors are 6 and 20 % of a mean; the gap at kappa = 8 is more than 15 of their difference.
    report = conditioning((2, 8), trials=4, records=2000)
    excess = {(row["method"], row["kappa"]): float(str(row["excess"])) for row in report.rows}
    errors = {(row["method"], row["kappa"]): float(str(row["standard error"])) for row in report.rows}
    sgd, svrg = ("prox-sgd", 8), ("prox-svrg", 8)
    assert excess[sgd] - excess[svrg] > 6 * math.hypot(errors[sgd], errors[svrg])
    assert excess[sgd] > 8 * excess["prox-sgd", 2]
    assert excess[svrg] < 8 * excess["prox-svrg", 2]


def test_verdicts_on_the_condition_number_go_both_ways() -> None:
    def rows(power: float, scale: float) -> list[dict[str, object]]:
        return [
            {"kappa": k, "method": name, "excess": c * k**p, "standard error": 0.01 * c * k**p}
            for k in (2, 4)
            for name, c, p in (("prox-sgd", 1.0, 2.0), ("prox-svrg", scale, power))
        ]

    first, *others = conditioning_statements(rows(1.0, 0.5))
    assert first.endswith("saves a factor kappa, as printed: held within 0.3 of the power 1.")
    assert others == [
        "prox-svrg below prox-sgd at kappa 2: held (1 against 4).",
        "prox-svrg below prox-sgd at kappa 4: held (2 against 16).",
    ]
    first, *others = conditioning_statements(rows(2.0, 3.0))
    assert "did not hold within 0.3" in first
    assert all("did not hold" in one for one in others)


def test_a_figure_has_one_panel_a_task_and_names_methods_below(report: Report) -> None:
    assert (report.x, report.line, report.panel, report.log_x) == ("method", "trust", "task", False)


def test_quick_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    empty = Report(rows=[], x="x", y="y", error=None, line="l", title="t")

    def compute(_tasks: object, **given: object) -> Report:
        asked.append(given["trials"])
        return empty

    def rates(kappas: tuple[int, ...], *, trials: int) -> Report:
        asked.append((len(kappas), trials))
        return empty

    monkeypatch.setattr(optimisers, "tasks", lambda **given: asked.append(given))
    monkeypatch.setattr(optimisers, "compute", compute)
    monkeypatch.setattr(optimisers, "conditioning", rates)
    optimisers.run(True, lambda *_: None)
    optimisers.run(False, lambda *_: None)
    assert asked == [{"every": 4, "most": 10}, 2, (2, 2), {"every": 2}, 3, (4, 6)]
