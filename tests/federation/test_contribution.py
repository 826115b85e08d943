from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation import AnyStep, Full, Poisson
from tacit.federation.contribution import Contributions
from tacit.means import AnyNoise, BinomialMean, NoNoise, Round, SignVoteMean
from tacit.numerics import Array
from tacit.privacy import Neighbours, Relation, TrustModel
from tests.federation.world import AT, DIM, GAUSSIAN, GRID, STATISTICS, Fused, Rows, mean_of, rows, step_of

GOOD = rows(1, 6)
ROUND = Round(n=6, radius=1.0)


def total_of(
    values: Array,
    name: str,
    *,
    fused: bool = False,
    at: Mapping[str, Array] = AT,
    noise: AnyNoise | None = None,
) -> Array:
    """The noise-free sum that would be sent about `name`."""
    step = step_of(statistics=(name,), estimator=mean_of(noise))
    contributions = Contributions(Rows(values), STATISTICS)
    contributions.check(step, at)
    (message,) = contributions.messages(
        step.measures[0],
        Rows(values),
        at=at,
        round=ROUND,
        fused=fused,
        party=0,
        rng=np.random.default_rng(0),
    )
    return message.payload


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["row", "fused", "drops", "fails", "shifted"])
def test_a_bad_unit_counts_as_zero_and_no_other_unit_does(name: str, bad: float) -> None:
    values = GOOD.copy()
    values[2, 1] = bad
    sign = -1 if name == "shifted" else 1
    expected = sign * np.delete(GOOD, 2, axis=0).sum(axis=0)
    with np.errstate(all="ignore"):
        found = total_of(values, name, fused=name == "fused")
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("where", [[0], [5], [0, 1, 2], [1, 4], [0, 1, 2, 3, 4, 5]])
def test_units_that_a_statistic_raises_on_count_as_zero(where: list[int]) -> None:
    values = GOOD.copy()
    values[where] = 7.0
    np.testing.assert_allclose(
        total_of(values, "fails"), np.delete(GOOD, where, axis=0).sum(axis=0), atol=1e-14
    )


@pytest.mark.parametrize("name", ["row", "fused", "drops", "fails", "shifted"])
def test_one_changed_unit_moves_a_sum_by_two_radii_at_most_whatever_happens(name: str) -> None:
    hostile = {"w": np.full(DIM, 1e308)}
    for at in (AT, hostile):
        for value in (np.nan, np.inf, 1e308, -1e308, 9.0, 0.0):
            other = GOOD.copy()
            other[3] = value
            with np.errstate(all="ignore"):
                moved = total_of(other, name, fused=name == "fused", at=at) - total_of(
                    GOOD, name, fused=name == "fused", at=at
                )
            assert np.linalg.norm(moved) <= 2 + 1e-9


def test_a_unit_has_one_row_whatever_a_statistic_returns() -> None:
    def twice(units: Rows, at: Mapping[str, Array]) -> Array:
        return np.repeat(units.values, 2 if (units.values[:, 0] > 5).any() else 1, axis=0)

    values = GOOD.copy()
    values[2, 0] = 9.0
    step = step_of(statistics=("twice",), estimator=mean_of())
    contributions = Contributions(Rows(values), {"twice": twice})
    contributions.check(step, AT)
    rng = np.random.default_rng(0)
    (message,) = contributions.messages(
        step.measures[0], Rows(values), at=AT, round=ROUND, fused=False, party=0, rng=rng
    )
    np.testing.assert_allclose(message.payload, np.delete(GOOD, 2, axis=0).sum(axis=0), atol=1e-14)


