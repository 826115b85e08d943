"""Data sets prepared for the experiments on fair learning: halves, features, groups.

The recipes are those of Lowy (2023), Chapters 5 and 6, and of the code that was published with them;
`presets.toml` says what each one is made of.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.columns_spec import Categorical, ColumnsSpec, Numeric, Value
from tacit.data.datasets import Dataset, load
from tacit.data.encoding import Array
from tacit.data.info import PresetInfo
from tacit.data.registry import DATASETS, PRESETS, data_home, prepared_names
from tacit.data.splits import Indices, train_test_split_groups
from tacit.errors import DataError, ParameterError, check_choice, check_non_negative

__all__ = ["Preset", "load_prepared", "load_preset"]

Scaling = Literal["train", "public"]
"""What features are scaled by: statistics of the training records, or public bounds."""

_CHANNELS: Final = ("red", "green", "blue")
_UNKNOWN: Final = "=?"
_GAP: Final = "OtherPerCap"
"""The feature of Communities that one record lacks."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Preset:
    """A data set in two halves, with sensitive attributes beside the features.

    Attributes:
        name: Its name.
        X_train: Shape (n, d), float64; float32 for colour images, channel by channel.
        y_train: Shape (n,), int64 positions in `classes`.
        sensitive_train: Shape (n, attributes), text; the main attribute is the first column.
        X_test: Shape (n_test, d).
        y_test: Shape (n_test,).
        sensitive_test: Shape (n_test, attributes).
        feature_names: d names.
        sensitive_names: Names of the sensitive attributes.
        classes: The label's values by position.
        persons_train: Shape (n,), whose record it is; None when every record is another person's.
        persons_test: Shape (n_test,), likewise.
        notes: What an output must say of the data, such as a stand-in for missing files.
    """

    name: str
    X_train: NDArray[np.floating]
    y_train: NDArray[np.int64]
    sensitive_train: pd.DataFrame
    X_test: NDArray[np.floating]
    y_test: NDArray[np.int64]
    sensitive_test: pd.DataFrame
    feature_names: tuple[str, ...]
    sensitive_names: tuple[str, ...]
    classes: tuple[Value, ...]
    persons_train: NDArray[np.int64] | None = None
    persons_test: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()


