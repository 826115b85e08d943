"""The picture of guessed coins in docs/how-to/read-a-statement.md: `python tools/coins.py`.

A bar is the bound that reports print too, `guess_bound`: how often the best guess between two neighbouring
data sets can be right, at delta = 0.
"""

from __future__ import annotations

import math
from pathlib import Path

from tacit.privacy import PureDP, guarantee
from tacit.reports.statement import guess_bound

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "coins.svg"
LEVELS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
WIDTH, TOP, ROW, LEFT, BAR = 760, 62, 30, 120, 500


def share(epsilon: float) -> float:
    """Return how often a guess can be right, in percent, rounded up to the digits that are shown."""
    percent: float = 100 * guess_bound(guarantee(PureDP(epsilon), 0.0, observer="anybody"))
    digits = 2 if percent > 99.5 else 1
    scale: float = 10.0**digits
    return math.ceil(percent * scale) / scale


def drawn() -> str:
    """Return the picture as SVG."""
    height = TOP + ROW * (len(LEVELS) + 1) + 24
    half = LEFT + BAR // 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-weight="bold">How often can the coin be guessed, at most?</text>',
        f'<text x="{LEFT - 12}" y="50" text-anchor="end" fill="#555555">epsilon</text>',
        f'<text x="{half}" y="50" text-anchor="middle" fill="#555555">every second time: blind</text>',
        f'<text x="{LEFT + BAR}" y="50" text-anchor="middle" fill="#555555">always</text>',
    ]
    for row, epsilon in enumerate((0.0, *LEVELS)):
        y = TOP + ROW * row
        percent = 50.0 if epsilon == 0 else share(epsilon)
        label = "sees nothing" if epsilon == 0 else f"{epsilon:g}"
        parts += [
            f'<text x="{LEFT - 12}" y="{y + 15}" text-anchor="end">{label}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{BAR}" height="20" fill="#eeeeee"/>',
            f'<rect x="{LEFT}" y="{y}" width="{BAR * percent / 100:.1f}" height="20" fill="#00796b"/>',
            f'<text x="{LEFT + BAR + 10}" y="{y + 15}">{percent:g} %</text>',
        ]
    end = TOP + ROW * (len(LEVELS) + 1) - 4
    parts.append(f'<path d="M {half} 56 V {end}" stroke="#b71c1c" stroke-dasharray="4 3"/>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
