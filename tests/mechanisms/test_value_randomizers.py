"""Randomizers of one of k values: levels as sampled, laws, attacks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tacit.audits import audit_randomizer
from tacit.errors import ParameterError
from tacit.mechanisms import (
    HadamardRandomizer,
    SkewedResponse,
    SubsetRandomizer,
    UnaryRandomizer,
    lie_threshold,
    sampled_level,
)
from tacit.mechanisms.bernoulli import draw_below, exp_bounds
from tacit.mechanisms.subset_selection import from_bits, one_by_one
from tacit.numerics import binary_entropy, hadamard_entries, subset_size
from tacit.privacy import PureDP
from tests.statistics import FALSE_ALARM

WORD = 2**64
EPSILONS = [2.0**-29, 1e-3, 0.5, 1.0, 4.0, 30.0]


def at_most_e(ratio: Fraction, epsilon: float) -> bool:
    """Whether a ratio is at most e^epsilon, in whole numbers."""
    low, _ = exp_bounds(Fraction(epsilon), 256)
    return ratio * low <= 1 << 256


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("random_bits", [1e-9, 1e-3, 0.3, 0.7, 0.999, 1.0])
def test_both_ratios_of_a_skewed_response_keep_the_level(epsilon: float, random_bits: float) -> None:
    response = SkewedResponse(epsilon, random_bits)
    low, high = response.thresholds
    assert 0 < low <= high < WORD
    assert at_most_e(Fraction(high, low), epsilon)
    assert at_most_e(Fraction(WORD - low, WORD - high), epsilon)
    assert response.level <= epsilon
    assert math.log1p(Fraction(high - low, low)) <= response.level * (1 + 1e-15)
    full = binary_entropy(float(special.expit(-epsilon)))
    assert response.entropy_bits <= random_bits
    assert response.entropy_bits <= full * (1 + 2e-6)
    if random_bits > 1e-3 and epsilon < 20:
        assert response.entropy_bits >= min(random_bits, full) * (1 - 1e-9)
        assert response.level >= epsilon * (1 - 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "random_bits", "q"),
    [(1.0, 1.0, 0.731058579), (1.0, 0.7, 0.189297705), (1.0, 0.1, 0.012986862), (0.5, 1.0, 0.622459331)],
)
def test_the_published_probability(epsilon: float, random_bits: float, q: float) -> None:
    response = SkewedResponse(epsilon, random_bits)
    assert response.one_prob == pytest.approx(q, abs=6e-10)
    assert response.zero_prob == pytest.approx(q * math.exp(-epsilon), abs=6e-10)


def test_below_the_threshold_a_key_needs_more_bits_than_the_answer() -> None:
    # A key that gives both answers at once has three values: its entropy exceeds what Theorem 7.3.2 allows.
    response = SkewedResponse(1.0, 0.5)
    low, high = response.zero_prob, response.one_prob
    key = [low, high - low, 1 - high]
    assert -sum(p * math.log2(p) for p in key) > 0.5 + 0.1
    assert response.entropy_bits == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("values", [2, 3, 50])
def test_levels_as_sampled(epsilon: float, values: int) -> None:
    w = subset_size(values, epsilon)
    for k in (Fraction(values), Fraction(values, w)):
        lie = Fraction(lie_threshold(epsilon, k), WORD)
        assert at_most_e((1 - lie) * (k - 1) / lie, epsilon)
        assert sampled_level(epsilon, k) <= epsilon
        assert sampled_level(epsilon, k) >= epsilon * (1 - 1e-6)
    for symmetric in (False, True):
        low, high = UnaryRandomizer(epsilon, values, symmetric).thresholds
        ratio = Fraction(high, WORD - high) * Fraction(WORD - low, low)
        assert at_most_e(ratio, epsilon)
    # Symmetric answers at the whole level, as a printed formula for their randomness has them, cost twice it.
    lies = Fraction(lie_threshold(epsilon), WORD)
    assert not at_most_e(((1 - lies) / lies) ** 2, 1.9 * epsilon)


RANDOMIZERS: list[Callable[[float, int], Any]] = [
    HadamardRandomizer,
    SubsetRandomizer,
    UnaryRandomizer,
    lambda epsilon, values: UnaryRandomizer(epsilon, values, symmetric=True),
]


def reports_of(randomizer: Any) -> list[Any]:
    """Return all reports of a randomizer."""
    if isinstance(randomizer, HadamardRandomizer):
        return list(range(randomizer.symbols))
    sets = [np.array(one, dtype=bool) for one in itertools.product((0, 1), repeat=randomizer.values)]
    if isinstance(randomizer, SubsetRandomizer):
        return [one for one in sets if one.sum() == randomizer.size]
    return sets


def number_of(reports: Any) -> Any:
    """Return reports as whole numbers."""
    if reports.ndim == 1:
        return reports
    return reports @ (1 << np.arange(reports.shape[1])[::-1])


@pytest.mark.parametrize("make", RANDOMIZERS)
@pytest.mark.parametrize(("epsilon", "values"), [(0.4, 5), (1.0, 3), (2.5, 4)])
def test_reports_follow_an_enumerated_law_of_the_level(
    make: Callable[[float, int], Any], epsilon: float, values: int
) -> None:
    randomizer = make(epsilon, values)
    reports = reports_of(randomizer)
    logs = np.array([[randomizer.log_pmf(report, x) for report in reports] for x in range(values)])
    assert np.exp(logs).sum(axis=1) == pytest.approx(np.ones(values), rel=1e-13)
    assert (logs.max(axis=0) - logs.min(axis=0)).max() == pytest.approx(epsilon, rel=1e-12)
    places = number_of(np.array(reports))
    n = 40_000
    for held in (0, values - 1):
        drawn = number_of(randomizer.sample(np.full(n, held), np.random.default_rng(held + 3)))
        seen = np.bincount(drawn, minlength=int(places.max()) + 1)[places]
        assert stats.chisquare(seen, n * np.exp(logs[held])).pvalue > FALSE_ALARM
        other = make(1.3 * epsilon, values)  # power: another level is seen
        if [*map(str, reports_of(other))] == [*map(str, reports)]:
            wrong = np.exp([other.log_pmf(report, held) for report in reports])
            assert stats.chisquare(seen, n * wrong / wrong.sum()).pvalue < FALSE_ALARM


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("make", RANDOMIZERS)
def test_attacks_stay_below_the_claim_and_catch_half_the_noise(
    make: Callable[[float, int], Any], broken: bool
) -> None:
    values = 200
    randomizer = make(2.0 if broken else 1.0, values)

    def score(reports: Any) -> Any:
        if isinstance(randomizer, HadamardRandomizer):
            block, place = np.divmod(reports, randomizer.shape[1])
            (a, b), (r, s) = randomizer.place(np.array([0, 199]))
            return (block == a) * hadamard_entries(r, place) - 1.0 * (block == b) * hadamard_entries(s, place)
        return reports[:, 0].astype(float) - reports[:, 199]

    found = audit_randomizer(
        lambda value, size, rng: randomizer.sample(np.full(size, value), rng),
        score,
        (PureDP(1.0), 0.0),
        inputs=(0, 199),
        runs=20_000,
        confidence=1 - FALSE_ALARM,
        rng=np.random.default_rng(9),
    )
    assert found.refuted == broken
    assert found.empirical_epsilon_lower > 0.5


def test_bits_below_a_threshold_are_exact() -> None:
    rng = np.random.default_rng(5)
    for threshold in (0, 1 << 56, WORD // 3, WORD - 1):
        ones = int(draw_below(threshold, 100_001, rng).sum())
        assert stats.binomtest(ones, 100_001, threshold / WORD).pvalue > FALSE_ALARM

    class Words(np.random.Generator):
        """Words whose first byte ties with the threshold."""

        def integers(self, *args: Any, **kwargs: Any) -> Any:
            first = np.full(1, 0x0707070707070707, dtype=np.uint64)
            return first if kwargs["size"] == 1 else np.array([5, 6, 7, 8], dtype=np.uint64) << np.uint64(8)

    threshold = (7 << 56) + 7
    assert draw_below(threshold, 4, Words(np.random.PCG64(0))).tolist() == [True, True, False, False]


@pytest.mark.parametrize("draw", [one_by_one, from_bits])
def test_all_subsets_of_a_size_are_equally_likely(draw: Callable[..., Any]) -> None:
    drawn = draw(9, 5, 40_000, np.random.default_rng(6))
    assert (drawn.sum(axis=1) == 5).all()
    seen = np.bincount(number_of(drawn), minlength=2**9)
    assert stats.chisquare(seen[seen > 0]).pvalue > FALSE_ALARM
    assert np.count_nonzero(seen) == math.comb(9, 5)
    large = draw(2000, 700, 3, np.random.default_rng(7))
    assert large.sum(axis=1).tolist() == [700] * 3


@pytest.mark.parametrize("make", RANDOMIZERS)
def test_bad_input_is_refused(make: Callable[[float, int], Any]) -> None:
    rng = np.random.default_rng(0)
    for epsilon in (0.0, -1.0, math.nan, 31.0):
        with pytest.raises(ParameterError, match="epsilon"):
            make(epsilon, 4)
    with pytest.raises(ParameterError, match="must be a whole number from 2"):
        make(1.0, 1)
    with pytest.raises(ParameterError, match="held must be from 0 to 3"):
        make(1.0, 4).sample(np.array([4]), rng)
    for bits in (0.0, 1.1, math.nan, -1.0):
        with pytest.raises(ParameterError, match=r"random_bits must be in \[1e-9, 1\]"):
            SkewedResponse(1.0, bits)
    with pytest.raises(ParameterError, match="values must be above 1"):
        lie_threshold(1.0, Fraction(1))
