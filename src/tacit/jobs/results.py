"""What a job leaves, and what one would do and cost."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.federation import Plan
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData
from tacit.jobs.model import TrainedModel
from tacit.jobs.scores import Scores, SweepPoint
from tacit.learning.loss_choice import LossChoice
from tacit.learning.preparation import PlannedMean
from tacit.learning.training import Trained
from tacit.privacy import Guarantee

__all__ = ["JobResult", "PlannedRun", "TrustResult"]


@dataclass(frozen=True, kw_only=True)
class TrustResult:
    """What one trust model gave.

    Attributes:
        trust: "local", "shuffle", "central" or "none".
        scores: On the held-out records, computed without privacy.
        trained: Parameters, plan, guarantees and traffic.
        guarantees: With the notes of the data among their assumptions.
        before_shuffling: Under shuffle trust, what each silo's messages show before they are shuffled.
        model: Ready to predict.
        seconds: Training time.
        trace: (round, loss, score) on held-out records after each round; simulation on public data only.
    """

    trust: str
    scores: Scores
    trained: Trained
    guarantees: tuple[Guarantee, ...]
    model: TrainedModel
    seconds: float
    trace: tuple[tuple[int, float, float], ...] = ()
    before_shuffling: tuple[Guarantee, ...] = ()

    @property
    def metric(self) -> str:
        """What `score` is: "accuracy", or in the target's units what `NumberScores.metric` says."""
        return self.scores.metric

    @property
    def score(self) -> float:
        """The one number that a run is known by."""
        return self.scores.score

    @property
    def guarantee(self) -> Guarantee:
        """The weakest guarantee."""
        return max(self.guarantees, key=lambda g: g.epsilon)

    @property
    def guarantee_before_shuffling(self) -> Guarantee | None:
        """The weakest of those before shuffling; None where nothing is shuffled."""
        return max(self.before_shuffling, key=lambda g: g.epsilon, default=None)

    @property
    def bits_per_silo(self) -> float:
        """Bits that the busiest silo sent."""
        return float(self.trained.traffic.bits_up.max())


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """What one trust model would do and cost.

    Attributes:
        trust: "local", "shuffle", "central" or "none".
        algorithm: Its name.
        algorithm_reason: Why that one, in one sentence.
        plan: Everything that would be asked.
        rounds: Number of rounds.
        noise_multiplier: Standard deviation / sensitivity; 0 without privacy.
        means: The means that the rounds ask for, each with its clipping bound and its noise.
        gradient_error: Root mean square of the error of a round's mean gradient, noise and sampling together,
            as a share of the clipping bound.
        error_bound: What the rounds are chosen by: a bound, for gradients that are not clipped.
        bounded: What it bounds: the expected "excess" of the mean loss, or its expected "squared gradient".
        guarantees: As a run would give them.
        before_shuffling: The same, before messages are shuffled; empty where nothing is.
    """

    trust: str
    algorithm: str
    algorithm_reason: str
    plan: Plan
    rounds: int
    noise_multiplier: float
    means: tuple[PlannedMean, ...]
    gradient_error: float
    error_bound: float
    bounded: str
    guarantees: tuple[Guarantee, ...]
    before_shuffling: tuple[Guarantee, ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        """The weakest guarantee."""
        return max(self.guarantees, key=lambda g: g.epsilon)

    @property
    def guarantee_before_shuffling(self) -> Guarantee | None:
        """The weakest of those before shuffling; None where nothing is shuffled."""
        return max(self.before_shuffling, key=lambda g: g.epsilon, default=None)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """Everything that a job leaves.

    Attributes:
        job: The configuration.
        data: Records and silos.
        delta: The delta that was used.
        loss: What was minimised.
        results: One per trust model.
        sweep: Scores at other budgets; simulation on public data only.
    """

    job: JobConfig
    data: JobData
    delta: float
    loss: LossChoice
    results: tuple[TrustResult, ...]
    sweep: tuple[SweepPoint, ...] = ()
