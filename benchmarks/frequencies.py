"""Frequencies of a million clients over a hundred thousand values, and one client alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.frequencies import (
    BinaryHadamard,
    FrequencyOracle,
    HadamardResponse,
    KaryResponse,
    PrefixTree,
    UnaryEncoding,
)
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import secure

_ONES = 500  # clients, one after the other


def _measured(make: Callable[[int], FrequencyOracle]) -> Callable[[bool], dict[str, float]]:
    def run(smoke: bool) -> dict[str, float]:
        n, k = (10_000, 1000) if smoke else (1_000_000, 100_000)
        oracle, rng = make(k), secure()
        values = np.random.default_rng(0).integers(0, k, n)
        whole = best_seconds(lambda: oracle.estimate(oracle.collect(values, rng)), 1 if smoke else 3)
        counts = oracle.collect(values, rng)
        band = best_seconds(lambda: oracle.band(counts), 1 if smoke else 3)
        one = values[:1]
        alone = best_seconds(lambda: [oracle.encode(one, rng) for _ in range(_ONES)], 1 if smoke else 5)
        return {
            "clients": n,
            "values": k,
            "encode_and_estimate_seconds": whole,
            "intervals_seconds": band,
            "one_client_microseconds": 1e6 * alone / _ONES,
        }

    return run


def _unary(smoke: bool) -> dict[str, float]:
    n, k = (1000, 100) if smoke else (100_000, 1000)
    oracle, rng = UnaryEncoding(k=k, epsilon=1.0), secure()
    values = np.random.default_rng(0).integers(0, k, n)
    seconds = best_seconds(lambda: oracle.collect(values, rng), 1 if smoke else 3)
    return {"clients": n, "values": k, "nanoseconds_per_answer": 1e9 * seconds / (n * k)}


def _tree(smoke: bool) -> dict[str, float]:
    n = 10_000 if smoke else 1_000_000
    items = np.random.default_rng(0).integers(0, 2**32, n, dtype=np.uint64)
    items[: n // 10] = 123_456_789
    found = {"clients": float(n)}

    def search(trust: TrustModel, budget: PrivacyBudget) -> None:
        tree = PrefixTree.calibrated(bits=32, n=n, budget=budget, trust=trust)
        held = tree.answer(items, rng=secure()).values.tolist()
        found[f"{trust.value}_detectable"], found[f"{trust.value}_found"] = tree.detectable, float(len(held))

    for trust in (TrustModel.LOCAL, TrustModel.SHUFFLE):
        budget = PrivacyBudget(1.0, 1e-6 if trust is TrustModel.SHUFFLE else 0.0)
        found[f"{trust.value}_seconds"] = best_seconds(partial(search, trust, budget), 1)
    return found


def _say_tree(m: dict[str, float]) -> str:
    return "; ".join(
        f"{trust}: {m[f'{trust}_seconds']:.1f} s for {m['clients']:.0f} clients, {m[f'{trust}_found']:.0f} "
        f"found, all above {m[f'{trust}_detectable']:.3g}"
        for trust in ("local", "shuffle")
    )


def _say(m: dict[str, float]) -> str:
    return (
        f"{m['clients']:.0f} clients, {m['values']:.0f} values: {m['encode_and_estimate_seconds']:.2f} s, "
        f"one client {m['one_client_microseconds']:.0f} us, intervals {m['intervals_seconds']:.2f} s"
    )


CASES = (
    Case(
        "frequencies/binary-hadamard",
        "1e6 clients and 1e5 values: encode and estimate in under 2 s, one client in under 50 us",
        _measured(lambda k: BinaryHadamard(k=k, epsilon=1.0)),
        _say,
    ),
    Case(
        "frequencies/hadamard-response",
        "the same, one symbol a client",
        _measured(lambda k: HadamardResponse(k=k, epsilon=1.0)),
        _say,
    ),
    Case(
        "frequencies/k-ary",
        "the same, the value or another",
        _measured(lambda k: KaryResponse(k=k, epsilon=8.0)),
        _say,
    ),
    Case(
        "frequencies/unary",
        "one exact answer in under 20 ns",
        _unary,
        lambda m: f"{m['nanoseconds_per_answer']:.1f} ns an answer",
    ),
    Case(
        "frequencies/heavy-hitters",
        "1e6 clients, 2^32 values: plan and find heavy hitters in under 60 s",
        _tree,
        _say_tree,
    ),
)
