"""Run folders: complete, in agreement with each other, readable again, never overwritten."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import DataError
from tacit.federation import Plan
from tacit.jobs import JobConfig, JobResult, TrainedModel, load_model
from tacit.reports import claim_folder, released, results_json, write_run
from tacit.reports.run_folder import UNFINISHED
from tests.reports.runs import compared, open_run, persons, private, regression

RUNS = {
    "compared": compared,
    "private": private,
    "persons": persons,
    "regression": regression,
    "open": open_run,
}
FILES = {"model.json", "statement.json", "metrics.json", "plan.toml", "job.toml", "report.html"}


@pytest.fixture(params=RUNS)
def result(request: pytest.FixtureRequest) -> JobResult:
    """Every kind of run."""
    return RUNS[request.param]()


def read(path: Path) -> dict[str, Any]:
    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is not JSON")

    data: dict[str, Any] = json.loads(path.read_text(), parse_constant=refuse)
    return data


def test_all_files_are_there(tmp_path: Path, result: JobResult) -> None:
    folder = write_run(result, tmp_path / "run")
    several = {f"plan-{one.trust}.toml" for one in result.results}
    several |= {f"model-to-compare-{one.trust}.json" for one in result.results}
    compares = len(result.results) == 5
    described = {"columns.toml"} if result.data.description is not None else set()
    assert {path.name for path in folder.iterdir()} == FILES | described | (several if compares else set())


def test_metrics_agree_with_the_results(tmp_path: Path, result: JobResult) -> None:
    metrics = read(write_run(result, tmp_path / "run") / "metrics.json")
    for one, said, line in zip(
        result.results, metrics["results"], results_json(result)["results"], strict=True
    ):
        assert said["score"] == one.score == line[said["metric"]]
        for name in ("trust", "epsilon", "delta", "bits_per_silo", "rounds", "noise_multiplier", "seconds"):
            assert said[name] == line[name]


def test_traces_and_sweeps_exist_in_simulations_on_public_data_only(tmp_path: Path) -> None:
    metrics = read(write_run(compared(), tmp_path / "public") / "metrics.json")
    assert [sorted(point) for point in metrics["results"][0]["trace"][:1]] == [["loss", "round", "score"]]
    assert len(metrics["sweep"]) == 18
    for result in (private(), persons(), regression()):
        text = (write_run(result, tmp_path / "private") / "metrics.json").read_text()
        assert "trace" not in text
        assert "sweep" not in text


def test_settings_and_plans_read_back_equal(tmp_path: Path, result: JobResult) -> None:
    folder = write_run(result, tmp_path / "run")
    assert JobConfig.of(tomllib.loads((folder / "job.toml").read_text())) == result.job
    assert Plan.from_toml((folder / "plan.toml").read_text()) == released(result).trained.plan
    for path in folder.glob("plan-*.toml"):
        (one,) = (r for r in result.results if path.name == f"plan-{r.trust}.toml")
        assert Plan.from_toml(path.read_text()) == one.trained.plan


def test_models_predict_the_same_after_a_round_trip(tmp_path: Path, result: JobResult) -> None:
    folder = write_run(result, tmp_path / "run")
    models = [load_model(folder)]
    # A model without privacy in the released one's place would be handed out for it.
    assert models[0].trust == released(result).trust
    if len(result.results) > 1:
        models = [load_model(folder / f"model-to-compare-{one.trust}.json") for one in result.results]
    X = result.data.X[result.data.test]
    for one, model in zip(result.results, models, strict=True):
        assert model.trust == one.trust
        assert model.to_json() == one.model.to_json()
        np.testing.assert_array_equal(model.predict(X), one.model.predict(X))


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    first = write_run(open_run(), tmp_path / "deep" / "run")
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    folders = [write_run(compared(), tmp_path / "deep" / "run") for _ in range(2)]
    assert [path.name for path in folders] == ["run-2", "run-3"]
    assert {path.name: path.read_bytes() for path in first.iterdir()} == before
    assert read(folders[0] / "statement.json")["run"] == "run-2"


def test_the_folder_comes_from_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_run(compared()) == Path("runs/demo")
    assert write_run(open_run()) == Path("runs/digits-odd-even")


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written: Not a directory"):
        write_run(open_run(), tmp_path / "file" / "run")


def test_a_claimed_folder_is_marked_until_the_run_is_written(tmp_path: Path) -> None:
    result = private()
    claimed = claim_folder(result.job, tmp_path / "deep" / "run", again="by repeating it")
    assert (claimed.path / UNFINISHED).read_text() == "This run has not finished.\nby repeating it"
    assert JobConfig.of(tomllib.loads((claimed.path / "job.toml").read_text())) == result.job
    assert write_run(result, claimed) == claimed.path
    assert {path.name for path in claimed.path.iterdir()} == FILES | {"columns.toml"}
    claimed.give_back()
    assert {path.name for path in claimed.path.iterdir()} == FILES | {"columns.toml"}


def test_a_claimed_folder_is_given_back_with_all_that_was_made_for_it(tmp_path: Path) -> None:
    first = claim_folder(private().job, tmp_path / "deep" / "run")
    second = claim_folder(private().job, tmp_path / "deep" / "run")
    assert second.path.name == "run-2"
    first.give_back()
    assert (tmp_path / "deep" / "run-2").is_dir()
    second.give_back()
    assert (tmp_path / "deep").is_dir()  # made for the first, and empty only now
    (tmp_path / "deep").rmdir()
    claim_folder(private().job, tmp_path / "deep" / "run").give_back()
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_a_run_stays_and_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    claimed = claim_folder(private().job, tmp_path / "run")
    monkeypatch.setattr(TrainedModel, "save", full)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        write_run(private(), claimed)
    claimed.give_back()
    assert {UNFINISHED, "metrics.json", "job.toml"} <= {path.name for path in claimed.path.iterdir()}


def test_a_name_that_is_no_text_is_refused_before_the_run(tmp_path: Path) -> None:
    job = JobConfig(data="x\udcff.csv", label="y", name="n")
    with pytest.raises(DataError, match="cannot be written: surrogates not allowed"):
        claim_folder(job, tmp_path / "run")


def test_a_finished_run_is_not_written_over(tmp_path: Path) -> None:
    claimed = claim_folder(open_run().job, tmp_path / "run")
    write_run(open_run(), claimed)
    before = {path: path.read_bytes() for path in claimed.path.iterdir()}
    with pytest.raises(DataError, match=r"run holds a finished run already"):
        write_run(compared(), claimed)
    assert {path: path.read_bytes() for path in claimed.path.iterdir()} == before
