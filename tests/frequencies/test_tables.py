"""Tables of several columns: consistency, prices, intervals and what is chosen."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.frequencies import TablesQuery, consistent_tables, estimate_tables, places_in_table
from tacit.privacy import (
    Compose,
    DiscreteLaplace,
    Parallel,
    PrivacyBudget,
    PureDP,
    Shuffled,
    TrustModel,
    epsilon_of,
)
from tacit.randomness import secure, simulated
from tests.statistics import FALSE_ALARM, z_bound

LOCAL, SHUFFLE, CENTRAL = TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL
SIZES = (2, 3, 4)
PAIRS = tuple(itertools.combinations(range(3), 2))


def rows_of(n: int) -> np.ndarray[Any, Any]:
    k = np.arange(n)
    return np.stack([k % 2, (k // 3) % 3, np.where(k % 2 == 0, 0, k % 4)], axis=1)


def truth(rows: np.ndarray[Any, Any], columns: tuple[int, ...]) -> np.ndarray[Any, Any]:
    shape = [SIZES[column] for column in columns]
    cells = np.bincount(places_in_table(rows, SIZES, columns), minlength=math.prod(shape))
    return cells.reshape(shape) / len(rows)


def test_consistent_tables_are_the_least_squares() -> None:
    rng = np.random.default_rng(1)
    tables = ((0, 1), (0, 2), (1, 2), (2,), (0, 1, 2))
    shapes = [tuple(SIZES[column] for column in columns) for columns in tables]
    estimates = [rng.normal(size=shape) for shape in shapes]
    variances = [0.3, 2.0, 1.0, 0.1, 5.0]
    found = consistent_tables(SIZES, tables, estimates, variances)
    # Oracle: a joint table of 24 cells, of sum 1, whose marginals are nearest.
    joint = np.eye(24).reshape(24, *SIZES)
    design = np.concatenate(
        [
            joint.sum(axis=tuple(1 + a for a in range(3) if a not in columns)).reshape(24, -1).T
            / math.sqrt(variance)
            for columns, variance in zip(tables, variances, strict=True)
        ]
    )
    target = np.concatenate([one.ravel() / math.sqrt(v) for one, v in zip(estimates, variances, strict=True)])
    free = np.concatenate([np.eye(23), -np.ones((1, 23))])
    base = np.zeros(24)
    base[-1] = 1.0
    solved = base + free @ np.linalg.lstsq(design @ free, target - design @ base, rcond=None)[0]
    whole = solved.reshape(SIZES)
    for columns, one in zip(tables, found, strict=True):
        away = tuple(axis for axis in range(3) if axis not in columns)
        assert one == pytest.approx(whole.sum(axis=away), abs=1e-9)
    # Consistent tables stay as they are.
    again = consistent_tables(SIZES, tables, found, [1.0] * 5)
    for one, same in zip(found, again, strict=True):
        assert same == pytest.approx(one, abs=1e-12)
    with pytest.raises(ParameterError, match="estimates must be arrays of shapes"):
        consistent_tables(SIZES, tables[:1], estimates[1:2], [1.0])


def test_prices_are_those_of_all_messages() -> None:
    dealt = TablesQuery.calibrated(sizes=SIZES, n=9001, budget=PrivacyBudget(1.0), kind="pairs", dealt=True)
    assert isinstance(dealt.price.event, Parallel)
    assert all(isinstance(part, PureDP) for part in dealt.price.event.parts)
    assert [query.n for query in dealt.queries] == [3001, 3000, 3000]
    assert "dealt to disjoint parts" in str(dealt.price)
    split = TablesQuery.calibrated(
        sizes=SIZES, n=9001, budget=PrivacyBudget(1.0), kind="singles", dealt=False
    )
    assert isinstance(split.price.event, Compose)
    assert 1 - 1e-9 < split.price.epsilon <= 1
    assert split.tables == ((0,), (1,), (2,))
    third = TablesQuery.calibrated(sizes=SIZES, n=9001, budget=PrivacyBudget(1 / 3), kind="pairs", dealt=True)
    assert third.price.epsilon == 0.333334  # as it is stated: rounded up
    # Negative control: a message about every table at the whole budget costs three of them.
    parts = tuple(query.price.event for query in dealt.queries)
    assert epsilon_of(Compose(parts), 0.0) > 2.9
    mixed = TablesQuery.calibrated(
        sizes=SIZES,
        n=9000,
        budget=PrivacyBudget(1.0, 1e-6),
        kind="pairs",
        trust=SHUFFLE,
        mechanism="krr",
        dealt=True,
    )
    assert mixed.price.epsilon <= 1 < mixed.price_alone.epsilon  # type: ignore[union-attr]
    assert isinstance(mixed.price.event, Parallel)
    assert isinstance(mixed.price.event.parts[0], Shuffled)
    trusted = TablesQuery.calibrated(
        sizes=SIZES, n=9000, budget=PrivacyBudget(1.0), kind="pairs", trust=CENTRAL
    )
    assert not trusted.dealt
    assert isinstance(trusted.price.event, Compose)
    assert isinstance(trusted.price.event.parts[0], DiscreteLaplace)


def test_what_has_less_error_is_asked() -> None:
    budget = PrivacyBudget(1.0)
    # Two columns: their pair is the joint table.
    assert TablesQuery.calibrated(sizes=(2, 2), n=1000, budget=budget).tables == ((0, 1),)
    # Few cells in all: one table of them; many: pairs.
    assert TablesQuery.calibrated(sizes=(2,) * 3, n=1000, budget=budget).tables == ((0, 1, 2),)
    many = TablesQuery.calibrated(sizes=(2,) * 12, n=100_000, budget=budget)
    assert len(many.tables) == 66
    assert many.dealt
    # At a high level every row may answer for all tables.
    high = TablesQuery.calibrated(sizes=(2, 2, 2), n=1000, budget=PrivacyBudget(60.0), kind="singles")
    assert not high.dealt
    # A domain whose joint table nobody could hold.
    wide = TablesQuery.calibrated(sizes=(1000,) * 8, n=100_000, budget=budget, kind="singles")
    assert sum(query.k for query in wide.queries) == 8000


@pytest.mark.parametrize(("trust", "dealt"), [(LOCAL, True), (LOCAL, False), (CENTRAL, False)])
def test_tables_hold_the_truth_and_agree(trust: TrustModel, dealt: bool) -> None:
    """Intervals at their stated rate and unbiased estimates: false alarms below 1e-6."""
    rows, runs = rows_of(600), 120
    query = TablesQuery.calibrated(
        sizes=SIZES, n=600, budget=PrivacyBudget(4.0), kind="pairs", trust=trust, dealt=dealt
    )
    rng, missed, total = np.random.default_rng(2), 0, np.zeros((4, 3)).T
    spread = raw = 0.0
    for _ in range(runs):
        tables = query.answer(rows, 0.8, rng=rng)
        for one in tables:
            assert one.estimates.sum() == pytest.approx(1)
        for left, right in itertools.combinations(tables, 2):
            (shared,) = set(left.columns) & set(right.columns)
            kept = [one.estimates.sum(axis=1 - one.columns.index(shared)) for one in (left, right)]
            assert kept[0] == pytest.approx(kept[1], abs=1e-9)
        held = [truth(rows, one.columns).ravel() for one in tables]
        missed += any(
            np.any((one.band.lower > true) | (true > one.band.upper))
            for one, true in zip(tables, held, strict=True)
        )
        total += tables[2].estimates - truth(rows, (1, 2))
        spread += float(((tables[2].estimates.ravel() - held[2]) ** 2).sum())
        raw += float(((tables[2].unadjusted.ravel() - held[2]) ** 2).sum())
    assert stats.binomtest(missed, runs, 0.2, alternative="greater").pvalue > FALSE_ALARM
    assert spread < raw
    bound = z_bound(total.size) * math.sqrt(2 * spread / runs / total.size / runs)
    assert np.abs(total / runs).max() < bound


def test_a_seed_marks_a_simulation() -> None:
    query = TablesQuery.calibrated(sizes=(2, 2), n=600, budget=PrivacyBudget(1.0))
    rows = rows_of(600)[:, :2] % 2
    assert estimate_tables(rows, query, rng=simulated(1, "test")).guarantee.simulated
    assert not estimate_tables(rows, query, rng=secure()).guarantee.simulated


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sizes": (2,)}, "two columns or more"),
        ({"sizes": (2, 1)}, "a size must be a whole number from 2"),
        ({"kind": "triples"}, "kind must be one of joint, pairs, singles"),
        ({"sizes": (5000, 5000), "kind": "joint"}, "cells of the joint table, got 25000000"),
        ({"sizes": (5000, 5000), "kind": "pairs"}, "a table must have at most"),
        ({"trust": TrustModel.AGGREGATE}, "trust must be local, shuffle or central"),
        ({"n": 2, "kind": "pairs"}, "one row a table"),
        ({"trust": SHUFFLE}, "delta must be > 0"),
    ],
)
def test_bad_questions_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        TablesQuery.calibrated(**{"sizes": SIZES, "n": 100, "budget": PrivacyBudget(1.0), **fields})


def test_bad_rows_are_refused_before_anything_is_drawn() -> None:
    query = TablesQuery.calibrated(sizes=SIZES, n=60, budget=PrivacyBudget(1.0), kind="singles")
    rng = simulated(1, "test")
    before = rng.bit_generator.state
    rows = rows_of(60)
    for wrong, said in (
        (rows[1:], r"values must have shape \(60, 3\)"),
        (rows + 3, "column 0 must be"),
        (rows - 1, "column 0 must be"),
        (rows * 1.0, "column 0 must be"),
    ):
        with pytest.raises(ParameterError, match=said):
            query.answer(wrong, rng=rng)
    assert rng.bit_generator.state == before
    with pytest.raises(ParameterError, match=r"values must have shape \(n, 3\)"):
        places_in_table(rows[:, :2], SIZES, (0,))
