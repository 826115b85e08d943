"""The form in which a model is kept: JSON with a version, which runs nothing."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import version
from typing import Final

import msgspec
import numpy as np

from tacit.data import ColumnsSpec, Value
from tacit.data.encoding import feature_names
from tacit.errors import ParameterError
from tacit.learning.architecture import Architecture
from tacit.learning.images import ImageMap
from tacit.learning.loss_choice import LogLink, LossChoice
from tacit.learning.model import FeatureMap, FittedModel, LinearModel, RowMap, Scaling
from tacit.learning.neural_task import LongFeatures
from tacit.learning.raw_features import RawFeatures

__all__ = ["ModelForm", "model_form"]

VERSION: Final = 2


class ModelForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The JSON of a model, see `tacit.jobs.TrainedModel`.

    Attributes:
        version: Of this form.
        tacit: Version of the package that trained it.
        run: Name of the run.
        trust: Trust model.
        privacy: The guarantee in a sentence.
        columns: Description of the table's columns, or null.
        features: d names.
        lower: d public lower bounds.
        upper: d public upper bounds.
        unit_rows: Whether rows are divided by their norms.
        scaling: How features are scaled; left out where that follows from their bounds.
        loss: What was minimised; left out for the logistic loss of classes and the squared loss of numbers.
        link: What makes predictions of scores, where that is no scaling to the target's bounds: those of
            "poisson" are unit * e^score, at most `most`. Left out for all other losses.
        raw: Whether features and the target of a regression are as they are, without bounds, beside a
            constant feature 1; left out where they are not.
        classes: Labels, at least two; null for a regression.
        target: Bounds of a regression's target; null for a classifier, and for a target without bounds.
        weights: d + 1 rows, one number for each output; the constant's is the last. None of a model that is
            not linear in the features.
        model: What else it is; left out for a linear model.
        law: Of images: what is made of pixels before the model sees them, with a version; else left out.
        parameters: Of what else it is, in the order of its objective; none of a linear model.
    """

    version: int
    tacit: str
    run: str
    trust: str
    privacy: str
    columns: ColumnsSpec | None
    features: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    unit_rows: bool
    classes: tuple[Value, ...] | None
    target: tuple[float, float] | None
    weights: tuple[tuple[float, ...], ...]
    scaling: Scaling | None = None
    loss: LossChoice | None = None
    link: LogLink | None = None
    raw: bool = False
    model: Architecture = Architecture()
    law: str = ""
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ParameterError(
                f"version must be {VERSION}, got {self.version!r}: use the tacit that wrote it, which "
                "can also export it as ONNX; to train again would spend again"
            )
        bounds = 0 if self.raw else len(self.features)
        if not bounds == len(self.lower) == len(self.upper):
            raise ParameterError(
                "features, lower and upper must be equally many; the last two none where features are raw."
            )
        linear = self.model.is_plain
        if len(self.weights) != (len(self.features) + 1 if linear else 0) or (linear and self.parameters):
            raise ParameterError(
                "weights must be one row more than features, and parameters none, of a linear model; of "
                "another, weights must be none."
            )
        if self.columns is not None and feature_names(self.columns.columns) != self.features:
            raise ParameterError("features must be those that the columns are encoded as.")
        if self.raw and (self.unit_rows, self.scaling, self.classes, self.target) != (
            False,
            None,
            None,
            None,
        ):
            raise ParameterError("raw features go with a regression without bounds, unit_rows and scaling.")
        if self.raw and not linear:
            raise ParameterError("raw features go with a linear model.")
        if not self.raw and (self.classes is None) == (self.target is None):
            raise ParameterError("one of classes and target must be given, and the other null.")
        if self.target is not None and not self.target[0] <= self.target[1]:
            raise ParameterError(f"target must be a pair (low, high) with low <= high, got {self.target!r}.")
        if self.classes is not None and len({str(one) for one in self.classes}) < max(len(self.classes), 2):
            raise ParameterError("classes must be two or more, and distinct as text.")
        chosen = self.loss or LossChoice.default(classifies=self.classes is not None)
        chosen.check(classes=len(self.classes or ()), target=self.target)
        if (chosen.name == "poisson") != (self.link is not None):
            raise ParameterError("link must be given for the loss 'poisson', and for no other.")
        outputs = len(self.classes) if self.classes is not None and len(self.classes) > 2 else 1
        if any(len(row) != outputs for row in self.weights):
            raise ParameterError(f"weights must hold {outputs} numbers for each feature.")

    def fitted(self, modules: Collection[str] = ()) -> FittedModel:
        """Return the parameters with what maps features.

        Args:
            modules: Modules whose code may be run, each as "package.module:Class".

        Raises:
            ParameterError: The parts do not fit together, or the model is of another module, or of pixels
                that another tacit filtered otherwise.
        """
        classes = None if self.classes is None else np.array(self.classes)
        if self.raw:
            w = np.array(self.weights, dtype=np.float64).reshape(-1)
            raw = RawFeatures(dim=max(len(self.features), 1))
            return LinearModel(features=raw, w=w, loss=self.loss, link=self.link)
        if self.model.code and self.model.code not in modules:
            raise ParameterError(
                f"model is of the module {self.model.code!r}, whose code would be run: if you trust it, name "
                f"it as one of modules, or with --module {self.model.code}"
            )
        bounded = FeatureMap(
            lower=np.array(self.lower, dtype=np.float64),
            upper=np.array(self.upper, dtype=np.float64),
            unit_rows=self.unit_rows,
            scaling=self.scaling,
        )
        task = self.model.task(bounded, classes=classes, target=self.target, loss=self.loss)
        if self.law != task.features.law:
            raise ParameterError(
                f"law must be {task.features.law!r} of the model {str(self.model)!r}, got {self.law!r}: "
                "pixels were filtered otherwise where it was trained; use the tacit that wrote it"
            )
        w = np.array(self.parameters or self.weights, dtype=np.float64).reshape(-1)
        if w.shape != (task.objective.size,):
            raise ParameterError(f"parameters must be {task.objective.size} numbers, got {w.size}.")
        return task.model(w)


