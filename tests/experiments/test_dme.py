"""The experiments on means, in small: values against independent ones, orderings, and what a table holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tacit.experiments import EXPERIMENTS, Report
from tacit.experiments.dme_kmeans import setting as kmeans_setting
from tacit.experiments.dme_linear_regression import low_rank
from tacit.experiments.dme_linear_regression import setting as regression_setting
from tacit.experiments.dme_power_iteration import setting as power_setting
from tacit.experiments.dme_tasks import ESTIMATORS, compute, digits
from tacit.experiments.private_dme import Case, local_cases, scalar_cases, vector_baselines, vector_cases
from tacit.experiments.private_dme import compute as compute_private
from tacit.experiments.reference import reference

Rows = dict[tuple[str, str], dict[str, object]]


def number(row: dict[str, object], key: str) -> float:
    return float(str(row[key]))


def by_estimator(report: Report) -> Rows:
    return {(str(row["setting"]), str(row["estimator"])): row for row in report.rows}


@pytest.fixture(scope="module")
def power() -> Report:
    small = digits()
    settings = [
        power_setting(
            "digits", small.X, np.asarray(small.groups), parties=10, alike=alike, ks=(6,), runs=2, rounds=20
        )
        for alike in (True, False)
    ]
    seen: list[tuple[int, int]] = []
    report = compute(
        settings,
        progress=lambda done, total: seen.append((done, total)),
        notes=["a note"],
        reference=reference("dme-power-iteration"),
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]
    return report


def test_power_iteration_agrees_with_the_formulas_and_the_reference(power: Report) -> None:
    rows = by_estimator(power)
    assert len(rows) == 2 * len(ESTIMATORS)
    for (_, name), row in rows.items():
        by_formula = name in ("Rand-k", "RkS(avg)", "RPS(avg)", "RPS(opt)")
        near = 0.2 if by_formula else 0.3  # two runs of 20 rounds against ten of 30
        assert number(row, "error") == pytest.approx(number(row, "reference"), rel=near)
        if by_formula:
            assert number(row, "error") == pytest.approx(number(row, "predicted"), rel=0.2)
        else:
            assert row["predicted"] is None  # these depend on more than lengths and correlation
        assert number(row, "loss") > number(row, "exact loss")


def test_correlated_parties_gain_by_spatial_decoding(power: Report) -> None:
    rows = by_estimator(power)
    for split in ("iid", "by label"):
        error = {name: number(rows[f"digits, {split}, n = 10", name], "error") for name in ESTIMATORS}
        assert error["RPS(avg)"] < error["RkS(avg)"] < error["Rand-k"]
    alike, apart = (rows[f"digits, {split}, n = 10", "RPS(avg)"] for split in ("iid", "by label"))
    assert number(alike, "R") > number(apart, "R") + 2
    assert number(alike, "error") < number(apart, "error")
    assert any("in 2 of 2 settings" in note for note in power.notes)
    assert "a note" in power.notes


def test_kmeans_and_regression_fill_their_tables() -> None:
    small = digits()
    X, y = small.X[:300], np.asarray(small.groups)[:300]
    made = [
        kmeans_setting("few", X, y, parties=4, alike=True, ks=(6,), runs=2, delta=True, rounds=4),
        kmeans_setting("few", X, y, parties=4, alike=False, ks=(6,), runs=2, rounds=4),
    ]
    clustered = compute(made, progress=lambda done, total: None, notes=())
    assert {row["estimator"] for row in clustered.rows} == set(ESTIMATORS) - {"RPS(opt)"}
    regression = compute(
        [
            regression_setting(200, 32, parties=5, alike=alike, ks=(4,), runs=2, rounds=6)
            for alike in (True, False)
        ],
        progress=lambda done, total: None,
        notes=(),
    )
    for report in (clustered, regression):
        assert len({tuple(row) for row in report.rows}) == 1
        assert all(number(row, "error") > 0 and number(row, "ms per round") > 0 for row in report.rows)
        assert report.markdown().count("\n") == len(report.rows) + 2
    rows = by_estimator(regression)
    for split in ("iid", "sorted"):
        row = rows[f"d = 32, {split}, n = 5", "Rand-k"]
        assert number(row, "predicted") == pytest.approx((32 / 4 - 1) / 5)


def test_made_up_rows_have_few_factors() -> None:
    X, y = low_rank(400, 64)
    values = np.linalg.svd(X, compute_uv=False)
    assert values[15] > 5 * values[16]
    assert abs(y.mean()) < 1e-12
    assert np.array_equal(X, low_rank(400, 64)[0])


def test_local_figure_is_that_of_the_reference() -> None:
    cases = [*local_cases((0.5, 1.0, 5.0))]
    assert len(cases) == 15
    for case in cases:
        assert case.reference is not None
        assert case.exact == pytest.approx(case.reference, rel=5e-5)
    (laplace, one_bit, *_) = [case for case in cases if case.epsilon == 1.0]
    assert one_bit.exact is not None
    assert laplace.exact is not None
    assert one_bit.exact < laplace.exact
    for case in (laplace, one_bit, cases[3]):
        mean, stderr = case.measured(50)
        # The errors of 1000 rounds: within 6 standard errors, and one bit at the middle errs by one size.
        assert abs(mean - (case.exact or 0)) <= 6 * stderr + 1e-12


def test_shuffled_numbers_are_those_of_the_reference() -> None:
    cases = list(scalar_cases((1.0,), ((4, "rdp"),)))
    for case in cases:
        if case.reference is not None:
            assert case.exact == pytest.approx(case.reference, rel=0.01)
    exact = {case.name: case.exact or 0.0 for case in cases}
    assert exact["Laplace, bound of its own"] < exact["Laplace, any-message bound"]


def test_shuffled_vectors_are_near_the_reference_and_not_above_it() -> None:
    base = {case.name: case for case in vector_baselines((1.0,))}
    assert base["PrivUnit, any-message bound"].exact == pytest.approx(0.2330, rel=0.01)
    cases = {case.name: case for case in vector_cases((1.0,), ((200, 1),))}
    for case in cases.values():
        if case.reference is not None:
            assert case.exact is not None
            # Our composition over 200 shufflers is tighter, and so is the decoder.
            assert 0.85 < case.exact / case.reference < 1.01
    claim = base["PrivUnit, any-message bound"].exact or 0.0
    assert (cases["s=200, m=1, kappa=3"].exact or 0) < claim < (cases["s=200, m=1, certified"].exact or 0)
    case = cases["s=200, m=1, kappa=3"]
    mean, stderr = case.measured(12)
    assert abs(mean - (case.exact or 0)) < 8 * stderr  # few rounds: a wide, but finite bound


def test_private_tables_say_where_bit_planes_win() -> None:
    def make() -> Iterator[Case]:
        return local_cases((1.0, 5.0))

    report = compute_private([make], trials=2, progress=lambda done, total: None)
    assert [row["line"] for row in report.rows].count("Laplace") == 2
    assert "a: local, n = 1: below Laplace, by exact MSE: 1 bit at 1." in report.notes
    assert report.log_y


def test_the_experiments_are_listed() -> None:
    names = {"dme-power-iteration", "dme-kmeans", "dme-linear-regression", "private-dme"}
    assert names <= set(EXPERIMENTS)
    assert all(EXPERIMENTS[name].source.count("spec") == 0 for name in names)
