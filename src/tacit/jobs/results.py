"""What a job leaves, and what one would do and cost."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from tacit.errors import DataError, PlanWarning
from tacit.federation import Plan
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData
from tacit.jobs.facts import PublicFacts
from tacit.jobs.model import TrainedModel
from tacit.jobs.personal import PersonalScores
from tacit.jobs.scores import Scores, SweepPoint
from tacit.jobs.terms import JobTerms
from tacit.learning.loss_choice import LossChoice
from tacit.learning.preparation import PlannedMean
from tacit.learning.training import Trained
from tacit.privacy import Guarantee, TrustModel

__all__ = ["JobResult", "PlannedRun", "TrustResult", "result_of", "warn_of_noise"]


class _Guaranteed:
    """What has guarantees, of which the weakest is stated."""

    guarantees: tuple[Guarantee, ...]
    alone: tuple[Guarantee, ...]

    @property
    def guarantee(self) -> Guarantee:
        """The weakest guarantee."""
        return max(self.guarantees, key=lambda g: g.epsilon)

    @property
    def guarantee_alone(self) -> Guarantee | None:
        """The weakest of those about messages alone; None where all are."""
        return max(self.alone, key=lambda g: g.epsilon, default=None)


@dataclass(frozen=True, kw_only=True)
class TrustResult(_Guaranteed):
    """What one trust model gave.

    Attributes:
        trust: "local", "aggregate", "shuffle", "central" or "none".
        scored: Scores on held-out records, computed without privacy; None where there are no public records
            to score on, and those of the silos stay where they are.
        trained: Parameters, plan, guarantees and traffic.
        guarantees: With the notes of the data among their assumptions.
        alone: Under shuffle and aggregate trust, what each silo's messages show alone, with their sender.
        personal: What the silos' own models are worth, computed without privacy; None without such.
        model: Ready to predict.
        seconds: Training time.
        trace: (round, loss, score) on held-out records after each round; simulation on public data only.
    """

    trust: str
    scored: Scores | None
    trained: Trained
    guarantees: tuple[Guarantee, ...]
    model: TrainedModel
    seconds: float
    trace: tuple[tuple[int, float, float], ...] = ()
    alone: tuple[Guarantee, ...] = ()
    personal: PersonalScores | None = None

    @property
    def scores(self) -> Scores:
        """The scores of a result that is known to have some.

        Raises:
            DataError: It has none.
        """
        if self.scored is None:
            raise DataError(
                f"the {self.trust} model was not scored: there are no public records to score on."
            )
        return self.scored

    @property
    def metric(self) -> str:
        """What `score` is: "accuracy", or in the target's units what `NumberScores.metric` says."""
        return self.scores.metric

    @property
    def score(self) -> float:
        """The one number that a run is known by."""
        return self.scores.score

    @property
    def bits_per_silo(self) -> float:
        """Bits that the busiest silo sent."""
        return float(self.trained.traffic.bits_up.max())


def result_of(
    terms: JobTerms,
    trust: str,
    trained: Trained,
    *,
    scores: Scores | None,
    seconds: float,
    trace: tuple[tuple[int, float, float], ...] = (),
) -> TrustResult:
    """Return what a training gave, with the clauses of its job among the assumptions of its guarantees."""
    guarantees = terms.with_clauses(trained.guarantees, trained_with=trained.trained_with)
    return TrustResult(
        trust=trust,
        scored=scores,
        trained=trained,
        guarantees=guarantees,
        model=TrainedModel(
            fitted=terms.model(trained.w),
            feature_names=terms.facts.feature_names,
            columns=terms.facts.columns,
            model=terms.config.architecture,
            run=terms.config.run,
            trust=trust,
            privacy=str(max(guarantees, key=lambda g: g.epsilon)),
        ),
        seconds=seconds,
        trace=trace,
        alone=terms.with_clauses(trained.guarantees_alone, trained_with=trained.trained_with),
    )


def warn_of_noise(trust: str, algorithm: str, error: float | None, rounds: int) -> None:
    """Warn where even the mean of all rounds' gradients is mostly noise, before it is paid for.

    Args:
        trust: Of the run; "none" has no noise.
        algorithm: Its name.
        error: `PlannedRun.gradient_error`.
        rounds: How many of them.
    """
    if trust == "none" or error is None or (left := error / math.sqrt(rounds)) < 1:
        return
    warnings.warn(
        f"{algorithm} under trust {trust!r} will learn little or nothing: noise and sampling move a round's "
        f"mean gradient by {100 * error:.3g} % of its clipping bound, and the mean of {rounds:,} rounds by "
        f"{100 * left:.3g} %. More records in a round, a larger budget or another algorithm have less.",
        PlanWarning,
        stacklevel=2,
    )


@dataclass(frozen=True, kw_only=True)
class PlannedRun(_Guaranteed):
    """What one trust model would do and cost.

    Attributes:
        trust: "local", "aggregate", "shuffle", "central" or "none".
        algorithm: Its name.
        algorithm_reason: Why that one, in one sentence.
        plan: Everything that would be asked.
        rounds: Number of rounds.
        noise_multiplier: Standard deviation / sensitivity; 0 without privacy.
        means: The means that the rounds ask for, each with its clipping bound and its noise.
        gradient_error: Root mean square of the error of a round's mean gradient, noise and sampling together,
            as a share of the clipping bound.
        error_bound: What the rounds are chosen by: a bound, for gradients that are not clipped.
        bits_per_silo: Bits that the largest silo would send, headers included, on average where silos are
            drawn; None where its size is hidden.
        bounded: What it bounds: the expected "excess" of the mean loss, or its expected "squared gradient".
        guarantees: As a run would give them.
        alone: The same of one silo's messages alone; empty where the guarantees are about those.
        trained_with: Number of public records that it would be trained with.
    """

    trust: str
    algorithm: str
    algorithm_reason: str
    plan: Plan
    rounds: int
    noise_multiplier: float
    means: tuple[PlannedMean, ...]
    gradient_error: float | None
    error_bound: float
    bounded: str
    bits_per_silo: float | None
    guarantees: tuple[Guarantee, ...]
    alone: tuple[Guarantee, ...] = ()
    trained_with: int = 0

    @property
    def noise_share(self) -> float | None:
        """Of the noise multiplier, the part that each silo adds under aggregate trust; else None."""
        if self.plan.trust is not TrustModel.AGGREGATE:
            return None
        return self.noise_multiplier / math.sqrt(self.plan.n_min - self.plan.colluding)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """Everything that a job leaves.

    Attributes:
        job: The configuration.
        facts: What is public of the records.
        records: Records and silos; None where they stay with parties that keep them.
        delta: The delta that was used.
        loss: What was minimised.
        results: One per trust model.
        sweep: Scores at other budgets; simulation on public data only.
    """

    job: JobConfig
    facts: PublicFacts
    records: JobData | None
    delta: float
    loss: LossChoice
    results: tuple[TrustResult, ...]
    sweep: tuple[SweepPoint, ...] = ()

    @property
    def data(self) -> JobData:
        """The records of a job that is known to have them.

        Raises:
            DataError: They are with other parties.
        """
        if self.records is None:
            raise DataError("the records of this job stay with the parties that keep them.")
        return self.records
