"""What Jiang (2025) states about means of made-up vectors, and whether it came out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["REFERENCE", "error_statements", "rank_statements", "time_statements"]

Rows = Sequence[Mapping[str, object]]

_IDENTICAL = {  # (n, k) to Rand-k, RkS(max), RPS(max)
    (10, 10): (10.14, 9.698095, 9.24),
    (10, 50): (1.948, 1.539127, 1.048),
    (10, 100): (0.924, 0.557307, 0.024),
    (20, 10): (5.07, 4.611305, 4.12),
    (20, 50): (0.974, 0.580864, 0.024),
    (50, 5): (4.076, 3.606366, 3.096),
    (50, 20): (1.004, 0.594850, 0.024),
    (100, 5): (2.038, 1.583624, 1.048),
    (100, 10): (1.014, 0.599489, 0.024),
}
_R = {5: (1, 2, 3), 11: (2, 4, 6, 8), 21: (4, 8, 12, 16), 51: (10, 20, 30, 40)}
_KNOWN = {  # (n, k) to RkS(opt) and RPS(opt) at these R
    (21, 4): ((12.111493, 12.035592, 11.931797, 11.809262), (12.1054, 11.9937, 11.8070, 11.5418)),
    (21, 12): ((3.985259, 3.911719, 3.811210, 3.692319), (3.9795, 3.8730, 3.6946, 3.4338)),
    (21, 24): ((1.954608, 1.884522, 1.788903, 1.675545), (1.9494, 1.8503, 1.6852, 1.4363)),
    (21, 48): ((0.940814, 0.877298, 0.791222, 0.689008), (0.9366, 0.8512, 0.7137, 0.5064)),
    (51, 4): ((4.968158, 4.891620, 4.787076, 4.663531), (4.9621, 4.8507, 4.6645, 4.3947)),
    (51, 8): ((2.459167, 2.385376, 2.284783, 2.165722), (2.4536, 2.3483, 2.1728, 1.9114)),
    (51, 12): ((1.623354, 1.552228, 1.455524, 1.340956), (1.6182, 1.5187, 1.3544, 1.1058)),
    (51, 20): ((0.955576, 0.889527, 0.800367, 0.694723), (0.9511, 0.8624, 0.7204, 0.5078)),
    (11, 10): ((9.188439, 9.116451, 9.017944, 8.901572), (9.1827, 9.0770, 8.9000, 8.6472)),
    (11, 90): ((0.917941, 0.858272, 0.776913, 0.679962), (0.9141, 0.8338, 0.7031, 0.5042)),
    (5, 50): ((3.858337, 3.770307, 3.652702), (3.8496, 3.7110, 3.4705)),
    (5, 200): ((0.793226, 0.721551, 0.624353), (0.7878, 0.6849, 0.5022)),
}

REFERENCE: Mapping[tuple[int, int, float, str], float] = {
    (n, k, n - 1.0, name): value
    for (n, k), values in _IDENTICAL.items()
    for name, value in zip(("Rand-k", "RkS(max)", "RPS(max)"), values, strict=True)
} | {
    (n, k, float(R), name): value
    for (n, k), (spatial, joint) in _KNOWN.items()
    for name, values in (("RkS(opt)", spatial), ("RPS(opt)", joint))
    for R, value in zip(_R[n], values, strict=True)
}
"""An independent computation of the exact errors, by (n, k, R, estimator); RPS(opt) to a part in 1000."""


def error_statements(figure: str, rows: Rows) -> Iterator[str]:
    """Yield what the paper states about Figure 2.2, 2.3 or A.1, with whether it holds at these rows.

    Args:
        figure: Which.
        rows: With the keys setting, k, R, estimator, MSE, measured, standard error and reference.
    """
    points: dict[tuple[str, float, float], dict[str, float]] = {}
    for row in rows:
        where = (str(row["setting"]), _number(row["k"]), _number(row["R"]))
        points.setdefault(where, {})[str(row["estimator"]).split("(")[0]] = _number(row["MSE"])
    kind = "max" if figure == "2.2" else "opt"
    holds = sum(p["RPS"] < p["RkS"] < p["Rand-k"] for p in points.values())
    yield (
        f"Figure {figure}: RPS({kind}) < RkS({kind}) < Rand-k: {_yes(holds == len(points))}, at {holds} of "
        f"{len(points)} points."
    )
    if figure != "2.2":
        flat: dict[str, set[float]] = {}
        for (panel, _, _), p in points.items():
            flat.setdefault(panel, set()).add(p["Rand-k"])
        falls = sum(_falls(points, panel) for panel in flat)
        same = _yes(all(len(values) == 1 for values in flat.values()))
        yield (
            f"Figure {figure}: Rand-k is the same for all R: {same}; the others fall in R in {falls} of "
            f"{len(flat)} panels."
        )
    off = [
        abs(_number(row["measured"]) - _number(row["MSE"])) / stderr
        for row in rows
        if (stderr := _number(row["standard error"])) > 0
    ]
    if off:
        far = sum(z > 2 for z in off)
        yield (
            f"Figure {figure}: measured errors are within {max(off):.2g} standard errors of the exact ones, "
            f"{far} of {len(off)} beyond two."
        )
    known = [_number(r["MSE"]) / _number(r["reference"]) for r in rows if r["reference"] is not None]
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
        short = [row for row in mine if _number(row["short"]) > 0]
        listed = "; ".join(
            f"d = {row['d']}, n k = {row['n k']}: {_number(row['share short']):.2%} of {row['draws']}"
            for row in short
        )
        yield (
            f"Figure A.2, {panel}: S has full rank in every draw but for n k = d = 32: "
            f"{_yes(all(row['d'] == 32 and row['n k'] == 32 for row in short))}; short in "
            f"{listed or 'none'}."
        )
    enough = sum(_as_good(row) for row in rows)
    above = [row for row in rows if _number(row["share short"]) > 2 / 3]
    yield (
        f"Appendix A.3.2: on identical vectors RPS(max) errs no more than Rand-k, E[rank S] >= d n k / "
        f"(d + n k - k): {_yes(enough == len(rows))}, at {enough} of {len(rows)} points. At {len(above)} of "
        f"them the rank is short more often than the printed 2/3, and it is so at "
        f"{sum(map(_as_good, above))} of these."
    )


def _as_good(row: Mapping[str, object]) -> bool:
    """Whether RPS(max) errs no more than Rand-k on identical vectors."""
    return _number(row["mean rank"]) >= _number(row["rank that Rand-k needs"])


def time_statements(rows: Rows) -> Iterator[str]:
    """Yield what the paper states about Figure 2.5, with whether it holds at these rows.

    Args:
        rows: With the keys setting (its stage before a comma), n, k, estimator and ms.
    """
    settings: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in rows:
        stage, dim = str(row["setting"]).split(", ")
        at = settings.setdefault((dim, f"n = {row['n']}, k = {row['k']}"), {})
        at.setdefault(stage, {})[str(row["estimator"])] = _number(row["ms"])
    slowest = [max(at["decode"], key=lambda name: at["decode"][name]) for at in settings.values()]
    count = slowest.count("RPS(avg)")
    all_slow = _yes(count == len(slowest))
    yield f"Figure 2.5: RPS(avg) decodes slowest: {all_slow}, in {count} of {len(slowest)} settings."
    ratios = [at["encode"]["RPS(avg)"] / at["encode"]["Wangni"] for at in settings.values()]
    quick = sum(ratio < 1 for ratio in ratios)
    yield (
        f"Figure 2.5: RPS(avg) encodes faster than Wangni: {_yes(quick == len(ratios))}, in {quick} of "
        f"{len(ratios)} settings; it takes {min(ratios):.2g} to {max(ratios):.2g} times as long. Times are "
        "of the machine and the moment, in processor time."
    )


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _number(value: object) -> float:
    return float(str(value))
