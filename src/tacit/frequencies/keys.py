"""Laws of secret keys: how little randomness hides a value at a level and gives it back to a holder."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative
from tacit.frequencies.secrets import OneTimeKeys, law_digest
from tacit.mechanisms import check_level, lie_threshold, sampled_level
from tacit.mechanisms.bernoulli import draw_words
from tacit.numerics import Array, IntArray, m_sequence_support
from tacit.randomness import PublicStream

__all__ = [
    "KeyLaw",
    "flat_heavy_set",
    "heavy_key_count",
    "key_entropy_floor",
    "least_key_entropy",
    "minimum_entropy_key",
    "two_level_entropy",
]

_HIGHEST = 700.0  # e^-epsilon is a number up to here
_SEARCHED = 2**12


def two_level_entropy(k: int, heavy: int, epsilon: float) -> float:
    """Return the entropy, in bits, of a key of k values of which some are e^epsilon times as likely.

    Args:
        k: Number of values, >= 2.
        heavy: How many are likely ones, 1 to k - 1.
        epsilon: Logarithm of the ratio, in [0, 700].

    Example:
        >>> round(two_level_entropy(10, 3, 1.0), 6)
        3.145391
    """
    check_count("k", k, low=2)
    s = check_count("heavy", heavy, high=k - 1)
    rest = (k - s) / s * math.exp(-_log_ratio(epsilon))
    return (math.log(s) + math.log1p(rest) + epsilon * rest / (1 + rest)) / math.log(2)


def heavy_key_count(k: int, epsilon: float) -> float:
    """Return the real number l = k (E (epsilon - 1) + 1) / (E - 1)^2, E = e^epsilon, next to the best count.

    Args:
        k: Number of values, >= 2.
        epsilon: Level, in [0, 700].

    Example:
        >>> round(heavy_key_count(10, 1.0), 6)
        3.386969
    """
    k, x = check_count("k", k, low=2), _log_ratio(epsilon)
    if x < 0.5:  # the numerator would lose its digits: it is x^2 / 2 + ...
        top = math.fsum(x ** (n - 2) * (n - 1) / math.factorial(n) for n in range(2, 20))
        return k * top / (math.expm1(x) / x) ** 2 if x > 0 else k / 2
    small = math.exp(-x)
    return k * small * (x - 1 + small) / math.expm1(-x) ** 2


def minimum_entropy_key(k: int, epsilon: float) -> int:
    """Return how many of k keys are likely ones in the key of least entropy that hides k values.

    Args:
        k: Number of values, >= 2.
        epsilon: Level of who has no key, in [0, 700].

    Returns:
        s, the better one of the two whole numbers next to `heavy_key_count`, from 1 to k - 1: with none that
        is likely the key would be uniform, which is never best.

    Example:
        >>> minimum_entropy_key(10, 1.0), minimum_entropy_key(2, 5.0)
        (3, 1)

    Reference:
        Girgis (2023), Theorem 7.5.1, with s >= 1.
    """
    near = heavy_key_count(k, epsilon)
    counts = {min(max(s, 1), k - 1) for s in (math.floor(near), math.ceil(near))}
    return min(sorted(counts), key=lambda s: two_level_entropy(k, s, epsilon))


def least_key_entropy(k: int, epsilon: float) -> float:
    """Return the least entropy, in bits, of any key that hides k values at a level and gives them back.

    Args:
        k: Number of values, >= 2.
        epsilon: Level of who has no key, in [0, 700]; 0: the one-time pad, log2(k) bits.

    Example:
        >>> round(least_key_entropy(1000, 3.0), 6), least_key_entropy(4, 0.0)
        (8.512261, 2.0)

    Reference:
        Girgis (2023), Theorem 7.5.1.
    """
    return two_level_entropy(k, minimum_entropy_key(k, epsilon), epsilon)


def key_entropy_floor(k: int, epsilon: float) -> float:
    """Return a closed form at or below `least_key_entropy`: log2(k) - (w - 1 - ln w) / ln 2.

    Here w = epsilon / (e^epsilon - 1): the count of likely keys is taken for a real number.

    Args:
        k: Number of values, >= 2.
        epsilon: Level, in [0, 700].

    Example:
        >>> round(key_entropy_floor(1000, 1.0), 4)
        9.7879

    Reference:
        Girgis (2023), (7.52), first case, whose print is garbled.
    """
    k, x = check_count("k", k, low=2), _log_ratio(epsilon)
    w = x / math.expm1(x) if x > 0 else 1.0
    return max(0.0, math.log2(k) - (w - 1 - math.log(w)) / math.log(2))


def _log_ratio(epsilon: float) -> float:
    """Return a level from 0 to 700."""
    x = check_non_negative("epsilon", epsilon)
    if x > _HIGHEST:
        raise ParameterError(f"epsilon must be at most {_HIGHEST:g}, got {x!r}.")
    return x


@dataclass(frozen=True, eq=False)
class KeyLaw:
    """Keys from 0 to size - 1 of which the heavy ones are e^epsilon times as likely.

    Attributes:
        size: Number of keys, 2 to 2**31.
        heavy: Shape (s,): the likely ones, increasing, at least one and not all. Public.
        epsilon: In [2**-30, 30].

    Guarantee:
        Two keys have probabilities within a factor of e^epsilon, in floating-point arithmetic too: whether a
        key is heavy is drawn by a whole threshold, rounded to the safe side.

    Example:
        >>> law = KeyLaw(10, np.array([0, 1, 4]), 1.0)
        >>> round(law.entropy_bits, 6), law.draw(3, np.random.default_rng(0))
        (3.145391, OneTimeKeys(3 secret keys))
    """

    size: int
    heavy: IntArray
    epsilon: float

    def __post_init__(self) -> None:
        check_count("size", self.size, low=2, high=2**31)
        check_level("epsilon", self.epsilon)
        heavy = np.asarray(self.heavy)
        inside = heavy.dtype.kind in "iu" and heavy.ndim == 1 and 0 < heavy.size < self.size
        if not (inside and heavy[0] >= 0 and heavy[-1] < self.size and np.all(np.diff(heavy) > 0)):
            raise ParameterError(f"heavy must be some, not all, of {self.size} keys, increasing.")
        object.__setattr__(self, "heavy", heavy.astype(np.int64))

    @property
    def _share(self) -> Fraction:
        return Fraction(self.size, self.heavy.size)

    @property
    def light_prob(self) -> float:
        """Probability that a key is none of the heavy ones, as sampled."""
        return lie_threshold(self.epsilon, self._share) / 2**64

    @property
    def low(self) -> float:
        """Probability of one key that is not heavy, as sampled."""
        return self.light_prob / (self.size - self.heavy.size)

    @property
    def high(self) -> float:
        """Probability of one heavy key, as sampled."""
        return (1 - self.light_prob) / self.heavy.size

    @property
    def gap(self) -> float:
        """`high` - `low`, with its digits."""
        share, lies = self._share, Fraction(lie_threshold(self.epsilon, self._share), 2**64)
        return float(((1 - lies) - lies / (share - 1)) / self.heavy.size)

    @property
    def level(self) -> float:
        """Logarithm of the largest ratio of two keys, as sampled, rounded up; at most `epsilon`."""
        return sampled_level(self.epsilon, self._share)

    @property
    def entropy_bits(self) -> float:
        """Entropy of a key."""
        return two_level_entropy(self.size, self.heavy.size, self.level)

    @cached_property
    def digest(self) -> bytes:
        """Names the law on its keys."""
        return law_digest(f"{self.size} {self.epsilon!r}", self.heavy.astype("<i8").tobytes())

    @cached_property
    def _light(self) -> IntArray:
        return np.setdiff1d(np.arange(self.size), self.heavy)

    def pmf(self) -> Array:
        """Return the probability of every key, shape (size,)."""
        law = np.full(self.size, self.low)
        law[self.heavy] = self.high
        return law

    def draw(self, n: int, rng: np.random.Generator) -> OneTimeKeys:
        """Draw keys of n clients.

        Args:
            n: How many, >= 0.
            rng: Private randomness; a deployment passes `randomness.secure()`.
        """
        check_count("n", n, low=0)
        light = draw_words(n, rng) < np.uint64(lie_threshold(self.epsilon, self._share))
        # Both are drawn for everybody, so that how many numbers are used tells nothing.
        likely = self.heavy[rng.integers(0, self.heavy.size, size=n)]
        other = self._light[rng.integers(0, self.size - self.heavy.size, size=n)]
        return OneTimeKeys(np.where(light, other, likely), self.size, law=self.digest, fresh=True)


@lru_cache(maxsize=64)
def flat_heavy_set(k: int, heavy: int) -> tuple[int, ...]:
    """Choose which of k shifts are likely ones so that who sees shifted values alone errs little.

    Args:
        k: Number of shifts, 2 to 2**20.
        heavy: How many to choose, 1 to k - 1.

    Returns:
        Places, increasing. A difference set where k = 2^r - 1 and half of them are chosen; the best of all
        sets for small k; else the best of some that are drawn from a public stream. The best one has the
        least sum of inverse squares of the Fourier transform, which is the error; for some k, as 4 of which 2
        are chosen, no set has an inverse.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> flat_heavy_set(7, 4)
        (2, 4, 5, 6)
    """
    k = check_count("k", k, low=2, high=2**20)
    s = check_count("heavy", heavy, high=k - 1)
    r = (k + 1).bit_length() - 1
    if k + 1 == 1 << r and s in (k // 2, k - k // 2):
        places = m_sequence_support(r)
        chosen = places if places.size == s else np.setdiff1d(np.arange(k), places)
        return tuple(chosen.tolist())
    if math.comb(k - 1, s - 1) <= _SEARCHED:  # up to shifts, place 0 is chosen
        sets = np.array([(0, *rest) for rest in itertools.combinations(range(1, k), s - 1)])
    else:
        stream = PublicStream(0, 0, purpose="flat heavy sets")
        tries = max(2, min(256, 2**20 // k))
        sets = np.sort([stream.permutation(k)[:s] for _ in range(tries)], axis=1)
    table = np.zeros((len(sets), k))
    np.put_along_axis(table, sets, 1.0, axis=1)
    power = np.abs(np.fft.fft(table)[:, 1:]) ** 2
    with np.errstate(divide="ignore"):
        costs = np.where(power > 1e-18 * k, 1 / power, np.inf).sum(axis=1)
    return tuple(sets[int(np.argmin(costs))].tolist())
