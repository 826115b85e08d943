"""The classifier for every silo: whose model says what, what is promised, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from tacit.errors import BudgetError, DataError, LedgerError, ParameterError
from tacit.learning import AdaPeD, PersonalClassifier
from tacit.ledger import Ledger, create_ledgers, ledger_path
from tacit.privacy import Neighbours, PrivacyBudget, Relation, Unit

BUDGET = PrivacyBudget(4.0, 1e-5)
N = 600
X = np.random.default_rng(7).uniform(-1, 1, (N, 2))
SILOS = np.array(["a", "b", "c"])[np.arange(N) % 3]
Y = (X[:, 0] > 0) == (SILOS != "b")  # one silo's labels are the opposite of the others'


def classifier(**changes: Any) -> PersonalClassifier:
    facts: dict[str, Any] = {"bounds": (-1, 1), "classes": [False, True], "random_state": 0}
    facts |= {} if changes.get("budget") else {"trust": "none"}
    return PersonalClassifier(**{**facts, **changes})


@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it() -> None:
    found = check_estimator(PersonalClassifier(random_state=0, rounds=5), on_skip=None, on_fail=None)
    assert [one for one in found if one["status"] not in ("passed", "skipped")] == []
    held = {one["check_name"] for one in found if one["status"] == "passed"}
    assert {"check_fit_idempotent", "check_n_features_in", "check_classifiers_train"} <= held


@pytest.mark.parametrize("model", ["linear", "mlp:6"])
def test_every_silo_gets_its_own_model_and_strangers_the_common_one(model: str) -> None:
    fitted = classifier(model=model).fit(X, Y, silos=SILOS)
    assert fitted.score(X, Y, silos=SILOS) > 0.93
    assert fitted.score(X, Y) < 0.75  # no one model fits all
    assert list(fitted.personal_) == ["a", "b", "c"]
    mixed = np.where(np.arange(N) % 2, SILOS, "stranger")
    scores = fitted.decision_function(X, mixed)
    for name in ("a", "b", "c", "stranger"):
        held = mixed == name
        of = fitted.personal_.get(name, fitted.model_)
        assert scores[held] == pytest.approx(of.scores(X[held]))
    odds = fitted.predict_proba(X, mixed)
    assert odds.sum(axis=1) == pytest.approx(1)
    assert (fitted.classes_[odds.argmax(axis=1)] == fitted.predict(X, mixed)).all()
    # Whole numbers or text, one order or another: a name is its text.
    numbered = classifier(model=model, rounds=2).fit(X, Y, silos=np.arange(N) % 3)
    assert (
        numbered.predict(X[::-1], silos=(np.arange(N) % 3).astype(str)[::-1])
        == numbered.predict(X, silos=np.arange(N) % 3)[::-1]
    ).all()


def test_several_classes_and_frames() -> None:
    classes = np.array(["x", "y", "z"])
    labels = classes[(np.digitize(X[:, 0], [-0.3, 0.3]) + (SILOS == "b")) % 3]
    frame = pd.DataFrame(X, columns=["p", "q"])
    fitted = classifier(classes=classes, rounds=40).fit(frame, labels, silos=pd.Series(SILOS))
    assert fitted.decision_function(frame, SILOS).shape == (N, 3)
    assert fitted.score(frame, labels, silos=SILOS) > fitted.score(frame, labels) + 0.1
    assert list(fitted.feature_names_in_) == ["p", "q"]


@pytest.mark.parametrize("trust", ["local", "aggregate", "shuffle"])
def test_the_guarantee_is_of_whole_parties_and_of_the_common_model(trust: Any) -> None:
    model = classifier(trust=trust, budget=BUDGET, rounds=3)
    fitted = model.fit(X, Y, silos=SILOS)
    assert fitted.guarantee_.neighbours == Neighbours(Relation.REPLACE_ONE, Unit.PARTY)
    assert len(fitted.guarantees_) == 3
    assert 3.8 < fitted.guarantee_.epsilon <= 4.0
    # Labels of one silo: all it sends is hidden, and its own model has no noise.
    assert fitted.score(X[SILOS == "b"], Y[SILOS == "b"], silos=SILOS[SILOS == "b"]) > 0.9
    assert clone(model).fit(X, Y, silos=SILOS).predict(X, SILOS).tolist() == fitted.predict(X, SILOS).tolist()


def test_without_a_budget_the_guarantee_says_so() -> None:
    assert classifier(rounds=1).fit(X, Y, silos=SILOS).guarantee_.epsilon == math.inf


def test_ledgers_of_parties_are_charged_and_refuse_the_next(tmp_path: Path) -> None:
    parties, limit = Neighbours(unit=Unit.PARTY), PrivacyBudget(5.0, 2e-5)
    create_ledgers(tmp_path / "a", ["a", "b", "c"], limit=limit, neighbours=parties)
    model = classifier(budget=BUDGET, rounds=2, random_state=None, trust="aggregate", ledger=tmp_path / "a")
    fitted = model.fit(X, Y, silos=SILOS)
    assert list(fitted.personal_) == ["a", "b", "c"]
    with Ledger.open(ledger_path(tmp_path / "a", "b")) as ledger:
        assert ledger.spent().epsilon == pytest.approx(4.0, rel=0.01)
    with pytest.raises(BudgetError):
        clone(model).fit(X, Y, silos=SILOS)
    create_ledgers(tmp_path / "r", ["a", "b", "c"], limit=limit, neighbours=Neighbours())
    with pytest.raises(LedgerError, match="replacing one party"):
        clone(model).set_params(ledger=tmp_path / "r").fit(X, Y, silos=SILOS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithm": "auto"}, "algorithm must be 'adaped' or an AdaPeD"),
        ({"algorithm": "fed-avg"}, "makes no models of silos"),
        ({"algorithm": AdaPeD(rounds=2), "rounds": 3}, "rounds must be 'auto'"),
        ({"trust": "central", "budget": BUDGET}, "trust must be local or aggregate or shuffle"),
        ({"trust": "aggregate"}, "needs a budget"),
        (
            {"budget": BUDGET, "neighbours": "add-remove"},
            "neighbours must be replace-one or zero-out where whole parties",
        ),
        ({"budget": BUDGET, "bounds": None}, "bounds must be given"),
        ({"budget": 1.0}, "budget must be"),
        ({"model": "tree"}, "model must look like"),
        ({"model": "mlp:4", "start_seed": -1}, "start_seed must be"),
        ({"l2": 0.1}, "the steps inside a party are on its own loss alone"),
        ({"budget": BUDGET, "clip": "auto"}, "clip must be"),
    ],
)
def test_bad_parameters(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        classifier(**changes).fit(X, Y, silos=SILOS)


def test_bad_data() -> None:
    with pytest.raises(ParameterError, match="persons must not be named"):
        classifier().fit(X, Y, silos=SILOS, persons=np.arange(N))
    with pytest.raises(DataError, match="silos must have one entry per record"):
        classifier().fit(X, Y, silos=SILOS[:-1])
    fitted = classifier(rounds=1).fit(X, Y, silos=SILOS)
    with pytest.raises(DataError, match="silos must have one entry per record"):
        fitted.predict(X, SILOS[:-1])
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(np.full((3, 2), np.nan), SILOS[:3])
    with pytest.raises(ValueError, match="features"):
        fitted.predict_proba(np.zeros((3, 5)))
