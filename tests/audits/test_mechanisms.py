"""Attacks on mechanisms and mean estimators: right ones stand, half the noise is caught."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tacit.audits import MECHANISMS, Audit, audit, audit_mean, audit_randomizer, mean_target, mechanism_target
from tacit.errors import BudgetError, ParameterError, UnknownNameError
from tacit.means import (
    ESTIMATORS,
    AdditiveMean,
    AnyNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Message,
    NoNoise,
    Round,
)
from tacit.numerics import Array
from tacit.privacy import Neighbours, NonPrivate, PrivacyBudget, PureDP, Relation, TrustModel
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

SURE = 1 - FALSE_ALARM
BUDGET = PrivacyBudget(1.0, 1e-5)
LOCAL, CENTRAL, SHUFFLE = TrustModel.LOCAL, TrustModel.CENTRAL, TrustModel.SHUFFLE
OF_VALUES = {"krr": "krr:5", "levels": "levels:20"} | {
    name: f"{name}:20" for name in ("bh", "hr", "oue", "rappor", "rhr", "ss")
}
PURE = {"laplace", "discrete-laplace", "2rr", "krr:2", "bandit", *OF_VALUES.values()}


def attacked(name: str, *, factor: float = 1.0, confidence: float = SURE, trust: TrustModel = LOCAL) -> Audit:
    target = mechanism_target(name, BUDGET, noise_factor=factor, trust=trust)
    rng = simulated(1, "audit", name)
    return audit(target.run, (target.event, BUDGET.delta), runs=400_000, confidence=confidence, rng=rng)


# Named mechanisms

NAMES = [*(OF_VALUES.get(name, name) for name in MECHANISMS), "krr:2"]


@pytest.mark.parametrize("name", NAMES)
def test_a_right_mechanism_stands_and_half_the_noise_is_caught(name: str) -> None:
    right, broken = attacked(name), attacked(name, factor=0.5)
    assert right.claimed_epsilon == pytest.approx(1.0, abs=1e-4)
    assert not right.refuted
    assert broken.refuted
    # The attack is strong: most of the claim is found.
    assert attacked(name, confidence=0.95).empirical_epsilon_lower > (0.97 if name in PURE else 0.55)


def test_central_trust_is_attacked_where_the_server_adds_the_noise() -> None:
    assert not attacked("additive", trust=CENTRAL).refuted
    assert attacked("additive", factor=0.5, trust=CENTRAL).refuted


def test_randomized_response_on_two_values_is_the_binary_one() -> None:
    def rates(name: str) -> list[float]:
        run = mechanism_target(name, PrivacyBudget(1.0)).run
        return [float(np.mean(run(w, 200_000, simulated(2, "rates")) > 0)) for w in (True, False)]

    truth = 1 / (1 + math.exp(-1))
    assert rates("2rr") == rates("krr:2") == pytest.approx([truth, 1 - truth], abs=6e-3)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gausian", "did you mean 'gaussian'"),
        ("krr", "must be krr:B with B from 2"),
        ("krr:1", "must be krr:B with B from 2"),
        ("krr:x", "must be krr:B with B from 2"),
        ("2rr:3", "must be krr:B with B from 2"),
        ("bh", "must be bh:B with B from 2"),
        ("oue:1", "must be oue:B with B from 2"),
    ],
)
def test_unknown_mechanisms_are_refused(name: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        mechanism_target(name, BUDGET)


def test_what_cannot_be_calibrated_is_refused() -> None:
    with pytest.raises(BudgetError, match="pure privacy"):
        mechanism_target("gaussian", PrivacyBudget(1.0))
    with pytest.raises(ParameterError, match="noise_factor must be a finite number > 0, got 0"):
        mechanism_target("gaussian", BUDGET, noise_factor=0)
    with pytest.raises(UnknownNameError):
        mechanism_target("", BUDGET)


# Randomizers


def test_a_randomizer_with_inputs_of_any_shape() -> None:
    """Laplace noise on both coordinates, L1 distance 2: the sum of clipped coordinates is the ratio."""

    def sample(x: Array, size: int, rng: np.random.Generator) -> Array:
        return x + rng.laplace(size=(size, 2))

    inputs = (np.ones(2), np.zeros(2))
    for claim, refuted in ((2.0, False), (1.2, True)):
        found = audit_randomizer(
            sample,
            lambda reports: np.clip(reports, 0, 1).sum(axis=1),
            (PureDP(claim), 0.0),
            inputs=inputs,
            runs=200_000,
            confidence=SURE,
            rng=simulated(3, "audit"),
        )
        assert found.refuted is refuted


# Mean estimators

NOISES: list[Callable[[float], AnyNoise]] = [
    GaussianNoise,
    LaplaceNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
]


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("noise", NOISES)
def test_means_stand_under_every_relation_and_half_the_noise_is_caught(
    noise: Callable[[float], AnyNoise], trust: TrustModel, relation: Relation
) -> None:
    def mean(z: float) -> AdditiveMean:
        return AdditiveMean(dim=1, noise=noise(z), trust=trust, neighbours=Neighbours(relation))

    rng = simulated(4, "audit")
    right = audit_mean(mean(1.5), 1e-3, radius=0.3, runs=100_000, confidence=SURE, rng=rng)
    assert not right.refuted
    assert right.empirical_epsilon_lower > 0.35 * right.claimed_epsilon
    target = mean_target(mean(0.75), radius=0.3)
    broken = audit(target.run, (right.event, 1e-3), runs=100_000, confidence=SURE, rng=rng)
    assert broken.refuted


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("noise", [GaussianNoise(1.0), DiscreteLaplaceNoise(1.0, steps=4)], ids=["g", "dl"])
def test_all_at_once_and_one_by_one_have_one_law(noise: AnyNoise, trust: TrustModel) -> None:
    mean = AdditiveMean(dim=3, noise=noise, trust=trust)

    def decoded(messages: list[Message]) -> float:
        return float(mean.decode(messages, facts, rng=noisy)[0])

    facts, noisy = Round(n=3, radius=2.0), simulated(5, "decode")
    fast, slow = mean_target(mean, n=3, radius=2.0), mean_target(mean, n=3, radius=2.0, score=decoded)
    for there in (True, False):
        first, second = (t.run(there, 2400, simulated(5, "audit")) for t in (fast, slow))
        assert stats.ks_2samp(first, second).pvalue > FALSE_ALARM
        # Power: noise of 1.5 times the size would be seen.
        middle = float(np.median(first))
        assert stats.ks_2samp(middle + 1.5 * (first - middle), second).pvalue < FALSE_ALARM


def test_an_observer_behind_the_shuffler_sees_no_senders() -> None:
    mean = AdditiveMean(dim=2, noise=GaussianNoise(1.0))
    seen: list[list[Message]] = []

    def score(messages: list[Message]) -> float:
        seen.append(messages)
        return float(sum(m.payload[0] for m in messages))

    found = audit_mean(mean, 1e-3, trust=SHUFFLE, n=3, score=score, runs=400, rng=simulated(6, "audit"))
    assert not found.refuted
    assert found.attack == "score of the messages"
    assert {len(messages) for messages in seen} == {3}
    assert all(m.sender is None for messages in seen for m in messages)
    # The first party's message is not always the first.
    assert len({int(np.argmax([m.payload[0] for m in messages])) for messages in seen}) == 3


def test_nothing_is_claimed_where_the_server_adds_noise_and_messages_are_seen() -> None:
    mean = AdditiveMean(dim=1, noise=GaussianNoise(1.0), trust=CENTRAL)
    target = mean_target(mean, trust=LOCAL)
    assert isinstance(target.event, NonPrivate)
    found = audit_mean(
        AdditiveMean(dim=1, noise=NoNoise()), 0.0, runs=10_000, confidence=SURE, rng=simulated(7, "audit")
    )
    assert found.claimed_epsilon == math.inf
    assert found.empirical_epsilon_lower > 5
    assert not found.refuted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 1}, "n must be a whole number >= 2, got 1"),
        ({"radius": 0.0}, "radius must be a finite number > 0"),
    ],
)
def test_bad_rounds_are_refused(options: dict[str, float], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        mean_target(AdditiveMean(dim=1, noise=GaussianNoise(1.0)), **options)  # type: ignore[arg-type]


def test_an_unknown_name_is_refused_with_every_name_once() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'additive'") as refused:
        mechanism_target("aditive", PrivacyBudget(1.0))
    (named,) = re.findall(r"must be one of (.*), got 'aditive'", str(refused.value))
    assert sorted(named.split(", ")) == sorted({*MECHANISMS, *ESTIMATORS})
