"""Files that a command will write: tried before anything is computed or spent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.cli.output import print_line
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.jobs import TrainedModel

__all__ = ["ModuleFlag", "check_file", "check_picture", "find_run", "make_folder", "note_unused"]

_PICTURES: Final = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".eps", ".ps", ".tif", ".tiff")

ModuleFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PACKAGE.MODULE:CLASS",
        help="Code of yours that the model may be of, which is run; may be repeated.",
        show_default="none",
    ),
]


def check_file(name: str, path: Path) -> None:
    """Refuse a file that could not be written; what is there stays as it is.

    Args:
        name: Of the option.
        path: The file.

    Raises:
        ParameterError: A folder, a folder that is missing, or a file that the system refuses to write.
    """
    # Not of `pathlib`: these are False for a name that the system does not take, which is tried below.
    if os.path.isdir(path) or not os.path.isdir(path.parent):
        raise ParameterError(f"{name} must be a file in a folder that exists, got {str(path)!r}.")
    there = os.path.exists(path)
    if there and not os.path.isfile(path):
        return  # a pipe or a device: opening it is already using it
    try:
        # Tried, not guessed from permissions: disks are full or read-only, and names too long.
        with path.open("ab"):
            pass
        if not there:
            path.unlink()
    except (OSError, ValueError) as error:
        raise _refused(name, path, error) from error


def check_picture(path: Path, *, name: str = "plot") -> None:
    """Refuse a picture file that could not be written, before anything is computed."""
    if path.suffix.lower() not in _PICTURES:
        raise ParameterError(
            f"{name} must be a file that ends with one of {', '.join(_PICTURES)}, got {str(path)!r}."
        )
    check_file(name, path)


def find_run(run: Path) -> Path:
    """Return the folder of a run: the path itself, or where `tacit train` puts a run of that name."""
    usual = Path("runs") / run
    return usual if not run.exists() and usual.is_dir() else run


def make_folder(name: str, path: Path) -> None:
    """Make a folder where it is missing; refuse one that could not be written.

    Raises:
        ParameterError: A file is in the way, or the system refuses.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:
        raise _refused(name, path, error) from error


def _refused(name: str, path: Path, error: OSError | ValueError) -> ParameterError:
    """Return the refusal with the system's reason."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ParameterError(f"{name} must be something that can be written, got {str(path)!r}: {reason}.")


def note_unused(modules: Sequence[str] | None, model: TrainedModel) -> None:
    """Say on the error stream which code that was named is none that the model is of, and so is not run."""
    for name in sorted({*(modules or ())} - {str(model.model)}):
        print_line(
            to_error=True,
            label="note",
            text=f"--module {name} is not used: the model is {model.model}.",
            colour="yellow",
        )