def load_preset(
    name: str,
    *,
    rng: np.random.Generator,
    scaling: Scaling = "train",
    group_split: bool = False,
    colour_noise: float = 0.0,
    home: Path | None = None,
    download: bool = True,
    verify: bool = True,
) -> Preset:
    """Load a data set as it is prepared for an experiment on fair learning.

    Args:
        name: One of `PRESETS`.
        rng: Source of the halves, where the source has none of its own, and of the colours of "color-mnist".
        scaling: "train": mean 0 and variance 1 over the training records, which is a release unless the
            features are public, as where the sensitive attribute alone is protected. "public": numbers
            clipped and scaled to [-1, 1] by bounds that do not come from the data, categories 0 or 1; take
            this where whole records are private.
        group_split: Hold out persons rather than records; for "parkinsons", 42 of whom are in both halves
            otherwise.
        colour_noise: For "color-mnist", the standard deviation of an image's colour around that of its
            digit, in each channel, >= 0; colours are cut to [0, 1].
        home: Data home; None for `data_home()`.
        download: Fetch files that are not there.
        verify: Refuse files whose checksum is not the registered one.

    Returns:
        The two halves. In "color-mnist" a training image has the colour of its digit, drawn uniformly, and as
        its attribute the digit whose colour is nearest to its own; a test image is white.

    Raises:
        UnknownNameError: There is no such preset, or no such scaling.
        ParameterError: An option is given to a preset that has no use for it, or `colour_noise` < 0.
        DataError: Files are missing, cannot be fetched or are not the registered ones.

    Reference:
        Lowy (2023), sections 5.3 and 6.4. Communities has classes cut near its terciles, .09 and .25. Colours
        are cut, and an attribute is a nearest colour, by our choice: a fairness penalty needs groups.
    """
    check_choice("preset", name, PRESETS)
    check_choice("scaling", scaling, get_args(Scaling))
    check_non_negative("colour_noise", colour_noise)
    info = PRESETS[name]
    if colour_noise and not info.coloured:
        raise ParameterError(f"colour_noise is for color-mnist, got {colour_noise!r} for {name}.")
    if group_split and name != "parkinsons":
        raise ParameterError(
            f"group_split is for parkinsons, where persons have several records, not {name}."
        )
    files: dict[str, Any] = {"home": home, "download": download, "verify": verify}
    if info.coloured:
        return _coloured(load(info.data_set, **files), colour_noise, rng)
    data = _prepared(info, **files)
    train, test = _halves(info, data, rng, by_person=group_split)
    X = data.X
    if scaling == "train":
        X = X if info.name != "communities" else _without_gap(data, train, home)
        X = _standardised(X, train, _numbers(data) if info.standardised == "numbers" else slice(None))
    sensitive = pd.DataFrame(dict(data.sensitive))
    return Preset(
        name=name,
        X_train=X[train],
        y_train=data.y[train].astype(np.int64),
        sensitive_train=sensitive.iloc[train].reset_index(drop=True),
        X_test=X[test],
        y_test=data.y[test].astype(np.int64),
        sensitive_test=sensitive.iloc[test].reset_index(drop=True),
        feature_names=data.feature_names,
        sensitive_names=info.sensitive,
        classes=data.classes,
        persons_train=None if data.persons is None else data.persons[train],
        persons_test=None if data.persons is None else data.persons[test],
        notes=data.notes,
    )


def load_prepared(
    name: str, *, home: Path | None = None, download: bool = True, verify: bool = True
) -> Dataset:
    """Load a preset as a data set, as `tacit train --data adult-ch6 --sensitive gender` does.

    Records, features and attributes are those of `load_preset`; features have their public bounds, and halves
    are there where the source has some of its own.

    Args:
        name: One of `prepared_names()`.
        home: Data home; None for `data_home()`.
        download: Fetch files that are not there.
        verify: Refuse files whose checksum is not the registered one.

    Raises:
        UnknownNameError: There is no such preset, or the data set of its name has the same records.
        DataError: Files are missing, cannot be fetched or are not the registered ones.
    """
    check_choice("preset", name, prepared_names())
    return _prepared(PRESETS[name], home=home, download=download, verify=verify)


def _prepared(info: PresetInfo, **files: Any) -> Dataset:
    """Return the records of a table, with the attributes of the preset."""
    data = load(info.data_set, columns=info.columns or None, **files)
    data = _complete(data) if info.complete else data
    return replace(data, name=info.name, sensitive=_sensitive(info, data))


def _halves(
    info: PresetInfo, data: Dataset, rng: np.random.Generator, *, by_person: bool
) -> tuple[Indices, Indices]:
    """Return training and test records: drawn, or the source's own."""
    if info.test_fraction is None:
        return _own_halves(data)
    if by_person and data.persons is not None:
        return train_test_split_groups(data.persons, info.test_fraction, rng)
    order = rng.permutation(data.n).astype(np.int64)
    n_train = data.n - math.ceil(info.test_fraction * data.n)
    return np.sort(order[:n_train]), np.sort(order[n_train:])


def _own_halves(data: Dataset) -> tuple[Indices, Indices]:
    """Return the halves of the source."""
    if data.train is None or data.test is None:
        raise DataError(f"the data set {data.name} has no halves of its own.")
    return data.train, data.test


