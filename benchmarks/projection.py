"""Decoding of Rand-Proj-Spatial against the textbook's d x d eigenvectors, and at sizes beyond them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.compression import Linear, beta_bar, decode_mean, draw_maps, transform

Array = np.ndarray[Any, Any]


def _textbook(G: Array, y: Array, T: Linear, beta: float, n: int) -> Array:
    """S = G^T G, its eigenvectors, T applied to its eigenvalues; G, shape (n k, d), is given for free."""
    values, vectors = np.linalg.eigh(G.T @ G)
    discount = np.where(values > 1e-12 * max(1, values[-1]), 1 / T(values), 0)
    estimate: Array = beta / n * vectors @ (discount * (vectors.T @ (G.T @ y.ravel())))
    return estimate


def _decoding(smoke: bool, *, n: int = 50, k: int = 20, dim: int) -> dict[str, float]:
    dim = 128 if smoke else dim
    n, k = (5, 10) if smoke else (n, k)
    T = transform("avg", n)
    maps = draw_maps("srht", dim, k, n, seed=0, round=0)
    Y = maps.encode(np.random.default_rng(0).standard_normal((n, dim)))
    beta, G = beta_bar(n, k, dim, T), maps.matrices().reshape(n * k, dim)
    ours, wanted = decode_mean(maps, Y, T), _textbook(G, Y, T, beta, n)
    seconds = best_seconds(lambda: decode_mean(maps, Y, T), 5)
    exact = best_seconds(lambda: decode_mean(maps, Y, T, backend="cg"), 5)
    textbook = best_seconds(lambda: _textbook(G, Y, T, beta, n), 3 if dim <= 1024 else 1)
    return {
        "dim": dim,
        "seconds": seconds,
        "draw_seconds": best_seconds(lambda: draw_maps("srht", dim, k, n, seed=0, round=0), 5),
        "exact_seconds": exact,
        "exact_ratio": exact / seconds,
        "textbook_seconds": textbook,
        "ratio": textbook / seconds,
        "relative_difference": float(np.linalg.norm(ours - wanted) / np.linalg.norm(wanted)),
    }


def _large(smoke: bool) -> dict[str, float]:
    dim, n, k = (2**14, 5, 100) if smoke else (2**20, 20, 1000)
    x = np.random.default_rng(0).standard_normal(dim)
    T = transform("avg", n)
    maps = draw_maps("srht", dim, k, n, seed=0, round=0)
    Y = maps.encode(np.tile(x, (n, 1)))
    seconds = best_seconds(lambda: decode_mean(maps, Y, T), 1)
    exact = best_seconds(lambda: decode_mean(maps, Y, T, backend="cg"), 1)
    tracemalloc.start()  # slows nothing but what allocates; a run of its own all the same
    decode_mean(maps, Y, T)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"dim": dim, "seconds": seconds, "exact_ratio": exact / seconds, "peak_bytes": peak}


def _say(m: dict[str, float]) -> str:
    return (
        f"d = {m['dim']:.0f}: {1000 * m['seconds']:.0f} ms, {m['ratio']:,.0f} x faster, "
        f"{m['exact_ratio']:.1f} x than to the last digit, relative difference {m['relative_difference']:.0e}"
    )


CASES = (
    Case(
        "projection/decode-1024",
        "at least 10 x faster than the textbook at n = 50, k = 20",
        lambda smoke: _decoding(smoke, dim=1024),
        _say,
    ),
    Case(
        "projection/decode-4096",
        "at least 100 x faster than the textbook at n = 50, k = 20 (which takes a minute)",
        lambda smoke: _decoding(smoke, dim=4096),
        _say,
    ),
    Case(
        "projection/decode-large",
        "d = 2^20, n = 20, k = 1000 in under 20 s and 2 GB",
        _large,
        lambda m: (
            f"d = {m['dim']:.0f}: {m['seconds']:.1f} s, {m['exact_ratio']:.1f} x faster than "
            f"to the last digit, {m['peak_bytes'] / 2**20:,.0f} MiB at most"
        ),
    ),
)
