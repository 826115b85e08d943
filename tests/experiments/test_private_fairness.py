"""Private fair models: a run in small on made-up data, and verdicts that follow the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.data import Preset
from tacit.experiments import EXPERIMENTS, Report, private_fairness
from tacit.experiments.private_fairness import EXPERIMENTS_OF, compute
from tacit.experiments.private_fairness_statements import statements
from tacit.experiments.reference import reference


def made_up(name: str, *, rng: np.random.Generator) -> Preset:
    n = 800
    s = rng.integers(0, 2, n)
    X = np.column_stack([rng.standard_normal(n) + s, rng.integers(0, 2, n)])
    y = (X[:, 0] + 0.5 * rng.standard_normal(n) > 0.5).astype(np.int64)
    groups = pd.DataFrame({"gender": np.where(s == 1, "m", "f")})
    half = slice(0, n // 2), slice(n // 2, n)
    return Preset(
        name=name,
        X_train=X[half[0]],
        y_train=y[half[0]],
        sensitive_train=groups[half[0]],
        X_test=X[half[1]],
        y_test=y[half[1]],
        sensitive_test=groups[half[1]],
        feature_names=("a", "b"),
        sensitive_names=("gender",),
        classes=("no", "yes"),
    )


@pytest.mark.parametrize("name", ["dp-fermi-parkinsons", "dp-fermi-record", "dp-fermi-adult"])
def test_a_small_run_shows_every_line_at_every_place(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(private_fairness, "load_preset", made_up)
    setting = EXPERIMENTS_OF[name]
    epsilons = (1.0, 9.0) if name == "dp-fermi-record" else (1.0,)
    small = replace(setting, epsilons=epsilons, weights=(5.0,), multipliers=setting.multipliers[:1])
    seen: list[tuple[int, int]] = []
    report: Report = compute(
        name, small, 1 + (name == "dp-fermi-record"), lambda done, of: seen.append((done, of)), splits=2
    )
    lines = {"weight 0, without privacy", "weight 5, without privacy", "weight 5"}
    odds: set[str] = set()
    if name == "dp-fermi-parkinsons":
        lines |= {"weight 5, settings of the reference"}
    if name == "dp-fermi-adult":
        lines |= {"PF-LD, multipliers to 0.5"}
        odds = {"weight 50", "PF-LD, multipliers to 1", "post-processed, slack 0"}
    assert {(row["measure"], row["line"], row["epsilon"]) for row in report.rows} == {
        (measure + panel, line, epsilon)
        for measure in ("error", "gap")
        for panel, drawn in (("", lines), (", equalized-odds", odds))
        for line in drawn
        for epsilon in epsilons
    }
    assert seen[-1][0] == seen[-1][1]
    assert all(0 <= float(str(row["value"])) <= 1 for row in report.rows)
    said = " ".join(report.notes)
    assert ("On 2 ways to draw the halves" in said) is setting.same_halves
    assert ("Equalized odds at epsilon 1, post-processed, slack 0" in said) is bool(odds)
    if name != "dp-fermi-record":
        return
    quick = private_fairness.run(name, True, lambda *_: None)
    assert {row["epsilon"] for row in quick.rows} == {setting.epsilons[0], setting.epsilons[-1]}
    assert "ways to draw" not in " ".join(quick.notes)


def test_every_place_of_a_reference_is_computed() -> None:
    for name in EXPERIMENTS_OF.keys() & EXPERIMENTS.keys():
        setting = EXPERIMENTS_OF[name]
        private = {f"weight {weight:g}" for weight in setting.weights}
        lines = private | {f"{line}, without privacy" for line in private} | {"weight 0, without privacy"}
        for measure, line, epsilon in reference(name):
            assert measure in ("error", "gap")
            assert line in lines
            assert epsilon in setting.epsilons


def row(measure: str, line: str, value: float, expected: float | None = None) -> dict[str, Any]:
    return {"measure": measure, "line": line, "epsilon": 1.0, "value": value, "reference": expected}


def test_verdicts_turn_with_the_rows() -> None:
    def said(error: float, gap: float) -> str:
        rows = [
            row("error", "weight 1", error, 0.17),
            row("error", "weight 1, without privacy", 0.17),
            row("error", "weight 2", 0.18),
            row("gap", "weight 1", gap, 0.08),
            row("gap", "weight 2", 0.05),
        ]
        return " ".join(statements(rows))

    good, bad = said(0.171, 0.081), said(0.19, 0.04)
    assert "error within 0.005 of the reference: 1 of 1 places." in good
    assert "error within 0.005 of the reference: 0 of 1 places. Not: weight 1, epsilon 1: 0.1900" in bad
    assert "costs +0.0010; almost free: yes" in good
    assert "costs +0.0200; almost free: no" in bad
    assert "0.0810, 0.0500; yes" in good
    assert "0.0400, 0.0500; no" in bad
    assert "The least gap at epsilon 1 is 0.0400, of weight 1, at an error of 0.1900." in bad


def test_other_methods_are_held_against_the_line_between_weights() -> None:
    rows = [row(*each) for each in (
        ("error", "weight 1", 0.1), ("gap", "weight 1", 0.2), ("error", "weight 2", 0.2),
        ("gap", "weight 2", 0.1), ("error", "PF-LD, a", 0.15), ("gap", "PF-LD, a", 0.3),
        ("error", "PF-LD, b", 0.3), ("gap", "PF-LD, b", 0.1),
        ("error", "weight 1, settings of the reference", 0.2, 0.21),
        ("gap", "weight 1, settings of the reference", 0.3, 0.305),
        ("error, equalized-odds", "PF-LD, c", 0.2), ("gap, equalized-odds", "PF-LD, c", 0.01),
    )]  # fmt: skip
    said = " ".join(statements(rows))
    assert "is 0.50 times that of PF-LD (median of 1 places, from 0.50 to 0.50); 1 more places lie" in said
    assert "gap within 0.01 of the reference, with its own settings: 1 of 1 places." in said
    assert "error within 0.005 of the reference, with its own settings: 0 of 1 places." in said
    assert "Equalized odds at epsilon 1, PF-LD, c: a gap of 0.0100 at an error of 0.2000." in said
