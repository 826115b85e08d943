"""ONNX graphs: run by their own runtime, they predict what the model does."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest

from tacit.cli import main
from tacit.data import Categorical, Column, ColumnsSpec, Date, Numeric
from tacit.data.encoding import feature_names
from tacit.errors import DataError, TacitError
from tacit.jobs import TrainedModel
from tacit.learning.model import FeatureMap, LinearModel, Scaling

DAY = date(2026, 1, 1)
COLUMNS: dict[str, Column] = {
    "age": Numeric(lower=0, upper=90),
    "bmi": Numeric(lower=10, upper=50, missing="indicator"),
    "weight": Numeric(lower=10, upper=50, missing=11.0),
    "born": Date(lower=0, upper=90, reference=DAY, format="%d.%m.%Y"),
    "sex": Categorical(categories=("f", "m"), merge={"w": "f"}),
    "ward": Categorical(categories=("a", "b", 3), missing="category"),
    "smoker": Categorical(categories=("no", "yes"), missing="no"),
    "stage": Categorical(categories=(1, 2, 3), ordinal=True),
    "grade": Categorical(categories=("x", "y", "z"), ordinal=True, missing="category"),
}
NAMES = feature_names(COLUMNS)
RNG = np.random.default_rng(11)


def made(
    outputs: int,
    *,
    target: tuple[float, float] | None = None,
    classes: Any = None,
    scaling: Scaling | None = None,
) -> TrainedModel:
    """A model with weights from nowhere."""
    d = len(NAMES)
    bound = np.ones(d)
    linear = LinearModel(
        features=FeatureMap(lower=-bound, upper=bound, unit_rows=target is None, scaling=scaling),
        w=RNG.normal(size=(d + 1) * outputs),
        classes=None if classes is None else np.array(classes),
        target=target,
    )
    return TrainedModel(fitted=linear, feature_names=NAMES, columns=ColumnsSpec(columns=COLUMNS), run="r")


# Rows of a regression are then between half and twice as long.
SCALED = Scaling(
    means=tuple(RNG.uniform(-0.5, 0.5, len(NAMES)).tolist()),
    spreads=tuple(RNG.uniform(0.2, 2, len(NAMES)).tolist()),
    longest=6.0,
)
MODELS = {
    "two": made(1, classes=["no", "yes"]),
    "numbers": made(1, classes=[0, 1]),
    "many": made(4, classes=["a", "b", "c", "d"]),
    "regression": made(1, target=(0.0, 60_000.0)),
    "scaled": made(1, classes=["no", "yes"], scaling=SCALED),
    "scaled regression": made(1, target=(0.0, 60_000.0), scaling=SCALED),
}
ROWS: dict[str, list[Any]] = {
    "age": [0.0, 44.5, 95.0, np.nan],
    "bmi": [9.0, np.nan, 31.25, np.nan],
    "weight": [np.nan, 20.0, 70.0, 11.0],
    "born": ["01.01.1990", "31.12.2025", "1.1.1900", "no date"],
    "sex": ["f", "m", "w", "x"],
    "ward": ["a", "3", "NA", "other"],
    "smoker": ["yes", "", "no", "other"],
    "stage": ["1", "2", "", "3"],
    "grade": ["x", "", "y", "other"],
}


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_predicts_what_the_model_does(name: str) -> None:
    model = MODELS[name]
    data = model.to_onnx()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert {one.name for one in session.get_inputs()} == set(COLUMNS)
    given: dict[str, Any] = {
        column: np.array(cells, dtype=object if isinstance(COLUMNS[column], Categorical) else np.float64)
        for column, cells in ROWS.items()
        if column != "born"
    }
    days = [(DAY - one).days for one in (date(1990, 1, 1), date(2025, 12, 31), date(1900, 1, 1))]
    given["born"] = np.array([*(day / 365.2425 for day in days), np.nan])
    found = dict(zip([one.name for one in session.get_outputs()], session.run(None, given), strict=True))
    frame = pd.DataFrame({column: pd.Series(cells, dtype=object) for column, cells in ROWS.items()})
    if model.task == "regression":
        np.testing.assert_allclose(found["prediction"], model.predict(frame), rtol=1e-12)
        return
    assert found["label"].tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(frame), rtol=0, atol=1e-12)


def test_a_model_of_numbers_takes_them_at_once() -> None:
    model = replace(MODELS["many"], columns=None)
    session = onnxruntime.InferenceSession(model.to_onnx(), providers=["CPUExecutionProvider"])
    X = RNG.uniform(-2, 2, size=(5, len(NAMES)))
    labels, probabilities = session.run(None, {"features": X})
    assert labels.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=1e-12)


def test_the_graph_says_where_it_comes_from() -> None:
    model = replace(MODELS["two"], statement_digest="ab" * 32, privacy="(epsilon = 1)")
    facts = {one.key: one.value for one in onnx.load_from_string(model.to_onnx()).metadata_props}
    assert facts == {"run": "r", "statement": "ab" * 32, "privacy": "(epsilon = 1)"}


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_that_predicts_something_else_is_not_handed_over(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every operator of the graph is replaced by one that gives nearly the same: the probe must notice."""
    constant = onnx.numpy_helper.from_array
    count = 0

    def nearly(array: Any, label: str) -> Any:
        nonlocal count
        count += 1
        return constant(array * (1 + 1e-6) if array.dtype == np.float64 and array.size > 3 else array, label)

    monkeypatch.setattr(onnx.numpy_helper, "from_array", nearly)
    with pytest.raises(TacitError, match="does not predict what the model does"):
        MODELS[name].to_onnx()
    assert count > 10


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else find(name)
    )
    with pytest.raises(
        DataError,
        match=r"needs onnxruntime; `pip install 'tacit\[onnx\]'`, or in a clone `pip install '\.\[onnx\]'`",
    ):
        MODELS["two"].to_onnx()


def test_the_command_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    MODELS["two"].save(tmp_path / "model.json")
    command = ["model", "export", str(tmp_path / "model.json"), "--out"]
    assert main([*command, str(tmp_path / "model.onnx")]) == 0
    assert "inputs age, bmi" in " ".join(capsys.readouterr().out.split())
    onnx.checker.check_model(str(tmp_path / "model.onnx"))
    assert main([*command, str(tmp_path / "model.bin")]) == 2
    assert "out must end with .onnx" in capsys.readouterr().err
