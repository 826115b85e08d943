"""Mechanisms of frequencies that every law of the protocol is tested on."""

from __future__ import annotations

import itertools

import numpy as np

from tacit.frequencies import (
    BinaryHadamard,
    CyclicResponse,
    FrequencyOracle,
    HadamardResponse,
    KaryResponse,
    RecoverableHadamard,
    RecoverableOracle,
    SubsetSelection,
    UnaryEncoding,
)
from tacit.frequencies.symbols import SymbolOracle
from tacit.numerics import Array

ORACLES: list[FrequencyOracle] = [
    BinaryHadamard(k=2, epsilon=0.8),
    BinaryHadamard(k=3, epsilon=1.3),
    BinaryHadamard(k=5, epsilon=0.7, skip_constant=False),
    BinaryHadamard(k=5, epsilon=1.0, random_bits=0.3),
    BinaryHadamard(k=6, epsilon=1.0, random_bits=0.6, skip_constant=False),
    KaryResponse(k=2, epsilon=0.5),
    KaryResponse(k=5, epsilon=1.0),
    HadamardResponse(k=5, epsilon=0.6),
    HadamardResponse(k=5, epsilon=1.2),
    HadamardResponse(k=7, epsilon=2.5),
    UnaryEncoding(k=4, epsilon=1.0),
    UnaryEncoding(k=3, epsilon=2.0, symmetric=True),
    SubsetSelection(k=5, epsilon=0.4),
    SubsetSelection(k=4, epsilon=2.0),
    CyclicResponse(k=7, epsilon=0.6),
    CyclicResponse(k=5, epsilon=2.0),
    CyclicResponse(k=3, epsilon=0.3),
    CyclicResponse(k=4, epsilon=3.0),
    RecoverableHadamard(k=3, epsilon=1.2),
    RecoverableHadamard(k=4, epsilon=2.5),
    RecoverableHadamard(k=5, epsilon=1.0),
    RecoverableHadamard(k=7, epsilon=0.5),
    RecoverableHadamard(k=5, epsilon=2.5),
]
BY_PLACE = BinaryHadamard(k=5, epsilon=1.0, assignment="blocks")


def label(oracle: FrequencyOracle) -> str:
    """Name a case."""
    few = f"-R{oracle.random_bits:g}" if isinstance(oracle, BinaryHadamard) else ""
    name = oracle.__struct_config__.tag if isinstance(oracle, RecoverableOracle) else oracle.name
    return f"{name}-{oracle.epsilon:g}{few}"


def messages_of(oracle: FrequencyOracle) -> Array:
    """Return all messages, in the order of the channel matrix."""
    if isinstance(oracle, SymbolOracle):
        return np.arange(oracle.outcomes)
    sets = np.array(list(itertools.product((False, True), repeat=oracle.k)))
    if isinstance(oracle, SubsetSelection):
        chosen = itertools.combinations(range(oracle.k), oracle.randomizer.size)
        sets = np.array([np.isin(np.arange(oracle.k), one) for one in chosen])
    return sets


def weights_of(oracle: FrequencyOracle) -> Array:
    """Return what the estimate is of each message alone, shape (k, messages)."""
    possible = oracle.channel_matrix().max(axis=0) > 0
    found = [
        oracle.estimate(oracle.aggregate(one[None])) if able else np.zeros(oracle.k)
        for one, able in zip(messages_of(oracle), possible, strict=True)
    ]
    return np.array(found).T
