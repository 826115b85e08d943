"""What estimators say of records that they refuse: nothing that is in them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from tacit.data.validated import validated
from tacit.errors import DataError
from tacit.learning import PrivateNeuralClassifier, PrivateNeuralRegressor, Records

X = np.arange(12.0).reshape(6, 2) / 12
Y = np.arange(6) % 2
CELL = "0.0833secret"
TEXTS = np.where(np.arange(12).reshape(6, 2) == 3, CELL, X.astype(object))
REFUSED: list[tuple[Any, Any, str]] = [
    (TEXTS, Y, r"^X and y must hold numbers, and some of them are texts: got X \(ndarray of dtype object\)"),
    (pd.DataFrame(TEXTS), Y, r"some of them are texts: got X \(DataFrame\)"),
    (X + 0.0833j, Y, r"^X and y must hold real numbers\. Complex data not supported\.$"),
    (X[:, 1], Y, r"^X must have shape \(n, d\), a row for each record, got shape \(6,\)\. Reshape your data"),
    (list(X[:, 1]), Y, "got list of another form"),
    (X.reshape(6, 1, 2), Y, r"got shape \(6, 1, 2\)\. .* shape= says what a row is"),
    (X.astype("datetime64[s]"), Y, r"^X must hold numbers, got dtype datetime64\[s\]"),
]


@pytest.mark.parametrize(("rows", "y", "message"), REFUSED)
def test_what_is_refused_is_named_and_not_quoted(rows: Any, y: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as found:
        validated(BaseEstimator(), rows, y)
    assert "0.0833" not in str(found.value)
    assert found.value.__suppress_context__ or found.value.__context__ is None


def test_doors_of_networks_do_not_quote_labels_either() -> None:
    text = np.where(Y, CELL, "0")
    with pytest.raises(DataError, match=r"^y must hold numbers, got dtype <U") as found:
        PrivateNeuralRegressor(trust="none", bounds=(0, 1)).fit(X, text)
    assert CELL not in str(found.value)
    for y in (text, Y.astype(object), Y + 1j):
        with pytest.raises(DataError, match="y must hold numbers, got dtype"):
            Records.of(X, y)
    with pytest.raises(DataError, match="X and y must be arrays of NumPy, got DataFrame and ndarray"):
        Records.of(pd.DataFrame(X), Y)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "rows",
    [X.astype(np.float16), X > 0.5, X.astype(object), pd.DataFrame(X), pd.DataFrame(X).astype("Float64")],
)
def test_numbers_in_other_clothes_are_numbers(rows: Any) -> None:
    make = partial(PrivateNeuralClassifier, trust="none", bounds=(0, 1), classes=[0, 1], rounds=1, hidden=2)
    plain = np.asarray(rows, dtype=np.float64)
    expected = make(random_state=0).fit(plain, Y).decision_function(plain)
    np.testing.assert_allclose(make(random_state=0).fit(rows, Y).decision_function(rows), expected, atol=1e-2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_in_one_line_that_names_the_argument(bad: float) -> None:
    for name in ("X", "y"):
        rows, y = X.copy(), Y.astype(float)
        (rows if name == "X" else y)[3] = bad
        with pytest.raises(
            DataError, match=rf"^{name} must hold finite numbers: Input {name} contains"
        ) as found:
            validated(BaseEstimator(), rows, y, y_numeric=True)
        assert "\n" not in str(found.value)
