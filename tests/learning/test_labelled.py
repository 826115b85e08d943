"""Public records with labels at the doors of estimators: what they become, what is refused, what is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.errors import DataError, ParameterError
from tacit.federation import Ask
from tacit.learning import (
    FederatedLinearRegression,
    FederatedLogisticRegression,
    PrivateNeuralClassifier,
    PublicMirrorDescent,
    SemiPrivateSGD,
)
from tacit.learning.algorithms import Method, Problem
from tacit.learning.algorithms.base import Follow, Kinds
from tacit.numerics import Array, Regularizer
from tacit.privacy import PrivacyBudget
from tacit.privacy.run_clauses import SAMPLE
from tests.learning.test_public import made

CLAUSE = (
    "the 5 public records that the model was trained with are not protected, hold no record of the data and "
    "were not chosen by looking at them"
)
SEEN: list[Problem] = []


class _Looks(Method, frozen=True, kw_only=True, tag="looks"):
    """Asks once, and keeps what it was given."""

    rounds: int | None = 1
    needs_public = True

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        return problem.gradients(rounds, self.batch)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        return float("inf")

    def check(self, problem: Problem, rounds: int) -> None:
        pass

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        SEEN.append(problem)
        (gradient,) = ask(0, {"w": w}, (problem.radius,))
        return w - gradient

    @property
    def batch(self) -> Any:
        from tacit.federation import Full

        return Full()


def classifier(**changes: Any) -> FederatedLogisticRegression:
    facts: dict[str, Any] = {
        "budget": PrivacyBudget(1.0, 1e-5),
        "bounds": (-10, 10),
        "classes": ["no", "yes"],
    }
    return FederatedLogisticRegression(**(facts | {"random_state": 0, "algorithm": _Looks()} | changes))


def words(y: Array) -> Array:
    return np.where(y == 1, "yes", "no")


def test_labels_become_positions_of_the_classes_beside_mapped_rows() -> None:
    X, y = made()
    rows, labels = made(5, seed=1)
    fitted = classifier(public=(rows, words(labels))).fit(X, words(y))
    public = SEEN.pop().public
    assert public is not None
    assert public.records.y.tolist() == labels.tolist()
    assert np.array_equal(public.records.X, fitted.model_.features(rows))
    assert fitted.trained_.trained_with == 5
    assert CLAUSE in fitted.guarantee_.assumptions
    assert SAMPLE not in fitted.guarantee_.assumptions
    frame = pd.DataFrame(rows, columns=["a", "b"])
    named = classifier(public=(frame, list(words(labels)))).fit(pd.DataFrame(X, columns=["a", "b"]), words(y))
    assert np.array_equal(named.coef_, fitted.coef_)
    assert SEEN.pop().public is not None


def test_who_does_not_train_on_them_only_scales_features() -> None:
    X, y = made()
    rows, labels = made(5, seed=1)
    facts: dict[str, Any] = {"algorithm": "minibatch", "rounds": 3}
    labelled = classifier(public=(rows, words(labels)), **facts).fit(X, words(y))
    scaled = classifier(public=rows, **facts).fit(X, words(y))
    assert np.array_equal(labelled.coef_, scaled.coef_)
    assert labelled.trained_.trained_with == 0
    assert SAMPLE in labelled.guarantee_.assumptions
    assert labelled.guarantee_ == scaled.guarantee_


def test_the_default_trains_on_them_where_that_was_measured() -> None:
    X, y = made()
    rows, labels = made(40, seed=1)
    found = {}
    for public in (None, rows, (rows, words(labels))):
        fitted = classifier(public=public, algorithm="auto").fit(X, words(y))
        found[fitted.trained_.algorithm] = fitted.trained_.trained_with
    assert found == {"whitened": 0, "preconditioned": 0, "semi-dp": 40}
    several = np.minimum(y + (X[:, 0] > 8), 2)
    facts: dict[str, Any] = {"classes": [0, 1, 2], "algorithm": "auto", "trust": "central"}
    loud = classifier(budget=PrivacyBudget(20.0, 1e-5), public=(rows, labels), **facts).fit(X, several)
    assert loud.trained_.algorithm == "whitened"
    facts = {
        "budget": PrivacyBudget(1.0, 1e-5),
        "bounds": (-10, 10),
        "target_bounds": (-2, 2),
        "random_state": 0,
    }
    numbers = FederatedLinearRegression(public=(rows, rows[:, 0] - 8), **facts).fit(X, X[:, 0] - 8)
    assert numbers.trained_.algorithm == "accelerated"
    assert numbers.trained_.trained_with == 0


def test_who_needs_them_is_refused_without() -> None:
    X, y = made()
    for public in (None, made(5, seed=1)[0]):
        with pytest.raises(ParameterError, match="needs public records with labels: public="):
            classifier(public=public).fit(X, words(y))


def test_targets_are_in_the_units_of_the_loss() -> None:
    X, _ = made()
    rows, _ = made(5, seed=1)
    targets = np.array([0.0, 5.0, 10.0, 2.5, 7.5])
    facts: dict[str, Any] = {"budget": PrivacyBudget(1.0, 1e-5), "bounds": (-10, 10), "random_state": 0}
    model = FederatedLinearRegression(
        algorithm=_Looks(), target_bounds=(0, 10), public=(rows, targets), **facts
    ).fit(X, np.abs(X[:, 0] - 8))
    public = SEEN.pop().public
    assert public is not None
    assert public.records.y == pytest.approx([-1, 0, 1, -0.5, 0.5])
    assert CLAUSE in model.guarantee_.assumptions
    counts = FederatedLinearRegression(
        algorithm=_Looks(), target_bounds=(0, 10), loss="poisson", public=(rows, targets), **facts
    ).fit(X, np.round(X[:, 0]))
    link = counts.model_.link
    public = SEEN.pop().public
    assert link is not None
    assert public is not None
    assert public.records.y == pytest.approx(targets / link.unit)


def test_a_network_has_them_too() -> None:
    X, y = made()
    PrivateNeuralClassifier(
        budget=PrivacyBudget(1.0, 1e-5),
        bounds=(-10, 10),
        classes=[0, 1],
        public=made(5, seed=1),
        algorithm=_Looks(),
        random_state=0,
    ).fit(X, y)
    public = SEEN.pop().public
    assert public is not None
    assert public.gradient(np.zeros(public.objective.size)).shape == (public.objective.size,)


ROWS = made(5, seed=1)[0]


@pytest.mark.parametrize(
    ("public", "changes", "error", "message"),
    [
        ((ROWS, ["yes"] * 4 + ["maybe"]), {}, DataError, "labels of the classes only, and one is 'maybe'"),
        ((ROWS, ["yes"] * 4 + [None]), {}, DataError, "labels of the classes only, and one is None"),
        ((ROWS, ["yes"] * 4), {}, DataError, r"one label per record \(5\), got shape \(4,\)"),
        ((ROWS, [["yes"]] * 5), {}, DataError, r"labels of shape \(m,\), got shape \(5, 1\)"),
        ((ROWS,), {}, ParameterError, r"X or the tuple \(X, y\), got a tuple of 1"),
        ((ROWS, ["yes"] * 5, 1), {}, ParameterError, r"X or the tuple \(X, y\), got a tuple of 3"),
        ((ROWS[:, :1], ["yes"] * 5), {}, DataError, "the columns of X"),
        ((ROWS[:0], []), {}, DataError, "m >= 1"),
        (
            (ROWS, ["yes"] * 5),
            {"classes": None, "budget": None},
            ParameterError,
            "classes must be given with",
        ),
        ((ROWS, ["yes"] * 5), {"bounds": None, "budget": None}, ParameterError, "bounds must be given with"),
        (
            (ROWS, ["yes"] * 5),
            {"bounds": "data", "budget": None},
            ParameterError,
            "bounds must be given with",
        ),
    ],
)
def test_other_labels_are_refused(
    public: Any, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    X, y = made()
    with pytest.raises(error, match=message):
        classifier(public=public, **changes).fit(X, words(y))
    assert not SEEN


@pytest.mark.parametrize(
    ("targets", "bounds", "error", "message"),
    [
        ([0.0, 1, 2, 3, 11], (0, 10), DataError, "within their bounds 0 and 10, and one is 11"),
        ([0.0, 1, 2, 3, np.nan], (0, 10), DataError, "within their bounds 0 and 10, and one is nan"),
        (["a"] * 5, (0, 10), DataError, "targets that are numbers"),
        ([0.0] * 5, None, ParameterError, "target_bounds must be given with the targets of public records"),
        ([0.0] * 5, "data", ParameterError, "target_bounds must be given with the targets of public records"),
    ],
)
def test_other_targets_are_refused(targets: Any, bounds: Any, error: type[Exception], message: str) -> None:
    X, _ = made()
    with pytest.raises(error, match=message):
        FederatedLinearRegression(
            bounds=(-10, 10), target_bounds=bounds, public=(ROWS, targets), algorithm=_Looks()
        ).fit(X, X[:, 0])
    assert not SEEN


def test_the_private_records_are_no_public_ones_and_others_that_look_alike_are_not_told() -> None:
    X, y = made()
    with pytest.raises(ParameterError, match="public must be other records than X"):
        classifier(public=(X[:5], words(y[:5]))).fit(X, words(y))
    # A copy cannot be told from records that happen to be equal without telling of a private record.
    classifier(public=(X[:5].copy(), words(y[:5]))).fit(X, words(y))
    SEEN.clear()


@pytest.mark.parametrize("algorithm", ["semi-dp", "pda"])
def test_a_regression_gains_by_them_without_a_clip_that_somebody_guessed(algorithm: str) -> None:
    """d = 100, 112 public records of 3750, epsilon 1: below least squares on them, and below private ones.

    Targets are short beside their bounds, as they are where nobody may look at them.
    """
    d, errors = 100, []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth, X = rng.standard_normal(d), np.clip(rng.standard_normal((6750, d)), -5, 5)
        y = X @ truth + 0.5 * rng.standard_normal(6750)
        few, rest, new = (X[:112], y[:112]), (X[112:3750], y[112:3750]), (X[3750:], y[3750:])
        facts: dict[str, Any] = {
            "budget": PrivacyBudget(1.0, 1e-5), "bounds": (-5, 5), "target_bounds": (-100, 100),
            "trust": "central", "random_state": seed,
        }  # fmt: skip
        models = [
            FederatedLinearRegression(public=few, algorithm=algorithm, **facts).fit(*rest),
            FederatedLinearRegression(**facts).fit(*rest),
        ]
        found = [float(np.mean((model.predict(new[0]) - new[1]) ** 2)) for model in models]
        alone = new[0] @ np.linalg.lstsq(*few, rcond=None)[0]
        errors.append([*found, float(np.mean((alone - new[1]) ** 2))])
    together, private, public = np.mean(errors, axis=0)
    assert together < 0.75 * public < private


def test_a_locally_private_regression_gains_by_them_too() -> None:
    """Epsilon 8 with 20 public records of 2000: below private records alone and public ones alone."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.clip(rng.standard_normal((5000, 5)), -5, 5)
        y = X @ rng.standard_normal(5) + 2.0 * rng.standard_normal(5000)
        few, rest, new = (X[:20], y[:20]), (X[20:2000], y[20:2000]), (X[2000:], y[2000:])
        facts: dict[str, Any] = {
            "budget": PrivacyBudget(8.0), "bounds": (-5, 5), "target_bounds": (-40, 40),
            "algorithm": "semi-ldp", "noise": "gaussian", "random_state": seed,
        }  # fmt: skip
        models = [FederatedLinearRegression(public=one, **facts).fit(*rest) for one in (few, None)]
        found = [float(np.mean((model.predict(new[0]) - new[1]) ** 2)) for model in models]
        alone = new[0] @ np.linalg.lstsq(*few, rcond=None)[0]
        errors.append([*found, float(np.mean((alone - new[1]) ** 2))])
    together, private, public = np.mean(errors, axis=0)
    assert together < 0.95 * public < private


def test_a_clip_that_is_given_is_kept_and_so_is_the_one_of_a_start_elsewhere() -> None:
    X, y = made()
    few = made(40, seed=1)
    facts: dict[str, Any] = {"budget": PrivacyBudget(1.0, 1e-5), "bounds": (-10, 10), "random_state": 0}
    regression = FederatedLinearRegression(
        target_bounds=(-1, 2), public=few, algorithm=_Looks(), clip=0.25, **facts
    )
    regression.fit(X, y.astype(float))
    assert SEEN.pop().radius == 0.25
    regression.set_params(clip=None).fit(X, y.astype(float))
    problem = SEEN.pop()
    assert problem.radius == 0.3  # it does not start at the public minimum
    assert problem.public is not None
    for method, is_warm in (
        (SemiPrivateSGD(), True), (SemiPrivateSGD(start="warm"), True),
        (SemiPrivateSGD(start="given"), False), (PublicMirrorDescent(), True),
        (PublicMirrorDescent(warm_start=False), False),
    ):  # fmt: skip
        assert method.clip_of_public(problem.public) == (problem.public.clip if is_warm else None)
    assert problem.public.clip is not None
