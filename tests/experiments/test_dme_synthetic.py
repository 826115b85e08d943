"""Means of made-up vectors: exact errors against measured and independent ones, and verdicts both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tacit.compression import correlation_ratio
from tacit.experiments import EXPERIMENTS
from tacit.experiments.dme_synthetic import Case, Timed, errors, ranks, seconds, vectors
from tacit.experiments.dme_synthetic_statements import error_statements, rank_statements, time_statements
from tacit.experiments.reference import reference

Row = dict[str, object]


def number(row: Mapping[str, object], key: str) -> float:
    return float(str(row[key]))


def test_vectors_have_the_correlation_that_is_asked_for() -> None:
    for n, R in ((21, 16.0), (10, 9.0), (5, 1.0)):
        X = vectors(n, R)
        assert correlation_ratio(X) == pytest.approx(R)
        assert np.linalg.norm(X, axis=1) == pytest.approx(1.0)
        assert np.abs(X).max() < 0.25  # spread over all coordinates


@pytest.mark.parametrize(("figure", "n", "k", "R"), [("2.2", 10, 50, 9.0), ("2.3", 21, 24, 12.0)])
def test_exact_errors_are_measured_and_computed_elsewhere(figure: str, n: int, k: int, R: float) -> None:
    report = errors([Case(figure=figure, n=n, k=k, R=R)], trials=40)
    assert len(report.rows) == 3
    for row in report.rows:
        exact = number(row, "MSE")
        if row["reference"] is not None:
            assert exact == pytest.approx(number(row, "reference"), rel=1e-3)
        # Means of 40 squared errors of vectors spread out: 7 standard errors are about 1e-8 of Student's law.
        assert abs(number(row, "measured") - exact) < 7 * number(row, "standard error") + 1e-9
    found = [number(row, "MSE") for row in report.rows]
    assert found == sorted(found, reverse=True)
    assert sum(row["reference"] is not None for row in report.rows) == (3 if figure == "2.2" else 2)


def test_the_reference_covers_all_points() -> None:
    known = reference("dme-synthetic")
    assert len(known) == 9 * 3 + 2 * (8 * 4 + 2 * 4 + 2 * 3)
    assert all(value > 0 for value in known.values())
    assert EXPERIMENTS["dme-synthetic"].source == "Jiang (2025), Figures 2.2, 2.3, 2.5, A.1 and A.2"


def test_ranks_fall_short_where_parties_are_few() -> None:
    rows = {(row["setting"], number(row, "n k")): row for row in ranks({32: 60}).rows}
    assert len(rows) == 3 * 4
    # 85 % of draws at n = 2, and 1.8 % at n = 8: fewer than 15 of 60, and more than 20, below 1e-7 each.
    assert number(rows["n = 2", 32.0], "short") > 30
    assert number(rows["n = 8", 32.0], "short") < 15
    for row in rows.values():
        assert number(row, "mean rank") <= number(row, "n k")
        assert number(row, "share short") <= number(row, "at most (97.5 %)")


def test_times_are_taken_of_both_stages() -> None:
    rows = seconds([Timed(dim=64, n=3, k=6)], repeats=2).rows
    assert {row["setting"] for row in rows} == {"encode, d = 64", "decode, d = 64"}
    assert len(rows) == 10
    assert all(number(row, "ms") > 0 for row in rows)


def error_rows(joint: Sequence[float], plain: Sequence[float]) -> list[Row]:
    """Return rows of two R, with these errors of RPS and of Rand-k; RkS errs by 2 and by 1.5."""
    rows: list[Row] = []
    for R, rps, rand, rks in zip((1.0, 2.0), joint, plain, (2.0, 1.5), strict=True):
        for name, value in (("Rand-k", rand), ("RkS(opt)", rks), ("RPS(opt)", rps)):
            rows.append(
                {
                    "setting": "n = 5, k = 9",
                    "k": 9,
                    "R": R,
                    "estimator": name,
                    "MSE": value,
                    "measured": value,
                }
                | {"standard error": 0.1, "reference": value * 1.01}
            )
    return rows


def test_verdicts_on_errors_follow_the_rows() -> None:
    text = "\n".join(error_statements("2.3", error_rows((1.0, 0.5), (3.0, 3.0))))
    assert "RPS(opt) < RkS(opt) < Rand-k: yes, at 2 of 2 points" in text
    assert "Rand-k is the same for all R: yes; the others fall in R in 1 of 1 panels" in text
    assert "within 0 standard errors" in text
    assert "6 exact errors agree with an independent computation within 9.9e-03" in text
    text = "\n".join(error_statements("2.3", error_rows((1.0, 1.9), (3.0, 4.0))))
    assert "RPS(opt) < RkS(opt) < Rand-k: no, at 1 of 2 points" in text
    assert "Rand-k is the same for all R: no; the others fall in R in 0 of 1 panels" in text


def rank_row(d: int, sent: int, share: float, rank: float, needs: float) -> Row:
    return {
        "setting": "n = 8",
        "d": d,
        "n k": sent,
        "draws": 100,
        "short": round(100 * share),
        "share short": share,
    } | {
        "mean rank": rank,
        "rank that Rand-k needs": needs,
    }


def test_verdicts_on_ranks_follow_the_rows() -> None:
    good = [rank_row(32, 32, 0.02, 31.98, 18.0), rank_row(64, 64, 0.0, 64.0, 34.0)]
    text = "\n".join(rank_statements(good))
    assert (
        "S has full rank in every draw but for n k = d = 32: yes; short in d = 32, n k = 32: 2.00% of 100"
        in text
    )
    assert "errs no more than Rand-k, E[rank S] >= d n k / (d + n k - k): yes, at 2 of 2 points" in text
    bad = [rank_row(32, 32, 0.9, 15.0, 18.0), rank_row(64, 48, 0.01, 48.0, 30.0)]
    text = "\n".join(rank_statements(bad))
    assert "for n k = d = 32: no" in text
    assert "no, at 1 of 2 points. At 1 of them the rank is short more often than the printed 2/3" in text
    assert text.endswith("it is so at 0 of these.")


@pytest.mark.parametrize(
    ("encode", "decode", "verdicts"), [(1.0, 9.0, ("yes", "yes")), (3.0, 0.5, ("no", "no"))]
)
def test_verdicts_on_times_follow_the_rows(encode: float, decode: float, verdicts: tuple[str, str]) -> None:
    rows: list[Row] = [
        {"setting": f"{stage}, d = 8", "n": 3, "k": 2, "estimator": name, "ms": value}
        for stage, ours in (("encode", encode), ("decode", decode))
        for name, value in (("RPS(avg)", ours), ("Wangni", 2.0))
    ]
    slow, quick = time_statements(rows)
    assert f"decodes slowest: {verdicts[0]}" in slow
    assert f"encodes faster than Wangni: {verdicts[1]}" in quick
    assert f"{encode / 2:.2g} to" in quick
