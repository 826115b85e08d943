"""`PrivateVotingClassifier`: the law of its answers, what it counts, claims and refuses."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.privacy import Neighbours, PrivacyBudget, Relation, verify
from tacit.randomness import simulated
from tacit.voting import (
    PrivateVotingClassifier,
    Shards,
    VotedBy,
    allowance,
    design,
    majority_guarantee,
    sum_of_deltas,
)

LABELS = np.array(["ill", "well"])
RNG = simulated(0, "voting-classifier-data")
X = RNG.normal(size=(600, 3))
Y = LABELS[(X[:, 0] + 0.3 * RNG.normal(size=600) > 0).astype(int)]


def constant(label: str) -> DummyClassifier:
    """A teacher that always says the same, and knows both classes."""
    return DummyClassifier(strategy="constant", constant=label).fit([[0.0]] * 2, LABELS)


def trained(k: int = 5) -> list[Any]:
    return [LogisticRegression().fit(X[i::k], Y[i::k]) for i in range(k)]


class Slow(DummyClassifier):  # type: ignore[misc]
    """A teacher that takes its time."""

    def predict(self, X: Any) -> Any:
        time.sleep(0.02)
        return super().predict(X)


def classifier(teachers: Any = None, **changes: Any) -> PrivateVotingClassifier:
    teachers = [constant("well")] * 3 + [constant("ill")] * 2 if teachers is None else teachers
    return PrivateVotingClassifier(
        teachers, **{"epsilon": 0.5, "m": 2, "max_queries": 50, "random_state": 1, **changes}
    )


def test_answers_have_the_law_of_the_design() -> None:
    queries = 40_000
    model = classifier(max_queries=queries, design="double-subsampling").fit()
    share = np.mean(model.predict(np.zeros((queries, 1))) == "well")
    chance = model.noise_.output_probabilities()[3]
    assert 0.55 < chance < 0.95
    # Hoeffding: beyond this distance with probability below 1e-9.
    assert abs(share - chance) < np.sqrt(np.log(2e9) / (2 * queries))


def test_good_teachers_answer_well() -> None:
    model = classifier(trained(), epsilon=2.0, m=5, max_queries=1200).fit(X, Y)
    assert model.score(X, Y) > 0.9  # m = K: the plain majority
    assert model.queries_ == 600
    assert is_classifier(model)
    assert list(model.classes_) == ["ill", "well"]
    assert model.n_features_in_ == 3
    piped = [make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)] * 3
    frame = pd.DataFrame(X[:4])
    assert classifier(piped).fit().predict(frame).shape == (4,)


def test_queries_are_counted_and_never_exceeded() -> None:
    model = classifier(max_queries=10).fit()
    assert model.queries_ == 0
    assert len(model.predict(np.zeros((7, 1)))) == 7
    with pytest.raises(BudgetError, match=r"4 rows were asked, and 3 of 10 are left; none was answered"):
        model.predict(np.zeros((4, 1)))
    assert model.queries_ == 7
    model.set_params(max_queries=1000)  # what was promised is kept
    model.predict(np.zeros((3, 1)))
    with pytest.raises(BudgetError):
        model.predict(np.zeros((1, 1)))
    with pytest.raises(RefusalError, match="fitting again would forget"):
        model.fit()
    assert model.queries_ == 10
    read = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    with pytest.raises(BudgetError):
        read.predict(np.zeros((1, 1)))


def test_a_row_is_paid_for_before_its_answer_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier().fit()

    def lost(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model.noise_), "release", lost)
    with pytest.raises(KeyboardInterrupt):
        model.predict(np.zeros((5, 1)))
    assert model.queries_ == 5


@pytest.mark.parametrize(
    ("facts", "epsilon"),
    [
        ({}, 5 * 0.5),
        ({"shards": "disjoint"}, 0.5),
        ({"voted_by": "fresh"}, 4 * 1.0),
        ({"voted_by": "fresh", "max_queries": 1}, 1.0),
        # Double subsampling has a sum over queries also for fixed teachers.
        ({"design": "double-subsampling", "max_queries": 2}, 2 * 1.0),
    ],
)
def test_the_guarantee_is_for_all_answers(facts: dict[str, Any], epsilon: float) -> None:
    model = classifier(**{"max_queries": 4, "delta": 0.0, "random_state": None, **facts})
    if facts.get("design"):
        model.set_params(budget=PrivacyBudget(10.0, 1e-9))
    price = model.fit().guarantee_
    assert price.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert not price.simulated
    verify(price)
    before = price
    model.predict(np.zeros((1, 1)))
    assert model.guarantee_ == before
    assert classifier(**{"max_queries": 4, **facts}).fit().guarantee_.simulated


def test_a_budget_is_kept() -> None:
    assert classifier(budget=PrivacyBudget(2.5)).fit().guarantee_.epsilon == 2.5
    with pytest.raises(
        BudgetError, match=r"50 answers cost epsilon 2\.5 at delta 0\.0, more than the budget"
    ):
        classifier(budget=PrivacyBudget(2.4)).fit()
    small = classifier(delta=1e-6, budget=PrivacyBudget(2.6, 1e-5)).fit().guarantee_
    assert small.delta == 1e-5
    assert small.epsilon <= 2.5


def test_a_ready_design_is_used_as_it_is() -> None:
    noise = design(allowance(5, 0.25, 3), "constant")
    model = classifier(design=noise, epsilon=None).fit()
    assert model.noise_ is noise
    assert model.guarantee_.epsilon == 1.25
    with pytest.raises(ParameterError, match="design must be for 3 teachers, got one for 5"):
        classifier([constant("ill")] * 3, design=noise).fit()


def test_seeds_repeat_and_secret_coins_do_not() -> None:
    rows = np.zeros((300, 1))

    def said(seed: int | None) -> list[str]:
        model = classifier(random_state=seed, max_queries=600, m=1).fit()
        first, second = model.predict(rows), model.predict(rows)
        assert list(first) != list(second)
        return [*first, *second]

    assert said(3) == said(3) != said(4)
    assert said(None) != said(None)


def test_it_follows_the_conventions() -> None:
    model = classifier()
    assert "epsilon=0.5" in repr(model)
    assert model.get_params()["m"] == 2
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    assert model.fit() is model
    assert model.fit(X, Y) is model  # nothing was answered yet
    frozen = classifier([FrozenEstimator(one) for one in trained(3)]).fit()
    frozen.predict(X[:2])
    copy = clone(frozen)
    assert not hasattr(copy, "queries_")
    assert copy.fit().predict(X[:2]).shape == (2,)
    with pytest.raises(NotFittedError, match="number 0 has no classes_"):
        clone(classifier()).fit()


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"teachers": []}, "estimators must be a list"),
        ({"teachers": constant("ill")}, "estimators must be a list"),
        ({"teachers": [constant("ill")] * 4}, "teachers must be odd"),
        ({"teachers": [constant("ill")] * 4, "ties": "dice"}, "ties must be one of coin"),
        ({"teachers": [constant("ill"), DummyClassifier().fit([[0], [1]], ["ill", "ill"])]}, "number 1"),
        ({"teachers": [constant("ill"), DummyClassifier().fit([[0], [1]], ["ill", "x"])]}, "same two"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"m": 6}, r"m must be in \[1, 5\]"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": 0.3}, "delta must be given"),
        ({"design": "best"}, "name must be one of"),
        ({"voted_by": "wise"}, "voted_by must be one of"),
        ({"shards": "some"}, "shards must be one of"),
        ({"max_queries": 0}, "max_queries must be"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_a_wrong_parameter_is_named(facts: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        classifier(facts.pop("teachers", None), **facts).fit()


def test_a_teacher_that_says_something_else_costs_nothing() -> None:
    class Odd:
        classes_ = LABELS

        def predict(self, rows: Any) -> Any:
            return ["maybe"] * len(rows)

    model = classifier([Odd()]).set_params(m=1).fit()
    with pytest.raises(ParameterError, match="number 0 does not"):
        model.predict([[0.0]])
    assert model.queries_ == 0


# The guarantee behind it


def test_threads_do_not_overspend() -> None:
    slow = Slow(strategy="constant", constant="well").fit([[0.0]] * 2, LABELS)
    model = classifier([slow] * 3, max_queries=10).fit()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(model.predict, np.zeros((6, 1))) for _ in range(4)]
    refused = [future.exception() for future in asked]
    assert [type(error) for error in refused].count(BudgetError) == 3
    assert model.queries_ == 6
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - its own
    assert (again.queries_, len(again.predict(np.zeros((4, 1))))) == (6, 4)


def test_a_guarantee_names_the_neighbours_of_the_teachers() -> None:
    near = Neighbours(Relation.ADD_REMOVE)
    model = classifier(neighbours=near, design="constant").fit()
    assert model.guarantee_.neighbours == near
    verify(model.guarantee_)
    named = classifier(neighbours="zero-out", design="constant").fit()
    assert named.guarantee_.neighbours == Neighbours(Relation.ZERO_OUT)
    with pytest.raises(ParameterError, match="neighbours must be one of replace-one, add-remove, zero-out"):
        classifier(neighbours="added").fit()
    wrong: Any = 1
    with pytest.raises(ParameterError, match="neighbours must be a name, Neighbours or None, got 1"):
        classifier(neighbours=wrong).fit()


def test_disjoint_shards_need_no_noise() -> None:
    model = classifier(shards="disjoint", m=1).fit()
    assert min(model.noise_.gamma) > 1 - 1e-10
    assert model.guarantee_.epsilon == 0.5
    assert min(classifier(m=1).fit().noise_.gamma) < 0.9
    assert any("each record reaches one teacher" in note for note in model.notes_)


def test_what_contradicts_the_design_is_refused() -> None:
    noise = design(allowance(5, 0.1, 2, delta=1e-6), "constant")
    assert classifier(design=noise, epsilon=None).fit().noise_ == noise
    assert classifier(design=noise, epsilon=0.1, delta=1e-6).fit().noise_ == noise
    for wrong in ({"epsilon": 5.0}, {"epsilon": 0.1}, {"epsilon": 0.1, "delta": 1e-2}):
        with pytest.raises(ParameterError, match="must be those of the design"):
            classifier(design=noise, **wrong).fit()
    for change, message in (({"m": "2"}, "m must be"), ({"budget": (1.0, 0.0)}, "budget must be")):
        with pytest.raises(ParameterError, match=message):
            classifier(**change).fit()


def test_without_a_word_on_the_teachers_the_price_holds_for_both() -> None:
    noise = design(allowance(5, 0.1, 2, delta=1e-6), "constant")
    facts: dict[str, Any] = {"queries": 7, "shards": Shards.SHARED, "delta": 1e-3}
    both, notes = majority_guarantee(noise, **facts)
    verify(both)
    for voted_by in VotedBy:
        one, _ = majority_guarantee(noise, voted_by=voted_by, **facts)
        assert one.epsilon <= both.epsilon
        verify(one)
    assert "nobody said" in notes[0]
    assert "drawn afresh" not in str(both)
    alone, quiet = majority_guarantee(noise, **{**facts, "queries": 1}, alone=True)
    assert alone.epsilon <= 0.2
    assert "answer nothing else" in str(alone)
    assert not any("nobody said" in note for note in quiet)
    assert any(note == "the price is by: certified answers, composed." for note in quiet)
    assert majority_guarantee(noise, **{**facts, "queries": 1})[0].epsilon > 0.2


def test_the_default_delta_is_what_the_parts_need() -> None:
    noise = design(allowance(5, 0.1, 2, delta=1e-6), "constant")
    for voted_by in VotedBy:
        for shards in Shards:
            found = sum_of_deltas(noise, queries=7, voted_by=voted_by, shards=shards)
            one, _ = majority_guarantee(noise, queries=7, shards=shards, voted_by=voted_by)
            assert one.delta == found
            shared = 7 * 0.2 if voted_by is VotedBy.FRESH else 5 * 0.1
            alone = 7 * 0.1 if voted_by is VotedBy.FRESH else 0.1
            parts = alone if shards is Shards.DISJOINT else shared
            assert one.epsilon <= parts + 1e-6


@pytest.mark.parametrize("voted_by", [None, VotedBy.FIXED])
@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_a_delta_at_which_nothing_is_proven_is_refused(voted_by: VotedBy | None, delta: float) -> None:
    # Fixed models may reveal all with their own delta; of fresh answers, the coins alone bound something.
    noise = design(allowance(5, 0.1, 2, delta=1e-6), "constant")
    with pytest.raises(ParameterError, match="delta must be"):
        majority_guarantee(noise, queries=7, shards=Shards.SHARED, voted_by=voted_by, delta=delta)
