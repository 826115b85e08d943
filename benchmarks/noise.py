"""Exact integer noise against continuous noise."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.mechanisms import sample_discrete_gaussian
from tacit.randomness import secure


def _exact(smoke: bool) -> dict[str, float]:
    size, rng, repeats = 10_000 if smoke else 1_000_000, secure(), 1 if smoke else 5
    exact = best_seconds(lambda: sample_discrete_gaussian(1e5, size, rng), repeats)
    continuous = best_seconds(lambda: rng.standard_normal(size), repeats)
    rounded = best_seconds(lambda: np.rint(1e5 * np.random.default_rng(0).standard_normal(size)), repeats)
    return {
        "samples_per_second": size / exact,
        "ratio": exact / continuous,
        "ratio_to_rounded_pcg": exact / rounded,
    }


CASES = (
    Case(
        "noise/discrete-gaussian",
        ">= 1e6 exact samples a second with the secure generator",
        _exact,
        lambda m: (
            f"{m['samples_per_second']:,.0f} samples/s, {m['ratio']:.1f} x continuous noise, same generator"
        ),
    ),
)
