"""The records that describe a public data set and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

from tacit.data.columns_spec import ColumnsSpec

__all__ = ["DataFile", "DatasetInfo", "PresetInfo"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFile:
    """One file of a data set.

    Attributes:
        name: File name inside the data set's folder.
        sha256: Accepted checksums of the file as read; several where archives differ in time stamps only.
        url: Public address of the source; None where nobody serves this form, so that it is placed by hand.
        member: File to take out when the address is a zip archive.
        recipe: Name of how the source's bytes become this file; None when they are the file.
        header: Names of the columns that the recipe puts in front, or keeps.
        required: False for files that a smaller stand-in exists for.
    """

    name: str
    sha256: tuple[str, ...]
    url: str | None = None
    member: str | None = None
    recipe: str | None = None
    header: str = ""
    required: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetInfo:
    """What is known of a data set without its files.

    Attributes:
        name: What `load` calls it.
        title: One line for people.
        source: Who published it.
        licence: Under which licence.
        page: Public page that describes it.
        task: "classification" or "regression".
        target: What is predicted.
        sensitive: Names of the sensitive attributes that come beside the features.
        rows: Number of records that `load` returns, with all files present.
        n_features: Number of encoded features.
        folder: Folder inside the data home; empty when embedded.
        files: Its files.
        description: Name of the packaged column description; None for images, whose range is known.
        not_features: Described columns that are features on request only.
        embedded: Whether it comes with an installed package and needs no file.
    """

    name: str
    title: str
    source: str
    licence: str
    page: str
    task: str
    target: str
    rows: int
    n_features: int
    sensitive: tuple[str, ...] = ()
    folder: str = ""
    files: tuple[DataFile, ...] = ()
    description: str | None = None
    not_features: tuple[str, ...] = ()
    embedded: bool = False

    @property
    def is_images(self) -> bool:
        """Whether records are the pixels of images."""
        return self.description is None

    @property
    def is_parity(self) -> bool:
        """Whether labels say of digits whether they are odd."""
        return self.name.endswith("odd-even")

    def columns(self) -> ColumnsSpec:
        """Return the public column description; without columns for images."""
        if self.description is None:
            return ColumnsSpec()
        file = resources.files("tacit.data") / "columns" / f"{self.description}.toml"
        return ColumnsSpec.from_toml(file.read_bytes(), source=f"the description of {self.name}")


@dataclass(frozen=True, kw_only=True, slots=True)
class PresetInfo:
    """How a data set is prepared for the experiments on fair learning.

    Attributes:
        name: What `load_preset` calls it.
        data_set: Name of the data set that it is made of.
        title: One line for people.
        train: Number of training records, with all files present.
        test: Number of test records.
        n_features: Number of features.
        standardised: Which features have mean 0 and variance 1 in training: "all", the "numbers", or "none".
        test_fraction: Share of records that are held out at random; None for the halves of the source.
        columns: Described columns that are features, in this order; empty for the usual ones.
        sensitive: Names of the sensitive attributes, the main one first.
        against_others: Values of sensitive attributes that are set against all others.
        complete: Whether records with an unknown value, "?", are left out.
    """

    name: str
    data_set: str
    title: str
    train: int
    test: int
    standardised: Literal["all", "numbers", "none"]
    n_features: int = 0
    test_fraction: float | None = None
    columns: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    against_others: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False

    @property
    def coloured(self) -> bool:
        """Whether training images are in colour, and those of the test white."""
        return self.data_set == "mnist"
