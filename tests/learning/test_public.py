"""A public sample of records: how it scales features, what is refused of it, and what must be said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from tacit.errors import DataError, ParameterError
from tacit.learning import (
    FeatureMap,
    FederatedLinearRegression,
    FederatedLogisticRegression,
    PreconditionedNoisyGD,
)
from tacit.learning.model import Scaling
from tacit.learning.public import PublicSample
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Neighbours, PrivacyBudget
from tacit.privacy.run_clauses import SAMPLE

LOWER, UPPER = np.array([0.0, -10.0, 5.0]), np.array([1.0, 10.0, 5.0])
BUDGET = PrivacyBudget(1.0, 1e-5)


def sample(X: Any, lower: Array = LOWER, upper: Array = UPPER) -> PublicSample:
    return PublicSample.of(X, lower=lower, upper=upper)


def made(n: int = 400, *, seed: int = 0) -> tuple[Array, Array]:
    """Records far from the middle of their bounds, which are 20 times as wide as what is there."""
    rng = np.random.default_rng(seed)
    X = 8 + 0.5 * rng.normal(size=(n, 2))
    return X, (X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=n) > 0).astype(int)


def model(**changes: Any) -> FederatedLogisticRegression:
    facts: dict[str, Any] = {
        "budget": BUDGET,
        "bounds": (-10, 10),
        "classes": [0, 1],
        "random_state": 0,
        "rounds": 5,
    }
    return FederatedLogisticRegression(**(facts | changes))


# The map


def test_features_are_centred_at_the_means_and_divided_by_the_spreads() -> None:
    X = np.random.default_rng(0).uniform(LOWER, UPPER, (10_000, 3))
    X[:, 1] /= 10
    features = sample(X).features(unit_rows=True)
    assert features.centre == pytest.approx(X.mean(axis=0))
    # What fills its bounds evenly is divided by half their width, as without a sample.
    assert features.scale == pytest.approx([2.0, 1.0, 0.0], rel=0.02)
    rows = features(X)
    assert rows[:, :3] * features.constant / rows[:, 3:] == pytest.approx(
        (X - features.centre) * features.scale, abs=1e-12
    )


@pytest.mark.parametrize(("m", "spread"), [(1, 10 / np.sqrt(2)), (99, 1.0)])
def test_a_column_that_is_constant_in_the_sample_is_scaled_by_its_bounds(m: int, spread: float) -> None:
    features = sample(np.tile([0.5, 3.0, 5.0], (m, 1))).features(unit_rows=True)
    assert 1 / features.scale[1] == pytest.approx(spread)
    assert features(np.array([[0.5, -10.0, 5.0]]))[0, 1] < 0


@given(
    X=arrays(np.float64, (4, 3), elements=st.floats(width=64)),
    public=arrays(np.float64, (3, 3), elements=st.floats(0, 1)),
    unit_rows=st.booleans(),
)
def test_every_row_is_in_the_unit_ball_or_not_a_number(X: Array, public: Array, unit_rows: bool) -> None:
    features = sample(LOWER + public * (UPPER - LOWER)).features(unit_rows=unit_rows)
    norms = np.linalg.norm(features(X), axis=1)
    good = ~np.isnan(X).any(axis=1)
    assert np.all(norms[good] <= 1 + 1e-12)
    assert np.all(norms[good] > 0)
    assert np.isnan(norms[~good]).all()


def test_a_regression_divides_by_the_longest_row_of_the_sample_and_shortens_what_is_longer() -> None:
    X = np.array([[0.9, 0.0, 5.0], [0.7, 2.0, 5.0], [0.8, 1.5, 5.0]])
    features = sample(X).features(unit_rows=False)
    norms = np.linalg.norm(features(X), axis=1)
    assert norms.max() == pytest.approx(1.0, rel=1e-12)
    assert norms.min() < 0.9
    far = features(np.array([[0.0, -10.0, 5.0]]))[0]
    assert np.linalg.norm(far) == pytest.approx(1.0, rel=1e-12)
    assert far[1] / far[0] == pytest.approx(
        (-10 - X[:, 1].mean()) / -0.8 * features.scale[1] / features.scale[0]
    )


def test_pixels_have_one_spread_in_common() -> None:
    X = np.random.default_rng(2).uniform(0, np.linspace(0, 1, 64), (200, 64))
    for bounds, alike in (((np.zeros(64), np.ones(64)), True), ((-np.ones(64), np.ones(64)), False)):
        scale = sample(X, *bounds).features(unit_rows=True).scale
        assert bool(np.ptp(scale) == 0) is alike


def test_the_gram_matrix_is_that_of_the_rows_and_one_in_every_direction() -> None:
    X = np.random.default_rng(1).uniform(LOWER, UPPER, (50, 3))
    features = sample(X).features(unit_rows=True)
    rows = features(X)
    expected = (rows.T @ rows + np.eye(4)) / 50
    gram = sample(X).gram(features)
    assert gram == pytest.approx(expected, rel=1e-12)
    assert np.linalg.eigvalsh(sample(X[:1]).gram(features)).min() > 0


@pytest.mark.parametrize(
    ("means", "spreads", "message"),
    [
        ([0.5, 0.0], None, "means must be 3 numbers within the bounds"),
        ([0.5, 11.0, 5.0], None, "means must be 3 numbers within the bounds"),
        ([0.5, np.nan, 5.0], None, "means must be 3 numbers within the bounds"),
        (None, [1.0, 1.0], "spreads must be 3 finite numbers > 0"),
        (None, [1.0, 0.0, 1.0], "spreads must be 3 finite numbers > 0"),
        (None, [1.0, np.nan, 1.0], "spreads must be 3 finite numbers > 0"),
        (None, [1.0, 1e-9, 1.0], "at least 1e-06 of the bounds"),
        (None, [1.0, np.inf, 1.0], "spreads must be"),
    ],
)
def test_other_means_and_spreads_are_refused(means: Any, spreads: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        FeatureMap(
            lower=LOWER,
            upper=UPPER,
            scaling=Scaling(
                means=tuple(means or [0.5, 0.0, 5.0]), spreads=tuple(spreads or [1.0, 1.0, 1.0]), longest=1.0
            ),
        )


# What is refused


@pytest.mark.parametrize(
    ("public", "message"),
    [
        (np.zeros((0, 2)), r"shape \(m, 2\) with m >= 1, .* got \(0, 2\)"),
        (np.zeros((3, 1)), r"shape \(m, 2\) with m >= 1, .* got \(3, 1\)"),
        (np.zeros(2), r"shape \(m, 2\) with m >= 1, .* got \(2,\)"),
        ([[0.0, np.nan]], "finite numbers, and 'column 1' has others"),
        ([[np.inf, 0.0]], "finite numbers, and 'column 0' has others"),
        ([[0.0, 1.0], [0.0, 11.0]], "'column 1' goes from 1 to 11, with bounds of -10 and 10: another unit"),
        ([["red", "blue"]], "numbers only; encode categories as X does"),
        ("data", "numbers only"),
        ([[0.0, 1.0], [2.0]], "numbers only"),
        (pd.DataFrame({"a": [1.0]}), r"got \(1, 1\)"),
    ],
)
def test_another_sample_is_refused_before_anything_is_spent(public: Any, message: str, tmp_path: Any) -> None:
    X, y = made()
    with Ledger.create(tmp_path / "l", limit=BUDGET, neighbours=Neighbours()) as ledger:
        with pytest.raises(DataError, match=message):
            model(public=public, random_state=None, ledger=ledger).fit(X, y)
        assert ledger.spent().epsilon == 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [(["a", "c"], "lacks 'b'"), (["b", "a"], "has another order"), (["a", "b", "c"], "has 'c'")],
)
def test_a_frame_has_the_columns_of_x_in_their_order(columns: list[str], message: str) -> None:
    X, y = made()
    frame = pd.DataFrame(X, columns=["a", "b"])
    public = pd.DataFrame(np.zeros((5, len(columns))), columns=columns)
    with pytest.raises(DataError, match=f"columns of X in their order, and it {message}"):
        model(public=public).fit(frame, y)
    same = pd.DataFrame(made(seed=1)[0], columns=["a", "b"])
    assert model(public=same).fit(frame, y).model_.features.scaling is not None


def test_the_private_records_are_no_public_sample() -> None:
    X, y = made()
    frame = pd.DataFrame(X)
    for public, private in ((X, X), (X[:5], X), (frame, frame)):
        with pytest.raises(ParameterError, match="public must be other records than X"):
            model(public=public).fit(private, y)
    model(public=X[:100]).fit(X[100:], y[100:])


@pytest.mark.filterwarnings("ignore:the features")
@pytest.mark.parametrize(("bounds", "budget"), [("data", BUDGET), (None, None)])
def test_bounds_are_not_read_off_the_data_beside_a_sample(bounds: Any, budget: Any) -> None:
    X, y = made()
    with pytest.raises(ParameterError, match="bounds must be given with public"):
        model(bounds=bounds, budget=budget, public=made(seed=1)[0]).fit(X, y)


# What it is good for, and what must be said


def test_loose_bounds_are_no_matter_with_a_sample() -> None:
    X, y = made(2000)
    public, test = made(50, seed=1)[0], made(500, seed=2)
    assert model(algorithm="accelerated").fit(X, y).score(*test) < 0.6  # whitening would make up for bounds
    fitted = clone(model(public=public)).fit(X, y)
    assert fitted.score(*test) > 0.9
    assert SAMPLE in fitted.guarantee_.assumptions
    assert SAMPLE not in model().fit(X, y).guarantee_.assumptions


def test_private_records_do_not_move_the_map_and_are_clipped_by_the_bounds() -> None:
    X, y = made()
    public = made(seed=1)[0]
    maps = [model(public=public).fit(records, y).model_.features for records in (X, X + 1.5, 1e9 * X)]
    for one in maps:
        assert np.array_equal(one.centre, maps[0].centre)
        assert np.array_equal(one.scale, maps[0].scale)
    assert np.array_equal(maps[0](np.array([[1e9, 0.0]])), maps[0](np.array([[10.0, 0.0]])))


def test_the_rule_takes_the_gram_matrix_and_no_round_asks_for_one() -> None:
    X, y = made()
    public = made(seed=1)[0]
    for changes in ({}, {"algorithm": "preconditioned"}, {"algorithm": PreconditionedNoisyGD(rounds=5)}):
        facts: dict[str, Any] = {"rounds": "auto"} if "algorithm" in changes else {}
        fitted = model(public=public, **(changes | facts)).fit(X, y)
        assert fitted.trained_.algorithm == "preconditioned"
        ((step, _),) = fitted.trained_.plan.kinds
        assert [measure.statistic for measure in step.measures] == ["gradient"]
    assert model(public=public, algorithm="accelerated").fit(X, y).trained_.algorithm == "accelerated"


def test_directions_that_a_small_sample_does_not_show_are_not_taken_for_flat() -> None:
    """Without noise to damp them, steps in the metric of five records must not run away."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (2000, 30))
    y = (X @ rng.normal(size=30) > 0).astype(int)
    facts: dict[str, Any] = {"bounds": (-1, 1), "budget": None, "algorithm": "preconditioned"}
    fitted = model(public=rng.uniform(-1, 1, (5, 30)), rounds=40, **facts).fit(X, y)
    assert fitted.score(X, y) > 0.95


def test_a_regression_takes_a_sample_too() -> None:
    rng = np.random.default_rng(3)
    X = 8 + 0.5 * rng.normal(size=(500, 2))
    y = X[:, 0] - 8
    facts: dict[str, Any] = {"bounds": (-10, 10), "target_bounds": (-2, 2), "rounds": 20}
    fitted = FederatedLinearRegression(**facts, public=made(seed=1)[0]).fit(X, y)
    assert fitted.score(X, y) > FederatedLinearRegression(**facts).fit(X, y).score(X, y)
