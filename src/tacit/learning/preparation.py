"""From settings and the public sizes of silos to a plan: rounds, the least noise, the size of the error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from tacit.errors import ParameterError
from tacit.federation import (
    Disjoint,
    Fixed,
    Plan,
    Poisson,
    least_multiplier,
    with_honest,
    with_widths,
)
from tacit.learning.algorithms import (
    Algorithm,
    Method,
    Problem,
    Protection,
    traits_of,
)
from tacit.learning.clipping import check_any_clip, check_clips
from tacit.learning.objective import LinearShape
from tacit.learning.quorum import asked_silos, least_arrivals
from tacit.learning.rough_noise import rough_multiplier
from tacit.learning.round_errors import errors_of, multiplier_of
from tacit.learning.settings import NOISES, Settings
from tacit.learning.settings_checks import check_settings
from tacit.privacy import Neighbours, Relation, TrustModel

__all__ = ["PlannedMean", "Prepared", "at_clip", "choose_rounds", "prepare"]


@dataclass(frozen=True, kw_only=True)
class PlannedMean:
    """One mean of one kind of round.

    Attributes:
        kind: Number of the kind, from 1.
        rounds: How often it is asked in the whole run.
        statistic: What it is a mean of.
        clip: Clipping bound of a unit's row, at most.
        noise_multiplier: Standard deviation of its noise / sensitivity; 0 without privacy.
    """

    kind: int
    rounds: int
    statistic: str
    clip: float
    noise_multiplier: float


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run that can start.

    Attributes:
        rounds: Number of rounds.
        noise_multiplier: Standard deviation / sensitivity; 0 without privacy.
        plan: What will be asked.
        problem: What step sizes are made from.
    """

    rounds: int
    noise_multiplier: float
    plan: Plan
    problem: Problem

    @property
    def clip(self) -> float:
        """Where gradients are clipped: as was given, or as the algorithm found."""
        given = self.problem.radius
        return given if math.isfinite(given) else max(mean.clip for mean in self.means)

    @property
    def means(self) -> tuple[PlannedMean, ...]:
        """All means that the plan asks for, kind of round by kind of round."""
        private = self.noise_multiplier > 0
        return tuple(
            PlannedMean(
                kind=kind,
                rounds=count,
                statistic=measure.statistic,
                clip=measure.max_radius,
                noise_multiplier=multiplier_of(step, measure) if private else 0.0,
            )
            for kind, (step, count) in enumerate(self.plan.kinds, start=1)
            for measure in step.measures
        )


def prepare(settings: Settings, sizes: Sequence[int]) -> Prepared:
    """Choose the rounds, calibrate the noise, and make the plan.

    Nothing is asked, and nothing but the public sizes is used.

    Args:
        settings: Of the run.
        sizes: Public number of units of each silo.

    Raises:
        ParameterError: The settings do not fit the sizes, or each other.
        BudgetError: No noise meets the budget.
    """
    check_settings(settings)
    if (auto := settings.auto_clip) is not None:
        settings = replace(settings, clip=auto.middle(settings.objective))
        rounds = settings.algorithm.rounds or 10  # any number tells
        check_clips(
            settings.algorithm, _problem(replace(settings, auto_clip=None), sizes, 0.0, rounds), rounds
        )
    found = [_with_rounds(one, sizes) for one in _samplings(settings)]
    for prepared in found:
        settings.algorithm.check(prepared.problem, prepared.rounds)
        if auto is not None:
            clips = auto.clips(settings.objective).tolist()
            problems = [at_clip(settings, prepared, sizes, clip) for clip in clips]
            check_any_clip(settings.algorithm, problems, prepared.rounds)

    def error(prepared: Prepared) -> tuple[float, float]:
        bound = settings.algorithm.error_bound(prepared.problem, prepared.rounds)
        return bound, prepared.problem.variance

    return min(found, key=error) if len(found) > 1 else found[0]


def at_clip(settings: Settings, prepared: Prepared, sizes: Sequence[int], clip: float) -> Problem:
    """Return what step sizes of a prepared run are made from, at another clip of its gradients."""
    chosen = replace(settings, clip=clip)
    return _problem(chosen, sizes, prepared.noise_multiplier, prepared.rounds)


