"""The exponential mechanism on a grid: its price over all neighbours, its excess, grids and refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import DataError, ParameterError
from tacit.learning import GridMinimum, LinearObjective, Records, Squared, ball_grid
from tacit.privacy import Part, PureDP

ONE = LinearObjective(loss=Squared(), features=1)


def records(ys: Any) -> Records:
    return Records.of(np.ones((len(ys), 1)), np.asarray(ys, dtype=float))


@pytest.mark.parametrize(
    ("points", "centre"),
    [([[-1.0], [1.0]], None), ([[0.0], [1.0]], None), ([[-1.0], [0.25], [1.0]], [-1.0])],
)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_over_all_neighbours_no_point_is_likelier_by_more_than_the_level(
    points: Any, centre: Any, epsilon: float
) -> None:
    """Losses far beyond the stated constant are among them: the clip alone carries the guarantee."""
    found = GridMinimum(points=np.array(points), epsilon=epsilon, lipschitz=1.0, centre=centre)
    values, public, worst = (-50.0, -0.3, 0.0, 1.0, 70.0, math.inf), records([0.5]), 0.0
    for rest in itertools.product(values, repeat=2):
        laws = [found.law(ONE, records([*rest, y]), public=public) for y in values]
        worst = max(worst, *(np.abs(np.log(a) - np.log(b)).max() for a, b in itertools.combinations(laws, 2)))
    assert worst <= epsilon
    assert worst > 0.25 * epsilon
    assert found.event == PureDP(epsilon, found.neighbours)
    assert found.neighbours.part is Part.PRIVATE


def test_a_centre_in_the_middle_halves_what_one_record_moves() -> None:
    ends = np.array([[-1.0], [1.0]])
    middle, end = (
        GridMinimum(points=ends, epsilon=1.0, lipschitz=1.0, centre=np.array([c])) for c in (0.0, -1.0)
    )
    assert middle.spread * middle.unit == pytest.approx(4.0)  # 2 L D for D = 2
    # From an end, only the other end moves: by at most L D up or down, 2 L D between two records.
    assert end.spread * end.unit == pytest.approx(4.0)
    three = GridMinimum(
        points=np.array([[-1.0], [0.9], [1.0]]), epsilon=1.0, lipschitz=1.0, centre=np.array([-1.0])
    )
    assert three.spread * three.unit == pytest.approx(2 * (2.0 + 1.9))  # nearly 4 L D


def test_what_losses_have_in_common_cancels() -> None:
    found = GridMinimum(points=ball_grid(1.0, 0.25, 1), epsilon=1.0, lipschitz=4.0)

    class Lifted(LinearObjective):
        def value(self, w: Any, units: Any) -> Any:
            return super().value(w, units) + 1024.0

    lifted = Lifted(loss=Squared(), features=1)
    rows = records([0.5, -0.25, 0.125])
    np.testing.assert_allclose(found.law(lifted, rows), found.law(ONE, rows), rtol=1e-6)


def test_the_expected_excess_is_below_its_bound_and_falls_with_public_records() -> None:
    rng = np.random.default_rng(0)
    private, public = (0.3 + 0.2 * rng.standard_normal(n) for n in (40, 400))
    found = GridMinimum(points=ball_grid(1.0, 0.05, 1), epsilon=1.0, lipschitz=2.0)

    def excess(known: Records | None) -> float:
        rows = records(private if known is None else [*private, *public])
        losses = np.array([ONE.value(w, rows).mean() for w in found.points])
        return float(found.law(ONE, records(private), public=known) @ (losses - losses.min()))

    assert 0 < excess(None) < found.excess_bound(40)
    assert excess(records(public)) < min(excess(None), found.excess_bound(440))
    # The penalty pulls to the centre, and is free.
    pulled = GridMinimum(points=found.points, epsilon=1.0, lipschitz=2.0, strength=50.0)
    means = [abs(float(one.law(ONE, records(private)) @ found.points[:, 0])) for one in (pulled, found)]
    assert means[0] < means[1] / 2
    assert pulled.spread == found.spread


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_point_of_a_ball_is_near_one_of_its_grid(dim: int) -> None:
    grid = ball_grid(2.0, 0.4, dim)
    rng = np.random.default_rng(dim)
    ball = rng.standard_normal((300, dim))
    ball *= 2.0 * rng.random((300, 1)) ** (1 / dim) / np.linalg.norm(ball, axis=1, keepdims=True)
    away = np.linalg.norm(ball[:, None] - grid[None], axis=2).min(axis=1)
    assert away.max() <= 0.4 * (1 + 1e-12)
    assert (np.linalg.norm(grid, axis=1) <= 2.0 * (1 + 1e-12)).all()
    assert (grid == 0).all(axis=1).any()


def test_bad_input_is_refused_and_bad_private_records_are_not() -> None:
    good: dict[str, Any] = {"points": np.array([[0.0], [1.0]]), "epsilon": 1.0, "lipschitz": 1.0}
    for bad in (
        {"points": np.array([[0.0]])}, {"points": np.array([[0.0], [math.nan]])}, {"epsilon": 0.0},
        {"lipschitz": 0.0}, {"lipschitz": math.inf}, {"centre": [0.0, 0.0]}, {"strength": -1.0},
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=next(iter(bad))):
            GridMinimum(**{**good, **bad})
    with pytest.raises(ParameterError, match="points must have the 2 coordinates of the objective"):
        GridMinimum(**good).law(LinearObjective(loss=Squared(), features=2), records([1.0]))
    with pytest.raises(DataError, match="public losses must be finite"):
        GridMinimum(**good).law(
            ONE, records([1.0]), public=Records(np.ones((1, 1)), np.array([np.inf]), np.ones(1))
        )
    for radius, mesh, dim, name in (
        (0.0, 0.1, 1, "radius"),
        (1.0, 2.0, 1, "mesh"),
        (1.0, 0.1, 4, "dim"),
        (1.0, 1e-4, 3, "mesh"),
    ):
        with pytest.raises(ParameterError, match=name):
            ball_grid(radius, mesh, dim)
