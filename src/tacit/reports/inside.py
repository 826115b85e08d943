"""What hides a unit in a run, in words: noise in every round, a run inside a silo, or reports at random."""

from __future__ import annotations

from tacit.federation import HiddenRun, Plan, Step
from tacit.means import AdditiveMean, PrivUnitGMean, PrivUnitMean
from tacit.privacy import Placement

__all__ = ["hidden_words", "hides_by", "offers_exact_noise"]


def hidden_words(plan: Plan) -> str:
    """Say what silos do by themselves and nobody may see, in one sentence; nothing where all steps are seen.

    Args:
        plan: Of a run.
    """
    run = _hidden_run(plan)
    if run is None:
        return ""
    passes = sum(kind.count for kind in run.epochs)
    return (
        f"A silo makes {passes:,} {_plural('pass', passes, 'es')} by itself, and nothing but the point where "
        "it ends may leave it: a loss curve, a checkpoint or an earlier step is covered by no number here."
    )


def hides_by(plan: Plan, *, noise: float, rounds: int, unit: str) -> str:
    """Say what a unit's part is hidden by, as the rest of a sentence that begins with clipping.

    Args:
        plan: Of a run that claims something.
        noise: Standard deviation of the noise over what one unit can change.
        rounds: Number of rounds.
        unit: What is protected, in the singular.
    """
    size = f"noise with a standard deviation of {noise:.4g} times what one {unit} can change"
    times = f"{rounds:,} {_plural('round', rounds)}"
    run = _hidden_run(plan)
    if run is not None:
        at_end = all(kind.placement is Placement.EPOCH_END for kind in run.epochs)
        again = "" if rounds == 1 else f", in each of {times}"
        return f"by {size} on every {'pass' if at_end else 'step'} inside the silo{again}"
    if _randomises(plan):
        return f"by drawing at random what each {unit} reports"
    return f"by {size}, in {'each of ' if rounds > 1 else ''}{times}"


def offers_exact_noise(plan: Plan) -> bool:
    """Return whether the noise of a run could be exact integers, if it were asked for."""
    return any(
        type(kind) is Step and any(isinstance(measure.estimator, AdditiveMean) for measure in kind.measures)
        for kind, _ in plan.kinds
    )


def _hidden_run(plan: Plan) -> HiddenRun | None:
    """Return the run inside silos, if there is one."""
    return next((kind for kind, _ in plan.kinds if isinstance(kind, HiddenRun)), None)


def _randomises(plan: Plan) -> bool:
    """Return whether units report unit vectors that are drawn at random, instead of noise on their sum."""
    means = [measure.estimator for kind, _ in plan.kinds for measure in kind.measures]
    return any(isinstance(mean, PrivUnitMean | PrivUnitGMean) for mean in means)


def _plural(word: str, count: int, ending: str = "s") -> str:
    """Return a word as it stands beside a count."""
    return word if count == 1 else word + ending
