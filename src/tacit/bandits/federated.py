"""A bandit whose batches are steps of a plan: silos hold the clients, and any trust model adds the noise.

Every batch is a disjoint part of the clients of every silo, so that all of them together cost what one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.bandits.actions import span_of
from tacit.bandits.design import g_optimal_design
from tacit.bandits.elimination import Batch, Decision, Elimination, begin, decide, learning_batch
from tacit.bandits.plan import BanditPlan
from tacit.bandits.players import DEALT_REWARDS, OWN_REWARDS
from tacit.bandits.tails import largest_radius
from tacit.errors import ParameterError, check_count
from tacit.federation import Disjoint, Federation, Kinds, Measure, Plan, Step, with_honest, with_widths
from tacit.means import (
    AdditiveMean,
    DiscreteLaplaceNoise,
    Estimator,
    ModularSumMean,
    SampledBinaryMean,
)
from tacit.mechanisms import BinaryRandomizedResponse
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel, calibrate

__all__ = ["SLOTS", "FederatedBandit", "bandit_rounds", "federated_bandit"]

SLOTS = 64
"""Slots that clients draw from where they randomise by themselves: shares of a batch are multiples of one."""
_ANY = 1e12
"""Tolerance at which a design is the one that it starts from: as few actions as span them all."""
_STEPS = 2**16
_COARSER = 2**12
"""Grid steps of a reward: under central trust, and of shares of which only the sum is seen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FederatedBandit:
    """A run as it went.

    Attributes:
        best: Row of the action with the highest estimate; to be played from here on.
        decisions: Of all batches that were played, in order.
        guarantees: One under central trust, else one for each silo.
        guarantees_alone: Under shuffle and aggregate trust, what the messages of each silo show alone.
        bits: Bits that all silos sent.
    """

    best: int
    decisions: tuple[Decision, ...]
    guarantees: tuple[Guarantee, ...]
    guarantees_alone: tuple[Guarantee, ...]
    bits: float


def bandit_rounds(
    plan: BanditPlan,
    sizes: Sequence[int],
    *,
    slots: int = SLOTS,
    n_min: int | None = None,
    roster: str = "",
    recover: bool = False,
) -> Plan:
    """Return the plan of all batches of a bandit: one step each, on clients that no other step uses.

    A batch takes equally many clients of every silo, at least as many as the schedule says in all. Batches
    that the smallest silo has no clients for are left out.

    Args:
        plan: The bandit; private, with discrete noise. Under aggregate trust it is about as many parties.
        sizes: Public number of clients of each silo.
        slots: Under local and shuffle trust: how many slots there are to draw an action from.
        n_min: Under shuffle and aggregate trust, silos without which nothing is released; None: all.
        roster: See `Plan`.
        recover: See `Plan`.

    Raises:
        ParameterError: A value is out of range, or the silos have no clients for the first batch.
        BudgetError: No noise meets the budget.
    """
    privacy, silos = plan.privacy, check_count("the number of silos", len(sizes))
    trust = privacy.trust
    if trust is None or not plan.rounds_rewards:
        raise ParameterError("plan must be private, with discrete noise, which is what silos can add.")
    if privacy.summed and privacy.parties != silos:
        raise ParameterError(
            f"parties must be the {silos} silos under aggregate trust, got {privacy.parties}."
        )
    together = trust in (TrustModel.SHUFFLE, TrustModel.AGGREGATE)
    fewest = (silos if n_min is None else n_min) if together else 0
    check_count("slots", slots, low=2, high=2**20)
    blocks: list[int] = []
    rank = span_of(plan.actions).rows.shape[1]
    wanted = [max(math.ceil(length / silos * (1 - 1e-12)), rank) for length in plan.schedule.lengths]
    if privacy.by_message and slots < rank:
        raise ParameterError(f"slots must be at least {rank}, the actions that span all, got {slots}.")
    for block in wanted:
        if sum(blocks) + block > min(sizes) or silos * (sum(blocks) + block) > plan.horizon:
            break
        blocks.append(block)
    if not blocks:
        raise ParameterError(
            f"sizes must be enough for a first batch of {silos} x {wanted[0]} clients, and so must the "
            f"horizon, got {min(sizes)} and {plan.horizon}."
        )
    statistic = OWN_REWARDS if privacy.by_message else DEALT_REWARDS
    kinds: Kinds = tuple(
        (
            Step(
                measures=(
                    Measure(
                        statistic=statistic,
                        estimator=_estimator(plan, block, silos=silos, fewest=fewest, slots=slots),
                        max_radius=1.0,
                    ),
                ),
                batch=Disjoint(size=block),
            ),
            1,
        )
        for block in blocks
    )
    if trust is TrustModel.SHUFFLE:
        kinds = with_honest(kinds, sizes, n_min=fewest, colluding=0)
    elif trust is TrustModel.AGGREGATE:
        kinds = with_widths(kinds, sizes)
    return Plan(
        steps=kinds,
        parties=silos,
        trust=trust,
        delta=privacy.delta,
        n_min=fewest,
        colluding=privacy.colluding,
        roster=roster,
        recover=recover,
    )


