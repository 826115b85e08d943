"""Runs of tests, and slow, obvious energies of noisy iterations: the quadratic programme itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from tacit.privacy.iteration import Iteration, Order, Release

Array = npt.NDArray[np.float64]

FACTS: dict[str, Any] = {
    "step_times_smoothness": 1.0,
    "convex": True,
    "clip_safe": True,
    "prox_convex": True,
}


def run(
    z: float, n: int, epochs: int, private: int | None, order: Order, release: Release, **more: Any
) -> Iteration:
    return Iteration(z, n, epochs, private, order=order, release=release, **{**FACTS, **more})


def least_energy(shifts: Array, variances: Array, contractions: Array, start: float) -> float:
    """Return min sum a_t^2 / v_t with z_t = c_t z_{t-1} + s_t - a_t >= 0 and z_T = 0.

    With a = sqrt(v) u it is the shortest u with G u >= h, found by non-negative least squares (Lawson and
    Hanson 1974, ch. 23).
    """
    steps = shifts.size
    carried = np.zeros((steps, steps))  # carried[t, i]: what of a shift in step i is left after step t
    distance = np.zeros(steps)
    before, row = start, np.zeros(steps)
    for t in range(steps):
        before = distance[t] = contractions[t] * before + shifts[t]
        row = contractions[t] * row
        row[t] = 1.0
        carried[t] = row
    absorbed = carried * np.sqrt(variances)
    constraints = np.vstack([-absorbed, absorbed[-1:]])
    bounds = np.append(-distance, distance[-1])
    system = np.vstack([constraints.T, bounds])
    target = np.append(np.zeros(steps), 1.0)
    weights, _ = optimize.nnls(system, target, maxiter=1000)
    residual = system @ weights - target
    if abs(residual[-1]) < 1e-12:
        return math.inf
    return float(np.sum((residual[:-1] / residual[-1]) ** 2))
