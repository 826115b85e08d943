"""`KnowledgeTransfer`: what it publishes, and what it claims for it."""

from __future__ import annotations

import math
import pickle
from typing import Any, Self

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from tacit.audits import clopper_pearson
from tacit.errors import BudgetError, ParameterError, PrivacyWarning, RefusalError
from tacit.learning import FederatedLogisticRegression
from tacit.privacy import (
    ApproximateDP,
    Guarantee,
    Neighbours,
    Parallel,
    PrivacyBudget,
    PureDP,
    Relation,
    Repeat,
    Unit,
    epsilon_of,
    guarantee,
    verify,
)
from tacit.randomness import secure, simulated
from tacit.voting import (
    GNMax,
    KnowledgeTransfer,
    NoiseFunction,
    Shards,
    Staircase,
    VotedBy,
    allowance,
    certified,
    design,
    gnmax_sigma_analytic,
    index_shards,
    majority_guarantee,
)
from tests.voting.transfer_world import (
    CALM,
    GNMAX_BUDGET,
    LABELS,
    PUBLIC,
    TRUTH,
    Shouting,
    X,
    Y,
    fitted,
    trained,
    transfer,
)

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* promises next to nothing")  # so that they agree

# What it costs


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("queries", [1, 40])
def test_the_plain_majority_costs_one_teacher_or_all_of_them(delta: float, queries: int) -> None:
    vote = ApproximateDP(0.5, delta) if delta else PureDP(0.5)
    one = fitted(transfer(Shouting(vote), epsilon=0.5, delta=delta, queries=queries))
    assert (one.guarantee_.epsilon, one.guarantee_.delta) == (0.5, delta)
    assert one.guarantee_.epsilon >= epsilon_of(Parallel((vote,) * 3), delta) - 1e-12
    shared = fitted(transfer(Shouting(vote), epsilon=0.5, delta=delta, queries=queries, shards="shared"))
    noise = certified(np.ones(2), allowance(3, 0.5, 3, delta=delta))
    assert noise.gamma == (1.0, 1.0)
    expected, _ = majority_guarantee(noise, queries=queries, shards=Shards.SHARED, voted_by=VotedBy.FIXED)
    assert (shared.guarantee_.epsilon, shared.guarantee_.delta) == (expected.epsilon, expected.delta)
    # Fixed models: all three, also for one answer, whose certificate could not be added to others.
    assert shared.guarantee_.epsilon == pytest.approx(1.5, rel=1e-9)
    for model in (one, shared):
        verify(model.guarantee_)
        assert model.guarantee_.neighbours == Neighbours()


@pytest.mark.parametrize("name", ["constant", "double-subsampling", "optimal"])
@pytest.mark.parametrize("shards", list(Shards))
def test_a_design_costs_what_fixed_teachers_cost(name: str, shards: Shards) -> None:
    model = fitted(
        transfer(epsilon=0.5, m=2, design=name, shards=str(shards), queries=30, teachers=5)
    )  # fmt: skip
    noise = design(allowance(5, 0.5, 2), name)
    assert model.noise_ == noise
    expected, notes = majority_guarantee(noise, queries=30, shards=shards, voted_by=VotedBy.FIXED)
    assert model.guarantee_.epsilon == expected.epsilon == (0.5 if shards is Shards.DISJOINT else 2.5)
    assert model.notes_ == notes
    ready = fitted(transfer(design=noise, shards=str(shards), queries=30, teachers=5))
    assert ready.guarantee_ == model.guarantee_


def test_gnmax_costs_its_releases_whatever_the_teachers_are() -> None:
    model = fitted(transfer(LogisticRegression(), design=CALM, queries=25, budget=GNMAX_BUDGET))
    assert model.guarantee_.epsilon == pytest.approx(epsilon_of(Repeat(CALM.event(), 25), 1e-5), abs=2e-6)
    assert model.guarantee_.delta == 1e-5
    assert model.noise_ is CALM
    verify(model.guarantee_)
    assert "each record reaches one teacher" in str(model.guarantee_)
    one = GNMax(sigma=gnmax_sigma_analytic(0.5, 1e-5))
    single = fitted(transfer(LogisticRegression(), design=one, queries=1, budget=PrivacyBudget(0.5001, 1e-5)))
    assert single.guarantee_.epsilon == pytest.approx(0.5, abs=1e-4)


