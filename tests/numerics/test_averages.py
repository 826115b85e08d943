"""Averages agree with the plain formula, with the reference values, and with enumeration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import ParameterError
from tacit.numerics import (
    RunningAverage,
    stich_schedule,
    strongly_convex_log_weights,
    strongly_convex_schedule,
)


@given(data=st.data(), T=st.integers(1, 12), shift=st.sampled_from([-1e4, 0.0, 1e4]))
def test_the_running_average_is_the_weighted_mean(data: st.DataObject, T: int, shift: float) -> None:
    iterates = data.draw(arrays(np.float64, (T, 2), elements=st.floats(-10, 10)))
    logs = data.draw(arrays(np.float64, T, elements=st.floats(-5, 5)))
    average = RunningAverage()
    for w, log_weight in zip(iterates, logs, strict=True):
        average = average.add(w, log_weight + shift)  # a common factor changes nothing, and overflows nothing
    expected = np.average(iterates, axis=0, weights=np.exp(logs))
    np.testing.assert_allclose(average.value, expected, rtol=0, atol=1e-10)


def test_a_running_average_is_a_value() -> None:
    w = np.array([1.0, 2.0])
    first = RunningAverage().add(w)
    second = first.add(np.array([3.0, 4.0]))
    w[:] = 99.0
    assert first.value.tolist() == [1.0, 2.0]
    assert second.value.tolist() == [2.0, 3.0]
    assert RunningAverage().add(np.array([1.0], dtype=np.float32)).value.dtype == np.float64


def test_weight_zero_leaves_a_term_out() -> None:
    average = (
        RunningAverage().add(np.array([9.0]), -math.inf).add(np.array([1.0])).add(np.array([9.0]), -math.inf)
    )
    assert average.value.tolist() == [1.0]


def test_a_running_average_of_the_tail() -> None:
    iterates = np.random.default_rng(2).standard_normal((10, 3))
    average = RunningAverage()
    for t, w in enumerate(iterates):
        average = average.add(w) if t >= 10 - 4 else average
    np.testing.assert_allclose(average.value, iterates[6:].mean(axis=0), rtol=1e-12)


def test_a_running_average_refuses_what_it_cannot_use() -> None:
    with pytest.raises(ParameterError, match="at least one term of positive weight"):
        _ = RunningAverage().add(np.ones(2), -math.inf).value
    with pytest.raises(ParameterError, match=r"w must have shape \(2,\) like the terms before, got \(3,\)"):
        RunningAverage().add(np.ones(2)).add(np.ones(3))
    for weight in (math.nan, math.inf):
        with pytest.raises(ParameterError, match=f"log_weight must be a number below infinity, got {weight}"):
            RunningAverage().add(np.ones(2), weight)


# Lowy (2023), Lemma 102.
@pytest.mark.parametrize(("T", "eta"), [(100, 0.1), (1000, 0.0851719)])
def test_the_schedule_has_its_reference_values(T: int, eta: float) -> None:
    assert strongly_convex_schedule(a=0.1, g=10.0, r0=1.0, c=2.0, T=T) == pytest.approx(eta, abs=5e-8)


@given(
    a=st.floats(0.01, 1),
    ratio=st.floats(1, 100),
    r0=st.floats(0, 10),
    c=st.floats(1e-3, 10),
    T=st.integers(1, 500),
)
def test_the_schedule_is_its_formula(a: float, ratio: float, r0: float, c: float, T: int) -> None:
    eta = strongly_convex_schedule(a=a, g=a * ratio, r0=r0, c=c, T=T)
    assert eta == pytest.approx(
        min(1 / (a * ratio), math.log(max(2, a**2 * r0 * T**2 / c)) / (a * T)), rel=1e-9
    )


def test_the_schedule_without_noise_or_distance() -> None:
    assert strongly_convex_schedule(a=0.1, g=10.0, r0=1.0, c=0.0, T=10) == 0.1
    assert strongly_convex_schedule(a=0.1, g=10.0, r0=1.0, c=5e-324, T=10**9) == pytest.approx(
        (2 * math.log(1e8) - math.log(5e-324)) / 1e8
    )
    assert strongly_convex_schedule(a=0.1, g=10.0, r0=0.0, c=0.0, T=1000) == pytest.approx(math.log(2) / 100)


@given(eta=st.floats(1e-3, 0.9), T=st.integers(1, 50))
def test_log_weights_are_those_of_the_lemma(eta: float, T: int) -> None:
    expected = [(1 - eta) ** -(t + 1) for t in range(T)]
    np.testing.assert_allclose(np.exp(strongly_convex_log_weights(a=1.0, eta=eta, T=T)), expected, rtol=1e-10)


def test_weights_that_overflow_average_well() -> None:
    average = RunningAverage()
    logs = strongly_convex_log_weights(a=1.0, eta=0.5, T=5000)
    assert logs[-1] > math.log(1e308)
    for t, log_weight in enumerate(logs):
        average = average.add(np.array(float(t)), float(log_weight))
    # sum_k (T - 1 - k) 2^-k / sum_k 2^-k = T - 1 - 1.
    assert float(average.value) == pytest.approx(4998.0, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": 0.0}, "a must be a finite number > 0"),
        ({"g": math.nan}, "g must be a finite number > 0"),
        ({"r0": -1.0}, "r0 must be a finite number >= 0"),
        ({"c": -1.0}, "c must be a finite number >= 0"),
        ({"T": 0}, "T must be a whole number >= 1"),
        ({"g": 0.05}, "g must be >= a"),
    ],
)
def test_the_schedule_refuses_bad_constants(change: dict[str, Any], message: str) -> None:
    constants: dict[str, Any] = {"a": 0.1, "g": 10.0, "r0": 1.0, "c": 2.0, "T": 100}
    with pytest.raises(ParameterError, match=message):
        strongly_convex_schedule(**{**constants, **change})


def test_weights_refuse_bad_arguments() -> None:
    with pytest.raises(ParameterError, match=r"a \* eta must be < 1, got 1.0"):
        strongly_convex_log_weights(a=2.0, eta=0.5, T=3)
    with pytest.raises(ParameterError, match="eta must be a finite number > 0"):
        strongly_convex_log_weights(a=2.0, eta=0.0, T=3)


def test_stich_steps_and_weights_are_those_of_the_reference() -> None:
    steps, log_weights = stich_schedule(a=0.5, g=2.0, T=10)
    expected = [0.5] * 6 + [0.444444, 0.4, 0.363636, 0.333333, 0.307692]
    np.testing.assert_allclose(steps, expected, atol=5e-7)
    np.testing.assert_allclose(np.exp(log_weights), [0] * 5 + [8, 9, 10, 11, 12, 13], rtol=1e-12)
    few, growing = stich_schedule(a=0.5, g=2.0, T=4)
    np.testing.assert_array_equal(few, np.full(5, 0.5))
    np.testing.assert_allclose(np.exp(growing), 0.75 ** -np.arange(1.0, 6.0), rtol=1e-12)


@pytest.mark.parametrize("T", [1, 3, 8, 9, 30, 101])
@pytest.mark.parametrize("a", [0.05, 0.4, 1.0])
def test_stich_weights_cancel_all_distances_after_the_first(a: float, T: int) -> None:
    """zeta_(t+1) (1 / eta_(t+1) - 2a) <= zeta_t (1 / eta_t - a): what the bound of the average rests on."""
    steps, log_weights = stich_schedule(a=a, g=2.0, T=T)
    weights = np.exp(log_weights)
    counted = weights[:-1] > 0
    assert np.all(
        (weights[1:] * (1 / steps[1:] - 2 * a))[counted] <= (weights * (1 / steps - a))[:-1][counted] + 1e-9
    )
    assert np.all(steps <= 0.5)


def test_the_schedule_of_stich_refuses_bad_constants() -> None:
    with pytest.raises(ParameterError, match="g must be > a"):
        stich_schedule(a=2.0, g=2.0, T=3)
    with pytest.raises(ParameterError, match="T must be a whole number >= 1"):
        stich_schedule(a=1.0, g=2.0, T=0)
