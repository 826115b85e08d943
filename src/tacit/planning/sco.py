"""Which method for convex losses of parties with one record each behind a shuffler: by explicit bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final, Literal

from tacit.errors import ParameterError, TacitError, check_choice, check_count, check_positive
from tacit.learning.algorithms.accelerated import convex_nu, excess_bound
from tacit.learning.algorithms.lan import lan_bound
from tacit.learning.tuning import (
    accelerated_batch,
    descent_rounds,
    envelope_smoothness,
    growing_groups,
    plain_batch,
)
from tacit.means import BinomialMean, Facts
from tacit.privacy import Gaussian, PrivacyBudget, calibrate

__all__ = ["Interactivity", "ScoMethod", "ScoProblem", "sco_plan"]

Interactivity = Literal["sequential", "full"]
"""Whether a party speaks in one round, or may speak in many."""

_MOST_ROUNDS: Final = 200
"""Of gradient descent, which would take up to n, each of the same bits or more."""


@dataclass(frozen=True, kw_only=True)
class ScoProblem:
    """Stochastic convex optimisation with one record a party, known by its public facts.

    Attributes:
        n: Parties, >= 4.
        dim: d.
        budget: For the shuffled messages of the whole run; delta > 0.
        lipschitz: L of a record's loss.
        diameter: D of the domain.
        smoothness: beta of a record's loss; infinite for losses with a kink.
        mu: Strong convexity of the expected loss; 0 for none.
        interactivity: "sequential" or "full".
        max_rounds: Most rounds of gradient descent.

    Raises:
        ParameterError: A value is out of its range.
    """

    n: int
    dim: int
    budget: PrivacyBudget
    lipschitz: float = 1.0
    diameter: float = 1.0
    smoothness: float = math.inf
    mu: float = 0.0
    interactivity: Interactivity = "full"
    max_rounds: int = _MOST_ROUNDS

    def __post_init__(self) -> None:
        check_count("n", self.n, low=4)
        check_count("dim", self.dim)
        check_count("max_rounds", self.max_rounds)
        check_positive("lipschitz", self.lipschitz)
        check_positive("diameter", self.diameter)
        check_choice("interactivity", self.interactivity, ["sequential", "full"])
        if self.smoothness != math.inf:
            check_positive("smoothness", self.smoothness)
        if not 0 <= self.mu <= self.smoothness or not math.isfinite(self.mu):
            raise ParameterError(f"mu must be from 0 to the smoothness {self.smoothness!r}, got {self.mu!r}.")
        if self.budget.delta == 0:
            raise ParameterError("delta must be > 0 for binomial noise, got 0.0.")

    @cached_property
    def level(self) -> float:
        """Level of the Gaussian release that costs the whole budget."""
        return 1 / calibrate(Gaussian, self.budget)

    def mean(self, batch: int, rounds: int = 1) -> BinomialMean:
        """Return the shuffled mean of a round: of that many parties, each in so many rounds."""
        return _mean(self.budget, batch, self.dim, rounds)

    def variance(self, batch: int, rounds: int = 1) -> float:
        """Return a certified bound V on the variance that noise and rounding add to a mean gradient."""
        return self.mean(batch, rounds).error(batch, Facts(radius=self.lipschitz)).variance


@dataclass(frozen=True, kw_only=True)
class ScoMethod:
    """What one method promises.

    Attributes:
        name: Of the method.
        bound: On the expected excess over the population; infinite where it cannot run.
        batch: Parties of a round.
        rounds: Of the run.
        smoothness: That of the envelope that is minimised in place of a loss with a kink; else 0.
        bits: That a party sends in the whole run, one-bit messages without labels; 0 in a stream.
        reason: Why it cannot run; empty where it can.
        note: What else has to be known.
    """

    name: str
    bound: float = math.inf
    batch: int = 0
    rounds: int = 0
    smoothness: float = 0.0
    bits: float = 0.0
    reason: str = ""
    note: str = ""

    @property
    def valid(self) -> bool:
        """Whether it can run."""
        return not self.reason


@lru_cache(maxsize=256)  # the same batch serves several methods
def _mean(budget: PrivacyBudget, batch: int, dim: int, rounds: int) -> BinomialMean:
    return BinomialMean.calibrated(budget, batch, dim, rounds=rounds)


def sco_plan(problem: ScoProblem) -> tuple[ScoMethod, ...]:
    """Compare the shuffled methods by their bounds, with certified noise and no hidden constant.

    Args:
        problem: What is asked.

    Returns:
        One entry a method, those that can run first, the least bound first.

    Example:
        >>> found = sco_plan(ScoProblem(n=20_000, dim=10, budget=PrivacyBudget(1.0, 1e-5), diameter=2.0))
        >>> [(one.name, round(one.bound, 3), one.batch) for one in found if one.valid][:2]
        [('P_SGD', 0.099, 24), ('smoothed P_AGD', 0.13, 223)]

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Theorems 4.1, 4.3, 4.7, 4.8, 4.9 and C.3, with the constants of
        docs/theory/optimisers.md.
    """
    makers: dict[str, Callable[[ScoProblem], ScoMethod]] = {
        "P_SGD": _plain,
        "P_AGD": _accelerated,
        "smoothed P_AGD": _smoothed,
        "phases of P_AGD": _phased,
        "P_GD": _descent,
        "phases of P_GD": _phased_descent,
        "pan-private AC-SA": _stream,
    }
    found = []
    for name, make in makers.items():
        try:
            found.append(make(problem))
        except TacitError as error:
            found.append(ScoMethod(name=name, reason=str(error)))
    return tuple(sorted(found, key=lambda one: (not one.valid, one.bound, one.name)))


def _whole(batch: float, records: int) -> int:
    """Return a batch as a number of parties: at least two are shuffled, and at most all of them."""
    return min(max(round(batch), 2), records)


def _plain(problem: ScoProblem) -> ScoMethod:
    """P_SGD: D G / sqrt(T) with G^2 = L^2 + V(m)."""
    p = problem
    batch = _whole(plain_batch(dim=p.dim, level=p.level), p.n)
    rounds = p.n // batch
    moment = p.lipschitz**2 + p.variance(batch)
    return ScoMethod(
        name="P_SGD",
        bound=p.diameter * math.sqrt(moment / rounds),
        batch=batch,
        rounds=rounds,
        bits=_bits(p, batch),
    )


def _bits(problem: ScoProblem, batch: int, rounds: int = 1) -> float:
    """Return the bits of one party that is in so many rounds."""
    return float(rounds * problem.dim * problem.mean(batch, rounds).bits_per_coordinate)


def _ac_sa(
    problem: ScoProblem, name: str, *, records: int, smoothness: float, distance: float, ball: bool = True
) -> ScoMethod:
    """AC-SA, every record once, on a loss of that smoothness.

    With `ball`, by Lan's steps and their bound, for a domain of that diameter; else by steps whose bound
    needs the distance of the start only, as phases have it.
    """
    p = problem
    best = accelerated_batch(
        n=records,
        dim=p.dim,
        level=p.level,
        smoothness=smoothness,
        lipschitz=p.lipschitz,
        diameter=distance,
    )
    batch = _whole(best, records)
    rounds = records // batch
    std = math.sqrt(p.lipschitz**2 / batch + p.variance(batch))
    if ball:
        bound = lan_bound(smoothness=smoothness, noise_std=std, rounds=rounds, diameter=distance)
    else:
        nu = convex_nu(smoothness=smoothness, noise_std=std, rounds=rounds, diameter=distance)
        bound = excess_bound(nu=nu, noise_std=std, rounds=rounds, diameter=distance)
    return ScoMethod(name=name, bound=bound, batch=batch, rounds=rounds, bits=_bits(p, batch))


def _accelerated(problem: ScoProblem) -> ScoMethod:
    """P_AGD on the loss itself."""
    p = problem
    if not math.isfinite(p.smoothness):
        raise ParameterError("it needs a smooth loss, and this one has a kink.")
    return _ac_sa(p, "P_AGD", records=p.n, smoothness=p.smoothness, distance=p.diameter)


def _envelope(problem: ScoProblem, name: str, *, records: int, distance: float, ball: bool) -> ScoMethod:
    """P_AGD on the Moreau envelope, which lies at most L^2 / (2 beta) below the loss."""
    p = problem
    beta = envelope_smoothness(n=records, dim=p.dim, level=p.level, lipschitz=p.lipschitz, diameter=distance)
    found = _ac_sa(p, name, records=records, smoothness=beta, distance=distance, ball=ball)
    return replace(found, bound=found.bound + p.lipschitz**2 / (2 * beta), smoothness=beta)


def _smoothed(problem: ScoProblem) -> ScoMethod:
    """P_AGD on the envelope of a loss with a kink."""
    if math.isfinite(problem.smoothness):
        raise ParameterError("the loss is smooth already: P_AGD takes it as it is.")
    return _envelope(problem, "smoothed P_AGD", records=problem.n, distance=problem.diameter, ball=True)


def _shrinking(
    problem: ScoProblem, groups: Sequence[int], phase: Callable[[int, float], ScoMethod]
) -> ScoMethod:
    """Phases on groups of their own, each from a distance that the excess of the one before bounds.

    Delta_1 = 2 L^2 / mu and D_1 = min(D, 2 L / mu); then Delta is the bound of the phase, where it is less,
    and D^2 = 2 Delta / mu.
    """
    p = problem
    if p.mu == 0:
        raise ParameterError("it needs strong convexity, and none was given.")
    distance, excess = min(p.diameter, 2 * p.lipschitz / p.mu), 2 * p.lipschitz**2 / p.mu
    found = []
    for records in groups:
        found.append(phase(records, distance))
        excess = min(excess, found[-1].bound)
        distance = min(distance, math.sqrt(2 * excess / p.mu))
    return replace(
        found[-1], bound=excess, rounds=sum(one.rounds for one in found), bits=max(one.bits for one in found)
    )


def _phased(problem: ScoProblem) -> ScoMethod:
    """P_AGD in ceil(log2 log2 n) phases of the same length."""
    p, name = problem, "phases of P_AGD"
    count = max(1, math.ceil(math.log2(math.log2(p.n))))

    def phase(records: int, distance: float) -> ScoMethod:
        if math.isfinite(p.smoothness):
            facts = {"smoothness": p.smoothness, "distance": distance}
            return _ac_sa(p, name, records=records, ball=False, **facts)
        return _envelope(p, name, records=records, distance=distance, ball=False)

    return _shrinking(p, [p.n // count] * count, phase)


def _gradient_descent(problem: ScoProblem, name: str, *, records: int, distance: float) -> ScoMethod:
    """P_GD on that many records: what it has left of their own mean loss, and what leads beyond them.

    D^2 / (2 eta T) + eta (L^2 + V) / 2 for the mean loss, L^2 T eta / n for a smooth loss and eta <= 2 / beta
    by uniform stability. A loss with a kink has an envelope of smoothness (L / D) sqrt(T).
    """
    p, length = problem, problem.lipschitz
    rounds = min(descent_rounds(n=records, dim=p.dim, level=p.level), p.max_rounds)
    smooth = math.isfinite(p.smoothness)
    beta = p.smoothness if smooth else length / distance * math.sqrt(rounds)
    moment = length**2 + p.variance(records, rounds)
    eta = min(distance / math.sqrt(moment * rounds), 2 / beta)
    bound = distance**2 / (2 * eta * rounds) + eta * moment / 2 + length**2 * rounds * eta / records
    return ScoMethod(
        name=name,
        bound=bound + (0.0 if smooth else length**2 / (2 * beta)),
        batch=records,
        rounds=rounds,
        smoothness=0.0 if smooth else beta,
        bits=_bits(p, records, rounds),
    )


def _check_full(problem: ScoProblem) -> None:
    """Refuse parties that speak once."""
    if problem.interactivity != "full":
        raise ParameterError("it asks every party in many rounds, and here each speaks in one.")


def _descent(problem: ScoProblem) -> ScoMethod:
    """P_GD on all records."""
    _check_full(problem)
    return _gradient_descent(problem, "P_GD", records=problem.n, distance=problem.diameter)


def _phased_descent(problem: ScoProblem) -> ScoMethod:
    """P_GD in phases on groups that grow."""
    _check_full(problem)

    def phase(records: int, distance: float) -> ScoMethod:
        return _gradient_descent(problem, "phases of P_GD", records=max(records, 2), distance=distance)

    return _shrinking(problem, growing_groups(problem.n), phase)


def _stream(problem: ScoProblem) -> ScoMethod:
    """AC-SA on a stream: noise of 2 L / (m mu) a coordinate, twice."""
    p, smooth = problem, math.isfinite(problem.smoothness)
    facts = {"lipschitz": p.lipschitz, "diameter": p.diameter}
    beta = p.smoothness
    if not smooth:
        beta = envelope_smoothness(n=p.n, dim=p.dim, level=p.level, noises=2, **facts)
    best = accelerated_batch(n=p.n, dim=p.dim, level=p.level, smoothness=beta, noises=2, **facts)
    batch = _whole(best, p.n)
    zeta = 2 * p.lipschitz / (batch * p.level)
    std = math.sqrt(p.lipschitz**2 / batch + 2 * p.dim * zeta**2)
    bound = lan_bound(smoothness=beta, noise_std=std, rounds=p.n // batch, diameter=p.diameter)
    return ScoMethod(
        name="pan-private AC-SA",
        bound=bound + (0.0 if smooth else p.lipschitz**2 / (2 * beta)),
        batch=batch,
        rounds=p.n // batch,
        smoothness=0.0 if smooth else beta,
        note="no shuffler, but a processor that sees the records, and whose memory is read once at most",
    )
