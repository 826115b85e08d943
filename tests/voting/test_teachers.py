"""What teachers of a student must prove and share, and what is refused before anything is published."""

from __future__ import annotations

from typing import Any, Self

import msgspec
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from tacit.errors import BudgetError, DataError, ParameterError, RefusalError
from tacit.learning import FederatedLogisticRegression
from tacit.privacy import (
    ApproximateDP,
    Event,
    Neighbours,
    NonPrivate,
    PrivacyBudget,
    PureDP,
    Relation,
    guarantee,
)
from tacit.randomness import simulated
from tacit.voting import (
    GNMax,
    NoiseFunction,
    allowance,
    certified,
    design,
    index_shards,
)
from tests.voting.transfer_world import (
    CALM,
    GNMAX_BUDGET,
    LABELS,
    PUBLIC,
    Shouting,
    X,
    Y,
    fitted,
    trained,
    transfer,
)


@pytest.mark.parametrize(
    ("teacher", "says"),
    [
        (Shouting(), "number 0 has none after fit"),
        (Shouting(PureDP(0.6)), r"number 0 proves epsilon 0\.6 at delta 0\.0"),
        (Shouting(ApproximateDP(0.4, 1e-9)), "proves epsilon 0.4 at delta 1e-09"),
        (Shouting(NonPrivate()), "proves epsilon inf"),
        (Shouting(claim="trust me"), "must be a Guarantee"),
    ],
)
def test_a_teacher_must_prove_its_level(teacher: Any, says: str) -> None:
    with pytest.raises(RefusalError, match=says):
        fitted(transfer(teacher, epsilon=0.5))


def test_a_forged_guarantee_is_priced_again() -> None:
    honest = guarantee(PureDP(4.0), 0.0, observer="everybody")
    forged = msgspec.structs.replace(honest, epsilon=0.5)
    with pytest.raises(RefusalError, match="does not hold"):
        fitted(transfer(Shouting(claim=forged), epsilon=0.5))


def test_a_level_with_many_decimals_can_be_proven() -> None:
    model = fitted(transfer(Shouting(PureDP(1 / 3)), epsilon=1 / 3))
    assert model.guarantee_.epsilon == 0.333334


@pytest.mark.parametrize("vouched", [False, True])
def test_a_teacher_that_cannot_prove_it_is_refused_before_training(vouched: bool) -> None:
    calls: list[int] = []
    model = transfer(LogisticRegression(), epsilon=0.5, teachers_are_private=vouched)
    if vouched:
        assert fitted(model).guarantee_.epsilon == 0.5
        return
    with pytest.raises(RefusalError, match="LogisticRegression has neither a `budget`"):
        model.fit(X, Y, X_public=PUBLIC, progress=lambda *_: calls.append(1))
    assert not calls
    with pytest.raises(RefusalError, match="FederatedLogisticRegression has neither"):
        fitted(transfer(FederatedLogisticRegression(bounds=(-1, 1)), epsilon=0.5))


def test_a_vouched_teacher_with_a_proof_is_held_to_it() -> None:
    with pytest.raises(RefusalError, match=r"proves epsilon 0\.6"):
        fitted(transfer(Shouting(PureDP(0.6)), epsilon=0.5, teachers_are_private=True))


