"""The picture of `tacit vote plot`: noise functions over the count of ones, and the errors they make."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tacit.voting import NoiseFunction

__all__ = ["draw_noise"]

# Okabe and Ito (2008): distinguishable with any colour vision; markers tell designs apart in print.
_COLOURS: Final = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#0072B2", "#717273")
_MARKERS: Final = ("s", "^", "D", "v", "P", "X", "<")
_POINTS: Final = 101


def draw_noise(path: Path, noise: NoiseFunction, others: Mapping[str, NoiseFunction]) -> None:
    """Draw gamma over the count of ones, and the error over a chance that all teachers share.

    Args:
        path: Picture file to write.
        noise: The design in front.
        others: Designs of the same setting by name, behind it.
    """
    import numpy as np
    from matplotlib.figure import Figure

    from tacit.voting import majority_error

    figure = Figure(figsize=(11.5, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    k = noise.setting.teachers
    chance = np.linspace(0.5, 1.0, _POINTS)
    votes = np.repeat(chance[:, None], k, axis=1)
    lines = [(name, one, 1.0, _MARKERS[i % len(_MARKERS)], _COLOURS[i % len(_COLOURS)], 2)
             for i, (name, one) in enumerate(others.items())]  # fmt: skip
    for name, one, width, marker, colour, order in [*lines, ("this file", noise, 2.5, "o", "#000000", 1)]:
        style = {"color": colour, "lw": width, "marker": marker, "ms": 2 * width + 2, "zorder": order}
        left.plot(np.arange(k + 1), one.full, label=name, **style)
        right.plot(chance, majority_error(one.gamma, votes), markevery=10, **style)
    left.set_xlabel(f"votes for 1, of {k}")
    left.set_ylabel("gamma: chance that the majority is published as it is")
    left.set_ylim(-0.03, 1.03)
    right.set_xlabel("chance of a vote for 1, the same for all teachers")
    right.set_ylabel("error: how far the bit's chance is from the majority's")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid(visible=True, lw=0.4, color="#e1e2e3")
        axes.set_axisbelow(True)
    figure.suptitle(
        f"{k} teachers with epsilon = {noise.setting.epsilon:g}; a bit may cost "
        f"{noise.setting.target_epsilon:g}",
        fontsize=11,
    )
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False
    )
    figure.savefig(path, dpi=150)
