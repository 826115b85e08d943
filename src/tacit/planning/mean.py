"""Which mechanism for a mean: every family, calibrated to the budget, ranked by predicted error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn, Protocol

from tacit.errors import BudgetError, ParameterError, TacitError, check_count
from tacit.means import ESTIMATORS, AdditiveMean, NoNoise
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal
from tacit.means.public import SemiPrivateMean
from tacit.planning.candidate import Candidate
from tacit.planning.proposals import front, priced, settle_proposal
from tacit.privacy import PrivacyBudget

__all__ = ["PlanProgress", "plan_mean"]

_LARGEST_BUDGET = 64.0


class PlanProgress(Protocol):
    """Is told how far a plan has come."""

    def __call__(self, done: float, total: float | None = None, /, *, note: str = "") -> None:
        """Hear that `done` of `total` candidates are settled, and which one comes next."""


def plan_mean(
    problem: MeanProblem,
    *,
    points: int = 4,
    infeasible: bool = False,
    progress: PlanProgress | None = None,
) -> tuple[Candidate, ...]:
    """Rank mechanisms for a mean by their predicted error.

    Every registered estimator offers its proposals (`MeanEstimator.proposals`), often a grid of parameters; a
    guess of the noise ranks the grid, and the candidates that neither an error nor a number of bits rules out
    are calibrated by numerical accounting and priced again. One that fails to is left out, with a warning.

    Args:
        problem: What is asked.
        points: Candidates of a family with different numbers of bits, at most; >= 1.
        infeasible: Whether to list what cannot be used as well, last, with the reason.
        progress: Is told how far the plan has come; None for nobody.

    Returns:
        Candidates, the least predicted error first; equal errors by bits. Ready-made estimators.

    Raises:
        ParameterError: Nothing fits into the bits that a party may send; the message names the least that do.
        BudgetError: Nothing meets the budget; the message names the next budget that something meets.

    Example:
        >>> from tacit.planning import MeanProblem, plan_mean
        >>> from tacit.privacy import PrivacyBudget
        >>> problem = MeanProblem(n=1000, dim=64, trust="central", budget=PrivacyBudget(1.0, 1e-6))
        >>> best = plan_mean(problem)[0]
        >>> best.name, f"{best.mse:.3g}"
        ('Gaussian noise of the server', '0.00457')

    Reference:
        Each candidate by its own `error`, which cites what it rests on.
    """
    check_count("points", points)
    chosen = _chosen(problem, points)
    found: list[Candidate] = []
    for done, proposal in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen), note=proposal.name)
        found.append(settle_proposal(proposal, problem))
    if problem.public:
        found.append(_throw_away(problem))
    ranked = sorted(found, key=lambda one: (not one.feasible, one.mse, one.bits_per_party, one.name))
    if not any(one.feasible for one in ranked) and not infeasible:
        raise _nothing(problem, ranked)
    return tuple(one for one in ranked if one.feasible or infeasible)


def _chosen(problem: MeanProblem, points: int) -> list[Proposal]:
    """Return the proposals worth calibrating, of all families."""
    families: dict[str, list[Proposal]] = {}
    for tag in ESTIMATORS:
        for proposal in _offered(tag, problem):
            families.setdefault(proposal.family, []).append(proposal)
    return [one for proposals in families.values() for one in front(proposals, problem, points)]


def _offered(tag: str, problem: MeanProblem) -> Iterator[Proposal]:
    """Return what an estimator offers; where it fails to, a proposal that says why when it is settled."""
    try:
        for one in ESTIMATORS[tag].proposals(problem):
            # A moment of norms says what a clip to a ball or to a cube costs, and of no other.
            if one.ranked and (problem.moment is None or one.norm == "l2" or one.cube):
                yield one
    except TacitError as error:
        refused = error

        def make() -> NoReturn:
            raise refused

        unknown = ComputeCost("?", 0.0)
        yield Proposal(name=tag, family=tag, make=make, norm="l2", encode=unknown, decode=unknown)


def _throw_away(problem: MeanProblem) -> Candidate:
    """Return the mean of the public rows alone, which asks nothing of anybody."""
    nothing = AdditiveMean(dim=problem.dim, noise=NoNoise(), neighbours=problem.near)
    joined = SemiPrivateMean(private=nothing, weight=0.0, norm=problem.norm)
    return Candidate(
        name="public rows only",
        family="public rows only",
        estimator=nothing,
        joined=joined,
        radius=problem.radius,
        mse=problem.population_variance / problem.public,
        kind="exact" if problem.variance is not None else "bound",
        bits_per_party=0.0,
        guarantee=priced(joined.event(problem.n, problem.observer), problem),
        encode=ComputeCost("0", 0.0),
        decode=ComputeCost("n_public d", float(problem.public) * problem.dim),
        note="private rows are not asked at all",
    )


def _nothing(problem: MeanProblem, ranked: list[Candidate]) -> ParameterError | BudgetError:
    """Return the error that says what would have to change."""
    least = min((one for one in ranked if one.estimator is not None), key=_bits, default=None)
    if least is not None and problem.bits is not None and least.bits_per_party > problem.bits:
        return ParameterError(
            f"bits must be at least {least.bits_per_party:,.0f} a party here ({least.name}), "
            f"got {problem.bits}."
        )
    budget = problem.known_budget
    return BudgetError(
        f"no mechanism meets epsilon = {budget.epsilon:.6g}, delta = {budget.delta:.3g} under trust "
        f"{problem.trust}{_next_budget(problem)}."
    )


def _bits(candidate: Candidate) -> float:
    return candidate.bits_per_party


def _next_budget(problem: MeanProblem) -> str:
    """Return the words that name a budget that something meets."""
    budget = problem.known_budget
    epsilon = budget.epsilon
    while epsilon < _LARGEST_BUDGET:
        epsilon *= 2
        larger = replace(problem, budget=PrivacyBudget(epsilon, budget.delta), bits=None)
        if any(settle_proposal(one, larger).feasible for one in _chosen(larger, 1)):
            return f"; epsilon = {epsilon:.3g} can be met"
    return ""
