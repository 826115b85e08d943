"""Lower bounds on epsilon from counts: how often an event was seen on each of two neighbouring data sets.

If a release is (epsilon, delta)-DP, then P(S) <= e^epsilon Q(S) + delta for every event S, where P and Q are
its laws on the two data sets. Bounds on P(S) and Q(S) from independent runs therefore bound epsilon from
below, as long as S was chosen without the runs that are counted.

Sources: Clopper and Pearson (1934) for shares; Jagielski, Ullman and Oprea (2020), arXiv:2006.07709, for
epsilon; Steinke, Nasr and Jagielski (2023), arXiv:2305.08846, for guesses. docs/how-to/audit.md.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from tacit.errors import ParameterError, check_count, check_probability
from tacit.privacy.curves import Array

__all__ = [
    "LEAST_RUNS",
    "check_confidence",
    "check_scores",
    "clopper_pearson",
    "epsilon_from_guesses",
    "epsilon_lower_bound",
    "most_share",
    "tails",
]

LEAST_RUNS = 100
"""Fewer runs than this prove nothing worth printing."""

_TAILS = 48  # thresholds that are tried on each side
_DELTA_SHARE = 0.1  # share of the error probability that the count of delta's failures may take


def clopper_pearson(
    hits: npt.ArrayLike, trials: npt.ArrayLike, *, confidence: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bound a probability from both sides; each side is wrong with probability <= (1 - confidence) / 2.

    Args:
        hits: How often it happened, any shape, from 0 to `trials`.
        trials: Out of how many independent trials, > 0; broadcasts with `hits`.
        confidence: In (0, 1).

    Returns:
        (low, high) in the common shape; exact for every number of trials, conservative because hits are
        whole.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> low, high = clopper_pearson(0, 10, confidence=0.95)
        >>> float(low), round(float(high), 4)
        (0.0, 0.3085)

    Reference:
        Clopper and Pearson (1934), Biometrika 26(4).
    """
    check_confidence(confidence)
    k, n = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if not (np.all(n > 0) and np.all(k >= 0) and np.all(k <= n)):
        raise ParameterError("hits must be from 0 to trials, and trials > 0.")
    miss = (1 - confidence) / 2
    return _least(k, n - k, miss), most_share(k, n - k, miss)


