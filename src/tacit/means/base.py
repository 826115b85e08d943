"""The protocol of private mean estimation: every algorithm of tacit asks for means in this form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative
from tacit.means.message import Message, Round
from tacit.numerics import Array, settle
from tacit.privacy import Event, Neighbours, TrustModel

if TYPE_CHECKING:
    from tacit.means.problem import MeanProblem
    from tacit.means.proposals import Proposal

__all__ = [
    "WORST_CASE",
    "Error",
    "Facts",
    "MeanEstimator",
    "ScaledEncoder",
    "SumEncoder",
    "Weighs",
    "worst_error",
]

Weighs = Literal["rows", "parties"]
"""What counts in an estimate: every row, or every party once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Public facts that an error may depend on.

    With v_i the sum of the clipped rows of party i, compressed means also depend on how long and how alike
    these vectors are. Read off private data, both numbers would be releases: they are guesses or public.

    Attributes:
        parties: Number of parties that hold the rows. None: any number from one, which holds all rows, to one
            for each row, whichever is worst.
        radius: Norm bound of a row.
        squared_norms: S1 = sum_i ||v_i||^2; None for the most that rows dealt evenly can reach.
        correlation: R = sum_{i != l} <v_i, v_l> / S1, in [-1, parties - 1]; None for the worst case.

    Raises:
        ParameterError: A value is out of its range.
    """

    parties: int | None = None
    radius: float = 1.0
    squared_norms: float | None = None
    correlation: float | None = None

    def __post_init__(self) -> None:
        settle(self)
        if self.parties is not None:
            check_count("parties", self.parties)
        check_non_negative("radius", self.radius)
        if self.squared_norms is not None:
            check_non_negative("squared_norms", self.squared_norms)
        if self.correlation is not None and self.parties is None:
            raise ParameterError("parties must be given with a correlation, which is in [-1, parties - 1].")
        most = (self.parties or 1) - 1
        slack = 1e-9 * max(most, 1)
        if self.correlation is not None and not -1 - slack <= self.correlation <= most + slack:
            raise ParameterError(
                f"correlation must be in [-1, parties - 1] = [-1, {most}], got {self.correlation!r}."
            )

    def most_squared_norms(self, n: int) -> float:
        """Return S1 or, where it is not given, its bound for n rows that are dealt evenly to the parties."""
        if self.squared_norms is not None:
            return self.squared_norms
        parties = self.parties or 1
        size, more = divmod(n, parties)
        return self.radius**2 * (more * (size + 1) ** 2 + (parties - more) * size**2)

    def most_norms(self, n: int) -> float:
        """Return the most that sum_i ||v_i|| can be: by S1, or n radii, whoever holds the rows."""
        by_squares = math.sqrt((self.parties or n) * self.most_squared_norms(n))
        return by_squares if self.squared_norms is not None else min(by_squares, n * self.radius)


SETTLED = 0.01
"""Share of an error that its standard error may be for the error to be taken for known."""

WORST_CASE = Facts()
"""Nothing is known but the radius, 1: the worst rows of the ball, held by the worst number of parties."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Error:
    """How far an estimate is from the mean of the clipped rows.

    Attributes:
        variance: Expected squared L2 distance from the expected estimate, summed over coordinates.
        bias: L2 distance of the expected estimate from the mean.
        exact: Whether both are exact, a simulated variance to one per cent by its standard error; else they
            are upper bounds, or estimates of them.
        stderr: Standard error of `variance` where it is simulated, infinite where it has none that can be
            trusted; 0 where it is computed.
    """

    variance: float
    bias: float = 0.0
    exact: bool = True
    stderr: float = 0.0

    @property
    def mse(self) -> float:
        """Mean squared L2 error."""
        return self.variance + self.bias**2

    @property
    def kind(self) -> Literal["exact", "bound", "estimate"]:
        """What the numbers are; an estimate was simulated, and is not known to one per cent."""
        if self.exact:
            return "exact"
        return "estimate" if self.stderr > SETTLED * abs(self.variance) else "bound"


