"""Proposals for a column description: kinds are proposed, no value of the data is in them."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest

from tacit.data import FILL_IN, ColumnsSpec, propose_description
from tacit.data.scaffold import propose_section
from tacit.errors import DataError

DAY = datetime.date(2026, 1, 1)
N = 200
RNG = np.random.default_rng(5)
COLUMNS: dict[str, tuple[Iterable[str], str]] = {
    "age": (RNG.integers(18, 95, N).astype(str), "numeric"),
    "weight": (RNG.normal(70, 9, N).round(1).astype(str), "numeric"),
    "pulse with gaps": (["", "NA", *RNG.integers(40, 120, N - 2).astype(str)], "numeric"),
    "pulse with typing errors": (["12O", "?", *RNG.integers(40, 999, N - 2).astype(str)], "numeric"),
    "smoker": (RNG.choice(["yes", "no", ""], N), "categorical"),
    "flag": (RNG.choice(["0", "1"], N), "categorical"),
    "truth": (RNG.choice(["True", "False"], N), "categorical"),
    "ward": ([f"ward {k % 20}" for k in range(N)], "categorical"),
    "born": ([f"19{k % 90 + 10}-0{k % 9 + 1}-1{k % 9}" for k in range(N)], "date"),
    "seen": ([f"2024-01-1{k % 9} 10:0{k % 9}:00" for k in range(N)], "date"),
    "left": ([f"1{k % 9}.{k % 12 + 1}.2024" for k in range(N)], "date"),
    "compact": ([f"2024{k % 9 + 101}{k % 9}"[:4] + f"0{k % 9 + 1}1{k % 9}" for k in range(N)], "date"),
    "record": ([str(1000 + k) for k in range(N)], "ignore"),
    "patient": ([f"P{k // 2}" for k in range(N)], "ignore"),
    "letter": ([f"seen by doctor {k}" for k in range(N)], "ignore"),
    "street": ([f"street{k % 40}" for k in range(N)], "ignore"),
    "empty": ([""] * N, "ignore"),
}


def section(name: str) -> dict[str, object]:
    text = propose_section(pd.Series(COLUMNS[name][0], name=name, dtype=object), today=DAY)
    found: dict[str, object] = tomllib.loads(text)["columns"][name]
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_kinds_are_proposed(name: str) -> None:
    assert section(name)["kind"] == COLUMNS[name][1]


def test_dates_say_how_they_are_written() -> None:
    assert "format" not in section("born") | section("seen")
    assert section("left")["format"] == "%d.%m.%Y"
    assert section("compact")["format"] == "%Y%m%d"
    assert section("born")["reference"] == DAY


def test_dates_written_in_several_ways_are_no_ids() -> None:
    days = [f"1{k % 9}.0{k % 9 + 1}.19{k % 90 + 10}" for k in range(N)]
    cells = [*COLUMNS["born"][0], *days]
    text = propose_section(pd.Series(cells, name="born", dtype=object), today=DAY)
    assert text.startswith('[columns.born]\nkind = "ignore"     # dates, as %Y-%m-%d and %d.%m.%Y: ')


def frame() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(list(cells), dtype=object) for name, (cells, _) in COLUMNS.items()})


def test_no_value_of_the_data_is_proposed() -> None:
    """Other data of the same kinds give the same proposal, so that no bound can be read off it."""
    text = propose_description(frame(), source="x", label="smoker", ignored=["patient"], today=DAY)
    rng = np.random.default_rng(6)
    other = frame()
    other["age"] = rng.integers(1, 999, N).astype(str)
    other["ward"] = rng.choice(["a", "b", "c"], N)
    other["smoker"] = rng.choice(["f", "g"], N)
    other["patient"] = [f"Q{k}" for k in rng.permutation(N)]
    assert propose_description(other, source="x", label="smoker", ignored=["patient"], today=DAY) == text
    values = [
        value
        for column in tomllib.loads(text)["columns"].values()
        for key, value in column.items()
        if key not in ("kind", "reference", "format")
    ]
    assert set(map(str, values)) == {FILL_IN, str([FILL_IN])}


def test_gaps_are_refused_by_their_names_until_they_are_filled() -> None:
    text = propose_description(frame()[["age", "smoker", "born"]], source="x", label="smoker", today=DAY)
    with pytest.raises(DataError, match="not filled in yet") as refused:
        ColumnsSpec.from_toml(text)
    for place in ("label.classes", "columns.age.lower", "columns.age.upper", "columns.born.lower"):
        assert place in str(refused.value)
    filled = text.replace(f'lower = "{FILL_IN}"', "lower = 0").replace(f'upper = "{FILL_IN}"', "upper = 100")
    filled = filled.replace(f'classes = ["{FILL_IN}"]', 'classes = ["no", "yes"]')
    spec = ColumnsSpec.from_toml(filled)
    assert list(spec.columns) == ["age", "born"]
    assert spec.label is not None
    assert spec.label.column == "smoker"


def test_a_regression_has_bounds() -> None:
    text = propose_description(frame()[["age"]], source="x", label="age", regression=True)
    assert tomllib.loads(text)["label"] == {
        "kind": "numeric", "lower": FILL_IN, "upper": FILL_IN, "column": "age",
    }  # fmt: skip


def test_names_of_any_kind_stay_names() -> None:
    strange = pd.DataFrame({'a "b" ]\n': ["1", "2"], "c": ["x", "y"]})
    text = propose_description(strange, source="one\n[label]", label="c", today=DAY)
    found = tomllib.loads(text)
    assert list(found["columns"]) == ['a "b" ]\n']
    assert found["label"]["column"] == "c"
