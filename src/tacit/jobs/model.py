"""A trained model as people use it: tables in, predictions out; kept as JSON, which runs nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import numpy as np
import pandas as pd

from tacit.data import ColumnsSpec, Task, Value, count_unfit, encode_columns
from tacit.data.encoding import check_columns, feature_names, read_numbers, used_columns
from tacit.errors import DataError, ParameterError, printable
from tacit.learning.loss_choice import LogLink, LossChoice
from tacit.learning.model import FeatureMap, LinearModel, Scaling
from tacit.learning.raw_features import RawFeatures
from tacit.numerics import Array

__all__ = ["MODEL_FILE", "TrainedModel", "load_model"]

MODEL_FILE: Final = "model.json"
_STATEMENT: Final = "statement.json"
_VERSION: Final = 2
_ROWS: Final = 2**16  # so many records are mapped at once: a long table by its features fills the memory


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedModel:
    """A linear model with all that it needs to read a table, and where it comes from.

    Everything in it is released or public, and it predicts under the same guarantee as its parameters.

    Attributes:
        linear: Parameters, bounds of the features, classes or bounds of the target.
        feature_names: d names; "column" for a number, "column=category" for a category.
        columns: Public description of the columns of a table; None where features are given as numbers.
        run: Name of the run that trained it.
        trust: "local", "aggregate", "shuffle", "central" or "none".
        privacy: What is guaranteed, in one sentence.
        statement_digest: SHA-256 of the statement beside the file that it was loaded from; None without one.

    Example:
        >>> from tacit.jobs import DEMO, Job
        >>> model = Job(msgspec.structs.replace(DEMO, trust="none")).run().results[0].model
        >>> again = TrainedModel.from_json(model.to_json())
        >>> again.classes_.tolist(), again.n_features_in_
        (['even', 'odd'], 64)
        >>> bool(again.coef_["pixel 20"] == model.coef_["pixel 20"])
        True
    """

    linear: LinearModel
    feature_names: tuple[str, ...]
    columns: ColumnsSpec | None = None
    run: str = ""
    trust: str = ""
    privacy: str = ""
    statement_digest: str | None = None

    def __repr__(self) -> str:
        return f"TrainedModel(run={self.run!r}, trust={self.trust!r}, features={len(self.feature_names)})"

    def __post_init__(self) -> None:
        if len(self.feature_names) != self.linear.features.dim:
            raise ParameterError(
                f"feature_names must be {self.linear.features.dim} names, got {len(self.feature_names)}."
            )

    @property
    def task(self) -> Task:
        """What is predicted."""
        return "regression" if self.linear.classes is None else "classification"

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, shape (d,)."""
        return np.array(self.feature_names, dtype=object)

    @property
    def classes_(self) -> Array:
        """Labels in the order of the probabilities.

        Raises:
            AttributeError: The model is a regression, which has none.
        """
        if self.linear.classes is None:
            raise AttributeError("a regression has no classes_.")
        return self.linear.classes

    @property
    def coef_(self) -> Any:
        """Weights by feature: a Series, or a frame with one row per class where there are more than two.

        They belong to features scaled to [-1, 1] within their bounds, or by public records, and so compare
        (of a model without bounds, to features as they are);
        the score of a record is their sum of products with `intercept_` added. A classifier divides it by the
        length of the scaled record, which changes no label of two classes.
        """
        return self._named(self.linear.coef)

    @property
    def intercept_(self) -> Any:
        """The constant of the score: a number, or a Series by class."""
        constant = self.linear.intercept
        return float(constant[0]) if len(constant) == 1 else pd.Series(constant, index=self.classes_)

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns that a table must have."""
        return self.feature_names if self.columns is None else tuple(used_columns(self.columns.columns))

    def encode(self, X: Any) -> Array:
        """Return the features of records, shape (n, d).

        Args:
            X: A frame with the columns that the model was trained on, in any order and with others beside
                them; or n rows of d features, shape (n, d).

        Raises:
            DataError: A column is missing, X has another shape, or holds features that are no finite numbers.
        """
        if isinstance(X, pd.DataFrame):
            if self.columns is not None:
                return encode_columns(X, self.columns.columns).X
            check_columns(X, self.feature_names)
            X = np.column_stack([read_numbers(X[name], column=name) for name in self.feature_names])
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise DataError(f"X must be a frame, or have shape (n, {self.n_features_in_}), got {rows.shape}.")
        if not np.isfinite(rows).all():
            raise DataError("X must hold finite numbers; a frame with described columns may miss some.")
        return rows

    def predict(self, X: Any) -> Any:
        """Return labels, or targets in their own units, shape (n,); a Series for a frame."""
        return self._per_record(X, self.linear.predict, name="prediction")

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities, shape (n, classes); a frame with the classes as columns for a frame.

        Raises:
            AttributeError: The model has none: a regression, or one of the hinge loss.
        """
        if self.linear.why_no_probabilities:
            raise AttributeError(self.linear.why_no_probabilities)
        return self._per_record(X, self.linear.probabilities, columns=self.classes_)

    def decision_function(self, X: Any) -> Any:
        """Return raw scores: shape (n,) for two classes and regressions, else (n, classes)."""
        many = len(self.linear.intercept) > 1
        return self._per_record(X, self.linear.scores, name="score", columns=self.classes_ if many else None)

    def score_table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return new records with what is predicted of them, one row each, in their order.

        Args:
            frame: As in `encode`.

        Returns:
            The columns that the model does not use, such as ids; then "prediction", and for classes
            "probability_<class>" of each, or of the hinge loss, which has none, "score": above 0 is the
            second class.

        Raises:
            DataError: A column is missing, or has the name of one that is added.
        """
        scores = self._per_record(frame, self.linear.scores).to_numpy()
        added = {"prediction": self.linear.predictions_of(scores)}
        if self.linear.classes is not None and self.linear.why_no_probabilities:
            added["score"] = scores
        elif self.linear.classes is not None:
            names = [f"probability_{one}" for one in self.linear.classes]
            added |= dict(zip(names, self.linear.probabilities_of(scores).T, strict=True))
        kept = frame.drop(columns=list(self.used_columns))
        for name in added:
            if name in kept.columns:
                raise DataError(f"the table has a column {name!r} already; rename it: predictions go there.")
        return pd.concat([kept, pd.DataFrame(added, index=frame.index)], axis=1)

    def count_unfit(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Count the cells that the description of the columns has no place for, see `tacit.data.count_unfit`.

        Raises:
            ParameterError: The model has no column description.
        """
        if self.columns is None:
            raise ParameterError("count_unfit needs a model of described columns; this one takes numbers.")
        return count_unfit(frame, self.columns.columns)

    def to_json(self) -> bytes:
        """Return the model as JSON with a version; `from_json` reads it back, bit by bit the same."""
        mapped = self.linear.features
        bounded = mapped if isinstance(mapped, FeatureMap) else None
        form = ModelForm(
            version=_VERSION,
            tacit=version("tacit"),
            run=self.run,
            trust=self.trust,
            privacy=self.privacy,
            columns=self.columns,
            features=self.feature_names,
            lower=() if bounded is None else tuple(bounded.lower.tolist()),
            upper=() if bounded is None else tuple(bounded.upper.tolist()),
            unit_rows=bounded is not None and bounded.unit_rows,
            scaling=None if bounded is None else bounded.scaling,
            raw=bounded is None,
            loss=None if self.linear.chosen.is_default else self.linear.chosen,
            link=self.linear.link,
            classes=None if self.linear.classes is None else tuple(self.linear.classes.tolist()),
            target=self.linear.target,
            weights=tuple(map(tuple, self.linear.weights.tolist())),
        )
        return msgspec.json.format(msgspec.json.encode(form), indent=1) + b"\n"

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "the model") -> Self:
        """Read a model; nothing in the text is run.

        Args:
            text: What `to_json` gave.
            source: What error messages call it, for instance its path.

        Raises:
            DataError: The text is not such a model, of another version, or its parts do not fit together.
        """
        try:
            form = msgspec.json.decode(text, type=ModelForm)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"{source} is not a model of tacit: {printable(str(error))}.") from error
        try:
            return cls(
                linear=form.linear(),
                feature_names=form.features,
                columns=form.columns,
                run=form.run,
                trust=form.trust,
                privacy=form.privacy,
            )
        except ParameterError as error:
            raise DataError(f"{source} is not a model of tacit: {error}") from error

    def save(self, path: Path) -> None:
        """Write the model to a file."""
        path.write_bytes(self.to_json())

    def to_onnx(self) -> bytes:
        """Return the model as an ONNX graph, see `tacit.jobs.onnx_export.to_onnx`; needs `tacit[onnx]`."""
        from tacit.jobs.onnx_export import to_onnx

        return to_onnx(self)

    def _named(self, weights: Array) -> Any:
        """Return weights of shape (outputs, d) under their names."""
        names = pd.Index(self.feature_names, name="feature")
        if len(weights) == 1:
            return pd.Series(weights[0], index=names, name="weight")
        return pd.DataFrame(weights, index=pd.Index(self.classes_, name="class"), columns=names)

    def _per_record(
        self, X: Any, function: Callable[[Array], Array], *, name: str = "", columns: Array | None = None
    ) -> Any:
        """Return a function of the features of every record, named where the records are."""
        n = len(X)
        parts = [function(self.encode(X[start : start + _ROWS])) for start in range(0, max(n, 1), _ROWS)]
        found = np.concatenate(parts)
        if not isinstance(X, pd.DataFrame):
            return found
        if found.ndim == 1:
            return pd.Series(found, index=X.index, name=name)
        return pd.DataFrame(found, index=X.index, columns=columns)