def worst_error(of: Callable[[Facts], Error], n: int, facts: Facts, *, suspects: Iterable[int] = ()) -> Error:
    """Return the largest error over the numbers of parties that facts leave open.

    Args:
        of: The error for facts with a number of parties.
        n: Number of rows.
        facts: What is known; with parties, that is all.
        suspects: Numbers of parties to try besides 1 and n.

    Returns:
        A bound on both parts; what the rows decide is in `of`.
    """
    if facts.parties is not None:
        return of(facts)
    tried = sorted({1, n, *(p for p in suspects if 1 < p < n)})
    found = [of(replace(facts, parties=parties)) for parties in tried]
    worst = max(found, key=lambda error: error.variance)
    bias = max(error.bias for error in found)
    alike = all((error.variance, error.bias) == (worst.variance, bias) for error in found)
    return Error(
        variance=worst.variance, bias=bias, exact=alike and all(e.exact for e in found), stderr=worst.stderr
    )


class MeanEstimator(Protocol):
    """One round of mean estimation.

    Parties hold n rows in a ball of public radius, one row per protected unit; the server estimates 1/n times
    their sum. tests/contract/test_mean_estimators.py checks what is written here for every estimator:
    `decode` does not depend on the order of messages; `estimate` has the law of encode-then-decode;
    `bits_per_party` is what `to_bytes` takes; `error` agrees with the law; a row outside the ball counts as
    clipped.
    """

    @property
    def dim(self) -> int:
        """Number of coordinates of a row."""
        ...

    @property
    def neighbours(self) -> Neighbours:
        """The relation under which the noise was scaled."""
        ...

    @property
    def trust(self) -> TrustModel:
        """Who may see the messages of a party, and so who adds the noise."""
        ...

    @property
    def private(self) -> bool:
        """Whether a claim is made to anybody."""
        ...

    @property
    def exact(self) -> bool:
        """Whether what is random is sampled exactly: no float stands in for a real number that is priced."""
        ...

    @property
    def refuses(self) -> bool:
        """Whether a row outside of the ball is an error, which tells of that row."""
        ...

    @property
    def linear(self) -> bool:
        """Whether an estimate scales with its rows: then it can be divided by another n, or weighted."""
        ...

    @property
    def weighs(self) -> Weighs:
        """What counts: every row, or every party once."""
        ...

    @property
    def sums(self) -> tuple[type[np.floating[Any]], ...]:
        """Types of sums of rows in an L2 ball that it takes as a `SumEncoder`; none of other estimators."""
        ...

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterable[Proposal]:
        """Say which candidates it has for a mean; none where it does not fit the trust model."""
        ...

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip the rows of one party, shape (k, dim), then sum or randomise them and write messages."""
        ...

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Estimate the mean, shape (dim,); `rng` is used where the server is trusted to add noise."""
        ...

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate all parties and the server at once on all rows, shape (n, dim)."""
        ...

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns; NonPrivate() where nothing is claimed."""
        ...

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends, headers included."""
        ...

    def numbers_per_party(self, rows: int = 1) -> int:
        """Return a bound on the numbers that such a party keeps to write its messages, besides its rows.

        In units of 8 bytes. Neither a small multiple of the rows is counted nor what is sent.
        """
        ...

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error of the estimate on n rows."""
        ...


@runtime_checkable
class SumEncoder(MeanEstimator, Protocol):
    """An estimator that needs only the sum of a party's clipped rows: they need not be materialised."""

    def encode_sum(
        self, clipped_sum: Array, *, rows: int, round: Round, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write the messages of a party whose `rows` clipped rows add up to `clipped_sum`, shape (dim,)."""
        ...


@runtime_checkable
class ScaledEncoder(MeanEstimator, Protocol):
    """An estimator that rounds every row by itself, and takes rows c x as numbers c and vectors x."""

    def encode_scaled(
        self, factors: Array, vectors: Array, round: Round, *, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write the messages of a party whose clipped rows are `factors[i] * vectors[i]`, shape (k, dim)."""
        ...
