from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from scipy import special, stats

from tacit.errors import ParameterError
from tacit.mechanisms import bernoulli
from tacit.mechanisms.bernoulli import exp_bounds
from tacit.mechanisms.blocks import Blocks, bounds_of_blocks, width_bits
from tacit.mechanisms.discrete_gaussian import (
    _compared,
    convolution_slack,
    discrete_gaussian_log_pmf,
    discrete_gaussian_variance,
    sample_discrete_gaussian,
)
from tacit.numerics import Array, IntArray
from tests.mechanisms.laws import chi_square_pvalue, low_bits_pvalue
from tests.statistics import FALSE_ALARM

STDS = [0.3, 0.39, 0.41, 1.0, 3.7, 50.0, 1000.5]


def support(std: float) -> IntArray:
    reach = math.ceil(12 * std) + 4
    return np.arange(-reach, reach + 1)


@pytest.mark.parametrize("std", STDS)
def test_the_law_sums_to_one_and_has_the_stated_variance(std: float) -> None:
    x = support(std)
    pmf = np.exp(discrete_gaussian_log_pmf(x, std))
    assert pmf.sum() == pytest.approx(1.0, rel=1e-13)
    assert (pmf * x**2).sum() == pytest.approx(discrete_gaussian_variance(std), rel=1e-12)
    np.testing.assert_allclose(
        pmf[1:] / pmf[:-1], np.exp((x[:-1] ** 2 - x[1:] ** 2) / (2 * std**2)), rtol=1e-10
    )


def test_the_law_at_the_ends_of_the_range() -> None:
    assert discrete_gaussian_log_pmf(np.array([0, 1]), 0.01).tolist() == [0.0, -5000.0]
    assert float(discrete_gaussian_log_pmf(0, 1e12)) == pytest.approx(float(stats.norm.logpdf(0, scale=1e12)))
    assert discrete_gaussian_variance(2.0**-20) == 0.0
    assert discrete_gaussian_variance(1e12) == pytest.approx(1e24)


def test_the_variance_is_below_its_parameter_by_no_more_than_stated() -> None:
    for std in (0.4, 0.5, 0.7, 1.0, 1.2):
        gap = std**2 - discrete_gaussian_variance(std)
        assert 0 <= gap <= 80 * std**4 * math.exp(-2 * (math.pi * std) ** 2)


@pytest.mark.parametrize("std", STDS)
def test_the_sampler_follows_the_enumerated_law(std: float) -> None:
    x = support(std)
    rng = np.random.default_rng(1)
    right, weak = (sample_discrete_gaussian(s, 400_000, rng) for s in (std, std * 1.05))
    law = discrete_gaussian_log_pmf(x, std)
    assert chi_square_pvalue(right, x, law) > FALSE_ALARM
    assert chi_square_pvalue(weak, x, law) < FALSE_ALARM  # negative control


@pytest.mark.parametrize("std", [1e5, Fraction(10**9, 3), 1e12, 2.0**55])
def test_large_stds_have_the_continuous_shape_and_all_their_bits(std: float | Fraction) -> None:
    samples = sample_discrete_gaussian(std, 200_000, np.random.default_rng(2))
    # Against the continuous law the distribution function is off by less than 1 / std, far below the
    # resolution.
    assert stats.kstest(samples / float(std), "norm").pvalue > FALSE_ALARM / 2
    assert low_bits_pvalue(samples) > FALSE_ALARM / 2
    assert stats.kstest(samples / float(std) * 1.04, "norm").pvalue < FALSE_ALARM  # negative control


def test_shapes_dtype_and_the_smallest_std() -> None:
    rng = np.random.default_rng(3)
    sizes: list[int | tuple[int, ...]] = [0, 1, (2, 3), ()]
    for size in sizes:
        samples = sample_discrete_gaussian(3.0, size, rng)
        assert samples.shape == (size if isinstance(size, tuple) else (size,))
        assert samples.dtype == np.int64
    assert not sample_discrete_gaussian(0.01, 1000, rng).any()
    assert not sample_discrete_gaussian(2.0**-20, 10, rng).any()


WIDTHS = [0.7, 63.9, 64.0, 1000.5, 1e6, Fraction(10**15, 7), 2.0**55]


