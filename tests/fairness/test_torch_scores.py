"""A PyTorch module as scores: the same numbers as a linear model, and one backward pass."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError, TacitError
from tacit.fairness import StepSizes, TorchScores, fermi, fermi_exact, network_scores
from tests.fairness.problems import D, problem, slope


def linear(classes: int, chunk: int = 4096) -> TorchScores:
    """Return a linear module without a constant of its own, starting at zeros."""
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(D, classes, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(module.weight)
    return TorchScores(module, classes, chunk=chunk)


def test_a_linear_module_is_the_linear_model() -> None:
    model, of = linear(3, chunk=7), problem(classes=3, groups=3)
    theta = np.random.default_rng(0).standard_normal(model.size)
    np.testing.assert_allclose(model.scores(theta, of.X), of.model.scores(theta, of.X), rtol=1e-12)
    value, gradient = replace(of, model=model).both(theta)
    wanted, slopes = of.both(theta)
    assert value == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(model.start(), np.zeros(3 * D))


def test_a_network_has_the_gradient_of_its_objective_and_is_trained() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(D, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    model = TorchScores(module, 2, chunk=16)
    of = replace(problem(weight=3.0), model=model)
    start = model.start()
    np.testing.assert_allclose(of.both(start)[1], slope(of.value, start), atol=1e-7)
    whole = fermi_exact(of, iterations=60)
    some = fermi(of, steps=StepSizes(0.1), batch_size=6, epochs=60, rng=np.random.default_rng(0))
    for got in (whole, some):
        assert of.value(got.theta) < of.value(start) - 0.05
    assert model.load(whole.theta) is module


def test_one_backward_pass_for_each_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    model, of = linear(2, chunk=20), problem()
    torch = sys.modules["torch"]
    calls: list[int] = []
    grad = torch.autograd.grad

    def counted(*arguments: Any, **more: Any) -> Any:
        calls.append(1)
        return grad(*arguments, **more)

    monkeypatch.setattr(torch.autograd, "grad", counted)
    replace(of, model=model).both(model.start())
    assert len(calls) == 3  # of 60 records


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(TacitError, match=r"`pip install 'tacit\[torch\]'`"):
        TorchScores(None, 2)
    with pytest.raises(ParameterError, match="classes must be a whole number >= 2"):
        TorchScores(None, 1)


@pytest.mark.parametrize("kind", ["mlp", "lenet-5"])
def test_a_small_network_is_drawn_from_its_generator(kind: str) -> None:
    pytest.importorskip("torch")
    made = [
        network_scores(kind, channels=3, side=28, classes=10, rng=np.random.default_rng(seed))
        for seed in (0, 0, 1)
    ]
    starts = [one.start() for one in made]
    assert made[0].scores(starts[0], np.zeros((2, 3 * 28 * 28))).shape == (2, 10)
    assert np.array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[0], starts[2])


def test_networks_that_there_are() -> None:
    with pytest.raises(ParameterError, match="kind"):
        network_scores("vgg", channels=3, side=28, classes=10, rng=np.random.default_rng(0))
