from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.mechanisms.bernoulli import draw_words, exp_bounds
from tacit.mechanisms.discrete_laplace import (
    block_width,
    discrete_laplace_log_pmf,
    discrete_laplace_variance,
    fill,
    geometric_quotients,
    propose,
    sample_discrete_laplace,
)
from tests.mechanisms.laws import chi_square_pvalue, low_bits_pvalue, precise_minus_log
from tests.statistics import FALSE_ALARM, z_bound

SCALES = [0.3, 1.0, 7.5, 300.0]


def support(scale: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    reach = math.ceil(40 * scale) + 1
    return np.arange(-reach, reach + 1)


@pytest.mark.parametrize("scale", SCALES)
def test_the_law_sums_to_one_and_has_the_stated_variance(scale: float) -> None:
    x = support(scale)
    pmf = np.exp(discrete_laplace_log_pmf(x, scale))
    assert pmf.sum() == pytest.approx(1.0, rel=1e-12)
    assert (pmf * x**2).sum() == pytest.approx(discrete_laplace_variance(scale), rel=1e-10)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("shift", [1, 3])
def test_pure_privacy_is_met_and_tight_by_enumeration(scale: float, shift: int) -> None:
    x = np.arange(-1000, 1001)
    loss = np.abs(discrete_laplace_log_pmf(x, scale) - discrete_laplace_log_pmf(x - shift, scale)).max()
    assert loss <= shift / scale + 1e-9
    assert loss >= shift / scale - 1e-9


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(0.7), Fraction(200, 3), Fraction(255)])
def test_quotients_are_exact(scale: Fraction) -> None:
    rng = np.random.default_rng(1)
    edges = np.array([0, 1, 5, 2**20, 2**40 - 1, 2**40, 2**63, 2**64 - 2, 2**64 - 1], dtype=np.uint64)
    # One step of 2**-64 away from where the quotient changes, float64 alone would be wrong half of the time.
    ties = [exp_bounds(count / scale, 64)[0] + step for count in range(1, 60) for step in (-2, -1, 0, 1, 2)]
    near = np.array([word for word in ties if 0 <= word < 2**64], dtype=np.uint64)
    words = np.concatenate([edges, near, draw_words(1500, rng), draw_words(200, rng) >> np.uint64(30)])
    quotients = geometric_quotients(words, scale, rng)
    factor = Decimal(scale.numerator) / Decimal(scale.denominator)
    for word, quotient in zip(words.tolist(), quotients.tolist(), strict=True):
        # The number lies in [word, word + 1) / 2**64; its other bits are not to be seen from here.
        assert quotient >= math.floor(factor * precise_minus_log(word + 1, 64) - Decimal("1e-40"))
        if word:
            assert quotient <= math.floor(factor * precise_minus_log(word, 64) + Decimal("1e-40"))


@pytest.mark.parametrize("count", [1, 40, 1700, 2500])
def test_a_tie_is_settled_by_further_bits(count: int) -> None:
    scale = Fraction(200, 3)
    low, _ = exp_bounds(count / scale, 128)
    words = np.full(300, low >> 64, dtype=np.uint64)
    quotients = geometric_quotients(words, scale, np.random.default_rng(10))
    above = stats.binomtest(int((quotients == count).sum()), 300, float(Fraction(low % 2**64, 2**64)))
    assert set(quotients.tolist()) == {count - 1, count}
    assert above.pvalue > FALSE_ALARM


def test_numpy_log_is_as_accurate_as_the_quotients_assume() -> None:
    words = draw_words(3000, np.random.default_rng(2)) >> np.arange(3000, dtype=np.uint64) % 24
    for word in words[words >= 2**40].tolist():
        # The word is rounded to 53 bits, the half is added, and the logarithm may be off by 32 units.
        got = float(-np.log((np.float64(word) + 0.5) * 2.0**-64))
        exact = precise_minus_log(2 * word + 1, 65)
        assert abs(Decimal(got) - exact) <= Decimal(2.0**-52) + Decimal(2.0**-47) * exact


@pytest.mark.parametrize("scale", [0.5, 127.0, 128.0, 1000.0, 2.0**55])
def test_blocks_keep_quotients_small_and_offsets_likely(scale: float) -> None:
    width = block_width(Fraction(scale))
    assert width == 1 << width.bit_length() - 1
    assert Fraction(scale) / width < 256
    assert width == 1 or width <= Fraction(scale) / 128


