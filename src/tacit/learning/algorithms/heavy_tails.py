"""What the clipped methods share: what is stated of gradients without a norm bound, and where to clip them.

Source: Lowy (2023), Chapter 4. `method="paper"` takes its constants; else they are the sharper ones of
`tacit.means.clip_bias` and docs/theory/heavy-tailed-training.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from tacit.errors import ParameterError, check_choice
from tacit.federation import Disjoint, Full, Step
from tacit.learning.algorithms.base import Kinds, Method, Problem, check_optional
from tacit.learning.losses import Squared
from tacit.learning.raw_features import quadratic_smoothness
from tacit.means import MomentBound, balanced_clip, clip_bias, clip_variance
from tacit.means.moments import ClipMethod
from tacit.privacy import Relation, TrustModel

__all__ = [
    "CLIP_METHODS",
    "ClippedOnePass",
    "balanced",
    "bias_at",
    "length_of",
    "linear_clip",
    "noise_at_one",
    "open_clip",
    "stated",
    "variance_at",
]

CLIP_METHODS: tuple[ClipMethod, ...] = ("sharp", "paper")

_LARGEST = 2.0**90
"""Of a clip where nothing else bounds it."""


def stated(problem: Problem) -> MomentBound | None:
    """Return the stated moment of gradient norms; None where gradients are clipped to a given radius alone.

    Raises:
        ParameterError: Neither a moment nor a radius is known.
    """
    if problem.moment is not None:
        return problem.moment.for_ball("l2", dim=problem.dim)
    if not math.isfinite(problem.radius):
        raise ParameterError(
            "a clipped method needs a stated moment of the gradients, such as 4:10, or a clip: got neither."
        )
    return None


def length_of(problem: Problem) -> float:
    """Return r: the stated moment, or the radius that gradients are clipped to."""
    moment = stated(problem)
    return problem.radius if moment is None else moment.value


def bias_at(problem: Problem, clip: float, method: ClipMethod) -> float:
    """Return a bound B on how far clipping moves the mean; 0 where nothing is stated of what is cut off."""
    moment = stated(problem)
    if moment is None or problem.lipschitz <= clip:
        return 0.0
    return clip_bias(moment, clip, method=method)


def noise_at_one(problem: Problem, rows: float) -> float:
    """Return about the variance of the noise of a mean of so many rows of norm at most 1, all coordinates.

    Clips are chosen by it; what a run's noise is, `Problem.variance` says.
    """
    protection, noises = problem.protection, 1.0
    moved = 2 if protection.neighbours.relation is Relation.REPLACE_ONE else 1
    if protection.trust is TrustModel.LOCAL:
        noises = problem.asked
    elif protection.trust is TrustModel.AGGREGATE:
        noises = len(protection.silos) / max(protection.fewest, 1)
    return problem.dim * noises * (moved * protection.multiplier / rows) ** 2


def open_clip(problem: Problem) -> float | None:
    """Return the clip where it is not to be chosen: it was given, or there is no noise to balance it with."""
    moment = stated(problem)
    if moment is None or problem.radius < problem.lipschitz:
        return problem.radius
    if problem.protection.multiplier > 0:
        return None
    # Without noise: so far out that the bias is below what the sample itself errs by.
    far = min(moment.value * _root(problem.rows, moment.order - 1), _LARGEST)
    return min(far, problem.radius)


def balanced(problem: Problem, rows: float, *, weight: float = 1.0) -> float:
    """Return the clip with the least weight x (squared bias) + noise, of a moment, where there is noise.

    Args:
        problem: With a moment.
        rows: Of a mean.
        weight: Of the squared bias, over that of the variance.
    """
    moment = stated(problem)
    if moment is None:
        return problem.radius
    whole = max(1, int(rows))
    noise = math.sqrt(noise_at_one(problem, rows) / weight) * whole
    return min(balanced_clip(moment, rows=whole, dim=1, noise_multiplier=noise, sensitivity=1.0), _LARGEST)


def linear_clip(
    moment: MomentBound, *, first: float, most: float, weight: float, slope: Callable[[float], float]
) -> float:
    """Return the clip where weight x bias and a price of noise add up to the least.

    There slope(C) C, the derivative of the price, is weight (k - 1) B / C. The iteration contracts in log C.

    Args:
        moment: Of norms.
        first: Where to start.
        most: The largest clip.
        weight: Of the bias B.
        slope: The price's derivative at C, over C.
    """
    k, clip = moment.order, min(first, most)
    for _ in range(30):
        pull = weight * (k - 1) * clip_bias(moment, clip) * clip ** (k - 1)
        clip, before = min((pull / slope(clip)) ** (1 / (k + 1)), most), clip
        if abs(clip - before) <= 1e-9 * clip:
            break
    return clip


def variance_at(problem: Problem, clip: float) -> float:
    """Return a bound on E |g|^2 of one clipped gradient."""
    moment = stated(problem)
    return clip**2 if moment is None else clip_variance(moment, clip)


def _expected_smoothness(given: float | None, problem: Problem) -> float:
    """Return beta of the expected loss: the given one, or 2 r / D for the squared loss.

    That is what a moment says of a quadratic (`quadratic_smoothness`). Where records have bounded features,
    their own smoothness serves, if it is less.

    Raises:
        ParameterError: Another loss whose smoothness is unknown.
    """
    if given is not None:
        return given
    if problem.moment is not None and isinstance(problem.loss, Squared):
        stated_one = quadratic_smoothness(problem.moment, dim=problem.dim, diameter=problem.diameter)
        return min(stated_one, problem.smoothness)
    return problem.known_smoothness


class ClippedOnePass(Method, frozen=True, kw_only=True):
    """What the methods have whose batches are all fresh: one Gaussian release in all prices a whole run.

    Attributes:
        rounds: R, in one pass at most the units of the smallest silo; None chooses it.
        batch: Units per round; None is one R-th of each silo. Full batches make no pass: all are asked in
            every round, and the bound is about the records themselves.
        smoothness: beta of the expected loss; None takes 2 r / D for the squared loss, and else that of a
            record's loss.
        method: `sharp` constants, or those of the `paper`.
    """

    batch: Full | Disjoint | None = None
    smoothness: float | None = None
    method: ClipMethod = "sharp"

    clip_share: ClassVar[float] = 1.0
    chooses_clip: ClassVar[bool] = True
    round_choices: ClassVar[tuple[int, ...]] = (
        *(1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 57, 80, 113, 160, 226, 320, 452, 640, 905, 1280, 2560, 5120),
    )
    composite: ClassVar[bool] = True
    paper: ClassVar[str] = "Lowy and Razaviyayn (2023), heavy tails"
    caveat: ClassVar[str] = "it holds as far as the stated moment, diameter and smoothness do"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(smoothness=self.smoothness)
        check_choice("method", self.method, CLIP_METHODS)

    def clip(self, problem: Problem, rounds: int) -> float:
        """Return where gradients are clipped."""
        raise NotImplementedError

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean clipped gradients of disjoint batches in all rounds."""
        batch = Disjoint(rate=1 / rounds) if self.batch is None else self.batch
        measure = problem.measure("gradient", batch=batch, max_radius=self.clip(problem, rounds))
        return ((Step(measures=(measure,), batch=batch), rounds),)

    def rows(self, problem: Problem, rounds: int) -> float:
        """Return s, the rows of one mean."""
        match self.batch:
            case Full():
                return problem.rows
            case Disjoint(size=int(size)):
                return size * max(1, round(problem.rows / (sum(problem.sizes) / len(problem.sizes))))
            case Disjoint(rate=float(rate)):
                return max(1, int(rate * problem.rows))
            case _:
                return max(1, problem.rows // rounds)

    def beta(self, problem: Problem) -> float:
        """Return the smoothness that steps count on."""
        return _expected_smoothness(self.smoothness, problem)

    def check_passes(self, problem: Problem, rounds: int) -> None:
        """Refuse more rounds than a silo has units."""
        if self.too_many(problem, rounds):
            raise ParameterError(
                f"rounds must be at most the {min(problem.sizes)} units of the smallest silo, got {rounds}."
            )

    def too_many(self, problem: Problem, rounds: int) -> bool:
        """Return whether one pass has no unit for every round."""
        return not isinstance(self.batch, Full) and rounds > min(problem.sizes)


def _root(base: float, order: float) -> float:
    """Return base^(1/order), infinite where no float holds it."""
    try:
        return math.pow(base, 1 / order)
    except OverflowError:
        return math.inf