def _complete(data: Dataset) -> Dataset:
    """Leave out records with an unknown value, and then the categories that no record has."""
    unknown = [name.endswith(_UNKNOWN) for name in data.feature_names]
    known = data.subset(np.flatnonzero(~data.X[:, unknown].any(axis=1)))
    kept = np.flatnonzero(known.X.any(axis=0))
    return replace(
        known,
        X=known.X[:, kept],
        columns=None
        if known.columns is None
        else _with(known.columns, [known.feature_names[i] for i in kept]),
        feature_names=tuple(data.feature_names[i] for i in kept),
        feature_columns=tuple(data.feature_columns[i] for i in kept),
    )


def _with(spec: ColumnsSpec, features: Collection[str]) -> ColumnsSpec:
    """Return a description whose categories are those that are features."""
    columns = {
        name: msgspec.structs.replace(
            column, categories=tuple(one for one in column.categories if f"{name}={one}" in features)
        )
        if isinstance(column, Categorical)
        else column
        for name, column in spec.columns.items()
    }
    return msgspec.structs.replace(spec, columns=columns)


def _numbers(data: Dataset) -> NDArray[np.bool_]:
    """Return which features are numbers rather than categories."""
    spec = {} if data.columns is None else data.columns.columns
    return np.array([isinstance(spec[column], Numeric) for column in data.feature_columns])


def _standardised(X: Array, train: Indices, which: NDArray[np.bool_] | slice) -> Array:
    """Return X with mean 0 and variance 1 over the training records in those columns.

    That numbers come scaled to their public bounds changes nothing: standardising undoes it.
    """
    spread = X[train][:, which].std(axis=0)
    out = X.copy()
    # A category without a training record stays at 0.
    out[:, which] = (X[:, which] - X[train][:, which].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return out


def _without_gap(data: Dataset, train: Indices, home: Path | None) -> Array:
    """Return Communities with the mean of training records in its one gap, not the middle of bounds."""
    folder = (data_home() if home is None else home) / DATASETS["communities"].folder
    column = pd.read_csv(folder / "communities.data", usecols=[_GAP], na_values="?")[_GAP]
    gap, at = column.isna().to_numpy(), data.feature_names.index(_GAP)
    X = data.X.copy()
    X[gap, at] = X[train[~gap[train]], at].mean()
    return X


def _sensitive(info: PresetInfo, data: Dataset) -> dict[str, NDArray[np.str_]]:
    """Return the sensitive attributes, the main one first."""
    columns = {name: data.sensitive[name] for name in info.sensitive}
    for name, value in info.against_others.items():
        columns[name] = np.where(columns[name] == value, value, "other")
    return columns


def _coloured(data: Dataset, noise: float, rng: np.random.Generator) -> Preset:
    """Return digits in colour to train on, and white ones to test on."""
    train, test = _own_halves(data)
    palette = rng.random((len(data.classes), 3))
    own = palette[data.y[train].astype(np.int64)]
    colours = np.clip(own + noise * rng.standard_normal(own.shape), 0.0, 1.0)
    nearest = ((colours[:, None, :] - palette) ** 2).sum(axis=2).argmin(axis=1)
    white = np.ones((len(test), 3))
    return Preset(
        name="color-mnist",
        X_train=_paint(data.X[train], colours),
        y_train=data.y[train].astype(np.int64),
        sensitive_train=pd.DataFrame({"colour": nearest.astype(np.str_)}),
        X_test=_paint(data.X[test], white),
        y_test=data.y[test].astype(np.int64),
        sensitive_test=pd.DataFrame({"colour": np.full(len(test), "white")}),
        feature_names=tuple(f"{channel} {name}" for channel in _CHANNELS for name in data.feature_names),
        sensitive_names=("colour",),
        classes=data.classes,
        notes=data.notes,
    )


def _paint(grey: Array, colours: Array) -> NDArray[np.float32]:
    """Return images in colour, channel by channel, shape (n, 3 * pixels)."""
    images = grey.astype(np.float32)[:, None, :] * colours.astype(np.float32)[:, :, None]
    return np.asarray(images.reshape(len(grey), -1))
