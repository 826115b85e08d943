"""Reading tables: many lines at once, against the same cells one by one."""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.case import Case
from tacit.data import ColumnsSpec, Label, Numeric, load_table, read_table
from tacit.data.cells import number_of

COLUMNS = 50


def _write(path: Path, rows: int, odd: str = "") -> None:
    """Write numbers of four decimals and a label; one cell in twenty is `odd`, if there is such."""
    rng = np.random.default_rng(0)
    with path.open("w") as stream:
        stream.write(",".join([*(f"x{k}" for k in range(COLUMNS)), "y"]) + "\n")
        for _ in range(0, rows, 1000):
            cells = np.char.mod("%.4f", rng.normal(50, 20, (1000, COLUMNS))).astype(object)
            if odd:
                cells[rng.random(cells.shape) < 0.05] = odd
            stream.writelines(",".join(row) + ",1\n" for row in cells)


def _cells(path: Path) -> list[list[float]]:
    """Return all numbers, each read for itself."""
    with path.open(newline="") as stream:
        rows = csv.reader(stream, skipinitialspace=True, strict=True)
        next(rows)
        return [[number_of(cell) for cell in row] for row in rows]


def _seconds(work: Callable[[], object], repeats: int) -> float:
    """Least processor time: reading from a disk is not what is compared."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def _csv(smoke: bool, odd: str = "") -> dict[str, float]:
    rows, repeats = (1000, 1) if smoke else (50_000, 3)
    spec = ColumnsSpec(
        columns={f"x{k}": Numeric(lower=0, upper=100) for k in range(COLUMNS)}, label=Label(classes=(0, 1))
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        _write(path, rows, odd)
        cells = _seconds(lambda: _cells(path), repeats)
        names = list(spec.columns)
        read = _seconds(lambda: read_table(path, numeric=names), repeats)
        load = _seconds(lambda: load_table(path, label="y", columns=spec), repeats)
    return {
        "rows": rows,
        "cell_seconds": cells,
        "read_seconds": read,
        "load_seconds": load,
        "ratio": read / cells,
        "load_seconds_per_million_rows": load / rows * 1e6,
    }


def _say(measured: dict[str, float]) -> str:
    return (
        f"{measured['ratio']:.2f} x the time of cell by cell, "
        f"{measured['load_seconds_per_million_rows']:.1f} s for 1e6 rows with their encoding"
    )


CASES = (
    Case(
        "tables/csv",
        "at most 0.4 x the time of cell by cell; 1e6 rows of 50 numbers in under 10 s",
        _csv,
        _say,
    ),
    Case(
        "tables/csv-missing",
        "with NA in one cell of twenty, no longer than cell by cell",
        lambda smoke: _csv(smoke, "NA"),
        _say,
    ),
)
