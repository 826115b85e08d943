"""Bounds on shuffling: values against an independent computation, and verdicts that follow the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tacit.experiments import EXPERIMENTS, Report
from tacit.experiments.reference import reference
from tacit.experiments.shuffle_rdp_curves import PANELS, compute
from tacit.experiments.shuffle_rdp_statements import statements

Row = dict[str, object]

KNOWN = {  # epsilon0 = 3, n = 10^4: order to Theorem 5.3.1, 5.3.2, (5.9) and its other direction
    2: (0.070302465, 5.85152963, 0.00181188993, 0.00181849112),
    32: (1.16931152, 48.3223092, 0.0279993771, 0.0302288222),
}
"""Computed apart from this library."""


def panel(name: str, *values: float) -> Report:
    """Return one panel, at some values."""
    one = next(p for p in PANELS if p.name == name)
    return compute([replace(one, values=values or one.values)], lambda *_: None)


def values(report: Report) -> dict[tuple[float, str], float]:
    key = report.y
    return {(float(str(row["x"])), str(row["bound"])): float(str(row[key])) for row in report.rows}


def test_divergences_are_those_of_an_independent_computation() -> None:
    found = values(panel("5.2d", 2, 32))
    for order, known in KNOWN.items():
        names = ("Theorem 5.3.1", "Theorem 5.3.2", "lower (5.9)")
        for name, value in zip(names, known, strict=False):
            assert found[order, name] == pytest.approx(value, rel=1e-8)
        assert found[order, "lower, both directions"] == pytest.approx(known[3], rel=1e-8)
        assert known[3] <= found[order, "tacit"] < known[0]


def test_composed_and_sampled_values_are_those_of_an_independent_computation() -> None:
    seen = 0
    for name in ("5.4a", "5.5a", "5.6a"):
        found = values(panel(name, 1e5))
        for (where, bound, x), value in reference("shuffle-rdp-curves").items():
            if (where, x) == (name, 1e5):
                assert found[x, bound] == pytest.approx(value, rel=0.01), (name, bound)
                seen += 1
    assert seen == 5 + 2 + 4


def test_a_bound_that_does_not_cover_a_point_is_left_out() -> None:
    rows = panel("5.3b", 0.1, 1.0).rows
    covered = {float(str(row["x"])) for row in rows if row["bound"] == "EFM19, one shuffle"}
    assert covered == {0.1}  # proven below level 1/2
    assert len(rows) == 2 * 7 - 1


def test_every_figure_is_a_table_and_names_its_axes() -> None:
    some = [replace(p, values=p.values[:1]) for p in PANELS if p.name in ("5.2a", "5.2b", "5.3a", "5.5a")]
    seen: list[tuple[int, int]] = []
    report = compute(some, lambda done, total: seen.append((done, total)))
    assert seen == [(i, 4) for i in range(5)]
    assert set(report.more) == {"5.3", "5.5"}
    assert (report.y, report.more["5.3"].y, report.axis) == ("divergence", "epsilon", "against")
    assert {row["against"] for row in report.rows} == {"order", "n"}
    for part in (report, *report.more.values()):
        assert len({tuple(row) for row in part.rows}) == 1
    assert [p.name for p in PANELS] == sorted(p.name for p in PANELS)
    assert len(PANELS) == 6 + 4 + 6 + 2 + 3
    assert EXPERIMENTS["shuffle-rdp-curves"].source == "Girgis (2023), Figures 5.2 to 5.6"


def said(points: Mapping[tuple[str, float, str], float]) -> str:
    """Return the statements about made-up values, by panel, x and bound."""
    rows: list[Row] = [
        {
            "figure": f"{name}: title",
            "x": x,
            "bound": bound,
            "divergence" if name.startswith("5.2") else "epsilon": value,
            "reference": None,
        }
        for (name, x, bound), value in points.items()
    ]
    return "\n".join(statements(rows))


def divergences(top: float, efm: tuple[float, float, float]) -> dict[tuple[str, float, str], float]:
    """Return made-up values of Figure 5.2 with this value of Theorem 5.3.1 at the largest order."""
    bounds = ("Theorem 5.3.2", "EFM19", "lower (5.9)", "lower, both directions", "tacit")
    made = {("5.2d", x, b): v for x in (2.0, 1e6) for b, v in zip(bounds, (9, 9, 2.9, 3, 3), strict=True)}
    made |= {("5.2d", 2.0, "Theorem 5.3.1"): 5.0, ("5.2d", 1e6, "Theorem 5.3.1"): top}
    for x, value in zip((1.0, 2.0, 3.0), efm, strict=True):
        made |= {("5.2c", x, b): 1.0 for b in (*bounds, "Theorem 5.3.1")} | {("5.2c", x, "EFM19"): value}
    return made


def test_verdicts_on_divergences_follow_the_values() -> None:
    text = said(divergences(3.1, (2.0, 3.0, 30.0)))
    assert "saturate near epsilon0 at large orders (5.2d): yes" in text
    assert "rises with epsilon0 (5.2c): yes, from 2 to 30 times" in text
    assert "Theorem 5.3.1 is below EFM19: yes, at 5 of 5 points." in text
    text = said(divergences(9.5, (2.0, 3.0, 1.0)))
    assert "saturate near epsilon0 at large orders (5.2d): no; at order 1e+06 Theorem 5.3.1 is 9.5" in text
    assert "rises with epsilon0 (5.2c): no" in text
    assert "is below EFM19: no, at 3 of 5 points; not 5.2d at 1e+06; 5.2c at 3." in text


def test_verdicts_on_epsilons_follow_the_values() -> None:
    thesis = {
        ("5.4a", 1e5, "Theorem 5.3.1"): 1.0,
        ("5.4a", 1e5, "FMT22 + KOV15"): 8.0,
        ("5.4a", 1e5, "EFM19"): 9.0,
        ("5.4a", 1e5, "tacit"): 0.5,
        ("5.5a", 1e5, "Theorem 5.3.1 + ZW19"): 1.0,
        ("5.5a", 1e5, "FMT22 + sampling + KOV15"): 11.0,
        ("5.5b", 1e5, "Theorem 5.3.1 + ZW19"): 1.0,
        ("5.5b", 1e5, "FMT22 + sampling + KOV15"): 5.0,
        ("5.6a", 1e5, "Theorem 5.4.1"): 1.0,
        ("5.6a", 1e5, "FMT22 + sampling + KOV15"): 14.0,
        ("5.6a", 1e5, "Theorem 5.3.1 + WBK19"): 2.5,
        ("5.6a", 1e5, "tacit"): 0.5,
    }
    text = said(thesis)
    assert ": no" not in text
    assert text.count(": yes") == 7
    other = thesis | {
        ("5.4a", 1e5, "FMT22 + KOV15"): 4.4,
        ("5.5a", 1e5, "FMT22 + sampling + KOV15"): 4.0,
        ("5.6a", 1e5, "Theorem 5.4.1"): 2.6,
    }
    text = said(other)
    assert "8 times less than FMT22 + KOV15 (T = 100000, 5.4a): no, 4.4 times." in text
    assert "the gap is smaller at n = 10^7 than at 10^6: no, at 0 of 1 T" in text
    assert "2.5 times less than WBK19 (T = 100000, 5.6a): no, 0.962 times." in text


@pytest.mark.parametrize(("few", "verdict"), [(0.5, "yes"), (2.0, "no")])
def test_few_rounds_are_compared(few: float, verdict: str) -> None:
    points = {("5.4d", x, "Theorem 5.3.1"): 1.0 for x in (1.0, 1e4)} | {
        ("5.4d", 1.0, "FMT22 + KOV15"): few,
        ("5.4d", 1e4, "FMT22 + KOV15"): 3.0,
        ("5.4d", 1.0, "tacit"): 0.1,
        ("5.4d", 1e4, "tacit"): 0.1,
    }
    assert f"below Theorem 5.3.1 for T < 10 only: {verdict}" in said(points)
