"""Audits: attacks on a mechanism give a lower bound on epsilon, with a stated confidence, next to the claim.

The attack is chosen on a first part of the runs and counted on the others: then the bound is wrong with a
probability of at most 1 - confidence, however the attack was found (`tacit.audits.bounds`). A bound
above the claim refutes it; one below proves nothing but that this attack did not get further.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np
from scipy import special

from tacit.audits.bounds import (
    LEAST_RUNS,
    check_confidence,
    check_scores,
    epsilon_from_guesses,
    most_share,
    tails,
)
from tacit.errors import check_count, check_probability
from tacit.privacy.curves import Array
from tacit.privacy.event_json import to_plain
from tacit.privacy.events import Event
from tacit.privacy.guarantee import Guarantee, guarantee
from tacit.privacy.pricing import curve_of

__all__ = [
    "Audit",
    "Guesses",
    "Run",
    "Target",
    "audit",
    "claimed_power",
    "power",
]

_PILOT = 0.2  # share of the runs that choose the event
_RAMPS = (0.2, 0.5, 5.0)  # half widths, over the distance of the outer tenths of the scores
_VAST = 1e300  # what infinite scores are taken for
_LUCK = 0.1  # error probability of the bounds that the choice goes by

Run = Callable[[bool, int, np.random.Generator], Array]
"""`run(present, size, rng)`: scores of `size` independent runs, shape (size,), on the data set with the unit
(`present`) or on its neighbour. A higher score speaks for the unit."""


class Guesses(StrEnum):
    """What an attack guesses where the score is far out, and abstains from otherwise."""

    PRESENT = "the unit is there"
    ABSENT = "the neighbour"
    BOTH = "both"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A mechanism with an attack on it.

    Attributes:
        run: Runs it on either of two neighbouring data sets and scores what the observer sees.
        event: What is claimed of it.
        attack: What the score is, in a few words.
        alone: The same game on what one message alone shows, where the price rests on others.
    """

    run: Run
    event: Event
    attack: str
    alone: Target | None = None


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What an attack found, next to what is claimed; `str()` is a sentence.

    Attributes:
        claimed_epsilon: What the mechanism is said to meet at `delta`; infinity where nothing is claimed.
        delta: Of both numbers.
        empirical_epsilon_lower: Epsilon is at least this, with probability `confidence`; 0 is not a finding.
        confidence: Probability, over the runs, that the bound is right.
        runs: Number of runs, on both data sets together.
        attack: What was looked at.
        direction: What the attack guessed: the data set with the unit, the neighbour, or both.
        right: Right guesses among the runs that were counted.
        wrong: Wrong ones; the attack abstained from all others.
        event: What is claimed of the mechanism.
    """

    claimed_epsilon: float
    delta: float
    empirical_epsilon_lower: float
    confidence: float
    runs: int
    attack: str
    direction: Guesses
    right: int
    wrong: int
    event: Event

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, with that confidence."""
        return self.empirical_epsilon_lower > self.claimed_epsilon

    def __str__(self) -> str:
        """Say what was found as one plain sentence."""
        found = math.floor(self.empirical_epsilon_lower * 1e4) / 1e4
        verdict = "the claim is refuted" if self.refuted else "the claim is not refuted"
        claim = f"{self.claimed_epsilon:.10g}" if math.isfinite(self.claimed_epsilon) else "nothing"
        return (
            f"With confidence {self.confidence:.10g}, epsilon is at least {found:.4f} at delta "
            f"{self.delta:.3g} ({self.attack}, {self.runs} runs, {self.right} right and {self.wrong} wrong "
            f"guesses), where {claim} is claimed: {verdict}."
        )

    def to_builtins(self) -> dict[str, Any]:
        """Return what JSON can hold, the verdict included; an infinite claim is null."""
        data: dict[str, Any] = msgspec.to_builtins(self, enc_hook=to_plain)
        claim = self.claimed_epsilon if math.isfinite(self.claimed_epsilon) else None
        return {**data, "claimed_epsilon": claim, "refuted": self.refuted, "sentence": str(self)}