def test_the_guarantee_says_what_it_rests_on() -> None:
    proven = fitted(transfer(epsilon=0.5)).guarantee_
    assert "the moon is up" in proven.assumptions
    assert "private by itself" not in str(proven)  # it was proven, and checked
    assert "no private record had an influence on the public rows" in proven.assumptions
    assert proven.simulated
    vouched = fitted(
        transfer(Shouting(), epsilon=0.5, random_state=None, teachers_are_private=True)
    ).guarantee_
    assert "every teacher is private by itself with epsilon 0.5" in vouched.assumptions
    assert not vouched.simulated
    assert "protects nobody" not in str(vouched)
    with pytest.warns(PrivacyWarning, match="the classes were read off the data"):
        read = fitted(transfer(epsilon=0.5, classes=None)).guarantee_
    assert "it does not matter that the classes were read off the data without privacy" in read.assumptions


def test_a_teacher_that_only_simulates_is_said() -> None:
    claim = guarantee(PureDP(0.5), 0.0, observer="everybody", simulated=True)
    model = fitted(transfer(Shouting(claim=claim), epsilon=0.5, random_state=None))
    assert model.guarantee_.simulated


def test_neighbours_are_those_of_the_teachers() -> None:
    blank = Neighbours(relation=Relation.ZERO_OUT)
    assert fitted(transfer(Shouting(PureDP(0.5, blank)), epsilon=0.5)).guarantee_.neighbours == blank
    for near in (Neighbours(relation=Relation.ADD_REMOVE), Neighbours(unit=Unit.PERSON)):
        teacher = Shouting(PureDP(0.5, near))
        trained.clear()
        with pytest.raises(RefusalError, match="shards must be 'shared'"):
            fitted(transfer(teacher, epsilon=0.5))
        assert len(trained) == 1  # refused after the first of them
        shared = fitted(transfer(teacher, epsilon=0.5, shards="shared", queries=9)).guarantee_
        assert (shared.neighbours, shared.epsilon) == (near, 1.5)


@pytest.mark.parametrize("relation", Relation)
def test_stated_neighbours_are_those_of_the_labels(relation: Relation) -> None:
    near = Neighbours(relation)
    vouched: dict[str, Any] = {"shards": "shared", "epsilon": 0.5, "queries": 9, "teachers_are_private": True}
    model = fitted(transfer(Shouting(), neighbours=relation.value, **vouched))
    assert (model.guarantee_.neighbours, model.guarantee_.epsilon) == (near, 1.5)
    assert fitted(transfer(Shouting(PureDP(0.5, near)), neighbours=near, **vouched)).guarantee_.epsilon == 1.5
    verify(model.guarantee_)
    open_design: dict[str, Any] = {"design": CALM, "queries": 25, "budget": GNMAX_BUDGET}
    open_model = transfer(LogisticRegression(), neighbours=near, **open_design)
    if relation is Relation.ADD_REMOVE:
        trained.clear()
        with pytest.raises(RefusalError, match="moves the index of every later record"):
            fitted(open_model)
        return
    # One unit moves one vote, whether it has other values or none.
    found = fitted(open_model).guarantee_
    assert (found.neighbours, found.epsilon) == (
        near,
        fitted(transfer(LogisticRegression(), **open_design)).guarantee_.epsilon,
    )


