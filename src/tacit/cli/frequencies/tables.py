"""`tacit frequencies` of several columns: tables of their combinations, which agree on what they share."""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING, Any

from tacit.cli.frequencies.answers import SHOWN, shown_names, stated
from tacit.cli.frequencies.columns import OTHER, Domain, read_column
from tacit.cli.frequencies.flags import budget_of
from tacit.cli.output import print_json, print_table, print_text, progress
from tacit.cli.paying import charged, paying_places
from tacit.errors import ParameterError, printable

if TYPE_CHECKING:
    from tacit.cli.frequencies.flags import FrequencyFlags
    from tacit.data import TableFiles
    from tacit.frequencies import TableFrequencies

__all__ = ["answer_tables", "notes_on_tables"]


def answer_tables(flags: FrequencyFlags) -> None:
    """Estimate tables of several columns, and print them."""
    import msgspec
    import numpy as np

    from tacit.data import find_tables
    from tacit.frequencies import TablesQuery, estimate_tables
    from tacit.privacy import Neighbours, TrustModel, Unit
    from tacit.privacy.weak import warn_of_weak
    from tacit.randomness import secure, simulated

    files = find_tables(flags.data)
    domains = _domains(flags, files)
    person = flags.person or files.described().person
    neighbours = Neighbours(unit=Unit.RECORD if person is None else Unit.PERSON)
    held = [read_column(files, name, domains[name], person=person)[0] for name in flags.columns]
    values = np.stack(held, axis=1)
    with progress("calibrating"):
        query = TablesQuery.calibrated(
            sizes=[len(domains[name].names) for name in flags.columns],
            n=len(values),
            budget=budget_of(0.0 if flags.epsilon is None else flags.epsilon, flags.delta, flags.trust),
            kind=flags.tables,
            trust=TrustModel(flags.trust),
            neighbours=neighbours,
            mechanism=flags.mechanism,
        )
    price = msgspec.structs.replace(query.price, simulated=flags.seed is not None)
    warn_of_weak(price.epsilon, price.delta, units=query.n, unit=neighbours.unit)
    rng = secure() if flags.seed is None else simulated(flags.seed, "tables")
    own = flags.trust != "central"
    places = paying_places(files, flags.ledger, neighbours, local=own) if flags.seed is None else []
    names = {name: domains[name].names for name in flags.columns}
    asked = [names, query.n, query.tables, query.dealt, query.price.event, person]
    plan = hashlib.sha256(msgspec.json.encode(asked, enc_hook=str)).digest()
    with charged(places, price, kind="frequencies", plan=plan, local=own) as pay:
        found = estimate_tables(values, query, confidence=flags.confidence, rng=rng)
        with pay():
            shown = {printable(name): shown_names(values) for name, values in names.items()}
            if flags.json:
                print_json(_facts(", ".join(flags.data), shown, found, flags))
            else:
                _show(", ".join(flags.data), shown, found, flags)


def _domains(flags: FrequencyFlags, files: TableFiles) -> dict[str, Domain]:
    """Return the public values of every column: `--values a=yes,no`, else those that are described."""
    given: dict[str, list[str]] = {}
    for text in flags.values or []:
        name, equals, listed = text.partition("=")
        if not equals or name not in flags.columns or name in given:
            raise ParameterError(
                f"values must be like `--values {flags.column}=a,b`, once for a column, got {text!r:.80}."
            )
        given[name] = [listed]
    return {name: Domain.given(given.get(name), None, files, name) for name in flags.columns}


def _facts(
    files: str, names: dict[str, list[str]], found: TableFrequencies, flags: FrequencyFlags
) -> dict[str, Any]:
    """Return the answer for programs; it is a statement, which `tacit account verify` accepts."""
    from tacit.frequencies import FrequencyOracle

    query, price, alone = found.query, found.guarantee, found.guarantee_alone
    columns = list(names)
    facts: dict[str, Any] = {
        "table": printable(files),
        "columns": names,
        "n": query.n,
        "answering": "one table" if query.dealt else "every table",
        "tables": [
            {
                "columns": [columns[column] for column in table.columns],
                "n": asked.n,
                "mechanism": asked.mechanism,
                "local_epsilon": asked.oracle.epsilon if isinstance(asked.oracle, FrequencyOracle) else None,
                "rmse": (asked.mse / asked.k) ** 0.5,
                "estimates": table.estimates.tolist(),
                "intervals": table.band.intervals.reshape(*table.estimates.shape, 2).tolist(),
            }
            for table, asked in zip(found.tables, query.queries, strict=True)
        ],
        "bits_per_client": query.message_bits,
        "random_bits_per_client": query.random_bits,
        "confidence": flags.confidence,
        "epsilon": price.epsilon,
        "delta": price.delta,
        "trust": flags.trust,
        "unit": price.neighbours.unit.value,
        "simulated": price.simulated,
        "guarantee": str(price),
    }
    notes = notes_on_tables(query.n, flags.confidence, price.neighbours.unit)
    return stated("frequencies tables", facts, price, alone, n=query.n, trust=flags.trust, notes=notes)


def notes_on_tables(n: int, confidence: float, unit: str) -> list[str]:
    """Return what tables of n units mean; the statement of tables must hold it."""
    once = ", each counted once, by the first of the person's records" if unit == "person" else ""
    return [
        f"all intervals of all tables together hold the frequencies of the {n} {unit}s{once}, with "
        f"probability {100 * confidence:.10g} % over the noise; sampling error is not in it.",
        f"cells outside of the public values counted as {OTHER!r}; the number of {unit}s counts as public.",
        "estimates of all tables agree on what they share (least squares) and are unbiased: they may lie "
        "below 0; the intervals are those of each table by itself.",
    ]


def _show(files: str, names: dict[str, list[str]], found: TableFrequencies, flags: FrequencyFlags) -> None:
    """Print the tables for people: the most frequent combinations of each."""
    import numpy as np

    query, unit = found.query, found.guarantee.neighbours.unit
    columns = list(names)
    many = "1 table" if len(found.tables) == 1 else f"{len(found.tables)} tables"
    print_text(f"{files}: {query.n} {unit.plural}, {many} of {len(columns)} columns")
    for table in found.tables:
        own = [columns[column] for column in table.columns]
        cells = list(itertools.product(*(names[name] for name in own)))
        flat, band = table.estimates.ravel(), table.band
        order = np.argsort(-flat, kind="stable")[:SHOWN].tolist()
        heads = (*own, "frequency", f"{100 * flags.confidence:.10g} % for all tables")
        print_table(
            heads,
            [(*cells[k], f"{flat[k]:.4g}", f"{band.lower[k]:.4g} to {band.upper[k]:.4g}") for k in order],
            right=heads[-2:],
        )
        if len(order) < len(cells):
            print_text(f"... and {len(cells) - len(order)} more; --json has them all.")
        print_text("")
    who = f"each {unit.value} in {'one table' if query.dealt else 'every table'}"
    how = ", ".join(dict.fromkeys(one.mechanism for one in query.queries))
    bits = f"{query.message_bits} bits and {query.random_bits:.3g} random bits a {unit.value}"
    print_text(f"- {how}, {who}: {bits}.")
    for note in notes_on_tables(query.n, flags.confidence, unit):
        print_text(f"- {note}")
    print_text(f"\n{found.guarantee}")
    if found.guarantee_alone is not None:
        print_text(f"\none {unit.value}'s messages alone: {found.guarantee_alone}")
