"""What Girgis (2023, Section 5.5) states about bounds on shuffling, and whether it came out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["statements"]

S1, S2, SUB = "Theorem 5.3.1", "Theorem 5.3.2", "Theorem 5.4.1"
EFM, BBG, FMT, KOV = "EFM19", "BBG19, one bit", "FMT22", "FMT22 + KOV15"
SAMPLED, WBK, ZW = "FMT22 + sampling + KOV15", "Theorem 5.3.1 + WBK19", "Theorem 5.3.1 + ZW19"
LOWER, BOTH, ORDERS, BIT, TACIT = (
    "lower (5.9)", "lower, both directions", "lower (5.9), by orders", "lower, one bit", "tacit",
)  # fmt: skip

_NEAR = 1.5  # "close": within this factor
_Lines = Mapping[float, Mapping[str, float]]  # x to bound to value


def statements(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield what the thesis states, with whether it holds at the points of these rows.

    Args:
        rows: With the keys figure (panel and title, parted by a colon), x, bound, reference, and divergence
            or epsilon.
    """
    panels: dict[str, dict[float, dict[str, float]]] = {}
    for row in rows:
        name = str(row["figure"]).split(":")[0]
        panels.setdefault(name, {}).setdefault(number(row["x"]), {})[str(row["bound"])] = _value(row)
    pick = {figure: {n: p for n, p in panels.items() if n.startswith(figure)} for figure in _FIGURES}
    for figure, say in _FIGURES.items():
        if pick[figure]:
            yield from say(pick[figure])
    known = [(_value(row), number(row["reference"])) for row in rows if row["reference"] is not None]
    if known:
        off = max(abs(value / said - 1) for value, said in known)
        yield f"{len(known)} values agree with an independent computation within {off:.1%}."


def _divergences(panels: Mapping[str, _Lines]) -> Iterator[str]:
    """Say what is stated of Figure 5.2."""
    for other in (S2, EFM):
        yield _below(f"Figure 5.2: {S1} is below {other}", panels, S1, other)
    close = [
        f"{lines[x][S1] / lines[x][LOWER]:.3g} times it at {name}, {x:g}"
        for name in ("5.2a", "5.2d")
        if (lines := panels.get(name))
        for x in sorted(lines)
    ]
    yield f"Figure 5.2: {S1} against the lower bound (5.9), by order: {'; '.join(close)}."
    for name in ("5.2c", "5.2f"):
        if lines := panels.get(name):
            gaps = [lines[x][EFM] / lines[x][S1] for x in sorted(lines)]
            rises = all(a < b for a, b in itertools.pairwise(gaps))
            yield (
                f"Figure 5.2: the gap of EFM19 to {S1} rises with epsilon0 ({name}): {yes(rises)}, from "
                f"{gaps[0]:.3g} to {gaps[-1]:.3g} times."
            )
    for name, level in (("5.2a", 0.1), ("5.2d", 3.0)):
        if lines := panels.get(name):
            top = max(lines)
            near = all(level / _NEAR <= lines[top][bound] <= _NEAR * level for bound in (S1, LOWER))
            yield (
                f"Figure 5.2: bounds saturate near epsilon0 at large orders ({name}): {yes(near)}; at order "
                f"{top:g} {S1} is {lines[top][S1]:.4g} and (5.9) {lines[top][LOWER]:.4g}."
            )
    more = [p[BOTH] / p[LOWER] for lines in panels.values() for p in lines.values()]
    yield f"Not in the thesis: the other direction of the same pair raises (5.9) up to {max(more):.3g} times."
    gain = [p[S1] / p[TACIT] for lines in panels.values() for p in lines.values()]
    yield f"Not in the thesis: {S1} is {min(gain):.3g} to {max(gain):.3g} times tacit's Rényi bound."


def _single(panels: Mapping[str, _Lines]) -> Iterator[str]:
    """Say what is stated of Figure 5.3."""
    wins, count = _count(panels, S1, BBG)
    some = f"{S1} is below BBG19 (for one bit) in some regimes"
    yield f"Figure 5.3: {some}: {yes(wins > 0)}, at {wins} of {count} points."
    yield _below(f"Figure 5.3: one shuffle alone, FMT22 is below {S1}", panels, FMT, S1)
    yield _below(
        "Figure 5.3: the lower bound (5.9), turned into epsilon, is below FMT22", panels, ORDERS, FMT
    )
    ratios = [p[FMT] / p[BIT] for lines in panels.values() for p in lines.values()]
    yield f"Not in the thesis: FMT22 is {min(ratios):.3g} to {max(ratios):.3g} times what one bit leaks."