def test_teachers_under_other_neighbours_than_stated_are_refused() -> None:
    teacher = Shouting(PureDP(0.5, Neighbours(Relation.ZERO_OUT)))
    with pytest.raises(RefusalError, match=r"same neighbours: .*replac.*, and .*blank"):
        fitted(transfer(teacher, epsilon=0.5, neighbours="replace-one"))
    trained.clear()
    for wrong, error, said in (
        ("swap", ParameterError, "neighbours must be one of replace-one"),
        (3, ParameterError, "neighbours must be a name, Neighbours or None, got 3"),
        ("add-remove", RefusalError, "shards must be 'shared' where neighbours add or remove a record"),
        (Neighbours(unit=Unit.PERSON), RefusalError, "shards are cut by record"),
    ):
        with pytest.raises(error, match=said):
            fitted(transfer(Shouting(), epsilon=0.5, teachers_are_private=True, neighbours=wrong))
    assert not trained  # none of them has seen a record


class Failing(LogisticRegression):  # type: ignore[misc]
    """It never learns."""

    def fit(self, X: Any, y: Any) -> Self:
        raise ZeroDivisionError


def test_a_student_that_fails_leaves_no_older_student_under_a_new_price() -> None:
    model = fitted(transfer(LogisticRegression(), design=CALM, budget=GNMAX_BUDGET))
    paid = model.guarantee_
    model.set_params(design=GNMax(sigma=200.0), student=Failing())
    with pytest.raises(ZeroDivisionError):
        fitted(model)
    assert model.guarantee_.epsilon < paid.epsilon
    with pytest.raises(NotFittedError):
        model.predict(PUBLIC)


def test_a_fit_that_is_refused_leaves_nothing_behind() -> None:
    model = fitted(transfer(LogisticRegression(), design=CALM, budget=GNMAX_BUDGET))
    before = model.predict(PUBLIC)
    model.set_params(budget=PrivacyBudget(0.1, 1e-5))
    with pytest.raises(BudgetError):
        model.fit(np.zeros((60, 5)), Y[:60], X_public=np.ones((9, 5)))
    assert model.n_features_in_ == 2
    assert (model.predict(PUBLIC) == before).all()


def test_a_student_must_say_labels() -> None:
    for student, more in ((LinearRegression(), {}), (LogisticRegression(), {"semi_supervised": True})):
        facts = {"design": CALM, "budget": GNMAX_BUDGET, "queries": 20, **more}
        model = transfer(LogisticRegression(), student, **facts)
        with pytest.raises(ParameterError, match="student must predict one of the labels 0 to 1"):
            fitted(model)
        assert len(model.labels_) == 20


def test_a_staircase_costs_its_epsilon_for_every_label() -> None:
    steps = Staircase(teachers=3, epsilon=0.2)
    one = fitted(transfer(LogisticRegression(), design=steps, queries=15))
    assert (one.guarantee_.epsilon, one.guarantee_.delta, one.noise_) == (3.0, 0.0, steps)
    assert "the teachers share no randomness" in one.guarantee_.assumptions
    verify(one.guarantee_)
    lossy = Staircase(teachers=3, epsilon=0.2, delta=1e-6)
    assert fitted(transfer(LogisticRegression(), design=lossy, queries=15)).guarantee_.delta == pytest.approx(
        15e-6
    )
    for change, says in (
        ({"shards": "shared"}, "shards must be 'disjoint' for Staircase"),
        ({"teachers": 5}, "design must be for 5 teachers, got one for 3"),
        ({"classes": ["ill", "well", "dead"]}, "got a Staircase for 2"),
        ({"epsilon": 0.2}, "must not be given for Staircase"),
    ):
        with pytest.raises(ParameterError, match=says):
            fitted(transfer(LogisticRegression(), design=steps, **change))


# What it publishes


