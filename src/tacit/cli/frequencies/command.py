"""`tacit frequencies`: how often the values of a column are held."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tacit.cli.flags import takes
from tacit.cli.frequencies import answers, large, levels
from tacit.cli.frequencies.columns import Domain, read_column
from tacit.cli.frequencies.flags import FrequencyFlags, budget_of
from tacit.cli.frequencies.large_domain import LargeDomain
from tacit.cli.frequencies.tables import answer_tables
from tacit.cli.output import print_json, progress
from tacit.cli.paying import charged, paying_places
from tacit.errors import check_count

if TYPE_CHECKING:
    from numpy.random import Generator

    from tacit.numerics import IntArray
    from tacit.privacy import Guarantee, Neighbours

__all__ = ["frequencies"]


@takes(FrequencyFlags)
def frequencies(flags: FrequencyFlags) -> None:
    """Estimate how often each value of a column is held, with exact integer noise.

    The possible values must be public: --values, --domain, or the categories of the column description. Any
    other cell, also a missing one, counts as other. The number of records counts as public. All intervals
    together hold the frequencies of these records with the stated probability. Where persons are protected,
    every person counts once, by the first of the person's records: once in every table under aggregate trust,
    where each table is a party. With --levels several analysts learn, each
    at an epsilon of its own, from one message of every record.

    With several columns, tables of their combinations are estimated, which agree on what they share.

    With --heavy-hitters --domain 32 any text is a value, by 32 bits of a public hash; those that are found
    for certain are shown, and how frequent a value must be to be found. Missing cells count as other.
    """
    import msgspec

    from tacit.data import find_tables
    from tacit.privacy import Neighbours, Unit
    from tacit.privacy.weak import warn_of_weak
    from tacit.randomness import secure, simulated

    if len(flags.columns) > 1:
        answer_tables(flags)
        return
    tables = find_tables(flags.data)
    domain: Domain | LargeDomain
    if flags.bits is None:
        file = None if flags.domain is None else Path(flags.domain)
        domain = Domain.given(flags.values, file, tables, flags.column)
    else:
        domain = LargeDomain(flags.bits, flags.items, flags.hash_seed, flags.dictionary)
    person = flags.person or tables.described().person
    neighbours = Neighbours(unit=Unit.RECORD if person is None else Unit.PERSON)
    values, sizes = read_column(tables, flags.column, domain, person=person, apart=flags.trust == "aggregate")
    n = sum(sizes)
    with progress("calibrating"):
        if isinstance(domain, LargeDomain):
            asked = _large(flags, domain, n, neighbours)
        else:
            asked = (_one if flags.levels is None else _several)(flags, len(domain.names), sizes, neighbours)
    price = msgspec.structs.replace(asked.price, simulated=flags.seed is not None)
    warn_of_weak(price.epsilon, price.delta, units=n, unit=neighbours.unit)
    rng = secure() if flags.seed is None else simulated(flags.seed, "frequencies")
    own = flags.trust != "central"
    places = paying_places(tables, flags.ledger, neighbours, local=own) if flags.seed is None else []
    digest = _digest([flags.column, domain.names, n, asked.mechanism, asked.price.event, person])
    with charged(places, price, kind="frequencies", plan=digest, local=own) as pay:
        found = asked.estimate(values, rng)
        with pay():
            if flags.plot is not None:
                asked.said.draw(flags.plot, ", ".join(flags.data), domain.names, found, flags)
            if flags.report is not None:
                answers.report(flags.report, ", ".join(flags.data), domain.names, found, flags)
            if flags.json:
                print_json(asked.said.facts_of(", ".join(flags.data), domain.names, found, flags))
            else:
                asked.said.show(", ".join(flags.data), domain.names, found, flags)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is asked, its price, and the module that hands the answer over."""

    price: Guarantee
    mechanism: str
    estimate: Callable[[IntArray, Generator], Any]
    said: ModuleType


def _one(flags: FrequencyFlags, k: int, sizes: list[int], neighbours: Neighbours) -> _Asked:
    """Ask for the frequencies at one level."""
    from tacit.frequencies import estimate_frequencies

    query = flags.query(k, sizes, neighbours)
    return _Asked(
        price=query.price,
        mechanism=query.mechanism,
        estimate=lambda values, rng: estimate_frequencies(
            values, query, confidence=flags.confidence, rng=rng
        ),
        said=answers,
    )


def _several(flags: FrequencyFlags, k: int, sizes: list[int], neighbours: Neighbours) -> _Asked:
    """Ask for those that several analysts find, each at a level."""
    from tacit.frequencies import LevelledHadamard, estimate_levels

    n = check_count("n", sum(sizes))
    scheme = LevelledHadamard.of_levels(k, flags.levels or ())
    everybody = range(len(scheme.epsilons))
    return _Asked(
        price=scheme.price(everybody, neighbours=neighbours),
        mechanism=repr(scheme),
        estimate=lambda values, rng: levels.LevelledAnswer(
            scheme=scheme,
            n=n,
            found=estimate_levels(
                values, scheme, confidence=flags.confidence, neighbours=neighbours, rng=rng
            ),
        ),
        said=levels,
    )


def _large(flags: FrequencyFlags, domain: LargeDomain, n: int, neighbours: Neighbours) -> _Asked:
    """Ask for the frequent ones of more values than can be listed."""
    from tacit.frequencies import PrefixTree, find_heavy_hitters
    from tacit.privacy import TrustModel

    tree = PrefixTree.calibrated(
        bits=domain.bits,
        n=n,
        budget=budget_of(0.0 if flags.epsilon is None else flags.epsilon, flags.delta, flags.trust),
        trust=TrustModel(flags.trust),
        neighbours=neighbours,
        threshold=flags.threshold,
        false_alarm=(1 - flags.confidence) / 2,
        miss=flags.miss,
        mechanism=flags.mechanism,
    )

    def search(values: IntArray, rng: Generator) -> large.LargeAnswer:
        items, outside = domain.split(values)
        found = find_heavy_hitters(items, tree, outside=outside, rng=rng)
        return large.LargeAnswer(found=found, names=domain.named(found.heavy.values))

    return _Asked(
        price=tree.price,
        mechanism=f"{domain.bits} {domain.items} {domain.seed} {tree.layout}",
        estimate=search,
        said=large,
    )


def _digest(facts: list[object]) -> bytes:
    """Return the digest of what is asked."""
    import msgspec

    return hashlib.sha256(msgspec.json.encode(facts, enc_hook=str)).digest()
