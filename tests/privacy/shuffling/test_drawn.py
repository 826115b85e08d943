"""Rounds of some of the parties: their laws, enumerated, and what the prices are made of."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.privacy import (
    ByChance,
    Drawn,
    Event,
    Gaussian,
    PureDP,
    Repeat,
    Sampled,
    SelfDrawn,
    Shuffled,
    epsilon_of,
    pure_epsilon_of,
    renyi_of,
)
from tacit.privacy.pricing import curve_of
from tacit.privacy.shuffling import drawn_round, self_drawn_round
from tests.privacy.shuffling.drawn_law import EPSILONS, worst


def bits(level: float, messages: int) -> Event:
    """A shuffled batch of single randomised bits."""
    return Shuffled(level, messages, "2rr")


CASES = list(product([(2, 2), (3, 1), (3, 2), (4, 2), (3, 3)], [0.5, 2.0]))


@pytest.mark.parametrize(("sizes", "level"), CASES)
def test_no_data_set_exceeds_the_price(sizes: tuple[int, int], level: float) -> None:
    n, m = sizes
    for sampled in range(1, m + 1):
        for k in range(1, n + 1):
            event = drawn_round(
                lambda joined, s=sampled: bits(level, joined * s),  # type: ignore[misc]
                clients=n,
                drawn=k,
                records=m,
                sampled=sampled,
            )
            bound = curve_of(event, accuracy=1e-9).delta(EPSILONS)
            assert (worst(n, m, level, k, sampled) <= bound * (1 + 1e-9) + 1e-15).all()
        event = self_drawn_round(
            lambda joined, s=sampled: bits(level, joined * s),  # type: ignore[misc]
            clients=n,
            rate=0.4,
            records=m,
            sampled=sampled,
        )
        bound = curve_of(event, accuracy=1e-9).delta(EPSILONS)
        assert (worst(n, m, level, 0.4, sampled) <= bound * (1 + 1e-9) + 1e-15).all()


@pytest.mark.parametrize("drawn", [1, 2, 0.5])
def test_half_the_noise_exceeds_the_price(drawn: int | float) -> None:
    # A bit whose noise has half the deviation: sinh(level / 2) is twice as large.
    half, n = 2 * math.asinh(2 * math.sinh(0.5)), 3
    if isinstance(drawn, int):
        event = drawn_round(lambda k: bits(1.0, k), clients=n, drawn=drawn)
    else:
        event = self_drawn_round(lambda k: bits(1.0, k), clients=n, rate=drawn)
    bound = curve_of(event, accuracy=1e-9).delta(EPSILONS)
    assert (worst(n, 1, half, drawn, 1) > bound * 1.2 + 1e-3).sum() > 10


def test_the_price_is_attained_where_one_of_one_is_drawn() -> None:
    bound = curve_of(drawn_round(lambda k: bits(1.0, k), clients=4, drawn=1), accuracy=1e-9).delta(EPSILONS)
    assert bound == pytest.approx(worst(4, 1, 1.0, 1, 1), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("clients", "records"), [(3, 2), (4, 2)])
def test_several_records_of_a_client_are_no_sample_of_all(clients: int, records: int) -> None:
    # Girgis (2023), Remark C.1.1: with s > 1 sampling of clients amplifies delta alone.
    wrong = Sampled(bits(2.0, records), 1 / clients)
    claimed = curve_of(wrong, accuracy=1e-9).delta(EPSILONS)
    assert (worst(clients, records, 2.0, 1, records) > claimed * 1.01 + 1e-12).any()


def test_a_self_drawn_round_is_little_above_the_whole_sum() -> None:
    n, q, m, level = 400, 0.2, 3, 1.0
    event = self_drawn_round(lambda k: Shuffled(level, k), clients=n, rate=q, records=m)
    epsilon = np.linspace(0.005, 0.1, 5)
    nearer = 0.9 * epsilon  # groups are one standard deviation wide, here a tenth of the mean
    whole = np.zeros((2, 5))
    for k in range(1, n + 1):
        weight = stats.binom.pmf(k, n, q)
        if weight > 1e-13:
            rate = k / n / m
            at = np.log1p(np.expm1(np.stack([epsilon, nearer])) / rate)
            whole += weight * rate * Shuffled(level, k).curve().delta(at)
    found = curve_of(event, accuracy=1e-9).delta(epsilon)
    assert (found >= whole[0] * (1 - 1e-9)).all()
    assert (found <= whole[1]).all()
    assert isinstance(event, SelfDrawn)
    assert len(event.parts) <= 20  # two of them are all but empty


def test_hardly_anybody_that_draws_itself_costs_next_to_nothing() -> None:
    """What is left for a sample of all weighs nothing: a price of losses that are all small is small."""
    n, q = 10_000, 1e-4
    event = self_drawn_round(lambda k: Shuffled(1.0, k), clients=n, rate=q)
    epsilon = np.linspace(1e-5, 1.5e-4, 4)
    whole = np.zeros(4)
    for k in range(1, 61):
        at = np.log1p(np.expm1(epsilon) * n / k)
        whole += stats.binom.pmf(k, n, q) * k / n * Shuffled(1.0, k).curve().delta(at)
    curve = curve_of(event, accuracy=1e-9)
    assert (curve.delta(epsilon) >= whole * (1 - 1e-9)).all()
    assert (curve.delta(epsilon) <= whole * 1.01).all()
    assert 0 < curve.delta(np.array([0.5]))[0] < 1e-100
    assert curve.max_loss == 1.0  # with certainty, nothing better can be said
    assert epsilon_of(Repeat(event, 20), 1e-12) < 20 * 2e-3


def test_all_join_with_probability_1() -> None:
    one = self_drawn_round(lambda k: Shuffled(1.0, k), clients=50, rate=1.0, records=4)
    assert one == drawn_round(lambda k: Shuffled(1.0, k), clients=50, drawn=50, records=4)
    assert drawn_round(lambda k: Shuffled(1.0, k), clients=50, drawn=50) == Shuffled(1.0, 50)


@pytest.mark.parametrize(("sampled", "wanted"), [(1, 0.0373), (5, 0.3078)])
def test_item_level(sampled: int, wanted: float) -> None:
    # Beside .203 and 5.57 by composing (epsilon, delta) exactly, and .174 by Rényi divergences.
    one = drawn_round(
        lambda k: Shuffled(1.0, k * sampled), clients=10_000, drawn=1000, records=10, sampled=sampled
    )
    assert epsilon_of(Repeat(one, 500), 1e-6) == pytest.approx(wanted, rel=3e-3)


@pytest.mark.parametrize(
    ("level", "randomizer", "rounds", "wanted"),
    [
        (1.5, "general", 600, 0.38098),
        (2 * math.asinh(0.75), "general", 1200, 0.49038),
        (2 * math.asinh(0.75), "2rr", 240, 0.15764),
    ],
)
def test_the_setting_of_the_thesis(level: float, randomizer: str, rounds: int, wanted: float) -> None:
    """10,000 of 60,000 clients with one record each; bits of v = 1.5 have the level 2 asinh(v / 2)."""
    one = drawn_round(lambda k: Shuffled(level, k, randomizer), clients=60_000, drawn=10_000)
    assert epsilon_of(Repeat(one, rounds), 1e-5) == pytest.approx(wanted, rel=2e-4)


def test_rejects() -> None:
    def once(k: int) -> Event:
        return Shuffled(1.0, k)

    with pytest.raises(ParameterError, match="drawn"):
        drawn_round(once, clients=3, drawn=4)
    with pytest.raises(ParameterError, match="sampled"):
        drawn_round(once, clients=3, drawn=2, records=2, sampled=3)
    with pytest.raises(ParameterError, match="rate"):
        self_drawn_round(once, clients=3, rate=0.0)
    with pytest.raises(ParameterError, match="sampled"):
        self_drawn_round(once, clients=3, rate=0.5, records=2, sampled=3)
    with pytest.raises(ParameterError, match="add up to at most 1"):
        ByChance((PureDP(1.0), PureDP(2.0)), (0.6, 0.6))
    with pytest.raises(ParameterError, match="clients"):
        self_drawn_round(once, clients=10**400, rate=0.5)
    with pytest.raises(ParameterError, match="at least the rate"):
        SelfDrawn((PureDP(1.0),), (1e-6,), clients=3, rate=0.5)
    with pytest.raises(ParameterError, match="at least drawn / clients"):  # less than its sentence says
        Drawn(once(2), 2 / 3 / 4 - 1e-6, clients=3, drawn=2, records=4)
    with pytest.raises(ParameterError, match="drawn"):  # all of them: nobody is hidden
        Drawn(once(3), 0.5, clients=3, drawn=3)
    with pytest.raises(ParameterError, match="one for each of the 2"):
        ByChance((PureDP(1.0), PureDP(2.0)), (0.6,))


def test_a_mixture_is_the_mean_of_its_parts() -> None:
    event = ByChance((PureDP(1.0), Gaussian(2.0)), (0.25, 0.5))
    grid = np.linspace(-2, 2, 9)
    parts = [curve_of(part, accuracy=1e-9) for part in event.parts]
    found = curve_of(event, accuracy=1e-9)
    wanted = (
        0.25 * parts[0].forward(grid) + 0.5 * parts[1].forward(grid) + 0.25 * np.maximum(-np.expm1(grid), 0)
    )
    assert found.forward(grid) == pytest.approx(wanted, rel=1e-12)
    orders = np.array([1.5, 2.0, 64.0])
    moments = [np.exp((orders - 1) * renyi_of(part, orders)) for part in event.parts]
    sums = 0.25 * moments[0] + 0.5 * moments[1] + 0.25
    assert renyi_of(event, orders) == pytest.approx(np.log(sums) / (orders - 1), rel=1e-9)
    assert pure_epsilon_of(ByChance((PureDP(1.0),), (0.1,))) == pytest.approx(1.0, rel=1e-9)
    assert epsilon_of(ByChance((Gaussian(2.0),), (1.0,)), 1e-6) == epsilon_of(Gaussian(2.0), 1e-6)
    # Bounds beyond what a float holds e to the power of.
    assert renyi_of(ByChance((PureDP(700.0),), (0.5,)), np.array([3.0]))[0] == pytest.approx(700, rel=1e-3)
