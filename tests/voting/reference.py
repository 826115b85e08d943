"""Slow and obvious: the privacy condition of a noisy majority by enumeration, without shared tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from tacit.voting import Setting

Array = npt.NDArray[np.float64]


def law(p: npt.ArrayLike) -> Array:
    """Return the law of the number of ones by repeated convolution."""
    found = np.ones(1)
    for one in np.asarray(p, dtype=np.float64).tolist():
        found = np.convolve(found, [1 - one, one])
    return found


def phi(teachers: int, gamma: npt.ArrayLike) -> Array:
    """Return P(bit = 1 | l ones), value by value."""
    half = np.asarray(gamma, dtype=np.float64)
    found = []
    for ones in range(teachers + 1):
        winners = max(ones, teachers - ones)
        if 2 * winners == teachers:
            found.append(0.5)
            continue
        kept = float(half[winners - (teachers // 2 + 1)])
        found.append((1 + kept) / 2 if 2 * ones > teachers else (1 - kept) / 2)
    return np.array(found)


def region(setting: Setting) -> list[tuple[float, float]]:
    """Return the vertices (p, p') that an (epsilon, delta)-DP vote may have."""
    grow, d = math.exp(setting.epsilon), setting.delta
    a, b = (grow + d) / (grow + 1), (1 - d) / (grow + 1)
    return [(0, 0), (1, 1), (0, d), (d, 0), (1 - d, 1), (1, 1 - d), (a, b), (b, a)]


def brute_force(setting: Setting, gamma: npt.ArrayLike) -> float:
    """Return max P(bit) - E P'(bit) over both bits and every choice of a vertex for every teacher.

    No more than `affected` of them may move.
    """
    chance = phi(setting.teachers, gamma)
    factor = math.exp(setting.target_epsilon)
    pairs = region(setting)
    moves = [here != there for here, there in pairs]
    worst = -math.inf
    for chosen in itertools.combinations_with_replacement(range(8), setting.teachers):
        if setting.affected is not None and sum(moves[v] for v in chosen) > setting.affected:
            continue
        here, there = (law([pairs[v][side] for v in chosen]) for side in (0, 1))
        for bit in (chance, 1 - chance):
            worst = max(worst, float(bit @ here - factor * (bit @ there)))
    return worst


def random_pairs(setting: Setting, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return (p, p') of teachers inside the region: random mixtures of its vertices."""
    weights = rng.dirichlet(np.full(8, 0.3), setting.teachers)
    mixed = weights @ np.array(region(setting))
    return mixed[:, 0], mixed[:, 1]
