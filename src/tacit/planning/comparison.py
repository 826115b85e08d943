"""What a plan is measured against: a trusted server, saying nothing, and orders that nobody beats.

None of these is ranked: the first two are not answers to the question, and the constants of the rest are
unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.means.problem import MeanProblem
from tacit.privacy import Gaussian, Relation, calibrate

__all__ = ["ErrorOrder", "Reference", "lower_bounds", "references"]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An error to compare with.

    Attributes:
        name: What it is the error of.
        mse: Mean squared L2 error against the mean of the n rows.
        note: How it is computed.
    """

    name: str
    mse: float
    note: str


@dataclass(frozen=True, kw_only=True)
class ErrorOrder:
    """A statement up to an unknown constant: never a bound on any number.

    Attributes:
        statement: In O-notation.
        value: The expression without its constant, at the numbers of the problem.
        source: Theorem.
    """

    statement: str
    value: float
    source: str


def references(problem: MeanProblem) -> tuple[Reference, ...]:
    """Return what a trusted server would reach, for sums what seen messages would, and what zero costs.

    Args:
        problem: What is asked.

    Returns:
        The Gaussian mechanism (delta > 0) or the Laplace mechanism, with real-valued noise, and zero; under a
        moment, zero only.

    Example:
        >>> from tacit.privacy import PrivacyBudget
        >>> problem = MeanProblem(n=1000, dim=300, trust="shuffle", budget=PrivacyBudget(1.0, 1e-5))
        >>> [f"{one.mse:.3g}" for one in references(problem)]
        ['0.0167', '1']

    Reference:
        Balle and Wang (2018), ICML, at the L2 sensitivity: 2 r / n under replace-one, else r / n; Laplace
        noise: Dwork et al. (2006), TCC.
    """
    if problem.moment is not None:
        norm = problem.moment.for_ball("l2", dim=problem.dim).value
        return (Reference(name="zero", mse=norm**2, note="the most that answering 0 can be wrong"),)
    found = []
    d, n = problem.dim, problem.n
    moved = 2 if problem.near.relation is Relation.REPLACE_ONE else 1
    if problem.budget is not None and problem.budget.delta > 0:
        z = calibrate(Gaussian, problem.budget)
        found.append(
            Reference(
                name="central Gaussian",
                mse=d * (moved * problem.radius_in("l2") * z / n) ** 2,
                note="a trusted server with exact real-valued Gaussian noise",
            )
        )
        if problem.trust == "aggregate":
            found.append(
                Reference(
                    name="local Gaussian",
                    mse=n * d * (moved * problem.radius_in("l2") * z / n) ** 2,
                    note="messages that anybody may see, each with all of that noise",
                )
            )
    elif problem.budget is not None:
        scale = moved * problem.radius_in("l1") / (n * problem.budget.epsilon)
        found.append(
            Reference(
                name="central Laplace",
                mse=2 * d * scale**2,
                note="a trusted server with exact real-valued Laplace noise",
            )
        )
    found.append(
        Reference(
            name="zero",
            mse=problem.radius_in("l2") ** 2,
            note="the most that answering 0 can be wrong: a mechanism above it is of no use for such rows",
        )
    )
    return tuple(found)


def lower_bounds(problem: MeanProblem) -> tuple[ErrorOrder, ...]:
    """Return orders that no mechanism beats, as far as they are known for the problem.

    Reference:
        Girgis (2023), Theorems 3.4.3, 3.6.3 and 3.6.4; Lowy (2023), Theorem 25.
    """
    if problem.budget is None or problem.moment is not None:
        return ()
    n, d, r, eps = problem.n, problem.dim, problem.radius, problem.budget.epsilon
    weak = min(eps, eps**2)
    found: list[ErrorOrder] = []
    if problem.trust == "local" and problem.norm == "l1":
        found.append(
            ErrorOrder(
                statement="Omega(r^2 min{1, d / (n epsilon^2)}), unbiased",
                value=r**2 * min(1.0, d / (n * eps**2)),
                source="Girgis (2023), Theorem 3.4.3",
            )
        )
    elif problem.trust == "local":
        power = 1.0 if problem.norm == "linf" else 0.0
        found.append(
            ErrorOrder(
                statement=f"Omega(r^2 {'d ' if power else ''}min{{1, d / (n min(epsilon, epsilon^2))}})",
                value=r**2 * d**power * min(1.0, d / (n * weak)),
                source="Girgis (2023), Theorem 3.6.3",
            )
        )
    elif problem.norm == "l2" and eps <= 1 and 0 < problem.budget.delta < 1 / n:
        log = math.log(1 / problem.budget.delta)
        found.append(
            ErrorOrder(
                statement="Omega(r^2 d log(1/delta) / (n epsilon)^2), epsilon = O(1)",
                value=r**2 * d / n**2 * log / eps**2,
                source="Girgis (2023), Theorem 3.6.4",
            )
        )
        if problem.bits is not None:
            b = problem.bits
            spread = n / b if b < d else n / d * 4.0 ** -min(b / d, 500.0)
            found.append(
                ErrorOrder(
                    statement="Omega(r^2 d / n^2 max{log(1/delta) / epsilon^2, n / "
                    + ("b})" if b < d else "(d 4^(b/d))})"),
                    value=r**2 * d / n**2 * max(log / eps**2, spread),
                    source="Girgis (2023), Theorem 3.6.4",
                )
            )
    if problem.public:
        rate = d / (n * weak) if problem.trust == "local" else d**2 / (n * eps) ** 2
        said = "d / (n min(epsilon, epsilon^2))" if problem.trust == "local" else "d^2 / (n epsilon)^2"
        total = n + problem.public
        found.append(
            ErrorOrder(
                statement=f"Theta(r^2 min{{1/n_public, {said} + 1/n}}), pure privacy",
                value=r**2 * min(1 / problem.public, rate + 1 / total),
                source="Lowy (2023), Theorem 25",
            )
        )
    return tuple(found)
