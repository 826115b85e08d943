"""Tables: reading many lines at once, against the same cells one by one; text; and scoring new records."""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.case import Case
from tacit.cli.predict import predict
from tacit.data import Categorical, ColumnsSpec, Label, Numeric, load_table, read_table
from tacit.data.cells import number_of
from tacit.jobs import TrainedModel
from tacit.learning.model import FeatureMap, LinearModel

COLUMNS = 50
NAMES = [f"x{k}" for k in range(COLUMNS)]
NUMBERS = ColumnsSpec(
    columns={name: Numeric(lower=0, upper=100) for name in NAMES}, label=Label(classes=(0, 1))
)
CATEGORIES = ("north", "south", "east", "west side", "never")


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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        _write(path, rows, odd)
        cells = _seconds(lambda: _cells(path), repeats)
        read = _seconds(lambda: read_table(path, numeric=NAMES), repeats)
        load = _seconds(lambda: load_table(path, label="y", columns=NUMBERS), repeats)
    return {
        "rows": rows,
        "cell_seconds": cells,
        "read_seconds": read,
        "load_seconds": load,
        "ratio": read / cells,
        "load_seconds_per_million_rows": load / rows * 1e6,
    }


def _text(smoke: bool) -> dict[str, float]:
    """Columns of categories, bare and in quotes; half of the cells fit none."""
    rows, repeats = (1000, 1) if smoke else (50_000, 3)
    rng = np.random.default_rng(0)
    cells = rng.choice([*CATEGORIES, "other", "NA", "", "12", "unknown"], (rows, COLUMNS)).tolist()
    spec = ColumnsSpec(columns=dict.fromkeys(NAMES, Categorical(categories=CATEGORIES)), label=NUMBERS.label)
    measured: dict[str, float] = {"rows": rows}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        for kind, quoting in (("bare", csv.QUOTE_MINIMAL), ("quoted", csv.QUOTE_ALL)):
            with path.open("w", newline="") as stream:
                csv.writer(stream, quoting=quoting).writerows(
                    [[*NAMES, "y"], *([*row, "1"] for row in cells)]
                )
            seconds = _seconds(lambda: load_table(path, label="y", columns=spec), repeats)
            measured[f"{kind}_load_seconds_per_million_rows"] = seconds / rows * 1e6
    return measured


def _predict(smoke: bool) -> dict[str, float]:
    """A classifier of many numbers: of a frame, and the command from file to file."""
    rows, repeats = (1000, 1) if smoke else (100_000, 3)
    rng = np.random.default_rng(0)
    model = TrainedModel(
        fitted=LinearModel(
            features=FeatureMap(lower=-np.ones(COLUMNS), upper=np.ones(COLUMNS), unit_rows=True),
            w=rng.normal(size=COLUMNS + 1),
            classes=np.array([0, 1]),
            target=None,
        ),
        feature_names=tuple(NAMES),
        columns=ColumnsSpec(columns=NUMBERS.columns),
    )
    frame = pd.DataFrame(rng.normal(50, 20, (rows, COLUMNS)), columns=NAMES)
    in_memory = _seconds(lambda: model.predict(frame), repeats)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        run, table, out = (Path(folder) / name for name in ("model.json", "table.csv", "scored.csv"))
        model.save(run)
        _write(table, rows)
        of_files = _seconds(lambda: predict(run, table, out), repeats)
    return {
        "rows": rows,
        "predict_seconds_per_million_rows": in_memory / rows * 1e6,
        "command_seconds_per_million_rows": of_files / rows * 1e6,
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
    Case(
        "tables/csv-text",
        "1e6 rows of 50 categories in under 10 s, in quotes in under 15 s",
        _text,
        lambda measured: (
            f"{measured['bare_load_seconds_per_million_rows']:.1f} s for 1e6 rows with their encoding, "
            f"{measured['quoted_load_seconds_per_million_rows']:.1f} s in quotes"
        ),
    ),
    Case(
        "tables/predict",
        "1e6 rows of 50 numbers in under 5 s; from file to file in under 10 s",
        _predict,
        lambda measured: (
            f"{measured['predict_seconds_per_million_rows']:.1f} s for 1e6 rows of a frame, "
            f"{measured['command_seconds_per_million_rows']:.1f} s for the command"
        ),
    ),
)
