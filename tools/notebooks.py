"""For the site: notebooks are run when it is built; their pages show what came out, and no file keeps it."""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SECONDS = 300
"""What one cell may take."""

COLUMNS = 80
"""How wide commands print: as much as a page shows."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def run(notebook: Path, folder: Path) -> Any:
    """Return a notebook after all of its cells were run, by this Python and its `tacit`, in a folder.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell failed.
    """
    nb = nbformat.read(notebook, as_version=4)
    client = NotebookClient(
        nb,
        timeout=SECONDS,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": folder}},
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    with tempfile.TemporaryDirectory() as own:  # what else would be written into the home folder
        ours = {"PATH": path, "IPYTHONDIR": own, "PYTHONWARNINGS": "default", "COLUMNS": str(COLUMNS)}
        client.execute(env={**os.environ, **ours})
    return nb


def page(nb: Any) -> str:
    """Return a notebook that was run as Markdown, with its pictures inside."""
    return "\n\n".join(part for cell in nb.cells for part in _parts(cell))


def _parts(cell: Any) -> list[str]:
    """Return a cell, and what came out of it."""
    if cell.cell_type != "code":
        return [cell.source]
    shell, _, commands = cell.source.partition("\n")
    code = _fence("bash", commands) if shell == "%%bash" else _fence("python", cell.source)
    return [code, *(_shown(one) for one in cell.outputs)]


def _shown(output: Any) -> str:
    """Return one output; of several forms the richest."""
    if output.output_type == "stream":
        return _fence("{ .text .printed }", _COLOURS.sub("", output.text))
    data = output.data
    if "text/html" in data:
        return f'<div class="output">\n{data["text/html"]}\n</div>'
    for kind in ("image/svg+xml", "image/png"):
        if kind in data:
            text = data[kind] if kind.endswith("png") else base64.b64encode(data[kind].encode()).decode()
            return f'<img alt="output" src="data:{kind};base64,{text}">'
    return _fence("text", data["text/plain"])


def _fence(kind: str, text: str) -> str:
    """Return a fenced block."""
    return f"```{kind}\n{text.rstrip()}\n```"


def on_files(files: Any, config: Any) -> Any:
    """Put a page in the place of every notebook; mkdocs calls this when it has found all files."""
    from mkdocs.structure.files import File

    class Page(File):  # type: ignore[misc,unused-ignore]
        """So that links and the navigation name the notebook itself, here as where the source is read."""

        def is_documentation_page(self) -> bool:
            return True

    for file in [one for one in files if one.src_uri.endswith(".ipynb")]:
        with tempfile.TemporaryDirectory() as folder:
            text = page(run(Path(file.abs_src_path), Path(folder)))
        files.remove(file)
        files.append(Page.generated(config, file.src_uri, content=text))
    return files
