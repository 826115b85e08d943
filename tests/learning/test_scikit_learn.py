"""What scikit-learn's users expect: accounts of fits, searches, names of features, weights."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tacit.errors import BudgetError, LedgerError, ParameterError, PrivacyWarning, RefusalError
from tacit.federation import Fixed
from tacit.jobs import TrainedModel
from tacit.learning import FederatedLinearRegression, FederatedLogisticRegression, NoisyMinibatchSGD
from tacit.learning.spending import Fits
from tacit.ledger import CENTRAL, DATA_SET, Cost, Ledger, create_ledgers, ledger_path
from tacit.privacy import Neighbours, PrivacyBudget, Unit

BUDGET = PrivacyBudget(1.0, 1e-6)
LIMIT = PrivacyBudget(2.5, 1e-5)
N = 60
X = np.random.default_rng(3).uniform(-1, 1, (N, 2))
Y = (X[:, 0] > 0).astype(int)
SILOS = np.array(["a", "b"])[np.arange(N) % 2]


def classifier(**changes: Any) -> FederatedLogisticRegression:
    facts = {"budget": BUDGET, "bounds": (-1, 1), "classes": [0, 1], "rounds": 2}
    return FederatedLogisticRegression(**{**facts, **changes})


def regressor(**changes: Any) -> FederatedLinearRegression:
    facts = {"budget": BUDGET, "bounds": (-1, 1), "target_bounds": (-1, 1), "rounds": 2}
    return FederatedLinearRegression(**{**facts, **changes})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "t.ledger", limit=LIMIT, neighbours=Neighbours()) as made:
        yield made


# Accounts


@pytest.mark.parametrize("trust", ["local", "central"])
@pytest.mark.parametrize("given", ["ledger", "path", "text"])
def test_every_fit_is_charged_and_an_overdraft_is_refused(trust: Any, given: str, ledger: Ledger) -> None:
    account = {"ledger": ledger, "path": ledger.path, "text": str(ledger.path)}[given]
    for spent in (1.0, 2.0):
        fitted = clone(classifier(trust=trust, ledger=account)).fit(X, Y)  # charged: nothing to warn of
        assert ledger.spent().epsilon == spent
        assert not fitted.guarantee_.simulated
    with pytest.raises(BudgetError, match="nothing was spent"):
        regressor(trust=trust, ledger=account).fit(X, X[:, 0])
    assert ledger.spent() == Cost(2.0, 2e-6)
    names = [entry.run for entry in ledger.entries()]
    assert len(set(names)) == 2
    assert all(name.startswith("fit-") for name in names)


def test_the_price_is_reserved_before_the_first_answer(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[float] = []
    answer = Ledger.store_answer

    def stored(self: Ledger, *arguments: Any, **more: Any) -> bytes:
        spent.append(self.spent().epsilon)
        return answer(self, *arguments, **more)

    monkeypatch.setattr(Ledger, "store_answer", stored)
    classifier(ledger=ledger).fit(X, Y)
    assert spent == [1.0, 1.0]


def test_in_a_folder_whoever_adds_noise_pays_and_the_data_set_besides(tmp_path: Path) -> None:
    folder = tmp_path / "t.ledger"
    create_ledgers(folder, ["a", "b"], limit=LIMIT, neighbours=Neighbours())

    def spent() -> list[float]:
        found = []
        for name in ("a", "b", CENTRAL, DATA_SET):
            with Ledger.open(ledger_path(folder, name)) as one:
                found.append(one.spent().epsilon)
        return found

    classifier(ledger=folder).fit(X, Y, silos=SILOS)
    assert spent() == pytest.approx([1, 1, 0, 1])
    classifier(ledger=folder, trust="central").fit(X, Y)
    assert spent() == pytest.approx([1, 1, 1, 2])
    with pytest.raises(BudgetError, match="nothing was spent"):
        classifier(ledger=folder).fit(X, Y, silos=SILOS)
    assert spent() == pytest.approx([1, 1, 1, 2])
    with pytest.raises(LedgerError, match="silo 'c' has no ledger"):
        classifier(ledger=folder).fit(X, Y, silos=np.full(N, "c"))
    # A ledger of the folder does not pay alone.
    with pytest.raises(BudgetError, match="the data set"):
        classifier(ledger=ledger_path(folder, "a")).fit(X, Y)


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"random_state": 0}, ParameterError, "random_state and ledger exclude each other: seeded noise"),
        ({"budget": None}, ParameterError, "ledger needs a budget"),
        ({"ledger": 3}, ParameterError, "ledger must be a Ledger, a path or None, got 3"),
        ({"ledger": "nowhere.ledger"}, LedgerError, "nowhere.ledger is not a folder of ledgers"),
        ({"noise": "gaussian"}, RefusalError, "refuses continuous noise"),
        ({"trust": "none", "budget": None}, ParameterError, "ledger needs a budget"),
    ],
)
@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
def test_what_cannot_be_charged_is_refused_and_costs_nothing(
    changes: dict[str, Any], kind: type[Exception], said: str, ledger: Ledger
) -> None:
    with pytest.raises(kind, match=said):
        classifier(**{"ledger": ledger, **changes}).fit(X, Y)
    with pytest.raises(LedgerError, match="each of the 2 silos keeps its own"):
        classifier(ledger=ledger).fit(X, Y, silos=SILOS)
    with pytest.raises(
        LedgerError, match="is about replacing one record, the plan about replacing one person"
    ):
        classifier(ledger=ledger).fit(X, Y, persons=np.arange(N) // 2)
    assert ledger.entries() == []


def test_a_ledger_of_persons_pays_for_persons(tmp_path: Path) -> None:
    persons = Neighbours(unit=Unit.PERSON)
    with Ledger.create(tmp_path / "p.ledger", limit=LIMIT, neighbours=persons) as account:
        classifier(ledger=account).fit(X, Y, persons=np.arange(N) // 2)
        assert account.spent().epsilon == 1.0


# Fits that nobody counts


def sums(caught: list[warnings.WarningMessage]) -> list[str]:
    assert all(issubclass(one.category, PrivacyWarning) for one in caught)
    return [str(one.message) for one in caught]


def test_from_the_second_private_fit_on_there_is_one_warning_with_the_sum() -> None:
    model = classifier().fit(X, Y)
    with pytest.warns(
        PrivacyWarning, match="private fit 2 on the same records .* epsilon 2 at delta 2e-06"
    ) as one:
        clone(model).fit(X, 1 - Y)  # other labels of the same records are not other data
    assert len(one) == 1
    assert one[0].filename == __file__
    with pytest.warns(PrivacyWarning, match="private fit 3 on the same records .* epsilon 5.5") as two:
        regressor(budget=PrivacyBudget(3.5, 1e-6)).fit(pd.DataFrame(X[:9]), X[:9, 0])
    assert len(two) == 1
    classifier().fit(X + 0.001, Y)  # other data
    classifier(random_state=0).fit(X, Y)  # a simulation protects nobody, and adds nothing up
    FederatedLogisticRegression().fit(X, Y)


def test_a_fit_that_is_refused_is_not_counted() -> None:
    with pytest.raises(ParameterError, match="rounds must be"):
        classifier(rounds=0).fit(X, Y)
    too_many = NoisyMinibatchSGD(batch=Fixed(10**6), rounds=2)  # found when the plan meets the silo
    with pytest.raises(ParameterError, match=r"1000000|1,000,000"):
        classifier(algorithm=too_many, rounds="auto").fit(X, Y)
    classifier().fit(X, Y)


def test_a_warning_that_is_an_error_comes_before_anything_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classifier().fit(X, Y)
    monkeypatch.setattr("tacit.federation.silo.Silo.answer", lambda *_: pytest.fail("something was answered"))
    with pytest.raises(PrivacyWarning):  # as the tests of this project treat every warning
        classifier().fit(X, Y)


def test_searches_and_scores_warn_with_the_sum_of_all_their_fits() -> None:
    with pytest.warns(PrivacyWarning) as caught:
        cross_val_score(classifier(), X, Y, cv=KFold(3))
    assert len(sums(list(caught))) == 2
    assert "fit 3" in sums(list(caught))[-1]
    assert "epsilon 3 at delta 3e-06" in sums(list(caught))[-1]
    with pytest.warns(PrivacyWarning) as caught:
        GridSearchCV(classifier(), {"clip": [0.1, 0.2]}, cv=3).fit(X, Y)
    assert "private fit 10" in sums(list(caught))[-1]
    assert "epsilon 10 at delta 1e-05" in sums(list(caught))[-1]


def test_a_search_is_paid_from_a_ledger_fit_by_fit(tmp_path: Path) -> None:
    with Ledger.create(
        tmp_path / "t.ledger", limit=PrivacyBudget(9.0, 1e-4), neighbours=Neighbours()
    ) as account:
        search = GridSearchCV(classifier(ledger=account), {"clip": [0.1, 0.2]}, cv=3).fit(X, Y)
        assert account.spent() == Cost(7.0, 7e-6)
        assert search.best_estimator_.ledger is account


def test_a_refit_links_data_that_had_nothing_in_common() -> None:
    fits = Fits()
    rows = np.arange(8.0).reshape(4, 2)
    assert fits.add(rows[:2], BUDGET) == (1, Cost(1.0, 1e-6))
    assert fits.add(rows[2:], BUDGET) == (1, Cost(1.0, 1e-6))
    assert fits.add(rows, BUDGET) == (3, Cost(3.0, 3e-6))
    assert fits.add(rows[:1], BUDGET)[0] == 4
    assert fits.add(rows[3:], BUDGET)[0] == 5
    assert fits.add(-0.0 * rows, BUDGET)[0] == 1
    assert fits.add(0.0 * rows, BUDGET)[0] == 2


def test_nothing_of_the_data_is_kept_but_digests_under_a_key_of_the_process() -> None:
    one, other = Fits(), Fits()
    for fits in (one, other):
        fits.add(X, BUDGET)
    assert all(len(digest) == 16 for digest in one._group_of)
    assert not set(one._group_of) & set(other._group_of)


# Names and weights


def test_names_of_features_are_kept_and_another_order_is_refused() -> None:
    frame = pd.DataFrame(X, columns=["age", "bmi"])
    for model, target in ((classifier(random_state=0), Y), (regressor(random_state=0), X[:, 0])):
        fitted = model.fit(frame, target)
        assert fitted.feature_names_in_.tolist() == ["age", "bmi"]
        assert isinstance(fitted.predict(frame), np.ndarray)
        with pytest.raises(ValueError, match="must be in the same order"):
            fitted.predict(frame[["bmi", "age"]])
        with pytest.raises(ValueError, match="should match"):
            fitted.predict(frame.rename(columns={"bmi": "BMI"}))
    assert not hasattr(classifier(random_state=0).fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize("kind", ["two", "three", "target"])
def test_weights_mean_what_those_of_a_trained_model_mean(kind: str) -> None:
    bounds = {"bounds": ([-1, -3], [1, 5]), "random_state": 0}
    if kind == "target":
        fitted: Any = regressor(**bounds).fit(X, X[:, 0])
        assert (fitted.coef_.shape, type(fitted.intercept_)) == ((2,), float)
    else:
        labels = [0, 1] if kind == "two" else [0, 1, 2]
        fitted = classifier(**bounds, classes=labels).fit(X, Y)
        outputs = 1 if kind == "two" else 3
        assert (fitted.coef_.shape, fitted.intercept_.shape) == ((outputs, 2), (outputs,))
        assert fitted.classes_.tolist() == labels
    model = TrainedModel(fitted=fitted.model_, feature_names=("age", "bmi"))
    np.testing.assert_array_equal(fitted.coef_.ravel(), np.ravel(model.coef_))
    np.testing.assert_array_equal(np.ravel(fitted.intercept_), np.ravel(model.intercept_))
    # By hand: features scaled to [-1, 1] within their bounds, divided by a length.
    scaled = np.column_stack([X[:, 0], (X[:, 1] - 1) / 4])
    constant = fitted.model_.features.constant
    length = (
        np.sqrt(2 + constant**2) if kind == "target" else np.hypot(np.linalg.norm(scaled, axis=1), constant)
    )
    by_hand = (scaled @ np.atleast_2d(fitted.coef_).T + fitted.intercept_) / np.reshape(length, (-1, 1))
    np.testing.assert_allclose(fitted.model_.scores(X).reshape(N, -1), by_hand, atol=1e-12)


def test_they_work_in_pipelines_with_public_steps_and_frozen(tmp_path: Path) -> None:
    frame = pd.DataFrame(X * 50 + 50, columns=["age", "bmi"])
    public = FunctionTransformer(lambda table: (table.clip(0, 100) - 50) / 50, feature_names_out="one-to-one")
    pipeline = make_pipeline(public, classifier(random_state=0)).set_output(transform="pandas")
    pipeline.fit(frame, Y)
    assert pipeline[-1].feature_names_in_.tolist() == ["age", "bmi"]
    frozen = FrozenEstimator(pipeline).fit(frame, Y)  # fits nothing
    np.testing.assert_array_equal(frozen.predict(frame), pipeline.predict(frame))
