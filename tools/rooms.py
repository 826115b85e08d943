"""The picture of the rooms in docs/architecture.md, from the import contract: `python tools/rooms.py`.

A row is a floor of the contract in pyproject.toml, which `lint-imports` keeps; what a room is for is the
first line of its docstring.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
WIDTH, HEIGHT, GAP, LEFT = 1000, 58, 10, 60


def floors() -> list[list[str]]:
    """Return the rooms that exist, floor by floor, highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    split = [[room.strip(" ()") for room in layer.split(":")] for layer in layers]
    return [
        [room for room in floor if _source(room).exists() and not room.startswith("__")] for floor in split
    ]


def purpose(room: str) -> str:
    """Return the first line of a room's docstring."""
    text = ast.get_docstring(ast.parse(_source(room).read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0].rstrip(".")


def drawn() -> str:
    """Return the picture as SVG."""
    rows = floors()
    height = len(rows) * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for r, rooms in enumerate(rows):
        y, width = GAP + r * (HEIGHT + GAP), (WIDTH - LEFT - GAP * len(rooms)) / len(rooms)
        parts.append(f'<text x="20" y="{y + 34}" font-size="15" fill="#666666">{len(rows) - 1 - r}</text>')
        for k, room in enumerate(rooms):
            x = LEFT + k * (width + GAP)
            parts.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{HEIGHT}" rx="6" fill="#e0f2f1" '
                'stroke="#00796b"/>'
            )
            parts.append(
                f'<text x="{x + 8:.0f}" y="{y + 17}" font-size="14" font-weight="bold">{room}</text>'
            )
            lines = textwrap.wrap(purpose(room), int(width / 5.3), max_lines=3, placeholder=" ...")
            for line, text in enumerate(lines):
                parts.append(
                    f'<text x="{x + 8:.0f}" y="{y + 31 + 11 * line}" font-size="10">{escape(text)}</text>'
                )
    return "\n".join([*parts, "</svg>", ""])


def _source(room: str) -> Path:
    """Return the file whose docstring says what a room is for."""
    folder = ROOT / "src" / "tacit" / room
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
