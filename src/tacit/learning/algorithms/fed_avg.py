"""Federated averaging for whole parties: updates are clipped, and their mean gets the noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tacit.errors import check_positive
from tacit.federation import Ask, Step
from tacit.learning.algorithms.base import Follow, Kinds, MakeStatistic, Problem
from tacit.learning.algorithms.party_level import PartyMethod
from tacit.learning.personal.party_rounds import LOCAL_MOVE, DescentFacts, LocalMove
from tacit.numerics import Array, Regularizer

__all__ = ["FedAvg"]


class FedAvg(PartyMethod, frozen=True, kw_only=True, tag="fed-avg"):
    """(DP-)FedAvg: parties take steps of their own, and the mean of clipped updates moves the common model.

    The clip is that of a party's whole update. What is priced is a whole party.

    Attributes:
        rounds: R; how often parties are asked.
        local_steps: tau: steps of a party in a round.
        batch: As in `AdaPeD`.
        step_size: eta of those steps; None is 1 / beta, and 0.3 for a network.
        scale: What the mean update is multiplied by, > 0.
    """

    scale: float = 1.0

    paper: ClassVar[str] = "McMahan et al. (2018), Learning differentially private recurrent language models"
    statistics: ClassVar[Mapping[str, MakeStatistic]] = {LOCAL_MOVE: LocalMove}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("scale", self.scale)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the mean update in every round."""
        measure = problem.measure(LOCAL_MOVE, batch=self.batch)
        return ((Step(measures=(measure,), batch=self.batch), rounds),)

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - any number will do
        """Refuse unknown smoothness where a step size has to be made."""
        self._facts(problem)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the common model."""
        facts = self._facts(problem).array()
        for r in range(rounds):
            (move,) = ask(r, {"w": w, "round": facts}, (problem.radius,))
            w = prox(self.scale, w - self.scale * move)
            follow(r, w)
        return w

    def _facts(self, problem: Problem) -> DescentFacts:
        """Return the public numbers of a round."""
        return DescentFacts(steps=self.local_steps, step_size=self.local_step(problem))
