"""Follow the regularized leader: steps are made of the sum of all gradients, and noise cancels in sums."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from tacit.errors import ParameterError, check_count, check_probability
from tacit.federation import Ask, CorrelatedStep, Disjoint, Full
from tacit.learning.algorithms.base import UNMIXED, Follow, Kinds, Method, Problem, check_optional
from tacit.numerics import Array, Regularizer, RunningAverage, prefix_sum_errors, square_root_column
from tacit.privacy import TrustModel

__all__ = ["NoisyFTRL"]

_PASSES = 6


class NoisyFTRL(Method, frozen=True, kw_only=True, tag="ftrl"):
    """Steps along the sum of all gradients, whose noise later rounds take back in part (DP-FTRL).

    For records that are used once or a few times: batches are the blocks of one order of a silo's records,
    and nothing hides who is in which. With full batches and one band it is gradient descent. Where every
    round can use all records, other algorithms do better (docs/theory/correlated-noise.md).

    Attributes:
        rounds: T; None is as many as the passes have batches.
        batch: Units per round, disjoint until all of them had their turn, or full.
        passes: How often a unit takes part, at most, where `rounds` is None; None is 6.
        bands: How many rounds the noise of one reaches, itself counted; None is a pass of the silo with the
            fewest batches, 1 makes noise independent.
        step_size: eta; None minimises the error bound, but not above 4 / beta where beta is known.
        momentum: Share of the last direction in the next one, in [0, 1); directions keep their length.
        average: Share of the last iterates that are averaged, in (0, 1]; 1 is what the theory averages.
    """

    batch: Full | Disjoint = Disjoint(rate=0.1)
    passes: int | None = None
    bands: int | None = None
    step_size: float | None = None
    momentum: float = 0.0
    average: float = 0.5

    paper: ClassVar[str] = "Kairouz et al. (2021); Kalinin and Lampert (2024)"
    caveat: ClassVar[str] = "its bound is proven for one pass"
    trusts: ClassVar[tuple[TrustModel, ...]] = UNMIXED
    why_no_sums: ClassVar[str] = (
        "later rounds take noise of earlier ones back, and shares of such noise have no price in a sum"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("passes", self.passes), ("bands", self.bands)):
            if value is not None:
                check_count(name, value)
        if self.passes is not None and self.rounds is not None:
            raise ParameterError(f"passes must be left out where rounds are given, got {self.passes}.")
        check_optional(step_size=self.step_size)
        check_probability("momentum", self.momentum, high_open=True)
        check_probability("average", self.average, low_open=True)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients in all rounds, with correlated noise."""
        step = CorrelatedStep(
            measures=(problem.measure("gradient"),),
            batch=self.batch,
            bands=self._bands(problem, rounds),
            passes=self._passes(problem, rounds),
        )
        return ((step, rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return D^2/(2 eta T) + eta (L^2/2 + L N), N the root mean square of the noise in sums of gradients.

        It bounds the mean of w_0..w_{T-1} for convex losses, smooth or not, in one pass, without momentum
        (Kairouz et al. 2021, arXiv:2103.00039, Theorem C.1; docs/theory/correlated-noise.md).
        """
        eta, length = self._step(problem, rounds), min(problem.radius, problem.lipschitz)
        noise = self._noise(problem, rounds)
        return problem.diameter**2 / (2 * eta * rounds) + eta * length * (length / 2 + noise)

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - as algorithms define it
        """Refuse more bands than rounds."""
        if self.bands is not None and self.bands > rounds:
            raise ParameterError(f"bands must be at most the {rounds} rounds, got {self.bands}.")

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the averaged parameters.

        A regulariser of every round acts on the sum, as it does in dual averaging (Xiao 2010).
        """
        eta, skipped = self._step(problem, rounds), min(int(rounds * (1 - self.average)), rounds - 1)
        start, direction, total, average = w, np.zeros_like(w), np.zeros_like(w), RunningAverage()
        for r in range(rounds):
            average = average.add(w, 0.0 if r >= skipped else -math.inf)
            (gradient,) = ask(r, {"w": w}, (problem.radius,))
            direction = self.momentum * direction + (1 - self.momentum) * gradient
            total = total + direction
            w = prox((r + 1) * eta, start - eta * total)
            follow(r, w)
        return average.value

    def _blocks(self, problem: Problem) -> int:
        """Return how many batches a pass has, in the silo where they are fewest."""
        return min(n // self.batch.size_for(n) for n in problem.sizes)

    def _passes(self, problem: Problem, rounds: int) -> int:
        """Return how often a unit takes part, at most."""
        if self.rounds is None and isinstance(self.batch, Disjoint):
            return _PASSES if self.passes is None else self.passes
        return math.ceil(rounds / self._blocks(problem))

    def _bands(self, problem: Problem, rounds: int) -> int:
        """Return how many rounds noise reaches."""
        wanted = self._blocks(problem) if self.bands is None else self.bands
        return min(wanted, rounds)  # plans are also made for fewer rounds, to find out how many there can be

    def _noise(self, problem: Problem, rounds: int) -> float:
        """Return N; V is the error of a round with fresh noise."""
        rms, _ = prefix_sum_errors(square_root_column(self._bands(problem, rounds)), rounds)
        return problem.noise_std * rms

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        length = min(problem.radius, problem.lipschitz)
        noise = self._noise(problem, rounds)
        best = problem.diameter / math.sqrt(rounds * length * (length + 2 * noise))
        return min(best, 4 / problem.smoothness) if math.isfinite(problem.smoothness) else best
