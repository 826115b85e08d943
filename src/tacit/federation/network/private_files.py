"""Files of a silo's state: readable by their owner only, and replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tacit.errors import ParameterError

__all__ = ["make_private_folder", "replace_private"]

_FILE: Final = 0o600
_FOLDER: Final = 0o700


def replace_private(path: Path, data: bytes) -> None:
    """Put a file in the place of another one, on disk before this returns; one that is killed leaves either.

    Raises:
        OSError: It cannot be written; what was there is there.
    """
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)  # without it, a power cut may bring back the old name
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_private_folder(path: Path) -> Path:
    """Make a folder that only its owner may enter, where there is none; refuse one that others can write.

    Raises:
        ParameterError: It cannot be made, or others can write into it.
    """
    try:
        path.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
        mode = path.stat().st_mode
    except OSError as error:
        raise ParameterError(f"the folder {path} cannot be made: {error.strerror}.") from error
    if mode & 0o022:
        raise ParameterError(f"others can write into {path}, which is private: `chmod 700 {path}`.")
    return path
