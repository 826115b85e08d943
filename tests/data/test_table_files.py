"""One file per silo: which files are meant, and one table of all of them, each read for itself."""

from __future__ import annotations

import gzip
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.data import Categorical, ColumnsSpec, Ignore, Label, Numeric, find_tables, load_table
from tacit.errors import DataError, ParameterError, PrivacyWarning
from tests.data.make_clinics import PATH

SPEC = ColumnsSpec(
    columns={
        "age": Numeric(lower=0, upper=100),
        "ward": Categorical(categories=("01", "02")),
        "id": Ignore(),
    },
    label=Label(classes=(0, 1)),
)
A, B = "id,age,ward,y\n7,20,01,0\n8,70,02,1\n", "y;ward;age;id\n1;02;12,5;7\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two wards, with what else may lie there."""
    monkeypatch.chdir(tmp_path)
    wards = tmp_path / "wards"
    wards.mkdir()
    (wards / "b.csv").write_text(B)
    (wards / "a.csv.gz").write_bytes(gzip.compress(A.encode()))
    (wards / "silos.ledger").mkdir()
    (wards / "silos.ledger" / "a.ledger").write_text("no table")
    (wards / "columns.toml").write_text(SPEC.to_toml())
    for name in (".b.csv", "notes.txt", "c.csv.part"):
        (wards / name).write_text("no table")
    (wards / "deeper.csv").mkdir()
    return wards


def test_a_folder_a_pattern_and_a_list_are_one_data_set(folder: Path) -> None:
    files = (Path("wards/a.csv.gz"), Path("wards/b.csv"))
    names: tuple[Path | str | list[Path | str], ...] = (
        "wards",
        "wards/",
        Path("wards"),
        "wards/*.csv*",
        "wards/*",
        ["wards/b.csv", "wards/a.csv.gz"],
        ["./wards/[b-z].csv", Path("wards/a.csv.gz")],
        "**/*.csv*",
    )
    for said in names:
        found = find_tables(said)
        assert found.files == files, said
        assert (found.silos, found.together) == (("a", "b"), True)
        assert (found.folder, found.description) == (Path("wards"), Path("wards/columns.toml"))
        np.testing.assert_allclose(load_table(said, label="y").X[:, 0], [-0.6, 0.4, -0.75])


def test_one_file_is_one_table(folder: Path) -> None:
    found = find_tables("wards/a.csv.gz")
    assert (found.silos, found.together) == (("a",), False)
    assert find_tables("wards/a*").together  # a pattern says that there may be more
    table = load_table("wards/a*", label="y")
    assert (table.silos, table.silo_names, table.bounds_source) == (None, (), ())
    odd = folder / "x[1].csv"
    odd.write_text(A)
    assert find_tables(odd).files == (odd,)


def test_one_table_has_one_description_however_it_is_named(folder: Path) -> None:
    """Its own before that of its folder; what is not there yet is looked for where it would be written."""
    ways = ("wards/a.csv.gz", "wards/a*", "wards/")
    (folder / "b.csv").unlink()
    own, shared = Path("wards/a.columns.toml"), Path("wards/columns.toml")
    for said in ways:
        assert find_tables(said).description == shared
        assert find_tables(said).described() == SPEC
    own.write_text('person = "id"\n')
    for said in ways:
        assert find_tables(said).described() == ColumnsSpec(person="id")
        assert find_tables(said).described(shared) == SPEC
    own.unlink()
    shared.unlink()
    assert [find_tables(said).description for said in ways] == [own, shared, shared]
    assert all(find_tables(said).described() == ColumnsSpec() for said in ways)
    with pytest.raises(DataError, match=r"column description none\.toml cannot be read"):
        find_tables("wards").described("none.toml")


