"""`tacit account verify`: is this statement true?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from tacit.cli.account import (
    answers,
    central,
    drawn_reports,
    frequencies,
    hidden,
    large,
    levels,
    marginals,
    mix,
    sampled,
    shuffled,
    tuned,
)
from tacit.cli.account.beside import check_beside
from tacit.cli.output import JsonFlag, print_foreign, print_json, print_line, print_text
from tacit.errors import ParameterError, VerificationError

if TYPE_CHECKING:
    from tacit.federation.network.roster import Roster
    from tacit.privacy import Event
    from tacit.privacy.statement import Statement

__all__ = ["check_facts", "check_statement", "verify"]

_EVENTS: Final[dict[str, Callable[[dict[str, Any]], Event | None]]] = {
    "account epsilon": central.event_of,
    "account subsample": sampled.event_of,
    "account shuffle": shuffled.event_of,
    "account reports": drawn_reports.event_of,
    "account halving": tuned.event_of,
    "account iterate": hidden.event_of,
    "account compose": mix.composed,
    "account calibrate": mix.calibrated,
}
"""What the facts at the top of a price say was released; the command itself builds its event with them."""
_PRICES: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "account subsample": sampled.check_prices,
    "account reports": drawn_reports.check_prices,
    "account compose": mix.check_prices,
}
"""What checks the prices that a command writes beside that of the whole."""

_CHECKS: Final[dict[str, Callable[[Statement], None]]] = {
    "train": answers.check_run_files,
    "mean": answers.check_means,
    "frequencies": frequencies.check_frequencies,
    "frequencies levels": levels.check_levels,
    "frequencies large": large.check_large,
    "frequencies tables": marginals.check_tables,
    "vote release": answers.check_votes,
    "bandit run": answers.check_bandit,
    "account shuffle": answers.check_alone,
    "account reports": drawn_reports.check_reports,
}
"""What checks the other facts of a statement."""

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
_COMPARED: Final = {
    "model.json": "that the model is the one it names, and starts where it says",
    "plan.toml": "that its events are those of the plan",
}
"""What is compared with files beside a statement."""
_VERDICT: Final = "arithmetic verified; origin not verified"
_SIGNED: Final = "arithmetic verified; every guarantee signed by a key of the roster"


def verify(
    file: Annotated[
        Path, typer.Argument(help="A statement: JSON, as a run or a command with --json wrote it.")
    ],
    keys: Annotated[
        Path | None,
        typer.Option(
            show_default="signatures are not verified",
            help="The roster of a deployed federation: every guarantee must be signed by its keys.",
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Compute the price of every guarantee in a statement again, from its event alone.

    Fields that contradict each other are refused, and so are changed files beside the statement: the model,
    the plan and the column description are named there with their digests. With --keys, the statement must
    also show who stands behind each guarantee.
    """
    roster = None if keys is None else _roster(keys)
    statement = check_statement(file)
    signed_by = () if roster is None else _signed_by(file, statement, roster)
    files = statement.check_files(file.parent)
    if json:
        print_json(
            {
                "file": file,
                "verified": True,
                "origin_verified": roster is not None,
                "guarantees": [claim.to_builtins() for claim in statement.guarantees],
                "files": files,
                "warnings": statement.warnings,
                **({} if roster is None else {"federation": roster.federation, "signed_by": signed_by}),
            }
        )
        return
    many = len(statement.guarantees)
    count = "1 guarantee" if many == 1 else f"{many} guarantees"
    print_line(to_error=False, label="verified", text=f"{count} in {file}", colour="green")
    _show(statement, files, _standing(statement, roster, signed_by))
    print_text(f"\n{_VERDICT if roster is None else _SIGNED}")


def check_statement(path: Path | str) -> Statement:
    """Return a statement that is true as far as arithmetic can tell, and whose files beside it are unchanged.

    Args:
        path: A JSON file, as a run or a command with --json wrote it.

    Returns:
        The statement, with its guarantees. Who wrote it is not verified.

    Raises:
        VerificationError: A price, a condition, a fact or a file is not what the statement says.
        ParameterError: The file cannot be read.
    """
    from tacit.privacy.statement_file import read_statement
    from tacit.privacy.strict_json import read_start

    path = Path(path)
    if path.is_dir():
        here = path / "statement.json"
        there = f"`tacit account verify {here}`" if here.is_file() else "the statement.json of a run folder"
        raise ParameterError(f"a statement is a file, got the folder {path}: give {there}.")
    try:
        data = read_start(path)
    except OSError as error:
        raise ParameterError(f"the statement {path} cannot be read: {error.strerror}.") from error
    try:
        statement = read_statement(data)
        check_facts(statement)
        statement.verify()
        statement.check_files(path.parent)
        check_beside(statement, path.parent)
    except VerificationError as error:
        raise VerificationError(f"the statement {path} is refused: {error}") from error
    return statement


