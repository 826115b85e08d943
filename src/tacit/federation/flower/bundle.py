"""The bundle that Flower distributes: names of objects that every party has installed, and no code."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import tomli_w

from tacit.errors import DataError

__all__ = ["JOB", "write_bundle"]

_COMPONENTS: Final = {
    "serverapp": "tacit.federation.flower:server_app",
    "clientapp": "tacit.federation.flower:client_app",
}
"""Our own apps, by the names under which Flower looks for them."""

JOB: Final = "tacit.cli.server:serve"
"""The server's job, unless a run names another one."""


def write_bundle(
    folder: Path, *, name: str = "tacit-round", components: Mapping[str, str] = _COMPONENTS
) -> Path:
    """Write what `flwr run` takes: a `pyproject.toml` and nothing else.

    Args:
        folder: New or empty; its name must be letters, digits and hyphens, at most 32.
        name: Of the bundle, as that of the folder.
        components: The installed "serverapp" and "clientapp", as `module:name`.

    Returns:
        The folder.

    Raises:
        DataError: The folder holds something.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise DataError(f"the folder of the bundle must be empty, and {folder} is not.")
    project = {
        "project": {"name": name, "version": version("tacit"), "dependencies": []},
        "tool": {
            "flwr": {
                "app": {
                    "publisher": "tacit",
                    "components": dict(components),
                    "config": {"job": JOB, "config": ""},
                }
            }
        },
    }
    (folder / "pyproject.toml").write_text(tomli_w.dumps(project), encoding="utf-8")
    return folder
