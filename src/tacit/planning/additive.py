"""Proposals with additive noise: by the server, or by every party, on all coordinates or on a sketch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from tacit.means import (
    AdditiveMean,
    AnyNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    MeanEstimator,
    RandK,
    RandProjSpatial,
)
from tacit.planning.candidate import ComputeCost
from tacit.planning.problem import MeanProblem
from tacit.planning.proposals import Proposal
from tacit.privacy import TrustModel, calibrate

__all__ = ["additive", "noisy_sketches"]

_STEPS = (2**16, 2**11, 2**8)
_LEAST, _MOST = 2.0**-10, 1e7
"""Noise multipliers that are tried."""


def additive(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose exact integer noise on the sum of the rows: the server's, or one share of every party.

    Laplace noise has a pure level, and goes with rows of an L1 ball; Gaussian noise needs delta > 0.
    """
    central = problem.trust == "central"
    trust = TrustModel.CENTRAL if central else TrustModel.LOCAL
    kinds: tuple[type[DiscreteGaussianNoise] | type[DiscreteLaplaceNoise], ...]
    kinds = (DiscreteGaussianNoise, DiscreteLaplaceNoise)
    d, n = problem.dim, problem.n
    for kind in kinds:
        # The server's noise goes on 64-bit sums, however fine the grid is.
        for steps in _STEPS[:1] if central else _STEPS:

            def build(
                z: float,
                kind: type[DiscreteGaussianNoise] | type[DiscreteLaplaceNoise] = kind,
                steps: int = steps,
            ) -> AdditiveMean:
                return AdditiveMean(
                    dim=d, noise=kind(z, steps=steps), trust=trust, neighbours=problem.neighbours
                )

            name = "Gaussian" if kind is DiscreteGaussianNoise else "Laplace"
            fineness = "" if central else f", {steps} steps"
            yield Proposal(
                name=f"{name} noise of {'the server' if central else 'every party'}{fineness}",
                family=f"additive {name.lower()}",
                guess=build(_scale(problem, kind) * _rounding(kind, d, steps)),
                make=_calibrated(build, problem),
                norm="l2" if kind is DiscreteGaussianNoise else "l1",
                encode=ComputeCost("d", 2.0 * d),
                decode=ComputeCost("n d", float(n) * d),
                note="the party sends its row as it is" if central else "",
            )


def noisy_sketches(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose local noise on k numbers of a public random map, for few bits or correlated rows."""
    d, n = problem.dim, problem.n
    R = problem.total_correlation
    for k in sorted({max(1, d // share) for share in (256, 64, 16, 4)}):
        for family in ("rand-k", "rand-proj-spatial"):
            if family == "rand-proj-spatial" and (R is None or R <= 0):
                continue

            def build(z: float, k: int = k, family: str = family) -> MeanEstimator:
                noise = DiscreteGaussianNoise(z, steps=_STEPS[0])
                if family == "rand-k":
                    return RandK(dim=d, k=k, noise=noise, neighbours=problem.neighbours)
                return RandProjSpatial(
                    dim=d, k=k, noise=noise, transform="opt", correlation=R, neighbours=problem.neighbours
                )

            turned = family != "rand-k"
            yield Proposal(
                name=f"{family} with Gaussian noise, k={k}",
                family=f"noisy {family}",
                guess=build(_scale(problem, DiscreteGaussianNoise)),
                make=_calibrated(build, problem),
                norm="l2",
                encode=ComputeCost("d log d", d * problem.log_dim) if turned else ComputeCost("k", float(k)),
                decode=ComputeCost("n d log d", 40 * n * d * problem.log_dim)
                if turned
                else ComputeCost("n k + d", n * k + d),
                note="matched to the correlation that was given" if turned else "",
            )


def _scale(problem: MeanProblem, kind: type[AnyNoise]) -> float:
    """Return about the noise multiplier that the budget needs."""
    budget = problem.known_budget
    if kind is DiscreteLaplaceNoise:
        return min(max(1 / budget.epsilon, _LEAST), _MOST)
    # Without delta there is no such noise, and the calibration will say so.
    log = math.log(1 / budget.delta) if budget.delta > 0 else 50.0
    return min(max(math.sqrt(2 * max(1.0, log)) / budget.epsilon, _LEAST), _MOST)


def _rounding(kind: type[AnyNoise], dim: int, steps: int) -> float:
    """Return by how much rounding to the grid lengthens the distance of two sums, two radii apart."""
    return 1 + (dim if kind is DiscreteLaplaceNoise else math.sqrt(dim)) / (2 * steps)


def _calibrated(build: Callable[[float], MeanEstimator], problem: MeanProblem) -> Callable[[], MeanEstimator]:
    """Return what builds the least noisy estimator that meets the budget."""

    def make() -> MeanEstimator:
        z = calibrate(
            lambda z: build(z).event(problem.n, problem.observer),
            problem.known_budget,
            low=_LEAST,
            high=_MOST,
        )
        return build(z)

    return make
