"""DP-FERMI: what one record moves, what is asked, its price, and that without noise it is FERMI."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.fairness import FairUnits, PrivateFermi, PublicRecords, Shares, fermi_exact, random_round
from tacit.means import DiscreteGaussianNoise
from tacit.numerics import Array
from tacit.privacy import (
    Gaussian,
    Neighbours,
    Part,
    PrivacyBudget,
    Relation,
    TrustModel,
    Unit,
    epsilon_of,
    meets,
)
from tests.fairness.private import (
    Overheard,
    clipped,
    clipped_rows,
    conditions_of,
    exact_ask,
    method_of,
    names_of,
    small,
    training_of,
    units_of,
)
from tests.fairness.problems import D, problem, records

NOTIONS = ["demographic-parity", "equalized-odds", "equal-opportunity"]
ADULT = 33916
"""Records of training, and the delta is one over their square."""


def points(method: PrivateFermi, seed: int = 0) -> dict[str, Array]:
    """What a query says, far from where a run starts."""
    rng = np.random.default_rng(seed)
    z, k, m = method.shape
    return {
        "theta": rng.standard_normal(method.model.size),
        "dual": rng.standard_normal(z * k * m),
        "frequencies": rng.dirichlet(np.ones(k), z).ravel(),
        "factors": rng.uniform(0.5, 1.5, z),
        "weight": np.array([2.0]),
    }


# Price


@pytest.mark.parametrize(
    ("epsilon", "z", "mass", "gradient"),
    [
        (0.5, 10.721543, 268.04, 189.53),
        (1, 5.518522, 137.96, 97.55),
        (3, 1.951109, 48.78, 34.49),
        (9, 0.715820, 17.90, 12.65),
    ],
)
def test_multipliers_are_those_of_the_chapter(epsilon: float, z: float, mass: float, gradient: float) -> None:
    training = training_of(method_of(rounds=200), PrivacyBudget(epsilon, ADULT**-2))
    found = training.multiplier([ADULT])
    assert found == pytest.approx(z, rel=1e-6, abs=1e-6)
    (first, once), (each, rounds) = training.plan(found, [ADULT]).kinds
    measures: list[Any] = [measure for step in (first, each) for measure in step.measures]
    noise = [measure.estimator.noise.noise_multiplier for measure in measures]
    np.testing.assert_allclose(noise, [z / math.sqrt(0.04), mass, gradient], atol=6e-3)  # two decimals
    assert (once, rounds) == (1, 200)
    assert 1 / noise[0] ** 2 + 200 * (1 / noise[1] ** 2 + 1 / noise[2] ** 2) == pytest.approx(z**-2, rel=1e-5)


@pytest.mark.parametrize("part", [Part.SENSITIVE, Part.ALL])
def test_a_run_costs_what_one_gaussian_with_all_of_the_budget_costs(part: Part) -> None:
    training = training_of(method_of(part=part))
    plan = training.plan(1.7, [12])
    neighbours = Neighbours(Relation.REPLACE_ONE, Unit.RECORD, part)
    assert plan.neighbours == neighbours
    one = Gaussian(1.7, neighbours)
    for epsilon in (0.5, 1.0, 3.0):
        delta = 0.05
        assert meets(plan.event([12], TrustModel.CENTRAL), PrivacyBudget(epsilon, delta)) == meets(
            one, PrivacyBudget(epsilon, delta)
        )
    assert training_of(method_of(part=part, weight=9.0)).plan(1.7, [12]) == plan  # no weight in any noise


def test_every_mean_is_on_all_records_and_acute_where_rows_are() -> None:
    for part in (Part.SENSITIVE, Part.ALL):
        method = method_of(part=part)
        (first, _), (each, _) = training_of(method).plan(1.0, [12]).kinds
        assert [m.statistic for m in first.measures] + [m.statistic for m in each.measures] == [
            name for names in names_of(method) for name in names
        ]
        measures: list[Any] = [measure for step in (first, each) for measure in step.measures]
        assert [measure.estimator.acute for measure in measures] == [True, True, False]
        assert {type(step.batch).__name__ for step in (first, each)} == {"Full"}


def test_shares_and_numbers_are_checked() -> None:
    wrong: list[dict[str, Any]] = [
        {"groups": 1},
        {"rounds": 0},
        {"weight": -1},
        {"step": 0.0},
        {"clip": -1.0},
        {"tail": 1.0},
        {"only": 0},
        {"only": 4},
        {"least_share": 0.5},
        {"part": Part.REWARD},
        {"l2": math.nan},
    ]
    for how in wrong:
        with pytest.raises(ParameterError, match=next(iter(how))):
            method_of(**{"least_share": 0.2, **how})
    for numbers in ((0.5, 0.5, 0.5), (0.0, 0.5, 0.5), (-0.1, 0.5, 0.6)):
        with pytest.raises(ParameterError):
            Shares(*numbers)
    with pytest.raises(ParameterError, match="delta"):
        training_of(method_of(), PrivacyBudget(1.0))


# What one record moves


@pytest.mark.parametrize("fairness", NOTIONS)
@pytest.mark.parametrize("groups", [2, 3])
def test_no_change_of_a_group_moves_a_mean_by_more_than_its_sensitivity(fairness: str, groups: int) -> None:
    classes = 2
    X, y, s = records(12, classes, groups)
    method = method_of(fairness=fairness, groups=groups)
    at, where = points(method), conditions_of(y, fairness, classes)
    units = FairUnits.of(X, y, s, where.codes)
    radii = {"group-counts": 1.0, "group-mass": 1.0, "group-decisions": 1.0, "group-gradient": 0.4}
    allowed = {name: 0.8 if name == "group-gradient" else math.sqrt(2) for name in radii}
    rows = method.statistics["group-mass"](units, at)
    longest = np.linalg.norm(rows, axis=1).max()
    furthest = dict.fromkeys(radii, 0.0)
    for i in range(len(s)):
        for r in (-1, *range(groups)):
            other = s.copy()
            other[i] = r
            changed = FairUnits.of(X, y, other, where.codes)
            for name, radius in radii.items():
                moved = clipped(method, name, changed, at, radius) - clipped(method, name, units, at, radius)
                furthest[name] = max(furthest[name], float(np.linalg.norm(moved)))
                if name != "group-gradient" and fairness == "equalized-odds":
                    # A release of one class is about its own records: each class has all of the budget.
                    assert set(np.flatnonzero(moved) // (moved.size // 2)) <= {y[i]}
    for name, most in allowed.items():
        assert furthest[name] <= most * (1 + 1e-12)
    assert furthest["group-counts"] == pytest.approx(math.sqrt(2))
    assert furthest["group-decisions"] == pytest.approx(math.sqrt(2))
    assert furthest["group-mass"] == pytest.approx(math.sqrt(2) * longest)
    if groups == 2:
        assert furthest["group-gradient"] == pytest.approx(0.8)


@pytest.mark.parametrize("fairness", NOTIONS)
def test_no_change_of_a_record_moves_a_mean_by_more_than_its_sensitivity(fairness: str) -> None:
    X, y, s = records(12, 2, 2)
    method = method_of(fairness=fairness, part=Part.ALL)
    at, rng = points(method), np.random.default_rng(3)
    units = units_of(X, y, s, fairness)
    allowed = {
        "group-counts": (1.0, math.sqrt(2)),
        "group-mass": (1.0, math.sqrt(2)),
        "penalised-gradient": (0.3, 0.6),
    }
    furthest = dict.fromkeys(allowed, 0.0)
    # The row of a replaced record beside any other: no sum is needed of those that stay.
    for _ in range(60):
        x = rng.standard_normal((1, D)) * 10.0 ** rng.uniform(-1, 3)
        new = units_of(x, rng.integers(-1, 2, 1), rng.integers(-1, 2, 1), fairness)
        for name, (radius, _most) in allowed.items():
            apart = clipped_rows(method, name, new, at, radius) - clipped_rows(
                method, name, units, at, radius
            )
            furthest[name] = max(furthest[name], float(np.linalg.norm(apart, axis=1).max()))
    for name, (_radius, most) in allowed.items():
        assert 0.85 * most <= furthest[name] <= most * (1 + 1e-12)


@pytest.mark.parametrize("fairness", NOTIONS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("radius", [1e-3, 0.2, 50.0])
def test_fused_sums_are_sums_of_clipped_rows(fairness: str, classes: int, radius: float) -> None:
    X, y, s = records(20, classes, 3)
    s = np.where(np.arange(20) % 5 == 0, -1, s)
    method = method_of(fairness=fairness, classes=classes, groups=3)
    units, at = units_of(X, y, s, fairness, classes), points(method)
    for name in ("group-mass", "group-gradient", "penalised-gradient"):
        statistic: Any = method.statistics[name]
        fused = statistic.clipped_sum(units, at, radius, np.float64)
        np.testing.assert_allclose(fused, clipped(method, name, units, at, radius), rtol=1e-9, atol=1e-12)


def test_bad_records_and_unknown_groups_count_as_zero_and_change_no_other() -> None:
    X, y, s = records(12, 2, 2)
    method = method_of(part=Part.ALL)
    at = points(method)
    worse, labels, unknown = X.copy(), y.copy(), s.copy()
    worse[0, 0], worse[1, 1], labels[2], unknown[3] = math.nan, math.inf, -1, -1
    units, bad = units_of(X, y, s), units_of(worse, labels, unknown)
    for name, statistic in method.statistics.items():
        rows, found = statistic(units, at), statistic(bad, at)
        zero = [0, 1, 2] if name == "penalised-gradient" else [0, 1, 2, 3]
        assert not found[zero].any()
        np.testing.assert_array_equal(found[4:], rows[4:])
    assert len(bad.take(np.array([0, 5]))) == 2


def test_the_group_part_is_centred_and_the_rest_needs_no_group() -> None:
    X, y, _ = records(12, 2, 3)
    method = method_of(groups=3)
    at = points(method)
    statistic = method.statistics["group-gradient"]
    total = sum(statistic(units_of(X, y, np.full(12, r)), at) for r in range(3))
    np.testing.assert_allclose(total, 0, atol=1e-12)


@pytest.mark.parametrize("clip", [None, 0.05, 1e4])
def test_the_radius_is_public_and_no_run_depends_on_groups_but_through_answers(clip: float | None) -> None:
    method = method_of(rounds=4, clip=clip)
    units, public = small()
    overheard = Overheard(exact_ask(method, units))
    found = method.run(overheard, method.model.start(), n=12, public=public).theta
    replies = {seen.step: seen.means for seen in overheard.seen}
    # The same answers again, whatever the groups: the same queries, the same end.
    again = Overheard(lambda step, at, radius: replies[step])
    np.testing.assert_array_equal(method.run(again, method.model.start(), n=12, public=public).theta, found)
    for one, two in zip(overheard.seen, again.seen, strict=True):
        assert one.radius == two.radius
        assert all(np.array_equal(one.at[name], two.at[name]) for name in one.at)
    assert overheard.seen[1].radius == (1.0, 0.0)  # at first W says the same of all groups
    assert 0 < overheard.seen[4].radius[1] <= (math.inf if clip is None else clip)
    if clip == 1e4:  # and no row of any group is longer
        for seen in overheard.seen[1:]:
            for r in range(2):
                other = units_of(public.X, public.y, np.full(12, r))
                rows = method.statistics["group-gradient"](other, seen.at)
                assert np.linalg.norm(rows, axis=1).max() <= seen.radius[1]


# Without noise


@pytest.mark.parametrize(
    ("fairness", "classes"),
    [("demographic-parity", 3), ("equalized-odds", 2), ("equal-opportunity", 2)],
)
@pytest.mark.parametrize("part", [Part.SENSITIVE, Part.ALL])
def test_without_noise_it_is_fermi(fairness: str, part: Part, classes: int) -> None:
    of = problem(weight=1.0, fairness=fairness, classes=classes)
    method = method_of(
        fairness=fairness,
        classes=classes,
        part=part,
        rounds=400,
        step=0.8,
        dual_step=0.5,
        tail=0.0,
        clip=1e5,
        l2=of.l2,
        least_share=0.01,
    )
    where = conditions_of(of.y, fairness, classes)
    units = FairUnits.of(of.X, of.y, of.membership.groups, where.codes)
    public = PublicRecords(of.X, of.y, where.codes) if part is Part.SENSITIVE else None
    run = training_of(method, None).train(
        training_of(method, None).federation([units], seed=0), method.model.start(), public=public
    )
    assert run.noise_multiplier == 0
    assert math.isinf(run.guarantees[0].epsilon)
    best = fermi_exact(of, tolerance=1e-14, iterations=2000).theta
    np.testing.assert_allclose(run.theta, best, atol=4e-3)


@pytest.mark.parametrize("part", [Part.SENSITIVE, Part.ALL])
def test_the_weight_follows_counts_of_decisions_at_the_same_price(part: Part) -> None:
    n, z = 600, 1.7
    X, y, s = records(n, 2, 2)
    units = units_of(X, y, s)
    public = PublicRecords(X, y, np.zeros(n, dtype=np.int64)) if part is Part.SENSITIVE else None
    gaps = []
    for target in (0.3, 0.05):
        method = method_of(part=part, target=target, weight=0.0, rounds=150, clip=1e4, step=1.0)
        theta = method.run(exact_ask(method, units), np.zeros(D), n=n, public=public).theta
        hard = method.model.scores(theta, X).argmax(axis=1)
        gaps.append(abs(float(hard[s == 1].mean() - hard[s == 0].mean())))
    assert gaps[1] < 0.1 < gaps[0]
    method = method_of(part=part, target=0.1)
    plan = training_of(method).plan(z, [n])
    assert [m.statistic for m in plan.kinds[1][0].measures] == list(names_of(method)[1])
    assert epsilon_of(plan.event([n], TrustModel.CENTRAL), 0.01) == pytest.approx(
        epsilon_of(Gaussian(z, plan.neighbours), 0.01)
    )


def test_averages_are_of_the_last_points() -> None:
    method = method_of(rounds=6, tail=0.5)
    units, public = small()
    points: list[Array] = []
    found = method.run(
        exact_ask(method, units),
        method.model.start(),
        n=12,
        public=public,
        follow=lambda _t, w: points.append(w),
    ).theta
    np.testing.assert_allclose(found, np.mean(points[3:], axis=0))
    others: list[tuple[dict[str, Any], int]] = [({"tail": 0.0}, 5), ({"only": 2}, 1), ({"only": 6}, 5)]
    for how, place in (*others, ({"tail": 0.01}, 5)):
        one = method_of(**{"rounds": 6, "tail": 0.5, **how})
        theta = one.run(exact_ask(one, units), one.model.start(), n=12, public=public).theta
        np.testing.assert_array_equal(theta, points[place])
        assert training_of(one).plan(1.0, [12]) == training_of(method).plan(1.0, [12])


def test_the_round_of_a_run_is_uniform_and_its_name_says_which() -> None:
    drawn = np.array([random_round(5, f"run {k}") for k in range(2000)])
    counts = np.bincount(drawn, minlength=6)[1:]
    assert counts.sum() == 2000
    assert np.abs(counts - 400).max() < 6 * math.sqrt(2000 * 0.2 * 0.8)
    assert random_round(5, "run 7") == drawn[7]
    assert {random_round(1, f"run {k}") for k in range(9)} == {1}


@pytest.mark.parametrize("part", [Part.SENSITIVE, Part.ALL])
def test_a_run_says_which_weight_it_took(part: Part) -> None:
    n = 60
    X, y, s = records(n, 2, 2)
    public = PublicRecords(X, y, np.zeros(n, dtype=np.int64)) if part is Part.SENSITIVE else None
    method = method_of(part=part, target=0.02, weight=1.5, rounds=5, clip=1e4)
    overheard = Overheard(exact_ask(method, units_of(X, y, s)))
    found = method.run(overheard, np.array([1.0, -1.0, 0.3])[:D], n=n, public=public)
    weight, last, rates = 1.5, 0.0, np.zeros((2, 2))
    for t, seen in enumerate(overheard.seen[1:]):
        if part is Part.ALL:
            assert seen.at["weight"][0] == pytest.approx(weight)
        last = weight
        shares = seen.at["frequencies"].reshape(2, 1)
        rates = rates + (1.0 if t == 0 else 0.1) * (seen.means[2].reshape(2, 2) / shares - rates)
        weight = max(weight + float(np.ptp(rates, axis=0).max()) - 0.02, 0.0)
    assert found.weight == pytest.approx(last)
    assert found.weight != 1.5
    still = replace(method, target=None)
    assert still.run(exact_ask(still, units_of(X, y, s)), np.zeros(D), n=n, public=public).weight == 1.5


def test_unknown_groups_at_random_leave_the_target() -> None:
    n = 4000
    X, y, s = records(n, 2, 2)
    hidden = np.where(np.random.default_rng(1).random(n) < 0.5, -1, s)
    method = method_of(rounds=60, weight=3.0, clip=1e5, step=1.0)
    public = PublicRecords(X, y, np.zeros(n, dtype=np.int64))
    full, half = (
        method.run(exact_ask(method, units_of(X, y, each)), method.model.start(), n=n, public=public).theta
        for each in (s, hidden)
    )
    without = replace(method, weight=0.0)
    plain = without.run(exact_ask(method, units_of(X, y, s)), method.model.start(), n=n, public=public).theta
    assert np.linalg.norm(half - full) < 0.1 * np.linalg.norm(plain - full)


def test_groups_and_classes_without_records_are_floored() -> None:
    X, y, s = records(12, 2, 2)
    method = method_of(groups=3, fairness="equalized-odds", least_share=0.1)
    y = np.zeros_like(y)
    where = conditions_of(y, "equalized-odds", 2)
    overheard = Overheard(exact_ask(method, FairUnits.of(X, y, s, where.codes)))
    public = PublicRecords(X, y, where.codes)
    assert np.isfinite(method.run(overheard, method.model.start(), n=12, public=public).theta).all()
    shares = overheard.seen[1].at["frequencies"].reshape(2, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares[0], np.array([0.5, 0.5, 0.1]) / 1.1)
    np.testing.assert_allclose(shares[1], 1 / 3)


def test_public_records_are_for_private_groups_only() -> None:
    units, public = small()
    for part, given in ((Part.SENSITIVE, None), (Part.ALL, public)):
        method = method_of(part=part)
        with pytest.raises(ParameterError, match="public"):
            method.run(exact_ask(method, units), method.model.start(), n=12, public=given)


# Trust


@pytest.mark.parametrize("part", [Part.SENSITIVE, Part.ALL])
@pytest.mark.parametrize("trust", list(TrustModel))
def test_it_runs_under_every_trust_model(part: Part, trust: TrustModel) -> None:
    X, y, s = records(60, 2, 2)
    method = method_of(part=part, rounds=1)
    budget = PrivacyBudget(2.0, 1e-4)
    training = training_of(method, budget, trust=trust, noise="discrete-gaussian")
    silos = [units_of(X[k::3], y[k::3], s[k::3]) for k in range(3)]
    federation = training.federation(silos, seed=0)
    order = np.concatenate([np.arange(60)[k::3] for k in range(3)])
    public = (
        PublicRecords(X[order], y[order], np.zeros(60, dtype=np.int64)) if part is Part.SENSITIVE else None
    )
    run = training.train(federation, method.model.start(), public=public)
    assert np.isfinite(run.theta).all()
    assert len(run.guarantees) == (1 if trust is TrustModel.CENTRAL else 3)
    for found in run.guarantees:
        assert found.neighbours.part is part
        assert found.delta == budget.delta
        assert found.epsilon <= budget.epsilon * (1 + 1e-9)
        assert found.epsilon > 0.9 * budget.epsilon or trust is TrustModel.SHUFFLE
    assert run.plan.exact


def test_exact_noise_is_whole_numbers_of_a_grid() -> None:
    units, public = small()
    training = training_of(method_of(rounds=2), noise="discrete-gaussian")
    plan = training.plan(training.multiplier([12]), [12])
    assert plan.exact
    measures: list[Any] = [measure for step, _ in plan.kinds for measure in step.measures]
    assert all(isinstance(measure.estimator.noise, DiscreteGaussianNoise) for measure in measures)
    rebuilt = msgspec.json.decode(msgspec.json.encode(plan), type=type(plan))
    assert rebuilt == plan
    training.train(training.federation([units], seed=1), np.zeros(D), public=public)
