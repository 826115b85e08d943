"""How frequencies are handed over: to programs, to people, and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tacit.cli.frequencies.columns import OTHER
from tacit.cli.output import print_table, print_text
from tacit.errors import printable

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.cli.frequencies.flags import FrequencyFlags
    from tacit.frequencies import Frequencies
    from tacit.numerics import IntArray
    from tacit.privacy import Guarantee

__all__ = ["SHOWN", "draw", "facts_of", "notes_on", "report", "show", "shown_names", "stated"]

SHOWN: Final = 20
"""Values that people see of many."""


def facts_of(tables: str, names: list[str], found: Frequencies, flags: FrequencyFlags) -> dict[str, Any]:
    """Return the answer for programs; it is a statement, which `tacit account verify` accepts."""
    from tacit.frequencies import heavy_of, project

    query, price, alone = found.query, found.guarantee, found.guarantee_alone
    names = shown_names(names)
    estimates = project(found.estimates, flags.consistent)
    answer: dict[str, Any] = {
        "table": printable(tables),
        "column": printable(flags.column),
        "n": query.n,
        "k": query.k,
        "mechanism": query.mechanism,
        "local_epsilon": getattr(query.oracle, "epsilon", None),
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
    seen = "local"
    if alone is not None and query.tables:
        answer |= {"tables": query.tables, "colluding": flags.colluding}
        seen = flags.trust
    notes = notes_on(query.n, flags.confidence, price.neighbours.unit, flags.consistent)
    return stated("frequencies", answer, price, alone, n=query.n, trust=flags.trust, seen=seen, notes=notes)


def stated(
    kind: str,
    facts: dict[str, Any],
    price: Guarantee,
    alone: Guarantee | None,
    *,
    n: int,
    trust: str,
    notes: list[str],
    seen: str = "local",
) -> dict[str, Any]:
    """Return an answer for programs; it is a statement, which `tacit account verify` accepts.

    Args:
        kind: Of the statement.
        facts: Of the answer.
        price: What everybody learns.
        alone: What one message alone tells; None where nobody sees one.
        n: Number of units.
        trust: Who is trusted.
        notes: What must be known besides.
        seen: The trust model of whoever sees one message alone: "local", or the same as `trust`.
    """
    from tacit.privacy.statement import About, Statement

    about = [About(trust=trust, units=n)]
    if alone is not None:
        facts = facts | {"epsilon_alone": alone.epsilon, "guarantee_alone": str(alone)}
        about.append(About(trust=seen, units=n, alone=True) if seen == trust else About(trust=seen, units=n))
    return Statement(
        kind=kind,
        guarantees=(price,) if alone is None else (price, alone),
        about=tuple(about),
        notes=tuple(notes),
        answer=facts,
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


def shown_names(names: list[str]) -> list[str]:
    """Return names that can be read again; two that would look alike keep their places apart."""
    shown = [printable(name) for name in names]
    return shown if len(set(shown)) == len(shown) else [f"{name} ({k})" for k, name in enumerate(shown)]


def _in_order(found: Frequencies, flags: FrequencyFlags) -> IntArray:
    """Return the values that are shown, the most frequent first."""
    import numpy as np

    from tacit.frequencies import heavy_of

    if flags.heavy_hitters:
        return heavy_of(found.estimates, found.band, flags.threshold).values.astype(np.int64)
    return np.argsort(-found.estimates, kind="stable")


def draw(path: Path, tables: str, names: list[str], found: Frequencies, flags: FrequencyFlags) -> None:
    """Draw the most frequent values."""
    from tacit.reports import draw_frequencies

    title = (
        f"{printable(flags.column)}: {found.query.n:,} {found.guarantee.neighbours.unit.plural} of "
        f"{printable(tables)}, epsilon {found.guarantee.epsilon:g}, {flags.trust} trust"
    )
    draw_frequencies(
        shown_names(names),
        found,
        _in_order(found, flags),
        confidence=flags.confidence,
        threshold=flags.threshold if flags.heavy_hitters else None,
        title=title,
    ).savefig(path, dpi=200)


def report(path: Path, tables: str, names: list[str], found: Frequencies, flags: FrequencyFlags) -> None:
    """Write a page about the answer."""
    from tacit.cli.pages import write_page
    from tacit.reports import frequency_page

    page = frequency_page(
        shown_names(names),
        found,
        _in_order(found, flags),
        table=printable(tables),
        column=printable(flags.column),
        confidence=flags.confidence,
        projection=flags.consistent,
        threshold=flags.threshold if flags.heavy_hitters else None,
    )
    write_page(path, page)


def show(tables: str, names: list[str], found: Frequencies, flags: FrequencyFlags) -> None:
    """Print the frequencies for people: the most frequent ones of many."""
    from tacit.frequencies import project

    query, unit = found.query, found.guarantee.neighbours.unit
    estimates = project(found.estimates, flags.consistent)
    names = shown_names(names)
    order = _in_order(found, flags)
    shown = order[:SHOWN] if len(order) > SHOWN + 5 else order
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
    sent = f"{query.message_bits} bits"
    if not query.tables:
        sent += f" and {query.random_bits:.3g} random bits"
    print_text(
        f"- {query.mechanism}: {sent} a {'table' if query.tables else unit.value}; root mean square error of "
        f"one frequency {(query.mse / query.k) ** 0.5:.3g}."
    )
    for note in notes_on(query.n, flags.confidence, unit, flags.consistent):
        print_text(f"- {note}")
    print_text(f"\n{found.guarantee}")
    if found.guarantee_alone is not None:
        print_text(f"\none message alone: {found.guarantee_alone}")