def epsilon_lower_bound(
    scores_with: Array, scores_without: Array, *, delta: float, confidence: float
) -> float:
    """Bound epsilon from below, from scores of runs on two neighbouring data sets.

    The first half of both arrays chooses the event (score at least t, or at most t) and the direction; the
    second half counts it. Two Clopper-Pearson bounds share the error. `audit` is stronger, where it can
    decide by a coin on which data set a run is.

    Args:
        scores_with: Shape (n,), independent; higher speaks for the unit. At least `LEAST_RUNS` of them.
        scores_without: Shape (m,).
        delta: In [0, 1).
        confidence: Of the bound, in (0, 1).

    Returns:
        ln((p_low - delta) / q_high), or 0 where that is below 0: the mechanism is not
        (epsilon', delta)-DP for any smaller epsilon', with that confidence.

    Raises:
        ParameterError: A value is out of its range, or a score is NaN.

    Example:
        >>> rng = np.random.default_rng(2)
        >>> bits = rng.random((2, 10_000)) < [[0.75], [0.25]]  # a bit, flipped in a quarter of the runs
        >>> round(epsilon_lower_bound(*bits, delta=0.0, confidence=0.95), 2)  # its epsilon is ln 3 = 1.0986
        1.04
    """
    check_probability("delta", delta, high_open=True)
    check_confidence(confidence)
    first, second = check_scores("scores_with", scores_with), check_scores("scores_without", scores_without)
    for name, scores in (("scores_with", first), ("scores_without", second)):
        check_count(f"the number of {name}", scores.size, low=LEAST_RUNS)
    miss = (1 - confidence) / 2
    best, event = -math.inf, (1.0, math.nan)
    (pilot_p, count_p), (pilot_q, count_q) = (np.split(s, [s.size // 2]) for s in (first, second))
    for sign, p, q in ((1.0, pilot_p, pilot_q), (-1.0, -pilot_q, -pilot_p)):
        thresholds, hits, alarms = tails(p, q)
        bounds = _log_ratio(hits, p.size, alarms, q.size, delta=delta, miss=miss)
        if bounds.max() > best:
            best, event = float(bounds.max()), (sign, float(thresholds[bounds.argmax()]))
    sign, threshold = event
    p, q = (count_p, count_q) if sign > 0 else (-count_q, -count_p)
    hits, alarms = (np.asarray((s >= threshold).sum()) for s in (p, q))
    return max(float(_log_ratio(hits, p.size, alarms, q.size, delta=delta, miss=miss)), 0.0)


def epsilon_from_guesses(
    right: npt.ArrayLike,
    wrong: npt.ArrayLike,
    *,
    runs: int,
    delta: float,
    confidence: float,
    sides: int = 2,
) -> npt.NDArray[np.float64]:
    """Bound epsilon from below, from guesses of a fair coin that decided on which data set each run was.

    Where P <= e^epsilon Q + delta, a hit of the event S on the data set of P can be called bad with such a
    probability that bad hits have mass at most delta and the others at most e^epsilon Q(S). A guess that is
    not bad is then right with a probability of at most e^epsilon / (1 + e^epsilon), independently of all
    others, in either direction. So with b a bound on the number of bad ones, Binomial(runs, sides delta / 2),
    a Clopper-Pearson bound on `right - b` out of `right - b + wrong` is one on that share.

    Args:
        right: Number of right guesses, any shape.
        wrong: Number of wrong ones.
        runs: Number of runs, those included on which nothing was guessed.
        delta: In [0, 1).
        confidence: Of the bound, in (0, 1).
        sides: 2 where both data sets are guessed, 1 where only one of them ever is.

    Returns:
        Lower bounds on epsilon in the common shape; -infinity where nothing is found.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> float(epsilon_from_guesses(0, 10, runs=10, delta=0.0, confidence=0.95))
        -inf

    Reference:
        Steinke, Nasr and Jagielski (2023), arXiv:2305.08846, with one guess per run, where it is elementary.
    """
    check_probability("delta", delta, high_open=True)
    check_confidence(confidence)
    check_count("runs", runs)
    check_count("sides", sides, high=2)
    k, m = np.asarray(right, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    miss = 1 - confidence
    bad = 0.0
    if delta > 0:
        bad = _most_hits(runs, sides * delta / 2, miss * _DELTA_SHARE)
        miss *= 1 - _DELTA_SHARE
    good = np.maximum(k - bad, 0.0)
    # The share of wrong ones has a quantile of its own: 1 - x would lose the digits of a share x close to 1.
    return np.asarray(_log(_least(good, m, miss)) - np.log(most_share(m, good, miss)))


def check_confidence(confidence: float) -> None:
    """Refuse anything but a number in (0, 1)."""
    check_probability("confidence", confidence, low_open=True, high_open=True)


def check_scores(name: str, scores: Array, *, size: int | None = None) -> npt.NDArray[np.float64]:
    """Return scores as floats, or refuse another shape, or NaN, which no threshold can place."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or (size is not None and values.size != size):
        raise ParameterError(
            f"{name} must have shape ({'n' if size is None else size},), got {values.shape}."
        )
    if np.isnan(values).any():
        raise ParameterError(f"{name} must be numbers, got a NaN.")
    return values


def tails(first: Array, second: Array) -> tuple[Array, Array, Array]:
    """Return thresholds, and how many scores of both samples reach each; the last one, NaN, nothing does."""
    pooled = np.sort(np.concatenate([first, second]))[::-1]
    # Few hits with a large ratio, or many with a small one: sizes of tails are tried evenly in logarithms.
    places = np.geomspace(1, pooled.size, _TAILS).astype(np.int64) - 1
    thresholds = np.append(np.unique(pooled[places]), np.nan)

    def reaching(scores: Array) -> Array:
        below = np.searchsorted(np.sort(scores), thresholds, side="left")
        return np.asarray(scores.size - below, dtype=np.float64)

    return thresholds, reaching(first), reaching(second)


def _log_ratio(
    hits: Array, trials: int, alarms: Array, others: int, *, delta: float, miss: float
) -> npt.NDArray[np.float64]:
    """Return ln((p_low - delta) / q_high), each bound wrong with probability `miss`; -infinity for none."""
    p_low = _least(hits, trials - hits, miss)
    q_high = most_share(alarms, others - alarms, miss)
    return np.asarray(_log(np.maximum(p_low - delta, 0.0)) - np.log(q_high))


def _least(hits: Array, misses: Array, miss: float) -> npt.NDArray[np.float64]:
    """Return the one-sided Clopper-Pearson lower bound on a share; 0 without a hit."""
    return np.where(hits > 0, special.betaincinv(np.maximum(hits, 1e-9), misses + 1.0, miss), 0.0)


def most_share(hits: Array, misses: Array, miss: float) -> npt.NDArray[np.float64]:
    """Return the one-sided Clopper-Pearson upper bound on a share; 1 without a miss."""
    return np.where(misses > 0, special.betainccinv(hits + 1.0, np.maximum(misses, 1e-9), miss), 1.0)


def _most_hits(trials: int, probability: float, miss: float) -> float:
    """Return a number that Binomial(trials, probability) exceeds with probability at most `miss`."""
    most = float(stats.binom.isf(miss, trials, probability))
    while stats.binom.sf(most, trials, probability) > miss:
        most += 1
    return most


def _log(values: Array) -> npt.NDArray[np.float64]:
    """Return logarithms, -infinity for 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))
