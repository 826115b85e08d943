"""A guarantee that a teacher carries: the default, the least that may be stated, part of the statement."""

from __future__ import annotations

import math
import pickle
from types import SimpleNamespace
from typing import Any, Self

import msgspec
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit.errors import ParameterError, RefusalError
from tacit.learning import FederatedLogisticRegression
from tacit.privacy import (
    ApproximateDP,
    Event,
    Guarantee,
    Neighbours,
    NonPrivate,
    PrivacyBudget,
    PureDP,
    Relation,
    Unit,
    guarantee,
    verify,
)
from tacit.voting import KnowledgeTransfer, PrivateVotingClassifier, allowance, design
from tacit.voting.proofs import covers
from tacit.voting.teachers import check_teacher
from tests.voting.transfer_world import LABELS, PUBLIC, Shouting, X, Y, trained

ROWS = np.zeros((4, 2))
PERSONS = Neighbours(unit=Unit.PERSON)


def says(event: Event, delta: float = 0.0, **more: Any) -> Guarantee:
    return guarantee(event, delta, observer="everybody", assumptions=("the moon is up",), **more)


class Carrying(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A teacher that says one thing, and carries what it is told to after every fit."""

    def __init__(self, claim: Any = None) -> None:
        self.claim = claim

    def fit(self, X: Any, y: Any = None) -> Self:
        self.classes_ = np.array(LABELS)
        if self.claim is not None:
            self.guarantee_ = self.claim
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), "well")


def carrying(claim: Any, k: int = 1) -> list[Carrying]:
    return [Carrying(claim).fit(ROWS) for _ in range(k)]


HALF = says(PureDP(0.5))


def voting(teachers: list[Any], **facts: Any) -> PrivateVotingClassifier:
    return PrivateVotingClassifier(teachers, **{"max_queries": 20, **facts}).fit()


def test_less_than_a_teacher_proves_is_refused_and_what_it_proves_is_the_default() -> None:
    teachers = carrying(HALF, 5)
    both = r"epsilon 0\.1 at delta 0\.0 is stated .* number 0 says epsilon 0\.5 at delta 0\.0"
    with pytest.raises(ParameterError, match=both):
        voting(teachers, epsilon=0.1)
    with pytest.raises(ParameterError, match=both):
        voting(teachers, design=design(allowance(5, 0.1, 2), "constant"))
    for facts, epsilon in (
        ({}, 2.5),  # five fixed teachers
        ({"shards": "disjoint"}, 0.5),
        ({"epsilon": 0.5}, 2.5),
        ({"epsilon": 0.7}, 3.5),
        ({"design": design(allowance(5, 0.5, 2), "constant")}, 2.5),
    ):
        price = voting(teachers, **facts).guarantee_
        assert price.epsilon == pytest.approx(epsilon)
        assert not price.simulated
        verify(price)
    with pytest.raises(ParameterError, match="delta must come with epsilon"):
        voting(teachers, delta=1e-6)


def test_a_level_is_not_rounded_because_votes_multiply_it() -> None:
    """Else teachers that cost 1e-6 would be counted as a tenth of that."""
    teachers = carrying(says(PureDP(1e-6)), 5)
    with pytest.raises(ParameterError, match="state no less"):
        voting(teachers, epsilon=1e-7)
    level = PrivacyBudget(1e-7)
    costly = SimpleNamespace(budget=PrivacyBudget(1e-6), get_params=dict)
    with pytest.raises(RefusalError, match="more than the epsilon 1e-07"):
        check_teacher(costly, level, vouched=True, seeded=True)
    for epsilon in (1 / 3, math.log(3)):
        price = voting(carrying(says(PureDP(epsilon)), 5), epsilon=epsilon).guarantee_
        assert price.epsilon == pytest.approx(5 * epsilon, abs=1e-6)
    (teacher,) = carrying(says(ApproximateDP(0.1, 1e-6), 1e-6))
    assert not covers(PrivacyBudget(0.1, 1e-7), teacher.guarantee_)


def test_the_weakest_of_several_guarantees_is_the_default() -> None:
    lossy = says(ApproximateDP(0.25, 1e-6), 1e-6)
    teachers = [*carrying(HALF), *carrying(lossy), *carrying(says(PureDP(1.0)))]
    price = voting(teachers).guarantee_
    assert [price.epsilon, price.delta] == pytest.approx([3.0, 3e-6])
    verify(price)
    for less in ({"epsilon": 0.9, "delta": 1e-6}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-7}):
        with pytest.raises(ParameterError, match="state no less"):
            voting(teachers, **less)


def test_a_teacher_with_several_guarantees_is_as_good_as_its_weakest() -> None:
    (teacher,) = carrying(HALF)
    teacher.guarantees_ = [HALF, says(PureDP(0.75))]
    assert voting([teacher]).guarantee_.epsilon == 0.75


def test_the_statement_carries_what_the_guarantees_rest_on() -> None:
    proven = voting(carrying(HALF, 3)).guarantee_
    assert "the moon is up" in proven.assumptions
    assert "private by itself" not in str(proven)
    mixed = [*carrying(HALF, 2), *carrying(None)]
    with pytest.raises(ParameterError, match=r"epsilon must be given, .*: number 2 carries no guarantee"):
        voting(mixed)
    vouched = voting(mixed, epsilon=0.6).guarantee_
    assert "every teacher is private by itself with epsilon 0.6" in vouched.assumptions
    assert "the moon is up" in vouched.assumptions
    seeded = voting([*carrying(HALF, 2), *carrying(says(PureDP(0.5), simulated=True))]).guarantee_
    assert seeded.simulated
    assert "protects nobody" in str(seeded)


def test_the_neighbours_are_those_of_the_guarantees() -> None:
    persons = carrying(says(PureDP(0.5, PERSONS)), 3)
    assert voting(persons).guarantee_.neighbours == PERSONS
    assert voting(persons, neighbours=PERSONS).guarantee_.neighbours == PERSONS
    assert "replacing one person" in str(voting(persons).guarantee_)
    for wrong in (Neighbours(), Neighbours(Relation.ZERO_OUT, Unit.PERSON)):
        with pytest.raises(ParameterError, match="number 0 is private under replacing one person"):
            voting(persons, neighbours=wrong)
    with pytest.raises(ParameterError, match="number 2 is private under replacing one person"):
        voting([*carrying(HALF, 2), *persons[:1]])
    # One that carries nothing is taken at its word, which is then about the same relation.
    assert voting([*persons[:2], *carrying(None)], epsilon=0.5).guarantee_.neighbours == PERSONS


def wrapped(kind: str, claim: Any = HALF) -> Any:
    inner = Carrying(claim)
    labels = np.resize(LABELS, len(X))
    match kind:
        case "pipeline":
            return make_pipeline(StandardScaler(), inner).fit(X, labels)
        case "search":
            return GridSearchCV(inner, {}, cv=2).fit(X, labels)
        case "votes":
            return VotingClassifier([("one", inner), ("other", DummyClassifier())]).fit(X, labels)
        case "bags":
            return BaggingClassifier(inner, n_estimators=2).fit(X, labels)
        case "array":
            outer = Carrying().fit(ROWS)
            outer.parts_ = np.array([{"a": [inner.fit(ROWS)]}], dtype=object)
            return outer
        case _:
            return FrozenEstimator(make_pipeline(inner.fit(ROWS)))


@pytest.mark.parametrize("kind", ["pipeline", "search", "votes", "bags", "array", "frozen pipeline"])
def test_a_part_proves_nothing_about_the_whole_but_less_than_it_costs_is_refused(kind: str) -> None:
    teacher = wrapped(kind)
    with pytest.raises(ParameterError, match=r"epsilon must be given, .*: number 0 carries no guarantee"):
        voting([teacher])
    with pytest.raises(ParameterError, match=r"number 0 says epsilon 0\.5 at delta 0\.0"):
        voting([teacher], epsilon=0.49)
    with pytest.raises(ParameterError, match="voted_by must be 'fixed'"):
        voting([teacher], epsilon=0.5, voted_by="fresh")
    stated = voting([teacher], epsilon=0.5).guarantee_
    assert stated.epsilon == 0.5
    assert "every teacher is private by itself with epsilon 0.5" in stated.assumptions
    with pytest.raises(ParameterError, match="number 0 is private under replacing one person"):
        voting([wrapped(kind, says(PureDP(0.1, PERSONS)))], epsilon=0.5, neighbours=Neighbours())


def test_a_frozen_teacher_is_the_teacher() -> None:
    price = voting([FrozenEstimator(one) for one in carrying(HALF, 3)]).guarantee_
    assert price.epsilon == 1.5
    assert "private by itself" not in str(price)


def test_a_teacher_may_hold_itself_or_very_many_parts() -> None:
    (teacher,) = carrying(None)
    teacher.self_ = teacher
    assert voting([teacher], epsilon=0.5).guarantee_.epsilon == 0.5
    teacher.parts_ = [Carrying() for _ in range(10_001)]
    with pytest.raises(RefusalError, match="at most 10000 parts; number 0 has more"):
        voting([teacher], epsilon=0.5)


@pytest.mark.parametrize(
    ("claim", "error", "match"),
    [
        (0.5, RefusalError, "must be a Guarantee; that of number 0 is not one"),
        (
            msgspec.structs.replace(HALF, epsilon=0.1),
            RefusalError,
            r"of number 0 does not hold: the statement claims epsilon 0\.1",
        ),
        (says(NonPrivate()), RefusalError, "claims nothing"),
        (HALF, ParameterError, "voted_by must be 'fixed' where a teacher carries a guarantee, as number 0"),
    ],
)
def test_what_teachers_cannot_claim_is_refused(claim: Any, error: type[Exception], match: str) -> None:
    facts = {"voted_by": "fresh"} if claim is HALF else {}
    with pytest.raises(error, match=match):
        voting(carrying(claim), **facts)
    with pytest.raises(error, match=r"must be a Guarantee|does not hold|claims nothing|voted_by must"):
        voting(carrying(claim), epsilon=0.5, **facts)


def test_a_teacher_that_is_fitted_again_is_another_release() -> None:
    teachers = carrying(HALF, 3)
    model = voting(teachers)
    assert len(model.predict(ROWS)) == 4
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    teachers[1].fit(ROWS)
    with pytest.raises(RefusalError, match="number 1 of the estimators was fitted again"):
        model.predict(ROWS)
    assert model.queries_ == 4  # nothing was asked of the teachers
    assert len(copied.predict(ROWS)) == 4
    copied.estimators[0].fit(ROWS)
    with pytest.raises(RefusalError, match="number 0 of the estimators was fitted again"):
        copied.predict(ROWS)
    plain = voting([LogisticRegression().fit(X, Y)], epsilon=0.5)
    plain.estimators[0].fit(X, Y)
    with pytest.raises(RefusalError, match="fitted again"):
        plain.predict(X[:2])
    frozen = clone(PrivateVotingClassifier([FrozenEstimator(one) for one in carrying(HALF, 3)], m=1))
    assert frozen.fit().guarantee_.epsilon == 1.5


def test_federated_teachers_need_no_word() -> None:
    budget = PrivacyBudget(2.0, 1e-5)
    teachers = [
        FederatedLogisticRegression(budget=budget, bounds=(-1, 1), classes=LABELS, rounds=2).fit(
            X[k::3], Y[k::3]
        )
        for k in range(3)
    ]
    model = voting(teachers, shards="disjoint")
    weakest = max(one.guarantee_.epsilon for one in teachers)
    assert model.guarantee_.epsilon == pytest.approx(weakest)
    assert 1.9 < weakest <= 2.0
    verify(model.guarantee_)
    with pytest.raises(ParameterError, match=r"epsilon 0\.1 at delta 1e-05 is stated"):
        voting(teachers, epsilon=0.1, delta=1e-5)


# The student's teachers


def transfer(teacher: Any, **facts: Any) -> KnowledgeTransfer:
    model = KnowledgeTransfer(
        teacher, LogisticRegression(), **{"teachers": 3, "classes": LABELS, "random_state": 1, **facts}
    )
    return model.fit(X, Y, X_public=PUBLIC)


def test_nobody_can_vouch_for_less_than_a_part_of_a_teacher_costs() -> None:
    inner = make_pipeline(StandardScaler(), Shouting(PureDP(0.5)))
    with pytest.raises(RefusalError, match=r"teacher must prove its privacy .* Pipeline"):
        transfer(inner, epsilon=0.5)
    trained.clear()
    with pytest.raises(RefusalError, match=r"number 0 proves epsilon 0\.5 .*; epsilon 0\.1 .* No label"):
        transfer(inner, epsilon=0.1, teachers_are_private=True)
    assert len(trained) == 1
    vouched = transfer(inner, epsilon=0.5, teachers_are_private=True).guarantee_
    assert "every teacher is private by itself with epsilon 0.5" in vouched.assumptions
    budgeted = make_pipeline(StandardScaler(), FederatedLogisticRegression(budget=PrivacyBudget(0.5, 1e-5)))
    with pytest.raises(RefusalError, match=r"teacher has a budget of epsilon 0\.5 and delta 1e-05"):
        transfer(budgeted, epsilon=0.1, teachers_are_private=True)
