"""Tables: what comes in, what is refused, and that bounds read off the data are never silent."""

from __future__ import annotations

import csv
import importlib.util
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import tacit
from tacit.data import (
    Categorical,
    Column,
    ColumnsSpec,
    Label,
    LabelBounds,
    Numeric,
    build_table,
    load_table,
    read_silo_names,
    read_table,
    sidecar_path,
)
from tacit.errors import DataError, PrivacyWarning, UnknownNameError
from tests.data.make_clinics import PATH, SITES, make_clinics

AGE = Numeric(lower=0, upper=100)
SPEC = ColumnsSpec(columns={"age": AGE}, label=Label(classes=(0, 1)))
SMALL = pd.DataFrame({"age": [20, 50, 120], "y": [0, 1, 1], "site": ["b", "a", "b"], "id": [7, 7, 3]})


def test_clinics_is_what_its_generator_makes() -> None:
    pd.testing.assert_frame_equal(pd.read_csv(PATH), make_clinics())
    assert [path.name for path in PATH.parent.glob("*.csv")] == ["clinics.csv"]


def test_clinics_has_public_bounds_only_and_can_be_learned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = load_table(PATH, label="y", silo_column="site", person_column="patient")
    assert table.silo_names == tuple(sorted(SITES))
    assert table.bounds_source == ()
    assert table.feature_names == ("age", "bmi", "blood_pressure", "smoker=no", "smoker=yes")
    assert 700 <= table.n <= 900
    assert table.persons is not None
    assert np.unique(table.persons, return_counts=True)[1].max() <= 3
    assert table.silos is not None
    assert np.unique(table.silos, return_counts=True)[1].min() >= 150
    even = np.arange(table.n) % 2 == 0
    model = LogisticRegression().fit(table.X[even], table.y[even])
    assert roc_auc_score(table.y[~even], model.decision_function(table.X[~even])) > 0.75


def test_the_table_is_encoded_with_the_description() -> None:
    table = build_table(SMALL, label="y", silo_column="site", person_column="id", columns=SPEC)
    np.testing.assert_allclose(table.X, [[-0.6], [0.0], [1.0]])
    assert table.y.tolist() == [0, 1, 1]
    assert table.classes == (0, 1)
    assert table.silos is not None
    assert table.silos.tolist() == ["b", "a", "b"]
    assert table.silo_names == ("a", "b")
    assert table.persons is not None
    assert table.persons.tolist() == ["7", "7", "3"]
    assert (table.n, table.dim, table.bounds_source, table.label_bounds) == (3, 1, (), None)


def test_bounds_read_off_the_data_are_warned_of_and_recorded() -> None:
    with pytest.warns(PrivacyWarning, match="age, y were read off the data"):
        table = build_table(SMALL[["age", "y"]], label="y")
    assert table.bounds_source == ("age", "y")
    assert table.columns.columns["age"] == Numeric(lower=20.0, upper=120.0)
    with pytest.warns(PrivacyWarning, match="of id were"):
        partly = build_table(SMALL, label="y", silo_column="site", columns=SPEC)
    assert partly.bounds_source == ("id",)
    assert partly.feature_names == ("age", "id")


def test_sensitive_columns_are_no_features() -> None:
    frame = SMALL.assign(sex=["f", "m", "f"]).drop(columns=["site", "id"])
    table = build_table(frame, label="y", sensitive=("sex",), columns=SPEC)
    assert table.feature_names == ("age",)
    assert table.sensitive["sex"].tolist() == ["f", "m", "f"]


def test_a_label_described_as_a_column_will_do() -> None:
    spec = ColumnsSpec(columns={"age": AGE, "y": Categorical(categories=(1, 0))})
    assert build_table(SMALL[["age", "y"]], label="y", columns=spec).y.tolist() == [1, 0, 0]


def test_a_description_of_another_label_is_not_used() -> None:
    spec = ColumnsSpec(columns={"age": AGE}, label=Label(classes=("x", "z"), column="other"))
    with pytest.warns(PrivacyWarning, match="of y were"):
        assert build_table(SMALL[["age", "y"]], label="y", columns=spec).classes == ("0", "1")