class OwnLabel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A teacher that says to all rows the label of the first record it saw."""

    def fit(self, X: Any, y: Any) -> Self:
        self.says_ = y[0]
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.says_)


def shard_labels(votes: list[str], n: int = 40) -> np.ndarray[Any, Any]:
    """Labels such that teacher k, of `OwnLabel`, votes for `votes[k]`."""
    y = np.empty(n, dtype=object)
    for part, vote in zip(index_shards(n, len(votes), 0), votes, strict=True):
        y[part] = vote
    return y.astype(str)


def test_labels_have_the_law_of_the_design() -> None:
    rows = 40_000
    near = math.sqrt(math.log(2e9) / (2 * rows))  # Hoeffding: missed with probability below 1e-9
    y = shard_labels(["well"] * 4 + ["ill"])
    facts: dict[str, Any] = {"teachers": 5, "epsilon": 0.5, "m": 2, "teachers_are_private": True}
    student = DummyClassifier()
    for name in ("subsampling", "optimal"):
        model = transfer(OwnLabel(), student, design=name, **facts)
        model.fit(X[:40], y, X_public=np.zeros((rows, 2)))
        assert isinstance(model.noise_, NoiseFunction)
        chance = model.noise_.output_probabilities()[4]
        assert 0.55 < chance < 0.99
        assert abs(np.mean(model.labels_ == "well") - chance) < near
    calm = transfer(OwnLabel(), student, design=CALM, teachers=5, budget=PrivacyBudget(1e4, 1e-5))
    calm.fit(X[:40], y, X_public=np.zeros((rows, 2)))
    assert abs(np.mean(calm.labels_ == "well") - CALM.correct_probability(3)) < near
    plain = transfer(OwnLabel(), student, **facts).fit(X[:40], y, X_public=np.zeros((rows, 2)))
    assert (plain.labels_ == "well").all()
    tied = transfer(OwnLabel(), student, **{**facts, "teachers": 4}, ties="coin")
    tied.fit(X[:40], shard_labels(["well", "ill"] * 2), X_public=np.zeros((rows, 2)))
    assert abs(np.mean(tied.labels_ == "well") - 0.5) < near


def test_several_classes_by_gnmax_or_by_a_plain_majority() -> None:
    rows, three = np.zeros((9000, 2)), ["a", "b", "c"]
    y = shard_labels(["a", "c", "c", "b", "c"])
    facts: dict[str, Any] = {"teachers": 5, "classes": three}
    plain = transfer(OwnLabel(), DummyClassifier(), epsilon=0.5, teachers_are_private=True, **facts)
    plain.fit(X[:40], y, X_public=rows)
    assert (plain.labels_ == "c").all()
    assert plain.noise_ is None
    assert plain.guarantee_.epsilon == 0.5
    shared = plain.set_params(shards="shared").fit(X[:40], y, X_public=rows)
    assert shared.guarantee_.epsilon == 2.5
    verify(shared.guarantee_)
    tied = transfer(OwnLabel(), DummyClassifier(), epsilon=0.5, teachers_are_private=True, **facts)
    tied.fit(X[:40], shard_labels(["a", "a", "c", "c", "b"]), X_public=rows)
    assert abs(np.mean(tied.labels_ == "a") - 0.5) < math.sqrt(math.log(2e9) / 18_000)
    assert "b" not in tied.labels_
    noisy = transfer(
        OwnLabel(), DummyClassifier(), design=GNMax(sigma=0.5, classes=3), budget=PrivacyBudget(1e6, 1e-5),
        **facts,
    ).fit(X[:40], y, X_public=rows)  # fmt: skip
    assert 0.9 < np.mean(noisy.labels_ == "c") < 1


def test_a_gnmax_teacher_may_lack_a_class() -> None:
    y = np.where(np.isin(np.arange(len(X)), index_shards(len(X), 3, 0)[1]), "ill", Y)
    model = transfer(
        LogisticRegression(), design=GNMax(sigma=0.01), queries=5, budget=PrivacyBudget(1e9, 1e-5)
    ).fit(X, y, X_public=PUBLIC)
    assert set(model.labels_) <= set(LABELS)
    alone = transfer(
        LogisticRegression(), design=GNMax(sigma=0.01), teachers=1, queries=5, budget=PrivacyBudget(1e9, 1e-5)
    ).fit(X, np.full(len(X), "ill"), X_public=PUBLIC)
    assert (alone.labels_ == "ill").all()
    assert (alone.predict(PUBLIC) == "ill").all()  # a student that heard one label says it


@pytest.mark.parametrize(
    "student", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_the_student_learns_a_separable_problem(student: Any) -> None:
    model = fitted(transfer(LogisticRegression(), student, design=CALM, teachers=11, budget=GNMAX_BUDGET))
    assert model.score(PUBLIC, TRUTH) > 0.85
    assert is_classifier(model)
    assert model.n_features_in_ == 2
    assert model.labels_.shape == model.queries_.shape == (120,)
    private = FederatedLogisticRegression(budget=PrivacyBudget(4.0, 1e-5), bounds=(-1, 1))
    by_votes = fitted(transfer(private, teachers=5))
    assert by_votes.score(PUBLIC, TRUTH) > 0.85
    assert (by_votes.guarantee_.epsilon, by_votes.guarantee_.delta) == (4.0, 1e-5)


@pytest.mark.parametrize(
    "student", [LabelSpreading(), SelfTrainingClassifier(KNeighborsClassifier(n_neighbors=1))]
)
def test_rows_without_a_label_help_a_semi_supervised_student(student: Any) -> None:
    seen: list[Any] = []

    class Watched(type(student)):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            seen.append(y)
            return super().fit(X, y)

    # scikit-learn clones by the constructor's names, which the subclass shares.
    student.__class__ = Watched
    model = fitted(
        transfer(
            LogisticRegression(), student, design=GNMax(sigma=1.0), teachers=11, queries=30,
            semi_supervised=True, budget=PrivacyBudget(1e3, 1e-5),
        )
    )  # fmt: skip
    (known,) = seen
    assert (known[model.queries_] >= 0).all()
    assert (np.delete(known, model.queries_) == -1).all()
    assert (LABELS[known[model.queries_]] == model.labels_).all()
    assert model.score(PUBLIC, TRUTH) > 0.75


def test_the_shards_and_the_queries_depend_on_no_value() -> None:
    seen: list[Any] = []

    class Watched(OwnLabel):
        def fit(self, X: Any, y: Any) -> Self:
            seen.append(X[:, 0].copy())
            return super().fit(X, y)

    def run(y: Any, **changes: Any) -> tuple[list[Any], Any]:
        seen.clear()
        model = transfer(Watched(), epsilon=0.5, teachers_are_private=True, queries=7, **changes)
        model.fit(X, y, X_public=PUBLIC)
        return list(seen), model.queries_

    plain, asked = run(Y)
    for y in (Y[::-1], np.sort(Y), simulated(3, "labels").permutation(Y)):
        again, same = run(y)
        assert all(np.array_equal(a, b) for a, b in zip(plain, again, strict=True))
        assert np.array_equal(asked, same)
    other, elsewhere = run(Y, split_seed=1)
    assert not np.array_equal(plain[0], other[0])
    assert not np.array_equal(asked, elsewhere)
    whole, _ = run(Y, shards="shared")
    assert all(np.array_equal(part, X[:, 0]) for part in whole)
    joined = np.sort(np.concatenate(index_shards(23, 5, 7)))
    assert np.array_equal(joined, np.arange(23))


def test_seeds_repeat_and_secret_coins_do_not() -> None:
    def said(seed: int | None) -> list[str]:
        model = transfer(
            LogisticRegression(), design=GNMax(sigma=20.0), random_state=seed, budget=GNMAX_BUDGET
        )
        return list(fitted(model).labels_)

    assert said(3) == said(3) != said(4)
    assert said(None) != said(None)


def test_neither_teachers_nor_votes_leave_with_a_pickle() -> None:
    class Marked(OwnLabel):
        def fit(self, X: Any, y: Any) -> Self:
            self.secret_ = "SECRET-OF-A-RECORD"  # noqa: S105
            return super().fit(X, y)

    globals()["Marked"], Marked.__qualname__ = Marked, "Marked"
    model = fitted(transfer(Marked(), design=CALM, budget=GNMAX_BUDGET))
    stored = pickle.dumps(model)
    assert b"SECRET-OF-A-RECORD" not in stored
    assert b"SECRET-OF-A-RECORD" in pickle.dumps(Marked().fit(X, Y))
    assert not [name for name in vars(model) if "vote" in name or name.endswith("teachers_")]
    read = pickle.loads(stored)  # noqa: S301 - our own bytes
    assert np.array_equal(read.predict(PUBLIC), model.predict(PUBLIC))


def test_it_follows_the_conventions() -> None:
    model = transfer(epsilon=0.5)
    assert model.get_params()["epsilon"] == 0.5
    assert "epsilon=0.5" in repr(model)
    with pytest.raises(NotFittedError):
        model.predict(PUBLIC)
    with pytest.raises(ValueError, match="features"):
        model.fit(X, Y, X_public=PUBLIC[:, :1])
    done: list[tuple[int, int]] = []
    assert model.fit(X, Y, X_public=PUBLIC, progress=lambda *at: done.append(at)) is model
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert not hasattr(clone(model), "labels_")


def test_labels_that_are_paid_for_outlive_a_student_that_fails() -> None:
    class Failing(DummyClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
            raise RuntimeError("no student")

    model = transfer(LogisticRegression(), Failing(), design=CALM, budget=GNMAX_BUDGET)
    with pytest.raises(RuntimeError, match="no student"):
        fitted(model)
    assert model.labels_.shape == (120,)
    assert model.guarantee_.epsilon > 0


# The attack


class Informer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The worst teacher: it answers by randomized response whether it saw the record that is looked for."""

    guarantee_: Guarantee

    def __init__(self, epsilon: float = 1.0, honest: bool = True) -> None:
        self.epsilon = epsilon
        self.honest = honest

    def fit(self, X: Any, y: Any) -> Self:
        if (X[:, 1] != 0).any():  # a shard that balances the others, with no word on the record
            self.says_ = int(X[0, 1] > 0)
        else:
            keep = 1.0 if not self.honest else 1 / (1 + math.exp(-self.epsilon))
            self.says_ = int(X[:, 0].max() > 0) ^ int(secure().random() >= keep)
        self.guarantee_ = guarantee(PureDP(self.epsilon), 0.0, observer="everybody")
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.says_)


