"""Frequencies of a million clients over a hundred thousand values, and one client alone."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.frequencies import (
    BinaryHadamard,
    FrequenciesQuery,
    FrequencyOracle,
    HadamardResponse,
    KaryResponse,
    PrefixTree,
    SubsetSelection,
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


def _sets(make: Callable[[int], FrequencyOracle]) -> Callable[[bool], dict[str, float]]:
    def run(smoke: bool) -> dict[str, float]:
        n, k = (1000, 100) if smoke else (100_000, 1000)
        oracle, rng = make(k), secure()
        values = np.random.default_rng(0).integers(0, k, n)
        seconds = best_seconds(lambda: oracle.collect(values, rng), 1 if smoke else 3)
        return {"clients": n, "values": k, "nanoseconds_per_answer": 1e9 * seconds / (n * k)}

    return run


def _trusts(smoke: bool) -> dict[str, float]:
    """Measure l2 errors of the planner's picks at epsilon 1, and how they compare with those predicted."""
    n, k = (20_000, 100) if smoke else (1_000_000, 1000)
    rng = np.random.default_rng(0)
    values = rng.integers(0, k, n)
    held = np.bincount(values, minlength=k) / n
    found: dict[str, float] = {"clients": n, "values": k}
    for trust in (TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL):
        budget = PrivacyBudget(1.0, 1e-6 if trust is TrustModel.SHUFFLE else 0.0)
        query = FrequenciesQuery.calibrated(k=k, n=n, budget=budget, trust=trust)
        errors = [query.answer(values, rng=rng)[0] - held for _ in range(1 if smoke else 10)]
        found[trust.value] = math.sqrt(np.mean([(error**2).sum() for error in errors]))
        found[f"{trust.value}_of_predicted"] = found[trust.value] / math.sqrt(query.mse)
    return found


def _memory(smoke: bool) -> dict[str, float]:
    """Measure bytes for one more client, and for one more value, of a batch and its estimate."""
    n, k, times = (1000, 100, 2) if smoke else (1_000_000, 100_000, 10)
    found: dict[str, float] = {}
    for name, make in _HADAMARD.items():
        base, clients, domain = (_peak(make, *size) for size in ((n, k), (times * n, k), (n, times * k)))
        found[f"{name}_bytes_per_client"] = (clients - base) / ((times - 1) * n)
        found[f"{name}_bytes_per_value"] = (domain - base) / ((times - 1) * k)
    return found


def _peak(make: Callable[[int], FrequencyOracle], n: int, k: int) -> int:
    """Return the most bytes that are held at once, besides the values."""
    values, oracle, rng = np.random.default_rng(0).integers(0, k, n), make(k), secure()
    tracemalloc.start()
    oracle.estimate(oracle.collect(values, rng))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


_HADAMARD: dict[str, Callable[[int], FrequencyOracle]] = {
    "bh": lambda k: BinaryHadamard(k=k, epsilon=1.0),
    "hr": lambda k: HadamardResponse(k=k, epsilon=1.0),
}


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
        _measured(_HADAMARD["bh"]),
        _say,
    ),
    Case(
        "frequencies/hadamard-response",
        "the same, one symbol a client",
        _measured(_HADAMARD["hr"]),
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
        "one exact answer, of many that are drawn at once, in under 2 ns",
        _sets(lambda k: UnaryEncoding(k=k, epsilon=1.0)),
        lambda m: f"{m['nanoseconds_per_answer']:.1f} ns an answer",
    ),
    Case(
        "frequencies/heavy-hitters",
        "1e6 clients, 2^32 values: plan and find heavy hitters in under 60 s",
        _tree,
        _say_tree,
    ),
    Case(
        "frequencies/subsets",
        "one exact answer in under 20 ns",
        _sets(lambda k: SubsetSelection(k=k, epsilon=1.0)),
        lambda m: f"{m['nanoseconds_per_answer']:.1f} ns an answer",
    ),
    Case(
        "frequencies/trust",
        "measured l2 errors within 10 % of those predicted, so that a shuffler helps as much as is said",
        _trusts,
        lambda m: (
            f"{m['clients']:,.0f} clients, {m['values']:.0f} values: local {m['local']:.3g}, shuffle "
            f"{m['shuffle']:.3g}, central {m['central']:.3g}; {m['local'] / m['shuffle']:.0f} times less, "
            f"predicted {m['local'] / m['shuffle'] * m['shuffle_of_predicted'] / m['local_of_predicted']:.0f}"
        ),
    ),
    Case(
        "frequencies/memory",
        "linear in clients and in values: under 64 bytes for one more client, 128 for one more value",
        _memory,
        lambda m: ", ".join(f"{name.replace('_', ' ')} {value:.0f}" for name, value in m.items()),
    ),
)
