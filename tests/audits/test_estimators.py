"""One attack for every estimator of randomised rows: what is right stands, too little noise is caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tacit.audits import audit, mean_target
from tacit.means import (
    BitplaneMean,
    HadamardMean,
    HemisphereMean,
    LocalLaplaceMean,
    MeanEstimator,
    PrivUnitGMean,
    PrivUnitMean,
    RotatedMean,
    SampledBinaryMean,
)
from tacit.privacy import TrustModel
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

KINDS: dict[str, Callable[[float, Any], MeanEstimator]] = {
    "SampledBinaryMean": lambda level, fields: SampledBinaryMean(samples=1, local_epsilon=level, **fields),
    "BitplaneMean": lambda level, fields: BitplaneMean(samples=1, local_epsilons=(level,), **fields),
    "RotatedMean": lambda level, fields: RotatedMean(samples=1, local_epsilons=(level,), **fields),
    "HadamardMean": lambda level, fields: HadamardMean(local_epsilon=level, **fields),
    "HemisphereMean": lambda level, fields: HemisphereMean(local_epsilon=level, **fields),
    "PrivUnitMean": lambda level, fields: PrivUnitMean(local_epsilon=level, **fields),
    "PrivUnitGMean": lambda level, fields: PrivUnitGMean(local_epsilon=level, **fields),
    "LocalLaplaceMean": lambda level, fields: LocalLaplaceMean(local_epsilon=level, **fields),
}


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.SHUFFLE])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_randomised_one_by_one_stand_and_little_noise_is_caught(kind: str, trust: TrustModel) -> None:
    fields = {"dim": 1, "trust": trust}
    right, weak = (mean_target(KINDS[kind](level, fields)) for level in (1.0, 2.5))
    for target in (right, weak):
        found = audit(
            target.run,
            (right.event, 1e-3),
            runs=2000,
            confidence=1 - FALSE_ALARM,
            rng=simulated(1, "audit", kind),
        )
        assert found.refuted == (target is weak)
