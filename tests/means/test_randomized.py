from __future__ import annotations

import msgspec
import pytest

from tacit.means import Estimator


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
