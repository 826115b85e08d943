"""Second moments: coordinates that keep lengths and angles, sums in any order, and what a silo refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Crowd, Measure, Plan, Silo, Statistic, Step
from tacit.learning import Grouped, LinearObjective, Logistic, PerPerson, RecordGradient, Records
from tacit.learning.moments import RecordGram, gram_matrix, gram_size
from tacit.means import AdditiveMean, DiscreteGaussianNoise, Facts, GaussianNoise, LaplaceNoise, Round
from tacit.numerics import NORM_SLACK, row_norms
from tacit.privacy import Gaussian, Neighbours, Relation, TrustModel
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
