"""Calibration and composition of sampled rounds, against dp-accounting's own accountant."""

from __future__ import annotations

import dp_accounting
from dp_accounting.pld import PLDAccountant

from benchmarks.case import Case, best_seconds
from tacit.privacy import (
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    Sample,
    Sampled,
    calibrate,
    epsilon_of,
)


def _calibration(smoke: bool) -> dict[str, float]:
    rounds = 100 if smoke else 10_000

    def once() -> float:
        return calibrate(lambda z: Repeat(Sampled(Gaussian(z), 0.01), rounds), PrivacyBudget(1.0, 1e-5))

    def price() -> float:
        return epsilon_of(Repeat(Sampled(Gaussian(4.0), 0.01), rounds), 1e-5)

    seconds, single = best_seconds(once, 3), best_seconds(price, 3)
    return {"rounds": rounds, "seconds": seconds, "one_price_seconds": single, "ratio": seconds / single}


def _composition(smoke: bool) -> dict[str, float]:
    rounds = 100 if smoke else 10_000
    around = Neighbours(Relation.ADD_REMOVE)
    event = Repeat(Sampled(Gaussian(1.0, around), 0.01, Sample.POISSON), rounds)
    theirs_event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), rounds
    )

    def ours() -> float:
        return epsilon_of(event, 1e-5)

    def theirs() -> float:
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
        accountant.compose(theirs_event)
        return float(accountant.get_epsilon(1e-5))

    mine, other = best_seconds(ours, 3), best_seconds(theirs, 1 if smoke else 3)
    return {
        "rounds": rounds,
        "seconds": mine,
        "dp_accounting_seconds": other,
        "ratio": mine / other,
        "epsilon": ours(),
        "dp_accounting_epsilon": theirs(),
    }


CASES = (
    Case(
        "accounting/calibrate-sampled",
        "10,000 sampled rounds in under 1 s",
        _calibration,
        lambda m: (
            f"{m['rounds']:,.0f} rounds in {m['seconds']:.2f} s, {m['ratio']:.1f} x one price "
            f"({1000 * m['one_price_seconds']:.0f} ms)"
        ),
    ),
    Case(
        "accounting/price-sampled",
        "not slower than dp-accounting, same epsilon",
        _composition,
        lambda m: (
            f"{1000 * m['seconds']:.0f} ms, {m['ratio']:.2f} x dp-accounting; epsilon {m['epsilon']:.4f} "
            f"against {m['dp_accounting_epsilon']:.4f}"
        ),
    ),
)
