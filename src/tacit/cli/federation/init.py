"""`tacit federation init`: certificates and one configuration per party; for a trial, all keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.choices import OneOf
from tacit.cli.federation.trusting import TRUSTS, CollusionOption, MinimumOption, RecoverOption
from tacit.cli.job_words import read_job, with_slash
from tacit.cli.names import ALGORITHMS
from tacit.cli.output import JsonFlag, print_json, print_table, print_text
from tacit.errors import ParameterError, check_count

if TYPE_CHECKING:
    from tacit.federation.network.cards import Card
    from tacit.jobs.deployed.founding import Founded, Founding

__all__ = ["init"]

_EXAMPLE = "digits-odd-even"


def init(
    out: Annotated[Path, typer.Option(help="A new folder for all that is made.")],
    silos: Annotated[
        int | None,
        typer.Option(help="Number of silos of a data set, or of parties to come.", show_default="as named"),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Named data set; or tables, a pattern or a folder, each file a silo; may be repeated.",
            show_default="handwritten digits",
        ),
    ] = None,
    cards: Annotated[
        list[str] | None,
        typer.Option(
            help="Cards of parties that made their own keys (tacit federation join): files separated by "
            "commas, or a folder; silos in the order of their indices; may be repeated.",
            show_default="all keys are made here, for a trial",
        ),
    ] = None,
    columns: Annotated[
        Path | None,
        typer.Option(help="Public description of the columns of tables.", show_default="the one beside them"),
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Names of the silos, separated by commas.", show_default="silo-1, ...")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Public numbers of units that silos train on, separated by commas.",
            show_default="counted, where the data are here",
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(help="File of public records, as in `tacit train`.", show_default="by their bounds"),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="File of public records to score the model on.", show_default="not scored"),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(("classification", "regression")),
            help="What the label asks for: {names}.",
            show_default="classification",
        ),
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option(help="TOML file of a job, for all other settings.", show_default="none"),
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(TRUSTS),
            help="Who is trusted: {names}.",
            show_default="local",
        ),
    ] = None,
    n_min: MinimumOption = None,
    colluding: CollusionOption = None,
    recover: RecoverOption = False,
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy budget of every silo.", show_default="2")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Probability that the bound may fail.", show_default="1/n^2 of the smallest silo"),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(("auto", *ALGORITHMS)), help="How to train: {names}.", show_default="auto"
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds.", show_default="the best by theory")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Of the federation and its run.", show_default="that of the data")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            help="Where silos reach the server, https://host:port.", show_default="https://127.0.0.1:8443"
        ),
    ] = None,
    shuffler: Annotated[
        str | None,
        typer.Option(
            help="Where parties reach the shuffler, https://host:port.", show_default="https://127.0.0.1:8444"
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Make a new federation: certificates, roster, job, priced plan, and one configuration per party.

    With cards, private keys stay with the parties that made them; without, all are made here, for a trial.
    Without data, the example: handwritten digits over some silos. What is there already is never overwritten.
    """
    said = {"trust": trust, "epsilon": epsilon, "delta": delta, "algorithm": algorithm, "rounds": rounds}
    said |= {"n_min": n_min, "colluding": colluding, "recover": recover or None}
    given = {key: value for key, value in {**said, "task": task, "name": name}.items() if value is not None}
    found = found_federation(
        founding_of(
            given, job=job, data=data, silos=silos, names=names, sizes=sizes, cards=cards, columns=columns,
            public=public, test=test, server=server, shuffler=shuffler,
        ),
        out,
    )  # fmt: skip
    if json:
        print_json(_facts(found))
    else:
        _show(found)


def found_federation(founding: Founding, out: Path) -> Founded:
    """Make a federation, now."""
    from tacit.jobs.deployed.founding import found

    return found(founding, out, now=datetime.now(UTC))


def founding_of(
    given: dict[str, Any],
    *,
    job: Path | None = None,
    data: Sequence[str] | None = None,
    silos: int | None = None,
    names: str | None = None,
    sizes: str | None = None,
    cards: Sequence[str] | None = None,
    columns: Path | None = None,
    **more: Any,
) -> Founding:
    """Return what a new federation is to be, by what the command line says.

    Args:
        given: Settings of a job that are flags.
        job: TOML file with others.
        data: A data set by name, or tables; None takes those of the job, or the example.
        silos: Their number.
        names: Their names, separated by commas.
        sizes: Their numbers of units, separated by commas.
        cards: Of parties that say all this of themselves.
        columns: Description of tables.
        more: Further fields of `Founding`.
    """
    from tacit.jobs import JobConfig
    from tacit.jobs.deployed.founding import ELSEWHERE, Founding

    settings: dict[str, Any] = {"delta": 1e-5} if data is None and job is None and columns is None else {}
    settings |= ({} if job is None else read_job(job)) | given
    if data is not None:
        settings["data"] = with_slash(data[0] if len(data) == 1 else list(data))
    elsewhere = {key: settings.pop(key) for key in ELSEWHERE if key in settings}
    columns = columns or _path(elsewhere.get("columns"))
    called = None if names is None else [one.strip() for one in names.split(",")]
    told = None if sizes is None else _numbers(sizes)
    tables: Sequence[Path] | None = None
    read: tuple[Card, ...] = ()
    if cards is not None:
        read = _read_cards(cards, {"silos": silos, "names": names, "sizes": sizes, **more})
        called = [one.name for one in read if one.role == "silo"]
        check_count("the number of cards of silos", len(called))
    if columns is not None or JobConfig.of(settings).is_table:
        silo_list, columns, tables = _silos_of_tables(
            settings, columns, cards=read, names=called, sizes=told, count=silos
        )
        if columns is None:
            raise ParameterError("columns must describe the tables of the silos, got None.")
        title = (
            settings.get("name") or JobConfig.of({**settings, "data": settings.get("data", "data.csv")}).run
        )
        config = JobConfig.of({**settings, "data": f"{title}.csv", "name": title})
    else:
        count = silos if silos is not None else 4 if called is None else len(called)
        check_count("silos", count)
        called = called or _numbered(count)
        _check_as_many("names", called, count)
        silo_list = [(one, 1) for one in called]
        config = JobConfig.of({"silos": f"iid:{count}", "data": _EXAMPLE, **settings})
        config = JobConfig.of({"silos": f"iid:{count}", "data": _EXAMPLE, **settings, "name": config.run})
    return Founding(
        name=config.run, job=config, silos=silo_list, cards=read, columns=columns, tables=tables,
        **{"public": _path(elsewhere.get("public"))} | {k: v for k, v in more.items() if v is not None},
    )  # fmt: skip


