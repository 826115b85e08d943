"""Distillation against finite differences and against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from tacit.errors import ParameterError
from tacit.learning import LinearObjective, Logistic, Multinomial, NetworkObjective, Squared
from tacit.learning.personal import Direction, Distillation
from tacit.learning.personal.distillation import distillable
from tacit.numerics import Array

OBJECTIVES = [
    LinearObjective(loss=Logistic(), features=4),
    LinearObjective(loss=Multinomial(), features=4, outputs=3),
    NetworkObjective(loss=Multinomial(), features=4, hidden=5, outputs=3, activation="tanh"),
    NetworkObjective(loss=Logistic(), features=4, hidden=5, activation="tanh"),
]
RNG = np.random.default_rng(5)
X = RNG.normal(size=(6, 4))


def finite_difference(f: object, w: Array, h: float = 1e-6) -> Array:
    steps = np.eye(w.size) * h
    return np.array([(f(w + s) - f(w - s)) / (2 * h) for s in steps])  # type: ignore[operator]


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: f"{type(o).__name__}-{o.outputs}")
def test_pulled_back_slopes_are_gradients_in_both_models(
    objective: LinearObjective | NetworkObjective, direction: Direction
) -> None:
    kd = Distillation(direction=direction, temperature=1.7)
    theta, mu = RNG.normal(size=(2, objective.size))

    def value(theta: Array, mu: Array) -> float:
        return kd.value(objective.predictions(theta, X), objective.predictions(mu, X))

    own, common = kd.slopes(objective.predictions(theta, X), objective.predictions(mu, X))
    assert objective.pullback(theta, X, own) == pytest.approx(
        finite_difference(lambda w: value(w, mu), theta), abs=1e-8
    )
    assert objective.pullback(mu, X, common) == pytest.approx(
        finite_difference(lambda w: value(theta, w), mu), abs=1e-8
    )
    assert value(theta, mu) > 0.01
    assert value(theta, theta) == 0
    assert not np.any(objective.pullback(theta, X, kd.slopes(*[objective.predictions(theta, X)] * 2)[1]))


def test_it_is_the_divergence_of_the_definition() -> None:
    a, b = RNG.normal(size=(2, 7, 3))
    P, Q = special.softmax(a / 2, axis=1), special.softmax(b / 2, axis=1)
    forward = np.mean(np.sum(special.rel_entr(P, Q), axis=1))
    assert Distillation(temperature=2).value(b, a) == pytest.approx(forward, rel=1e-12)
    assert Distillation(temperature=2, direction="reverse").value(a, b) == pytest.approx(forward, rel=1e-12)
    two = Distillation().value(b[:, 0], a[:, 0])
    assert two == pytest.approx(
        Distillation().value(*(np.column_stack([0 * z[:, 0], z[:, 0]]) for z in (b, a))), rel=1e-12
    )
    assert Distillation().value(np.zeros((0, 3)), np.zeros((0, 3))) == 0
    assert Distillation().value(np.array([1e4]), np.array([-1e4])) == pytest.approx(1e4)  # no overflow


def test_bad_input() -> None:
    with pytest.raises(ParameterError, match="temperature must be"):
        Distillation(temperature=0)
    with pytest.raises(ParameterError, match="direction must be"):
        Distillation(direction="sideways")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="'squared'"):
        distillable(LinearObjective(loss=Squared(), features=2))
    with pytest.raises(ParameterError, match="predictions"):
        distillable(object())
