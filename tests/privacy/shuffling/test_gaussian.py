"""Shuffled Gaussian messages: enumeration of whole batches, the proof's pieces, and the price by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.numerics import Array
from tacit.privacy import (
    DiscreteGaussian,
    Neighbours,
    Part,
    Relation,
    Repeat,
    Shuffled,
    ShuffledGaussian,
    clones_level,
)
from tacit.privacy.pricing import epsilon_of

EPSILONS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5])


def noise(std: float, reach: int) -> Array:
    law = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * std * std))
    return np.asarray(law / law.sum())


def batch(rows: tuple[int, ...], std: float, reach: int) -> dict[tuple[int, ...], float]:
    """The law of the multiset of noisy rows, outcome by outcome."""
    law = noise(std, reach)
    found: dict[tuple[int, ...], float] = {}
    for drawn in itertools.product(range(2 * reach + 1), repeat=len(rows)):
        seen = tuple(sorted(row + k - reach for row, k in zip(rows, drawn, strict=True)))
        found[seen] = found.get(seen, 0.0) + math.prod(law[k] for k in drawn)
    return found


def divergence(one: dict[tuple[int, ...], float], other: dict[tuple[int, ...], float]) -> Array:
    outcomes = sorted({*one, *other})
    p, q = (np.array([law.get(seen, 0.0) for seen in outcomes]) for law in (one, other))
    return np.array([np.maximum(p - math.exp(eps) * q, 0.0).sum() for eps in EPSILONS])


@pytest.mark.parametrize(("std", "moved", "reach"), [(3.0, 2, 18), (1.0, 1, 8), (1.5, 3, 10)])
def test_no_batch_of_three_rows_exceeds_the_price_at_any_level(std: float, moved: int, reach: int) -> None:
    """All data sets of whole rows in [0, moved], and all neighbours, in both orders."""
    points = range(moved + 1)
    laws: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {
        rows: batch(rows, std, reach) for rows in itertools.combinations_with_replacement(points, 3)
    }
    worst = np.zeros(EPSILONS.size)
    for others in itertools.combinations_with_replacement(points, 2):
        for mine, yours in itertools.permutations(points, 2):
            pair = (laws[tuple(sorted((*others, x)))] for x in (mine, yours))
            worst = np.maximum(worst, divergence(*pair))
    for level in (0.1, 0.5, 1.0, 2.0, 4.0, 30.0):
        claimed = ShuffledGaussian(std, float(moved), 1, 3, level).curve().delta(EPSILONS)
        assert (worst <= claimed * (1 + 1e-9) + 1e-12).all()
    # One message alone is exact, so that a claim for less noise would be refuted.
    alone = DiscreteGaussian(std, float(moved), dim=1).curve().delta(EPSILONS)
    assert (worst <= alone + 1e-12).all()
    fewer = ShuffledGaussian(2 * std, float(moved), 1, 3, 30.0).curve().delta(EPSILONS)
    assert (worst > fewer).any()


@pytest.mark.parametrize(("std", "parties"), [(3.0, 200), (1.0, 2000), (0.6, 50_000)])
def test_counting_messages_above_a_threshold_finds_no_more_than_is_claimed(std: float, parties: int) -> None:
    """Exactly: of n - 1 rows at 0 and one at 0 or 1, as many are above it as binomial laws say."""
    level = clones_level(DiscreteGaussian(std, 1.0, dim=1), parties, 1e-8)
    claimed = ShuffledGaussian(std, 1.0, 1, parties, level).curve().delta(EPSILONS)
    louder = 16 * std  # clones are a loose bound for one threshold
    refuted = ShuffledGaussian(
        louder, 1.0, 1, parties, clones_level(DiscreteGaussian(louder, 1.0, dim=1), parties, 1e-8)
    )
    reach = math.ceil(12 * std)
    law, found = noise(std, reach), np.zeros(EPSILONS.size)
    for threshold in range(-reach, reach):
        zero, one = law[threshold + reach + 1 :].sum(), law[threshold + reach :].sum()
        others = stats.binom.pmf(np.arange(parties), parties - 1, zero)
        first, second = (np.append(others * (1 - p), 0.0) + np.append(0.0, others * p) for p in (zero, one))
        for k, eps in enumerate(EPSILONS):
            for p, q in ((first, second), (second, first)):
                found[k] = max(found[k], np.maximum(p - math.exp(eps) * q, 0.0).sum())
    assert (found <= claimed * (1 + 1e-9) + 1e-12).all()
    assert (found > refuted.curve().delta(EPSILONS)).any()


def test_it_is_clones_and_a_slack_that_is_counted_by_hand() -> None:
    event = ShuffledGaussian(1e4, 1e3, 10, 5000, 0.7)
    outside = float(event.alone.curve().delta(np.array([0.7]))[0])
    pure = DiscreteGaussian(1e4, 1e3, dim=10)
    assert event.alone == pure
    # t for the target's two laws, s for each of the others, both worlds, at most e^e0 times.
    t = outside / (1 + math.exp(0.7))
    s = math.exp(-0.7) * (outside + t)
    assert event.slack == pytest.approx((1 + math.exp(0.7)) * (t + 4999 * s), rel=1e-9)
    clones = Shuffled(0.7, 5000).curve().delta(EPSILONS)
    mine = event.curve().delta(EPSILONS)
    alone = pure.curve().delta(EPSILONS)
    np.testing.assert_allclose(mine, np.minimum(clones + event.slack, alone), rtol=1e-9)


def test_the_printed_theorem_has_more_slack() -> None:
    for level, n in ((0.3, 100), (1.0, 10_000), (3.0, 10**6)):
        event = ShuffledGaussian(1e4, 2e3, 10, n, level)
        outside = float(event.alone.curve().delta(np.array([level]))[0])
        printed = (math.exp(level) + 1) * (1 + math.exp(-level) / 2) * n * outside
        assert event.slack < printed


def test_pure_laws_near_approximate_ones_exist_as_the_proof_says() -> None:
    """Step (1) for noise on whole numbers: where densities are too far apart, both move to the edge."""
    law = noise(3.0, 60)
    p, q = np.append(law, [0.0, 0.0]), np.append([0.0, 0.0], law)
    for level in (0.2, 0.5, 1.0):
        a = math.exp(level)
        high, low = p > a * q, q > a * p
        near, far = p.copy(), q.copy()
        for where, first, second in ((high, near, far), (low, far, near)):
            both = (p + q)[where]
            first[where], second[where] = a * both / (1 + a), both / (1 + a)
        outside = np.maximum(p - a * q, 0.0).sum()
        assert near.sum() == pytest.approx(1.0)
        assert (near <= a * far * (1 + 1e-12)).all()
        assert (far <= a * near * (1 + 1e-12)).all()
        assert np.abs(p - near).sum() / 2 == pytest.approx(outside / (1 + a))


def test_the_level_is_the_least_that_the_slack_allows() -> None:
    alone = DiscreteGaussian(1e5, 1e4, dim=10)
    for parties, slack in ((100, 1e-6), (10_000, 1e-8), (10**6, 1e-10)):
        level = clones_level(alone, parties, slack)

        def slack_at(e0: float, n: int = parties) -> float:
            return ShuffledGaussian(1e5, 1e4, 10, n, e0).slack

        assert slack_at(level) <= slack < slack_at(level * (1 - 1e-6))
    assert clones_level(DiscreteGaussian(1.0, 100.0), 10, 1e-6) == 30.0


def test_many_messages_hide_each_other_and_a_single_one_itself() -> None:
    alone = DiscreteGaussian(1e5, 1e4, dim=10)
    prices = []
    for n in (1, 1000, 10_000, 10**6):
        event = ShuffledGaussian(1e5, 1e4, 10, n, clones_level(alone, n, 5e-8))
        prices.append(epsilon_of(event, 1e-6))
    assert prices[0] == pytest.approx(epsilon_of(alone, 1e-6))
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] < 0.02 * prices[0]
    # Composed: the slacks of the rounds add up.
    event = ShuffledGaussian(1e5, 1e4, 10, 10_000, clones_level(alone, 10_000, 1e-9))
    many = epsilon_of(Repeat(event, 20), 1e-6)
    assert epsilon_of(event, 1e-6) < many < 20 * epsilon_of(event, 5e-8)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"std": 0.0}, "std"),
        ({"sensitivity": -1.0}, "sensitivity"),
        ({"dim": 0}, "dim"),
        ({"parties": 0}, "parties"),
        ({"local_epsilon": 31.0}, "local_epsilon"),
        ({"neighbours": Neighbours(Relation.ADD_REMOVE)}, "replace-one"),
        ({"neighbours": Neighbours(part=Part.SENSITIVE)}, "hides nobody"),
    ],
)
def test_what_has_no_price_is_refused(fields: dict[str, object], message: str) -> None:
    good: dict[str, object] = {
        "std": 2.0,
        "sensitivity": 1.0,
        "dim": 3,
        "parties": 10,
        "local_epsilon": 1.0,
    }
    with pytest.raises(ParameterError, match=message):
        ShuffledGaussian(**{**good, **fields})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="slack"):
        clones_level(DiscreteGaussian(2.0, 1.0), 10, 0.0)
