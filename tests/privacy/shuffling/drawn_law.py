"""The exact law of a round of some of the parties, by every draw, for tests of its price and of its code."""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement

import numpy as np

from tacit.numerics import Array

EPSILONS = np.linspace(0, 2.0, 41)


def view(data: tuple[tuple[int, ...], ...], level: float, drawn: int | float, sampled: int) -> Array:
    """The law of (number of messages, number of ones), by every draw of clients and of their records."""
    n, m, truth = len(data), len(data[0]), 1 / (1 + math.exp(-level))
    law = np.zeros((n * sampled + 1, n * sampled + 1))
    one_client = []
    for records in data:
        ones = np.zeros(sampled + 1)
        for chosen in combinations(records, sampled):
            poly = np.ones(1)
            for bit in chosen:
                p = truth if bit else 1 - truth
                poly = np.convolve(poly, [1 - p, p])
            ones += poly / math.comb(m, sampled)
        one_client.append(ones)
    for size in range(n + 1):
        for chosen_clients in combinations(range(n), size):
            if isinstance(drawn, int):
                weight = (size == drawn) / math.comb(n, drawn)
            else:
                weight = drawn**size * (1 - drawn) ** (n - size)
            poly = np.ones(1)
            for client in chosen_clients:
                poly = np.convolve(poly, one_client[client])
            law[size * sampled, : poly.size] += weight * poly
    return law.ravel()


def worst(n: int, m: int, level: float, drawn: int | float, sampled: int) -> Array:
    """The largest hockey-stick divergence of neighbours, over all data sets and both orders."""
    found = np.zeros(EPSILONS.size)
    clients = [tuple(c) for c in combinations_with_replacement((0, 1), m)]
    for rest in combinations_with_replacement((0, 1), m - 1):
        for others in combinations_with_replacement(clients, n - 1):
            p, q = (view(((bit, *rest), *others), level, drawn, sampled) for bit in (0, 1))
            for a, b in ((p, q), (q, p)):
                gap = np.maximum(a[:, None] - np.exp(EPSILONS) * b[:, None], 0).sum(axis=0)
                found = np.maximum(found, gap)
    return found
