"""The picture of `tacit plan mean`: error against bits, and against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tacit.planning import Candidate

__all__ = ["draw_plan"]

# Okabe and Ito (2008): distinguishable with any colour vision; markers tell families apart in print.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


def draw_plan(
    path: Path,
    found: Sequence[Candidate],
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    here: float | None,
) -> None:
    """Draw candidates by family; an error of 0 has no place on a logarithmic axis and is left out.

    Args:
        path: Picture file to write.
        found: Candidates that can be used.
        curves: For every family: pairs of epsilon and the least error with it; empty without privacy.
        here: The epsilon of the plan.
    """
    from matplotlib.figure import Figure

    panels = 2 if curves else 1
    figure = Figure(figsize=(1.5 + 5.0 * panels, 5.0), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    families = list(dict.fromkeys([*(one.family for one in found), *curves]))
    for k, family in enumerate(families):
        style = {
            "color": _COLOURS[k % len(_COLOURS)],
            "marker": _MARKERS[k % len(_MARKERS)],
            "ms": 5,
            "lw": 1,
        }
        mine = [one for one in found if one.family == family and one.mse > 0 and one.bits_per_party > 0]
        _line(axes[0], [(one.bits_per_party, one.mse) for one in mine], family, style)
        if panels == 2:
            _line(axes[1], [point for point in curves.get(family, ()) if point[1] > 0], family, style)
    _label(axes[0], "bits a party, headers included")
    if panels == 2:
        _label(axes[1], "epsilon")
        at = sorted({epsilon for points in curves.values() for epsilon, _ in points})
        axes[1].set_xticks(at, [f"{epsilon:.3g}" for epsilon in at])
        axes[1].minorticks_off()
        if here is not None:
            axes[1].axvline(here, color="#717273", lw=0.8, ls=":")
    axes[0].set_ylabel("predicted mean squared error")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False
    )
    figure.savefig(path, dpi=150)


def _line(axes: Any, points: Sequence[tuple[float, float]], name: str, style: Mapping[str, Any]) -> None:
    """Draw one family, also where it has no point, so that both panels share a legend."""
    x, y = zip(*sorted(points), strict=True) if points else ((), ())
    axes.plot(x, y, label=name, **style)


def _label(axes: Any, name: str) -> None:
    """Set logarithmic axes and their grid."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(name)
    axes.grid(visible=True, which="major", lw=0.4, color="#e1e2e3")
    axes.set_axisbelow(True)
