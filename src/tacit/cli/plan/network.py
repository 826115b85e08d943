"""What `tacit plan train --model` says of a network to people: prices and noise, where no bound holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tacit.cli.output import print_table, print_text

if TYPE_CHECKING:
    from tacit.learning import Prediction
    from tacit.planning import TrainingProblem

__all__ = ["left_out", "show_network"]


def show_network(model: str, problem: TrainingProblem, found: tuple[Prediction, ...]) -> None:
    """Print the plan of a network."""
    from tacit.learning import ALGORITHMS
    from tacit.learning.algorithms import algorithm_name
    from tacit.planning.train import automatic_choice
    from tacit.reports.tables import format_bits

    print_text(
        f"{problem.silos} silos of {problem.records:,} records; {model}, {problem.dim:,} parameters, of "
        "whose smoothness nothing is known"
    )
    running = [one for one in found if one.runs]
    columns = (
        "algorithm",
        "protects",
        "rounds",
        "noise",
        "gradient error",
        "sent per silo",
        "has to be given",
    )
    rows = [
        (
            one.name,
            (ALGORITHMS[one.name].unit or "record"),
            str(one.rounds),
            f"{one.noise_multiplier:.4g}",
            "none" if one.gradient_error is None else f"{100 * one.gradient_error:.3g} %",
            format_bits(one.bits_per_silo),
            one.caveat.replace("give it ", "--option ").replace(" and ", " --option "),
        )
        for one in running
    ]
    if rows:
        print_table(columns, rows, right=("rounds", "noise", "gradient error", "sent per silo"))
    else:
        print_text("no algorithm can run here.")
    print_text("")
    print_text(
        "- noise: its standard deviation, in sensitivities. gradient error: of a round's mean gradient, by "
        "noise and sampling, in clipping bounds; far above 100 %, little is learned; none where a server "
        "adds noise to votes, or only the end of a run is seen. The order is by it, "
        "over the root of the rounds: it is no promise, as no bound on the error of a network is known."
    )
    if (auto := automatic_choice(problem)) is not None:
        print_text(f"- auto takes {algorithm_name(auto.algorithm)}: {auto.reason}")
    for (_, reason), names in left_out(one for one in found if not one.runs).items():
        print_text(f"- not usable: {', '.join(names)}: {reason}")


def left_out(found: Iterable[Prediction]) -> dict[tuple[bool, str], list[str]]:
    """Return algorithms by whether they can run, and why nothing is promised of them."""
    grouped: dict[tuple[bool, str], list[str]] = {}
    for one in found:
        grouped.setdefault((one.runs, one.reason), []).append(one.name)
    return grouped
