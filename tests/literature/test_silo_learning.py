"""The formulas of Lowy (2023) against numbers worked out apart, and against the exact accountant."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.literature import (
    PaperProblem,
    accelerated_erm_parameters,
    experiment_batch,
    experiment_noise_std,
    least_batch,
    local_noise_std,
    minibatch_noise_std,
    minibatch_parameters,
    one_pass_noise_std,
    one_pass_parameters,
    paper_parameters,
    user_level_budget,
)
from tacit.numerics import strongly_convex_schedule
from tacit.privacy import Event, Gaussian, PrivacyBudget, Repeat, Sampled, calibrate, epsilon_of

N, ROUNDS = 1238, 35
DELTA = 1 / N**2
TABLE = [
    # epsilon, K, Theorem 104, experiments, sampled batches of K, full batches, cost of the experiments' noise
    (0.75, 91, 1.70439, 0.06801, 0.06430, 0.05388, 0.70),
    (1.5, 128, 0.85220, 0.03401, 0.03557, 0.02830, 1.60),
    (3.0, 181, 0.42610, 0.01700, 0.01989, 0.01501, 3.81),
    (6.0, 256, 0.21305, 0.00850, 0.01119, 0.00811, 9.35),
    (12.0, 362, 0.10652, 0.00425, 0.00629, 0.00450, 23.2),
    (18.0, 444, 0.07102, 0.00283, 0.00448, 0.00325, 39.1),
]
"""Appendix B.1.10.1 of Lowy (2023): n = 1238, R = 35, delta = 1/n^2, L = 1; values to 0.5 %."""


def sampled(multiplier: float, batch: int) -> Event:
    """All rounds of batches without replacement."""
    return Repeat(Sampled(Gaussian(multiplier), batch / N), ROUNDS)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"epsilon={row[0]}")
def test_the_table_of_noises(row: tuple[float, int, float, float, float, float, float]) -> None:
    epsilon, batch, theorem, experiments, calibrated, full, cost = row
    budget = PrivacyBudget(epsilon, DELTA)
    assert experiment_batch(N, epsilon, rounds=ROUNDS) == batch
    assert minibatch_noise_std(N, budget, rounds=ROUNDS) == pytest.approx(theorem, abs=5e-6)
    noise_std = experiment_noise_std(N, budget, rounds=ROUNDS)
    assert noise_std == pytest.approx(experiments, abs=5e-6)
    least = calibrate(lambda z: sampled(z, batch), budget) * 2 / batch
    assert least == pytest.approx(calibrated, rel=0.005)
    whole = calibrate(lambda z: Repeat(Gaussian(z), ROUNDS), budget) * 2 / N
    assert whole == pytest.approx(full, rel=0.005)
    assert epsilon_of(sampled(noise_std * batch / 2, batch), DELTA) == pytest.approx(cost, rel=0.01)
    assert theorem > least > whole  # the theorem is sound, and full batches need the least noise


@pytest.mark.parametrize(("epsilon", "cost"), [(0.75, 1.66), (1.5, 26.7), (3.0, 330), (6.0, 1.9e3)])
def test_the_noise_of_local_steps_is_far_too_small(epsilon: float, cost: float) -> None:
    noise_std = local_noise_std(N, PrivacyBudget(epsilon, DELTA), rounds=ROUNDS, local_steps=443)
    event = Repeat(Sampled(Gaussian(noise_std / 2), 1 / N), ROUNDS * 443)
    assert epsilon_of(event, DELTA) == pytest.approx(cost, rel=0.03)


def test_the_noise_of_one_pass() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    assert one_pass_noise_std(100, budget) == pytest.approx(0.211952, abs=5e-7)
    assert calibrate(Gaussian, budget) * 2 / 100 == pytest.approx(0.0844936, abs=5e-8)
    assert one_pass_noise_std(100, budget, lipschitz=3.0) == pytest.approx(3 * 0.211952, abs=2e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_of_theorem_104_is_sound_from_its_least_batch_on(epsilon: float) -> None:
    budget = PrivacyBudget(epsilon, DELTA)
    batch = least_batch(N, budget, rounds=ROUNDS)
    expected = math.ceil(epsilon * N / (4 * math.sqrt(2 * ROUNDS * math.log(2 / DELTA))))
    assert batch == expected
    for size in (batch, N):
        multiplier = minibatch_noise_std(N, budget, rounds=ROUNDS) * size / 2
        assert epsilon_of(sampled(multiplier, size), DELTA) <= epsilon


def some_problem(**changes: Any) -> PaperProblem:
    facts = {"n": 1000, "silos": 25, "dim": 50, "smoothness": 0.25, "diameter": 10.0, **changes}
    return PaperProblem(budget=facts.pop("budget", PrivacyBudget(1.0, 1e-6)), **facts)


def test_minibatch_sgd_convex() -> None:
    got = minibatch_parameters(some_problem())
    R = math.ceil(0.25 * 10 * 5 * math.sqrt(1000) + min(25_000, 1000**2 * 25 / 50))
    assert got.rounds == R
    slowest = min(1, 1000 * 5 / math.sqrt(R * 50), math.sqrt(25_000 / R))
    assert got.step == pytest.approx(min(4, 10 / math.sqrt(R) * slowest))
    assert got.noise_std == minibatch_noise_std(1000, PrivacyBudget(1.0, 1e-6), rounds=R)
    assert got.batch == least_batch(1000, PrivacyBudget(1.0, 1e-6), rounds=R)


def test_minibatch_sgd_strongly_convex() -> None:
    got = minibatch_parameters(some_problem(mu=0.01, n=100, budget=PrivacyBudget(0.1, 1e-6)))
    logarithm = math.log(0.25 * 100 * 0.01 * 25 * 0.01 * 10_000 / 50)
    assert got.rounds == math.ceil(max(2 * 25 * logarithm, 25 * 0.01 * 10_000 / 50))
    variance = 50 * got.noise_std**2 / 25
    eta = strongly_convex_schedule(a=0.01, g=0.5, r0=100.0, c=variance + 1, T=got.rounds)
    assert got.step == eta


def test_one_pass_convex() -> None:
    got = one_pass_parameters(some_problem())
    size = 0.4**0.4 * 1000**0.6 * (50 * math.log(1e6)) ** 0.2 / 25**0.2
    assert got.batch == math.ceil(size) == 85
    assert got.rounds == 1000 // 85
    assert got.rounds * got.batch <= 1000
    variance = 1 / (25 * 85) + 50 * got.noise_std**2 / 25
    cubic = math.sqrt(2 * 11 * 12 * 13 / 3)
    assert got.step == pytest.approx(max(0.5, math.sqrt(variance) * cubic / 10))


def test_one_pass_strongly_convex() -> None:
    got = one_pass_parameters(some_problem(mu=0.01, gap=5.0, phi=0.5))
    least = min(1000**2 * 25 / (50 * math.log(1e6)), 25_000 / 0.25)
    assert got.batch == math.ceil(1000 / (5 * math.log(0.05 * least)))
    assert got.step == 0


def test_accelerated_erm() -> None:
    got = accelerated_erm_parameters(some_problem())
    assert got.rounds == math.ceil(math.sqrt(0.25 * 10 * 5 * 1000 / math.sqrt(50 * math.log(1e6))))
    assert got.batch == 1000
    strongly = accelerated_erm_parameters(some_problem(mu=0.01))
    assert strongly.rounds == math.ceil(5 * math.log(12.5 * 0.01 * 25 * 1000**2 / 50))


def test_names_lead_to_the_theorems() -> None:
    problem = some_problem()
    assert paper_parameters("minibatch", problem) == minibatch_parameters(problem)
    assert paper_parameters("one-pass", problem) == one_pass_parameters(problem)
    assert paper_parameters("accelerated", problem) == accelerated_erm_parameters(problem)
    with pytest.raises(ParameterError, match=r"method must be one of .*; did you mean 'minibatch'"):
        paper_parameters("minibatches", problem)


def test_a_whole_silo() -> None:
    budget = user_level_budget(PrivacyBudget(0.5, 1e-6), 10)
    assert (budget.epsilon, budget.delta) == (0.05, 2.5e-8)
    # What group privacy makes of it (Lowy 2023, Appendix B.1.3).
    assert 10 * budget.delta * math.exp(9 * budget.epsilon) <= 1e-6
    with pytest.raises(ParameterError, match=r"epsilon must be at most 1 in this theorem, got 1\.5"):
        user_level_budget(PrivacyBudget(1.5, 1e-6), 10)


def test_budgets_outside_the_theorems_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"epsilon must be at most 6\.43775 in this theorem, got 7\.0"):
        minibatch_noise_std(N, PrivacyBudget(7.0, 0.08), rounds=ROUNDS)
    with pytest.raises(ParameterError, match="epsilon must be at most"):
        one_pass_noise_std(10, PrivacyBudget(7.0, 0.5))
    for refuse in (
        lambda b: minibatch_noise_std(N, b, rounds=1),
        lambda b: one_pass_noise_std(10, b),
        lambda b: experiment_noise_std(N, b, rounds=1),
        lambda b: some_problem(budget=b),
    ):
        with pytest.raises(ParameterError, match="delta must be > 0 with Gaussian noise"):
            refuse(PrivacyBudget(1.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n must be a whole number >= 1"),
        ({"silos": 0}, "silos must be a whole number >= 1"),
        ({"dim": 0}, "dim must be a whole number >= 1"),
        ({"smoothness": 0.0}, "smoothness must be a finite number > 0"),
        ({"mu": -1.0}, "mu must be a finite number >= 0"),
        ({"mu": 1.0}, "mu must be at most the smoothness 0.25, got 1.0"),
        ({"gap": 0.0}, "gap must be a finite number > 0"),
        ({"phi": math.nan}, "phi must be a finite number > 0"),
    ],
)
def test_bad_problems_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        some_problem(**changes)
