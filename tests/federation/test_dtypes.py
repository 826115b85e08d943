"""An array has one dtype for all units: one record that changes it must change the row of no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation import Crowd, Silo, open_answer
from tacit.federation.contribution import Contributions
from tacit.means import AnyNoise, Estimator, HadamardMean, NoNoise, SignVoteMean
from tacit.numerics import Array, IntArray
from tests.federation.world import AT, DIM, GAUSSIAN, GRID, RADIUS, ask_at, mean_of, plan_of, rows, step_of

N, PLACE = 7, 2
# In single precision, so that an array of them is float32 and every other record makes it something else.
GOOD: list[list[Any]] = [[np.float32(x) for x in row] for row in 1.7 * rows(1, N)]


class Strange:
    """Raises wherever it can."""

    imag = 0

    def __repr__(self) -> str:  # by default, an address: another one in every process that collects the tests
        return "Strange()"

    @property
    def real(self) -> float:
        raise KeyError("private")

    def __float__(self) -> float:
        raise KeyError("private")


# An entry, and what it counts as: None is no real number, and the row that holds it is zero.
ENTRIES: list[tuple[Any, float | None]] = [
    (0.5, 0.5),
    (np.float16(0.5), 0.5),
    (np.longdouble("0.3"), 0.3),
    (np.longdouble("1e4000"), None),
    (True, 1.0),
    (np.bool_(1), 1.0),
    (-3, -3.0),
    (np.int8(-3), -3.0),
    (np.uint64(2**63), 2.0**63),
    (10**30, 1e30),
    (10**400, None),
    (Fraction(1, 2), 0.5),
    (complex(0.5, 0), 0.5),
    (complex(0.5, 1), None),
    (np.clongdouble(1j), None),
    (float("nan"), None),
    (float("inf"), None),
    (-1e308, -1e308),
    (5e-324, 5e-324),
    ("0.5", None),
    (b"0.5", None),
    (None, None),
    (Decimal("0.5"), 0.5),
    (np.datetime64("2026-01-01"), None),
    (Strange(), None),
    ([1.0, 2.0], None),
    ({}, None),
]


@dataclass(frozen=True)
class Cells:
    """Units as a table of anything would hold them."""

    cells: list[list[Any]]

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, index: IntArray) -> Self:
        return type(self)([self.cells[k] for k in index])


@dataclass(frozen=True)
class Column:
    """Units in one array, whose dtype is that of the worst of them, in every part too."""

    cells: Array

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, index: IntArray) -> Self:
        return type(self)(self.cells[index])


def stacked(units: Any, at: Mapping[str, Array]) -> Array:
    return np.array(units.cells).reshape(len(units), -1 if len(units) else DIM)


def as_objects(units: Any, at: Mapping[str, Array]) -> Array:
    found = np.empty((len(units), DIM), dtype=object)
    for k, cells in enumerate(units.cells):
        found[k] = cells
    return found


class Fusing:
    """Adds up clipped rows in whatever dtype they have."""

    def __call__(self, units: Any, at: Mapping[str, Array]) -> Array:
        return stacked(units, at)

    def clipped_sum(self, units: Any, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
        values = stacked(units, at)
        norms = np.maximum(np.sqrt((values * values).sum(axis=1, keepdims=True)), radius)
        return np.asarray((values * (radius / norms)).sum(axis=0))


@dataclass
class Keeping:
    """Keeps the last row of each unit."""

    state_size: int = DIM
    state_version: int = 1

    def update(self, units: Any, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
        values = stacked(units, at)
        return values, values


STATISTICS: dict[str, Any] = {
    "stacked": stacked,
    "objects": as_objects,
    "fused": Fusing(),
    "keeping": Keeping(),
}


def with_entry(entry: Any) -> list[list[Any]]:
    cells = [list(row) for row in GOOD]
    cells[PLACE][1] = entry
    return cells


def with_zeros() -> list[list[Any]]:
    cells = [list(row) for row in GOOD]
    cells[PLACE] = [np.float32(0)] * DIM
    return cells


def rows_of(units: Any, name: str) -> tuple[Array, Array | None]:
    contributions = Contributions(units, STATISTICS)
    step = step_of(statistics=(name,), estimator=mean_of())
    contributions.check(step, AT)
    states = {"keeping": np.full((N, DIM), 9.0)}
    with np.errstate(all="ignore"):
        found = contributions.rows(step.measures[0], units, AT, states)
    return found, states["keeping"] if name == "keeping" else None


@pytest.mark.parametrize(("entry", "counts"), ENTRIES, ids=repr)
@pytest.mark.parametrize("name", STATISTICS)
def test_one_entry_of_any_type_changes_no_other_row(name: str, entry: Any, counts: float | None) -> None:
    found, kept = rows_of(Cells(with_entry(entry)), name)
    plain, plain_kept = rows_of(Cells(GOOD), name)
    others = np.arange(N) != PLACE
    assert found.dtype == plain.dtype == np.float64
    assert (
        found[others].tobytes() == plain[others].tobytes() == np.array(GOOD)[others].astype(float).tobytes()
    )
    if counts is None:
        assert not found[PLACE].any() or not np.isfinite(found[PLACE]).all()
    else:
        assert found[PLACE, 1] == counts
        assert found[PLACE, 0] == GOOD[PLACE][0]
    if kept is not None and plain_kept is not None:
        assert kept[others].tobytes() == plain_kept[others].tobytes()
        assert counts is not None or (kept[PLACE] == 9.0).all()


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float64, np.longdouble, np.complex64, np.complex128, object]
)
def test_a_column_of_another_dtype_has_the_same_rows(dtype: Any) -> None:
    """Every part of such a column has the dtype too, so that nothing is gained by looking at parts."""
    exact = np.array(GOOD).astype(np.float16)
    found, _ = rows_of(Column(exact.astype(dtype)), "stacked")
    assert found.dtype == np.float64
    assert found.tobytes() == exact.astype(np.float64).tobytes()


ESTIMATORS: list[Estimator] = [
    mean_of(GAUSSIAN),
    mean_of(GRID),
    SignVoteMean(dim=DIM, noise=GRID),
    HadamardMean(dim=DIM, local_epsilon=1.0),
]


def answer(estimator: Estimator, name: str, units: Any) -> bytes:
    silo = Silo(units, STATISTICS, rng=np.random.default_rng(5))
    silo.accept(plan_of(estimator, statistics=(name,)))
    return silo.answer(ask_at(0))


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_what_is_no_number_counts_as_zero_and_shows_nowhere(
    estimator: Estimator, name: str, recwarn: pytest.WarningsRecorder
) -> None:
    plain, blank = answer(estimator, name, Cells(GOOD)), answer(estimator, name, Cells(with_zeros()))
    forms = [(m.payload.dtype, m.payload.shape, m.width) for m in open_answer(plain, party=0)[0]]
    for entry, counts in ENTRIES:
        found = answer(estimator, name, Cells(with_entry(entry)))
        assert len(found) == len(plain)
        (messages,) = open_answer(found, party=0)
        assert [(m.payload.dtype, m.payload.shape, m.width) for m in messages] == forms
        # Fused sums of float32 rows may be rounded otherwise than sums of their rows.
        assert counts is not None or name == "fused" or found == blank
    assert not recwarn.list


@pytest.mark.parametrize("noise", [NoNoise(), GRID])
@pytest.mark.parametrize("name", ["stacked", "objects", "keeping"])
def test_a_crowd_sees_rows_as_silos_do(name: str, noise: AnyNoise) -> None:
    def mean(cells: list[list[Any]]) -> Array:
        made = Crowd(Cells(cells), STATISTICS, trusts_server=True, rng=np.random.default_rng(3))
        return made.open(plan_of(mean_of(noise), statistics=(name,), parties=N))(0, AT, (RADIUS,))[0]

    blank = mean(with_zeros())
    for entry, counts in ENTRIES:
        assert counts is not None or np.array_equal(mean(with_entry(entry)), blank)


@pytest.mark.parametrize(
    "sum_of",
    [
        lambda total: total.astype(np.float32),
        lambda total: total.astype(complex),
        lambda total: total.astype(object),
        lambda total: total.astype(int),
    ],
)
def test_a_fused_sum_of_another_dtype_than_the_price_allows_is_not_used(
    sum_of: Callable[[Array], Array],
) -> None:
    """It was float64 on no units, as noise on a grid needs."""

    class Changing(Fusing):
        def clipped_sum(self, units: Any, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
            total = super().clipped_sum(units, at, radius, dtype).astype(np.float64)
            return sum_of(total + 100) if len(units) else total

    silos = [Silo(Cells(GOOD), {"row": one}, rng=np.random.default_rng(0)) for one in (Changing(), stacked)]
    for silo in silos:
        silo.accept(plan_of(mean_of(GRID)))
    assert silos[0].answer(ask_at(0)) == silos[1].answer(ask_at(0))


def test_a_state_of_another_shape_is_refused_on_no_units_and_dropped_on_units() -> None:
    class Shifting(Keeping):
        wrong = 0

        def update(self, units: Any, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
            row = stacked(units, at)
            narrow = DIM - (1 if len(units) else self.wrong)
            # The widths add up, so that only their seam is in another place.
            return np.ones((len(units), 2 * DIM - narrow if len(units) else DIM)), row[:, :narrow]

    one = Contributions(Cells(GOOD), {"keeping": Shifting()})
    step, states = step_of(statistics=("keeping",)), {"keeping": np.zeros((N, DIM))}
    one.check(step, AT)
    assert not one.rows(step.measures[0], Cells(GOOD), AT, states).any()
    assert not states["keeping"].any()
    Shifting.wrong = 1
    with pytest.raises(
        RefusalError, match=r"keeps for no units the shape \(0, 2\), the plan expects \(0, 3\)"
    ):
        Contributions(Cells(GOOD), {"keeping": Shifting()}).check(step, AT)
