"""`tacit mean`: private means of the numeric columns of a table."""

from __future__ import annotations

import hashlib
import shlex
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.flags import takes
from tacit.cli.names import RELATIONS
from tacit.cli.neighbours import neighbours_named
from tacit.cli.output import JsonFlag, print_json, print_table, print_text
from tacit.cli.paying import charged, warn_of_another
from tacit.errors import DataError, ParameterError, PrivacyWarning, check_choice, printable

if TYPE_CHECKING:
    import pandas as pd

    from tacit.data import Column, TableFiles
    from tacit.means import ColumnMeans, ColumnMeansQuery
    from tacit.numerics import Array
    from tacit.privacy import Neighbours, PrivacyBudget

__all__ = ["SEVERAL", "mean", "notes_on"]

SEVERAL: Final = ("--columns", "--lower", "--upper")
"""Options that take several values."""

_VIOLATIONS: Final = {"clip": "they are moved to the nearest bound", "error": "they are refused; with --seed"}
_TRUSTS: Final = ("central", "local")


@dataclass(frozen=True, kw_only=True)
class MeanFlags:
    """Which means are asked for, of what, and what they may cost."""

    files: Annotated[
        list[str],
        typer.Argument(help="Tables, a pattern or a folder, one row per record.", show_default=False),
    ]
    columns: Annotated[list[str], typer.Option(help="Names of numeric columns: `--columns age bmi`.")]
    lower: Annotated[list[float], typer.Option(help="Public lower bound of each column.")]
    upper: Annotated[list[float], typer.Option(help="Public upper bound of each column.")]
    epsilon: Annotated[float, typer.Option(help="Privacy budget of all means together.")]
    delta: Annotated[
        float,
        typer.Option(
            help="Probability that the bound may fail; at more than 0, many columns need less noise."
        ),
    ] = 0.0
    trust: Annotated[
        str,
        typer.Option(
            click_type=OneOf(_TRUSTS, told={"local": "every record or person its own"}),
            help="Who adds the noise: {names}.",
        ),
    ] = "central"
    neighbours: Annotated[
        str,
        typer.Option(
            click_type=OneOf(RELATIONS, checked=False),
            help="What may differ between data sets that nobody can tell apart: {names}.",
        ),
    ] = "replace-one"
    person: Annotated[
        str | None,
        typer.Option(
            help="Column with the id of each record's person, who is then protected and counts once.",
            show_default="as the column description has it, else records are protected",
        ),
    ] = None
    confidence: Annotated[
        float,
        typer.Option(help="Confidence of each interval, for its column alone."),
    ] = 0.95
    on_violation: Annotated[
        str,
        typer.Option(
            click_type=OneOf(_VIOLATIONS, told=_VIOLATIONS),
            help="What happens to values outside the bounds: {names}.",
        ),
    ] = "clip"
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of a simulation, which protects nobody.", show_default="secret randomness"),
    ] = None
    ledger: Annotated[
        Path | None,
        typer.Option(help="Ledger file or folder that pays.", show_default="the one beside the tables"),
    ] = None
    json: JsonFlag = False

    def __post_init__(self) -> None:
        if self.on_violation == "error" and self.seed is None:
            raise ParameterError(
                "--on-violation error needs --seed: a refusal tells of a record, and no ledger counts it."
            )
        if self.seed is not None and self.ledger is not None:
            raise ParameterError(
                "--ledger is for answers that leave; with --seed the answer is a simulation."
            )
        check_choice("neighbours", self.neighbours, RELATIONS)

    def query(self, n: int, unit: str, budget: PrivacyBudget) -> ColumnMeansQuery:
        """Return what is asked of n units, calibrated, with a confidence that was tried."""
        from tacit.means import ColumnMeansQuery
        from tacit.privacy import TrustModel

        query = ColumnMeansQuery.calibrated(
            n=n,
            lower=self.lower,
            upper=self.upper,
            budget=budget,
            trust=TrustModel(self.trust),
            neighbours=neighbours_named(self.neighbours, unit),
            on_violation="error" if self.on_violation == "error" else "clip",
        )
        query.half_width(self.confidence)  # a bad confidence must not cost anything
        return query


