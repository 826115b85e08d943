"""Jobs on tables without bounds: a stated moment instead, and no record but its own pays for a wild cell."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from tacit.data import ColumnsSpec, Unbounded
from tacit.errors import DataError, ParameterError
from tacit.jobs import Job, JobConfig, TrainedModel, facts_of_description
from tacit.jobs.terms import JobTerms
from tacit.learning.objective import Grouped, Records
from tacit.reports import build_statement, notes_of, results_json

MADE: dict[str, Any] = {
    "label": "y",
    "task": "regression",
    "moment": "4:10",
    "epsilon": 4.0,
    "delta": 1e-4,
    "algorithm": "minibatch",
    "rounds": 5,
    "name": "r",
}
WILD = (["text", "1", "2"], ["1e400", "-inf", "nan"], ["1e308", "-1e308", "1e308"], ["", "NA", "9" * 400])


def write(folder: Path, *, odd: list[str] | None = None, n: int = 60) -> Path:
    """Write `t.csv` with silos, persons of two records, two heavy-tailed features and a label."""
    rng = np.random.default_rng(3)
    features = rng.pareto(3.0, size=(n, 2)) * rng.choice([-1, 1], size=(n, 2))
    y = features @ [1.0, -0.5] + 0.5
    frame = pd.DataFrame({"a": features[:, 0], "b": features[:, 1], "y": y}).astype(str)
    if odd is not None:
        frame.iloc[4] = odd
    frame["site"], frame["who"] = np.arange(n) % 2, np.arange(n) // 2
    path = folder / "t.csv"
    frame.to_csv(path, index=False)
    return path


def job(path: Path, **more: Any) -> Job:
    ignored = {"silo_column": "site", "person": "who"}
    return Job(JobConfig.of(MADE | ignored | {"data": str(path)} | more))


def units(made: Job) -> list[Records]:
    """The units of every silo, as training has them."""
    found = [made._units(index) for index in made.data.train]
    return [one.records if isinstance(one, Grouped) else one for one in found]


@pytest.mark.parametrize("odd", WILD)
def test_a_wild_record_counts_as_zero_or_is_clipped_and_moves_no_other(
    odd: list[str], tmp_path: Path
) -> None:
    calm = job(write(tmp_path))
    before = units(calm)
    wild = job(write(tmp_path, odd=odd))
    assert replace(wild.data.facts, description=None) == replace(calm.data.facts, description=None)
    changed = 0
    for one, other in zip(before, units(wild), strict=True):
        assert np.isfinite(other.X).all()
        assert np.isfinite(other.y).all()
        changed += int((one.X != other.X).any(axis=1).sum())
    assert changed <= 1
    result = wild.run()
    assert np.isfinite(result.results[0].trained.w).all()
    json.loads(json.dumps(results_json(result, folder=tmp_path), default=str, allow_nan=False))


def test_a_described_table_keeps_categories_and_drops_bounds(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "t.columns.toml").write_text(
        '[label]\nkind = "numeric"\nlower = 0\nupper = 1\n'
        '[columns.a]\nkind = "numeric"\nlower = 0\nupper = 1\n'
        '[columns.site]\nkind = "categorical"\ncategories = ["0", "1"]\n'
    )
    made = job(path, silo_column=None, person="who", silos="iid:2")
    assert made.data.feature_names == ("a", "site=0", "site=1", "b")
    frame = pd.read_csv(path)
    np.testing.assert_array_equal(made.data.X[:, 0], frame.a)
    np.testing.assert_array_equal(made.data.y, frame.y)
    notes = " ".join(notes_of(made.run()))
    assert "order 4 is stated to be at most 10" in notes
    assert "Columns that nothing describes are numbers (b)" in notes


def test_models_are_in_raw_units_and_keep_them_as_json_and_onnx(tmp_path: Path) -> None:
    path = write(tmp_path, n=240)
    model = job(path, trust="none", rounds=300, moment="2:6").run().results[0].model
    frame = pd.read_csv(path)
    np.testing.assert_allclose(model.coef_[["a", "b"]], [1.0, -0.5], atol=0.02)
    assert model.intercept_ == pytest.approx(0.5, abs=0.05)
    kept = TrainedModel.from_json(model.to_json())
    assert kept.fitted.target is None
    assert kept.columns == model.columns
    np.testing.assert_array_equal(kept.predict(frame), model.predict(frame))
    form = json.loads(model.to_json())
    assert (form["version"], form["raw"], form["lower"], form["target"]) == (2, True, [], None)
    frame.loc[0, "a"] = np.inf
    inputs = {name: frame[name].to_numpy(dtype=np.float64) for name in model.used_columns}
    session = onnxruntime.InferenceSession(model.to_onnx(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, inputs)
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-9)
    assert np.isnan(found[0])
    assert not np.isnan(found[1:]).any()


@pytest.mark.parametrize(
    "change",
    [
        {"target": [0, 1]},
        {"lower": [0, 0], "upper": [1, 1]},
        {"unit_rows": True},
        {"classes": ["a", "b"]},
        {"raw": False},
    ],
)
def test_a_raw_model_with_bounds_is_no_model(change: dict[str, Any], tmp_path: Path) -> None:
    form = json.loads(job(write(tmp_path), trust="none").run().results[0].model.to_json())
    with pytest.raises(DataError, match="is not a model"):
        TrainedModel.from_json(json.dumps(form | change))


def test_the_statement_promises_what_it_would_with_bounds(tmp_path: Path) -> None:
    result = job(write(tmp_path)).run()
    statement = build_statement(result, run="r", created=datetime(2026, 1, 1, tzinfo=UTC))
    assert statement.data is not None
    assert statement.data.read_off == ()
    said = " ".join(g.neighbours.unit.value for g in statement.guarantees)
    assert said == "person person"
    assert all(g.epsilon == 4.0 for g in statement.guarantees)
    assert "bounds" not in str(statement.guarantees[0])


def test_what_a_server_without_records_makes_of_the_job_is_the_same(tmp_path: Path) -> None:
    path = write(tmp_path)
    spec = ColumnsSpec(columns={"a": Unbounded(), "b": Unbounded(missing=1.0)})
    (tmp_path / "t.columns.toml").write_text(spec.to_toml())
    made = job(path)
    facts = facts_of_description(
        made.config, tmp_path / "t.columns.toml", silo_names=made.data.silo_names, sizes=made.data.sizes
    )
    assert replace(facts, description=None) == replace(made.data.facts, description=None)
    again, own = JobTerms(made.config, facts).settings("local"), made.terms.settings("local")
    assert (again.encoding, again.clip, again.moment) == (own.encoding, own.clip, own.moment)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"moment": "4"}, "moment must look like ORDER:VALUE, such as 4:10, got '4'"),
        ({"moment": "1:10"}, "order of a moment must be above 1, got 1.0"),
        ({"moment": "4:0"}, "value"),
        ({"moment": "4:-3"}, "value"),
        ({"moment": "nan:3"}, "order"),
        ({"moment": 4}, "moment must be a text"),
        ({"task": "classification"}, "moment is for task='regression'"),
        ({"data": "insurance", "label": None}, "moment is for a table"),
        ({"public": "p.csv"}, "public must be left out with a moment"),
        ({"domain": "simplex"}, "domain must be a ball"),
        ({"loss": "poisson"}, "loss must be 'squared', 'huber' or 'absolute'"),
        ({"loss": "huber"}, "threshold must be given"),
        ({"loss": "absolute"}, "smoothing must be given"),
    ],
)
def test_jobs_that_no_moment_fits_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        JobConfig.of(MADE | {"data": "t.csv"} | change)


def test_a_job_is_written_with_its_moment() -> None:
    made = JobConfig.of(MADE | {"data": "t.csv"})
    assert 'moment = "4:10"' in made.to_toml()
    assert made.stated is not None
    assert made.regularization().domain == "ball:5"
    assert JobConfig.of(MADE | {"data": "t.csv", "moment": None}).stated is None
