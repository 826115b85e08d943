"""`tacit messages`: what clients send about a column, in files; counted as a stream, merged, estimated."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_file
from tacit.cli.flags import takes
from tacit.cli.frequencies.answers import SHOWN, shown_names
from tacit.cli.frequencies.columns import Domain, lines_of, read_column
from tacit.cli.names import FREQUENCY_MECHANISMS, PROJECTIONS
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress
from tacit.cli.paying import LedgerOption, SeedOption, charged, paying_places
from tacit.cli.several import several
from tacit.errors import ParameterError, check_probability

if TYPE_CHECKING:
    from tacit.frequencies import CountsFile

__all__ = ["SEVERAL", "app"]

SEVERAL: Final = ("--data", "--values")
_FILES = Annotated[list[Path], typer.Argument(help="Files of messages or of counts, of one collection.")]

app = typer.Typer(help="Write, count and merge what clients send about a column.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Write, count and merge what clients send about a column."""


@dataclass(frozen=True, kw_only=True)
class EncodeFlags:
    """Whose values are sent, and how."""

    data: Annotated[list[str], typer.Option(help="Tables, a pattern or a folder, one row per record.")]
    column: Annotated[list[str], typer.Option(help="Name of the column.")]
    values: Annotated[
        list[str] | None,
        typer.Option(
            help="All possible values, which are public: `--values a,b,c`. Any other cell counts as other.",
            show_default="the categories of the column description",
        ),
    ] = None
    person: Annotated[
        str | None,
        typer.Option(
            help="Column with the id of each record's person, who is then protected and counts once.",
            show_default="as the column description has it, else records are protected",
        ),
    ] = None
    collection: Annotated[
        str,
        typer.Option(help="Name of what is collected; files of one collection count together."),
    ] = "frequencies"
    epsilon: Annotated[float, typer.Option(help="Privacy budget of one message.")]
    seed: SeedOption = None
    ledger: LedgerOption = None
    mechanism: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(FREQUENCY_MECHANISMS),
            help="What every record sends; the same in all files: {names}.",
            show_default="the one of the least error",
        ),
    ] = None
    domain: Annotated[
        Path | None, typer.Option(help="File with the possible values, one a line.", show_default="none")
    ] = None
    out: Annotated[Path, typer.Option(help="File that the messages go to; none that is there.")]
    json: JsonFlag = False

    def __post_init__(self) -> None:
        if self.seed is not None and self.ledger is not None:
            raise ParameterError("--ledger is for messages that leave; with --seed they are a simulation.")
        if len(self.column) > 1:
            raise ParameterError(
                f"column must be one, got {', '.join(self.column)}: messages are about one column each."
            )
        _check_new(self.out)


@app.command(cls=several(*SEVERAL))
@takes(EncodeFlags)
def encode(flags: EncodeFlags) -> None:
    """Randomise a column, each record by itself, and write the messages that clients would send.

    What leaves is private already: the file may go to a server that nobody trusts. Its first line says
    what made the messages. Messages hide no senders: mix them, or say whose a file is, as you can.
    """
    import msgspec

    from tacit.data import find_tables
    from tacit.frequencies import (
        FrequenciesQuery,
        FrequencyOracle,
        MessagesHead,
        write_messages,
    )
    from tacit.privacy import Neighbours, PrivacyBudget, TrustModel, Unit
    from tacit.privacy.weak import warn_of_weak
    from tacit.randomness import secure, simulated

    tables = find_tables(flags.data)
    (column,) = flags.column
    domain = Domain.given(flags.values, flags.domain, tables, column)
    person = flags.person or tables.described().person
    neighbours = Neighbours(unit=Unit.RECORD if person is None else Unit.PERSON)
    values, sizes = read_column(tables, column, domain, person=person)
    n = sum(sizes)
    with progress("calibrating"):
        query = FrequenciesQuery.calibrated(
            k=len(domain.names),
            n=n,
            budget=PrivacyBudget(flags.epsilon),
            trust=TrustModel.LOCAL,
            neighbours=neighbours,
            mechanism=flags.mechanism,
        )
    if not isinstance(query.oracle, FrequencyOracle):
        raise ParameterError("trust must be local for messages.")
    price = msgspec.structs.replace(query.price, simulated=flags.seed is not None)
    warn_of_weak(price.epsilon, price.delta, units=n, unit=neighbours.unit)
    rng = secure() if flags.seed is None else simulated(flags.seed, "messages")
    batch = os.urandom(16) if flags.seed is None else rng.bytes(16)
    head = MessagesHead(
        mechanism=query.oracle,  # type: ignore[arg-type]  # `make_oracle` makes these
        collection=flags.collection,
        batch=batch.hex(),
        n=n,
        domain=_digest(domain.names),
        simulated=price.simulated,
    )
    places = paying_places(tables, flags.ledger, neighbours, local=True) if flags.seed is None else []
    plan = hashlib.sha256(msgspec.json.encode([column, head, person])).digest()
    with charged(places, price, kind="messages", plan=plan, local=True) as pay, pay():
        with flags.out.open("xb") as file:
            write_messages(file, values, head, rng)
        facts = {
            "out": str(flags.out),
            "collection": head.collection,
            "batch": head.batch,
            "n": n,
            "k": query.k,
            "mechanism": query.mechanism,
            "bits_per_client": query.message_bits,
            "epsilon": price.epsilon,
            "unit": neighbours.unit.value,
            "simulated": price.simulated,
            "guarantee": str(price),
        }
        if flags.json:
            print_json({"version": 1, **facts})
        else:
            print_text(
                f"{flags.out}: {n} messages of {query.mechanism} about {query.k} values, batch {head.batch}"
            )
            print_text(f"\n{price}")


