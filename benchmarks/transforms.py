"""The fast Hadamard transform against a vectorised NumPy butterfly, and the encoders built on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.numerics import KashinFrame, RandomHadamard, fwht
from tacit.randomness import PublicStream

Array = np.ndarray[Any, Any]
TOTAL = 2**20  # entries of a batch


def butterfly(x: Array) -> Array:
    """The textbook's log2(dim) stages of additions on reshaped views."""
    x = x.copy()
    half = 1
    while half < x.shape[-1]:
        pairs = x.reshape(-1, x.shape[-1] // (2 * half), 2, half)
        left, right = pairs[:, :, 0], pairs[:, :, 1]
        total = left + right
        np.subtract(left, right, out=right)
        left[...] = total
        half *= 2
    return x


def _transform(smoke: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for bits in (8, 10) if smoke else range(8, 23):
            for n in sorted({1, max(1, TOTAL >> bits)}):
                x = rng.standard_normal((n, 2**bits)).astype(dtype)
                # Microseconds need many runs: another process may take the core for all of a few.
                repeats = 2 if smoke else 7 + 2**20 // x.size
                ours = best_seconds(lambda x=x: fwht(x), repeats)
                theirs = best_seconds(lambda x=x: butterfly(x), repeats)
                name = f"{dtype.__name__}/{n}x2^{bits}"
                found[f"{name}/ms"], found[f"{name}/speedup"] = 1000 * ours, theirs / ours
    speedups = [value for name, value in found.items() if name.endswith("/speedup")]
    return {
        **found,
        "least_speedup": min(speedups),
        "typical_speedup": math.exp(float(np.mean(np.log(speedups)))),
    }


def _encoders(smoke: bool) -> dict[str, float]:
    n, dim, repeats = (10, 100, 1) if smoke else (1000, 1000, 5)
    rows = np.random.default_rng(1).standard_normal((n, dim)).astype(np.float32)
    rotation = RandomHadamard.draw(dim, PublicStream(0, 0))
    frame = KashinFrame.draw(dim, PublicStream(0, 0))
    padded = np.zeros((n, rotation.coded_dim), dtype=np.float32)
    plain = best_seconds(lambda: fwht(padded), repeats)
    return {
        "rotation_ms": 1000 * best_seconds(lambda: rotation.forward(rows, r2=1.0), repeats),
        "kashin_ms": 1000 * best_seconds(lambda: frame.forward(rows, r2=1.0), repeats),
        "transform_ms": 1000 * plain,
    }


CASES = (
    Case(
        "transforms/fwht",
        "twice as fast as a NumPy butterfly or more, 2^8 to 2^22, one vector or a batch of 2^20 entries",
        _transform,
        lambda m: f"{m['typical_speedup']:.1f} x as fast, {m['least_speedup']:.1f} x at least",
    ),
    Case(
        "transforms/encoders",
        "a rotation costs a few plain transforms",
        _encoders,
        lambda m: (
            f"1000 rows of 1000: rotation {m['rotation_ms']:.1f} ms, Kashin {m['kashin_ms']:.0f} ms, "
            f"transform alone {m['transform_ms']:.1f} ms"
        ),
    ),
)
