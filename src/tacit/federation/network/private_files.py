"""Folders of a silo's state: open to their owner only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tacit.errors import ParameterError

__all__ = ["make_private_folder"]

_FOLDER: Final = 0o700


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
