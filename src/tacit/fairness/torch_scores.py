"""Any PyTorch module as scores of classes: `tacit[torch]`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tacit.errors import TacitError, check_choice, check_count, install_extra
from tacit.numerics import Array

__all__ = ["TorchScores", "network_scores"]


class TorchScores:
    """The scores of a module, for `FairProblem`: parameters are one flat array, as for a linear model.

    A fairness penalty is a cost per class and record, so that one backward pass through the sum of slopes
    times scores is the whole gradient: no gradient of a single record is made. Records go through the module
    in chunks.

    Args:
        module: Takes a tensor of shape (b, ...) and returns scores, shape (b, classes), of each record by
            itself; it is left in evaluation mode. Layers that mix records, or draw, would make the gradient
            that of another function.
        classes: m >= 2.
        chunk: Records that go through the module at once.
        device: Where the module is and where records go.

    Attributes:
        size: Number of parameters that need a gradient.
        classes: m.

    Raises:
        TacitError: The extra `tacit[torch]` is not installed.
        ParameterError: A number out of range.
    """

    def __init__(self, module: Any, classes: int, *, chunk: int = 4096, device: str = "cpu") -> None:
        self.classes = check_count("classes", classes, low=2)
        self._chunk = check_count("chunk", chunk)
        self._torch = _torch()
        self._device = self._torch.device(device)
        self.module = module.to(self._device).eval()
        self._parameters = [one for one in module.parameters() if one.requires_grad]
        self.size = sum(one.numel() for one in self._parameters)
        self._start = self._flat(self._parameters)

    def start(self) -> Array:
        """Return the parameters that the module came with, shape (size,)."""
        return self._start.copy()

    def load(self, theta: Array) -> Any:
        """Return the module with these parameters, shape (size,)."""
        self._torch.nn.utils.vector_to_parameters(self._tensor(theta), self._parameters)
        return self.module

    def scores(self, theta: Array, X: Array) -> Array:
        """Return the scores, shape (n, classes), float64."""
        self.load(theta)
        with self._torch.no_grad():
            parts = [self.module(records).double().cpu().numpy() for records in self._chunks(X)]
        return np.concatenate(parts) if parts else np.empty((0, self.classes))

    def pull(self, theta: Array, X: Array, slopes: Array) -> Array:
        """Return the gradient in theta of the sum of slopes times scores, shape (size,)."""
        self.load(theta)
        total = np.zeros(self.size)
        first = 0
        for records in self._chunks(X):
            said = self.module(records)
            weights = self._tensor(slopes[first : first + len(said)])
            found = self._torch.autograd.grad((said * weights).sum(), self._parameters)
            total += self._flat(found)  # chunks are added in float64
            first += len(said)
        return total

    def _chunks(self, X: Array) -> Any:
        """Yield records as tensors."""
        for first in range(0, len(X), self._chunk):
            yield self._tensor(np.ascontiguousarray(X[first : first + self._chunk]))

    def _tensor(self, values: Array) -> Any:
        """Return numbers as the module takes them."""
        return self._torch.as_tensor(values, dtype=self._parameters[0].dtype, device=self._device)

    @staticmethod
    def _flat(tensors: Any) -> Array:
        """Return tensors as one flat array, float64."""
        return np.concatenate([one.detach().double().cpu().numpy().ravel() for one in tensors])


def network_scores(
    kind: str, *, channels: int, side: int, classes: int, rng: np.random.Generator, chunk: int = 4096
) -> TorchScores:
    """Return a small network for square images, each a row of channels * side * side numbers.

    Args:
        kind: "mlp", layers of 300 and 100, or "lenet-5", two convolutions of 5 x 5 and layers of 120 and 84;
            both with rectifiers.
        channels: Of an image.
        side: Pixels of one, 16 or more for "lenet-5".
        classes: m >= 2.
        rng: Draws the first parameters, uniform within 1 / sqrt(inputs of the layer).
        chunk: As for `TorchScores`.

    Raises:
        TacitError: The extra `tacit[torch]` is not installed.
        ParameterError: No such network, or a number out of range.

    Reference:
        LeCun, Bottou, Bengio and Haffner (1998) for LeNet-5; Lowy (2023), section 5.4.
    """
    check_choice("kind", kind, ["mlp", "lenet-5"])
    check_count("channels", channels)
    check_count("side", side, low=16 if kind == "lenet-5" else 1)
    torch = _torch()
    nn = torch.nn
    if kind == "mlp":
        widths, first = (channels * side * side, 300, 100), []
    else:
        left = ((side - 4) // 2 - 4) // 2  # of a side, behind two convolutions that halve it
        widths = (16 * left * left, 120, 84)
        first = [
            nn.Unflatten(1, (channels, side, side)),
            nn.Conv2d(channels, 6, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        first += [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    hidden = [layer for a, b in itertools.pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())]
    module = nn.Sequential(*first, *hidden, nn.Linear(widths[-1], classes))
    with torch.no_grad():
        for layer in module:
            if hasattr(layer, "weight"):
                most = layer.weight[0].numel() ** -0.5
                for part in (layer.weight, layer.bias):
                    part.copy_(torch.as_tensor(rng.uniform(-most, most, tuple(part.shape))))
    return TorchScores(module, classes, chunk=chunk)


def _torch() -> Any:
    """Return PyTorch, which only this file imports."""
    try:
        import torch
    except ImportError as error:
        raise TacitError(f"scores of a PyTorch module need it; {install_extra('torch')}.") from error
    return torch
