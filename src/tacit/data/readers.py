"""The files of each data set, read into one shape; missing values and filters by public rules.

The rules are those of Lowy (2023), Chapters 5 and 6, and of the code that was published with them. All of
this is public data: where a rule reads the data (a median), it is not a release.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.registry import describe
from tacit.errors import DataError

__all__ = ["READERS", "Source", "read_idx"]

Texts = NDArray[np.str_]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Source:
    """A data set as a frame.

    Attributes:
        frame: One row per record, label column included.
        sensitive: Sensitive attributes as text.
        n_train: The first records are the source's training half, the others its test half; None: no halves.
        persons: Whose record it is; None when every record is another person's.
    """

    frame: pd.DataFrame
    sensitive: Mapping[str, Texts] = field(default_factory=dict)
    n_train: int | None = None
    persons: NDArray[np.int64] | None = None


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read a gzipped IDX file of unsigned bytes.

    Args:
        path: File as published with MNIST: two zeros, type 8, the number of axes, big-endian sizes, bytes.

    Returns:
        Array of the shape that the file states.

    Raises:
        DataError: The file is no such file, or is cut short.
    """
    try:
        raw = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read as a gzipped IDX file.") from error
    axes = raw[3] if len(raw) >= 4 and raw[:3] == b"\x00\x00\x08" else 0
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(raw[at : at + 4], "big") for at in range(4, start, 4))
    if axes == 0 or len(raw) != start + int(np.prod(shape)):
        raise DataError(f"{path} is no IDX file of unsigned bytes, or is cut short.")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)


def _texts(values: pd.Series, meaning: Mapping[Any, str] | None = None) -> Texts:
    """Return a column as text, its codes replaced by what they mean."""
    return (values if meaning is None else values.map(meaning)).to_numpy(dtype=np.str_)


def _adult(folder: Path) -> Source:
    """Both official halves; '?' stays as a category; the test file ends its classes with a dot."""
    train, test = (pd.read_csv(folder / f"adult.{half}", skipinitialspace=True) for half in ("data", "test"))
    frame = pd.concat([train, test], ignore_index=True)
    frame["income"] = frame["income"].str.rstrip(".")
    sensitive = {name: _texts(frame[name]) for name in ("gender", "race")}
    return Source(frame=frame, sensitive=sensitive, n_train=len(train))


def _compas(folder: Path) -> Source:
    """The usual filter of ProPublica's analysis, and its two large groups."""
    frame = pd.read_csv(folder / "compas-two-years.csv")
    usual = (frame["days_b_screening_arrest"].abs() <= 30) & (frame["is_recid"] != -1)
    usual &= frame["c_charge_degree"].isin(["F", "M"]) & frame["race"].isin(["African-American", "Caucasian"])
    frame = frame[usual].reset_index(drop=True)
    return Source(frame=frame, sensitive={name: _texts(frame[name]) for name in ("race", "sex")})


def _credit_default(folder: Path) -> Source:
    """As published: X2 is the sex."""
    frame = pd.read_csv(folder / "UCI_Credit_Card.csv")
    return Source(frame=frame, sensitive={"sex": _texts(frame["X2"], {1: "male", 2: "female"})})


def _parkinsons(folder: Path) -> Source:
    """The score is cut at 27.576, its median; several records belong to one subject."""
    path = folder / "parkinsons_updrs.data"
    with path.open() as stream:
        separator = "\t" if "\t" in stream.readline() else ","
    frame = pd.read_csv(path, sep=separator)
    persons = frame["subject#"].to_numpy(dtype=np.int64)
    frame["total_UPDRS"] = np.where(frame["total_UPDRS"] > 27.576, "high", "low")
    sensitive = {"sex": _texts(frame["sex"], {0: "male", 1: "female"})}
    return Source(frame=frame, sensitive=sensitive, persons=persons)


def _german(folder: Path) -> Source:
    """The first 800 records train; the personal status tells the gender, and who is single.

    A92 and A95 are female, A93 and A95 single; of a woman in A92 nothing else is known, and A95 never occurs.
    """
    frame = pd.read_csv(folder / "german.data", sep=" ")
    frame["CLASSIFICATION"] = np.where(frame["CLASSIFICATION"] == 1, "good", "bad")
    status = frame["PERSONAL_STATUS_AND_SEX"]
    sensitive = {
        "gender": np.where(status.isin(["A92", "A95"]), "female", "male"),
        "marital": np.where(status.isin(["A93", "A95"]), "single", "not single"),
    }
    return Source(frame=frame, sensitive=sensitive, n_train=800)


def _communities(folder: Path) -> Source:
    """Missing features are the middle of their bounds; attributes are cut at their median."""
    frame = pd.read_csv(folder / "communities.data", na_values="?")
    attributes = describe("communities").sensitive
    sensitive = {name: np.where(frame[name] > frame[name].median(), "high", "low") for name in attributes}
    cut = pd.cut(
        frame["ViolentCrimesPerPop"], [-np.inf, 0.09, 0.25, np.inf], labels=["low", "medium", "high"]
    )
    frame = frame.fillna(0.5).copy()  # one block again: a frame of 128 pieces is slow and warns
    frame["ViolentCrimesPerPop"] = cut.astype(str)
    return Source(frame=frame, sensitive=sensitive)


def _obesity(folder: Path) -> Source:
    """As published."""
    frame = pd.read_csv(folder / "ObesityDataSet_raw_and_data_sinthetic.csv")
    return Source(frame=frame, sensitive={"Gender": _texts(frame["Gender"])})


def _insurance(folder: Path) -> Source:
    """As published."""
    frame = pd.read_csv(folder / "insurance.csv")
    return Source(frame=frame, sensitive={"sex": _texts(frame["sex"])})


READERS: Mapping[str, Callable[[Path], Source]] = {
    "adult": _adult,
    "communities": _communities,
    "compas": _compas,
    "credit-default": _credit_default,
    "german": _german,
    "insurance": _insurance,
    "obesity": _obesity,
    "parkinsons": _parkinsons,
}
"""Readers of the tabular data sets by name; each takes the data set's folder."""
