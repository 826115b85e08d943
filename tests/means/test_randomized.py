from __future__ import annotations

from typing import Any, get_args

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.means import Estimator, LocalLaplaceMean, Message, PrivUnitMean, Round, ShuffledGaussianMean
from tacit.means.randomized import RandomizedMean
from tacit.privacy import PrivacyBudget, TrustModel

KINDS = [kind for kind in get_args(Estimator) if issubclass(kind, RandomizedMean)]
NOT_SHARED = {"samples": 2, "planes": 2}
"""Arguments without a default that not all kinds take."""


@pytest.mark.parametrize("dim", [2**31 + 1, 2**62, 10**21])
@pytest.mark.parametrize(
    "rest",
    [
        {"estimator": "bitplane", "samples": 2**31 + 1, "local_epsilons": [1.0]},
        {"estimator": "sampled-binary", "samples": 1, "local_epsilon": 1.0},
        {"estimator": "hadamard", "local_epsilon": 1.0},
        {"estimator": "privunit", "local_epsilon": 1.0},
        {"estimator": "hemisphere", "local_epsilon": 1.0},
    ],
)
def test_a_plan_of_absurd_dimension_is_refused_when_it_is_read(dim: int, rest: dict[str, object]) -> None:
    plan = msgspec.json.encode({"dim": dim, **rest})
    with pytest.raises(msgspec.ValidationError, match="dim must be"):
        msgspec.json.decode(plan, type=Estimator)


def calibrated(kind: Any, **fields: Any) -> Any:
    own = NOT_SHARED if "local_epsilons" in kind.__struct_fields__ else {"samples": 2}
    more = {name: value for name, value in own.items() if name == "planes" or name in kind.__struct_fields__}
    return kind.calibrated(**{"dim": 4, "budget": PrivacyBudget(2.0, 1e-6), "n": 500, **more, **fields})


@pytest.mark.parametrize("kind", KINDS)
def test_one_calibration_takes_the_fields_of_every_kind_by_name(kind: Any) -> None:
    given: dict[str, Any] = {"trust": TrustModel.SHUFFLE, "honest_fraction": 0.9, "n_min": 480}
    steps = 8 if kind is ShuffledGaussianMean else 0  # others take 0 for continuous noise
    others = {"on_violation": "error", "lift": False, "steps": steps, "blocks": "padded", "beta": 0.1}
    given |= {name: value for name, value in others.items() if name in kind.__struct_fields__}
    mean = calibrated(kind, **given)
    assert {name: getattr(mean, name) for name in given} == given
    assert mean.dim == 4
    with pytest.raises(TypeError, match="samplez"):
        calibrated(kind, samplez=3)
    level = "local_epsilons" if "local_epsilons" in kind.__struct_fields__ else "local_epsilon"
    with pytest.raises(TypeError, match=level):
        calibrated(kind, **{level: 1.0})


@pytest.mark.parametrize(
    "mean", [LocalLaplaceMean(dim=2, local_epsilon=1.0, steps=0), PrivUnitMean(dim=2, local_epsilon=1.0)]
)
def test_a_message_of_floats_is_about_one_row(mean: Any) -> None:
    this_round = Round(n=2, radius=1.0)
    one, other = mean.encode(np.eye(2), this_round, party=0, rng=np.random.default_rng(0))
    assert mean.decode([one, other], this_round).shape == (2,)
    both = Message(payload=np.concatenate([one.payload, other.payload]))
    with pytest.raises(ParameterError, match="a message must hold rows of 2 finite numbers"):
        mean.decode([both], this_round)