@app.command()
def count(
    files: _FILES,
    out: Annotated[Path, typer.Option(help="File that the counts go to; none that is there.")],
    close: Annotated[
        bool, typer.Option("--close", help="End the collection: counts that are closed take no more files.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Count files of messages as a stream, and merge files of counts: memory grows with the values only.

    A file that is malformed, cut, of another collection, mechanism or domain, counted already, or later than
    the end of its collection is refused, and nothing is written.
    """
    import msgspec

    from tacit.frequencies import count_files

    _check_new(out)
    found = count_files(files)
    found = msgspec.structs.replace(found, closed=found.closed or close)
    with out.open("xb") as file:
        file.write(found.to_bytes())
    if json:
        print_json(
            {
                "version": 1,
                "out": str(out),
                "collection": found.collection,
                "n": found.n,
                "batches": len(found.batches),
                "closed": found.closed,
                "simulated": found.simulated,
            }
        )
    else:
        print_text(f"{out}: {found.n} messages of {len(found.batches)} batches of {found.collection}")


@app.command()
def estimate(
    files: _FILES,
    values: Annotated[
        str | None, typer.Option(help="The values, as they were given: `a,b,c`.", show_default="numbers")
    ] = None,
    domain: Annotated[
        Path | None, typer.Option(help="File with the values, one a line.", show_default="none")
    ] = None,
    projection: Annotated[
        str,
        typer.Option(
            click_type=OneOf(PROJECTIONS, told={"none": "unbiased", "simplex": "the nearest frequencies"}),
            help="How estimates are made consistent: {names}.",
        ),
    ] = "simplex",
    confidence: Annotated[float, typer.Option(help="Probability that none of the intervals misses.")] = 0.95,
    json: JsonFlag = False,
) -> None:
    """Estimate how often each value is held, from files of messages and of counts.

    That costs no privacy: messages are private by themselves. All intervals together hold the frequencies of
    the records whose messages these are.
    """
    import numpy as np

    from tacit.frequencies import count_files, project

    check_probability("confidence", confidence, low_open=True, high_open=True)
    found = count_files(files)
    names = shown_names(_names(found, values, domain))
    oracle = found.mechanism
    raw, band = oracle.estimate(found.counts), oracle.band(found.counts, confidence)
    shares = project(raw, projection)
    if json:
        print_json(
            {
                "version": 1,
                "collection": found.collection,
                "n": found.n,
                "k": oracle.k,
                "batches": len(found.batches),
                "mechanism": oracle.name.partition(":")[0],
                "local_epsilon": oracle.epsilon,
                "estimates": dict(zip(names, shares.tolist(), strict=True)),
                "projection": projection,
                "intervals": dict(zip(names, band.intervals.tolist(), strict=True)),
                "confidence": confidence,
                "simulated": found.simulated,
            }
        )
        return
    order = np.argsort(-raw, kind="stable")[:SHOWN].tolist()
    columns = ("value", "frequency", f"{100 * confidence:.10g} % for all of them")
    print_text(f"{found.collection}: {found.n} messages of {len(found.batches)} batches, {oracle.k} values")
    rows = [(names[k], f"{shares[k]:.4g}", f"{band.lower[k]:.4g} to {band.upper[k]:.4g}") for k in order]
    print_table(columns, rows, right=columns[1:])
    if len(order) < oracle.k:
        print_text(f"... and {oracle.k - len(order)} more; --json has them all.")
    if found.simulated:
        print_text("\nSimulated: a known seed made messages that are counted here, which protects nobody.")


def _names(found: CountsFile, values: str | None, domain: Path | None) -> list[str]:
    """Return the names of values, which must be those of the messages."""
    if values is not None and domain is not None:
        raise ParameterError("values and domain must not both be given.")
    if values is None and domain is None:
        return [str(k) for k in range(found.mechanism.k)]
    listed = [*lines_of("domain", domain)] if domain is not None else (values or "").split(",")
    names = Domain([*listed], source="values").names
    if _digest(names) != found.domain:
        raise ParameterError("values must be those of the messages, in the same order; these are others.")
    return names


def _digest(names: list[str]) -> str:
    """Return the digest of the names of values."""
    import msgspec

    return hashlib.sha256(msgspec.json.encode(names)).hexdigest()


def _check_new(out: Path) -> None:
    """Refuse a file that is there, or could not be written."""
    if out.exists():
        raise ParameterError(f"out must be a file that is not there yet, got {str(out)!r}.")
    check_file("out", out)
