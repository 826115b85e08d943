"""From the bytes that a source publishes to the registered file: headers added, columns selected.

A recipe only rewrites; whether the result is right is decided by the registered checksum, and a download that
does not match it is refused. The catalogue has the header of each file. Adult, German credit and Communities
follow the published forms; for COMPAS the serialization of numbers is assumed to be that of pandas.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

__all__ = ["RECIPES", "Recipe", "adult", "communities", "compas", "german"]

Recipe = Callable[[bytes, str], bytes]
"""From the source's bytes and the registered header to the file."""


def adult(raw: bytes, header: str) -> bytes:
    """Drop the comment and blank lines of `adult.data` or `adult.test`, pack the separators, add a header."""
    lines = [line for line in raw.decode("ascii").splitlines() if line and not line.startswith("|")]
    return _with_header(header, [line.replace(", ", ",") for line in lines])


def communities(raw: bytes, header: str) -> bytes:
    """Add a header to `communities.data`."""
    return _with_header(header, raw.decode("ascii").splitlines())


def german(raw: bytes, header: str) -> bytes:
    """Add a header to `german.data` and write the class as 1 good, 0 bad (the source has 1 good, 2 bad)."""
    lines = [line.rstrip() for line in raw.decode("ascii").splitlines()]
    return _with_header(header, [line[:-1] + "0" if line.endswith(" 2") else line for line in lines])


def compas(raw: bytes, header: str) -> bytes:
    """Keep fourteen columns of `compas-scores-two-years.csv`, without names, birth dates and case numbers."""
    import pandas as pd  # which `tacit data list` does not need

    frame = pd.read_csv(io.BytesIO(raw), low_memory=False)
    return frame[header.split(",")].to_csv(index=False, lineterminator="\n").encode()


def _with_header(header: str, lines: list[str]) -> bytes:
    """Return the lines under a header, each ended by a newline."""
    return ("\n".join([header, *lines]) + "\n").encode("ascii")


RECIPES: Final[dict[str, Recipe]] = {
    "adult": adult,
    "communities": communities,
    "compas": compas,
    "german": german,
}
"""Recipes by the names that the catalogue has for them."""
