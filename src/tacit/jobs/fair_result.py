"""What a fair training leaves: its model, its scores by group, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.fairness import FairnessSummary, MetricTable
from tacit.federation import Plan
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData
from tacit.jobs.model import TrainedModel
from tacit.privacy import Guarantee

__all__ = ["CurvePoint", "FairResult"]


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """One model of the curve, on the held-out records.

    Attributes:
        weight: Of the penalty.
        accuracy: Share of records that are predicted right.
        violation: Gap of hard predictions under the notion.
        soft_violation: Gap of probabilities.
        pareto: Whether no other point is as fair and more accurate, or as accurate and fairer.
    """

    weight: float
    accuracy: float
    violation: float
    soft_violation: float
    pareto: bool


@dataclass(frozen=True, kw_only=True)
class FairResult:
    """What a fair training leaves; scores are those of held-out records, computed without privacy.

    Attributes:
        job: The configuration.
        data: Records, and what is public of them.
        model: Ready to predict; it needs no sensitive column.
        weight: Of the penalty; where a violation was asked for, what was found.
        fair: How fair the model is; None where a private run has no held-out record that scores count.
        unconstrained: The same of a model with weight 0.
        tables: Rates by group, a table for each label that they are about; none without scores.
        guarantees: One for each silo or for all; says so where nothing is claimed.
        alone: Under shuffle and aggregate trust, what the messages of each silo show alone.
        plan: What was asked of silos; None without privacy.
        curve: Points of other weights; without privacy, and in simulations.
        seconds: Training time.
    """

    job: JobConfig
    data: JobData
    model: TrainedModel
    weight: float
    fair: FairnessSummary | None
    unconstrained: FairnessSummary | None
    tables: tuple[MetricTable, ...]
    guarantees: tuple[Guarantee, ...]
    alone: tuple[Guarantee, ...]
    plan: Plan | None
    curve: tuple[CurvePoint, ...]
    seconds: float

    @property
    def guarantee(self) -> Guarantee:
        """The weakest guarantee."""
        return max(self.guarantees, key=lambda one: one.epsilon)

    @property
    def notion(self) -> str:
        """Name of the fairness notion."""
        return self.job.fairness or "demographic-parity"

    @property
    def violation(self) -> float | None:
        """Gap of the model under the notion of the job; None without scores."""
        return None if self.fair is None else self.fair.violation(self.notion)