def check_facts(statement: Statement) -> None:
    """Refuse facts that are not those of the event, and observers that are not those of the facts."""
    _used(answers.check_form, statement)
    if statement.kind in _CHECKS:
        _used(_CHECKS[statement.kind], statement)
    event_of, check_prices = _EVENTS.get(statement.kind), _PRICES.get(statement.kind)
    if event_of is None:
        return
    # The budget of a calibration is compared with what the guarantee says, whatever was cut at the top.
    event = _used(event_of, {**statement.answer, "epsilon": statement.guarantees[0].epsilon})
    if event is None:
        return
    if event != statement.guarantees[0].event:
        raise VerificationError(
            "the facts at the top and the event of the guarantee are of different releases."
        )
    if check_prices is not None:
        _used(check_prices, statement.answer)


def _used(use: Callable[[_Given], _Found], given: _Given) -> _Found:
    """Use facts that somebody else may have written; whatever is wrong with them is a refusal."""
    try:
        return use(given)
    except VerificationError:  # it says already what is refused
        raise
    except (ParameterError, LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise VerificationError(f"the facts at the top cannot be used: {error}") from error


def _show(statement: Statement, files: dict[str, bool], standing: list[str]) -> None:
    """Print what was verified, and what was not."""
    from tacit.privacy.paragraphs import paragraphs

    facts = [*_facts(statement, files), *standing]
    if facts:
        print_text("")
        for line in facts:
            print_foreign(line)
    for who, said in paragraphs(statement.guarantees, statement.about):
        print_text("")
        print_foreign(f"{who}: {said}" if who else said)
    rest = [f"{one.trust}, without privacy: {one.sentence}" for one in statement.not_private]
    rest += [f"note: {note}" for note in statement.notes]
    rest += [f"warning: {said}" for said in statement.warnings if said not in statement.notes]
    if rest:
        print_text("")
        for line in rest:
            print_foreign(line)


def _roster(path: Path) -> Roster:
    """Return whose keys count."""
    from tacit.federation.network.roster import Roster

    return Roster.load(path)


def _signed_by(file: Path, statement: Statement, roster: Roster) -> tuple[str, ...]:
    """Return who signed each guarantee; refuse a statement that not everybody stands behind."""
    from tacit.federation.network.signatures import verify_signatures

    try:
        return verify_signatures(statement, roster)
    except VerificationError as error:
        raise VerificationError(f"the statement {file} is refused: {error}") from error


def _standing(statement: Statement, roster: Roster | None, signed_by: tuple[str, ...]) -> list[str]:
    """Return who stands behind the guarantees, line by line."""
    from tacit.privacy.paragraphs import listed
    from tacit.privacy.signed import TRUSTED_SIGNER

    if roster is None:
        many = len(statement.signatures)
        count = "1 signature" if many == 1 else f"{many} signatures"
        return [f"not verified: {count}; --keys takes the roster of the federation"] if many else []
    keys = f"by the roster of {roster.federation!r}"
    silos = [f"{name!r}" for name in dict.fromkeys(signed_by) if name != TRUSTED_SIGNER]
    found = [f"signed {keys}: by {listed(silos)}, each for itself"] if silos else []
    if TRUSTED_SIGNER in signed_by:
        found.append(f"signed {keys}: by the server, for what it publishes")
    return found or [f"signed {keys}: nothing, as nothing is claimed"]


def _facts(statement: Statement, files: dict[str, bool]) -> list[str]:
    """Return what a statement says of its run, line by line."""
    by = None if statement.tacit is None else f"tacit {statement.tacit}"
    made = ", ".join(part for part in (statement.run, statement.created, by) if part is not None)
    lines = [f"{'run' if statement.run is not None else 'made'}: {made}"] if made else []
    if (data := statement.data) is not None:
        sizes = [size for size in data.sizes.values() if size is not None]
        units = f" with {min(sizes):,} to {max(sizes):,} {data.unit.plural}" if sizes else ""
        if sizes and min(sizes) == max(sizes):
            units = f" with {max(sizes):,} {data.unit.plural}" + (" each" if len(sizes) > 1 else "")
        silos = "1 silo" if data.silos == 1 else f"{data.silos} silos"
        lines.append(f"data: {data.name}{' (public)' if data.public else ''}, {silos}{units}")
        if data.read_off:
            lines.append(f"bounds read off the data without privacy: {', '.join(data.read_off)}")
        if data.sample:
            lines.append("features scaled by a sample of public records")
        for trust, count in data.trained_with.items():
            lines.append(f"trained with {count:,} public records: the {trust} model")
    if statement.released is not None:
        trained = f", trained by {statement.algorithm}" if statement.algorithm is not None else ""
        which = "model without privacy" if statement.released == "none" else f"{statement.released} model"
        model = f" ({statement.model})" if statement.model is not None else ""
        lines.append(f"released: the {which}{model}{trained}")
    if present := [name for name, found in files.items() if found]:
        lines.append(f"files as they were: {', '.join(present)}")
    if missing := [name for name, found in files.items() if not found]:
        lines.append(f"files not found beside the statement: {', '.join(missing)}")
        lines.extend(f"not checked: {_COMPARED[name]}" for name in missing if name in _COMPARED)
    return lines
