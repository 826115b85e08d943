"""Proximal SVRG, from the server's side: a mean gradient per epoch, and how it changed since.

Source: Lowy (2023), Algorithms 2 and 3, and 22 and 23 under shuffle trust, after Reddi et al. (2016),
"Proximal stochastic methods for nonsmooth nonconvex finite-sum optimization".
"""

from __future__ import annotations

import itertools
from typing import ClassVar, Literal

import numpy as np

from tacit.errors import ParameterError, check_choice, check_count, check_probability
from tacit.federation import Ask, Fixed, Full, Group, Poisson, Step
from tacit.learning.algorithms.base import GRADIENT, Convexity, Follow, Kinds, Method, Problem, check_optional
from tacit.learning.algorithms.prox_sgd import guessed_mu, inexact_descent_bound, starting_gap
from tacit.learning.algorithms.splits import check_shares, optimal_shares, split_shares
from tacit.learning.difference import RecordDifference, difference_radius
from tacit.numerics import Array, Regularizer
from tacit.randomness import PublicStream

__all__ = ["NoisyProximalPLSVRG", "NoisyProximalSVRG", "prox_svrg"]


class NoisyProximalSVRG(Method, frozen=True, kw_only=True, tag="prox-svrg"):
    """Proximal SVRG: epochs of one full gradient and differences from it (Lowy 2023, Algorithm 2).

    The first step of an epoch needs no difference: it would be zero. Where silos are drawn, all rounds of an
    epoch ask those that its gradient is of.

    Attributes:
        rounds: R, steps in all, one round each; None chooses it.
        batch: Units per difference; gradients take all units.
        period: Q, steps of an epoch; None is n / batch for the smallest silo, and 4 for full batches.
        step_size: eta, at most 1 / (5 beta); None is (1 / (8 beta)) min(1, K^1.5 sqrt(M) / n).
        split: Share of what the run may reveal, as 1 / multiplier^2, that goes to full gradients, in (0, 1);
            None minimises the sum of both variances at the largest radii.
        output: "last", or "random": a uniform one of all points, by public randomness.
        seed: Of the public draw.
        mu: Proximal-PL constant that the choice of rounds counts on; None is as for `NoisyProximalSGD`.
        gap: Delta, a public bound on F(w_0) - F*; None takes min(beta D^2 / 2, L D).
    """

    batch: Full | Fixed | Poisson = Full()
    period: int | None = None
    step_size: float | None = None
    split: float | None = None
    output: Literal["last", "random"] = "last"
    seed: int = 0
    mu: float | None = None
    gap: float | None = None

    statistics: ClassVar = {**GRADIENT, "difference": RecordDifference}
    needs: ClassVar[Convexity] = "prox-pl"
    composite: ClassVar[bool] = True
    paper: ClassVar[str] = "Lowy, Ghafelebashi and Razaviyayn (2023); Reddi et al. (2016)"

    @property
    def runs(self) -> int:
        """How often the whole is started again from where it ended."""
        return 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size, mu=self.mu, gap=self.gap)
        if self.period is not None:
            check_count("period", self.period)
        if self.split is not None:
            check_probability("split", self.split, low_open=True, high_open=True)
        check_choice("output", self.output, ["last", "random"])
        check_count("seed", self.seed, low=0)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for a full gradient, and for Q - 1 differences, in turn."""
        period, lengths = self._period(problem), self._lengths(rounds)
        first, other = self._shares(problem, rounds)
        gradient = Step(measures=(problem.measure("gradient", share=first),))
        change = problem.measure("difference", max_radius=2 * problem.radius, share=other, batch=self.batch)
        difference = Step(measures=(change,), batch=self.batch)
        kinds: list[tuple[Step | Group, int]] = []
        for length in lengths:
            whole, rest = divmod(length, period)
            if whole and period > 1:
                kinds.append((Group(steps=((gradient, 1), (difference, period - 1))), whole))
            elif whole:
                kinds.append((gradient, whole))
            if rest:
                kinds.append((gradient, 1))
            if rest > 1:
                kinds.append((difference, rest - 1))
        return tuple(kinds)

    def turns(self, problem: Problem, rounds: int) -> tuple[int, ...]:
        """Return the first rounds of epochs: their gradients and differences are of the same silos."""
        period, ends = self._period(problem), [0, *itertools.accumulate(self._lengths(rounds))]
        return tuple(r for start, end in itertools.pairwise(ends) for r in range(start, end, period))

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound of inexact proximal descent, run after run, for proximal-PL losses.

        The error of a step is at most the noise of a gradient and that of a difference at the largest radius
        (`inexact_descent_bound`).
        """
        gap = starting_gap(self.gap, problem)
        for length in self._lengths(rounds):
            gap = inexact_descent_bound(
                step_size=self._step(problem),
                smoothness=problem.known_smoothness,
                mu=guessed_mu(self.mu, problem),
                rounds=length,
                gap=gap,
                variance=problem.errors.get("gradient", 0.0) + problem.errors.get("difference", 0.0),
                average=self.output == "random",
            )
        return gap

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown smoothness, mu above it, steps above 1 / (5 beta), and fewer rounds than runs."""
        _ = problem.record_smoothness
        guessed_mu(self.mu, problem)
        longest = 1 / (5 * problem.known_smoothness)
        if self._step(problem) > longest:
            raise ParameterError(
                f"step_size must be at most 1 / (5 beta) = {longest!r}, got {self.step_size!r}."
            )
        check_count("rounds", rounds, low=self.runs)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask`, each run from where the one before it ended."""
        done = 0
        for number, length in enumerate(self._lengths(rounds)):
            kept = length
            if self.output == "random":
                stream = PublicStream(self.seed, number, purpose="output")
                kept = 1 + int(stream.integers(length, 1)[0])
            w = prox_svrg(
                ask,
                w,
                rounds=length,
                period=self._period(problem),
                step_size=self._step(problem),
                radius=problem.radius,
                smoothness=problem.known_smoothness,
                prox=prox,
                follow=follow,
                kept=kept,
                first=done,
            )
            done += length
        return w

    def _period(self, problem: Problem) -> int:
        """Return Q."""
        if self.period is not None:
            return self.period
        n = min(problem.sizes)
        return 4 if isinstance(self.batch, Full) else max(n // self.batch.size_for(n), 1)

    def _step(self, problem: Problem) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        n = min(problem.sizes)
        covered: float = self.batch.size_for(n) ** 1.5 * problem.asked**0.5 / n
        return min(1.0, covered) / (8 * problem.known_smoothness)

    def _lengths(self, rounds: int) -> list[int]:
        """Return the steps of each run."""
        each, more = divmod(rounds, self.runs)
        return [length for k in range(self.runs) if (length := each + (k < more)) > 0]

    def _shares(self, problem: Problem, rounds: int) -> tuple[float, float]:
        """Return what a round of gradients and one of differences may spend of the budget."""
        gradients = sum(-(-length // self._period(problem)) for length in self._lengths(rounds))
        counts = (gradients, rounds - gradients)
        if counts[1] == 0:
            return 1 / gradients, 1.0
        n = min(problem.sizes)
        rate = self.batch.expected(n) / n
        if self.split is None:
            # Noise on sums, over the rows of a batch: differences may be twice as long.
            shares = optimal_shares(counts, (1.0, (2 / rate) ** 2), (1.0, rate))
        else:
            shares = split_shares(self.split, counts, rate=rate)
        check_shares(counts, shares, (1.0, rate))
        most = max(*shares, 1.0)  # on small samples a share may be more than all of a batch of all units
        return shares[0] / most, shares[1] / most


class NoisyProximalPLSVRG(NoisyProximalSVRG, frozen=True, kw_only=True, tag="prox-pl-svrg"):
    """Proximal SVRG, started again from a point of the run before (Lowy 2023, Algorithm 3).

    Attributes:
        restarts: S, runs of R / S rounds each.
        output: What each run returns.
    """

    restarts: int = 2
    output: Literal["last", "random"] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("restarts", self.restarts)

    @property
    def runs(self) -> int:
        """S."""
        return self.restarts


def prox_svrg(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    period: int,
    step_size: float,
    radius: float,
    smoothness: float,
    prox: Regularizer,
    follow: Follow,
    kept: int,
    first: int = 0,
) -> Array:
    """Run (noisy) proximal SVRG (Lowy 2023, Algorithm 2).

    Args:
        ask: Returns mean clipped gradients, and mean clipped differences of gradients.
        w: Start, shape (size,).
        rounds: Number of steps.
        period: Q, steps of an epoch.
        step_size: eta.
        radius: Norm bound L of a record's gradient; differences are of gradients that are clipped to it.
        smoothness: beta of a record's loss.
        prox: Regulariser or constraint; stays on the server.
        follow: Called after each round.
        kept: Number of the point that is returned, from 1; `rounds` is the last.
        first: Number of the first round in the plan.

    Returns:
        The point w_kept, shape (size,).
    """
    found = reference = full = w
    for r in range(rounds):
        if r % period == 0:
            reference = w
            (full,) = ask(first + r, {"w": w}, (radius,))
            v = full
        else:
            longest = difference_radius(w, reference, lipschitz=radius, smoothness=smoothness)
            at = {"w": w, "previous": reference, "clip": np.array(radius)}
            (change,) = ask(first + r, at, (longest,))
            v = full + change
        w = prox(step_size, w - step_size * v)
        found = w if r + 1 == kept else found
        follow(first + r, w)
    return found