@pytest.mark.parametrize(
    ("facts", "kind", "says"),
    [
        ({"epsilon": None}, ParameterError, "epsilon must be given"),
        ({"epsilon": -1.0}, ParameterError, "epsilon"),
        ({"teachers": 0}, ParameterError, "teachers must be"),
        ({"teachers": 4}, ParameterError, "teachers must be odd"),
        ({"teachers": 4, "ties": "dice"}, ParameterError, "ties must be one of"),
        ({"teachers": 661}, ParameterError, "records must be"),
        ({"m": 4, "design": "optimal"}, ParameterError, r"m must be in \[1, 3\]"),
        ({"design": "best"}, ParameterError, "design must be one of majority"),
        ({"design": 3}, ParameterError, "design must be a name"),
        ({"shards": "some"}, ParameterError, "shards must be one of"),
        ({"queries": 0}, ParameterError, "queries must be"),
        ({"queries": 121}, ParameterError, "queries must be"),
        ({"split_seed": -1}, ParameterError, "split_seed must be"),
        ({"random_state": -1}, ParameterError, "random_state must be"),
        ({"budget": 1.0}, ParameterError, "budget must be a PrivacyBudget"),
        ({"budget": PrivacyBudget(0.4)}, BudgetError, r"120 labels cost epsilon 0\.5 .* nothing was trained"),
        ({"classes": ["ill"]}, DataError, "y holds labels outside"),
        (
            {"classes": ["a", "ill", "well"], "design": "optimal"},
            ParameterError,
            "GNMax publishes the winner",
        ),
        ({"design": GNMax(sigma=3.0)}, ParameterError, "epsilon and delta must not be given for GNMax"),
        ({"design": GNMax(sigma=3.0), "epsilon": None}, ParameterError, "budget must be given with a delta"),
        (
            {"design": GNMax(sigma=3.0), "epsilon": None, "budget": PrivacyBudget(9.0)},
            ParameterError,
            "budget must be given with a delta",
        ),
        (
            {"design": GNMax(sigma=3.0), "epsilon": None, "budget": GNMAX_BUDGET, "shards": "shared"},
            ParameterError,
            "shards must be 'disjoint' for GNMax",
        ),
        (
            {"design": GNMax(sigma=3.0, classes=3), "epsilon": None, "budget": GNMAX_BUDGET},
            ParameterError,
            "design must be for 2 classes, got a GNMax for 3",
        ),
        (
            {"design": GNMax(sigma=0.1), "epsilon": None, "budget": GNMAX_BUDGET},
            BudgetError,
            "nothing was trained",
        ),
    ],
)
def test_bad_parameters_are_refused_before_training(
    facts: dict[str, Any], kind: type[Exception], says: str
) -> None:
    trained.clear()
    with pytest.raises(kind, match=says):
        fitted(transfer(**{"epsilon": 0.5, **facts}))
    assert not trained


def test_a_design_must_fit_the_teachers_and_the_shards() -> None:
    noise = design(allowance(5, 0.5, 2), "constant")
    with pytest.raises(ParameterError, match="design must be for 3 teachers, got one for 5"):
        fitted(transfer(design=noise))
    narrow = design(allowance(3, 0.5, 1, affected=1), "constant")
    with pytest.raises(ParameterError, match="got one for records that reach 1"):
        fitted(transfer(design=narrow, shards="shared"))
    assert fitted(transfer(design=narrow)).guarantee_.epsilon == 0.5


def test_a_budget_of_the_teacher_is_its_level() -> None:
    private = FederatedLogisticRegression(budget=PrivacyBudget(0.7, 1e-6), bounds=(-1, 1), rounds=5)
    model = fitted(transfer(private, queries=10))
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (0.7, 1e-6)
    assert isinstance(model.noise_, NoiseFunction)
    assert model.noise_.setting.epsilon == 0.7
    with pytest.raises(RefusalError, match=r"teacher has a budget of epsilon 0\.7 and delta 1e-06, more"):
        fitted(transfer(private, epsilon=0.7))
    with pytest.raises(ParameterError, match="delta must come with epsilon"):
        fitted(transfer(private, delta=1e-6))


def test_teachers_share_no_seed() -> None:
    with pytest.raises(ParameterError, match=r"teacher\.random_state must be None"):
        fitted(transfer(Shouting(PureDP(0.5), random_state=3), epsilon=0.5, random_state=None))
    seeds: list[int] = []

    class Watched(Shouting):
        def fit(self, X: Any, y: Any) -> Self:
            seeds.append(self.random_state)
            return super().fit(X, y)

    fitted(transfer(Watched(PureDP(0.5), random_state=3), epsilon=0.5))
    assert len(set(seeds)) == 3
    assert None not in seeds
    first = list(seeds)
    fitted(transfer(Watched(PureDP(0.5)), epsilon=0.5))
    assert seeds[3:] == first


