"""What runs on shuffled reports reach for a budget: level, parties, records and rounds, by the bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit.errors import ParameterError, check_count, check_positive
from tacit.learning.algorithms.shuffled_reports import (
    ReportMean,
    ReportRandomizer,
    event_of_reports,
    report_bits,
    report_mean,
)
from tacit.privacy import Event, PrivacyBudget, TrustModel, calibrate, epsilon_of
from tacit.privacy.composition import MOST_RELEASES

__all__ = ["ReportPlan", "plan_reports", "report_risk"]

_ORDERS = {"hadamard": 1.0, "bitplane": math.inf}
"""p of the norm that gradients are clipped in; 2 for all others."""


@dataclass(frozen=True, kw_only=True)
class ReportPlan:
    """One way to spend a budget.

    Attributes:
        drawn: k clients of a round.
        sampled: s records of each.
        rounds: T.
        local_epsilon: Exact level of the report on one record.
        epsilon: What the run costs.
        risk: Bound on the expected excess of the last point.
        bits: Expected bits of a client in a round, (k / n) times those of its reports.
    """

    drawn: int
    sampled: int
    rounds: int
    local_epsilon: float
    epsilon: float
    risk: float
    bits: float


def report_risk(
    variance: float, *, p: float, dim: int, messages: int, rounds: int, lipschitz: float, diameter: float
) -> float:
    """Return 2 D G (2 + ln T) / sqrt(T), G^2 = L^2 (max(1, d^(1 - 2/p)) + f / (k s)).

    Args:
        variance: f, the largest mean squared error of one report on a gradient of the unit l_p ball.
        p: Norm in which a gradient is at most L long, >= 1. (Girgis 2023 prints 1 for d^(1 - 2/p), which is
            right up to p = 2.)
        dim: d.
        messages: k s.
        rounds: T.
        lipschitz: L.
        diameter: D of the domain, in the l2 norm.

    Raises:
        ParameterError: A number out of its range.

    Reference:
        Shamir and Zhang (2013), Theorem 2; Girgis (2023), Lemmas 4.3.2 and 4.3.3.

    Example:
        >>> kappa = (math.e + 1) / (math.e - 1)
        >>> round(report_risk(8 * kappa**2, p=1, dim=8, messages=100, rounds=500, lipschitz=1, diameter=2), 2)
        1.72
    """
    if not p >= 1:
        raise ParameterError(f"p must be >= 1, got {p!r}.")
    check_count("messages", messages)
    check_count("rounds", rounds)
    check_positive("lipschitz", lipschitz)
    check_positive("diameter", diameter)
    moment = lipschitz * math.sqrt(max(1.0, dim ** (1 - 2 / p)) + variance / messages)
    return 2 * diameter * moment * (2 + math.log(rounds)) / math.sqrt(rounds)


def plan_reports(
    budget: PrivacyBudget,
    *,
    clients: int,
    dim: int,
    records: int = 1,
    drawn: Sequence[int] | None = None,
    sampled: Sequence[int] = (1,),
    rounds: Sequence[int] = (30, 100, 300, 1000),
    randomizer: ReportRandomizer = "hemisphere",
    lipschitz: float = 1.0,
    diameter: float = 1.0,
    progress: Callable[[int, int], Any] = lambda _done, _total: None,
) -> list[ReportPlan]:
    """Return every run that is asked for, with the largest level that the budget allows, by its bound.

    Args:
        budget: Of the run, for whoever sees the shuffled batches.
        clients: n, all honest.
        dim: Number of parameters.
        records: m of each client.
        drawn: Numbers k of clients of a round; None tries n / 10, n / 3 and n.
        sampled: Numbers s of records of each.
        rounds: Numbers T.
        randomizer: How a gradient becomes a report; `lipschitz` is in its norm.
        lipschitz: L.
        diameter: D.
        progress: Called with (done, total); some seconds each.

    Returns:
        The best first.

    Raises:
        ParameterError: A number out of its range, such as more records than there are.
        BudgetError: The budget cannot be met.
    """
    check_count("clients", clients)
    check_count("dim", dim)
    for count in rounds:
        check_count("rounds", count, high=MOST_RELEASES)
    ks = [max(clients // 10, 1), max(clients // 3, 1), clients] if drawn is None else list(drawn)
    cases = [(k, s, T) for k in dict.fromkeys(ks) for s in sampled for T in rounds]
    mean_at = partial(report_mean, randomizer, dim=dim, trust=TrustModel.SHUFFLE)
    found = []
    for done, (k, s, T) in enumerate(cases):
        progress(done, len(cases))
        mean, epsilon = _largest_level(
            budget, mean_at, clients=clients, drawn=k, records=records, sampled=s, rounds=T
        )
        risk = report_risk(
            mean.error(1).mse,
            p=_ORDERS.get(randomizer, 2.0),
            dim=dim,
            messages=k * s,
            rounds=T,
            lipschitz=lipschitz,
            diameter=diameter,
        )
        bits, level = k / clients * report_bits(mean, s), mean.pure_epsilon
        found.append(
            ReportPlan(
                drawn=k, sampled=s, rounds=T, local_epsilon=level, epsilon=epsilon, risk=risk, bits=bits
            )
        )
    progress(len(cases), len(cases))
    return sorted(found, key=lambda plan: plan.risk)


def _largest_level(
    budget: PrivacyBudget, mean_at: Callable[[float], ReportMean], **sizes: int
) -> tuple[ReportMean, float]:
    """Return the mean of the least private reports that a budget allows, and what its rounds cost."""

    def run(multiplier: float) -> Event:
        return event_of_reports(mean_at(multiplier), **sizes)

    multiplier = calibrate(run, budget)
    return mean_at(multiplier), epsilon_of(run(multiplier), budget.delta)
