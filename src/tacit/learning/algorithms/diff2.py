"""DIFF2: a mean gradient now and then, and differences in between; with a period of 1 it is DP-GD.

Source: Murata and Suzuki (2023), "DIFF2: differential private optimization via gradient differences for
nonconvex distributed learning", Algorithms 1 to 3.
"""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.learning.algorithms.base import Problem
from tacit.learning.algorithms.prox_sgd import starting_gap
from tacit.learning.algorithms.spider import NoisySpider
from tacit.privacy import TrustModel

__all__ = ["NoisyDiff2"]


class NoisyDiff2(NoisySpider, frozen=True, kw_only=True, tag="diff2"):
    """DIFF2-GD: SPIDER with full batches, whose restarts are the rarer the larger the noise of a gradient.

    Attributes:
        rounds: R; None chooses it.
        period: T >= 1: every T-th round asks for a gradient, the others for how it changed; 1 is DP-GD, which
            asks for gradients only. None is (G^2 sqrt(d) / (C2 Delta n epsilon))^(2/3) R of all records n
            (of a silo's, under local trust), from 1 to R, and 1 where the smoothness is unknown.
        split: Share of the privacy of the run that goes to gradients; None gives every round the same
            multiple of its sensitivity.
    """

    split: float | None = None

    paper: ClassVar[str] = "Murata and Suzuki (2023)"

    def _period(self, problem: Problem, rounds: int) -> int:
        """Return T: fixed by public facts, and the same at any amount of noise."""
        if self.period is not None:
            return min(self.period, rounds)
        beta, protection = self._beta(problem), problem.protection
        if not math.isfinite(beta) or not math.isfinite(protection.epsilon):
            return 1
        n = min(problem.sizes) if protection.trust is TrustModel.LOCAL else problem.rows
        moved = beta * starting_gap(self.gap, problem, smoothness=beta) * n * protection.epsilon
        period = math.pow(problem.radius**2 * math.sqrt(problem.dim) / moved, 2 / 3) * rounds
        return max(1, min(rounds, round(period)))
