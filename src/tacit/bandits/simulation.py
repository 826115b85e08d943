"""Whole runs in a simulated world, with the sums of a batch drawn at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.bandits.answers import simulated_sums
from tacit.bandits.elimination import Batch, begin, decide, next_batch
from tacit.bandits.environment import LinearEnvironment
from tacit.bandits.plan import BanditPlan
from tacit.errors import ParameterError
from tacit.numerics import Array
from tacit.privacy import Guarantee
from tacit.randomness import is_secure

__all__ = ["BanditResult", "BatchReport", "simulate_bandit"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchReport:
    """A batch as it went.

    Attributes:
        batch: What was played.
        alive: How many actions were left before.
        radius: gamma; NaN for the final batch.
        sums: Noisy sums of rewards; empty for the final batch.
        regret: Of its rounds.
    """

    batch: Batch
    alive: int
    radius: float
    sums: Array
    regret: float


@dataclass(frozen=True, kw_only=True, eq=False)
class BanditResult:
    """A run as it went.

    Attributes:
        regret: Expected reward given up over all rounds, by the true means.
        best: Row of the action that was played at the end.
        survived: Whether a best action was never dropped.
        batches: One report each.
        guarantees: One for each observer.
    """

    regret: float
    best: int
    survived: bool
    batches: tuple[BatchReport, ...]
    guarantees: tuple[Guarantee, ...]

    @property
    def played(self) -> tuple[tuple[int, int], ...]:
        """The actions of all rounds, run-length encoded as (row, how often)."""
        return tuple(
            (int(a), int(n))
            for report in self.batches
            for a, n in zip(report.batch.actions, report.batch.counts, strict=True)
        )


def simulate_bandit(
    plan: BanditPlan,
    world: LinearEnvironment,
    *,
    rng_world: np.random.Generator,
    rng_privacy: np.random.Generator,
) -> BanditResult:
    """Play a batched elimination to its horizon.

    Args:
        plan: What is played; its actions are those of the world.
        world: Where rewards come from.
        rng_world: Source of rewards.
        rng_privacy: Source of noise, a stream of its own: without noise the run is the same, whoever is
            trusted.

    Returns:
        What was played, the regret, and what it costs.

    Raises:
        ParameterError: The plan has other actions than the world, or a horizon that is too short.

    Cost:
        Independent of the horizon with rewards of +1 and -1: milliseconds for ten million rounds.

    Example:
        >>> actions, theta = np.eye(2), np.array([0.6, -0.2])
        >>> found = simulate_bandit(
        ...     BanditPlan(actions=actions, horizon=100_000),
        ...     LinearEnvironment(actions=actions, theta=theta),
        ...     rng_world=np.random.default_rng(0),
        ...     rng_privacy=np.random.default_rng(1),
        ... )
        >>> found.best, sum(count for _, count in found.played)
        (0, 100000)

    Reference:
        Girgis (2023), Algorithms 6.3.1, 6.3.2 and 6.4.1.
    """
    if not np.array_equal(plan.actions, world.actions):
        raise ParameterError("world must have the actions of the plan.")
    state = begin(plan)
    reports: list[BatchReport] = []
    survived = True
    optimal = np.flatnonzero(world.means >= world.best)
    while (batch := next_batch(plan, state)) is not None:
        regret = world.regret(batch.actions, batch.counts)
        if batch.final:
            reports.append(
                BatchReport(
                    batch=batch, alive=len(state.alive), radius=np.nan, sums=np.empty(0), regret=regret
                )
            )
            break
        sums = simulated_sums(plan, batch, world, rng_world, rng_privacy)
        decision = decide(plan, state, batch, sums)
        reports.append(
            BatchReport(batch=batch, alive=len(state.alive), radius=decision.radius, sums=sums, regret=regret)
        )
        state = decision.state
        survived &= bool(np.isin(optimal, state.alive).any())
    return BanditResult(
        regret=float(sum(report.regret for report in reports)),
        best=state.best if state.best in state.alive else int(state.alive[0]),
        survived=survived,
        batches=tuple(reports),
        guarantees=plan.privacy.guarantees(
            [(r.batch.counts, r.batch.level) for r in reports if not r.batch.final],
            simulated=not is_secure(rng_privacy),
        ),
    )
