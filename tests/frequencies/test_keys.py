"""Keys of least entropy: published numbers, brute force, and what keeps them secret."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.frequencies import (
    KeyLaw,
    OneTimeKeys,
    flat_heavy_set,
    heavy_key_count,
    key_entropy_floor,
    least_key_entropy,
    minimum_entropy_key,
    two_level_entropy,
)
from tacit.randomness import SecretStateError
from tests.statistics import FALSE_ALARM

TABLE = [
    (2, 1, 0.677394, 1, 0.839942),
    (2, 5, 0.054729, 1, 0.057967),
    (4, 1, 1.354788, 1, 1.829772),
    (4, 5, 0.109459, 1, 0.171795),
    (10, 0.5, 4.173550, 4, 3.277057),
    (10, 1, 3.386969, 3, 3.145391),
    (10, 2, 2.055132, 2, 2.637577),
    (10, 3, 1.130273, 1, 1.873394),
    (10, 5, 0.273647, 1, 0.497363),
    (100, 1, 33.869689, 34, 6.465971),
    (100, 3, 11.302732, 11, 5.190580),
    (100, 5, 2.736471, 3, 3.159713),
    (1000, 0.1, 483.338887, 483, 9.963981),
    (1000, 1, 338.696887, 339, 9.787898),
    (1000, 3, 113.027320, 113, 8.512261),
    (1000, 5, 27.364709, 27, 6.477836),
    (1000, 8, 2.349927, 2, 2.878267),
]


@pytest.mark.parametrize(("k", "epsilon", "near", "heavy", "bits"), TABLE)
def test_the_key_of_least_entropy(k: int, epsilon: float, near: float, heavy: int, bits: float) -> None:
    assert heavy_key_count(k, epsilon) == pytest.approx(near, abs=1e-6)
    assert minimum_entropy_key(k, epsilon) == heavy
    assert least_key_entropy(k, epsilon) == pytest.approx(bits, abs=1e-6)
    assert bits < math.log2(k)  # Figure 7.3


@pytest.mark.parametrize("k", [2, 4, 10, 100])
def test_no_number_of_heavy_keys_is_better(k: int) -> None:
    before = math.log2(k)
    for epsilon in (1e-4, 0.05, 0.499, 0.501, 1.0, 2.5, 5.0, 9.0, 30.0):
        best = min(two_level_entropy(k, s, epsilon) for s in range(1, k))
        found = least_key_entropy(k, epsilon)
        assert found == pytest.approx(best, rel=1e-12)
        assert key_entropy_floor(k, epsilon) <= found + 1e-12
        assert found <= before + 1e-12  # Figure 7.3: decreasing
        before = found


def test_small_levels_keep_their_digits_and_none_is_a_one_time_pad() -> None:
    assert heavy_key_count(10**6, 1e-6) / 10**6 == pytest.approx(0.5 - 1e-6 / 6, rel=1e-13)
    assert heavy_key_count(8, 0.0) == 4
    assert least_key_entropy(8, 0.0) == 3
    x = 0.5  # both branches
    assert heavy_key_count(10, x - 1e-12) == pytest.approx(heavy_key_count(10, x + 1e-12), rel=1e-10)


def test_savings_of_the_text() -> None:
    for k, saved in ((2, 94.20), (4, 91.41), (10, 85.03)):
        assert 100 * (1 - least_key_entropy(k, 5.0) / math.log2(k)) == pytest.approx(saved, abs=0.005)


def test_at_least_one_key_is_heavy() -> None:
    """Where the real number is below 1/2, its floor 0 would mean the uniform key, the worst one."""
    assert heavy_key_count(2, 5.0) < 0.5
    assert minimum_entropy_key(2, 5.0) == 1


def test_the_garbled_second_term_of_the_closed_form() -> None:
    """(7.52), first case: with a real number l of heavy keys, the entropy is the floor."""
    for k, epsilon in ((100, 1.0), (1000, 3.0)):
        e, near = math.exp(epsilon), heavy_key_count(k, epsilon)
        second = epsilon * e / (e - 1 + (e - 1) ** 2 / (e * (epsilon - 1) + 1))
        bits = (math.log(near * e + k - near) - second) / math.log(2)
        assert bits == pytest.approx(key_entropy_floor(k, epsilon), rel=1e-12)
        assert bits == pytest.approx(least_key_entropy(k, epsilon), abs=1e-4)


@pytest.mark.parametrize(("size", "heavy", "epsilon"), [(10, (0, 1, 4), 1.0), (3, (1,), 3.0)])
def test_keys_follow_their_law(size: int, heavy: tuple[int, ...], epsilon: float) -> None:
    law = KeyLaw(size, np.array(heavy), epsilon)
    pmf = law.pmf()
    assert pmf.sum() == pytest.approx(1, abs=1e-14)
    assert math.log(pmf.max() / pmf.min()) == pytest.approx(law.level, rel=1e-12)
    assert law.level <= epsilon
    assert law.gap == pytest.approx(law.high - law.low, rel=1e-12)
    assert law.entropy_bits == pytest.approx(-float(pmf @ np.log2(pmf)), rel=1e-12)
    drawn = np.bincount(law.draw(20_000, np.random.default_rng(2)).read(), minlength=size)
    assert stats.chisquare(drawn, 20_000 * pmf).pvalue > FALSE_ALARM


def test_flat_heavy_sets() -> None:
    assert flat_heavy_set(7, 3) == (0, 1, 3)  # the other half
    for k, s, gap in ((13, 4, math.sqrt(3)), (11, 5, math.sqrt(3)), (15, 8, 2.0)):  # difference sets
        inside = np.zeros(k)
        inside[list(flat_heavy_set(k, s))] = 1
        assert np.abs(np.fft.fft(inside)[1:]).min() == pytest.approx(gap, rel=1e-9)


def test_a_contiguous_heavy_block_may_have_no_inverse() -> None:
    for k, s, gap in ((4, 2, 0.0), (10, 5, 0.0), (12, 4, 0.0), (10, 3, 0.381966), (7, 2, 0.445042)):
        inside = np.zeros(k)
        inside[:s] = 1
        assert np.abs(np.fft.fft(inside)[1:]).min() == pytest.approx(gap, abs=1e-6)


def test_keys_are_secret() -> None:
    keys = OneTimeKeys([3, 4, 0], 5, fresh=True)
    assert "3, 4" not in repr(keys) + str(keys) + f"{keys}"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy, OneTimeKeys.__getstate__):
        with pytest.raises(SecretStateError):
            leak(keys)
    held = keys.spend(3)
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 1
    with pytest.raises(ParameterError, match="fresh"):
        keys.spend(3)
    with keys:
        pass
    assert not held.any()  # zeros, where the keys were
    assert repr(keys) == "OneTimeKeys(wiped)"
    with pytest.raises(ParameterError, match="wiped"):
        keys.read()


@pytest.mark.parametrize("size", [2, 5, 16, 1000])
def test_all_keys_have_one_length_in_bytes(size: int) -> None:
    n, rng = 11, np.random.default_rng(size)
    bits, data = n * (size - 1).bit_length(), b""
    for symbols in (np.zeros(n, dtype=int), np.full(n, size - 1), rng.integers(0, size, n)):
        data = OneTimeKeys(symbols, size).to_bytes()
        assert len(data) == 8 + math.ceil(bits / 8)
        back = OneTimeKeys.from_bytes(data, size, n)
        np.testing.assert_array_equal(back.read(), symbols)
        with pytest.raises(ParameterError, match="fresh"):  # a holder's
            back.spend(n)
    with pytest.raises(ParameterError, match="bytes"):
        OneTimeKeys.from_bytes(data + b"\0", size, n)
    with pytest.raises(ParameterError, match="bytes"):
        OneTimeKeys.from_bytes(data[:-1], size, n)
    if bits % 8:
        with pytest.raises(ParameterError, match="zeros"):
            OneTimeKeys.from_bytes(data[:-1] + bytes([data[-1] | 1]), size, n)


def test_what_is_refused() -> None:
    for k, epsilon in ((1, 1.0), (4, -1.0), (4, math.nan), (4, 701.0)):
        with pytest.raises(ParameterError):
            least_key_entropy(k, epsilon)
    for heavy in ((), (0, 1, 2), (1, 0), (3,), (0, 0)):
        with pytest.raises(ParameterError, match="heavy"):
            KeyLaw(3, np.array(heavy, dtype=int), 1.0)
    with pytest.raises(ParameterError, match="heavy"):
        KeyLaw(3, np.array([0.5, 1.7]), 1.0)
    with pytest.raises(ParameterError, match="size"):
        OneTimeKeys([5], 2**70)
    for data in ("a" * 9, 9, bytearray(9)):
        with pytest.raises(ParameterError, match="bytes"):
            OneTimeKeys.from_bytes(data, 5, 1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="symbols"):
        OneTimeKeys([5], 5)
    with pytest.raises(ParameterError, match=r"zeros|symbols"):
        OneTimeKeys.from_bytes(bytes(8) + b"\xff", 5, 2)
