"""Post-processing by a released table: the linear program, its noise, and what one attribute moves."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.errors import BudgetError, DataError, LedgerError, ParameterError
from tacit.fairness import DPEqualizedOddsPostprocessor, equalized_odds_mixture, equalized_odds_violation
from tacit.ledger import Ledger
from tacit.means import Round
from tacit.numerics import Array
from tacit.privacy import Gaussian, Neighbours, Part, PrivacyBudget, delta_of, neighbours_of
from tacit.randomness import secure, simulated


def error_and_rates(table: Array, chances: Array) -> tuple[float, Array]:
    shares = table / table.sum()
    yes = shares * chances[:, None, :]
    error = float(yes[:, 0].sum() + (shares[:, 1] - yes[:, 1]).sum())
    return error, yes.sum(axis=0) / shares.sum(axis=0)


@pytest.mark.parametrize("slack", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_mixture_is_the_best_within_the_slack(slack: float, seed: int) -> None:
    table = np.random.default_rng(seed).dirichlet(np.ones(8)).reshape(2, 2, 2)
    chances = equalized_odds_mixture(table, slack)
    error, rates = error_and_rates(table, chances)
    assert np.ptp(rates, axis=1).max() <= slack + 1e-9
    grid = np.array(list(product(np.linspace(0, 1, 11), repeat=4))).reshape(-1, 2, 1, 2)
    yes = (table * grid).sum(axis=1)
    allowed = np.ptp(yes / table.sum(axis=0), axis=2).max(axis=1) <= slack
    others = yes[:, 0].sum(axis=1) + table[:, 1].sum() - yes[:, 1].sum(axis=1)
    assert error <= others[allowed].min() + 1e-9


def test_without_a_constraint_it_is_the_likelier_label() -> None:
    table = np.array([[[0.3, 0.1], [0.1, 0.2]], [[0.05, 0.1], [0.1, 0.05]]])
    np.testing.assert_allclose(equalized_odds_mixture(table, 1.0), table[:, 1] > table[:, 0])


def test_noise_is_that_of_one_moved_attribute() -> None:
    rng = np.random.default_rng(0)
    n = 4000
    y, s = rng.integers(0, 2, n), rng.integers(0, 2, n)
    p = np.where(rng.random(n) < 0.75 - 0.25 * s, y, 1 - y)
    budget = PrivacyBudget(1.0, 1e-6)
    model = DPEqualizedOddsPostprocessor(budget).fit(p, y, s, rng=simulated(0, "table"))
    assert neighbours_of(model.guarantee_.event).part is Part.SENSITIVE
    assert delta_of(Gaussian(model.multiplier_), 1.0) == pytest.approx(1e-6, rel=1e-3)
    true = np.stack([np.bincount(4 * p + 2 * y + s, minlength=8)]).reshape(2, 2, 2) / n
    mean, exact = model.mean(model.multiplier_), []
    for seed in range(60):
        asked = Round(number=0, n=n, parties=1, seed=0, radius=1.0)
        rows = np.zeros((n, 8))
        exact.append(np.asarray(mean.estimate(rows, asked, rng=simulated(seed, "table"))))
    spread = np.std(np.array(exact)) * n
    assert np.abs(model.table_ - true).max() * n < 6 * math.sqrt(2) * model.multiplier_
    assert spread == pytest.approx(math.sqrt(2) * model.multiplier_, rel=0.25)  # 480 draws: 7 deviations
    mixed = model.predict(p, s, rng=simulated(1, "mixture"))
    assert equalized_odds_violation(y, mixed, s) < 0.08 < equalized_odds_violation(y, p, s)
    assert model.guarantee_.simulated


def test_unknown_groups_count_for_nobody_and_bad_input_is_refused() -> None:
    budget = PrivacyBudget(5.0, 1e-3)
    y = np.array([0, 1] * 50)
    model = DPEqualizedOddsPostprocessor(budget).fit(
        y, y, np.where(np.arange(100) < 50, 7, 0), rng=simulated(0, "table")
    )
    assert model.table_.sum() == pytest.approx(0.5, abs=0.5)
    with pytest.raises(DataError, match="0 or 1"):
        model.fit(y + 1, y, y, rng=simulated(0, "table"))
    with pytest.raises(DataError, match="one entry"):
        model.fit(y, y[:3], y, rng=simulated(0, "table"))
    for table in (-np.ones((2, 2, 2)), np.ones((2, 3, 2))):
        with pytest.raises(DataError, match="table"):
            equalized_odds_mixture(table, 0.1)
    for how in ({"slack": 2.0}, {"groups": 1}):
        with pytest.raises(ParameterError):
            DPEqualizedOddsPostprocessor(budget, **how)
    with pytest.raises(ParameterError, match="delta"):
        DPEqualizedOddsPostprocessor(PrivacyBudget(1.0))


def test_it_says_what_predictions_must_not_have_seen_and_mixes_whoever_has_no_group() -> None:
    rng = np.random.default_rng(1)
    p, y, s = (rng.integers(0, 2, 400) for _ in range(3))
    model = DPEqualizedOddsPostprocessor(PrivacyBudget(1.0, 1e-6)).fit(p, y, s, rng=simulated(0, "table"))
    assert "made without the groups" in str(model.guarantee_)
    model.chances_ = np.array([[0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(model.predict(p, np.where(s == 0, -1, 7), rng=rng), p)
    model.chances_ = np.array([[0.0, 1.0], [0.0, 1.0]])
    none = model.predict(np.ones(4000, dtype=int), np.full(4000, -1), rng=rng)
    assert abs(none.mean() - 0.5) < 0.05  # six deviations: false alarm below 1e-9


def test_no_group_of_one_record_changes_another_or_is_an_error() -> None:
    y = np.array([0, 1] * 50)
    model = DPEqualizedOddsPostprocessor(PrivacyBudget(1.0, 1e-6))
    whole = pd.Series([0, 1] * 50, dtype=object)
    expected = model._rows(y, y, whole)
    odds: list[Any] = [None, math.nan, 0.5, -1, 7, "x", math.inf, 1e300]
    for odd in odds:
        changed = whole.copy()
        changed[3] = odd
        rows = model._rows(y, y, changed)
        assert not rows[3].any()
        np.testing.assert_array_equal(np.delete(rows, 3, axis=0), np.delete(expected, 3, axis=0))


def test_a_ledger_pays_for_one_table_of_one_attribute(tmp_path: Path) -> None:
    path = tmp_path / "owner.ledger"
    Ledger.create(path, limit=PrivacyBudget(2.5, 1e-5), neighbours=Neighbours(part=Part.SENSITIVE)).close()
    rng = np.random.default_rng(1)
    p, y, s = (rng.integers(0, 2, 200) for _ in range(3))
    sex, race = pd.Series(s, name="sex"), pd.Series(s, name="race")
    model = DPEqualizedOddsPostprocessor(PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ParameterError, match="secure"):
        model.fit(p, y, sex, rng=simulated(0, "table"), ledger=path)
    model.fit(p, y, sex, rng=secure(), ledger=path)
    assert "(sex)" in str(model.guarantee_)
    assert not model.guarantee_.simulated
    with pytest.raises(LedgerError, match="'sex'"):
        model.fit(p, y, race, rng=secure(), ledger=path)
    with Ledger.open(path) as ledger:
        model.fit(p, y, sex, rng=secure(), ledger=ledger)
        released = model.table_
        with pytest.raises(BudgetError):
            model.fit(p, y, sex, rng=secure(), ledger=ledger)
        assert len(ledger.entries()) == 2
    np.testing.assert_array_equal(model.table_, released)
