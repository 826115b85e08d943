"""What Jiang (2025, Chapter 4) proves and prescribes of private shuffled gradients, as it is printed.

The noise term of her Theorem 4.4.7 is too small by the factor n eta L, and with it go Corollaries 4.5.1 and
4.6.1 and Table 4.4: `tacit.learning.shuffled.surrogate_bound` is the corrected theorem, `corollary_risk` its
corollaries, and `paper_risk` the print, which runs exceed (`noise_at_rest`). The privacy of her algorithms is
sound but loose: `tacit.literature.paper_noise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import (
    ParameterError,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.learning.shuffled import RiskBound, ShuffledMethod, ShuffledRun, SurrogateEpoch

__all__ = [
    "RiskRate",
    "corollary_risk",
    "noise_at_rest",
    "paper_risk",
    "paper_shuffled_epochs",
    "paper_shuffled_step_size",
    "shuffled_risk_rates",
]


def paper_risk(
    epochs: Sequence[SurrogateEpoch],
    *,
    steps: int,
    dim: int,
    step_size: float,
    start_distance: float,
    gradient_variance: float,
    beta: float = 1.0,
) -> RiskBound:
    """Return the bound of Theorem 4.4.7 as it is printed, with 1 + log K in place of its sums: no bound.

    Arguments as of `surrogate_bound`. Its noise term 6 eta^2 n d sigma^2 Lhat* is the mistake.
    """
    check_count("the number of epochs", len(epochs))
    _check(steps, dim, step_size, start_distance, gradient_variance)
    check_positive("beta", beta)
    harmonic = 1 + math.log(len(epochs))
    drawn = max(one.noise_std**2 * one.largest for one in epochs)
    apart = max(
        one.dissimilarity**2 / (2 * steps**2 * beta) + 5 * step_size**2 * one.largest * one.partial_squares
        for one in epochs
    )
    return RiskBound(
        start=start_distance**2 / (step_size * steps * len(epochs)),
        orders=10
        * (step_size * steps) ** 2
        * gradient_variance
        * harmonic
        * max(one.smoothness for one in epochs),
        noise=2 * harmonic * 6 * step_size**2 * steps * dim * drawn,
        surrogate=2 * harmonic * apart,
    )


def noise_at_rest(*, steps: int, epochs: int, dim: int, step_size: float, noise_std: float) -> float:
    """Return the exact excess of noisy steps that start at the minimum of |x - q|^2 / 2, all records alike.

    d eta^2 sigma^2 (1 - r^(2 n K)) / (2 (1 - r^2)) with r = 1 - eta: whatever bounds the error of noise in
    shuffled gradients must be at least that.

    Example:
        >>> facts = dict(steps=10, epochs=100_000, dim=1, step_size=1e-4, noise_std=1.0)
        >>> epoch = SurrogateEpoch(smoothness=1.0, noise_std=1.0)
        >>> printed = 2 * (1 + math.log(100_000)) * 6e-8 * 10
        >>> round(noise_at_rest(**facts) / printed, 3)
        1.665
    """
    check_count("steps", steps)
    check_count("epochs", epochs)
    check_count("dim", dim)
    check_probability("step_size", step_size, low_open=True, high_open=True)
    check_non_negative("noise_std", noise_std)
    kept = math.log1p(-step_size)
    total = -math.expm1(2 * steps * epochs * kept) / -math.expm1(2 * kept)
    return dim * (step_size * noise_std) ** 2 * total / 2


def corollary_risk(
    run: ShuffledRun,
    *,
    dim: int,
    step_size: float,
    noise_std: float,
    start_distance: float,
    gradient_variance: float,
    largest_smoothness: float,
    public: SurrogateEpoch | None = None,
    beta: float = 1.0,
) -> RiskBound:
    """Return the corrected Corollary 4.5.1 or 4.6.1: one formula an algorithm, with logarithms for sums.

    The start and the orders as in the theorem; 2 (1 + log K_priv) (eta d + 5 eta^2 n d L*) sigma^2 for the
    noise, and 2 (1 + log K_pub) (C_n^2 / (2 n^2 beta) + 5 eta^2 Ltilde* (1/n) sum C_i^2) for public records;
    of interleaved runs with the larger L and all K epochs in both.

    Args:
        run: Which, with noise in every step.
        dim: d.
        step_size: eta.
        noise_std: sigma.
        start_distance: D0.
        gradient_variance: sigma_any^2.
        largest_smoothness: L* of private records, in place of all their L.
        public: What the public steps of an epoch lack, and their smoothness.
        beta: In (0, mu - L_H].
    """
    _check(run.steps, dim, step_size, start_distance, gradient_variance)
    check_non_negative("noise_std", noise_std)
    check_positive("largest_smoothness", largest_smoothness)
    check_positive("beta", beta)
    n, mixed = run.steps, run.method is ShuffledMethod.INTERLEAVED
    public_epochs = run.epochs if mixed else run.epochs - run.private_epochs
    theirs = 0.0 if public is None else public.largest
    most = max(largest_smoothness, theirs)
    noisy = most if mixed else largest_smoothness
    apart = 0.0
    if public is not None and public_epochs:
        far = most if mixed else theirs
        apart = public.dissimilarity**2 / (2 * n**2 * beta)
        apart += 5 * step_size**2 * far * public.partial_squares
    return RiskBound(
        start=start_distance**2 / (step_size * n * run.epochs),
        orders=10 * (step_size * n) ** 2 * gradient_variance * (1 + math.log(run.epochs)) * most,
        noise=2
        * _harmonic(run.private_epochs)
        * (step_size * dim + 5 * step_size**2 * n * dim * noisy)
        * noise_std**2,
        surrogate=2 * _harmonic(public_epochs) * apart,
    )


def _check(steps: int, dim: int, step_size: float, start_distance: float, gradient_variance: float) -> None:
    """Refuse what no bound is about."""
    check_count("steps", steps)
    check_count("dim", dim)
    check_positive("step_size", step_size)
    check_non_negative("start_distance", start_distance)
    check_non_negative("gradient_variance", gradient_variance)


def _harmonic(count: int) -> float:
    """Return 1 + log count, a bound on 1 + 1/2 + ... + 1/count; 0 for none."""
    return 1 + math.log(count) if count else 0.0


def paper_shuffled_epochs(n: int, dim: int, epsilon: float) -> int:
    """Return K = n epsilon^2 / d, rounded up: what Section 4.5 prescribes up to a constant, here 1."""
    check_count("n", n)
    check_count("dim", dim)
    check_positive("epsilon", epsilon)
    return math.ceil(n * epsilon**2 / dim)


def paper_shuffled_step_size(
    *, steps: int, epochs: int, start_distance: float, largest_smoothness: float
) -> float:
    """Return D0^(2/3) / (n max(L*, Ltilde*) (K (1 + log K))^(1/3)): as prescribed, with the constant 1.

    It has the exponents of the printed noise term; the corrected one wants other ones.
    """
    check_count("steps", steps)
    check_count("epochs", epochs)
    check_non_negative("start_distance", start_distance)
    check_positive("largest_smoothness", largest_smoothness)
    scale = steps * largest_smoothness * (epochs * (1 + math.log(epochs))) ** (1 / 3)
    return float(start_distance ** (2 / 3) / scale)


@dataclass(frozen=True, kw_only=True)
class RiskRate:
    """How the risk of a private run goes with n, d and epsilon: without constants, logarithms and shifts.

    Attributes:
        printed: In Table 4.4, whose exponents 2/3 and 4/3 come of the wrong noise term.
        corrected: By the corrected theorem with the same noise.
        hidden: With the noise that the release of the last iterate alone needs, and many epochs.
    """

    printed: float
    corrected: float
    hidden: float


def shuffled_risk_rates(n: int, dim: int, epsilon: float, share: float = 0.5) -> dict[str, RiskRate]:
    """Return the rates of the algorithms, by `ShuffledMethod` value, beside those of DP-GD and DP-SGD.

    Args:
        n: Records.
        dim: d.
        epsilon: Of the budget.
        share: p, of the steps that are private.

    Example:
        >>> found = shuffled_risk_rates(1000, 10, 1.0)
        >>> round(found["dp-shuffle"].corrected / found["dp-shuffle"].hidden, 6) == round(1000**0.5, 6)
        True
    """
    check_count("n", n)
    check_count("dim", dim)
    check_positive("epsilon", epsilon)
    check_probability("share", share, low_open=True)
    if share * n < 1:
        raise ParameterError(f"share must be at least 1 / n = {1 / n!r}, got {share!r}.")
    root = math.sqrt(dim) / epsilon
    best = root / n
    late = (1 - share) * n + 1

    def rate(factor: float) -> RiskRate:
        """One over n times the energy of the noise, to the powers 2/3 and 1/2."""
        return RiskRate(
            printed=factor ** (2 / 3) * root ** (4 / 3), corrected=math.sqrt(factor) * root, hidden=best
        )

    halves = rate(share / n)
    return {
        ShuffledMethod.PRIVATE.value: rate(1 / n),
        ShuffledMethod.PRIVATE_PUBLIC.value: halves,
        ShuffledMethod.PUBLIC_PRIVATE.value: halves,
        ShuffledMethod.INTERLEAVED.value: rate(1 / (n * late)),
        "dp-gd": RiskRate(printed=best, corrected=best, hidden=best),
        "dp-sgd": RiskRate(printed=best, corrected=best, hidden=best),
    }