def exact_bounds(std: Fraction, blocks: int) -> list[Decimal]:
    """P(an earlier block) with 100 digits, each weight by itself."""
    context = Context(prec=100)
    step = Fraction(1 << width_bits(std)) / std
    weights: list[Decimal] = []
    q = 0
    while not weights or weights[-1] > Decimal(10) ** -95:
        gamma = (q * step) ** 2 / 2
        weights.append(context.exp(-context.divide(Decimal(gamma.numerator), Decimal(gamma.denominator))))
        q += 1
    total, below = sum(weights), [Decimal(0)]
    with localcontext(context):
        for weight in weights[: blocks - 1]:
            below.append(below[-1] + weight / total)
    return below


@pytest.mark.parametrize("std", [2.0**-20, 0.3, *WIDTHS])
def test_bounds_of_blocks_are_enclosed(std: float | Fraction) -> None:
    low, high, _ = bounds_of_blocks(Fraction(std), 160)
    with localcontext(Context(prec=100)):
        for below, above, exact in zip(low, high, exact_bounds(Fraction(std), len(low)), strict=False):
            assert below <= exact * 2**160 <= above <= below + 2


@pytest.mark.parametrize("std", [0.3, *WIDTHS])
def test_a_block_is_decided_where_32_bits_tell_and_nowhere_else(std: float | Fraction) -> None:
    blocks, (low, high, _) = Blocks.of(Fraction(std)), bounds_of_blocks(Fraction(std), 160)
    near = [(bound >> 128) + k for bound in low for k in (-2, -1, 0, 1, 2)]
    drawn = np.random.default_rng(6).integers(0, 2**32, size=3000).tolist()
    heads = [head for head in [*near, *drawn, 0, 2**32 - 1] if 0 <= head < 2**32]
    quotients, undecided = blocks.quotients(np.array(heads, dtype=np.uint32))
    for index, (head, quotient) in enumerate(zip(heads, quotients.tolist(), strict=True)):
        first, last = head << 128, (head + 1) << 128
        if index not in undecided:
            assert high[quotient] <= first
            assert last <= low[quotient + 1]
        else:  # a bound is in the interval, or next to it
            assert any(head - 1 <= bound >> 128 <= head for bound in low)


class Replayed:
    """Words that were chosen, in the place of a generator."""

    bit_generator = None

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def integers(self, low: int, high: int, *, size: int, dtype: Any, endpoint: bool) -> Array:
        return np.array([self.words.pop(0) for _ in range(size)], dtype=dtype)


@pytest.mark.parametrize("std", [0.3, 63.9, 1e6])
def test_more_bits_settle_what_the_table_leaves_open(std: float) -> None:
    blocks, (low, _, _) = Blocks.of(Fraction(std)), bounds_of_blocks(Fraction(std), 224)
    for bound in range(1, min(len(low), 200)):
        head = low[bound] >> 192
        if head == 2**32 - 1:
            break
        for words in ([0], [2**64 - 1]):
            rng: Any = Replayed(*words)
            found = blocks.exact_quotient(head, rng)
            at = (head << 192) + (words[0] << 128)
            assert low[found] <= at
            assert at + 2**128 <= low[found + 1]
            assert not rng.words
        # The number itself, as far as 96 bits and then one below or above it.
        middle = (low[bound] >> 128) & (2**64 - 1)
        for last, expected in ((0, bound - 1), (2**64 - 1, bound)):
            assert blocks.exact_quotient(head, cast(Any, Replayed(middle, last))) == expected