def test_inferred_classes_keep_numeric_order() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3], "y": [10, 2, 10]})
    with pytest.warns(PrivacyWarning):
        assert build_table(frame, label="y").classes == ("2", "10")


def test_regression_targets_are_scaled() -> None:
    spec = ColumnsSpec(columns={"age": AGE}, label=LabelBounds(lower=0, upper=2))
    table = build_table(SMALL[["age", "y"]], label="y", columns=spec, task="regression")
    assert table.y.tolist() == [-1.0, 0.0, 0.0]
    assert table.label_bounds == (0.0, 2.0)
    assert table.classes == ()
    with pytest.raises(DataError, match="do not fit the task classification"):
        build_table(SMALL[["age", "y"]], label="y", columns=spec)


def test_one_silo_may_hold_one_of_the_public_classes() -> None:
    frame = pd.DataFrame({"age": [1, 2], "y": [1, 1]})
    assert build_table(frame, label="y", columns=SPEC).y.tolist() == [1, 1]
    with pytest.raises(DataError, match="at least two classes"):
        build_table(frame, label="y", columns=ColumnsSpec(columns={"age": AGE}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": "yy"}, "label must be one of .* did you mean 'y'"),
        ({"label": "y", "silo_column": "sit"}, "silo_column must be one of .* did you mean 'site'"),
        ({"label": "y", "sensitive": ("sex",)}, "sensitive column must be one of"),
        ({"label": "y", "silo_column": "y"}, "cannot be both label and silo_column"),
    ],
)
def test_wrong_roles_are_refused(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build_table(SMALL, columns=SPEC, **arguments)  # type: ignore[arg-type] # a table of cases


def test_unusable_tables_are_refused() -> None:
    with pytest.raises(DataError, match="no records"):
        build_table(SMALL[:0], label="y", columns=SPEC)
    with pytest.raises(DataError, match="same name"):
        build_table(pd.concat([SMALL, SMALL], axis=1), label="y", columns=SPEC)
    for missing in (None, "", " NA "):
        frame = SMALL.drop(columns="id").assign(site=pd.Series(["a", missing, "b"]))
        with pytest.raises(DataError, match="'site' says who holds"):
            build_table(frame, label="y", silo_column="site", columns=SPEC)
    with pytest.raises(DataError, match="fractions"):
        build_table(SMALL.assign(y=[0.5, 1.0, 2.0]), label="y")
    with pytest.raises(DataError, match="holds text"):
        build_table(SMALL.assign(y=["a", "b", "a"]), label="y", task="regression")
    with pytest.raises(UnknownNameError, match="did you mean 'regression'"):
        build_table(SMALL, label="y", task="regresion")  # type: ignore[arg-type] # the misspelling is the case


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    cases = {
        "empty.csv": (b"", "is empty"),
        "header.csv": (b"a,b\n", "no records"),
        "blank.csv": (b"\n \n", "is empty"),
        "long.csv": (b"a,b\n1,2\nhunter2,3,4,5\n", r"long\.csv, line 3: 4 fields, the header has 2"),
        "short.csv": (b'a,b\n"1\n2",2\n\nhunter2\n', r"short\.csv, line 5: 1 fields, the header has 2"),
        "shifted.csv": (b"a,b\n1,hunter2,\n3,4,\n", r"shifted\.csv, line 2: 3 fields"),
        "twice.csv": (b"a,b, a \n1,2,3\n", "two columns of the same name, 'a'"),
        "open.csv": (b'a,b\n1,2\n3,"hunter2\n5,6\n', r"open\.csv, line 3: a double quote"),
        "behind.csv": (b'a,b\n1,"hunter2" x\n', r"behind\.csv, line 2: a double quote"),
        "header.csv2.csv": (b'"a,b\n1,2\n', "line 1: a double quote"),
        "latin.csv": (b"a,\xe9\nhunter2,2\n", r"latin\.csv: the header is not UTF-8"),
        "table.xlsx": (b"x", "must be a file that ends in .csv, .csv.gz"),
    }
    for name, (content, message) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message) as caught:
            read_table(tmp_path / name)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(DataError, match=r"absent\.csv is not there"):
        read_table(tmp_path / "absent.csv")


