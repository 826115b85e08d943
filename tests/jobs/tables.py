"""Small made-up tables with public bounds beside them, for tests of whole jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

SILOS = ("north", "south", "west")

_FEATURES = """
[columns.age]
kind = "numeric"
lower = 18
upper = 90

[columns.bmi]
kind = "numeric"
lower = 15
upper = 50

[columns.patient]
kind = "ignore"

[columns.site]
kind = "ignore"
"""
_CLASSES = '[label]\nkind = "classes"\nclasses = ["well", "ill"]\n'
_BOUNDS = '[label]\nkind = "numeric"\nlower = 0\nupper = 60000\n'


def write_patients(
    folder: Path, *, silos: tuple[str, ...] = SILOS, visits: int = 1, per_silo: int = 60, public: bool = True
) -> Path:
    """Write `patients.csv`: sites, patients with some visits each, and whether they are `ill`."""
    frame = _patients(silos, visits=visits, per_silo=per_silo)
    risk = (frame.age - 54) / 12 + (frame.bmi - 30) / 10
    frame["ill"] = np.where(risk > 0, "ill", "well")
    return _write(frame, folder / "patients.csv", _CLASSES + _FEATURES if public else None)


def write_charges(folder: Path, *, per_silo: int = 80) -> Path:
    """Write `charges.csv`: sites, and `charges` that grow with age and bmi."""
    frame = _patients(SILOS, visits=1, per_silo=per_silo)
    frame["charges"] = (300 * frame.age + 250 * frame.bmi).round(2)
    return _write(frame, folder / "charges.csv", _BOUNDS + _FEATURES)


def _patients(silos: tuple[str, ...], *, visits: int, per_silo: int) -> pd.DataFrame:
    """Return sites, patients, ages and body mass indices."""
    rng = np.random.default_rng(41)
    persons = len(silos) * per_silo
    rows = np.repeat(np.arange(persons), visits)
    return pd.DataFrame(
        {
            "site": np.repeat(silos, per_silo)[rows],
            "patient": rows,
            "age": rng.integers(18, 90, size=persons)[rows],
            "bmi": rng.normal(30, 5, size=rows.size).round(1),
        }
    )


def _write(frame: pd.DataFrame, path: Path, description: str | None) -> Path:
    """Write a table and its description."""
    frame.to_csv(path, index=False)
    if description is not None:
        path.with_name(f"{path.stem}.columns.toml").write_text(description)
    return path
