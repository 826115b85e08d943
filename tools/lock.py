"""Write constraints.txt: exact versions of everything that pyproject.toml asks for, extras included.

Needs `uv` on the path. torch is pinned by hand, because its CPU build and its CUDA build have one name, and
what it asks for is pinned in its place; peers that are only measured beside us are not pinned.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0"
OF_TORCH = 'torch = ["filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy", "typing-extensions"]'
HEADER = "# Exact versions of everything the project installs, extras included; refresh with `make lock`.\n"


def main() -> None:
    """Compile the lock."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise SystemExit("make lock needs uv: pip install uv")
    source = (ROOT / "pyproject.toml").read_text()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "pyproject.toml"
        lines = [line for line in source.splitlines() if not line.startswith("peers = ")]
        copy.write_text("\n".join(OF_TORCH if line.startswith("torch = ") else line for line in lines))
        command = [uv, "pip", "compile", str(copy), "--all-extras", "--quiet", "--no-header", "--no-annotate"]
        command += ["--no-emit-index-url", "--python-version", "3.11"]
        pins = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (ROOT / "constraints.txt").write_text(HEADER + pins + TORCH + "\n")


if __name__ == "__main__":
    main()
