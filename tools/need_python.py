"""Say in one line where this Python is too old for tacit, and do nothing else; it runs on old ones too."""

import re
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"  # read without tomllib, which old ones lack
needed = re.search(r'^requires-python = ">=(\d+)\.(\d+)"$', PROJECT.read_text(), re.MULTILINE).groups()
if sys.version_info[:2] < tuple(map(int, needed)):
    found = ".".join(map(str, sys.version_info[:3]))
    sys.exit(
        f"tacit needs Python {'.'.join(needed)} or newer, and {sys.executable} is {found}. "
        "Name another one, such as: make PYTHON=python3.12"
    )
