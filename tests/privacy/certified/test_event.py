"""The event of a published majority: its curve is the certificate, its levels, what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy import (
    ApproximateDP,
    Certified,
    PureDP,
    Repeat,
    curve_of,
    delta_of,
    epsilon_of,
    event_from_builtins,
    pure_epsilon_of,
    rho_of,
)
from tacit.privacy.certified import (
    Teachers,
    is_monotone,
    worst_case,
)


def teachers(count: int, epsilon: float, delta: float = 0.0) -> Teachers:
    return Teachers(count=count, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize(
    ("gamma", "message"),
    [
        ((0.5,), "must have shape"),
        ((0.5, 1.1), r"in \[0, 1\]"),
        ((0.5, math.nan), r"in \[0, 1\]"),
        ((-0.1, 1.0), r"in \[0, 1\]"),
    ],
)
def test_what_is_no_noise_function_is_refused(gamma: tuple[float, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Certified(3, 1.0, 0.0, gamma, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teachers": 0}, "teachers must be a whole number"),
        ({"teachers": 10**9}, "teachers must be a whole number from 1 to 501"),
        ({"epsilon": 0.0}, "epsilon must be a finite number > 0"),
        ({"epsilon": math.nan}, "epsilon must be a finite number > 0"),
        ({"delta": 1.0}, "delta must be in"),
        ({"target_epsilon": -1.0}, "target_epsilon must be a finite number > 0"),
        ({"gamma": [0.5, 1.0]}, "gamma must be a tuple"),
    ],
)
def test_numbers_out_of_range_are_refused(change: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {
        "teachers": 3,
        "epsilon": 1.0,
        "delta": 0.0,
        "gamma": (0.5, 1.0),
        "target_epsilon": 1.0,
    }
    with pytest.raises(ParameterError, match=message):
        Certified(**{**fields, **change})


def test_the_curve_of_the_event_is_the_certificate_at_every_level() -> None:
    for gamma in ((0.7, 0.7, 0.92, 0.99, 0.99, 0.99), (1.0, 0.5, 1.0, 0.6, 1.0, 1.0)):
        event, voters = Certified(11, 0.3, 1e-6, gamma, 0.9), teachers(11, 0.3, 1e-6)
        for epsilon in (0.0, 0.2, 0.55, 0.9):
            exact = worst_case(voters, np.array(gamma), epsilon).delta
            priced = delta_of(event, epsilon)
            assert priced >= exact
            assert priced <= exact * (1 + 1e-9) + (0.0 if is_monotone(gamma) else 0.003)


def test_one_answer_costs_its_target_and_many_less_than_their_targets() -> None:
    gamma = (0.71, 0.71, 0.926, 0.999, 0.999, 0.999)
    event = Certified(11, 0.1, 1e-6, gamma, 0.3)
    delta = event.certified_delta
    assert 0 < delta < 1e-3
    assert epsilon_of(event, delta * (1 + 1e-9)) <= 0.3 * (1 + 1e-9)
    total = 20 * delta + 1e-5
    assert epsilon_of(Repeat(event, 20), total) < 0.9 * epsilon_of(
        Repeat(ApproximateDP(0.3, delta), 20), total
    )


def test_a_pure_certificate_is_a_pure_level() -> None:
    event = Certified(5, 0.5, 0.0, (0.1, 0.45, 0.9), 0.5)
    assert event.certified_delta == 0.0
    assert pure_epsilon_of(event) == 0.5
    assert rho_of(event) == pytest.approx(rho_of(PureDP(0.5)))
    weak = Certified(5, 0.5, 0.0, (1.0, 1.0, 1.0), 0.5)
    assert math.isinf(pure_epsilon_of(weak))
    assert math.isinf(rho_of(weak))


def test_a_forged_event_costs_more_not_less() -> None:
    honest = {
        "event": "Certified",
        "teachers": 5,
        "epsilon": 0.5,
        "delta": 0.0,
        "gamma": [0.1, 0.45, 0.9],
        "target_epsilon": 0.5,
    }
    for forged in ({"gamma": [1.0, 1.0, 1.0]}, {"target_epsilon": 0.01}):
        price = epsilon_of(event_from_builtins({**honest, **forged}), 1e-6)
        assert price >= epsilon_of(event_from_builtins(honest), 1e-6)
    with pytest.raises(ParameterError, match="no field 'target_delta'"):
        event_from_builtins({**honest, "target_delta": 0.0})


def test_the_curve_stays_finite_far_out() -> None:
    curve = curve_of(Certified(3, 1.0, 1e-6, (0.5, 1.0), 1.0), accuracy=1e-9)
    far = curve.delta(np.array([5.0, 800.0, 1e6]))
    assert np.all(np.isfinite(far))
    assert np.all(np.diff(far) <= 0)
    assert far[-1] > 0  # the delta of the teachers never goes away
