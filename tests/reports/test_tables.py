"""Tables: the fields that programs rely on, and numbers that people read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.reports import notes_of, results_json
from tacit.reports.tables import baseline_of, format_bits, format_score, result_rows
from tests.reports.runs import compared, open_run, private, regression

FIELDS = [
    "trust", "algorithm", "algorithm_reason", "epsilon", "delta", "bits_per_silo", "guarantee", "rounds",
    "noise_multiplier", "scores", "seconds",
]  # fmt: skip

ALONE = ("guarantee_alone", "epsilon_alone")


@pytest.mark.parametrize(("run", "metric"), [(compared, "accuracy"), (regression, "rmse")])
def test_programs_get_exactly_these_fields(run: Any, metric: str) -> None:
    result = run()
    data = results_json(result)
    assert sorted(data) == ["data", "loss", "notes", "results", "run"]
    sizes = {name: len(index) for name, index in zip(result.data.silo_names, result.data.train, strict=True)}
    assert data["data"] == {"name": result.job.data, "silos": len(sizes), "sizes": sizes}
    assert data["run"] == result.job.run
    assert data["notes"] == notes_of(result)
    assert results_json(result, folder=Path("runs/demo-2"))["run"] == str(Path("runs/demo-2"))
    for one, said in zip(result.results, data["results"], strict=True):
        hidden = one.trust in ("aggregate", "shuffle")
        assert sorted(said) == sorted([*FIELDS, metric, *(ALONE if hidden else ())])
        assert said[metric] == one.score == said["scores"]["score"]
        assert said["guarantee"] == str(one.guarantee)
        assert said["bits_per_silo"] == one.trained.traffic.bits_up.max()


def test_nothing_is_claimed_as_null() -> None:
    (said,) = results_json(open_run())["results"]
    assert (said["epsilon"], said["delta"], said["noise_multiplier"]) == (None, None, 0.0)


def test_there_is_one_row_per_trust_model() -> None:
    trusts = ["none", "central", "aggregate", "shuffle", "local"]
    assert [row.trust for row in result_rows(compared())] == trusts
    assert [row.algorithm for row in result_rows(compared())] == [
        "accelerated",
        "whitened",
        "whitened",
        "minibatch",
        "whitened",
    ]
    none = result_rows(compared())[0]
    assert (none.epsilon, none.delta, none.noise) == ("none", "none", "none")


def test_a_shown_epsilon_is_never_below_the_true_one() -> None:
    for result in (compared(), private(), regression()):
        for one, row in zip(result.results, result_rows(result), strict=True):
            if row.epsilon != "none":
                assert one.guarantee.epsilon <= float(row.epsilon) <= one.guarantee.epsilon + 1e-4


@pytest.mark.parametrize(
    ("bits", "text"),
    [(0, "0 B"), (7_999, "1000 B"), (8_000, "1.0 kB"), (1.6e7, "2.0 MB"), (8e16, "10,000.0 TB")],
)
def test_sizes_have_decimal_units(bits: float, text: str) -> None:
    assert format_bits(bits) == text


def test_scores_have_units_and_thousands() -> None:
    assert format_score("accuracy", 1.0) == "100.0 %"
    assert format_score("rmse", 1234567.0) == "1,234,567"
    assert format_score("rmse", 0.00012346) == "0.0001235"
    assert format_score("accuracy", 1.0, None) == "100.0 %"
    assert format_score("rmse", 0.51234, 0.0213) == "0.5123 ± 0.021"
    assert format_score("rmse", 61234.0, 1234.5) == "61,234 ± 1,234"


def test_a_score_has_its_standard_error_and_a_baseline() -> None:
    for one, row in zip(compared().results, result_rows(compared()), strict=True):
        error = one.scores.standard_error
        assert error is not None
        assert row.score == f"{100 * one.score:.1f} ± {100 * error:.1f} %"
    data = compared().data
    most = np.bincount(data.y[data.test].astype(int)).max() / len(data.test)
    assert baseline_of(compared()) == ("most frequent class", f"{100 * most:.1f} %")
    assert baseline_of(regression())[0] == "mean target"
