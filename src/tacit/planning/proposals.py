"""From proposals to a plan: those worth a calibration, and what becomes of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from tacit.errors import BudgetError, PlanWarning, TacitError
from tacit.means import Error, MeanEstimator, error_under_moment
from tacit.means.heavy_tailed import clip_for
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.public import SemiPrivateMean, weighted_private_mean
from tacit.numerics import Norm
from tacit.planning.candidate import Candidate, Kind
from tacit.privacy import Event, Guarantee, PureDP, TrustModel, guarantee, meets

__all__ = ["front", "priced", "settle_proposal"]

_GAIN = 0.9
"""More bits are worth a calibration if the error is below this share of the next cheaper one's."""


def front(proposals: Iterable[Proposal], problem: MeanProblem, points: int) -> list[Proposal]:
    """Return the proposals worth calibrating: none of them is beaten in both error and bits.

    Args:
        proposals: Of one family.
        problem: What is asked; proposals above its bits are left out, unless all are.
        points: Most proposals to keep; the most accurate ones are kept.

    Returns:
        With increasing bits, each at least 10 % more accurate than the one before; where nothing fits, the
        one with the fewest bits.
    """
    proposals = list(proposals)
    if len(proposals) == 1:
        return proposals
    ranked: list[tuple[float, float, int, Proposal]] = []
    unknown: list[Proposal] = []
    for k, p in enumerate(proposals):
        try:
            guess = p.make() if p.guess is None else p.guess
            ranked.append((guess.bits_per_party(1), _predicted(p, guess, problem)[0].mse, k, p))
        except TacitError:  # settling it, which fails again, says why
            unknown.append(p)
    if not ranked:
        return unknown
    ranked.sort(key=lambda one: one[:3])
    if problem.bits is not None:
        within = [one for one in ranked if one[0] <= problem.bits]
        ranked = within or ranked[:1]
    kept: list[tuple[float, float, int, Proposal]] = []
    for one in ranked:
        if not kept or one[1] < _GAIN * kept[-1][1]:
            kept.append(one)
    best = min(ranked, key=lambda one: (one[1], one[0]))
    if best[1] < kept[-1][1] and best[0] <= 1.5 * kept[-1][0]:
        # The last step of less than 10 % is taken all the same where it costs few bits.
        kept[-1] = best
    return [*(one[3] for one in kept[-points:]), *unknown]


def settle_proposal(proposal: Proposal, problem: MeanProblem) -> Candidate:
    """Calibrate a proposal, predict its error and price it again; what fails says why."""
    try:
        return _candidate(proposal, problem, proposal.make())
    except BudgetError as error:
        return _candidate(proposal, problem, None, reason=str(error))
    except TacitError as error:
        warnings.warn(f"{proposal.name} is left out of the plan: {error}", PlanWarning, stacklevel=2)
        return _candidate(proposal, problem, None, reason=str(error))


def _candidate(
    proposal: Proposal, problem: MeanProblem, estimator: MeanEstimator | None, *, reason: str = ""
) -> Candidate:
    """Return the line of a plan."""
    joined: SemiPrivateMean | None = None
    mse, bits, note, promise, alone = math.inf, math.nan, proposal.note, None, None
    kind: Kind = "bound"
    radius = problem.radius_in(proposal.norm)
    if estimator is not None:
        error, radius = _predicted(proposal, estimator, problem)
        mse, kind, bits = error.mse, error.kind, estimator.bits_per_party(1)
        if problem.bits is not None and bits > problem.bits:
            reason = f"needs {bits:,.0f} bits a party, above the limit of {problem.bits:,}."
        if problem.budget is not None:
            event = estimator.event(problem.n, problem.observer)
            promise = priced(event, problem)
            # A printed epsilon is rounded up, perhaps beyond a budget with more decimals.
            if not (promise.epsilon <= problem.budget.epsilon or meets(event, problem.budget)):
                reason = "the budget is below the least level that randomised response is sampled at."
        if problem.public:
            joined, mse, said = _join_public(estimator, error, problem, proposal.norm)
            kind = "bound" if kind == "exact" and problem.variance is None else kind
            note = _joined((said, note))
        message = estimator.event(problem.n, TrustModel.LOCAL)
        if problem.trust == "shuffle" and isinstance(message, PureDP):
            note = _joined((note, f"a party's messages alone: epsilon {message.epsilon:.3g}"))
        if problem.trust == "aggregate":
            alone = _guarantee(message, problem.known_budget.delta, _ALONE)
    return Candidate(
        name=proposal.name,
        family=proposal.family,
        estimator=estimator,
        radius=radius,
        mse=mse,
        kind=kind,
        bits_per_party=bits,
        guarantee=promise,
        encode=proposal.encode,
        decode=proposal.decode,
        alone=alone,
        joined=joined,
        note=note,
        reason=reason,
    )


def _predicted(proposal: Proposal, estimator: MeanEstimator, problem: MeanProblem) -> tuple[Error, float]:
    """Return the predicted error and the radius: under a moment, the clip that balances the error."""
    if problem.moment is None:
        return proposal.error(estimator, problem), problem.radius_in(proposal.norm)
    n, moment = problem.n, problem.moment
    ball: Literal["l2", "linf"] = "linf" if proposal.cube else "l2"
    clip = clip_for(estimator, n, moment, ball=ball, parties=n)
    return error_under_moment(estimator, n, moment, radius=clip, parties=n, ball=ball), clip


def _join_public(
    estimator: MeanEstimator, error: Error, problem: MeanProblem, norm: Norm
) -> tuple[SemiPrivateMean, float, str]:
    """Join a private mean with public rows, with the weights of least error for the mean of their law.

    Returns:
        The estimator, its mean squared error w^2 (noise + V^2 / n) + (1 - w)^2 V^2 / n_public, and a note.

    Reference:
        Lowy (2023), eq. (2.4) and Proposition 28.
    """
    V2 = problem.population_variance
    joined = weighted_private_mean(
        estimator,
        n_private=problem.n,
        n_public=problem.public,
        population_variance=V2,
        facts=problem.facts(norm),
        norm=norm,
    )
    w = joined.weight
    mse = w**2 * (error.mse + V2 / problem.n) + (1 - w) ** 2 * V2 / problem.public
    return joined, mse, f"private mean with weight {w:.3g}, public one with {1 - w:.3g}"


_SEEN = {
    "central": "an observer of the released mean",
    "aggregate": "everybody, the server and up to {colluding} of the parties together,",
    "shuffle": "an observer of the shuffled batch",
    "local": "an observer of every message",
}

_ALONE = "the server and all other parties together, who see the message of one party alone,"


def priced(event: Event, problem: MeanProblem) -> Guarantee:
    """Return what the observer of the problem learns from an event, at the delta of the budget."""
    observer = _SEEN[problem.trust].format(colluding=problem.colluding)
    return _guarantee(event, problem.known_budget.delta, observer)


@lru_cache(maxsize=512)
def _guarantee(event: Event, delta: float, observer: str) -> Guarantee:
    """Return the price of an event; estimators of equal levels share theirs."""
    return guarantee(event, delta, observer=observer)


def _joined(parts: Sequence[str]) -> str:
    """Join the parts of a note that are not empty."""
    return "; ".join(part for part in parts if part)
