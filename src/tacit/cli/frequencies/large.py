"""`tacit frequencies --heavy-hitters --domain BITS`: the frequent ones of more values than can be listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.cli.frequencies.answers import SHOWN, stated
from tacit.cli.output import print_table, print_text
from tacit.errors import printable

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.cli.frequencies.flags import FrequencyFlags
    from tacit.frequencies import Found, PrefixTree

__all__ = ["LargeAnswer", "draw", "facts_of", "facts_of_tree", "notes_on_tree", "show"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LargeAnswer:
    """What was found.

    Attributes:
        found: Values, with the tree that found them.
        names: Their texts, where these are known.
    """

    found: Found
    names: list[str | None]

    @property
    def shown(self) -> list[str]:
        """Names of the values: what they are known as, else their numbers."""
        numbers = map(str, self.found.heavy.values.tolist())
        return [
            number if name is None else printable(name)
            for number, name in zip(numbers, self.names, strict=True)
        ]


def draw(path: Path, tables: str, names: list[str], found: LargeAnswer, flags: FrequencyFlags) -> None:
    """Nothing is drawn: options refuse a picture of values that nobody lists."""


def facts_of_tree(tree: PrefixTree) -> dict[str, Any]:
    """Return what follows from a tree: sizes, errors and bits."""
    from tacit.frequencies import NoisyHistogram

    return {
        "n": tree.n,
        "bits": tree.bits,
        "answering": "one level" if tree.layout.dealt else "every level",
        "kept": tree.layout.kept,
        "tree": [
            {
                "prefix": level.prefix,
                "n": level.n,
                "k": level.oracle.k,
                "mechanism": level.mechanism,
                "local_epsilon": None if isinstance(level.oracle, NoisyHistogram) else level.oracle.epsilon,
            }
            for level in tree.levels
        ],
        "bits_per_client": tree.message_bits,
        "random_bits_per_client": tree.random_bits,
        "threshold": tree.threshold,
        "false_alarm": tree.false_alarm,
        "miss": tree.miss,
        "detectable": tree.detectable if tree.detectable <= 1 else None,
        "trust": tree.trust.value,
    }


def facts_of(tables: str, _names: list[str], answer: LargeAnswer, flags: FrequencyFlags) -> dict[str, Any]:
    """Return the answer for programs; it is a statement, which `tacit account verify` accepts."""
    found, tree = answer.found, answer.found.tree
    heavy, price, alone = found.heavy, found.guarantee, found.guarantee_alone
    facts: dict[str, Any] = {
        "table": printable(tables),
        "column": printable(flags.column),
        "items": flags.items,
        "hash_seed": flags.hash_seed,
        **facts_of_tree(tree),
        "heavy_hitters": [
            {"item": value, "text": None if name is None else printable(name), "estimate": estimate}
            | {"interval": [low, high]}
            for value, name, estimate, low, high in zip(
                heavy.values.tolist(),
                answer.names,
                heavy.estimates.tolist(),
                heavy.lower.tolist(),
                heavy.upper.tolist(),
                strict=True,
            )
        ],
        "confidence": flags.confidence,
        "epsilon": price.epsilon,
        "delta": price.delta,
        "unit": price.neighbours.unit.value,
        "simulated": price.simulated,
        "guarantee": str(price),
    }
    notes = notes_on_tree(tree, flags.items, price.neighbours.unit)
    return stated("frequencies large", facts, price, alone, n=tree.n, trust=flags.trust, notes=notes)


def notes_on_tree(tree: PrefixTree, items: str, unit: str) -> list[str]:
    """Return what the values that a tree found mean; their statement must hold it."""
    once = ", each counted once, by the first of the person's records" if unit == "person" else ""
    detectable = (
        f"a value that {100 * tree.detectable:.4g} % of the {unit}s hold, or more, is found with probability "
        f"{100 * (1 - tree.miss):.10g} % at least, whatever the others hold"
        if tree.detectable <= 1
        else "no frequency is so large that a value is found with probability "
        f"{100 * (1 - tree.miss):.10g} %: there are too few {unit}s for this epsilon"
    )
    hashed = (
        f" Texts are the first {tree.bits} bits of a public hash: two of them are one value with probability "
        f"2^-{tree.bits}."
        if items == "hashed"
        else ""
    )
    return [
        f"{detectable}.",
        f"with probability {100 * (1 - tree.false_alarm):.10g} % no value is listed that is not held by "
        f"more than {100 * tree.threshold:.10g} % of the {tree.n} {unit}s{once}.{hashed}",
        f"cells that are missing, or no value, counted as none; the number of {unit}s counts as public.",
    ]


def show(tables: str, _names: list[str], answer: LargeAnswer, flags: FrequencyFlags) -> None:
    """Print what was found for people."""
    found, tree = answer.found, answer.found.tree
    heavy, unit = found.heavy, found.guarantee.neighbours.unit
    rows = [
        (name, f"{estimate:.4g}", f"{low:.4g} to {high:.4g}")
        for name, estimate, low, high in list(
            zip(answer.shown, heavy.estimates, heavy.lower, heavy.upper, strict=True)
        )[:SHOWN]
    ]
    columns = (printable(flags.column), "frequency", f"{100 * flags.confidence:.10g} % for all of them")
    print_text(f"{tables}: {tree.n} {unit.plural}, 2^{tree.bits} values, {len(heavy.values)} found")
    if rows:
        print_table(columns, rows, right=columns[1:])
    if len(rows) < len(heavy.values):
        print_text(f"... and {len(heavy.values) - len(rows)} more; --json has them all.")
    if flags.items == "hashed" and None in answer.names:
        print_text("Numbers are hashes of texts on no list; --dictionary FILE reads a public list back.")
    print_text("")
    levels = ", ".join(f"{level.prefix} bits by {level.mechanism}" for level in tree.levels)
    who = f"each {unit.value} in one level" if tree.layout.dealt else f"each {unit.value} in every level"
    print_text(
        f"- prefixes of {levels}, {who}: {tree.message_bits} bits and {tree.random_bits:.3g} random bits a "
        f"{unit.value}."
    )
    for note in notes_on_tree(tree, flags.items, unit):
        print_text(f"- {note}")
    print_text(f"\n{found.guarantee}")
    if found.guarantee_alone is not None:
        print_text(f"\none {unit.value}'s messages alone: {found.guarantee_alone}")
