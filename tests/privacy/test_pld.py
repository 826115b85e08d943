"""Composition: never below the exact one, not far above it, at any count and any delta."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from tacit.privacy import curve_sampling, curves, pld
from tacit.privacy.curves import Curve
from tacit.privacy.loss_grid import connect_the_dots
from tacit.privacy.pld import compose_curves
from tests.privacy.reference import hockey_stick, power

P3, Q3 = np.array([0.55, 0.25, 0.2]), np.array([0.35, 0.3, 0.35])


def _exact_tail(curve: Curve, delta: float, high: float) -> float:
    """Return the epsilon at which an exact curve has this delta, by bisection."""
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if float(curve.delta(middle)) > delta else (low, middle)
    return high


@pytest.mark.parametrize("count", [2, 10, 1000, 10**6])
@pytest.mark.parametrize("mu", [0.5, 5.0])
def test_gaussian_releases_compose_as_one(count: int, mu: float) -> None:
    # An FFT alone leaves 1e-16 times the count in every delta: more than 1e-12 from 10,000 releases on.
    exact = curves.gaussian_curve(mu)
    composed = compose_curves([(curves.gaussian_curve(mu / math.sqrt(count)), count)], accuracy=1e-12)
    for delta in (1e-3, 1e-5, 1e-8, 1e-10, 1e-12):
        epsilon = _exact_tail(exact, delta, 200.0)
        price = float(composed.delta(epsilon))
        assert exact.delta(epsilon) <= price <= delta * 1.012
    for epsilon in np.linspace(-3.0, 10.0, 40):
        assert float(composed.delta(epsilon)) >= float(exact.delta(epsilon)) * (1 - 1e-12)


def test_a_huge_count_is_looser_but_never_below() -> None:
    exact = curves.gaussian_curve(1.0)
    epsilon = np.linspace(0.0, 10.0, 30)
    for count, slack in ((10**8, 1.05), (10**13, math.inf), (10**30, math.inf)):
        small = curves.gaussian_curve(1 / math.sqrt(count))
        composed = compose_curves([(small, count)], accuracy=1e-6).delta(epsilon)
        assert np.all(composed >= exact.delta(epsilon))
        assert np.all(composed[:10] <= exact.delta(epsilon[:10]) * slack)


@pytest.mark.parametrize(("rate", "mu", "fine"), [(1e-6, 1 / 0.3, 2.148432e-06), (1e-9, 5.0, 2.7359409e-08)])
def test_rare_large_losses_need_no_grid_as_fine_as_their_deviation(
    rate: float, mu: float, fine: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of deltas on grids of 2^20 points, one part in 1000 may be lost, and nothing gained."""
    points = []

    def counted(*curve: Any, **grid: Any) -> Any:
        points.append((grid["low"] + grid["high"]) / grid["step"])
        return connect_the_dots(*curve, **grid)

    monkeypatch.setattr(pld, "connect_the_dots", counted)
    one = curve_sampling.sampled_fixed(curves.gaussian_curve(mu), rate)
    found = float(compose_curves([(one, 1000)], accuracy=1e-8).delta(1.0))
    assert found == pytest.approx(fine, rel=1e-3)
    # What one round or another shows by itself (Bonferroni: few runs have two such rounds).
    assert found >= 1000 * float(one.delta(1.0)) - (1000 * rate) ** 2 / 2
    assert max(points) <= 2**16


def test_tiny_deltas_have_their_digits() -> None:
    exact, count = curves.gaussian_curve(1.0), 400
    part = curves.gaussian_curve(1 / math.sqrt(count))
    for delta in (1e-20, 1e-50, 1e-150):
        composed = compose_curves([(part, count)], accuracy=delta)
        epsilon = _exact_tail(exact, delta, 100.0)
        assert delta <= float(composed.delta(epsilon)) * (1 + 1e-9) <= delta * 1.3


def test_a_law_made_for_tiny_deltas_says_nothing_below_its_range() -> None:
    exact, count = curves.gaussian_curve(1.0), 400
    composed = compose_curves([(curves.gaussian_curve(1 / math.sqrt(count)), count)], accuracy=1e-250)
    epsilon = np.linspace(-5.0, 30.0, 141)
    assert np.all(composed.delta(epsilon) >= exact.delta(epsilon) * (1 - 1e-12))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_composition_of_a_small_pair_is_the_enumeration(count: int) -> None:
    curve = compose_curves([(curves.pmf_curve(np.log(P3), np.log(Q3)), count)], accuracy=1e-9)
    p, q = power(P3, count), power(Q3, count)
    for epsilon in np.linspace(-4.0, 4.0, 81):
        at = np.array(epsilon)
        for bound, exact in (
            (curve.forward(at), hockey_stick(p, q, epsilon)),
            (curve.backward(at), hockey_stick(q, p, epsilon)),
        ):
            assert exact - 1e-13 <= float(bound) <= exact + 2e-3


def test_composition_of_different_pairs_is_the_enumeration() -> None:
    p2, q2 = np.array([0.7, 0.3]), np.array([0.6, 0.4])
    parts = [(curves.pmf_curve(np.log(P3), np.log(Q3)), 2), (curves.pmf_curve(np.log(p2), np.log(q2)), 3)]
    curve = compose_curves(parts, accuracy=1e-9)
    p, q = (np.outer(power(a, 2), power(b, 3)).ravel() for a, b in ((P3, p2), (Q3, q2)))
    for epsilon in np.linspace(-3.0, 3.0, 61):
        exact = hockey_stick(p, q, epsilon)
        assert exact - 1e-13 <= float(curve.forward(np.array(epsilon))) <= exact + 2e-3


