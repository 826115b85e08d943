"""What Jiang (2025) states about the tasks on compressed means, and whether it came out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["statements"]

_ORDER = ("RPS(avg)", "RkS(avg)", "Rand-k")
_SPLITS = ("by label", "sorted")  # beside iid

Row = Mapping[str, object]
_Panels = Mapping[str, Mapping[str, Row]]  # setting and k to estimator to row


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the paper states, with in how many settings it holds and in which it does not.

    Args:
        rows: With the keys setting, estimator, k, error, standard error, loss, bits per party
            and ms per round.
    """
    panels: dict[str, dict[str, Row]] = {}
    for row in rows:
        panels.setdefault(f"{row['setting']}, k = {row['k']}", {})[str(row["estimator"])] = row
    for key in ("error", "loss"):
        yield _ordered(panels, key)
        yield _least(panels, key)
    pairs = [(name, other) for name in panels if (other := _counterpart(name, panels))]
    if pairs:
        less = sum(_gain(panels[other]) < _gain(panels[name]) for name, other in pairs)
        yield (
            "RPS(avg) gains less over Rand-k, in error, where parties differ: "
            f"{yes(less == len(pairs))}, in {less} of {len(pairs)} pairs of settings."
        )
    slow = sum(_best(panel, "ms per round", largest=True) == "RPS(avg)" for panel in panels.values())
    yield f"RPS(avg) takes the longest: {yes(slow == len(panels))}, in {slow} of {len(panels)} settings."
    bits = [[_value(p, name, "bits per party") for name in ("Wangni", "Rand-k")] for p in panels.values()]
    more = max(wangni / plain for wangni, plain in bits) - 1
    yield f"Not in the paper: Wangni sends up to {more:.0%} more bits than Rand-k for the same k."
    ones = [panel for panel in panels.values() if panel["Rand-k"]["k"] == 1]
    if ones:
        off = max(_apart(panel, "Induced", "Rand-k") for panel in ones)
        yield f"For k = 1 Induced is Rand-k: {yes(off <= 3)}, errors within {off:.2g} joint standard errors."


def _ordered(panels: _Panels, key: str) -> str:
    """Say where spatial decoding beats Rand-k and projections beat sampling."""
    lost = []
    for name, panel in panels.items():
        wrong = [
            (a, b) for a, b in itertools.pairwise(_ORDER) if not _value(panel, a, key) < _value(panel, b, key)
        ]
        if wrong:
            noise = key == "error" and all(_apart(panel, a, b) <= 2 for a, b in wrong)
            lost.append(f"{name}{' (within two standard errors)' if noise else ''}")
    where = f"; not {'; '.join(lost)}" if lost else ""
    return (
        f"{key}: {' < '.join(_ORDER)}: {yes(not lost)}, in {len(panels) - len(lost)} of {len(panels)} "
        f"settings{where}."
    )


def _least(panels: _Panels, key: str) -> str:
    """Say which method is the best, of those that know nothing of the correlation."""
    best: dict[str, list[str]] = {}
    for name, panel in panels.items():
        best.setdefault(_best(panel, key), []).append(name)
    wins = best.get("RPS(avg)", [])
    others = ", ".join(f"{name} in {len(where)}" for name, where in best.items() if name != "RPS(avg)")
    here = f" ({'; '.join(wins)})" if 0 < len(wins) < len(panels) else ""
    return (
        f"{key}: RPS(avg) is the best of the paper's methods: {yes(len(wins) == len(panels))}, in "
        f"{len(wins)} of {len(panels)} settings{here}{'; ' + others if others else ''}."
    )


def _counterpart(name: str, panels: _Panels) -> str | None:
    """Return the same setting with parties that differ, of one whose parties are alike."""
    if ", iid," not in name:
        return None
    others = (name.replace(", iid,", f", {split},") for split in _SPLITS)
    return next((other for other in others if other in panels), None)


def _gain(panel: Mapping[str, Row]) -> float:
    """Return by what share RPS(avg) errs less than Rand-k."""
    return 1 - _value(panel, "RPS(avg)", "error") / _value(panel, "Rand-k", "error")


def _best(panel: Mapping[str, Row], key: str, *, largest: bool = False) -> str:
    """Return the method with the least or largest value, of those that know nothing of the correlation."""
    values = {name: _value(panel, name, key) for name in panel if name != "RPS(opt)"}
    return max(values, key=lambda n: values[n]) if largest else min(values, key=lambda n: values[n])


def _apart(panel: Mapping[str, Row], a: str, b: str) -> float:
    """Return how many joint standard errors two errors differ by."""
    joint = math.hypot(*(_value(panel, name, "standard error") for name in (a, b)))
    off = abs(_value(panel, a, "error") - _value(panel, b, "error"))
    return off / joint if joint > 0 else math.inf if off > 0 else 0.0


def _value(panel: Mapping[str, Row], name: str, key: str) -> float:
    return number(panel[name][key])
