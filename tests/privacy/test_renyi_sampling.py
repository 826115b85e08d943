"""Rényi bounds of sampled releases: against enumeration, another implementation and exact prices."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from scipy import special

from tacit.errors import ParameterError
from tacit.privacy import (
    Compose,
    Gaussian,
    Gdp,
    Laplace,
    Neighbours,
    PureDP,
    Relation,
    Repeat,
    Sample,
    Sampled,
    delta_of,
    epsilon_of,
)
from tacit.privacy.divergences import (
    concentrated_renyi,
    pure_dp_renyi,
    renyi_divergence,
    worst_renyi_divergence,
)
from tacit.privacy.pricing import renyi_of
from tacit.privacy.renyi import ORDERS, Renyi, interpolate_orders, renyi_to_epsilon
from tacit.privacy.renyi_sampling import (
    fixed_size_gaussian_renyi,
    fixed_size_renyi,
    poisson_gaussian_renyi,
    poisson_renyi,
    rdp_from_ternary,
    ternary_from_renyi,
)
from tests.privacy.event_examples import ADD_REMOVE, ZERO_OUT
from tests.privacy.reference import Array, hockey_stick, poisson_law, power, sampled_laws

VALUES = (0, 1, 2)
WHOLE = np.arange(2.0, 33.0)
REPLACE = Relation.REPLACE_ONE


def _table(decay: float, most: int) -> Array:
    """Return the laws of noisy counts: row s is the law of an outcome near s, on 0..most."""
    weight = np.exp(-decay * np.abs(np.arange(most + 1)[:, None] - np.arange(most + 1)[None, :]))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _worst(pairs: list[tuple[Array, Array]], orders: Array) -> Array:
    different = {p.tobytes() + q.tobytes(): (p, q) for p, q in pairs}  # many samples have one sum
    found = [worst_renyi_divergence(np.log(p), np.log(q), orders) for p, q in different.values()]
    return np.asarray(np.max(found, axis=0))


@pytest.mark.parametrize("decay", [0.05, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_fixed_sizes_never_cost_more_than_bounded(decay: float, size: int) -> None:
    table, records = _table(decay, 2 * size), 4
    inner = [
        (table[sum(rest) + a], table[sum(rest) + b])
        for rest in itertools.combinations_with_replacement(VALUES, size - 1)
        for a, b in itertools.permutations(VALUES, 2)
    ]
    whole = [
        (sampled_laws((*rest, a), size, table), sampled_laws((*rest, b), size, table))
        for rest in itertools.combinations_with_replacement(VALUES, records - 1)
        for a, b in itertools.permutations(VALUES, 2)
    ]
    bounds, level = _worst(inner, WHOLE), float(_worst(inner, np.array([math.inf]))[0])
    exact = _worst(whole, WHOLE)
    found = bounds
    for pure_level in (math.inf, level):
        found = fixed_size_renyi(bounds, size / records, WHOLE, relation=REPLACE, pure_level=pure_level)
        assert np.all(exact <= found * (1 + 1e-9))
        assert np.all(found <= bounds * (1 + 1e-9))
    assert found[0] <= 8 * exact[0]
    # The ternary moments themselves, over all triples of neighbouring samples.
    log_ternary = np.full(WHOLE.size, -math.inf)
    for rest in itertools.combinations_with_replacement(VALUES, size - 1):
        for a, b, c in itertools.product(VALUES, repeat=3):
            p, q, r = (table[sum(rest) + x] for x in (a, b, c))
            moments = (r * np.abs((p - q) / r) ** WHOLE[:, None]).sum(axis=1)
            log_ternary = np.maximum(log_ternary, np.log(np.maximum(moments, 1e-300)))
    assert np.all(log_ternary <= ternary_from_renyi(bounds, level) + 1e-9)
    assert np.all(exact <= rdp_from_ternary(log_ternary, size / records, WHOLE) * (1 + 1e-9))


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("decay", [0.05, 0.3, 1.5])
def test_poisson_samples_never_cost_more_than_bounded(rate: float, decay: float) -> None:
    table = _table(decay, 8)
    inner = [(table[s + v], table[s]) for s in range(7) for v in VALUES[1:]]
    bounds, level = _worst(inner, WHOLE), float(_worst(inner, np.array([math.inf]))[0])
    whole = [
        (poisson_law((*rest, v), rate, table), poisson_law(rest, rate, table))
        for rest in itertools.combinations_with_replacement(VALUES, 3)
        for v in VALUES[1:]
    ]
    exact = _worst(whole, WHOLE)
    for pure_level, relation in itertools.product(
        (math.inf, level), (Relation.ADD_REMOVE, Relation.ZERO_OUT)
    ):
        found = poisson_renyi(bounds, rate, WHOLE, relation=relation, pure_level=pure_level)
        assert np.all(exact <= found * (1 + 1e-8) + 1e-14)
        assert np.all(found <= bounds * (1 + 1e-9))


def test_both_directions_of_a_poisson_mixture_on_random_laws() -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        q = rng.dirichlet(np.ones(4) * rng.choice([0.3, 1.0, 5.0])) + 1e-6
        p = rng.dirichlet(np.ones(4) * rng.choice([0.3, 1.0, 5.0])) + 1e-6
        p, q, rate = p / p.sum(), q / q.sum(), float(rng.uniform(0.01, 0.99))
        bounds = worst_renyi_divergence(np.log(p), np.log(q), WHOLE)
        exact = worst_renyi_divergence(np.log(rate * p + (1 - rate) * q), np.log(q), WHOLE)
        found = poisson_renyi(bounds, rate, WHOLE, relation=Relation.ADD_REMOVE)
        assert np.all(exact <= found * (1 + 1e-9))


@pytest.mark.parametrize(
    ("epsilon0", "units", "size", "bounds"),
    [
        (0.5, 60_000, 10_000, (9.3508714e-06, 1.9016394e-05, 3.9301652e-05, 8.3758454e-05, 0.0001887266)),
        (1.0, 60_000, 10_000, (6.5587298e-05, 0.00013882361, 0.00030897482, 0.00074854947, 0.0020459415)),
        (1.0, 10**7, 10_000, (2.3612201e-09, 4.7240898e-09, 9.4547787e-09, 1.8935962e-08, 3.7977606e-08)),
        (2.0, 60_000, 10_000, (0.0009062676, 0.0028319137, 0.010109846, 0.035840233, 0.077579257)),
        (2.0, 10**6, 1_000, (3.2496655e-07, 6.5676025e-07, 1.3409031e-06, 2.7919284e-06, 6.0290841e-06)),
    ],
)
def test_ternary_moments_of_shuffling_give_theorem_5_4_1(
    epsilon0: float, units: int, size: int, bounds: tuple[float, ...]
) -> None:
    # Girgis (2023): Theorem 5.4.4 in Lemma 5.4.1 is Theorem 5.4.1.
    e = math.exp(epsilon0)
    around, w, tail = math.floor((size - 1) / (2 * e)) + 1, e - 1 / e, -(size - 1) / (8 * e)
    j = np.arange(2.0, 65.0)
    moments = np.log(j) + special.gammaln(j / 2) + j / 2 * math.log(2 * (e * e - 1) ** 2 / (around * e * e))
    moments[0] = math.log(4 * (e - 1) ** 2 / (around * e))
    moments = np.logaddexp(moments, j * math.log(w) + tail)
    assert rdp_from_ternary(moments, size / units, [2, 4, 8, 16, 32]) == pytest.approx(bounds, rel=6e-8)


def test_general_bound_is_the_formula_of_theorem_9() -> None:
    rate, level = 0.02, 0.7
    d = pure_dp_renyi(level, WHOLE)
    for alpha in (2, 3, 9):
        large = math.expm1(level)
        second = min(4 * math.expm1(d[0]), math.exp(d[0]) * min(2, large**2))
        total = 1 + rate**2 * math.comb(alpha, 2) * second
        for j in range(3, alpha + 1):
            total += rate**j * math.comb(alpha, j) * math.exp((j - 1) * d[j - 2]) * min(2, large**j)
        found = rdp_from_ternary(ternary_from_renyi(d, level), rate, [alpha])
        assert found == pytest.approx([math.log(total) / (alpha - 1)], rel=1e-9)
        total = (1 - rate) ** (alpha - 1) * (alpha * rate - rate + 1)
        total += math.comb(alpha, 2) * rate**2 * (1 - rate) ** (alpha - 2) * math.exp(d[0])
        for j in range(3, alpha + 1):
            term = (1 - rate) ** (alpha - j) * rate**j * math.exp((j - 1) * d[j - 2])
            total += 3 * math.comb(alpha, j) * term
        found = poisson_renyi(d, rate, [alpha], relation=Relation.ADD_REMOVE)
        assert found == pytest.approx([min(math.log(total) / (alpha - 1), d[alpha - 2])], rel=1e-9)


@pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("rate", [1e-4, 0.01, 0.3])
def test_poisson_gaussian_agrees_with_another_implementation(noise: float, rate: float) -> None:
    theirs = rdp_privacy_accountant._compute_rdp_poisson_subsampled_gaussian(rate, noise, WHOLE)
    ours = poisson_gaussian_renyi(noise, rate, WHOLE, relation=Relation.ADD_REMOVE)
    # Theirs takes the logarithm of 1 + x: absolute round-off.
    assert ours == pytest.approx(theirs, rel=1e-8, abs=1e-12)
    general = poisson_renyi(
        concentrated_renyi(0.5 / noise**2, WHOLE), rate, WHOLE, relation=Relation.ADD_REMOVE
    )
    assert np.all(ours <= general * (1 + 1e-9))


@pytest.mark.parametrize(("noise", "rate"), [(0.8, 0.1), (2.0, 0.5)])
def test_poisson_gaussian_is_the_divergence_of_the_mixture(noise: float, rate: float) -> None:
    x = np.linspace(-10 * noise, 9 + 10 * noise, 40_001)
    q = np.exp(-(x**2) / (2 * noise**2))
    p = np.exp(-((x - 1) ** 2) / (2 * noise**2))
    p, q = p / p.sum(), q / q.sum()
    with np.errstate(divide="ignore"):
        mixture, log_q = np.log(rate * p + (1 - rate) * q), np.log(q)
    orders = np.array([2.0, 5.0, 9.0])
    exact = poisson_gaussian_renyi(noise, rate, orders, relation=Relation.ZERO_OUT)
    assert renyi_divergence(mixture, log_q, orders) == pytest.approx(exact, rel=1e-6)
    assert np.all(renyi_divergence(log_q, mixture, orders) <= exact)


@pytest.mark.parametrize("noise", [0.7, 2.0, 10.0])
@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.5])
def test_fixed_size_gaussian_lies_between_the_truth_and_another_implementation(
    noise: float, rate: float
) -> None:
    orders = WHOLE[:15]
    ours = fixed_size_gaussian_renyi(noise, rate, orders, relation=REPLACE)
    theirs = rdp_privacy_accountant._compute_rdp_sample_wor_gaussian(rate, noise, orders)
    assert np.all(ours <= theirs * (1 + 1e-6))
    # One record moves from 0 to 1, or from -1/2 to 1/2 while all others hold 0.
    x = np.linspace(-14 * noise, 14 * noise, 20_001)
    laws = {m: np.exp(-((x - m) ** 2) / (2 * noise**2)) for m in (-0.5, 0.0, 0.5, 1.0)}
    laws = {m: law / law.sum() for m, law in laws.items()}
    with np.errstate(divide="ignore"):
        mixed = {m: np.log(rate * law + (1 - rate) * laws[0.0]) for m, law in laws.items()}
    for a, b in ((0.0, 1.0), (-0.5, 0.5)):
        assert np.all(worst_renyi_divergence(mixed[a], mixed[b], orders) <= ours * (1 + 1e-6))
    general = fixed_size_renyi(
        concentrated_renyi(0.5 / noise**2, np.arange(2.0, 33.0)), rate, orders, relation=REPLACE
    )
    assert np.all(ours <= general * (1 + 1e-9))
    if noise == 10.0:
        assert ours[0] <= 0.6 * general[0]


@pytest.mark.parametrize("noise", [0.6, 1.0, 3.0])
def test_ternary_moments_of_gaussians(noise: float) -> None:
    # All triangles with sides of at most 1 / noise: the second moment, and 4 binary moments for even powers.
    mu = 1 / noise

    def binary(j: int) -> float:
        return math.fsum(
            (-1.0) ** (j - i) * math.comb(j, i) * math.exp(i * (i - 1) * mu * mu / 2) for i in range(j + 1)
        )

    angles, lengths = np.linspace(0.0, math.pi, 61), np.linspace(0.0, mu, 21)
    for j in (2, 4, 6):
        worst = 0.0
        for x, y, angle in itertools.product(lengths, lengths, angles):
            inner = x * y * math.cos(angle)
            if x * x + y * y - 2 * inner <= mu * mu * (1 + 1e-9):
                moment = sum(
                    (-1) ** (j - i)
                    * math.comb(j, i)
                    * math.exp(
                        (i * (i - 1) * x * x + (j - i) * (j - i - 1) * y * y) / 2 + i * (j - i) * inner
                    )
                    for i in range(j + 1)
                )
                worst = max(worst, moment)
        assert worst <= 4 * binary(j) * (1 + 1e-9)
        if j == 2:
            exact = 2 * math.exp(mu * mu / 2) * math.expm1(mu * mu / 2)
            assert worst == pytest.approx(exact, rel=1e-9)
            one = fixed_size_gaussian_renyi(noise, 1e-3, [2], relation=REPLACE)
            assert one == pytest.approx([math.log1p(1e-6 * exact)], rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "rate", "count", "delta"),
    [(2.0, 0.05, 450, 1e-5), (4.0, 0.05, 450, 1e-5), (4.0, 0.1, 450, 1e-5), (1.0, 0.05, 100, 1e-5)],
)
def test_exact_prices_of_sampled_gaussians_are_covered(
    noise: float, rate: float, count: int, delta: float
) -> None:
    exact = {
        (2.0, 0.05): 2.712630,
        (4.0, 0.05): 1.104561,
        (4.0, 0.1): 2.368024,
        (1.0, 0.05): 3.848954,
    }[noise, rate]
    event = Repeat(Sampled(Gaussian(noise), rate), count)
    assert epsilon_of(event, delta) == pytest.approx(exact, rel=1e-3)
    bound = renyi_to_epsilon(ORDERS, renyi_of(event, ORDERS), delta).epsilon
    assert exact < bound < 3 * exact


@pytest.mark.parametrize("neighbours", [Neighbours(), ADD_REMOVE, ZERO_OUT])
def test_events_use_the_bound_of_their_relation(neighbours: Neighbours) -> None:
    fixed = neighbours.relation is REPLACE
    how = Sample.FIXED if fixed else Sample.POISSON
    gaussian = fixed_size_gaussian_renyi if fixed else poisson_gaussian_renyi
    at = renyi_of(Sampled(Gaussian(2.0, neighbours), 0.1, how), WHOLE)
    assert at == pytest.approx(gaussian(2.0, 0.1, WHOLE, relation=neighbours.relation), rel=1e-9)
    pair = Compose((Gaussian(2.0, neighbours), Gaussian(2.0, neighbours)))
    at = renyi_of(Sampled(pair, 0.1, how), WHOLE)
    several = {"single": False} if fixed else {}
    merged = gaussian(2 / math.sqrt(2), 0.1, WHOLE, relation=neighbours.relation, **several)
    assert at == pytest.approx(merged, rel=1e-9)
    general = fixed_size_renyi if fixed else poisson_renyi
    at = renyi_of(Sampled(Laplace(2.0, 1, neighbours), 0.1, how), WHOLE)
    inner = Laplace(2.0).renyi(WHOLE)
    assert at == pytest.approx(
        general(inner, 0.1, WHOLE, relation=neighbours.relation, pure_level=0.5), rel=1e-9
    )
    # Real orders lie on the chords, or below by what the sampled level or no sampling proves there.
    real = np.array([1.2, 2.5, 7.7])
    event = Sampled(Laplace(2.0, 1, neighbours), 0.1, how)
    amplified = pure_dp_renyi(math.log1p(0.1 * math.expm1(0.5)), real)
    known = np.minimum.reduce([interpolate_orders(WHOLE, at, real), amplified, Laplace(2.0).renyi(real)])
    assert renyi_of(event, real) == pytest.approx(known, rel=1e-9)
    assert np.all(renyi_of(event, ORDERS) <= Laplace(2.0).renyi(np.ceil(ORDERS)) * (1 + 1e-9))


def test_samples_of_rényi_leaves_compose_by_their_moments() -> None:
    leaf = Renyi(tuple(ORDERS[ORDERS < 2000]), tuple(Gaussian(3.0).renyi(ORDERS[ORDERS < 2000])))
    told = Repeat(Sampled(leaf, 0.02), 200)
    exact, priced = epsilon_of(Repeat(Sampled(Gaussian(3.0), 0.02), 200), 1e-6), epsilon_of(told, 1e-6)
    assert exact < priced < 3 * exact
    assert priced <= renyi_to_epsilon(ORDERS, renyi_of(told, ORDERS), 1e-6).epsilon * (1 + 1e-6)


@pytest.mark.parametrize("local", [0.5, 1.0, 2.0])
def test_two_releases_on_one_sample_are_not_two_samples(local: float) -> None:
    # Amplify the pair, not each. One record of ten, told twice by randomised response.
    rate, keep = 0.1, 1 / (1 + math.exp(-local))
    own, other = np.array([keep, 1 - keep]), np.array([1 - keep, keep])
    p = rate * power(own, 2) + (1 - rate) * power(other, 2)
    q = power(other, 2)
    separate = Compose((Sampled(PureDP(local), rate), Sampled(PureDP(local), rate)))
    together = Sampled(Compose((PureDP(local), PureDP(local))), rate)
    epsilons = np.linspace(0.0, 0.99, 100) * 2 * math.log1p(rate * math.expm1(local))
    exact = np.array([max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in epsilons])
    assert np.all(exact <= np.array([delta_of(together, e) for e in epsilons]) + 1e-12)
    assert np.any(exact > np.array([delta_of(separate, e) for e in epsilons]) * 1.05)
    # The same in Rényi divergences.
    orders = np.array([2.0, 8.0, 32.0])
    truth = worst_renyi_divergence(np.log(p), np.log(q), orders)
    assert np.all(truth <= renyi_of(together, orders))
    once = worst_renyi_divergence(np.log(rate * own + (1 - rate) * other), np.log(other), orders)
    assert np.any(truth > 2 * once)


@pytest.mark.parametrize("rate", [1e-12, 1e-4, 0.999])
@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0, 1e3, 1e100])
def test_no_overflow_at_any_order(rate: float, noise: float) -> None:
    orders = np.array([2.0, 3.0, 256.0, 257.0, 5000.0, 1e5])
    for gaussian, relation in (
        (fixed_size_gaussian_renyi, REPLACE),
        (poisson_gaussian_renyi, Relation.ADD_REMOVE),
    ):
        found = gaussian(noise, rate, orders, relation=relation)
        assert np.all(found >= 0)
        assert np.all(found <= concentrated_renyi(0.5 / noise**2, orders) * (1 + 1e-12))
        assert np.all(np.diff(found) >= -1e-9 * found[1:])
    whole = np.arange(2.0, 1e5 + 1)
    for general, relation in ((fixed_size_renyi, REPLACE), (poisson_renyi, Relation.ZERO_OUT)):
        found = general(concentrated_renyi(0.5 / noise**2, whole), rate, orders, relation=relation)
        assert np.all(found >= 0)


def test_rates_at_the_ends() -> None:
    d = concentrated_renyi(0.1, WHOLE)
    calls: list[Any] = [
        lambda rate: fixed_size_renyi(d, rate, WHOLE, relation=REPLACE),
        lambda rate: fixed_size_gaussian_renyi(math.sqrt(5), rate, WHOLE, relation=REPLACE),
        lambda rate: poisson_renyi(d, rate, WHOLE, relation=Relation.ADD_REMOVE),
        lambda rate: poisson_gaussian_renyi(math.sqrt(5), rate, WHOLE, relation=Relation.ADD_REMOVE),
    ]
    for call in calls:
        assert np.all(call(0.0) == 0)
        assert call(1.0) == pytest.approx(d, rel=1e-9)
        assert np.all(call(0.01) <= call(0.02))
    assert np.all(np.isneginf(ternary_from_renyi(d, 0.0)))
    assert np.all(np.isinf(fixed_size_renyi([math.inf] * 3, 0.1, [2, 4], relation=REPLACE)))
    assert np.all(np.isinf(poisson_renyi([0.1, math.inf], 0.1, [3], relation=Relation.ADD_REMOVE)))


def test_the_wrong_relation_is_refused() -> None:
    # Add-remove formulas say nothing about replaced records, and the reverse.
    d = pure_dp_renyi(1.0, WHOLE)
    wrong: Any
    for wrong in (Relation.ADD_REMOVE, Relation.ZERO_OUT, "replace-one", None):
        with pytest.raises(ParameterError, match="relation must be replace-one for a fixed-size sample"):
            fixed_size_renyi(d, 0.1, WHOLE, relation=wrong)
        with pytest.raises(ParameterError, match="relation must be replace-one for a fixed-size sample"):
            fixed_size_gaussian_renyi(1.0, 0.1, WHOLE, relation=wrong)
    for wrong in (REPLACE, "add-remove"):
        with pytest.raises(
            ParameterError, match="relation must be add-remove or zero-out for a Poisson sample"
        ):
            poisson_renyi(d, 0.1, WHOLE, relation=wrong)
        with pytest.raises(
            ParameterError, match="relation must be add-remove or zero-out for a Poisson sample"
        ):
            poisson_gaussian_renyi(1.0, 0.1, WHOLE, relation=wrong)


def test_add_remove_divergences_do_not_cover_replaced_records() -> None:
    # Why: the pair in which a record moves from one end to the other lies above the add-remove bound of one
    # that appears.
    local, rate = 1.0, 0.5
    keep, orders = 1 / (1 + math.exp(-local)), np.array([2.0, 16.0])
    own, other, absent = np.array([keep, 1 - keep]), np.array([1 - keep, keep]), np.array([0.5, 0.5])
    d = np.maximum(_worst([(own, absent)], WHOLE), _worst([(other, absent)], WHOLE))
    claimed = poisson_renyi(d, rate, orders, relation=Relation.ADD_REMOVE)
    moved = [(rate * own + (1 - rate) * absent, rate * other + (1 - rate) * absent)]
    assert np.all(_worst(moved, orders) > claimed)


@pytest.mark.parametrize("orders", [[1.5], [2.5], [1.0], [math.inf], []])
def test_orders_that_are_not_whole_are_refused(orders: list[float]) -> None:
    d = pure_dp_renyi(1.0, WHOLE)
    calls: list[Any] = [
        lambda: fixed_size_renyi(d, 0.1, orders, relation=REPLACE),
        lambda: poisson_renyi(d, 0.1, orders, relation=Relation.ADD_REMOVE),
        lambda: rdp_from_ternary(d, 0.1, orders),
        lambda: fixed_size_gaussian_renyi(1.0, 0.1, orders, relation=REPLACE),
        lambda: poisson_gaussian_renyi(1.0, 0.1, orders, relation=Relation.ADD_REMOVE),
    ]
    for call in calls:
        with pytest.raises(ParameterError, match="orders must be"):
            call()


def test_numbers_out_of_range_are_refused() -> None:
    d = pure_dp_renyi(1.0, WHOLE)
    for rate in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match=r"rate must be in \[0, 1\]"):
            fixed_size_renyi(d, rate, [2], relation=REPLACE)
        with pytest.raises(ParameterError, match=r"rate must be in \[0, 1\]"):
            poisson_renyi(d, rate, [2], relation=Relation.ADD_REMOVE)
    for bad in ([-0.1], [math.nan], []):
        with pytest.raises(ParameterError, match="divergences must be"):
            fixed_size_renyi(bad, 0.1, [2], relation=REPLACE)
        with pytest.raises(ParameterError, match="divergences must be"):
            poisson_renyi(bad, 0.1, [2], relation=Relation.ADD_REMOVE)
    with pytest.raises(ParameterError, match="log_ternary must be a vector of the moments 2 to 9"):
        rdp_from_ternary([0.1, 0.2], 0.1, [9])
    with pytest.raises(ParameterError, match="divergences must be bounds >= 0 at the orders 2 to 99"):
        poisson_renyi(d, 0.1, [99], relation=Relation.ADD_REMOVE)
    with pytest.raises(ParameterError, match="noise_multiplier must be a finite number > 0"):
        poisson_gaussian_renyi(0.0, 0.1, [2], relation=Relation.ADD_REMOVE)


def test_two_gaussians_chosen_in_turn_can_do_what_one_cannot() -> None:
    # E_r ((p - q) / r)^2 of three data sets: the first answers are a triangle of means; the second query is
    # chosen by what the first one showed, and may let the less likely of p and q answer like r.
    mu = 0.7
    growth = math.exp(mu * mu / 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    z, y = nodes[:, None], nodes[None, :]
    chance = np.outer(weights, weights) / (2 * math.pi)
    p = np.exp(mu * z - mu * mu / 2)
    q = np.exp(mu * (z / 2 + math.sqrt(3) / 2 * y) - mu * mu / 2)
    triangle = growth**2 * (p * p + q * q) - 2 * growth * p * q
    in_line = growth**2 * np.maximum(p, q) ** 2 + np.minimum(p, q) ** 2 - 2 * p * q
    one = 2 * math.exp(mu * mu) * math.expm1(mu * mu)
    assert float((chance * triangle).sum()) == pytest.approx(one, rel=1e-9)
    adaptive = float((chance * np.maximum(triangle, in_line)).sum())
    assert adaptive > 1.05 * one
    found = float(renyi_of(Sampled(Repeat(Gaussian(1 / mu), 2), 0.01), [2.0])[0])
    assert found >= math.log1p(1e-4 * adaptive)
    # What is only dominated by a Gaussian pair is no Gaussian release either.
    whole = float(renyi_of(Sampled(Gdp(mu * math.sqrt(2)), 0.01), [2.0])[0])
    assert whole == pytest.approx(found, rel=1e-12)


def test_sums_over_orders_stay_short() -> None:
    # An order is a sum of as many terms; far out, the release without its sample and the pure level remain.
    far = Sampled(Renyi((2.0, 1e12), (0.1, 0.2)), 0.01)
    assert renyi_of(far, [2.0, 1e9, 1e12])[1:] == pytest.approx([0.2, 0.2], rel=1e-9)
    assert epsilon_of(Compose((PureDP(0.1), far)), 1e-6) < 0.4
    assert renyi_of(Sampled(PureDP(1.0), 0.01), [1e9]) == pytest.approx(math.log1p(0.01 * math.expm1(1.0)))
    many = Renyi(tuple(np.arange(2.0, 20_002.0)), tuple(np.full(20_000, 0.1)))
    found = renyi_of(Sampled(many, 0.01), np.arange(2.0, 20_002.0))
    assert np.all(found <= 0.1 * (1 + 1e-9))
    assert found[0] == pytest.approx(fixed_size_renyi(np.full(1, 0.1), 0.01, [2], relation=REPLACE)[0])


@pytest.mark.parametrize(
    ("local", "n", "epsilon", "exact"),
    [
        (1, 2, 1, 0.106776),
        (1, 3, 1, 0.029757),
        (1, 4, 0.5, 0.068608),
        (2, 4, 1, 0.165983),
        (2, 3, 1.5, 0.204392),
    ],
)
def test_two_shuffles_of_one_sampled_record(local: float, n: int, epsilon: float, exact: float) -> None:
    # One record of n is told twice by randomised response; Lemma A.9 amplifies each time and then composes.
    keep = 1 / (1 + math.exp(-local))
    own, other = np.array([keep, 1 - keep]), np.array([1 - keep, keep])
    p, q = power(own, 2) / n + (1 - 1 / n) * power(other, 2), power(other, 2)
    assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) == pytest.approx(exact, abs=1e-6)
    once = own / n + (1 - 1 / n) * other
    apart = hockey_stick(power(once, 2), q, epsilon), hockey_stick(q, power(once, 2), epsilon)
    assert max(apart) < 0.51 * exact
    if (local, n) == (1, 3):
        assert max(apart) == 0.0


def test_an_order_that_costs_nothing_is_no_obstacle_to_the_others() -> None:
    bounds = [0.0, 0.1, 0.2, 0.3]
    least = poisson_renyi([1e-12, *bounds[1:]], 0.05, [3, 4, 5], relation=Relation.ADD_REMOVE)
    found = poisson_renyi(bounds, 0.05, [3, 4, 5], relation=Relation.ADD_REMOVE)
    assert found == pytest.approx(least, rel=1e-6)
