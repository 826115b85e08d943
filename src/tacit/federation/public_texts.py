"""What all parties read alike: plans, rosters and cards, as TOML of one version, in files written once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from tacit.errors import ParameterError, printable, shown

__all__ = ["check_known_version", "read_versioned", "save_new"]

_LONGEST_REASON: Final = 300
"""Characters: a parser quotes names of any length."""

_Text = TypeVar("_Text", bound=msgspec.Struct)


class _Versioned(msgspec.Struct):
    """What every version of a text has; without one, it is that which is read."""

    version: int | msgspec.UnsetType = msgspec.UNSET


def check_known_version(version: int, *, known: int, what: str) -> None:
    """Refuse another version than the one that is known; `what` has it."""
    if version != known:
        raise ParameterError(f"the {what} has version {shown(version)}; this tacit reads {known}.")


def read_versioned(text: str, kind: type[_Text], *, known: int, what: str) -> _Text:
    """Read a struct from TOML.

    Args:
        text: Of a length that is allowed.
        kind: Of the struct.
        known: Version that is read.
        what: Name of the text, for messages.

    Raises:
        ParameterError: Not TOML, another version, or a value that is not allowed.
    """
    try:
        # First, because a later version may have fields that this one does not know.
        version = msgspec.toml.decode(text, type=_Versioned).version
        check_known_version(known if version is msgspec.UNSET else version, known=known, what=what)
        return msgspec.toml.decode(text, type=kind)
    except ParameterError:
        raise
    # Python's parser refuses integers of more than 4300 digits, and levels beyond its stack, by itself.
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        reason = printable(str(error)).removesuffix(".")[:_LONGEST_REASON]
        raise ParameterError(f"the {what} cannot be read: {reason}.") from error


def save_new(text: str | bytes, path: Path | str, *, private: bool = False) -> None:
    """Write a new file, on disk before this returns.

    Args:
        text: What is written; UTF-8.
        path: Where.
        private: Whether only its owner may read it; a folder that is not there is then made, for its owner.

    Raises:
        ParameterError: There is something of this name already, or it cannot be written.
    """
    path = Path(path)
    data = text.encode() if isinstance(text, str) else text
    try:
        if private and not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not even for a moment may others read it: the mode is that of the file as it is made.
        mode = 0o600 if private else 0o666
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise ParameterError(f"{path} is there already, and is never overwritten.") from None
    except OSError as error:
        raise ParameterError(f"{path} cannot be written: {error.strerror}.") from error