def audit(
    run: Run,
    claim: Guarantee | tuple[Event, float],
    *,
    runs: int,
    confidence: float = 0.95,
    rng: np.random.Generator,
    attack: str = "threshold on a score",
) -> Audit:
    """Attack a mechanism and hold the lower bound on its epsilon against a claim.

    A fair coin decides for each run on which data set it is. The first fifth of the runs places two
    thresholds, above and below which the attack guesses; the others count the guesses.

    Args:
        run: The mechanism on two data sets that are neighbours in the sense of the claim, scored. The best
            score is the likelihood ratio (Neyman and Pearson); a weaker one gives a weaker bound.
        claim: A guarantee, or an event and the delta to price it at.
        runs: Number of runs on both data sets together, >= `LEAST_RUNS`.
        confidence: Of the lower bound, in (0, 1).
        rng: Source of the coins, and of the randomness of the mechanism.
        attack: What the score is, in a few words.

    Returns:
        The lower bound beside the claimed epsilon at the same delta.

    Raises:
        ParameterError: A value is out of its range; the event cannot be priced; `run` returns another shape
            or NaN.

    Example:
        >>> from tacit.privacy import PureDP
        >>> def run(present, size, rng):  # a bit that is true in three of four runs: epsilon is ln 3
        ...     return np.where((rng.random(size) < 0.75) == present, 1.0, -1.0)
        >>> found = audit(run, (PureDP(1.0), 0.0), runs=100_000, rng=np.random.default_rng(2))
        >>> found.refuted, 1.05 < found.empirical_epsilon_lower < 1.0987
        (True, True)
    """
    check_count("runs", runs, low=LEAST_RUNS)
    check_confidence(confidence)
    price = claim if isinstance(claim, Guarantee) else guarantee(*claim, observer="an observer")
    check_probability("delta", price.delta, high_open=True)
    pilot = int(runs * _PILOT)
    counted = int(runs) - pilot
    low, high = _placed(
        *_both_worlds(run, pilot, rng), counted=counted, delta=price.delta, confidence=confidence
    )
    present, absent = _both_worlds(run, counted, rng)
    right = int((present >= high).sum() + (absent <= low).sum())
    wrong = int((absent >= high).sum() + (present <= low).sum())
    sides = 2 - int(math.isnan(low) or math.isnan(high))
    bound = epsilon_from_guesses(
        right, wrong, runs=counted, delta=price.delta, confidence=confidence, sides=sides
    )
    return Audit(
        claimed_epsilon=price.epsilon,
        delta=price.delta,
        empirical_epsilon_lower=max(float(bound), 0.0),
        confidence=float(confidence),
        runs=int(runs),
        attack=attack,
        direction=Guesses.PRESENT
        if math.isnan(low)
        else Guesses.ABSENT
        if math.isnan(high)
        else Guesses.BOTH,
        right=right,
        wrong=wrong,
        event=price.event,
    )


