"""The event of a shuffled sum: sound for the whole protocol, rounding included, and under composition."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from tacit.errors import ParameterError
from tacit.privacy import (
    Compose,
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    Sampled,
    calibrate,
    curve_of,
    delta_of,
    epsilon_of,
    event_from_json,
    event_to_json,
)
from tacit.privacy.binomial import Binomial, binomial_delta
from tests.privacy.binomial_reference import (
    composed_shifts,
    renyi_epsilon,
    tails,
    truncated_renyi,
    vector_delta,
)
from tests.privacy.reference import Array, hockey_stick

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def test_one_scalar_sum_has_its_exact_curve() -> None:
    for epsilon in EPSILONS:
        exact = float(binomial_delta(1000, 0.5, 10, epsilon))
        assert delta_of(Binomial(1000, 10), epsilon) == pytest.approx(exact, rel=1e-11)
    assert epsilon_of(Binomial(73114, 32), 1e-6) <= 1.0 < epsilon_of(Binomial(73113, 32), 1e-6)


def _rounding(x: float, g: int) -> dict[int, float]:
    """Return the law of the stochastic rounding of x in [-1, 1] to the grid 0..g."""
    at = (x + 1) / 2 * g
    low = math.floor(at)
    law = {low: 1 - (at - low), low + 1: at - low}
    return {k: chance for k, chance in law.items() if chance > 0}


def _released(x: Array, g: int, trials: int) -> Array:
    """Return the law of the rounded vector plus noise, every coordinate an axis, flattened."""
    law = np.ones(1)
    for value in x:
        one = np.zeros(trials + g + 1)
        for k, chance in _rounding(float(value), g).items():
            one[k : k + trials + 1] += chance * stats.binom.pmf(np.arange(trials + 1), trials, 0.5)
        law = np.outer(law, one).ravel()
    return law


@pytest.mark.parametrize(
    ("dim", "trials", "g"), [(1, 60, 2), (1, 200, 5), (2, 150, 3), (2, 400, 6), (3, 60, 1)]
)
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_price_covers_rounding_and_noise_of_one_sum(dim: int, trials: int, g: int, place: int) -> None:
    # One unit's vector x is replaced by y, both in the unit ball; all else in the sum shifts both laws alike.
    corner = np.full(dim, 1 / math.sqrt(dim))
    first = np.eye(dim)[0]
    x, y = [(first, -first), (corner, -corner), (corner, 0.31 * corner - 0.4 * first), (first, corner)][place]
    assert max(np.linalg.norm(x), np.linalg.norm(y)) <= 1 + 1e-12
    p, q = _released(x, g, trials), _released(y, g, trials)
    event = Binomial(trials, g, dim)
    for epsilon in EPSILONS:
        claimed = delta_of(event, epsilon)
        assert hockey_stick(p, q, epsilon) <= claimed * (1 + 1e-9)
        assert hockey_stick(q, p, epsilon) <= claimed * (1 + 1e-9)


def test_price_covers_rounding_and_noise_of_two_rounds() -> None:
    one = [_released(np.array([v]), 4, 120) for v in (1.0, -1.0)]
    two = [np.outer(law, law).ravel() for law in one]
    event = Repeat(Binomial(120, 4), 2)
    for epsilon in EPSILONS:
        assert hockey_stick(two[0], two[1], epsilon) <= delta_of(event, epsilon)


@pytest.mark.parametrize(
    ("trials", "g", "shifts", "epsilon"),
    [
        (10_000, 8, (8, *[0] * 63), 0.5),
        (10_000, 8, (1,) * 64, 0.5),
        (10_000, 8, (4, 4, 4, 4, *[0] * 60), 0.3),
        (4000, 6, (6,), 0.7),
    ],
)
def test_price_covers_the_exact_composition_of_whole_shifts(
    trials: int, g: int, shifts: tuple[int, ...], epsilon: float
) -> None:
    # Differences that are whole steps need no rounding: their norm is g at most.
    dim = len(shifts)
    exact = composed_shifts(trials, 0.5, [k for k in shifts if k], epsilon)[0]
    assert math.hypot(*shifts) <= g
    assert exact <= delta_of(Binomial(trials, g, dim), epsilon)
    for rounds in (3, 20):
        exact = composed_shifts(trials, 0.5, [k for k in shifts if k] * rounds, 2 * epsilon)[0]
        assert exact <= delta_of(Repeat(Binomial(trials, g, dim), rounds), 2 * epsilon)


def test_truncated_renyi_divergences_have_the_tabled_values() -> None:
    low, high = tails(10_000, 0.5, 1e-12)
    for shift, expected in ((1, 1.60000181e-3), (10, 1.60018040e-3)):
        for signed in (shift, -shift):
            found = truncated_renyi(10_000, 0.5, 8.0, signed, low, high) / shift**2
            assert found == pytest.approx(expected, abs=6e-12)


def test_renyi_price_is_looser_than_ours() -> None:
    # m = 100, d = 10, epsilon = 1, delta = 1e-5 needs g = 20, b = 455, 2.05 x central error.
    assert renyi_epsilon(45_500, 10, 20, 1e-5) <= 1.0 < renyi_epsilon(45_200, 10, 20, 1e-5)
    assert epsilon_of(Binomial(45_500, 20, 10), 1e-5) < 0.85
    multiplier = calibrate(Gaussian, PrivacyBudget(1.0, 1e-5))
    error = (45_500 + 100) / 20**2 / (4 * multiplier**2)
    assert error == pytest.approx(2.05, abs=5e-3)


@pytest.mark.parametrize("part", [Binomial(5000, 6), Binomial(20_000, 10, 7), Binomial(20_000, 6, 7, 3)])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_repetition_is_the_leaf_of_that_many_rounds(part: Binomial, count: int) -> None:
    whole = Binomial(part.trials, part.resolution, part.dim, part.rounds * count)
    assert epsilon_of(Repeat(part, count), 1e-6) == epsilon_of(whole, 1e-6)
    assert epsilon_of(Compose((part,) * count), 1e-6) == epsilon_of(whole, 1e-6)
    assert part.repeated(count) == whole


def test_rounds_as_leaf_and_as_convolution_agree() -> None:
    # Equal events merge; a different one beside them forces a convolution of the same curves.
    nearly = Compose((Binomial(40_000, 10, 1), Binomial(40_001, 10, 1)))
    assert epsilon_of(nearly, 1e-6) == pytest.approx(epsilon_of(Binomial(40_000, 10, 1, 2), 1e-6), rel=5e-3)
    sampled = Sampled(Repeat(Binomial(40_000, 10, 3), 2), 0.1)
    assert epsilon_of(sampled, 1e-6) < epsilon_of(sampled.part, 1e-6) / 2


def test_binomial_and_gaussian_rounds_compose() -> None:
    both = Compose((Binomial(1_000_000, 100, 5), Gaussian(5.0)))
    level = math.hypot(2 * 100 / 1000, 1 / 5)
    assert epsilon_of(both, 1e-6) == pytest.approx(epsilon_of(Gaussian(1 / level), 1e-6), rel=2e-2)
    assert epsilon_of(both, 1e-6) > epsilon_of(Gaussian(1 / level), 1e-6)


def test_every_single_choice_of_tails_is_a_worse_proof() -> None:
    event, sizes = (
        Binomial(200_000, 52, 100, 4),
        {"trials": 200_000, "resolution": 52, "dim": 100, "rounds": 4},
    )
    curve, epsilon = curve_of(event, accuracy=1e-9), np.linspace(0, 6, 61)
    for power in range(1, 12):
        tail = 0.01 * 10.0**-power * 2 * special.ndtr(-52 / math.sqrt(200_000)) / 400
        proof = vector_delta(epsilon, tail=tail, excess=0.01 * 10.0**-power, **sizes)
        assert np.all(curve.delta(epsilon) <= proof * (1 + 1e-12))
        without = vector_delta(epsilon, tail=tail, **sizes)
        assert np.all(without >= proof)


@settings(max_examples=30, deadline=None)
@given(
    log_trials=st.floats(0, 9),
    log_relative=st.floats(-4, 1),
    dim=st.sampled_from([1, 2, 30, 10_000]),
    rounds=st.sampled_from([1, 2, 1000]),
)
def test_curves_fall_and_stay_probabilities(
    log_trials: float, log_relative: float, dim: int, rounds: int
) -> None:
    trials = int(10**log_trials)
    g = max(1, round(10**log_relative * math.sqrt(trials)))
    curve = Binomial(trials, g, dim, rounds).curve()
    delta = curve.delta(np.geomspace(1e-3, 20, 40))
    assert np.all((delta >= 0) & (delta <= 1))
    assert np.all(np.diff(delta) <= 1e-9)
    larger = Binomial(trials, g + 1, dim, rounds).curve().delta(1.0)
    assert larger >= float(curve.delta(1.0)) * (1 - 1e-6)
    later = Binomial(trials, g, dim, rounds + 1).curve().delta(1.0)
    assert later >= float(curve.delta(1.0)) * (1 - 1e-6)


def test_small_deltas_have_a_price() -> None:
    deltas = (1e-3, 1e-6, 1e-9, 1e-12, 1e-15)
    for event in (Binomial(10**9, 100), Binomial(10**9, 100, 50), Binomial(10**9, 100, 50, 20)):
        prices = [epsilon_of(event, delta) for delta in deltas]
        assert all(low < high < math.inf for low, high in itertools.pairwise(prices))
        assert math.isinf(epsilon_of(event, 0.0))
        for price, delta in zip(prices, deltas, strict=True):
            assert delta_of(event, price) <= delta * (1 + 1e-9)


def test_more_bits_than_are_credited_cost_as_much_as_those() -> None:
    assert epsilon_of(Binomial(1 << 60, 100, 3), 1e-6) == epsilon_of(Binomial(1 << 40, 100, 3), 1e-6)
    assert epsilon_of(Binomial(1 << 60, 100), 1e-6) == epsilon_of(Binomial(1 << 36, 100), 1e-6)


def test_too_little_noise_proves_nothing_at_small_deltas() -> None:
    assert math.isinf(epsilon_of(Binomial(10, 11), 1e-6))
    assert math.isinf(epsilon_of(Binomial(10, 1, 2), 1e-6))
    assert delta_of(Binomial(10, 3, 2), 1.0) == 1.0


def test_events_are_read_back_and_accept_numpy_integers() -> None:
    event = Binomial(np.int64(5000), np.int32(6), np.int64(3), np.int16(2))  # type: ignore[arg-type]
    assert event_from_json(event_to_json(event)) == Binomial(5000, 6, 3, 2)
    assert epsilon_of(Repeat(event, 40_000), 1e-6) == epsilon_of(Binomial(5000, 6, 3, 80_000), 1e-6)


@pytest.mark.parametrize("name", ["trials", "resolution", "dim", "rounds"])
@pytest.mark.parametrize("bad", [0, -1, 1.5, math.nan, True])
def test_counts_out_of_range_are_refused(name: str, bad: Any) -> None:
    sizes: dict[str, Any] = {"trials": 100, "resolution": 3, "dim": 1, "rounds": 1, name: bad}
    with pytest.raises(ParameterError, match=f"{name} must be a whole number"):
        Binomial(**sizes)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.ZERO_OUT])
def test_only_replacing_is_priced(relation: Relation) -> None:
    with pytest.raises(ParameterError, match="neighbours must be replace-one"):
        Binomial(100, 3, neighbours=Neighbours(relation))
