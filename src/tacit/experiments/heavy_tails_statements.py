"""What is printed of heavy-tailed methods, and whether it held among the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tacit.experiments.report import number, yes

__all__ = ["statements"]

Row = Mapping[str, object]

_LONGEST, _AUTO, _LONG = "DP-SGD, longest", "automatic clip", "clipped-sgd, full, automatic clip"
_GRID = ("DP-SGD, clip", "DP-SGD, best clip")


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was claimed of every method with a stated moment, and of the automatic clip.

    Args:
        rows: With the keys task, records, method, excess and bound.
    """
    for task in dict.fromkeys(str(row["task"]) for row in rows):
        own = [row for row in rows if row["task"] == task]
        for method in dict.fromkeys(str(row["method"]) for row in own if row["bound"] is not None):
            line = [row for row in own if row["method"] == method]
            excess = [number(row["excess"]) for row in line]
            below = all(number(row["excess"]) <= number(row["bound"]) for row in line)
            falling = all(second < first for first, second in pairwise(excess))
            said = f"below its bound {yes(below)}, falling {yes(falling)}"
            yield f"{method}, {task}: excess {_listed(excess)}; {said}."
        yield from _against(task, own)


def _against(task: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield how the method with the least bound, the best one, and automatic clips fare against DP-SGD."""
    sizes = list(dict.fromkeys(row["records"] for row in rows))
    places = [[row for row in rows if row["records"] == n] for n in sizes]
    rivals = {
        "the method of the least bound": [
            min(_stated(p), key=lambda row: number(row["bound"])) for p in places
        ],
        "the best method with a moment": [min(_stated(p), key=_excess) for p in places],
        _AUTO: [row for row in rows if row["method"] == _AUTO],
        _LONG: [row for row in rows if row["method"] == _LONG],
    }
    longest = [next(_excess(row) for row in p if row["method"] == _LONGEST) for p in places]
    grid = [min(_excess(row) for row in p if str(row["method"]).startswith(_GRID)) for p in places]
    for name, found in rivals.items():
        if not found:
            continue
        ours = [_excess(row) for row in found]
        always = [own < other for own, other in zip(ours, longest, strict=True)]
        often = [own < other for own, other in zip(ours, grid, strict=True)]
        yield (
            f"{task}: {name} ({_listed(ours)}) is below DP-SGD clipped at the longest gradient "
            f"({_listed(longest)}) at every size: {yes(all(always))} ({sum(always)} of {len(always)}); below "
            f"DP-SGD with the best clip of the grid in hindsight ({_listed(grid)}) at half of the sizes or "
            f"more: {yes(2 * sum(often) >= len(often))} ({sum(often)} of {len(often)})."
        )


def _stated(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of methods that clip by a moment."""
    return [row for row in rows if row["bound"] is not None]


def _excess(row: Row) -> float:
    """Return the excess of a row."""
    return number(row["excess"])


def _listed(values: Sequence[float]) -> str:
    """Return numbers in one line."""
    return ", ".join(f"{value:.3g}" for value in values)
