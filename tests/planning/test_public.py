"""The planner of means with public rows: printed errors, rules by sizes, refusals."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.means import semi_local_mean, semi_private_empirical_mean
from tacit.planning import PublicOption, plan_public_mean
from tacit.privacy import PrivacyBudget, TrustModel


def planned(budget: Any, dim: int, **facts: Any) -> dict[str, PublicOption]:
    return {one.name: one for one in plan_public_mean(budget, dim, **facts)}


@pytest.mark.parametrize(
    ("dim", "ratio", "rho", "n_public", "errors"),
    [
        (10_000, 25, 1, 100, (0.01, 0.1251, 0.00927346)),
        (1000, 25, 1, 100, (0.01, 0.0126, 0.00562455)),
        (100, 25, 0.1, 80, (0.0125, 0.0126, 0.00632490)),
        (100, 25, 0.01, 10, (0.1, 0.1251, 0.0556247)),
        (100, 500, 1, 10, (0.1, 0.5001, 0.0833639)),
        (10_000, 1, 1, 5000, (2e-4, 3e-4, 1.66667e-4)),
    ],
)
def test_errors_are_those_of_the_example(
    dim: int, ratio: float, rho: float, n_public: int, errors: tuple[float, float, float]
) -> None:
    found = planned(
        PrivacyBudget.zcdp(rho), dim, n_private=10_000 - n_public, n_public=n_public, population_variance=1.0,
        radius=float(ratio),
    )  # fmt: skip
    names = ("throw-away", "all-private", "weighted")
    assert [found[name].error for name in names] == pytest.approx(list(errors), rel=2e-5)
    assert list(found) == sorted(found, key=lambda name: found[name].error)
    assert next(iter(found)) == "weighted"


def test_pure_and_approximate_budgets_and_limits() -> None:
    facts: dict[str, Any] = {"n_private": 15, "n_public": 5, "population_variance": 0.25}
    pure = planned(PrivacyBudget(1.0), 3, **facts)
    assert pure["all-private"].error == pytest.approx(0.1925)
    assert pure["weighted"].error == pytest.approx(0.0435344828)
    assert pure["weighted"].weight / 15 == pytest.approx(0.00862068966)
    approximate = planned(PrivacyBudget(1.0, 1e-5), 3, **facts)
    assert approximate["all-private"].noise == pytest.approx(3 * (2 * 3.730632 / 20) ** 2, rel=1e-5)
    assert planned(PrivacyBudget(1e4), 3, **facts)["weighted"].weight == pytest.approx(0.75, rel=1e-4)
    still = planned(PrivacyBudget(1.0), 3, **{**facts, "population_variance": 0.0})
    assert (still["weighted"].weight, still["weighted"].error) == (0.0, 0.0)


def test_rows_that_are_there_are_thrown_away_by_sizes_alone() -> None:
    for n_private, first, bound in ((5, "throw-away", 0.0025), (50, "all-private", 0.0128)):
        sizes: dict[str, Any] = {"n_private": n_private, "n_public": 100 - n_private}
        plan = plan_public_mean(PrivacyBudget(1.0), 4, **sizes, population_variance=0.0, target="empirical")
        assert plan[0].name == first
        assert plan[0].error == pytest.approx(bound)
        assert {one.name for one in plan} == {"throw-away", "all-private"}
        own = semi_private_empirical_mean(1.0, 4, **sizes)
        assert (own.weight == 0) == (plan[0].name == "throw-away")


def test_local_trust_takes_private_unit_vectors() -> None:
    facts = {"n_private": 600, "n_public": 40, "population_variance": 0.5}
    found = planned(PrivacyBudget(2.0), 8, **facts, trust=TrustModel.LOCAL)
    mean = semi_local_mean(2.0, 8, n_private=600, n_public=40, population_variance=0.5)
    assert found["weighted"].weight == pytest.approx(mean.weight)
    error = mean.population_error(600, 40, population_variance=0.5)
    assert found["weighted"].error == pytest.approx(error.mse)
    assert found["weighted"].error < min(found["throw-away"].error, found["all-private"].error)


def test_of_rows_that_are_there_only_private_ones_are_randomised() -> None:
    """d = 3, epsilon 2, 6 private rows of 10: 0.6 of the error of ten randomised rows."""
    facts: dict[str, Any] = {"n_private": 6, "n_public": 4, "population_variance": 0.0}
    found = planned(PrivacyBudget(2.0), 3, **facts, trust=TrustModel.LOCAL, target="empirical")
    mean = semi_local_mean(2.0, 3, n_private=6, n_public=4)
    assert found["weighted"].weight == mean.weight == 0.6
    assert found["weighted"].error == pytest.approx(mean.empirical_error(6, 4).mse)
    assert found["weighted"].error == pytest.approx(0.6 * found["all-private"].error)
    assert next(iter(found)) == "weighted"  # 0.237 for rows of any norm; 0.36 thrown away


def test_bad_input_is_refused() -> None:
    good: dict[str, Any] = {"dim": 3, "n_private": 2, "n_public": 2, "population_variance": 0.1}
    for bad, name in (
        ({"n_public": 0}, "n_public"), ({"n_private": 0}, "n_private"), ({"dim": 0}, "dim"),
        ({"population_variance": -1.0}, "population_variance"),
        ({"population_variance": 2.0}, "at most radius"),
        ({"radius": math.nan}, "radius"), ({"target": "both"}, "target"),
        ({"trust": TrustModel.SHUFFLE}, "trust must be central"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=name):
            plan_public_mean(PrivacyBudget(1.0, 1e-5), **{**good, **bad})
    with pytest.raises(ParameterError, match="trust must be central"):
        plan_public_mean(PrivacyBudget.zcdp(1.0), **good, trust=TrustModel.LOCAL)