def test_a_fused_sum_is_used_where_it_can_be() -> None:
    class Odd(Fused):
        def clipped_sum(self, units: Rows, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
            return 2 * super().clipped_sum(units, at, radius, dtype)

    class Single(Fused):
        def clipped_sum(self, units: Rows, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
            return super().clipped_sum(units, at, radius, dtype).astype(np.float32)

    contributions = Contributions(Rows(GOOD), {"odd": Odd(), "single": Single(), "row": STATISTICS["row"]})

    def fused(name: str, noise: AnyNoise) -> bool:
        return contributions.check(step_of(statistics=(name,), estimator=mean_of(noise)), AT)[0]

    assert fused("odd", NoNoise())
    assert fused("odd", GRID)
    assert fused("single", GAUSSIAN)
    assert not fused("single", GRID)  # single precision is not in the price of noise on a grid
    assert not fused("row", GAUSSIAN)
    # A sum of clipped rows would hide that one of them was to be refused.
    refusing = msgspec.structs.replace(mean_of(), on_violation=None)
    assert not contributions.check(step_of(statistics=("odd",), estimator=refusing), AT)[0]
    for relation, batch in ((Relation.ZERO_OUT, Poisson(0.5)), (Relation.ADD_REMOVE, Full())):
        moving = step_of(statistics=("odd",), estimator=mean_of(GRID, relation=relation), batch=batch)
        assert contributions.check(moving, AT)[0]


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
def test_votes_use_the_same_fused_sums_under_the_same_conditions(trust: TrustModel) -> None:
    class Odd(Fused):
        def clipped_sum(self, units: Rows, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
            return -super().clipped_sum(units, at, radius, dtype)

    class Single(Fused):
        def clipped_sum(self, units: Rows, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
            return super().clipped_sum(units, at, radius, dtype).astype(np.float32)

    contributions = Contributions(Rows(GOOD), {"odd": Odd(), "single": Single()})

    def step(name: str, noise: Any, **changes: Any) -> AnyStep:
        mean = SignVoteMean(
            dim=DIM,
            noise=noise,
            trust=trust,
            neighbours=Neighbours(*changes.pop("relation", ())),
            on_violation="clip",
        )
        return step_of(statistics=(name,), estimator=mean, **changes)

    assert contributions.check(step("odd", NoNoise()), AT) == [True]
    assert contributions.check(step("odd", GRID), AT) == [True]
    assert contributions.check(step("single", GAUSSIAN), AT) == [True]
    assert contributions.check(step("single", GRID), AT) == [False]
    moving = step("odd", GRID, relation=(Relation.ZERO_OUT,), batch=Poisson(0.5))
    assert contributions.check(moving, AT) == [True]
    for fused, turned in ((True, True), (False, False)):
        (message,) = contributions.messages(
            step("odd", NoNoise()).measures[0],
            Rows(GOOD),
            at=AT,
            round=ROUND,
            fused=fused,
            party=0,
            rng=np.random.default_rng(0),
        )
        assert np.array_equal(message.payload == -1, (GOOD.sum(axis=0) < 0) ^ turned)
        assert message.width == 1


@pytest.mark.parametrize("outcome", ["raises", "shape", "nan"])
def test_a_fused_sum_that_goes_wrong_falls_back_on_the_rows(outcome: str) -> None:
    class Wrong(Fused):
        def clipped_sum(self, units: Rows, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
            if outcome == "raises" and len(units):
                raise ValueError(f"private: {units.values}")
            right = super().clipped_sum(units, at, radius, dtype)
            return right[:1] if outcome == "shape" and len(units) else right * (np.nan if len(units) else 1.0)

    step = step_of(statistics=("wrong",), estimator=mean_of())
    contributions = Contributions(Rows(GOOD), {"wrong": Wrong()})
    (fused,) = contributions.check(step, AT)
    assert fused
    rng = np.random.default_rng(0)
    (message,) = contributions.messages(
        step.measures[0], Rows(GOOD), at=AT, round=ROUND, fused=True, party=0, rng=rng
    )
    np.testing.assert_allclose(message.payload, GOOD.sum(axis=0), atol=1e-14)


def test_what_fails_on_no_units_is_refused() -> None:
    contributions = Contributions(Rows(GOOD), STATISTICS)
    with pytest.raises(RefusalError, match="'shifted' cannot be evaluated at such a point") as caught:
        contributions.check(step_of(statistics=("row", "shifted"), estimator=mean_of()), {"v": np.zeros(DIM)})
    assert isinstance(caught.value.__cause__, KeyError)  # no unit was involved
    with pytest.raises(RefusalError, match="'shifted' cannot be evaluated"):
        contributions.check(step_of(statistics=("shifted",), estimator=mean_of()), {"w": np.zeros(DIM + 1)})
    with pytest.raises(RefusalError, match=r"gives no units the shape \(0, 3\), the plan expects \(0, 4\)"):
        contributions.check(step_of(statistics=("row",), estimator=mean_of(dim=4)), AT)


class Multiples:
    """`row`, as half a number times twice a vector; fails on large entries, and an odd one widens all."""

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = dtype

    def __call__(self, units: Rows, at: Mapping[str, Array]) -> Array:
        assert not len(units), "rows are not needed"
        return units.values

    def scaled(self, units: Rows, at: Mapping[str, Array], radius: float) -> tuple[Array, Array] | None:
        if "none" in at:
            return None
        values = units.values
        if (values > 8).any():
            raise KeyError(f"no such label: {values.max()}")
        dtype = np.longdouble if (values > 5).any() else self.dtype
        # No row is longer than the radius.
        return np.full(len(values), 0.5, dtype=dtype), 2 * values.astype(dtype) * radius


FINE = BinomialMean(dim=DIM, noise_bits=1, resolution=2**17)


def multiples_sum(values: Array, statistic: Multiples, *, at: Mapping[str, Array] = AT) -> Array:
    """The sum of rows that a message tells, up to a noise bit and rounding."""
    step = step_of(statistics=("scaled",), estimator=FINE)
    contributions = Contributions(Rows(values), {"scaled": statistic})
    assert contributions.check(step, at) == [True]
    (message,) = contributions.messages(
        step.measures[0],
        Rows(values),
        at=at,
        round=ROUND,
        fused=True,
        party=0,
        rng=np.random.default_rng(0),
    )
    return np.asarray((message.payload - 6 * (2**17 + 1) / 2) * 2 / 2**17)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [6.0, 9.0])
@pytest.mark.parametrize("where", [[], [0], [5], [0, 1, 2], [0, 1, 2, 3, 4, 5]])
def test_rows_that_are_multiples_are_not_materialised_and_bad_units_count_as_zero(
    where: list[int], bad: float, dtype: Any
) -> None:
    values = GOOD.copy()
    values[where] = bad
    found = multiples_sum(values, Multiples(dtype))
    np.testing.assert_allclose(found, np.delete(GOOD, where, axis=0).sum(axis=0), atol=1e-3)


def test_multiples_are_used_where_they_can_be() -> None:
    contributions = Contributions(
        Rows(GOOD), {"scaled": Multiples(), "half": Multiples(np.float16), "row": STATISTICS["row"]}
    )

    def used(name: str, estimator: Any = FINE, at: Mapping[str, Array] = AT) -> bool:
        return contributions.check(step_of(statistics=(name,), estimator=estimator), at)[0]

    assert used("scaled")
    assert not used("row")
    assert not used("half")
    assert not used("scaled", mean_of())  # it takes sums
    assert not used("scaled", at={**AT, "none": np.zeros(1)})