def test_files_of_several_folders_have_the_folder_above(folder: Path) -> None:
    Path("other/deep").mkdir(parents=True)
    shutil.copy("wards/b.csv", "other/deep/c.csv")
    for more in ("other/deep/c.csv", Path("other/deep/c.csv").absolute()):
        found = find_tables(["wards", more])
        assert (found.silos, found.folder) == (("a", "b", "c"), Path())
    inside = find_tables(["wards/b.csv", folder.absolute() / "a.csv.gz"])
    assert inside.folder.resolve() == folder


def test_files_that_cannot_be_told_apart_are_refused(folder: Path) -> None:
    cases: tuple[tuple[list[str], str], ...] = (
        (["wards", "wards/b.csv"], "two tables have the name 'b'.*wards/b.csv and wards/b.csv"),
        (["wards", "a.parquet"], r"two tables have the name 'a'.*a\.parquet and wards/a\.csv\.gz; rename"),
        (["wards", "latest.csv"], "latest.csv are the same file, which is one silo"),
        (["wards", "hard.csv"], "hard.csv are the same file, which is one silo"),
        (["empty"], r"the folder empty holds no table; the names of tables end in \.csv"),
        (["wards/*.tsv"], r"the pattern 'wards/\*\.tsv' matches no table"),
        ([], "no table is named"),
    )
    Path("a.parquet").write_bytes(b"PAR1")
    Path("latest.csv").symlink_to("wards/b.csv")
    os.link("wards/b.csv", "hard.csv")
    Path("empty").mkdir()
    for said, message in cases:
        with pytest.raises(DataError, match=message):
            find_tables(said)


