"""From a data set or a table to silos: what a training job needs of its data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit import data
from tacit.errors import DataError, ParameterError, check_choice
from tacit.learning.job_config import SPLITS, JobConfig
from tacit.numerics import Array, IntArray
from tacit.randomness import secure, simulated

__all__ = ["JobData", "prepare"]


@dataclass(frozen=True, kw_only=True)
class JobData:
    """Records split over silos, and records held out.

    Attributes:
        X: Features within public bounds, shape (n, d).
        y: Class numbers, or targets in [-1, 1]; shape (n,).
        classes: Labels by number; empty for regression.
        target: Bounds of the target in its own units; None for classification.
        lower: Lower bound of the features.
        upper: Upper bound of the features.
        silo_names: Names of the silos.
        train: Training records of each silo.
        test: Records that are held out.
        persons: Whose each record is, shape (n,); None where a record is the unit.
        public: Whether the data are public, so that scores and traces reveal nothing.
        notes: What the statement must say about the data.
    """

    X: Array
    y: Array
    classes: tuple[object, ...]
    target: tuple[float, float] | None
    lower: float
    upper: float
    silo_names: list[str]
    train: list[IntArray]
    test: IntArray
    persons: Array | None
    public: bool
    notes: tuple[str, ...]


def prepare(job: JobConfig) -> JobData:
    """Load the data of a job and split them.

    The split uses the job's seed, or secret randomness without one; it does not depend on the noise.

    Raises:
        UnknownNameError: No such data set or column; the nearest name is suggested.
        DataError: The table cannot be used, or a split leaves a silo empty.
    """
    rng = secure() if job.seed is None else simulated(job.seed, "split")
    return _from_table(job, rng) if job.is_table else _from_dataset(job, rng)


def _from_table(job: JobConfig, rng: np.random.Generator) -> JobData:
    """Load the user's own table; silos are what its silo column says."""
    table = data.load_table(
        Path(job.data),
        label=job.label or "",
        silo_column=job.silo_column,
        person_column=job.person,
        columns=None if job.columns is None else data.ColumnsSpec.read(Path(job.columns)),
        task=job.task,
    )
    if job.silos not in ("auto", "column") or table.silos is None:
        names, silos = _split(job, table.y, table.silos, rng=rng, n=table.n)
    else:
        names = list(table.silo_names)
        silos = [np.flatnonzero(table.silos == k) for k in range(len(names))]
    train, test = _hold_out(silos, job.test_fraction, table.persons, rng)
    read_off = ", ".join(table.bounds_source)
    return JobData(
        X=table.X,
        y=np.asarray(table.y, dtype=np.float64),
        classes=table.classes,
        target=table.label_bounds,
        lower=-1.0,
        upper=1.0,
        silo_names=names,
        train=train,
        test=test,
        persons=table.persons,
        public=False,
        notes=(f"bounds read off the data without privacy do not matter ({read_off})",) if read_off else (),
    )


def _from_dataset(job: JobConfig, rng: np.random.Generator) -> JobData:
    """Load a public data set and make silos of it."""
    loaded = data.load(job.data)
    everything = np.arange(loaded.n)
    pool = everything if loaded.train is None else np.asarray(loaded.train)
    groups = loaded.y if loaded.groups is None else loaded.groups
    names, silos = _split(job, groups[pool], None, rng=rng, n=pool.size)
    silos = [pool[index] for index in silos]
    if loaded.test is None:
        train, test = _hold_out(silos, job.test_fraction, loaded.persons, rng)
    else:
        train, test = silos, np.asarray(loaded.test)
    image = loaded.X.min() >= 0
    return JobData(
        X=loaded.X,
        y=np.asarray(loaded.y, dtype=np.float64),
        classes=loaded.classes,
        target=loaded.label_bounds,
        lower=0.0 if image else -1.0,
        upper=1.0,
        silo_names=names,
        train=train,
        test=test,
        persons=loaded.persons if job.person else None,
        public=True,
        notes=loaded.notes,
    )


def _split(
    job: JobConfig, groups: Array, silos: Array | None, *, rng: np.random.Generator, n: int
) -> tuple[list[str], list[IntArray]]:
    """Return the silos' names and records, as the job says."""
    kind, *arguments = job.silos.split(":")
    if kind == "auto":
        kind, arguments = ("mixture", ["0.5"]) if job.task == "classification" else ("iid", ["5"])
        if job.is_table:
            kind, arguments = "iid", ["1"]
    if kind == "column":
        if silos is None:
            raise ParameterError("silos='column' needs silo_column, got None.")
        return data.split_by_column(silos)
    check_choice("silos", kind, [s.split(":")[0] for s in SPLITS])
    numbers = _numbers(job.silos, arguments, {"pairs": 0, "label": 0, "dirichlet": 2}.get(kind, 1))
    parts: list[IntArray]
    match kind:
        case "pairs":
            parts = data.split_by_pairs(groups)
        case "label":
            parts = data.split_by_label(groups)
        case "iid":
            parts = data.split_iid(n, int(numbers[0]), rng)
        case "mixture":
            parts = data.split_mixture(data.split_by_label(groups), numbers[0], rng)
        case "sorted":
            parts = data.split_sorted_target(groups, int(numbers[0]))
        case _:
            parts = data.split_dirichlet(groups, int(numbers[0]), alpha=numbers[1], rng=rng, min_size=5)
    return [str(k) for k in range(len(parts))], parts


def _numbers(text: str, arguments: list[str], count: int) -> list[float]:
    """Return the numbers behind the name of a split."""
    try:
        numbers = [float(a) for a in arguments]
    except ValueError as error:
        raise ParameterError(f"silos must look like one of {', '.join(SPLITS)}, got {text!r}.") from error
    if len(numbers) != count:
        raise ParameterError(f"silos must look like one of {', '.join(SPLITS)}, got {text!r}.")
    return numbers


def _hold_out(
    silos: list[IntArray], fraction: float, persons: Array | None, rng: np.random.Generator
) -> tuple[list[IntArray], IntArray]:
    """Hold out a share of every silo; whole persons, where there are any."""
    train, test = [], []
    for name, silo in enumerate(silos):
        if persons is None:
            kept, held = data.train_test_split_indices(len(silo), fraction, rng)
        else:
            kept, held = data.train_test_split_groups(persons[silo], fraction, rng)
        if len(kept) == 0 or len(held) == 0:
            raise DataError(f"silo {name} is too small to hold out a share {fraction:g} of its records.")
        train.append(silo[kept])
        test.append(silo[held])
    return train, np.concatenate(test)
