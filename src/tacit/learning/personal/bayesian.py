"""Personal models by Bayes' rule: every party's model and the law that all come from, in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_choice, check_count, check_positive, check_probability
from tacit.learning.objective import Objective, Records
from tacit.learning.personal.distillation import Distillation
from tacit.learning.personal.priors import FLOOR, DistillationPrior, GaussianPrior, LaplacePrior, Prior
from tacit.numerics import Array, settle

__all__ = ["PersonalFit", "PersonalizedMAP", "PriorName"]

PriorName = Literal["gaussian", "laplace", "distillation"]
"""Laws of personal parameters by name."""

_ALL = 1e100
"""A radius that clips no gradient."""


@dataclass(frozen=True, kw_only=True)
class PersonalFit:
    """What parties have learnt.

    Attributes:
        models: One row per party, shape (parties, size).
        prior: The law, with its parameters; None where models have nothing in common.
        values: What was minimised, after every round.
    """

    models: Array
    prior: Prior | None = None
    values: list[float] = field(default_factory=list)


class PersonalizedMAP(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most likely personal models and their law together; not private.

    A round takes `local_steps` steps on every model and then sets mu and the spread to what fits the models
    best (of "distillation", mu takes one step). What is minimised has no bound where the spread goes to 0 and
    all models are equal, so that spreads have a floor.

    Attributes:
        prior: "gaussian", "laplace" or "distillation".
        rounds: Number of rounds.
        local_steps: Steps on every model in a round.
        step: Length of a step over one divided by the smoothness of what is minimised, in (0, 1].
        smoothness: Of a record's loss; None is what the objective knows.
        spread: s2, b or psi at the start.
        floor: Least spread.
        learns_prior: Whether mu and the spread are learnt, or stay as they are.
        distillation: What "distillation" measures.

    Reference:
        Ozkara, Girgis, Data and Diggavi (2023), ICLR, Section 3.

    Example:
        >>> import numpy as np
        >>> from tacit.learning import LinearObjective, Records, Squared
        >>> parties = [Records.of(np.ones((4, 1)), np.full(4, y)) for y in (0.0, 1.0)]
        >>> goal = LinearObjective(loss=Squared(), features=1, feature_norm=1.0)
        >>> fit = PersonalizedMAP(learns_prior=False, spread=0.25).run(goal, parties)
        >>> fit.models.ravel().round(6).tolist()  # half way from 0, the mean of the law, to the party's mean
        [0.0, 0.5]
    """

    prior: PriorName = "gaussian"
    rounds: int = 50
    local_steps: int = 10
    step: float = 1.0
    smoothness: float | None = None
    spread: float = 1.0
    floor: float = FLOOR
    learns_prior: bool = True
    distillation: Distillation = Distillation()

    def __post_init__(self) -> None:
        settle(self)
        check_choice("prior", self.prior, get_args(PriorName))
        check_count("rounds", self.rounds)
        check_count("local_steps", self.local_steps)
        check_probability("step", self.step, low_open=True)
        if self.smoothness is not None:
            check_positive("smoothness", self.smoothness)
        check_positive("spread", self.spread)
        check_positive("floor", self.floor)

    def run(
        self, objective: Objective, parties: Sequence[Records], start: Array | None = None
    ) -> PersonalFit:
        """Return the models of all parties.

        Args:
            objective: Loss of a record.
            parties: Records of each party.
            start: First mu and first model, shape (size,); None is zero.

        Raises:
            ParameterError: No parties; the smoothness is not known; or predictions cannot be distilled.
        """
        if not parties:
            raise ParameterError("parties must be at least one, got none.")
        beta = objective.smoothness if self.smoothness is None else self.smoothness
        if not 0 < beta < math.inf:
            raise ParameterError(
                "smoothness must be given, a finite number > 0, where the objective knows none; got "
                f"{self.smoothness!r}."
            )
        first = np.zeros(objective.size) if start is None else np.array(start, dtype=np.float64)
        law, models = self._law(objective, first), np.tile(first, (len(parties), 1))
        values = []
        for _ in range(self.rounds):
            for theta, party in zip(models, parties, strict=True):
                theta[:] = self._local(objective, law, theta, party, beta)
            law = law.updated(models, parties) if self.learns_prior else law
            losses = (objective.value(w, party).sum() for w, party in zip(models, parties, strict=True))
            values.append(float(sum(losses)) + law.penalty(models, parties))
        return PersonalFit(models=models, prior=law, values=values)

    def _law(self, objective: Objective, center: Array) -> Prior:
        """Return the law at the start."""
        if self.prior == "distillation":
            return DistillationPrior(
                objective=objective,
                center=center,
                spread=self.spread,
                floor=self.floor,
                distillation=self.distillation,
            )
        law = GaussianPrior if self.prior == "gaussian" else LaplacePrior
        return law(center=center, spread=self.spread, floor=self.floor)

    def _local(self, objective: Objective, law: Prior, theta: Array, party: Records, beta: float) -> Array:
        """Return the model of a party after its steps of a round."""
        smoothness = beta * max(len(party), 1)
        for _ in range(self.local_steps):
            slope = objective.clipped_sum(theta, party, _ALL, np.float64)
            theta = law.descend(theta, party, slope, smoothness, step=self.step)
        return theta
