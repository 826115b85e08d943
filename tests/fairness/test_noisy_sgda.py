"""Private descent and ascent: a quadratic saddle, its stationary noise, and joint releases on one batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from tacit.errors import ParameterError
from tacit.fairness import NoisySGDA
from tacit.federation import Fixed, Full, InProcess, Poisson, Silo
from tacit.learning.algorithms import Protection
from tacit.means import DiscreteGaussianNoise, GaussianNoise
from tacit.numerics import Array
from tacit.privacy import (
    Compose,
    Gaussian,
    Neighbours,
    Part,
    Relation,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    TrustModel,
    Unit,
    epsilon_of,
)
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM, z_bound

A, B, C = 1.0, 0.7, 1.5
N = 20
SHIFTS = np.random.default_rng(0).standard_normal((N, 1))
SHIFTS -= SHIFTS.mean()


@dataclass(frozen=True)
class Units:
    shifts: Array

    def __len__(self) -> int:
        return len(self.shifts)

    def take(self, index: Any) -> Units:
        return Units(self.shifts.take(index, axis=0))


def descent(units: Units, at: Mapping[str, Array]) -> Array:
    """Of f = a theta^2 / 2 + b theta w - c w^2 / 2 + shift (theta + w), whose shifts add up to 0."""
    return A * at["theta"] + B * at["w"] + units.shifts


def ascent(units: Units, at: Mapping[str, Array]) -> Array:
    return B * at["theta"] - C * at["w"] + units.shifts


def ask_of(method: NoisySGDA, multiplier: float, near: Neighbours | None = None, seed: int = 0) -> Any:
    protection = Protection(
        trust=TrustModel.CENTRAL,
        neighbours=near or Neighbours(),
        noise=GaussianNoise if multiplier else None,
        multiplier=multiplier,
        delta=1e-3,
    )
    silo = Silo(
        Units(SHIFTS),
        {"descent": descent, "ascent": ascent},
        trusts_server=True,
        rng=simulated(seed, "silo"),
    )
    return InProcess([silo], rng=simulated(seed, "server")).open(method.plan(protection))


def method_of(**how: Any) -> NoisySGDA:
    how = {"dims": (1, 1), "clips": (50.0, 50.0), "rounds": 40, "step": 0.2, "dual_step": 0.4, **how}
    return NoisySGDA(**how)


def test_without_noise_it_finds_the_saddle() -> None:
    found = method_of(rounds=120).run(ask_of(method_of(rounds=120), 0.0), np.array([1.0]), np.array([-2.0]))
    np.testing.assert_allclose([found.theta, found.w], 0, atol=1e-9)
    held = method_of().run(
        ask_of(method_of(), 0.0), np.array([1.0]), np.array([2.0]), project=lambda w: np.maximum(w, 0.5)
    )
    assert held.w[0] == 0.5
    assert held.theta[0] == pytest.approx(-B * 0.5 / A, abs=1e-3)


def test_noise_is_the_stationary_one_of_the_linear_recursion() -> None:
    rounds, multiplier, clip = 800, 0.02, 50.0
    method = method_of(rounds=rounds, clips=(clip, clip))
    points: list[Array] = []
    method.run(
        ask_of(method, multiplier),
        np.zeros(1),
        np.zeros(1),
        follow=lambda _t, theta, w: points.append(np.concatenate([theta, w])),
    )
    noise = math.sqrt(2) * multiplier * 2 * clip / N  # half of the budget each
    step = np.array([[1 - 0.2 * A, -0.2 * B], [0.4 * B, 1 - 0.4 * C]])
    law = solve_discrete_lyapunov(step, np.diag([(0.2 * noise) ** 2, (0.4 * noise) ** 2]))
    found = np.cov(np.array(points[50:]).T)
    # Correlation over some five rounds: about 150 independent draws, and 2 variances.
    slack = z_bound(2) * math.sqrt(2 / 100)
    assert 0 < FALSE_ALARM < 1e-6
    np.testing.assert_allclose(np.diag(found), np.diag(law), rtol=slack)


def test_both_means_of_a_round_are_one_release() -> None:
    z, T, n = 1.3, 7, 20
    full = method_of(rounds=T).plan(Protection(trust=TrustModel.CENTRAL, noise=GaussianNoise, multiplier=z))
    assert epsilon_of(full.event([n], TrustModel.CENTRAL), 1e-5) == pytest.approx(
        epsilon_of(Gaussian(z / math.sqrt(T)), 1e-5)
    )
    ((kind, count),) = full.kinds
    assert count == T
    measures: list[Any] = list(kind.measures)
    found = [measure.estimator.noise.noise_multiplier for measure in measures]
    assert found == pytest.approx([z * math.sqrt(2)] * 2)


def test_secret_samples_are_priced_as_one_joint_release() -> None:
    z, T, n = 1.3, 3, 20
    one = Gaussian(z * math.sqrt(2))
    added = Gaussian(z * math.sqrt(2), Neighbours(Relation.ADD_REMOVE))
    cases = [
        (Fixed(size=5), Relation.REPLACE_ONE, Sampled(Compose((one, one)), 5 / n)),
        (
            Poisson(rate=0.25),
            Relation.ADD_REMOVE,
            Sampled(Compose((added, added)), 0.25, Sample.POISSON),
        ),
        (
            # Under replace-one a record is compared with its absence: half of the multiplier 2 C is C.
            Poisson(rate=0.25),
            Relation.REPLACE_ONE,
            Replaced(Compose((Gaussian(2 * z * math.sqrt(2), Neighbours(Relation.ZERO_OUT)),) * 2), 0.25),
        ),
    ]
    for batch, relation, event in cases:
        protection = Protection(
            trust=TrustModel.CENTRAL, neighbours=Neighbours(relation), noise=GaussianNoise, multiplier=z
        )
        plan = method_of(rounds=T, batch=batch).plan(protection)
        found = epsilon_of(plan.event([n], TrustModel.CENTRAL), 1e-5)
        assert found == pytest.approx(epsilon_of(Repeat(event, T), 1e-5), rel=1e-6), batch


def test_samples_hide_no_attribute() -> None:
    near = Neighbours(Relation.REPLACE_ONE, Unit.RECORD, Part.SENSITIVE)
    for batch in (Fixed(size=5), Poisson(rate=0.25)):
        protection = Protection(
            trust=TrustModel.CENTRAL, neighbours=near, noise=DiscreteGaussianNoise, multiplier=1.0
        )
        with pytest.raises(ParameterError, match="sensitive"):
            method_of(batch=batch).plan(protection).event([20], TrustModel.CENTRAL)


def test_rows_are_clipped_and_numbers_checked() -> None:
    method = method_of(clips=(1e-3, 1e-3), rounds=5)
    found = method.run(ask_of(method, 0.0), np.array([100.0]), np.array([0.0]))
    assert found.theta[0] == pytest.approx(100 - 5 * 0.2 * 1e-3)
    wrong: list[dict[str, Any]] = [
        {"rounds": 0},
        {"step": 0.0},
        {"dual_step": -1.0},
        {"clips": (0.0, 1.0)},
        {"dims": (0, 1)},
        {"share": 1.0},
        {"tail": 1.0},
    ]
    for how in wrong:
        with pytest.raises(ParameterError, match=next(iter(how))):
            method_of(**how)
    with pytest.raises(ParameterError, match="shapes"):
        method.run(ask_of(method, 0.0), np.zeros(2), np.zeros(1))
    with pytest.raises(ParameterError, match="trust"):
        method.plan(Protection(trust=TrustModel.SHUFFLE))
    assert method.batch == Full()