def test_pure_releases_compose_as_the_optimal_theorem() -> None:
    composed = compose_curves([(curves.approximate_dp_curve(0.1), 100)], accuracy=1e-6)
    assert float(composed.delta(4.0)) == pytest.approx(3.422312e-05, rel=1e-5)
    assert float(composed.delta(3.0)) == pytest.approx(1.361399e-03, rel=1e-5)
    assert float(composed.delta(10.0)) == 0.0
    kept = 1 / (1 + math.exp(-0.1))
    exact = math.fsum(
        math.comb(100, k) * kept**k * (1 - kept) ** (100 - k) * max(-math.expm1(3.5 - 0.1 * (2 * k - 100)), 0)
        for k in range(101)
    )
    assert exact <= float(composed.delta(3.5)) <= exact * (1 + 1e-6)


def test_infinite_losses_add_up() -> None:
    part = curves.approximate_dp_curve(0.2, 1e-3)
    composed = compose_curves([(part, 50)], accuracy=1e-6)
    hidden = -math.expm1(50 * math.log1p(-1e-3))
    assert hidden <= float(composed.delta(9.99)) <= hidden * (1 + 1e-4)
    everything = compose_curves([(curves.nothing_hidden(), 1), (part, 2)], accuracy=1e-6)
    assert float(everything.delta(100.0)) == 1.0


def test_bounds_that_are_not_convex_do_not_grow() -> None:
    # A minimum of two proofs is below either proof, so its composition must be below theirs.
    one, other = curves.approximate_dp_curve(0.1), curves.gaussian_curve(0.08)
    both = curves.minimum([one, other])
    for count in (10, 300):
        price = compose_curves([(both, count)], accuracy=1e-6)
        for single in (one, other):
            alone = compose_curves([(single, count)], accuracy=1e-6)
            for epsilon in (0.1, 0.5, 1.0, 3.0):
                assert float(price.delta(epsilon)) <= float(alone.delta(epsilon)) * 1.01


@pytest.mark.parametrize(
    ("rate", "noise", "count", "gap"),
    [(0.02, 0.9, 300, 1e-4), (0.3, 2.0, 40, 1e-4), (1e-3, 0.6, 300, 5e-5)],
)
def test_poisson_samples_agree_with_dp_accounting(rate: float, noise: float, count: int, gap: float) -> None:
    part = curve_sampling.sampled_poisson(curves.gaussian_curve(1 / noise), rate)
    ours = compose_curves([(part, count)], accuracy=1e-6)
    for is_pessimistic in (True, False):
        theirs = from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            value_discretization_interval=gap,
            pessimistic_estimate=is_pessimistic,
            use_connect_dots=is_pessimistic,
        ).self_compose(count)
        for epsilon in (0.0, 0.05, 0.3, 1.0, 2.0):
            at = np.array(epsilon)
            for mine, pmf in ((ours.forward, theirs._pmf_remove), (ours.backward, theirs._pmf_add)):
                other = float(pmf.get_delta_for_epsilon(epsilon))
                if other < 1e-9:
                    continue
                if is_pessimistic:
                    assert float(mine(at)) == pytest.approx(other, rel=0.01)
                else:
                    assert float(mine(at)) >= other * (1 - 1e-9)


@pytest.mark.parametrize("count", [30, 3000, 10**6])
def test_round_off_allowance_covers_the_observed_noise(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    part = curves.gaussian_curve(1 / math.sqrt(count))
    parts = [(part.forward, part.backward, count)]
    plain = pld._compose_direction(parts, 1e-30, knot=0.0)[0]
    monkeypatch.setattr(pld, "_ROUND_OFF", 0.0)
    bare = pld._compose_direction(parts, 1e-30, knot=0.0)[0]
    losses = (bare.lowest + np.arange(bare.mass.size)) * bare.step
    # Above a loss of 9.2, N(1/2, 1) has a mass of 1e-18: what the FFT leaves there is its noise.
    observed = float(bare.mass[losses > 9.2].max())
    assert observed > 1e-22
    assert np.min(plain.mass - bare.mass) > 5 * observed


def test_every_loss_is_rounded_up_against_a_second_implementation() -> None:
    curve = curve_sampling.sampled_fixed(curves.gaussian_curve(1.0), 0.05)
    pmf = _their_dots(curve, 5e-4, 20_000).self_compose(100)
    ours = compose_curves([(curve, 100)], accuracy=1e-6)
    for epsilon in (0.1, 0.5, 1.0, 1.5):
        assert float(ours.delta(epsilon)) == pytest.approx(pmf.get_delta_for_epsilon(epsilon), rel=5e-3)


def _their_dots(curve: Curve, step: float, most: int) -> pld_pmf.PLDPmf:
    """Return the connect-the-dots law of dp-accounting for one of our curves, from -most to most steps."""
    grid = np.arange(-most, most + 1, dtype=np.float64)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        step, -most, most, curve.forward(grid * step)
    )


def test_order_of_parts_does_not_matter() -> None:
    parts = [
        (curves.laplace_curve(0.3), 2),
        (curves.gaussian_curve(0.4), 1),
        (curves.approximate_dp_curve(0.1), 5),
    ]
    prices = [
        float(compose_curves(list(order), accuracy=1e-6).delta(1.0))
        for order in itertools.permutations(parts)
    ]
    assert max(prices) == pytest.approx(min(prices), rel=1e-9)