def _samplings(settings: Settings) -> list[Settings]:
    """Return the run with every way to draw its secret samples that is to be compared, the first at a tie."""
    poisson = replace(settings, algorithm=_with_poisson(settings.algorithm))
    if settings.sampling == "given" or settings.budget is None or poisson.algorithm == settings.algorithm:
        return [settings]
    # Of the other relations, samples of a fixed size have no price.
    compared = settings.sampling == "cheapest" and settings.relation is Relation.REPLACE_ONE
    if settings.trust is TrustModel.SHUFFLE:
        return [settings]  # who counts messages would see the size of a sample
    return [settings, poisson] if compared else [poisson]


def _with_poisson(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm with Poisson samples in place of those of a fixed size."""
    # Those that are hidden go through the records in an order.
    if not isinstance(algorithm, Method) or algorithm.hidden or algorithm.counted:
        return algorithm
    drawn = {
        name: Poisson(rate=batch.rate, size=batch.size)
        for name, batch in msgspec.structs.asdict(algorithm).items()
        if isinstance(batch, Fixed)
    }
    return msgspec.structs.replace(algorithm, **drawn)


def choose_rounds(bounds: Mapping[int, float], *, slack: float = 0.05) -> int:
    """Return the fewest rounds whose bound is within `slack` of the best; rounds cost time and bits.

    Args:
        bounds: Error bound by number of rounds.
        slack: What fewer rounds may cost, relative to the best bound.

    Raises:
        ParameterError: No bound is finite.
    """
    best = min(bounds.values(), default=math.inf)
    if not math.isfinite(best):
        raise ParameterError("rounds could not be chosen: no error bound is finite; give a number of rounds.")
    return min(rounds for rounds, bound in bounds.items() if bound <= (1 + slack) * best)


def _with_rounds(settings: Settings, sizes: Sequence[int]) -> Prepared:
    """Return the run with the given number of rounds, or with the one that the error bound chooses."""
    if settings.algorithm.rounds is not None:
        return _prepared(settings, sizes, settings.algorithm.rounds)
    bare = replace(settings, auto_clip=None)
    first, second = (
        [
            step.batch
            for step, _ in _plan(bare, _problem(bare, sizes, 0.0, rounds), rounds, parties=len(sizes)).kinds
        ]
        for rounds in (1, 2)
    )
    # What makes smaller batches of more rounds takes one pass, whatever their number.
    if isinstance(first[0], Disjoint) and second == first:
        return _prepared(settings, sizes, _one_pass(settings, sizes))
    bounds = {}
    for rounds in traits_of(settings.algorithm).round_choices:
        bounds[rounds] = settings.algorithm.error_bound(_problem(settings, sizes, 0.0, rounds), rounds)
        if not math.isfinite(bounds[rounds]):  # nor is it with noise, and the plan may not even fit
            continue
        multiplier = _rough_multiplier(settings, sizes, rounds)
        bounds[rounds] = settings.algorithm.error_bound(_problem(settings, sizes, multiplier, rounds), rounds)
    # Behind a shuffler the noise bits of a round grow with the rounds, and those of a run with their square.
    slack = 0.2 if settings.trust is TrustModel.SHUFFLE else 0.05
    return _prepared(settings, sizes, choose_rounds(bounds, slack=slack))


def _one_pass(settings: Settings, sizes: Sequence[int]) -> int:
    """Return the most rounds of disjoint batches that the smallest silo allows."""

    def fits(rounds: int) -> bool:
        plan = _plan(settings, _problem(settings, sizes, 0.0, rounds), rounds, parties=len(sizes))
        return all(plan.fits(n) for n in sizes)

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low < 1:
        raise ParameterError("the silos are too small for even one round of disjoint batches.")
    return low


def _prepared(settings: Settings, sizes: Sequence[int], rounds: int) -> Prepared:
    """Return the run with that many rounds."""
    multiplier = _least_multiplier(settings, sizes, rounds)
    problem = _problem(settings, sizes, multiplier, rounds)
    plan = _plan(settings, problem, rounds, parties=len(sizes))
    if settings.auto_clip is not None:
        plan = settings.auto_clip.widened(plan, problem)
    plan.check_sizes(sizes)
    return Prepared(rounds=rounds, noise_multiplier=multiplier, plan=plan, problem=problem)


def _problem(settings: Settings, sizes: Sequence[int], multiplier: float, rounds: int) -> Problem:
    """Return what step sizes are made from."""
    n_min = least_arrivals(settings, len(sizes))
    shape = settings.objective if isinstance(settings.objective, LinearShape) else None
    bare = Problem(
        smoothness=settings.smoothness,
        radius=settings.radius,
        diameter=settings.diameter,
        dim=settings.objective.size,
        variance=0.0,
        lipschitz=settings.objective.lipschitz,
        protection=Protection(
            trust=settings.trust or TrustModel.LOCAL,
            neighbours=Neighbours(settings.relation, settings.unit),
            noise=NOISES[settings.noise],
            multiplier=multiplier,
            epsilon=math.inf if settings.budget is None else settings.budget.epsilon,
            silos=tuple(sizes) if n_min else (),
            fewest=max(n_min - settings.colluding, 0),
            delta=0.0 if settings.budget is None else settings.budget.delta,
        ),
        asked=asked_silos(settings, len(sizes)),
        sizes=tuple(dict.fromkeys(sizes)),
        features=0 if shape is None else shape.features,
        feature_norm=math.inf if shape is None else shape.feature_norm,
        loss=None if shape is None else shape.loss,
        rows=sum(sizes),
        strong_convexity=settings.regularizer.strong_convexity,
        regularizer=settings.regularizer,
        public=settings.public,
        moment=settings.moment,
    )
    kinds = _plan(settings, bare, rounds, parties=len(sizes)).kinds
    errors = errors_of(settings, bare, sizes, kinds)
    # Where nothing is called a gradient, what is asked last stands for it: Gram matrices come first.
    return replace(bare, variance=errors.get("gradient", list(errors.values())[-1]), errors=errors)


def _plan(settings: Settings, problem: Problem, rounds: int, *, parties: int) -> Plan:
    """Return the plan of a run."""
    steps, n_min = settings.algorithm.steps(problem, rounds), least_arrivals(settings, parties)
    if settings.auto_clip is not None:
        steps = settings.auto_clip.before(steps, problem)
    silos = problem.protection.silos
    if settings.trust is TrustModel.SHUFFLE:
        steps = with_honest(steps, silos, n_min=n_min, colluding=settings.colluding)
    elif settings.trust is TrustModel.AGGREGATE:
        steps = with_widths(steps, silos)
    return Plan(
        steps=steps,
        parties=parties,
        trust=problem.protection.trust,
        n_min=n_min,
        colluding=settings.colluding,
        roster=settings.roster,
        recover=settings.recover,
        delta=0.0 if settings.budget is None else settings.budget.delta,
        encoding=settings.encoding,
    )


def _least_multiplier(settings: Settings, sizes: Sequence[int], rounds: int) -> float:
    """Return the least noise multiplier that meets the budget in every silo; 0 without privacy."""
    if settings.trust is None or settings.budget is None:
        return 0.0

    def planned(multiplier: float) -> Plan:
        return _plan(settings, _problem(settings, sizes, multiplier, rounds), rounds, parties=len(sizes))

    return least_multiplier(planned, sizes, settings.budget)


def _rough_multiplier(settings: Settings, sizes: Sequence[int], rounds: int) -> float:
    """Return about the noise multiplier that sampled batches need: enough to choose rounds by, and fast."""
    if (auto := settings.auto_clip) is not None:
        rest = _rough_multiplier(replace(settings, auto_clip=None), sizes, rounds)
        return rest / math.sqrt(1 - auto.share)
    shuffled = settings.trust is TrustModel.SHUFFLE  # whose prices are slow
    # In whole bits, noise of the multiplier 1 may be much more than that.
    unit = 64.0 if shuffled else 1.0
    kinds = _plan(settings, _problem(settings, sizes, unit, rounds), rounds, parties=len(sizes)).kinds
    private = all(measure.estimator.private for step, _ in kinds for measure in step.measures)
    sampled = any(
        isinstance(step.batch, Fixed | Poisson)
        or (isinstance(step.batch, Disjoint) and step.batch.sample is not None)
        for step, _ in kinds
    )
    if settings.budget is None or not (private and (sampled or shuffled)):
        return _least_multiplier(settings, sizes, rounds)
    return rough_multiplier(kinds, sizes, settings.budget, relation=settings.relation, unit=unit)
