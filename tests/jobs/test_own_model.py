"""Files of silos' own models: in their folder, whatever a server calls a run."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.jobs.deployed.own_model import own_model_path, write_own_model
from tacit.jobs.deployed.silo_job import SiloJob
from tacit.learning import make_algorithm
from tacit.learning.algorithms import AdaPeD
from tacit.ledger.private_files import replace_private


class Untouched:
    """A silo that took part in no round, whose terms nobody asks for a model."""

    facts = None

    def kept(self, _statistic: str) -> Any:
        return np.zeros((1, 4))


@pytest.mark.parametrize(
    "run", ["lab", "lab-2026.1 b", "../consent", "/etc/x", "a/b", "..", "a\\b", "ü" * 200]
)
def test_a_run_names_a_file_of_the_folder_and_no_other(run: str, tmp_path: Path) -> None:
    path = own_model_path(tmp_path, run)
    assert path.resolve().parent == (tmp_path / "personal").resolve()
    assert len(path.name.encode()) <= 255
    assert (path.name == f"{run}.json") == (run in ("lab", "lab-2026.1 b", ".."))
    assert path != own_model_path(tmp_path, path.stem + "x")


def test_who_took_part_in_no_round_has_no_model_of_its_own(tmp_path: Path) -> None:
    silo: Any = Untouched()
    assert write_own_model(silo, "round", terms=silo, run="lab", state=tmp_path) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ParameterError("the folder is no folder.")]
)
def test_a_full_disk_holds_up_no_answer(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The model is stored with the answer; its file is written with the next one."""
    written: list[str] = []
    full = [True]

    def write(_silo: Any, statistic: str, **_: Any) -> None:
        if full.pop():
            raise error
        written.append(statistic)

    monkeypatch.setattr("tacit.jobs.deployed.silo_job.write_own_model", write)
    job: Any = SimpleNamespace(
        _settings=SimpleNamespace(algorithm=make_algorithm("adaped")),
        config=SimpleNamespace(state=tmp_path),
        job=SimpleNamespace(terms=None),
    )
    with caplog.at_level(logging.ERROR, logger="tacit.silo"):
        SiloJob._keep_own_model(job, job, "lab")
    assert "own model is not written" in caplog.text
    full[:] = [False]
    SiloJob._keep_own_model(job, job, "lab")
    assert written == [AdaPeD.personal]


def test_half_of_a_file_is_taken_away_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.json"
    replace_private(path, b"whole")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space") as raised:
        replace_private(path, b"half")
    assert raised.value.filename == str(path)  # or a person reads "a file: No space left on device"
    assert [one.name for one in tmp_path.iterdir()] == ["model.json"]
    assert path.read_bytes() == b"whole"