def load_model(path: Path | str) -> TrainedModel:
    """Load a model from a run folder, or from its `model.json` alone.

    A model is JSON, so loading one from a stranger runs nothing of the stranger's.

    Args:
        path: The folder, or the file.

    Returns:
        The model. Beside a statement, it is the model that the statement is about: the digests agree.

    Raises:
        DataError: There is no model, it cannot be read, or is not the one that the statement beside it names.
    """
    path = Path(path)
    file = path / MODEL_FILE if path.is_dir() else path
    try:
        text = file.read_bytes()
        statement = file.with_name(_STATEMENT)
        said = statement.read_bytes() if statement.is_file() else None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise DataError(f"the model {str(file)!r} cannot be read: {reason}.") from error
    model = TrainedModel.from_json(text, source=str(file))
    if said is None or file.name != MODEL_FILE:
        return model
    try:
        named = msgspec.json.decode(said, type=_Digests).digests.get(MODEL_FILE)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"the statement {statement} beside the model cannot be read.") from error
    if named != hashlib.sha256(text).hexdigest():
        raise DataError(f"{file} is not the file that {statement} is about.")
    return replace(model, statement_digest=hashlib.sha256(said).hexdigest())


class _Digests(msgspec.Struct, frozen=True):
    """What is read of a statement: its other parts are for `tacit account verify`."""

    digests: dict[str, str] = {}


class ModelForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The JSON of a model, see `TrainedModel`.

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
        weights: d + 1 rows, one number for each output; the constant's is the last.
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

    def __post_init__(self) -> None:
        if self.version != _VERSION:
            raise ParameterError(
                f"version must be {_VERSION}, got {self.version!r}: use the tacit that wrote it, which "
                "can also export it as ONNX; to train again would spend again"
            )
        bounds = 0 if self.raw else len(self.features)
        if not (len(self.features) == len(self.weights) - 1 and bounds == len(self.lower) == len(self.upper)):
            raise ParameterError(
                "features, all but one of weights, lower and upper must be equally many; the last two none "
                "where features are raw."
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

    def linear(self) -> LinearModel:
        """Return the parameters with what maps features."""
        features: FeatureMap | RawFeatures = RawFeatures(dim=max(len(self.features), 1))
        if not self.raw:
            features = FeatureMap(
                lower=np.array(self.lower, dtype=np.float64),
                upper=np.array(self.upper, dtype=np.float64),
                unit_rows=self.unit_rows,
                scaling=self.scaling,
            )
        classes = None if self.classes is None else np.array(self.classes)
        w = np.array(self.weights, dtype=np.float64).reshape(-1)
        return LinearModel(
            features=features, w=w, classes=classes, target=self.target, loss=self.loss, link=self.link
        )
