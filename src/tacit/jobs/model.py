"""A trained model as people use it: tables in, predictions out; kept as JSON, which runs nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import numpy as np
import pandas as pd

from tacit.data import ColumnsSpec, Task, count_unfit, encode_columns
from tacit.data.encoding import check_columns, read_numbers, used_columns
from tacit.errors import DataError, ParameterError, printable
from tacit.jobs.model_file import ModelForm, model_form
from tacit.learning.architecture import Architecture
from tacit.learning.model import FittedModel, LinearModel
from tacit.numerics import Array

__all__ = ["MODEL_FILE", "TrainedModel", "load_model"]

MODEL_FILE: Final = "model.json"
_STATEMENT: Final = "statement.json"
_VERSION: Final = 2
_ROWS: Final = 2**16  # so many records are mapped at once: a long table by its features fills the memory


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedModel:
    """A model with all that it needs to read a table, and where it comes from.

    Everything in it is released or public, and it predicts under the same guarantee as its parameters.

    Attributes:
        fitted: Parameters, bounds of the features, classes or bounds of the target.
        feature_names: d names; "column" for a number, "column=category" for a category.
        columns: Public description of the columns of a table; None where features are given as numbers.
        model: What kind of model it is.
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

    fitted: FittedModel
    feature_names: tuple[str, ...]
    columns: ColumnsSpec | None = None
    model: Architecture = field(default_factory=Architecture)
    run: str = ""
    trust: str = ""
    privacy: str = ""
    statement_digest: str | None = None

    def __repr__(self) -> str:
        return f"TrainedModel(run={self.run!r}, trust={self.trust!r}, features={len(self.feature_names)})"

    def __post_init__(self) -> None:
        if len(self.feature_names) != self.fitted.features.dim:
            raise ParameterError(
                f"feature_names must be {self.fitted.features.dim} names, got {len(self.feature_names)}."
            )

    @property
    def task(self) -> Task:
        """What is predicted."""
        return "regression" if self.fitted.classes is None else "classification"

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
        if self.fitted.classes is None:
            raise AttributeError("a regression has no classes_.")
        return self.fitted.classes

    @property
    def coef_(self) -> Any:
        """Weights by feature: a Series, or a frame with one row per class where there are more than two.

        They belong to features scaled to [-1, 1] within their bounds, or by public records, and so compare
        (of a model without bounds, to features as they are);
        the score of a record is their sum of products with `intercept_` added. A classifier divides it by the
        length of the scaled record, which changes no label of two classes.

        Raises:
            AttributeError: The model is not linear in its features.
        """
        return self._named(self._linear.coef)

    @property
    def intercept_(self) -> Any:
        """The constant of the score: a number, or a Series by class."""
        constant = self._linear.intercept
        return float(constant[0]) if len(constant) == 1 else pd.Series(constant, index=self.classes_)

    @property
    def _linear(self) -> LinearModel:
        """The model, where features have weights."""
        if self.fitted.why_no_weights or not isinstance(self.fitted, LinearModel):
            raise AttributeError(self.fitted.why_no_weights)
        return self.fitted

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
        return self._per_record(X, self.fitted.predict, name="prediction")

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities, shape (n, classes); a frame with the classes as columns for a frame.

        Raises:
            AttributeError: The model has none: a regression, or one of the hinge loss.
        """
        if self.fitted.why_no_probabilities:
            raise AttributeError(self.fitted.why_no_probabilities)
        return self._per_record(X, self.fitted.probabilities, columns=self.classes_)

    def decision_function(self, X: Any) -> Any:
        """Return raw scores: shape (n,) for two classes and regressions, else (n, classes)."""
        many = self.fitted.outputs > 1
        return self._per_record(X, self.fitted.scores, name="score", columns=self.classes_ if many else None)

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
        scores = self._per_record(frame, self.fitted.scores).to_numpy()
        added = {"prediction": self.fitted.predictions_of(scores)}
        if self.fitted.classes is not None and self.fitted.why_no_probabilities:
            added["score"] = scores
        elif self.fitted.classes is not None:
            names = [f"probability_{one}" for one in self.fitted.classes]
            added |= dict(zip(names, self.fitted.probabilities_of(scores).T, strict=True))
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
        form = model_form(
            self.fitted,
            model=self.model,
            columns=self.columns,
            features=self.feature_names,
            run=self.run,
            trust=self.trust,
            privacy=self.privacy,
        )
        return msgspec.json.format(msgspec.json.encode(form), indent=1) + b"\n"

    @classmethod
    def from_json(
        cls, text: str | bytes, *, source: str = "the model", modules: Collection[str] = ()
    ) -> Self:
        """Read a model; nothing in the text is run, and of code that it names only that of `modules`.

        Args:
            text: What `to_json` gave.
            source: What error messages call it, for instance its path.
            modules: Modules of your own that it may be of, each as "package.module:Class".

        Raises:
            DataError: The text is not such a model, of another version, or its parts do not fit together.
        """
        try:
            form = msgspec.json.decode(text, type=ModelForm)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"{source} is not a model of tacit: {printable(str(error))}.") from error
        try:
            return cls(
                fitted=form.fitted(modules),
                feature_names=form.features,
                columns=form.columns,
                model=form.model,
                run=form.run,
                trust=form.trust,
                privacy=form.privacy,
            )
        except ParameterError as error:
            raise DataError(f"{source} is not a model of tacit that can be used: {error}") from error

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


def load_model(path: Path | str, *, modules: Collection[str] = ()) -> TrainedModel:
    """Load a model from a run folder, or from its `model.json` alone.

    A model is JSON, so loading one from a stranger runs nothing of the stranger's. One of a module of your
    own names its code, which is run only where you name it too.

    Args:
        path: The folder, or the file.
        modules: Modules of your own that it may be of, each as "package.module:Class".

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
    model = TrainedModel.from_json(text, source=str(file), modules=modules)
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