def test_every_file_is_read_as_if_it_were_alone(folder: Path) -> None:
    """Separator, packing, order of columns and decimal commas are each file's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = load_table("wards", label="y", person_column="id", sensitive=["ward"])
        alone = [load_table(f"wards/{name}", label="y", person_column="id", sensitive=["ward"], columns=SPEC)
                 for name in ("a.csv.gz", "b.csv")]  # fmt: skip
    np.testing.assert_array_equal(table.X, np.concatenate([one.X for one in alone]))
    np.testing.assert_array_equal(table.y, np.concatenate([one.y for one in alone]))
    assert table.silos is not None
    assert table.silos.tolist() == ["a", "a", "b"]
    assert (table.silo_names, table.bounds_source) == (("a", "b"), ())
    assert table.persons is not None
    assert table.persons.tolist() == ["7", "8", "7"]
    assert table.sensitive["ward"].tolist() == ["01", "02", "02"]


def test_records_without_an_id_are_one_person_of_their_file(folder: Path) -> None:
    (folder / "b.csv").write_text(B + "0;01;30;\n1;01;31;NULL\n1;02;32;\n")
    (folder / "a.csv.gz").write_bytes(gzip.compress((A + ",1,01,1\n").encode()))
    table = load_table("wards", label="y", person_column="id")
    assert table.persons is not None
    assert table.persons.tolist() == ["7", "8", " a", "7", " b", "NULL", " b"]


def test_what_no_description_names_is_read_off_all_files_together(folder: Path) -> None:
    spec = ColumnsSpec(columns={"id": Ignore()})
    with pytest.warns(PrivacyWarning, match="of age, ward, y were read off the data") as caught:
        table = load_table("wards", label="y", columns=spec)
    assert len(caught) == 1
    assert table.columns.columns["age"] == Numeric(lower=12.5, upper=70)
    assert table.columns.columns["ward"] == Numeric(lower=1, upper=2)
    assert table.classes == ("0", "1")
    assert table.bounds_source == ("age", "ward", "y")


def test_a_column_that_a_file_lacks_is_named_with_the_file(folder: Path) -> None:
    (folder / "b.csv").write_text("y;age;id\n1;2;3\n")
    with pytest.raises(DataError, match=r"^wards/b\.csv: the table has no such column: .*'ward'"):
        load_table("wards", label="y")
    open_spec = ColumnsSpec(columns={"age": SPEC.columns["age"]}, label=SPEC.label)
    with pytest.raises(DataError, match=r"^wards/b\.csv has no column 'ward', which wards/a\.csv\.gz has"):
        load_table("wards", label="y", columns=open_spec)
    (folder / "b.csv").write_text("y;age;id;ward;more\n1;2;3;01;4\n")
    with pytest.raises(DataError, match=r"^wards/a\.csv\.gz has no column 'more', which wards/b\.csv has"):
        load_table("wards", label="y")
    (folder / "b.csv").write_text("yy;age;id;ward\n1;2;3;01\n")
    with pytest.raises(DataError, match=r"^wards/b\.csv: .*label must be one of .* did you mean 'yy'"):
        load_table("wards", label="y")


def test_several_files_have_no_silo_column(folder: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"silo_column must be None where every file is a silo, got 'ward'"
    ):
        load_table("wards", label="y", silo_column="ward")
    assert load_table("wards/a*", label="y", silo_column="ward").silo_names == ("01", "02")


def test_types_of_one_file_round_no_id_of_another(tmp_path: Path) -> None:
    """Whole numbers, fractions, text and nulls of one column: no cell goes through a type of all of them."""
    pytest.importorskip("pyarrow")
    big = 10**18 + 1
    ids = {
        "ints": pd.array([big, big + 1], dtype="Int64"),
        "nulls": pd.array([big + 2, None], dtype="Int64"),
        "floats": pd.array([1.5, 2.0], dtype="Float64"),
        "small": pd.array([np.float32(0.1), 1.0], dtype="Float32"),
        "texts": pd.array([str(big + 3), "007"], dtype="string"),
        "flags": pd.array([True, None], dtype="boolean"),
        "days": pd.to_datetime(["2020-01-01", "2021-01-01"]),
    }
    for name, cells in ids.items():
        frame = pd.DataFrame({"id": cells, "age": [1, 2], "ward": cells, "y": [0, 1]})
        frame.to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "words.csv").write_text(f"id,age,ward,y\n{big + 4},1,x,0\n01,2,x,1\n")
    with pytest.warns(PrivacyWarning, match="of ward were"):
        table = load_table(
            tmp_path,
            label="y",
            person_column="id",
            columns=ColumnsSpec(columns={"age": SPEC.columns["age"]}, label=SPEC.label),
        )
    said = {
        "days": ["2020-01-01", "2021-01-01"],
        "flags": ["True", " flags"],
        "floats": ["1.5", "2"],
        "ints": [str(big), str(big + 1)],
        "nulls": [str(big + 2), " nulls"],
        "small": ["0.1", "1"],
        "texts": [str(big + 3), "007"],
        "words": [str(big + 4), "01"],
    }
    assert table.persons is not None
    assert table.persons.tolist() == [cell for cells in said.values() for cell in cells]
    wards = table.columns.columns["ward"]
    assert isinstance(wards, Categorical)
    assert {str(big), str(big + 1), str(big + 3), "0.1", "1.5", "2020-01-01"} <= set(
        map(str, wards.categories)
    )


def test_a_folder_of_the_clinics_is_the_table_by_its_silo_column(tmp_path: Path) -> None:
    frame = pd.read_csv(PATH, dtype=str, keep_default_na=False)
    for site, rows in frame.groupby("site"):
        rows.drop(columns="site").to_csv(tmp_path / f"{site}.csv", index=False)
    shutil.copy(PATH.with_name("clinics.columns.toml"), tmp_path / "columns.toml")
    one = load_table(PATH, label="y", silo_column="site", person_column="patient")
    many = load_table(tmp_path, label="y", person_column="patient")
    assert one.silos is not None
    assert many.silos is not None
    assert many.silo_names == one.silo_names
    assert many.feature_names == one.feature_names
    order = np.argsort(one.silos, kind="stable")
    np.testing.assert_array_equal(many.X, one.X[order])
    np.testing.assert_array_equal(many.y, one.y[order])
