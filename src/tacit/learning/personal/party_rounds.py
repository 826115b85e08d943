"""What a whole party does in a round: many steps on all its records, of which one bounded row leaves.

The unit is the party, so that one row says all of it: no step inside needs noise of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Self

import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive
from tacit.learning.objective import Grouped, Objective, Records, point_of
from tacit.learning.personal.distillation import Distillation, Predictive, distillable
from tacit.numerics import Array

__all__ = [
    "LOCAL_MOVE",
    "PERSONAL_ROUND",
    "AdaPeDFacts",
    "DescentFacts",
    "LocalMove",
    "PersonalRound",
    "descend",
]

PERSONAL_ROUND, LOCAL_MOVE = "personal-round", "local-move"
"""Names of both statistics in plans."""

MOST_STEPS = 10_000
"""Steps that a query may ask of a party."""

_ALL = 1e100
"""A radius that clips no gradient of a record."""


@dataclass(frozen=True, kw_only=True)
class DescentFacts:
    """Public numbers of a round of gradient steps, as a query has them.

    Attributes:
        steps: Steps in the round, 1 to 10,000.
        step_size: Of each, finite, > 0.
    """

    steps: int
    step_size: float

    def __post_init__(self) -> None:
        check_count("steps", self.steps, high=MOST_STEPS)
        check_positive("step_size", self.step_size)

    def array(self) -> Array:
        """Return them as a point of a query."""
        return np.array(astuple(self), dtype=np.float64)

    @classmethod
    def of(cls, at: Mapping[str, Array], name: str = "round") -> Self:
        """Return them from a query.

        Raises:
            ParameterError: They are missing, too many, or out of range.
        """
        point = point_of(at, len(fields(cls)), name=name).tolist()
        if not point[0].is_integer():
            raise ParameterError(f"steps must be a whole number, got {point[0]!r}.")
        return cls(**dict(zip((one.name for one in fields(cls)), [int(point[0]), *point[1:]], strict=True)))


@dataclass(frozen=True, kw_only=True)
class AdaPeDFacts(DescentFacts):
    """Public numbers of a round of AdaPeD.

    Attributes:
        model_step: eta2, of the copy of the common model.
        psi_step: eta3, of the copy of psi.
        psi: Where psi starts, in its range.
        least_psi: Least psi, > 0: noise may carry it anywhere.
        most_psi: Largest psi.
        clip: C1, of a step's gradient in the common model.
        psi_clip: C2, of a step's slope in psi.
        psi_weight: c: what psi_clip becomes in the row that is sent, in units of `clip`.
        temperature: Of the distillation.
        reverse: 1 for its reverse direction, else 0.
    """

    model_step: float
    psi_step: float
    psi: float
    least_psi: float
    most_psi: float
    clip: float
    psi_clip: float
    psi_weight: float
    temperature: float = 1.0
    reverse: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_non_negative("model_step", self.model_step)
        check_non_negative("psi_step", self.psi_step)
        for name in ("psi", "least_psi", "most_psi", "clip", "psi_clip", "psi_weight"):
            check_positive(name, getattr(self, name))

    @property
    def distillation(self) -> Distillation:
        """f_KD."""
        return Distillation(direction="reverse" if self.reverse else "forward", temperature=self.temperature)

    @property
    def radius(self) -> float:
        """Norm bound of a row: clip sqrt(1 + c^2), up to rounding."""
        return self.clip * math.hypot(1.0, self.psi_weight)

    def within(self, psi: float) -> float:
        """Return psi in its range."""
        return min(max(psi, self.least_psi), self.most_psi)


@dataclass(frozen=True)
class PersonalRound:
    """The statistic of AdaPeD: a party takes the steps of a round on its own model and copies of the common.

    With f the mean loss of the party's records, its model theta, and copies mu, psi of the common ones, a
    step is

        theta <- theta - eta1 (grad f(theta) + grad_theta f_KD(theta, mu) / (2 psi))
        h = clip(grad_mu f_KD(theta, mu) / (2 psi), C1);             mu <- mu - eta2 h
        k = clip(1 / (2 psi) - f_KD(theta, mu) / (2 psi^2), C2);     psi <- psi - eta3 k

    The row is (sum h / tau, (c C1 / C2) sum k / tau), no longer than C1 sqrt(1 + c^2) whatever the records.
    The model stays in the silo; it starts where the common one is when the party is first asked. A party
    without a good record has a row of zeros.

    Attributes:
        objective: Of a record.

    Reference:
        Ozkara, Girgis, Data and Diggavi (2023), ICLR, Algorithm 3 (AdaPeD), with noise on what is sent in
        place of noise in every step.
    """

    objective: Objective
    state_version: int = 1

    @property
    def state_size(self) -> int:
        """Numbers that are kept of a party: its model, and whether it has one."""
        return self.objective.size + 1

    def update(self, units: Grouped, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
        """Return one row and what is kept for each party, shape (k, size + 1) both."""
        size, facts = self.objective.size, AdaPeDFacts.of(at)
        mu, predictive = point_of(at, size), distillable(self.objective)
        rows = np.zeros((len(units), size + 1))
        for k in range(len(units)):  # of a silo: one
            party = _good(units, k)
            theta = state[k, :-1] if state[k, -1] else mu
            if len(party):
                theta, rows[k] = _personal_round(self.objective, predictive, party, theta, mu, facts)
            state[k] = np.append(theta, 1.0)
        return rows, state


def _personal_round(
    objective: Objective,
    predictive: Predictive,
    party: Records,
    theta: Array,
    mu: Array,
    facts: AdaPeDFacts,
) -> tuple[Array, Array]:
    """Return a party's model after the steps of a round, and its row."""
    kd, psi, X = facts.distillation, facts.within(facts.psi), party.X
    of_model, of_psi = np.zeros_like(mu), 0.0
    own, common = predictive.predictions(theta, X), predictive.predictions(mu, X)
    for _ in range(facts.steps):
        slope = kd.slopes(own, common)[0]
        pull = predictive.pullback(theta, X, slope) / (2 * psi)
        loss = objective.clipped_sum(theta, party, _ALL, np.float64) / len(party)
        theta = theta - facts.step_size * (loss + pull)
        own = predictive.predictions(theta, X)
        h = predictive.pullback(mu, X, kd.slopes(own, common)[1]) / (2 * psi)
        h = h / max(float(np.linalg.norm(h)) / facts.clip, 1.0)
        mu = mu - facts.model_step * h
        common = predictive.predictions(mu, X)
        k = 1 / (2 * psi) - kd.value(own, common) / (2 * psi**2)
        k = k / max(abs(k) / facts.psi_clip, 1.0)
        psi = facts.within(psi - facts.psi_step * k)
        of_model, of_psi = of_model + h, of_psi + k
    weight = facts.psi_weight * facts.clip / facts.psi_clip
    return theta, np.append(of_model, weight * of_psi) / facts.steps


@dataclass(frozen=True)
class LocalMove:
    """The statistic of federated averaging: how far a party's steps on its own loss lead away from "w"."""

    objective: Objective

    def __call__(self, units: Grouped, at: Mapping[str, Array]) -> Array:
        """Return "w" less the point after the steps, of each party, shape (k, size)."""
        w, facts = point_of(at, self.objective.size), DescentFacts.of(at)
        rows = np.zeros((len(units), w.size))
        for k in range(len(units)):  # of a silo: one
            rows[k] = w - descend(self.objective, _good(units, k), w, facts)
        return rows


def descend(objective: Objective, party: Records, w: Array, facts: DescentFacts) -> Array:
    """Return where gradient steps on the mean loss of a party's records lead from w; nowhere without any."""
    for _ in range(facts.steps if len(party) else 0):
        w = w - facts.step_size * objective.clipped_sum(w, party, _ALL, np.float64) / len(party)
    return w


def _good(units: Grouped, k: int) -> Records:
    """Return the records of a party without those that count as zero, whatever a model has for them."""
    records = units.take(np.array([k])).records
    good = np.flatnonzero(records.norms > 0)
    return records if len(good) == len(records) else records.take(good)
