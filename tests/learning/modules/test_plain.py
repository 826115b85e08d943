"""Sequences of linear layers: sums that are written at once are those of rows, to the last bit."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tacit.learning import ModuleObjective, Records, torch_objective

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread")

nn = torch.nn
CROSS_ENTROPY = partial(nn.functional.cross_entropy, reduction="none")
FEATURES, CLASSES = 6, 3


def objective_of(dtype: Any = torch.float32, chunk: int | None = 16) -> ModuleObjective:
    torch.manual_seed(0)
    layers = [
        nn.Linear(FEATURES, 8),
        nn.ReLU(),
        nn.Linear(8, 5, bias=False),
        nn.Tanh(),
        nn.Linear(5, CLASSES),
    ]
    return torch_objective(nn.Sequential(*layers).to(dtype), CROSS_ENTROPY, chunk=chunk)


def records_of(n: int, dtype: Any = np.float32) -> Records:
    rng = np.random.default_rng(n)
    return Records.of(3 * rng.standard_normal((n, FEATURES)).astype(dtype), rng.integers(CLASSES, size=n))


def by_rows(objective: ModuleObjective, records: Records, radius: float) -> Any:
    """The sum as of several silos, which is of rows."""
    nobody = records.take(np.arange(0))
    return objective.clipped_sums(objective.start(), [records, nobody], radius, np.float32)[0]


@pytest.mark.parametrize("radius", [0.0, 0.05, 1.0, 100.0])
def test_what_is_written_at_once_is_the_sum_of_rows_to_the_last_bit(radius: float) -> None:
    for dtype, single in ((torch.float32, np.float32), (torch.float64, np.float64)):
        objective = objective_of(dtype)
        for n in (0, 1, 15, 16, 17, 53):
            records = records_of(n, single)
            written = objective.clipped_sum(objective.start(), records, radius, np.float32)
            np.testing.assert_array_equal(written, by_rows(objective, records, radius))


def test_it_is_written_where_it_can_be_and_by_rows_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.learning.modules.plain import PlainSequence

    objective, said, write = objective_of(), list[bool](), PlainSequence.write

    def noted(*args: Any) -> bool:
        said.append(write(*args))
        return said[-1]

    monkeypatch.setattr(PlainSequence, "write", noted)
    good, bad = records_of(40), records_of(40)
    bad.X[7], bad.X[33] = np.nan, np.inf
    for records, radius in ((good, 1.0), (bad, 1.0), (good, 0.0), (records_of(40, np.float64), 1.0)):
        found = objective.clipped_sum(objective.start(), records, radius, np.float32)
        np.testing.assert_array_equal(found, by_rows(objective, records, radius))
    assert said == [True, True, True, False, False]
    rest = np.delete(np.arange(40), (7, 33))
    total = objective.clipped_sum(objective.start(), bad, 1.0, np.float32)
    np.testing.assert_allclose(
        total, objective.clipped_sum(objective.start(), bad.take(rest), 1.0, np.float32), atol=2e-6
    )


def test_no_row_that_is_written_is_longer_than_the_radius() -> None:
    objective, records = objective_of(chunk=1), records_of(200)
    for radius in (1e-3, 0.3, 1.0):
        sums = [
            objective.clipped_sum(objective.start(), records.take(np.array([k])), radius, np.float32)
            for k in range(len(records))
        ]
        lengths = np.linalg.norm(sums, axis=1)
        assert lengths.max() <= radius  # and nearly reaches it
        assert lengths.max() > radius * (1 - 2e-6)


def test_parameters_in_another_order_are_no_such_sequence() -> None:
    """A bias that was declared before its weight: sums are written weight by weight."""
    torch.manual_seed(0)
    layer, weight = nn.Linear(FEATURES, 4), torch.randn(4, FEATURES)
    del layer.weight
    layer.weight = nn.Parameter(weight)
    module, records = nn.Sequential(layer, nn.Tanh(), nn.Linear(4, CLASSES)), records_of(9)
    objective = torch_objective(module, CROSS_ENTROPY)
    CROSS_ENTROPY(module(torch.from_numpy(records.X)), torch.from_numpy(records.y).long()).sum().backward()
    expected = torch.cat([one.grad.flatten() for one in module.parameters()]).numpy()
    for dtype in (np.float32, np.float64):
        found = objective.clipped_sum(objective.start(), records, 1e3, dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_module_that_has_a_shape_of_records_is_taken_by_what_it_does() -> None:
    class Scaled(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module, self.record_shape = module, (FEATURES - 1,)

        def forward(self, rows: Any) -> Any:
            return 3 * self.module(rows[:, :-1])

    torch.manual_seed(0)
    module, records = Scaled(nn.Linear(FEATURES - 1, CLASSES)), records_of(9)
    objective = torch_objective(module, CROSS_ENTROPY, shape=(FEATURES,))
    expected = objective.gradients(objective.start(), records).sum(axis=0)
    CROSS_ENTROPY(module(torch.from_numpy(records.X)), torch.from_numpy(records.y).long()).sum().backward()
    slopes = torch.cat([one.grad.flatten() for one in module.parameters()]).numpy()
    np.testing.assert_allclose(expected, slopes, rtol=1e-5, atol=1e-5)
    bare = nn.Linear(FEATURES, CLASSES)
    bare.record_shape = (FEATURES,)
    assert torch_objective(bare, CROSS_ENTROPY).size == CLASSES * (FEATURES + 1)
