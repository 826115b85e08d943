"""`tacit frequencies`: how often the values of a column are held."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tacit.cli.flags import takes
from tacit.cli.frequencies.answers import draw, facts_of, show
from tacit.cli.frequencies.columns import Domain, read_column
from tacit.cli.frequencies.flags import FrequencyFlags
from tacit.cli.output import print_json, progress
from tacit.cli.paying import charged, paying_places

if TYPE_CHECKING:
    from tacit.frequencies import FrequenciesQuery

__all__ = ["frequencies"]


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
                draw(flags.plot, ", ".join(flags.data), domain.names, found, flags)
            if flags.json:
                print_json(facts_of(", ".join(flags.data), domain.names, found, flags))
            else:
                show(", ".join(flags.data), domain.names, found, flags)


def _digest(query: FrequenciesQuery, column: str, names: list[str], person: str | None) -> bytes:
    """Return the digest of what is asked."""
    import msgspec

    facts = [column, names, query.n, query.mechanism, query.price.event, person]
    return hashlib.sha256(msgspec.json.encode(facts, enc_hook=str)).digest()
