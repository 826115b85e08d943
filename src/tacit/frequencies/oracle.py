"""What every mechanism of frequencies offers: clients answer, a server counts and estimates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import BudgetError, ParameterError, check_count
from tacit.frequencies.bands import Band
from tacit.frequencies.counts import Counts, as_shares
from tacit.frequencies.support import Support
from tacit.frequencies.wire import HEAD_BYTES, bytes_of_rows, rows_of_bytes
from tacit.mechanisms import HIGHEST_LEVEL, check_level, whole_values
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import (
    Event,
    Neighbours,
    PrivacyBudget,
    PureDP,
    Relation,
    Shuffled,
    TrustModel,
    calibrate,
    meets,
)

__all__ = ["MOST_VALUES", "FrequencyOracle", "check_replaced", "least_private"]

MOST_VALUES = 2**24 - 1
"""The largest domain whose counts are kept in memory: one more than it has is still transformed at once."""

_MOST_ENTRIES = 10**7
"""The largest channel matrix that is written out."""

_RECORDS = Neighbours()
_AT_ONCE = 2**22  # values, or bits of sets, that are drawn at once


class FrequencyOracle(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A local randomizer of one of k values, with an unbiased estimate of how often each value is held.

    Clients `encode`, a server `aggregate`s messages to counts, merges counts by adding them, and `estimate`s.
    `collect` does the first two for many clients, in blocks: memory stays linear in n and k. All errors are
    exact, before any projection (`tacit.frequencies.project`).

    Attributes:
        k: Number of values, from 2 to 2**24 - 1; a value is 0 to k - 1.
        epsilon: Pure level of one message, under replace-one. In [2**-29, 30].

    Raises:
        ParameterError: A field is out of its range.
    """

    k: int
    epsilon: float

    code: ClassVar[int]
    """Names the mechanism on the wire, 1 to 15."""

    def __post_init__(self) -> None:
        settle(self)
        check_count("k", self.k, low=2, high=MOST_VALUES)
        check_level("epsilon", self.epsilon)
        self._check()

    def _check(self) -> None:
        """Refuse fields that do not fit together."""

    @classmethod
    def calibrated(
        cls,
        *,
        k: int,
        budget: PrivacyBudget,
        n: int,
        trust: TrustModel = TrustModel.LOCAL,
        neighbours: Neighbours = _RECORDS,
        **fields: Any,
    ) -> Self:
        """Return the most accurate such mechanism that meets a budget.

        Args:
            k: Number of values.
            budget: For the observer of the trust model.
            n: Planned number of messages.
            trust: `local`, or `shuffle`: then messages hide among each other, and each may say more.
            neighbours: A replace-one relation.
            **fields: The other fields of the class.

        Raises:
            ParameterError: A value is out of range.
            BudgetError: The budget cannot be met.
        """
        return least_private(
            lambda level: cls(k=k, epsilon=level, **fields), budget, n=n, trust=trust, neighbours=neighbours
        )

    # What a class says of itself.

    @property
    @abstractmethod
    def name(self) -> str:
        """How `tacit account shuffle --mechanism` knows the law of a message."""

    @property
    @abstractmethod
    def level(self) -> float:
        """Pure level of what is sampled, rounding of probabilities included; at most `epsilon`."""

    @property
    @abstractmethod
    def entropy_bits(self) -> float:
        """Largest entropy of a message given the value: fair bits that a client needs on average.

        Public choices, which no value steers, are not in it. Our samplers draw whole words instead.
        """

    @property
    @abstractmethod
    def message_bits(self) -> int:
        """Bits of one message, packed."""

    @property
    @abstractmethod
    def outcomes(self) -> int:
        """Number M of counts that a server keeps."""

    @abstractmethod
    def estimate(self, counts: Counts) -> Array:
        """Estimate how often each value is held.

        Args:
            counts: Of the messages of this mechanism.

        Returns:
            Shape (k,), unbiased: entries may lie below 0 and do not add up to 1.

        Raises:
            ParameterError: No messages, or counts of another mechanism.

        Cost:
            O(M log M) time.
        """

    @abstractmethod
    def band(self, counts: Counts, confidence: float = 0.95) -> Band:
        """Return intervals that hold the frequencies of all values at once.

        Args:
            counts: Of the messages.
            confidence: Probability that none of the k intervals misses, whatever the data; in (0, 1).

        Returns:
            Intervals inside [0, 1]; what they hold is in `Band.covers`.

        Raises:
            ParameterError: An argument is out of range.
        """

    @abstractmethod
    def variances(self, n: int, frequencies: npt.ArrayLike | None = None) -> Array:
        """Return the exact variance of each estimate, over the noise.

        Args:
            n: Number of messages, >= 1.
            frequencies: Shape (k,): how often each value is held. None: equally often.

        Returns:
            Shape (k,). The rows are fixed; sampling them adds f (1 - f) / n.
        """

    @abstractmethod
    def simulate(self, p: npt.ArrayLike, n: int, rng: np.random.Generator) -> Counts:
        """Draw counts of n clients whose values are independent draws from p: the exact law, at once.

        Args:
            p: Shape (k,), probabilities.
            n: Number of clients.
            rng: Source of values and noise, in floating point: for simulations only.
        """

    @abstractmethod
    def channel_matrix(self) -> Array:
        """Return the probability of every message given every value, shape (k, messages).

        Raises:
            ParameterError: It would have more than 1e7 entries.
        """

    @abstractmethod
    def aggregate(self, messages: npt.ArrayLike) -> Counts:
        """Count messages, as `encode` returns them.

        Raises:
            ParameterError: A message that `encode` cannot have made.
        """

    @abstractmethod
    def _drawn(self, values: IntArray, first: int, rng: np.random.Generator) -> Array: ...

    @abstractmethod
    def _packed(self, messages: Array) -> npt.NDArray[np.uint8]: ...

    @abstractmethod
    def _unpacked(self, rows: npt.NDArray[np.uint8], first: int) -> Array: ...

    @property
    @abstractmethod
    def _bits_drawn(self) -> int:
        """Entries in memory for one message, while it is drawn."""

    # What follows.

    @property
    def support(self) -> Support | None:
        """How likely a message supports a value; None where supporting is not all that counts."""
        return None

    def encode(self, values: npt.ArrayLike, rng: np.random.Generator, *, first: int = 0) -> Array:
        """Randomise the values of clients, each by itself.

        Args:
            values: Shape (n,), whole numbers from 0 to k - 1; one client's value is an array of one.
            rng: Private randomness. Draws are exact; a deployment passes `randomness.secure()`.
            first: Place of the first client among all, for mechanisms that assign columns by place.

        Returns:
            Shape (n,) of symbols, or (n, k) of sets.

        Raises:
            ParameterError: A value is out of range, or messages of sets would take more than 2**28 bytes
                (`collect` counts them in blocks).
        """
        held = self._values(values)
        if held.size * self._bits_drawn > 2**28:
            raise ParameterError(
                f"encode makes at most 2**28 entries at once, got {held.size} messages of "
                f"{self._bits_drawn}; `collect` counts them in blocks."
            )
        return self._drawn(held, first, rng)

    def collect(self, values: npt.ArrayLike, rng: np.random.Generator, *, first: int = 0) -> Counts:
        """Randomise the values of many clients and count the messages, block by block.

        Args:
            values: As in `encode`.
            rng: As in `encode`.
            first: As in `encode`.

        Returns:
            The law of `aggregate(encode(values))`, in memory that is linear in n and k.
        """
        held = self._values(values)
        step = max(1, _AT_ONCE // self._bits_drawn)
        total = self._counted(0, np.zeros(self.outcomes, dtype=np.int64))
        for start in range(0, held.size, step):
            total += self.aggregate(self._drawn(held[start : start + step], first + start, rng))
        return total

    def check_counts(self, counts: Counts) -> None:
        """Refuse counts that no messages of this mechanism have, as far as counts show it.

        Raises:
            ParameterError: No messages, another shape, or numbers that do not fit together.
        """
        self._counts(counts)

    def noise(self) -> Array:
        """Return the variance that one client with each value adds, summed over all estimates.

        Returns:
            Shape (k,): n times the mean squared l2 error of n clients who all hold that value.
        """
        return np.full(self.k, float(self.variances(1).sum()))

    def frequency_mse(self, n: int, frequencies: npt.ArrayLike | None = None) -> float:
        """Return the exact mean squared l2 error against the frequencies of fixed rows.

        Args:
            n: Number of messages.
            frequencies: Shape (k,), of the rows. None: equally often.
        """
        return float(self.noise() @ as_shares("frequencies", frequencies, self.k)) / check_count("n", n)

    def mse(self, n: int, p: npt.ArrayLike | None = None) -> float:
        """Return the exact mean squared l2 error against the distribution that independent values come from.

        Args:
            n: Number of messages.
            p: Shape (k,), the distribution. None: uniform.
        """
        law = as_shares("p", p, self.k)
        return self.frequency_mse(n, law) + (1 - float(law @ law)) / n

    def event(self, n: int, trust: TrustModel = TrustModel.LOCAL, neighbours: Neighbours = _RECORDS) -> Event:
        """Return what an observer learns: of a message with its sender, or of n shuffled messages.

        Raises:
            ParameterError: A trust model in which no client randomises, columns that are assigned by place,
                which a shuffler would have to tell, or neighbours other than replace-one.
        """
        check_replaced(neighbours)
        if trust == TrustModel.LOCAL:
            return PureDP(self.level, neighbours)
        if trust == TrustModel.SHUFFLE:
            return Shuffled(self.epsilon, n, self.name, neighbours)
        raise ParameterError(f"trust must be local or shuffle for a local randomizer, got {trust!s}.")

    @property
    def message_bytes(self) -> int:
        """Bytes of one message on the wire: three for version, mechanism and level, then the packed bits."""
        return HEAD_BYTES + self._body_bytes

    @property
    def _body_bytes(self) -> int:
        return -(-self.message_bits // 8)

    def to_bytes(self, messages: npt.ArrayLike) -> bytes:
        """Write messages one after the other, each of `message_bytes` bytes, whatever is in it.

        Raises:
            ParameterError: A message that `encode` cannot have made.
        """
        return bytes_of_rows(self._code, repr(self), self._packed(np.asarray(messages)))

    def from_bytes(self, data: bytes, *, first: int = 0) -> Array:
        """Read what `to_bytes` wrote; no two byte strings give the same messages.

        Args:
            data: From anybody.
            first: Place of the first client, as in `encode`.

        Raises:
            ParameterError: Another version, mechanism or level, a length that is no multiple of
                `message_bytes`, padding that is not zero, or a message that `encode` cannot have made.
        """
        return self._unpacked(rows_of_bytes(self._code, repr(self), data, self._body_bytes), first)

    @property
    def _code(self) -> int:
        """`code`, or another one of a class that holds two mechanisms."""
        return self.code

    def _values(self, values: npt.ArrayLike) -> IntArray:
        held = whole_values("values", values, self.k)
        if held.ndim != 1:
            raise ParameterError(f"values must have shape (n,), got {held.shape}.")
        return held

    def _counted(self, n: int, values: IntArray) -> Counts:
        """Return counts of n messages of this mechanism."""
        return Counts(n, values, repr(self))

    def _counts(self, counts: Counts) -> IntArray:
        """Return the counts of at least one message of this mechanism."""
        if counts.values.shape != (self.outcomes,):
            raise ParameterError(
                f"counts must have shape ({self.outcomes},), got {counts.values.shape}; "
                "were they made by another mechanism?"
            )
        if counts.mechanism not in ("", repr(self)):
            raise ParameterError(
                f"counts must be of {self!r}, got those of {counts.mechanism}; they were made by another "
                "mechanism, or at another level."
            )
        if counts.n == 0:
            raise ParameterError("counts must be of at least one message, got none.")
        return counts.values

    def _check_matrix(self, messages: int) -> None:
        if self.k * messages > _MOST_ENTRIES:
            raise ParameterError(
                f"a channel matrix has at most {_MOST_ENTRIES} entries, got {self.k} values of "
                f"{messages} messages."
            )


def check_replaced(neighbours: Neighbours) -> None:
    """Refuse neighbours other than by replacement: who sees messages sees how many there are."""
    if type(neighbours) is not Neighbours or neighbours.relation is not Relation.REPLACE_ONE:
        raise ParameterError(
            "neighbours must be replace-one for frequencies, whose number of messages is public, got "
            f"{neighbours!s}."
        )


Oracle = TypeVar("Oracle", bound=FrequencyOracle)


def least_private(
    at: Callable[[float], Oracle],
    budget: PrivacyBudget,
    *,
    n: int,
    trust: TrustModel = TrustModel.LOCAL,
    neighbours: Neighbours = _RECORDS,
) -> Oracle:
    """Return the mechanism of the highest level that meets a budget; see `FrequencyOracle.calibrated`.

    Args:
        at: Makes a mechanism of a level.
        budget: For the observer of the trust model.
        n: Planned number of messages.
        trust: `local` or `shuffle`.
        neighbours: A replace-one relation.
    """
    check_count("n", n)
    # A level as high as the budget always meets it; a batch, or a delta, may allow for more.
    safe = at(min(budget.epsilon, HIGHEST_LEVEL))
    event = safe.event(n, trust, neighbours)
    if budget.delta == 0:
        return safe
    if not meets(event, budget):  # by a hair of rounding
        raise BudgetError(f"the budget epsilon = {budget.epsilon!r} cannot be met.")
    x = calibrate(
        lambda x: at(min(1 / x, HIGHEST_LEVEL)).event(n, trust, neighbours),
        budget,
        low=1 / HIGHEST_LEVEL,
        high=1 / safe.epsilon,
    )
    return at(min(1 / x, HIGHEST_LEVEL))