def test_what_a_csv_may_hold_besides(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf\n age , "si,te",\r\n01, "x ""y"" z",\r\n\r\n   \r\n,, \r\n')
    frame = read_table(path)
    assert frame.columns.tolist() == ["age", "si,te", "Unnamed: 2"]
    assert frame.to_numpy().tolist() == [["01", 'x "y" z', ""], ["", "", ""]]
    path.write_text("age\n1\n\n2")  # in one column a line without text is a missing cell
    assert read_table(path)["age"].tolist() == ["1", "", "2"]
    numbers = read_table(path, numeric=["age", "other"])["age"]
    np.testing.assert_array_equal(numbers, [1.0, np.nan, 2.0])


def test_one_long_or_undecodable_cell_of_a_csv_is_no_error(tmp_path: Path) -> None:
    """Not even in a column that nobody uses."""
    path = tmp_path / "t.csv"
    odd = [b"9" * 131_073, b"\xe9", b"1\xe9", b"\xff\xfe", b"\xe2\x82"]
    limit = csv.field_size_limit()
    for cell in odd:
        path.write_bytes(b"a,b\n1,x\n2,%b\n%b,y\n" % (cell, cell))
        frame = read_table(path, numeric=["a"])
        assert frame["a"].tolist()[:2] == [1.0, 2.0]
        assert frame["b"].tolist()[::2] == ["x", "y"]
        assert frame["b"][1] == cell.decode(errors="replace")
        np.testing.assert_equal(frame["a"][2], np.inf if cell[0] == ord("9") else np.nan)
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("good", [4999, 5000, 5001, 12_000])
def test_lines_are_counted_through_all_chunks(good: int, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * good + "3\n")
    with pytest.raises(DataError, match=f"line {good + 2}: 1 fields"):
        read_table(path)


def test_described_silos_are_public_and_others_are_in_the_first() -> None:
    spec = ColumnsSpec(
        columns={"age": AGE, "site": Categorical(categories=("b", " c ", "a"), merge={"B": "b"})},
        label=Label(classes=(0, 1)),
    )
    frame = pd.DataFrame({"age": [1] * 5, "y": [0, 1, 1, 0, 1], "site": ["a ", "B", "elsewhere", None, "c"]})
    table = build_table(frame, label="y", silo_column="site", columns=spec)
    assert table.silo_names == ("b", "c", "a")
    assert table.silos is not None
    assert table.silos.tolist() == ["a", "b", "b", "b", "c"]


def test_identifiers_keep_their_digits_whatever_the_description_says(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    ids = [str(10**18 + k) for k in range(3)]
    path.write_text("age,y,site,id\n" + "".join(f"5,1,0{k},{ids[k]}\n" for k in range(3)))
    columns: dict[str, Column] = dict.fromkeys(("age", "site", "id"), AGE)
    spec = ColumnsSpec(columns=columns, label=Label(classes=(0, 1)))
    table = load_table(path, label="y", silo_column="site", person_column="id", columns=spec)
    assert table.silo_names == read_silo_names(path, "site") == ("00", "01", "02")
    assert table.persons is not None
    assert table.persons.tolist() == ids


@pytest.mark.parametrize("more", [{"merge": {"no": "0"}}, {"missing": "0"}, {"missing": "category"}])
def test_what_a_label_does_not_have_is_not_ignored(more: dict[str, Any]) -> None:
    """Its records would count as zero, though the description says that they are of a class."""
    described = ColumnsSpec(columns={"age": AGE, "y": Categorical(categories=("0", "1"), **more)})
    frame = pd.DataFrame({"age": [1, 2], "y": ["0", "1"]})
    with pytest.raises(DataError, match="'y' is described with merge or missing, which are for features"):
        build_table(frame, label="y", columns=described)


def test_an_id_is_one_person_however_its_accents_are_encoded() -> None:
    """Two units would each have the noise of one."""
    frame = pd.DataFrame({"age": 1, "y": 1, "id": ["Ren\u00e9", "Rene\u0301", "Rene", "\u00c5", "\u212b"]})
    table = build_table(frame, label="y", person_column="id", columns=SPEC)
    assert table.persons is not None
    assert table.persons.tolist() == ["Ren\u00e9", "Ren\u00e9", "Rene", "\u00c5", "\u00c5"]


def test_records_without_a_person_are_one_person_of_their_silo() -> None:
    frame = pd.DataFrame({"age": 1, "y": 1, "site": ["a", "b", "a", "a"], "id": [None, "", " ", "b"]})
    both = build_table(frame, label="y", silo_column="site", person_column="id", columns=SPEC)
    assert both.persons is not None
    assert both.persons.tolist() == [" a", " b", " a", "b"]
    alone = build_table(frame.drop(columns="site"), label="y", person_column="id", columns=SPEC)
    assert alone.persons is not None
    assert alone.persons.tolist() == [" ", " ", " ", "b"]


def test_one_long_cell_does_not_widen_all_others() -> None:
    frame = pd.DataFrame({"age": [1.0] * 1000, "y": 1, "sex": ["f"] * 999 + ["f" * 10**6], "id": "x"})
    table = build_table(frame, label="y", person_column="id", sensitive=("sex",), columns=SPEC)
    assert table.persons is not None
    assert table.persons.nbytes + table.sensitive["sex"].nbytes < 20_000


def test_tables_come_in_by_one_door() -> None:
    """Whatever else reads a table lets pandas choose types by all cells of a column."""
    source = Path(tacit.__file__).parent
    doors = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if re.search(
            r"read_(csv|parquet|table|excel)\(|pd\.read_json\(|to_numeric\(|get_dummies\(", path.read_text()
        )
    }
    # The named data sets are public: readers and recipes may look at all of their cells.
    public = {"data/presets.py", "data/readers.py", "data/recipes.py", "experiments/shuffled_tasks.py"}
    by_the_door = {
        "data/files.py",
        "data/tables.py",
        "cli/bandit/run.py",
        "cli/fairness/audit.py",
        "cli/frequencies/columns.py",
        "cli/mean_columns.py",
        "cli/predict.py",
        "cli/data/tables.py",
        "jobs/data.py",
        "jobs/facts.py",
    }
    numbers = {"fairness/private_tables.py"}  # of groups that a person hands over, each cell by itself
    assert doors <= public | by_the_door | numbers


def test_columns_of_a_parquet_file_are_told_apart_by_their_names(tmp_path: Path) -> None:
    arrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    table = arrow.table({"s.a": [1.5, None], "s": [{"a": 1, "b": 2}, None], "b": ["x", "y"]})
    parquet.write_table(table, path)
    frame = read_table(path)
    assert frame.columns.tolist() == ["s.a", "s", "b"]
    assert (frame["s.a"][0], frame["b"].tolist(), frame["s"][0]) == (1.5, ["x", "y"], {"a": 1, "b": 2})
    parquet.write_table(arrow.Table.from_arrays([arrow.array([1])] * 2, names=["a", "a"]), path)
    with pytest.raises(DataError, match="has two columns of the same name, 'a'"):
        read_table(path)
    parquet.write_table(table, path)
    data = bytearray(path.read_bytes())
    data[4:40] = bytes(36)
    path.write_bytes(data)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_table(path)


def test_parquet_gives_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "clinics.parquet"
    make_clinics().to_parquet(path)
    shutil.copy(sidecar_path(PATH), tmp_path)
    roles: dict[str, Any] = {"label": "y", "silo_column": "site", "person_column": "patient"}
    of_parquet, of_csv = (load_table(one, **roles) for one in (path, PATH))
    for name in ("X", "y", "silos", "persons"):
        np.testing.assert_array_equal(getattr(of_parquet, name), getattr(of_csv, name))
    path.write_bytes(b"not parquet")
    with pytest.raises(DataError, match="is no Parquet file, whatever its name says"):
        read_table(path)
    make_clinics().to_parquet(path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(DataError, match=r"tacit\[parquet\]"):
        read_table(path)
