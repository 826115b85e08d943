"""Files of silos' own models: in their folder, whatever a server calls a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.jobs.deployed.own_model import own_model_path, write_own_model


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
