"""What algorithms that protect whole parties have in common."""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import ParameterError, check_count
from tacit.federation import Full, Poisson
from tacit.learning.algorithms.base import Method, Problem, check_optional
from tacit.learning.objective import Objective
from tacit.learning.personal.party_rounds import MOST_STEPS
from tacit.privacy import Unit

__all__ = ["PartyMethod"]

_NETWORK_STEP = 0.3
"""Length of steps of networks of features of about 1, which handwritten digits do well with."""


class PartyMethod(Method, frozen=True, kw_only=True):
    """Rounds in which a whole party takes steps on its own, and one bounded row of it leaves.

    Attributes:
        rounds: R; how often parties are asked.
        local_steps: tau: steps of a party in a round.
        batch: Who takes part: "full", every party in every round; or Poisson(rate): each by a secret coin of
            its own, with noise of all in every round, so that nobody sees who does.
        step_size: eta1 of those steps; None goes by the smoothness of the loss, and is 0.3 for a
            network.
    """

    rounds: int | None = 20
    local_steps: int = 10
    batch: Full | Poisson = Full()
    step_size: float | None = None

    unit: ClassVar[Unit | None] = Unit.PARTY
    unbounded: ClassVar[str] = "no bound on the error of many local steps on data that differ is known here"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("local_steps", self.local_steps, high=MOST_STEPS)
        if not isinstance(self.batch, Full | Poisson):
            raise ParameterError(
                "batch must be 'full' or a Poisson share of the parties where whole parties are protected: "
                f"a party is one unit; got {self.batch!r}."
            )
        check_optional(step_size=self.step_size)

    def local_step(self, problem: Problem) -> float:
        """Return the length of a party's steps: the one given, or 1 / beta; 0.3 for a network.

        Raises:
            ParameterError: None is given, and beta is unknown though the model is linear.
        """
        if self.step_size is not None:
            return self.step_size
        if problem.loss is None and not math.isfinite(problem.smoothness):
            return _NETWORK_STEP
        return 1 / problem.known_smoothness

    def why_no_regularizer(self, objective: Objective) -> str:  # noqa: ARG002 - of none
        """Return that no penalty goes into the steps of parties."""
        return "the steps inside a party are on its own loss alone"

    def error_bound(self, problem: Problem, rounds: int) -> float:  # noqa: ARG002 - of none
        """Return infinity: none is known."""
        return float("inf")
