"""What is public of the records of a job: all that a party must know who never sees one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tacit import data
from tacit.data.descriptions import described_in_full
from tacit.data.encoding import feature_names, feature_sources, read_numbers
from tacit.errors import DataError, ParameterError, printable, shown
from tacit.jobs.config import JobConfig
from tacit.learning.algorithms.named import protected
from tacit.learning.public import PublicSample
from tacit.numerics import Array
from tacit.privacy import Unit

__all__ = ["PublicFacts", "facts_of_description", "read_sample"]


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """What is public of the records of a job, and of who holds them.

    Attributes:
        classes: Labels by number; empty for regression.
        target: Bounds of the target in its own units; None for classification, and where it has none.
        lower: Lower bound of the features.
        upper: Upper bound of the features.
        silo_names: Names of the silos, distinct, with what does not print written as an escape.
        sizes: Number of protected units that each silo trains on: records, persons, or 1: itself.
        unit: What is protected.
        feature_names: d names.
        feature_columns: d names of the columns that the features come from.
        columns: Description of the columns and the label that the features come from, inferred parts
            included; None for images.
        public: Whether the records are public too, so that scores and traces reveal nothing.
        notes: What must be said about public data.
        read_off: Columns whose bounds, categories or classes were read off the data.
        description: The file that describes the columns, as it was when it was read, or what it would say;
            None without one.
        assumed: Columns that nothing describes, which hold numbers where there are no bounds.
        sample: Public records that features are scaled by, and that have labels where their file does; None
            without.
    """

    classes: tuple[object, ...]
    target: tuple[float, float] | None
    lower: float
    upper: float
    silo_names: list[str]
    sizes: list[int]
    unit: Unit
    feature_names: tuple[str, ...]
    feature_columns: tuple[str, ...]
    columns: data.ColumnsSpec | None
    public: bool
    notes: tuple[str, ...] = ()
    read_off: tuple[str, ...] = ()
    description: bytes | None = None
    assumed: tuple[str, ...] = ()
    sample: PublicSample | None = None


def facts_of_description(
    job: JobConfig, description: Path, *, silo_names: Sequence[str], sizes: Sequence[int]
) -> PublicFacts:
    """Return what is public of tables that nobody here has, from the description of their columns.

    Whoever holds one of the tables and reads it with the same description finds the same facts.

    Args:
        job: What will run; it names the label, unless the description does.
        description: A file that describes every column in use, and the label.
        silo_names: Of the silos.
        sizes: Their public numbers of protected units.

    Raises:
        DataError: The file is missing, or leaves the label or all features open.
        ParameterError: Nothing names the label.
    """
    spec = data.ColumnsSpec.read(description)
    label = job.label or (None if spec.label is None else spec.label.column)
    if label is None:
        raise ParameterError(f"label must be named by the job or by {description}, got None.")
    person = job.person or spec.person
    taken = {label, *(one for one in (job.silo_column, person) if one is not None)}
    found = described_in_full(spec, label=label, taken=taken, task=job.task, raw=job.stated is not None)
    classes = found.target.classes if isinstance(found.target, data.Label) else ()
    target = found.target if isinstance(found.target, data.LabelBounds) else None
    names = feature_names(found.features)
    if not names:
        raise DataError(f"{description} leaves no column to be a feature; describe at least one.")
    return PublicFacts(
        classes=classes,
        target=None if target is None else (target.lower, target.upper),
        lower=-1.0,
        upper=1.0,
        silo_names=[printable(name) for name in silo_names],
        sizes=list(sizes),
        unit=protected(job.algorithm, persons=person is not None),
        feature_names=names,
        feature_columns=feature_sources(found.features),
        columns=found.columns(label),
        public=False,
        description=description.read_bytes(),
        sample=None if job.public is None else read_sample(Path(job.public), found.columns(label), names),
    )


def read_sample(file: Path, columns: data.ColumnsSpec, names: tuple[str, ...]) -> PublicSample:
    """Read public records, with their labels where the file has such a column.

    They are public, and so is every word about them.

    Args:
        file: The records.
        columns: Description of the features' columns and of the label, whose column it names.
        names: Of the features.

    Raises:
        DataError: They do not fit the description.
    """
    features = columns.columns
    frame = data.read_table(file, numeric=[k for k, v in features.items() if isinstance(v, data.Numeric)])
    try:
        X: Array = data.encode_columns(frame, features).X
        unfit = data.count_unfit(frame, features)
        for column, row in unfit.iterrows():
            if row["missing"] == len(frame) > 0:
                raise DataError(
                    f"column {column!r} has no cell that can be read, so nothing says how to scale it; "
                    "decimal commas?"
                )
            if row["unknown"] or row["outside"]:
                count, what = (
                    (row["unknown"], "of unknown categories")
                    if row["unknown"]
                    else (row["outside"], "outside the bounds")
                )
                raise DataError(
                    f"column {column!r} has {_cells(count)} {what}: public records must fit the description; "
                    "`tacit data check` on their file says more."
                )
        bound = np.ones(X.shape[1])
        y = _labels(frame, columns.label)
        return PublicSample.of(X, lower=-bound, upper=bound, names=names, y=y)
    except DataError as error:
        raise DataError(f"{file}: {error}") from error


def _labels(
    frame: pd.DataFrame, label: data.Label | data.LabelBounds | data.UnboundedLabel | None
) -> Array | None:
    """Return public labels as training has them, shape (m,); None without such a column.

    Raises:
        DataError: One does not fit the description.
    """
    if label is None or label.column is None or label.column not in map(str, frame.columns):
        return None
    cells, column = frame[label.column], label.column
    y = np.asarray(data.encode_label(cells, label, column=column), dtype=np.float64)
    if isinstance(label, data.Label):
        wrong, allowed = y < 0, f"one of {', '.join(map(str, label.classes))}"
    elif isinstance(label, data.UnboundedLabel):
        wrong, allowed = np.isnan(y), "a finite number"
    else:
        told = read_numbers(cells, column=column)
        wrong = ~((label.lower <= told) & (told <= label.upper))
        allowed = f"a number from {label.lower:g} to {label.upper:g}"
    if wrong.any():
        raise DataError(
            f"label column {column!r} has {_cells(wrong.sum())} not of its description, such as "
            f"{shown(str(cells.iloc[int(np.argmax(wrong))]))}: each must be {allowed:.200}. Without the "
            "column, public records only scale features."
        )
    return y


def _cells(count: int) -> str:
    """Return how many cells there are, in words."""
    return f"{count:,} cell{'' if count == 1 else 's'}"
