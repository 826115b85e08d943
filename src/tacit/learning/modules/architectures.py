"""Modules by name, and modules of one's own, on rows as every model of the library has them."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from tacit.errors import ParameterError, TacitError, check_choice, install_extra

try:
    import torch
    from torch import nn
except ImportError as _error:
    raise TacitError(
        f"this network needs PyTorch; {install_extra('torch')}. 'mlp:64' of one layer and 'scattering' do "
        "without."
    ) from _error

from tacit.learning.architecture import read_shape
from tacit.learning.losses import Loss
from tacit.learning.model import FeatureMap
from tacit.learning.modules.checks import check_module
from tacit.learning.modules.objective import ModuleObjective
from tacit.learning.neural_task import LongFeatures, NeuralTask, OutputShape

__all__ = ["OnRows", "convolutional", "imported", "on_rows", "perceptron", "task_of"]

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "softplus": nn.Softplus,
}
_FILTERS, _SMALL = 16, 4
"""Filters of the convolutional network, and windows below which none is passed over."""

_STRAIGHT, _NEARLY = 0.5, 0.1
"""The share of the features that its linear part gets, and that of the usual weights that it starts from."""


_SQUASHES = {"SigmoidBackward0": "sigmoid", "SoftmaxBackward0": "softmax"}
_RESHAPED = {
    f"{name}Backward{k}" for name in ("View", "Squeeze", "Select", "Alias", "Clone") for k in range(3)
}
_RESHAPED |= {"UnsafeViewBackward0", "ReshapeAliasBackward0", "ToCopyBackward0"}
"""What PyTorch calls steps back, through those that turn scores into probabilities, or only reshape them."""


class OnRows(nn.Module):  # type: ignore[misc]
    """A module as rows call it: without the constant feature, in the shape that it takes.

    Args:
        module: Takes a tensor of shape (n, *shape).
        shape: Of one record.
    """

    def __init__(self, module: nn.Module, shape: Sequence[int]) -> None:
        super().__init__()
        self.module, self.record_shape = module, tuple(shape)
        self.straight_norm = module.straight_norm if isinstance(module, OnWavelets) else math.inf

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return what the module says of rows, shape (n, size + 1)."""
        return self.module(rows[:, :-1].reshape(-1, *self.record_shape))


def perceptron(sizes: Sequence[int], activation: str, *, seed: int) -> nn.Module:
    """Return a perceptron.

    Args:
        sizes: Features, units of each hidden layer, and outputs.
        activation: "relu", "tanh" or "softplus".
        seed: Of its weights.
    """
    act = _ACTIVATIONS[check_choice("activation", activation, _ACTIVATIONS)]
    with _seeded(seed):
        layers = [one for wide, next_one in pairwise(sizes) for one in (nn.Linear(wide, next_one), act())]
    return nn.Sequential(*layers[:-1])


