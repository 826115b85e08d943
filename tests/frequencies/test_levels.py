"""Several analysts: published numbers, and every coalition's view by enumeration."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.frequencies import LevelledHadamard, OneTimeKeys, SeparateLevels, estimate_levels
from tacit.mechanisms import lie_threshold
from tacit.privacy import pure_epsilon_of, verify
from tacit.randomness import secure, simulated
from tests.statistics import z_bound

TABLE = [
    ((1, 0.5), 1.626574, 1.796228),
    ((1, 0.9), 1.098124, 1.707433),
    ((1, 0.99), 0.879656, 1.682712),
    ((1, 0.75), 1.346654, 1.745214),
    ((1, 0.25), 1.787058, 1.828758),
    ((1, 0.1), 1.831494, 1.838140),
    ((1, 0.01), 1.839857, 1.839924),
    ((2, 1, 0.5), 2.028798, 2.323293),
]
# Figure 7.10: of analysts 1 to d, epsilon_1 = 2.
FIGURE = [
    (0.527065, 0.527065),
    (0.720141, 1.116131),
    (0.847945, 1.737034),
    (0.986900, 2.390101),
    (1.138065, 3.075455),
    (1.302647, 3.792994),
    (1.482028, 4.542363),
    (1.677822, 5.322937),
    (1.891938, 6.133803),
    (2.126675, 6.973744),
]


@pytest.mark.parametrize(("levels", "ours", "trivial"), TABLE)
def test_random_bits(levels: tuple[float, ...], ours: float, trivial: float) -> None:
    assert LevelledHadamard(4, levels).random_bits == pytest.approx(ours, abs=1e-6)
    assert SeparateLevels(4, levels).random_bits == pytest.approx(trivial, abs=1e-6)


def test_flips_of_the_table() -> None:
    scheme = LevelledHadamard(4, (2, 1, 0.5))
    assert scheme.noises == pytest.approx((0.11920292, 0.26894142, 0.37754067), abs=1e-8)
    assert scheme.flip_probs == pytest.approx((0.11920292, 0.19661193, 0.23500371), abs=1e-8)
    assert LevelledHadamard(4, (1, 0.99)).flip_probs[1] == pytest.approx(0.00426441, abs=1e-8)
    assert LevelledHadamard(4, (1, 0.9)).flip_probs[1] == pytest.approx(0.0435151, abs=1e-7)
    # Where 1 - 2 z would lose its digits: 1 - 2 q is a ratio of hyperbolic tangents.
    tiny = LevelledHadamard(4, (2e-6, 1e-6))
    assert 1 - 2 * tiny.flip_probs[1] == pytest.approx(0.5, rel=1e-9)


def test_no_flip_is_rounded_down() -> None:
    # In exact fractions: a word less for any analyst would be a higher level than its own.
    for levels in ((2.0, 1.0, 0.5), (1.0, 0.99), (2e-6, 1e-6), tuple(3.0 / j for j in range(1, 20))):
        before, words = Fraction(0), LevelledHadamard(4, levels)._law[0]
        for level, word in zip(levels, words, strict=True):
            after = [before + Fraction(w, 2**64) * (1 - 2 * before) for w in (word - 1, word)]
            assert after[0] < Fraction(lie_threshold(level), 2**64) <= after[1]
            before = after[1]


def test_figure_7_10_goes_on_at_1_8() -> None:
    for d, (ours, trivial) in enumerate(FIGURE, start=1):
        levels = (2.0, *(2 - 0.1 * j for j in range(2, d + 1)))
        assert LevelledHadamard(4, levels).random_bits == pytest.approx(ours, abs=1e-6)
        assert SeparateLevels(4, levels).random_bits == pytest.approx(trivial, abs=1e-6)
    # Evenly spaced levels, as the text may be read, are another curve.
    for d, ours, trivial in ((2, 0.635294, 1.084801), (5, 1.019648, 2.947836), (10, 1.924687, 6.691538)):
        even = tuple(2 - 0.1 * j for j in range(d))
        assert LevelledHadamard(4, even).random_bits == pytest.approx(ours, abs=1e-6)
        assert SeparateLevels(4, even).random_bits == pytest.approx(trivial, abs=1e-6)


def _views(scheme: LevelledHadamard, bit: int, members: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Exact law of the public bit and the keys of some analysts, from all flips that may be drawn."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    words, d = scheme._law[0], len(scheme.epsilons)
    for flips in itertools.product((0, 1), repeat=d):
        chance = math.prod(
            Fraction(word if flip else 2**64 - word, 2**64) for word, flip in zip(words, flips, strict=True)
        )
        keys = [sum(flips[j + 1 :]) % 2 for j in range(d)]
        law[(bit ^ sum(flips) % 2, *(keys[j] for j in members))] += chance
    return law


@pytest.mark.parametrize("levels", [(2.0, 1.0, 0.5), (1.0,), (3.0, 2.9, 0.1, 0.05)])
def test_every_coalition_learns_what_its_most_trusted_member_does(levels: tuple[float, ...]) -> None:
    scheme, d = LevelledHadamard(5, levels), len(levels)
    for size in range(d + 1):
        for members in itertools.combinations(range(d), size):
            one, zero = (_views(scheme, bit, members) for bit in (1, 0))
            ratio = max(max(one[v] / zero[v], zero[v] / one[v]) for v in one)
            exact = math.log1p(float(ratio - 1))
            claim = scheme.coalition_level(members)
            assert exact <= claim <= levels[min(members, default=d - 1)]
            assert exact == pytest.approx(claim, rel=1e-12)
            assert pure_epsilon_of(scheme.event(members)) == claim
            verify(scheme.price(members))


def test_coalitions_of_the_example() -> None:
    scheme = LevelledHadamard(4, (2.0, 1.0, 0.5))
    expected = {(): 0.5, (2,): 0.5, (1,): 1, (0,): 2, (0, 1): 2, (1, 2): 1, (0, 1, 2): 2}
    for members, level in expected.items():
        assert scheme.coalition_level(members) == pytest.approx(level, rel=1e-12)
    baseline = SeparateLevels(4, (2.0, 1.0, 0.5))
    assert pure_epsilon_of(baseline.event([0, 1, 2])) == pytest.approx(3.5, rel=1e-12)
    assert baseline.coalition_level([]) == 0
    with pytest.raises(ParameterError, match="members"):
        baseline.event([])


def test_half_of_the_flips_are_too_few() -> None:
    """Negative control: the enumeration sees a public bit whose last flip is half as likely."""
    scheme = LevelledHadamard(4, (2.0, 0.5))
    words, flipped = scheme._law
    scheme.__dict__["_law"] = ((words[0], words[1] // 2), flipped)
    one, zero = (_views(scheme, bit, ()) for bit in (1, 0))
    assert math.log(max(one[v] / zero[v] for v in one)) > 0.5 * 1.5


def test_views_follow_each_analysts_own_channel() -> None:
    scheme, n, rng = LevelledHadamard(3, (2.0, 1.0, 0.5)), 40_000, np.random.default_rng(5)
    messages, keys = scheme.publish(np.full(n, 2), rng)
    for j, key in enumerate((*keys, None)):
        counts = scheme.oracles[j].aggregate(scheme.view(j, messages, key)).values
        law = scheme.oracles[j].channel_matrix()[2]
        assert np.all(np.abs(counts / n - law) <= z_bound(24) * np.sqrt(law * (1 - law) / n))


def test_a_key_is_of_one_analyst_of_one_scheme() -> None:
    """With another's key the bits would have another level than the estimate takes off."""
    scheme, rng = LevelledHadamard(3, (2.0, 1.0, 0.5)), np.random.default_rng(5)
    messages, keys = scheme.publish([0, 1, 2], rng)
    with pytest.raises(ParameterError, match="this analyst"):
        scheme.view(0, messages, keys[1])
    with pytest.raises(ParameterError, match="another law"):
        LevelledHadamard(3, (2.0, 1.0)).view(0, messages, keys[0])
    kept = OneTimeKeys.from_bytes(keys[0].to_bytes(), 2, 3)
    np.testing.assert_array_equal(scheme.view(0, messages, kept), scheme.view(0, messages, keys[0]))


