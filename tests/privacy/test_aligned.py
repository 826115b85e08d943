"""Noise on x x^T and on rows x p^T of the same records: no pair exceeds the price, and one reaches it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.numerics import Array
from tacit.privacy import (
    Aligned,
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Neighbours,
    Part,
    PrivacyBudget,
    Repeat,
    Sampled,
    Zcdp,
    calibrate,
    delta_of,
    epsilon_of,
    event_from_json,
    event_to_json,
    neighbours_of,
    renyi_of,
    rho_of,
    squared_level,
)
from tests.privacy.event_examples import ADD_REMOVE, ZERO_OUT
from tests.privacy.reference import hockey_stick

DELTA = 1e-5


def aligned(a: float, b: float) -> Aligned:
    """With x of length r: a = (r^2 / s_G)^2, b = (r L / s)^2; matrices move by sqrt(2) r^2, rows by 2 r L."""
    return Aligned(Gdp(math.sqrt(2 * a)), Gdp(2 * math.sqrt(b)))


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [(1, 1, 4.5), (1, 2, 8), (1, 3, 12), (1, 1e-3, 2.0020005), (0.15, 0.175, 0.7520833333)],
)
def test_squared_levels_by_hand(a: float, b: float, level: float) -> None:
    found = aligned(a, b)
    assert found.mu**2 == pytest.approx(level, rel=1e-9)
    assert found.mu**2 <= 2 * a + 4 * b  # of plain composition
    assert epsilon_of(found, DELTA) == pytest.approx(epsilon_of(Gdp(math.sqrt(level)), DELTA), rel=1e-9)


def moved(x: Array, y: Array, p: Array, q: Array, a: float, b: float) -> Array:
    """How far |x| <= 1 and slopes |p| <= 1 move all releases, squared; pairs along the first axis."""
    matrices = (x @ x.transpose(0, 2, 1)) - (y @ y.transpose(0, 2, 1))
    rows = x @ p.transpose(0, 2, 1) - y @ q.transpose(0, 2, 1)
    return np.asarray(a * (matrices**2).sum(axis=(1, 2)) + b * (rows**2).sum(axis=(1, 2)))


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 0.3), (0.2, 0.39), (1.0, 5.0), (1.0, 1.9)])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("short", [False, True])
def test_no_two_records_of_bounded_slopes_exceed_it(a: float, b: float, outputs: int, short: bool) -> None:
    rng, most = np.random.default_rng(3), aligned(a, b).mu ** 2
    n, worst = 50_000, 0.0

    def vectors(d: int, *, shorter: bool) -> Array:
        v = rng.normal(size=(n, d, 1))
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        return np.asarray(v * rng.uniform(0, 1, (n, 1, 1)) ** 0.1 if shorter else v)

    for d in (2, 4):
        x, p = vectors(d, shorter=short), vectors(outputs, shorter=short)
        y, q = vectors(d, shorter=short), vectors(outputs, shorter=short)
        q[::2] = -p[::2]  # opposite slopes
        worst = max(worst, float(moved(x, y, p, q, a, b).max()))
    assert worst <= most * (1 + 1e-12)
    c = min(1.0, b / (2 * a))
    x, y = np.array([[[1.0], [0.0]]]), np.array([[[c], [math.sqrt(1 - c * c)]]])
    one = np.eye(outputs)[None, :, :1]
    assert moved(x, y, one, -one, a, b)[0] == pytest.approx(most)


def test_short_rows_whose_slopes_are_not_bounded_exceed_it() -> None:
    """Clipping x p by its length lets a short x have a long p: then x x^T hides nothing of it."""
    x, short = np.array([[[1.0]]]), np.array([[[1e-6]]])
    steep = moved(x, short, np.array([[[1.0]]]), np.array([[[-1e6]]]), 1.0, 1.0)
    assert steep[0] == pytest.approx(5.0)
    assert steep[0] > aligned(1.0, 1.0).mu ** 2


@pytest.mark.parametrize(
    "answers", [lambda y: y > 0, lambda y: y < 0.5, lambda y: abs(y) < 1, lambda y: y > -9]
)
def test_rows_that_are_chosen_by_what_was_seen_cost_no_more(answers: Any) -> None:
    """A matrix, then two rounds whose slopes depend on the outcomes before them, for several angles."""
    a, b, h = 0.5, 0.3, 0.15
    most = aligned(a, 2 * b)
    t = np.arange(-6.0, 7.5, h)
    first, second, third = np.meshgrid(t, t, t, indexing="ij")
    for c in (0.0, 0.3, 0.6, 1.0):
        matrix, steep = math.sqrt(2 * a * (1 - c * c)), math.sqrt(b * (2 + 2 * c))
        flat = math.sqrt(b)
        centre = np.where(answers(first), steep, flat)
        last = np.where(answers(first + second), steep, 0.0)
        plain = stats.norm.pdf(first) * stats.norm.pdf(second) * stats.norm.pdf(third)
        other = (
            stats.norm.pdf(first - matrix) * stats.norm.pdf(second - centre) * stats.norm.pdf(third - last)
        )
        for epsilon in (0.0, 0.5, 1.5):
            found = max(hockey_stick(other, plain, epsilon), hockey_stick(plain, other, epsilon)) * h**3
            assert found <= delta_of(most, epsilon) + 2e-4


def test_it_is_a_gaussian_release_wherever_it_stands() -> None:
    event = aligned(1.0, 1.0)
    assert neighbours_of(event) == Neighbours()
    mu = event.mu
    for whole, same in (
        (Repeat(event, 4), Gdp(2 * mu)),
        (Compose((event, Gaussian(0.5))), Gdp(math.hypot(mu, 2))),
        (Sampled(event, 0.1), Sampled(Gdp(mu), 0.1)),
    ):
        assert epsilon_of(whole, DELTA) == pytest.approx(epsilon_of(same, DELTA), rel=1e-12)
    assert rho_of(event) == pytest.approx(mu**2 / 2)
    assert renyi_of(event, [2.0, 8.0]) == pytest.approx([mu**2, 4 * mu**2])
    assert epsilon_of(event, 0.0) == math.inf
    assert event_from_json(event_to_json(event)) == event
    z = calibrate(lambda z: Aligned(Gaussian(z), Repeat(Gaussian(2 * z), 3)), PrivacyBudget(1.0, DELTA))
    plain = calibrate(lambda z: Compose((Gaussian(z), Repeat(Gaussian(2 * z), 3))), PrivacyBudget(1.0, DELTA))
    assert z / plain == pytest.approx(math.sqrt((1 + 3 / 8 + 9 / 256) / (1 + 3 / 4)), rel=1e-6)


def test_noise_on_a_grid_is_priced_as_rounded_and_rounding_counts_by_itself() -> None:
    squares, rows = DiscreteGaussian(900.0, 460.0, dim=10), Repeat(DiscreteGaussian(800.0, 300.0, dim=4), 3)
    event = Aligned(squares, rows, 0.05)
    levels = [squared_level(part, 2) for part in (squares, rows)]
    assert levels == pytest.approx([(460 / 900) ** 2, 3 * (300 / 800) ** 2], rel=1e-4)
    assert levels[0] > (460 / 900) ** 2
    expected = math.sqrt(levels[0] + levels[1] / 2 + levels[1] ** 2 / (16 * levels[0])) + 0.05
    assert event.mu == pytest.approx(expected, rel=1e-12)


def test_extremes_have_a_price() -> None:
    assert aligned(1e-300, 1.0).mu == pytest.approx(2.0)
    assert aligned(1.0, 1e-300).mu == pytest.approx(math.sqrt(2))
    assert Aligned(Gaussian(1e300), Gaussian(1e300)).mu == 0.0
    assert epsilon_of(Aligned(Gaussian(1e-200), Gaussian(1.0)), DELTA) == math.inf
    assert epsilon_of(Aligned(Gaussian(1.0), Gaussian(1e-200)), DELTA) == math.inf


@pytest.mark.parametrize(
    ("squares", "rows", "rounding", "said"),
    [
        (
            Gaussian(1.0, ZERO_OUT),
            Gaussian(1.0, ZERO_OUT),
            0.0,
            "needs replace-one neighbours, .* got zero-out",
        ),
        (Gaussian(1.0, ADD_REMOVE), Gaussian(1.0, ADD_REMOVE), 0.0, "got add-remove: there, use Compose"),
        (Gaussian(1.0), Gaussian(1.0, ZERO_OUT), 0.0, "different neighbours"),
        (Gaussian(1.0), Laplace(1.0), 0.0, "Gaussian noise only, .* got Laplace"),
        (Zcdp(1.0), Gaussian(1.0), 0.0, "got Zcdp: use a fixed size, or Compose"),
        (Gaussian(1.0), Sampled(Gaussian(1.0), 0.1), 0.0, "got Sampled"),
        (Gaussian(1.0), Gaussian(1.0), -1.0, "rounding must be"),
        (Gaussian(1.0), Gaussian(1.0), math.nan, "rounding must be"),
        (
            Gaussian(1.0, Neighbours(part=Part.SENSITIVE)),
            Gaussian(1.0, Neighbours(part=Part.SENSITIVE)),
            0.0,
            "the sensitive part only",
        ),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(
    squares: Event, rows: Event, rounding: float, said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        Aligned(squares, rows, rounding)
