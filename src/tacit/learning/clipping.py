"""A clip that nobody guesses: a first round asks how long gradients are, and the others are clipped by it.

The round is one noisy histogram over public bins, a mean as every other; what is made of it costs nothing
more (docs/how-to/clipping.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.federation import Ask, CorrelatedStep, HiddenRun, Kinds, Measure, Plan, Step
from tacit.federation.steps import AnyStep, Group, HiddenWalk, changed
from tacit.learning.algorithms import Algorithm, Problem, algorithm_name
from tacit.learning.gradient_norms import NORMS
from tacit.learning.objective import Objective
from tacit.numerics import Array, settle
from tacit.privacy import Gaussian, PrivacyBudget, calibrate

__all__ = ["AutoClip", "after_histogram", "check_any_clip", "check_clips", "quantile_of", "read_clip"]

AUTO: Final = "auto"
"""What a person writes for an automatic clip."""

_OCTAVES = 10
"""How far below the longest clip bins begin, in powers of two."""

_DECADES = 2.0**20
"""Where nothing bounds gradients, bins are within this factor of 1."""

_CLEAR = 4.0
"""A bin counts from so many standard deviations of its noise on: of 41 empty ones, one in 1 of 770 runs."""

_SLOPE = 2.0
"""Where a loss has no Lipschitz constant, the longest clip over the norm of features: at the start, with
targets in [-1, 1], squared errors have the slope 1 at most."""

_CLIPPED = ("gradient", "level-gradient")
"""Statistics whose rows are about as long as the gradients that are counted."""


class AutoClip(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the clip is chosen: all but the histogram itself is public.

    Attributes:
        quantile: Of the norms of the gradients at the start, in (0, 1).
        scale: The clip over that quantile, > 0: gradients get shorter on the way.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the histogram, in (0, 1).
        low: Upper end of the first bin, > 0; None is 2^-10 of the last end, or 2^-20 where nothing bounds
            features; beside a stated moment see `around`.
        high: Upper end of the last bin; None is the Lipschitz constant, where there is none
            twice the norm of features, and 2^20 where nothing bounds these.
        bins: How many, their ends equally spaced in logarithms; None is two for each power of two, or one
            where nothing bounds features.

    Reference:
        Quantiles of norms as clips: Andrew, Thakkar, McMahan and Ramaswamy (2021), NeurIPS, who follow one
        from round to round; histograms first, as private ranges: Girgis et al., `HadamardRangeUser`.
    """

    quantile: float = 0.9
    scale: float = 0.5
    share: float = 0.05
    low: float | None = None
    high: float | None = None
    bins: int | None = None

    def __post_init__(self) -> None:
        settle(self)
        for name in ("quantile", "share"):
            check_probability(name, getattr(self, name), low_open=True, high_open=True)
        check_positive("scale", self.scale)
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if self.bins is not None:
            check_count("bins", self.bins, low=2, high=1000)

    def edges(self, facts: Objective | Problem) -> Array:
        """Return the upper ends of the bins, increasing.

        Args:
            facts: How long gradients are, and the features of a linear model.

        Raises:
            ParameterError: The first end is not below the last.
        """
        longest = min(facts.lipschitz, _SLOPE * getattr(facts, "feature_norm", math.inf))
        bounded = math.isfinite(longest)
        high = self.high or (longest if bounded else _DECADES)
        low = self.low or (high * 2.0**-_OCTAVES if bounded or self.high is not None else 1 / _DECADES)
        if not low < high:
            raise ParameterError(f"low must be below high ({high!r}) for an automatic clip, got {low!r}.")
        bins = self.bins or (round(math.log2(high / low)) * (2 if bounded else 1) + 1)
        return np.geomspace(low, high, max(bins, 2))

    def around(self, length: float) -> AutoClip:
        """Return the same with bins from 2^-10 to 2^10 of a public length, where others are not given.

        So bins, and the clip that rounds are planned for, go with the units of what is clipped.

        Args:
            length: > 0, such as the value of a stated moment.
        """
        low = self.low or length * 2.0**-_OCTAVES
        high = self.high or max(length, low) * 2.0**_OCTAVES
        bins = self.bins or max(2, round(2 * math.log2(max(high / low, 1.0))) + 1)
        return msgspec.structs.replace(self, low=low, high=high, bins=bins)

    def measure(self, problem: Problem) -> Measure:
        """Return the histogram with its noise, which is that of its share of the budget, whatever else."""
        protection = problem.protection
        if protection.multiplier > 0:
            whole = _whole(protection.epsilon, protection.delta)
            protection = replace(protection, multiplier=whole / math.sqrt(self.share))
        bins = len(self.edges(problem))
        own = replace(problem, protection=protection)
        return own.measure(NORMS, dim=bins, max_radius=1.0, acute=True)

    def clips(self, facts: Objective | Problem) -> Array:
        """Return the clips that may be chosen, increasing."""
        return self.scale * self.edges(facts)

    def before(self, kinds: Kinds, problem: Problem) -> Kinds:
        """Return the histogram and then kinds of rounds of the same problem."""
        return (Step(measures=(self.measure(problem),)), 1), *kinds

    def widened(self, plan: Plan, problem: Problem) -> Plan:
        """Return a plan, made for the clip of a problem, whose rounds may be asked with that of any bin."""
        most = max(float(self.clips(problem)[-1]) / problem.radius, 1.0)
        first, *others = plan.steps
        steps = (first, *_with_clips(tuple(others), lambda radius: most * radius))
        return msgspec.structs.replace(plan, steps=steps)

    def middle(self, objective: Objective) -> float:
        """Return the clip that rounds are planned for: in the middle of the bins, by logarithms."""
        clips = self.clips(objective)
        return math.sqrt(clips[0] * clips[-1])

    def choose(self, ask: Ask, w: Array, problem: Problem, *, default: float) -> float:
        """Ask for the histogram of the gradients at w, and return the clip; the default where all is noise.

        Args:
            ask: Of the run, whose first round is this one.
            w: The start, shape (size,).
            problem: Public facts.
            default: The clip where no bin is above the noise.
        """
        edges = self.edges(problem)
        (shares,) = ask(0, {"w": w, "edges": edges}, (1.0,))
        noise = math.sqrt(problem.errors.get(NORMS, 0.0) / len(edges))
        found = quantile_of(shares, self.quantile, noise=noise)
        return default if found is None else float(self.clips(problem)[found])


