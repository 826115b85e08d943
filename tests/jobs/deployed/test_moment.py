"""A federation of tables without bounds: silos make of their cells what its description says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.errors import DataError
from tacit.jobs.deployed.configs import read_config
from tacit.jobs.deployed.silo_config import SiloConfig
from tacit.jobs.deployed.silo_job import SiloJob
from tacit.learning.objective import Records

FOUND = ["federation", "init", "--out", "fed", "--data", "wards/", "--job", "job.toml"]


@pytest.fixture
def wards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables, of which a column has bounds that nobody needs, and a job with a moment."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wards").mkdir()
    rng = np.random.default_rng(8)
    for name in "ab":
        X = rng.standard_t(3, size=(40, 2))
        frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "y": X @ [1, -1]}).astype(str)
        frame.loc[5, "x"] = "1e400"
        frame.to_csv(f"wards/{name}.csv", index=False)
    Path("wards/columns.toml").write_text(
        '[columns.x]\nkind = "unbounded"\n[columns.z]\nkind = "numeric"\nlower = -1\nupper = 1\n'
    )
    Path("job.toml").write_text(
        'label = "y"\ntask = "regression"\nmoment = "4:10"\ndelta = 1e-4\nepsilon = 4.0\nrounds = 3\n'
    )
    return tmp_path


def test_a_silo_reads_its_own_table_without_bounds(wards: Path) -> None:
    assert main([*FOUND, "--name", "ward"]) == 0
    config = read_config(Path("fed/a.toml"), SiloConfig)
    job = SiloJob.of(config)
    assert isinstance(job.units, Records)
    frame = pd.read_csv("wards/a.csv")
    np.testing.assert_array_equal(job.units.X[:5, 0], frame.x[:5])
    np.testing.assert_array_equal(job.units.X[:, 1][frame.index != 5], frame.z[frame.index != 5])
    assert not job.units.X[5].any()
    assert job.priced().price.epsilon <= 4.0
    frame.assign(more=1).to_csv("wards/a.csv", index=False)
    with pytest.raises(DataError, match="leaves open more"):
        SiloJob.of(config)


def test_a_founder_describes_every_column(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("wards/columns.toml").write_text('[columns.x]\nkind = "unbounded"\n')
    assert main([*FOUND, "--name", "ward"]) == 2
    error = capsys.readouterr().err
    assert "columns must describe every column" in error
    assert "it leaves open z" in error
