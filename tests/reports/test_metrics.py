"""Metrics: one form, which is read as strictly as it is written."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import DataError
from tacit.jobs import JobResult
from tacit.reports import read_metrics, write_run
from tacit.reports.metrics import METRICS_VERSION, metrics
from tests.reports.runs import compared, open_run, persons, private, regression


@pytest.mark.parametrize("run", [compared, private, persons, regression, open_run])
def test_what_is_written_is_read_back_equal(run: Any, tmp_path: Path) -> None:
    result: JobResult = run()
    folder = write_run(result, tmp_path / "run")
    assert read_metrics(folder) == read_metrics(folder / "metrics.json") == metrics(result)
    assert [one.scores for one in read_metrics(folder).results] == [one.scores for one in result.results]


def test_it_says_what_the_scores_are_about() -> None:
    said, data = metrics(private()).data, private().data
    assert (said.name, said.label, said.public) == ("patients.csv", "ill", False)
    assert data.description is not None
    assert said.description == hashlib.sha256(data.description).hexdigest()
    numbers = b"".join(int(k).to_bytes(8, "little") for k in data.test)
    assert said.held_out == hashlib.sha256(numbers).hexdigest()
    public = metrics(compared()).data
    assert (public.name, public.label, public.public, public.description) == (
        "digits-odd-even", None, True, None,
    )  # fmt: skip
    assert np.unique([public.held_out, said.held_out]).size == 2


def test_another_version_or_form_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = write_run(open_run(), tmp_path / "run")
    file = folder / "metrics.json"
    written = json.loads(file.read_text())
    assert written["version"] == METRICS_VERSION == 4

    def refused(text: str, match: str) -> None:
        file.write_text(text)
        with pytest.raises(DataError, match=match) as caught:
            read_metrics(folder)
        assert "\n" not in str(caught.value)

    refused(json.dumps({"version": 1, "results": []}), "is of version 1, this tacit reads version 4")
    refused(json.dumps(written | {"more": 1}), "unknown field `more`")
    refused(json.dumps({k: v for k, v in written.items() if k != "run"}), "missing required field `run`")
    refused("[]", "holds no numbers of a run")
    refused("{", "holds no numbers of a run")
    scores = written["results"][0]["scores"]
    written["results"][0]["scores"] = scores | {"task": "ranking"}
    refused(json.dumps(written), "Invalid value 'ranking'")
    file.unlink()
    with pytest.raises(DataError, match="no finished run"):
        read_metrics(folder)
    with pytest.raises(DataError, match="no finished run"):
        read_metrics(tmp_path / "nothing")


def test_every_number_is_finite(tmp_path: Path) -> None:
    def refuse(word: str) -> float:
        raise AssertionError(word)

    for result in (compared(), persons(), regression()):
        json.loads(msgspec.json.encode(metrics(result)), parse_constant=refuse)
