"""Signed rows: all that a logistic loss of two classes sees of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.learning.objective import Objective, Records
from tacit.numerics import Array

__all__ = ["SignedRow"]


@dataclass(frozen=True)
class SignedRow:
    """The statistic y x of each record, for labels that become -1 and 1: its loss is log(1 + e^-<w, y x>).

    Attributes:
        objective: Not looked at: it is what algorithms make statistics from.
    """

    objective: Objective

    def __call__(self, units: Records, at: Mapping[str, Array]) -> Array:  # noqa: ARG002 - the same everywhere
        """Return one row per record, shape (n, d)."""
        signs = np.clip(2 * units.y.astype(np.float64) - 1, -1, 1)
        return np.asarray(units.X * signs[:, None])