def _estimator(plan: BanditPlan, block: int, *, silos: int, fewest: int, slots: int) -> Estimator:
    """Return how the rewards of a batch with a block of clients of every silo are added up."""
    privacy, dim = plan.privacy, len(plan.actions)
    budget = PrivacyBudget(privacy.epsilon, privacy.delta)
    match privacy.trust:
        case TrustModel.CENTRAL:

            def at(z: float) -> AdditiveMean:
                noise = DiscreteLaplaceNoise(z, steps=_STEPS)
                return AdditiveMean(dim=dim, noise=noise, trust=TrustModel.CENTRAL)

            return at(calibrate(lambda z: at(z).event(silos * block, TrustModel.CENTRAL), budget))
        case TrustModel.AGGREGATE:
            shares = fewest - privacy.colluding
            return ModularSumMean.calibrated(dim=dim, budget=budget, shares=shares, steps=_COARSER, n=block)
        case trust:
            rows = fewest * block if trust is TrustModel.SHUFFLE else 1
            return SampledBinaryMean.calibrated(
                dim=slots, samples=1, budget=budget, n=rows, trust=trust or TrustModel.LOCAL
            )


def federated_bandit(
    plan: BanditPlan,
    federation: Federation,
    *,
    asked: Plan | None = None,
    run: str = "bandit",
    budget: PrivacyBudget | None = None,
) -> FederatedBandit:
    """Learn which action is best from the clients of silos, whose units are `Players`.

    Where a silo deals, it deals the exact shares of the design in a secret order, and the rewards of an
    action are added up: exact sums to a trusted server, or sums with a share of the noise. Where clients
    randomise by themselves, each draws one slot, and with it its action, and sends the slot and one bit of
    its reward that may lie: nobody else, the shuffler included, says or knows who plays what.

    Args:
        plan: The bandit.
        federation: Of silos that have the statistic `DEALT_REWARDS` (central, aggregate trust) or
            `OWN_REWARDS` (local, shuffle trust).
        asked: What `bandit_rounds` returned; None makes it from the sizes of the silos.
        run: Name of the run in ledgers.
        budget: What each silo, or the trusted server, agrees to spend; see `InProcess.open`.

    Returns:
        The action to play from now on, and what was learnt. Estimates of all batches are within their radius
        with probability at least 1 - 1/T, over dealing, rewards and noise.

    Raises:
        ParameterError: The plan does not fit the silos.
        BudgetError: A price exceeds the budget or what a ledger has left.
        RefusalError: A silo does not trust whom the plan trusts.
    """
    sizes = list(federation.sizes)
    asked = bandit_rounds(plan, sizes) if asked is None else asked
    ask = federation.open(asked, run=run, participation=None, weights="records", budget=budget)
    state, decisions, silos = begin(plan), [], len(sizes)
    for number, (step, _) in enumerate(asked.kinds):
        if len(state.alive) == 1:
            break
        block, estimator = step.batch.size_for(min(sizes)), step.measures[0].estimator
        own = isinstance(estimator, SampledBinaryMean)
        design, clients = _design(plan, state, estimator.dim if own else block), silos * block
        counts, at = (
            _drawn(plan, design, estimator.dim, clients) if own else _dealt(plan, design, block, silos)
        )
        before = int(ask.traffic.answered.sum())
        (means,) = ask(number, at, (1.0,))
        if int(ask.traffic.answered.sum()) - before < silos:
            continue  # who is missing has played nothing: no radius holds for the others' sums
        batch = replace(design, counts=counts)
        decision = decide(
            plan,
            state,
            batch,
            _sums(plan, batch, means, estimator, clients),
            radius=_radius(plan, batch, estimator, silos, len(state.alive)),
        )
        decisions.append(decision)
        state = decision.state
    return FederatedBandit(
        best=state.best if state.best in state.alive else int(state.alive[0]),
        decisions=tuple(decisions),
        guarantees=tuple(ask.guarantees),
        guarantees_alone=tuple(ask.guarantees_alone),
        bits=float(ask.traffic.bits_up.sum()),
    )


