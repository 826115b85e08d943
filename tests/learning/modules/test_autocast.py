"""Layers that compute in bfloat16: what cannot go back in it is found when the objective is made."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import Records, torch_objective

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_thread")

nn = torch.nn
CROSS_ENTROPY = partial(nn.functional.cross_entropy, reduction="none")


class Exact(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """Goes back in single precision only."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.narrow = torch.is_autocast_enabled("cpu")
        return x.clone()

    @staticmethod
    def backward(context: Any, *slopes: Any) -> Any:
        if context.narrow:
            raise RuntimeError("no such kernel")
        return slopes[0]


class Odd(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.say = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return Exact.apply(self.say(x))


def test_attention_goes_one_by_one_where_nothing_else_runs() -> None:
    """`torch.func` does not take it in bfloat16: the first round died with an error of PyTorch."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
    module = nn.Sequential(layer, nn.Flatten(), nn.Linear(20, 3))
    objective = torch_objective(module, CROSS_ENTROPY, shape=(5, 4), autocast=True, chunk=4)
    records = Records.of(np.random.default_rng(0).standard_normal((3, 20)), np.zeros(3))
    assert 0 < np.linalg.norm(objective.clipped_sum(objective.start(), records, 0.1)) <= 0.3


def test_what_does_not_go_back_in_bfloat16_is_refused() -> None:
    assert torch_objective(Odd(), CROSS_ENTROPY).size == 15
    with pytest.raises(ParameterError, match=r"^autocast must be False .* bfloat16: no such kernel\.$"):
        torch_objective(Odd(), CROSS_ENTROPY, autocast=True)
