"""Regression with public records: the claim on one cell, the tables of small runs, and verdicts by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.experiments.report import number
from tacit.experiments.semi_dp_regression import (
    LOCAL,
    METHODS,
    Cell,
    Size,
    _thinned,
    report,
    table_rows,
)
from tacit.experiments.semi_dp_statements import local_statements, statements

BY_NAME = {one.name: one for one in METHODS}


def test_with_public_records_it_beats_either_alone_by_the_printed_margin() -> None:
    """Share 0.03 at epsilon 1, one draw of the table: below 0.351, where either alone errs 0.7 or more."""
    cell = Cell(Size(), 0.03, 0)
    both = BY_NAME["semi-dp"].error(cell, 1.0, {"step": 2.0, "weight": 0.9})
    alone = min(BY_NAME["private only"].error(cell, 1.0, {"step": s}) for s in (10.0, 20.0, 40.0))
    assert both < 0.351
    assert min(alone, cell.error(cell.start())) > 2 * both


def test_a_small_run_has_every_row_and_says_what_it_found() -> None:
    size = Size(dim=4, records=200, trials=2, tuning=1, thrown=10, batch=30)
    small = [_thinned(one) for one in METHODS]
    rows = table_rows(small, [(8.0, 0.5)], size, lambda _done: None)
    own = table_rows([_thinned(one) for one in LOCAL], [(16.0, 0.1)], size, lambda _done: None)
    names = ["throw-away", *BY_NAME]
    assert [row["method"] for row in rows] == names
    assert [row["method"] for row in own] == ["throw-away", *(one.name for one in LOCAL)]
    for row in (*rows, *own):
        assert 0.25 < number(row["error"]) < 5
        assert (row["exact"] is not None) == (row["method"] == "throw-away")
    digits = [row | {"error": 0.1} for row in rows if row["method"] in ("throw-away", "DP-SGD", "semi-dp")]
    found = report(rows, own, digits, size)
    assert set(found.more) == {"local", "digits"}
    assert set(statements(rows)) <= set(found.notes)


def test_the_error_is_that_of_new_records() -> None:
    cell = Cell(Size(dim=3, records=50), 0.5, 1)
    private, public, truth = cell.parts()
    assert (len(private), len(public)) == (25, 25)
    assert cell.error(truth) == 0.25
    w, rng = truth + np.array([0.3, -0.4, 0.0]), np.random.default_rng(0)
    X = rng.standard_normal((40_000, 3))
    y = X @ truth + 0.5 * rng.standard_normal(40_000)
    squares = (X @ w - y) ** 2
    assert abs(squares.mean() - cell.error(w)) < 5.5 * squares.std() / 200
    # Two draws differ, and one is itself.
    assert not np.array_equal(replace(cell, seed=2).parts()[2], truth)


def row(epsilon: float, share: float, method: str, error: float, **more: object) -> dict[str, object]:
    return {
        "epsilon": epsilon,
        "share": share,
        "method": method,
        "error": error,
        "standard error": 0.01,
        **more,
    }


def cell_of(epsilon: float, share: float, *errors: float) -> list[dict[str, object]]:
    names = ("throw-away", "private only", "DP-SGD", "PDA", "semi-dp", "semi-dp, public metric")
    found = [row(epsilon, share, name, error) for name, error in zip(names, errors, strict=True)]
    found[0] |= {"exact": errors[0] + 0.02}
    return found


def test_verdicts_follow_the_rows() -> None:
    rows = [
        *cell_of(0.1, 0.03, 2.5, 3.0, 1.0, 0.9, 1.1, 1.2),
        *cell_of(1.0, 0.03, 2.5, 1.0, 0.4, 0.5, 0.35, 0.3),
        *cell_of(1.0, 0.5, 0.27, 1.0, 0.26, 0.255, 0.257, 0.258),
    ]
    said = list(statements(rows))
    assert "Throwing private records away errs by its exact expectation: within 2.0 standard errors." in said
    assert (
        "Algorithm 11 errs least of the paper's methods, but at epsilon 0.1: held at 1 of 2 cells, not at "
        "share 0.5 at epsilon 1 (PDA)." in said
    )
    assert "At epsilon 0.1 and share 0.03, PDA errs least of them." in said
    assert "Algorithm 11 errs less than throw-away: held, at 3 of 3 cells." in said
    assert any("falls with the share, epsilon 1: held (errors 7.14 times" in one for one in said)
    assert "Earlier run, share 0.03, epsilon 1: 0.351 reproduced or beaten (0.350)." in said
    own = [
        row(16.0, 0.1, name, error)
        for name, error in (("semi-ldp", 0.4), ("LDP-SGD", 0.5), ("semi-ldp, raw", 0.6))
    ]
    assert next(local_statements(own)) == (
        "Algorithm 13 errs less than LDP-SGD and throwing away: held, at 1 of 1 cells."
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.name)
def test_tuned_values_are_those_of_the_grid(method: object) -> None:
    assert isinstance(method, type(METHODS[0]))
    assert all(set(chosen) == set(method.grid) for chosen in method.choices())
