"""Which model, as a person names it: "linear", "scattering", "mlp:64", "cnn", or a module of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, Self

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count, shown
from tacit.learning.band_pass import BandPassFeatures
from tacit.learning.images import image_shape
from tacit.learning.loss_choice import LossChoice
from tacit.learning.model import FeatureMap
from tacit.learning.networks import Activation, NetworkObjective
from tacit.learning.neural_task import LongFeatures, NeuralTask, OutputShape
from tacit.learning.public import PublicSample
from tacit.learning.scattering import ScatteringFeatures
from tacit.learning.task import LinearTask
from tacit.numerics import Array

__all__ = ["MODELS", "PIXELS", "Architecture", "read_shape"]

MODELS: Final = (
    "linear",
    "linear@28x28",
    "linear@pixels",
    "scattering",
    "scattering:2",
    "mlp:64",
    "mlp:64,32",
    "mlp:64@28x28",
    "cnn",
    "package.module:Class",
)
"""Models by the names that people type, such as."""

PIXELS: Final = "pixels"
"""What they type for the shape of images that are to be seen as any other numbers."""

_STRETCH: Final = 2.0
"""How much longer filtered images are than other rows (docs/theory/defaults.md)."""

Kind = Literal["linear", "scattering", "mlp", "cnn", "module"]


class Architecture(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is trained: what it makes of features, and what of these. Public, and the same for all parties.

    Attributes:
        kind: "linear"; "scattering": a linear model of fixed wavelet features of images; "mlp": a perceptron;
            "cnn": a small convolutional network of wavelet features; "module": a class of one's own.
        hidden: Units of each hidden layer of "mlp", the first one first.
        activation: Of "mlp" and "cnn".
        order: Of "scattering": 1 or 2.
        image: (height, width), or (channels, height, width), of images that the features are the pixels of; a
            linear model and a perceptron then see `BandPassFeatures`. () is square images for "scattering"
            and "cnn", and none for others.
        code: Of "module": "package.module:Class", a module of PyTorch that is made without arguments.
    """

    kind: Kind = "linear"
    hidden: tuple[int, ...] = ()
    activation: Activation = "relu"
    order: int = 1
    image: tuple[int, ...] = ()
    code: str = ""

    def __post_init__(self) -> None:
        for side in self.image:
            check_count("image", side)
        for units in self.hidden:
            check_count("hidden", units)
        check_count("order", self.order, high=2)
        if self.image and self.kind == "module":
            raise ParameterError(f"image must be left out for a module, got {self.image}.")
        if self.image and len(self.image) not in (2, 3):
            raise ParameterError(
                f"the shape of images must be (height, width), or channels first, got {self.image}."
            )
        if (self.kind == "mlp") != bool(self.hidden) or (self.kind == "module") != bool(self.code):
            raise ParameterError(f"model {self.kind!r} must have what is its own, and nothing else.")

    @classmethod
    def of(cls, text: str, *, argument: str = "model") -> Self:
        """Read a name.

        Args:
            text: As in `MODELS`; "@pixels", of a linear model or a perceptron, sees images as any numbers.
            argument: What it was given as, for the message.

        Raises:
            ParameterError: It names no model.
        """
        if not isinstance(text, str):
            raise ParameterError(
                f"{argument} must be a name that looks like one of {', '.join(MODELS)}, got {shown(text)}."
            )
        name, at, shape = text.partition("@")
        sides = shape.split("x")
        if shape == PIXELS and name.partition(":")[0] in ("linear", "mlp"):
            return cls.of(name, argument=argument)
        if at and _are_counts(sides) and len(sides) in (2, 3):
            found = cls.of(name, argument=argument)
            if found.kind != "module":
                return found.of_images(tuple(map(int, sides)))
        kind, _, rest = text.partition(":")
        sizes = rest.split(",")
        alone: Kind
        for alone in ("linear", "scattering", "cnn"):
            if text == alone:
                return cls(kind=alone)
        if kind == "scattering" and rest in ("1", "2"):
            return cls(kind="scattering", order=int(rest))
        if kind == "mlp" and _are_counts(sizes):
            return cls(kind="mlp", hidden=tuple(map(int, sizes)))
        named = [*kind.split("."), rest]
        if kind not in ("linear", "scattering", "mlp", "cnn") and rest and all(map(str.isidentifier, named)):
            return cls(kind="module", code=text)
        raise ParameterError(f"{argument} must look like one of {', '.join(MODELS)}, got {shown(text)}.")

    def of_images(self, shape: tuple[int, ...]) -> Self:
        """Return the same model of images of a shape."""
        return msgspec.structs.replace(self, image=shape)

    def __str__(self) -> str:
        name = self.code or self.kind
        if self.kind == "mlp":
            name = f"mlp:{','.join(map(str, self.hidden))}"
        if self.kind == "scattering" and self.order > 1:
            name = f"scattering:{self.order}"
        return f"{name}@{'x'.join(map(str, self.image))}" if self.image else name

    @property
    def is_plain(self) -> bool:
        """Whether it is linear in the features themselves."""
        return self.kind == "linear" and not self.image

    @property
    def is_of_images(self) -> bool:
        """Whether features are the pixels of images for it."""
        return bool(self.image) or self.kind in ("scattering", "cnn")

    @property
    def is_linear(self) -> bool:
        """Whether it is linear in what is made of the features."""
        return self.kind in ("linear", "scattering")

    def task(
        self,
        bounded: FeatureMap,
        *,
        classes: Array | None = None,
        target: tuple[float, float] | None = None,
        sample: PublicSample | None = None,
        loss: LossChoice | None = None,
        start_seed: int = 0,
    ) -> LinearTask | NeuralTask:
        """Return the public shape of the model.

        Args:
            bounded: Features within public bounds, as a linear model would have them.
            classes: As in `LinearTask`.
            target: The same.
            sample: The same.
            loss: The same.
            start_seed: Of the public weights that a network starts from.

        Raises:
            ParameterError: The features are no images that the model could be of, or the loss is for other
                labels; there is no such module, or it takes other rows.
            TacitError: It needs PyTorch, which is not there.
        """
        facts: dict[str, Any] = {"classes": classes, "target": target, "sample": sample, "loss": loss}
        if self.kind == "linear":
            return LinearTask(features=self._band_pass(bounded) if self.image else bounded, **facts)
        if self.kind == "scattering":
            return LinearTask(features=self._wavelets(bounded), **facts)
        features, shape = self._long(bounded), OutputShape.of(**facts)
        if self.kind == "mlp" and len(self.hidden) == 1:
            layer = NetworkObjective(
                loss=shape.loss,
                features=features.size,
                hidden=self.hidden[0],
                outputs=shape.outputs,
                activation=self.activation,
            )
            start = layer.start(start_seed, length=features.length)
            return NeuralTask(features=features, objective=layer, start=start, **facts)
        from tacit.learning.modules import architectures as made

        if self.kind == "mlp":
            sizes = (bounded.dim, *self.hidden, shape.outputs)
            module = made.perceptron(sizes, self.activation, seed=start_seed)
        elif self.kind == "cnn":
            wavelets = self._wavelets(bounded)
            features = LongFeatures(wavelets)
            module = made.convolutional(wavelets.maps, shape.outputs, self.activation, seed=start_seed)
        else:
            module = made.imported(self.code, seed=start_seed)
        objective = made.on_rows(module, shape.loss, features=features.size, outputs=shape.outputs)
        return NeuralTask(features=features, objective=objective, start=objective.start(), **facts)

    def _wavelets(self, bounded: FeatureMap) -> ScatteringFeatures:
        """Return the wavelet features of images of pixels within bounds."""
        shape = self._image(bounded.dim)
        return ScatteringFeatures(lower=bounded.lower, upper=bounded.upper, shape=shape, order=self.order)

    def _long(self, bounded: FeatureMap) -> LongFeatures:
        """Return what a network sees of features within bounds; a perceptron, of images, what says most."""
        if self.kind != "mlp" or not self.image:
            return LongFeatures(bounded)
        return LongFeatures(self._band_pass(bounded), _STRETCH)

    def _band_pass(self, bounded: FeatureMap) -> BandPassFeatures:
        """Return the filtered pixels of images within bounds."""
        shape = self._image(bounded.dim)
        return BandPassFeatures(lower=bounded.lower, upper=bounded.upper, shape=shape)

    def _image(self, pixels: int) -> tuple[int, ...]:
        """Return the shape of images of so many pixels.

        Raises:
            ParameterError: They are of another number of pixels, or none was given and they are not square.
        """
        if not self.image:
            return image_shape(pixels)
        if math.prod(self.image) != pixels:
            raise ParameterError(
                f"shape must be of {pixels:,} pixels, one for each feature, got {self.image} of "
                f"{math.prod(self.image):,} for the model {str(self)!r}."
            )
        return self.image


def _are_counts(texts: list[str]) -> bool:
    """Return whether each is a positive number of at most six digits."""
    return all(one.isdecimal() and len(one) < 7 and int(one) > 0 for one in texts)


def read_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a record, or refuse what is none.

    Raises:
        ParameterError: It is no sequence of whole numbers, or has none.
    """
    if not isinstance(shape, Sequence | np.ndarray) or isinstance(shape, str) or len(shape) == 0:
        raise ParameterError(f"shape must be whole numbers, such as (1, 28, 28), got {shown(shape)}.")
    return tuple(check_count("shape", one) for one in shape)
