"""The event of a shuffled sum of stochastically rounded vectors under binomial noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_count
from tacit.privacy import curves
from tacit.privacy.arrivals import ARRIVALS, COUNTS, HONEST
from tacit.privacy.binomial.domination import MOST_TABULATED, binomial_gdp_step, tail_slack
from tacit.privacy.binomial.tails import MOST_TRIALS, binomial_hockey_stick
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events import Leaf
from tacit.privacy.neighbours import Neighbours, Relation

__all__ = ["Binomial", "BinomialAlone", "dominated", "joined", "proof_of_tails"]

Sum = tuple[int, int, int, int]
"""A kind of sums: trials, resolution, dim, rounds."""

_SHARE = 0.01
"""What part of a delta the tails of the noise may use up, and the rounding of many rounds."""
_MOST = 1 << 62
_AT_ONCE = 2**16
"""Deltas that are computed together: few calls for one epsilon, little memory for many."""
_LEVELS = tuple(10.0**-power for power in range(1, 25))


@dataclass(frozen=True)
class _Kind:
    """Equal sums under one choice of tails.

    Attributes:
        step: Gaussian-DP level m1 of one grid step.
        g: Resolution.
        d: Number of coordinates.
        t: Number of rounds.
    """

    step: float
    g: int
    d: int
    t: int

    @property
    def spread(self) -> float:
        """Proxy g + sqrt(d)/2: how far the squared norm of a rounded shift strays from its mean."""
        return self.g + math.sqrt(self.d) / 2


@dataclass(frozen=True)
class _Proof:
    """One choice of tails: Gaussian-DP levels of a step, and what the tails may show.

    Attributes:
        kinds: Of the sums.
        squared: mu^2 of all Gaussian releases beside them.
        slack: Chance, the sum of d T q, that a tail of any coordinate in any round shows everything.
        excess: Chance that the rounding of all rounds moves further than is priced; None: cannot happen.
    """

    kinds: tuple[_Kind, ...]
    squared: float
    slack: float
    excess: float | None

    @cached_property
    def farthest(self) -> float:
        """Level mu of the furthest that any rounding moves."""
        reach = [min(k.g + math.sqrt(k.d), k.g * math.sqrt(k.d)) for k in self.kinds]
        squares = (k.t * (k.step * far) ** 2 for k, far in zip(self.kinds, reach, strict=True))
        return math.sqrt(self.squared + math.fsum(squares))

    @cached_property
    def moved(self) -> float:
        """Level mu beyond which rounding moves with the chance `excess` only; infinite without one."""
        if self.excess is None:
            return math.inf
        mean = math.fsum(k.t * k.step**2 * (k.g * k.g + k.d / 4) for k in self.kinds)
        proxy = math.fsum(k.t * (k.step**2 * k.spread) ** 2 for k in self.kinds)
        return math.sqrt(self.squared + mean + math.sqrt(-2 * proxy * math.log(self.excess)))

    def delta(self, eps: Array) -> Array:
        """Return the delta that this choice proves."""
        return _least_delta([self], eps)


def _least_delta(proofs: Sequence[_Proof], eps: Array) -> Array:
    """Return the least delta that one of several choices of tails of the same sums proves."""
    flat, size = eps.reshape(-1), max(1, _AT_ONCE // len(proofs))
    if flat.size > size:
        parts = [_least_delta(proofs, flat[k : k + size]) for k in range(0, flat.size, size)]
        return np.concatenate(parts).reshape(eps.shape)
    first, kind = proofs[0], proofs[0].kinds[0]
    proven = np.exp(_log_gaussian_delta(flat, _column(p.farthest for p in proofs)))
    if len(first.kinds) == kind.t == 1 and first.squared == 0:
        steps = _column(p.kinds[0].step for p in proofs)
        proven = np.fmin(proven, _averaged_over_rounding(flat, steps, kind.g, kind.d))
    elif first.excess is not None:
        within = np.exp(_log_gaussian_delta(flat, _column(p.moved for p in proofs)))
        proven = np.fmin(proven, within + _column(p.excess or 0.0 for p in proofs))
    proven = np.clip(proven + _column(p.slack for p in proofs), 0.0, 1.0)
    return np.asarray(proven.min(axis=0)).reshape(eps.shape)


def _column(values: Iterable[float]) -> Array:
    """Return one number a row."""
    return np.array(list(values))[:, None]


def proof_of_tails(trials: int, g: int, d: int, t: int, tail: float, excess: float | None) -> _Proof | None:
    """Return what one choice of the tails that are given up proves; None where the noise does not reach.

    Derived in docs/theory/noise.md, section 6 (rounding, composition).
    """
    return _proof([(trials, g, d, t)], [tail], excess, 0.0)


def _proof(
    sums: Sequence[Sum], tails: Sequence[float], excess: float | None, squared: float
) -> _Proof | None:
    """Return what one choice of tails, one for each kind of sums, proves of all kinds; None: nothing."""
    kinds, slack = [], 0.0
    for (trials, g, d, t), tail in zip(sums, tails, strict=True):
        step = binomial_gdp_step(trials, 0.5, tail, g)
        if not math.isfinite(step):
            return None
        kinds.append(_Kind(step, g, d, t))
        slack += d * t * tail_slack(step, tail, g)
    return _Proof(tuple(kinds), squared, slack, excess) if slack < 1 else None


def dominated(sums: Sequence[Sum], squared: float) -> Curve:
    """Return the curve of sums, and Gaussian releases of mu^2 `squared`, together: the best of many tails.

    Args:
        sums: Kinds (trials, resolution, dim, rounds); in any order of rounds, chosen adaptively.
        squared: Sum of the mu^2 of Gaussian-DP releases beside them, >= 0.
    """
    sums = [(min(trials, MOST_TRIALS), g, d, t) for trials, g, d, t in sums]
    # About the tails at which all coordinates and rounds spend that share of the level.
    coordinates = sum(d * t for _, _, d, t in sums)
    hidden = [2 * float(special.ndtr(-g / math.sqrt(trials))) for trials, g, _, _ in sums]
    proofs: list[_Proof] = []
    for level in _LEVELS:
        tails = [_SHARE * level * each / coordinates for each in hidden]
        proof = _proof(sums, tails, _SHARE * level, squared) if min(tails) > 0 else None
        proofs += [] if proof is None else [proof]

    def profile(epsilon: Array) -> Array:
        return _least_delta(proofs, epsilon) if proofs else np.ones_like(epsilon)

    return curves.symmetric(profile)


def _averaged_over_rounding(eps: Array, step: Array, g: int, d: int) -> Array:
    """Bound the mean of delta(eps; step ||k||) over the stochastic rounding k of a vector of norm g.

    y -> l(y) = log delta(eps; sqrt y) is concave for eps >= 0, so it lies below its tangent at
    y0 = step^2 (g^2 + d/4) >= the mean of y = step^2 ||k||^2; and ||k||^2 is sub-Gaussian with proxy
    (g + sqrt(d)/2)^2, which bounds the mean of the exponential of the tangent.
    """
    mu = step * math.sqrt(g * g + d / 4)
    log_delta = _log_gaussian_delta(eps, mu)
    log_slope = -((eps / mu - mu / 2) ** 2) / 2 - np.log(2 * mu * math.sqrt(2 * math.pi)) - log_delta
    log_spread = 4 * np.log(step) + 2 * math.log(g + math.sqrt(d) / 2) - math.log(2)
    with np.errstate(over="ignore"):
        bound: Array = np.exp(log_delta + np.exp(2 * log_slope + log_spread))
    return bound


def _log_gaussian_delta(eps: Array, mu: Array) -> Array:
    """Return log delta(eps; mu) of N(mu, 1) against N(0, 1), rounded up as in `curves.gaussian_curve`."""
    log_first = special.log_ndtr(mu / 2 - eps / mu)
    log_ratio = eps + special.log_ndtr(-mu / 2 - eps / mu) - log_first
    off = 2.0**-50 * (1 - log_first + eps + np.abs(log_ratio - eps))
    value: Array = log_first + np.log(-np.expm1(np.minimum(log_ratio, 0.0) - off))
    return value


class Binomial(Leaf, frozen=True, tag=True):
    """Sums of stochastically rounded vectors, hidden by fair noise bits: what shuffled messages reveal.

    Every unit holds a vector on a grid of [0, resolution]^dim, rounded at random to integers; the observer
    sees the sum of each coordinate plus Bin(trials, 1/2). The grid is chosen so that two vectors differ by at
    most `resolution` steps in the L2 norm before they are rounded: that is the sensitivity.

    Attributes:
        trials: Noise bits of one coordinate that honest parties add in one round, however few arrive, >= 1.
        resolution: Grid steps g of the L2 distance of two vectors; no coordinate moves further. >= 1.
        dim: Number of coordinates, >= 1.
        rounds: Number of such sums of the same units, each possibly chosen after seeing the earlier ones.
        neighbours: Replace-one only: the number of messages is public.

    One scalar sum has its exact curve. Otherwise the curve is the best of proofs that give up different tails
    of the noise (docs/theory/noise.md, section 6); the delta spent on tails is then at least 1e-26.
    """

    continuous: ClassVar[bool] = False
    goes_by_size: ClassVar[frozenset[str]] = frozenset({"trials"})

    trials: int
    resolution: int
    dim: int = 1
    rounds: int = 1
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "binomial tails, exact for one scalar sum and dominated by Gaussian noise else"

    def __post_init__(self) -> None:
        for name in ("trials", "resolution", "dim", "rounds"):
            check_count(name, getattr(self, name), high=_MOST)
        if self.neighbours.relation is not Relation.REPLACE_ONE:
            raise ParameterError(
                "neighbours must be replace-one for binomial sums, whose number of messages is public, "
                f"got {self.neighbours.relation.value}."
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the price rests on besides the noise bits being fair."""
        return (
            HONEST,
            COUNTS,
            f"honest parties add {self.trials:,} noise bits to every coordinate",
            ARRIVALS,
        )

    def work(self, *, many: bool) -> float:
        """Return the size of the table of the noise, and the work of the proofs that read it."""
        evaluated = 1e5 * (1 + 100 * many)
        if self.dim == self.rounds == 1:
            return evaluated
        trials, shift = min(self.trials, MOST_TABULATED), self.resolution
        if 2 * shift > trials:
            return evaluated
        # Entries far out in the tails, which a large shift reaches, cost ten times as much.
        return evaluated + 30.0 * min(trials, 15 * math.isqrt(trials) + 200) + 300.0 * min(trials, 4 * shift)

    def curve(self) -> Curve:
        """Return the curve of these releases together."""
        trials, g = min(self.trials, MOST_TRIALS), self.resolution
        d, t = self.dim, self.rounds
        if d == t == 1:
            return curves.symmetric(lambda epsilon: binomial_hockey_stick(trials, 0.5, g, epsilon))
        return dominated([(trials, g, d, t)], 0.0)

    def repeated(self, count: int) -> Binomial:
        """Return `count` such releases as one."""
        return type(self)(self.trials, self.resolution, self.dim, self.rounds * count, self.neighbours)


