"""PF-LD: the Lagrangian dual of differences between groups, with noise where groups are used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, check_positive
from tacit.fairness.iterates import KeptPoints
from tacit.fairness.private_fermi import FairPoint, PrivateFermi, PublicRecords, by_condition
from tacit.fairness.scores import probabilities, pull_back
from tacit.federation import Ask
from tacit.numerics import Array
from tacit.privacy import Part

__all__ = ["PrivateFairLagrangian"]


@dataclass(frozen=True, kw_only=True)
class PrivateFairLagrangian(PrivateFermi):
    """One run of PF-LD on two classes, where only groups are private; asked and priced as `PrivateFermi`.

    It minimises the loss plus the sum over conditions and groups of multiplier times |g|, g the difference
    between the positive rate of a group and of all, and raises each multiplier by |g| in every round. Only g
    uses groups, so that its values and gradients are what has noise.

    Attributes:
        weight: Largest multiplier.
        ascent: Step of the multipliers, > 0.

    Reference:
        Tran, Fioretto and Van Hentenryck (2021), Algorithm 1, with Gaussian noise calibrated on the plan, all
        records in each round, and released counts as sizes of groups.
    """

    ascent: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("ascent", self.ascent)
        if self.part is not Part.SENSITIVE or self.model.classes != 2:
            raise ParameterError("PF-LD is for two classes, and for private groups of public records.")
        if self.target is not None:
            raise ParameterError(
                f"target must be None for PF-LD, whose multipliers rise, got {self.target!r}."
            )

    def run(
        self,
        ask: Ask,
        start: Array,
        *,
        n: int,
        public: PublicRecords | None = None,
        follow: Callable[[int, Array], None] | None = None,
    ) -> FairPoint:
        """Return the parameters after all rounds, and the largest multiplier.

        Arguments are those of `PrivateFermi.run`.

        Raises:
            ParameterError: No public records.
        """
        if public is None:
            raise ParameterError("public must be given where only groups are private.")
        (counts,) = ask(0, {}, (1.0,))
        penalty, factors, seen = self.released(np.asarray(counts).reshape(self.shape[:2]), n, public)
        weights, p = penalty.weights[:, None], penalty.frequencies
        own = np.where(public.conditions >= 0, factors[public.conditions], 0.0)
        theta, pull = start.copy(), np.zeros(self.shape[:2])
        multipliers, kept = np.zeros(self.shape[:2]), KeptPoints(self.rounds, tail=self.tail, only=self.only)
        for t in range(1, self.rounds + 1):
            F = probabilities(self.model.scores(theta, public.X))
            # The derivative in F of a record of a group: pull / (p weight), as dual variables say it.
            W = np.zeros(self.shape)
            W[:, :, 1] = pull / (2 * np.sqrt(p) * weights)
            at = {
                "theta": theta,
                "dual": W.ravel(),
                "frequencies": p.ravel(),
                "factors": factors / seen,
            }
            mass, group = ask(t, at, (1.0, self.radius(public, penalty, W, F, factors / seen)))
            known = (np.mean(pull / p, axis=1) - pull.sum(axis=1)) / penalty.weights
            costs = np.zeros((len(F), 2))
            costs[:, 1] = known[public.conditions] * own
            slopes = F + pull_back(F, costs)
            slopes[np.arange(len(F)), public.y] -= 1.0
            down = self.model.pull(theta, public.X, slopes) / n + self.l2 * theta + np.asarray(group)
            theta = theta - self.step * down
            cells = np.asarray(mass).reshape(self.shape)[:, :, 1] * (factors / seen)[:, None]
            everybody = by_condition(F, public.conditions, self.conditions)[:, 1] * factors / n
            apart = cells / (weights * p) - (everybody / penalty.weights)[:, None]
            multipliers = np.minimum(multipliers + self.ascent * np.abs(apart), self.weight)
            pull = multipliers * np.sign(apart)
            kept.add(t, theta)
            if follow is not None:
                follow(t, theta)
        return FairPoint(kept.points[0], float(multipliers.max()))
