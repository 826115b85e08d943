"""From settings and the public sizes of silos to a plan: rounds, the least noise, the size of the error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from scipy import optimize, special

from tacit.errors import ParameterError
from tacit.federation import (
    Batch,
    Disjoint,
    DrawnStep,
    Fixed,
    Full,
    Plan,
    Poisson,
    least_multiplier,
    with_honest,
    with_widths,
)
from tacit.learning.algorithms import (
    ALGORITHMS,
    Algorithm,
    Method,
    Problem,
    Protection,
    algorithm_name,
)
from tacit.learning.clipping import check_any_clip, check_clips
from tacit.learning.objective import LinearShape
from tacit.learning.quorum import asked_silos, least_arrivals
from tacit.learning.round_errors import errors_of, multiplier_of
from tacit.learning.settings import NOISES, Settings
from tacit.numerics import Composite, ElasticNet, L2Ball, Regularizer, Zero
from tacit.privacy import Gaussian, Neighbours, Relation, TrustModel, Unit, calibrate

__all__ = ["PlannedMean", "Prepared", "at_clip", "choose_rounds", "penalised", "prepare"]


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
    _check_trust(settings)
    _check_unit(settings)
    _check_penalty(settings)
    _check_public(settings)
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


def _check_trust(settings: Settings) -> None:
    """Refuse a trust model that the algorithm does not run under; without privacy, all of them run."""
    allowed = settings.algorithm.trusts
    if settings.trust is not None and settings.trust not in allowed:
        why = settings.algorithm.why_no_sums if isinstance(settings.algorithm, Method) else ""
        reason = f": {why}" if why and settings.trust is TrustModel.AGGREGATE else ""
        raise ParameterError(
            f"trust must be {' or '.join(one.value for one in allowed)} for the algorithm "
            f"{algorithm_name(settings.algorithm)!r}, got {settings.trust.value}{reason}."
        )


def _check_unit(settings: Settings) -> None:
    """Refuse to protect something else than the algorithm does, or whole parties by one that does not."""
    protects = settings.algorithm.unit if isinstance(settings.algorithm, Method) else None
    if protects is not None and settings.unit is not protects:
        raise ParameterError(
            f"unit must be {protects.value} for the algorithm {algorithm_name(settings.algorithm)!r}, which "
            f"protects whole {protects.plural}, got {settings.unit.value}."
        )
    if protects is None and settings.unit is Unit.PARTY:
        raise ParameterError(
            f"unit must be record or person for the algorithm {algorithm_name(settings.algorithm)!r}, got "
            "party."
        )


def _check_penalty(settings: Settings) -> None:
    """Refuse a regulariser for an algorithm that would not find the minimum with it."""
    algorithm = settings.algorithm
    if not isinstance(algorithm, Method) or not penalised(settings.regularizer):
        return
    if reason := algorithm.why_no_regularizer(settings.objective):
        others = [
            name for name, kind in ALGORITHMS.items() if not kind().why_no_regularizer(settings.objective)
        ]
        given = "got " + _in_words(settings.regularizer)
        if settings.moment is not None:
            given += ", in which a moment has to hold"
        raise ParameterError(
            f"the algorithm {algorithm_name(algorithm)!r} takes no penalty and no domain, "
            f"{given}: {reason}; these take one: {', '.join(others)}."
        )


def _in_words(regularizer: Regularizer) -> str:
    """Return a penalty as it is given: what is 0 or absent says nothing."""
    if not isinstance(regularizer, Composite):
        return repr(regularizer)
    penalties = {name: getattr(regularizer, name) for name in ("l1", "l2", "group_lasso")}
    parts = [f"{name}={value!r}" for name, value in penalties.items() if value]
    if isinstance(regularizer.domain, L2Ball):
        parts.append(f"a ball of radius {regularizer.domain.radius:g}")
    elif regularizer.domain is not None:
        parts.append(repr(regularizer.domain))
    return " and ".join(parts)


def _check_public(settings: Settings) -> None:
    """Refuse to train without public records by an algorithm that needs them."""
    algorithm = settings.algorithm
    if isinstance(algorithm, Method) and algorithm.needs_public and settings.public is None:
        raise ParameterError(
            f"the algorithm {algorithm_name(algorithm)!r} needs public records with labels: "
            "public=(X, y), or for tables a public file that has the label column."
        )


def penalised(regularizer: Regularizer) -> bool:
    """Return whether a regulariser adds anything to an objective."""
    return regularizer not in (Zero(), ElasticNet(l1=0.0, l2=0.0))


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
    known = settings.algorithm if isinstance(settings.algorithm, Method) else Method
    for rounds in known.round_choices:
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
    """Return about the noise multiplier that sampled batches will need: enough to choose rounds by, and fast.

    The central limit theorem of sampling without replacement says that T mu_1-Gaussian releases at rate q are
    together about mu-Gaussian with mu^2 = 2 T q^2 (e^(mu_1^2) Phi(3 mu_1 / 2) + 3 Phi(-mu_1 / 2) - 2) (Dong,
    Roth and Su 2022, J. R. Stat. Soc. B 84(1), §5); mu^2 of several kinds add up. For a replaced unit of
    Poisson samples it is T times the chi-square of the two mixtures about N(0, 1), mu^2 = 4 T q^2
    sinh(mu_1^2 / 4). The noise of the run is calibrated exactly.
    """
    if (auto := settings.auto_clip) is not None:
        rest = _rough_multiplier(replace(settings, auto_clip=None), sizes, rounds)
        return rest / math.sqrt(1 - auto.share)
    # In whole bits, noise of the multiplier 1 may be much more than that.
    unit = 64.0 if settings.trust is TrustModel.SHUFFLE else 1.0
    problem = _problem(settings, sizes, unit, rounds)
    kinds = _plan(settings, problem, rounds, parties=len(sizes)).kinds
    private = all(measure.estimator.private for step, _ in kinds for measure in step.measures)
    sampled = any(
        isinstance(step.batch, Fixed | Poisson)
        or (isinstance(step.batch, Disjoint) and step.batch.sample is not None)
        for step, _ in kinds
    )
    shuffled = settings.trust is TrustModel.SHUFFLE  # whose prices are slow
    if settings.budget is None or not (private and (sampled or shuffled)):
        return _least_multiplier(settings, sizes, rounds)
    whole = calibrate(Gaussian, settings.budget)
    rates = [
        max(step.batch.size_for(n) / _drawn_from(step.batch, n) for n in sizes)
        * (step.rate if isinstance(step, DrawnStep) else 1.0)
        for step, _ in kinds
    ]
    # mu_1^2 at the multiplier 1: it is 1 where the shares of a step add up to 1.
    levels = [
        sum((unit / multiplier_of(step, measure)) ** 2 for measure in step.measures) for step, _ in kinds
    ]

    def excess(log_z: float) -> float:
        again, once = 0.0, 0.0
        for (step, count), rate, level in zip(kinds, rates, levels, strict=True):
            mu = math.sqrt(level) * math.exp(-log_z)
            if isinstance(step.batch, Disjoint) and step.batch.sample is None:
                once = max(once, min(step.batch.repeats, count) * mu**2)
                continue
            spread = mu**2 / 2
            if isinstance(step.batch, Poisson) and settings.relation is Relation.REPLACE_ONE:
                spread = 2 * math.sinh(min(mu**2 / 4, 600))
            elif not isinstance(step.batch, Full):
                spread = math.exp(min(mu**2, 600)) * special.ndtr(1.5 * mu) + 3 * special.ndtr(-mu / 2) - 2
            spread = 2 * rate**2 * max(spread, 1e-300)
            if isinstance(step.batch, Disjoint):
                once = max(once, min(step.batch.repeats, count) * spread)
            else:
                again += step.batches * count * spread
        return math.log((again + once) * whole**2)

    facts = zip(kinds, rates, levels, strict=True)
    steps = sum(step.batches * count * rate**2 * level for (step, count), rate, level in facts)
    low, high = min(0.05, whole / 10) * math.sqrt(max(levels)), 10 * whole * max(math.sqrt(steps), 1.0)
    while excess(math.log(high)) > 0:
        high *= 2
    return math.exp(optimize.brentq(excess, math.log(low), math.log(high), xtol=1e-3))


def _drawn_from(batch: Batch, n: int) -> int:
    """Return of how many of n units a round draws its own."""
    return batch.block_for(n) if isinstance(batch, Disjoint) and batch.sample is not None else n
