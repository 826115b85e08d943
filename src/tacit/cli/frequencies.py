"""`tacit frequencies`: how often the values of a column are held."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_picture
from tacit.cli.flags import takes
from tacit.cli.frequency_columns import OTHER, Domain, read_column
from tacit.cli.names import FREQUENCY_MECHANISMS, PROJECTIONS
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress
from tacit.cli.paying import charged, paying_places
from tacit.errors import ParameterError, check_probability, printable

if TYPE_CHECKING:
    from tacit.frequencies import Frequencies, FrequenciesQuery
    from tacit.numerics import IntArray
    from tacit.privacy import Neighbours, PrivacyBudget

__all__ = ["SEVERAL", "SHUFFLE_DELTA", "TRUSTS", "budget_of", "frequencies", "notes_on"]

SEVERAL: Final = ("--data", "--values")
"""Options that take several values."""
TRUSTS: Final = ("local", "shuffle", "central")
SHUFFLE_DELTA: Final = 1e-6
"""Delta behind a shuffler, where none is given."""
_SHOWN: Final = 20


@dataclass(frozen=True, kw_only=True)
class FrequencyFlags:
    """Whose values are counted, of which domain, and what that may cost."""

    data: Annotated[list[str], typer.Option(help="Tables, a pattern or a folder, one row per record.")]
    column: Annotated[str, typer.Option(help="Name of the column.")]
    epsilon: Annotated[float, typer.Option(help="Privacy budget of all frequencies together.")]
    values: Annotated[
        list[str] | None,
        typer.Option(
            help="All possible values, which are public: `--values a,b,c`. Any other cell counts as other.",
            show_default="the categories of the column description",
        ),
    ] = None
    domain: Annotated[
        Path | None,
        typer.Option(help="File with the possible values, one a line.", show_default="none"),
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(
            help="Probability that the bound may fail.", show_default="0, or 1e-6 with --trust shuffle"
        ),
    ] = None
    trust: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                TRUSTS,
                told={
                    "local": "every record is randomised by itself",
                    "shuffle": "so it is, and nobody knows whose message is whose",
                    "central": "who holds the table adds noise",
                },
            ),
            help="Who is trusted: {names}.",
        ),
    ] = "local"
    person: Annotated[
        str | None,
        typer.Option(
            help="Column with the id of each record's person, who is then protected and counts once.",
            show_default="as the column description has it, else records are protected",
        ),
    ] = None
    mechanism: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(FREQUENCY_MECHANISMS),
            help="What every record sends: {names}.",
            show_default="the one of the least error",
        ),
    ] = None
    max_random_bits: Annotated[
        float | None,
        typer.Option(help="Most fair bits that a record may need.", show_default="no limit"),
    ] = None
    max_message_bits: Annotated[
        int | None, typer.Option(help="Most bits of a message.", show_default="no limit")
    ] = None
    projection: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(PROJECTIONS, told={"none": "unbiased", "simplex": "the nearest frequencies"}),
            help="How estimates are made consistent: {names}.",
            show_default="simplex, or none with --heavy-hitters",
        ),
    ] = None
    heavy_hitters: Annotated[
        bool,
        typer.Option("--heavy-hitters", help="Only show values that are certainly above the threshold."),
    ] = False
    threshold: Annotated[
        float, typer.Option(help="Frequency that heavy hitters are above, with --heavy-hitters.")
    ] = 0.0
    confidence: Annotated[float, typer.Option(help="Probability that none of the intervals misses.")] = 0.95
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of a simulation, which protects nobody.", show_default="secret randomness"),
    ] = None
    ledger: Annotated[
        Path | None,
        typer.Option(help="Ledger file or folder that pays.", show_default="the one beside the tables"),
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the most frequent values with their intervals into this file.",
            show_default="no picture",
        ),
    ] = None
    json: JsonFlag = False

    def __post_init__(self) -> None:
        if self.plot is not None:
            check_picture(self.plot)
        if self.seed is not None and self.ledger is not None:
            raise ParameterError(
                "--ledger is for answers that leave; with --seed the answer is a simulation."
            )
        check_probability("confidence", self.confidence, low_open=True, high_open=True)
        check_probability("threshold", self.threshold, high_open=True)
        if self.threshold and not self.heavy_hitters:
            raise ParameterError(f"threshold is for --heavy-hitters, got {self.threshold!r} without it.")

    @property
    def consistent(self) -> str:
        """How estimates are made consistent; with many rare values, the simplex lowers the large ones."""
        return self.projection or ("none" if self.heavy_hitters else "simplex")

    def query(self, k: int, n: int, neighbours: Neighbours) -> FrequenciesQuery:
        """Return what is asked of n units about k values, calibrated."""
        from tacit.frequencies import FrequenciesQuery
        from tacit.privacy import TrustModel

        return FrequenciesQuery.calibrated(
            k=k,
            n=n,
            budget=budget_of(self.epsilon, self.delta, self.trust),
            trust=TrustModel(self.trust),
            neighbours=neighbours,
            mechanism=self.mechanism,
            max_random_bits=self.max_random_bits,
            max_message_bits=self.max_message_bits,
        )


def budget_of(epsilon: float, delta: float | None, trust: str) -> PrivacyBudget:
    """Return the budget of a question, with a delta where a shuffler needs one."""
    from tacit.privacy import PrivacyBudget

    usual = SHUFFLE_DELTA if trust == "shuffle" else 0.0
    return PrivacyBudget(epsilon, usual if delta is None else delta)


@takes(FrequencyFlags)
def frequencies(flags: FrequencyFlags) -> None:
    """Estimate how often each value of a column is held, with exact integer noise.

    The possible values must be public: --values, --domain, or the categories of the column description. Any
    other cell, also a missing one, counts as other. The number of records counts as public. All intervals
    together hold the frequencies of these records with the stated probability. Where persons are protected,
    every person counts once, by the first of the person's records.
    """
    import msgspec

    from tacit.data import find_tables
    from tacit.frequencies import estimate_frequencies
    from tacit.privacy import Neighbours, Unit
    from tacit.privacy.weak import warn_of_weak
    from tacit.randomness import secure, simulated

    tables = find_tables(flags.data)
    domain = Domain.given(flags.values, flags.domain, tables, flags.column)
    person = flags.person or tables.described().person
    neighbours = Neighbours(unit=Unit.RECORD if person is None else Unit.PERSON)
    values, sizes = read_column(tables, flags.column, domain, person=person)
    with progress("calibrating"):
        query = flags.query(len(domain.names), sum(sizes), neighbours)
    price = msgspec.structs.replace(query.price, simulated=flags.seed is not None)
    warn_of_weak(price.epsilon, price.delta, units=query.n, unit=neighbours.unit)
    rng = secure() if flags.seed is None else simulated(flags.seed, "frequencies")
    own = flags.trust != "central"
    places = paying_places(tables, flags.ledger, neighbours, local=own) if flags.seed is None else []
    digest = _digest(query, flags.column, domain.names, person)
    with charged(places, price, kind="frequencies", plan=digest, local=own) as pay:
        found = estimate_frequencies(values, query, confidence=flags.confidence, rng=rng)
        with pay():
            if flags.plot is not None:
                _draw(flags.plot, ", ".join(flags.data), domain.names, found, flags)
            if flags.json:
                print_json(_facts(", ".join(flags.data), domain.names, found, flags))
            else:
                _show(", ".join(flags.data), domain.names, found, flags)


def _digest(query: FrequenciesQuery, column: str, names: list[str], person: str | None) -> bytes:
    """Return the digest of what is asked."""
    import msgspec

    facts = [column, names, query.n, query.mechanism, query.price.event, person]
    return hashlib.sha256(msgspec.json.encode(facts, enc_hook=str)).digest()


def _facts(tables: str, names: list[str], found: Frequencies, flags: FrequencyFlags) -> dict[str, Any]:
    """Return the answer for programs; it is a statement, which `tacit account verify` accepts."""
    from tacit.frequencies import heavy_of, project
    from tacit.privacy.statement import About, Statement

    query, price, alone = found.query, found.guarantee, found.guarantee_alone
    names = _printable(names)
    estimates = project(found.estimates, flags.consistent)
    answer: dict[str, Any] = {
        "table": printable(tables),
        "column": printable(flags.column),
        "n": query.n,
        "k": query.k,
        "mechanism": query.mechanism,
        "local_epsilon": None if flags.trust == "central" else query.oracle.epsilon,  # type: ignore[union-attr]
        "bits_per_client": query.message_bits,
        "random_bits_per_client": query.random_bits,
        "estimates": dict(zip(names, estimates.tolist(), strict=True)),
        "projection": flags.consistent,
        "intervals": dict(zip(names, found.band.intervals.tolist(), strict=True)),
        "confidence": flags.confidence,
        "rmse": (query.mse / query.k) ** 0.5,
        "epsilon": price.epsilon,
        "delta": price.delta,
        "trust": flags.trust,
        "unit": price.neighbours.unit.value,
        "simulated": price.simulated,
        "guarantee": str(price),
    }
    if flags.max_random_bits is not None:
        answer["max_random_bits"] = flags.max_random_bits
    if flags.heavy_hitters:
        heavy = heavy_of(found.estimates, found.band, flags.threshold)
        answer |= {
            "heavy_hitters": [names[value] for value in heavy.values.tolist()],
            "threshold": flags.threshold,
            "false_alarm": heavy.false_alarm,
        }
    about = [About(trust=flags.trust, units=query.n)]
    if alone is not None:
        answer |= {"epsilon_alone": alone.epsilon, "guarantee_alone": str(alone)}
        about.append(About(trust="local", units=query.n))
    return Statement(
        kind="frequencies",
        guarantees=(price,) if alone is None else (price, alone),
        about=tuple(about),
        notes=tuple(notes_on(query.n, flags.confidence, price.neighbours.unit, flags.consistent)),
        answer=answer,
    ).to_builtins()


def notes_on(n: int, confidence: float, unit: str, projection: str) -> list[str]:
    """Return what the frequencies of n units mean; the statement of frequencies must hold it."""
    people = (
        "persons, each counted once, by the first of the person's records" if unit == "person" else "records"
    )
    unbiased = "are unbiased; they may lie below 0 and need not add up to 1"
    made = unbiased if projection in ("none", "sum") else f"were made consistent ({projection})"
    return [
        f"all intervals together hold the frequencies of the {n} {people}, with probability "
        f"{100 * confidence:.10g} % over the noise; sampling error is not in it.",
        f"cells outside of the public values counted as {OTHER!r}; the number of {unit}s counts as public.",
        f"the estimates {made}; the intervals are those of the unbiased ones.",
    ]


def _printable(names: list[str]) -> list[str]:
    """Return names that can be read again; two that would look alike keep their places apart."""
    shown = [printable(name) for name in names]
    return shown if len(set(shown)) == len(shown) else [f"{name} ({k})" for k, name in enumerate(shown)]


def _in_order(found: Frequencies, flags: FrequencyFlags) -> IntArray:
    """Return the values that are shown, the most frequent first."""
    import numpy as np

    from tacit.frequencies import heavy_of

    if flags.heavy_hitters:
        return heavy_of(found.estimates, found.band, flags.threshold).values
    return np.argsort(-found.estimates, kind="stable")


def _draw(path: Path, tables: str, names: list[str], found: Frequencies, flags: FrequencyFlags) -> None:
    """Draw the most frequent values."""
    from tacit.cli.frequency_plot import draw_frequencies

    shown = _in_order(found, flags)[: 2 * _SHOWN].tolist()
    names = _printable(names)
    draw_frequencies(
        path,
        [names[value] for value in shown],
        found.estimates[shown],
        found.band.intervals[shown],
        title=f"{printable(flags.column)}: {found.query.n} {found.guarantee.neighbours.unit.plural} of "
        f"{printable(tables)}, epsilon {found.guarantee.epsilon:g}, {flags.trust} trust",
        confidence=flags.confidence,
        threshold=flags.threshold if flags.heavy_hitters else None,
    )


def _show(tables: str, names: list[str], found: Frequencies, flags: FrequencyFlags) -> None:
    """Print the frequencies for people: the most frequent ones of many."""
    from tacit.frequencies import project

    query, unit = found.query, found.guarantee.neighbours.unit
    estimates = project(found.estimates, flags.consistent)
    names = _printable(names)
    order = _in_order(found, flags)
    shown = order[:_SHOWN] if len(order) > _SHOWN + 5 else order
    rows = [
        (names[k], f"{estimates[k]:.4g}", f"{found.band.lower[k]:.4g} to {found.band.upper[k]:.4g}")
        for k in shown.tolist()
    ]
    columns = (printable(flags.column), "frequency", f"{100 * flags.confidence:.10g} % for all of them")
    print_text(f"{tables}: {query.n} {unit.plural}, {query.k} values")
    print_table(columns, rows, right=columns[1:])
    if len(shown) < len(order):
        print_text(f"... and {len(order) - len(shown)} more; --json has them all.")
    print_text("")
    if flags.heavy_hitters:
        sure = 50 * (1 + flags.confidence)
        print_text(
            f"- with probability {sure:.10g} % no value is listed here that is not more frequent than "
            f"{flags.threshold:g}."
        )
    print_text(
        f"- {query.mechanism}: {query.message_bits} bits and {query.random_bits:.3g} random bits a "
        f"{unit.value}; root mean square error of one frequency {(query.mse / query.k) ** 0.5:.3g}."
    )
    for note in notes_on(query.n, flags.confidence, unit, flags.consistent):
        print_text(f"- {note}")
    print_text(f"\n{found.guarantee}")
    if found.guarantee_alone is not None:
        print_text(f"\none message alone: {found.guarantee_alone}")
