"""AdaPeD: a model for every party, drawn towards a common one by distillation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, get_args

from tacit.errors import ParameterError, check_choice, check_non_negative
from tacit.federation import Ask, Step
from tacit.learning.algorithms.base import (
    Follow,
    Kinds,
    MakeStatistic,
    Problem,
    check_optional,
    other_loss,
)
from tacit.learning.algorithms.party_level import PartyMethod
from tacit.learning.losses import Logistic, Multinomial
from tacit.learning.personal.distillation import Direction
from tacit.learning.personal.party_rounds import PERSONAL_ROUND, AdaPeDFacts, PersonalRound
from tacit.numerics import Array, Regularizer
from tacit.privacy import TrustModel

__all__ = ["AdaPeD"]

_MOST = 1e6
"""Largest psi: there, models have nothing in common."""

_WEIGHT = math.sqrt(1 / 19)
"""c, the clip of psi over that of the model in a row: a twentieth of the privacy of a round goes to psi."""

_PSI_CLIP = 1.0
"""C2: from least_psi = 1/2 on, no slope 1 / (2 psi) is longer."""

_WHY = "what personal models have in common is how likely they think classes are"


class AdaPeD(PartyMethod, frozen=True, kw_only=True, tag="adaped"):
    """(DP-)AdaPeD: personal models that stay with their parties, and a common one by distillation.

    A party's own model gets no noise, because it never leaves. What is common, the model mu and the spread
    psi of personal models around it, is learnt from one clipped row of each party and round, and that is all
    that a price is about. Noise goes on that row and not into every step: it costs the same to who sees a
    message, and in a sum the shares of all parties hide each. The price is that of whole parties; the printed
    one, with its factor (K/n)^2, is unsound (docs/theory/personal-models.md).

    Attributes:
        rounds: R; how often parties are asked. The paper's T is R local_steps.
        local_steps: tau: steps of a party in a round.
        batch: Who takes part: "full", or Poisson(rate): each party by a secret coin of its own, while all add
            noise in every round.
        step_size: eta1 of personal models; None is 1 / (beta (1 + 1 / (2 least_psi))), and 0.3 for a network.
        model_step: eta2 of the common model; None is as `step_size`. 0 keeps it where it is.
        psi_step: eta3 of the spread. 0 keeps it where it is.
        psi: Where the spread starts: the larger, the less a personal model cares for the common one.
        least_psi: Least psi. Its best value is f_KD itself, which is 0 where all models agree.
        direction: Of the distillation: "forward" is KL(common || personal), "reverse" the other.
    """

    model_step: float | None = None
    psi_step: float = 0.1
    psi: float = 1.0
    least_psi: float = 0.5
    direction: Direction = "forward"

    paper: ClassVar[str] = "Ozkara, Girgis, Data and Diggavi (2023)"
    statistics: ClassVar[Mapping[str, MakeStatistic]] = {PERSONAL_ROUND: PersonalRound}
    trusts: ClassVar[tuple[TrustModel, ...]] = (TrustModel.LOCAL, TrustModel.AGGREGATE, TrustModel.SHUFFLE)
    clip_share: ClassVar[float] = 0.05
    personal: ClassVar[str] = PERSONAL_ROUND

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model_step is not None:
            check_non_negative("model_step", self.model_step)
        check_non_negative("psi_step", self.psi_step)
        check_optional(psi=self.psi, least_psi=self.least_psi)
        if not self.least_psi <= self.psi <= _MOST:
            raise ParameterError(
                f"psi must be from least_psi ({self.least_psi!r}) to {_MOST:g}, got {self.psi!r}."
            )
        check_choice("direction", self.direction, get_args(Direction))

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the mean row in every round."""
        if problem.protection.trust is TrustModel.CENTRAL:
            raise ParameterError(
                "trust must be local, aggregate or shuffle for the algorithm 'adaped', got central: there, "
                "silos keep no ledger in which their models would go on."
            )
        measure = problem.measure(
            PERSONAL_ROUND,
            dim=problem.dim + 1,
            max_radius=problem.radius * math.hypot(1.0, _WEIGHT),
            batch=self.batch,
        )
        return ((Step(measures=(measure,), batch=self.batch), rounds),)

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - any number will do
        """Refuse what has no class probabilities, and unknown smoothness where a step size has to be made."""
        if problem.loss is not None and not isinstance(problem.loss, Logistic | Multinomial):
            raise other_loss(problem, needs="the algorithm 'adaped' needs the loss 'logistic'", why=_WHY)
        self._facts(problem, self.psi)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the common model; personal ones are with their parties."""
        psi = self.psi
        for r in range(rounds):
            facts = self._facts(problem, psi)
            (row,) = ask(r, {"w": w, "round": facts.array()}, (facts.radius,))
            total = row * self.local_steps
            w = prox(facts.model_step, w - facts.model_step * total[:-1])
            slope = float(total[-1]) * facts.psi_clip / (facts.psi_weight * facts.clip)
            psi = facts.within(psi - facts.psi_step * slope)
            follow(r, w)
        return w

    def _facts(self, problem: Problem, psi: float) -> AdaPeDFacts:
        """Return the public numbers of a round that starts at psi."""
        step = self.local_step(problem)
        if self.step_size is None and math.isfinite(problem.smoothness):
            step /= 1 + 1 / (2 * self.least_psi)
        private = math.isfinite(problem.protection.epsilon)
        return AdaPeDFacts(
            steps=self.local_steps,
            step_size=step,
            model_step=step if self.model_step is None else self.model_step,
            psi_step=self.psi_step,
            psi=psi,
            least_psi=self.least_psi,
            most_psi=_MOST,
            clip=problem.radius,
            psi_clip=_PSI_CLIP if private else problem.radius,
            psi_weight=_WEIGHT,
            reverse=float(self.direction == "reverse"),
        )
