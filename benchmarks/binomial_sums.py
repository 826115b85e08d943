"""Shuffled sums with binomial noise: a whole federation simulated, and real one-bit messages."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation import Ask, Crowd, InProcess, Measure, Plan, Step
from tacit.learning import LinearObjective, Logistic, Records, make_silos
from tacit.learning.algorithms import statistics_of
from tacit.means import AdditiveMean, BinomialMean, GaussianNoise, MeanEstimator, Round, shuffle
from tacit.mechanisms import sample_fair_binomial
from tacit.privacy import TrustModel

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


SILOS, ROWS, DIM, RADIUS = 25, 320, 785, 0.3


def _records(silos: int, rows: int) -> list[Records]:
    rng, made = np.random.default_rng(0), []
    for _ in range(silos):
        X = rng.random((rows, DIM))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        made.append(Records.of(X, rng.integers(2, size=rows).astype(float)))
    return made


def _plan(trust: TrustModel, parties: int, rounds: int) -> Plan:
    rows, shuffled = SILOS * ROWS, trust is TrustModel.SHUFFLE
    mean: MeanEstimator
    if shuffled:
        mean = BinomialMean(dim=DIM, noise_bits=27, resolution=29)
    else:
        mean = AdditiveMean(dim=DIM, noise=GaussianNoise(60.0), trust=trust)
    measure = Measure(statistic="gradient", estimator=mean, max_radius=RADIUS)
    step = Step(measures=(measure,), honest=rows if shuffled else 0)
    return Plan(
        steps=((step, rounds),), parties=parties, delta=1e-5, trust=trust, n_min=parties if shuffled else 0
    )


def _rounds(smoke: bool) -> dict[str, float]:
    """A shuffled round against a central one, on the same records: silos, and clients of one record."""
    rounds = 2 if smoke else 8
    objective = LinearObjective(loss=Logistic(), features=DIM, feature_norm=1.0)
    records = _records(SILOS, ROWS)
    everybody = Records.of(
        np.concatenate([one.X for one in records]), np.concatenate([one.y for one in records])
    )
    asks: dict[str, Ask] = {}
    for trust in (TrustModel.CENTRAL, TrustModel.SHUFFLE):
        trusts = {
            "trusts_server": trust is TrustModel.CENTRAL,
            "trusts_shuffler": trust is TrustModel.SHUFFLE,
        }
        silos = make_silos(records, objective, seed=0, **trusts)
        asks[f"silos_{trust}"] = InProcess(silos, rng=np.random.default_rng(1)).open(
            _plan(trust, SILOS, rounds)
        )
        crowd = Crowd(everybody, statistics_of(objective), rng=np.random.default_rng(1), **trusts)
        asks[f"crowd_{trust}"] = crowd.open(_plan(trust, len(everybody), rounds))
    found = dict.fromkeys(asks, float("inf"))
    for r in range(rounds):  # in turn: what else the machine does slows down all
        for name, ask in asks.items():
            found[name] = min(
                found[name],
                best_seconds(lambda ask=ask, r=r: ask(r, {"w": np.zeros(DIM)}, (RADIUS,)), 1),  # type: ignore[misc]
            )
    return {
        **{f"{name}_seconds": seconds for name, seconds in found.items()},
        "ratio_of_silos": found["silos_shuffle"] / found["silos_central"],
        "ratio_of_clients": found["crowd_shuffle"] / found["crowd_central"],
    }


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
        "binomial-sums/rounds",
        "a shuffled round of 8000 records and 785 coordinates in at most 3 central ones",
        _rounds,
        lambda m: (
            f"25 silos: {1e3 * m['silos_shuffle_seconds']:.0f} ms, {m['ratio_of_silos']:.1f} central rounds; "
            f"8000 clients: {1e3 * m['crowd_shuffle_seconds']:.0f} ms, {m['ratio_of_clients']:.1f}"
        ),
    ),
    Case(
        "binomial-sums/fair-bits",
        "1e10 fair bits counted in under 2 s",
        _fair_bits,
        lambda m: f"{m['draws']:,.0f} draws of {m['trials']:,.0f} bits in {m['seconds']:.2f} s",
    ),
)
