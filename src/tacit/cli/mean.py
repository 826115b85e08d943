"""`tacit mean`: private means of the numeric columns of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.flags import takes
from tacit.cli.mean_columns import check_blanks, described_columns, read_columns, told_apart, units_of
from tacit.cli.names import RELATIONS
from tacit.cli.neighbours import neighbours_named
from tacit.cli.output import JsonFlag, print_json, print_table, print_text
from tacit.cli.paying import LedgerOption, SeedOption, charged, paying_places
from tacit.errors import (
    ParameterError,
    check_choice,
    check_count,
    printable,
)

if TYPE_CHECKING:
    from tacit.means import ColumnMeans, ColumnMeansQuery
    from tacit.privacy import PrivacyBudget

__all__ = ["SEVERAL", "mean", "notes_on"]

SEVERAL: Final = ("--columns", "--lower", "--upper")
"""Options that take several values."""

_VIOLATIONS: Final = {"clip": "they are moved to the nearest bound", "error": "they are refused; with --seed"}
_TRUSTS: Final = ("central", "aggregate", "local")


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
            click_type=OneOf(
                _TRUSTS,
                told={
                    "aggregate": "every table a share, and only their sum is seen",
                    "local": "every record or person its own",
                },
            ),
            help="Who adds the noise: {names}.",
        ),
    ] = "central"
    colluding: Annotated[
        int,
        typer.Option(
            help="Tables that may add no noise and tell what they added to the sum, under aggregate trust."
        ),
    ] = 0
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
    seed: SeedOption = None
    ledger: LedgerOption = None
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
        check_count("colluding", self.colluding, low=0)
        if self.colluding and not self.summed:
            raise ParameterError(
                f"colluding is for trust 'aggregate', got {self.colluding} with trust {self.trust!r}."
            )

    @property
    def summed(self) -> bool:
        """Whether every table adds a share of the noise, and only their sum is seen."""
        return self.trust == "aggregate"

    def query(self, sizes: Sequence[int], unit: str, budget: PrivacyBudget) -> ColumnMeansQuery:
        """Return what is asked of tables of so many units, calibrated, with a confidence that was tried."""
        from tacit.means import ColumnMeansQuery
        from tacit.privacy import TrustModel

        query = ColumnMeansQuery.calibrated(
            n=sum(sizes),
            lower=self.lower,
            upper=self.upper,
            budget=budget,
            trust=TrustModel(self.trust),
            neighbours=neighbours_named(self.neighbours, unit),
            on_violation="error" if self.on_violation == "error" else "clip",
            parties=sizes if self.summed else (),
            colluding=self.colluding,
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

    budget, seed, own = PrivacyBudget(flags.epsilon, flags.delta), flags.seed, flags.trust != "central"
    tables = find_tables(flags.files)
    described = described_columns(tables)
    person = flags.person or tables.described().person
    names, values, persons, rows = read_columns(
        tables,
        columns=flags.columns,
        lower=flags.lower,
        upper=flags.upper,
        described=described,
        person=person,
    )
    if flags.neighbours == Relation.ZERO_OUT:
        check_blanks(described, names, flags.lower, flags.upper)
    if flags.summed and persons is not None:
        persons = told_apart(persons, rows)
    query = flags.query(
        units_of(persons, rows, apart=flags.summed), "record" if persons is None else "person", budget
    )
    price = query.price
    warn_of_weak(price.epsilon, price.delta, units=query.n, unit=price.neighbours.unit)
    rng = secure() if seed is None else simulated(seed, "mean")
    places = paying_places(tables, flags.ledger, price.neighbours, local=own) if seed is None else []
    with charged(places, price, kind="mean", plan=_digest(query, names, person), local=own) as pay:
        found = column_means(values, query, persons=persons, confidence=flags.confidence, rng=rng)
        with pay():
            if flags.json:
                print_json(_facts(", ".join(flags.files), names, found, flags))
            else:
                _show(", ".join(flags.files), names, found)


def _digest(query: ColumnMeansQuery, names: list[str], person: str | None) -> bytes:
    """Return the digest of what is asked."""
    import msgspec

    facts = [names, query.lower.tolist(), query.upper.tolist(), query.n, query.estimator, person]
    return hashlib.sha256(msgspec.json.encode(facts)).digest()


def _facts(tables: str, names: list[str], found: ColumnMeans, flags: MeanFlags) -> dict[str, Any]:
    """Return the answer for programs; it is a statement, which `tacit account verify` accepts."""
    from tacit.privacy.statement import About, Statement

    price, alone, trust = found.guarantee, found.guarantee_alone, flags.trust
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
    about = [About(trust=trust, units=found.n)]
    if alone is not None:
        answer |= {
            "tables": found.tables,
            "colluding": flags.colluding,
            "epsilon_alone": alone.epsilon,
            "guarantee_alone": str(alone),
        }
        about.append(About(trust=trust, units=found.n, alone=True))
    return Statement(
        kind="mean",
        guarantees=(price,) if alone is None else (price, alone),
        about=tuple(about),
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
    if found.guarantee_alone is not None:
        print_text(f"\none message alone: {found.guarantee_alone}")
