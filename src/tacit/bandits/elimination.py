"""Batched elimination: play a core set, estimate, drop what is worse (Girgis 2023, Chapter 6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.bandits.actions import span_of
from tacit.bandits.design import g_optimal_design, uniform_design
from tacit.bandits.plan import BanditPlan, Tail
from tacit.bandits.radius import Question, RadiusMode, confidence_radius
from tacit.errors import ParameterError
from tacit.numerics import Array, IntArray

__all__ = ["Batch", "Decision", "Elimination", "begin", "decide", "learning_batch", "next_batch"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Actions to play before anything is decided again.

    Attributes:
        number: From 1.
        actions: Shape (c,): rows of the plan's actions, ascending.
        counts: Shape (c,): how often each is played, >= 1.
        level: Pure level of a message or of a sum; infinity for no noise.
        length: What the batch was meant for, before rounding up.
        spread: Bound on a^T V^-1 a of the design, for a radius.
        final: Whether nothing is learned from it: its rewards are not to be collected.
    """

    number: int
    actions: IntArray
    counts: IntArray
    level: float = math.inf
    length: float = 0.0
    spread: float = 0.0
    final: bool = False

    @property
    def rounds(self) -> int:
        """How many rounds it takes, one client each."""
        return int(self.counts.sum())

    def in_order(self) -> IntArray:
        """Return the action of each round, shape (rounds,), action after action."""
        return np.repeat(self.actions, self.counts)

    def deal(self, rng: np.random.Generator) -> IntArray:
        """Return the action of each client in an order that nobody knows: what a shuffler does.

        Args:
            rng: Source of the permutation; the secure stream where clients are real.

        Returns:
            Shape (rounds,).
        """
        return np.asarray(rng.permutation(self.in_order()), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Elimination:
    """Where a run stands; made by `begin` and `decide`.

    Attributes:
        alive: Rows of the actions that are left, ascending.
        number: Of the batch that is played next.
        played: Rounds so far.
        best: Row of the action whose estimate is highest; the first one while there is none.
    """

    alive: IntArray
    number: int = 1
    played: int = 0
    best: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """What follows from the sums of a batch.

    Attributes:
        state: Where the run stands afterwards.
        estimates: Shape (K,): estimated reward of each action that was left before.
        theta: Shape (d,): the estimated parameter, on the span of these.
        radius: gamma: actions are dropped that fall short of the best estimate by more than twice of it.
    """

    state: Elimination
    estimates: Array
    theta: Array
    radius: float


def begin(plan: BanditPlan) -> Elimination:
    """Return the state before the first batch.

    Raises:
        ParameterError: Not even the first batch fits into the horizon.
    """
    state = Elimination(alive=np.arange(len(plan.actions), dtype=np.int64))
    first = learning_batch(plan, state) if len(state.alive) > 1 else None
    if first is not None and first.rounds > plan.horizon:
        raise ParameterError(
            f"horizon must be at least {first.rounds} for the first batch of these actions, got "
            f"{plan.horizon}."
        )
    return state


def next_batch(plan: BanditPlan, state: Elimination) -> Batch | None:
    """Return what is played next; None once the horizon is used up.

    Learning stops before a batch that does not fit, and once one action is left. What remains is a final
    batch: the best action, or under `tail="truncate"` the actions of the batch that does not fit, in order.
    """
    left = plan.horizon - state.played
    if left == 0:
        return None
    batch = None
    if len(state.alive) > 1 and state.number <= plan.schedule.batches:
        batch = learning_batch(plan, state)
        if batch.rounds <= left:
            return replace(batch, level=plan.privacy.level(batch.counts))
    if batch is not None and plan.tail is Tail.TRUNCATE:
        # Nothing is sent: a shuffled level is for all clients of the batch, and fewer would void it.
        counts = np.diff(np.minimum(np.cumsum(batch.counts), left), prepend=0)
        return replace(batch, actions=batch.actions[counts > 0], counts=counts[counts > 0], final=True)
    best = state.best if state.best in state.alive else int(state.alive[0])
    return Batch(number=state.number, actions=np.array([best]), counts=np.array([left]), final=True)


def learning_batch(plan: BanditPlan, state: Elimination) -> Batch:
    """Return the design of the next batch, times its length."""
    rows = plan.actions[state.alive]
    design = g_optimal_design(rows, plan.tol) if plan.core else uniform_design(rows)
    length = plan.schedule.growth**state.number
    # A whole number must not be pushed up by rounding.
    counts = np.ceil(design.weights * length * (1 - 1e-12)).astype(np.int64)
    twice = 2.0 * design.rank
    return Batch(
        number=state.number,
        actions=state.alive[design.support],
        counts=np.maximum(counts, 1),
        length=length,
        spread=twice if plan.core and design.width <= twice else design.width,
    )


def decide(
    plan: BanditPlan,
    state: Elimination,
    batch: Batch,
    sums: Array,
    *,
    radius: Callable[[Array], float] | None = None,
) -> Decision:
    """Estimate all rewards from the sums of a batch, and drop actions.

    Args:
        plan: Of the run.
        state: Before the batch.
        batch: As `next_batch` returned it, not final.
        sums: Shape (c,): unbiased sums of the rewards of each action, noise included.
        radius: How far estimates may be off, from the weight of each sum in each estimate, shape (K, c); None
            is the radius of the plan.

    Returns:
        The estimates and the next state: an action stays if its estimate is within twice the radius of the
        highest among those that were left. (Those dropped before may lie outside of the span, where nothing
        is estimated.)
    """
    span = span_of(plan.actions[state.alive])
    core = span.rows[np.searchsorted(state.alive, batch.actions)]
    inverse = np.linalg.inv((core * batch.counts[:, None]).T @ core)
    w = inverse @ (core.T @ sums)
    estimates = span.rows @ w
    question = Question(
        horizon=plan.horizon,
        batches=plan.schedule.batches,
        length=batch.length,
        alive=len(state.alive),
        rank=span.rows.shape[1],
        spread=batch.spread,
        counts=batch.counts,
        level=batch.level,
        width=plan.width,
    )
    if radius is not None:
        gamma = radius(span.rows @ inverse @ core.T)
    else:
        influence = span.rows @ inverse @ core.T if plan.radius is RadiusMode.SOUND else None
        gamma = confidence_radius(plan.radius, plan.privacy, question, influence)
    keep = estimates >= estimates.max() - 2 * gamma
    after = Elimination(
        alive=state.alive[keep],
        number=state.number + 1,
        played=state.played + batch.rounds,
        best=int(state.alive[np.argmax(estimates)]),
    )
    return Decision(state=after, estimates=estimates, theta=w @ span.back, radius=gamma)
