"""From data to silos: nothing is lost, nothing is both trained on and held out, persons stay whole."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.errors import DataError, ParameterError, PrivacyWarning, UnknownNameError
from tacit.jobs import Job, JobConfig, JobData, load_job_data
from tests.data.test_datasets import needs
from tests.jobs.tables import SILOS, write_charges, write_patients

DIGITS = 1797


def of_table(path: Path, **settings: Any) -> JobData:
    return load_job_data(JobConfig(data=str(path), label=settings.pop("label", "ill"), **settings))


def check_partition(data: JobData, n: int) -> None:
    """Every record is in exactly one silo's training half or held out, and every silo trains."""
    records = np.concatenate([*data.train, data.test])
    assert sorted(records.tolist()) == list(range(n))
    assert min(map(len, data.train)) > 0
    assert len(data.test) > 0
    assert len(data.silo_names) == len(data.train) == len(set(data.silo_names))


def halves_of_persons(data: JobData) -> tuple[set[int], set[int]]:
    assert data.persons is not None
    return set(data.persons[np.concatenate(data.train)].tolist()), set(data.persons[data.test].tolist())


@pytest.mark.parametrize(
    ("silos", "count"),
    [("auto", 10), ("iid:7", 7), ("pairs", 25), ("label", 10), ("mixture:0.3", 10), ("dirichlet:4:0.5", 4)],
)
def test_splits_cover_the_data_and_hold_out_a_fifth(silos: str, count: int) -> None:
    data = load_job_data(JobConfig(silos=silos, seed=3))
    check_partition(data, DIGITS)
    assert len(data.train) == count
    assert len(data.test) == pytest.approx(0.2 * DIGITS, abs=count)
    assert data.public


def test_the_silo_column_makes_the_silos(tmp_path: Path) -> None:
    path = write_patients(tmp_path)
    data = of_table(path, silo_column="site", seed=0)
    check_partition(data, 180)
    site = pd.read_csv(path).site.to_numpy()
    for name, index in zip(data.silo_names, data.train, strict=True):
        assert set(site[index]) == {name}
    assert data.silo_names == sorted(SILOS)
    assert not data.public
    assert data.notes == ()


def test_a_table_without_a_silo_column_is_one_silo(tmp_path: Path) -> None:
    data = of_table(write_patients(tmp_path), seed=0)
    check_partition(data, 180)
    assert len(data.train) == 1


def test_a_seed_or_the_name_of_the_run_fixes_the_split() -> None:
    seeded = [load_job_data(JobConfig(seed=5)).test.tolist() for _ in range(2)]
    assert seeded[0] == seeded[1] != load_job_data(JobConfig(seed=6)).test.tolist()
    # A run that was interrupted goes on under its name, with the same records held out.
    named = [load_job_data(JobConfig(name="a")).test.tolist() for _ in range(2)]
    assert named[0] == named[1] != load_job_data(JobConfig(name="b")).test.tolist()


@pytest.mark.parametrize("silos", ["label", "pairs", "mixture:0.5", "dirichlet:3:1", "sorted:4"])
def test_private_records_are_never_dealt_by_their_labels(tmp_path: Path, silos: str) -> None:
    with pytest.raises(ParameterError, match="silos must be 'column' or 'iid:N' for a table without a seed"):
        of_table(write_patients(tmp_path), silos=silos)


def test_sizes_count_what_is_protected(tmp_path: Path) -> None:
    path = write_patients(tmp_path, visits=3, per_silo=20)
    assert of_table(path, silo_column="site", seed=1).sizes == [48, 48, 48]
    assert of_table(path, silo_column="site", person="patient", seed=1).sizes == [16, 16, 16]


def test_no_person_is_on_both_sides(tmp_path: Path) -> None:
    path = write_patients(tmp_path, visits=4, per_silo=30)
    data = of_table(path, silo_column="site", person="patient", seed=1)
    check_partition(data, 360)
    train, test = halves_of_persons(data)
    assert not train & test
    assert (len(train), len(test)) == (72, 18)


def test_another_id_of_one_person_moves_nobody_else_between_the_halves(tmp_path: Path) -> None:
    path = write_patients(tmp_path, visits=2, per_silo=30)
    before = of_table(path, silo_column="site", person="patient", seed=1)
    frame = pd.read_csv(path).astype({"patient": str})
    frame.loc[frame.patient == "7", "patient"] = "zzz"
    frame.to_csv(path, index=False)
    after = of_table(path, silo_column="site", person="patient", seed=1)
    assert sorted(before.test) == sorted(after.test)


