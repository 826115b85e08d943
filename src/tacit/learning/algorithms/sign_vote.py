"""Sign-SGD with majority vote: parties send one bit of each coordinate of their (noisy) gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from scipy import optimize

from tacit.errors import ParameterError, check_probability
from tacit.federation import Ask, Batch, Full, Step
from tacit.learning.algorithms.base import UNMIXED, Follow, Kinds, Method, Problem, check_optional
from tacit.learning.algorithms.minibatch import minibatch_sgd
from tacit.learning.objective import Objective
from tacit.means import SignVoteMean
from tacit.numerics import Array, Regularizer
from tacit.privacy import TrustModel

__all__ = ["NoisySignSGD", "directions"]

_VOTES = math.sqrt(math.pi / 2)
"""What Gaussian noise costs a majority at most, in deviations of the mean; see `error_bound`."""


class NoisySignSGD(Method, frozen=True, kw_only=True, tag="sign-vote"):
    """Sign-SGD with majority vote (Bernstein et al. 2018, 2019): w <- w - eta sign(votes) / sqrt(d).

    One bit per coordinate, silo and round, and no silo outweighs another by long gradients. The price is
    that of `SignVoteMean`: of noisy sums under local trust, of noisy votes under central trust. Votes of
    silos that differ are biased: where most silos have small gradients of one sign, and few have large ones
    of the other, the majority is not the sign of the mean, and more rounds do not help.

    Steps do not shrink with the gradient, so the last iterates wander by about eta; they are averaged. It
    takes no regulariser, which would act as if the gradient had length 1: with a penalty of strength c, w
    would settle where sign(grad F) / sqrt(d) + c w is 0 on average, not at the minimum of F + c |w|^2 / 2.

    Attributes:
        rounds: R; None chooses it.
        batch: Units per round.
        step_size: eta, the L2 length of a step when no vote is tied; None minimises the error bound.
        average: Share of the last iterates that are averaged, in (0, 1]; 1 is what the theory averages.
    """

    batch: Batch = Full()
    step_size: float | None = None
    average: float = 0.5

    paper: ClassVar[str] = "Bernstein et al. (2019)"
    caveat: ClassVar[str] = "its bound is for silos that have the same gradients"
    trusts: ClassVar[tuple[TrustModel, ...]] = UNMIXED
    why_no_sums: ClassVar[str] = (
        "a silo votes by its own noisy sum, and its share of noise alone is too little"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size)
        check_probability("average", self.average, low_open=True)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for votes on the signs of mean gradients in all rounds."""
        return ((Step(measures=(problem.measure("gradient", SignVoteMean),), batch=self.batch), rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return (D + alpha R) (G / (alpha R) + alpha beta d / 2 + sqrt(pi d / 2) V) / rho.

        alpha = eta / sqrt(d) is the step of a coordinate, G = min(beta D / 2, L) D bounds F(w_0) - F* for
        gradients of norm at most L, and rho is the certainty of a noisy vote. This bounds the expected excess
        of the average of w_0..w_{R-1} for convex, beta-smooth F, where all silos have the same gradients and
        weights, either with Gaussian noise of one deviation on them and exact votes, or with exact gradients
        and Gaussian noise on the votes. What it leaves out: silos that differ, for which nothing is proven
        (see the class), and that errors of sampling are not Gaussian.

        1. Smoothness: F(w_{r+1}) <= F(w_r) - alpha <g, s> + alpha^2 beta d / 2 for votes s in {-1, 0, 1}^d.
        2. Local trust: let a silo's noise have deviation sigma in a coordinate where |g| = S sigma > 0, and
           e = Phi(S) - 1/2. Each of M silos is wrong with probability 1/2 - e on its own, so at least half of
           them are with probability at most 1 / (1 + 4 M e^2 / (1 - 4 e^2)) (Cantelli), which is at most
           sqrt(1 / (4 e^2) - 1) / (2 sqrt(M)). Because S sqrt(1 / (4 e^2) - 1) <= sqrt(pi / 2), twice |g|
           times this is at most sqrt(pi / 2) sigma / sqrt(M) = sqrt(pi / 2) V / sqrt(d), and in all
           coordinates E <g, s> >= |g|_1 - sqrt(pi d / 2) V. Central trust: E <g, s> >= rho |g|_1.
        3. Added up over r: the mean of E |g_r|_1 is at most the second factor over rho.
        4. A coordinate moves by at most alpha a round, so F(w_r) - F* <= <g_r, w_r - w*> <=
           |g_r|_1 (D + alpha R).
        """
        if not math.isfinite(problem.smoothness):
            return math.inf
        alpha = self._step(problem, rounds) / math.sqrt(problem.dim)
        gap, curvature, noise = _terms(problem)
        gradient = gap / (alpha * rounds) + alpha * curvature + noise
        # Noise so large that no bit of certainty is left rules this number of rounds out.
        certainty = max(_certainty(problem), math.ulp(0.0))
        return (problem.diameter + alpha * rounds) * gradient / certainty

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse a single round, and unknown smoothness where a step size has to be made."""
        if rounds < 2:
            raise ParameterError(
                f"rounds must be at least 2: the start is what one would return; got {rounds}."
            )
        self._step(problem, rounds)

    def why_no_regularizer(self, objective: Objective) -> str:  # noqa: ARG002 - of none
        """Return that votes have no length."""
        return "votes do not say how long a gradient is, which a penalty has to be weighed against"

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the averaged parameters (arXiv:1802.04434, Algorithm 3)."""
        skipped = min(int(rounds * (1 - self.average)), rounds - 1)
        return minibatch_sgd(
            directions(ask),
            w,
            rounds=rounds,
            step_size=self._step(problem, rounds),
            radius=problem.radius,
            prox=prox,
            log_weights=iter([-math.inf] * skipped + [0.0] * (rounds - skipped)),
            follow=follow,
        )

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        gap, curvature, noise = _terms(problem)
        diameter, target = problem.diameter, problem.diameter * gap / rounds
        linear = diameter * curvature + rounds * noise

        def slope(alpha: float) -> float:
            # Of the bound, times alpha^2: it rises from below 0.
            return alpha * alpha * (2 * rounds * curvature * alpha + linear) - target

        # The root is below where the linear term alone reaches the target; rounding may put it on top of it.
        return math.sqrt(problem.dim) * optimize.brentq(slope, 0.0, math.sqrt(target / linear) * (1 + 1e-9))


def _terms(problem: Problem) -> tuple[float, float, float]:
    """Return the bounds on F(w_0) - F*, on half the curvature of a step, and on what noise adds to |g|_1."""
    beta, diameter = problem.known_smoothness, problem.diameter
    return (
        min(beta * diameter / 2, problem.radius, problem.lipschitz) * diameter,
        beta * problem.dim / 2,
        _VOTES * math.sqrt(problem.dim) * problem.noise_std,
    )


def _certainty(problem: Problem) -> float:
    """Return P(right) - P(wrong) of the published sign of a unanimous vote; 1 without noise on votes.

    M silos of vote vectors of length 1 add up to M / sqrt(d) in a coordinate, and one record moves them by 2:
    of Gaussian noise of deviation 2 z, the sign survives with probability Phi(M / (2 z sqrt(d))).
    """
    protection = problem.protection
    if protection.trust is not TrustModel.CENTRAL or protection.multiplier == 0:
        return 1.0
    std = 2 * protection.multiplier * math.sqrt(problem.dim)  # in votes
    return math.erf(problem.asked / std / math.sqrt(2))


def directions(ask: Ask) -> Ask:
    """Return an `ask` for the direction of a step: sign(votes) / sqrt(size), of length 1 without ties.

    Args:
        ask: Returns the majority of the signs of clipped gradients, or a weighted mean of signs, whose sign
            is the weighted majority.
    """

    def asked(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        (votes,) = ask(step, at, radius)
        return (np.sign(votes) / math.sqrt(votes.size),)

    return asked
