"""The blanket bound: against the sum it stands for, and against the pair where both are the same law."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import fft

from tacit.errors import ParameterError
from tacit.privacy.shuffling import blanket
from tacit.privacy.shuffling.blanket import BlanketBound, Cells
from tacit.privacy.shuffling.pair import ShuffledPair
from tacit.privacy.shuffling.randomizers import dominating, two_level_cells
from tests.privacy.reference import Array


def two_level(epsilon0: float, parties: int, measure: float, overlap: float) -> BlanketBound:
    cells = two_level_cells(epsilon0, measure, overlap)
    return BlanketBound(parties, 1 / (1 + math.expm1(epsilon0) * measure), lambda _: cells, epsilon0)


def enumerated(bound: BlanketBound, epsilon: float) -> float:
    """Return (1/n) E(sum b_i l_i)_+ over every combination of cells."""
    cells = bound.cells(1)
    value = np.append(cells.own - math.exp(epsilon) * cells.other, 0.0)
    mass = np.append(bound.blanket * cells.mass, 1 - bound.blanket)
    total = 0.0
    for chosen in itertools.combinations_with_replacement(range(value.size), bound.parties):
        counts = np.bincount(chosen, minlength=value.size)
        ways = math.factorial(bound.parties) / math.prod(math.factorial(c) for c in counts.tolist())
        total += ways * float(np.prod(mass**counts)) * max(float(counts @ value), 0.0)
    return total / bound.parties


@pytest.mark.parametrize("parties", [1, 2, 5, 12])
@pytest.mark.parametrize(("measure", "overlap"), [(0.5, 0.25), (1 / 3, 0.0), (0.1, 0.05), (0.5, 0.0)])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 4.0])
def test_bound_is_the_sum_it_stands_for(
    parties: int, measure: float, overlap: float, epsilon0: float
) -> None:
    bound = two_level(epsilon0, parties, measure, overlap)
    for share in (0.0, 0.2, 0.5, 0.9):
        exact = enumerated(bound, share * epsilon0)
        found = float(bound.delta(share * epsilon0))
        assert found >= exact * (1 - 1e-13)
        assert found == pytest.approx(exact, rel=3e-3, abs=1e-18)


@pytest.mark.parametrize(
    ("parties", "epsilon0"), [(1, 1.0), (30, 0.2), (1000, 1.0), (1000, 6.0), (10**5, 2.0)]
)
def test_bound_of_disjoint_halves_is_the_pair(parties: int, epsilon0: float) -> None:
    bound, pair = two_level(epsilon0, parties, 0.5, 0.0), ShuffledPair.randomized_response(epsilon0, parties)
    spread = 2.5 * float(pair.delta(0.0))
    epsilon: Array = np.array([0.0, 0.3, 1.0, 2.0, 3.5]) * spread
    epsilon = epsilon[epsilon < 0.99 * epsilon0]
    exact = pair.delta(epsilon)
    assert exact[-1] < exact[0]
    found = bound.delta(epsilon)
    # The pair of 1e5 parties rounds counts down by 1e-5 of themselves.
    assert np.all(found >= exact * (1 - 3e-5))
    np.testing.assert_allclose(found, exact, rtol=4e-3)


def test_small_deltas_keep_their_digits() -> None:
    bound, pair = two_level(1.0, 1000, 0.5, 0.0), ShuffledPair.randomized_response(1.0, 1000)
    at = np.array([0.33, 0.42])
    exact = pair.delta(at)
    assert np.all((exact > 1e-30) & (exact < 1e-15))
    found = bound.delta(at)
    assert np.all(found >= exact)
    np.testing.assert_allclose(found, exact, rtol=5e-3)


def test_table_and_renyi_divergences_lie_closely_above() -> None:
    bound, pair = two_level(1.0, 500, 0.5, 0.0), ShuffledPair.randomized_response(1.0, 500)
    epsilon = np.linspace(0, 0.3, 200)
    read, exact = bound.curve().delta(epsilon), pair.delta(epsilon)
    assert np.all(read >= exact)
    np.testing.assert_allclose(read, exact, rtol=0.05)
    orders = np.array([1.1, 2.0, 8.0, 40.0])
    renyi = bound.renyi(orders)
    assert np.all(renyi >= pair.renyi(orders))
    np.testing.assert_allclose(renyi, pair.renyi(orders), rtol=2e-3)


def test_a_coarser_law_of_densities_costs_more() -> None:
    # The densities 1 and 3, 2 and 2, 3 and 1 against their spread onto the ends.
    fine = Cells(np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0]), np.array([0.25, 0.5, 0.25]))
    coarse = Cells(np.array([3.0, 1.0]), np.array([1.0, 3.0]), np.array([0.5, 0.5]))
    less = BlanketBound(50, 0.5, lambda _: fine, math.log(3))
    more = BlanketBound(50, 0.5, lambda _: coarse, math.log(3))
    at = np.array([0.0, 0.1, 0.4])
    assert np.all(less.delta(at) < more.delta(at))


def test_many_parties_are_priced_and_few_losses_are_left() -> None:
    bound = two_level(1.0, 10**9, 1 / 3, 0.0)
    delta = bound.delta(np.array([0.0, 5e-5, 1e-4, 1.0, 1.1]))
    assert np.all(np.diff(delta) <= 0)
    assert 0 < delta[2] < 1e-6
    assert delta[-1] == 0


def test_impossible_bounds_are_refused() -> None:
    cells = two_level_cells(1.0, 0.5, 0.0)
    with pytest.raises(ParameterError, match="parties must"):
        BlanketBound(0, 0.5, lambda _: cells, 1.0)
    with pytest.raises(ParameterError, match="blanket must"):
        BlanketBound(3, 0.0, lambda _: cells, 1.0)
    with pytest.raises(ParameterError, match="cells must be densities"):
        BlanketBound(3, 0.5, lambda _: cells, 1.0)
    with pytest.raises(ParameterError, match="orders must"):
        two_level(1.0, 3, 0.5, 0.0).renyi([1.0])


@pytest.mark.parametrize("name", ["krr:1000000000", "krr:1000000", "privunit:1e-12"])
@pytest.mark.parametrize("epsilon0", [1e-4, 0.5, 3.0])
def test_rare_symbols_of_a_billion_parties_have_a_bound(name: str, epsilon0: float) -> None:
    # The tilted mean must be 0 to many digits: a billion times what is left is where the window lies.
    shares = np.array([0.3, 0.6, 0.9])
    many = dominating(name, epsilon0, 10**9).delta(shares * epsilon0)
    fewer = dominating(name, epsilon0, 10**6).delta(shares * epsilon0)
    assert np.all((many >= 0) & (many <= fewer * (1 + 1e-6)))
    assert np.all(np.diff(many) <= 0)


@pytest.mark.parametrize("count", [3, 1000, 10**6, 10**9])
@pytest.mark.parametrize("points", [2, 5, 90])
def test_frequencies_that_are_left_out_are_lost_in_the_power(count: int, points: int) -> None:
    rng, size = np.random.default_rng(points), 6000
    for spread in (10, 1000):
        point = np.unique(rng.integers(-spread, spread, points)).astype(np.float64)
        mass = rng.dirichlet(np.full(point.size, 0.3))
        k, log_single, _ = blanket._heard(point, mass, size, count)
        whole = fft.rfft(np.bincount((point % size).astype(np.int64), mass, size))
        with np.errstate(divide="ignore"):
            lost = np.delete(count * np.log(np.abs(whole)), k)
        assert lost.size == 0 or lost.max() < -60 + 1e-6
        assert np.allclose(np.exp(log_single), whole[k], rtol=1e-11, atol=1e-13)
        assert k[0] == 0


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-4, 0.3])
def test_the_gain_of_a_frequency_is_its_sum(tilt: float) -> None:
    size, most = 5000, 4321
    k = np.array([0, 1, 7, 1250, 2499, 2500])
    x = np.arange(1, most + 1)
    plain = [np.sum(x * np.exp(-tilt * x + 2j * np.pi * (j * x % size) / size)) for j in k.tolist()]
    assert np.allclose(blanket._gain(k, size, tilt, most), plain, rtol=1e-9, atol=1e-9 * abs(plain[0]))
