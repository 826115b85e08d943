"""Rounds whose messages are added up unseen: with masks and without, beside rounds with exact noise."""

from __future__ import annotations

import math
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation import Full, InProcess, Measure, OpenSums, Plan, Silo, Step, with_widths
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.network.keys import SigningKey
from tacit.learning import LinearObjective, Logistic, Records
from tacit.learning.algorithms.registry import statistics_of
from tacit.ledger import Ledger
from tacit.means import AdditiveMean, DiscreteGaussianNoise, Estimator, ModularSumMean
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel

SILOS, ROWS, DIM, RADIUS, STEPS = 25, 320, 785, 0.3, 2**11
AT = {"w": np.zeros(DIM)}


def _units() -> list[Records]:
    rng, made = np.random.default_rng(0), []
    for _ in range(SILOS):
        X = rng.random((ROWS, DIM))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        made.append(Records.of(X, rng.integers(2, size=ROWS).astype(np.float64)))
    return made


def _plan(mean: Estimator, rounds: int, roster: str = "") -> Plan:
    step = Step(measures=(Measure(statistic="gradient", estimator=mean, max_radius=RADIUS),), batch=Full())
    kinds: Any = ((step, rounds),)
    if mean.trust is not TrustModel.AGGREGATE:
        return Plan(steps=kinds, parties=SILOS, trust=mean.trust, delta=1e-5)
    return Plan(
        steps=with_widths(kinds, [ROWS] * SILOS),
        parties=SILOS,
        trust=TrustModel.AGGREGATE,
        delta=1e-5,
        n_min=SILOS,
        colluding=5,
        roster=roster,
    )


def _rounds(smoke: bool) -> dict[str, float]:
    rounds, units = 3 if smoke else 60, _units()
    known = statistics_of(LinearObjective(loss=Logistic(), features=DIM, outputs=1, feature_norm=1.0))
    keys = [SigningKey.make() for _ in range(SILOS)]
    roster = MaskingRoster(tuple(map(str, range(SILOS))), tuple(key.public.raw for key in keys))
    local = AdditiveMean(dim=DIM, noise=DiscreteGaussianNoise(60.0, steps=STEPS))
    share = DiscreteGaussianNoise(60.0 / math.sqrt(20), steps=STEPS)
    summed = ModularSumMean(dim=DIM, noise=share, shares=20)
    plans = {
        "exact": (_plan(local, rounds), None),
        "open": (_plan(summed, rounds), [OpenSums()] * SILOS),
        "masked": (_plan(summed, rounds, roster.digest), [MaskedSums(roster, key) for key in keys]),
    }
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        asks = {}
        for name, (plan, sums) in plans.items():
            silos = []
            for k, one in enumerate(units):
                ledger = stack.enter_context(
                    Ledger.create(
                        Path(folder) / f"{name}{k}", limit=PrivacyBudget(100.0, 1e-4), neighbours=Neighbours()
                    )
                )
                silos.append(
                    Silo(one, known, name=str(k), ledger=ledger, sums=None if sums is None else sums[k])
                )
            asks[name] = InProcess(silos, masks=roster if plan.roster else None).open(plan)
        best = dict.fromkeys(asks, math.inf)
        for r in range(rounds):  # in turn: what else the machine does slows down all
            for name, ask in asks.items():
                took = best_seconds(lambda ask=ask, r=r: ask(r, AT, (RADIUS,)), 1)  # type: ignore[misc]
                if r:  # the first one exchanges keys
                    best[name] = min(best[name], took)
        bits = {name: float(ask.traffic.bits_up[0]) for name, ask in asks.items()}
    return {
        **{f"{name}_milliseconds": 1e3 * seconds for name, seconds in best.items()},
        "masked_ratio": best["masked"] / best["exact"],
        "open_ratio": best["open"] / best["exact"],
        "bytes_a_round": bits["masked"] / 8 / rounds,
    }


CASES = (
    Case(
        "rounds/summed",
        "a masked round at most 1.5 x the round with exact noise that is not masked",
        _rounds,
        lambda m: (
            f"{m['masked_milliseconds']:.1f} ms a masked round of 25 silos and 785 coordinates, ledgers on "
            f"disk; {m['exact_milliseconds']:.1f} ms with exact noise under local trust: "
            f"{m['masked_ratio']:.2f} x; added up in the open {m['open_ratio']:.2f} x; "
            f"{m['bytes_a_round']:.0f} bytes a silo and round"
        ),
    ),
)
