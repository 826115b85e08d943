"""Groups of a public list, and the names of columns that statements tell."""

from __future__ import annotations

import pandas as pd
import pytest

from tacit.errors import ParameterError
from tacit.fairness import declared_groups
from tacit.fairness.attributes import attribute_names


def test_blanks_around_a_name_are_none_of_it() -> None:
    assert declared_groups(["f", " m", "m", "x"], [" f", "m "]).codes.tolist() == [0, 1, 1, -1]
    with pytest.raises(ParameterError, match="groups must be two or more, each once, got 3"):
        declared_groups(["f", "m"], ["f", " f", "m"])


def test_names_of_columns_print() -> None:
    assert attribute_names(pd.DataFrame({"sex\n": ["f"], 7: ["m"]})) == ("sex\\n", "7")
    assert attribute_names(pd.Series(["f"], name="a\x1b[1m")) == ("a\\x1b[1m",)
    assert attribute_names(pd.Series(["f"])) == attribute_names(["f"]) == ()
