"""Fed-SPIDER: gradients and differences of them in turn, and every difference as long as it may be.

Source: Lowy (2023), Algorithm 25.
"""

from __future__ import annotations

from tacit.errors import ParameterError
from tacit.learning.algorithms.base import Problem
from tacit.learning.algorithms.spider import SpiderMethod, stationarity_bound

__all__ = ["NoisyFedSpider"]


class NoisyFedSpider(SpiderMethod, frozen=True, kw_only=True, tag="fed-spider"):
    """Fed-SPIDER: SPIDER of period 2 that counts on no smoothness, so differences may be 2 L long.

    Attributes:
        rounds: R >= 3 rounds, 2 (E - 1) + 1 for E points of the paper; None chooses it.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds is not None:
            _check_rounds(self.rounds)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return a bound on the mean squared length of the gradient mapping, if no change is clipped.

        The errors of v_r are those of a gradient, and in every second round those of a difference too.
        """
        eta = self._step(problem)
        gap = min(problem.diameter**2 / (4 * eta), problem.radius * problem.diameter)
        variance = problem.variance + problem.errors.get("difference", 0.0) / 2
        return stationarity_bound(
            step_size=eta, rounds=rounds, period=1, gap=gap, variance=variance, change_variance=0.0
        )

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse fewer than three rounds, and unknown smoothness where a step size has to be made."""
        _check_rounds(rounds)
        self._step(problem)


def _check_rounds(rounds: int) -> None:
    """Refuse what is no turn and a further gradient."""
    if rounds < 3:
        raise ParameterError(f"rounds must be at least 3 for fed-spider, got {rounds!r}.")
