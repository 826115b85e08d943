"""Which units of a silo a round uses; declared in plans, drawn by silos."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_positive, check_probability, shown
from tacit.numerics import settle

__all__ = ["BATCH_WORDS", "Batch", "Disjoint", "Fixed", "Full", "Poisson", "read_batch"]


def _check_size_or_rate(size: int | None, rate: float | None) -> None:
    """Refuse a batch of neither a number of units nor a share, or of both."""
    if (size is None) == (rate is None):
        raise ParameterError(f"a batch needs either size or rate, got {size!r} and {rate!r}.")
    if size is not None:
        check_count("size", size, high=LARGEST_COUNT)
    if rate is not None:
        check_probability("rate", rate, low_open=True)


class Full(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="batch", tag="full"):
    """All units of the silo in every round."""

    def size_for(self, n: int) -> int:
        """Return how many of n units one round uses."""
        return n

    def expected(self, n: int) -> float:
        """Return the mean of that number."""
        return n


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="batch"):
    """A number of units, or a share of them; a share lets silos of different sizes sample at one rate."""

    size: int | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        settle(self)
        _check_size_or_rate(self.size, self.rate)

    def size_for(self, n: int) -> int:
        """Return how many of n units one round uses: a share rounded down, and at least one."""
        if self.size is None:
            # Floats alone must not cost a unit: 0.29 * 100 is 28.999999999999996.
            return max(1, math.floor((self.rate or 0.0) * n + 1e-9))
        if self.size > n:
            raise ParameterError(f"size must be at most the {n} units of the silo, got {self.size}.")
        return self.size

    def expected(self, n: int) -> float:
        """Return the mean of that number."""
        return self.size_for(n)


class Fixed(_Part, frozen=True, tag="fixed"):
    """A fresh secret uniform sample of fixed size in every round, without replacement."""


class Disjoint(_Part, frozen=True, tag="disjoint"):
    """Consecutive blocks of one secret random order: every unit is in at most one block of the whole run.

    Attributes:
        size: Units of a block; or
        rate: a share of all.
        repeats: Rounds of its kind in a row that use one block; 1 uses every unit once.
        sample: Share of the block that each of these rounds draws, in (0, 1]: a fresh secret uniform sample
            of fixed size, without replacement. None uses all of it.
    """

    repeats: int = 1
    sample: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("repeats", self.repeats, high=LARGEST_COUNT)
        if self.sample is not None:
            check_probability("sample", self.sample, low_open=True)

    @property
    def once(self) -> bool:
        """Whether every unit is used at most once."""
        return self.repeats == 1 and self.sample is None

    def block_for(self, n: int) -> int:
        """Return how many of n units a block holds."""
        return super().size_for(n)

    def size_for(self, n: int) -> int:
        """Return how many of n units one round uses."""
        block = self.block_for(n)
        return block if self.sample is None else max(1, math.floor(self.sample * block + 1e-9))

    def blocks_of(self, rounds: int) -> int:
        """Return how many blocks so many rounds use."""
        return -(-rounds // self.repeats)


class Poisson(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="batch",
    tag="poisson",
):
    """Every unit joins each round on its own, and means divide by the expected number.

    Goes with every relation; with replace-one where sums of rows get Gaussian noise.

    Attributes:
        rate: With that probability; or
        size: so many of a silo's units are expected.
    """

    rate: float | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        settle(self)
        _check_size_or_rate(self.size, self.rate)

    def rate_for(self, n: int) -> float:
        """Return the probability that one of n units joins a round."""
        if self.rate is not None:
            return self.rate
        size = self.size or 0
        if size > n:
            raise ParameterError(f"size must be at most the {n} units of the silo, got {size}.")
        return size / n

    def size_for(self, n: int) -> int:
        """Return the expected number of units, rounded; what messages are made for."""
        return max(1, round(self.expected(n)))

    def expected(self, n: int) -> float:
        """Return the expected number of units, the public divisor of the mean."""
        return self.rate_for(n) * n if self.size is None else float(self.size)


Batch = Full | Fixed | Disjoint | Poisson

BATCH_WORDS = "'full', a whole number, or a share below 1"
"""How a person writes a batch."""


def read_batch(name: str, value: object, *, kind: type[Fixed | Disjoint | Poisson] = Fixed) -> Batch:
    """Return the batch that a person writes as "full", a number of units, or a share of them below 1.

    Args:
        name: Of the setting, for messages.
        value: What was written.
        kind: How a batch smaller than the silo is drawn.

    Raises:
        ParameterError: Anything else.
    """
    if value == "full":
        return Full()
    if isinstance(value, str):
        raise ParameterError(f"{name} must be {BATCH_WORDS}, got {shown(value)}.")
    number: Any = value
    check_positive(name, number)
    if isinstance(number, int):
        return kind(size=number)
    if number >= 1:
        raise ParameterError(f"{name} must be {BATCH_WORDS}, got {shown(value)}.")
    return kind(rate=number)
