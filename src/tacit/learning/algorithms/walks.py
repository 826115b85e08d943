"""Walks of one silo at a time along an estimate of the gradient: CE-PSGM and DIFF2-BVR-LSGD.

Source: "Efficient private federated non-convex optimization with shuffled model" (PSGM below; an anonymous
manuscript of 2024), Algorithm 1; Murata and Suzuki (2023), Algorithm 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.errors import check_count, check_positive, check_probability
from tacit.federation import Ask, Fixed, Full, Poisson, TurnWalk
from tacit.learning.algorithms.base import Follow, Problem, check_optional
from tacit.learning.algorithms.storm import estimate
from tacit.numerics import Array
from tacit.privacy import TrustModel

__all__ = ["LocalBatch", "Walks"]

LocalBatch = Full | Fixed | Poisson
"""Units of a local difference."""


@dataclass(frozen=True, kw_only=True)
class Walks:
    """How silos walk, and what that may spend.

    Attributes:
        steps: H >= 2 steps of a walk, the first along the estimate itself.
        batch: B2, units of a local difference.
        smoothness: C3, for the clip of local differences; None is that of a record's loss.
        split: Share of the privacy of the run, in squares, that goes to walks.
        heterogeneity: tau, how far the Hessians of silos are from the mean one; None counts on 2 C3.
    """

    steps: int
    batch: LocalBatch
    smoothness: float | None
    split: float
    heterogeneity: float | None

    def check(self) -> None:
        """Refuse what is out of range."""
        check_count("local_steps", self.steps, low=2)
        check_optional(local_smoothness=self.smoothness)
        check_probability("local_split", self.split, low_open=True, high_open=True)
        if self.heterogeneity is not None:
            check_positive("heterogeneity", self.heterogeneity)

    def known_smoothness(self, problem: Problem) -> float:
        """Return C3; local differences have no other clip, so somebody has to know it."""
        if self.smoothness is not None:
            return self.smoothness
        found = problem.record_smoothness
        return found if math.isfinite(found) else problem.known_smoothness

    def shares(self, problem: Problem, count: int, server: Sequence[float], *, rate: float) -> list[float]:
        """Return what one round of each kind of the server's, and one local difference, may spend.

        Args:
            problem: Public facts.
            count: Walks of the run.
            server: What one round of each kind of the server's may spend of all that the server may.
            rate: Which part of the units its rounds are of.
        """
        n, turns = min(problem.sizes), -(-count // problem.asked)
        local_rate = self.batch.expected(n) / n
        found = [(1 - self.split) * share / rate**2 for share in server]
        found.append(self.split / (max(turns, 1) * (self.steps - 1) * local_rate**2))
        return [share / max(found) for share in found]

    def kind(self, problem: Problem, share: float, offset: int, stride: int = 1) -> TurnWalk:
        """Return the round of a walk, whose noise is the silo's own under every trust."""
        own = replace(problem, protection=replace(problem.protection, trust=TrustModel.LOCAL))
        change = own.measure("difference", max_radius=2 * problem.radius, share=share)
        return TurnWalk(measures=(change,), batch=self.batch, steps=self.steps, offset=offset, stride=stride)

    def longest_step(self, problem: Problem, share: float) -> float:
        """Return the longest step size for H steps, of the smoothness, tau, batches and noise of a walk."""
        smoothness = self.known_smoothness(problem)
        tau = 2 * smoothness if self.heterogeneity is None else self.heterogeneity
        steps = [1 / (2 * smoothness), 1 / (2 * self.steps * tau)]
        if not isinstance(self.batch, Full):
            batch = self.batch.expected(min(problem.sizes))
            steps.append(math.sqrt(batch / self.steps) / (2 * smoothness))
        (mean,) = self.kind(problem, share, 0).measures
        spread = getattr(mean.estimator.noise, "noise_multiplier", 0.0)  # type: ignore[union-attr]
        if spread > 0:  # sigma C3 |w - previous| is the noise of a difference, a coordinate
            moved = mean.estimator.sensitivity  # type: ignore[union-attr]
            sigma = moved * spread / self.batch.expected(min(problem.sizes))
            steps.append(1 / (2 * math.sqrt(self.steps * problem.dim) * smoothness * sigma))
        return min(steps)

    def points(self, rounds: int) -> int:
        """Return how many steps that many rounds, estimates and walks, take, the last of the server too."""
        return rounds // 2 * self.steps + rounds % 2

    def along(
        self,
        ask: Ask,
        w: Array,
        *,
        problem: Problem,
        rounds: int,
        weights: Sequence[float],
        step_size: float,
        smoothness: float,
        follow: Follow,
        kept: int | None = None,
    ) -> Array:
        """Run an estimate and a walk along it in turn: CE-PSGM (PSGM 2024, Algorithm 1), or DIFF2-BVR-LSGD.

        Args:
            ask: Returns what the STORM estimator asks for, and every second round where a silo has walked to.
            w: Start, shape (size,).
            problem: Whose radius is C2, where gradients are clipped, and whose facts say C3.
            rounds: Rounds that are asked, estimates and walks.
            weights: rho_r in [0, 1] of each estimate: 1, and beta after it; of DIFF2 1 at restarts, else 0.
            step_size: eta of a local step.
            smoothness: C1, for the clip of the server's differences.
            follow: Called after each round.
            kept: Return the point after that many steps of silos, from 0 on, and ask no more; None is all.

        Returns:
            A point, shape (size,).
        """
        lipschitz, left = problem.radius, math.inf if kept is None else kept
        facts = {"step_size": step_size, "smoothness": self.known_smoothness(problem), "clip": lipschitz}
        numbers = {name: np.asarray(value) for name, value in facts.items()}
        v, previous = w, w
        for r, weight in zip(range(0, rounds, 2), weights, strict=True):
            if left == 0:
                return w
            v = estimate(ask, r, w, previous, v, beta=weight, lipschitz=lipschitz, smoothness=smoothness)
            follow(r, w)
            previous = w
            if r + 1 == rounds:
                return w - step_size * v
            taken = int(min(self.steps, left))
            (w,) = ask(
                r + 1, {"w": w, "v": v, **numbers, "taken": np.asarray(float(taken))}, (2 * lipschitz,)
            )
            left -= taken
            follow(r + 1, w)
        return w