@lru_cache(maxsize=16)
def _whole(epsilon: float, delta: float) -> float:
    """Return the multiplier of one Gaussian release that spends all of a budget."""
    return calibrate(Gaussian, PrivacyBudget(epsilon, delta))


def quantile_of(shares: Array, quantile: float, *, noise: float) -> int | None:
    """Return the bin that a quantile of a noisy histogram falls into; None where no bin is above its noise.

    Args:
        shares: Of the units in each bin, with noise, shape (bins,).
        quantile: In (0, 1).
        noise: Standard deviation of the noise of a share.

    Example:
        >>> quantile_of(np.array([0.2, 0.5, 0.3]), 0.6, noise=0.0)
        1
    """
    kept = np.where(shares > _CLEAR * noise, shares, 0.0)
    total = kept.sum()
    if not total > 0:
        return None
    return int(np.searchsorted(np.cumsum(kept), quantile * total * (1 - 1e-12)))


def read_clip(clip: float | str | AutoClip | None) -> tuple[float | None, AutoClip | None]:
    """Return a clip that is a number, and one that a first round chooses: one of them at most.

    Args:
        clip: A number, "auto", an `AutoClip`, or None.

    Raises:
        ParameterError: It is something else, or not > 0.
    """
    if isinstance(clip, AutoClip):
        return None, clip
    if clip == AUTO:
        return None, AutoClip()
    if isinstance(clip, str):
        raise ParameterError(f"clip must be a number > 0, {AUTO!r} or None, got {clip!r:.80}.")
    return (None if clip is None else check_positive("clip", clip)), None


def after_histogram(ask: Ask) -> Ask:
    """Return an `ask` for an algorithm whose first round is the second of the plan."""

    def asked(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        return ask(step + 1, at, radius)

    return asked


def check_clips(algorithm: Algorithm, problem: Problem, rounds: int) -> None:
    """Refuse an algorithm that asks for no gradients that an automatic clip could be the bound of.

    Args:
        algorithm: What is trained with.
        problem: The run, at the clip that rounds are planned for.
        rounds: Of the run, about.
    """
    if not _clips(algorithm.steps(problem, rounds), problem):
        raise _not_automatic(
            algorithm, "it asks for no gradients that a clip chosen after the plan could be the bound of"
        )


def check_any_clip(algorithm: Algorithm, problems: Sequence[Problem], rounds: int) -> None:
    """Refuse an algorithm that cannot be told its clip after its rounds are planned.

    Args:
        algorithm: What is trained with.
        problems: The run at every clip that may be chosen.
        rounds: Of the run.

    Raises:
        ParameterError: Its rounds differ from clip to clip, or it cannot run at one of them.
    """
    planned = None
    for problem in problems:
        check_clips(algorithm, problem, rounds)
        asked = _with_clips(algorithm.steps(problem, rounds), _same)
        if planned not in (None, asked):
            raise _not_automatic(algorithm, "its rounds are planned for one clip")
        planned = asked
        algorithm.check(problem, rounds)


def _not_automatic(algorithm: Algorithm, reason: str) -> ParameterError:
    """Return the error for an algorithm that cannot be told its clip late."""
    return ParameterError(
        f"clip must be a number or None for the algorithm {algorithm_name(algorithm)!r}, got {AUTO!r}: "
        f"{reason}."
    )


def _clips(kinds: Kinds, problem: Problem) -> bool:
    """Return whether gradients are asked for that are clipped by the problem's clip, when they are asked."""
    if any(isinstance(one, Group) and one.aligned for one, _ in kinds):  # whose radii are lengths of rows
        return False
    turns = [one.steps if isinstance(one, Group) else ((one, 1),) for one, _ in kinds]
    steps = [step for turn in turns for step, _ in turn]
    if any(isinstance(step, CorrelatedStep | HiddenRun | HiddenWalk) for step in steps):
        return False  # which name one radius in their plan
    found = [m.max_radius for step in steps for m in step.measures if m.statistic in _CLIPPED]
    return bool(found) and all(radius == problem.radius for radius in found)


def _same(_radius: float) -> float:
    """Return one radius for all."""
    return 1.0


def _with_clips(kinds: Kinds, change: Callable[[float], float]) -> Kinds:
    """Return kinds of rounds with other largest radii, on which no price depends."""

    def changed_radii(step: AnyStep) -> AnyStep:
        measures = (msgspec.structs.replace(one, max_radius=change(one.max_radius)) for one in step.measures)
        return msgspec.structs.replace(step, measures=tuple(measures))

    return changed(kinds, changed_radii)
