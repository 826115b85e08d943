"""Jobs by loss: scores that fit, models that say what they predict, and runs that keep their loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    mean_absolute_error,
    mean_pinball_loss,
    mean_poisson_deviance,
    r2_score,
    roc_auc_score,
)

import tacit
from tacit.errors import DataError, LedgerError, ParameterError
from tacit.jobs import ClassScores, Job, JobConfig, Ledgers, NumberScores, TrainedModel
from tacit.jobs.held_out import HeldOut
from tacit.jobs.model_file import ModelForm
from tacit.jobs.scores import score_model
from tacit.learning import FeatureMap, LinearModel, LogLink, LossChoice
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Neighbours, PrivacyBudget
from tacit.reports import results_json, write_run
from tacit.reports.comparison import comparison_notes
from tacit.reports.metrics import read_metrics
from tests.data.test_datasets import needs
from tests.jobs.tables import write_charges, write_patients

RNG = np.random.default_rng(5)
MOST = 60_000.0


def job_of(table: Path, **settings: Any) -> JobConfig:
    facts = {"silo_column": "site", "trust": "none", "rounds": 40, "name": "r", "out": str(table.parent)}
    number = table.name.startswith("charges")
    facts |= {"label": "charges", "task": "regression"} if number else {"label": "ill"}
    return JobConfig.of({**facts, "data": str(table), **settings})


# Scores


def scored(loss: LossChoice, raw: Array, y: Array, units: Array | None = None) -> NumberScores:
    features = FeatureMap(lower=-np.ones(1), upper=np.ones(1), unit_rows=False)
    target = (0.0, MOST)
    model = LinearModel(features=features, w=np.zeros(2), target=target, loss=loss, link=loss.link(target))
    held_out = HeldOut(
        y=y, units=np.arange(y.size) if units is None else units, silos=np.arange(y.size) % 2,
        silo_names=["a", "b"], classes=(), target=target,
    )  # fmt: skip
    found = score_model(raw, held_out, model)
    assert isinstance(found, NumberScores)
    return found


@pytest.mark.parametrize(
    ("loss", "metric", "guess", "cost", "best"),
    [
        (LossChoice(name="huber"), "mae", "median", mean_absolute_error, np.median),
        (LossChoice(name="absolute"), "mae", "median", mean_absolute_error, np.median),
        (
            LossChoice(name="quantile", quantile=0.9), "pinball", "0.9-quantile",
            lambda y, p: mean_pinball_loss(y, p, alpha=0.9), lambda y: np.quantile(y, 0.9),
        ),
        (LossChoice(name="poisson"), "deviance", "mean", mean_poisson_deviance, np.mean),
    ],
)  # fmt: skip
def test_scores_fit_the_loss(loss: LossChoice, metric: str, guess: str, cost: Any, best: Any) -> None:
    y, raw = RNG.uniform(-1, 1, 401), RNG.normal(size=401)
    truth = (y + 1) / 2 * MOST
    link = loss.link((0.0, MOST))
    predicted = (raw + 1) / 2 * MOST if link is None else MOST * np.exp(np.minimum(raw - 2, 0))
    found = scored(loss, raw, y)
    assert (found.metric, found.guess) == (metric, guess)
    assert found.score == pytest.approx(cost(truth, predicted))
    assert found.baseline == pytest.approx(cost(truth, np.full(401, best(truth))), rel=1e-3)
    assert found.mae == pytest.approx(mean_absolute_error(truth, predicted))
    assert found.r2 == pytest.approx(r2_score(truth, predicted))
    assert [one.score for one in found.silos] == pytest.approx(
        [cost(truth[k::2], predicted[k::2]) for k in (0, 1)]
    )
    # No constant does better.
    for other in np.quantile(truth, np.linspace(0.05, 0.95, 19)):
        assert cost(truth, np.full(401, other)) >= found.baseline * (1 - 1e-9)


@pytest.mark.parametrize("name", ["absolute", "quantile", "poisson"])
def test_a_standard_error_is_that_of_other_samples(name: str) -> None:
    loss = LossChoice(name=name)
    samples = [(RNG.uniform(-1, 1, 200), RNG.normal(size=200)) for _ in range(400)]
    found = [scored(loss, raw, y) for y, raw in samples]
    spread = float(np.std([one.score for one in found]))
    said = [one.standard_error or 0.0 for one in found]
    # A deviation of 400 scores is known to 3.5 per cent; five of these and the error of the mean are 25.
    assert np.mean(said) == pytest.approx(spread, rel=0.25)
    y, raw = samples[0]
    twice = scored(loss, np.tile(raw, 2), np.tile(y, 2), np.tile(np.arange(200), 2))
    assert twice.standard_error == pytest.approx(found[0].standard_error)


@pytest.mark.parametrize("loss", [LossChoice(name="poisson"), LossChoice(name="quantile", quantile=0.1)])
def test_scores_of_models_that_ran_away_are_finite(loss: LossChoice) -> None:
    for y in ([-1.0, 1.0], [np.nan, -1.0], [-1.0, -1.0]):
        found = scored(loss, np.array([1e30, -1e30]), np.array(y))
        values = msgspec.to_builtins(found)
        assert json.dumps(values, allow_nan=False)
        assert msgspec.convert(values, NumberScores) == found


def test_a_hinge_is_scored_without_probabilities(tmp_path: Path) -> None:
    result = Job(job_of(write_patients(tmp_path), loss="hinge")).run()
    (one,) = result.results
    assert isinstance(one.scores, ClassScores)
    assert (one.scores.log_loss, one.scores.brier, one.scores.calibration_error) == (None, None, None)
    assert one.scores.calibration == ()
    assert one.score > 0.9
    assert one.scores.auc is not None
    folder = write_run(result, tmp_path / "run")
    assert "Calibration" not in (folder / "report.html").read_text()
    frame = pd.read_csv(tmp_path / "patients.csv")
    model = tacit.load(folder)
    with pytest.raises(AttributeError, match="probabilities need loss='logistic'"):
        model.predict_proba(frame)
    table = model.score_table(frame)
    assert [*table.columns[-2:]] == ["prediction", "score"]
    assert ((table.score > 0) == (table.prediction == "ill")).all()
    assert roc_auc_score(frame.ill == "ill", table.score) > 0.95


# Models


def test_a_model_of_counts_says_its_link_and_predicts_by_it(tmp_path: Path) -> None:
    table = write_charges(tmp_path)
    result = Job(job_of(table, loss="poisson")).run()
    model = result.results[0].model
    said = json.loads(model.to_json())
    assert said["loss"] == {"name": "poisson"}
    assert said["link"] == {"link": "log", "unit": pytest.approx(MOST / np.e**2), "most": MOST}
    again = TrainedModel.from_json(model.to_json())
    frame = pd.read_csv(table)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    expected = MOST * np.exp(np.minimum(model.decision_function(frame) - 2, 0))
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)
    assert result.results[0].metric == "deviance"
    assert result.results[0].score < 0.1 * result.results[0].scores.baseline


def test_models_of_the_default_losses_are_written_as_before_and_others_are_refused_by_old_readers(
    tmp_path: Path,
) -> None:
    table = write_charges(tmp_path)
    plain = json.loads(Job(job_of(table)).run().results[0].model.to_json())
    assert {"loss", "link"}.isdisjoint(plain)
    assert {"loss", "link"}.isdisjoint(
        json.loads(Job(job_of(table, loss="squared")).run().results[0].model.to_json())
    )
    # A reader that knows neither field refuses unknown ones, and predicts nothing.
    fields = [
        (f.name, f.type, f.default)
        for f in msgspec.structs.fields(ModelForm)
        if f.name not in ("loss", "link")
    ]
    required = [(name, kind) for name, kind, default in fields if default is msgspec.NODEFAULT]
    optional = [(name, kind, default) for name, kind, default in fields if default is not msgspec.NODEFAULT]
    old = msgspec.defstruct("Old", [*required, *optional], kw_only=True, forbid_unknown_fields=True)
    msgspec.json.decode(json.dumps(plain), type=old)
    for loss in ("poisson", "quantile"):
        text = Job(job_of(table, loss=loss)).run().results[0].model.to_json()
        with pytest.raises(msgspec.ValidationError, match="unknown field"):
            msgspec.json.decode(text, type=old)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"link": None}, "link must be given for the loss 'poisson', and for no other"),
    ({"loss": None}, "link must be given for the loss 'poisson'"),
    ({"loss": {"name": "hinge"}}, "where labels are numbers, got 'hinge'"),
    ({"loss": {"name": "pinball"}}, "loss must be one of"),
    ({"loss": {"name": "poisson", "quantile": 0.9}}, "quantile is for"),
    ({"link": {"link": "log", "unit": 0.0, "most": 1.0}}, "unit must be a finite number > 0"),
    ({"link": {"link": "logit", "unit": 1.0, "most": 1.0}}, "is not a model of tacit"),
    ({"target": [-1, 5]}, "0 <= low"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=lambda one: str(one)[:40])
def test_models_whose_loss_does_not_fit_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    model = Job(job_of(write_charges(tmp_path), loss="poisson", rounds=2)).run().results[0].model
    said = json.loads(model.to_json()) | change
    with pytest.raises(DataError, match=message):
        TrainedModel.from_json(json.dumps({k: v for k, v in said.items() if v is not None or k == "classes"}))


@pytest.mark.parametrize("loss", ["huber", "quantile", "poisson", "hinge"])
def test_graphs_predict_what_models_do(loss: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    table = write_patients(tmp_path) if loss == "hinge" else write_charges(tmp_path)
    model = Job(job_of(table, loss=loss, rounds=5)).run().results[0].model
    graph = runtime.InferenceSession(model.to_onnx(), providers=["CPUExecutionProvider"])
    frame = pd.read_csv(table).head(20)
    given = {name: frame[name].to_numpy(np.float64) for name in ("age", "bmi")}
    outputs = dict(zip([one.name for one in graph.get_outputs()], graph.run(None, given), strict=True))
    if loss == "hinge":
        assert [*outputs] == ["label", "scores"]
        np.testing.assert_allclose(outputs["scores"], model.decision_function(frame), rtol=1e-9)
        np.testing.assert_array_equal(outputs["label"], model.predict(frame))
    else:
        np.testing.assert_allclose(outputs["prediction"], model.predict(frame), rtol=1e-9)


# Runs


def test_no_other_loss_goes_on_with_a_run(tmp_path: Path) -> None:
    table = write_charges(tmp_path)
    facts = {"trust": "central", "epsilon": 1.0, "delta": 1e-4, "rounds": 3, "algorithm": "minibatch"}
    limit = PrivacyBudget(1.0, 1e-4)
    with (
        Ledger.create(tmp_path / "c.ledger", limit=limit, neighbours=Neighbours()) as central,
        Ledger.create(tmp_path / "d.ledger", limit=limit, neighbours=Neighbours()) as data,
    ):
        accounts = Ledgers(silos=[], central=central, data=data)
        first = Job(job_of(table, loss="quantile", quantile=0.9, **facts)).run(ledgers=accounts)
        again = Job(job_of(table, loss="quantile", quantile=0.9, **facts)).run(ledgers=accounts)
        np.testing.assert_array_equal(first.results[0].trained.w, again.results[0].trained.w)
        others: list[dict[str, Any]] = [
            {"loss": "quantile", "quantile": 0.8},
            {"loss": "quantile", "quantile": 0.9, "smoothing": 10.0},
            {"loss": "absolute"},
            {},
        ]
        for other in others:
            with pytest.raises(LedgerError, match="plan"):
                Job(job_of(table, **facts, **other)).run(ledgers=accounts)


def test_what_is_written_names_the_loss(tmp_path: Path) -> None:
    table = write_charges(tmp_path)
    result = Job(job_of(table, loss="quantile", quantile=0.9, trust="central", delta=1e-4, seed=1)).run()
    said = results_json(result)
    assert said["loss"] == {"name": "quantile", "quantile": 0.9}
    assert said["results"][0]["pinball"] == result.results[0].score
    assert "The loss is quantile (quantile 0.9)." in said["notes"]
    folders = [write_run(result, tmp_path / "one")]
    page = (folders[0] / "report.html").read_text()
    assert "Mean pinball loss" in page
    assert "0.9-quantile target" in page
    statement = json.loads((folders[0] / "statement.json").read_text())
    assert "The loss is quantile (quantile 0.9)." in statement["notes"]
    other = Job(job_of(table, loss="quantile", quantile=0.5, trust="central", delta=1e-4, seed=1)).run()
    folders.append(write_run(other, tmp_path / "two"))
    runs = {str(folder): read_metrics(folder) for folder in folders}
    assert comparison_notes(runs)[0] == "These runs are not comparable: they differ in score."
    plain = Job(job_of(table)).run()
    assert not any("The loss is" in note for note in results_json(plain)["notes"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "loss must be .*poisson with task='regression', got 'hinge'; .*'classification'"),
        ({"loss": "pinball"}, "loss must be one of auto, logistic"),
        ({"quantile": 0.9}, "quantile is for loss='quantile', got 0.9 with loss='squared'"),
        ({"loss": "huber", "threshold": -1}, "threshold must be a finite number > 0"),
        ({"loss": "quantile", "quantile": 1.5}, r"quantile must be in \(0, 1\)"),
        ({"loss": "quantile", "smoothing": 0.0, "algorithm": "accelerated"}, "'quantile' has a kink"),
    ],
)
def test_jobs_refuse_what_does_not_fit(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = write_charges(tmp_path)
    with pytest.raises(ParameterError, match=message):
        Job(job_of(table, **settings)).preview()


def test_a_data_set_knows_what_its_labels_are() -> None:
    needs("insurance")
    facts = {"trust": "none", "rounds": 2, "seed": 0}
    with pytest.raises(ParameterError, match="where labels are numbers, got 'hinge'"):
        Job(JobConfig.of({"data": "insurance", "loss": "hinge", **facts}))
    with pytest.raises(ParameterError, match="where labels are classes, got 'poisson'"):
        Job(JobConfig.of({"data": "breast-cancer", "loss": "poisson", **facts}))
    job = Job(JobConfig.of({"data": "insurance", "loss": "huber", "threshold": 7000, **facts}))
    assert job.loss == LossChoice(name="huber", threshold=7000.0)
    assert job.preview()[0].algorithm == "accelerated"
    assert JobConfig.of({"data": "insurance", "loss": "huber"}).to_toml().count("loss") == 1


def test_a_link_is_of_counts_only() -> None:
    assert LossChoice(name="poisson").link((0.0, 5.0)) == LogLink.below(5.0)
    assert LossChoice(name="quantile").link((0.0, 5.0)) is None
