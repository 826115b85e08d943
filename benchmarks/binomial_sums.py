"""Shuffled sums with binomial noise: a whole federation simulated, and real one-bit messages."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.means import BinomialMean, Round, shuffle
from tacit.mechanisms import sample_fair_binomial

_BLOCK = 1000


def _simulation(smoke: bool) -> dict[str, float]:
    n, dim = (2000, 100) if smoke else (100_000, 10_000)
    rng = np.random.default_rng(0)
    # All rows would take 4 GB: one block is handed over again and again, and making it is not timed.
    block = rng.standard_normal((_BLOCK, dim), dtype=np.float32)
    block /= 1.01 * np.linalg.norm(block, axis=1)[:, None]
    mean = BinomialMean(dim=dim, noise_bits=10, resolution=118)
    this_round = Round(n=n, radius=1.0)
    seconds = best_seconds(
        lambda: mean.estimate((block for _ in range(n // _BLOCK)), this_round, rng=rng), 1 if smoke else 3
    )
    return {"rows": n, "dim": dim, "seconds": seconds, "nanoseconds_per_entry": 1e9 * seconds / n / dim}


def _messages(smoke: bool) -> dict[str, float]:
    n, dim = (50, 10) if smoke else (1000, 100)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, dim)) / np.sqrt(dim)
    mean = BinomialMean(dim=dim, noise_bits=20, resolution=16)
    this_round = Round(n=n, radius=1.0, parties=n)
    times = [time.perf_counter()]
    sent = [m for k, row in enumerate(rows) for m in mean.encode(row[None], this_round, party=k, rng=rng)]
    times.append(time.perf_counter())
    batch = shuffle(sent, rng=rng)
    times.append(time.perf_counter())
    mean.decode(batch, this_round)
    times.append(time.perf_counter())
    encoding, shuffling, decoding = np.diff(times)
    return {
        "rows": n,
        "dim": dim,
        "bits": n * mean.bits_per_party(),
        "encode_seconds": float(encoding),
        "shuffle_seconds": float(shuffling),
        "decode_seconds": float(decoding),
    }


def _fair_bits(smoke: bool) -> dict[str, float]:
    trials, draws = (10**4, 100) if smoke else (10**6, 10_000)
    rng = np.random.default_rng(0)
    seconds = best_seconds(lambda: sample_fair_binomial(trials, draws, rng), 1 if smoke else 3)
    return {"trials": trials, "draws": draws, "seconds": seconds}


CASES = (
    Case(
        "binomial-sums/simulation",
        "the shuffled sum of 1e5 rows of 1e4 coordinates in under 2 s",
        _simulation,
        lambda m: (
            f"{m['rows']:,.0f} x {m['dim']:,.0f} in {m['seconds']:.2f} s "
            f"({m['nanoseconds_per_entry']:.2f} ns an entry)"
        ),
    ),
    Case(
        "binomial-sums/messages",
        "one-bit messages of 1000 parties and 100 coordinates encoded, shuffled and decoded in under 2 s",
        _messages,
        lambda m: (
            f"{m['rows']:,.0f} x {m['dim']:,.0f}, {m['bits'] / 8e6:.1f} MB: "
            f"encode {m['encode_seconds']:.2f}, shuffle {m['shuffle_seconds']:.2f}, "
            f"decode {m['decode_seconds']:.2f} s"
        ),
    ),
    Case(
        "binomial-sums/fair-bits",
        "1e10 fair bits counted in under 2 s",
        _fair_bits,
        lambda m: f"{m['draws']:,.0f} draws of {m['trials']:,.0f} bits in {m['seconds']:.2f} s",
    ),
)