def test_offsets_fill_the_block() -> None:
    scale = Fraction(128 * 16)
    candidates = propose(20_000, scale, np.random.default_rng(3))
    assert block_width(scale) == 16
    assert stats.chisquare(np.bincount(candidates.offset, minlength=16)).pvalue > FALSE_ALARM
    np.testing.assert_array_equal(candidates.magnitude % 16, candidates.offset)


@pytest.mark.parametrize("scale", SCALES)
def test_the_sampler_follows_the_enumerated_law(scale: float) -> None:
    x = support(scale)
    rng = np.random.default_rng(4)
    right, weak = (sample_discrete_laplace(s, 200_000, rng) for s in (scale, scale * 1.05))
    law = discrete_laplace_log_pmf(x, scale)
    assert chi_square_pvalue(right, x, law) > FALSE_ALARM
    assert chi_square_pvalue(weak, x, law) < FALSE_ALARM  # negative control


def test_offsets_lean_towards_zero_as_the_law_does() -> None:
    scale, trials = 2048, 16_000_000
    offsets = np.abs(sample_discrete_laplace(scale, trials, np.random.default_rng(11))) & 15
    r = np.arange(16)
    # Given |x| >= 16 the offset is truncated geometric; below, the zero that occurs once weighs half.
    weight = np.exp(-r / scale) * (1 - 0.5 * (r == 0) * -np.expm1(-16 / scale))
    weight /= weight.sum()
    mean = float(weight @ r)
    tolerance = z_bound(1) * math.sqrt(float(weight @ (r - mean) ** 2) / trials)
    assert abs(offsets.mean() - mean) <= tolerance
    assert abs(offsets.mean() - 7.5) > tolerance  # negative control: offsets that nobody thinned out


@pytest.mark.parametrize("scale", [Fraction(10**9, 3), 1e12, 2.0**55])
def test_large_scales_have_the_continuous_shape_and_all_their_bits(scale: float | Fraction) -> None:
    samples = sample_discrete_laplace(scale, 100_000, np.random.default_rng(5))
    # Against the continuous law the distribution function is off by less than 1 / scale, far below the
    # resolution.
    assert stats.kstest(samples / float(scale), "laplace").pvalue > FALSE_ALARM / 2
    assert low_bits_pvalue(samples) > FALSE_ALARM / 2
    assert stats.kstest(samples / float(scale) * 1.05, "laplace").pvalue < FALSE_ALARM  # negative control


def test_shapes_and_dtype() -> None:
    rng = np.random.default_rng(6)
    sizes: list[int | tuple[int, ...]] = [0, 1, (2, 3), (), (70_000,)]
    for size in sizes:
        samples = sample_discrete_laplace(3.0, size, rng)
        assert samples.shape == (size if isinstance(size, tuple) else (size,))
        assert samples.dtype == np.int64


def test_the_smallest_scale_is_all_zeros() -> None:
    assert not sample_discrete_laplace(2.0**-20, 1000, np.random.default_rng(7)).any()
    assert discrete_laplace_log_pmf(np.array([0, 1]), 2.0**-20).tolist() == [0.0, -(2.0**20)]
    assert discrete_laplace_variance(2.0**-20) == 0.0


def test_filling_keeps_the_order_of_what_was_accepted() -> None:
    calls: list[int] = []

    def draw(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        calls.append(count)
        return np.arange(len(calls) * 100, len(calls) * 100 + 7)

    assert fill(10, 0.5, draw).tolist() == [*range(100, 107), 200, 201, 202]
    assert min(calls) > 3


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, math.nan, math.inf, 2.0**56, 2.0**-21, Fraction(10**400), Fraction(-1)]
)
def test_a_bad_scale_is_refused_before_anything_is_drawn(scale: float | Fraction) -> None:
    rng = np.random.default_rng(8)
    before = rng.bit_generator.state
    with pytest.raises(ParameterError, match="scale must be"):
        sample_discrete_laplace(scale, 3, rng)
    with pytest.raises(ParameterError, match="scale must be"):
        discrete_laplace_log_pmf(np.array([0]), scale)
    with pytest.raises(ParameterError, match="scale must be"):
        discrete_laplace_variance(scale)
    assert rng.bit_generator.state == before


def test_other_bad_input_is_refused() -> None:
    rng = np.random.default_rng(9)
    with pytest.raises(ParameterError, match="size must be a whole number >= 0, got -1"):
        sample_discrete_laplace(1.0, -1, rng)
    with pytest.raises(ParameterError, match=r"size must be a whole number >= 0, got 2\.5"):
        sample_discrete_laplace(1.0, (3, 2.5), rng)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ParameterError, match="x must be integers, got dtype float64"):
        discrete_laplace_log_pmf([0.5], 1.0)
