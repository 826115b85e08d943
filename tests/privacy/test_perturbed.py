"""Objective perturbation: reference values, exact attacks in one and two dimensions, hostile numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.privacy import (
    Compose,
    Gaussian,
    Gdp,
    Neighbours,
    ObjectivePerturbed,
    Part,
    Relation,
    Slopes,
    Unit,
    delta_of,
    epsilon_of,
)
from tacit.privacy.curves import gaussian_curve
from tests.privacy.event_examples import ADD_REMOVE, ZERO_OUT

DELTA = 1e-5


def delta_gaussian(epsilon: float, mu: float) -> float:
    return float(gaussian_curve(mu).delta(epsilon))


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, ZERO_OUT])
@pytest.mark.parametrize(
    ("epsilon", "strength", "tied", "one_sign", "either_sign"),
    [
        (0.5, 1.960354, 7.031827, 9.0462, 7.351149),
        (1.0, 0.965320, 3.730632, 4.7370, 3.884141),
        (3.0, 0.306884, 1.390593, 1.6918, 1.438069),
    ],
)
def test_the_noise_that_an_epsilon_takes(
    neighbours: Neighbours, epsilon: float, strength: float, tied: float, one_sign: float, either_sign: float
) -> None:
    """Logistic loss costs one Gaussian release; the determinant is paid for by all others."""
    logistic = ObjectivePerturbed(tied, strength, neighbours=neighbours)
    assert epsilon_of(logistic, DELTA) == pytest.approx(epsilon, rel=2e-6)
    clipped = ObjectivePerturbed(one_sign, strength, Slopes.ONE_SIGN, neighbours, curvature=0.25)
    assert epsilon_of(clipped, DELTA) == pytest.approx(epsilon, rel=2e-5)
    flat = ObjectivePerturbed(either_sign, strength, Slopes.EITHER_SIGN, neighbours, curvature=1e-12)
    assert epsilon_of(flat, DELTA) == pytest.approx(epsilon, rel=2e-6)


@pytest.mark.parametrize(
    ("part", "delta"), [(0.25, 2.138e-3), (0.5, 3.539e-5), (0.9, 1.0121e-5), (1.0, 1e-5), (4.0, 1e-5)]
)
def test_too_little_regularisation_costs_what_the_determinant_does(part: float, delta: float) -> None:
    event = ObjectivePerturbed(3.730632, 0.965320 * part, neighbours=ADD_REMOVE)
    assert delta_of(event, 1.0) == pytest.approx(delta, rel=3e-4)


def test_with_enough_regularisation_it_is_a_gaussian_release() -> None:
    for neighbours, steps in ((ADD_REMOVE, 1), (ZERO_OUT, 1), (Neighbours(), 2)):
        least = 2 * (steps * 1.7) ** 2
        strong = ObjectivePerturbed(1.7, least * 1.0001, neighbours=neighbours)
        both = Compose((strong, Gaussian(30.0, neighbours)))
        exact = Gdp(math.hypot(1 / 1.7, 1 / 30), neighbours)
        assert epsilon_of(both, DELTA) == epsilon_of(exact, DELTA)
        weak = Compose(
            (ObjectivePerturbed(1.7, least * 0.1, neighbours=neighbours), Gaussian(30.0, neighbours))
        )
        assert epsilon_of(weak, DELTA) > epsilon_of(exact, DELTA)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_replacing_a_record_costs_a_gaussian_release_from_twice_the_strength_on(epsilon: float) -> None:
    z = 2.0
    mu = 0.5 / z
    least = 1 / (epsilon / 2 + mu * mu)
    enough = ObjectivePerturbed(z, least * 1.0001)
    assert delta_of(enough, epsilon) == pytest.approx(delta_gaussian(epsilon, 1 / z), rel=1e-9)
    assert delta_of(ObjectivePerturbed(z, least * 0.8), epsilon) > delta_gaussian(epsilon, 1 / z) * 1.0005


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0, 10**400, True, "1"])
@pytest.mark.parametrize("name", ["noise_multiplier", "strength", "curvature"])
def test_numbers_out_of_range_are_refused(name: str, bad: Any) -> None:
    fields: dict[str, Any] = {"noise_multiplier": 1.0, "strength": 1.0, "loss": Slopes.ONE_SIGN}
    fields |= {"curvature": 1.0, name: bad}
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        ObjectivePerturbed(**fields)


@pytest.mark.parametrize("bad", [0, 1, 2.5, True, 10**400, math.nan])
def test_numbers_of_classes_out_of_range_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"^classes must be"):
        ObjectivePerturbed(1.0, 1.0, Slopes.MULTINOMIAL, classes=bad)


@pytest.mark.parametrize(
    ("loss", "facts"),
    [
        (Slopes.LOGISTIC, {"curvature": 0.25}),
        (Slopes.LOGISTIC, {"classes": 2}),
        (Slopes.ONE_SIGN, {}),
        (Slopes.EITHER_SIGN, {"classes": 2}),
        (Slopes.MULTINOMIAL, {}),
        (Slopes.MULTINOMIAL, {"classes": 3, "curvature": 1.0}),
    ],
)
def test_facts_of_another_loss_are_refused(loss: Slopes, facts: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"^(curvature|classes) must be"):
        ObjectivePerturbed(1.0, 1.0, loss, **facts)


def test_a_bare_string_is_no_loss() -> None:
    bare: Any = "logistic"
    with pytest.raises(ParameterError, match="loss must be a Slopes"):
        ObjectivePerturbed(1.0, 1.0, bare)


@pytest.mark.parametrize(
    "neighbours",
    [
        Neighbours(unit=Unit.PERSON),
        Neighbours(Relation.ZERO_OUT, part=Part.SENSITIVE),
        Neighbours(part=Part.REWARD),
    ],
)
def test_only_single_whole_records_have_a_price(neighbours: Neighbours) -> None:
    with pytest.raises(ParameterError, match="one whole record"):
        ObjectivePerturbed(1.0, 1.0, neighbours=neighbours)