def _bounded(features: RowMap) -> FeatureMap | None:
    """Return the bounds and the scaling that a map of features goes by; None where there are none."""
    match features:
        case FeatureMap():
            return features
        case LongFeatures(of=within):
            return _bounded(within)
        case ImageMap():
            return FeatureMap(lower=features.lower, upper=features.upper)
        case _:
            return None


def model_form(
    fitted: FittedModel,
    *,
    model: Architecture,
    columns: ColumnsSpec | None,
    features: tuple[str, ...],
    run: str,
    trust: str,
    privacy: str,
) -> ModelForm:
    """Return the form of a model; arguments as the attributes of `TrainedModel`."""
    bounded = _bounded(fitted.features)
    linear = fitted if isinstance(fitted, LinearModel) and model.is_plain else None
    return ModelForm(
        version=VERSION,
        tacit=version("tacit"),
        run=run,
        trust=trust,
        privacy=privacy,
        columns=columns,
        features=features,
        lower=() if bounded is None else tuple(bounded.lower.tolist()),
        upper=() if bounded is None else tuple(bounded.upper.tolist()),
        unit_rows=bounded is not None and bounded.unit_rows,
        scaling=None if bounded is None else bounded.scaling,
        raw=bounded is None,
        loss=None if fitted.chosen.is_default else fitted.chosen,
        link=fitted.link,
        classes=None if fitted.classes is None else tuple(fitted.classes.tolist()),
        target=fitted.target,
        weights=() if linear is None else tuple(map(tuple, linear.weights.tolist())),
        model=model,
        law=fitted.features.law,
        parameters=() if linear is not None else tuple(fitted.w.tolist()),
    )
