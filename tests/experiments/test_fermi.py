"""Experiments on fair learning: runs in small beside the reference, and verdicts that follow the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tacit.experiments import (
    fermi_adult,
    fermi_batch,
    fermi_communities,
    fermi_corrupted,
    fermi_places,
    fermi_small,
    fermi_tasks,
)
from tacit.experiments.fermi_color_mnist import Task, compute, statements
from tacit.experiments.fermi_places import row
from tacit.experiments.fermi_statements import at_violation, cheapest, dominance, near
from tacit.experiments.fermi_tasks import Split
from tacit.experiments.reference import reference
from tests.data.test_datasets import needs

ROWS = dict[str, object]


def quiet(_done: int, _total: int) -> None:
    """Say nothing."""


@pytest.fixture(autouse=True)
def no_fairlearn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave its baselines out, which are tested elsewhere."""
    monkeypatch.setattr(fermi_tasks, "FAIRLEARN", False)


def test_adult_is_as_the_reference() -> None:
    needs("adult")
    weights: dict[str, tuple[float, ...]] = {"FERMI": (0.0, 3.0)}
    report = fermi_adult.compute(("demographic-parity",), (), quiet, weights)
    assert any(": 8 of 8 numbers." in note for note in report.notes)
    assert [made["line"] for made in report.rows] == ["FERMI", "FERMI", *["naive"] * 4]
    assert any("fairlearn is not installed" in note for note in report.notes)
    assert any("at most the error of naive at its violations: yes" in note for note in report.notes)
    wanted = {at for panel, line, at in reference("fermi-adult") if panel == "demographic-parity: error"}
    assert wanted == set(fermi_adult.WEIGHTS["FERMI"])


@pytest.mark.parametrize("damage", [fermi_corrupted.MISSING, fermi_corrupted.NOISY])
def test_damage_is_done_to_training_records_alone(damage: fermi_corrupted.Damage) -> None:
    needs("adult")
    split = Split.load("adult-ch5")
    spoilt = damage.done(split, 0)
    unknown = sum(name is None for name in spoilt.s)
    assert unknown == (round(0.9 * len(split.y)) if damage.hidden else 0)
    assert damage.hidden or 0 < sum(spoilt.s != split.s) <= 0.1 * len(split.y)
    assert spoilt.s_new is split.s_new


def test_baselines_are_measured_on_every_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fermi_places, "exponentiated", lambda split, **how: {"error": split, **how})
    assert not list(fermi_places.fairlearn_places("a", [], "demographic-parity", (0.1,)))
    assert "not installed" in fermi_places.fairlearn_notes()[0]
    monkeypatch.setattr(fermi_tasks, "FAIRLEARN", True)
    splits: Any = [0.25, 0.75]
    bound, optimiser = fermi_places.fairlearn_places("a", splits, "demographic-parity", (0.1,))
    assert fermi_places.fairlearn_notes() == ()
    assert (bound.line, bound.weight, optimiser.line) == (
        "exponentiated gradient",
        0.1,
        "threshold optimiser",
    )
    assert bound.measure() == [
        {"error": one, "fairness": "demographic-parity", "bound": 0.1} for one in splits
    ]


def test_damage_is_judged_by_what_is_lost() -> None:
    def rows(error: float) -> list[ROWS]:
        return [
            *(made("p", "everything known", w, e, v) for w, e, v in ((0.0, 0.1, 0.2), (1.0, 0.12, 0.0))),
            *(made("p", "naive", w, e, v) for w, e, v in ((0.0, 0.1, 0.2), (1.0, 0.2, 0.0))),
            made("p", "FERMI", 1.0, error, 0.1),
            made("p", "plug-in", 1.0, 0.1, 0.3),
        ]

    good, bad = (list(fermi_corrupted.statements(rows(error))) for error in (0.112, 0.16))
    assert good[1].endswith("known (within 0.005: yes); it beats the naive mixture: yes, by 0.0380 or more.")
    assert bad[1].endswith("known (within 0.005: no); it beats the naive mixture: no, by -0.0100 or more.")
    assert good[2] == "plug-in: not fairer than plain regression at any weight."


