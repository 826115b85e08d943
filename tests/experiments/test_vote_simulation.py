"""Simulated majorities: the numbers of an independent computation, and verdicts that follow the points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tacit.experiments import Report
from tacit.experiments.vote_simulation import (
    cases,
    compute,
    designs,
    points,
    run,
    shapes,
    simulated_errors,
)
from tacit.experiments.vote_statements import Point, known, statements, table_b1
from tacit.randomness import simulated
from tacit.voting import DesignObjective, expected_majority_error, one_sided, uniform_prior
from tests.statistics import z_bound

SEEN: list[tuple[int, int]] = []
FIGURES = {  # panel to (allowances, lines)
    "3.2: K = 11, approximate": (4, 7),
    "B.4: K = 35, approximate": (4, 7),
    "B.5: K = 11, pure": (6, 7),
    "B.6: K = 101, pure": (6, 7),
    "B.7: K = 11, pure, p in [0, 1]": (2, 9),
    "B.7: K = 11, pure, p = 1/2": (2, 9),
    "B.7: K = 11, pure, p in [0, 0.1]": (2, 9),
}


@pytest.fixture(scope="module")
def report() -> Report:
    return run(True, lambda done, total: SEEN.append((done, total)))


@pytest.fixture(scope="module")
def found() -> tuple[Point, ...]:
    return points(cases(), {11: 4000, 35: 500, 101: 500}, lambda *_: None)


Pick = Callable[..., Point]


@pytest.fixture(scope="module")
def pick(found: tuple[Point, ...]) -> Pick:
    def one(figure: str, m: float, line: str, law: str = "p in [0, 1]") -> Point:
        return next(
            p
            for p in found
            if (p.case.figure, p.line, p.law) == (figure, line, law) and abs(p.case.m - m) < 1e-9
        )

    return one


def number(value: object) -> float:
    return float(str(value))


def test_quick_has_every_panel_line_and_allowance(report: Report) -> None:
    count = dict.fromkeys(FIGURES, 0)
    for row in report.rows:
        count[str(row["figure"])] += 1
    assert count == {panel: ms * lines for panel, (ms, lines) in FIGURES.items()}
    assert list(count) == list(dict.fromkeys(row["figure"] for row in report.rows))
    keys = [tuple(row[k] for k in ("figure", "design", "m")) for row in report.rows]
    assert len(set(keys)) == len(keys)
    assert all(row.keys() == report.rows[0].keys() for row in report.rows)
    assert report.markdown().count("\n") == len(report.rows) + 2


def test_progress_is_told(report: Report) -> None:
    assert report.rows
    assert [(done, 28) for done in range(29)] == SEEN


def test_every_design_keeps_its_promise(report: Report) -> None:
    for row in report.rows:
        assert 0 <= number(row["delta needed"]) <= number(row["delta"])
        if "pure" in str(row["figure"]):
            assert row["delta"] == 0.0
        if str(row["figure"]).startswith("3.2"):
            assert row["delta"] == pytest.approx(-math.expm1(number(row["m"]) * math.log1p(-1e-5)), rel=1e-12)


def test_values_and_errors_are_those_of_the_reference(report: Report) -> None:
    values = errors = zeros = 0
    for row in report.rows:
        if row["its reference"] is not None:
            # Printed to 8 digits, of 101 teachers to 10.
            tolerance = 1e-9 if "101" in str(row["figure"]) else 1.1e-8
            assert row["consensus value"] == pytest.approx(row["its reference"], abs=tolerance), row
            values += 1
        if row["reference"] is None:
            continue
        error, said, stderr = (number(row[k]) for k in ("error", "reference", "standard error"))
        if said == 0:
            assert error <= 1e-14
            zeros += 1
        elif stderr == 0:
            assert error == pytest.approx(said, rel=5e-4), row
            errors += 1
        else:
            # The standard error of the reference is about 0.1 %.
            assert abs(error - said) <= z_bound(57) * math.hypot(stderr, 1e-3 * said), row
            errors += 1
    assert (values, errors, zeros) == (128, 57 + 11, 38)


def test_some_values_written_out(pick: Pick) -> None:
    # Computed independently, and written down apart from the tables beside the code.
    for figure, m, line, value in (
        ("3.2", 1, "opt", 0.25),
        ("3.2", 3, "opt", 0.42440301),
        ("3.2", 5, "monotone opt", 0.46291901),
        ("B.5", 3, "composed const", 0.13851921),
        ("B.5", 3, "opt-E", 0.32765336),
        ("B.5", 5, "DSub", 0.45107269),
        ("B.6", 10, "opt", 0.4993939520),
        ("B.6", 30, "DSub", 0.4999824650),
        ("B.7", 3, "opt-P", 0.48252068),
        ("B.7", 5, "opt-P", 0.49616347),
    ):
        point = pick(figure, m, line)
        assert point.value == pytest.approx(value, abs=1.1e-8)
        assert point.value == pytest.approx(known(point)[0], abs=1.1e-8)
    for m, line, error in ((3, "opt-P", 6.533e-4), (3, "opt", 4.065e-3), (5, "monotone opt-P", 2.954e-5)):
        assert pick("B.7", m, line, "p in [0, 0.1]").error == pytest.approx(error, rel=5e-4)
    assert pick("3.2", 3, "opt").gamma == pytest.approx([0.9392406, 0.5423404, 1, 1, 0.9776956, 1], abs=1e-6)
    # Constants, computed independently.
    constants = {
        ("B.5", 1): (0.099813, 0.370947), ("B.5", 3): (0.297461, 0.871986), ("B.5", 5): (0.489328, 0.993896),
        ("B.5", 7): (0.672052, 1.0), ("B.6", 10): (0.462155, 0.885116), ("B.6", 20): (0.761657, 0.996826),
        ("B.6", 30): (0.905223, 0.999986), ("B.6", 40): (0.964107, 1.0),
    }  # fmt: skip
    for (figure, m), (composed, certified) in constants.items():
        assert pick(figure, m, "composed const").gamma == pytest.approx(composed, abs=6e-7)
        assert pick(figure, m, "certified const").gamma == pytest.approx(certified, abs=6e-7)


def test_table_b1(found: tuple[Point, ...], pick: Pick) -> None:
    printed = {  # m, tau, lambda, m epsilon, delta; delta of the plain majority; composed constant
        10: ("6.4521", "14.0328", "0.1003", "0.6452", "0.1001", 0.04114, 0.590313),
        13: ("7.5742", "14.0328", "0.1003", "0.7574", "0.1001", 0.02560, 0.659692),
        15: ("8.2708", "14.0328", "0.1003", "0.8271", "0.1001", 0.01825, 0.701394),
        20: ("9.8823", "14.0328", "0.1003", "0.9882", "0.1002", 0.00735, 0.793564),
    }
    table = table_b1(found)
    assert [column.sampled for column in table] == list(printed)
    for column in table:
        *digits, needs, constant = printed[column.sampled]
        assert [f"{value:.4f}" for value in column[1:6]] == digits
        assert column.printed
        assert not column._replace(tau=14.03).printed
        assert column.majority_needs == pytest.approx(needs, abs=5e-6)
        assert 5e-8 < column.subsampling_needs < 2e-7
        m = round(column.m, 4)
        # The constants there are from the printed digits.
        assert pick("B.4", m, "composed const").gamma == pytest.approx(constant, abs=5e-5)
        assert np.all(pick("B.4", m, "opt").gamma == 1)
        assert pick("B.4", m, "opt").error == 0


def test_an_even_split_hides_every_design(found: tuple[Point, ...]) -> None:
    errors = [point.error for point in found if point.law == "p = 1/2"]
    assert errors == [0.0] * 18


def test_errors_of_a_one_sided_law_are_exact(found: tuple[Point, ...]) -> None:
    low = [point for point in found if point.law == "p in [0, 0.1]"]
    for point in low:
        mean, std = expected_majority_error(
            point.noise.gamma, 11, uniform_prior(0, 0.1), draws=4000, rng=simulated(3, point.line)
        )
        assert abs(point.error - mean) <= z_bound(len(low)) * std


def test_all_designs_meet_the_same_draws(pick: Pick) -> None:
    assert pick("B.5", 3, "Sub").error == pick("B.7", 3, "Sub").error == pytest.approx(0.0954, rel=0.05)
    noises = [pick("B.5", m, line).noise for m in (1, 3) for line in ("Sub", "opt", "opt-E")]
    together = simulated_errors(noises, uniform_prior(), draws=2000, rng=simulated(4, "draws"))
    for noise, one in zip(noises, together, strict=True):
        alone = expected_majority_error(
            noise.gamma, 11, uniform_prior(), draws=2000, rng=simulated(4, "draws")
        )
        assert one == pytest.approx(alone, rel=1e-9)


def test_orderings(pick: Pick) -> None:
    for figure, allowances in (("B.5", (3, 5)), ("B.6", (10, 20, 30, 40))):
        for m in allowances:
            # What lowers the error itself wins under U[0, 1], then opt, DSub, Sub.
            lines = ("opt-E", "opt", "DSub", "Sub")
            errors = [pick(figure, m, line).error for line in lines]
            assert errors == sorted(errors)
            assert errors[0] < errors[1] < errors[2] < errors[3]
            values = [pick(figure, m, line).value for line in ("opt", "monotone opt", "DSub", "Sub")]
            assert all(a >= b - 2e-9 for a, b in itertools.pairwise(values))
    assert pick("B.5", 1, "opt-E").error < pick("B.5", 1, "opt").error
    assert pick("B.5", 1, "certified const").error < pick("B.5", 1, "opt").error


def test_opt_e_is_the_tabled_design() -> None:
    case = next(c for c in cases() if c.figure == "B.5" and c.m == 3)
    c = (0.03834, 0.07712, 0.05730, 0.02307, 0.00505, 0.00048)  # computed independently
    gamma = designs(case, DesignObjective(c, "tabled"))["opt-E"].gamma
    assert gamma == pytest.approx((1, 1, 1, 0.5122767, 0.2272584, 0.2766570), abs=1e-6)


VERDICTS = {
    "Fig. 3.2, m = 1: opt overlaps Sub": True,
    "Fig. 3.2, m > 1: opt is the highest gamma at every count": False,
    "Fig. 3.2, m > 1: opt errs less than Sub and composed const": True,
    "Table B.1 comes out in all printed digits": True,
    "Not in the thesis: opt is 1, the plain majority, in all of Fig. B.4": True,
    "Fig. B.5, m = 7, 9: DSub and opt overlap": True,
    "Fig. B.5, m = 11: opt, Sub, DSub and composed const overlap": True,
    "Fig. B.5, m >= 7: the errors of opt and DSub are 0": True,
    "Fig. B.7, p in [0, 1]: opt errs less than opt-P, Sub, composed const": True,
    "Fig. B.7, p = 1/2: opt errs less than opt-P, Sub, composed const": False,
    "Fig. B.7, p in [0, 0.1]: opt-P errs less than opt, Sub, composed const": True,
    "Fig. B.7, p in [0, 1]: opt-P errs less than Sub, composed const": True,
    "Fig. B.7, p in [0, 0.1]: opt errs less than Sub, composed const": True,
    "Not in the thesis: Fig. 3.2, wherever opt errs: opt-E errs less than opt": True,
    "Not in the thesis: Fig. B.5, wherever opt errs: opt-E errs less than opt": True,
    "Not in the thesis: Fig. B.6, wherever opt errs: opt-E errs less than opt": True,
    "Not in the thesis: Fig. B.6, wherever opt errs: opt errs less than DSub": True,
    "Not in the thesis: Fig. B.5, wherever opt errs: certified const errs less than opt": False,
    "Not in the thesis: Fig. B.7, p in [0, 0.1]: opt-E errs less than Sub": False,
}


def told(found: tuple[Point, ...]) -> dict[str, bool]:
    """Return each verdict by its statement."""
    lines = list(statements(found))
    refused = dict.fromkeys((line.partition(": no: ")[0] for line in lines if ": no: " in line), False)
    return refused | {line.removesuffix(": yes."): True for line in lines if line.endswith(": yes.")}


def test_each_statement_is_said_to_hold_or_not(found: tuple[Point, ...], report: Report) -> None:
    said = told(found)
    assert {text: said[text] for text in VERDICTS} == VERDICTS
    notes = " ".join(report.notes)
    assert all(f"{text}: {'yes.' if holds else 'no: '}" in notes for text, holds in VERDICTS.items())
    assert "below Sub at m = 3, l = 10; below Sub at m = 5, l = 9." in notes
    assert "least error: monotone opt-P, opt-P at m = 3; DSub at m = 5." in notes
    assert "p = 1/2: least error: all at m = 3, 5." in notes  # none errs at all


@pytest.mark.parametrize(
    ("figure", "m", "line", "ending"),
    [
        ("3.2", 1, "Sub", "m = 1: opt overlaps Sub"),
        ("3.2", 5, "opt", "m > 1: opt errs less than Sub and composed const"),
        ("B.4", 6.4521, "opt", "opt is 1, the plain majority, in all of Fig. B.4"),
        ("B.5", 9, "DSub", "m = 7, 9: DSub and opt overlap"),
        ("B.5", 11, "Sub", "m = 11: opt, Sub, DSub and composed const overlap"),
        ("B.5", 7, "opt", "m >= 7: the errors of opt and DSub are 0"),
        ("B.7", 3, "opt", "p in [0, 1]: opt errs less than opt-P, Sub, composed const"),
        ("B.7", 3, "opt-P", "p in [0, 0.1]: opt-P errs less than opt, Sub, composed const"),
    ],
)
def test_a_spoilt_point_turns_its_verdict(
    found: tuple[Point, ...], pick: Pick, figure: str, m: float, line: str, ending: str
) -> None:
    (text,) = (t for t in VERDICTS if t.endswith(ending))
    right = pick(figure, m, line, "p in [0, 0.1]" if "p in [0, 0.1]" in text else "p in [0, 1]")
    spoilt = replace(right, noise=pick(figure, m, "composed const").noise, error=0.4)
    if (figure, m) == ("B.5", 11):  # composition allows everything there
        spoilt = replace(right, noise=pick("B.5", 9, "Sub").noise)
    tampered = tuple(spoilt if point is right else point for point in found)
    assert told(found)[text]
    assert not told(tampered)[text]


def test_an_optimum_that_is_highest_is_said_to_be(found: tuple[Point, ...]) -> None:
    text = "Fig. 3.2, m > 1: opt is the highest gamma at every count"
    assert told(tuple(p for p in found if p.case.figure == "3.2" and p.case.m in (1, 7)))[text]


def test_a_wrong_table_is_said_to_be(found: tuple[Point, ...]) -> None:
    wrong = tuple(
        replace(p, case=replace(p.case, votes_epsilon=1.4)) if p.line == "Sub" else p for p in found
    )
    assert not told(wrong)["Table B.1 comes out in all printed digits"]


def test_shapes_are_the_upper_panels(found: tuple[Point, ...]) -> None:
    rows = shapes(found)
    assert len(rows) == 12 * (4 * 7 + 6 * 7 + 2 * 9) + 36 * 4 * 7 + 102 * 6 * 7
    mine = {
        number(row["l"]): number(row["gamma"])
        for row in rows
        if (row["figure"], row["design"]) == ("3.2: K = 11, approximate, m = 3", "opt")
    }
    assert mine == {ones: mine[11 - ones] for ones in range(12)}
    assert mine[7] == pytest.approx(0.5423404, abs=1e-6)


def test_some_cases_can_be_computed_alone() -> None:
    asked = [case for case in cases() if case.figure == "B.4"][:1]
    told_of: list[tuple[int, int]] = []
    small = compute(asked, {35: 100}, lambda *pair: told_of.append(pair))
    assert {row["figure"] for row in small.rows} == {"B.4: K = 35, approximate"}
    assert told_of[-1] == (3, 3)
    assert one_sided(35).value(np.ones(18)) == pytest.approx(number(small.rows[-1]["consensus value"]))
