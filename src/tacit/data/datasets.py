"""Public data sets by name, encoded with public bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.datasets import load_breast_cancer, load_digits

from tacit.data.columns_spec import ColumnsSpec, Label, LabelBounds, Value
from tacit.data.encoding import Array, check_columns, encode_columns, encode_label
from tacit.data.fetch import fetch, verify_file
from tacit.data.info import DatasetInfo
from tacit.data.readers import READERS, Source, read_idx
from tacit.data.registry import data_home, describe
from tacit.data.splits import Indices
from tacit.errors import DataError, ParameterError, check_choice

__all__ = ["Dataset", "load"]

_FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Dataset:
    """A data set in memory.

    Attributes:
        name: Its name.
        X: Shape (n, d), float64: pixels in [0, 1], table columns in [-1, 1].
        y: Shape (n,): int64 positions in `classes`, or float64 targets scaled to [-1, 1] for regression.
        feature_names: d names.
        feature_columns: d names of the columns that the features come from.
        classes: The label's values by position; empty for regression.
        label_bounds: Bounds that regression targets were scaled from (see `unscale`), else None.
        columns: Description of the label and of the columns that the features come from; None for images.
        sensitive: Sensitive attributes as text, each of shape (n,).
        groups: Shape (n,), the digit or class for `split_by_pairs`; None where there is none.
        persons: Shape (n,), whose record it is; None when every record is another person's.
        train: Training records of the source's own split; None where it has none.
        test: Test records of that split.
        notes: What an output must say of the data, such as a stand-in for missing files.
    """

    name: str
    X: Array
    y: Array | NDArray[np.int64]
    feature_names: tuple[str, ...]
    feature_columns: tuple[str, ...]
    classes: tuple[Value, ...]
    label_bounds: tuple[float, float] | None = None
    columns: ColumnsSpec | None = None
    sensitive: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    groups: NDArray[np.int64] | None = None
    persons: NDArray[np.int64] | None = None
    train: Indices | None = None
    test: Indices | None = None
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.X.shape[0])

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def subset(self, records: ArrayLike) -> Dataset:
        """Return some of the records as a data set without halves.

        Args:
            records: Integer indices, in the order wanted.

        Returns:
            A data set with copies of these records.

        Raises:
            ParameterError: `records` are not indices of this data set.
        """
        index = np.asarray(records)
        if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
            raise ParameterError(
                f"records must be a vector of integers, got {index.dtype} of shape {index.shape}."
            )
        if index.size and not (index.min() >= 0 and index.max() < self.n):
            raise ParameterError(f"records must be from 0 to {self.n - 1}.")
        return replace(
            self,
            X=self.X[index],
            y=self.y[index],
            sensitive={name: values[index] for name, values in self.sensitive.items()},
            groups=None if self.groups is None else self.groups[index],
            persons=None if self.persons is None else self.persons[index],
            train=None,
            test=None,
        )


def load(
    name: str,
    *,
    home: Path | None = None,
    columns: Sequence[str] | None = None,
    download: bool = True,
    verify: bool = True,
) -> Dataset:
    """Load a data set by name.

    Files are looked for in `<home>/<folder>/<file>`. For MNIST and Fashion-MNIST without their training files
    the 10,000 test images stand in, 8,000 to train and 2,000 to test, and `notes` says so.

    Args:
        name: One of `names()`.
        home: Data home; None for `data_home()`.
        columns: Described columns to use as features, in this order; None for the usual ones (Lowy
            2023, Chapter 5: for Adult neither race, gender nor native-country). For tables only.
        download: Fetch files that are not there.
        verify: Refuse files whose checksum is not the registered one.

    Returns:
        The data set, encoded with public bounds; the records of the training half come first.

    Raises:
        UnknownNameError: There is no such data set, or it describes no such column.
        ParameterError: `columns` is given for images.
        DataError: Files are missing, cannot be fetched or are not the registered ones.

    Example:
        >>> digits = load("digits-odd-even")
        >>> digits.X.shape, digits.classes
        ((1797, 64), ('even', 'odd'))
    """
    info = describe(name)
    if columns is not None and info.is_images:
        raise ParameterError(f"columns cannot be chosen for the images of {name}.")
    folder = (data_home() if home is None else home) / info.folder
    _provide(info, folder, download=download, verify=verify)
    if name.startswith("digits"):
        bunch = load_digits()
        return _images(info, bunch.data / 16.0, bunch.target)
    if name in ("mnist", "mnist-odd-even", "fashion-mnist"):
        return _idx_images(info, folder)
    if name == "breast-cancer":
        bunch = load_breast_cancer()
        diagnosis = np.asarray(bunch.target_names)[bunch.target]
        frame = pd.DataFrame(bunch.data, columns=[str(feature) for feature in bunch.feature_names])
        return _tabular(info, Source(frame=frame.assign(target=diagnosis)), columns)
    return _tabular(info, READERS[name](folder), columns)


def _provide(info: DatasetInfo, folder: Path, *, download: bool, verify: bool) -> None:
    """See to it that the files are there, and are the registered ones."""
    missing = [file.name for file in info.files if file.required and not (folder / file.name).is_file()]
    if missing and not download:
        raise DataError(
            f"the data set {info.name} needs {', '.join(missing)} in {folder}; fetch it, or get it "
            f"from {info.page} and place its files in $TACIT_DATA_HOME/{info.folder}/."
        )
    if missing:
        fetch(info.name, home=folder.parent)
    if verify:
        for file in info.files:
            if (folder / file.name).is_file():
                verify_file(info, file, folder / file.name)


def _idx_images(info: DatasetInfo, folder: Path) -> Dataset:
    """Return an MNIST-like set, from all four files or from the test files alone."""
    halves = {
        half: [folder / file.name for file in info.files if file.name.startswith(half)]
        for half in ("train", "t10k")
    }
    complete = all(path.is_file() for path in halves["train"])
    pairs = [
        [read_idx(path) for path in paths] for half, paths in halves.items() if complete or half == "t10k"
    ]
    if any(images.ndim != 3 or labels.shape != images.shape[:1] for images, labels in pairs):
        raise DataError(f"the images and labels of {info.name} in {folder} do not belong together.")
    images = np.concatenate([pair[0] for pair in pairs])
    labels = np.concatenate([pair[1] for pair in pairs])
    if complete:
        order, n_train = np.arange(len(labels)), len(pairs[0][1])
    else:
        # The stream of default_rng(0): the stand-in split is part of the data set, not of an experiment.
        order, n_train = (
            np.random.Generator(np.random.PCG64(0)).permutation(len(labels)),
            len(labels) * 4 // 5,
        )
    note = "the training images are not there; the test images stand in, split 4:1 into training and test"
    return replace(
        _images(info, images.reshape(len(labels), -1) / 255.0, labels),
        train=np.sort(order[:n_train]).astype(np.int64),
        test=np.sort(order[n_train:]).astype(np.int64),
        notes=() if complete else (note,),
    )


def _images(info: DatasetInfo, X: Array, digits: NDArray[np.integer]) -> Dataset:
    """Return images with pixels in [0, 1] and their digits, or the parity of these, as labels."""
    parity = info.is_parity
    pixels = tuple(f"pixel {i}" for i in range(X.shape[1]))
    groups = digits.astype(np.int64)
    classes: tuple[Value, ...] = ("even", "odd") if parity else tuple(range(10))
    return Dataset(
        name=info.name,
        X=np.ascontiguousarray(X, dtype=np.float64),
        y=groups % 2 if parity else groups.copy(),
        feature_names=pixels,
        feature_columns=pixels,
        classes=_FASHION if info.name == "fashion-mnist" else classes,
        groups=groups,
    )


def _tabular(info: DatasetInfo, source: Source, columns: Sequence[str] | None) -> Dataset:
    """Return a table encoded with the packaged description."""
    spec = info.columns()
    label = spec.label
    if label is None or label.column is None:
        raise DataError(f"the description of {info.name} names no label.")
    chosen = _chosen(info, spec, columns)
    check_columns(source.frame, [*chosen, label.column], role=f"column of {info.name}")
    used = ColumnsSpec(columns={name: spec.columns[name] for name in chosen}, label=label)
    encoded = encode_columns(source.frame, used.columns)
    n, split = len(source.frame), source.n_train
    return Dataset(
        name=info.name,
        X=encoded.X,
        y=encode_label(source.frame[label.column], label, column=label.column),
        feature_names=encoded.names,
        feature_columns=encoded.sources,
        classes=label.classes if isinstance(label, Label) else (),
        label_bounds=(label.lower, label.upper) if isinstance(label, LabelBounds) else None,
        columns=used,
        sensitive=source.sensitive,
        persons=source.persons,
        train=None if split is None else np.arange(split, dtype=np.int64),
        test=None if split is None else np.arange(split, n, dtype=np.int64),
    )


def _chosen(info: DatasetInfo, spec: ColumnsSpec, columns: Sequence[str] | None) -> list[str]:
    """Return the columns to use as features."""
    if columns is None:
        return [name for name in spec.columns if name not in info.not_features]
    for name in columns:
        check_choice(f"column of {info.name}", name, spec.columns)
    if not columns or len(set(columns)) < len(columns):
        raise ParameterError(f"columns must be distinct and at least one, got {list(columns)!r}.")
    return list(columns)
