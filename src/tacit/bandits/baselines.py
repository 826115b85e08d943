"""What private bandits are compared with: phased elimination without privacy."""

from __future__ import annotations

import math

import numpy as np

from tacit.bandits.design import g_optimal_design
from tacit.bandits.environment import LinearEnvironment
from tacit.bandits.schedule import BatchSchedule
from tacit.numerics import Array

__all__ = ["phased_elimination"]


def phased_elimination(
    world: LinearEnvironment, horizon: int, *, rng: np.random.Generator, failure: float | None = None
) -> float:
    """Play phased elimination with G-optimal exploration, which knows no privacy, and return the regret.

    In phase l the core set is played until every estimate is within 2^-l, and actions that fall short of the
    best estimate by more than twice of it are dropped.

    Args:
        world: Where rewards come from.
        horizon: Number of rounds, at least 8. Once a phase does not fit, the best action is played.
        rng: Source of rewards.
        failure: Chance that an estimate is off; 1 / horizon if not given.

    Returns:
        Expected reward given up, by the true means.

    Raises:
        ParameterError: `horizon` is out of range.

    Example:
        >>> world = LinearEnvironment(actions=np.eye(2), theta=np.array([0.6, -0.2]))
        >>> 0 < phased_elimination(world, 10_000, rng=np.random.default_rng(0)) < 10_000
        True

    Reference:
        Lattimore and Szepesvari (2020), Section 22.1.
    """
    left = BatchSchedule(horizon).horizon
    chance = 1 / horizon if failure is None else failure
    alive = np.arange(len(world.actions))
    best, regret, phase = int(alive[0]), 0.0, 1
    while len(alive) > 1:
        rows = world.actions[alive]
        design = g_optimal_design(rows)
        error = 2.0**-phase
        needed = 2 * design.width * design.weights / error**2
        needed *= math.log(len(world.actions) * phase * (phase + 1) / chance)
        counts = np.ceil(needed * (1 - 1e-12)).astype(np.int64)
        if counts.sum() > left:
            break
        core = alive[design.support]
        regret += world.regret(core, counts)
        left -= int(counts.sum())
        estimates = _estimates(rows, world.actions[core], counts, world.draw_sums(core, counts, rng))
        best = int(alive[np.argmax(estimates)])
        alive = alive[estimates >= estimates.max() - 2 * error]
        phase += 1
    return regret + world.regret(np.array([best]), np.array([left]))


def _estimates(rows: Array, core: Array, counts: Array, sums: Array) -> Array:
    """Return least-squares estimates of all rows."""
    root = np.sqrt(counts)
    theta = np.linalg.lstsq(core * root[:, None], sums / root, rcond=1e-9)[0]
    return np.asarray(rows @ theta)
