"""Ids of silos and of persons are read one by one, whatever they come in."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tacit.learning.silo_units import silo_units
from tacit.learning.task import label_codes


def test_ids_of_persons_are_read_alike_from_lists_and_from_arrays_of_text() -> None:
    ids = ["a", "a ", "Ren\u00e9", "Rene\u0301", "", " "]
    rows = np.ones((len(ids), 2))
    for given in (ids, np.array(ids), np.array(ids, dtype=object), pd.Series(ids, dtype="string")):
        (grouped,) = silo_units(rows, np.zeros(len(ids)), silos=None, persons=given)[1]
        assert len(grouped) == 3


def test_one_odd_label_or_id_changes_none_of_the_others() -> None:
    """In an array of floats, ten 19-digit ids and one 1.5 would be two persons."""
    ids: list[object] = [10**18 + k for k in range(10)]
    rows, y = np.full((11, 2), 0.1), np.zeros(11)
    for odd in (1.5, "x", None):
        np.testing.assert_array_equal(label_codes(np.array([0, 1]), [1, 0, odd]), [1, 0, np.nan])
        (grouped,) = silo_units(rows, y, silos=None, persons=[*ids, odd])[1]
        assert len(grouped) == 11
        names, _ = silo_units(rows, y, silos=[*ids, odd], persons=None)
        assert set(map(str, ids)) < set(names)
