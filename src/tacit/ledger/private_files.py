"""Files that hold a state: readable by their owner only, and replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["replace_private", "unfinished_file"]

_FILE: Final = 0o600


def unfinished_file(path: Path) -> Path:
    """Return where a file is written before it takes the place of another one."""
    return path.with_name(f"{path.name}.new")


def replace_private(path: Path, data: bytes) -> None:
    """Put a file in the place of another one, on disk before this returns; one that is killed leaves either.

    Raises:
        OSError: It cannot be written, and names it; what was there is there.
    """
    new = unfinished_file(path)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException as error:
        new.unlink(missing_ok=True)  # a full disk needs the room that half of a file takes
        if isinstance(error, OSError) and error.filename is None:  # of a write
            error.filename = str(path)
        raise
    folder = os.open(path.parent, os.O_RDONLY)  # without it, a power cut may bring back the old name
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
