"""ERMI against tables worked out by hand: its dual form, bounds on other notions, and bias in batches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import ArrayLike

from tacit.errors import ParameterError
from tacit.fairness import (
    conditional_ermi,
    ermi,
    ermi_bounds,
    ermi_dual_value,
    ermi_optimal_dual,
    joint_table,
    joint_tables,
    plug_in_bias,
)
from tacit.numerics import Array
from tests.fairness.tables import T1, T2, random_joint, records
from tests.statistics import z_bound

SHAPES = [(2, 2), (2, 5), (3, 2), (4, 3)]


def joints() -> list[Array]:
    """Return many joint laws of all shapes."""
    rng = np.random.default_rng(1)
    return [random_joint(rng, m, k) for m, k in SHAPES for _ in range(20)]


@pytest.mark.parametrize(
    ("joint", "divergence", "information", "logarithm", "l1", "values"),
    [
        (T1, 0.1666666667, 0.0863046217, 0.1541506798, 0.4, [0.4082482905]),
        (T2, 0.4565476190, 0.2225886027, 0.3760689910, 0.62, [0.58587734, 0.33659377]),
    ],
)
def test_reference_values(
    joint: Array, divergence: float, information: float, logarithm: float, l1: float, values: list[float]
) -> None:
    bounds = ermi_bounds(joint)
    assert ermi(joint) == bounds.ermi == pytest.approx(divergence, abs=1e-9)
    assert bounds.mutual_information == pytest.approx(information, abs=1e-9)
    assert bounds.log_ermi == pytest.approx(logarithm, abs=1e-9)
    assert bounds.l1 == pytest.approx(l1, abs=1e-12)
    assert bounds.renyi_correlation == pytest.approx(values[0], abs=1e-8)
    # The sum of squared singular values but for the largest, which is 1.
    assert sum(value**2 for value in values) == pytest.approx(divergence, abs=1e-8)


def test_reference_values_of_two_by_two() -> None:
    bounds = ermi_bounds(T1)
    assert bounds.l2 == pytest.approx(0.2, abs=1e-12)
    assert bounds.parity == pytest.approx(0.2, abs=1e-12)  # which is met with equality
    W = ermi_optimal_dual(T1)
    np.testing.assert_allclose(W, [[0.942809, 0.353553], [0.471405, 1.060660]], atol=5e-7)
    assert np.linalg.norm(W) == pytest.approx(1.536591, abs=5e-7)


def test_reference_values_of_three_by_three() -> None:
    bounds = ermi_bounds(T2)
    assert bounds.published_parity == pytest.approx(2.702732, abs=5e-7)
    assert bounds.parity == pytest.approx(0.573336, abs=5e-7)
    W = ermi_optimal_dual(T2)
    expected = [
        [1.126872, 0.563436, 0.211289],
        [0.333333, 1, 0.25],
        [0.263523, 0.263523, 1.185854],
    ]
    np.testing.assert_allclose(W, expected, atol=5e-7)
    assert np.linalg.norm(W) == pytest.approx(2.085832, abs=5e-7)


def test_ermi_is_the_square_of_renyi_correlation_for_two_groups_and_not_that_itself() -> None:
    """The text has them equal for binary variables."""
    bounds = ermi_bounds(T1)
    assert bounds.renyi_correlation**2 == pytest.approx(bounds.ermi, abs=1e-12)
    assert abs(bounds.renyi_correlation - bounds.ermi) > 0.2


def test_dual_form_has_its_largest_value_at_the_stated_point_and_nowhere_else() -> None:
    rng = np.random.default_rng(2)
    for joint in [T1, T2, *joints()]:
        W = ermi_optimal_dual(joint)
        best = ermi_dual_value(joint, W)
        assert best == pytest.approx(ermi(joint), abs=1e-9)
        assert ermi_dual_value(joint, np.zeros_like(W)) == -1
        for _ in range(5):
            step = rng.normal(size=W.shape)
            assert ermi_dual_value(joint, W + 0.1 * step) < best
        m, frequencies = len(joint), joint.sum(axis=0)
        assert (W * np.sqrt(frequencies)[:, None]).max() <= 1 + 1e-12
        assert W.min() >= 0
        assert (np.linalg.norm(W, axis=0) ** 2 <= 1 / frequencies.min() + 1e-9).all()
        assert np.linalg.norm(W) <= np.sqrt(m / frequencies.min()) + 1e-9


def test_bounds_hold_for_every_law() -> None:
    for joint in [T1, T2, *joints()]:
        bounds = ermi_bounds(joint)
        classes, groups = joint.sum(axis=1), joint.sum(axis=0)
        m, k = joint.shape
        assert 0 <= bounds.ermi <= min(m, k) - 1 + 1e-9
        assert 0 <= bounds.mutual_information <= bounds.log_ermi + 1e-12
        assert bounds.log_ermi <= bounds.ermi
        assert bounds.renyi_correlation**2 <= bounds.ermi + 1e-12
        assert bounds.ermi <= (min(m, k) - 1) * bounds.renyi_correlation**2 + 1e-9
        assert bounds.l2 <= bounds.l1 <= np.sqrt(bounds.ermi) + 1e-12
        true = np.abs(joint / groups - classes[:, None]).max()
        assert true <= bounds.parity + 1e-12
        assert bounds.parity <= bounds.published_parity + 1e-12
        if m == k == 2:
            assert true == pytest.approx(bounds.parity, abs=1e-9)


def test_independent_laws_have_none_and_determined_ones_the_most() -> None:
    independent = np.outer([0.2, 0.3, 0.5], [0.6, 0.4])
    assert ermi(independent) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(
        ermi_optimal_dual(independent), np.sqrt([0.6, 0.4])[:, None] * np.ones(3), atol=1e-12
    )
    assert ermi(np.eye(4) / 4) == pytest.approx(3)
    assert ermi([[0.5, 0.5]]) == 0  # a single class
    assert ermi([[0.3], [0.7]]) == 0  # a single group
    assert ermi_bounds([[0.3], [0.7]]).renyi_correlation == 0


def test_classes_and_groups_that_do_not_occur_add_nothing() -> None:
    wide = np.zeros((4, 3))
    wide[np.ix_([0, 2], [0, 2])] = T1
    assert ermi(wide) == pytest.approx(ermi(T1), abs=1e-12)
    W = ermi_optimal_dual(wide)
    assert np.isfinite(W).all()
    np.testing.assert_allclose(W[np.ix_([0, 2], [0, 2])], ermi_optimal_dual(T1))
    assert not W[1].any()
    assert not W[:, [1, 3]].any()
    assert ermi_bounds(wide).published_parity == ermi_bounds(T1).published_parity


def test_codes_of_groups_and_classes_are_names_only() -> None:
    assert ermi(T2[[2, 0, 1]][:, [1, 2, 0]]) == pytest.approx(ermi(T2), abs=1e-12)
    np.testing.assert_allclose(ermi_optimal_dual(T2[:, [1, 2, 0]]), ermi_optimal_dual(T2)[[1, 2, 0]])
    assert ermi(T2.T) == pytest.approx(ermi(T2), abs=1e-12)


def test_conditional_ermi_is_a_mean_over_conditions() -> None:
    pair = np.stack([T1, np.outer([0.5, 0.5], [0.5, 0.5])])
    assert conditional_ermi(pair, [1, 3]) == pytest.approx(ermi(T1) / 4)
    assert conditional_ermi(pair, [1, 3], weights="uniform") == pytest.approx(ermi(T1) / 2)
    nothing = np.stack([T1, np.zeros((2, 2))])  # a condition that never occurs has no law
    assert conditional_ermi(nothing, [5, 0]) == pytest.approx(ermi(T1))
    assert conditional_ermi(nothing, [5, 0], weights="uniform") == pytest.approx(ermi(T1))


def test_tables_are_counted() -> None:
    classes, groups = records(T2)
    F = np.eye(3)[classes]
    np.testing.assert_allclose(joint_table(F, groups, 3), T2, atol=1e-12)
    rng = np.random.default_rng(3)
    soft, codes, where = rng.dirichlet(np.ones(3), 50), rng.integers(-1, 4, 50), rng.integers(-1, 2, 50)
    expected = np.zeros((2, 3, 4))
    for row, r, z in zip(soft, codes, where, strict=True):
        if r >= 0 and z >= 0:
            expected[z, :, r] += row
    expected /= expected.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(joint_tables(soft, codes, 4, where, 2), expected, atol=1e-12)
    assert not joint_tables(soft, np.full(50, -1), 4, where, 2).any()


def expected_plug_in(batch: int, p: float, q: float) -> float:
    """Return the mean ERMI of a batch, given that all margins occur: all tables of two classes and groups."""
    total = weight = 0.0
    for table in itertools.product(range(batch + 1), repeat=3):
        left = batch - sum(table)
        if left < 0:
            continue
        counts = np.array([*table, left]).reshape(2, 2)
        if not (counts.sum(axis=0).all() and counts.sum(axis=1).all()):
            continue
        cells = np.outer([p, 1 - p], [q, 1 - q])
        chance = np.exp(
            sum(np.log(np.arange(1, batch + 1)))
            - sum(np.log(np.arange(1, count + 1)).sum() for count in counts.ravel())
            + (counts * np.log(cells)).sum()
        )
        total, weight = total + chance * ermi(counts / batch), weight + chance
    return total / weight


@pytest.mark.parametrize(("batch", "p", "q"), [(2, 0.5, 0.5), (5, 0.3, 0.6), (8, 0.25, 0.33)])
def test_bias_of_a_batch_is_exact_by_enumeration(batch: int, p: float, q: float) -> None:
    assert plug_in_bias(2, 2, batch) == pytest.approx(expected_plug_in(batch, p, q), rel=1e-9)


def test_bias_of_a_batch_simulated_with_more_classes_and_groups() -> None:
    """Margins all occur, but for a chance below 1e-9 in all runs together."""
    assert plug_in_bias(2, 2, 64) == pytest.approx(0.0158730, abs=5e-8)
    assert plug_in_bias(2, 2, 8) == pytest.approx(0.142857, abs=5e-7)
    rng = np.random.default_rng(5)
    runs = 3000
    counts = rng.multinomial(256, np.outer([0.2, 0.3, 0.5], [0.4, 0.6]).ravel(), size=runs).reshape(-1, 3, 2)
    found = np.array([ermi(table / 256) for table in counts])
    tolerance = z_bound(1) * found.std(ddof=1) / np.sqrt(runs)
    expected = plug_in_bias(3, 2, 256)
    assert tolerance < expected / 5
    assert abs(found.mean() - expected) < tolerance


def test_one_record_has_no_signal() -> None:
    assert plug_in_bias(2, 2, 1) == 0
    for j, r in itertools.product(range(2), repeat=2):
        one = np.zeros((2, 2))
        one[j, r] = 1
        assert ermi(one) == 0


@pytest.mark.parametrize(
    "joint", [[0.5, 0.5], [[0.5, 0.6]], [[1.5, -0.5]], [[np.nan, 1.0]], np.zeros((2, 2)), np.zeros((0, 2))]
)
def test_what_is_no_joint_law_is_refused(joint: ArrayLike) -> None:
    for function in (ermi, ermi_bounds, ermi_optimal_dual):
        with pytest.raises(ParameterError, match="joint must be shares >= 0"):
            function(joint)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"W must have shape \(k, m\) = \(3, 2\), got \(2, 3\)"):
        ermi_dual_value(np.full((2, 3), 1 / 6), np.zeros((2, 3)))
    with pytest.raises(ParameterError, match=r"joints must have shape \(z, m, k\) and shares"):
        conditional_ermi(T1, [1.0])
    for shares in ([1.0], [0.0, 0.0], [1.0, -0.5], [np.nan, 1.0]):
        with pytest.raises(ParameterError, match="joints must have shape"):
            conditional_ermi(np.stack([T1, T1]), shares)
    with pytest.raises(ParameterError, match="weights must be one of frequency, uniform"):
        conditional_ermi(T1[None], [1.0], weights="equal")
    for classes, groups, batch in ((0, 2, 2), (2, 0, 2), (2, 2, 0)):
        with pytest.raises(ParameterError, match=r">= 1"):
            plug_in_bias(classes, groups, batch)
