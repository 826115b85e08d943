"""A round behind a shuffler, beside the same round of a trusted server: what single bits cost."""

from __future__ import annotations

import math
import time

import numpy as np

from benchmarks.case import Case
from tacit.federation import Ask, InProcess, Measure, Plan, Step, with_honest
from tacit.learning import LinearObjective, Logistic, Records, make_silos
from tacit.means import AdditiveMean, BinomialMean, GaussianNoise, Round, shuffle
from tacit.numerics import Array
from tacit.privacy import TrustModel

SILOS, ROWS, DIM, RADIUS, MULTIPLIER = 25, 320, 785, 0.3, 5.0
MEAN = BinomialMean(dim=DIM, noise_bits=11, resolution=29)
"""Noise of 5 sensitivities in the sum of 8,000 rows, on a grid of sqrt(785) steps."""


def _silos(rows: int) -> list[Records]:
    rng, made = np.random.default_rng(0), []
    for _ in range(SILOS):
        X = rng.random((rows, DIM), dtype=np.float32)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        made.append(Records.of(X, (rng.random(rows) < 0.5).astype(np.float32)))
    return made


def _open(records: list[Records], trust: TrustModel, rounds: int) -> Ask:
    objective = LinearObjective(loss=Logistic(), features=DIM, feature_norm=1.0)
    shuffled = trust is TrustModel.SHUFFLE
    central = AdditiveMean(dim=DIM, noise=GaussianNoise(MULTIPLIER), trust=TrustModel.CENTRAL)
    step = Step(
        measures=(Measure(statistic="gradient", estimator=MEAN if shuffled else central, max_radius=RADIUS),)
    )
    sizes, n_min = [len(one) for one in records], SILOS if shuffled else 0
    kinds = ((step, rounds),)
    if shuffled:
        kinds = with_honest(kinds, sizes, n_min=n_min, colluding=0)
    plan = Plan(steps=kinds, parties=SILOS, trust=trust, delta=1e-5, n_min=n_min)
    silos = make_silos(records, objective, seed=0, trusts_server=not shuffled, trusts_shuffler=shuffled)
    return InProcess(silos, rng=np.random.default_rng(1)).open(plan)


def _round(smoke: bool) -> dict[str, float]:
    records, repeats = _silos(4 if smoke else ROWS), 1 if smoke else 5
    asks = {trust: _open(records, trust, repeats) for trust in (TrustModel.CENTRAL, TrustModel.SHUFFLE)}
    best, w = dict.fromkeys(asks, math.inf), np.zeros(DIM)
    for r in range(repeats):  # in turn: what else the machine does slows down both
        for trust, ask in asks.items():
            start = time.perf_counter()
            ask(r, {"w": w}, (RADIUS,))
            best[trust] = min(best[trust], time.perf_counter() - start)
    rows = sum(len(one) for one in records)
    return {
        "rows": rows,
        "bits": SILOS * MEAN.bits_per_party(rows // SILOS),
        "shuffled_seconds": best[TrustModel.SHUFFLE],
        "central_seconds": best[TrustModel.CENTRAL],
        "ratio": best[TrustModel.SHUFFLE] / best[TrustModel.CENTRAL],
        "nanoseconds_an_entry": 1e9 * best[TrustModel.SHUFFLE] / rows / DIM,
    }


def _parties(smoke: bool) -> dict[str, float]:
    """Every row is a party of its own: headers and calls are what is counted."""
    n = 40 if smoke else 8000
    rng = np.random.default_rng(0)
    rows: Array = rng.standard_normal((n, DIM)) / math.sqrt(DIM)
    this_round = Round(n=n, radius=1.0, parties=n)
    times = [time.perf_counter()]
    sent = [m for k in range(n) for m in MEAN.encode(rows[k : k + 1], this_round, party=k, rng=rng)]
    times.append(time.perf_counter())
    batch = shuffle(sent, rng=rng, n_min=n)
    times.append(time.perf_counter())
    MEAN.decode(batch, this_round)
    times.append(time.perf_counter())
    together = time.perf_counter()
    MEAN.estimate(rows, this_round, rng=rng)
    at_once = time.perf_counter() - together
    encoding, mixing, decoding = np.diff(times)
    return {
        "parties": n,
        "encode_seconds": float(encoding),
        "shuffle_seconds": float(mixing),
        "decode_seconds": float(decoding),
        "estimate_seconds": at_once,
        "ratio": float(encoding + mixing + decoding) / at_once,
    }


CASES = (
    Case(
        "shuffled-rounds/25-silos",
        "what single bits cost beside a trusted server's sums, and where a round spends it",
        _round,
        lambda m: (
            f"{m['rows']:,.0f} rows, {m['bits'] / 8e6:.1f} MB: {m['shuffled_seconds']:.2f} s a round "
            f"({m['nanoseconds_an_entry']:.0f} ns an entry), central {1e3 * m['central_seconds']:.1f} ms: "
            f"{m['ratio']:.0f} x"
        ),
    ),
    Case(
        "shuffled-rounds/parties",
        "real messages of parties of one row at most 50 x `estimate`, which has their law",
        _parties,
        lambda m: (
            f"{m['parties']:,.0f} parties: encode {m['encode_seconds']:.1f}, shuffle "
            f"{m['shuffle_seconds']:.1f}, decode {m['decode_seconds']:.1f} s, estimate "
            f"{m['estimate_seconds']:.2f} s: {m['ratio']:.0f} x"
        ),
    ),
)
