"""From a data set or a table to silos: what a training job needs of its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from tacit import data
from tacit.data.kinds import check_table_file
from tacit.errors import DataError, ParameterError, check_choice, printable
from tacit.jobs.config import SPLITS, JobConfig
from tacit.jobs.facts import PublicFacts, read_sample
from tacit.jobs.held_out import HeldOut
from tacit.learning.algorithms.named import protected
from tacit.learning.public import PublicSample
from tacit.ledger import accounts_beside
from tacit.numerics import Array, IntArray
from tacit.privacy import Unit
from tacit.randomness import simulated

__all__ = ["JobData", "held_out_records", "load_job_data", "with_description"]


@dataclass(frozen=True, kw_only=True)
class JobData:
    """Records split over silos, and records held out.

    Attributes:
        X: Features within public bounds, shape (n, d); or in their own units, NaN where there is no number.
        y: Class numbers, or targets in [-1, 1], or in their own units; shape (n,). NaN where a cell is not a
            label. A record with a NaN counts as zero.
        classes: Labels by number; empty for regression.
        target: Bounds of the target in its own units; None for classification, and where it has none.
        lower: Lower bound of the features.
        upper: Upper bound of the features.
        silo_names: Names of the silos, distinct, with what does not print written as an escape.
        train: Training records of each silo.
        test: Records that are held out.
        test_silos: Number of the silo of each of them; None where a data set brings a test half of its own.
        persons: Id of the person of each record, shape (n,); None where a record is the unit.
        feature_names: d names.
        feature_columns: d names of the columns that the features come from.
        columns: Description of the columns and the label that the features come from, inferred parts
            included; None for images.
        public: Whether the data are public, so that scores and traces reveal nothing.
        notes: What must be said about public data.
        read_off: Columns whose bounds, categories or classes were read off the data.
        description: The file that describes the columns, as it was when the data were read, or what it would
            say; None without one.
        assumed: Columns that nothing describes, which hold numbers where there are no bounds.
        tables: The files that the records come from; None for a data set.
        sample: Public records, with labels where their file has them; None without.
        sensitive: Sensitive columns as text, "" where missing; they are no features.
        unit: What is protected.
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
    test_silos: IntArray | None
    persons: Array | None
    feature_names: tuple[str, ...]
    feature_columns: tuple[str, ...]
    columns: data.ColumnsSpec | None
    public: bool
    notes: tuple[str, ...] = ()
    read_off: tuple[str, ...] = ()
    description: bytes | None = None
    assumed: tuple[str, ...] = ()
    tables: data.TableFiles | None = None
    sample: PublicSample | None = None
    sensitive: Mapping[str, Array] = field(default_factory=dict)
    unit: Unit = Unit.RECORD

    @property
    def facts(self) -> PublicFacts:
        """What is public of it, the numbers of units included."""
        return PublicFacts(
            sizes=self.sizes,
            **{name: getattr(self, name) for name in _PUBLIC},
        )

    @property
    def sizes(self) -> list[int]:
        """Number of protected units that each silo trains on: records, or persons, or itself."""
        return [self.units(index) for index in self.train]

    def units(self, records: IntArray) -> int:
        """Return how many protected units some records of a silo are; how many a person has is private."""
        if self.unit is Unit.PARTY:
            return 1
        return len(records) if self.persons is None else len(pd.unique(self.persons[records]))


_PUBLIC = tuple(one.name for one in fields(PublicFacts) if one.name in JobData.__dataclass_fields__)


def load_job_data(job: JobConfig) -> JobData:
    """Load the data of a job and split them.

    The split is public: it follows from the job's seed, or from the name of the run without one, so that a
    run which was interrupted goes on with the same records held out. No guarantee rests on it, and no noise
    comes from it.

    Raises:
        UnknownNameError: No such data set or column; the nearest name is suggested.
        DataError: The table cannot be used, or a split leaves a silo empty.
    """
    rng = simulated(0, "split", job.run) if job.seed is None else simulated(job.seed, "split")
    return _from_table(job, rng) if job.is_table else _from_dataset(job, rng)