def test_published_messages_travel_with_their_levels() -> None:
    scheme, rng = LevelledHadamard(20, (2.0, 1.0)), np.random.default_rng(5)
    messages, _ = scheme.publish(np.arange(20), rng)
    data = scheme.to_bytes(messages)
    assert len(data) == 20 * (3 + 1)
    np.testing.assert_array_equal(scheme.from_bytes(data), messages)
    # Read at one level alone, the bit would be taken for another's.
    for reader in (scheme.oracles[-1], LevelledHadamard(20, (2.0, 0.9)), LevelledHadamard(20, (3.0, 1.0))):
        with pytest.raises(ParameterError, match="another"):
            reader.from_bytes(data)
    for forged in (data[:-1], data[:3] + b"\x01" + data[4:], data[:3] + b"\xff" + data[4:]):
        with pytest.raises(ParameterError, match=r"multiple|column 0|alphabet"):
            scheme.from_bytes(forged)
    with pytest.raises(ParameterError, match="column 0"):
        scheme.to_bytes([1])


def test_each_analyst_estimates_with_its_own_error_and_guarantee() -> None:
    values, scheme = (
        np.repeat([0, 1, 2, 3], [9000, 6000, 3000, 2000]),
        LevelledHadamard.of_levels(4, [0.5, 2, 1]),
    )
    found = estimate_levels(values, scheme, rng=simulated(3, "levels"))
    f = np.bincount(values) / values.size
    for one, level in zip(found, (2.0, 1.0, 0.5), strict=True):
        error = np.abs(one.estimates - f)
        assert np.all(error <= z_bound(12) * np.sqrt(scheme.oracles[0].k * one.mse / 4))
        assert np.all((one.band.lower <= f) & (f <= one.band.upper))
        assert (one.epsilon, one.guarantee.epsilon, one.guarantee.simulated) == (level, level, True)
        verify(one.guarantee)
    assert not estimate_levels(values, scheme, rng=secure())[0].guarantee.simulated


