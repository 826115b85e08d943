"""How many honest messages a batch holds for sure; all estimators behind a shuffler count alike."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.means import (
    BitplaneMean,
    HadamardMean,
    HemisphereMean,
    LocalLaplaceMean,
    PrivUnitGMean,
    PrivUnitMean,
    RotatedMean,
    Round,
    SampledBinaryMean,
    UserLevelScalarMean,
    shuffle,
)
from tacit.means.lp import lp_mean
from tacit.privacy import PrivacyBudget, Shuffled, TrustModel, epsilon_of, meets
from tacit.privacy.arrivals import least_honest
from tacit.randomness import simulated

SHUFFLE, LOCAL = TrustModel.SHUFFLE, TrustModel.LOCAL

SHUFFLED: list[Any] = [
    SampledBinaryMean(dim=2, samples=1, local_epsilon=1.0, trust=SHUFFLE),
    BitplaneMean(dim=2, samples=2, local_epsilons=(1.0, 1.0), trust=SHUFFLE),
    RotatedMean(dim=2, samples=2, local_epsilons=(1.0,), trust=SHUFFLE),
    HadamardMean(dim=2, local_epsilon=1.0, trust=SHUFFLE),
    HemisphereMean(dim=2, local_epsilon=1.0, trust=SHUFFLE),
    PrivUnitMean(dim=2, local_epsilon=1.0, trust=SHUFFLE),
    PrivUnitGMean(dim=2, local_epsilon=1.0, trust=SHUFFLE),
    LocalLaplaceMean(dim=1, local_epsilon=1.0, trust=SHUFFLE),
    LocalLaplaceMean(dim=2, local_epsilon=1.0, steps=0, trust=SHUFFLE),
]

every = pytest.mark.parametrize("mean", SHUFFLED, ids=lambda mean: f"{type(mean).__name__}, {mean.dim}")


def with_drop_outs(mean: Any, honest_fraction: float, n_min: int | None) -> Any:
    fields = {name: getattr(mean, name) for name in mean.__struct_fields__}
    return type(mean)(**fields | {"honest_fraction": honest_fraction, "n_min": n_min})


@pytest.mark.parametrize(("n", "colluders", "n_min"), [(6, 0, 4), (6, 2, 4), (6, 3, 6), (7, 4, 5), (5, 1, 2)])
def test_the_count_is_the_least_over_all_who_may_arrive(n: int, colluders: int, n_min: int) -> None:
    batches = [set(c) for k in range(n_min, n + 1) for c in combinations(range(n), k)]
    fewest = min(sum(party >= colluders for party in batch) for batch in batches)
    assert least_honest(n, honest_fraction=(n - colluders) / n, n_min=n_min) == fewest


@pytest.mark.parametrize(
    ("n", "honest_fraction", "n_min", "message"),
    [
        (10, 0.5, 5, "n_min must be above"),
        (10, 0.05, None, "n_min must be above"),
        (10, 1.0, 11, "n_min must be a whole number from 1 to 10"),
        (10, 1.0, 0, "n_min"),
        (10, 1.0, True, "n_min"),
        (10, 0.0, 8, "honest_fraction"),
        (10, float("nan"), 8, "honest_fraction"),
        (0, 1.0, None, "n must"),
    ],
)
def test_counts_that_leave_nobody_honest_are_refused(
    n: int, honest_fraction: float, n_min: Any, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        least_honest(n, honest_fraction=honest_fraction, n_min=n_min)


def test_no_product_is_rounded_up_to_a_party_that_is_not_there() -> None:
    assert least_honest(2**53 + 3) == 2**53 + 3
    assert least_honest(2**60, honest_fraction=0.5) == 2**59
    for n in (10, 997, 10**9 + 7, 2**50 - 1, 2**53 + 3, 2**63 - 1):
        for fraction in (0.3, 0.7, 0.9, 0.999999, float(np.nextafter(1, 0)), 1.0):
            honest, exact = least_honest(n, honest_fraction=fraction), Fraction(fraction) * n
            assert honest <= exact or (n < 2**50 and honest == round(exact) and honest / n == fraction)
            assert honest >= math.floor(exact)
    assert least_honest(10, honest_fraction=0.7) == 7  # as a float, 0.7 is less than seven tenths
    with pytest.raises(ParameterError, match="n must be"):
        least_honest(2**63)


@every
def test_shuffled_reports_are_priced_at_the_fewest_honest_ones(mean: Any) -> None:
    few = with_drop_outs(mean, 0.75, 60)
    assert few.event(100, SHUFFLE) == mean.event(35, SHUFFLE)
    assert few.event(60, SHUFFLE) == mean.event(45, SHUFFLE)
    assert few.event(100, LOCAL) == mean.event(100, LOCAL)
    with pytest.raises(ParameterError, match="n_min must be"):
        few.event(59, SHUFFLE)
    with pytest.raises(ParameterError, match="n_min must be above"):
        with_drop_outs(mean, 0.4, 60).event(100, SHUFFLE)


@every
def test_fewer_reports_than_are_priced_are_refused(mean: Any) -> None:
    rows, rng = np.zeros((5, mean.dim)), simulated(0, "reports")
    for n_min, n in ((None, 5), (5, 9)):
        few, this_round = with_drop_outs(mean, 1.0, n_min), Round(n=n, radius=1.0)

        def batch(count: int, few: Any = few, round: Round = this_round) -> Any:
            sent = [m for k in range(count) for m in few.encode(rows[:1], round, party=k, rng=rng)]
            return shuffle(sent, rng=rng)

        assert few.decode(batch(5), this_round).shape == (mean.dim,)
        assert few.estimate(rows, this_round, rng=rng).shape == (mean.dim,)
        with pytest.raises(RefusalError, match="at least 5"):
            few.decode(batch(4), this_round)
        with pytest.raises(RefusalError, match="at least 5"):
            few.estimate(rows[:4], this_round, rng=rng)


@every
def test_nobody_hides_behind_others_under_local_trust(mean: Any) -> None:
    fields = {name: getattr(mean, name) for name in mean.__struct_fields__} | {"trust": LOCAL}
    type(mean)(**fields)
    for wrong in ({"n_min": 5}, {"honest_fraction": 0.5}):
        with pytest.raises(ParameterError, match="shuffled reports"):
            type(mean)(**fields | wrong)


def test_calibration_and_the_choice_of_a_family_count_drop_outs() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    whole = HadamardMean.calibrated(dim=4, budget=budget, n=700, trust=SHUFFLE)
    few = HadamardMean.calibrated(dim=4, budget=budget, n=1000, trust=SHUFFLE, honest_fraction=0.9, n_min=800)
    assert few.local_epsilon == pytest.approx(whole.local_epsilon, rel=1e-6)
    assert meets(few.event(1000, SHUFFLE), budget)
    chosen, _ = lp_mean(1, dim=4, budget=budget, n=1000, trust=SHUFFLE, honest_fraction=0.9, n_min=800)
    assert chosen.n_min == 800
    assert epsilon_of(chosen.event(1000, SHUFFLE), 1e-6) <= 1.0
    users = UserLevelScalarMean(
        bound=1.0, tau=0.2, local_epsilon=1.0, trust=SHUFFLE, honest_fraction=0.9, n_min=800
    )
    parts = [leaf for leaf in _leaves(users.event(1000, SHUFFLE)) if isinstance(leaf, Shuffled)]
    assert parts
    assert {leaf.parties for leaf in parts} == {700}


def _leaves(event: Any) -> list[Any]:
    inner = getattr(event, "parts", None) or ((event.part,) if hasattr(event, "part") else None)
    return [event] if inner is None else [leaf for part in inner for leaf in _leaves(part)]
