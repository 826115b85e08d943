"""AC-SA against independent reference values, and against its own bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Ask
from tacit.learning.algorithms.accelerated import ac_sa, convex_nu, excess_bound
from tacit.numerics import Array, L2Ball, Regularizer, SquaredL2, Zero

Gradient = Callable[[Array], Array]
D, MU, BETA = 20, 0.1, 5.0
SPECTRUM = np.geomspace(MU, BETA, D)
START = np.full(D, math.sqrt(2 / SPECTRUM.sum()))


def asking(gradient: Gradient, asked: list[int] | None = None) -> Ask:
    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (7.0,)
        if asked is not None:
            asked.append(step)
        return (gradient(at["w"]),)

    return ask


def run(
    gradient: Gradient,
    w: Array,
    *,
    rounds: int,
    nu: float,
    mu: float = 0.0,
    prox: Regularizer | None = None,
    first: int = 0,
    asked: list[int] | None = None,
) -> Array:
    return ac_sa(
        asking(gradient, asked),
        w,
        rounds=rounds,
        nu=nu,
        mu=mu,
        radius=7.0,
        prox=Zero() if prox is None else prox,
        follow=lambda _r, _w: None,
        first=first,
    )


@pytest.mark.parametrize(("mu", "expected"), [(0.0, 0.01622396), (1.0, 0.35588972)])
def test_reference_values(mu: float, expected: float) -> None:
    w = run(lambda x: x, np.ones(1), rounds=5, nu=2.0, mu=mu)
    assert w[0] == pytest.approx(expected, abs=5e-9)


def slow_ac_sa(gradient: Gradient, w: Array, *, rounds: int, nu: float, mu: float, radius: float) -> Array:
    """The printed algorithm, its argmin found by many small projected steps."""
    ball, aggregate = L2Ball(radius), w
    for r in range(1, rounds + 1):
        a, eta = 2 / (r + 1), 4 * nu / (r * (r + 1))
        middle = ((1 - a) * (mu + eta) * aggregate + a * ((1 - a) * mu + eta) * w) / (eta + (1 - a * a) * mu)
        g, previous = gradient(middle), w
        for _ in range(300):
            slope = a * (g + mu * (w - middle)) + ((1 - a) * mu + eta) * (w - previous)
            w = ball(1.0, w - 0.5 / (mu + eta) * slope)
        aggregate = a * w + (1 - a) * aggregate
    return aggregate


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_the_closed_step_is_the_argmin_of_the_paper(mu: float) -> None:
    rng = np.random.default_rng(3)
    root = rng.standard_normal((3, 3))
    hessian, target = root @ root.T / 4 + mu * np.eye(3), 2 * rng.standard_normal(3)

    def gradient(w: Array) -> Array:
        return np.asarray(hessian @ (w - target))

    start = np.array([0.5, 0.0, -0.2])
    fast = run(gradient, start, rounds=8, nu=6.0, mu=mu, prox=L2Ball(1.0))
    np.testing.assert_allclose(
        fast, slow_ac_sa(gradient, start, rounds=8, nu=6.0, mu=mu, radius=1.0), atol=1e-9
    )


@pytest.mark.parametrize("mu", [0.0, MU])
def test_it_reaches_the_regularised_solution(mu: float) -> None:
    pull = np.linspace(-1, 1, D)
    w = run(lambda x: SPECTRUM * x - pull, START, rounds=3000, nu=2 * BETA, mu=mu, prox=SquaredL2(0.5))
    np.testing.assert_allclose(w, pull / (SPECTRUM + 0.5), atol=1e-4)


def test_rounds_are_numbered_from_the_first() -> None:
    asked: list[int] = []
    run(lambda x: x, np.ones(1), rounds=3, nu=2.0, first=10, asked=asked)
    assert asked == [10, 11, 12]


@pytest.mark.parametrize("rounds", [1, 2, 10, 100])
@pytest.mark.parametrize("curvature", [0.01, 1.0, 5.0])
def test_without_noise_the_bound_holds(rounds: int, curvature: float) -> None:
    w = run(lambda x: curvature * x, np.ones(1), rounds=rounds, nu=2 * BETA)
    bound = excess_bound(nu=2 * BETA, noise_std=0.0, rounds=rounds, diameter=1.0)
    assert curvature * w[0] ** 2 / 2 <= bound
    assert bound == pytest.approx(20 / (rounds * (rounds + 1)))


@pytest.mark.parametrize("rounds", [5, 50])
def test_with_noise_the_bound_holds_and_is_not_far_away(rounds: int) -> None:
    """The noise of each round moves the output linearly, so the expected gap is computed, not sampled."""
    noise_std, diameter = 2.0, 1.0
    nu = convex_nu(smoothness=1.0, noise_std=noise_std, rounds=rounds, diameter=diameter)

    def output(noise: Array) -> float:
        path = iter(noise)
        return float(run(lambda x: x + next(path), np.ones(1), rounds=rounds, nu=nu)[0])

    still = output(np.zeros(rounds))
    moved = [output(row) - still for row in np.eye(rounds)]
    expected = (still**2 + noise_std**2 * np.square(moved).sum()) / 2
    bound = excess_bound(nu=nu, noise_std=noise_std, rounds=rounds, diameter=diameter)
    assert bound / 20 < expected <= bound


def test_the_step_minimises_the_looser_bound() -> None:
    facts = {"noise_std": 3.0, "rounds": 40, "diameter": 2.0}

    def loose(nu: float) -> float:
        return 2 * nu * 4 / (40 * 41) + 4 * 9 * 42 / (3 * nu)

    best = convex_nu(smoothness=1e-9, **facts)  # type: ignore[arg-type]  # one dictionary for both
    assert loose(best) < min(loose(0.99 * best), loose(1.01 * best))
    assert convex_nu(smoothness=best, **facts) == 2 * best  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"), [("smoothness", 0.0), ("diameter", 0.0), ("noise_std", -1.0), ("noise_std", math.nan)]
)
def test_bad_facts_are_refused(name: str, value: float) -> None:
    facts = {"smoothness": 1.0, "diameter": 1.0, "noise_std": 1.0, name: value}
    with pytest.raises(ParameterError, match=f"{name} must be"):
        convex_nu(rounds=3, **facts)
