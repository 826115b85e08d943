"""As a user of diffprivlib writes it: its defaults, with rows scaled to the norm that it is told."""

import numpy as np
from diffprivlib.models import LogisticRegression
from diffprivlib.tools import mean as private_mean


def classify(X, y, epsilon, C):
    def unit(X):
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)

    model = LogisticRegression(epsilon=epsilon, data_norm=1.0, C=C).fit(unit(X), y)
    return lambda X: model.predict(unit(X)), (epsilon, 0.0)


def mean(X, lower, upper, epsilon):
    return private_mean(X, epsilon=epsilon, bounds=(lower, upper), axis=0), (epsilon, 0.0)
