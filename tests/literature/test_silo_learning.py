"""The formulas of Lowy (2023) against numbers worked out apart, and against the exact accountant."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tacit.errors import ParameterError
from tacit.literature import (
    experiment_noise_std,
    least_batch,
    local_noise_std,
    minibatch_noise_std,
    one_pass_noise_std,
)
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
    # K of the experiments: n sqrt(epsilon) / (2 sqrt(R)), rounded.
    assert round(N * math.sqrt(epsilon) / (2 * math.sqrt(ROUNDS))) == batch
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


def test_budgets_outside_the_theorems_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"epsilon must be at most 6\.43775 in this theorem, got 7\.0"):
        minibatch_noise_std(N, PrivacyBudget(7.0, 0.08), rounds=ROUNDS)
    with pytest.raises(ParameterError, match="epsilon must be at most"):
        one_pass_noise_std(10, PrivacyBudget(7.0, 0.5))
    noises: list[Callable[[PrivacyBudget], float]] = [
        lambda b: minibatch_noise_std(N, b, rounds=1),
        lambda b: one_pass_noise_std(10, b),
        lambda b: experiment_noise_std(N, b, rounds=1),
    ]
    for refuse in noises:
        with pytest.raises(ParameterError, match="delta must be > 0 with Gaussian noise"):
            refuse(PrivacyBudget(1.0))