def held_out_records(data: JobData) -> HeldOut:
    """Return the held-out records of a job, without their features."""
    owners = data.test if data.persons is None else data.persons[data.test]
    return HeldOut(
        y=data.y[data.test],
        units=pd.factorize(owners, use_na_sentinel=False)[0],
        silos=data.test_silos,
        silo_names=data.silo_names,
        classes=data.classes,
        target=data.target,
    )


def with_description(job: JobConfig) -> JobConfig:
    """Return a job of tables with the label and the person that their description names, where it names none.

    Raises:
        ParameterError: Neither of them names the label.
        DataError: The tables or their description cannot be found or read.
    """
    if not job.is_table:
        return job
    tables = data.find_tables(job.data)
    spec = tables.described(job.columns)
    label = job.label or (None if spec.label is None else spec.label.column)
    if label is None:
        for file in tables.files:  # a table that is not there lacks more than a label
            check_table_file(file)
        raise ParameterError(
            "label must name the label column of the table, got None, and no description names it."
        )
    return msgspec.structs.replace(job, label=label, person=job.person or spec.person)


def _from_table(job: JobConfig, rng: np.random.Generator) -> JobData:
    """Load the user's own tables; silos are what a silo column says, or the files.

    Who is dealt where depends on the number and the order of records or persons only, so another record in
    the place of one, or another person in the place of one with however many records, moves nobody else.
    """
    tables = data.find_tables(job.data)
    described = tables.description if job.columns is None else Path(job.columns)
    raw, spec = job.stated is not None, tables.described(job.columns)
    table = data.load_table(
        tables.files,
        label=job.label or "",
        silo_column=job.silo_column,
        person_column=job.person,
        sensitive=job.sensitive_columns,
        columns=spec,
        task=job.task,
        raw=raw,
    )
    if job.silos in ("auto", "column") and table.silos is not None:
        names = [printable(name) for name in table.silo_names]
        if len(set(names)) < len(names):
            raise DataError(
                "names of silos must differ as they are printed, with what does not print escaped."
            )
        silos = [np.flatnonzero(table.silos == name) for name in table.silo_names]
    else:
        _check_split_of_table(job)
        names, silos = _split(job, table.y, table.persons, classes=len(table.classes), rng=rng)
        if job.silos == "auto":
            names = [printable(tables.silos[0])]
    train, test, test_silos = _hold_out(names, silos, job.test_fraction, table.persons, rng)
    y = np.asarray(table.y, dtype=np.float64)
    said = described.read_bytes() if described.is_file() else None
    if raw and said is None:  # all that is used without bounds is public
        said = table.columns.to_toml().encode()
    return JobData(
        X=table.X,
        y=np.where(y < 0, np.nan, y) if table.classes else y,
        classes=table.classes,
        target=table.label_bounds,
        lower=-1.0,
        upper=1.0,
        silo_names=names,
        train=train,
        test=test,
        test_silos=test_silos,
        persons=table.persons,
        feature_names=table.feature_names,
        feature_columns=table.feature_columns,
        columns=table.columns,
        public=False,
        read_off=table.bounds_source,
        description=said,
        assumed=tuple(name for name in table.columns.columns if raw and name not in spec.columns),
        tables=tables,
        unit=protected(job.algorithm, persons=table.persons is not None),
        sample=None if job.public is None else _sample(Path(job.public), tables, table),
        sensitive=table.sensitive,
    )


def _sample(file: Path, tables: data.TableFiles, table: data.Table) -> PublicSample:
    """Read the public records beside a table."""
    if open_columns := [name for name in table.bounds_source if name in table.feature_columns]:
        raise ParameterError(
            "public needs a description of every column: one that is read off the private records would show "
            f"in what is said of the public ones; describe {', '.join(map(printable, open_columns))}."
        )
    if any(file.exists() and file.samefile(one) for one in tables.files):
        raise ParameterError(f"public must be another file than the tables, got {str(file)!r}.")
    if file.is_file() and (kept := accounts_beside(file)):
        raise ParameterError(f"public must be public records, and {kept[0]} counts what is told of {file}.")
    label = None if table.columns.label is None else table.columns.label.column
    if label in table.bounds_source and label in map(str, data.read_table(file).columns):
        raise ParameterError(
            f"public has the label column {printable(label)}, which needs a description: its classes or "
            "bounds were read off the private records; describe it, or leave it out of the public ones."
        )
    return read_sample(file, table.columns, table.feature_names)