class BinomialAlone(Binomial, frozen=True, tag=True):
    """What the messages of one party show by themselves, to whoever sees them before they are shuffled.

    As `Binomial`, with the noise bits of that party alone as `trials`. They hide little or nothing where one
    party's are few: epsilon is then infinite. Nobody else has to be honest or to arrive.
    """

    continuous: ClassVar[bool] = False

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Nothing but that the noise bits are fair."""
        return ()


class _BinomialSums(Leaf, frozen=True, tag=True):
    """Binomial sums of several kinds, and Gaussian releases, in any order: what `merge` makes of them.

    Attributes:
        sums: Kinds (trials, resolution, dim, rounds).
        squared: mu^2 of all Gaussian releases.
    """

    continuous: ClassVar[bool] = False

    sums: tuple[Sum, ...]
    squared: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "binomial sums dominated by Gaussian noise"

    def curve(self) -> Curve:
        """Return the curve of these releases together."""
        return dominated(self.sums, self.squared)


def joined(found: Iterable[Binomial], squared: float) -> tuple[list[Leaf], float]:
    """Merge binomial sums of all kinds, and Gaussian releases with them: squared levels and slacks add.

    Args:
        found: Sums of one neighbouring relation.
        squared: mu^2 of the Gaussian releases beside them.

    Returns:
        What is left to compose, and the mu^2 that is not in it. One scalar sum keeps its exact law.
    """
    rounds: Counter[tuple[int, int, int]] = Counter()
    neighbours = Neighbours()
    for part in found:
        rounds[part.trials, part.resolution, part.dim] += part.rounds
        neighbours = part.neighbours
    leaves: list[Leaf] = []
    kinds = []
    for (trials, g, d), t in sorted(rounds.items()):
        if d == t == 1:
            leaves.append(Binomial(trials, g, neighbours=neighbours))
        else:
            kinds.append((trials, g, d, t))
    if len(kinds) == 1 and squared == 0:
        trials, g, d, t = kinds[0]
        leaves.append(Binomial(trials, g, d, t, neighbours))
    elif kinds:
        leaves.append(_BinomialSums(tuple(kinds), squared, neighbours))
    return leaves, 0.0 if kinds else squared
