"""Orders of the squared gradient of private federated methods without convexity, term by term.

Values are orders: constants and logarithms are dropped, so none of them bounds or predicts a number. Source:
"Efficient private federated non-convex optimization with shuffled model" (PSGM below; an anonymous manuscript
of 2024), Table 1 and Theorems 4.2 and A.2 to A.4, with what is wrong in print mended (docs/errata.md).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal, get_args

from tacit.errors import (
    ParameterError,
    PlanWarning,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
)

__all__ = [
    "NONCONVEX_METHODS",
    "NonconvexProblem",
    "NonconvexRate",
    "nonconvex_first_batch",
    "nonconvex_momentum",
    "nonconvex_rate",
    "nonconvex_rate_table",
    "nonconvex_step_size",
]

Method = Literal["diff2-gd", "mb-psgm-fg", "mb-psgm", "diff2-bvr-lsgd", "ce-psgm-fg", "ce-psgm"]
NONCONVEX_METHODS: Final[tuple[str, ...]] = get_args(Method)
"""Rows of the table; "fg" is for gradients of all records."""

Form = Literal["derived", "printed"]


@dataclass(frozen=True, kw_only=True)
class NonconvexProblem:
    """Public facts of a federation and a run.

    Attributes:
        silos: M.
        n: Records of a silo.
        dim: d.
        epsilon: Of the budget.
        rounds: R.
        local_steps: K.
        local_batch: b, records of a local step; a round asks K b of a silo.
        gap: Delta >= F(x_0) - inf F.
        smoothness: L.
        lipschitz: G.
        heterogeneity: tau, how far the Hessians of silos are from the mean one, at most 2 L; None is 2 L.

    Raises:
        ParameterError: A count below 1, another value that is not > 0, or tau > 2 L.
    """

    silos: int
    n: int
    dim: int
    epsilon: float
    rounds: int
    local_steps: int = 1
    local_batch: int = 1
    gap: float = 1.0
    smoothness: float = 1.0
    lipschitz: float = 1.0
    heterogeneity: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int":
                check_count(field.name, value)
            elif value is not None:
                check_positive(field.name, value)
        if self.tau > 2 * self.smoothness:
            raise ParameterError(
                f"heterogeneity must be at most 2 smoothness = {2 * self.smoothness!r}, got {self.tau!r}."
            )

    @property
    def tau(self) -> float:
        """The heterogeneity that is counted on."""
        return 2 * self.smoothness if self.heterogeneity is None else self.heterogeneity

    @property
    def budget(self) -> float:
        """M n epsilon."""
        return self.silos * self.n * self.epsilon

    @property
    def samples(self) -> int:
        """M K b, gradients of a round."""
        return self.silos * self.local_steps * self.local_batch

    @property
    def ratio(self) -> float:
        """The ell of the proofs, M n epsilon / sqrt(R d M K b)."""
        return self.budget / math.sqrt(self.rounds * self.dim * self.samples)

    @property
    def moved(self) -> float:
        """Delta L, what a step along the gradient may gain."""
        return self.gap * self.smoothness


@dataclass(frozen=True, kw_only=True)
class NonconvexRate:
    """An order of E|grad F|^2.

    Attributes:
        method: Of `NONCONVEX_METHODS`.
        terms: What adds up to it, by name.
        trusted_server: Whether its noise is a trusted server's.
        full_gradients: Whether silos compute gradients of all their records.
    """

    method: str
    terms: Mapping[str, float]
    trusted_server: bool
    full_gradients: bool

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return math.fsum(self.terms.values())


def nonconvex_rate(method: Method, problem: NonconvexProblem, *, form: Form = "derived") -> NonconvexRate:
    """Return the order of the squared gradient that a method reaches, term by term.

    Those of DIFF2 are for M n >= G^2 sqrt(d) / (L Delta epsilon), as PSGM cites them from Murata and Suzuki
    (2023). All others are for epsilon of at most the order of ln(1 / delta).

    Args:
        method: Of `NONCONVEX_METHODS`.
        problem: Public facts.
        form: "derived" is what the proofs give; "printed" is what Table 1 and the displays of the theorems
            print: ell^2 in place of ell (Theorem A.3), (M K b)^(2/3) in place of (R M K b)^(2/3), and
            (Theorem 4.2) no error of local noise.

    Returns:
        The terms: "optimization", "drift" of local steps, their "local sampling" and "local noise", the
        "sampling" of gradients, "privacy", of which "first privacy" is that of gradients and, of DIFF2,
        "server noise".

    Raises:
        ParameterError: An unknown method or form.

    Example:
        >>> facts = NonconvexProblem(silos=10, n=1000, dim=100, epsilon=1.0, rounds=100)
        >>> rates = [nonconvex_rate(name, facts).total for name in ("mb-psgm-fg", "diff2-gd")]
        >>> [round(rate, 6) for rate in rates]
        [0.010101, 0.0102]

    Reference:
        PSGM (2024), Table 1, Theorems 4.2, A.2, A.3 and A.4.
    """
    check_choice("method", method, NONCONVEX_METHODS)
    check_choice("form", form, ["derived", "printed"])
    p, full, diff2 = problem, method not in ("mb-psgm", "ce-psgm"), method.startswith("diff2")
    walks, printed = method in ("diff2-bvr-lsgd", "ce-psgm-fg", "ce-psgm"), form == "printed"
    root, third = math.sqrt(p.dim), (p.moved * p.lipschitz) ** (2 / 3)
    terms: dict[str, float] = {}
    if walks:
        K, b = p.local_steps, p.local_batch
        terms["drift"] = p.gap * p.tau / p.rounds
        terms["optimization"] = p.moved / (p.rounds * K)
        terms["local sampling"] = p.moved / (p.rounds * math.sqrt(K * b))
        if diff2:  # as printed: a noise of local steps that no number of rounds lessens
            terms["local noise"] = p.moved * root / (math.sqrt(K) * p.epsilon * b)
        elif full or not printed:
            terms["local noise"] = p.moved * root / (p.rounds * math.sqrt(K * p.epsilon) * b)
        if full or not printed:
            terms["server noise"] = p.moved * root / (math.sqrt(p.rounds * p.silos) * p.n * p.epsilon)
    else:
        terms["optimization"] = p.moved / p.rounds
        if diff2:
            terms["server noise"] = p.moved * root / (p.budget * math.sqrt(p.rounds))
    best = (p.dim * p.moved * p.lipschitz) ** (2 / 3) / p.budget ** (4 / 3)
    if not full:
        many = p.samples * (1 if printed else p.rounds)
        terms["sampling"] = third / many ** (2 / 3)
        terms["first sampling"] = p.lipschitz**2 / (p.samples * p.rounds)
        power = 2 if printed and method == "mb-psgm" else 1
        best *= 1 + p.ratio**power + p.ratio ** (1 / 3)
    terms["privacy"] = best
    if not diff2:
        terms["first privacy"] = p.dim * (p.lipschitz / p.budget) ** 2
    return NonconvexRate(method=method, terms=terms, trusted_server=diff2, full_gradients=full)


def nonconvex_rate_table(problem: NonconvexProblem, *, form: Form = "derived") -> tuple[NonconvexRate, ...]:
    """Return the orders of all `NONCONVEX_METHODS`, to compare them; never error bars."""
    methods: tuple[Method, ...] = get_args(Method)
    return tuple(nonconvex_rate(method, problem, form=form) for method in methods)


def nonconvex_momentum(method: Method, problem: NonconvexProblem) -> float:
    """Return beta = max(1 / R, min(beta_a, beta_b)), at most 1; without beta_b for gradients of all records.

    beta_a = (M n epsilon Delta L)^(2/3) / (d^(1/3) R G^(4/3)), and beta_b = (M K b)^(1/3) (Delta L)^(2/3) /
    (R^(2/3) G^(4/3)).

    Above 1 it is 1, with a `PlanWarning`: nothing is carried on then, and rates are not those of the method.

    Args:
        method: Of `NONCONVEX_METHODS`, but DIFF2.
        problem: Public facts.

    Raises:
        ParameterError: A method that has no momentum.

    Reference:
        PSGM (2024), Theorems 4.2 and A.2 to A.4, restored from their proofs.
    """
    beta = _momentum(method, problem)
    if beta > 1:
        warnings.warn(
            f"the momentum weight {beta:.4g} of {method} is above 1 and becomes 1: every round forgets what "
            "was before it. More rounds, or a smaller budget, have one below 1.",
            PlanWarning,
            stacklevel=2,
        )
    return min(1.0, beta)


def nonconvex_first_batch(method: Method, problem: NonconvexProblem) -> int:
    """Return the least b0 >= K b / (R beta^2) of records that a silo uses in the first round.

    The error of the first gradient is carried on for 1 / beta rounds: with fewer records it is the largest.
    Methods with gradients of all records use all n. Where b0 would be more, it is n, with a `PlanWarning`.

    Args:
        method: Of `NONCONVEX_METHODS`, but DIFF2.
        problem: Public facts.

    Raises:
        ParameterError: A method that has no momentum.

    Reference:
        PSGM (2024), the condition 1 / (R b0) <= beta^2 / (K b) of Theorems 4.2 and A.3.

    Example:
        >>> facts = NonconvexProblem(silos=10, n=1000, dim=100, epsilon=1.0, rounds=100, local_batch=10)
        >>> nonconvex_first_batch("mb-psgm", facts)
        3
    """
    p, beta = problem, min(1.0, _momentum(method, problem))
    if method.endswith("-fg"):
        return p.n
    least = math.ceil(p.local_steps * p.local_batch / (p.rounds * beta**2) * (1 - 1e-12))
    if least > p.n:
        warnings.warn(
            f"the first round of {method} needs {least:,} records of a silo and has {p.n:,}: its error stays "
            "above that of later rounds.",
            PlanWarning,
            stacklevel=2,
        )
    return min(max(least, 1), p.n)


def _momentum(method: Method, problem: NonconvexProblem) -> float:
    """Return max(1 / R, min(beta_a, beta_b)), which may be above 1."""
    check_choice("method", method, [one for one in NONCONVEX_METHODS if not one.startswith("diff2")])
    p = problem
    known: float = p.moved ** (2 / 3) / p.lipschitz ** (4 / 3)
    beta: float = p.budget ** (2 / 3) * known / (p.dim ** (1 / 3) * p.rounds)
    if not method.endswith("-fg"):
        beta = min(beta, p.samples ** (1 / 3) * known / p.rounds ** (2 / 3))
    return max(1 / p.rounds, beta)


def nonconvex_step_size(method: Method, problem: NonconvexProblem, *, noise: float = 0.0) -> float:
    """Return eta, half of the least of what the proofs ask for.

    1 / L, and sqrt(beta) M n epsilon / (sqrt(d R) L) and, of sampled gradients, sqrt(beta M K b) / L; for K
    local steps the last two over K, and 1 / (K tau), sqrt(b / K) / L and 1 / (sqrt(K d) L sigma).

    Args:
        method: Of `NONCONVEX_METHODS`, but DIFF2.
        problem: Public facts.
        noise: sigma of a local difference over its clip, a coordinate.

    Raises:
        ParameterError: A method that has no momentum, or a negative noise.

    Reference:
        PSGM (2024), Theorems 4.2 and A.2 to A.4; without the K of Theorems A.3 and A.4, where H = 1.
    """
    check_non_negative("noise", noise)
    p, beta, K = problem, min(1.0, _momentum(method, problem)), problem.local_steps
    server = [math.sqrt(beta / (p.dim * p.rounds)) * p.budget]
    if not method.endswith("-fg"):
        server.append(math.sqrt(beta * p.samples))
    if method.startswith("mb"):
        return min(1.0, *server) / (2 * p.smoothness)
    local = [1.0, p.smoothness / (K * p.tau), math.sqrt(p.local_batch / K)]
    if noise > 0:
        local.append(1 / (math.sqrt(K * p.dim) * noise))
    return min(*local, *(one / K for one in server)) / (2 * p.smoothness)