def _from_dataset(job: JobConfig, rng: np.random.Generator) -> JobData:
    """Load a public data set and make silos of it."""
    loaded = _loaded(job)
    everything = np.arange(loaded.n)
    pool = everything if loaded.train is None else np.asarray(loaded.train)
    groups = loaded.y if loaded.groups is None else loaded.groups
    persons = loaded.persons if job.person else None
    if job.person and persons is None:
        raise ParameterError(
            f"person must be None for {job.source}, which has no persons, got {job.person!r}."
        )
    kept = None if persons is None else persons[pool]
    names, silos = _split(job, groups[pool], kept, classes=len(loaded.classes), rng=rng)
    silos = [pool[index] for index in silos]
    unit = protected(job.algorithm, persons=persons is not None)
    if loaded.test is None or unit is Unit.PARTY:  # where silos differ, so do the records to score on
        train, test, test_silos = _hold_out(names, silos, job.test_fraction, loaded.persons, rng)
    else:
        train, test, test_silos = silos, np.asarray(loaded.test), None
    return JobData(
        X=loaded.X,
        y=np.asarray(loaded.y, dtype=np.float64),
        classes=loaded.classes,
        target=loaded.label_bounds,
        # Pixels lie in [0, 1], described columns in [-1, 1]: what a caller of the estimators says of them.
        lower=0.0 if loaded.columns is None else -1.0,
        upper=1.0,
        silo_names=names,
        train=train,
        test=test,
        test_silos=test_silos,
        persons=persons,
        feature_names=loaded.feature_names,
        feature_columns=loaded.feature_columns,
        columns=loaded.columns,
        public=True,
        notes=loaded.notes,
        sensitive={name: loaded.sensitive[_known(name, loaded)] for name in job.sensitive_columns},
        unit=unit,
    )


def _loaded(job: JobConfig) -> data.Dataset:
    """Load a public data set, without sensitive columns among its features."""
    if job.source in data.prepared_names():
        return data.load_prepared(job.source)
    loaded = data.load(job.source)
    private = [_known(name, loaded) for name in job.sensitive_columns]
    kept = [name for name in dict.fromkeys(loaded.feature_columns) if name not in private]
    if not job.sensitive_columns or set(kept) == set(loaded.feature_columns):
        return loaded
    return data.load(job.source, columns=kept)


def _known(name: str, loaded: data.Dataset) -> str:
    """Return what a data set calls a sensitive attribute: some say "sex" and others "gender"."""
    other = {"sex": "gender", "gender": "sex"}.get(name)
    if other is not None and name not in loaded.sensitive and other in loaded.sensitive:
        return other
    if not loaded.sensitive:
        raise ParameterError(
            f"sensitive must be left out for {loaded.name}, which comes with no sensitive attribute, got "
            f"{name!r}; `tacit data describe NAME` says which data sets do."
        )
    return check_choice(f"sensitive of {loaded.name}", name, loaded.sensitive)


def _check_split_of_table(job: JobConfig) -> None:
    """Refuse to deal private records by their labels: who is in which silo, and its size, would show them."""
    kind = job.silos.split(":")[0]
    if kind not in ("auto", "column", "iid") and job.seed is None:
        raise ParameterError(
            f"silos must be 'column' or 'iid:N' for a table without a seed, got {job.silos!r}: silos made "
            "from labels show the labels, which no guarantee covers."
        )