@takes(MeanFlags)
def mean(flags: MeanFlags) -> None:
    """Estimate the means of numeric columns of all records, with exact integer noise.

    Values are clamped to the public bounds; a cell that is missing or not a number counts as their middle.
    The number of records counts as public. The interval tells how far the noise may have moved the mean of
    these records; it says nothing about the population that they come from. Where persons are protected,
    every person counts once, by the mean of the person's values, and their number counts as public.
    """
    from tacit.data import find_tables
    from tacit.means import column_means
    from tacit.privacy import PrivacyBudget, Relation
    from tacit.privacy.weak import warn_of_weak
    from tacit.randomness import secure, simulated

    budget, seed, local = PrivacyBudget(flags.epsilon, flags.delta), flags.seed, flags.trust == "local"
    tables = find_tables(flags.files)
    described = _described(tables)
    person = flags.person or tables.described().person
    names, values, persons = _read(tables, flags, described=described, person=person)
    if flags.neighbours == Relation.ZERO_OUT:
        _check_blanks(described, names, flags.lower, flags.upper)
    units, unit = (len(values), "record") if persons is None else (len(set(persons)), "person")
    query = flags.query(units, unit, budget)
    price = query.price
    warn_of_weak(price.epsilon, price.delta, units=query.n, unit=price.neighbours.unit)
    rng = secure() if seed is None else simulated(seed, "mean")
    places = _places(tables, flags.ledger, price.neighbours, local=local) if seed is None else []
    with charged(places, price, kind="mean", plan=_digest(query, names, person), local=local) as pay:
        found = column_means(values, query, persons=persons, confidence=flags.confidence, rng=rng)
        with pay():
            if flags.json:
                print_json(_facts(", ".join(flags.files), names, found, flags.trust))
            else:
                _show(", ".join(flags.files), names, found)


def _described(tables: TableFiles) -> dict[str, Column]:
    """Return what is publicly known of the columns, the label among them."""
    from tacit.data import Categorical, Label, Numeric

    spec = tables.described()
    label = spec.label
    if label is None or label.column is None:
        return dict(spec.columns)
    known = (
        Categorical(categories=label.classes)
        if isinstance(label, Label)
        else Numeric(lower=label.lower, upper=label.upper)
    )
    return {label.column: known, **spec.columns}


