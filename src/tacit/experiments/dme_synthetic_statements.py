"""What Jiang (2025) states about means of made-up vectors, and whether it came out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["error_statements", "rank_statements", "time_statements"]

Rows = Sequence[Mapping[str, object]]


def error_statements(figure: str, rows: Rows) -> Iterator[str]:
    """Yield what the paper states about Figure 2.2, 2.3 or A.1, with whether it holds at these rows.

    Args:
        figure: Which.
        rows: With the keys setting, k, R, estimator, MSE, measured, standard error and reference.
    """
    points: dict[tuple[str, float, float], dict[str, float]] = {}
    for row in rows:
        where = (str(row["setting"]), number(row["k"]), number(row["R"]))
        points.setdefault(where, {})[str(row["estimator"]).split("(")[0]] = number(row["MSE"])
    kind = "max" if figure == "2.2" else "opt"
    holds = sum(p["RPS"] < p["RkS"] < p["Rand-k"] for p in points.values())
    yield (
        f"Figure {figure}: RPS({kind}) < RkS({kind}) < Rand-k: {yes(holds == len(points))}, at {holds} of "
        f"{len(points)} points."
    )
    if figure != "2.2":
        flat: dict[str, set[float]] = {}
        for (panel, _, _), p in points.items():
            flat.setdefault(panel, set()).add(p["Rand-k"])
        falls = sum(_falls(points, panel) for panel in flat)
        same = yes(all(len(values) == 1 for values in flat.values()))
        yield (
            f"Figure {figure}: Rand-k is the same for all R: {same}; the others fall in R in {falls} of "
            f"{len(flat)} panels."
        )
    off = [
        abs(number(row["measured"]) - number(row["MSE"])) / stderr
        for row in rows
        if (stderr := number(row["standard error"])) > 0
    ]
    if off:
        far = sum(z > 2 for z in off)
        yield (
            f"Figure {figure}: measured errors are within {max(off):.2g} standard errors of the exact ones, "
            f"{far} of {len(off)} beyond two."
        )
    known = [number(r["MSE"]) / number(r["reference"]) for r in rows if r["reference"] is not None]
    if known:
        most = max(abs(ratio - 1) for ratio in known)
        yield (
            f"Figure {figure}: {len(known)} exact errors agree with an independent computation within "
            f"{most:.1e} of their size."
        )


def _falls(points: Mapping[tuple[str, float, float], Mapping[str, float]], panel: str) -> bool:
    """Whether RkS and RPS err less the larger R is."""
    mine = [p for (name, _, _), p in sorted(points.items(), key=lambda item: item[0][2]) if name == panel]
    return all(b[name] < a[name] for a, b in itertools.pairwise(mine) for name in ("RkS", "RPS"))


def rank_statements(rows: Rows) -> Iterator[str]:
    """Yield what the paper states about Figure A.2, with whether it holds at these rows.

    Args:
        rows: With the keys setting, d, n k, draws, short, share short, mean rank and rank that Rand-k needs.
    """
    for panel in dict.fromkeys(str(row["setting"]) for row in rows):
        mine = [row for row in rows if row["setting"] == panel]
        short = [row for row in mine if number(row["short"]) > 0]
        listed = "; ".join(
            f"d = {row['d']}, n k = {row['n k']}: {number(row['share short']):.2%} of {row['draws']}"
            for row in short
        )
        yield (
            f"Figure A.2, {panel}: S has full rank in every draw but for n k = d = 32: "
            f"{yes(all(row['d'] == 32 and row['n k'] == 32 for row in short))}; short in "
            f"{listed or 'none'}."
        )
    enough = sum(_as_good(row) for row in rows)
    above = [row for row in rows if number(row["share short"]) > 2 / 3]
    yield (
        f"Appendix A.3.2: on identical vectors RPS(max) errs no more than Rand-k, E[rank S] >= d n k / "
        f"(d + n k - k): {yes(enough == len(rows))}, at {enough} of {len(rows)} points. At {len(above)} of "
        f"them the rank is short more often than the printed 2/3, and it is so at "
        f"{sum(map(_as_good, above))} of these."
    )


def _as_good(row: Mapping[str, object]) -> bool:
    """Whether RPS(max) errs no more than Rand-k on identical vectors."""
    return number(row["mean rank"]) >= number(row["rank that Rand-k needs"])


def time_statements(rows: Rows) -> Iterator[str]:
    """Yield what the paper states about Figure 2.5, with whether it holds at these rows.

    Args:
        rows: With the keys setting (its stage before a comma), n, k, estimator and ms.
    """
    settings: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in rows:
        stage, dim = str(row["setting"]).split(", ")
        at = settings.setdefault((dim, f"n = {row['n']}, k = {row['k']}"), {})
        at.setdefault(stage, {})[str(row["estimator"])] = number(row["ms"])
    slowest = [max(at["decode"], key=lambda name: at["decode"][name]) for at in settings.values()]
    count = slowest.count("RPS(avg)")
    all_slow = yes(count == len(slowest))
    yield f"Figure 2.5: RPS(avg) decodes slowest: {all_slow}, in {count} of {len(slowest)} settings."
    ratios = [at["encode"]["RPS(avg)"] / at["encode"]["Wangni"] for at in settings.values()]
    quick = sum(ratio < 1 for ratio in ratios)
    yield (
        f"Figure 2.5: RPS(avg) encodes faster than Wangni: {yes(quick == len(ratios))}, in {quick} of "
        f"{len(ratios)} settings; it takes {min(ratios):.2g} to {max(ratios):.2g} times as long. Times are "
        "of the machine and the moment, in processor time."
    )
