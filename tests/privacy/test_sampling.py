"""Secret samples: never below the enumeration of what is really released, alone or composed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.privacy import (
    Gaussian,
    Laplace,
    Repeat,
    Sample,
    Sampled,
    curve_of,
    curve_sampling,
    curves,
    delta_of,
    epsilon_of,
)
from tacit.privacy.curves import Curve
from tacit.privacy.pld import compose_curves
from tests.privacy.event_examples import ADD_REMOVE
from tests.privacy.reference import (
    Array,
    gaussian_delta,
    hockey_stick,
    optimistic_delta,
    poisson_law,
    sampled_laws,
)

VALUES, SIZE, RECORDS = (0, 1, 2), 2, 4
EPSILONS = np.linspace(-1.5, 1.5, 31)


def _table(decay: float, most: int) -> Array:
    """Return the laws of noisy counts: row s is the law of an outcome near s, on 0..most."""
    weight = np.exp(-decay * np.abs(np.arange(most + 1)[:, None] - np.arange(most + 1)[None, :]))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _replace_one_curve(table: Array) -> Curve:
    """Return the exact curve of the release on its own sample: the worst of all pairs, in both orders."""
    pairs = [
        (sum(rest) + a, sum(rest) + b)
        for rest in itertools.product(VALUES, repeat=SIZE - 1)
        for a, b in itertools.permutations(VALUES, 2)
    ]
    return curves.maximum([curves.pmf_curve(np.log(table[s]), np.log(table[t])) for s, t in set(pairs)])


def _neighbouring_laws(table: Array) -> list[tuple[Array, Array]]:
    """Return what neighbouring data sets of 4 records release on a sample of 2."""
    return [
        (sampled_laws((*rest, a), SIZE, table), sampled_laws((*rest, b), SIZE, table))
        for rest in itertools.combinations_with_replacement(VALUES, RECORDS - 1)
        for a, b in itertools.permutations(VALUES, 2)
    ]


@pytest.mark.parametrize("decay", [0.2, 0.8, 2.0])
def test_fixed_samples_never_cost_more_than_priced(decay: float) -> None:
    table = _table(decay, 4)
    priced = curve_sampling.sampled_fixed(_replace_one_curve(table), SIZE / RECORDS)
    bound = priced.forward(EPSILONS)
    worst = np.zeros_like(bound)
    for p, q in _neighbouring_laws(table):
        worst = np.maximum(worst, [hockey_stick(p, q, e) for e in EPSILONS])
    assert np.all(worst <= bound + 1e-14)
    assert np.max(worst - bound) > -0.01  # and the price is nearly reached somewhere


@pytest.mark.parametrize("decay", [0.2, 0.8, 2.0])
def test_two_fixed_samples_never_cost_more_than_priced(decay: float) -> None:
    # The second release may be chosen by the first: another table, with no larger curve, for odd outcomes.
    table, milder = _table(decay, 4), _table(decay / 2, 4)
    priced = compose_curves(
        [(curve_sampling.sampled_fixed(_replace_one_curve(table), SIZE / RECORDS), 2)], accuracy=1e-9
    )
    bound = priced.forward(EPSILONS)
    for (p, q), (p2, q2) in zip(_neighbouring_laws(table), _neighbouring_laws(milder), strict=True):
        odd = (np.arange(p.size) % 2 == 1)[:, None]
        first = p[:, None] * np.where(odd, p2, p), q[:, None] * np.where(odd, q2, q)
        for joint in ((p[:, None] * p, q[:, None] * q), first):
            exact = np.array([hockey_stick(*joint, e) for e in EPSILONS])
            assert np.all(exact <= bound + 1e-13)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("decay", [0.3, 1.5])
def test_poisson_samples_never_cost_more_than_priced(rate: float, decay: float) -> None:
    table = _table(decay, 8)
    # With the unit the sum is larger by its value; every other record and every value is tried.
    pairs = [(s + v, s) for s in range(7) for v in VALUES]
    base = curves.maximum([curves.pmf_curve(np.log(table[s]), np.log(table[t])) for s, t in pairs])
    priced = curve_sampling.sampled_poisson(base, rate)
    twice = compose_curves([(priced, 2)], accuracy=1e-9)
    for rest in itertools.combinations_with_replacement(VALUES, 3):
        for value in VALUES:
            p, q = poisson_law((*rest, value), rate, table), poisson_law(rest, rate, table)
            for bound, p_n, q_n in ((priced, p, q), (twice, np.outer(p, p), np.outer(q, q))):
                there = np.array([hockey_stick(p_n, q_n, e) for e in EPSILONS])
                back = np.array([hockey_stick(q_n, p_n, e) for e in EPSILONS])
                assert np.all(there <= bound.forward(EPSILONS) + 1e-13)
                assert np.all(back <= bound.backward(EPSILONS) + 1e-13)


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.7])
def test_poisson_curve_is_that_of_the_mixture(rate: float) -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    mixture = rate * p + (1 - rate) * q
    curve = curve_sampling.sampled_poisson(curves.pmf_curve(np.log(p), np.log(q)), rate)
    for epsilon in (-3.0, math.log1p(-rate), -1e-4, 0.0, 1e-4, 0.05, -math.log1p(-rate), 0.5, 3.0):
        at = np.array(epsilon)
        assert float(curve.forward(at)) == pytest.approx(hockey_stick(mixture, q, epsilon), abs=1e-15)
        assert float(curve.backward(at)) == pytest.approx(hockey_stick(q, mixture, epsilon), abs=1e-15)


def test_single_pair_is_not_sound_under_replace_one() -> None:
    # docs/theory/accounting.md, section 3: q = .8, z = 1, T = 20, epsilon = .25.
    rate, count, epsilon = 0.8, 20, 0.25
    pair = from_gaussian_mechanism(
        1.0, sampling_prob=rate, value_discretization_interval=1e-4, use_connect_dots=True
    ).self_compose(count)
    both = [float(d.get_delta_for_epsilon(epsilon)) for d in (pair._pmf_remove, pair._pmf_add)]
    assert max(both) <= 0.90894 + 5e-6  # an upper bound of the pair, in both directions

    # One record moves from +L to -L, all others are 0, sensitivity 1.
    x = np.linspace(-12.0, 12.0, 200_001)

    def log_density(mean: float) -> Array:
        return np.asarray(np.log((1 - rate) * stats.norm.pdf(x) + rate * stats.norm.pdf(x - mean)))

    mass = np.diff((1 - rate) * stats.norm.cdf(x) + rate * stats.norm.cdf(x - 0.5))
    losses = (log_density(0.5) - log_density(-0.5))[:-1]  # rises with x: the least loss of each cell
    truth = optimistic_delta(losses, mass, count, epsilon, step=1e-4)
    assert truth >= 0.90958

    priced = delta_of(Repeat(Sampled(Gaussian(1.0), rate), count), epsilon)
    assert priced == pytest.approx(0.93127, abs=2e-4)
    assert max(both) < truth < priced


def test_fixed_curve_is_its_formula_and_self_dual() -> None:
    rate, mu = 0.25, 1.4
    curve = curve_sampling.sampled_fixed(curves.gaussian_curve(mu), rate)
    for epsilon in (0.0, 0.1, 0.7, 2.0, 29.9, 30.1):
        exact = rate * gaussian_delta(mu, math.log1p(math.expm1(epsilon) / rate))
        assert float(curve.delta(epsilon)) == pytest.approx(exact, rel=1e-8, abs=1e-300)
        below = -math.expm1(-epsilon) + math.exp(-epsilon) * exact
        assert float(curve.delta(-epsilon)) == pytest.approx(below, rel=1e-8)


def test_fixed_curve_amplifies_approximate_dp_in_closed_form() -> None:
    epsilon, delta, rate = 1.0, 1e-6, 0.01
    curve = curve_sampling.sampled_fixed(curves.approximate_dp_curve(epsilon, delta), rate)
    assert float(curve.delta(0.017036863236)) == pytest.approx(rate * delta, rel=1e-3)


@given(
    rate=st.floats(1e-6, 1.0),
    mu=st.floats(1e-3, 8.0),
    epsilon=st.floats(-5.0, 5.0),
    poisson=st.booleans(),
)
def test_sampling_laws(rate: float, mu: float, epsilon: float, poisson: bool) -> None:
    base = curves.gaussian_curve(mu)
    sample = curve_sampling.sampled_poisson if poisson else curve_sampling.sampled_fixed
    curve, at = sample(base, rate), np.array(epsilon)
    forward, backward = float(curve.forward(at)), float(curve.backward(at))
    # Never more than without sampling, never less than the trivial bound, less for a smaller sample, dual.
    assert max(forward, backward) <= float(base.delta(at)) + 1e-12
    assert min(forward, backward) >= -math.expm1(min(epsilon, 0.0)) - 1e-12
    assert float(sample(base, rate / 2).delta(at)) <= max(forward, backward) + 1e-12
    dual = -math.expm1(epsilon) + math.exp(epsilon) * float(curve.backward(-at))
    assert forward == pytest.approx(dual, abs=1e-11)


@pytest.mark.parametrize("rate", [1e-12, 1e-6, 0.3, 1 - 1e-12, 1.0])
def test_no_warnings_at_any_epsilon(rate: float) -> None:
    epsilon = np.concatenate([-np.geomspace(1e9, 1e-15, 200), [0.0], np.geomspace(1e-15, 1e9, 200)])
    for base in (curves.gaussian_curve(0.01), curves.gaussian_curve(30.0), curves.laplace_curve(3.0)):
        for sample in (curve_sampling.sampled_poisson, curve_sampling.sampled_fixed):
            curve = sample(base, rate)
            for profile in (curve.forward, curve.backward):
                delta = curves.bounded(profile, epsilon)
                assert np.all(np.diff(delta) <= 1e-15)
                assert delta[0] == 1.0


def test_sampled_events_use_their_relation() -> None:
    fixed, poisson = Sampled(Laplace(1.0), 0.1), Sampled(Laplace(1.0, 1, ADD_REMOVE), 0.1, Sample.POISSON)
    level = math.log1p(0.1 * math.expm1(1.0))
    assert epsilon_of(fixed, 0.0) == pytest.approx(level, rel=1e-12)
    assert epsilon_of(poisson, 0.0) == pytest.approx(level, rel=1e-12)
    forward, backward = (
        float(getattr(curve_of(poisson, accuracy=1e-6), side)(np.array(0.05)))
        for side in ("forward", "backward")
    )
    assert forward > backward > 0


def test_accounting_for_added_records_is_too_little_for_replaced_ones() -> None:
    # Poisson sample of rate .1, noise of the size of one clipped gradient, one release: a record moves from
    # +C to -C, all others are 0. Add-remove accounting claims 1.6845 at delta = 1e-5; it takes 1.7891.
    rate, x = 0.1, np.linspace(-12.0, 12.0, 240_001)
    claimed = epsilon_of(Sampled(Gaussian(1.0, ADD_REMOVE), rate, Sample.POISSON), 1e-5)
    assert claimed == pytest.approx(1.6845, abs=1e-4)
    absent = (1 - rate) * stats.norm.pdf(x)
    p, q = (absent + rate * stats.norm.pdf(x - at) for at in (1.0, -1.0))

    def delta(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]))

    assert delta(claimed) == pytest.approx(1.6e-5, rel=1e-2)
    assert delta(1.7891) == pytest.approx(1e-5, rel=2e-3)


def test_a_batch_drawn_with_replacement_may_hold_a_record_many_times() -> None:
    # Ten draws from ten records, noise of the size of what one draw adds: a record moves from +L to -L. Lowy
    # (2023), proof of Theorem 104 takes 2 L / K for the sensitivity, as if no record came twice.
    draws, x = 10, np.linspace(-14.0, 14.0, 28_001)
    times = stats.binom.pmf(np.arange(draws + 1), draws, 1 / 10)
    p = times @ stats.norm.pdf(x - np.arange(draws + 1)[:, None] / 2)
    found = float(np.maximum(p - math.exp(3.0) * p[::-1], 0).sum() * (x[1] - x[0]))
    assert found == pytest.approx(2.8406e-3, rel=1e-3)
    assert gaussian_delta(1.0, 3.0) == pytest.approx(1.5372e-3, rel=1e-3)
