"""What the thesis says of several analysts and of keys, one statement after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["key_statements", "many_statements", "pair_statements", "saved_statements"]

Row = Mapping[str, object]

_TWICE = 1.8  # "about twice"
_EQUAL = 1.01  # "equal"
_LAST_DIGIT = 1e-6  # of the reference


def pair_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of Figure 7.9.

    Args:
        rows: With the keys line, epsilon_2, random bits, reference, difference, times and together.
    """
    yield _near("7.9", rows)
    separate = {number(row["epsilon_2"]): row for row in rows if row["line"] == "separate messages"}
    near, far = number(separate[max(separate)]["times"]), number(separate[min(separate)]["times"])
    yield (
        f"7.9: where levels are close, separate messages take about twice the random bits: {near:.2f} times "
        f"at {max(separate):g}; {yes(near >= _TWICE)}."
    )
    yield (
        f"7.9: where levels are far apart, both take the same: {far:.4f} times at {min(separate):g}; "
        f"{yes(far <= _EQUAL)}."
    )
    most = max(number(row["together"]) for row in rows if row["line"] == "one message")
    worst = max(number(row["together"]) for row in separate.values())
    yield f"7.9: together the analysts learn epsilon {most:.4g} from one message, up to {worst:.4g} from two."


def many_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of Figure 7.10.

    Args:
        rows: With the keys panel, line, analysts, random bits, reference, difference, times and together.
    """
    yield _near("7.10", rows)
    for panel in dict.fromkeys(str(row["panel"]) for row in rows):
        bits = {
            (str(row["line"]), number(row["analysts"])): number(row["random bits"])
            for row in rows
            if row["panel"] == panel
        }
        counts = sorted({d for _, d in bits})
        gaps = [bits["separate messages", d] - bits["one message", d] for d in counts]
        grows = all(a < b for a, b in itertools.pairwise(gaps))
        yield (
            f"{panel}: the gap grows with the number of analysts, from {abs(gaps[0]):.2f} to {gaps[-1]:.2f} "
            f"bits: {yes(grows)}."
        )
        together = {str(row["line"]): number(row["together"]) for row in rows if row["panel"] == panel}
        yield (
            f"{panel}: {counts[-1]:g} analysts together learn epsilon {together['one message']:.4g} from one "
            f"message, {together['separate messages']:.4g} from separate ones."
        )


def key_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of Figure 7.3.

    Args:
        rows: With the keys panel, line, epsilon, bits, reference and difference.
    """
    yield _near("7.3", rows)
    for panel in dict.fromkeys(str(row["panel"]) for row in rows):
        lines: dict[str, dict[float, float]] = {}
        for row in rows:
            if row["panel"] == panel:
                lines.setdefault(str(row["line"]), {})[number(row["epsilon"])] = number(row["bits"])
        key, value = lines["key of least entropy"], lines["the value: log2 k"]
        below = all(key[e] < value[e] for e in key)
        bits = [key[e] for e in sorted(key)]
        falls = all(a > b for a, b in itertools.pairwise(bits))
        yield (
            f"7.3, {panel}: the key takes fewer bits than the value at every epsilon: {yes(below)}; ever "
            f"fewer as epsilon grows: {yes(falls)}."
        )
        over = max(lines["recoverable Hadamard response"][e] / key[e] for e in key)
        yield (
            f"7.3, {panel}: the key of recoverable Hadamard response, whose messages can always be counted, "
            f"is at most {over:.2f} times as long."
        )


def saved_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of the shares in the text.

    Args:
        rows: With the keys k, saved % and printed.
    """
    said = ", ".join(
        f"{number(row['saved %']):.1f} % for k = {number(row['k']):g} ({number(row['printed']):g} %)"
        for row in rows
    )
    same = all(abs(number(row["saved %"]) - number(row["printed"])) <= 0.05 + 1e-9 for row in rows)
    yield f"At epsilon 5 keys save, beside what is printed, {said}; {yes(same)}."


def _near(figure: str, rows: Sequence[Row]) -> str:
    """Say how far the run is from the reference."""
    compared = [row for row in rows if row["reference"] is not None]
    near = sum(abs(number(row["difference"])) <= _LAST_DIGIT for row in compared)
    return f"{figure}: all six digits of the reference: {near} of {len(compared)} places."
