"""What a shuffled batch shows, by complete enumeration: the law of the histogram of all messages."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from tests.privacy.reference import Array

EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 0.9, 1.4, 2.2, 3.5])


def histogram_law(rows: Sequence[Array]) -> dict[tuple[int, ...], float]:
    """Return the law of how often each symbol is sent, by parties with these output laws."""
    symbols = len(rows[0])
    law: dict[tuple[int, ...], float] = {(0,) * symbols: 1.0}
    for row in rows:
        wider: dict[tuple[int, ...], float] = defaultdict(float)
        for counts, mass in law.items():
            for y, probability in enumerate(row):
                wider[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += mass * float(probability)
        law = wider
    return law


def neighbours_of(channel: Array, parties: int) -> Iterator[tuple[Array, Array]]:
    """Yield what every two neighbouring data sets show: row x of `channel` is the law of a message of x."""
    inputs = range(channel.shape[0])
    for others in itertools.combinations_with_replacement(inputs, parties - 1):
        for x, y in itertools.permutations(inputs, 2):
            p = histogram_law([channel[i] for i in (*others, x)])
            q = histogram_law([channel[i] for i in (*others, y)])
            yield np.array(list(p.values())), np.array([q[counts] for counts in p])


def worst_deltas(channel: Array, parties: int, epsilons: Array = EPSILONS) -> Array:
    """Return the largest hockey-stick divergence of any two neighbouring data sets, at each epsilon."""
    worst = np.zeros(epsilons.shape)
    for p, q in neighbours_of(channel, parties):
        found = np.maximum(p[:, None] - np.exp(epsilons) * q[:, None], 0.0).sum(axis=0)
        worst = np.maximum(worst, found)
    return worst


def worst_renyi(channel: Array, parties: int, orders: Array) -> Array:
    """Return the largest Rényi divergence of any two neighbouring data sets, at each order."""
    worst = np.zeros(orders.shape)
    for p, q in neighbours_of(channel, parties):
        moments = (p[:, None] ** orders * q[:, None] ** (1 - orders)).sum(axis=0)
        worst = np.maximum(worst, np.log(moments) / (orders - 1))
    return worst


def k_ary(epsilon0: float, symbols: int) -> Array:
    """Return k-ary randomized response, row by row."""
    e = math.exp(epsilon0)
    return (np.ones((symbols, symbols)) + (e - 1) * np.eye(symbols)) / (e + symbols - 1)


def sets_channel(epsilon0: float, sets: Sequence[Sequence[int]], symbols: int) -> Array:
    """Return the two-level channel that favours `sets[x]` on input x."""
    weight = np.ones((len(sets), symbols))
    for x, members in enumerate(sets):
        weight[x, list(members)] = math.exp(epsilon0)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def coordinate_response(epsilon0: float, block: int) -> Array:
    """Return (c, y) with c uniform on a block and y the randomized bit there, for every vector of bits."""
    keep = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    rows = [
        [(keep if y == bits[c] else 1 - keep) / block for c in range(block) for y in (0, 1)]
        for bits in itertools.product((0, 1), repeat=block)
    ]
    return np.array(rows)
