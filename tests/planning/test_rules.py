"""Rules for correlated means against tables computed independently."""

from __future__ import annotations

import pytest

from tacit.errors import ParameterError
from tacit.means import Facts, RandK, RandKSpatial, RandProjSpatial
from tacit.planning import (
    MeanProblem,
    advised_transform,
    break_even_correlation,
    plan_mean,
)

# n, k, d; R* of RPS(avg) and RkS(avg) against Rand-k, R* of RPS(avg) against RkS(avg); ratios at R = n - 1.
TABLE = [
    (10, 5, 1024, 2.506, 1.957, 3.122, 0.9650, 0.9799),
    (10, 25, 1024, 2.523, 1.958, 3.169, 0.8303, 0.9016),
    (10, 51, 1024, 2.522, 1.956, 3.205, 0.6719, 0.8048),
    (10, 102, 1024, 2.449, 1.941, 3.198, 0.4280, 0.6327),
    (50, 5, 1024, 12.48, 9.906, 15.78, 0.8288, 0.8972),
    (50, 10, 1024, 12.37, 9.838, 15.83, 0.6803, 0.8026),
    (50, 20, 1024, 11.91, 9.659, 15.65, 0.4523, 0.6373),
    (10, 50, 512, 2.454, 1.942, 3.200, 0.4358, 0.6390),
    (50, 10, 512, 11.91, 9.659, 15.65, 0.4523, 0.6373),
]


@pytest.mark.parametrize(("n", "k", "d", "rps", "rks", "between", "rps_ratio", "rks_ratio"), TABLE)
def test_break_even_correlations(
    n: int, k: int, d: int, rps: float, rks: float, between: float, rps_ratio: float, rks_ratio: float
) -> None:
    base, counted, turned = RandK(dim=d, k=k), RandKSpatial(dim=d, k=k), RandProjSpatial(dim=d, k=k)
    assert break_even_correlation(counted, base, n) == pytest.approx(rks, rel=1e-3)
    assert break_even_correlation(turned, base, n) == pytest.approx(rps, rel=1e-2)
    assert break_even_correlation(turned, counted, n) == pytest.approx(between, rel=2e-2)
    alike = Facts(parties=n, squared_norms=float(n), correlation=n - 1.0)
    whole = base.error(n, alike).variance
    assert counted.error(n, alike).variance / whole == pytest.approx(rks_ratio, abs=2e-4)
    assert turned.error(n, alike).variance / whole == pytest.approx(rps_ratio, abs=2e-3)


def test_max_pays_for_nearly_identical_rows_only() -> None:
    n, k, d = 10, 25, 1024
    base, mean = RandK(dim=d, k=k), RandProjSpatial(dim=d, k=k, transform="max")
    found = break_even_correlation(mean, base, n) / (n - 1)
    assert found == pytest.approx(1 / (2 - n * k / d), rel=5e-3)
    with pytest.raises(ParameterError, match="gain"):
        break_even_correlation(base, mean, n)


def test_the_transform_follows_what_is_known() -> None:
    assert advised_transform(None, 10) == "avg"
    assert advised_transform(3.0, 10) == advised_transform(-0.5, 10) == "opt"
    assert advised_transform(-1.0, 10) == "one"


@pytest.mark.parametrize(("correlation", "best"), [(0.5, "rand-proj-spatial"), (-0.06, "rand-k-spatial")])
def test_plans_follow_the_rules(correlation: float, best: str) -> None:
    problem = MeanProblem(n=10, dim=512, trust="none", bits=88 + 32 * 50, correlation=correlation)
    spatial = [one for one in plan_mean(problem, points=1) if "spatial" in one.family]
    assert spatial[0].family == best
    assert all("opt" in one.name for one in spatial)
