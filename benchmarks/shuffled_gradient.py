"""The inner loop of shuffled gradients, and many runs of it at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation import Epoch
from tacit.learning import LinearObjective, Logistic, Records
from tacit.learning.shuffled import RecordSteps, ShuffledGradient
from tacit.learning.shuffled.compiled import can_compile
from tacit.numerics import Array
from tacit.privacy import Order

_N, _D, _CLIP, _ETA, _STD = 1000, 784, 1.0, 1e-3, 1.0
_CHUNK = 256  # steps whose noise is drawn at once by the bare loop


def _problem(**facts: Any) -> ShuffledGradient:
    rng = np.random.default_rng(0)
    held = Records.of(rng.random((_N, _D)), rng.integers(0, 2, _N).astype(np.float64))
    objective = LinearObjective(loss=Logistic(), features=_D)
    return ShuffledGradient(objective=objective, private=held, clip=_CLIP, order=Order.RR, **facts)


def _bare() -> Callable[..., None]:
    """Return a loop as one writes it by hand: one loss, one replica, no care for what is not finite."""
    import numba

    def loop(X: Array, y: Array, norms: Array, index: Any, w: Array, noise: Array) -> None:
        for i in range(index.shape[0]):
            x, z = X[index[i]], noise[i]
            total = 0.0
            for k in range(w.shape[0]):
                total += w[k] * x[k]
            slope = 1 / (1 + math.exp(-total)) - y[index[i]]
            size = abs(slope) * norms[index[i]]
            if size > _CLIP:
                slope *= _CLIP / size
            for k in range(w.shape[0]):
                w[k] -= _ETA * (slope * x[k] + _STD * z[k])

    compiled: Callable[..., None] = numba.njit(fastmath=True)(loop)
    return compiled


def _inner(smoke: bool) -> dict[str, float]:
    epochs, repeats = (2, 1) if smoke else (20, 5)
    problem, fast = _problem(), can_compile()
    held, plan, total = problem.private, [Epoch(private=_N)] * epochs, epochs * _N
    index = np.random.default_rng(1).permutation(_N)
    steps = RecordSteps.of(problem.objective, held)
    noise = np.random.default_rng(2).standard_normal((_N, _D))
    facts: dict[str, Any] = {"radius": _CLIP, "step_size": _ETA, "noise": noise, "noise_std": _STD}
    steps(index, np.zeros(_D), **facts)
    measured = {
        "compiled": float(fast),
        "steps_per_second": _N / best_seconds(lambda: steps(index, np.zeros(_D), **facts), 2 * repeats),
    }
    forced = _problem(compiled=fast)
    forced.run(plan[:1], step_size=_ETA, noise_std=_STD, rng=np.random.default_rng(3))
    seconds = best_seconds(
        lambda: forced.run(plan, step_size=_ETA, noise_std=_STD, rng=np.random.default_rng(3)), repeats
    )
    measured["noisy_steps_per_second"] = total / seconds
    if not fast:
        return measured
    loop = _bare()

    def bare() -> None:
        rng, w = np.random.default_rng(3), np.zeros(_D)
        for _ in range(epochs):
            order = rng.permutation(_N)
            for start in range(0, _N, _CHUNK):
                some = order[start : start + _CHUNK]
                loop(held.X, held.y, held.norms, some, w, rng.standard_normal((some.size, _D)))

    bare()
    measured["bare_noisy_steps_per_second"] = total / best_seconds(bare, repeats)
    measured["bare_steps_per_second"] = _N / best_seconds(
        lambda: loop(held.X, held.y, held.norms, index, np.zeros(_D), noise), 2 * repeats
    )
    measured["noisy_ratio"] = measured["bare_noisy_steps_per_second"] / measured["noisy_steps_per_second"]
    measured["ratio"] = measured["bare_steps_per_second"] / measured["steps_per_second"]
    return measured


def _say_inner(m: dict[str, float]) -> str:
    said = (
        f"{m['steps_per_second']:,.0f} steps/s with noise at hand, "
        f"{m['noisy_steps_per_second']:,.0f} steps/s with its drawing"
    )
    if not m["compiled"]:
        return f"{said}; without numba"
    return (
        f"{said}; a bare compiled loop {m['bare_steps_per_second']:,.0f} and "
        f"{m['bare_noisy_steps_per_second']:,.0f}: {m['ratio']:.2f} and {m['noisy_ratio']:.2f} times ours"
    )


def _batch(smoke: bool) -> dict[str, float]:
    epochs, settings, seeds = (1, 3, 2) if smoke else (2, 18, 10)
    problem = _problem(compiled=can_compile())
    plan, sizes = [Epoch(private=_N)] * epochs, np.geomspace(1e-6, 1e-2, settings)
    problem.run(plan[:1], step_size=_ETA, noise_std=_STD, rng=np.random.default_rng(0))

    def together() -> Array:
        rngs = [np.random.default_rng(seed) for seed in range(seeds)]
        return problem.run(plan, step_size=sizes, noise_std=_STD, rng=rngs)

    def apart() -> Array:
        return np.array(
            [
                [
                    problem.run(plan, step_size=float(eta), noise_std=_STD, rng=np.random.default_rng(seed))
                    for eta in sizes
                ]
                for seed in range(seeds)
            ]
        )

    if not np.allclose(together(), apart(), atol=1e-9):
        raise AssertionError("runs at once are not what they are one by one")
    once = best_seconds(together, 1 if smoke else 2)
    each = best_seconds(apart, 1)
    return {
        "settings": settings,
        "seeds": seeds,
        "together_seconds": once,
        "apart_seconds": each,
        "ratio": each / once,
        "replica_steps_per_second": settings * seeds * epochs * _N / once,
    }


CASES = (
    Case(
        "shuffled-gradient/inner-loop",
        "150,000 steps/s of 784 features; with the drawing of noise within 1.3 x of a bare compiled loop",
        _inner,
        _say_inner,
    ),
    Case(
        "shuffled-gradient/replicas",
        "18 step sizes x 10 seeds at once in less time than one by one",
        _batch,
        lambda m: (
            f"{m['settings']:.0f} step sizes x {m['seeds']:.0f} seeds at once in "
            f"{m['together_seconds']:.2f} s, one by one in {m['apart_seconds']:.2f} s: {m['ratio']:.1f} x; "
            f"{m['replica_steps_per_second']:,.0f} steps/s"
        ),
    ),
)
