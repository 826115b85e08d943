"""Orders of the excess risk across silos: what is reached, and what nobody beats.

Values are orders: constants and logarithms are dropped, so none of them bounds or predicts a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tacit.errors import check_choice, check_count, check_positive
from tacit.literature.silo_learning import PaperProblem
from tacit.numerics import Array

__all__ = [
    "SHUFFLED_ORDERS",
    "SiloRate",
    "hard_linear_rows",
    "lower_bounds_miss",
    "shuffled_rate",
    "silo_rates",
]


@dataclass(frozen=True, kw_only=True)
class SiloRate:
    """What is known of one class of problems, up to constants and logarithms.

    Attributes:
        problem: In words.
        of: "excess" of the objective, or the "squared gradient".
        upper: Order that an algorithm reaches.
        lower: Order that no algorithm beats; None where the table has none.
        source: Theorems.
    """

    problem: str
    of: str
    upper: float
    lower: float | None
    source: str


@dataclass(frozen=True)
class _Facts:
    """What the table is written in: s for sampling, r for privacy."""

    s: float
    r: float
    problem: PaperProblem

    @property
    def length(self) -> float:
        return self.problem.lipschitz * self.problem.diameter

    @property
    def scale(self) -> float:
        return self.problem.lipschitz**2 / self.problem.mu

    @property
    def kappa(self) -> float:
        return self.problem.smoothness / self.problem.mu

    @property
    def mixed(self) -> float:
        p = self.problem
        noise = p.smoothness**0.25 * p.lipschitz * p.diameter**1.5 * self.r
        return float(p.spread * p.diameter * self.s + noise**0.8)

    @property
    def descent(self) -> float:
        p = self.problem
        return float((math.sqrt(p.lipschitz * p.smoothness * p.initial_gap) * self.r) ** (4 / 3))


_Order = Callable[[_Facts], float]
_CONVEX: Final[tuple[tuple[str, str, _Order, _Order | None, _Order | None, str], ...]] = (
    (
        "convex, one law for all silos, population",
        "excess",
        lambda f: f.length * (f.s + f.r),
        lambda f: f.length * (f.s + f.r),
        lambda f: f.length * (f.s + f.r),
        "Lowy (2023), Figure 3.3; lower bound: Theorem 35",
    ),
    (
        "convex and smooth, silos differ, population",
        "excess",
        lambda f: f.mixed,
        lambda f: f.length * (f.s + f.r**1.4),
        lambda f: f.length * (f.s + f.r),
        "Lowy (2023), Figure 3.3 and Theorem 36; lower bound: Theorem 35",
    ),
    (
        "convex, the records themselves",
        "excess",
        lambda f: f.length * f.r,
        lambda f: f.length * f.r,
        lambda f: f.length * f.r,
        "Lowy (2023), Figure 3.3 and Theorem 37; lower bound: Theorem 133",
    ),
    (
        "non-convex and smooth, the records themselves",
        "squared gradient",
        lambda f: f.descent,
        lambda f: f.problem.lipschitz**2 * f.r**2,
        lambda f: f.problem.lipschitz**2 * f.r**2,
        "Lowy (2023), Figure 3.3; lower bound: Theorem 46",
    ),
)
"""Name, quantity, what is reached, the lower bound of silos that trust nobody, that of others, source."""

_STRONG: Final[tuple[tuple[str, str, _Order, _Order | None, _Order | None, str], ...]] = (
    (
        "strongly convex, one law for all silos, population",
        "excess",
        lambda f: f.scale * (f.s**2 + f.r**2),
        lambda f: f.scale * (f.s**2 + f.r**2),
        lambda f: f.scale * (f.s**2 + f.r**2),
        "Lowy (2023), Figure 3.3; lower bound: Theorem 35",
    ),
    (
        "strongly convex and smooth, silos differ, population",
        "excess",
        lambda f: f.scale * (f.s**2 + math.sqrt(f.kappa) * f.r**2),
        None,
        lambda f: f.scale * (f.s**2 + f.r**2),
        "Lowy (2023), Figure 3.3 and Theorem 36; lower bound: Theorem 35",
    ),
    (
        "strongly convex, the records themselves",
        "excess",
        lambda f: f.scale * f.r**2,
        lambda f: f.scale * f.r**2,
        lambda f: f.scale * f.r**2,
        "Lowy (2023), Figure 3.3 and Theorem 37; lower bound: Theorem 133",
    ),
    (
        "proximal PL, silos differ, population",
        "excess",
        lambda f: f.scale * (f.kappa**2 * f.r**2 + f.kappa * f.s**2),
        lambda f: f.scale * (f.s**2 + f.r**2),
        lambda f: f.scale * (f.s**2 + f.r**2),
        "Lowy (2023), Figure 3.3; the lower bound is that of strong convexity",
    ),
    (
        "proximal PL, the records themselves",
        "excess",
        lambda f: f.scale * f.kappa * f.r**2,
        lambda f: f.scale * f.r**2,
        lambda f: f.scale * f.r**2,
        "Lowy (2023), Figure 3.3; the lower bound is that of strong convexity",
    ),
)


def silo_rates(problem: PaperProblem, *, trust: str = "local") -> tuple[SiloRate, ...]:
    """Return the table of rates, at the numbers of a problem.

    With s = 1/sqrt(n N) and r = sqrt(d) / (eps n sqrt(N)) under local trust, else r = sqrt(d) / (eps n N).

    Args:
        problem: n records in each of N silos, all of which answer; with `mu` > 0 the strongly convex part.
        trust: "local", "shuffle" or "central".

    Example:
        >>> from tacit.privacy import PrivacyBudget
        >>> problem = PaperProblem(
        ...     n=100, silos=25, dim=4, budget=PrivacyBudget(1.0, 1e-6), smoothness=1.0, diameter=1.0
        ... )
        >>> [(f"{one.upper:.3g}", f"{one.lower:.3g}") for one in silo_rates(problem)[:2]]
        [('0.024', '0.024'), ('0.0321', '0.0204')]

    Reference:
        Lowy (2023), Figure 3.3, whose strongly convex entries for silos that differ have lost the root of
        kappa that Theorem 36 proves.
    """
    check_choice("trust", trust, ("local", "shuffle", "central"))
    n, N, d, eps = problem.n, problem.silos, problem.dim, problem.budget.epsilon
    r = math.sqrt(d) / (eps * n * (math.sqrt(N) if trust == "local" else N))
    facts = _Facts(1 / math.sqrt(n * N), r, problem)
    return tuple(
        SiloRate(
            problem=name,
            of=of,
            upper=upper(facts),
            lower=None if bound is None else bound(facts),
            source=source,
        )
        for name, of, upper, local, other, source in (_CONVEX if problem.mu == 0 else _STRONG)
        for bound in ((local if trust == "local" else other),)
    )


def lower_bounds_miss(problem: PaperProblem) -> tuple[str, ...]:
    """Return which conditions of the lower bounds under local trust a problem does not meet.

    They need eps <= sqrt(N), delta < 1/(n N), and, with rounds of at most eps/n and delta each, N >= 16
    ln(2/(delta n)). Those about the records themselves hold for algorithms that treat all records alike.

    Reference:
        Lowy (2023), Theorems 35, 46 and 133.
    """
    n, N, budget = problem.n, problem.silos, problem.budget
    missed = []
    if budget.epsilon > math.sqrt(N):
        missed.append("epsilon is above sqrt(silos)")
    if budget.delta * n * N >= 1:
        missed.append("delta is not below 1 / (silos records)")
    if 16 * math.log(max(2 / (budget.delta * n), 1.0)) > N:
        missed.append("there are fewer than 16 ln(2 / (delta records)) silos")
    return tuple(missed)


def hard_linear_rows(n: int, dim: int, diameter: float, *, rng: np.random.Generator) -> Array:
    """Return records of the hard convex instance f(w, x) = -<w, x>: corners of a cube, one law for all.

    Every coordinate is +-D / sqrt(d), with a small bias of one sign that depends on the coordinate, which is
    what an algorithm has to find.

    Args:
        n: Records.
        dim: d.
        diameter: D, the norm of a record.
        rng: Source of the signs.

    Returns:
        Shape (n, dim).

    Reference:
        After the proof of Theorem 35 of Lowy (2023).
    """
    for name, value in (("n", n), ("dim", dim)):
        check_count(name, value)
    check_positive("diameter", diameter)
    bias = np.where(rng.random(dim) < 0.5, -1.0, 1.0) / math.sqrt(n)
    signs = np.where(rng.random((n, dim)) < (1 + bias) / 2, 1.0, -1.0)
    return np.asarray(signs * diameter / math.sqrt(dim))


SHUFFLED_ORDERS: Final[dict[str, Callable[[int, int, float], float]]] = {
    "convex, one batch a party": lambda n, d, eps: d ** (1 / 3) / (eps * n) ** (2 / 3),
    "convex and smooth, one batch a party": lambda n, d, eps: d**0.4 / (eps * n) ** 0.8,
    "strongly convex, one batch a party": lambda n, d, eps: d ** (2 / 3) / (eps * n) ** (4 / 3),
    "strongly convex and smooth, one batch a party": lambda n, d, eps: d / (eps * n) ** 2,
    "convex, all parties in all rounds": lambda n, d, eps: math.sqrt(d) / (eps * n),
    "strongly convex, all parties in all rounds": lambda n, d, eps: d / (eps * n) ** 2,
    "convex, plain steps, one batch a party": lambda n, d, eps: d**0.25 / math.sqrt(eps * n),
}
"""What privacy costs with one record a party behind a shuffler, by class: functions of n, d and epsilon, up
to constants and logarithms, for L = D = strong convexity = 1 (Cheu, Joseph, Mao and Peng 2021, Table 1)."""


def shuffled_rate(name: str, *, n: int, dim: int, epsilon: float) -> float:
    """Return the order of the excess risk with one record a party behind a shuffler, sampling included.

    Args:
        name: In `SHUFFLED_ORDERS`.
        n: Parties.
        dim: d.
        epsilon: > 0.

    Example:
        >>> round(shuffled_rate("convex, all parties in all rounds", n=10_000, dim=100, epsilon=1.0), 6)
        0.011

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Table 1, and 1/sqrt(n), or 1/n if strongly convex.
    """
    check_choice("name", name, SHUFFLED_ORDERS)
    for label, value in (("n", n), ("dim", dim)):
        check_count(label, value)
    check_positive("epsilon", epsilon)
    sampling = 1 / n if name.startswith("strongly") else 1 / math.sqrt(n)
    return SHUFFLED_ORDERS[name](n, dim, epsilon) + sampling