def test_a_person_in_two_silos_is_held_out_of_both_and_nobody_is_told(tmp_path: Path) -> None:
    path = write_patients(tmp_path, visits=4, per_silo=30)
    frame = pd.read_csv(path)
    frame["site"] = np.array(SILOS)[np.arange(len(frame)) % 3]  # everybody visits every site
    frame.to_csv(path, index=False)
    data = of_table(path, silo_column="site", person="patient", seed=1)  # a warning would be an error here
    check_partition(data, 360)
    train, test = halves_of_persons(data)
    assert not train & test
    assert len(test) == 18


def test_dealing_records_deals_whole_persons(tmp_path: Path) -> None:
    data = of_table(write_patients(tmp_path, visits=3), person="patient", silos="iid:5", seed=1)
    check_partition(data, 540)
    assert data.persons is not None
    holders = [set(data.persons[index].tolist()) for index in data.train]
    assert sum(map(len, holders)) == len(set(chain.from_iterable(holders)))
    with pytest.raises(ParameterError, match="persons are kept whole"):
        of_table(write_patients(tmp_path, visits=3), person="patient", silos="label", seed=1)


def test_regression_targets_are_scaled_and_never_split_by_value(tmp_path: Path) -> None:
    path = write_charges(tmp_path)
    data = of_table(path, label="charges", task="regression", silos="sorted:4", seed=0)
    check_partition(data, 240)
    assert (data.classes, data.target) == ((), (0.0, 60000.0))
    charges = pd.read_csv(path).charges.to_numpy()
    np.testing.assert_allclose(data.y, charges / 30000 - 1)
    tops = [data.y[index].max() for index in data.train]
    assert tops == sorted(tops)
    for silos in ("label", "pairs", "mixture:0.5", "dirichlet:3:1"):
        with pytest.raises(ParameterError, match="for regression"):
            of_table(path, label="charges", task="regression", seed=0, silos=silos)


def test_bounds_read_off_the_data_are_noted(tmp_path: Path) -> None:
    path = write_patients(tmp_path, public=False)
    with pytest.warns(PrivacyWarning, match="read off the data"):
        data = of_table(path, silo_column="site", seed=0)
    assert data.read_off == ("patient", "age", "bmi", "ill")
    assert data.notes == ()


@pytest.mark.parametrize("silos", ["iid", "iid:a", "iid:2.5", "iid:2:3", "pairs:3", "dirichlet:4", "mixture"])
def test_splits_with_wrong_numbers_are_refused(silos: str) -> None:
    with pytest.raises(ParameterError, match="silos must"):
        load_job_data(JobConfig(silos=silos))


def test_what_the_data_do_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'digits'"):
        load_job_data(JobConfig(data="digit"))
    with pytest.raises(ParameterError, match="needs silo_column"):
        load_job_data(JobConfig(silos="column"))
    with pytest.raises(ParameterError, match="has no persons"):
        load_job_data(JobConfig(person="patient"))
    path = write_patients(tmp_path)
    with pytest.raises(DataError, match="did you mean 'site'"):
        of_table(path, silo_column="sites")


def test_a_silo_that_cannot_hold_anything_out_is_refused(tmp_path: Path) -> None:
    path = write_patients(tmp_path, per_silo=2)
    for unit, more in (("records", {}), ("persons", {"person": "patient"})):
        with pytest.raises(
            DataError, match=rf"too small to hold out a share test_fraction = 0\.2 of its {unit}"
        ):
            of_table(path, silo_column="site", seed=0, **more)


def test_silos_that_print_alike_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{k},{k % 2},{site}" for k, site in enumerate(["a\x01", "a\\x01"] * 20)]
    path.write_text("\n".join(["x,y,site", *rows]))
    read_off = pytest.warns(PrivacyWarning, match="read off the data")
    with read_off, pytest.raises(DataError, match="must differ as they are printed"):
        Job(JobConfig(data=str(path), label="y", silo_column="site", seed=0))


def test_a_preset_is_a_data_set_with_its_attributes() -> None:
    needs("adult")
    data = load_job_data(JobConfig(data="adult-ch6", sensitive="sex", test_fraction=0.25))
    check_partition(data, 45_222)
    assert data.X.shape[1] == len(data.feature_names) == 102
    assert set(data.sensitive["sex"]) == {"Female", "Male"}
    assert data.public
    with pytest.raises(UnknownNameError, match="sensitive of adult-ch6 must be one of gender, got 'race'"):
        load_job_data(JobConfig(data="adult-ch6", sensitive="race"))
    with pytest.raises(UnknownNameError, match="did you mean 'adult-ch6'"):
        JobConfig(data="adult-ch7")
