"""The pair of a shuffled batch: its own definition, tabled values, and data sets by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from tacit.errors import ParameterError
from tacit.privacy.curves import approximate_dp_curve
from tacit.privacy.pld import compose_curves
from tacit.privacy.pricing import _least_epsilon
from tacit.privacy.shuffling.blanket import BlanketBound
from tacit.privacy.shuffling.pair import ShuffledPair
from tacit.privacy.shuffling.randomizers import dominating
from tacit.privacy.shuffling.renyi import clones_renyi
from tests.privacy.reference import Array, hockey_stick
from tests.privacy.shuffling.histograms import (
    EPSILONS,
    coordinate_response,
    histogram_law,
    k_ary,
    worst_deltas,
    worst_renyi,
)

response = ShuffledPair.randomized_response


def clones(epsilon0: float, parties: int) -> ShuffledPair:
    return response(epsilon0, parties, blanket=math.exp(-epsilon0))


def laws(pair: ShuffledPair) -> tuple[Array, Array]:
    """Return P and Q on all (m, k), from the story told in the module."""
    p, q = [], []
    for others in range(pair.parties):
        chance = stats.binom.pmf(others, pair.parties - 1, pair.blanket)
        for k in range(others + 2):
            own, other = stats.binom.pmf(k - 1, others, 0.5), stats.binom.pmf(k, others, 0.5)
            p.append(chance * (pair.high * own + pair.low * other))
            q.append(chance * (pair.low * own + pair.high * other))
    return np.array(p), np.array(q)


@pytest.mark.parametrize("parties", [1, 2, 7, 40])
@pytest.mark.parametrize(
    ("blanket", "high", "low"),
    [(0.4, 0.8, 0.2), (0.05, 0.95, 0.05), (1.0, 0.6, 0.4), (0.0, 0.7, 0.3)],
)
def test_divergences_are_those_of_the_pair(parties: int, blanket: float, high: float, low: float) -> None:
    pair = ShuffledPair(parties, blanket, high, low)
    p, q = laws(pair)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    exact = np.array([hockey_stick(p, q, e) for e in EPSILONS])
    found = pair.delta(EPSILONS)
    assert np.all(found >= exact * (1 - 1e-14) - 1e-17)
    np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-15)
    orders = np.array([1.01, 1.5, 2.0, 7.3, 40.0])
    inside = (p > 0) & (q > 0)
    ratio = np.log(p[inside, None] / q[inside, None])
    moments = (q[inside, None] * np.expm1(orders * ratio)).sum(axis=0)
    np.testing.assert_allclose(pair.renyi(orders), np.log1p(moments) / (orders - 1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("parties", "epsilon0", "delta", "epsilon"),
    [
        (1000, 1, 1e-5, 0.125040),
        (1000, 0.5, 1e-5, 0.051632),
        (1000, 2, 1e-5, 0.339509),
        (1000, 3, 1e-5, 0.703752),
        (10_000, 1, 1e-6, 0.043206),
        (100, 1, 1e-5, 0.443596),
    ],
)
def test_epsilons_of_one_randomized_bit(parties: int, epsilon0: float, delta: float, epsilon: float) -> None:
    assert _least_epsilon(response(epsilon0, parties).curve(), delta) == pytest.approx(epsilon, abs=6e-7)


@pytest.mark.parametrize(
    ("parties", "deltas"),
    [
        (1, (0.462117157, 0.385730958, 0.287649137, 0.161709585)),
        (2, (0.337834712, 0.281991926, 0.210288369, 0.118219179)),
        (3, (0.280401662, 0.213508926, 0.153733116, 0.086425145)),
        (10, (0.157298143, 0.074693502, 0.027755329, 0.009648074)),
    ],
)
def test_deltas_of_few_parties(parties: int, deltas: tuple[float, ...]) -> None:
    np.testing.assert_allclose(response(1.0, parties).delta([0, 0.25, 0.5, 0.75]), deltas, atol=6e-10)


@pytest.mark.parametrize(
    ("epsilon0", "parties", "epsilons"),
    [
        (0.5, 10**3, (0.0582675, 0.0705235, 0.0909475)),
        (0.5, 10**4, (0.0162053, 0.0204015, 0.0272378)),
        (0.5, 10**6, (0.00110517, 0.00161909, 0.00240034)),
        (1, 10**3, (0.154047, 0.182412, 0.230556)),
        (1, 10**4, (0.0434403, 0.0530053, 0.0688804)),
        (1, 10**6, (0.00319289, 0.00433452, 0.00612548)),
        (2, 10**3, (0.467369, 0.545498, 0.683988)),
        (2, 10**4, (0.130479, 0.155045, 0.196624)),
        (2, 10**6, (0.0101067, 0.0129584, 0.0175589)),
        (4, 10**5, (0.143138, 0.169770, 0.214928)),
        (4, 10**6, (0.0403245, 0.0493071, 0.0641968)),
    ],
)
def test_clones_epsilons(epsilon0: float, parties: int, epsilons: tuple[float, ...]) -> None:
    curve = clones(epsilon0, parties).curve()
    found = [_least_epsilon(curve, delta) for delta in (1e-5, 1e-6, 1e-8)]
    np.testing.assert_allclose(found, epsilons, rtol=2e-5)


def test_clones_epsilons_cost_more_than_one_bit() -> None:
    for epsilon0, parties, delta, epsilon in (
        (2, 1000, 1e-5, 0.467369),
        (1, 100, 1e-5, 0.553190),
        (1, 10_000, 1e-6, 0.053005),
        (0.4, 1000, 1e-5, 0.043447),
    ):
        assert _least_epsilon(clones(epsilon0, parties).curve(), delta) == pytest.approx(epsilon, abs=6e-7)
    assert _least_epsilon(response(0.4, 1000).curve(), 1e-5) == pytest.approx(0.039322, abs=6e-7)


def test_renyi_divergences_of_a_thousand_bits() -> None:
    found = response(1.0, 1000).renyi([2.0, 4, 8, 16])
    np.testing.assert_allclose(found, [0.001588727, 0.003177462, 0.006355000, 0.012710631], rtol=4e-7)
    assert clones(1.0, 50).renyi([4.0])[0] == pytest.approx(0.094394066617, rel=1e-10)
    assert clones(2.0, 100).renyi([8.0])[0] == pytest.approx(1.01408510647, rel=1e-10)
    assert response(3.0, 1000).renyi([64.0])[0] == pytest.approx(2.2287722, abs=6e-8)  # not the truncated sum
    # The far tail of few blankets rules the high orders.
    found = clones(3.0, 1000).renyi([2.0, 8, 16, 32, 64])
    np.testing.assert_allclose(found, [0.067099132, 0.28617154, 1.318528, 2.1860648, 2.5994921], rtol=1e-7)


@pytest.mark.parametrize(
    ("epsilon0", "parties", "at_2", "at_64"),
    [
        (1, 10**4, 0.00023221158, 0.0074310235),
        (3, 10**4, 0.0065933799, 0.2188744),
        (0.5, 10**6, 3.955952e-07, 1.265905e-05),
        (3, 10**6, 6.582487e-05, 0.002106403),
    ],
)
def test_renyi_divergences_of_many_parties(epsilon0: float, parties: int, at_2: float, at_64: float) -> None:
    found = clones(epsilon0, parties).renyi([2.0, 64.0])
    # The tabled values for 1e6 are themselves grouped, 4e-5 above the sum.
    assert np.all(found >= np.array([at_2, at_64]) * (1 - 5e-5))
    np.testing.assert_allclose(found, [at_2, at_64], rtol=5e-4)


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("parties", [10**3, 10**4, 10**6])
def test_epsilon_is_that_of_the_ungrouped_sum(epsilon0: float, parties: int) -> None:
    pair = clones(epsilon0, parties)
    epsilon = _least_epsilon(pair.curve(), 1e-6)
    a, high, low = math.exp(epsilon), pair.high, pair.low
    others = np.arange(parties, dtype=np.float64)
    chance = stats.binom.pmf(others, parties - 1, pair.blanket)
    others, chance = others[chance > 1e-25], chance[chance > 1e-25]

    def exact(at: float) -> float:
        # Feldman, McMillan and Talwar (2022), Theorem 3.1, with the first threshold that pays.
        b = math.exp(at)
        k = np.floor((others + 1) * (b * high - low) / ((high - low) * (1 + b))) + 1
        here = special.betainc(np.maximum(k - 1, 0.5), others - k + 2, 0.5)
        here = np.where(k - 1 <= 0, 1.0, np.where(k - 1 > others, 0.0, here))
        above = np.where(k > others, 0.0, special.betainc(k, np.maximum(others - k + 1, 0.5), 0.5))
        gain = (high - b * low) * here + (low - b * high) * above
        return float(np.maximum(gain, 0.0) @ chance)

    assert a > 1
    assert exact(epsilon) <= 1e-6 * (1 + 1e-9)
    assert exact(epsilon * 0.999) > 1e-6


@pytest.mark.parametrize("parties", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon0", [0.7, 2.0])
@pytest.mark.parametrize("block", [1, 2])
def test_no_data_set_of_randomized_bits_costs_more(parties: int, epsilon0: float, block: int) -> None:
    channel = coordinate_response(epsilon0, block)
    pair = response(epsilon0, parties)
    assert np.all(worst_deltas(channel, parties) <= pair.delta(EPSILONS) + 1e-14)
    orders = np.array([1.5, 2.0, 5.0])
    assert np.all(worst_renyi(channel, parties, orders) <= pair.renyi(orders) + 1e-13)


def test_bound_of_randomized_bits_is_reached_near_the_level() -> None:
    # Equality at large epsilon.
    near = np.array([1.8])
    exact = worst_deltas(coordinate_response(2.0, 2), 4, near)
    np.testing.assert_allclose(response(2.0, 4).delta(near), exact, rtol=1e-9)
    assert response(2.0, 4).delta(near)[0] > 0


@pytest.mark.parametrize("seed", range(12))
def test_no_data_set_of_any_randomizer_costs_more_than_clones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon0, symbols, inputs = rng.uniform(0.3, 2.5), int(rng.integers(2, 5)), int(rng.integers(2, 4))
    # Random channels between e^{-epsilon0 / 2} and e^{epsilon0 / 2} times one law; extremes are more telling.
    lift = rng.uniform(-1, 1, (inputs, symbols)) if seed % 3 else rng.choice([-1, 1], (inputs, symbols))
    weight = rng.dirichlet(np.ones(symbols)) * np.exp(epsilon0 / 4 * lift)
    channel = weight / weight.sum(axis=1, keepdims=True)
    level = float(np.log((channel.max(axis=0) / channel.min(axis=0)).max()))
    for parties in (1, 2, 3, 4) if inputs * symbols <= 9 else (1, 2, 3):
        assert np.all(worst_deltas(channel, parties) <= clones(level, parties).delta(EPSILONS) + 1e-14)


def test_pair_that_hides_the_number_of_blankets_is_no_bound_for_three_symbols() -> None:
    # All others hold the third symbol: (m, k) is all that is seen. Others who hold x or x' reveal more.
    epsilon, channel = np.array([0.5, 0.9]), k_ary(1.0, 3)
    p, q = (np.array(list(histogram_law([*[channel[2]] * 3, channel[x]]).values())) for x in (0, 1))
    hidden = np.array([hockey_stick(p, q, e) for e in epsilon])
    np.testing.assert_allclose(hidden, [0.069943, 0.001833], atol=6e-7)
    assert np.all(worst_deltas(channel, 4, epsilon) > hidden * 1.01)


def test_composition_is_that_of_the_exact_pair() -> None:
    pair, count = response(1.0, 4), 6
    p, q = laws(pair)
    # Losses are logarithms of ratios of few kinds: group them, and convolve the groups exactly.
    law = {0.0: 1.0}
    losses = np.round(np.log(p / q), 12)
    single = {float(v): float(p[losses == v].sum()) for v in np.unique(losses)}
    for _ in range(count):
        wider: dict[float, float] = {}
        for so_far, chance in law.items():
            for loss, part in single.items():
                key = round(so_far + loss, 9)
                wider[key] = wider.get(key, 0.0) + chance * part
        law = wider
    total, mass = np.array(list(law)), np.array(list(law.values()))
    composed = compose_curves([(pair.curve(), count)], accuracy=1e-6)
    epsilon = _least_epsilon(composed, 1e-6)  # within 1 % of the exact convolution

    def exact(at: float) -> float:
        return float((mass * np.maximum(-np.expm1(at - total), 0.0)).sum())

    assert exact(epsilon) <= 1e-6 * (1 + 1e-6)
    assert exact(epsilon * 0.99) > 1e-6


@pytest.mark.parametrize("parties", [30, 3000, 10**6])
def test_table_lies_closely_above_the_curve(parties: int) -> None:
    pair = clones(1.0, parties)
    std = 2.5 * float(pair.delta(0.0))
    epsilon = np.linspace(0, min(7 * std, 1.0), 400)
    exact, read = pair.delta(epsilon), pair._table.delta(epsilon)
    assert np.all(read >= exact * (1 - 2e-4))  # both are bounds; the table has coarser groups
    np.testing.assert_allclose(read, exact, rtol=0.02)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    epsilon0=st.floats(1e-4, 30),
    log_parties=st.floats(0, 9),
    share=st.floats(0, 1),
    where=st.floats(0, 1.2),
)
def test_delta_is_finite_and_monotone(
    epsilon0: float, log_parties: float, share: float, where: float
) -> None:
    parties = round(10**log_parties)
    blanket = share * 2 * float(special.expit(-epsilon0))
    epsilon = np.array([where * epsilon0, where * epsilon0 * 1.01, where * epsilon0 / math.sqrt(parties)])
    delta = response(epsilon0, parties, blanket=blanket).delta(epsilon)
    assert np.all((delta >= 0) & (delta <= 1))
    slack = 1 + 1e-7
    assert delta[1] <= delta[0] * slack
    assert np.all(delta <= approximate_dp_curve(epsilon0).delta(epsilon) * slack + 1e-14)
    fewer = response(epsilon0, max(parties // 2, 1), blanket=blanket).delta(epsilon)
    assert np.all(delta <= fewer * slack + 1e-300)
    less_hidden = response(epsilon0, parties, blanket=blanket / 2).delta(epsilon)
    assert np.all(delta <= less_hidden * slack + 1e-300)
    weaker = response(min(epsilon0 * 1.1, 30), parties, blanket=blanket).delta(epsilon)
    assert np.all(delta <= weaker * slack + 1e-300)


def test_small_deltas_keep_their_digits() -> None:
    # Against a sum in 30 digits: n = 1000, epsilon0 = 1, clones, by exact binomials.
    from fractions import Fraction

    n, epsilon = 300, 0.9
    pair = clones(1.0, n)
    a, b = Fraction(math.exp(epsilon)), Fraction(pair.blanket)
    high, low = Fraction(pair.high), 1 - Fraction(pair.high)
    total = Fraction(0)
    for m in range(1, n + 1):
        inside = Fraction(0)
        for k in range(m, -1, -1):
            gain = (high - a * low) * k + (low - a * high) * (m - k)
            if gain <= 0:
                break
            inside += math.comb(m, k) * gain
        total += math.comb(n - 1, m - 1) * b ** (m - 1) * (1 - b) ** (n - m) * inside * 2 / (m * 2**m)
    exact = float(total)
    assert exact < 1e-15
    found = float(pair.delta(epsilon))
    assert exact <= found <= exact * (1 + 1e-9)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 0.5, 0.7, 0.3), "parties"),
        ((2.5, 0.5, 0.7, 0.3), "parties"),
        ((10, 1.5, 0.7, 0.3), "blanket"),
        ((10, -0.1, 0.7, 0.3), "blanket"),
        ((10, math.nan, 0.7, 0.3), "blanket"),
        ((10, 0.5, 1.7, 0.3), "high"),
        ((10, 0.5, 0.7, 0.4), "low"),
        ((10, 0.5, 0.3, 0.3), "low"),
    ],
)
def test_impossible_pairs_are_refused(arguments: tuple[int, float, float, float], name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must"):
        ShuffledPair(*arguments)


def test_impossible_levels_and_orders_are_refused() -> None:
    for level in (0.0, -1.0, 30.1, math.nan, math.inf):
        with pytest.raises(ParameterError, match="epsilon0 must"):
            response(level, 10)
    for order in (1.0, 0.5, math.nan, math.inf):
        with pytest.raises(ParameterError, match="orders must"):
            response(1.0, 10).renyi([2.0, order])


@pytest.mark.parametrize("name", ["general", "2rr", "krr:16", "laplace"])
def test_large_orders_keep_the_tail_that_underflows(name: str) -> None:
    # Nothing is below the moment of the fewest blankets: all others' messages are told apart.
    level, parties, orders = 2.0, 20_000, np.array([1e3, 3e3, 1e4, 1e5])
    pair = dominating(name, level, parties)
    assert isinstance(pair, ShuffledPair | BlanketBound)
    # The moment of no blanket at all: ((1 - b)^(n-1) (1/2) e^((a-1) level))^(1 / (a-1)), at least.
    alone = level + ((parties - 1) * np.log1p(-pair.blanket) - np.log(4)) / (orders - 1)
    bound = pair.renyi(orders)
    assert np.all(bound >= alone)
    assert np.all(np.diff(bound) >= 0)
    if isinstance(pair, ShuffledPair):
        exact = clones_renyi(level, parties, orders, blanket=pair.blanket, accuracy=1e-6)
        assert np.all(bound >= exact * (1 - 1e-9))
        assert np.all(bound <= exact * 1.03)


@pytest.mark.parametrize("epsilon0", [1e-4, 0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, 0.9999])
def test_a_small_level_is_not_lost_in_probabilities_near_a_half(epsilon0: float, share: float) -> None:
    epsilon = share * epsilon0
    exact = -math.expm1(epsilon - epsilon0) * float(special.expit(epsilon0))
    found = float(response(epsilon0, 1).delta(epsilon))
    assert exact * (1 - 1e-15) <= found <= exact * (1 + 1e-6)
    assert response(epsilon0, 1).max_loss >= epsilon0
