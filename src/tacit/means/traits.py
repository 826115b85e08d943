"""What federations ask of every mean estimator, answered once for each of the two families of estimators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means.base import Weighs
from tacit.means.noise import AnyNoise, NoNoise
from tacit.means.violations import OnViolation
from tacit.privacy import Neighbours, Relation

if TYPE_CHECKING:
    from tacit.means.problem import MeanProblem
    from tacit.means.proposals import Proposal

__all__ = ["COPIES", "RandomizedRows", "SumOfRows"]

COPIES = 20
"""Numbers in memory for one of a sum: noise on a grid is drawn from words, and packed bit by bit."""


class SumOfRows:
    """A party adds up its clipped rows, and noise goes on the sum or on what is published of all sums."""

    dim: int
    noise: Any  # a field of the estimator, of the kinds of noise that it takes
    neighbours: Neighbours
    on_violation: OnViolation | None

    linear: ClassVar[bool] = True
    weighs: ClassVar[Weighs] = "rows"

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterable[Proposal]:  # noqa: ARG003 - as estimators define it
        """Offer nothing, unless the estimator says what."""
        return ()

    @property
    def private(self) -> bool:
        """Whether a claim is made."""
        return not isinstance(self.noise, NoNoise)

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation (of Laplace noise the scale) / sensitivity; 0 without noise."""
        return 0.0 if isinstance(self.noise, NoNoise) else float(self.noise.noise_multiplier)

    @property
    def sensitivity(self) -> int:
        """Radii by which one unit moves a sum."""
        return 2 if self.neighbours.relation == Relation.REPLACE_ONE else 1

    def against_nothing(self) -> Self:
        """Return the same mean with the same noise, priced under zero-out: against a unit that is absent.

        A sum moves by one radius where replacing a unit moves it by two, or by the root of two, so that the
        multiplier of the noise is as much larger. Messages are as long as `Round.n` says, however many rows
        there are.
        """
        near: Any = msgspec.structs.replace(self.neighbours, relation=Relation.ZERO_OUT)
        alone = msgspec.structs.replace(self, neighbours=near)  # type: ignore[type-var]  # all are structs
        if not self.private:
            return alone
        multiplier = self.noise.noise_multiplier * self.moved / alone.moved
        return msgspec.structs.replace(  # type: ignore[type-var]
            alone, noise=msgspec.structs.replace(self.noise, noise_multiplier=multiplier)
        )

    @property
    def moved(self) -> float:
        """Radii by which one unit moves a sum of the rows that there can be, at most."""
        return self.sensitivity

    @property
    def exact(self) -> bool:
        """Whether the noise is sampled exactly, or there is none."""
        noise: AnyNoise = self.noise
        return noise.exact

    @property
    def refuses(self) -> bool:
        """Whether a row outside of the ball is an error: if it is to be, or where nothing is claimed."""
        return not self.private if self.on_violation is None else self.on_violation == "error"

    def numbers_per_party(self, rows: int = 1) -> int:
        """Return a bound on the numbers that a party keeps to write its messages, besides its rows."""
        check_count("rows", rows, low=0)
        return COPIES * self.dim

    @property
    def sums(self) -> tuple[type[np.floating[Any]], ...]:
        """Types of sums that `encode_sum` takes of rows in an L2 ball, added up by others in any order.

        A sum does not tell whether one of its rows was to be refused. On a grid, single precision would add
        more to the sensitivity than the price covers.
        """
        if self.refuses or self.noise.norm != "l2":
            return ()
        return (np.float64,) if self.noise.on_grid else (np.float64, np.float32)


class RandomizedRows:
    """Every row is randomised by itself, at the party that holds it."""

    dim: int
    on_violation: OnViolation | None

    private: ClassVar[bool] = True
    linear: ClassVar[bool] = True
    weighs: ClassVar[Weighs] = "rows"
    sums: ClassVar[tuple[type[np.floating[Any]], ...]] = ()

    def against_nothing(self) -> Self:
        """Refuse: whoever counts reports sees how many units a sample holds."""
        raise ParameterError(
            f"a Poisson batch needs sums of rows, got {type(self).__name__}: its reports can be counted, and "
            "the size of a sample is secret."
        )

    def numbers_per_party(self, rows: int = 1) -> int:
        """Return a bound on the numbers that a party keeps to write its messages, besides its rows."""
        check_count("rows", rows, low=0)
        return COPIES * self.dim

    @property
    def exact(self) -> bool:
        """Whether reports are drawn exactly."""
        return True

    @property
    def refuses(self) -> bool:
        """Whether a row outside of the ball is an error: only if it is to be."""
        return self.on_violation == "error"
