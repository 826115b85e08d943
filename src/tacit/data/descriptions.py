"""What is used of a description, and what it leaves open: that is read off all files together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd
from msgspec.structs import replace

from tacit.data.cells import together
from tacit.data.columns_spec import (
    Categorical,
    Column,
    ColumnsSpec,
    Date,
    Ignore,
    Label,
    LabelBounds,
    Unbounded,
    UnboundedLabel,
)
from tacit.data.encoding import infer_classes, infer_column
from tacit.data.unbounded import without_bounds
from tacit.errors import DataError

__all__ = ["Described", "Task", "complete", "described_in_full"]

Task = Literal["classification", "regression"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Described:
    """The description of all that is used of a table.

    Attributes:
        features: By column, in the order of the features.
        target: Of the label.
        inferred: Columns of which it was read off the data.
    """

    features: dict[str, Column]
    target: Label | LabelBounds | UnboundedLabel
    inferred: tuple[str, ...]

    def columns(self, label: str) -> ColumnsSpec:
        """Return it as a description of a table with that label column."""
        return ColumnsSpec(columns=self.features, label=replace(self.target, column=label))


def described_in_full(
    spec: ColumnsSpec, *, label: str, taken: set[str], task: Task, raw: bool = False
) -> Described:
    """Return what a description says by itself, where nothing may be read off any data.

    Args:
        spec: What is publicly known.
        label: Column to predict.
        taken: Columns that are no features, the label among them.
        task: "classification" or "regression".
        raw: Whether numbers stay as they are, without bounds, in a regression, whose label then needs no
            description.

    Raises:
        DataError: The label is not described, or for another task; or a column is without bounds, and
            numbers are not to stay as they are.
    """
    target = _public_target(spec, label=label, task=task)
    if raw:
        target = UnboundedLabel()
    if target is None:
        raise DataError(
            f"label column {label!r} must be described, by its classes or its bounds: nobody reads them off "
            "the data of others."
        )
    return Described(features=_features(spec, taken, label, target, raw=raw), target=target, inferred=())


def complete(
    frames: Mapping[str, pd.DataFrame],
    spec: ColumnsSpec,
    *,
    label: str,
    taken: set[str],
    task: Task,
    raw: bool = False,
) -> Described:
    """Return a description of all features and of the label.

    Args:
        frames: Frames of one data set, by the names of their files.
        spec: What is publicly known.
        label: Column to predict, which all frames have.
        taken: Columns that are no features.
        task: "classification" or "regression".
        raw: Whether numbers stay as they are, without bounds, in a regression. Nothing is read off the data
            then: all that is not described is numbers, whatever its cells hold.

    Returns:
        First the features of `spec`, in the order there, then the other columns, in that of the first frame.

    Raises:
        DataError: A column that is not described is in some of the files only, or nothing can be read off it;
            the label is described for another task; a column is without bounds, and numbers are not to stay
            as they are.
    """
    target = _public_target(spec, label=label, task=task)
    if raw:
        target = UnboundedLabel()
    features = _features(spec, taken, label, target, raw=raw)
    unknown = {
        file: [str(name) for name in frame.columns if name not in features and name not in taken]
        for file, frame in frames.items()
    }
    first, names = next(iter(unknown.items()))
    for file, found in unknown.items():
        for one, other, missing in (
            (first, file, set(names) - set(found)),
            (file, first, set(found) - set(names)),
        ):
            if missing:
                raise DataError(
                    f"{other} has no column {min(missing)!r}, which {one} has and no description names; "
                    'describe it, as kind = "ignore" if it is not needed.'
                )
    if raw and target is not None:
        features |= dict.fromkeys(names, Unbounded())
        return Described(features=features, target=target, inferred=())
    inferred = names if target is not None else [*names, label]
    if target is None:
        target = _infer_target(_all(frames, label), label=label, task=task)
    features |= {name: infer_column(_all(frames, name), column=name) for name in names}
    return Described(features=features, target=target, inferred=tuple(inferred))


def _features(
    spec: ColumnsSpec,
    taken: set[str],
    label: str,
    target: Label | LabelBounds | UnboundedLabel | None,
    *,
    raw: bool,
) -> dict[str, Column]:
    """Return the described features, without bounds where numbers stay as they are."""
    found = {name: column for name, column in spec.columns.items() if name not in taken}
    if raw:
        return {name: without_bounds(column) for name, column in found.items()}
    bare = [name for name, column in found.items() if isinstance(column, Unbounded)]
    if isinstance(target, UnboundedLabel):
        bare.append(label)
    if bare:
        raise DataError(
            f"column {bare[0]!r} is described without bounds, which takes a stated moment (`--moment`): give "
            "one, or describe it as numeric, with bounds."
        )
    return found


def _all(frames: Mapping[str, pd.DataFrame], name: str) -> pd.Series:
    """Return one column of all frames."""
    return together([frame[name] for frame in frames.values()])


def _public_target(
    spec: ColumnsSpec, *, label: str, task: Task
) -> Label | LabelBounds | UnboundedLabel | None:
    """Return the label's public classes or bounds; None where they are not described."""
    public = spec.label if spec.label is not None and spec.label.column in (None, label) else None
    if public is None:
        public = _as_label(spec.columns.get(label), label=label)
    if public is not None and isinstance(public, Label) != (task == "classification"):
        found, fits = ("classes", "classification") if isinstance(public, Label) else ("bounds", "regression")
        raise DataError(
            f"label column {label!r} is described with {found}, which do not fit the task {task}: say "
            f"--task {fits}, or describe it otherwise."
        )
    return public


def _infer_target(values: pd.Series, *, label: str, task: Task) -> Label | LabelBounds:
    """Read the label's classes or bounds off the data."""
    if task == "classification":
        return infer_classes(values, column=label)
    column = infer_column(values, column=label)
    if isinstance(column, Categorical):
        raise DataError(f"label column {label!r} holds text; use the task classification.")
    return LabelBounds(lower=column.lower, upper=column.upper)


def _as_label(column: Column | None, *, label: str) -> Label | LabelBounds | UnboundedLabel | None:
    """Return a feature description as one of a label."""
    if column is None or isinstance(column, Ignore):
        return None
    if isinstance(column, Date):
        raise DataError(f"label column {label!r} is described as dates; describe classes or bounds.")
    if isinstance(column, Categorical):
        if column.merge or column.missing is not None:
            raise DataError(
                f"label column {label!r} is described with merge or missing, which are for features: a label "
                "that is no class counts as zero; leave them out, or write the classes into the table."
            )
        return Label(classes=column.categories) if len(column.categories) > 1 else None
    if isinstance(column, Unbounded):
        return UnboundedLabel()
    return LabelBounds(lower=column.lower, upper=column.upper)
