"""Amplification by iteration against a quadratic programme, closed forms, quadrature and an attack."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError
from tacit.privacy.curves import gaussian_curve
from tacit.privacy.iteration import iteration_mu, touch_energy
from tacit.randomness import simulated
from tests.privacy.iteration_reference import least_energy
from tests.statistics import z_bound

Array = npt.NDArray[np.float64]
INF = math.inf


def _cyclic(position: int, n: int, epochs: int) -> Array:
    shifts = np.zeros(n * epochs)
    shifts[position - 1 :: n] = 1.0
    return shifts


@pytest.mark.parametrize(
    ("n", "epochs", "position", "energy"),
    [
        (4, 5, 4, 2.0),
        (10, 3, 10, 1.2),
        (10, 3, 5, 0.3666666667),
        (10, 3, 1, 0.3),
        (1000, 50, 1000, 1.049),
        (1000, 50, 500, 0.050996007984),
    ],
)
def test_hull_energies_of_one_position(n: int, epochs: int, position: int, energy: float) -> None:
    assert iteration_mu(_cyclic(position, n, epochs), 1.0) ** 2 == pytest.approx(energy, abs=1e-10)
    assert touch_energy([position] * epochs, n) == pytest.approx(energy, abs=1e-10)


@pytest.mark.parametrize(
    ("final", "energy"), [(3, 0.9047619048), (4, 0.9166666667), (5, 1.0333333333), (6, 1.5)]
)
def test_last_touch_after_latest_earlier_ones(final: int, energy: float) -> None:
    assert touch_energy([6, 6, 6, final], 6) == pytest.approx(energy, abs=1e-10)


def test_a_shift_without_noise_after_it_is_not_hidden() -> None:
    s, c = [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]
    assert iteration_mu([0, 1, 0], [0, 1, 1], [0, 0, 1]) == pytest.approx(math.sqrt(0.5))
    assert iteration_mu([0, 1, 0], [1, 1, 1], [1, 1, 1]) ** 2 == pytest.approx(0.5)
    assert iteration_mu(s, [1, 1, 0], c) == INF
    assert iteration_mu([1, 1, 0], 0.0) == INF
    assert iteration_mu([0, 0], 0.0) == 0.0
    assert iteration_mu([0, 0], 1.0, start=2.0) ** 2 == pytest.approx(2.0)
    # A contraction to one point forgets what came before, noise or not.
    assert iteration_mu([1, 1, 0], [0, 0, 1], [1, 1, 0]) == 0.0


@pytest.mark.parametrize(
    ("variances", "energy"), [((1.0, 1.0, 0.0), 1.0), ((1.0, 0.0, 0.0), INF), ((1.0, 0.0, 1.0), 1.0)]
)
def test_energies_of_three_steps(variances: tuple[float, ...], energy: float) -> None:
    found = iteration_mu([0, 1, 0], variances, [1, 1, 1]) ** 2
    assert found == energy or found == pytest.approx(energy)


positive = st.floats(0.05, 4.0)


@st.composite
def _instances(draw: st.DrawFn) -> tuple[list[float], list[float], list[float], float]:
    steps = draw(st.integers(1, 7))
    shifts = draw(st.lists(st.one_of(st.just(0.0), positive), min_size=steps, max_size=steps))
    variances = draw(st.lists(st.one_of(st.just(0.0), positive), min_size=steps, max_size=steps))
    variances[-1] = draw(positive)
    contractions = draw(st.lists(st.floats(0.2, 1.0), min_size=steps, max_size=steps))
    return shifts, variances, contractions, draw(st.one_of(st.just(0.0), positive))


@settings(max_examples=100)
@given(_instances())
def test_hull_is_the_quadratic_programme(
    instance: tuple[list[float], list[float], list[float], float],
) -> None:
    shifts, variances, contractions, start = instance
    bound = iteration_mu(shifts, variances, contractions, start) ** 2
    exact = least_energy(np.array(shifts), np.array(variances), np.array(contractions), start)
    assert bound == pytest.approx(exact, rel=1e-7, abs=1e-9)


@settings(max_examples=50)
@given(_instances(), st.integers(0, 6), positive)
def test_more_or_later_shifts_never_cost_less(
    instance: tuple[list[float], list[float], list[float], float], at: int, extra: float
) -> None:
    shifts, variances, contractions, start = instance
    index = at % len(shifts)
    base = iteration_mu(shifts, variances, contractions, start)
    more = list(shifts)
    more[index] += extra
    assert iteration_mu(more, variances, contractions, start) >= base * (1 - 1e-9)
    later = list(shifts)
    later[index], later[-1] = 0.0, shifts[-1] + (shifts[index] if index < len(shifts) - 1 else 0.0)
    if index < len(shifts) - 1:
        assert iteration_mu(later, variances, contractions, start) >= base * (1 - 1e-9)


@pytest.mark.parametrize(("rate", "energy"), [(1e-4, 1.0178152376), (1e-3, 1.0006773383), (1e-2, 1.0)])
def test_strongly_convex_cycles_have_the_published_formula(rate: float, energy: float) -> None:
    n, epochs, c = 1000, 50, 1 - rate
    cycle, rest = c**n, c ** (n * (epochs - 1))
    published = 1 + c ** (2 * n - 2) * (1 - c * c) / (1 - cycle) ** 2 * (1 - rest) / (1 + rest)
    ours = iteration_mu(_cyclic(n, n, epochs), 1.0, c) ** 2
    assert ours == pytest.approx(energy, abs=1e-10)
    assert ours == pytest.approx(published, rel=1e-11)


def test_strongly_convex_gradient_descent_has_the_closed_form() -> None:
    c, steps = 0.9, 10
    closed = (1 + c) / (1 - c) * (1 - c**steps) / (1 + c**steps)
    assert closed == pytest.approx(9.175730307650225)
    assert iteration_mu(np.ones(steps), 1.0, c) ** 2 == pytest.approx(closed)


def test_weights_that_vanish_do_not_overflow() -> None:
    assert iteration_mu(np.ones(100_000), 1.0, 0.5) ** 2 == pytest.approx(3.0)
    assert iteration_mu(np.ones(5000), 1.0, 1e-3) ** 2 == pytest.approx((1 + 1e-3) / (1 - 1e-3))


@pytest.mark.parametrize(("start", "energy", "epochs"), [(5.0, 1.1604010025, 4), (20.0, 1.7604002106, 19)])
def test_bounded_runs_have_the_tabled_values(start: float, energy: float, epochs: int) -> None:
    assert touch_energy([100] * 1000, 100, diameter=start) == pytest.approx(energy, abs=1e-9)
    run = iteration_mu(_cyclic(100, 100, epochs), 1.0, start=start) ** 2
    assert run == pytest.approx(energy, abs=1e-9)
    assert touch_energy([100] * 3, 100, diameter=start) == pytest.approx(1.02)  # too short to forget
    assert touch_energy([100] * 10**5, 100, diameter=start) <= 1 + 4 * start / 100


def test_a_cut_run_starts_after_the_prox() -> None:
    n, epochs, start, factor = 5, 8, 0.5, 0.6
    runs = []
    for length in range(1, epochs + 1):
        c = np.ones(n * length)
        c[n::n] = factor  # not at the first step: the ball bounds the point after that prox
        shifts = _cyclic(5, n, length)
        runs.append(least_energy(shifts, np.ones(n * length), c, start if length < epochs else 0.0))
    cut = touch_energy([5] * epochs, n, epoch_contraction=factor, diameter=start)
    assert cut == pytest.approx(min(runs), rel=1e-6)
    whole = touch_energy([5] * epochs, n, epoch_contraction=factor)
    assert whole == pytest.approx(runs[-1], rel=1e-6)
    assert cut < whole


def test_prox_contraction_is_the_hull_of_all_steps() -> None:
    n, epochs, factor = 7, 6, 0.8
    c = np.ones(n * epochs)
    c[n::n] = factor
    for position in (1, 4, 7):
        whole = iteration_mu(_cyclic(position, n, epochs), 1.0, c) ** 2
        assert touch_energy([position] * epochs, n, epoch_contraction=factor) == pytest.approx(whole)
        assert whole < touch_energy([position] * epochs, n)


def _second_iterate(shift: float, middle: Any) -> tuple[Array, Array]:
    y = np.linspace(-8, 10, 1801)
    x = np.linspace(-12, 14, 1301)
    law = stats.norm.pdf(y, shift) * (y[1] - y[0])
    return x, stats.norm.pdf(x[:, None] - middle(y)[None, :]) @ law


@pytest.mark.parametrize(
    ("middle", "forward", "backward"),
    [
        (
            lambda x: x,
            (0.520500, 0.400052, 0.286209, 0.114525),
            (0.520500, 0.400052, 0.286209, 0.114525),
        ),
        (
            lambda x: np.maximum(x, 0.0),
            (0.479622, 0.369526, 0.267545, 0.110936),
            (0.479622, 0.325721, 0.176134, 0.007568),
        ),
        (
            lambda x: np.clip(x, -1.0, 2.0),
            (0.476071, 0.323701, 0.175373, 0.007563),
            (0.476071, 0.361624, 0.253173, 0.082946),
        ),
    ],
    ids=["identity", "relu", "clip"],
)
def test_two_steps_stay_below_the_bound(middle: Any, forward: Any, backward: Any) -> None:
    bound = gaussian_curve(iteration_mu([2.0, 0.0], 1.0))
    x, p = _second_iterate(2.0, middle)
    _, q = _second_iterate(0.0, middle)
    for epsilon, there, back in zip((0.0, 0.5, 1.0, 2.0), forward, backward, strict=True):
        for one, other, value in ((p, q, there), (q, p, back)):
            exact = np.trapezoid(np.maximum(one - math.exp(epsilon) * other, 0.0), x)
            assert exact == pytest.approx(value, abs=2e-5)
            assert float(bound.delta(epsilon)) >= value - 1e-6


def _true_mu(position: int, *, n: int = 4, epochs: int = 5, r: float = 0.9) -> float:
    after = np.arange(n * epochs)[::-1]
    touched = after[position - 1 :: n]
    return float(2 * np.sum(r**touched) / math.sqrt(np.sum(r ** (2.0 * after))))


@pytest.mark.parametrize(
    ("position", "exact", "contracting", "convex"),
    [(4, 2.243427682, 2.519388401, 2.828427125), (1, 1.635458780, None, 2.236067977)],
)
def test_gaussian_runs_stay_below_the_bound(
    position: int, exact: float, contracting: float | None, convex: float
) -> None:
    shifts = 2 * _cyclic(position, 4, 5)
    assert _true_mu(position) == pytest.approx(exact, abs=1e-9)
    assert iteration_mu(shifts, 1.0) == pytest.approx(convex, abs=1e-9)
    better = iteration_mu(shifts, 1.0, 0.9)
    assert exact <= better <= convex
    if contracting is not None:
        assert better == pytest.approx(contracting, abs=1e-9)


def test_an_attack_on_the_last_iterate_stays_below_the_bound() -> None:
    rng, runs, step = simulated(7, "threshold attack"), 100_000, 0.1
    ends = []
    for record in (1.0, -1.0):  # gradients of 0.5 (x - q)^2 differ by 2 = Delta
        x = np.zeros(runs)
        for data in np.tile([0.3, -0.2, 0.0, record], 5):
            x -= step * (x - data + rng.normal(size=runs))
        ends.append(x)
    with_, without = ends
    threshold = (with_.mean() + without.mean()) / 2
    rates = [float(np.mean(end > threshold)) for end in ends]
    found = float(stats.norm.ppf(rates[0]) - stats.norm.ppf(rates[1]))
    slack = z_bound(2) * math.sqrt(
        sum(rate * (1 - rate) / runs / stats.norm.pdf(stats.norm.ppf(rate)) ** 2 for rate in rates)
    )
    assert slack < 0.05
    assert found <= iteration_mu(2 * _cyclic(4, 4, 5), 1.0, 0.9) + slack
    assert abs(found - _true_mu(4)) <= slack  # and the attack sees what there is


NAN = math.nan


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, NAN], 1.0), "shifts must be finite numbers >= 0"),
        (([1.0, -1.0], 1.0), "shifts must be finite"),
        (([1.0], [-1.0]), "variances must be finite"),
        (([1.0], 1.0, 1.1), "contractions must be at most 1, got 1.1"),
        (([1.0], 1.0, NAN), "contractions must be finite"),
        (([1.0], 1.0, 1.0, -1.0), "start must be a finite number >= 0"),
        (([1.0, 2.0], [1.0, 1.0, 1.0]), "must have one shape"),
        (([], 1.0), "shifts must be a vector of at least one step"),
        ((np.ones((2, 2)), 1.0), "shifts must be a vector"),
    ],
)
def test_bad_iterations_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        iteration_mu(*arguments)


def test_bad_touches_are_refused() -> None:
    with pytest.raises(ParameterError, match="positions must be steps from 1 to 3"):
        touch_energy([4], 3)
    with pytest.raises(ParameterError, match="n must be a whole number"):
        touch_energy([1], 0)
    with pytest.raises(ParameterError, match="epoch_contraction must be in"):
        touch_energy([1], 3, epoch_contraction=1.2)
    with pytest.raises(ParameterError, match="diameter must be a finite number > 0"):
        touch_energy([1], 3, diameter=0.0)