@pytest.mark.parametrize("std", [0.7, 3.7, 70.5, 300.0])
def test_the_law_is_the_same_where_nothing_is_decided_in_floating_point(
    std: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_(self: Blocks, heads: Array) -> tuple[Array, Array]:
        return np.zeros(heads.size, dtype=np.int64), np.arange(heads.size)

    def undecided(words: Array, gamma: Array, error: Any) -> tuple[Array, Array]:
        return np.zeros(words.size, dtype=np.bool_), np.ones(words.size, dtype=np.bool_)

    def steep(self: Blocks, quotients: Array, offsets: Array) -> Array:
        return np.full(quotients.size, 2.0)

    monkeypatch.setattr(Blocks, "quotients", open_)
    monkeypatch.setattr(Blocks, "exponents", steep)  # so that no bound decides without exp
    monkeypatch.setattr(bernoulli, "decide_below_exp", undecided)
    samples = sample_discrete_gaussian(std, 20_000, np.random.default_rng(7))
    x = support(std)
    assert chi_square_pvalue(samples, x, discrete_gaussian_log_pmf(x, std)) > FALSE_ALARM


@pytest.mark.parametrize("bits", [8, 14, 30, 39])
def test_what_is_decided_without_an_exp_is_decided_rightly(bits: int) -> None:
    for gamma in (0.0, 1e-9, 1e-3, 0.02, 0.3, 0.9, 1.5, 1.9999, 2.5):
        low, high = exp_bounds(Fraction(gamma), 200)
        near = [
            math.floor(2**bits * p) + k for p in (1 - gamma, 1 - gamma + gamma**2 / 2) for k in range(-3, 4)
        ]
        heads = [head for head in [*near, 0, high >> (200 - bits), 2**bits - 1] if 0 <= head < 2**bits]
        unclear, late = _compared(np.array(heads, dtype=np.uint64), np.full(len(heads), gamma), bits)
        for index, head in enumerate(heads):
            if index not in unclear:
                assert (head + 1) << (200 - bits) <= low  # whatever the other bits are, it is below
        for index, above in zip(unclear.tolist(), late.tolist(), strict=True):
            assert not above or heads[index] << (200 - bits) >= high


@pytest.mark.parametrize("std", WIDTHS)
def test_the_error_bound_of_the_exponent_holds(std: float | Fraction) -> None:
    blocks = Blocks.of(Fraction(std))
    rng = np.random.default_rng(4)
    quotients = np.concatenate([rng.integers(0, 1200, 300), [0, 0, 1, 1200]])
    offsets = rng.integers(0, 2**blocks.shift, 304)
    offsets[-4:] = [0, 2**blocks.shift - 1, 2**blocks.shift - 1, 2**blocks.shift - 1]
    for q, r, gamma in zip(
        quotients.tolist(), offsets.tolist(), blocks.exponents(quotients, offsets).tolist(), strict=True
    ):
        exact = blocks.exact_exponent(q, r)
        first = q << blocks.shift
        assert exact == (Fraction((first + r) ** 2) - first**2) / (2 * Fraction(std) ** 2)
        assert abs(Fraction(gamma) - exact) <= exact * Fraction(1, 2**50)


def test_few_candidates_are_lost() -> None:
    """Or the table would be of another law than the offsets go with."""
    for std, least in ((1e6, 0.97), (64.0, 0.95), (5.0, 0.9)):
        blocks = Blocks.of(Fraction(std))
        share = math.sqrt(math.pi / 2) * std / (blocks.total * 2**blocks.shift)
        assert least < share <= 1


@pytest.mark.parametrize("std", [0.0, -1.0, math.nan, math.inf, 2.0**56, 2.0**-21])
def test_a_bad_std_is_refused_before_anything_is_drawn(std: float) -> None:
    rng = np.random.default_rng(5)
    before = rng.bit_generator.state
    with pytest.raises(ParameterError, match="std must be"):
        sample_discrete_gaussian(std, 3, rng)
    with pytest.raises(ParameterError, match="std must be"):
        discrete_gaussian_log_pmf(np.array([0]), std)
    with pytest.raises(ParameterError, match="std must be"):
        discrete_gaussian_variance(std)
    with pytest.raises(ParameterError, match="size must be a whole number >= 0"):
        sample_discrete_gaussian(1.0, -1, rng)
    with pytest.raises(ParameterError, match="x must be integers"):
        discrete_gaussian_log_pmf(np.array([0.5]), 1.0)
    assert rng.bit_generator.state == before


# The convolution lemma: docs/theory/noise.md, section 5.


@pytest.mark.parametrize("tau", [0.25, 0.4, 0.6, 1.0])
def test_slack_is_the_log_ratio_of_the_largest_to_the_smallest_normaliser(tau: float) -> None:
    k = np.arange(-40, 41)
    largest, smallest = (np.exp(-0.5 * ((k - g) / tau) ** 2).sum() for g in (0.0, 0.5))
    assert convolution_slack(tau) == pytest.approx(math.log(largest / smallest), rel=1e-6)


def test_slack_is_negligible_from_three_on_and_never_zero() -> None:
    assert convolution_slack(3.0) < 1e-75
    assert convolution_slack(3.0) >= 4 * math.exp(-18 * math.pi**2)
    assert 0 < convolution_slack(30.0) <= convolution_slack(3.0) < convolution_slack(1.0)


@pytest.mark.parametrize("tau", [0.0, 0.2, math.nan, math.inf])
def test_slack_refuses_a_rounding_without_a_useful_bound(tau: float) -> None:
    with pytest.raises(ParameterError, match="tau must be"):
        convolution_slack(tau)


def composed_log_ratio(tau: float, std: float, centre: float, inner_std: float) -> Array:
    """Log-ratio of the rounded continuous Gaussian to the discrete one, by the trapezoidal rule.

    The integrand is analytic within pi tau**2 of the real line, so a step of 0.005 leaves an error below
    exp(-2 pi * pi tau**2 / 0.005) and rounding only.
    """
    step = 0.005
    g = np.arange(centre - 12 * inner_std, centre + 12 * inner_std, step)
    y = np.arange(math.floor(centre - 6 * std), math.ceil(centre + 6 * std) + 1)
    lattice = np.arange(math.floor(g[0]) - 14, math.ceil(g[-1]) + 15)
    normaliser = np.exp(-0.5 * ((lattice[:, None] - g) / tau) ** 2).sum(axis=0)
    density = stats.norm.pdf(g, loc=centre, scale=inner_std)
    composed = (density * np.exp(-0.5 * ((y[:, None] - g) / tau) ** 2) / normaliser).sum(axis=1) * step
    wide = np.arange(-80, 81)
    target = np.exp(-0.5 * ((y - centre) / std) ** 2) / np.exp(-0.5 * ((wide - centre) / std) ** 2).sum()
    return np.asarray(np.log(composed / target))


@pytest.mark.parametrize("tau", [0.6, 0.8, 1.0])
def test_the_rounded_gaussian_is_the_discrete_one_up_to_the_slack(tau: float) -> None:
    eta, largest = convolution_slack(tau), 0.0
    for factor, centre in product((1.05, 1.2, 2.0, 4.0), (0.0, 0.3, 0.5)):
        std = factor * tau
        gap = np.abs(composed_log_ratio(tau, std, centre, math.sqrt(std**2 - tau**2))).max()
        assert gap <= eta + 1e-11  # rounding of the quadrature
        largest = max(largest, gap)
    assert largest > 0.1 * eta  # the slack is there to be seen
    # Negative control: without taking tau**2 off, the law is another one.
    assert np.abs(composed_log_ratio(tau, 2 * tau, 0.0, 2 * tau)).max() > 10 * eta


def gaussian_delta(mu: float, epsilon: Array) -> Array:
    """Hockey-stick divergence of N(mu, 1) from N(0, 1): Balle and Wang (2018), Theorem 8."""
    first = special.ndtr(mu / 2 - epsilon / mu)
    return np.asarray(first - np.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)))


