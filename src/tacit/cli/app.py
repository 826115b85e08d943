"""The root command, and how anything that goes wrong becomes one line and an exit code."""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Annotated, Final, TextIO, cast

import click
import typer
import typer.core

from tacit.cli import (
    account,
    bandit,
    data,
    fairness,
    federation,
    ledger,
    messages,
    model,
    plan,
    report,
    silo,
    vote,
)
from tacit.cli.audit import audit
from tacit.cli.choices import Helpful
from tacit.cli.flags import as_typed
from tacit.cli.frequencies import NUMBERS as FREQUENCY_NUMBERS
from tacit.cli.frequencies import SEVERAL as FREQUENCY_LISTS
from tacit.cli.frequencies import frequencies
from tacit.cli.interrupts import INTERRUPTED, Stopped
from tacit.cli.mean import SEVERAL, mean
from tacit.cli.output import check_output, print_line
from tacit.cli.predict import predict
from tacit.cli.reproduce import reproduce
from tacit.cli.schema import schema
from tacit.cli.server import server
from tacit.cli.several import several
from tacit.cli.shuffler import shuffler
from tacit.cli.train import train
from tacit.cli.train_flags import TrainCommand
from tacit.errors import PlanWarning, PrivacyWarning, TacitError

__all__ = ["COMMANDS", "GROUPS", "app", "command", "main"]

# Command modules import numpy, scipy, pandas and scikit-learn inside their functions: together these take
# seconds, and `tacit --help` or a misspelt option must not wait for them.
COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "train": train,
    "predict": predict,
    "mean": mean,
    "frequencies": frequencies,
    "audit": audit,
    "reproduce": reproduce,
    "server": server,
    "shuffler": shuffler,
    "schema": schema,
}
"""Single commands by name, in the order in which the help lists them."""

GROUPS: Final[Mapping[str, typer.Typer]] = {
    "model": model.app,
    "report": report.app,
    "account": account.app,
    "plan": plan.app,
    "messages": messages.app,
    "vote": vote.app,
    "bandit": bandit.app,
    "fairness": fairness.app,
    "data": data.app,
    "ledger": ledger.app,
    "federation": federation.app,
    "silo": silo.app,
}
"""Groups of commands by name, listed after the single ones."""

app = typer.Typer(
    name="tacit",
    help="Learn together, say little, reveal less: private learning across parties that pool no data.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_CLASSES: Final[dict[str, type[Helpful]]] = {
    "train": TrainCommand,
    "mean": several(*SEVERAL, numbers=SEVERAL[1:]),
    "frequencies": several(*FREQUENCY_LISTS, numbers=FREQUENCY_NUMBERS),
}
for _name, _command in COMMANDS.items():
    app.command(_name, cls=_CLASSES.get(_name))(_command)
for _name, _group in GROUPS.items():
    app.add_typer(_group, name=_name)


def _reflow(group: typer.Typer) -> None:
    """Make each paragraph of every command's help one line, which the terminal then wraps.

    Typer does so for the first paragraph only, and breaks the others where the source does.
    """
    for command in group.registered_commands:
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
        if command.cls in (None, typer.core.TyperCommand):
            command.cls = Helpful
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            _reflow(inner.typer_instance)


_reflow(app)


def _print_version(wanted: bool) -> None:
    """Print the version and stop, where it was asked for."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tacit {version('tacit')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@cache  # typer reads the signatures of all commands anew at every call, which takes longer than most answers
def command() -> click.Group:
    """Return the commands as click runs them: they hold no state, so that one process may call them often."""
    return cast(click.Group, typer.main.get_command(app))  # with the options for completion


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments after the program's name; None for those of this process.

    Returns:
        The exit code: 0, `exit_code` of the error's class in `tacit.errors`, 2 for a wrong option, 1 for a
        file that cannot be used, 130 after Ctrl-C or SIGTERM.
    """
    # PyTorch's threads spin while they wait: beside other programs that takes a hundred times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        with _warnings_as_lines():
            check_output()  # here, or a command would find it when its work is done and paid for
            code = command()(args=argv, prog_name="tacit", standalone_mode=False)
        sys.stdout.flush()
    except TacitError as error:
        return _refuse(_as_written(str(error), sys.argv[1:] if argv is None else argv), error.exit_code)
    except click.ClickException as error:
        return _refuse_usage(error)
    except Stopped:
        return INTERRUPTED
    except (KeyboardInterrupt, click.Abort):
        return _refuse("interrupted.", INTERRUPTED)
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; what is still buffered has nowhere to go.
        _drop_output()
        return 1
    except OSError as error:
        _drop_output()
        return _refuse(f"{error.filename or 'a file'}: {error.strerror or error}.", TacitError.exit_code)
    if code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
        return _refuse("interrupted.", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """Let what is still buffered for an output that failed go nowhere, or Python would fail at its exit."""
    with suppress(OSError, AttributeError, ValueError):  # it may be closed, or in memory
        sys.stdout.flush()
        return
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_written(message: str, argv: Sequence[str]) -> str:
    """Return a message with the options of the command spelled as one writes them, not as Python does."""
    found: click.Command = command()
    for word in argv:
        found = (found.commands.get(word, found)) if isinstance(found, click.Group) else found
    return as_typed(message, {one.name for one in found.params if isinstance(one, click.Option) and one.name})


def _refuse(message: str, code: int) -> int:
    """Say in one line what is wrong, and return the exit code."""
    print_line(to_error=True, label="tacit", text=message)
    return code


def _refuse_usage(error: click.ClickException) -> int:
    """Say which option or argument is wrong; where none was given at all, the help has been printed."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.exit_code
    # Click and typer each suggest the nearest command, in the same words.
    sentences = dict.fromkeys(re.split(r"(?<=[.?]) ", error.format_message()))
    # A decimal comma is what half of the world writes.
    message = re.sub(r"('([+-]?\d*),(\d+)' is not a valid float)", r"\1: write \2.\3", " ".join(sentences))
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "tacit"
    end = "" if message.endswith((".", "?")) else "."
    return _refuse(f"{message}{end} See `{path} --help`.", error.exit_code)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print a warning of ours as one line on the error stream; leave all others as they are."""
    with warnings.catch_warnings():
        for ours in (PlanWarning, PrivacyWarning):
            warnings.simplefilter("always", ours)
        show, said = warnings.showwarning, set[str]()

        def one_line_each(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, PlanWarning | PrivacyWarning):
                if str(message) not in said:  # a plan is checked more than once
                    print_line(to_error=True, label="warning", text=str(message), colour="yellow")
                said.add(str(message))
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = one_line_each
        yield