class OnWavelets(nn.Module):  # type: ignore[misc]
    """A linear model of wavelet features, and one layer of filters that bends it.

    Args:
        maps: (channels, windows down, windows across) of the features.
        outputs: Predictions per image.
        activation: Of the filters, as in `perceptron`.
    """

    def __init__(self, maps: tuple[int, int, int], outputs: int, activation: str) -> None:
        super().__init__()
        channels, *sides = maps
        apart = 1 if min(sides) < _SMALL else 2
        self.input_shape, self.straight_norm = maps, _STRAIGHT * math.sqrt(math.prod(maps) + 1)
        self.filters = nn.Conv2d(channels, _FILTERS, 3, stride=apart, padding=1)
        self.act = _ACTIVATIONS[check_choice("activation", activation, _ACTIVATIONS)]()
        shown = math.prod((side - 1) // apart + 1 for side in sides)
        self.bent = nn.Linear(_FILTERS * shown, outputs)
        self.straight = nn.Linear(math.prod(maps), outputs, bias=False)
        with torch.no_grad():
            # Nearly nothing, and not zero: at zero no gradient would come back to the filters.
            self.bent.weight *= _NEARLY
            self.bent.bias *= _NEARLY
            self.straight.weight *= _NEARLY

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return what it says of features, shape (n, channels, down, across)."""
        bent = self.bent(self.act(self.filters(images)).flatten(1))
        return bent + self.straight(images.flatten(1) * _STRAIGHT)


def convolutional(maps: tuple[int, int, int], outputs: int, activation: str, *, seed: int) -> nn.Module:
    """Return a small convolutional network of wavelet features of images.

    It has 13,364 parameters for the digits of MNIST.

    Args:
        maps: (channels, windows down, windows across) of the features.
        outputs: Predictions per image.
        activation: "relu", "tanh" or "softplus".
        seed: Of its weights.

    Reference:
        Tramer and Boneh (2021), "Differentially private learning needs better features (or much more data)",
        Section 4.2, with one layer of filters in the place of their two, beside a linear model.
    """
    with _seeded(seed):
        return OnWavelets(maps, outputs, activation)


def imported(code: str, *, seed: int) -> nn.Module:
    """Return the module of a name, made without arguments; its code is looked for in this folder too.

    Args:
        code: "package.module:Class".
        seed: Of its weights.

    Raises:
        ParameterError: There is no such code, it raises, or it is no class of modules.
    """
    where, _, name = code.partition(":")
    path = sys.path.copy()
    try:
        sys.path.insert(0, "")
        make = getattr(importlib.import_module(where), name)
    except (ImportError, AttributeError) as error:
        cure = "; leave out '.py'" if where.endswith(".py") else ""
        raise ParameterError(f"model must name code that is there, got {code!r}: {error}{cure}.") from error
    except (Exception, SystemExit) as error:
        raise ParameterError(f"model {code!r} does not load: {_said(error)}.") from error
    finally:
        sys.path[:] = path
    # A job may come from another party: nothing else that happens to be installed is called on its word.
    if not (isinstance(make, type) and issubclass(make, nn.Module)):
        raise ParameterError(f"model must name a class of torch.nn.Module, and {code!r} is none.")
    return _made(make, seed, name=code)


def on_rows(
    module: nn.Module, loss: Loss, *, features: int, shape: Sequence[int] | None = None, outputs: int
) -> ModuleObjective:
    """Return what is minimised, on rows whose last feature is the constant.

    Args:
        module: Takes a tensor of shape (n, *shape) and returns one score for each output.
        loss: Of scores.
        features: Length of a row.
        shape: Of one record; None is what the module says in `input_shape`, else one dimension.
        outputs: Scores per record.

    Raises:
        ParameterError: The shape is of another number of features, or the module is none of `torch_objective`
            or says another number of scores.
    """
    check_module(module)
    given = getattr(module, "input_shape", (features - 1,)) if shape is None else shape
    given = read_shape(given)
    if math.prod(given) != features - 1:
        raise ParameterError(
            f"shape must be of the {features - 1} features of a record, got {given}: give it, or say "
            "`input_shape` in the module."
        )
    found = ModuleObjective(OnRows(module, given), loss, shape=(features,))
    if found.outputs != outputs:
        scores = "one score" if outputs == 1 else f"{outputs} scores"
        raise ParameterError(f"module must return {scores} per record, got {found.outputs}.")
    if loss.classifies and (squashed := _squashed(found)):
        raise ParameterError(
            f"module must return scores, and it ends in a {squashed}, which makes them probabilities: leave "
            "it out, the loss has its own."
        )
    return found


def _squashed(objective: ModuleObjective) -> str:
    """Return what turns scores into probabilities at the end of a module; nothing where nothing does.

    Of two classes no probability is below 0, so that all records would be of the second.
    """
    module = objective.module(objective.start())  # in evaluation mode, and where it is computed
    dtype = next(one.dtype for one in module.parameters())
    with torch.enable_grad():
        node = module(torch.zeros((1, objective.features), dtype=dtype)).grad_fn
    while node is not None and node.name() in _RESHAPED:
        node = node.next_functions[0][0]
    return "" if node is None else _SQUASHES.get(node.name(), "")


def task_of(
    network: Any, bounded: FeatureMap, *, shape: Sequence[int] | None, start_seed: int, **facts: Any
) -> NeuralTask:
    """Return the public shape of a module of one's own; its weights are the start.

    Args:
        network: A module, or what makes one without arguments.
        bounded: Features within public bounds.
        shape: Of a record, as the module takes it.
        start_seed: Of weights that are made.
        facts: Of `NeuralTask`: classes, target, sample, loss.

    Raises:
        ParameterError: As in `on_rows`; or `network` is neither.
    """
    module = network if isinstance(network, nn.Module) else _made(network, start_seed, name="module")
    features, predicted = LongFeatures(bounded), OutputShape.of(**facts)
    objective = on_rows(
        module, predicted.loss, features=features.size, shape=shape, outputs=predicted.outputs
    )
    return NeuralTask(features=features, objective=objective, start=objective.start(), **facts)


def _made(make: Any, seed: int, *, name: str) -> nn.Module:
    """Return the module that a class or a function makes, from the weights of a seed."""
    if not callable(make):
        raise ParameterError(f"{name} must be a module of PyTorch, or make one, got {type(make).__name__}.")
    with _seeded(seed):
        try:
            found = make()
        except (Exception, SystemExit) as error:
            raise ParameterError(f"{name} must be made without arguments: {_said(error)}.") from error
    if not isinstance(found, nn.Module):
        raise ParameterError(f"{name} must make a torch.nn.Module, got {type(found).__name__}.")
    return found


def _said(error: BaseException) -> str:
    """Return what the code of a person raises, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split()):.200}"


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw the weights of the block from a seed, and leave the state of PyTorch as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
