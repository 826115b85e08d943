"""Binomial sums of several kinds together: against exact losses, enumeration, and a formula written anew."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import signal, stats

from tacit.privacy import (
    Binomial,
    BinomialAlone,
    Compose,
    Gaussian,
    Laplace,
    Parallel,
    Repeat,
    Sample,
    Sampled,
    delta_of,
    epsilon_of,
    guarantee,
)
from tacit.privacy.binomial import binomial_gdp_step
from tests.privacy.binomial_reference import composed_shifts
from tests.privacy.reference import gaussian_delta, hockey_stick

EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0)


@pytest.mark.parametrize(("trials", "g"), [((200, 150), (3, 2)), ((60, 400), (1, 5)), ((90, 91), (2, 2))])
def test_two_kinds_cover_the_exact_law(trials: tuple[int, int], g: tuple[int, int]) -> None:
    # A vector of norm g that lies along one axis moves by g whole steps in it, in each of two rounds a kind.
    laws = [stats.binom.pmf(np.arange(n + 1), n, 0.5) for n in trials for _ in range(2)]
    steps = [shift for shift in g for _ in range(2)]
    p = q = np.ones(1)
    for law, k in zip(laws, steps, strict=True):
        losses = _losses(law, k)
        p, q = np.outer(p, losses[0]).ravel(), np.outer(q, losses[1]).ravel()
        p, q = _thinned(p, q)
    event = Compose(tuple(Repeat(Binomial(n, k, 2), 2) for n, k in zip(trials, g, strict=True)))
    for epsilon in EPSILONS:
        assert hockey_stick(p, q, epsilon) <= delta_of(event, epsilon) * (1 + 1e-9)
        assert hockey_stick(q, p, epsilon) <= delta_of(event, epsilon) * (1 + 1e-9)


def _losses(law: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the laws of eta + k and of eta on their common range."""
    zeros = np.zeros(k)
    return np.concatenate([zeros, law]), np.concatenate([law, zeros])


