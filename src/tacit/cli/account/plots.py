"""Pictures of `tacit account`: epsilon of every method against one parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.output import progress
from tacit.errors import check_choice

if TYPE_CHECKING:
    from tacit.cli.account.shuffled import Shuffle
    from tacit.literature import Bound

__all__ = ["Against", "check_axis", "draw_comparison"]

_AXES: Final = {"n": "parties n", "rounds": "rounds T", "local-epsilon": "local epsilon of one message"}
_WIDTH, _HEIGHT = 11.0, 6.0
_COUNT = 9  # points of a line
_NARROW = 300.0  # an axis that spans less than this has labels at 1, 2 and 5
_ABOVE = 10.0  # lines are cut this far above what needs no shuffler

# Okabe and Ito (2008): distinguishable with any colour vision; markers and dashes tell lines apart in print.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v")
_DASHES = ("-", "--", "-.")

Points = list[tuple[float, float]]
Against = Annotated[
    str,
    typer.Option(click_type=OneOf(_AXES), help="What the picture varies: {names}."),
]


def check_axis(against: str) -> None:
    """Refuse a parameter that no picture varies."""
    check_choice("against", against, _AXES)


def draw_comparison(path: Path, against: str, shuffle: Shuffle, *, delta: float) -> None:
    """Draw epsilon of every method while one parameter varies around its value, the others fixed."""
    from tacit.literature import compare

    check_axis(against)
    # The methods are compared for one message a round.
    shuffle, varied = replace(shuffle, messages=1), against.replace("-", "_")
    values = _values(against, shuffle)
    bounds: list[Sequence[Bound]] = []
    with progress("bounds", total=len(values)) as show:
        for done, value in enumerate(values, start=1):
            other: dict[str, Any] = {varied: value}
            bounds.append(compare(replace(shuffle, **other).event(), delta))
            show(done)
    n, rounds, local_epsilon = shuffle.n, shuffle.rounds, shuffle.local_epsilon
    here = {"n": n, "rounds": rounds, "local-epsilon": local_epsilon}[against]
    fixed = {
        "n": f"n = {n:,}",
        "rounds": f"{rounds:,} round{'' if rounds == 1 else 's'}",
        "local-epsilon": f"local epsilon {local_epsilon:g}",
    }
    said = [text for axis, text in fixed.items() if axis != against]
    rate = shuffle.sample_rate
    sample = [] if rate == 1 else [f"secret samples of {100 * rate:g}%"]
    title = ", ".join([f"Shuffled messages ({shuffle.mechanism})", *said, f"delta {delta:g}", *sample])
    _draw(path, _lines(values, bounds), label=_AXES[against], title=title, here=here)


def _values(against: str, shuffle: Shuffle) -> Sequence[float]:
    """Return the values of the parameter: up to two decades to each side, within what has a price."""
    import numpy as np

    if against == "local-epsilon":
        low = max(min(shuffle.local_epsilon / 8, 20 / 8), 1e-3)
        high = max(min(shuffle.local_epsilon * 8, 20.0), 2 * low)
        return [float(x) for x in np.geomspace(low, high, _COUNT)]
    if against == "n":
        middle, least, most = shuffle.n, max(10.0, 2 / shuffle.sample_rate), 1e9
    else:
        middle, least, most = shuffle.rounds, 1.0, 1e6
    grid = np.geomspace(max(middle / 100, least), min(middle * 100, most), _COUNT)
    return sorted({math.ceil(value) for value in grid})


def _lines(values: Sequence[float], bounds: Sequence[Sequence[Bound]]) -> dict[tuple[str, str], Points]:
    """Return the points of every method that has some, by (method, status); the largest at the end first."""
    lines: dict[tuple[str, str], Points] = {}
    for value, found in zip(values, bounds, strict=True):
        for bound in found:
            if 0 < bound.epsilon < float("inf"):
                lines.setdefault((bound.method, bound.status.value), []).append((value, bound.epsilon))
    return dict(sorted(lines.items(), key=lambda item: (item[1][-1][0], item[1][-1][1]), reverse=True))


def _draw(
    path: Path, lines: Mapping[tuple[str, str], Points], *, label: str, title: str, here: float
) -> None:
    """Write the picture: proofs in colour, lower bounds black, what is not proven grey; names beside.

    The names stand in the order in which the lines end. The dotted line is the value that was asked for.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    axes = figure.subplots()
    proofs = greys = 0
    for (method, status), points in lines.items():
        if status == "proof":
            style: dict[str, Any] = {
                "color": _COLOURS[proofs % len(_COLOURS)],
                "ls": _DASHES[proofs // len(_COLOURS) % 3],
            }
            style["marker"] = _MARKERS[proofs % len(_MARKERS)]
            proofs += 1
        elif status == "lower bound":
            style = {"color": "black", "ls": "-", "marker": "x"}
        else:
            style = {"color": "#999999", "ls": ":", "marker": _MARKERS[greys % len(_MARKERS)]}
            greys += 1
        axes.plot(*zip(*points, strict=True), markersize=4, lw=1.3, label=f"{method} ({status})", **style)
    shown = [y for (_, status), points in lines.items() if status != "paper only" for _, y in points]
    local = [y for (method, _), points in lines.items() if method == "no shuffler" for _, y in points]
    axes.set_xscale("log")
    axes.set_yscale("log")
    top = min(max(shown, default=1.0), _ABOVE * max(local, default=1.0))
    axes.set_ylim(min(shown, default=1e-3) / 2, 2 * top)
    xs = [x for points in lines.values() for x, _ in points]
    if max(xs, default=1.0) < _NARROW * min(xs, default=1.0):
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(here, color="#bbbbbb", lw=1, ls=":", zorder=0)
    axes.set_xlabel(label)
    axes.set_ylabel("epsilon")
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