def released(here: bool, runs: int, *, honest: bool) -> tuple[int, KnowledgeTransfer]:
    """Return how often the first label is 1, with the record here or replaced."""
    first, second, third = index_shards(9, 3, 0)
    D = np.zeros((9, 2))
    D[second, 1], D[third, 1] = 1.0, -1.0  # two teachers cancel, so that the third decides
    D[first[0], 0] = float(here)
    model = KnowledgeTransfer(
        Informer(honest=honest), DummyClassifier(), teachers=3, epsilon=1.0, classes=[0, 1]
    )
    public, y = np.zeros((1, 2)), np.zeros(9, dtype=int)
    hits = sum(int(model.fit(D, y, X_public=public).labels_[0]) for _ in range(runs))
    return hits, model


@pytest.mark.parametrize("honest", [True, False])
def test_membership_of_a_record_stays_below_the_claim(honest: bool) -> None:
    runs = 400 if honest else 200  # what a teacher gives away needs no fine count
    (there, model), (gone, _) = (released(here, runs, honest=honest) for here in (True, False))
    claim = model.guarantee_
    assert (claim.epsilon, claim.delta) == (1.0, 0.0)
    low, high = clopper_pearson(np.array([there, gone]), runs, confidence=1 - 1e-7)
    leaked = math.log(low[0] / high[1])
    if honest:
        assert leaked <= claim.epsilon
        assert 0.6 < there / runs < 0.86  # the attack is the worst there is: e / (1 + e) = 0.73
        assert 0.14 < gone / runs < 0.4
    else:
        assert leaked > 2 * claim.epsilon  # a teacher that only says that it is private is caught


def test_the_types_of_designs() -> None:
    model = fitted(transfer(epsilon=0.5, teachers=1))
    assert isinstance(model.noise_, NoiseFunction)
    assert model.guarantee_.epsilon == 0.5
    loud = fitted(transfer(Shouting(PureDP(200.0)), epsilon=200.0))  # e^600: no certificate, and none needed
    assert loud.noise_ is None
    assert loud.guarantee_.epsilon == 200.0
    many = fitted(transfer(epsilon=0.5, teachers=601))
    assert many.noise_ is None
    assert (many.labels_ == "well").all()
