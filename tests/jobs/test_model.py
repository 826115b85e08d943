"""Trained models: predictions against the definition, columns in any order, files that hold data alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

import tacit
from tacit.data import ColumnsSpec, count_unfit, read_table
from tacit.errors import DataError, ParameterError
from tacit.jobs import MODEL_FILE, Job, JobConfig, TrainedModel, load_model
from tacit.reports import write_run
from tests.jobs.tables import write_charges, write_patients

FREE: dict[str, Any] = {"trust": "none", "noise": "auto", "algorithm": "minibatch", "rounds": 20}


def classifier(folder: Path) -> tuple[TrainedModel, pd.DataFrame]:
    """A model of two classes, and its own table."""
    table = write_patients(folder)
    job = JobConfig.of(FREE | {"data": str(table), "label": "ill", "silo_column": "site", "name": "ward"})
    return Job(job).run().results[0].model, read_table(table)


def regression(folder: Path) -> tuple[TrainedModel, pd.DataFrame]:
    table = write_charges(folder)
    label = "charges"
    job = JobConfig.of(FREE | {"data": str(table), "label": label, "task": "regression", "name": "cost"})
    return Job(job).run().results[0].model, read_table(table)


def digits(folder: Path) -> tuple[TrainedModel, pd.DataFrame]:
    """Ten classes, and images as a table of pixels."""
    job = Job(JobConfig.of(FREE | {"data": "digits", "name": "digits"}))
    model = job.run().results[0].model
    return model, pd.DataFrame(job.data.X, columns=list(model.feature_names))


MADE = {"classifier": classifier, "regression": regression, "digits": digits}


@pytest.fixture(params=MADE, scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return MADE[request.param](tmp_path_factory.mktemp("data"))


def test_predictions_follow_from_the_weights(tmp_path: Path) -> None:
    model, frame = classifier(tmp_path)
    scaled = np.column_stack(
        [
            (np.clip(frame.age.astype(float), 18, 90) - 54) / 36,
            (np.clip(frame.bmi.astype(float), 15, 50) - 32.5) / 17.5,
        ]
    )
    length = np.sqrt((scaled**2).sum(axis=1) + model.fitted.features.constant**2)
    score = (scaled @ model.coef_[["age", "bmi"]].to_numpy() + model.intercept_) / length
    np.testing.assert_allclose(model.decision_function(frame), score, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(frame)["ill"], special.expit(score), rtol=0, atol=1e-12)
    assert model.predict(frame).tolist() == ["ill" if s > 0 else "well" for s in score]


def test_what_is_read_is_what_was_written_bit_by_bit(made: Any, tmp_path: Path) -> None:
    model, frame = made
    again = TrainedModel.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    assert again.columns == model.columns
    assert again.task == model.task
    for name in ("predict", "decision_function"):
        assert np.array_equal(getattr(again, name)(frame), getattr(model, name)(frame))
    model.save(tmp_path / "any.json")
    assert load_model(tmp_path / "any.json").to_json() == model.to_json()


def test_columns_may_stand_in_any_order_among_others(made: Any) -> None:
    model, frame = made
    turned = frame[frame.columns[::-1]].assign(more="text")
    assert np.array_equal(model.predict(turned), model.predict(frame))


def test_frames_keep_their_index_and_name_their_classes(made: Any) -> None:
    model, frame = made
    frame = frame.set_index(np.arange(len(frame)) * 7 + 3)
    assert model.predict(frame).index.equals(frame.index)
    if model.task == "classification":
        found = model.predict_proba(frame)
        assert found.columns.tolist() == model.classes_.tolist()
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert (found.idxmax(axis=1) == model.predict(frame)).all()


def test_arrays_in_are_arrays_out(made: Any) -> None:
    model, frame = made
    X = model.encode(frame)
    assert X.shape == (len(frame), model.n_features_in_)
    assert isinstance(model.predict(X), np.ndarray)
    assert np.array_equal(model.predict(X), model.predict(frame))


def test_long_tables_are_scored_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, frame = classifier(tmp_path)
    whole = model.predict_proba(frame)
    monkeypatch.setattr("tacit.jobs.model._ROWS", 7)
    pd.testing.assert_frame_equal(model.predict_proba(frame), whole)


def test_no_records_have_no_predictions(made: Any) -> None:
    model, frame = made
    assert model.predict(frame.iloc[:0]).shape == (0,)


def test_weights_have_names(made: Any) -> None:
    model, _ = made
    weights = model.coef_
    if model.task == "classification" and len(model.classes_) > 2:
        assert weights.shape == (len(model.classes_), model.n_features_in_)
        assert weights.index.tolist() == model.intercept_.index.tolist() == model.classes_.tolist()
    else:
        assert weights.index.tolist() == list(model.feature_names) == model.feature_names_in_.tolist()
        assert isinstance(model.intercept_, float)


def test_a_regression_has_no_classes(tmp_path: Path) -> None:
    model, frame = regression(tmp_path)
    assert not hasattr(model, "classes_")
    with pytest.raises(AttributeError):
        model.predict_proba(frame)
    low, high = model.fitted.target or (0, 0)
    assert (high - low) == 60000


def test_scored_tables_keep_what_the_model_does_not_use(tmp_path: Path) -> None:
    model, frame = classifier(tmp_path)
    scored = model.score_table(frame)
    added = ["prediction", "probability_well", "probability_ill"]
    assert scored.columns.tolist() == ["site", "patient", "ill", *added]
    assert (scored.prediction == model.predict(frame)).all()
    with pytest.raises(DataError, match="column 'prediction' already"):
        model.score_table(frame.assign(prediction=1))


def test_cells_that_fit_nothing_are_counted() -> None:
    spec = ColumnsSpec.from_toml(
        '[label]\nkind = "classes"\nclasses = [0, 1]\n[columns.age]\nkind = "numeric"\nlower = 0\nupper = 9\n'
        '[columns.unit]\nkind = "categorical"\ncategories = ["a", "NA"]\n'
    )
    frame = pd.DataFrame({"age": ["1", "x", "", "11"], "unit": ["a", "NA", "", "c"], "y": [0, 1, 0, 1]})
    found = count_unfit(frame, spec.columns)
    assert found.loc["age"].to_dict() == {"missing": 2, "unknown": 0, "outside": 1}
    assert found.loc["unit"].to_dict() == {"missing": 1, "unknown": 1, "outside": 0}


def test_models_of_numbers_count_nothing(tmp_path: Path) -> None:
    model, frame = digits(tmp_path)
    with pytest.raises(ParameterError, match="takes numbers"):
        model.count_unfit(frame)
    with pytest.raises(DataError, match="finite"):
        model.predict(frame.assign(**{"pixel 3": "x"}))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"age": [1]}), "no such column"),
        (np.zeros((2, 3)), r"shape \(n, 2\), got \(2, 3\)"),
        (np.zeros(2), r"got \(2,\)"),
        (np.array([[0.0, np.nan]]), "finite"),
    ],
)
def test_records_that_do_not_fit_are_refused(X: Any, message: str, tmp_path: Path) -> None:
    model, _ = classifier(tmp_path)
    with pytest.raises(DataError, match=message):
        model.predict(X)


def test_the_front_door_loads_a_run(tmp_path: Path) -> None:
    table = write_patients(tmp_path)
    job = JobConfig.of(FREE | {"data": str(table), "label": "ill", "silo_column": "site", "name": "ward"})
    folder = write_run(Job(job).run(), tmp_path / "run")
    model = tacit.load(folder)
    assert model.coef_.index.tolist() == ["age", "bmi"]
    assert model.statement_digest == hashlib.sha256((folder / "statement.json").read_bytes()).hexdigest()
    assert tacit.load(str(folder / MODEL_FILE)).statement_digest == model.statement_digest
    # The same model under another statement is refused: who reads the statement reads of another model.
    said = json.loads((folder / "statement.json").read_text())
    said["digests"][MODEL_FILE] = "0" * 64
    (folder / "statement.json").write_text(json.dumps(said))
    with pytest.raises(DataError, match="is not the file that"):
        tacit.load(folder)
    (folder / "statement.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        tacit.load(folder)
    (folder / "statement.json").unlink()
    assert tacit.load(folder).statement_digest is None


Change = Callable[[dict[str, Any]], object]
WRONG: dict[str, tuple[Change, str]] = {
    "version": (lambda d: d.update(version=3), "version must be 2, got 3: use the tacit that wrote it"),
    "more": (lambda d: d.update(run_me="os.system"), "unknown field"),
    "less": (lambda d: d.pop("lower"), "missing required field"),
    "short": (lambda d: d["lower"].pop(), "equally many"),
    "names": (lambda d: d.update(features=["bmi", "age"]), "as the columns are encoded|columns are encoded"),
    "classes": (lambda d: d.update(classes=["ill"]), "two or more"),
    "twice": (lambda d: d.update(classes=["ill", "ill"]), "distinct"),
    "both": (lambda d: d.update(target=[0, 1]), "one of classes and target"),
    "neither": (lambda d: d.update(classes=None), "one of classes and target"),
    "order": (lambda d: d.update(classes=None, target=[1, 0]), "low <= high"),
    "outputs": (lambda d: d["weights"][0].append(1.0), "weights must hold 1 numbers"),
    "text": (lambda d: d["weights"][0].__setitem__(0, "1"), "Expected `float`"),
    "bounds": (lambda d: d["upper"].__setitem__(0, -2.0), "lower <= upper"),
    "huge": (lambda d: d.update(lower=[-1.7e308, -1], upper=[1.7e308, 1]), "finite"),
    "columns": (lambda d: d["columns"]["columns"]["age"].update(upper=1), "lower < upper"),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_that_are_no_model_are_refused(name: str, tmp_path: Path) -> None:
    model, _ = classifier(tmp_path)
    change, message = WRONG[name]
    form = json.loads(model.to_json())
    change(form)
    with pytest.raises(DataError, match=message):
        TrainedModel.from_json(json.dumps(form))


@pytest.mark.parametrize(
    "text", [b"", b"\xff", b"[" * 100_000, b"null", b"\x80\x04K\x01.", b'{"version": NaN}']
)
def test_bytes_that_are_no_json_are_refused(text: bytes) -> None:
    with pytest.raises(DataError, match="is not a model of tacit"):
        TrainedModel.from_json(text)


def test_no_number_leaves_the_finite_ones(tmp_path: Path) -> None:
    model, _ = classifier(tmp_path)
    text = model.to_json().decode()
    first = str(json.loads(text)["weights"][0][0])
    for number in ("1e999", "NaN", "Infinity"):
        with pytest.raises(DataError):
            TrainedModel.from_json(text.replace(first, number, 1))


@pytest.mark.parametrize("path", ["nowhere", "file.txt", "a\0b"])
def test_a_model_that_is_not_there_is_said_in_one_line(path: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load_model(tmp_path / path)


# Other models than linear ones


def other(name: str, tmp_path: Path, **more: Any) -> TrainedModel:
    job = {**FREE, "data": str(write_patients(tmp_path)), "label": "ill", "rounds": 2, "name": "other"}
    return (
        Job(JobConfig.of(job | {"model": name, "options": {"step_size": 0.1}} | more)).run().results[0].model
    )


@pytest.mark.parametrize("name", ["mlp:3", "mlp:3,2"])
def test_networks_are_kept_bit_by_bit(name: str, tmp_path: Path) -> None:
    if "," in name:
        pytest.importorskip("torch")
    model = other(name, tmp_path)
    again = TrainedModel.from_json(model.to_json())
    frame = read_table(write_patients(tmp_path))
    assert str(again.model) == name
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    assert set(again.predict_proba(frame).columns) == set(model.classes_)
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match="weights by feature need a linear model"):
            getattr(again, name)
    with pytest.raises(ParameterError, match="a graph needs a linear model"):
        again.to_onnx()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("linear@8x8", "filtered pixels"),
        ("scattering", "wavelet features"),
        ("cnn", "weights by feature need a linear model"),
    ],
)
def test_models_of_images_are_kept_bit_by_bit(name: str, why: str) -> None:
    if name == "cnn":
        pytest.importorskip("torch")
    config = FREE | {"data": "digits", "rounds": 1, "model": name, "options": {"step_size": 0.1}}
    job = Job(JobConfig.of(config))
    model = job.run().results[0].model
    again = TrainedModel.from_json(model.to_json())
    np.testing.assert_array_equal(again.predict(job.data.X[:50]), model.predict(job.data.X[:50]))
    with pytest.raises(AttributeError, match=why):
        _ = again.coef_


def test_perceptrons_of_images_are_kept_bit_by_bit() -> None:
    free = FREE | {"data": "digits", "rounds": 1, "options": {"step_size": 0.1}}
    job = Job(JobConfig.of(free | {"model": "mlp:4", "name": "seen"}))
    model = job.run().results[0].model
    again = TrainedModel.from_json(model.to_json())
    assert str(again.model) == "mlp:4@8x8"
    np.testing.assert_array_equal(again.predict(job.data.X[:50]), model.predict(job.data.X[:50]))
    form = json.loads(model.to_json())
    assert form.pop("law") == "band-pass-1 x 2"
    assert 'model = "mlp:4@8x8"' in job.config.to_toml()
    for other_law in ({}, {"law": "band-pass-0 x 2"}, {"law": "band-pass-1 x 1.6"}):
        with pytest.raises(DataError, match=r"law must be 'band-pass-1 x 2' of the model 'mlp:4@8x8', got"):
            TrainedModel.from_json(json.dumps(form | other_law))


def test_code_that_a_file_names_is_not_run_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "ward_networks.py").write_text(
        "from torch import nn\nclass Net(nn.Linear):\n    def __init__(self): super().__init__(5, 1)\n"
    )
    monkeypatch.chdir(tmp_path)
    d = other("mlp:1", tmp_path).n_features_in_
    (tmp_path / "ward_networks.py").write_text(
        f"from torch import nn\nclass Net(nn.Linear):\n    def __init__(self): super().__init__({d}, 1)\n"
    )
    text = other("ward_networks:Net", tmp_path).to_json()
    with pytest.raises(DataError, match="whose code would be run: if you trust it, name it"):
        TrainedModel.from_json(text)
    assert TrainedModel.from_json(text, modules=["ward_networks:Net"]).n_features_in_ == d


def test_plans_of_two_models_are_two(tmp_path: Path) -> None:
    """Answers for one would fit no other, even of as many parameters."""
    table = write_patients(tmp_path)
    base = FREE | {"data": str(table), "label": "ill", "options": {"step_size": 0.1}}
    names = ("linear", "mlp:3", "mlp:4")
    found = [Job(JobConfig.of(base | {"model": name})).terms.settings("none").encoding for name in names]
    assert len({*found}) == len(names)


def test_parameters_of_a_file_must_fit_its_model(tmp_path: Path) -> None:
    form = json.loads(other("mlp:3", tmp_path).to_json())
    for change, message in (
        ({"parameters": form["parameters"][1:]}, "parameters must be"),
        ({"model": {"kind": "mlp", "hidden": [2]}}, "parameters must be"),
        ({"model": {"kind": "mlp"}}, "must have what is its own"),
        ({"model": {}}, "weights must be one row more"),
        ({"model": {"kind": "cnn"}}, "square ones"),
    ):
        with pytest.raises(DataError, match=message):
            TrainedModel.from_json(json.dumps(form | change))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "mpl:3"}, "model must look like one of"),
        ({"model": "mlp:3", "domain": "ball:3"}, "domain must be left out for a network"),
        ({"model": "mlp:3", "group_lasso": 0.1}, "group_lasso must be 0 with model='mlp:3'"),
        ({"model": "mlp:3", "task": "regression", "moment": "2:1"}, "model must be 'linear' with a moment"),
        ({"model": "mlp:3", "sensitive": ("site",)}, "model must be 'linear' with fairness"),
    ],
)
def test_what_only_linear_models_have_is_refused_of_others(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        JobConfig.of({"data": "t.csv", "label": "ill"} | changes)
