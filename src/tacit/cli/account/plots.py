"""Pictures of `tacit account`: epsilon of every method against one parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from tacit.cli.account.options import shuffled_rounds
from tacit.cli.output import progress
from tacit.errors import check_choice

__all__ = ["Against", "draw_comparison"]

_AXES: Final = ("n", "rounds", "local-epsilon")
Against = Annotated[str, typer.Option(help="What the picture varies: n, rounds or local-epsilon.")]


def draw_comparison(
    path: Path,
    against: str,
    *,
    local_epsilon: float,
    n: int,
    delta: float,
    rounds: int,
    sample_rate: float,
    mechanism: str,
) -> None:
    """Draw epsilon of every method while one parameter varies around its value, the others fixed."""
    import numpy as np

    from tacit.privacy import compare
    from tacit.reports import draw_lines

    check_choice("against", against, _AXES)
    if against == "local-epsilon":
        values = np.geomspace(max(local_epsilon / 8, 0.01), min(local_epsilon * 8, 20.0), 10).tolist()
    else:
        middle = n if against == "n" else rounds
        grid = np.geomspace(max(middle / 100, 10 if against == "n" else 1), middle * 100, 9)
        values = sorted({round(value) for value in grid.tolist()})
    rows = []
    with progress("bounds", total=len(values)) as show:
        for done, value in enumerate(values, start=1):
            event = shuffled_rounds(
                n=value if against == "n" else n,
                mechanism=mechanism,
                rounds=value if against == "rounds" else rounds,
                sample_rate=sample_rate,
            )(value if against == "local-epsilon" else local_epsilon)
            rows += [
                {against: value, "epsilon": bound.epsilon, "method": f"{bound.method} ({bound.status.value})"}
                for bound in compare(event, delta)
                if 0 < bound.epsilon < np.inf
            ]
            show(done)
    fixed = {
        "n": f"n = {n:,}",
        "rounds": f"{rounds} rounds",
        "local-epsilon": f"local epsilon {local_epsilon:g}",
    }
    said = ", ".join(text for axis, text in fixed.items() if axis != against)
    draw_lines(
        rows, path, x=against, y="epsilon", line="method", log_x=True, log_y=True,
        title=f"Shuffled messages: {said}, delta {delta:g}, sample rate {sample_rate:g}",
    )  # fmt: skip