def _design(plan: BanditPlan, state: Elimination, most: int) -> Batch:
    """Return the design of a batch, of at most that many actions."""
    batch = learning_batch(plan, state)
    if len(batch.actions) <= most:
        return batch
    fewest = g_optimal_design(plan.actions[state.alive], _ANY)
    counts = np.maximum(np.round(fewest.weights * batch.rounds).astype(np.int64), 1)
    return replace(batch, actions=state.alive[fewest.support], counts=counts)


def _dealt(plan: BanditPlan, design: Batch, block: int, silos: int) -> tuple[IntArray, dict[str, Array]]:
    """Return how often each action is dealt over all silos, and the query that says so."""
    ends = np.cumsum(design.counts / design.rounds)
    ends[-1] = 1.0
    turns = np.searchsorted(ends, (np.arange(block) + 0.5) / block)
    counts = np.bincount(turns, minlength=len(ends))
    for missing in np.flatnonzero(counts == 0):  # of a block of few clients: every action is dealt once
        most = int(np.argmax(counts))
        counts[most] -= 1
        counts[missing] += 1
    ends = np.cumsum(counts) / block
    at = {
        "actions": np.asarray(plan.actions[design.actions], dtype=np.float64),
        "places": design.actions.astype(np.float64),
        "ends": ends,
        "range": np.array(plan.reward_range),
    }
    return silos * counts, at


def _drawn(plan: BanditPlan, design: Batch, slots: int, clients: int) -> tuple[Array, dict[str, Array]]:
    """Return how often each action is drawn on average, and the query that says so."""
    weights = design.counts / design.rounds
    many = np.maximum(np.floor(weights * slots).astype(np.int64), 1)
    while many.sum() > slots:
        many[np.argmax(many)] -= 1
    many[np.argsort(many - weights * slots, kind="stable")[: slots - many.sum()]] += 1
    at = {
        "slots": np.repeat(np.asarray(plan.actions[design.actions], dtype=np.float64), many, axis=0),
        "range": np.array(plan.reward_range),
    }
    return clients * many / slots, at


def _sums(plan: BanditPlan, batch: Batch, means: Array, estimator: Estimator, clients: int) -> Array:
    """Return unbiased sums of the rewards of each action."""
    low, high = plan.reward_range
    if isinstance(estimator, SampledBinaryMean):
        ends = np.rint(np.cumsum(batch.counts) * estimator.dim / clients).astype(np.int64)
        of_action = np.add.reduceat(means, np.concatenate([[0], ends[:-1]])) / np.diff(ends, prepend=0)
        return np.asarray(batch.counts * (low + (high - low) * of_action))
    rewards = clients * means[batch.actions]
    return np.asarray(batch.counts * (low + high) / 2 + (high - low) / 2 * rewards)


def _radius(
    plan: BanditPlan, batch: Batch, estimator: Estimator, silos: int, alive: int
) -> Callable[[Array], float]:
    """Return how far estimates may be off, from how much the sum of each action weighs in each estimate."""
    log_beta = math.log(4 * alive * plan.schedule.batches) + math.log(plan.horizon)
    half = plan.width / 2

    def radius(influence: Array) -> float:
        if isinstance(estimator, SampledBinaryMean):
            # A client adds l_b times half a range over the gap, up or down, b the action that it draws.
            one = half / BinaryRandomizedResponse(estimator.local_epsilon).gap
            moments = one**2 * (np.square(influence) @ batch.counts)
            shift = one * np.abs(influence).max(axis=1) * log_beta / 3
            return float((shift + np.sqrt(shift**2 + 2 * moments * log_beta)).max())
        assert isinstance(estimator, AdditiveMean | ModularSumMean)  # noqa: S101 - by `_estimator`
        grid = half / estimator.noise.steps  # type: ignore[union-attr]
        weight = np.abs(influence)
        rounded = weight.sum(axis=1) * silos * grid / 2
        proxy = np.square(influence) @ (batch.counts * half**2)
        if isinstance(estimator, ModularSumMean):
            shared = np.square(influence).sum(axis=1) * silos * (grid * estimator.std) ** 2
            return float((rounded + np.sqrt(2 * (proxy + shared) * log_beta)).max())
        scale = grid * estimator.noise_multiplier * estimator.moved * estimator.noise.steps  # type: ignore[union-attr]
        base = rounded + np.sqrt(2 * proxy * log_beta)
        return largest_radius(base, weight, np.ones(weight.shape[1]), scale, log_beta)

    return radius
