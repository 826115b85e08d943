"""How an answer is paid for: looked at first, charged when it leaves, and said where it could not leave."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.interrupts import uninterrupted
from tacit.cli.output import check_output, print_line
from tacit.errors import PrivacyWarning

if TYPE_CHECKING:
    from tacit.data import TableFiles
    from tacit.ledger import Ledger
    from tacit.privacy import Guarantee, Neighbours

__all__ = ["LedgerOption", "SeedOption", "charged", "paying_places", "warn_of_another"]

LedgerOption = Annotated[
    Path | None,
    typer.Option(help="Ledger file or folder that pays.", show_default="the one beside the tables"),
]
SeedOption = Annotated[
    int | None,
    typer.Option(help="Seed of a simulation, which protects nobody.", show_default="secret randomness"),
]


@contextmanager
def charged(
    places: Sequence[Path], price: Guarantee, *, kind: str, plan: bytes, local: bool
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Look at every ledger that is concerned before anything is drawn; what is yielded pays, in a block.

    So an answer may be drawn before it is paid for, and leave afterwards only: an interruption while it is
    drawn costs nothing. The block hands the answer over, and is not interrupted; where it fails, a line on
    the error stream says what stays spent.

    Args:
        places: Ledger files or folders, each charged with the account of its data set; none keep no account.
        price: Of the answer.
        kind: What runs of this command are called.
        plan: Digest of what is asked.
        local: Whether every record adds its own noise, so that in a folder every silo pays.

    Raises:
        BudgetError: More than what is left in one of them.
        LedgerError: No ledger, or one about other neighbours, or without the account of its data set.
    """
    from tacit.ledger import charge, check_accounts, new_run, open_paying

    run = new_run(kind)
    with ExitStack() as opened:
        accounts = [
            opened.enter_context(account) for place in places for account in open_paying(place, local=local)
        ]

        @contextmanager
        def pay() -> Iterator[None]:
            check_output()
            with uninterrupted():
                charge(accounts, price, run=run, plan=plan)
                with _said_where_it_fails(accounts, price, run=run):
                    yield

        check_accounts(accounts, price, run=run, plan=plan)
        yield pay


@contextmanager
def _said_where_it_fails(accounts: Sequence[Ledger], price: Guarantee, *, run: str) -> Iterator[None]:
    """Say what stays spent where the block does not hand over all of an answer."""
    out = False
    try:
        yield
        sys.stdout.flush()
        out = True
    except UnicodeEncodeError as error:
        raise OSError(0, f"{error.encoding} cannot say all of the answer", "standard output") from error
    finally:  # whatever it was: rich ends the command itself where the reader of a pipe has gone
        if not (out or price.simulated):
            paid = ", ".join(dict.fromkeys(str(account.path) for account in accounts))
            print_line(
                to_error=True,
                label="spent",
                text=f"epsilon {price.epsilon!r} at delta {price.delta!r} for run {run!r}, "
                f"{f'in {paid}' if paid else 'which no ledger counts'}. It stays spent, though not all of "
                "the answer was written.",
            )


def paying_places(
    tables: TableFiles, given: Path | None, neighbours: Neighbours, *, local: bool
) -> list[Path]:
    """Return where the ledgers that pay lie: beside the tables if none is given; warn where none are.

    Args:
        tables: What is asked about.
        given: A ledger file or folder; None for what lies beside the tables.
        neighbours: Of the price.
        local: Whether every record adds its own noise, so that every silo pays for its own.
    """
    from tacit.ledger import accounts_of, beside, ledgers_of

    place = beside(tables) if given is None else ledgers_of(given)
    if given is not None:
        warn_of_another(tables, place)
    elif not place.exists():
        words = ["tacit", "ledger", "create", str(place)]
        words += ["--silos-from", *map(str, tables.files)] if tables.together else []
        words += ["--epsilon", "E", "--delta", "D"]
        words += [] if neighbours.unit == "record" else ["--unit", neighbours.unit]
        words += [] if neighbours.part == "all" else ["--part", neighbours.part]
        warnings.warn(
            f"no ledger counts this answer; `{shlex.join(words)}` sets a limit.",
            PrivacyWarning,
            stacklevel=1,
        )
        return []
    # A trusted server, who adds the noise for several silos, pays for them.
    return [place] if len(tables.files) > 1 and not local else accounts_of(tables, place)


def warn_of_another(tables: Path | TableFiles, paid: Path) -> None:
    """Warn where ledgers lie beside tables that count them, and others pay."""
    from tacit.ledger import accounts_beside

    charged = paid.resolve() if paid.exists() else paid
    others = [own for own in accounts_beside(tables) if own.resolve() not in (charged, charged.parent)]
    if others:
        what = "the ledger of this table, is" if len(others) == 1 else "ledgers of these records, are"
        warnings.warn(
            f"{', '.join(map(str, others))}, {what} not charged: {paid} is. What both have spent adds up.",
            PrivacyWarning,
            stacklevel=2,
        )
