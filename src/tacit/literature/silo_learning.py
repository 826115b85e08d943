"""The parameters of Lowy (2023), for comparison only: rounds, steps, batches and noise in closed form.

A run never uses them: its noise comes from `privacy.calibrate`. The noise formulas here are
sound where their range is checked, but 2 to 27 times too large; those of the experiments are not sound for
every budget (docs/errata.md). `noise_std` is always sigma, per coordinate, of one silo's mean
gradient over K records; replacing one moves that mean by at most 2 L / K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import ParameterError, check_choice, check_count, check_non_negative, check_positive
from tacit.learning.algorithms.accelerated import convex_nu
from tacit.numerics import strongly_convex_schedule
from tacit.privacy import PrivacyBudget

__all__ = [
    "PaperParameters",
    "PaperProblem",
    "accelerated_erm_parameters",
    "experiment_batch",
    "experiment_noise_std",
    "least_batch",
    "local_noise_std",
    "minibatch_noise_std",
    "minibatch_parameters",
    "one_pass_noise_std",
    "one_pass_parameters",
    "paper_parameters",
    "user_level_budget",
]


@dataclass(frozen=True, kw_only=True)
class PaperProblem:
    """What the theorems take.

    Attributes:
        n: Records of each silo.
        silos: M, silos that answer in a round; all of them.
        dim: d.
        budget: (eps0, delta0) of each silo, delta0 > 0.
        smoothness: beta.
        diameter: D.
        lipschitz: L.
        mu: Strong convexity; 0 for the convex theorems.
        gap: Delta >= F(w_0) - F*, for strongly convex acceleration; None takes beta D^2 / 2.
        phi: Bound on the standard deviation of a record's gradient; None takes L.
    """

    n: int
    silos: int
    dim: int
    budget: PrivacyBudget
    smoothness: float
    diameter: float
    lipschitz: float = 1.0
    mu: float = 0.0
    gap: float | None = None
    phi: float | None = None

    def __post_init__(self) -> None:
        for name in ("n", "silos", "dim"):
            check_count(name, getattr(self, name))
        for name in ("smoothness", "diameter", "lipschitz"):
            check_positive(name, getattr(self, name))
        check_non_negative("mu", self.mu)
        if self.mu > self.smoothness:
            raise ParameterError(f"mu must be at most the smoothness {self.smoothness!r}, got {self.mu!r}.")
        for name in ("gap", "phi"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        check_delta(self.budget)

    @property
    def initial_gap(self) -> float:
        """The bound Delta that is used."""
        return self.smoothness * self.diameter**2 / 2 if self.gap is None else self.gap

    @property
    def spread(self) -> float:
        """The bound phi that is used."""
        return self.lipschitz if self.phi is None else self.phi


@dataclass(frozen=True, kw_only=True)
class PaperParameters:
    """What a theorem chooses.

    Attributes:
        rounds: R.
        batch: K, records of a silo per round.
        noise_std: sigma, in units of the gradient.
        step: eta of minibatch SGD; nu of convex AC-SA; 0 where stages make their own.
    """

    rounds: int
    batch: int
    noise_std: float
    step: float


def paper_parameters(method: str, problem: PaperProblem) -> PaperParameters:
    """Return the parameters that the theorem behind a method chooses.

    Args:
        method: "minibatch" (Algorithm 14), "one-pass" or "accelerated" (Algorithm 1, disjoint batches or
            sampled ones).
        problem: What the theorem takes.

    Raises:
        ParameterError: Another method, or a budget outside the theorem's range.

    Example:
        >>> problem = PaperProblem(
        ...     n=1000, silos=25, dim=50, budget=PrivacyBudget(1.0, 1e-6), smoothness=0.25, diameter=10.0
        ... )
        >>> parameters = paper_parameters("one-pass", problem)
        >>> parameters.rounds, parameters.batch
        (11, 85)
    """
    methods = {
        "minibatch": minibatch_parameters,
        "one-pass": one_pass_parameters,
        "accelerated": accelerated_erm_parameters,
    }
    check_choice("method", method, methods)
    return methods[method](problem)


def minibatch_parameters(problem: PaperProblem) -> PaperParameters:
    """Return what Lowy (2023), Theorem 104, chooses for noisy minibatch SGD.

    Convex: R = (beta D sqrt(M)/L) min{sqrt(n), eps n/sqrt(d)} + min{nM, eps^2 n^2 M/d} and eta = min{1/beta,
    (D/(L sqrt(R))) min{1, eps n sqrt(M)/sqrt(R d), sqrt(nM/R)}}. Strongly convex: R = max{(2 beta/mu)
    ln(beta D^2 mu M eps^2 n^2/(d L^2)), min{Mn, M eps^2 n^2/d}}, and eta of Lemma 102.
    """
    n, M, d, eps = problem.n, problem.silos, problem.dim, problem.budget.epsilon
    L, beta, D, mu = problem.lipschitz, problem.smoothness, problem.diameter, problem.mu
    many = min(n * M, eps**2 * n**2 * M / d)
    if mu == 0:
        rounds = whole(beta * D * math.sqrt(M) / L * min(math.sqrt(n), eps * n / math.sqrt(d)) + many)
        slowest = min(1, eps * n * math.sqrt(M) / math.sqrt(rounds * d), math.sqrt(n * M / rounds))
        step = min(1 / beta, D / (L * math.sqrt(rounds)) * slowest)
        noise_std = minibatch_noise_std(n, problem.budget, rounds=rounds, lipschitz=L)
    else:
        logarithm = math.log(beta * D**2 * mu * M * eps**2 * n**2 / (d * L**2))
        rounds = whole(max(2 * beta / mu * logarithm, many))
        noise_std = minibatch_noise_std(n, problem.budget, rounds=rounds, lipschitz=L)
        variance = d * noise_std**2 / M
        step = strongly_convex_schedule(a=mu, g=2 * beta, r0=D**2, c=variance + L**2, T=rounds)
    batch = least_batch(n, problem.budget, rounds=rounds)
    return PaperParameters(rounds=rounds, batch=batch, noise_std=noise_std, step=step)


def one_pass_parameters(problem: PaperProblem) -> PaperParameters:
    """Return what Lowy (2023), Theorem 36, chooses for one-pass accelerated minibatch SGD.

    Convex: K = (L/(beta D))^(2/5) n^(3/5) (d ln(1/delta))^(1/5) / (eps^(2/5) M^(1/5)). Strongly convex: K =
    n / (sqrt(kappa) ln(mu Delta min{eps^2 n^2 M/(L^2 d ln(1/delta)), nM/phi^2})). R = floor(n/K).
    """
    n, M, d, eps = problem.n, problem.silos, problem.dim, problem.budget.epsilon
    L, beta, mu = problem.lipschitz, problem.smoothness, problem.mu
    log = -math.log(problem.budget.delta)
    if mu == 0:
        size = (L / (beta * problem.diameter)) ** 0.4 * n**0.6 * (d * log) ** 0.2 / (eps**0.4 * M**0.2)
    else:
        least = min(eps**2 * n**2 * M / (L**2 * d * log), n * M / problem.spread**2)
        # Where the logarithm is not above 1, one stage is enough for what the noise leaves.
        size = n / (math.sqrt(beta / mu) * max(math.log(mu * problem.initial_gap * least), 1.0))
    batch = min(whole(size), n)
    noise_std = one_pass_noise_std(batch, problem.budget, lipschitz=L)
    return _accelerated(problem, rounds=n // batch, batch=batch, noise_std=noise_std)


def accelerated_erm_parameters(problem: PaperProblem) -> PaperParameters:
    """Return what Lowy (2023), Theorem 37, chooses for accelerated minibatch SGD on full batches.

    Convex: R = sqrt(beta D sqrt(M) eps n / (L sqrt(d ln(1/delta)))). Strongly convex: R = sqrt(beta/mu)
    ln(Delta mu M eps^2 n^2/(L^2 d)). The further terms are for batches smaller than a silo.
    """
    n, M, d, eps = problem.n, problem.silos, problem.dim, problem.budget.epsilon
    L, beta, mu = problem.lipschitz, problem.smoothness, problem.mu
    if mu == 0:
        log = -math.log(problem.budget.delta)
        rounds = whole(math.sqrt(beta * problem.diameter * math.sqrt(M) * eps * n / (L * math.sqrt(d * log))))
    else:
        inside = problem.initial_gap * mu * M * eps**2 * n**2 / (L**2 * d)
        rounds = whole(math.sqrt(beta / mu) * math.log(inside))
    noise_std = minibatch_noise_std(n, problem.budget, rounds=rounds, lipschitz=L)
    return _accelerated(problem, rounds=rounds, batch=n, noise_std=noise_std)


def minibatch_noise_std(n: int, budget: PrivacyBudget, *, rounds: int, lipschitz: float = 1.0) -> float:
    """Return sigma of Lowy (2023), Theorem 104.

    sigma^2 = 256 L^2 R ln(2.5 R/delta) ln(2/delta) / (n^2 eps^2). Sound for batches of at least
    `least_batch`, drawn without replacement.

    Raises:
        ParameterError: delta = 0, or eps > 2 ln(2/delta), outside the theorem.
    """
    eps, delta = check_delta(budget)
    check_range(eps, 2 * math.log(2 / delta))
    check_count("rounds", rounds)
    return (
        16 * lipschitz * math.sqrt(rounds * math.log(2.5 * rounds / delta) * math.log(2 / delta)) / (n * eps)
    )


def least_batch(n: int, budget: PrivacyBudget, *, rounds: int) -> int:
    """Return the least K of Lowy (2023), Theorem 104: eps n / (4 sqrt(2 R ln(2/delta))), from 1 to n."""
    eps, delta = check_delta(budget)
    return min(whole(eps * n / (4 * math.sqrt(2 * rounds * math.log(2 / delta)))), n)


def one_pass_noise_std(batch: int, budget: PrivacyBudget, *, lipschitz: float = 1.0) -> float:
    """Return sigma of disjoint batches: sigma^2 = 32 L^2 ln(1.25/delta) / (eps^2 K^2) (Theorem 36).

    Raises:
        ParameterError: delta = 0, or eps > 8 ln(1/delta), outside the theorem.

    Example:
        >>> round(one_pass_noise_std(100, PrivacyBudget(1.0, 1e-6)), 6)
        0.211952
    """
    eps, delta = check_delta(budget)
    check_range(eps, 8 * math.log(1 / delta))
    return lipschitz * math.sqrt(32 * math.log(1.25 / delta)) / (eps * batch)


def experiment_batch(n: int, epsilon: float, *, rounds: int) -> int:
    """Return K of the experiments: n sqrt(eps) / (2 sqrt(R)), rounded (Appendix B.1.10.1)."""
    return min(max(1, round(n * math.sqrt(epsilon) / (2 * math.sqrt(rounds)))), n)


def experiment_noise_std(n: int, budget: PrivacyBudget, *, rounds: int, lipschitz: float = 1.0) -> float:
    """Return sigma of the experiments: sigma^2 = 8 L^2 R ln(1/delta) / (eps^2 n^2) (B.1.10.1).

    Not sound for every budget: at n = 1238, R = 35, delta = 1/n^2 it costs 1.60 for eps = 1.5 and 9.35 for 6.
    """
    eps, delta = check_delta(budget)
    return lipschitz * math.sqrt(8 * rounds * -math.log(delta)) / (n * eps)


def local_noise_std(
    n: int, budget: PrivacyBudget, *, rounds: int, local_steps: int, lipschitz: float = 1.0
) -> float:
    """Return sigma of a local step: sigma^2 = 8 L^2 R K ln(1/delta) / (eps^2 n^2) (B.1.10).

    Not sound: its proof is outside the range of the moments accountant.
    """
    return experiment_noise_std(n, budget, rounds=rounds * local_steps, lipschitz=lipschitz)


def user_level_budget(budget: PrivacyBudget, n: int) -> PrivacyBudget:
    """Return the record-level budget that gives a whole silo of n records `budget`: (eps/n, delta/(4n)).

    Lowy (2023), Appendix B.1.5.5. Bounding a silo's sensitivity directly needs far less noise.

    Raises:
        ParameterError: eps > 1, outside the theorem.
    """
    check_count("n", n)
    check_range(budget.epsilon, 1.0)
    return PrivacyBudget(budget.epsilon / n, budget.delta / (4 * n))


def _accelerated(problem: PaperProblem, *, rounds: int, batch: int, noise_std: float) -> PaperParameters:
    """Return parameters of AC-SA, with nu for V^2 = phi^2/(MK) + d sigma^2/M if convex."""
    M, step = problem.silos, 0.0
    if problem.mu == 0:
        variance = problem.dim * noise_std**2 / M
        if batch < problem.n:
            variance += problem.spread**2 / (M * batch)
        step = convex_nu(
            smoothness=problem.smoothness,
            noise_std=math.sqrt(variance),
            rounds=rounds,
            diameter=problem.diameter,
        )
    return PaperParameters(rounds=rounds, batch=batch, noise_std=noise_std, step=step)


def whole(value: float) -> int:
    """Return the value rounded up, at least 1."""
    return max(1, math.ceil(value))


def check_delta(budget: PrivacyBudget) -> tuple[float, float]:
    """Return (eps, delta), or refuse delta = 0."""
    if budget.delta == 0:
        raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0.")
    return budget.epsilon, budget.delta


def check_range(epsilon: float, largest: float) -> None:
    """Refuse an epsilon that the theorem does not cover."""
    if epsilon > largest:
        raise ParameterError(f"epsilon must be at most {largest:.6g} in this theorem, got {epsilon!r}.")