def _thinned(p: np.ndarray, q: np.ndarray, most: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Merge neighbouring losses: what a coarser view shows, a bound from below."""
    order = np.argsort(np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(q, 1e-300)))
    places = np.linspace(0, p.size, min(most, p.size), endpoint=False).astype(int)
    return np.add.reduceat(p[order], places), np.add.reduceat(q[order], places)


def test_sums_beside_gaussian_noise_cover_the_exact_law() -> None:
    trials, g, z = 400, 5, 0.9
    z_grid = np.arange(trials + g + 1)
    p = stats.binom.pmf(z_grid - g, trials, 0.5)
    q = stats.binom.pmf(z_grid, trials, 0.5)
    edges = np.concatenate([[-np.inf], np.linspace(-8, 9, 3401), [np.inf]])
    first = np.diff(stats.norm.cdf(edges, loc=1 / z))
    second = np.diff(stats.norm.cdf(edges))
    event = Compose((Binomial(trials, g, 2), Gaussian(z)))
    for epsilon in EPSILONS:
        exact = hockey_stick(np.outer(p, first).ravel(), np.outer(q, second).ravel(), epsilon)
        claimed = delta_of(event, epsilon)
        assert exact <= claimed
        assert claimed <= 2.2 * exact + 1e-12  # rounding is in the price and not in this law


def test_price_is_the_formula_written_anew() -> None:
    kinds = [(150_000, 28, 785, 20), (60_000, 20, 785, 30), (90_000, 40, 50, 7)]
    z, epsilon = 8.0, 6.0
    best = 1.0
    for level in 10.0 ** -np.arange(1, 25.0):
        mean = proxy = slack = 0.0
        coordinates = sum(d * t for _, _, d, t in kinds)
        for n, g, d, t in kinds:
            hidden = 2 * stats.norm.cdf(-g / math.sqrt(n))
            tail = 0.01 * level * hidden / coordinates
            m = binomial_gdp_step(n, 0.5, tail, g)
            slack += d * t * tail / (2 * stats.norm.cdf(-m * g / 2))
            mean += t * m**2 * (g * g + d / 4)
            proxy += t * m**4 * (g + math.sqrt(d) / 2) ** 2
        mu = math.sqrt(1 / z**2 + mean + math.sqrt(2 * proxy * math.log(1 / (0.01 * level))))
        best = min(best, gaussian_delta(mu, epsilon) + 0.01 * level + slack)
    parts = tuple(Repeat(Binomial(n, g, d), t) for n, g, d, t in kinds)
    assert delta_of(Compose((*parts, Gaussian(z))), epsilon) == pytest.approx(best, rel=1e-6)


def test_order_and_nesting_do_not_change_the_price() -> None:
    a, b, noise = Binomial(150_000, 28, 50), Binomial(60_000, 20, 50), Gaussian(9.0)
    trees = [
        Compose((a, b, a, noise)),
        Compose((noise, Compose((b, Repeat(a, 2))))),
        Compose((Binomial(150_000, 28, 50, 2), noise, b)),
    ]
    assert len({epsilon_of(tree, 1e-6) for tree in trees}) == 1
    assert epsilon_of(Compose((a, b)), 1e-6) < epsilon_of(trees[0], 1e-6)


def test_equal_kinds_cost_as_one_kind() -> None:
    # Two kinds that differ by nothing but one noise bit in 150,000.
    one = epsilon_of(Repeat(Binomial(150_000, 28, 50), 20), 1e-6)
    two = Compose((Repeat(Binomial(150_000, 28, 50), 10), Repeat(Binomial(150_001, 28, 50), 10)))
    assert one * (1 - 1e-5) < epsilon_of(two, 1e-6) <= one * (1 + 1e-12)


def test_more_noise_costs_less() -> None:
    def plan(scale: int) -> float:
        difference = Sampled(Compose((Binomial(500 * scale, 10, 30), Gaussian(6.0))), 0.1, Sample.FIXED)
        return epsilon_of(Compose((Repeat(difference, 50), Binomial(900 * scale, 12, 30))), 1e-6)

    prices = [plan(scale) for scale in (2, 4, 8, 16, 32)]
    assert all(fewer > more for fewer, more in pairwise(prices))


def test_parts_and_other_releases_compose_with_sums() -> None:
    a, b = Binomial(150_000, 28, 50), Binomial(60_000, 20, 50)
    both = Compose((a, b))
    assert epsilon_of(Parallel((a, b)), 1e-6) == max(epsilon_of(a, 1e-6), epsilon_of(b, 1e-6))
    with_other = epsilon_of(Compose((both, Laplace(2.0))), 1e-6)
    assert epsilon_of(both, 1e-6) < with_other <= epsilon_of(both, 1e-6) + 0.5 + 1e-9


def test_a_scalar_sum_beside_others_keeps_its_exact_law() -> None:
    # 30 noise bits are too few for any Gaussian to dominate them at 1e-9; the exact law of one sum is finite.
    scalar = Binomial(64, 2)
    exact = composed_shifts(64, 0.5, [2], 2.0)[1]
    assert delta_of(scalar, 2.0) <= exact + 1e-9
    assert delta_of(Compose((scalar, Gaussian(50.0))), 2.0) < 3 * exact


@pytest.mark.parametrize("trials", [1, 10, 27])  # fewer than the steps of a shift
def test_one_party_alone_may_have_no_finite_price(trials: int) -> None:
    alone = BinomialAlone(trials, 28, 785)
    assert math.isinf(epsilon_of(alone, 1e-6))
    assert math.isinf(epsilon_of(Compose((Repeat(Sampled(alone, 0.5, Sample.FIXED), 3), alone)), 1e-6))
    seen = "anybody who sees the messages of silo 'x' before they are shuffled"
    said = guarantee(alone, 1e-6, observer=seen)
    assert "No privacy is claimed" in str(said)


def test_one_party_alone_rests_on_nobody_else() -> None:
    alone = BinomialAlone(3470, 28, 785)
    assert epsilon_of(alone, 1e-6) == epsilon_of(Binomial(3470, 28, 785), 1e-6)
    assert epsilon_of(alone, 1e-6) == pytest.approx(5.30498, abs=1e-5)
    assert alone.assumptions == ()
    assert isinstance(alone.repeated(3), BinomialAlone)


def test_convolving_normals_is_what_adding_squares_is() -> None:
    # The reference of this file against itself: two Gaussian kinds on a grid.
    x = np.arange(-12, 12, 0.01)
    p, q = (stats.norm.pdf(x, m) * 0.01 for m in (0.3, 0.0))
    summed = signal.fftconvolve(p, p), signal.fftconvolve(q, q)
    assert hockey_stick(*summed, 0.5) == pytest.approx(gaussian_delta(0.3 * math.sqrt(2), 0.5), abs=1e-3)
