"""CLDP-SGD: prices of the printed run, a run of a few clients, and verdicts that follow the tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.experiments import EXPERIMENTS, cldp_sgd
from tacit.experiments.cldp_sgd import DIGITS, Task, accounted, compute, statements


def test_the_printed_run_costs_what_the_chapter_says() -> None:
    found = accounted(200)
    wanted = {
        "printed": 2.91, "Theorem 5.4.1": 3.0859, "the same, sharp": 2.8527, "FMT22 + KOV15": 3.1528,
        "FMT22 + DR14": 4.1310, "any report": 0.55576, "exact": 0.37890,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-2)
    assert EXPERIMENTS["cldp-sgd"].source == "Girgis (2023), Figures 4.2 and 5.7"


def test_a_small_run_has_a_row_for_every_report_and_its_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cldp_sgd, "_EPOCHS", (10,))
    monkeypatch.setattr(cldp_sgd, "PRINTED", {})
    few = Task(name="few", data="digits", clients=120, epochs=(1, 2), trials=2)
    report = compute([few], progress=lambda *_: None)
    assert len(report.rows) == 2 * 4
    assert [row["bits"] for row in report.rows[::2]] == [9, 64, 32 * 170, None]
    private = [row for row in report.rows if row["epsilon"] is not None]
    assert all(0 < float(str(row["accuracy"])) < 1 for row in report.rows)
    epsilons = [float(str(row["epsilon"])) for row in private]
    assert all(few < more for few, more in zip(epsilons[::2], epsilons[1::2], strict=True))
    assert set(report.notes) >= set(statements(report.rows, report.more["prices"].rows))


def test_images_are_small_and_no_longer_than_1() -> None:
    X, y, X_test, _ = DIGITS.records()
    assert X.shape == (1500, 17)
    assert len(X_test) == 297
    assert ((X**2).sum(axis=1) <= 1 + 1e-12).all()
    assert set(y) == set(range(10))


def test_more_clients_than_records_have_them_in_turn() -> None:
    more = replace(DIGITS, clients=3100, different=1500)
    known, shown = DIGITS.records(), more.records()
    np.testing.assert_array_equal(shown[0][:3000], np.tile(known[0], (2, 1)))
    np.testing.assert_array_equal(shown[1][3000:], known[1][:100])
    np.testing.assert_array_equal(shown[2], known[2])
