"""Plans of means under trust in a sum: errors, bits, and both prices."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tacit.cli import main
from tacit.errors import BudgetError, ParameterError
from tacit.means import ModularSumMean
from tacit.planning import MeanProblem, measure, plan_mean, references
from tacit.privacy import PrivacyBudget, TrustModel, epsilon_of
from tests.statistics import z_bound

BUDGET = PrivacyBudget(1.0, 1e-5)
STEPS = {65: 512, 785: 2048, 10_000: 8192}
TABLE = [
    (65, 10, 1361.3, 17, ("73.5", "45.9", "36.8"), "36.2", "362"),
    (65, 100, 430.5, 18, ("0.735", "0.459", "0.368"), "0.362", "36.2"),
    (65, 1000, 136.1, 21, ("0.00735", "0.00459", "0.00368"), "0.00362", "3.62"),
    (785, 10, 5439, 19, ("886", "554", "443"), "437", "4.37e+03"),
    (785, 100, 1720, 20, ("8.86", "5.54", "4.43"), "4.37", "437"),
    (785, 1000, 544, 23, ("0.0886", "0.0554", "0.0443"), "0.0437", "43.7"),
    (10_000, 10, 21742, 21, ("1.13e+04", "7.04e+03", "5.64e+03"), "5.57e+03", "5.57e+04"),
    (10_000, 100, 6875, 22, ("113", "70.4", "56.4"), "55.7", "5.57e+03"),
    (10_000, 1000, 2174, 25, ("1.13", "0.704", "0.564"), "0.557", "557"),
]
"""dim, parties, s and bits a coordinate with 80 % of shares counted, errors with 50, 80, 100 % of them, and
those of a trusted server and of messages that are seen; at epsilon 1, delta 1e-5."""
ALONE = {10: (2.44, 3.19, 3.62), 100: (9.36, 12.53, 14.43), 1000: (42.8, 60.3, 71.3)}


def problem(**facts: Any) -> MeanProblem:
    asked: dict[str, Any] = {"n": 100, "dim": 16, "trust": "aggregate", "budget": BUDGET}
    return MeanProblem(**(asked | facts))


def planned(capsys: pytest.CaptureFixture[str], *options: object) -> dict[str, Any]:
    argv = ["plan", "mean", "--trust", "aggregate", "--delta", "1e-5", "--json", *map(str, options)]
    assert main(argv) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(("dim", "n", "std", "bits", "errors", "central", "local"), TABLE)
def test_the_command_finds_the_reference_values(
    dim: int,
    n: int,
    std: float,
    bits: int,
    errors: tuple[str, ...],
    central: str,
    local: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for colluding, mse, alone in zip((n // 2, n // 5, 0), errors, ALONE[n], strict=True):
        asked = ("--n", n, "--dim", dim, "--colluding", colluding, "--epsilon", 1, "--points", 3)
        found = planned(capsys, *asked)
        one = next(line for line in found["candidates"] if line["name"].endswith(f" {STEPS[dim]} steps"))
        # A bound counts rounding at its worst, half a step a row and coordinate.
        assert f"{one['mse'] - dim / (2 * STEPS[dim]) ** 2:.3g}" == mse
        assert one["epsilon"] <= 1
        assert one["epsilon_alone"] == pytest.approx(alone, rel=2e-3)
        assert f"up to {colluding} of the parties together" in one["guarantee"]
        if colluding == n // 5:
            assert one["event"]["std"] == pytest.approx(std, rel=4e-4)
            assert one["event"]["shares"] == n - colluding
            assert one["bits_per_party"] == 8 * (11 + math.ceil(dim * bits / 8))
        others = {line["name"]: f"{line['mse']:.3g}" for line in found["references"]}
        assert (others["central Gaussian"], others["local Gaussian"]) == (central, local)


@pytest.mark.parametrize(("n", "std", "alone"), [(10, 727.5, 6.60), (100, 230.1, 28.5), (1000, 72.8, 160.0)])
def test_with_twice_the_budget(n: int, std: float, alone: float, capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(capsys, "--n", n, "--dim", 65, "--colluding", n // 5, "--epsilon", 2)["candidates"][0]
    assert found["event"]["std"] == pytest.approx(std, rel=1e-3)
    assert found["epsilon_alone"] == pytest.approx(alone, rel=3e-3)
    once = planned(capsys, "--n", n, "--dim", 65, "--colluding", n // 5, "--epsilon", 1)["candidates"][0]
    rounding = 65 / (2 * 512) ** 2
    assert (found["mse"] - rounding) / (once["mse"] - rounding) == pytest.approx(0.2856, rel=1e-3)


def test_people_see_both_prices(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", "mean", "--trust", "aggregate", "--n", "10", "--dim", "65", "--colluding", "2"]
    assert main([*asked, "--epsilon", "1", "--delta", "1e-5", "--public", "3", "--points", "2"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert " alone " in said
    assert "(3.186" in said
    assert "at least 8 honest parties add their share" in said
    assert "the price counts 8 shares of 10" in said


def test_candidates_meet_the_budget_and_a_coarser_grid_takes_fewer_bits() -> None:
    found = plan_mean(problem(dim=785, colluding=20))
    assert len(found) >= 2
    assert [one.bits_per_party for one in found] == sorted(
        (one.bits_per_party for one in found), reverse=True
    )
    for one in found:
        assert isinstance(one.estimator, ModularSumMean)
        assert one.guarantee is not None
        assert one.alone is not None
        assert epsilon_of(one.estimator.event(100, TrustModel.AGGREGATE), 1e-5) <= 1
        assert 0.99 <= one.guarantee.epsilon <= 1 < one.alone.epsilon
    bits = int(found[0].bits_per_party) - 1
    (cheaper,) = plan_mean(problem(dim=785, colluding=20, bits=bits), points=1)
    assert cheaper.bits_per_party <= bits


def test_a_quorum_counts_fewer_shares() -> None:
    whole, quorum, same = (
        plan_mean(problem(colluding=c, n_min=t), points=1)[0] for c, t in ((0, None), (10, 90), (20, None))
    )
    assert quorum.mse == same.mse
    assert quorum.mse == pytest.approx(whole.mse * 100 / 80, rel=1e-3)
    assert "sums signed" in quorum.note
    assert "sums signed" not in same.note


@pytest.mark.parametrize("points", [1, 3])
def test_measured_errors_are_those_predicted(points: int) -> None:
    asked = problem(dim=65, n=10, colluding=2)
    for one in plan_mean(asked, points=points):
        seen = measure(one, asked, trials=200, seed=4)
        assert abs(seen.mse - one.mse) <= z_bound(1) * seen.standard_error + 0.01 * one.mse


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"colluding": 99}, "colluding must leave 2 honest parties in every sum, got 99 of at least 100"),
        ({"colluding": 100}, "colluding must leave 2 honest parties in every sum, got 100 of at least 100"),
        ({"n": 1}, "colluding must leave 2 honest parties in every sum, got 0 of at least 1"),
        ({"colluding": -1}, "colluding must be a whole number >= 0, got -1"),
        ({"n_min": 101}, "n_min must be a whole number from 2 to 100, got 101"),
        ({"n_min": 55, "colluding": 10}, r"n_min must be above \(n \+ colluding\) / 2 = 55, got 55"),
        ({"n": 201, "n_min": 200}, "n must be at most 200 where parties may drop out of a sum, got 201"),
        ({"trust": "local", "colluding": 1}, "for trust 'aggregate' only, got trust 'local'"),
        ({"trust": "shuffle", "n_min": 9}, "for trust 'aggregate' only, got trust 'shuffle'"),
        ({"neighbours": "add-remove"}, "neighbours"),
    ],
)
def test_questions_without_an_answer_are_refused(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        problem(**facts)


def test_without_delta_there_is_no_noise_for_sums() -> None:
    with pytest.raises(BudgetError, match="no mechanism meets epsilon = 1, delta = 0 under trust aggregate"):
        plan_mean(problem(budget=PrivacyBudget(1.0)))
    assert plan_mean(problem(budget=PrivacyBudget(1.0)), infeasible=True)


def test_a_budget_of_much_is_met_with_the_least_noise_that_is_priced() -> None:
    """Coarser grids than that of three steps a share have no proof: the grid decides."""
    (one, *_) = plan_mean(problem(n=100_000, dim=1, budget=PrivacyBudget(50.0, 1e-5)))
    assert isinstance(one.estimator, ModularSumMean)
    assert one.estimator.std >= 3


def test_sums_lie_between_the_two_references() -> None:
    asked = problem(dim=64, colluding=20)
    best, others = plan_mean(asked)[0], {one.name: one.mse for one in references(asked)}
    assert others["central Gaussian"] < best.mse < others["local Gaussian"] / 70
