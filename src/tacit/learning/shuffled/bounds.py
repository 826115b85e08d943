"""What is proven of shuffled gradients with noise and surrogates (Jiang 2025, Theorem 4.4.7, corrected).

The theorem as it is printed is wrong where there is noise: its Lemma 4.4.11 leaves the noise of a step out of
the Jacobian of that very step. By Stein's lemma the noise of all n steps of an epoch contributes up to
eta d sigma^2, where the print has 6 n eta^2 d sigma^2 L (docs/theory/shuffled-gradients.md). The printed
bound, and a run that exceeds it, are in `tacit.literature`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive
from tacit.learning.objective import Objective, Records
from tacit.learning.shuffled.schedules import ShuffledMethod, ShuffledRun
from tacit.numerics import Array, IntArray, row_norms
from tacit.privacy import Placement

__all__ = [
    "RiskBound",
    "SurrogateEpoch",
    "largest_step_size",
    "order_dissimilarity",
    "surrogate_bound",
    "surrogate_epochs",
]


@dataclass(frozen=True, kw_only=True)
class SurrogateEpoch:
    """What is known of the records that an epoch uses, private and public, and of its noise.

    Attributes:
        smoothness: Lhat, mean smoothness of the losses of its records, > 0.
        largest_smoothness: Lhat*, the largest of them; None where all are alike.
        noise_std: sigma of the noise on the gradient of every step, or of the one draw at the end; >= 0.
        at_end: Whether noise is drawn once, after the last step.
        dissimilarity: C_n: n times a bound on the gradient of the objective less the surrogate's.
        partial_squares: (1/n) sum of C_i^2 over the public steps but the last, see `order_dissimilarity`.
        smoothness_gap: L_H, smoothness of the objective less the surrogate.
    """

    smoothness: float
    largest_smoothness: float | None = None
    noise_std: float = 0.0
    at_end: bool = False
    dissimilarity: float = 0.0
    partial_squares: float = 0.0
    smoothness_gap: float = 0.0

    def __post_init__(self) -> None:
        check_positive("smoothness", self.smoothness)
        if self.largest_smoothness is not None and not self.largest_smoothness >= self.smoothness:
            raise ParameterError(
                f"largest_smoothness must be at least the mean, {self.smoothness!r}, got "
                f"{self.largest_smoothness!r}."
            )
        for name in ("noise_std", "dissimilarity", "partial_squares", "smoothness_gap"):
            check_non_negative(name, getattr(self, name))

    @property
    def largest(self) -> float:
        """Lhat*."""
        return self.smoothness if self.largest_smoothness is None else self.largest_smoothness

    @property
    def is_exact(self) -> bool:
        """Whether the surrogate is the objective, but for a constant: sums on the way may come apart."""
        return self.dissimilarity == self.smoothness_gap == 0

    def noise_error(self, *, steps: int, dim: int, step_size: float) -> float:
        """Return what the noise of an epoch adds to its error.

        Noise in every step: (eta d + 5 eta^2 n d Lhat) sigma^2. At the end it meets no later step of the
        epoch, and is one draw among n: eta d sigma^2 / n.
        """
        once = step_size * dim * self.noise_std**2
        if self.at_end:
            return once / steps
        return once * (1 + 5 * step_size * steps * self.smoothness)


@dataclass(frozen=True, kw_only=True)
class RiskBound:
    """A bound on the expected excess of the last iterate over the minimum, by what it comes from.

    Attributes:
        start: Of the distance from which the run starts.
        orders: Of gradients that are taken one after the other instead of at one point.
        noise: Of the noise.
        surrogate: Of records that are not those of the objective.
    """

    start: float
    orders: float
    noise: float
    surrogate: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.start + self.orders + self.noise + self.surrogate


def surrogate_epochs(
    run: ShuffledRun, private: SurrogateEpoch, public: SurrogateEpoch | None = None
) -> tuple[SurrogateEpoch, ...]:
    """Return what is known of every epoch of a named run (Jiang 2025, Tables 4.1 and 4.2).

    Args:
        run: Which.
        private: Of an epoch of private records alone, with noise: its surrogate is the objective.
        public: Of an epoch's public steps, as many as the run has: what they lack, and their smoothness.
            Needed where the run uses any.

    Raises:
        ParameterError: A run with public records of which nothing is said.
    """
    if not run.method.needs_public:
        return (replace(private, at_end=run.placement is Placement.EPOCH_END),) * run.epochs
    if public is None:
        raise ParameterError(f'public must say what public records lack in a run of "{run.method.value}".')
    if run.method is ShuffledMethod.INTERLEAVED:
        share = run.private_steps / run.steps
        mixed = replace(
            public,
            smoothness=share * private.smoothness + (1 - share) * public.smoothness,
            largest_smoothness=max(private.largest, public.largest),
            noise_std=private.noise_std,
            at_end=run.placement is Placement.EPOCH_END,
        )
        return (mixed,) * run.epochs
    ours = (replace(private, at_end=run.placement is Placement.EPOCH_END),) * run.private_epochs
    theirs = (replace(public, noise_std=0.0),) * (run.epochs - run.private_epochs)
    return theirs + ours if run.method is ShuffledMethod.PUBLIC_PRIVATE else ours + theirs


def largest_step_size(epochs: Sequence[SurrogateEpoch], *, steps: int, smoothness: float) -> float:
    """Return the largest step size of the theorem: 1 / (2 n sqrt(10 Lbar max_k Lhat* (1 + log K))).

    Args:
        epochs: All of them.
        steps: Per epoch, n.
        smoothness: L, mean smoothness of the losses of the private records.

    Example:
        >>> round(largest_step_size([SurrogateEpoch(smoothness=1.0)] * 20, steps=100, smoothness=1.0), 10)
        0.0007909915
    """
    _check(epochs, steps)
    check_positive("smoothness", smoothness)
    mean = max(smoothness, *(one.smoothness for one in epochs))
    most = max(one.largest for one in epochs)
    return 1 / (2 * steps * math.sqrt(10 * mean * most * (1 + math.log(len(epochs)))))


def surrogate_bound(
    epochs: Sequence[SurrogateEpoch],
    *,
    steps: int,
    dim: int,
    step_size: float,
    start_distance: float,
    gradient_variance: float,
    smoothness: float,
    strong_convexity: float = 0.0,
    beta: float | None = None,
) -> RiskBound:
    """Bound the expected excess of Algorithm 3 of Jiang (2025) on convex and smooth losses.

    D0^2 / (eta n K) + 10 eta^2 n^2 sigma_any^2 (1 + log K) max_k Lhat + 2 M, where M is the largest sum over
    k <= s of e_k / (s + 1 - k), for any s <= K, and e_k = C_n^2 / (2 n^2 beta) + 5 eta^2 Lhat* (1/n) sum_i
    C_i^2 + `SurrogateEpoch.noise_error`. (Theorem 4.4.7 with its Lemma 4.4.11 corrected.)

    Args:
        epochs: All of them.
        steps: Per epoch, n.
        dim: d.
        step_size: eta, at most `largest_step_size`.
        start_distance: D0, distance of the start and the minimum.
        gradient_variance: sigma_any^2, mean squared norm of the losses' gradients at the minimum.
        smoothness: L, mean smoothness of the losses of the private records.
        strong_convexity: mu of the regulariser.
        beta: In (0, mu - L_H]; None is the largest. Only where a surrogate differs from the objective.

    Raises:
        ParameterError: A step that is too long, or a regulariser that is not convex enough for surrogates:
            then the theorem says nothing.

    Example:
        >>> epochs = [SurrogateEpoch(smoothness=1.0, noise_std=5.0)] * 20
        >>> facts = dict(steps=100, dim=10, start_distance=3.0, gradient_variance=4.0, smoothness=1.0)
        >>> found = surrogate_bound(epochs, step_size=7.9e-4, **facts)
        >>> round(found.start, 2), round(found.orders, 2), round(found.noise, 2)
        (5.7, 1.0, 1.98)
    """
    check_count("dim", dim)
    check_positive("step_size", step_size)
    check_non_negative("start_distance", start_distance)
    check_non_negative("gradient_variance", gradient_variance)
    check_non_negative("strong_convexity", strong_convexity)
    most = largest_step_size(epochs, steps=steps, smoothness=smoothness)
    if step_size > most * (1 + 1e-12):
        raise ParameterError(f"step_size must be at most {most!r} for these epochs, got {step_size!r}.")
    rounds, width = len(epochs), _beta(epochs, strong_convexity, beta)
    noise = np.array([one.noise_error(steps=steps, dim=dim, step_size=step_size) for one in epochs])
    apart = np.array(
        [
            (one.dissimilarity**2 / (2 * steps**2 * width) if one.dissimilarity else 0.0)
            + 5 * step_size**2 * one.largest * one.partial_squares
            for one in epochs
        ]
    )
    shares = 1 / np.arange(1.0, rounds + 1)
    sums = np.array([np.convolve(part, shares)[:rounds] for part in (noise, apart)])
    worst = int(np.argmax(sums.sum(axis=0)))
    return RiskBound(
        start=start_distance**2 / (step_size * steps * rounds),
        orders=10
        * (step_size * steps) ** 2
        * gradient_variance
        * (1 + math.log(rounds))
        * max(one.smoothness for one in epochs),
        noise=2 * float(sums[0, worst]),
        surrogate=2 * float(sums[1, worst]),
    )


def _check(epochs: Sequence[SurrogateEpoch], steps: int) -> None:
    """Refuse a run of no epochs or of no steps."""
    check_count("steps", steps)
    check_count("the number of epochs", len(epochs))


def _beta(epochs: Sequence[SurrogateEpoch], strong_convexity: float, beta: float | None) -> float:
    """Return beta; where surrogates are the objective it may be zero, and is not looked at."""
    if all(one.is_exact for one in epochs):
        return 0.0
    room = strong_convexity - max(one.smoothness_gap for one in epochs)
    if not room > 0:
        raise ParameterError(
            "strong_convexity must be more than the smoothness of what surrogates lack, "
            f"{strong_convexity - room!r}, got {strong_convexity!r}: the theorem says nothing of such a run."
        )
    if beta is not None and not 0 < beta <= room:
        raise ParameterError(f"beta must be in (0, {room!r}], got {beta!r}.")
    return room if beta is None else beta


def order_dissimilarity(
    objective: Objective,
    private: Records,
    public: Records,
    *,
    points: Array,
    orders: IntArray | None = None,
    first: int = 0,
) -> Array:
    """Return C_i: how far sums of gradients of private and of public records in their places come apart.

    max |sum_{j = first + 1..i} grad f(x; d_j) - grad f(x; p_{j - first})| over these points and orders: an
    empirical value, since the largest over all orders is combinatorial. For distances that are squared it
    does not depend on the point. (Jiang 2025, Assumptions 4.4.5 and 4.4.6; what the proof uses is the
    largest value or the second moment, not the first one. That fewer public steps come less apart, as is
    said there, is false: {-1, 1} and {1, -1} have C = 0 for all steps and 2 for the last one alone.)

    Args:
        objective: What is minimised.
        private: n records.
        public: At least n - first records, in the order of use.
        points: Shape (points, d).
        orders: Of the private records, shape (orders, n); None is as they are.
        first: Private steps of an epoch, 0..n - 1.

    Returns:
        Shape (n - first,): C_i for i = first + 1..n.

    Raises:
        ParameterError: Too few public records, or shapes that do not fit.
    """
    n = len(private)
    check_count("first", first, low=0, high=n - 1)
    if len(public) < n - first:
        raise ParameterError(f"public must hold {n - first} records, one a step, got {len(public)}.")
    taken = np.arange(n)[None] if orders is None else np.asarray(orders)
    if taken.ndim != 2 or taken.shape[1] != n or np.ndim(points) != 2:
        raise ParameterError(
            f"orders must have shape (orders, {n}) and points (points, d), got {taken.shape} and "
            f"{np.shape(points)}."
        )
    used = public.take(np.arange(n - first))
    found = np.zeros(n - first)
    for point in points:
        ours, theirs = objective.gradients(point, private), objective.gradients(point, used)
        for order in taken:
            found = np.maximum(found, row_norms(np.cumsum(ours[order[first:]] - theirs, axis=0)))
    return found
