"""What Jiang (2025) says of private shuffled gradients with public records, and whether it came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["order_statements", "statements"]

Row = Mapping[str, object]

_PRIVATE, _INTERLEAVED, _PUBLIC = "DP-ShuffleG", "Interleaved", "Public only"
_LATE = "DP-ShuffleG at epoch ends"
_FIVE = (_PRIVATE, "Priv-Pub", "Pub-Priv", _INTERLEAVED, _PUBLIC)
_QUIET = "without noise"
_BARE = (_PUBLIC, _QUIET, "start")
_NEAR = 0.99  # a smaller share of another excess counts as less, a larger one as equal
_FAR = 10  # times the excess without noise that counts as suboptimal


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the chapter states, one by one, and what better accounting changes.

    Args:
        rows: With the keys task, epsilon, method (by whose noise), noise / clip and excess.
    """
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    small = {task: min(number(row["epsilon"]) for row in rows if row["task"] == task) for task in tasks}

    def cell(task: str, method: str, by: str, key: str = "excess") -> float:
        """Return a cell at the small epsilon."""
        label = method if method in _BARE else f"{method}, {by}"
        (found,) = [
            number(row[key])
            for row in rows
            if (row["task"], row["method"]) == (task, label) and number(row["epsilon"]) == small[task]
        ]
        return found

    def best(task: str, by: str, names: Sequence[str] = _FIVE) -> list[str]:
        """Return the methods with the least excess, all that are as good."""
        least = min(cell(task, name, by) for name in names)
        return [name for name in names if _NEAR * cell(task, name, by) <= least]

    left = [cell(task, _PUBLIC, "") / cell(task, _QUIET, "") for task in tasks]
    far = sum(ratio > _FAR for ratio in left)
    yield (
        f"Public only converges to a suboptimal point: {yes(far == len(tasks))}, on {far} of {len(tasks)} "
        f"tasks its excess is above {_FAR} times that of private records without noise."
    )
    worst = sum(
        all(
            cell(task, name, "chapter") < _NEAR * cell(task, _PRIVATE, "chapter")
            for name in _FIVE
            if name != _PRIVATE
        )
        for task in tasks
    )
    yield (
        f"DP-ShuffleG is the poorest at the smaller epsilon, noise of the chapter: "
        f"{yes(worst == len(tasks))}, on {worst} of {len(tasks)} tasks."
    )
    first = sum(best(task, "chapter") == [_INTERLEAVED] for task in tasks)
    yield (
        f"Interleaved is the best at the smaller epsilon, noise of the chapter: "
        f"{yes(first == len(tasks))}, on {first} of {len(tasks)} tasks."
    )
    below = sum(cell(task, _INTERLEAVED, "chapter") <= cell(task, _PRIVATE, "chapter") for task in tasks)
    yield (
        f"Interleaved is at or below DP-ShuffleG there, noise of the chapter: {yes(below == len(tasks))}, on "
        f"{below} of {len(tasks)} tasks."
    )
    for method in (_PRIVATE, _INTERLEAVED):
        gains = [
            cell(task, method, "chapter", "noise / clip") / cell(task, method, "tacit", "noise / clip")
            for task in tasks
        ]
        falls = [cell(task, method, "chapter") / cell(task, method, "tacit") for task in tasks]
        yield (
            f"{method} with the noise of tacit: {_range(gains)} times less noise at the smaller epsilon, and "
            f"{_range(falls)} times less excess."
        )
    again = sum(best(task, "tacit") == [_INTERLEAVED] for task in tasks)
    yield (
        f"Interleaved stays the best of the five with the noise of tacit: {yes(again == len(tasks))}, on "
        f"{again} of {len(tasks)} tasks."
    )
    late = sum(cell(task, _LATE, "tacit") <= cell(task, _PRIVATE, "tacit") for task in tasks)
    yield (
        f"Noise at the ends of epochs is at or below noise in every step, both of tacit: "
        f"{yes(late == len(tasks))}, on {late} of {len(tasks)} tasks."
    )
    for task in tasks:
        found = best(task, "tacit", [*_FIVE, _LATE])
        winner = "nobody: all are as good" if len(found) == len(_FIVE) + 1 else " and ".join(found)
        harmed = [
            f"{name}, {by}"
            for by, names in (("chapter", _FIVE), ("tacit", (*_FIVE, _LATE)))
            for name in names
            if name not in _BARE and cell(task, name, by) > _NEAR * cell(task, "start", "")
        ]
        yield (
            f"{task}: the best with the noise of tacit at epsilon {small[task]:g} is {winner}; no better "
            f"than the start: {'; '.join(harmed) or 'none'}."
        )


def _range(values: Sequence[float]) -> str:
    """Return the least and the largest of some numbers."""
    return f"{min(values):.1f} to {max(values):.1f}"


def order_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how much noise each order needs, and whether reshuffling gains only a marginal amount.

    Args:
        rows: Of one task, with the keys task, order, share, method, noise / clip and excess.
    """

    def noise(order: str) -> float:
        (found,) = [
            number(row["noise / clip"])
            for row in rows
            if (row["order"], row["method"]) == (order, f"{_PRIVATE}, tacit") and number(row["share"]) == 0.5
        ]
        return found

    ig, so, rr = (noise(order) for order in ("ig", "so", "rr"))
    task = rows[0]["task"]
    yield (
        f"{task}: random orders gain only marginally: {yes(ig / rr < 1.1)}, DP-ShuffleG needs noise "
        f"{ig:.4g} in a fixed order, {so:.4g} shuffled once and {rr:.4g} reshuffled, each in units of the "
        "clip."
    )
    for share in (0.25, 0.75):
        lower = [
            str(row["method"]).removesuffix(", tacit")
            for row in rows
            if row["order"] == "rr"
            and str(row["method"]).endswith(", tacit")
            and number(row["share"]) == share
            and number(row["excess"]) < _NEAR * _at_half(rows, str(row["method"]))
        ]
        said = ", ".join(lower) or "none"
        yield f"{task}: a share of {share:g} in place of 0.5 lowers the excess, noise of tacit, of: {said}."


def _at_half(rows: Sequence[Row], method: str) -> float:
    """Return the excess of a reshuffled run with half of its steps private."""
    (found,) = [
        number(row["excess"])
        for row in rows
        if (row["order"], row["method"]) == ("rr", method) and number(row["share"]) == 0.5
    ]
    return found
