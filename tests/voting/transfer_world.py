"""Records, public rows and teachers for the tests of knowledge transfer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from tacit.privacy import (
    ApproximateDP,
    Event,
    Guarantee,
    PrivacyBudget,
    PureDP,
    guarantee,
)
from tacit.randomness import simulated
from tacit.voting import (
    GNMax,
    KnowledgeTransfer,
)

LABELS = np.array(["ill", "well"])


RNG = simulated(0, "knowledge-transfer-data")


X = RNG.uniform(-1, 1, size=(660, 2))


Y = LABELS[(X[:, 0] > 0).astype(int)]


PUBLIC = RNG.uniform(-1, 1, size=(120, 2))


TRUTH = LABELS[(PUBLIC[:, 0] > 0).astype(int)]


GNMAX_BUDGET = PrivacyBudget(50.0, 1e-5)


CALM = GNMax(sigma=3.0)


class Shouting(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A teacher that says one thing to all rows, and claims whatever it is told to."""

    guarantee_: Guarantee | None

    def __init__(
        self, event: Event | None = None, claim: Any = None, says: Any = "well", random_state: Any = None
    ) -> None:
        self.event = event
        self.claim = claim
        self.says = says
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        trained.append(len(X))
        if self.event is not None:
            delta = self.event.delta if isinstance(self.event, ApproximateDP) else 0.0
            self.guarantee_ = guarantee(
                self.event, delta, observer="everybody", assumptions=("the moon is up",),
                simulated=self.random_state is not None,
            )  # fmt: skip
        if self.claim is not None:
            self.guarantee_ = self.claim
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.says)


trained: list[int] = []


def transfer(teacher: Any = None, student: Any = None, **changes: Any) -> KnowledgeTransfer:
    facts = {"teachers": 3, "classes": LABELS, "random_state": 1, **changes}
    return KnowledgeTransfer(
        Shouting(PureDP(0.5)) if teacher is None else teacher,
        LogisticRegression() if student is None else student,
        **facts,
    )


def fitted(model: KnowledgeTransfer) -> KnowledgeTransfer:
    return model.fit(X, Y, X_public=PUBLIC)
