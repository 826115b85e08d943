"""The inner loop of shuffled gradients in machine code, where numba is installed (the extra `fast`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from tacit.numerics import Array

__all__ = ["DISTANCE", "HUBER", "LOGISTIC", "POISSON", "SQUARED", "can_compile", "compiled_descent"]

SQUARED: Final = 0
LOGISTIC: Final = 1
HUBER: Final = 2
POISSON: Final = 3
DISTANCE: Final = 4

_LARGEST = 1e270  # as `clip_slopes` has it
_TINY = float(np.finfo(np.float64).tiny)


@lru_cache(maxsize=1)
def can_compile() -> bool:
    """Return whether numba is installed."""
    return find_spec("numba") is not None


@lru_cache(maxsize=1)
def compiled_descent() -> Callable[..., None]:
    """Return `_descend` in machine code; the first call compiles it, in a second or two.

    Sums may be taken in another order, and a product and a sum rounded once: results agree with NumPy's to
    rounding. What is not finite stays so: nothing may be assumed away.
    """
    import numba

    compiled: Callable[..., None] = numba.njit(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")(
        _descend
    )
    return compiled


def _descend(
    kind: int,
    constants: tuple[float, float],
    X: Array,
    y: Array,
    norms: Array,
    index: Any,
    w: Array,
    limit: float,
    step_size: Array,
    noise: Array,
    noise_std: Array,
) -> None:
    """Take all steps of all replicas in place; see `RecordSteps`.

    Args:
        kind: Of loss, one of the constants above.
        constants: Of that loss: a threshold, the most of a count, or L and beta of a distance.
        X: Shape (n, d).
        y: Shape (n,).
        norms: Shape (n,).
        index: Shape (seeds, steps, batch).
        w: Shape (seeds, settings, d).
        limit: Longest gradient, or infinity.
        step_size: Shape (settings,).
        noise: Shape (seeds, steps, d), or (0, 0, 0) for none.
        noise_std: Shape (settings,).
    """
    seeds, steps, batch = index.shape
    settings, dim = w.shape[1], w.shape[2]
    first, second = constants
    factors = np.empty(batch)
    for seed in range(seeds):
        for setting in range(settings):
            point = w[seed, setting]
            step = step_size[setting] / batch
            loud = step_size[setting] * noise_std[setting]
            for i in range(steps):
                kept = 1.0
                for j in range(batch):
                    record = index[seed, i, j]
                    x = X[record]
                    total = 0.0
                    if kind == DISTANCE:
                        for k in range(dim):
                            total += (point[k] - x[k]) * (point[k] - x[k])
                        length = math.sqrt(total)
                        slope = 1.0
                        if math.isinf(second):
                            slope = first / length if length > 0 else 0.0
                        elif length > 0:
                            slope = min(second, first / length)
                        else:
                            slope = second
                    else:
                        for k in range(dim):
                            total += point[k] * x[k]
                        length = norms[record]
                        if kind == SQUARED:
                            slope = total - y[record]
                        elif kind == LOGISTIC:
                            slope = 1 / (1 + math.exp(-total)) - y[record]
                        elif kind == HUBER:
                            slope = min(max(total - y[record], -first), first)
                        else:
                            count = min(max(y[record], 0.0), first)
                            slope = math.exp(min(total, second)) - count
                    size = abs(slope) * length
                    if not size <= _LARGEST:
                        slope = 0.0
                    elif size > limit:
                        slope *= limit / size
                    if abs(slope) < _TINY:
                        slope = 0.0
                    if kind == DISTANCE:
                        kept -= step * slope
                        factors[j] = step * slope
                    else:
                        factors[j] = -step * slope
                factor = factors[0]
                x = X[index[seed, i, 0]]
                if noise.shape[0] > 0:
                    drawn = noise[seed, i]
                    for k in range(dim):
                        point[k] = kept * point[k] + factor * x[k] - loud * drawn[k]
                else:
                    for k in range(dim):
                        point[k] = kept * point[k] + factor * x[k]
                for j in range(1, batch):
                    factor, x = factors[j], X[index[seed, i, j]]
                    for k in range(dim):
                        point[k] += factor * x[k]
