"""Several values of one client: a key of its own for each, or one joint law of keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.frequencies.keyed import as_table, entropy_bits_of
from tacit.frequencies.keys import least_key_entropy
from tacit.frequencies.oracle import check_replaced
from tacit.frequencies.recoverable import RecoverableOracle
from tacit.frequencies.secrets import OneTimeKeys, check_keys, law_digest
from tacit.mechanisms import whole_values
from tacit.numerics import Array, IntArray
from tacit.privacy import Event, Guarantee, Neighbours, PureDP, Repeat, guarantee

__all__ = ["JointKey", "SequenceResponse", "least_sequence_entropy"]

_RECORDS = Neighbours()
_MOST_STATES = 10**6


def least_sequence_entropy(k: int, epsilon: float, samples: int) -> float:
    """Return the least entropy, in bits, of a key that hides T values and gives them back: T single ones.

    So no key can be used again, and sharing one among T clients saves nothing.

    Args:
        k: Number of values.
        epsilon: Level at which one of the values is hidden, in [0, 700].
        samples: T, >= 1.

    Example:
        >>> round(least_sequence_entropy(10, 1.0, 3), 6)
        9.436173

    Reference:
        Girgis (2023), Theorem 7.6.1.
    """
    return check_count("samples", samples) * least_key_entropy(k, epsilon)


@dataclass(frozen=True)
class SequenceResponse:
    """Hide T values of every client, each under a key of its own.

    Attributes:
        oracle: How one value is hidden.
        samples: Number T of values of a client.

    Guarantee:
        Pure, at the oracle's level, where two clients differ in one of their values; T times it where all may
        differ.

    Example:
        >>> from tacit.frequencies import CyclicResponse
        >>> sequence = SequenceResponse(CyclicResponse(k=3, epsilon=1.0), 2)
        >>> keys = sequence.draw_keys(1, np.random.default_rng(0))
        >>> sequence.recover(sequence.hide([[2, 0]], keys), keys).tolist()
        [[2, 0]]

    Reference:
        Girgis (2023), Theorem 7.6.1.
    """

    oracle: RecoverableOracle
    samples: int

    def __post_init__(self) -> None:
        if not isinstance(self.oracle, RecoverableOracle):
            raise ParameterError(f"oracle must be a recoverable one, got {type(self.oracle).__name__}.")
        check_count("samples", self.samples)

    @property
    def entropy_bits(self) -> float:
        """Entropy of all keys of a client."""
        return self.samples * self.oracle.entropy_bits

    def draw_keys(self, n: int, rng: np.random.Generator) -> OneTimeKeys:
        """Draw n T keys, those of a client one after the other."""
        return self.oracle.draw_keys(check_count("n", n, low=0) * self.samples, rng)

    def hide(self, values: npt.ArrayLike, keys: OneTimeKeys) -> IntArray:
        """Hide values, shape (n, T); the keys are spent. Errors as `RecoverableOracle.hide`."""
        held = self._rows("values", values, self.oracle.k)
        return self.oracle.hide(held.ravel(), keys).reshape(held.shape)

    def recover(self, messages: npt.ArrayLike, keys: OneTimeKeys) -> IntArray:
        """Return values of messages, shape (n, T), exactly. Errors as `RecoverableOracle.recover`."""
        symbols = self._rows("messages", messages, self.oracle.outcomes)
        return self.oracle.recover(symbols.ravel(), keys).reshape(symbols.shape)

    def event(self, *, whole: bool = False, neighbours: Neighbours = _RECORDS) -> Event:
        """Return what an observer without keys learns.

        Args:
            whole: Whether all T values of a client may differ; else one of them.
            neighbours: Whose unit is a client where `whole`, and one value of a client else.
        """
        check_replaced(neighbours)
        one = PureDP(self.oracle.level, neighbours)
        return Repeat(one, self.samples) if whole else one

    def price(
        self, *, whole: bool = False, neighbours: Neighbours = _RECORDS, simulated: bool = False
    ) -> Guarantee:
        """Return the guarantee against who has no key; see `event`."""
        return _price(self.event(whole=whole, neighbours=neighbours), self.samples, whole, simulated)

    def _rows(self, name: str, values: npt.ArrayLike, high: int) -> IntArray:
        array = whole_values(name, values, high)
        if array.ndim != 2 or array.shape[1] != self.samples:
            raise ParameterError(f"{name} must have shape (n, {self.samples}), got {array.shape}.")
        return array


@dataclass(frozen=True, eq=False)
class JointKey:
    """Keys for T values at once by any law over vectors v: y = v - x modulo k, and x = v - y.

    Attributes:
        weights: Shape (k,) * T, whole numbers >= 1 with a sum below 2**63: probabilities times their sum.

    Guarantee:
        Pure, at `epsilon`, where two clients differ in one of their values: vectors that differ in one entry
        have weights within a factor of e^epsilon. Draws are exact.

    Raises:
        ParameterError: Axes of different lengths, a weight below 1, or above 1e6 of them.

    Example:
        >>> key = JointKey(np.array([[4, 2], [2, 1]]))
        >>> round(key.epsilon, 6), round(key.entropy_bits, 4)
        (0.693147, 1.8366)

    Reference:
        Girgis (2023), Lemma 7.6.1.
    """

    weights: IntArray

    def __post_init__(self) -> None:
        weights = as_table("weights", self.weights)
        even = weights.ndim >= 1 and len(set(weights.shape)) == 1 and weights.shape[0] >= 2
        if not even or weights.size > _MOST_STATES:
            raise ParameterError(
                f"weights must have shape (k, ..., k), k >= 2, of at most {_MOST_STATES} entries, "
                f"got {weights.shape}."
            )
        if int(weights.min()) < 1:
            raise ParameterError("weights must be whole numbers >= 1.")
        if sum(weights.ravel().tolist()) >= 2**63:
            raise ParameterError("weights must have a sum below 2**63.")
        object.__setattr__(self, "weights", weights.astype(np.int64))

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.weights.shape[0])

    @property
    def samples(self) -> int:
        """Number T of values of a client."""
        return self.weights.ndim

    @property
    def epsilon(self) -> float:
        """Level at which one of the values is hidden from who has no key, rounded up."""
        lows = [self.weights.min(axis=t) for t in range(self.samples)]
        over = [(self.weights.max(axis=t) - low) / low for t, low in enumerate(lows)]
        return math.log1p(max(float(one.max()) for one in over)) * (1 + 2.0**-50)

    @property
    def entropy_bits(self) -> float:
        """Entropy of a vector."""
        return entropy_bits_of(self.pmf().ravel())

    def pmf(self) -> Array:
        """Return the law of a vector, shape (k,) * T."""
        return np.asarray(self.weights / self._ends[-1])

    @cached_property
    def _ends(self) -> IntArray:
        return np.cumsum(self.weights.ravel())

    def draw_keys(self, n: int, rng: np.random.Generator) -> OneTimeKeys:
        """Draw one vector a client, written as one number below k^T."""
        words = rng.integers(0, int(self._ends[-1]), size=check_count("n", n, low=0))
        symbols = np.searchsorted(self._ends, words, side="right")
        return OneTimeKeys(symbols, self.weights.size, law=self.digest, fresh=True)

    def hide(self, values: npt.ArrayLike, keys: OneTimeKeys) -> IntArray:
        """Hide values, shape (n, T), with fresh keys, which are spent.

        Raises:
            ParameterError: Values or keys that do not fit, or keys that were used.
        """
        held = self._rows("values", values)
        self._check(keys)
        return self._taken_off(held, keys.spend(len(held)))

    def recover(self, messages: npt.ArrayLike, keys: OneTimeKeys) -> IntArray:
        """Return the values of messages, shape (n, T), exactly.

        Raises:
            ParameterError: Messages or keys that do not fit.
        """
        symbols = self._rows("messages", messages)
        self._check(keys)
        return self._taken_off(symbols, keys.read(len(symbols)))

    def event(self, neighbours: Neighbours = _RECORDS) -> Event:
        """Return what an observer without keys learns, where one of the values of a client differs."""
        check_replaced(neighbours)
        return PureDP(self.epsilon, neighbours)

    def price(
        self, *, whole: bool = False, neighbours: Neighbours = _RECORDS, simulated: bool = False
    ) -> Guarantee:
        """Return the guarantee against who has no key.

        Args:
            whole: Whether all T values of a client may differ, for T times the level; else one of them.
            neighbours: As in `event`.
            simulated: Whether keys came from a seeded stream.
        """
        event = self.event(neighbours)
        return _price(Repeat(event, self.samples) if whole else event, self.samples, whole, simulated)

    def _taken_off(self, rows: IntArray, keys: IntArray) -> IntArray:
        vectors = np.stack(np.unravel_index(keys, self.weights.shape), axis=1)
        return np.asarray((vectors - rows) % self.k)

    @cached_property
    def digest(self) -> bytes:
        """Names the law on its keys."""
        return law_digest(f"joint {self.weights.shape}", self.weights.astype("<i8").tobytes())

    def _check(self, keys: OneTimeKeys) -> None:
        check_keys(keys, self.weights.size, self.digest)

    def _rows(self, name: str, values: npt.ArrayLike) -> IntArray:
        array = whole_values(name, values, self.k)
        if array.ndim != 2 or array.shape[1] != self.samples:
            raise ParameterError(f"{name} must have shape (n, {self.samples}), got {array.shape}.")
        return array


def _price(event: Event, samples: int, whole: bool, simulated: bool) -> Guarantee:  # noqa: FBT001
    """Return the guarantee of an event against who has no key."""
    differ = f"all {samples} values" if whole else f"one of {samples} values"
    return guarantee(
        event,
        0.0,
        observer="an observer of every message and of no key",
        assumptions=(
            "every key hides one message and stays secret",
            f"neighbours differ in {differ} of one client",
        ),
        simulated=simulated,
    )
