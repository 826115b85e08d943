"""Public column descriptions: what is refused, and that TOML holds them without loss."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import (
    Categorical,
    Column,
    ColumnsSpec,
    Ignore,
    Label,
    LabelBounds,
    Numeric,
    names,
    sidecar_path,
)
from tacit.data.registry import describe
from tacit.errors import DataError, ParameterError

# TOML holds every character but surrogates.
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
BOUNDS = st.tuples(st.floats(-1e9, 0), st.floats(1e-3, 1e9)).map(lambda b: {"lower": b[0], "upper": b[1]})
VALUES = st.lists(TEXT, min_size=2, max_size=4, unique=True).map(tuple)
COLUMNS = st.one_of(
    BOUNDS.map(lambda b: Numeric(**b)),
    st.builds(Categorical, categories=VALUES, ordinal=st.booleans()),
    VALUES.map(lambda v: Categorical(categories=v, merge={"old name": v[0], v[1]: v[0]})),
    st.just(Ignore()),
)
LABELS = st.one_of(
    st.none(), VALUES.map(lambda v: Label(classes=v)), BOUNDS.map(lambda b: LabelBounds(**b, column="y"))
)


@given(columns=st.dictionaries(TEXT, COLUMNS, max_size=4), label=LABELS)
def test_toml_gives_the_description_back(columns: dict[str, Column], label: Label | None) -> None:
    spec = ColumnsSpec(columns=columns, label=label)
    again = ColumnsSpec.from_toml(spec.to_toml())
    assert again == spec
    assert list(again.columns) == list(columns)  # the order of the features


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf)])
def test_bounds_are_finite_and_in_order(bounds: tuple[float, float]) -> None:
    with pytest.raises(ParameterError, match="lower < upper"):
        Numeric(lower=bounds[0], upper=bounds[1])
    with pytest.raises(ParameterError, match="lower < upper"):
        LabelBounds(lower=bounds[0], upper=bounds[1])


def test_categories_and_classes_are_distinct_as_text() -> None:
    with pytest.raises(ParameterError, match="distinct"):
        Categorical(categories=(1, "1"))
    with pytest.raises(ParameterError, match="at least 1"):
        Categorical(categories=())
    with pytest.raises(ParameterError, match="at least 2"):
        Categorical(categories=("a",), ordinal=True)
    with pytest.raises(ParameterError, match="merge"):
        Categorical(categories=("a",), merge={"b": "c"})
    with pytest.raises(ParameterError, match="at least 2"):
        Label(classes=("only",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns", "is not a column description"),
        ('[columns.a]\nkind = "numric"', "numric"),
        ('[columns.a]\nkind = "numeric"\nlower = 3\nupper = 2', "lower < upper"),
        ('[columns.a]\nkind = "numeric"\nlower = 0\nuper = 2', "uper|upper"),
        ("version = 2", "version must be 1"),
        ("colums = 1", "colums"),
    ],
)
def test_a_wrong_description_says_where(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        ColumnsSpec.from_toml(text, source="clinics.columns.toml")
    assert "clinics.columns.toml" in str(caught.value)


def test_a_missing_description_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.columns\.toml"):
        ColumnsSpec.read(tmp_path / "absent.columns.toml")
    assert sidecar_path(Path("a/clinics.csv")) == Path("a/clinics.columns.toml")


@pytest.mark.parametrize("name", names())
def test_packaged_descriptions_are_readable_and_price_the_stated_features(name: str) -> None:
    info = describe(name)
    spec = info.columns()
    assert (info.description is None) == (not spec.columns)
    used = [column for key, column in spec.columns.items() if key not in info.not_features]
    width = sum(len(c.categories) if isinstance(c, Categorical) and not c.ordinal else 1 for c in used)
    assert width == (info.n_features if used else 0)
