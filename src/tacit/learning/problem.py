"""What every algorithm is, and the public facts that its step sizes are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tacit.errors import ParameterError
from tacit.federation import Ask, Batch
from tacit.learning.minibatch import Follow
from tacit.means import AdditiveMean, SignVoteMean
from tacit.numerics import Array, Regularizer

__all__ = ["Algorithm", "Problem"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The public facts that step sizes come from.

    Attributes:
        smoothness: beta of a record's loss; infinite if unknown, and then step sizes must be given.
        radius: Norm bound L of a record's gradient.
        diameter: About the distance D from the start to a solution.
        dim: Number of parameters.
        variance: V^2, a bound on the expected squared norm of the error of one round's mean gradient: noise,
            sampling of records and of silos. For local steps, of one step in one silo.
        lipschitz: Norm bound of a record's gradient before clipping; infinite if there is none.
        certainty: Where a server adds noise to votes, the probability that the sign of a unanimous vote
            survives it, minus the probability that it turns; 1 where there is no such noise.
    """

    smoothness: float
    radius: float
    diameter: float
    dim: int
    variance: float
    lipschitz: float = math.inf
    certainty: float = 1.0

    @property
    def noise_std(self) -> float:
        """V."""
        return math.sqrt(self.variance)

    @property
    def known_smoothness(self) -> float:
        """beta, or an error where it is unknown and a step size would have to be made from it."""
        if not math.isfinite(self.smoothness):
            raise ParameterError(
                "the objective's smoothness is unknown: give it a finite feature_norm, or the algorithm its "
                "step size."
            )
        return self.smoothness

    def plain_step(self, steps: int) -> float:
        """Return min(1/beta, D / (V sqrt(steps))): of eta <= 1/beta, the least D^2/(eta steps) + eta V^2."""
        smooth = 1 / self.known_smoothness
        if self.variance == 0:
            return smooth
        return min(smooth, self.diameter / (self.noise_std * math.sqrt(steps)))


@runtime_checkable
class Algorithm(Protocol):
    """A method with its parameters; frozen, public, and the same with and without privacy."""

    @property
    def rounds(self) -> int | None:
        """Number of rounds; None is chosen by `error_bound`."""
        ...

    @property
    def batch(self) -> Batch:
        """Which units a round uses."""
        ...

    @property
    def local_steps(self) -> int:
        """Gradient steps inside a silo per round."""
        ...

    @property
    def mean(self) -> type[AdditiveMean] | type[SignVoteMean]:
        """How a round's mean gradient is estimated."""
        ...

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound on the expected excess objective that the choice of `rounds` is made by.

        It holds for convex, smooth objectives whose gradients are not clipped, without regulariser.
        """
        ...

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse a problem that the method cannot run on; called before anything is asked or spent."""
        ...

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the parameters."""
        ...
