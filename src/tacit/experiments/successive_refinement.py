"""One message for several analysts, and keys that give values back (Girgis 2023, Figures 7.3, 7.9, 7.10).

All of these are entropies, and exact. The thesis shows pictures; the column of the reference holds what an
independent computation found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.experiments.successive_refinement_statements import (
    key_statements,
    many_statements,
    pair_statements,
    saved_statements,
)
from tacit.frequencies import LevelledHadamard, RecoverableHadamard, SeparateLevels, least_key_entropy

__all__ = ["compute", "run"]

PAIR_GRID = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Levels of the second analyst, below 1."""
KEY_GRID = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
_SIZES = (10, 100, 1000)
_SAVED = {2: 94.2, 4: 91.4, 10: 85.0}
"""Shares of storage, in percent, that the text says are saved at epsilon 5, by k."""
_NAME = "successive-refinement"
_BITS = {"random bits": "random bits of a client"}


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the three figures; `quick` takes fewer places."""
    if quick:
        return compute((0.01, 0.5, 0.99), (1, 2, 5, 10), (1.0, 3.0, 5.0), progress)
    return compute(PAIR_GRID, tuple(range(1, 11)), KEY_GRID, progress)


def compute(
    pairs: Sequence[float],
    counts: Sequence[int],
    levels: Sequence[float],
    progress: Callable[[int, int], Any],
) -> Report:
    """Compute some places of each figure.

    Args:
        pairs: Levels of the second analyst of Figure 7.9.
        counts: Numbers of analysts of Figure 7.10.
        levels: Levels of Figure 7.3.
        progress: Called with (done, total).
    """
    progress(0, 1)
    two = [row for level in pairs for row in _schemes("7.9", {"epsilon_2": level}, (1.0, level))]
    many = [
        row
        for panel, steps in (("7.10, as printed", (2.0, *_steps(2))), ("7.10, even steps", tuple(_steps(0))))
        for d in counts
        for row in _schemes(panel, {"analysts": d}, steps[:d])
    ]
    keys = list(_keys(levels))
    saved = list(_saved())
    progress(1, 1)
    return Report(
        rows=two,
        x="epsilon_2",
        y="random bits",
        error=None,
        line="line",
        log_x=False,
        labels=_BITS | {"epsilon_2": "epsilon of the second analyst"},
        title="Figure 7.9: two analysts, the first at epsilon 1",
        notes=(
            "together is what both analysts learn when they pool all they have.",
            *pair_statements(two),
            *many_statements(many),
            *key_statements(keys),
            *saved_statements(saved),
        ),
        more={
            "7.10": Report(
                rows=many,
                x="analysts",
                y="random bits",
                error=None,
                line="line",
                panel="panel",
                log_x=False,
                labels=_BITS | {"analysts": "number of analysts"},
                title="Figure 7.10: more and more analysts, the first at epsilon 2",
                notes=("As printed, levels are 2 - 0.1 j from the second analyst on: 1.9 is skipped.",),
            ),
            "7.3": Report(
                rows=keys,
                x="epsilon",
                y="bits",
                error=None,
                line="line",
                panel="panel",
                log_x=False,
                labels={"bits": "bits of a secret key"},
                title="Figure 7.3: what keeps a value beside its private message",
                notes=("Who keeps the public message needs the key only, not the value.",),
            ),
            "saved": Report(
                rows=saved,
                x="k",
                y="saved %",
                error=None,
                line="line",
                title="Storage that a key saves at epsilon 5",
                notes=("Beside what the text prints.",),
            ),
        },
    )


def _steps(skipped: int) -> list[float]:
    """Return levels in steps of 0.1 below 2, from one on."""
    return [(20 - j) / 10 for j in range(skipped, skipped + 10)]


def _schemes(panel: str, at: dict[str, float], levels: tuple[float, ...]) -> Iterator[dict[str, object]]:
    """Yield the random bits of one message for all, and of separate ones."""
    ((_, place),) = at.items()
    schemes: dict[str, LevelledHadamard | SeparateLevels] = {
        "one message": LevelledHadamard(4, levels),
        "separate messages": SeparateLevels(4, levels),
    }
    ours = schemes["one message"].random_bits
    for line, scheme in schemes.items():
        yield {
            "panel": panel,
            "line": line,
            **at,
            "random bits": scheme.random_bits,
            **_beside(panel, line, place, scheme.random_bits),
            "times": scheme.random_bits / ours,
            "together": scheme.coalition_level(range(len(levels))),
        }


def _keys(levels: Sequence[float]) -> Iterator[dict[str, object]]:
    """Yield the bits of keys, and of values."""
    for k in _SIZES:
        for epsilon in levels:
            kinds = {
                "key of least entropy": least_key_entropy(k, epsilon),
                "recoverable Hadamard response": RecoverableHadamard(k=k, epsilon=epsilon).entropy_bits,
                "the value: log2 k": math.log2(k),
            }
            for line, bits in kinds.items():
                yield {
                    "panel": f"k = {k}",
                    "line": line,
                    "epsilon": epsilon,
                    "bits": bits,
                    **_beside(f"7.3, {k}", line, epsilon, bits),
                }


def _saved() -> Iterator[dict[str, object]]:
    """Yield the shares of storage that the text names."""
    for k, said in _SAVED.items():
        share = 100 * (1 - least_key_entropy(k, 5.0) / math.log2(k))
        found = _beside("saved", "at epsilon 5", k, share)
        yield {"line": "at epsilon 5", "k": k, "saved %": share, "printed": said, **found}


def _beside(panel: str, line: str, place: float, value: float) -> dict[str, object]:
    """Return the reference of a number, and how far it is."""
    expected = reference(_NAME).get((panel, line, float(place)))
    return {"reference": expected, "difference": None if expected is None else value - expected}