def discrete_delta(std: float, shift: tuple[int, ...], epsilon: Array) -> Array:
    """Hockey-stick divergence of the law shifted from the law, by enumeration."""
    reach = math.ceil(9 * std) + max(map(abs, shift))
    x = np.arange(-reach, reach + 1)
    here = [discrete_gaussian_log_pmf(x, std)] * len(shift)
    there = [discrete_gaussian_log_pmf(x - s, std) for s in shift]
    p, q = (np.asarray(sum(np.ix_(*parts))).ravel() for parts in (there, here))
    return np.array([np.clip(np.exp(p) - np.exp(e + q), 0.0, None).sum() for e in epsilon])


@pytest.mark.parametrize("std", [4.0, 8.0, 20.0])
@pytest.mark.parametrize("shift", [(1,), (3,), (9,), (1, 1), (3, 4), (5, -1), (2, 0)])
def test_privacy_is_that_of_a_continuous_law_with_less_variance(std: float, shift: tuple[int, ...]) -> None:
    distance = math.hypot(*shift)
    mu = distance / math.sqrt(std**2 - 9)
    slack = len(shift) * convolution_slack(3.0)
    epsilon = np.linspace(0.0, mu**2 / 2 + 4 * mu, 12)
    delta = discrete_delta(std, shift, epsilon)
    bound = math.exp(slack) * gaussian_delta(mu, epsilon - 2 * slack)
    assert np.all(delta <= bound * (1 + 1e-9) + 1e-15)
    assert np.all(delta[:6] > 0)
    # Negative control: the curve of twice the variance is no bound.
    assert np.any(delta > gaussian_delta(distance / (math.sqrt(2) * std), epsilon))


def test_the_continuous_curve_of_the_same_std_is_no_bound() -> None:
    # At std 1 and shift 1, delta(0) is the largest probability of a point.
    epsilon = np.linspace(0.0, 4.0, 81)
    assert np.any(discrete_delta(1.0, (1,), epsilon) > gaussian_delta(1.0, epsilon) * 1.01)
