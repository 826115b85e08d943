"""The event of a shuffled sum of stochastically rounded vectors under binomial noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_count
from tacit.privacy import curves
from tacit.privacy.arrivals import ARRIVALS, COUNTS
from tacit.privacy.binomial.domination import MOST_TABULATED, binomial_gdp_step, tail_slack
from tacit.privacy.binomial.tails import MOST_TRIALS, binomial_hockey_stick
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events import Leaf
from tacit.privacy.neighbours import Neighbours, Relation

__all__ = ["Binomial", "proof_of_tails"]

_SHARE = 0.01
"""What part of a delta the tails of the noise may use up, and the rounding of many rounds."""
_MOST = 1 << 62
_LEVELS = tuple(10.0**-power for power in range(1, 25))


@dataclass(frozen=True)
class _Proof:
    """One choice of tails: a Gaussian-DP level of a step, and what the tails may show.

    Attributes:
        step: Gaussian-DP level m1 of one grid step.
        slack: Chance d T q that a tail of any coordinate in any round shows everything.
        g: Resolution.
        d: Number of coordinates.
        t: Number of rounds.
        excess: Chance that the rounding of all rounds moves further than is priced; None: cannot happen.
    """

    step: float
    slack: float
    g: int
    d: int
    t: int
    excess: float | None

    def delta(self, eps: Array) -> Array:
        """Return the delta that this choice proves."""
        g, t, root = self.g, self.t, math.sqrt(self.d)
        farthest = min(g + root, g * root)
        proven = np.exp(_log_gaussian_delta(eps, self.step * math.sqrt(t) * farthest))
        if t == 1:
            proven = np.fmin(proven, _averaged_over_rounding(eps, self.step, g, self.d))
        elif self.excess is not None:
            squared = t * (g * g + self.d / 4) + math.sqrt(-2 * t * math.log(self.excess)) * (g + root / 2)
            within = np.exp(_log_gaussian_delta(eps, self.step * math.sqrt(squared)))
            proven = np.fmin(proven, within + self.excess)
        return np.clip(proven + self.slack, 0.0, 1.0)


def proof_of_tails(trials: int, g: int, d: int, t: int, tail: float, excess: float | None) -> _Proof | None:
    """Return what one choice of the tails that are given up proves; None where the noise does not reach.

    Derived in docs/theory/noise.md, section 6 (rounding, composition).
    """
    step = binomial_gdp_step(trials, 0.5, tail, g)
    slack = d * t * tail_slack(step, tail, g) if math.isfinite(step) else 1.0
    return _Proof(step, slack, g, d, t, excess) if slack < 1 else None


def _averaged_over_rounding(eps: Array, step: float, g: int, d: int) -> Array:
    """Bound the mean of delta(eps; step ||k||) over the stochastic rounding k of a vector of norm g.

    y -> l(y) = log delta(eps; sqrt y) is concave for eps >= 0, so it lies below its tangent at
    y0 = step^2 (g^2 + d/4) >= the mean of y = step^2 ||k||^2; and ||k||^2 is sub-Gaussian with proxy
    (g + sqrt(d)/2)^2, which bounds the mean of the exponential of the tangent.
    """
    mu = step * math.sqrt(g * g + d / 4)
    log_delta = _log_gaussian_delta(eps, mu)
    log_slope = -((eps / mu - mu / 2) ** 2) / 2 - math.log(2 * mu * math.sqrt(2 * math.pi)) - log_delta
    log_spread = 4 * math.log(step) + 2 * math.log(g + math.sqrt(d) / 2) - math.log(2)
    with np.errstate(over="ignore"):
        bound: Array = np.exp(log_delta + np.exp(2 * log_slope + log_spread))
    return bound


def _log_gaussian_delta(eps: Array, mu: float) -> Array:
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
            "the shuffler is honest",
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
        # About the tail at which all coordinates and rounds spend that share of the level.
        hidden = 2 * float(special.ndtr(-g / math.sqrt(trials)))
        tails = [(_SHARE * level * hidden / d / t, _SHARE * level) for level in _LEVELS]
        chosen = (proof_of_tails(trials, g, d, t, tail, excess) for tail, excess in tails if tail > 0)
        proofs = [proof for proof in chosen if proof is not None]

        def profile(epsilon: Array) -> Array:
            best = np.ones_like(epsilon)
            for proof in proofs:
                best = np.minimum(best, proof.delta(epsilon))
            return best

        return curves.symmetric(profile)

    def repeated(self, count: int) -> Binomial:
        """Return `count` such releases as one."""
        return Binomial(self.trials, self.resolution, self.dim, self.rounds * count, self.neighbours)
