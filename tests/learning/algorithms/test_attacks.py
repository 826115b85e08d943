"""Every method under every trust that it runs under: whole runs stand, and half the noise is caught."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.federation import Disjoint, Full
from tacit.learning import (
    AcceleratedNoisyMinibatchSGD,
    ClippedACSA,
    ClippedProximalSGD,
    ClippedSGD,
    ClippedSubgradient,
    LanAcceleratedSGD,
    LinearObjective,
    LipschitzSGD,
    Logistic,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyFedSpider,
    NoisyFTRL,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    NoisyProximalPLSVRG,
    NoisyProximalSGD,
    NoisyProximalSVRG,
    NoisySpider,
    NoisyStorm,
    PhasedAcceleratedSGD,
    Settings,
)
from tacit.learning.algorithms import ALGORITHMS
from tacit.numerics import L1, Regularizer, Zero
from tacit.privacy import Relation, TrustModel
from tests.learning.attacks import LOOSE, Canary, canaries, stands_and_half_the_noise_is_caught

LOCAL, CENTRAL, SHUFFLE, AGGREGATE = (
    TrustModel.LOCAL,
    TrustModel.CENTRAL,
    TrustModel.SHUFFLE,
    TrustModel.AGGREGATE,
)
HALVES = Disjoint(rate=0.5)
"""Batches of two rounds that take all units, each once."""
RUNS: dict[str, Any] = {
    "minibatch": NoisyMinibatchSGD(rounds=3),
    "minibatch, one pass": NoisyMinibatchSGD(rounds=2, batch=HALVES),
    "accelerated": AcceleratedNoisyMinibatchSGD(rounds=3),
    "multistage": MultiStageAcceleratedNoisyMinibatchSGD(rounds=8, mu=0.125),
    "local": NoisyLocalSGD(rounds=2, local_steps=2, batch=Full(), step_size=0.1),
    "ftrl": NoisyFTRL(rounds=3, batch=Full()),
    "p-sgd": LipschitzSGD(rounds=2, batch=HALVES),
    "p-gd": LipschitzSGD(rounds=3),
    "lan": LanAcceleratedSGD(rounds=3),
    "lan, one pass": LanAcceleratedSGD(rounds=2, batch=HALVES),
    "phases": PhasedAcceleratedSGD(rounds=6, mu=0.01),
    "spider": NoisySpider(rounds=4, period=2, split=0.6),
    "fed-spider": NoisyFedSpider(rounds=5),
    "mb-psgm": NoisyStorm(rounds=3, beta=0.4, split=0.3, smoothness=1e3),
    "prox-sgd": NoisyProximalSGD(rounds=2),
    "prox-svrg": NoisyProximalSVRG(rounds=4, period=2),
    "prox-pl-svrg": NoisyProximalPLSVRG(rounds=5, period=2, restarts=2, split=0.4),
    "clipped-ac-sa": ClippedACSA(rounds=2),
    "clipped-sgd": ClippedSGD(rounds=2, mu=0.1),
    "clipped-prox-sgd": ClippedProximalSGD(rounds=2),
    "clipped-subgradient": ClippedSubgradient(rounds=3),
}
ELSEWHERE = {
    "diff2": "tests/learning/algorithms/test_storm.py",  # whose rounds are those of SPIDER
    "ce-psgm": "tests/learning/algorithms/test_ce_psgm.py",
    "sign-vote": "tests/learning/algorithms/test_sign_vote.py",
    "whitened": "tests/learning/algorithms/test_whitened.py",
    "preconditioned": "tests/learning/algorithms/test_preconditioned.py",
    "sufficient-statistics": "tests/learning/algorithms/test_preconditioned.py",
    "semi-dp": "tests/learning/algorithms/test_semi_sgd.py",
    "pda": "tests/learning/algorithms/test_mirror_descent.py",
    "cldp-sgd": "tests/learning/algorithms/test_shuffled_reports.py",
    "dss-sgd": "tests/learning/algorithms/test_shuffled_reports.py",
    "semi-ldp": "tests/learning/algorithms/test_semi_local.py",
    "localized": "tests/learning/algorithms/test_localized.py",
    "localized-phases": "tests/learning/algorithms/test_localized.py",
    **dict.fromkeys(
        ("dp-shuffle", "private-public-shuffle", "public-private-shuffle", "interleaved-shuffle"),
        "tests/federation/test_hidden_runs.py",
    ),
    "fed-avg": "tests/learning/personal/test_privacy.py",
    "adaped": "tests/learning/personal/test_privacy.py",
    "output-perturbation": "tests/learning/algorithms/test_perturbation_attacks.py",
    "objective-perturbation": "tests/learning/algorithms/test_perturbation_attacks.py",
}
"""What asks for no mean gradients, or for more than these, is attacked there."""
SIZES = {LOCAL: (48,), CENTRAL: (48,), SHUFFLE: (48, 2, 2), AGGREGATE: (48, 2, 2)}


def settings_with(algorithm: Any, trust: TrustModel, relation: Relation, penalty: Regularizer) -> Settings:
    return Settings(
        objective=LinearObjective(loss=Logistic(), features=48, feature_norm=1.0),
        algorithm=algorithm,
        trust=trust,
        relation=relation,
        budget=LOOSE,
        clip=0.2,
        regularizer=penalty,
    )


def stands_against_canaries(chosen: Settings, sizes: tuple[int, ...]) -> None:
    canary, (there, other) = Canary(), canaries(sizes, chosen.relation)
    statistics = dict.fromkeys(chosen.algorithm.statistics, canary)
    # Whole noise bits may have more noise than the price says, so that it takes more to see half of it.
    runs = 960 if chosen.trust is SHUFFLE else 480
    stands_and_half_the_noise_is_caught(
        chosen, there, other, canary.score, runs=runs, normal=True, statistics=statistics
    )


CASES = [(name, trust) for name, method in RUNS.items() for trust in SIZES if trust in method.trusts]


@pytest.mark.parametrize(("name", "trust"), CASES, ids=lambda case: getattr(case, "value", case))
def test_a_whole_run_stands_and_half_the_noise_is_caught(name: str, trust: TrustModel) -> None:
    penalty = L1(strength=1e-3) if name.startswith("prox") else Zero()
    chosen = settings_with(RUNS[name], trust, Relation.REPLACE_ONE, penalty)
    stands_against_canaries(chosen, SIZES[trust])


@pytest.mark.parametrize("trust", [LOCAL, AGGREGATE])
@pytest.mark.parametrize("name", ["lan", "spider", "prox-svrg"])
def test_a_unit_that_is_left_out_is_hidden_too(name: str, trust: TrustModel) -> None:
    chosen = settings_with(RUNS[name], trust, Relation.ZERO_OUT, Zero())
    stands_against_canaries(chosen, SIZES[trust])


def test_every_algorithm_is_attacked() -> None:
    here = {str(type(method).__struct_config__.tag) for method in RUNS.values()}
    assert here | set(ELSEWHERE) == set(ALGORITHMS)
    assert not here & set(ELSEWHERE)
