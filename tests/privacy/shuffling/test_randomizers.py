"""Randomizers by name: no data set costs more, by enumeration, and the worst inputs are the worst."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special

from tacit.errors import ParameterError
from tacit.privacy.shuffling.randomizers import RANDOMIZERS, dominating
from tests.privacy.reference import Array
from tests.privacy.shuffling.histograms import (
    EPSILONS,
    histogram_law,
    k_ary,
    sets_channel,
    worst_deltas,
    worst_renyi,
)

NAMES = ["general", "2rr", "krr:3", "krr:50", "hadamard", "hadamard:100", "laplace", "privunit:0.05"]
NAMES += ["bh:2", "bh:3", "bh:100", "hr:100", "oue:2", "oue:100", "rappor:3", "rappor:100", "ss:3", "ss:100"]
ORDERS = np.array([1.5, 2.0, 6.0])

# The rows of a 4 x 4 Hadamard matrix but the constant one, and two blocks of size 4.
ONE_BLOCK = ((0, 2), (0, 1), (0, 3))
TWO_BLOCKS = ((0, 2), (0, 1), (4, 6), (4, 5))


def covered(name: str, epsilon0: float, parties: int, channel: Array) -> None:
    """Hold a bound against all data sets."""
    bound = dominating(name, epsilon0, parties)
    assert np.all(worst_deltas(channel, parties) <= bound.delta(EPSILONS) + 1e-14)
    assert np.all(worst_renyi(channel, parties, ORDERS) <= bound.renyi(ORDERS) + 1e-13)


@pytest.mark.parametrize("parties", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.5])
def test_no_data_set_of_k_ary_responses_costs_more(parties: int, epsilon0: float) -> None:
    covered("krr:2", epsilon0, parties, k_ary(epsilon0, 2))
    covered("krr:3", epsilon0, parties, k_ary(epsilon0, 3))
    if parties <= 3:
        covered("krr:4", epsilon0, parties, k_ary(epsilon0, 4))


@pytest.mark.parametrize("parties", [1, 2, 3])
@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.5])
def test_no_data_set_of_hadamard_responses_costs_more(parties: int, epsilon0: float) -> None:
    covered("hadamard", epsilon0, parties, sets_channel(epsilon0, ONE_BLOCK, 4))


@pytest.mark.parametrize("parties", [1, 2, 3])
def test_no_data_set_of_hadamard_responses_in_two_blocks_costs_more(parties: int) -> None:
    # ln 2 < epsilon <= ln 4 has two blocks; four symbols need blocks of 4, two of them used.
    covered("hadamard:4", 1.0, parties, sets_channel(1.0, TWO_BLOCKS, 8))
    covered("hadamard:3", 1.0, parties, sets_channel(1.0, ONE_BLOCK, 8))


@pytest.mark.parametrize("parties", [1, 2, 3])
def test_no_data_set_of_subsets_costs_more(parties: int) -> None:
    sets = ((0, 1), (2, 3), (1, 2), (4, 5))
    covered("privunit:" + repr(2 / 6), 1.3, parties, sets_channel(1.3, sets, 6))


def columns_channel(epsilon0: float, values: int, *, constant: bool) -> Array:
    """Return (column, bit) of a binary Hadamard response, the constant column among them or not."""
    dim = 1 << (values - 1).bit_length()
    columns = range(0 if constant else 1, dim)
    likely = [[2 * i + 1 - (x & j).bit_count() % 2 for i, j in enumerate(columns)] for x in range(values)]
    return sets_channel(epsilon0, likely, 2 * len(columns))


def unary_channel(held: float, other: float, values: int) -> Array:
    """Return all sets of values that may be named, by independent answers."""
    sets = np.array(list(itertools.product((0, 1), repeat=values)))
    named = np.array([[held if x == j else other for j in range(values)] for x in range(values)])
    return np.array([np.where(sets == 1, row, 1 - row).prod(axis=1) for row in named])


@pytest.mark.parametrize("parties", [1, 2, 3])
@pytest.mark.parametrize("epsilon0", [0.5, 2.5])
@pytest.mark.parametrize("constant", [False, True])
def test_no_data_set_of_binary_hadamard_responses_costs_more(
    parties: int, epsilon0: float, constant: bool
) -> None:
    for values in (2, 3, 4):
        if values < 4 or parties < 3:
            covered(f"bh:{values}", epsilon0, parties, columns_channel(epsilon0, values, constant=constant))


def rounded_channel(epsilon0: float, inner: Array) -> Array:
    """Return (column, bit) with a column drawn by the party, of means in [-1, 1], rounded to a bit."""
    tilt = math.tanh(epsilon0 / 2) * inner
    return np.asarray(np.stack([1 - tilt, 1 + tilt], axis=-1).reshape(len(inner), -1) / (2 * inner.shape[1]))


@pytest.mark.parametrize("parties", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon0", [0.5, 2.5])
def test_inputs_that_agree_on_some_columns_cost_no_more_than_one_randomized_bit(
    parties: int, epsilon0: float
) -> None:
    # The L1 ball of two dimensions: vertices, an edge and the middle; then signs of three columns.
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [0.3, 1.0], [0.0, 0.0]])
    covered("2rr", epsilon0, parties, rounded_channel(epsilon0, square))
    if parties < 4:
        cube = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
        covered("2rr", epsilon0, parties, rounded_channel(epsilon0, cube))


def test_a_column_that_tells_the_party_hides_nobody() -> None:
    # Party i has column i: the batch shows every party's own bit, whatever their number.
    for parties in (2, 3):
        columns = np.eye(parties) @ np.repeat(np.eye(parties), 2, axis=1)
        bits = np.tile(special.expit([-1.0, 1.0]), parties)
        law = [histogram_law([*(columns[:-1] * bits), columns[-1] * last]) for last in (bits, 1 - bits)]
        p, q = (np.array([one[counts] for counts in law[0]]) for one in law)
        exact = np.maximum(p[:, None] - np.exp(EPSILONS) * q[:, None], 0.0).sum(axis=0)
        assert exact[2] > 1.3 * dominating("2rr", 1.0, parties).delta(EPSILONS)[2]
        np.testing.assert_allclose(exact, dominating("2rr", 1.0, 1).delta(EPSILONS), atol=1e-12)


@pytest.mark.parametrize("parties", [1, 2, 3])
@pytest.mark.parametrize("epsilon0", [0.5, 2.5])
def test_no_data_set_of_unary_encodings_costs_more(parties: int, epsilon0: float) -> None:
    for values in (2, 3) if parties < 3 else (2,):
        other = float(special.expit(-epsilon0))
        covered(f"oue:{values}", epsilon0, parties, unary_channel(0.5, other, values))
        other = float(special.expit(-epsilon0 / 2))
        covered(f"rappor:{values}", epsilon0, parties, unary_channel(1 - other, other, values))


@pytest.mark.parametrize("parties", [1, 2, 3])
def test_no_data_set_of_subset_selections_costs_more(parties: int) -> None:
    for epsilon0, values in ((0.3, 3), (0.2, 4), (2.0, 4)):
        size = math.ceil(values / (math.exp(epsilon0) + 1))
        sets = list(itertools.combinations(range(values), size))
        likely = [[i for i, one in enumerate(sets) if x in one] for x in range(values)]
        if parties < 3 or len(sets) < 6:
            covered(f"ss:{values}", epsilon0, parties, sets_channel(epsilon0, likely, len(sets)))


def test_a_unary_encoding_is_no_randomized_response() -> None:
    # Both halves of a symmetric encoding as one bit each, as it is sometimes priced: half of the truth.
    held = float(special.expit(0.5))
    exact = worst_deltas(unary_channel(held, 1 - held, 2), 2)
    assert exact[2] > 1.5 * dominating("2rr", 0.5, 2).delta(EPSILONS)[2]


@pytest.mark.parametrize("parties", [1, 2, 3])
@pytest.mark.parametrize("epsilon0", [0.6, 2.0])
def test_no_data_set_of_rounded_laplace_costs_more(parties: int, epsilon0: float) -> None:
    # Rounding to cells is post-processing, so what the cells show may not exceed the bound.
    edges = np.array([-np.inf, 0.05, 0.4, 0.6, 0.95, np.inf])
    inputs = np.array([0.0, 0.3, 0.5, 1.0])

    def below(z: Array) -> Array:
        return np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))

    channel = np.array([np.diff(below(epsilon0 * (edges - x))) for x in inputs])
    covered("laplace", epsilon0, parties, channel)


def test_bounds_are_nearly_reached() -> None:
    # A bound a hundred times too large would pass all of the above.
    channel = sets_channel(1.0, ONE_BLOCK, 4)
    for name, law in (("hadamard", channel), ("krr:3", k_ary(1.0, 3))):
        exact, bound = worst_deltas(law, 3), dominating(name, 1.0, 3).delta(EPSILONS)
        assert np.max(exact / np.maximum(bound, 1e-300)) > 0.9
        assert exact[0] > 0.7 * bound[0]


@pytest.mark.parametrize("epsilon0", [0.5, 2.0, 6.0])
def test_ends_are_the_worst_inputs_of_laplace(epsilon0: float) -> None:
    z = np.linspace(-30 / epsilon0, 1 + 30 / epsilon0, 20_001)
    omega = np.exp(-epsilon0 * np.maximum(z, 1 - z))  # beta omega, up to the factor of all densities
    weight = epsilon0 / 2 * (z[1] - z[0])

    def excess(x: float, y: float, a: float, tau: float) -> float:
        gap = np.exp(-epsilon0 * np.abs(z - x)) - a * np.exp(-epsilon0 * np.abs(z - y)) - tau * omega
        return float(np.maximum(gap, 0.0).sum() * weight)

    grid = (0.0, 0.1, 0.35, 0.5, 0.8, 1.0)
    e = math.exp(epsilon0)
    for a in (1.0, 1.1, 1 + (e - 1) / 3):
        for tau in (-a * e, -a, 1 - a, -0.3, 0.2, (e - a) / 2):
            worst = excess(0.0, 1.0, a, tau)
            # Equal where the whole line is taken; the rule's own error is 1e-6 there.
            assert all(excess(x, y, a, tau) <= worst * (1 + 3e-6) for x in grid for y in grid)


def test_alone_a_message_costs_what_its_law_does() -> None:
    for epsilon0 in (0.5, 3.0):
        laplace = dominating("laplace", epsilon0, 1).delta(EPSILONS)
        exact = -np.expm1(np.minimum((EPSILONS - epsilon0) / 2, 0.0))
        assert np.all(laplace >= exact * (1 - 1e-12))
        np.testing.assert_allclose(laplace, exact, atol=2e-3)
        low = float(special.expit(-epsilon0))
        np.testing.assert_allclose(
            dominating("2rr", epsilon0, 1).delta(EPSILONS),
            np.maximum(1 - low - np.exp(EPSILONS) * low, 0.0),
            rtol=1e-12,
            atol=1e-15,
        )


def test_laplace_blanket_has_the_mass_of_the_least_density() -> None:
    for epsilon0 in (0.3, 2.0):
        least = integrate.quad(
            lambda z, e=epsilon0: e / 2 * math.exp(-e * max(z, 1 - z)),
            -60 / epsilon0,
            60,
            points=[0.5],
            limit=200,
        )
        assert least[0] == pytest.approx(math.exp(-epsilon0 / 2), rel=1e-8)


@pytest.mark.parametrize(
    "name", ["krr:3", "hadamard", "laplace", "privunit:0.1", "bh:64", "oue:64", "rappor:64", "ss:64"]
)
def test_knowing_the_randomizer_never_costs_more(name: str) -> None:
    for epsilon0, parties in ((0.5, 1000), (2.0, 1000), (4.0, 10**5)):
        general = dominating("general", epsilon0, parties)
        epsilon = np.array([0.3, 1.0, 2.0]) * 2.5 * float(general.delta(0.0))
        assert np.all(dominating(name, epsilon0, parties).delta(epsilon) < general.delta(epsilon))


def test_hadamard_in_one_block_is_cheaper_than_disjoint_halves() -> None:
    for epsilon in (0.0, 0.05, 0.1):
        assert dominating("hadamard", 1.0, 1000).delta(epsilon) < dominating("2rr", 1.0, 1000).delta(epsilon)


def test_hemisphere_is_a_cap_of_one_half() -> None:
    # Its worst inputs are opposite, and price it as randomized response.
    at = np.array([0.0, 0.05, 0.12])
    cap, pair = dominating("privunit:0.5", 1.0, 1000).delta(at), dominating("2rr", 1.0, 1000).delta(at)
    np.testing.assert_allclose(cap, pair, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("epsilon0", "parties"), [(1e-4, 10**4), (1.0, 10**9), (15.0, 10**6), (30.0, 1), (30.0, 100)]
)
def test_every_law_is_finite_and_monotone(name: str, epsilon0: float, parties: int) -> None:
    law = dominating(name, epsilon0, parties)
    epsilon = np.array([0.0, 0.01, 0.3, 0.9, 1.0]) * epsilon0
    delta = law.delta(epsilon)
    assert np.all(np.diff(delta) <= 1e-12)
    assert np.all((delta >= 0) & (delta <= 1))
    assert delta[-1] < 1e-14
    assert law.max_loss == pytest.approx(epsilon0)


def test_every_entry_says_what_it_covers() -> None:
    for entry in RANDOMIZERS:
        assert entry.covers
        assert entry.law in {"pair", "blanket"}
        stem, _, takes = entry.name.partition(":")
        name = f"{stem}:{'0.2' if takes == 'q' else '5'}" if takes else stem
        assert dominating(name, 1.0, 10).max_loss == pytest.approx(1.0)


@pytest.mark.parametrize(
    "name",
    ["", "rr", "krr", "krr:", "krr:1", "krr:2.5", "krr:-3", "2rr:4", "laplace:1", "hadamard:1", "privunit"],
)
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=r"randomizer must be one of|needs a whole number"):
        dominating(name, 1.0, 10)


@pytest.mark.parametrize("measure", ["0", "0.6", "nan", "x", "-0.1"])
def test_impossible_caps_are_refused(measure: str) -> None:
    with pytest.raises(ParameterError, match="measure q of the cap"):
        dominating(f"privunit:{measure}", 1.0, 10)


@pytest.mark.parametrize("symbols", [4, 6])
def test_hadamard_of_symbols_that_fit_in_one_block_costs_what_one_block_costs(symbols: int) -> None:
    # 7 symbols fit in a block of 8 columns, also where their number plus one is not a power of two.
    for epsilon in EPSILONS:
        named, open_ended = (dominating(name, 0.5, 100) for name in (f"hadamard:{symbols}", "hadamard"))
        assert named.delta(epsilon) == open_ended.delta(epsilon)
