"""Prices of shuffled batches, against the plain sum over the dominating pair."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from benchmarks.case import Case, best_seconds
from tacit.privacy.events import Compose, Repeat, Sampled
from tacit.privacy.pricing import _leaf_curve, _part_curve, epsilon_of
from tacit.privacy.shuffling import Shuffled
from tacit.privacy.shuffling.shuffled import _dominating


def _forget() -> None:
    """Drop what earlier runs left behind: a price is timed from nothing."""
    for cached in (_dominating, _leaf_curve, _part_curve):
        cached.cache_clear()


def _plain(local_epsilon: float, parties: int, delta: float) -> float:
    """Epsilon by 60 bisections of the ungrouped sum (Feldman, McMillan and Talwar 2022)."""
    e, p = math.exp(local_epsilon), 1 / (1 + math.exp(local_epsilon))
    mean, spread = (parties - 1) / e, math.sqrt((parties - 1) / e * (1 - 1 / e))
    others = np.arange(max(0, int(mean - 9 * spread)), min(parties, int(mean + 9 * spread)))
    chance = stats.binom.pmf(others, parties - 1, 1 / e)

    def at(epsilon: float) -> float:
        a = math.exp(epsilon)
        edge = np.floor((others + 1) * (a * e - 1) / ((e - 1) * (1 + a)))
        from_edge, above = stats.binom.sf(edge - 1, others, 0.5), stats.binom.sf(edge, others, 0.5)
        gain = (1 - p - a * p) * from_edge + (p - a * (1 - p)) * above
        return float(np.maximum(gain, 0.0) @ chance) + (1 - float(chance.sum()))

    low, high = 0.0, local_epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > delta else (low, middle)
    return high


def _one_batch(smoke: bool) -> dict[str, float]:
    parties = 10**4 if smoke else 10**6

    def ours() -> float:
        _forget()
        return epsilon_of(Shuffled(1.0, parties), 1e-6)

    mine = best_seconds(ours, 5)
    plain = best_seconds(lambda: _plain(1.0, parties, 1e-6), 1)
    return {
        "parties": parties,
        "seconds": mine,
        "plain_seconds": plain,
        "ratio": mine / plain,
        "epsilon": ours(),
        "plain_epsilon": _plain(1.0, parties, 1e-6),
    }


_NAMES = ("krr:16", "hadamard", "laplace")


def _other_randomizers(smoke: bool) -> dict[str, float]:
    parties = 10**4 if smoke else 10**6

    def seconds(name: str) -> float:
        def ours() -> float:
            _forget()
            return epsilon_of(Shuffled(1.0, parties, name), 1e-6)

        return best_seconds(ours, 5)

    general = seconds("general")
    each = {name.partition(":")[0]: seconds(name) / general for name in _NAMES}
    return {"parties": parties, "seconds": general, **each}


def _ten_batches(smoke: bool) -> dict[str, float]:
    parties = 10**4 if smoke else 10**6

    def composed(count: int) -> float:
        _forget()
        return epsilon_of(Compose(tuple(Shuffled(1 + k / 10, parties, "krr:16") for k in range(count))), 1e-6)

    one = best_seconds(lambda: composed(1), 3)
    ten = best_seconds(lambda: composed(10), 1 if smoke else 2)
    return {"parties": parties, "seconds": ten, "ratio": ten / one, "epsilon": composed(10)}


def _large_batch(smoke: bool) -> dict[str, float]:
    parties = 10**6 if smoke else 10**8

    def ours() -> float:
        _forget()
        return epsilon_of(Shuffled(1.0, parties), 1e-6)

    return {"parties": parties, "seconds": best_seconds(ours, 5), "epsilon": ours()}


def _rounds(smoke: bool) -> dict[str, float]:
    rounds, parties = (100 if smoke else 10_000), 10**4

    def priced(name: str) -> float:
        _forget()
        return epsilon_of(Repeat(Sampled(Shuffled(1.0, parties, name), 0.1), rounds), 1e-6)

    return {
        "rounds": rounds,
        "seconds": best_seconds(lambda: priced("general"), 3),
        "laplace_seconds": best_seconds(lambda: priced("laplace"), 1 if smoke else 3),
        "epsilon": priced("general"),
    }


def _renyi(smoke: bool) -> dict[str, float]:
    parties, orders = (10**4 if smoke else 10**6), np.linspace(2, 64, 100)

    def ours() -> object:
        _forget()
        return Shuffled(1.0, parties).renyi(orders)

    return {"parties": parties, "orders": orders.size, "seconds": best_seconds(ours, 5)}


CASES = (
    Case(
        "shuffling/one-batch",
        "epsilon of 1e6 messages in under 50 ms, as the ungrouped sum finds it",
        _one_batch,
        lambda m: (
            f"{m['parties']:,.0f} messages in {1000 * m['seconds']:.0f} ms, {m['ratio']:.3f} x plain; "
            f"epsilon {m['epsilon']:.6f} against {m['plain_epsilon']:.6f}"
        ),
    ),
    Case(
        "shuffling/other-randomizers",
        "epsilon of 1e6 messages of randomizers with a blanket in under 50 ms each",
        _other_randomizers,
        lambda m: (
            f"{m['parties']:,.0f} general messages in {1000 * m['seconds']:.0f} ms; times that: "
            f"krr {m['krr']:.1f}, hadamard {m['hadamard']:.1f}, laplace {m['laplace']:.1f}"
        ),
    ),
    Case(
        "shuffling/ten-batches",
        "ten different batches of 1e6 messages of 16 symbols in under 3 s",
        _ten_batches,
        lambda m: (
            f"ten batches of {m['parties']:,.0f} messages in {m['seconds']:.2f} s, {m['ratio']:.0f} x one; "
            f"epsilon {m['epsilon']:.6f}"
        ),
    ),
    Case(
        "shuffling/large-batch",
        "epsilon of 1e8 messages in under 200 ms",
        _large_batch,
        lambda m: f"{m['parties']:,.0f} messages in {1000 * m['seconds']:.0f} ms; epsilon {m['epsilon']:.6f}",
    ),
    Case(
        "shuffling/rounds",
        "10,000 sampled rounds in under 3 s",
        _rounds,
        lambda m: (
            f"{m['rounds']:,.0f} rounds in {m['seconds']:.2f} s, of Laplace messages in "
            f"{m['laplace_seconds']:.2f} s; epsilon {m['epsilon']:.4f}"
        ),
    ),
    Case(
        "shuffling/renyi",
        "100 Rényi orders of 1e6 messages in under 100 ms",
        _renyi,
        lambda m: f"{m['orders']:.0f} orders of {m['parties']:,.0f} messages in {1000 * m['seconds']:.0f} ms",
    ),
)
