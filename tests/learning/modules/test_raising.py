"""Modules and losses that raise: at construction in one sentence, at a private record for nobody to see."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import Logistic, Records, torch_objective

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_thread")
nn, functional = torch.nn, torch.nn.functional
BAD = np.isin(np.arange(300), [3, 200])
"""Of 300 records, in chunks of 256."""


class Fragile(nn.Module):  # type: ignore[misc, name-defined]
    """It raises, or leaves, at some records, and warns of others."""

    def forward(self, x: Any) -> Any:
        if bool((x[..., 0] > 100).any()):
            raise ValueError(f"it is {x}")
        if bool((x[..., 0] < -100).any()):
            raise SystemExit(3)
        if bool((x[..., 1] > 2).any()):
            warnings.warn("somebody is above 2", stacklevel=1)
        return x


def fragile_loss(predictions: Any, labels: Any) -> Any:
    """Return squares, of labels 0 and 1 only."""
    if bool(((labels != 0) & (labels != 1)).any()):
        raise KeyError(float(labels.max()))
    return (predictions - labels) ** 2


def network(*first: Any) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(*first, nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1), nn.Flatten(0))


def cases() -> list[Any]:
    probabilities = nn.BCELoss(reduction="none")
    return [
        pytest.param(network(Fragile()), Logistic(), 0, 1e3, id="module-raises"),
        pytest.param(network(Fragile()), Logistic(), 0, -1e3, id="module-exits"),
        pytest.param(network(), fragile_loss, None, 9, id="loss"),
        pytest.param(nn.Sequential(*network(), nn.Sigmoid()), probabilities, None, 9, id="probabilities"),
        pytest.param(nn.Sequential(*network(), nn.Sigmoid()), probabilities, None, -1, id="negative"),
    ]


@pytest.mark.parametrize(("module", "loss", "column", "value"), cases())
def test_a_record_at_which_code_raises_changes_no_row_but_its_own(
    module: Any, loss: Any, column: int | None, value: float
) -> None:
    """To the last bit, in sums of both precisions; and nothing is said of it."""
    objective, rng = torch_objective(module, loss), np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] > 0).astype(np.float64)
    broken, labels = X.copy(), y.copy()
    if column is None:
        labels[BAD] = value
    else:
        broken[BAD, column] = value
    w, v = objective.start(), 1.3 * objective.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before, rows = (objective.gradients(w, Records.of(*one)) for one in ((X, y), (broken, labels)))
        np.testing.assert_array_equal(rows[~BAD], before[~BAD])
        assert before[BAD].any()
        assert not rows[BAD].any()
        one, few = Records.of(broken, labels), Records.of(X[~BAD], y[~BAD])
        for dtype in (np.float64, np.float32):
            near = 1e-12 if dtype is np.float64 else 1e-4
            found, expected = (objective.clipped_sum(w, each, 0.1, dtype) for each in (one, few))
            np.testing.assert_allclose(found, expected, atol=near)
            found, expected = (
                objective.clipped_difference(w, v, each, 0.1, dtype, clip=0.2) for each in (one, few)
            )
            np.testing.assert_allclose(found, expected, atol=near)
        alone = Records.of(broken[BAD], labels[BAD])
        assert not objective.clipped_sum(w, alone, 0.1).any()
        assert not objective.clipped_difference(w, v, alone, 0.1).any()


def test_passes_are_few() -> None:
    """2 f log2(chunk) for f records, and twice the chunk at most."""
    calls = 0

    def counted(predictions: Any, labels: Any) -> Any:
        nonlocal calls
        calls += 1
        return fragile_loss(predictions, labels)

    objective = torch_objective(network(), counted, chunk=64)
    X, y = np.random.default_rng(1).standard_normal((64, 3)), np.zeros(64)
    objective.clipped_sum(objective.start(), Records.of(X, y), 0.1)
    for bad, most in ((0, 1), (1, 1 + 13 + 1), (64, 1 + 2 * 64)):
        y[:bad], calls = 7, 0
        objective.clipped_sum(objective.start(), Records.of(X, y), 0.1)
        assert calls <= most


@pytest.mark.parametrize(
    ("last", "loss"),
    [
        (nn.Sigmoid(), partial(functional.binary_cross_entropy, reduction="none")),
        (
            nn.Identity(),
            lambda p, y: (p - y) * (1 // int((y > 0).all())),
        ),
        (nn.Identity(), nn.MSELoss(reduction="none")),
    ],
    ids=["probabilities", "labels-above-0", "squares"],
)
def test_losses_run_at_values_that_they_are_defined_at(last: Any, loss: Any) -> None:
    objective = torch_objective(nn.Sequential(*network(), last), loss)
    records = Records.of(np.random.default_rng(2).standard_normal((9, 3)), np.ones(9))
    assert objective.clipped_sum(objective.start(), records, 1.0).any()
    assert np.isfinite(objective.value(objective.start(), records)).all()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (partial(functional.binary_cross_entropy, reduction="none"), "^loss binary_.* take .*_logits"),
        (nn.BCELoss(reduction="none"), r"^loss BCELoss does not run .*Sigmoid\(\)\.$"),
        (nn.GaussianNLLLoss(reduction="none"), "^loss GaussianNLLLoss does not run .* 'var'"),
        (lambda p, y: exit(3), "SystemExit: 3"),
        (lambda p, y: 3.0, "got a float"),
        (lambda p, y: ((p - y) ** 2).detach(), "must be real and have a derivative"),
        (lambda p, y: (p - y) * 1j, "must be real and have a derivative"),
        (lambda p, y: (p - y) ** 2 * (1 + y.sum()), "another prediction or label changes"),
    ],
)  # fmt: skip
def test_losses_that_raise_are_refused_by_name(loss: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        torch_objective(network(), loss)
