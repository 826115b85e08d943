"""`tacit frequencies --levels`: one message of every record, and what several analysts make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.frequencies.answers import SHOWN, notes_on, shown_names
from tacit.cli.output import print_table, print_text
from tacit.errors import printable

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.cli.frequencies.flags import FrequencyFlags
    from tacit.frequencies import LevelEstimate, LevelledHadamard
    from tacit.numerics import Array, IntArray

__all__ = ["LevelledAnswer", "draw", "facts_of", "facts_of_separate", "notes_on_levels", "show"]

_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelledAnswer:
    """What all analysts find.

    Attributes:
        scheme: Their levels, the most trusted first.
        n: Number of messages.
        found: The estimates of each.
    """

    scheme: LevelledHadamard
    n: int
    found: tuple[LevelEstimate, ...]

    @property
    def order(self) -> IntArray:
        """Values by what the most trusted analyst finds, the most frequent first."""
        import numpy as np

        return np.argsort(-self.found[0].estimates, kind="stable")


def facts_of_separate(scheme: LevelledHadamard) -> dict[str, float]:
    """Return what a message of its own for every analyst would take, and tell all of them together."""
    from tacit.frequencies import SeparateLevels

    baseline = SeparateLevels(scheme.k, scheme.epsilons)
    return {
        "bits_per_client": sum(oracle.message_bits for oracle in baseline.oracles),
        "random_bits_per_client": baseline.random_bits,
        "epsilon_together": baseline.coalition_level(range(len(scheme.epsilons))),
    }


def notes_on_levels(levels: tuple[float, ...], n: int, confidence: float, unit: str, made: str) -> list[str]:
    """Return what the answers at several levels mean; their statement must hold it."""
    each = "" if len(levels) == 1 else "; for each analyst's intervals by themselves"
    first, *others = notes_on(n, confidence, unit, made)
    return [
        f"{first[:-1]}{each}.",
        *others,
        "analyst 0 is the most trusted one. A coalition of analysts learns what its most trusted member "
        f"does; who sees public messages alone learns at most epsilon {levels[-1]:g}.",
    ]


def facts_of(tables: str, names: list[str], answer: LevelledAnswer, flags: FrequencyFlags) -> dict[str, Any]:
    """Return the answer for programs; it is a statement, which `tacit account verify` accepts."""
    import msgspec

    from tacit.frequencies import project
    from tacit.privacy.statement import About, Statement

    scheme, names = answer.scheme, shown_names(names)
    claims = [one.guarantee for one in answer.found]
    near, simulated = claims[0].neighbours, claims[0].simulated
    claims.append(msgspec.structs.replace(scheme.price(neighbours=near), simulated=simulated))
    analysts = [
        {
            "epsilon": one.epsilon,
            "estimates": dict(zip(names, project(one.estimates, flags.consistent).tolist(), strict=True)),
            "intervals": dict(zip(names, one.band.intervals.tolist(), strict=True)),
            "rmse": (one.mse / scheme.k) ** 0.5,
            "guarantee": str(one.guarantee),
        }
        for one in answer.found
    ]
    return Statement(
        kind="frequencies levels",
        guarantees=tuple(claims),
        about=(About(trust="local", units=answer.n),) * len(claims),
        notes=tuple(
            notes_on_levels(scheme.epsilons, answer.n, flags.confidence, near.unit, flags.consistent)
        ),
        answer={
            "table": printable(tables),
            "column": printable(flags.column),
            "n": answer.n,
            "k": scheme.k,
            "levels": list(scheme.epsilons),
            "analysts": analysts,
            "projection": flags.consistent,
            "confidence": flags.confidence,
            "bits_per_client": scheme.oracles[-1].message_bits,
            "private_bits_per_client": scheme.private_bits,
            "random_bits_per_client": scheme.random_bits,
            "separate_messages": facts_of_separate(scheme),
            "epsilon": claims[0].epsilon,
            "delta": claims[0].delta,
            "trust": "local",
            "unit": near.unit.value,
            "simulated": simulated,
            "guarantee": str(claims[0]),
        },
    ).to_builtins()


def show(tables: str, names: list[str], answer: LevelledAnswer, flags: FrequencyFlags) -> None:
    """Print what each analyst finds, for people."""
    from tacit.frequencies import project

    scheme, unit = answer.scheme, answer.found[0].guarantee.neighbours.unit
    names, order = shown_names(names), answer.order
    shown = order[:SHOWN] if len(order) > SHOWN + 5 else order
    shares = [project(one.estimates, flags.consistent) for one in answer.found]
    rows = [
        (
            names[k],
            *(
                f"{share[k]:.4g} ({one.band.lower[k]:.4g} to {one.band.upper[k]:.4g})"
                for share, one in zip(shares, answer.found, strict=True)
            ),
        )
        for k in shown.tolist()
    ]
    columns = (
        printable(flags.column),
        *(f"analyst {j}, epsilon {level:g}" for j, level in enumerate(scheme.epsilons)),
    )
    print_text(f"{tables}: {answer.n} {unit.plural}, {scheme.k} values; intervals in parentheses")
    print_table(columns, rows, right=columns[1:])
    if len(shown) < len(order):
        print_text(f"... and {len(order) - len(shown)} more; --json has them all.")
    separate = facts_of_separate(scheme)
    print_text("")
    print_text(
        f"- one message for all: {scheme.oracles[-1].message_bits} public bits, {scheme.private_bits} bits "
        f"of keys and {scheme.random_bits:.4g} random bits a {unit.value}; separate messages would take "
        f"{separate['bits_per_client']} bits and {separate['random_bits_per_client']:.4g} random bits, and "
        f"tell all analysts together epsilon {separate['epsilon_together']:.4g}."
    )
    for note in notes_on_levels(scheme.epsilons, answer.n, flags.confidence, unit, flags.consistent):
        print_text(f"- {note}")
    for one in answer.found:
        print_text(f"\n{one.guarantee}")


def draw(path: Path, tables: str, names: list[str], answer: LevelledAnswer, flags: FrequencyFlags) -> None:
    """Draw the most frequent values, a bar for each analyst."""
    from matplotlib.figure import Figure

    shown = answer.order[:SHOWN]
    figure = Figure(
        figsize=(8.5, 1.6 + (0.16 + 0.14 * len(answer.found)) * max(shown.size, 3)), layout="constrained"
    )
    axes = figure.subplots()
    for j, one in enumerate(answer.found):
        heights = _heights(shown.size, j, len(answer.found))
        colour = _COLOURS[j % len(_COLOURS)]
        axes.hlines(heights, one.band.lower[shown], one.band.upper[shown], color=colour, lw=3, alpha=0.5)
        axes.plot(
            one.estimates[shown],
            heights,
            "o",
            color=colour,
            ms=4,
            label=f"analyst {j}: epsilon {one.epsilon:g}",
        )
    # Names are data of a file: a dollar sign would start a formula.
    axes.set_yticks(range(shown.size), [shown_names(names)[k].replace("$", r"\$") for k in shown.tolist()])
    axes.set_ylim(shown.size - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(
        f"frequency; an analyst's intervals hold with probability {100 * flags.confidence:.10g} %"
    )
    axes.grid(visible=True, axis="x", lw=0.4, color="#e1e2e3")
    axes.set_axisbelow(True)
    unit = answer.found[0].guarantee.neighbours.unit
    title = f"{printable(flags.column)}: {answer.n} {unit.plural} of {printable(tables)}, one message for all"
    axes.set_title(title.replace("$", r"\$"), fontsize=10)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)


def _heights(count: int, analyst: int, analysts: int) -> Array:
    """Return where the bars of an analyst are, within a band of 0.6 around each value."""
    import numpy as np

    return np.arange(count) + 0.6 * ((analyst + 0.5) / analysts - 0.5)