def _read(
    tables: TableFiles,
    flags: MeanFlags,
    *,
    described: Mapping[str, Column],
    person: str | None,
) -> tuple[list[str], Array, Array | None]:
    """Return the names and values of columns, and whose the rows are, with names and counts checked."""
    import numpy as np

    from tacit.data import Date, read_table
    from tacit.data.cells import together
    from tacit.data.encoding import check_columns
    from tacit.data.tables import person_ids

    columns, lower, upper = flags.columns, flags.lower, flags.upper
    asked = {part.strip() for given in columns for part in [given, *given.split(",")]}
    dates = {name for name, column in described.items() if isinstance(column, Date)}
    # Ids must keep all their digits.
    frames = [read_table(file, numeric=asked - dates - {person}) for file in tables.files]
    present = {str(name) for name in frames[0].columns}
    names = [name for given in columns for name in _split(given, present)]
    for file, frame in zip(tables.files, frames, strict=True):
        with _file_named(file if len(frames) > 1 else None):
            check_columns(frame, names, role="columns")
            check_columns(frame, [] if person is None else [person], role="person")
    if person in names:
        raise ParameterError(f"person must be a column without a mean, got {person!r} in --columns too.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(f"columns must be different ones, got {twice[0]!r} more than once.")
    for what, bounds in (("lower", lower), ("upper", upper)):
        if len(bounds) != len(names):
            raise ParameterError(
                f"{what} must give one bound for each of the {len(names)} columns, got {len(bounds)}."
            )
    for name, low, high in zip(names, lower, upper, strict=True):
        if not low < high:
            raise ParameterError(f"lower must be below upper, got {low!r} and {high!r} for column {name!r}.")
        _check_numeric(described.get(name), name)
    values = [
        np.concatenate([_numbers(frame[name], described.get(name), name) for frame in frames])
        for name in names
    ]
    ids = None if person is None else person_ids(together([frame[person] for frame in frames]))
    return names, np.column_stack(values), ids


@contextmanager
def _file_named(file: Path | None) -> Iterator[None]:
    """Say which of several files an error of the block is about."""
    try:
        yield
    except DataError as error:
        raise error if file is None else DataError(f"{file}: {error}") from error


def _split(given: str, present: set[str]) -> list[str]:
    """Return the names in one value: commas separate, unless a column has them in its name."""
    if given in present or "," not in given:
        return [given]
    return [part.strip() for part in given.split(",") if part.strip()]


def _check_numeric(described: Column | None, name: str) -> None:
    """Refuse a column that is not numeric by its description: its mean would be the middle of the bounds."""
    import numpy as np

    from tacit.data import Categorical, Ignore
    from tacit.data.cells import numbers_of

    if isinstance(described, Categorical) and np.isnan(numbers_of(described.categories)).any():
        raise DataError(f"column {name!r} is not numeric by its description; its mean cannot be estimated.")
    if isinstance(described, Ignore):
        raise DataError(
            f"column {name!r} is ignored by its description, as ids and text are; if it holds numbers, write "
            'kind = "numeric" with its bounds there.'
        )


def _numbers(values: pd.Series, described: Column | None, name: str) -> Array:
    """Return a column as numbers, NaN where a cell is missing or none; whether there are any is private."""
    from tacit.data import Date, Numeric
    from tacit.data.encoding import read_measures, read_numbers

    if isinstance(described, Numeric | Date):
        return read_measures(values, described, column=name)
    return read_numbers(values, column=name)


def _check_blanks(
    described: Mapping[str, Column], names: list[str], lower: list[float], upper: list[float]
) -> None:
    """Refuse cells that count as something when they are blank: zero-out puts a blank unit to the middle."""
    from tacit.data import Date, Numeric

    for name, low, high in zip(names, lower, upper, strict=True):
        column = described.get(name)
        if not isinstance(column, Numeric | Date) or isinstance(column.missing, str):
            continue
        if column.missing != (middle := low / 2 + high / 2):
            raise ParameterError(
                f"neighbours must be replace-one for column {name!r}, of which the description counts a "
                f"missing cell as {column.missing!r}, got 'zero-out': whoever is blanked out must count as "
                f"the middle of the bounds, {middle!r}."
            )


def _digest(query: ColumnMeansQuery, names: list[str], person: str | None) -> bytes:
    """Return the digest of what is asked."""
    import msgspec

    facts = [names, query.lower.tolist(), query.upper.tolist(), query.n, query.estimator, person]
    return hashlib.sha256(msgspec.json.encode(facts)).digest()


def _places(tables: TableFiles, given: Path | None, neighbours: Neighbours, *, local: bool) -> list[Path]:
    """Return where the ledgers that pay lie: beside the tables if none is given; warn where none are."""
    from tacit.ledger import accounts_of, beside, ledgers_of

    place = beside(tables) if given is None else ledgers_of(given)
    if given is not None:
        warn_of_another(tables, place)
    elif not place.exists():
        words = ["tacit", "ledger", "create", str(place)]
        words += ["--silos-from", *map(str, tables.files)] if tables.together else []
        words += ["--epsilon", "E", "--delta", "D"]
        words += [] if neighbours.unit == "record" else ["--unit", neighbours.unit]
        warnings.warn(
            f"no ledger counts this answer; `{shlex.join(words)}` sets a limit.",
            PrivacyWarning,
            stacklevel=1,
        )
        return []
    # A trusted server, who adds the noise for several silos, pays for them.
    return [place] if len(tables.files) > 1 and not local else accounts_of(tables, place)


def _facts(tables: str, names: list[str], found: ColumnMeans, trust: str) -> dict[str, Any]:
    """Return the answer for programs; it is a statement, which `tacit account verify` accepts."""
    from tacit.privacy.statement import About, Statement

    price = found.guarantee
    names = [printable(name) for name in names]  # what does not print could not be read again
    answer = {
        "table": printable(tables),
        "n": found.n,
        "columns": names,
        "mean": dict(zip(names, found.mean.tolist(), strict=True)),
        "noise_std": dict(zip(names, found.noise_std.tolist(), strict=True)),
        "confidence": found.confidence,
        "confidence_interval": dict(zip(names, found.interval.tolist(), strict=True)),
        "epsilon": price.epsilon,
        "delta": price.delta,
        "trust": trust,
        "unit": price.neighbours.unit.value,
        "simulated": price.simulated,
        "guarantee": str(price),
    }
    return Statement(
        kind="mean",
        guarantees=(price,),
        about=(About(trust=trust, units=found.n),),
        notes=tuple(notes_on(found.n, found.confidence, price.neighbours.unit)),
        answer=answer,
    ).to_builtins()


def notes_on(n: int, confidence: float, unit: str = "record") -> list[str]:
    """Return what the means of n records or persons mean; the statement of means must hold it."""
    share = f"{100 * confidence:.10g} %"
    if unit == "person":
        return [
            f"each interval holds the mean over {n} persons of their means of clamped values with "
            f"probability {share} over the noise; sampling error is not in it.",
            "every person counts once, however many records a person has: values were clamped to the "
            "bounds, a cell that is missing or no number was left out of its person's mean, or counted as "
            "the number that the column's description gives, and a person without a value as the middle.",
            "the means are unbiased and not cut to the bounds; the number of persons counts as public, and "
            "records without an id belong to one of them.",
        ]
    return [
        f"each interval holds the mean of the {n} clamped values with probability {share} over the "
        "noise; sampling error is not in it.",
        "values were clamped to the bounds; a cell that is missing or no number counted as their middle, or "
        "as the number that the column's description gives.",
        "the means are unbiased and not cut to the bounds; the number of records counts as public.",
    ]


def _show(tables: str, names: list[str], found: ColumnMeans) -> None:
    """Print the means for people."""
    share = f"{100 * found.confidence:.10g} % for the noise"
    rows = [
        (name, f"{m:.6g}", f"{s:.3g}", f"{low:.6g} to {high:.6g}")
        for name, m, s, (low, high) in zip(
            names, found.mean.tolist(), found.noise_std.tolist(), found.interval.tolist(), strict=True
        )
    ]
    columns = ("column", "mean", "noise std", share)
    unit = found.guarantee.neighbours.unit
    print_text(f"{tables}: {found.n} {unit.plural}")
    print_table(columns, rows, right=columns[1:])
    print_text("")
    for note in notes_on(found.n, found.confidence, unit):
        print_text(f"- {note}")
    print_text(f"\n{found.guarantee}")
