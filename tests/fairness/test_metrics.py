"""Violations of notions: oracles, relations between measures, empty and small cells, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import DataError, ParameterError, UnknownNameError
from tacit.fairness import (
    Fairness,
    Groups,
    equal_opportunity_violation,
    equalized_odds_violation,
    group_rates,
    parity_violation,
    violation,
)
from tacit.numerics import Array
from tests.fairness.tables import T1, T2, records


@pytest.mark.parametrize(("joint", "linf", "gap"), [(T1, 0.2, 0.4), (T2, 0.35, 0.607142857)])
def test_reference_values(joint: Array, linf: float, gap: float) -> None:
    predictions, groups = records(joint)
    soft: dict[str, Any] = {"classes": range(len(joint))}
    for said, how in ((predictions, {}), (np.eye(len(joint))[predictions], soft)):
        assert parity_violation(said, groups, measure="linf", **how) == pytest.approx(linf, abs=1e-9)
        assert parity_violation(said, groups, **how) == pytest.approx(gap, abs=1e-9)
    rates = group_rates(predictions, groups)
    np.testing.assert_allclose(rates.rates[0], joint / joint.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(rates.overall[0], joint.sum(axis=1), atol=1e-12)
    assert rates.counts.tolist() == [(20 * joint.sum(axis=0)).round().astype(int).tolist()]
    assert (rates.conditions, rates.groups) == ((None,), tuple(range(joint.shape[1])))


def random_records(rng: np.random.Generator, m: int, k: int, n: int = 200) -> tuple[Array, Array, Array]:
    """Return labels, predictions and groups."""
    groups = rng.integers(0, k, n)
    labels = (rng.integers(0, m, n) + groups * rng.integers(0, 2, n)) % m
    return labels, np.where(rng.random(n) < 0.5, labels, rng.integers(0, m, n)), groups


def plainly(
    labels: Array, said: Array, groups: Array, wanted: list[int], measure: str, aggregate: str
) -> float:
    """Return a violation as it is defined, by loops over labels, classes and groups."""
    each, weights = [], []
    for label in wanted:
        inside = labels == label
        worst = 0.0
        for j in np.unique(np.concatenate([said, labels])):
            rates = [np.mean(said[inside & (groups == r)] == j) for r in np.unique(groups[inside])]
            overall = np.mean(said[inside] == j)
            apart = (
                max(rates) - min(rates) if measure == "gap" else max(abs(rate - overall) for rate in rates)
            )
            worst = max(worst, float(apart))
        each.append(worst)
        weights.append(inside.sum())
    return max(each) if aggregate == "max" else float(np.average(each, weights=weights))


@pytest.mark.parametrize("measure", ["gap", "linf"])
@pytest.mark.parametrize("aggregate", ["max", "mean"])
def test_violations_are_as_defined(measure: str, aggregate: str) -> None:
    rng = np.random.default_rng(0)
    for m, k in ((2, 2), (3, 2), (2, 4), (4, 3)):
        labels, said, groups = random_records(rng, m, k)
        how: dict[str, Any] = {"measure": measure, "aggregate": aggregate}
        everybody = np.zeros_like(labels)
        found = parity_violation(said, groups, **how)
        # One condition that holds for everybody: classes are those of the predictions.
        assert found == pytest.approx(plainly(everybody, said, groups, [0], measure, aggregate), abs=1e-12)
        odds = equalized_odds_violation(labels, said, groups, **how)
        assert odds == pytest.approx(
            plainly(labels, said, groups, list(range(m)), measure, aggregate), abs=1e-12
        )
        chance = equal_opportunity_violation(labels, said, groups, advantaged=[1, 0], **how)
        assert chance == pytest.approx(plainly(labels, said, groups, [1, 0], measure, aggregate), abs=1e-12)
        assert min(found, odds, chance) > 1e-3


def test_measures_are_within_a_factor_of_two() -> None:
    rng = np.random.default_rng(1)
    for m, k in ((2, 2), (3, 2), (3, 5)):
        for _ in range(20):
            labels, said, groups = random_records(rng, m, k)
            rates = group_rates(said, groups, labels=labels, fairness="equalized-odds")
            for aggregate in ("max", "mean"):
                gap, linf = rates.gap(aggregate), rates.linf(aggregate)
                assert linf <= gap + 1e-12
                assert gap <= 2 * linf + 1e-12
            assert rates.gap("mean") <= rates.gap()
            if k == 2:
                parity = group_rates(said, groups)
                larger = parity.counts.max() / parity.counts.sum()
                assert parity.linf() == pytest.approx(larger * parity.gap(), abs=1e-12)


def test_equal_opportunity_of_two_classes_is_the_gap_of_true_positive_rates() -> None:
    labels = np.array([1, 1, 1, 1, 0, 0])
    said = np.array([1, 0, 1, 1, 0, 1])
    groups = ["a", "a", "b", "b", "a", "b"]
    assert equal_opportunity_violation(labels, said, groups) == pytest.approx(0.5)
    assert equal_opportunity_violation(labels, said, groups, advantaged=[0]) == 1
    assert equalized_odds_violation(labels, said, groups) == 1
    assert equalized_odds_violation(labels, said, groups, aggregate="mean") == pytest.approx(
        (4 * 0.5 + 2) / 6
    )
    same = violation(said, groups, labels=labels, fairness=Fairness.EQUAL_OPPORTUNITY)
    assert same == equal_opportunity_violation(labels, said, groups)


def test_soft_predictions_differ_from_hard_ones() -> None:
    """Everybody is refused, but not with the same probability."""
    F = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    groups = ["a", "a", "b", "b"]
    assert parity_violation(F, groups, classes=["no", "yes"]) == pytest.approx(0.3)
    assert parity_violation(np.array(["no"] * 4), groups, classes=["no", "yes"]) == 0


def test_names_of_groups_and_classes_do_not_matter() -> None:
    labels, said, groups = random_records(np.random.default_rng(2), 3, 3)
    words = np.array(["z", "x", "y"])
    for notion in (Fairness.DEMOGRAPHIC_PARITY, Fairness.EQUALIZED_ODDS):
        plain = violation(said, groups, labels=labels, fairness=notion)
        renamed = violation(words[said], words[groups], labels=words[labels], fairness=notion)
        assert renamed == pytest.approx(plain, abs=1e-12)


def test_empty_cells_are_left_out_and_named() -> None:
    labels, said = np.array([1, 1, 1, 0]), np.array([1, 1, 0, 1])
    groups = ["a", "a", "b", "a"]
    rates = group_rates(said, groups, labels=labels, fairness="equalized-odds")
    assert rates.empty == [(0, "b")]
    assert np.isnan(rates.rates[0, :, 1]).all()
    assert rates.gap() == pytest.approx(1.0)
    assert rates.small() == [(0, "a"), (1, "a"), (1, "b")]
    assert rates.small(2) == [(0, "a"), (1, "b")]
    with pytest.raises(ParameterError, match="min_count"):
        rates.small(0)
    # A declared group and a class of which there is nobody add nothing.
    more = group_rates(
        said,
        Groups.of(groups, names=["a", "b", "c"]),
        labels=labels,
        classes=[0, 1, 2],
        fairness="equalized-odds",
    )
    assert more.gap() == rates.gap()
    assert more.gap("mean") == pytest.approx(rates.gap("mean"))
    assert more.linf() == rates.linf()
    assert (2, "c") in more.empty


def test_one_group_alone_violates_nothing() -> None:
    assert (
        parity_violation([0, 1, 1], ["a"] * 3) == parity_violation([0, 1, 1], ["a"] * 3, measure="linf") == 0
    )


def test_records_of_unknown_groups_are_left_out() -> None:
    _labels, said, groups = random_records(np.random.default_rng(3), 2, 2)
    hidden = np.where(np.arange(200) % 4 == 0, np.nan, groups)
    kept = np.arange(200) % 4 > 0
    for measure in ("gap", "linf"):
        found = parity_violation(said, Groups.of(hidden, missing=True), measure=measure)
        assert found == pytest.approx(parity_violation(said[kept], groups[kept], measure=measure), abs=1e-12)
    with pytest.raises(DataError, match="records without a value"):
        parity_violation(said, hidden)


def test_what_makes_no_sense_is_refused() -> None:
    good: dict[str, Any] = {"sensitive_features": ["a", "b"]}
    for notion in ("equalized-odds", "equal-opportunity"):
        with pytest.raises(ParameterError, match=f"labels must be given: {notion} is about records"):
            violation([0, 1], fairness=notion, **good)
    with pytest.raises(UnknownNameError, match="fairness must be one of"):
        violation([0, 1], fairness="parity", **good)
    with pytest.raises(UnknownNameError, match="measure must be one of gap, linf"):
        violation([0, 1], measure="ratio", **good)
    with pytest.raises(UnknownNameError, match="aggregate must be one of max, mean"):
        violation([0, 1], aggregate="sum", **good)
    with pytest.raises(DataError, match=r"predictions must have one entry per record \(2\)"):
        violation([0, 1, 1], **good)
    with pytest.raises(DataError, match=r"labels must have one entry per record \(2\)"):
        violation([0, 1], labels=[0], fairness="equalized-odds", **good)
    with pytest.raises(DataError, match=r"labels must have one entry per record \(2\), got shape \(2, 1\)"):
        violation([0, 1], labels=[[0], [1]], fairness="equalized-odds", **good)
    with pytest.raises(DataError, match="labels must be among the 2 classes; some are not"):
        violation([0, 1], labels=[0, 2], classes=[0, 1], fairness="equalized-odds", **good)
    with pytest.raises(DataError, match="predictions must be among the 2 classes; some are not"):
        violation([0, 2], classes=[0, 1], **good)
    with pytest.raises(DataError, match="labels must be among"):
        violation([0.0, 1.0], labels=[0.0, np.nan], fairness="equalized-odds", **good)
    with pytest.raises(ParameterError, match="classes must be given with soft predictions"):
        violation(np.full((2, 2), 0.5), **good)
    for classes in ([], [0, 0], [[0, 1]]):
        with pytest.raises(ParameterError, match="classes must be a list of labels, each once"):
            violation([0, 1], classes=classes, **good)
    for F in (
        np.full((2, 2), 0.6),
        np.array([[1.5, -0.5]] * 2),
        np.full((2, 2), np.nan),
        np.full((2, 3), 1 / 3),
    ):
        with pytest.raises(
            DataError, match="soft predictions must be probabilities of 2 classes in each row"
        ):
            violation(F, classes=[0, 1], **good)
    with pytest.raises(DataError, match="predictions must have one entry per record"):
        violation(np.zeros((2, 2, 2)), classes=[0, 1], **good)
    with pytest.raises(DataError, match="no record has a known group and a label"):
        violation([0, 1], labels=[0, 0], fairness="equal-opportunity", **good)
    with pytest.raises(DataError, match="sensitive_features is continuous"):
        violation([0, 1], sensitive_features=[0.5, 0.7])
