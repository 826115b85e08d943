"""The contract of every regulariser: optimality, nonexpansiveness, and the value that it minimises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import ParameterError
from tacit.numerics import (
    L1,
    Box,
    Composite,
    ElasticNet,
    GroupLasso,
    L1OverBall,
    L2Ball,
    Regularizer,
    Simplex,
    SquaredL2,
    Zero,
    project_box,
    project_l2_ball,
    project_simplex,
)

DIM = 4
CENTER = np.array([1.0, -2.0, 0.5, 0.0])
GROUPS = np.array([7, 3, 7, -1])
REGULARIZERS: dict[str, Regularizer] = {
    "zero": Zero(),
    "l2 ball": L2Ball(1.5),
    "l2 ball off center": L2Ball(1.5, CENTER),
    "box": Box(-1.0, np.array([1.0, 2.0, 0.5, 0.1])),
    "simplex": Simplex(2.0),
    "l1": L1(0.7),
    "squared l2": SquaredL2(0.7),
    "elastic net": ElasticNet(l1=0.7, l2=0.3),
    "group lasso": GroupLasso(0.7, GROUPS),
    "l1 over ball": L1OverBall(0.7, 1.5),
    "half-line": Box(0.0, math.inf),
    "sparse groups": Composite(l1=0.3, group_lasso=0.5, groups=GROUPS, l2=0.4),
    "sparse groups in a ball": Composite(l1=0.3, group_lasso=0.5, groups=GROUPS, l2=0.4, domain=L2Ball(1.5)),
    "elastic net in a box": Composite(l1=0.3, l2=0.4, domain=Box(-1.0, 0.5), coordinates=np.array([[2, 0]])),
    "ridge on two simplices": Composite(l2=0.4, domain=Simplex(2.0), coordinates=np.array([[0, 3], [2, 1]])),
}
POINTS = arrays(np.float64, DIM, elements=st.floats(-20, 20))
STEPS = st.floats(0.01, 5)


def objective(f: Regularizer, eta: float, z: Any, y: Any) -> float:
    """What the proximal point minimises."""
    return eta * f.value(y) + 0.5 * float(np.square(y - z).sum())


@pytest.mark.parametrize("name", REGULARIZERS)
@settings(max_examples=40)  # of each of fifteen
@given(z=POINTS, eta=STEPS, moves=arrays(np.float64, (6, DIM), elements=st.floats(-2, 2)))
def test_no_other_point_is_better(name: str, z: Any, eta: float, moves: Any) -> None:
    f = REGULARIZERS[name]
    y = f(eta, z)
    best = objective(f, eta, z, y)
    assert math.isfinite(best)
    raw = [y + size * move for size in (1e-3, 0.1, 1.0) for move in moves] + [0.5 * (y + z), 0.99 * y]
    # Moved into the domain by a step that is too small to move them otherwise: an indicator has a tolerance.
    rivals = [f(1e-12, rival) for rival in raw]
    # The objective is 1-strongly convex, so a rival loses by at least half its squared distance.
    for rival in rivals:
        lead = objective(f, eta, z, rival) - best
        assert lead >= 0.5 * float(np.square(rival - y).sum()) - 1e-9 * (1 + best)


@pytest.mark.parametrize("name", REGULARIZERS)
@settings(max_examples=40)  # of each of fifteen
@given(z=POINTS, x=POINTS, eta=STEPS)
def test_strong_convexity_is_that_of_the_value_and_contracts_the_prox(
    name: str, z: Any, x: Any, eta: float
) -> None:
    f = REGULARIZERS[name]
    y, v = f(eta, z), f(eta, x)
    apart = float(np.square(y - v).sum())
    middle = f.value((y + v) / 2) if np.array_equal(f(1e-12, (y + v) / 2), (y + v) / 2) else -math.inf
    scale = 1 + abs(f.value(y)) + abs(f.value(v))
    assert middle <= (f.value(y) + f.value(v)) / 2 - f.strong_convexity / 8 * apart + 1e-9 * scale
    # With a strong convexity of 0 as well: no prox moves two points apart.
    assert math.sqrt(apart) * (1 + eta * f.strong_convexity) <= np.linalg.norm(z - x) * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("name", REGULARIZERS)
@settings(max_examples=40)  # of each of fifteen
@given(batch=arrays(np.float64, (2, 3, DIM), elements=st.floats(-5, 5)), eta=STEPS)
def test_a_batch_is_its_points_and_float32_stays(name: str, batch: Any, eta: float) -> None:
    f = REGULARIZERS[name]
    one_by_one = [[f(eta, point).tolist() for point in block] for block in batch]
    np.testing.assert_allclose(f(eta, batch), one_by_one, rtol=0, atol=1e-12)
    single = f(np.float64(eta), batch.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, one_by_one, rtol=1e-5, atol=1e-4)
    assert math.isfinite(f.value(single[0, 0]))


@pytest.mark.parametrize("name", REGULARIZERS)
@pytest.mark.parametrize("eta", [0.0, -1.0, math.nan, math.inf])
def test_a_step_must_be_positive(name: str, eta: float) -> None:
    with pytest.raises(ParameterError, match="eta must be a finite number > 0"):
        REGULARIZERS[name](eta, np.ones(DIM))


@given(z=POINTS, eta=STEPS)
def test_prox_of_an_indicator_is_the_projection(z: Any, eta: float) -> None:
    assert np.array_equal(L2Ball(1.5, CENTER)(eta, z), project_l2_ball(z, 1.5, center=CENTER))
    assert np.array_equal(Box(-1.0, CENTER + 2)(eta, z), project_box(z, lower=-1.0, upper=CENTER + 2))
    assert np.array_equal(Simplex(2.0)(eta, z), project_simplex(z, 2.0))


@given(z=POINTS, eta=STEPS)
def test_closed_forms(z: Any, eta: float) -> None:
    shrunk = np.sign(z) * np.maximum(np.abs(z) - eta * 0.7, 0)
    np.testing.assert_allclose(L1(0.7)(eta, z), shrunk, rtol=0, atol=1e-14)
    np.testing.assert_allclose(SquaredL2(0.7)(eta, z), z / (1 + 0.7 * eta), rtol=1e-15)
    both = ElasticNet(l1=0.7, l2=0.3)(eta, z)
    np.testing.assert_allclose(both, shrunk / (1 + 0.3 * eta), rtol=0, atol=1e-14)
    # Groups of one coordinate are the l1 norm; one group of all is the length.
    np.testing.assert_allclose(GroupLasso(0.7, np.arange(DIM))(eta, z), shrunk, rtol=0, atol=1e-13)
    size = np.linalg.norm(z)
    length = z * max(1 - 0.7 * eta / size, 0) if size else z
    np.testing.assert_allclose(GroupLasso(0.7, np.zeros(DIM, dtype=int))(eta, z), length, rtol=0, atol=1e-13)


def test_values() -> None:
    w = np.array([3.0, -1.0, 4.0, -2.0])
    assert Zero().value(w) == 0
    assert L1(0.5).value(w) == 5.0
    assert SquaredL2(0.5).value(w) == pytest.approx(7.5)
    assert ElasticNet(l1=0.5, l2=0.2).value(w) == pytest.approx(5 + 3)
    assert GroupLasso(0.5, GROUPS).value(w) == pytest.approx(0.5 * (5 + 1 + 2))
    assert L1OverBall(0.5, 6.0).value(w) == 5.0
    assert L1OverBall(0.5, 5.0).value(w) == math.inf
    assert L2Ball(5.0).value(w) == math.inf
    assert L2Ball(6.0).value(w) == 0
    assert L2Ball(0.0).value(np.zeros(2)) == 0
    assert Box(-2.0, 4.0).value(w) == 0
    assert Box(-1.9, 4.0).value(w) == math.inf
    assert Simplex().value(np.array([0.25, 0.75])) == 0
    assert Simplex().value(np.array([0.25, 0.7])) == math.inf
    assert L2Ball(1.0).value(np.array([math.nan])) == math.inf
    both = Composite(l1=0.5, l2=0.2, group_lasso=0.5, groups=GROUPS, domain=L2Ball(6.0))
    assert both.value(w) == pytest.approx(5 + 3 + 4)
    assert both.value(2 * w) == math.inf
    part = Composite(domain=Simplex(2.0), coordinates=np.array([[0, 1]]))
    assert part.value(w) == math.inf  # 3 - 1 = 2, but -1 is below 0
    assert part.value(np.array([2.0, 0.0, -9.0, 9.0])) == 0  # the others are free


def test_no_strength_changes_nothing() -> None:
    z = np.array([3.0, 0.0, -1.0, 0.0])
    for f in (L1(0.0), SquaredL2(0.0), ElasticNet(), GroupLasso(0.0, GROUPS), Composite()):
        assert f(2.0, z).tolist() == z.tolist()


@pytest.mark.parametrize(
    "make", [L1, SquaredL2, lambda s: GroupLasso(s, GROUPS), lambda s: L1OverBall(s, 1.0)]
)
@pytest.mark.parametrize("strength", [-1.0, math.nan])
def test_bad_strengths_are_refused(make: Any, strength: float) -> None:
    with pytest.raises(ParameterError, match="strength must be a finite number >= 0"):
        make(strength)


@pytest.mark.parametrize("name", ["l1", "l2"])
@pytest.mark.parametrize("strength", [-1.0, math.nan])
def test_bad_strengths_of_an_elastic_net_are_refused_by_name(name: str, strength: float) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be a finite number >= 0, got {strength}"):
        ElasticNet(**{name: strength})


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="radius must be a finite number >= 0, got -1"):
        L2Ball(-1)
    with pytest.raises(ParameterError, match="radius must be a finite number >= 0, got -1"):
        L1OverBall(1.0, -1)
    with pytest.raises(ParameterError, match="total must be a finite number >= 0"):
        Simplex(math.inf)
    with pytest.raises(ParameterError, match="lower must be <= upper"):
        Box(1.0, np.zeros(3))
    with pytest.raises(ParameterError, match=r"groups must be integers of shape \(d,\), got dtype float64"):
        GroupLasso(1.0, np.ones(3))  # type: ignore[arg-type]  # the refusal is what is tested
    with pytest.raises(ParameterError, match=r"z must have 4 coordinates like `groups`, got shape \(3,\)"):
        GroupLasso(1.0, GROUPS)(1.0, np.ones(3))


def test_sums_without_a_closed_form_are_refused() -> None:
    groups: dict[str, Any] = {"group_lasso": 0.1, "groups": GROUPS}
    for domain, where in ((Box(0.0, 1.0), "box"), (Simplex(), "simplex")):
        with pytest.raises(
            ParameterError, match=rf"group_lasso must be 0 on a {where}, got 0\.1.* on a ball too"
        ):
            Composite(domain=domain, **groups)
    with pytest.raises(
        ParameterError, match=r"l1 must be 0 on a simplex, where the L1 norm is constant, got 0\.2"
    ):
        Composite(l1=0.2, domain=Simplex())
    with pytest.raises(ParameterError, match="domain must be a ball around the origin"):
        Composite(domain=L2Ball(1.0, CENTER))
    with pytest.raises(ParameterError, match="groups must say which coordinates belong together"):
        Composite(group_lasso=0.1)
    for name in ("l1", "l2", "group_lasso"):
        bad: dict[str, Any] = {name: -1}
        with pytest.raises(ParameterError, match=f"{name} must be a finite number >= 0, got -1"):
            Composite(**bad)
    with pytest.raises(ParameterError, match="upper must be finite or inf, got nan"):
        Box(0.0, math.nan)
