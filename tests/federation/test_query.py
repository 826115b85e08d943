from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation import Query
from tests.federation.world import DIM

W = np.arange(DIM, dtype=np.float64)
PLAIN = Query(1, {"w": W}, (1.0,))

DIFFERENT = {
    "step": Query(2, {"w": W}, (1.0,)),
    "value": Query(1, {"w": np.nextafter(W, 9)}, (1.0,)),
    "sign of zero": Query(1, {"w": W * [-1, 1, 1]}, (1.0,)),
    "radius": Query(1, {"w": W}, (np.nextafter(1.0, 0),)),
    "two radii": Query(1, {"w": W}, (1.0, 1.0)),
    "name": Query(1, {"v": W}, (1.0,)),
    "dtype": Query(1, {"w": W.astype(np.float32)}, (1.0,)),
    "shape": Query(1, {"w": W[:, None]}, (1.0,)),
    "one more point": Query(1, {"w": W, "v": W}, (1.0,)),
    "no point": Query(1, {}, (1.0,)),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_another_query_has_another_digest(other: Query) -> None:
    assert len(PLAIN.digest()) == 16
    assert other.digest() != PLAIN.digest()


def test_another_party_has_another_digest() -> None:
    assert len({PLAIN.digest(party=k) for k in range(5)}) == 5


def test_equal_queries_have_one_digest_however_they_lie_in_memory() -> None:
    strided = np.repeat(W, 2)[::2]
    assert Query(1, {"w": strided}, (1.0,)).digest() == PLAIN.digest()
    two = {"w": W, "v": W + 1}
    assert Query(1, two, (1.0,)).digest() == Query(1, dict(reversed(two.items())), (1.0,)).digest()


def test_a_hostile_name_cannot_pass_for_another_point() -> None:
    inside = np.array([1.0])
    plain = Query(1, {"a": np.zeros(0), "v": inside}, (1.0,))
    forged = Query(1, {"a|<f8|(0,)v": inside}, (1.0,))
    assert forged.digest() != plain.digest()


NUMPY: tuple[Any, Any] = np.int64(1), np.float32(0.5)


@pytest.mark.parametrize(
    "query", [PLAIN, Query(NUMPY[0], {"w": W.astype(np.float32)}, (NUMPY[1],)), Query(0, {}, (0,))]
)
def test_what_algorithms_ask_is_allowed(query: Query) -> None:
    query.check([1.0])
    assert len(query.digest()) == 16


def with_entry(value: float) -> np.ndarray[Any, Any]:
    return np.array([0.0, value, 0.0])


@pytest.mark.parametrize(
    ("at", "radius", "message"),
    [
        ({"w": W}, (), "one number per statistic"),
        ({"w": W}, (1.0, 1.0), "one number per statistic"),
        ({"w": W}, [1.0], "must be a tuple"),
        ({"w": W}, 1.0, "must be a tuple"),
        ({"w": W}, (math.nan,), "radius must be a number in"),
        ({"w": W}, (math.inf,), "radius must be a number in"),
        ({"w": W}, (-1e-300,), "radius must be a number in"),
        ({"w": W}, (np.nextafter(1.0, 2),), "radius must be a number in"),
        ({"w": W}, (10**400,), "radius must be a number"),
        ({"w": W}, (True,), "radius must be a number"),
        ({"w": W}, ("1",), "radius must be a number"),
        ({"w": W}, (None,), "radius must be a number"),
        ({"w": W}, (1j,), "radius must be a number"),
        ([W], (1.0,), "at must map names to arrays, got list"),
        ({"w": W.tolist()}, (1.0,), "the point 'w' must be an array"),
        ({"w": None}, (1.0,), "the point 'w' must be an array"),
        ({3: W}, (1.0,), "the name of a point must be a printable text"),
        ({"w": W.astype(int)}, (1.0,), "finite float32 or float64"),
        ({"w": W.astype(np.float16)}, (1.0,), "finite float32 or float64"),
        ({"w": W.astype(np.longdouble)}, (1.0,), "finite float32 or float64"),
        ({"w": W.astype(">f8")}, (1.0,), "finite float32 or float64"),
        ({"w": W.astype(complex)}, (1.0,), "finite float32 or float64"),
        ({"w": np.array([object()] * DIM)}, (1.0,), "finite float32 or float64"),
        ({"w": with_entry(math.nan)}, (1.0,), "finite float32 or float64"),
        ({"w": with_entry(-math.inf)}, (1.0,), "finite float32 or float64"),
        ({"w": W, "unused": with_entry(math.nan)}, (1.0,), "the point 'unused'"),
    ],
)
def test_anything_else_is_refused(at: Any, radius: Any, message: str) -> None:
    with pytest.raises(RefusalError, match=message):
        Query(1, at, radius).check([1.0])
