"""The named public data sets and presets, and where their files are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from tacit.data.info import DatasetInfo, PresetInfo
from tacit.errors import check_choice

__all__ = ["DATASETS", "PRESETS", "data_home", "describe", "names", "prepared_names"]


def _records() -> Iterator[DatasetInfo]:
    """Yield the records of the catalogue, and after digits the same images by their parity."""
    file = resources.files("tacit.data") / "catalogue.toml"
    for info in msgspec.toml.decode(file.read_bytes(), type=dict[str, list[DatasetInfo]])["data_sets"]:
        yield info
        if info.target == "digit":
            name, title = f"{info.name}-odd-even", f"{info.title}, odd or even"
            yield replace(info, name=name, title=title, target="parity of the digit")


DATASETS: Final[dict[str, DatasetInfo]] = {info.name: info for info in _records()}
"""Every data set by name."""


def _presets() -> Iterator[PresetInfo]:
    """Yield the presets; what they do not say of features and attributes is as in their data set."""
    file = resources.files("tacit.data") / "presets.toml"
    for preset in msgspec.toml.decode(file.read_bytes(), type=dict[str, list[PresetInfo]])["presets"]:
        data_set = DATASETS[preset.data_set]
        yield replace(
            preset,
            n_features=preset.n_features or data_set.n_features,
            sensitive=preset.sensitive or data_set.sensitive,
        )


PRESETS: Final[dict[str, PresetInfo]] = {preset.name: preset for preset in _presets()}
"""Every preset by name: data sets prepared for the experiments on fair learning."""


def data_home() -> Path:
    """Return the folder that holds the data sets' folders.

    Returns:
        `$TACIT_DATA_HOME` where it is set, else `tacit/data` in the user's cache folder.
    """
    given = os.environ.get("TACIT_DATA_HOME")
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(cache) if cache else Path.home() / ".cache") / "tacit" / "data"


def names() -> list[str]:
    """Return the names of all data sets, sorted."""
    return sorted(DATASETS)


def prepared_names() -> list[str]:
    """Return the names of presets that `load_prepared` takes and that are no data set's, sorted.

    The other tables among the presets have the records and the features of the data set of their name.
    """
    return sorted(one.name for one in PRESETS.values() if one.name not in DATASETS and not one.coloured)


def describe(name: str) -> DatasetInfo:
    """Return what is known of a data set.

    Args:
        name: One of `names()`.

    Returns:
        Its record; no file is read.

    Raises:
        UnknownNameError: There is no such data set; the message suggests the nearest name.

    Example:
        >>> describe("adult").sensitive
        ('gender', 'race')
    """
    check_choice("data set", name, names())
    return DATASETS[name]
