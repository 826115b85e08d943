"""What the thesis says of its bandits, one statement after the other, against the rows of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["NEAR", "statements"]

Row = Mapping[str, object]

NEAR = 0.25
"""How far from the reference a regret may be, relatively."""
_FREE = 1.5  # "almost for free": at most this times the regret without privacy
_CLEAR = 1.5  # "clearly beats"
_MODES = ("seed", "sound")


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of each statement.

    Args:
        rows: With the keys panel, line, epsilon, regret, standard error, reference and ratio.
    """
    yield from _near(rows)
    for mode in _MODES:
        yield from _trusts(_panel(rows, f"6.2a, {mode}"), mode)
    yield from _tacit(_panel(rows, "6.2a, sound"))
    for mode in _MODES:
        yield from _core(_panel(rows, f"6.2b, {mode}"), mode)


def _panel(rows: Sequence[Row], panel: str) -> dict[str, dict[float, Row]]:
    """Return the rows of a panel by line and epsilon."""
    found: dict[str, dict[float, Row]] = {}
    for row in rows:
        if row["panel"] == panel:
            found.setdefault(str(row["line"]), {})[number(row["epsilon"])] = row
    return found


def _regret(row: Row) -> float:
    """Return the regret of a row."""
    return number(row["regret"])


def _near(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how far the run is from the reference."""
    compared = [row for row in rows if row["ratio"] is not None]
    far = [row for row in compared if abs(number(row["ratio"]) - 1) > NEAR]
    # Both the run and the reference have errors; of the reference only that of ours is known.
    places = "; ".join(
        f"{row['panel']}, {row['line']}, epsilon {number(row['epsilon']):g}: {number(row['ratio']):.2f} "
        f"± {number(row['ratio']) * number(row['standard error']) / _regret(row):.2f}"
        for row in far
    )
    yield (
        f"Within {100 * NEAR:g} % of the reference: {len(compared) - len(far)} of {len(compared)} places."
        + (f" Not: {places}." if far else "")
    )


def _trusts(lines: Mapping[str, Mapping[float, Row]], mode: str) -> Iterator[str]:
    """Yield the statements of Figure 6.2a."""
    epsilons = sorted(lines["central"])
    free = _regret(next(iter(lines["without privacy"].values())))
    last = epsilons[-1]
    shares = {name: _regret(lines[name][last]) / free for name in ("central", "shuffled", "local")}
    yield (
        f"6.2a, {mode}: all converge to the regret without privacy as epsilon grows: at {last:g} central is "
        f"{shares['central']:.2f} times, shuffled {shares['shuffled']:.2f} and local {shares['local']:.2f} "
        f"times of it; {yes(max(shares.values()) <= _FREE)}."
    )
    middle = [e for e in epsilons if e >= 1]
    for name in ("central", "shuffled"):
        worst = max(_regret(lines[name][e]) / free for e in middle)
        yield (
            f"6.2a, {mode}: {name} is almost for free from epsilon 1 on: at most {worst:.2f} times the "
            f"regret without privacy; {yes(worst <= _FREE)}."
        )
    small = [e for e in epsilons if e <= 2]
    least = min(_regret(lines["local"][e]) / _regret(lines["central"][e]) for e in small)
    yield (
        f"6.2a, {mode}: central clearly beats local up to epsilon 2: by a factor of {least:.2f} or more; "
        f"{yes(least >= _CLEAR)}."
    )
    beats = all(_regret(lines["shuffled"][e]) < _regret(lines["local"][e]) for e in small)
    apart = max(_regret(lines["shuffled"][e]) / _regret(lines["central"][e]) for e in small)
    yield f"6.2a, {mode}: shuffled beats local up to epsilon 2: {yes(beats)}."
    yield (
        f"6.2a, {mode}: shuffled is close to central: at most {apart:.2f} times its regret up to epsilon 2; "
        f"{yes(apart <= _FREE)}."
    )


def _tacit(lines: Mapping[str, Mapping[float, Row]]) -> Iterator[str]:
    """Yield what exact noise and numerical prices change."""
    for name in ("central", "shuffled", "local"):
        said = ", ".join(
            f"{_regret(row) / _regret(lines[name][e]):.2f} at {e:g}"
            for e, row in sorted(lines[f"{name}, tacit"].items())
        )
        yield f"6.2a, sound: regret of {name} with exact noise and numerical prices, as a share: {said}."


def _core(lines: Mapping[str, Mapping[float, Row]], mode: str) -> Iterator[str]:
    """Yield the statements of Figure 6.2b."""
    core, whole = lines["core set"], lines["all actions"]
    free = _regret(next(iter(lines["core set, without privacy"].values())))
    epsilons = sorted(core)
    last = epsilons[-1]
    shares = [_regret(core[e]) / free for e in (last, epsilons[0])]
    yield (
        f"6.2b, {mode}: the core set is very close to the batches without privacy: {shares[0]:.2f} times at "
        f"epsilon {last:g}, {shares[1]:.2f} times at {epsilons[0]:g}; {yes(shares[0] <= _FREE)} from where "
        "noise is small."
    )
    worse = [e for e in epsilons if _regret(whole[e]) > _regret(core[e])]
    better = [e for e in epsilons if e not in worse]
    said = f"yes at {', '.join(f'{e:g}' for e in worse)}" if worse else "nowhere"
    yield (
        f"6.2b, {mode}: playing all actions is worse than a core set: {said}"
        + (
            f"; no at {', '.join(f'{e:g}' for e in better)}, where it loses less, because it spreads over "
            "actions that are nearly best while a core set plays those at the ends"
            if better
            else ""
        )
        + "."
    )
