"""What `tacit frequencies` is asked: whose values, of which domain, at what price."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_picture
from tacit.cli.names import FREQUENCY_MECHANISMS, PROJECTIONS, TABLE_KINDS
from tacit.cli.output import JsonFlag
from tacit.cli.pages import ReportFlag, check_page
from tacit.cli.paying import LedgerOption, SeedOption
from tacit.errors import ParameterError, check_count, check_positive, check_probability

if TYPE_CHECKING:
    from tacit.frequencies import FrequenciesQuery
    from tacit.privacy import Neighbours, PrivacyBudget

__all__ = [
    "ITEMS",
    "NUMBERS",
    "SEVERAL",
    "TRUSTS",
    "DeltaOption",
    "FrequencyFlags",
    "LevelsOption",
    "MaxMessageBitsOption",
    "MaxRandomBitsOption",
    "budget_of",
    "check_levels",
]

NUMBERS: Final = ("--levels",)
"""Options that take several numbers."""
SEVERAL: Final = ("--data", "--values", *NUMBERS)
"""Options that take several values."""
TRUSTS: Final = ("local", "shuffle", "aggregate", "central")
ITEMS: Final = ("hashed", "numbers")
USUAL_DELTA: Final = 1e-6
"""Delta behind a shuffler and in a sum, where none is given."""
_MISS: Final = 0.05

LevelsOption = Annotated[
    list[float] | None,
    typer.Option(
        help="Epsilon of every analyst, in order: `--levels 0.5,1,2`. One message serves all of them.",
        show_default="one analyst, who is everybody",
    ),
]
DeltaOption = Annotated[
    float | None,
    typer.Option(
        help="Probability that the bound may fail.",
        show_default="0, or 1e-6 with --trust shuffle or aggregate",
    ),
]
MaxRandomBitsOption = Annotated[
    float | None, typer.Option(help="Most fair bits that a client may need.", show_default="no limit")
]
MaxMessageBitsOption = Annotated[
    int | None, typer.Option(help="Most bits of a message.", show_default="no limit")
]


@dataclass(frozen=True, kw_only=True)
class FrequencyFlags:
    """Whose values are counted, of which domain, and what that may cost."""

    data: Annotated[list[str], typer.Option(help="Tables, a pattern or a folder, one row per record.")]
    columns: Annotated[
        list[str],
        typer.Option("--column", help="Name of the column; several for tables: `--column a --column b`."),
    ]
    tables: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(
                TABLE_KINDS,
                told={"joint": "one of all columns", "pairs": "of every pair", "singles": "of every column"},
            ),
            help="Which tables of several columns: {names}.",
            show_default="joint or pairs, as has less error",
        ),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Privacy budget of all frequencies together.", show_default="the largest of --levels"
        ),
    ] = None
    levels: LevelsOption = None
    values: Annotated[
        list[str] | None,
        typer.Option(
            help="All possible values, which are public: `--values a,b,c`. Any other cell counts as other.",
            show_default="the categories of the column description",
        ),
    ] = None
    domain: Annotated[
        str | None,
        typer.Option(
            help="File with the possible values, one a line; or bits, to 64, with --heavy-hitters.",
            show_default="none",
        ),
    ] = None
    items: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                ITEMS,
                told={"hashed": "texts, by a public hash", "numbers": "whole numbers below 2^bits"},
            ),
            help="What cells are in a domain of so many bits: {names}.",
        ),
    ] = "hashed"
    hash_seed: Annotated[int, typer.Option(help="Public seed of the hash.", show_default="0")] = 0
    dictionary: Annotated[
        Path | None,
        typer.Option(help="File with texts, one a line, whose hashes are read back.", show_default="none"),
    ] = None
    miss: Annotated[
        float,
        typer.Option(help="Probability that a value as frequent as is stated is not found, at most."),
    ] = _MISS
    delta: DeltaOption = None
    trust: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                TRUSTS,
                told={
                    "local": "every record is randomised by itself",
                    "shuffle": "so it is, and nobody knows whose message is whose",
                    "aggregate": "every table adds a share of the noise, and only their sum is seen",
                    "central": "who holds the table adds noise",
                },
            ),
            help="Who is trusted: {names}.",
        ),
    ] = "local"
    colluding: Annotated[
        int,
        typer.Option(
            help="Tables that may add no noise and tell what they added to the sum, under aggregate trust."
        ),
    ] = 0
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
    max_random_bits: MaxRandomBitsOption = None
    max_message_bits: MaxMessageBitsOption = None
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
    seed: SeedOption = None
    ledger: LedgerOption = None
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the most frequent values with their intervals into this file.",
            show_default="no picture",
        ),
    ] = None
    report: ReportFlag = None
    json: JsonFlag = False

    def __post_init__(self) -> None:
        if self.plot is not None:
            check_picture(self.plot)
        check_page(self.report)
        if self.seed is not None and self.ledger is not None:
            raise ParameterError(
                "--ledger is for answers that leave; with --seed the answer is a simulation."
            )
        if check_count("colluding", self.colluding, low=0) and self.trust != "aggregate":
            raise ParameterError(
                f"colluding is for trust 'aggregate', got {self.colluding} with trust {self.trust!r}."
            )
        if self.levels is not None:
            others = {
                "trust": self.trust if self.trust != "local" else None,
                "delta": self.delta or None,
                "mechanism": self.mechanism,
                "max_random_bits": self.max_random_bits,
                "max_message_bits": self.max_message_bits,
                "heavy_hitters": self.heavy_hitters or None,
                "report": None if self.report is None else str(self.report),
            }
            check_levels(self.levels, self.epsilon, others)
        elif self.epsilon is None:
            raise ParameterError("--epsilon must be given, or --levels with one for every analyst.")
        check_probability("confidence", self.confidence, low_open=True, high_open=True)
        check_probability("threshold", self.threshold, high_open=True)
        if self.threshold and not self.heavy_hitters:
            raise ParameterError(f"threshold is for --heavy-hitters, got {self.threshold!r} without it.")
        check_probability("miss", self.miss, low_open=True, high_open=True)
        if self.domain is not None and not self.heavy_hitters and _is_bits(self.domain):
            raise ParameterError(
                f"domain must be a file, or bits with --heavy-hitters, got {self.domain!r} without it."
            )
        self._check_large()
        self._check_tables()

    @property
    def column(self) -> str:
        """The one column, or the first of several."""
        return self.columns[0]

    def _check_tables(self) -> None:
        """Refuse what is for one column beside several, and the other way round."""
        if len(self.columns) == 1:
            if self.tables is not None:
                raise ParameterError(f"tables is for several columns, got {self.tables!r} with one.")
            return
        if len(set(self.columns)) < len(self.columns):
            raise ParameterError(f"columns must be different ones, got {self.columns}.")
        if self.trust == "aggregate":
            raise ParameterError("trust must be local, shuffle or central for tables, got 'aggregate'.")
        others = {
            "levels": self.levels,
            "domain": self.domain,
            "heavy_hitters": self.heavy_hitters or None,
            "max_random_bits": self.max_random_bits,
            "max_message_bits": self.max_message_bits,
            "projection": self.projection,
            "plot": self.plot,
        }
        for name, given in others.items():
            if given is not None:
                raise ParameterError(f"{name} must not be given beside several columns, got {given!s:.80}.")

    @property
    def bits(self) -> int | None:
        """Bits of a domain too large to list; None where its values are listed."""
        if not (self.heavy_hitters and self.domain is not None and _is_bits(self.domain)):
            return None
        return check_count("domain", int(self.domain[:9]), high=64)

    def _check_large(self) -> None:
        """Refuse what is for a domain of so many bits without one, and the other way round."""
        large = {
            "items": self.items if self.items != "hashed" else None,
            "hash_seed": self.hash_seed or None,
            "dictionary": self.dictionary,
            "miss": self.miss if self.miss != _MISS else None,
        }
        listed = {
            "values": self.values,
            "max_random_bits": self.max_random_bits,
            "max_message_bits": self.max_message_bits,
            "projection": self.projection,
            "plot": self.plot,
            "report": self.report,
        }
        wrong, why = (
            (large, "is for --heavy-hitters with a --domain of so many bits")
            if self.bits is None
            else (listed, "must not be given for a domain of so many bits, whose values nobody lists")
        )
        for name, given in wrong.items():
            if given is not None:
                said = ",".join(given) if isinstance(given, list) else str(given)
                raise ParameterError(f"{name} {why}, got {said!r}.")
        if self.items == "numbers" and (self.dictionary or self.hash_seed):
            raise ParameterError("dictionary and hash_seed are for --items hashed, got numbers.")

    @property
    def consistent(self) -> str:
        """How estimates are made consistent; with many rare values, the simplex lowers the large ones."""
        return self.projection or ("none" if self.heavy_hitters else "simplex")

    def query(self, k: int, sizes: Sequence[int], neighbours: Neighbours) -> FrequenciesQuery:
        """Return what is asked of tables of so many units about k values, calibrated."""
        from tacit.frequencies import FrequenciesQuery
        from tacit.privacy import TrustModel

        return FrequenciesQuery.calibrated(
            k=k,
            n=sum(sizes),
            budget=budget_of(0.0 if self.epsilon is None else self.epsilon, self.delta, self.trust),
            trust=TrustModel(self.trust),
            neighbours=neighbours,
            mechanism=self.mechanism,
            max_random_bits=self.max_random_bits,
            max_message_bits=self.max_message_bits,
            parties=sizes if self.trust == "aggregate" else (),
            colluding=self.colluding,
        )


def _is_bits(domain: str) -> bool:
    """Return whether a domain is given by its number of bits, and not as a file."""
    return re.fullmatch("[0-9]+", domain) is not None


def check_levels(levels: list[float], epsilon: float | None, others: Mapping[str, object]) -> None:
    """Refuse levels in no order, above a budget, or with what is for one analyst or another trust model.

    Args:
        levels: Epsilon of every analyst.
        epsilon: Budget of what all of them learn together; None for the largest.
        others: Options that are for one analyst; None where they are not given.
    """
    for level in levels:
        check_positive("levels", level)
    if levels not in (sorted(set(levels)), sorted(set(levels), reverse=True)):
        raise ParameterError(
            f"levels must increase or decrease, each another one, got {levels}; analysts of one level share "
            "its answer."
        )
    if epsilon is not None and max(levels) > check_positive("epsilon", epsilon):
        raise ParameterError(
            f"levels must be at most epsilon = {epsilon!r}, the budget of what all analysts learn together, "
            f"got {max(levels)!r}; a larger --epsilon, or none, allows it."
        )
    for name, given in others.items():
        if given is not None:
            raise ParameterError(
                f"{name} must not be given beside --levels, got {given!r}: levels are for local trust, one "
                "Hadamard bit from every record, and a bit of key for every analyst but the last."
            )


def budget_of(epsilon: float, delta: float | None, trust: str) -> PrivacyBudget:
    """Return the budget of a question, with a delta where a shuffler or a sum needs one."""
    from tacit.privacy import PrivacyBudget

    usual = USUAL_DELTA if trust in ("shuffle", "aggregate") else 0.0
    return PrivacyBudget(epsilon, usual if delta is None else delta)