def _silos_of_tables(
    settings: dict[str, Any],
    columns: Path | None,
    *,
    cards: Sequence[Card],
    names: list[str] | None,
    sizes: list[int] | None,
    count: int | None,
) -> tuple[list[tuple[str, int]], Path | None, Sequence[Path] | None]:
    """Return names and sizes of silos, by cards, flags or tables; the description; tables that are here."""
    if cards:
        return [(one.name, _told_size(one)) for one in cards if one.role == "silo"], columns, None
    if sizes is not None:
        names = names or _numbered(len(sizes) if count is None else count)
        _check_as_many("names", names, len(sizes))
        return list(zip(names, sizes, strict=True)), columns, None
    from tacit.jobs import JobConfig
    from tacit.jobs.deployed.founding import silos_of_tables

    found, columns, tables = silos_of_tables(JobConfig.of(settings), columns)
    if names is not None:
        _check_as_many("names", names, len(found))
        found = [(one, size) for one, (_, size) in zip(names, found, strict=True)]
    return found, columns, tables


def _read_cards(cards: Sequence[str], flags: dict[str, Any]) -> tuple[Card, ...]:
    """Return the cards of all parties, which say what flags would say otherwise."""
    from tacit.jobs.deployed.joining import read_cards

    for name in ("silos", "names", "sizes", "server", "shuffler"):
        if flags.get(name) is not None:
            raise ParameterError(f"{name} must not be given with cards, which say it, got {flags[name]!r}.")
    return tuple(read_cards(cards))


def _told_size(card: Card) -> int:
    """Return what a silo with a table says of its size."""
    if card.size is None:
        raise ParameterError(
            f"size must stand on the card of silo {card.name!r}, whose table nobody else sees."
        )
    return card.size


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _numbered(count: int) -> list[str]:
    """Return names for silos that have none."""
    return [f"silo-{k}" for k in range(1, count + 1)]


def _numbers(sizes: str) -> list[int]:
    """Return the numbers of units of silos."""
    try:
        return [int(one) for one in sizes.split(",")]
    except ValueError:
        raise ParameterError(f"sizes must be whole numbers, separated by commas, got {sizes!r}.") from None


def _check_as_many(what: str, found: Sequence[str], silos: int) -> None:
    """Refuse a list that does not say one of each silo."""
    if len(found) != silos:
        raise ParameterError(f"{what} must say one for each of the {silos} silos, got {len(found)}.")


def _facts(found: Founded) -> dict[str, Any]:
    """Return what was made for programs."""
    from tacit.jobs.deployed.founding import price

    return {
        "federation": found.roster.federation,
        "folder": found.folder,
        "run": found.job.run,
        "trust": found.job.trust,
        "rounds": found.prepared.rounds,
        "price": price(found.job, found.prepared),
        "plan": found.prepared.plan.digest().hex(),
        "roster": found.roster.digest().hex(),
        "fingerprints": {
            "roster": found.roster.fingerprint(),
            **{one.name: one.fingerprint() for one in found.cards},
        },
        "silos": {one.name: one.size for one in found.roster.silos},
        "files": list(found.files),
    }


def _show(found: Founded) -> None:
    """Say what was made, and what comes next."""
    from tacit.jobs.deployed.founding import price
    from tacit.privacy import Unit

    folder, roster = found.folder, found.roster
    costs = price(found.job, found.prepared)
    print_text(f"{roster.federation}: {found.job.run}, {found.prepared.rounds} rounds. {costs}")
    whole = found.job.terms.facts.unit is Unit.PARTY
    what = {one.name: "protected as a whole" if whole else f"{one.size:,} units" for one in roster.silos}
    print_table(
        ("party", "configuration", "", "digits of its card"),
        [
            (one.name, f"{folder}/{one.name}.toml", one.url or what[one.name], one.fingerprint())
            for one in found.cards
        ],
    )
    print_text(f"\nDigits of the roster: {roster.fingerprint()}. What to give to whom: {folder}/README.md")