def test_small_data_is_as_the_reference() -> None:
    needs("compas")
    needs("german")
    small = replace(fermi_small.COMPAS, weights=(0.0, 5.0), panels={"race": slice(0, 1)})
    report = fermi_small.compute(small, 1, quiet)
    assert any(": 6 of 6 numbers." in note for note in report.notes)
    assert any("race: the mean violation falls with every weight: yes" in note for note in report.notes)
    folds = fermi_small.GERMAN.splits(slice(1, 2), 2)
    assert len(folds) == 10
    assert sum(len(one.y_new) for one in folds[:5]) == 1000


def test_communities_are_as_the_reference() -> None:
    needs("communities")
    report = fermi_communities.compute(("demographic-parity",), ("FERMI",), (1,), (0.0, 5.0), 1, quiet)
    assert any(": 6 of 6 numbers." in note for note in report.notes)
    lines = {made["line"] for made in report.more["fixed-violation"].rows}
    assert lines == {"FERMI", "FERMI, chapter", "Renyi, chapter", "Cho, chapter"}


def test_colour_is_read_unless_it_is_penalised() -> None:
    needs("mnist")
    asked = [
        Task("colour is the label", "softmax regression", w, "softmax regression", w, 64, 2)
        for w in (0.0, 7.5)
    ]
    report = compute(asked, quiet, records=1500)
    assert len(report.rows) == 2
    assert "it raises that of training: yes" in report.notes[-1]


def made(panel: str, line: str, weight: float, error: float, violation: float, **more: Any) -> ROWS:
    return {"panel": panel, "line": line, "weight": weight, "error": error, "violation": violation, **more}


def test_verdicts_turn_with_the_rows() -> None:
    ours = [made("a", "FERMI", 0.0, 0.1, 0.2), made("a", "FERMI", 1.0, 0.2, 0.0)]
    assert at_violation(ours, 0.1) == pytest.approx(0.15)  # a draw between both
    assert at_violation(ours, 0.3) == pytest.approx(0.1)
    assert "half of it costs 0.0500" in next(cheapest(ours, "FERMI"))
    for error, verdict in (
        (0.16, "violations: yes; within 0.002 yes"),
        (0.14, "violations: no; within 0.002 no"),
    ):
        assert verdict in next(dominance([*ours, made("a", "other", 1.0, error, 0.1)], "FERMI"))
    found = {"reference error": 0.104, "reference violation": 0.211}
    assert near([ours[0] | found]).endswith(
        ": 1 of 2 numbers. Not: a, FERMI, 0: violation 0.2000 for 0.2110."
    )


def test_a_row_stands_beside_its_reference() -> None:
    said = row("fermi-batch", "batches of 1", "FERMI", 1, {"error": 0.154967, "violation": 1e-17}, 0.001)
    assert said["error"] == 0.155
    assert said["reference error"] == 0.155
    assert said["violation"] == 0.0
    assert said["reference violation"] == 0.0901


def test_batches_are_judged_by_the_largest_ones() -> None:
    def rows(single: float) -> list[ROWS]:
        return [
            made(f"batches of {size}", line, 1.0 if line != "naive" else share, error, gap)
            for size in (1, 512)
            for line, share, error, gap in (
                ("naive", 0.0, 0.15, 0.2),
                ("naive", 1.0, 0.25, 0.0),
                ("FERMI", 1.0, 0.16, single if size == 1 else 0.09),
                ("plug-in", 1.0, 0.16, 0.09),
            )
        ]

    good, bad = list(fermi_batch.statements(rows(0.1))), list(fermi_batch.statements(rows(0.3)))
    assert "violation of batches of 512: yes, 0.0000 and 0.0100." in good[1]
    assert "violation of batches of 512: no, 0.0000 and 0.2100." in bad[1]
    assert "batches of 1: FERMI beats the naive mixture: yes, by 0.0400 of error" in good[3]
    assert "batches of 1: FERMI beats the naive mixture: no, it is not fairer" in bad[3]
    assert fermi_batch.SCHEDULES.keys() >= {
        int(panel.split(":")[0].split()[-1]) for panel, _, _ in reference("fermi-batch")
    }


def test_verdicts_on_colours_turn_with_the_rows() -> None:
    def rows(error: float) -> list[ROWS]:
        return [
            made("colour is the label", "MLP", 0.0, 0.6, 0.7) | {"train error": 0.01},
            made("colour is the label", "MLP", 7.5, error, 0.1) | {"train error": 0.1},
        ]

    assert "white digits: yes" in list(statements(rows(0.3)))[1]
    assert "white digits: no" in list(statements(rows(0.7)))[1]
