"""Prices of shuffled sums: one scalar curve on many levels, one vector calibration."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.privacy import PrivacyBudget
from tacit.privacy.binomial import binomial_hockey_stick, calibrate_binomial_sum


def _scalar(smoke: bool) -> dict[str, float]:
    levels = np.linspace(0, 5, 1000 if smoke else 100_000)
    seconds = best_seconds(lambda: binomial_hockey_stick(10**9, 0.5, 3800, levels), 1 if smoke else 3)
    return {"levels": levels.size, "seconds": seconds}


def _vector(smoke: bool) -> dict[str, float]:
    parties = 10_000 if smoke else 1_000_000
    found = calibrate_binomial_sum(PrivacyBudget(1.0, 1e-6), parties, 1000)
    seconds = best_seconds(
        lambda: calibrate_binomial_sum(PrivacyBudget(1.0, 1e-6), parties, 1000), 1 if smoke else 3
    )
    return {"parties": parties, "seconds": seconds, "bits": found.bits_per_coordinate, "ratio": found.ratio}


CASES = (
    Case(
        "binomial/scalar-curve",
        "100,000 levels of a sum with 1e9 noise bits in under 2 s",
        _scalar,
        lambda m: f"{m['levels']:,.0f} levels in {m['seconds']:.2f} s",
    ),
    Case(
        "binomial/calibrate-vector",
        "a vector sum of 1e6 parties calibrated in under 1 s",
        _vector,
        lambda m: (
            f"{m['parties']:,.0f} parties in {m['seconds']:.2f} s: {m['bits']:.0f} bits a coordinate, error "
            f"{m['ratio']:.3f} x central Gaussian"
        ),
    ),
)
