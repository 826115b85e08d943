"""What others computed for the same settings, or print: tables beside the code, one file an experiment."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources

__all__ = ["Reference", "reference"]

Reference = Mapping[tuple[str, str, float], float]
"""Values by panel, line, and place on the horizontal axis."""


@cache
def reference(experiment: str) -> Reference:
    """Return the values that an independent computation found for the settings of an experiment."""
    file = resources.files("tacit.experiments") / "tables" / f"{experiment}.csv"
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return {(row["panel"], row["line"], float(row["at"])): float(row["value"]) for row in rows}
