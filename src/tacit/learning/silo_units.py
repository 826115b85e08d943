"""Which silo holds each record, and the units that each silo has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tacit.data.cells import texts
from tacit.data.tables import person_ids
from tacit.errors import DataError
from tacit.learning.objective import Grouped, Records
from tacit.learning.task import array_of
from tacit.numerics import Array, IntArray

__all__ = ["silo_codes", "silo_units"]


def silo_codes(silos: Any, n: int) -> tuple[list[str], IntArray]:
    """Return the names of silos, and which of them holds each of n records, shape (n,).

    Args:
        silos: Silo of each record, shape (n,); None: all of them are in one silo.
        n: Number of records.

    Raises:
        DataError: Another shape.
    """
    where = np.zeros(n, dtype=np.int64) if silos is None else array_of(silos)
    _check_ids("silos", where, n)
    # Each id by itself: of 19-digit numbers and one 1.5, an array of floats would make one id.
    where = texts(pd.Series(where)) if where.dtype == object else where
    names, codes = np.unique(where, return_inverse=True)
    return [str(name) for name in names], codes


def silo_units(
    rows: Array, y: Array, *, silos: Any, persons: Any
) -> tuple[list[str], list[Records | Grouped]]:
    """Return the names of the silos and the units of each."""
    n = len(rows)
    names, codes = silo_codes(silos, n)
    whose = None if persons is None else array_of(persons)
    _check_ids("persons", whose, n)
    if whose is not None and whose.dtype.kind in "OSTU":  # as of a table: a blank makes nobody another person
        whose = person_ids(pd.Series(whose))
    units: list[Records | Grouped] = []
    for k in range(len(names)):
        held = codes == k
        records = Records.of(rows[held], y[held])
        units.append(records if whose is None else Grouped.of(records, whose[held]))
    return names, units


def _check_ids(name: str, given: Array | None, n: int) -> None:
    """Refuse ids that are not one for each record."""
    if given is not None and given.shape != (n,):
        raise DataError(f"{name} must have one entry per record ({n}), got shape {given.shape}.")
