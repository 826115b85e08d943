"""Which method for gradients of heavy tails: by explicit bounds, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import get_args

from tacit.errors import (
    ParameterError,
    TacitError,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
)
from tacit.learning.algorithms import (
    ClippedACSA,
    ClippedProximalSGD,
    ClippedSGD,
    ClippedSubgradient,
    LocalizedSubgradient,
    PhasedLocalizedSubgradient,
    Problem,
    Protection,
)
from tacit.learning.algorithms.clipped_ac_sa import clipped_ac_sa_bound, clipped_ac_sa_nu
from tacit.learning.algorithms.clipped_prox_sgd import clipped_prox_sgd_bound
from tacit.learning.algorithms.clipped_sgd import clipped_sgd_bound
from tacit.means import GaussianNoise, MomentBound, clip_bias, clip_variance
from tacit.means.moments import ClipMethod
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, ZcdpBudget, calibrate

__all__ = ["HeavyPlan", "plan_heavy_tailed"]

_ROUNDS = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 57, 80, 113, 160, 226, 320, 452, 640, 905, 1280, 2560, 5120)
_Method = ClippedACSA | ClippedSGD | ClippedProximalSGD | ClippedSubgradient | LocalizedSubgradient


@dataclass(frozen=True, kw_only=True)
class HeavyPlan:
    """What one method promises.

    Attributes:
        name: Of the algorithm.
        rounds: T; for `clipped-sgd` T + 1. Of all phases, where there are any.
        rows: s of a mean; of the first phase.
        clip: C; of the first phase.
        noise_std: sigma, of a coordinate of a mean; of the first phase.
        bias: B; of the first phase.
        variance: V^2 = d sigma^2 + what a sample of clipped gradients varies by.
        bound: On the expected excess; infinite where it cannot run.
        population: Whether the bound is about the law that records come from, and not the records.
        reason: Why there is no bound; empty where there is one.
    """

    name: str
    rounds: int = 0
    rows: int = 0
    clip: float = 0.0
    noise_std: float = 0.0
    bias: float = 0.0
    variance: float = 0.0
    bound: float = math.inf
    population: bool = True
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """What is known, with r of norms."""

    n: int
    dim: int
    multiplier: float
    moment: MomentBound
    diameter: float
    smoothness: float
    mu: float
    lipschitz: float
    gap: float

    @property
    def signal(self) -> float:
        """Epsilon n / sqrt(d), where epsilon is 1 / z."""
        return self.n / (self.multiplier * math.sqrt(self.dim))

    def of(self, name: str, rounds: int, rows: int, clip: float, method: ClipMethod) -> HeavyPlan:
        """Return a plan of means of so many rows clipped there, without its bound."""
        sigma = 2 * self.multiplier * clip / rows
        spread = clip_variance(self.moment, clip) if method == "sharp" else self.moment.value**2
        return HeavyPlan(
            name=name,
            rounds=rounds,
            rows=rows,
            clip=clip,
            noise_std=sigma,
            bias=clip_bias(self.moment, clip, method=method),
            variance=self.dim * sigma**2 + spread / rows,
        )

    def problem(self, plan: HeavyPlan | None = None, *, releases: int = 1) -> Problem:
        """Return the facts as methods read them."""
        return Problem(
            smoothness=self.smoothness,
            radius=math.inf,
            diameter=self.diameter,
            dim=self.dim,
            variance=0.0 if plan is None else plan.variance,
            lipschitz=self.lipschitz,
            protection=Protection(
                trust=TrustModel.CENTRAL,
                noise=GaussianNoise,
                multiplier=self.multiplier * math.sqrt(releases),
            ),
            sizes=(self.n,),
            rows=self.n,
            moment=self.moment,
        )


def plan_heavy_tailed(
    n: int,
    dim: int,
    budget: PrivacyBudget | ZcdpBudget,
    moment: MomentBound,
    *,
    diameter: float,
    smoothness: float | None = None,
    mu: float = 0.0,
    lipschitz: float = math.inf,
    gap: float | None = None,
    method: ClipMethod = "sharp",
) -> tuple[HeavyPlan, ...]:
    """Rank the methods for gradients of heavy tails by their explicit bounds.

    Under central trust, or of one silo. `sharp` takes the number of rounds with the least bound, from a grid;
    `paper` the closed forms of Lowy (2023), for the methods of one pass.

    Args:
        n: Records.
        dim: d, number of parameters.
        budget: (epsilon, delta), or zero-concentrated.
        moment: Of gradients.
        diameter: D of the domain.
        smoothness: beta of the expected loss; None where it need not be smooth.
        mu: Its strong convexity, or proximal-PL constant; 0 for none.
        lipschitz: L of a record's loss; infinite where nothing is known.
        gap: Delta, a bound on F(w_0) - F*; None takes min(beta D^2 / 2, r D).
        method: Which constants.

    Returns:
        One plan a method, the least bound first, then those that cannot run, with their reasons.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import MomentBound
        >>> from tacit.privacy import PrivacyBudget
        >>> moment, facts = MomentBound(2, 5.0), {"diameter": 2.0, "smoothness": 10.0}
        >>> budget = PrivacyBudget.zcdp(0.5)
        >>> first, *_ = plan_heavy_tailed(10_000, 10, budget, moment, **facts, method="paper")
        >>> first.name, first.rounds, first.rows, round(first.clip, 3), round(first.bound, 3)
        ('clipped-ac-sa', 12, 833, 151.069, 3.881)

    Reference:
        Lowy (2023), Theorems 59, 61 and 63, Propositions 172, 174 and 177;
        docs/theory/heavy-tailed-training.md.
    """
    check_count("n", n, low=4)
    check_count("dim", dim)
    check_positive("diameter", diameter)
    check_non_negative("mu", mu)
    check_choice("method", method, get_args(ClipMethod))
    beta = math.inf if smoothness is None else check_positive("smoothness", smoothness)
    if mu > beta:
        raise ParameterError(f"mu must be at most the smoothness {beta!r}, got {mu!r}.")
    if lipschitz != math.inf:
        check_positive("lipschitz", lipschitz)
    norms = moment.for_ball("l2", dim=dim)
    least = min(beta * diameter**2 / 2, norms.value * diameter)
    facts = _Facts(
        n=n,
        dim=dim,
        multiplier=_multiplier(budget),
        moment=norms,
        diameter=diameter,
        smoothness=beta,
        mu=mu,
        lipschitz=lipschitz,
        gap=least if gap is None else check_positive("gap", gap),
    )
    make = _paper if method == "paper" else _sharp
    return tuple(sorted(make(facts), key=lambda one: (one.bound, bool(one.reason), one.name)))


def _multiplier(budget: PrivacyBudget | ZcdpBudget) -> float:
    """Return the noise multiplier z of one release."""
    if isinstance(budget, ZcdpBudget):
        return 1 / math.sqrt(2 * budget.rho)
    if budget.delta == 0:
        raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0.")
    return calibrate(Gaussian, budget)


def _unfit(facts: _Facts, name: str) -> str:
    """Return what a method lacks; empty where it lacks nothing."""
    if name in ("clipped-ac-sa", "clipped-sgd", "clipped-prox-sgd") and not math.isfinite(facts.smoothness):
        return "it needs a smooth expected loss, whose smoothness is known."
    if name in ("clipped-sgd", "clipped-prox-sgd", "localized-phases") and facts.mu == 0:
        return "it needs mu > 0."
    return ""


def _paper(facts: _Facts) -> list[HeavyPlan]:
    """Return the closed forms."""
    n, k, r = facts.n, facts.moment.order, facts.moment.value
    beta, mu, diameter, signal = facts.smoothness, facts.mu, facts.diameter, facts.signal
    found = []
    for name in ("clipped-ac-sa", "clipped-sgd", "clipped-prox-sgd"):
        if reason := _unfit(facts, name):
            found.append(HeavyPlan(name=name, reason=reason))
            continue
        if name == "clipped-ac-sa":
            size = beta * diameter / r
            power = signal ** ((2 * k - 2) / (5 * k - 1))
            rounds = math.ceil(min(size ** (2 * k / (5 * k - 1)) * power, math.sqrt(size) * n**0.25))
            rounds = min(max(rounds, 1), n)
            plan = facts.of(name, rounds, n // rounds, r * (signal / math.sqrt(rounds)) ** (1 / k), "paper")
            nu = clipped_ac_sa_nu(
                smoothness=beta,
                variance=plan.variance + plan.bias**2,
                rounds=rounds,
                diameter=diameter,
                method="paper",
            )
            bound = clipped_ac_sa_bound(
                nu=nu,
                variance=plan.variance,
                bias=plan.bias,
                rounds=rounds,
                diameter=diameter,
                method="paper",
            )
        elif name == "clipped-sgd":
            inside = mu * beta * diameter**2 / r**2 * (n + signal ** ((2 * k - 2) / k))
            last = math.ceil(4 * beta / mu * math.log(max(inside, math.e)))
            if last + 1 > n:
                found.append(HeavyPlan(name=name, reason=f"its {last + 1} rounds need as many records."))
                continue
            clip = r * (signal / math.sqrt(last)) ** (1 / k)
            plan = facts.of(name, last + 1, n // (last + 1), clip, "paper")
            bound = clipped_sgd_bound(
                smoothness=beta,
                mu=mu,
                last=last,
                distance=diameter,
                variance=plan.variance,
                bias=plan.bias,
                method="paper",
            )
        else:
            inside = mu * facts.gap / r**2 * min(n, signal ** ((2 * k - 2) / k))
            rounds = max(1, math.ceil(2 * beta / mu * math.log(max(inside, 1.0))))
            if rounds > n:
                found.append(HeavyPlan(name=name, reason=f"its {rounds} rounds need as many records."))
                continue
            plan = facts.of(name, rounds, n // rounds, r * (signal / rounds) ** (1 / k), "paper")
            bound = clipped_prox_sgd_bound(
                smoothness=beta,
                mu=mu,
                rounds=rounds,
                gap=facts.gap,
                variance=plan.variance,
                bias=plan.bias,
                method="paper",
            )
        found.append(replace(plan, bound=bound))
    return found


def _sharp(facts: _Facts) -> list[HeavyPlan]:
    """Return every method with the number of rounds of the least bound."""
    smooth = facts.smoothness if math.isfinite(facts.smoothness) else None
    mu = facts.mu or None
    methods: dict[str, _Method] = {
        "clipped-ac-sa": ClippedACSA(smoothness=smooth),
        "clipped-sgd": ClippedSGD(smoothness=smooth, mu=mu),
        "clipped-prox-sgd": ClippedProximalSGD(smoothness=smooth, mu=mu, gap=facts.gap),
        "clipped-subgradient": ClippedSubgradient(),
        "localized": LocalizedSubgradient(),
        "localized-phases": PhasedLocalizedSubgradient(mu=mu),
    }
    found = []
    for name, method in methods.items():
        reason, plans = _unfit(facts, name), list[HeavyPlan]()
        for rounds in () if reason else _ROUNDS:
            try:
                plans.append(_one(facts, name, method, rounds))
            except TacitError as error:
                reason = str(error)
        best = min(plans, key=lambda one: one.bound, default=HeavyPlan(name=name, reason=reason))
        found.append(best)
    return found


def _one(facts: _Facts, name: str, method: _Method, rounds: int) -> HeavyPlan:
    """Return a method with so many rounds."""
    if isinstance(method, LocalizedSubgradient):
        problem = facts.problem()
        method.check(problem, rounds)
        first, *_ = method.phases(problem, rounds)
        return HeavyPlan(
            name=name,
            rounds=rounds,
            rows=int(first.rows),
            clip=first.clip,
            noise_std=first.noise_std / math.sqrt(facts.dim),
            bias=first.bias,
            variance=first.noise_std**2,
            bound=method.error_bound(problem, rounds),
        )
    if isinstance(method, ClippedSubgradient):
        problem = facts.problem(releases=rounds)
        clip = method.clip(problem, rounds)
        plan = replace(facts.of(name, rounds, facts.n, clip, "sharp"), population=False)
        noise = plan.noise_std * math.sqrt(rounds)
        plan = replace(plan, noise_std=noise, variance=facts.dim * noise**2)
        problem = replace(problem, variance=plan.variance)
        return replace(plan, bound=method.error_bound(problem, rounds))
    method.check(facts.problem(), rounds)
    clip = method.clip(facts.problem(), rounds)
    plan = facts.of(name, rounds, facts.n // rounds, clip, "sharp")
    return replace(plan, bound=method.error_bound(facts.problem(plan), rounds))