@pytest.mark.parametrize("who", ["teacher", "student"])
def test_fitted_and_frozen_estimators_and_parts_are_refused(who: str) -> None:
    """They would carry what they were fitted to into every pickle."""
    done = KNeighborsClassifier(1).fit(X, Y)
    parts = (
        make_pipeline(StandardScaler(), done),
        make_pipeline(StandardScaler().fit(X), LogisticRegression()),
    )
    for bad in (done, FrozenEstimator(done), *parts):
        given: dict[str, Any] = {"teacher": LogisticRegression(), "student": LogisticRegression(), who: bad}
        with pytest.raises(ParameterError, match=f"{who} must be an unfitted estimator"):
            fitted(transfer(**given, design=CALM, budget=GNMAX_BUDGET))
    with pytest.raises(ParameterError, match=f"{who} must be an estimator"):
        fitted(transfer(**{who: LogisticRegression}))


class Drawing(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """It votes by its randomness, of which it uses more if its first record is well."""

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        stream = check_random_state(self.random_state)
        stream.random(1 + (y[0] == "well"))
        self.chance_ = stream.random()
        return self

    def predict(self, X: Any) -> Any:
        return LABELS[(np.arange(len(X)) / len(X) < self.chance_).astype(int)]


@pytest.mark.filterwarnings("ignore:epsilon 1.* promises next to nothing")
def test_teachers_without_privacy_have_randomness_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """On NumPy's common stream one record would move the votes of all later teachers, not one."""
    cast: list[Any] = []

    def keep(_self: GNMax, votes: Any, _rng: Any) -> Any:
        cast.append(votes)
        return votes[:, 0]

    monkeypatch.setattr(GNMax, "release", keep)
    first = index_shards(len(Y), 3, seed=0)[0][0]
    for label in LABELS:
        monkeypatch.setattr("tacit.voting.transfer.secure", iter_of_streams())
        np.random.seed(0)  # noqa: NPY002 - what such teachers would share
        model = transfer(
            Drawing(), design=GNMax(sigma=0.01), budget=PrivacyBudget(1e9, 1e-5), random_state=None
        )
        model.fit(X, np.where(np.arange(len(Y)) == first, label, Y), X_public=PUBLIC)
        assert "the teachers share no randomness" in model.guarantee_.assumptions
    assert (cast[0] != cast[1]).any(axis=0).tolist() == [True, False, False]


def iter_of_streams() -> Any:
    """Streams in place of the operating system's, the same in every run."""
    made = iter(simulated(5, "teachers", k) for k in range(100))
    return lambda: next(made)


def test_a_proof_and_a_word_must_be_about_the_same_neighbours() -> None:
    class Half(Shouting):
        """Every other one proves something, under other neighbours."""

        def fit(self, X: Any, y: Any) -> Self:
            self.event = PureDP(0.5, Neighbours(Relation.ADD_REMOVE)) if len(trained) % 2 else None
            return super().fit(X, y)

    teacher = Half()
    with pytest.raises(RefusalError, match="same neighbours"):
        fitted(transfer(teacher, epsilon=0.5, shards="shared", teachers_are_private=True))


def test_seeds_by_other_names_are_seeds() -> None:
    class Seeded(Shouting):
        def __init__(self, event: Event | None = None, seed: int | None = None) -> None:
            super().__init__(event)
            self.seed = seed

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {"event": self.event, "seed": self.seed}

    with pytest.raises(ParameterError, match=r"teacher\.seed must be None"):
        fitted(transfer(Seeded(PureDP(0.5), seed=7), epsilon=0.5, random_state=None))


def test_what_contradicts_the_design_is_refused() -> None:
    noise = certified(np.ones(2), allowance(3, 0.5, 3))
    assert fitted(transfer(design=noise, epsilon=0.5)).guarantee_.epsilon == 0.5
    with pytest.raises(ParameterError, match="must be those of the design"):
        fitted(transfer(design=noise, epsilon=0.01))


def test_a_teacher_must_say_a_class() -> None:
    with pytest.raises(ParameterError, match="number 0 does not"):
        fitted(transfer(Shouting(PureDP(0.5), says="maybe"), epsilon=0.5))
