"""Shuffled binomial sums for the contract; their laws are enumerated in tests/means/test_binomial.py."""

from __future__ import annotations

from functools import partial

from tacit.means import BinomialMean, Estimator
from tests.contract.cases import Case


def binomial(noise_bits: int, resolution: int, dim: int, share: float) -> Estimator:
    """A sum with a share of the noise bits; at least one is left."""
    return BinomialMean(dim=dim, noise_bits=max(1, round(noise_bits * share)), resolution=resolution, n_min=2)


ESTIMATORS = [
    Case(name="binomial sum", make=partial(binomial, 16, 8), exact=False),
    Case(name="binomial sum, coarse", make=partial(binomial, 2, 3), exact=False),
]
