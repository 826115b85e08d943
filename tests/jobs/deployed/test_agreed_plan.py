"""The plan that parties have agreed to: one file for all of them, whatever their machines calibrate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tacit.errors import ParameterError
from tacit.federation.network.roster import Roster
from tacit.jobs import Job
from tacit.jobs.deployed.federation_job import FederationJob
from tests.jobs.deployed.test_federation_job import digits, roster


@pytest.fixture(scope="module")
def known() -> tuple[FederationJob, Roster]:
    silos = roster(Job(digits()).data.sizes)
    return FederationJob.of(digits(), silos), silos


def written(path: Path, text: str) -> Path:
    path.write_text(f"# What a plan costs.\n{text}", encoding="utf-8")
    return path


def test_a_plan_that_differs_in_the_last_digits_is_the_one_that_is_meant(
    known: tuple[FederationJob, Roster], tmp_path: Path
) -> None:
    job, silos = known
    text = re.sub(
        r"noise_multiplier = ([\d.]+)",
        lambda found: f"noise_multiplier = {float(found[1]) * (1 + 1e-12)!r}",
        job.plan.to_toml(),
    )
    again = FederationJob.of(digits(), silos, plan=written(tmp_path / "plan.toml", text))
    assert again.plan.to_toml() == text != job.plan.to_toml()
    assert again.prepared().plan == again.plan


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (r"noise_multiplier = [\d.]+", "noise_multiplier = 0.5"),
        ("\n        100,", "\n        101,"),
        ('encoding = "', 'encoding = "0'),
        ("parties = 4", "parties = 5"),
    ],
)
def test_another_plan_is_refused(
    known: tuple[FederationJob, Roster], tmp_path: Path, pattern: str, instead: str
) -> None:
    job, silos = known
    text = re.sub(pattern, instead, job.plan.to_toml())
    if pattern.startswith("encoding"):
        text = re.sub(r'encoding = "(.{64}).*"', r'encoding = "\1"', text)
    assert text != job.plan.to_toml()
    with pytest.raises(ParameterError, match="the plan is not the one that job, roster and columns make"):
        FederationJob.of(digits(), silos, plan=written(tmp_path / "plan.toml", text)).prepared()


def test_what_is_no_plan_is_refused_by_the_name_of_its_file(
    known: tuple[FederationJob, Roster], tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match=r"plan\.toml: the plan cannot be read"):
        FederationJob.of(digits(), known[1], plan=written(tmp_path / "plan.toml", "steps = 3"))
    with pytest.raises(ParameterError, match=r"the plan .*none\.toml cannot be read: No such file"):
        FederationJob.of(digits(), known[1], plan=tmp_path / "none.toml")
