"""Layers that do more than their type says: their rows are measured as they are, and added up once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tacit.learning import Records, torch_objective
from tacit.numerics import clip_rows

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_thread")

nn = torch.nn
CROSS_ENTROPY = partial(nn.functional.cross_entropy, reduction="none")


class Again(nn.Module):  # type: ignore[misc, name-defined]
    """A linear layer, one of whose parameters is read outside of it, too."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layer, self.kind = nn.Linear(4, 3), kind

    def forward(self, x: Any) -> Any:
        said = self.layer(x)
        return said + (self.layer.bias if self.kind == "bias" else x @ self.layer.weight.T)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["weight", "bias"])
def test_a_parameter_that_is_read_outside_of_its_layer_counts_once(kind: str, dtype: Any) -> None:
    """A bias was added up with its weight and by itself: the row was a third longer than the clip."""
    torch.manual_seed(0)
    module = Again(kind).double()
    objective = torch_objective(module, CROSS_ENTROPY, shape=(4,))
    assert objective._network.others == [f"layer.{kind}"]
    rng = np.random.default_rng(0)
    records = Records.of(rng.standard_normal((6, 4)), rng.integers(3, size=6).astype(np.float64))
    w, rows = objective.start(), []
    for x, y in zip(records.X, records.y, strict=True):
        loss = CROSS_ENTROPY(module(torch.tensor(x[None])), torch.tensor([int(y)])).sum()
        found = torch.autograd.grad(loss, list(module.parameters()))
        rows.append(np.concatenate([one.numpy().ravel() for one in found]))
    for radius in (0.1, 1e6):
        expected = clip_rows(np.stack(rows), radius).sum(axis=0)
        found = objective.clipped_sum(w, records, radius, dtype)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