def _composed(panels: Mapping[str, _Lines]) -> Iterator[str]:
    """Say what is stated of Figure 5.4."""
    yield from _ratio("Figure 5.4: 8 times less than FMT22 + KOV15", panels, "5.4a", 1e5, S1, KOV, 8)
    if lines := panels.get("5.4d"):
        few = {x: lines[x][KOV] < lines[x][S1] for x in sorted(lines)}
        said = all(better == (x < 10) for x, better in few.items())
        better = ", ".join(f"{x:g}" for x, wins in few.items() if wins)
        yield (
            f"Figure 5.4: at epsilon0 = 2, n = 10^6, FMT22 + KOV15 is below {S1} for T < 10 only: "
            f"{yes(said)}; it is at T = {better or 'none'} of {', '.join(f'{x:g}' for x in few)}."
        )
    yield _below(f"Figure 5.4: {S1} is below FMT22 + KOV15", panels, S1, KOV)
    yield _below(f"Figure 5.4: {S1} is below EFM19", panels, S1, EFM)
    yield from _against_tacit("Figure 5.4", panels, S1)


def _poisson(panels: Mapping[str, _Lines]) -> Iterator[str]:
    """Say what is stated of Figure 5.5."""
    yield from _ratio("Figure 5.5: 11 times less than FMT22 composed", panels, "5.5a", 1e5, ZW, SAMPLED, 11)
    if "5.5a" in panels and "5.5b" in panels:
        both = sorted(panels["5.5a"].keys() & panels["5.5b"].keys())
        gaps = [[panels[name][x][SAMPLED] / panels[name][x][ZW] for x in both] for name in ("5.5a", "5.5b")]
        smaller = sum(b < a for a, b in zip(*gaps, strict=True))
        yield (
            f"Figure 5.5: the gap is smaller at n = 10^7 than at 10^6: {yes(smaller == len(both))}, at "
            f"{smaller} of {len(both)} T; at T = {both[-1]:g} {gaps[0][-1]:.3g} and {gaps[1][-1]:.3g} times."
        )


def _samples(panels: Mapping[str, _Lines]) -> Iterator[str]:
    """Say what is stated of Figure 5.6."""
    yield from _ratio("Figure 5.6: 14 times less than FMT22 composed", panels, "5.6a", 1e5, SUB, SAMPLED, 14)
    yield from _ratio("Figure 5.6: 2.5 times less than WBK19", panels, "5.6a", 1e5, SUB, WBK, 2.5)
    if lines := panels.get("5.6b"):
        order = {x: lines[x][SUB] < lines[x][SAMPLED] < lines[x][WBK] for x in sorted(lines)}
        where = ", ".join(f"{x:g}" for x, holds in order.items() if holds)
        yield (
            f"Figure 5.6: at k = 10^4, {SUB} < FMT22 composed < WBK19: {yes(all(order.values()))}; it is so "
            f"at T = {where or 'none'} of {', '.join(f'{x:g}' for x in order)}."
        )
    yield from _against_tacit("Figure 5.6", panels, SUB)


_FIGURES = {"5.2": _divergences, "5.3": _single, "5.4": _composed, "5.5": _poisson, "5.6": _samples}


def _ratio(
    text: str, panels: Mapping[str, _Lines], name: str, x: float, less: str, more: str, said: float
) -> Iterator[str]:
    """Say by what factor two bounds differ at a point; a printed factor holds within a tenth."""
    if name in panels and x in panels[name]:
        found = panels[name][x][more] / panels[name][x][less]
        yield f"{text} (T = {x:g}, {name}): {yes(abs(found / said - 1) <= 0.1)}, {found:.3g} times."


def _against_tacit(figure: str, panels: Mapping[str, _Lines], bound: str) -> Iterator[str]:
    """Say how far a bound of the thesis is above what tacit claims."""
    gain = [p[bound] / p[TACIT] for lines in panels.values() for p in lines.values()]
    least, most = min(gain), max(gain)
    yield f"Not in the thesis: {figure}: {bound} is {least:.3g} to {most:.3g} times what tacit claims."


def _below(text: str, panels: Mapping[str, _Lines], less: str, more: str) -> str:
    """Say at which points one bound is below another."""
    wins, count = _count(panels, less, more)
    lost = [
        f"{name} at {', '.join(f'{x:g}' for x in bad)}"
        for name, lines in panels.items()
        if (bad := [x for x, p in lines.items() if {less, more} <= p.keys() and not p[less] < p[more]])
    ]
    where = f"; not {'; '.join(lost)}" if lost else ""
    return f"{text}: {yes(wins == count)}, at {wins} of {count} points{where}."


def _count(panels: Mapping[str, _Lines], less: str, more: str) -> tuple[int, int]:
    """Return at how many points one bound is below another, and how many points have both."""
    both = [p for lines in panels.values() for p in lines.values() if {less, more} <= p.keys()]
    return sum(p[less] < p[more] for p in both), len(both)


def _value(row: Mapping[str, object]) -> float:
    return number(row["divergence" if "divergence" in row else "epsilon"])
