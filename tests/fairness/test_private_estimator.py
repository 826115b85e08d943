"""The private fair logistic regression: what it claims, who pays, and what no record can make it say."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_estimator

from tacit.errors import BudgetError, DataError, LedgerError, ParameterError, PrivacyWarning
from tacit.fairness import (
    FairLogisticRegression,
    PrivateFairLogisticRegression,
    declared_groups,
    equalized_odds_violation,
    parity_violation,
)
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Neighbours, Part, PrivacyBudget, Relation, Unit

N = 3000
RNG = np.random.default_rng(7)
S = RNG.integers(0, 2, N)
X = np.column_stack([RNG.standard_normal(N) + 1.2 * S, RNG.standard_normal(N), 3 + RNG.standard_normal(N)])
Y = np.where(X[:, 0] + X[:, 1] + 0.5 * RNG.standard_normal(N) > 0.6, "yes", "no")
BOUNDS = ([-4, -4, -1], [5, 4, 7])
SEX = pd.Series(S, name="sex")
BUDGET = PrivacyBudget(2.0, 1e-6)


def fitted(
    X: Any = X, y: Any = Y, sensitive: Any = S, *, silos: Any = None, **how: Any
) -> PrivateFairLogisticRegression:
    how = {
        "budget": BUDGET,
        "groups": [0, 1],
        "classes": ["no", "yes"],
        "random_state": 0,
        "rounds": 40,
        **how,
    }
    if how.get("protect") == "record" and how["budget"] is not None:
        how = {"bounds": BOUNDS, **how}
    model = PrivateFairLogisticRegression(**how)
    return model.fit(X, y, sensitive_features=sensitive, silos=silos)


@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it() -> None:
    found = check_estimator(PrivateFairLogisticRegression(rounds=15), on_skip=None, on_fail=None)
    assert [one for one in found if one["status"] not in ("passed", "skipped")] == []
    assert sum(one["status"] == "passed" for one in found) > 40


@pytest.mark.parametrize("protect", ["sensitive", "record"])
def test_a_weight_buys_fairness_and_the_statement_says_of_what(protect: str) -> None:
    plain, fair = fitted(weight=0, protect=protect), fitted(weight=10, protect=protect)
    assert parity_violation(plain.predict(X), S) > 0.3
    assert parity_violation(fair.predict(X), S) < 0.2
    assert fair.score(X, Y) > 0.65
    part = Part.SENSITIVE if protect == "sensitive" else Part.ALL
    assert fair.guarantee_.neighbours == Neighbours(Relation.REPLACE_ONE, Unit.RECORD, part)
    assert fair.guarantee_.epsilon == pytest.approx(2.0, rel=1e-6)
    assert fair.guarantee_.delta == 1e-6
    told = "features, labels and the silo of every record are public"
    assert (told in str(fair.guarantee_)) == (protect == "sensitive")
    assert fair.guarantee_.simulated
    np.testing.assert_allclose(fair.predict_proba(X).sum(axis=1), 1)


def test_without_a_budget_it_is_fermi() -> None:
    with pytest.warns(PrivacyWarning, match="has no budget, and trains without privacy: give a `budget`"):
        ours = fitted(budget=None, weight=2, clip=1e5, rounds=300, tail=0.0, trust="central")
    other = FairLogisticRegression(weight=2).fit(X, Y, sensitive_features=S)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=0.02)
    assert math.isinf(ours.guarantee_.epsilon)
    assert ours.noise_multiplier_ == 0


def test_a_violation_is_aimed_at() -> None:
    loose, tight = (fitted(max_violation=most, weight=0, rounds=100) for most in (0.3, 0.05))
    assert parity_violation(tight.predict(X), S) < 0.15 < parity_violation(loose.predict(X), S)
    assert tight.guarantee_.epsilon == pytest.approx(2.0, rel=1e-6)
    assert tight.weight_ > loose.weight_
    assert fitted(weight=3.0, rounds=2).weight_ == 3.0
    with pytest.raises(ParameterError, match="max_violation"):
        fitted(max_violation=1.5)


def test_equalized_odds() -> None:
    plain, fair = (fitted(fairness="equalized-odds", weight=w, rounds=60) for w in (0, 10))
    assert equalized_odds_violation(Y, fair.predict(X), S) < equalized_odds_violation(Y, plain.predict(X), S)
    fitted(fairness="equal-opportunity", advantaged=["no"])
    with pytest.raises(ParameterError, match="advantaged"):
        fitted(fairness="equal-opportunity", advantaged=["maybe"])


@pytest.mark.parametrize("trust", ["local", "aggregate", "shuffle"])
def test_silos_are_priced_each_by_itself(trust: str) -> None:
    silos = np.array(["a", "b", "c"])[np.arange(N) % 3]
    model = fitted(silos=silos, trust=trust, rounds=3)
    assert len(model.guarantees_) == 3
    assert all(1.9 < one.epsilon <= 2.0 * (1 + 1e-9) for one in model.guarantees_)
    # The order of records within the table is that of silos for nobody but the machine.
    if trust == "local":
        order = np.argsort(silos, kind="stable")
        again = fitted(X[order], Y[order], S[order], silos=silos[order], trust=trust, rounds=3)
        np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-6)


# Nothing but released numbers depends on what is private


def test_a_private_value_of_any_kind_is_no_group_and_no_error() -> None:
    base: list[Any] = S.tolist()
    for odd in (None, float("nan"), "someone", 17, 0.5, [1], -1):
        changed = [odd, *base[1:]]
        model = fitted(sensitive=changed, rounds=3)
        assert model.groups_ == (0, 1)
        assert declared_groups(changed, [0, 1]).codes[0] == -1
        np.testing.assert_array_equal(declared_groups(changed, [0, 1]).codes[1:], S[1:])
    frame = pd.DataFrame({"a": [1, 2.0, None, 1], "b": ["x", "y", "x", "z"]})
    codes = declared_groups(frame, [(1, "x"), (2, "y"), (1, "y")]).codes
    assert codes.tolist() == [0, 1, -1, -1]
    for names in ([0], [0, 0], [0, "0"]):
        with pytest.raises(ParameterError, match="groups"):
            declared_groups(S, names)
    with pytest.raises(ParameterError, match="tuples of 2"):
        declared_groups(frame, [1, 2])


def test_a_private_record_of_any_kind_is_no_error() -> None:
    for row, label in (
        ([math.nan, 0, 0], "yes"),
        ([math.inf, 1e300, 0], "no"),
        ([0, 0, 0], "other"),
        ([0, 0, 0], None),
    ):
        X2: Array = X.copy()
        X2[0] = row
        y2 = [label, *Y.tolist()[1:]]
        model = fitted(X2, y2, protect="record", rounds=3)
        assert np.isfinite(model.coef_).all()
        assert model.classes_.tolist() == ["no", "yes"]
    # Where features and labels are public, there is nothing to hide.
    with pytest.raises(DataError, match="classes"):
        fitted(X, ["other", *Y.tolist()[1:]])
    with pytest.raises(ValueError, match="NaN"):
        fitted(np.where(X > 3, np.nan, X))


def test_what_is_read_off_is_warned_of_and_said() -> None:
    with pytest.warns(PrivacyWarning, match="groups were read off"):
        model = fitted(groups=None, rounds=3)
    assert "groups were read off" in str(model.guarantee_)
    with pytest.warns(PrivacyWarning, match="classes were read off"):
        model = fitted(classes=None, protect="record", rounds=3)
    assert "classes were read off" in str(model.guarantee_)
    with pytest.warns(PrivacyWarning, match="bounds were read off"):
        fitted(bounds="data", protect="record", rounds=3)
    fitted(classes=None, rounds=3)  # labels are public


def test_bounds_and_a_public_sample_scale_private_records() -> None:
    sample = np.random.default_rng(1).normal([0.6, 0, 3], 1, (50, 3)).clip(*BOUNDS)
    model = fitted(protect="record", public=sample, rounds=5)
    assert "the public sample holds no record" in str(model.guarantee_)
    for wrong in ({"public": (sample, np.zeros(50))}, {"bounds": None}):
        with pytest.raises(ParameterError):
            fitted(protect="record", **wrong)
    with pytest.raises(ParameterError, match="protect='record'"):
        fitted(bounds=BOUNDS)


# Payment


def test_a_ledger_pays_once_and_refuses_a_second_fit(tmp_path: Path) -> None:
    near = Neighbours(Relation.REPLACE_ONE, Unit.RECORD, Part.SENSITIVE)
    path = tmp_path / "owner.ledger"
    with Ledger.create(path, limit=PrivacyBudget(3.0, 1e-5), neighbours=near):
        pass
    model = fitted(ledger=path, random_state=None, rounds=3)
    assert not model.guarantee_.simulated
    with pytest.raises(BudgetError):
        fitted(ledger=path, random_state=None, rounds=3)
    with pytest.raises(ParameterError, match="random_state and ledger"):
        fitted(ledger=path)


def test_a_fit_of_a_known_name_costs_nothing_and_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "owner.ledger"
    Ledger.create(path, limit=PrivacyBudget(2.5, 1e-5), neighbours=Neighbours(part=Part.SENSITIVE)).close()
    how: dict[str, Any] = {"ledger": path, "random_state": None, "max_violation": 0.05, "rounds": 3}
    one, two = (fitted(run="june", **how) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.weight_ == two.weight_ > 1
    for other in ({"run": "july"}, {"run": "june", "rounds": 4}, {"run": "june", "sensitive": SEX}):
        with pytest.raises((BudgetError, LedgerError)):
            fitted(**{**how, **other})
    with Ledger.open(path) as ledger:
        assert len(ledger.entries()) == 1


def test_a_random_point_costs_what_the_mean_costs() -> None:
    mean, drawn = (fitted(iterate=word, rounds=20) for word in ("mean", "random"))
    assert mean.plan_ == drawn.plan_
    assert np.abs(mean.coef_ - drawn.coef_).max() > 1e-6
    np.testing.assert_array_equal(drawn.coef_, fitted(iterate="random", rounds=20).coef_)
    with pytest.raises(ParameterError, match="iterate"):
        fitted(iterate="best")


def test_many_groups_lower_the_least_share_aloud() -> None:
    with pytest.warns(PrivacyWarning, match=r"least_share is 0\.00833.* 60 groups.*Declare fewer"):
        fitted(groups=list(range(60)), rounds=2)
    with pytest.raises(ParameterError, match="lower it, or declare fewer groups"):
        fitted(groups=list(range(60)), least_share=0.02, rounds=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(groups=list(range(60)), least_share=0.01, rounds=2)
        fitted(groups=list(range(25)), rounds=2)


def test_noise_is_exact_without_a_seed() -> None:
    model = fitted(random_state=None, rounds=2)
    assert "floating point" not in str(model.guarantee_)
    with pytest.warns(PrivacyWarning, match="same records"):
        fitted(random_state=None, rounds=2)


def test_bad_parameters_are_refused_before_anything_is_spent() -> None:
    wrong: list[dict[str, Any]] = [
        {"weight": -1},
        {"protect": "labels"},
        {"trust": "none"},
        {"fairness": "kindness"},
        {"budget": PrivacyBudget(1.0)},
        {"budget": 1.0},
        {"dual_step": 0.7},
        {"shares": (0.1, 0.2, 0.7)},
        {"n_min": 5},
        {"colluding": -1},
        {"step": 0},
        {"rounds": 0},
        {"clip": -1},
        {"noise": "white"},
        {"feature_bound": 0},
        {"sensitive": None},
        {"sensitive": S[:5]},
        {"groups": ["only"]},
        {"trust": "aggregate"},
        {"trust": "shuffle"},
    ]
    for how in wrong:
        with pytest.raises((ParameterError, DataError)):
            fitted(**how)


def test_a_record_of_too_many_cells_changes_no_other() -> None:
    pairs: list[Any] = [["f", 1], ["m", 0], ["f", 0]]
    declared = [("f", 1), ("m", 0)]
    assert declared_groups(pairs, declared).codes.tolist() == [0, 1, -1]
    for odd in (["m", 0, 3], ["m"], "m", None, [["m"], 0]):
        assert declared_groups([pairs[0], odd, pairs[2]], declared).codes.tolist() == [0, -1, -1]
    for wrong, names in ((["f", "m"], declared), ([["f"], ["m"]], ["f", "m"])):
        with pytest.raises(DataError, match="columns, as each of"):
            declared_groups(wrong, names)


def test_a_ledger_knows_which_attributes_it_has_paid_for(tmp_path: Path) -> None:
    path = tmp_path / "owner.ledger"
    Ledger.create(path, limit=PrivacyBudget(9.0, 1e-2), neighbours=Neighbours(part=Part.SENSITIVE)).close()
    how: dict[str, Any] = {"ledger": path, "random_state": None, "rounds": 2}
    for _ in range(2):
        fitted(sensitive=SEX, **how)
    for other in (S, pd.Series(S, name="race"), pd.DataFrame({"race": S})):
        with pytest.raises(LedgerError, match="nothing was spent"):
            fitted(sensitive=other, **how)
    with Ledger.open(path) as ledger:
        assert len(ledger.entries()) == 2