def power(run: Run, rates: Array, *, runs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Measure how often an attack finds the unit, at given rates of false alarms; for figures, no bound.

    Args:
        run: As for `audit`.
        rates: Shape (k,), shares of the runs on the neighbour on which it may raise a false alarm.
        runs: Number of runs on each data set, >= `LEAST_RUNS`.
        rng: Source of all randomness.

    Returns:
        (share found, its standard error), each of shape (k,).
    """
    check_count("runs", runs, low=LEAST_RUNS)
    present, absent = (
        np.sort(check_scores("the scores of a run", run(w, runs, rng), size=runs)) for w in (True, False)
    )
    # The alarm is raised strictly above the threshold, so that ties never exceed the rate.
    thresholds = absent[runs - 1 - np.minimum(np.floor(np.asarray(rates) * runs).astype(int), runs - 1)]
    found = 1 - np.searchsorted(present, thresholds, side="right") / runs
    return found, np.sqrt(found * (1 - found) / runs)


def claimed_power(event: Event, rates: Array, *, accuracy: float = 1e-6) -> Array:
    """Return the most that any attack can find, if the claim is true, at given rates of false alarms.

    Args:
        event: What is claimed.
        rates: Shape (k,), in [0, 1].
        accuracy: The smallest delta of interest.

    Returns:
        Shape (k,): the least of e^epsilon rate + delta(epsilon), over epsilon of both signs.

    Reference:
        Dong, Roth and Su (2022), J. R. Stat. Soc. B 84(1), Proposition 2.12 (duality of curves and
        trade-offs).
    """
    sizes = np.geomspace(1e-3, 40.0, 300)
    epsilons = np.concatenate([-sizes[::-1], [0.0], sizes])
    deltas = curve_of(event, accuracy=accuracy).delta(epsilons)
    bounds = np.exp(epsilons) * np.asarray(rates, dtype=np.float64)[:, None] + deltas
    return np.asarray(np.minimum(bounds.min(axis=1), 1.0))


def _both_worlds(run: Run, runs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the scores of `runs` runs, each on the data set that a fair coin picks."""
    heads = int(rng.binomial(runs, 0.5))
    sizes = ((True, heads), (False, runs - heads))
    present, absent = (check_scores("the scores of a run", run(w, k, rng), size=k) for w, k in sizes)
    return present, absent


def _placed(
    present: Array, absent: Array, *, counted: int, delta: float, confidence: float
) -> tuple[float, float]:
    """Return the thresholds (low, high) with the best bound to expect; NaN is a side never guessed."""
    share_right = _fitted(present, absent)
    high, right_high, wrong_high = _expected(present, absent, share_right)
    low, right_low, wrong_low = _expected(-absent, -present, lambda scores: 1 - share_right(-scores))
    low = -low
    scale = counted / (present.size + absent.size)
    right, wrong = (
        scale * np.add.outer(*sides) for sides in ((right_low, right_high), (wrong_low, wrong_high))
    )
    never = np.isnan(low)[:, None] | np.isnan(high)
    bounds = np.full(right.shape, -math.inf)
    for sides, cells in ((1, never), (2, ~never & (low[:, None] < high))):
        if cells.any():
            bounds[cells] = epsilon_from_guesses(
                right[cells], wrong[cells], runs=counted, delta=delta, confidence=confidence, sides=sides
            )
    if bounds.max() == -math.inf:  # the pilot shows nothing; any one side will do
        return math.nan, float(high[0])
    row, column = np.unravel_index(int(bounds.argmax()), bounds.shape)
    return float(low[row]), float(high[column])


def _expected(first: Array, second: Array, share: Callable[[Array], Array]) -> tuple[Array, Array, Array]:
    """Return thresholds with how many scores of each sample to expect beyond them, by a smooth share."""
    thresholds, hits, alarms = tails(first, second)
    pooled = np.sort(np.concatenate([first, second]))[::-1]
    total = hits + alarms
    smooth = np.append(0.0, np.cumsum(share(pooled)))[total.astype(np.int64)]
    # The best of many small counts is mostly luck, hence the smooth share; where the counts show that it is
    # too large, it is not what is to be expected.
    right = np.minimum(smooth, total * most_share(hits, alarms, _LUCK))
    return thresholds, right, total - right


def _fitted(present: Array, absent: Array) -> Callable[[Array], Array]:
    """Return the probability that a score is one of `present`, by logistic regression.

    The log-odds are a sum of ramps about the median. They follow shifted Gaussian laws, whose log-odds grow
    all the way, and Laplace laws, whose log-odds stop growing.
    """
    pooled = np.concatenate([present, absent])
    low, middle, high = np.clip(np.quantile(pooled, [0.1, 0.5, 0.9], method="nearest"), -_VAST, _VAST)
    spread = high - low if high > low else 1.0

    def features(scores: Array) -> Array:
        u = (np.clip(scores, -_VAST, _VAST) - middle) / spread
        return np.stack([np.ones_like(u), *(np.clip(u, -ramp, ramp) for ramp in _RAMPS)])

    x, y = features(pooled), np.repeat([1.0, 0.0], [present.size, absent.size])
    weights = np.zeros(len(x))
    for _ in range(8):  # Newton's method; the ridge of 1 keeps separable scores finite
        p = special.expit(weights @ x)
        hessian = (x * (p * (1 - p))) @ x.T + np.eye(len(x))
        weights = weights + np.linalg.solve(hessian, x @ (y - p) - weights)
    return lambda scores: np.asarray(special.expit(weights @ features(scores)))