def test_what_is_refused() -> None:
    for levels in ((1.0, 2.0), (1.0, 1.0), (), (1.0, 0.0), (1.0, -1.0), (math.nan,)):
        with pytest.raises(ParameterError, match="epsilon"):
            LevelledHadamard(4, levels)
    with pytest.raises(ParameterError, match="decrease strictly"):
        LevelledHadamard.of_levels(4, [1, 0.5, 1.0])
    scheme, rng = LevelledHadamard(4, (2.0, 1.0)), np.random.default_rng(1)
    with pytest.raises(ParameterError, match="values"):
        scheme.publish([4], rng)
    messages, (key,) = scheme.publish([0, 1], rng)
    for analyst, given in (
        (0, None),
        (1, key),
        (0, OneTimeKeys([0, 1], 3)),
        (0, OneTimeKeys([0], 2)),
        (0, OneTimeKeys([0, 1], 2)),  # of nobody
        (0, [0, 1]),
        (2, None),
    ):
        with pytest.raises(ParameterError, match=r"key|analyst"):
            scheme.view(analyst, messages, given)  # type: ignore[arg-type]
    for forged in ([0, 1], [[4, 5]], [2, 9]):
        with pytest.raises(ParameterError, match=r"column 0|shape|messages"):
            scheme.view(1, forged)
    odd: tuple[Any, ...] = (5.0, "21", ["a", 1.0], [math.nan, 1.0])
    for given in odd:
        with pytest.raises(ParameterError, match=r"levels|epsilon"):
            LevelledHadamard.of_levels(4, given)
    with pytest.raises(ParameterError, match="several analysts"):
        scheme.coalition_level(1)  # type: ignore[arg-type]
    key.wipe()
    with pytest.raises(ParameterError, match="wiped"):
        scheme.view(0, messages, key)
