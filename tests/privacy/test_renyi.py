"""Rényi bounds: conversions against tables, another implementation and exact prices; how they compose."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from tacit.errors import ParameterError
from tacit.literature import compare
from tacit.privacy import (
    AnyOf,
    ApproximateDP,
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    Parallel,
    PureDP,
    Repeat,
    Sampled,
    Zcdp,
    delta_of,
    epsilon_of,
    event_from_json,
    event_to_json,
)
from tacit.privacy.curves import Curve, pmf_curve
from tacit.privacy.divergences import hockey_stick, worst_renyi_divergence
from tacit.privacy.pricing import method_of, renyi_of
from tacit.privacy.renyi import (
    ORDERS,
    Renyi,
    interpolate_orders,
    renyi_curve,
    renyi_to_delta,
    renyi_to_epsilon,
)
from tests.privacy.event_examples import ADD_REMOVE
from tests.privacy.reference import Array, gaussian_delta, power

DENSE = 1 + np.geomspace(1e-3, 1e4, 40_001)
BOUNDS = st.lists(st.floats(1e-12, 5), min_size=3, max_size=3).map(sorted)


def _shuffled(epsilon0: float, parties: int, orders: Array) -> Array:
    """Return the Rényi bound of shuffling at whole orders: Girgis (2023), Theorem 5.3.1."""
    e = math.exp(epsilon0)
    around = math.floor((parties - 1) / (2 * e)) + 1
    found = []
    for alpha in orders.astype(int):
        i = np.arange(3, alpha + 1)
        binomial = special.gammaln(alpha + 1) - special.gammaln(i + 1) - special.gammaln(alpha - i + 1)
        size = math.log((e * e - 1) ** 2 / (2 * e * e * around))
        terms = np.concatenate(
            [
                [math.log(alpha * (alpha - 1) / 2 * (e - 1) ** 2 / (around * e))],
                binomial + np.log(i) + special.gammaln(i / 2) + i / 2 * size,
                [epsilon0 * alpha - (parties - 1) / (8 * e)],
            ]
        )
        found.append(np.logaddexp(0, special.logsumexp(terms)) / (alpha - 1))
    return np.array(found)


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon", "exact", "closed"),
    [
        (0.5, 1e-5, 4.728387, 4.377178, 5.298526),
        (0.1, 1e-6, 2.141939, 1.994527, 2.450788),
        (0.005, 1e-5, 0.375261, 0.340669, 0.484853),
        (2.0, 1e-5, 10.724824, 9.997256, 11.597051),
    ],
)
def test_conversions_have_the_tabled_values(
    rho: float, delta: float, epsilon: float, exact: float, closed: float
) -> None:
    found = renyi_to_epsilon(DENSE, rho * DENSE, delta)
    assert found.epsilon == pytest.approx(epsilon, abs=6e-7)
    assert renyi_to_delta(DENSE, rho * DENSE, found.epsilon) == pytest.approx(delta, rel=1e-8)
    # The default orders lose little, and the best one is inside of them.
    usual = renyi_to_epsilon(ORDERS, rho * ORDERS, delta)
    assert found.epsilon <= usual.epsilon <= found.epsilon * 1.0002
    assert ORDERS[0] < usual.order < ORDERS[-1]
    assert epsilon_of(Gaussian(math.sqrt(0.5 / rho)), delta) == pytest.approx(exact, abs=6e-7)
    found_closed = next(b.epsilon for b in compare(Zcdp(rho), delta) if b.method.endswith("closed form"))
    assert found_closed == pytest.approx(closed, abs=1e-6)  # one digit is cut, not rounded
    assert exact < found.epsilon < closed
    assert epsilon_of(Zcdp(rho), delta) == pytest.approx(found.epsilon, rel=1e-6)


def test_the_max_form_needs_a_small_delta() -> None:
    # Girgis (2023), Lemma 2.1.5 at delta = .9 "proves" 31.608, where a Gaussian has delta .999999.
    rho, delta = 100.0, 0.9
    printed = 3 * max(-rho * math.log(delta), math.sqrt(-rho * math.log(delta)))
    assert printed == pytest.approx(31.608, abs=5e-4)
    assert delta_of(Gaussian(math.sqrt(0.5 / rho)), printed) == pytest.approx(0.999999, abs=5e-7)


@pytest.mark.parametrize(
    ("alpha", "bound"),
    [(1.5, 0.000590130876), (2.5, 0.000837944744), (3.3, 0.00112817958), (7.9, 0.00358977814)],
)
def test_bounds_between_whole_orders_have_the_tabled_values(alpha: float, bound: float) -> None:
    whole = np.arange(2.0, 11.0)
    found = interpolate_orders(whole, _shuffled(1.0, 10_000, whole), [alpha])
    assert found == pytest.approx([bound], rel=5e-9)


@pytest.mark.parametrize(
    ("epsilon0", "parties", "count", "delta", "epsilon", "order"),
    [(0.5, 10**6, 1000, 1e-8, 0.170227286, 137), (1.0, 10**5, 100, 1e-6, 0.478774999, 35)],
)
def test_composed_shuffles_have_the_tabled_prices(
    epsilon0: float, parties: int, count: int, delta: float, epsilon: float, order: int
) -> None:
    whole = np.arange(2.0, 400.0)
    once = np.maximum.accumulate(_shuffled(epsilon0, parties, whole))
    found = renyi_to_epsilon(whole, count * once, delta)
    assert found.epsilon == pytest.approx(epsilon, abs=6e-10)
    assert found.order == order
    leaf = Renyi(tuple(whole), tuple(once))
    assert epsilon_of(Repeat(leaf, count), delta) == pytest.approx(epsilon, rel=1e-8)


@given(bounds=BOUNDS, delta=st.sampled_from([1e-15, 1e-9, 1e-5, 0.01]))
def test_conversion_agrees_with_another_implementation(bounds: list[float], delta: float) -> None:
    orders = [1.5, 4.0, 40.0]
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, bounds, delta)
    ours = renyi_to_epsilon(orders, bounds, delta).epsilon
    # Ours also uses Pinsker's inequality, so it may be less where both are near 0.
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9) or ours == 0
    for epsilon in (0.0, 0.3, 2.0):
        least, _ = rdp_privacy_accountant.compute_delta(orders, bounds, epsilon)
        assert renyi_to_delta(orders, bounds, epsilon) <= least * (1 + 1e-9)


@given(
    bounds=BOUNDS,
    more=st.floats(0, 1),
    epsilon=st.floats(1e-6, 50.0),
    log_delta=st.floats(math.log(1e-15), -1e-3),
    largest=st.sampled_from([5.0, 300.0, 1e5]),
)
def test_conversions_are_monotone_inverse_and_finite(
    bounds: list[float], more: float, epsilon: float, log_delta: float, largest: float
) -> None:
    orders, delta = np.array([1.1, 2.0, largest]), math.exp(log_delta)
    found = renyi_to_epsilon(orders, bounds, delta).epsilon
    assert 0 <= found < math.inf
    assert renyi_to_epsilon(orders, bounds, delta / 2).epsilon >= found
    assert renyi_to_epsilon(orders, np.add(bounds, more), delta).epsilon >= found
    assert renyi_to_epsilon(orders[:2], bounds[:2], delta).epsilon >= found
    assert renyi_to_delta(orders, bounds, found) <= delta * (1 + 1e-8)
    assert renyi_to_epsilon(orders[::-1], bounds[::-1], delta).epsilon == found
    at = renyi_to_delta(orders, bounds, epsilon)
    assert 0 <= renyi_to_delta(orders, bounds, 2 * epsilon) <= at <= 1
    assert renyi_to_delta(orders, np.add(bounds, more), epsilon) >= at


def test_curve_is_the_best_order_at_every_epsilon() -> None:
    orders, bounds = ORDERS[::3], 0.02 * ORDERS[::3] + 1e-5 * ORDERS[::3] ** 2
    curve = renyi_curve(orders, bounds)
    for epsilon in np.linspace(0.0, 3.0, 61):
        log_delta = (orders - 1) * (bounds - epsilon + np.log1p(-1 / orders)) - np.log(orders)
        at_zero = math.sqrt(1 - math.exp(-bounds[0])), math.sqrt(bounds[0] / 2)
        best = min(float(np.exp(log_delta.min())), *at_zero)
        assert float(curve.delta(epsilon)) == pytest.approx(best, rel=1e-9)
    assert curve.is_symmetric
    below = np.array([-2.0, -0.3])
    dual = -np.expm1(below) + np.exp(below) * curve.forward(-below)
    assert curve.forward(below) == pytest.approx(dual, rel=1e-12)


LAWS = st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4).map(lambda w: np.array(w) / sum(w))


@given(p=LAWS, q=LAWS, count=st.integers(1, 3))
def test_bounds_of_a_law_are_bounds_of_its_delta(p: Array, q: Array, count: int) -> None:
    orders = (1.2, 2.0, 5.0, 20.0, 100.0)
    leaf = Renyi(orders, tuple(np.maximum.accumulate(worst_renyi_divergence(np.log(p), np.log(q), orders))))
    both = np.log(power(p, count)), np.log(power(q, count))
    for epsilon in (0.0, 0.1, 0.5, 1.5, 4.0):
        exact = max(float(hockey_stick(a, b, epsilon)) for a, b in itertools.permutations(both))
        assert exact <= delta_of(Repeat(leaf, count), epsilon) + 1e-12


def test_interpolation_is_a_bound_and_keeps_what_is_known() -> None:
    p, q = np.log([0.5, 0.3, 0.2]), np.log([0.2, 0.5, 0.3])
    orders = np.array([1.5, 3.0, 10.0, 40.0])
    known = worst_renyi_divergence(p, q, orders)
    wanted = np.concatenate([np.linspace(1.01, 40.0, 500), orders])
    found = interpolate_orders(orders, known, wanted)
    exact = worst_renyi_divergence(p, q, wanted)
    assert np.all(exact <= found * (1 + 1e-12))
    assert np.all(found <= interpolate_orders([1.5, 40.0], known[[0, 3]], wanted))
    assert np.array_equal(found[-4:], known)
    assert np.all(np.isinf(interpolate_orders(orders, known, [40.001, 1e5])))
    # A smaller bound at a larger order holds below it as well; an order without a bound says nothing.
    assert interpolate_orders([2.0, 3.0], [0.5, 0.1], [2.0])[0] == 0.1
    assert interpolate_orders([2.0, 3.0, 9.0], [0.1, math.inf, math.inf], [2.0, 2.5]).tolist() == [
        0.1,
        math.inf,
    ]
    assert np.all(np.isinf(interpolate_orders([2.0], [math.inf], [1.5])))


def test_default_orders_hold_whole_ones_and_reach_far() -> None:
    assert set(range(2, 257)) <= set(ORDERS)
    assert ORDERS[0] < 1.05
    assert np.sum(ORDERS < 2) >= 10
    assert ORDERS[-1] == 1e5
    assert np.all(np.diff(ORDERS) > 0)
    assert np.max(ORDERS[1:] / ORDERS[:-1]) < 1.1
    with pytest.raises(ValueError, match="read-only"):
        ORDERS[0] = 3.0


def test_equal_and_different_leaves_merge_by_adding() -> None:
    one, other = Renyi((2.0, 8.0), (0.1, 0.5)), Renyi((2.0, 8.0), (0.02, 0.05))
    added = Renyi((2.0, 8.0), (0.32, 1.55))
    assert epsilon_of(Compose((one, Repeat(one, 2), other)), 1e-5) == pytest.approx(
        epsilon_of(added, 1e-5), rel=1e-12
    )
    # On other orders, up to the smaller of the largest, by convexity.
    third = Renyi((4.0,), (0.2,))
    whole = renyi_of(Compose((one, third)), [2.0, 4.0, 8.0])
    assert whole == pytest.approx([0.3, 0.5 * 7 / 3 / 3 + 0.1 / 3 * 2 / 3 + 0.2, math.inf], rel=1e-1)
    assert epsilon_of(Compose((one, third)), 1e-5) == epsilon_of(Compose((third, one)), 1e-5)
    at = renyi_of(Compose((one, third)), [2.0, 4.0])
    assert epsilon_of(Compose((one, third)), 1e-5) <= renyi_to_epsilon([2.0, 4.0], at, 1e-5).epsilon * (
        1 + 1e-9
    )
    assert method_of(Repeat(one, 9), 1e-6) == "Rényi differential privacy"
    assert method_of(Compose((one, Laplace(2.0))), 1e-6).endswith("or Rényi divergences")


def test_a_mix_with_other_releases_is_priced_by_the_better_proof() -> None:
    # A Gaussian told by its divergences costs about what its concentrated level does.
    gaussian = Gaussian(4.0)
    told = Renyi(tuple(ORDERS), tuple(gaussian.renyi(ORDERS)))
    for other in (Gaussian(3.0), Laplace(5.0), PureDP(0.1), DiscreteGaussian(3.0, 1.0)):
        exact = epsilon_of(Repeat(Compose((gaussian, other)), 10), 1e-6)
        priced = epsilon_of(Repeat(Compose((told, other)), 10), 1e-6)
        assert exact * (1 - 1e-6) <= priced <= exact * 1.25
    # ... which needs the sum of divergences: curves alone lose at every release.
    parts = [Renyi((8.0,), (0.02 + 1e-6 * k,)) for k in range(30)]
    mixed = Compose((*parts, PureDP(1e-3)))
    assert epsilon_of(mixed, 1e-6) <= renyi_to_epsilon([8.0], [30 * 0.0201], 1e-6).epsilon


def test_divergences_follow_the_tree() -> None:
    at = np.array([1.5, 3.0, 30.0])
    one, two = Gaussian(2.0), Laplace(3.0)
    assert renyi_of(Compose((one, Repeat(two, 4))), at) == pytest.approx(
        one.renyi(at) + 4 * two.renyi(at), rel=1e-9
    )
    assert renyi_of(Parallel((one, two)), at) == pytest.approx(
        np.maximum(one.renyi(at), two.renyi(at)), rel=1e-9
    )
    assert renyi_of(AnyOf((one, two)), at) == pytest.approx(
        np.minimum(one.renyi(at), two.renyi(at)), rel=1e-9
    )
    assert renyi_of(Sampled(one, 1.0), at) == pytest.approx(one.renyi(at), rel=1e-9)
    for lost in (ApproximateDP(0.1, 1e-9), NonPrivate()):
        assert np.all(np.isinf(renyi_of(Compose((one, lost)), at)))
    assert np.all(np.isinf(renyi_of(Renyi((2.0,), (0.1,)), [2.5])))


@pytest.mark.parametrize(
    "event",
    [
        Repeat(Gaussian(5.0), 7),
        Repeat(Laplace(3.0), 20),
        Compose((PureDP(0.2), Laplace(2.0), Gaussian(2.0))),
        Repeat(DiscreteGaussian(4.0, 1.0), 5),
        Repeat(PureDP(0.05), 500),
        Repeat(Sampled(Gaussian(2.0), 0.05), 50),
        Repeat(Sampled(Laplace(1.0), 0.05), 50),
        Repeat(Sampled(Compose((Gaussian(2.0), Laplace(2.0))), 0.02), 30),
    ],
    ids=str,
)
def test_conversion_is_never_below_the_convolved_price(event: Event) -> None:
    bounds = renyi_of(event, ORDERS)
    for delta in (1e-12, 1e-6, 1e-3):
        exact = epsilon_of(event, delta)
        assert exact <= renyi_to_epsilon(ORDERS, bounds, delta).epsilon * (
            1 + 1e-3
        )  # the grid's own rounding
        assert renyi_to_epsilon(ORDERS, bounds, delta).epsilon <= 4 * exact


def test_gaussian_divergences_cover_the_gaussian_integral() -> None:
    for mu, epsilon in ((0.3, 0.5), (1.0, 3.0), (3.0, 12.0)):
        exact = gaussian_delta(mu, epsilon)
        assert exact <= renyi_to_delta(ORDERS, mu * mu / 2 * ORDERS, epsilon) <= 8 * exact


def test_tiny_divergences_are_worth_something() -> None:
    # D <= 1e-14 has total variation at most 1e-7: (0, 1e-7)-DP, which the conversion alone does not see.
    assert renyi_to_epsilon([2.0], [1e-14], 1e-6) == (0.0, 2.0)
    assert renyi_to_delta([2.0], [1e-14], 0.0) == pytest.approx(math.sqrt(0.5e-14), rel=1e-9)
    assert renyi_to_delta([2.0, 9.0], [0.0, 0.0], 0.0) == 0.0


def test_orders_without_a_bound() -> None:
    assert math.isinf(renyi_to_epsilon([2.0, 3.0], [math.inf, math.inf], 1e-5).epsilon)
    assert renyi_to_delta([2.0], [math.inf], 5.0) == 1.0
    assert renyi_to_epsilon([2.0, 3.0], [0.1, math.inf], 1e-5) == renyi_to_epsilon([2.0], [0.1], 1e-5)
    curve: Curve = renyi_curve([2.0, 2.0, 3.0], [0.3, 0.1, 0.2])
    assert float(curve.delta(1.0)) == float(renyi_curve([3.0, 2.0], [0.2, 0.1]).delta(1.0))


def test_counts_beyond_all_bounds_end() -> None:
    leaf = Renyi((2.0, 4.0), (1e300, 1e305))
    assert epsilon_of(Repeat(leaf, 10**4), 1e-5) == math.inf
    assert isinstance(leaf.repeated(10**9), NonPrivate)
    partly = Renyi((2.0, 4.0), (1.0, 1e305)).repeated(10**4)
    assert isinstance(partly, Renyi)
    assert partly.orders == (2.0,)


def test_leaf_is_written_and_read_back() -> None:
    leaf = Renyi((1.5, 2.0, 64.0), (0.1, 0.1, 3.0), ADD_REMOVE)
    assert event_from_json(event_to_json(leaf)) == leaf


@pytest.mark.parametrize(
    ("orders", "divergences", "message"),
    [
        ((), (), "orders must be a tuple of 1 to"),
        ((2.0,), (), "divergences must be a tuple"),
        ((2.0, 3.0), (0.1,), "one bound for each of 2 orders"),
        ((1.0, 3.0), (0.1, 0.2), "orders must be finite, > 1 and strictly increasing"),
        ((3.0, 2.0), (0.1, 0.2), "orders must be finite, > 1 and strictly increasing"),
        ((2.0, 2.0), (0.1, 0.2), "orders must be finite, > 1 and strictly increasing"),
        ((2.0, math.inf), (0.1, 0.2), "orders must be finite"),
        ((2.0, math.nan), (0.1, 0.2), "orders must be finite"),
        ((2.0, 3.0), (0.2, 0.1), "divergences must be finite, >= 0 and not decreasing"),
        ((2.0, 3.0), (-0.1, 0.1), "divergences must be finite"),
        ((2.0, 3.0), (0.1, math.inf), "divergences must be finite"),
        ((2.0, 3.0), (math.nan, 0.1), "divergences must be finite"),
    ],
)
def test_leaves_that_claim_nothing_or_nonsense_are_refused(
    orders: tuple[float, ...], divergences: tuple[float, ...], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        Renyi(orders, divergences)


def test_bad_arguments_are_refused() -> None:
    for orders, bounds in (([1.0], [0.1]), ([], []), ([0.5], [0.1])):
        with pytest.raises(ParameterError, match="orders must be numbers > 1"):
            renyi_to_epsilon(orders, bounds, 1e-5)
    for bounds in ([-0.1], [math.nan]):
        with pytest.raises(ParameterError, match="divergences must be >= 0"):
            renyi_to_epsilon([2.0], bounds, 1e-5)
    for orders, bounds in (([2.0, 3.0], [0.1]), ([math.inf], [0.1])):
        with pytest.raises(ParameterError, match="vector of finite numbers"):
            renyi_to_delta(orders, bounds, 1.0)
    for delta in (0.0, 1.0, math.nan, -0.1):
        with pytest.raises(ParameterError, match=r"delta must be in \(0, 1\)"):
            renyi_to_epsilon([2.0], [0.1], delta)
    with pytest.raises(ParameterError, match="epsilon must be a finite number >= 0"):
        renyi_to_delta([2.0], [0.1], math.nan)
    with pytest.raises(ParameterError, match="orders must be numbers > 1"):
        interpolate_orders([2.0], [0.1], [1.0])
    with pytest.raises(ParameterError, match="vector of finite numbers"):
        renyi_of(Gaussian(1.0), [math.inf])
    with pytest.raises(ParameterError, match="different neighbours"):
        Compose((Renyi((2.0,), (0.1,)), Renyi((2.0,), (0.1,), ADD_REMOVE)))


def test_a_pair_below_its_claim_would_be_caught() -> None:
    # Negative control of the enumeration above: half the divergence is no bound.
    p, q = np.log([0.9, 0.1]), np.log([0.1, 0.9])
    orders = (2.0, 10.0, 100.0)
    half = Renyi(orders, tuple(worst_renyi_divergence(p, q, orders) / 2))
    assert delta_of(half, 1.5) < float(pmf_curve(p, q).delta(1.5))


def test_sums_of_divergences_are_rounded_up() -> None:
    # Nothing but the final factor covers what adding and multiplying floats loses.
    orders, bounds = np.array([2.0, 3.0]), (0.1, 0.3)
    for count in range(1, 40):
        event = Compose((Repeat(Renyi((2.0, 3.0), bounds), count), Repeat(Zcdp(0.7), count)))
        exact = [count * (Fraction(b) + int(a) * Fraction(0.7)) for a, b in zip(orders, bounds, strict=True)]
        assert all(Fraction(float(x)) > y for x, y in zip(renyi_of(event, orders), exact, strict=True))