def _split(
    job: JobConfig, groups: Array, persons: Array | None, *, classes: int, rng: np.random.Generator
) -> tuple[list[str], list[IntArray]]:
    """Return the silos' names and records, as the job says; persons stay whole."""
    kind, *arguments = job.silos.split(":")
    if kind == "auto":
        kind, arguments = ("mixture", ["0.5"]) if classes and persons is None else ("iid", ["5"])
        if job.is_table or job.sensitive_columns:
            kind, arguments = "iid", ["1"]
    if kind == "column":
        raise ParameterError("silos='column' needs silo_column, got None.")
    if persons is not None and kind != "iid":
        raise ParameterError(
            f"silos must be 'column' or 'iid:N' where persons are kept whole, got {job.silos!r}."
        )
    if not classes and kind not in ("iid", "sorted"):
        raise ParameterError(f"silos must be 'iid:N' or 'sorted:N' for regression, got {job.silos!r}.")
    numbers = _numbers(job.silos, arguments, {"pairs": 0, "label": 0, "dirichlet": 2}.get(kind, 1))
    parts: list[IntArray]
    match kind:
        case "pairs":
            parts = data.split_by_pairs(groups)
        case "label":
            parts = data.split_by_label(groups)
        case "iid":
            count = _whole(job.silos, numbers[0])
            units = len(groups) if persons is None else len(pd.unique(persons))
            if not 1 <= count <= units:
                unit = "records" if persons is None else "persons"
                raise ParameterError(
                    f"silos must be iid:N with N from 1 to the number of {unit}, got {job.silos!r}."
                )
            parts = _deal(len(groups), persons, count, rng)
        case "mixture":
            parts = data.split_mixture(data.split_by_label(groups), numbers[0], rng)
        case "sorted":
            parts = data.split_sorted_target(groups, _whole(job.silos, numbers[0]))
        case _:
            count = _whole(job.silos, numbers[0])
            parts = data.split_dirichlet(groups, count, alpha=numbers[1], rng=rng, min_size=5)
    return [str(k) for k in range(len(parts))], parts


def _deal(n: int, persons: Array | None, silos: int, rng: np.random.Generator) -> list[IntArray]:
    """Deal records at random, or whole persons."""
    if persons is None:
        return data.split_iid(n, silos, rng)
    codes = _in_turn(persons)
    return [np.flatnonzero(np.isin(codes, part)) for part in data.split_iid(codes.max() + 1, silos, rng)]


def _in_turn(persons: Array) -> IntArray:
    """Number persons as they come: one with another id, in the place of the first, moves nobody else."""
    return np.asarray(pd.factorize(persons)[0], dtype=np.int64)


def _whole(text: str, number: float) -> int:
    """Return a number of silos, or refuse a fraction."""
    if not number.is_integer():
        raise ParameterError(f"silos must name a whole number of silos, got {text!r}.")
    return int(number)


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
    names: list[str], silos: list[IntArray], fraction: float, persons: Array | None, rng: np.random.Generator
) -> tuple[list[IntArray], IntArray, IntArray]:
    """Hold out a share of every silo; whole persons, where there are any, from all silos at once.

    Returns:
        Training records of each silo, held-out records, and the number of the silo of each of these.
    """
    size = 1 + max((int(silo.max()) for silo in silos if len(silo)), default=0)
    owners = np.arange(size) if persons is None else _in_turn(persons[:size])
    decided, held = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    for silo in silos:
        fresh = np.unique(owners[silo])
        fresh = fresh[~decided[fresh]]
        count = round(fraction * fresh.size)
        held[rng.permutation(fresh)[:count]] = True
        decided[fresh] = True
    train = [silo[~held[owners[silo]]] for silo in silos]
    test = [silo[held[owners[silo]]] for silo in silos]
    for name, kept, out in zip(names, train, test, strict=True):
        if len(kept) == 0 or len(out) == 0:
            unit = "records" if persons is None else "persons"
            raise DataError(
                f"silo {name!r} is too small to hold out a share test_fraction = {fraction:g} of its {unit}; "
                "give another share, or fewer and larger silos."
            )
    return train, np.concatenate(test), np.repeat(np.arange(len(test)), [len(out) for out in test])
