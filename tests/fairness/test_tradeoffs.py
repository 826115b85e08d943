"""Trade-offs of estimators with options of their own."""

from __future__ import annotations

import numpy as np

from tacit.fairness import FairLogisticRegression, equal_opportunity_violation, tradeoff


def test_opportunity_is_about_whoever_the_estimator_says() -> None:
    rng = np.random.default_rng(0)
    s, y = rng.integers(0, 2, 120), rng.integers(0, 3, 120)
    X = np.column_stack([rng.standard_normal(120) + y + s, s])
    estimator = FairLogisticRegression(fairness="equal-opportunity", advantaged=[0])
    table = tradeoff(estimator, [0.0], X, y, s)
    said = table["model"][0].predict(X)
    found = table["violation"][0]
    assert found == equal_opportunity_violation(y, said, s, advantaged=[0])
    assert found != equal_opportunity_violation(y, said, s, advantaged=[2])
