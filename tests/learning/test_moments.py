"""Second moments: coordinates that keep lengths and angles, sums in any order, and what a silo refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import (
    Crowd,
    Fixed,
    Full,
    Group,
    Measure,
    Plan,
    Query,
    Silo,
    Statistic,
    Step,
    open_answer,
)
from tacit.learning import Grouped, LinearObjective, Logistic, Multinomial, PerPerson, RecordGradient, Records
from tacit.learning.moments import LevelGradient, LevelGram, RecordGram, gram_matrix, gram_size
from tacit.means import AdditiveMean, DiscreteGaussianNoise, Facts, GaussianNoise, LaplaceNoise, Round
from tacit.numerics import NORM_SLACK, row_norms
from tacit.privacy import (
    Aligned,
    Gaussian,
    Neighbours,
    NonPrivate,
    Relation,
    Repeat,
    TrustModel,
    squared_level,
)
from tacit.randomness import simulated

OBJECTIVE = LinearObjective(loss=Logistic(), features=3, feature_norm=1.0)
GRAM = RecordGram(OBJECTIVE)


def records(n: int = 40, d: int = 3, *, seed: int = 0, longer: float = 1.0) -> Records:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return Records.of(longer * X / row_norms(X)[:, None], rng.integers(0, 2, n).astype(float))


def test_coordinates_keep_lengths_and_angles() -> None:
    units = records()
    rows = GRAM(units, {})
    assert rows.shape == (40, gram_size(3)) == (40, 6)
    assert rows @ rows.T == pytest.approx((units.X @ units.X.T) ** 2)
    assert gram_matrix(rows.sum(axis=0), 3) == pytest.approx(units.X.T @ units.X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("radius", [1.0, 0.3])
def test_the_sum_is_that_of_the_clipped_rows_in_any_order(dtype: Any, radius: float) -> None:
    units = records(2500, longer=1.3)
    units = Records.of(units.X.astype(dtype), units.y)
    rows = GRAM(units, {})
    clipped = rows * np.minimum(1, radius / row_norms(rows))[:, None]
    total = GRAM.clipped_sum(units, {}, radius)
    assert total.dtype == np.float64
    assert total == pytest.approx(clipped.sum(axis=0), rel=1e-5 if dtype is np.float32 else 1e-12)
    shuffled = units.take(np.random.default_rng(1).permutation(2500))
    assert GRAM.clipped_sum(shuffled, {}, radius) == pytest.approx(total, rel=1e-12)


def test_bad_records_count_as_zero() -> None:
    units = Records.of(np.array([[1.0, np.nan, 0.0], [0.0, 0.6, 0.8]]), np.zeros(2))
    assert gram_matrix(GRAM.clipped_sum(units, {}, 1.0), 3) == pytest.approx(
        np.outer([0.0, 0.6, 0.8], [0.0, 0.6, 0.8])
    )


def test_a_matrix_that_would_fill_the_memory_is_refused_before_it_is_made() -> None:
    wide = Records.of(np.zeros((1, 100_000)), np.zeros(1))
    with pytest.raises(ParameterError, match="at most 2000 features, got 100000"):
        GRAM(wide, {})
    with pytest.raises(ParameterError, match="at most 2000 features, got 100000"):
        GRAM.clipped_sum(wide.take(np.arange(0)), {}, 1.0)


# What one unit moves


def acute(**changes: Any) -> AdditiveMean:
    fields: dict[str, Any] = {"dim": 6, "noise": GaussianNoise(2.0), "on_violation": "clip", "acute": True}
    return AdditiveMean(**(fields | changes))


def test_replacing_a_record_moves_the_sum_by_the_root_of_two_radii_at_most() -> None:
    rows = GRAM(records(400, longer=1.0), {})
    apart = max(float(row_norms(rows - row).max()) for row in rows)
    assert acute().moved == pytest.approx(math.sqrt(2))
    assert 0.99 * acute().moved < apart <= acute().moved
    # Right angles reach it, and means over a person's records stay within it.
    corners = Records.of(np.eye(3), np.zeros(3))
    first, second, _ = GRAM(corners, {})
    assert np.linalg.norm(first - second) == pytest.approx(math.sqrt(2))
    persons = PerPerson(GRAM)(Grouped.of(records(200), np.repeat(np.arange(40), 5)), {})
    assert (persons @ persons.T).min() >= 0


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("noise", [GaussianNoise(2.0), DiscreteGaussianNoise(2.0)])
def test_noise_is_that_much_and_priced_by_its_multiplier(relation: Relation, noise: Any) -> None:
    mean, facts = acute(dim=4000, noise=noise, neighbours=Neighbours(relation)), Round(n=5, radius=0.7)
    moved = math.sqrt(2) if relation is Relation.REPLACE_ONE else 1.0
    (message,) = mean.encode_sum(np.zeros(4000), rows=5, round=facts, party=0, rng=simulated(1))
    drawn = mean.decode([message], facts)
    assert drawn.std() * 5 == pytest.approx(2.0 * moved * 0.7, rel=0.06)  # five standard errors
    assert mean.error(5, Facts(parties=1)).variance == pytest.approx(4000 * (2.0 * moved / 5) ** 2, rel=1e-3)
    if isinstance(noise, GaussianNoise):
        assert mean.event(5, TrustModel.LOCAL) == Gaussian(2.0, Neighbours(relation))
    else:
        law: Any = mean.event(5, TrustModel.LOCAL)
        assert law.std / law.sensitivity == pytest.approx(2.0, rel=2e-3)  # rounding to the grid
        assert law.sensitivity >= moved * noise.steps * (1 + NORM_SLACK)


def test_angles_say_nothing_of_an_l1_ball() -> None:
    with pytest.raises(ParameterError, match="acute rows need noise for rows in an L2 ball"):
        acute(noise=LaplaceNoise(1.0))


def plan(statistic: str, mean: AdditiveMean) -> Plan:
    return Plan(
        steps=((Step(measures=(Measure(statistic=statistic, estimator=mean, max_radius=1.0),)), 1),),
        parties=1,
        delta=1e-5,
    )


def test_a_price_that_rests_on_angles_needs_a_statistic_that_has_them() -> None:
    """A hostile server would have gradients priced as if no two of them pointed in opposite directions."""
    gradient = RecordGradient(OBJECTIVE)
    known: dict[str, Statistic] = {"gram": GRAM, "gradient": gradient, "mean gram": PerPerson(GRAM)}
    silo = Silo(records(), known, rng=simulated(1))
    assert silo.consider(plan("gram", acute())).epsilon < 3
    said = "acute mean needs a statistic of whose rows no two .* and 'gradient' is not"
    with pytest.raises(ParameterError, match=said):
        silo.accept(plan("gradient", acute(dim=3)))
    crowd = Crowd(records(), {"gradient": gradient}, clients=4, rng=simulated(1))
    with pytest.raises(ParameterError, match=said):
        crowd.open(
            plan("gradient", acute(dim=3)), run="run", participation=None, weights="records", budget=None
        )
    silo.consider(plan("gradient", acute(dim=3, acute=False)))
    assert silo.consider(plan("mean gram", acute())).epsilon < 3


# Several rounds about the same vectors

LEVEL: dict[str, Statistic] = {
    "gram": LevelGram(OBJECTIVE),
    "gradient": LevelGradient(OBJECTIVE),
    "gradient of another length": LevelGradient(replace(OBJECTIVE, feature_norm=2.0)),
    "plain gram": GRAM,
    "plain gradient": RecordGradient(OBJECTIVE),
    "gram of persons": PerPerson(LevelGram(OBJECTIVE)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outputs", [1, 3])
def test_one_feature_more_makes_all_vectors_of_one_length(dtype: Any, outputs: int) -> None:
    loss = Logistic() if outputs == 1 else Multinomial()
    goal = LinearObjective(loss=loss, features=3, outputs=outputs, feature_norm=2.0)
    short = records(60, longer=1.7)
    X = (short.X * np.linspace(0, 1.5, 60)[:, None]).astype(dtype)  # some longer than 2
    units = Records.of(X, np.arange(60) % max(outputs, 2))
    level, w = units.of_length(2.0), np.random.default_rng(4).normal(size=goal.size)
    assert level is units.of_length(2.0)
    assert level.norms == pytest.approx(np.full(60, 2.0), rel=1e-6)
    rows = LevelGradient(goal)(units, {"w": w})
    inside = row_norms(X) < 2.0
    expected = RecordGradient(goal)(units, {"w": w})
    assert rows[inside, :-outputs] == pytest.approx(expected[inside], rel=1e-4, abs=1e-6)
    # Every row is x p^T of the very x whose matrix is asked for.
    p = np.einsum("nd,ndk->nk", level.X, rows.reshape(60, 4, outputs)) / 4.0
    assert rows == pytest.approx(np.einsum("nd,nk->ndk", level.X, p).reshape(60, -1), rel=1e-6, abs=1e-6)
    assert gram_matrix(LevelGram(goal)(units, {}).sum(axis=0), 4) == pytest.approx(
        level.X.T.astype(float) @ level.X, rel=1e-5
    )
    for statistic, radius in ((LevelGradient(goal), 0.4), (LevelGram(goal), 4.0), (LevelGram(goal), 1.0)):
        each = statistic(units, {"w": w})
        clipped = each * np.minimum(1, radius / np.maximum(row_norms(each), 1e-300))[:, None]
        total = statistic.clipped_sum(units, {"w": w}, radius, np.float64)
        assert total == pytest.approx(clipped.sum(axis=0), rel=1e-5, abs=1e-6)
    # However short x is, p is no longer than the radius over the length.
    steep = Records.of(np.array([[1e-3, 0.0, 0.0]], dtype=dtype), np.zeros(1))
    far = np.full(goal.size, 1e6)
    assert (
        row_norms(LevelGradient(goal).clipped_sum(steep, {"w": far}, 0.4, np.float64)[None, :3])[0]
        <= 2e-4 * 2
    )


def together(
    square: str = "gram",
    row: str = "gradient",
    *,
    noise: Any = GaussianNoise(2.0),  # noqa: B008 - frozen
    radius: float = 1.0,
    batch: Any = Full(),  # noqa: B008 - frozen
    rounds: int = 3,
    turns: int = 1,
    **changes: Any,
) -> Plan:
    first = Measure(statistic=square, estimator=acute(dim=10, noise=noise, **changes), max_radius=radius)
    other = acute(dim=4, noise=noise, **({**changes, "acute": False}))
    second = Measure(statistic=row, estimator=other, max_radius=0.6)
    steps = (Step(measures=(first,)), 1), (Step(measures=(second,), batch=batch), rounds)
    trust = changes.get("trust", TrustModel.LOCAL)
    return Plan(steps=((Group(steps=steps, aligned=True), turns),), parties=1, trust=trust, delta=1e-5)


def test_a_plan_says_that_rounds_are_about_the_same_vectors_and_is_priced_so() -> None:
    whole = together(turns=2)
    event = whole.event([40], TrustModel.LOCAL)
    assert event == Repeat(Aligned(Gaussian(2.0), Repeat(Gaussian(2.0), 3)), 2)
    assert Plan.from_toml(whole.to_toml()) == whole
    silo = Silo(records(), LEVEL, rng=simulated(1))
    alone = replace_group(whole)
    assert silo.consider(whole).epsilon < silo.consider(alone).epsilon
    silo.accept(whole)
    w = {"w": np.zeros(3)}
    sizes = [
        len(open_answer(silo.answer(Query(k, w, (1.0 if k % 4 == 0 else 0.6,))), party=0)[0][0].payload)
        for k in range(8)
    ]
    assert sizes == [10, 4, 4, 4] * 2
    central = together(noise=DiscreteGaussianNoise(2.0), trust=TrustModel.CENTRAL)
    assert isinstance(central.event([40, 50], TrustModel.CENTRAL), Aligned)
    assert central.event([40], TrustModel.LOCAL) == NonPrivate()


def replace_group(whole: Plan) -> Plan:
    """The same plan, every round by itself."""
    ((group, turns),) = whole.steps
    assert isinstance(group, Group)
    return msgspec.structs.replace(whole, steps=((msgspec.structs.replace(group, aligned=False), turns),))


@pytest.mark.parametrize("steps", [64, 2**16])
def test_rounding_to_a_grid_moves_all_rounds_by_so_much_more(steps: int) -> None:
    event: Any = together(noise=DiscreteGaussianNoise(2.0, steps=steps)).event([40], TrustModel.LOCAL)
    squares, rows = event.squares, event.rows.part
    by = [
        (squares.sensitivity - math.sqrt(2) * steps) / squares.std,
        (rows.sensitivity - 2 * steps) / rows.std,
    ]
    assert event.rounding == pytest.approx(math.sqrt(by[0] ** 2 + 3 * by[1] ** 2), rel=1e-2)
    a, b = 1 / 8, 3 / 16  # without rounding: both multipliers are 2
    least = math.sqrt(2 * a + 2 * b + b * b / (2 * a))
    # What rounding adds lies between nothing and the sum of all of it, in levels and by itself.
    inflated = math.sqrt(squared_level(squares) + squared_level(event.rows))
    assert least + event.rounding <= event.mu <= inflated + event.rounding
    assert event.mu == pytest.approx(least, rel=0.2 if steps == 64 else 2e-4)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: together(square="plain gram"), "'plain gram' is not x x"),
        (lambda: together(row="plain gradient"), "'plain gradient' is not x p"),
        (lambda: together(square="gram of persons"), "'gram of persons' is not x x"),
        (lambda: together(row="gram"), "'gram' is not x p"),
        (lambda: together(row="gradient of another length"), "of the same x"),
        (lambda: together(radius=1.5), r"at most the squared length of all x, 1\.0, got 1\.5"),
    ],
)
def test_a_silo_holds_aligned_groups_against_its_own_statistics(asked: Any, said: str) -> None:
    """A server that had persons, or short rows with long slopes, priced so would pay too little."""
    silo = Silo(records(), LEVEL, rng=simulated(1))
    with pytest.raises(ParameterError, match=said):
        silo.accept(asked())
    crowd = Crowd(records(), LEVEL, clients=4, rng=simulated(1))
    with pytest.raises(ParameterError, match=said):
        crowd.open(asked())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: together(batch=Fixed(size=5)), "needs means of full batches: samples hold other units"),
        (
            lambda: together(noise=DiscreteGaussianNoise(0.5, steps=2)).event([40], TrustModel.LOCAL),
            "fine grid",
        ),
        (
            lambda: together(neighbours=Neighbours(Relation.ZERO_OUT)).event([40], TrustModel.LOCAL),
            "needs replace-one neighbours",
        ),
        (
            lambda: Group(
                steps=((Step(measures=(Measure(statistic="gram", estimator=acute(), max_radius=1.0),)), 1),),
                aligned=True,
            ),
            "acute means of them and others",
        ),
    ],
)
def test_groups_without_a_joint_price_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        make()
