"""Nets: how far any point is from one, by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.bandits import sphere_net, thin_actions
from tacit.errors import ParameterError


@pytest.mark.parametrize(("dim", "zeta"), [(1, 0.5), (2, 0.1), (2, 1.0), (3, 0.25), (4, 0.6)])
def test_every_point_is_near_one_of_few(dim: int, zeta: float) -> None:
    net = sphere_net(dim, zeta)
    assert np.allclose(np.linalg.norm(net, axis=1), 1)
    assert np.linalg.matrix_rank(net) == dim
    points = np.random.default_rng(0).standard_normal((4000, dim))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    nearest = np.sqrt(np.maximum(2 - 2 * (points @ net.T).max(axis=1), 0))
    assert nearest.max() <= zeta + 1e-9
    assert len(net) <= max(2 * dim * math.ceil(math.sqrt(max(dim - 1, 1)) / zeta) ** (dim - 1), 3)


def test_a_net_of_the_circle_has_the_tabled_size_and_no_more() -> None:
    assert len(sphere_net(2, 1e-3)) == 3142
    # One point fewer does not cover: the arc between two neighbours is too long.
    assert 2 * math.sin(math.pi / (2 * 3141)) > 1e-3 >= 2 * math.sin(math.pi / (2 * 3142))


def test_a_net_that_is_too_large_names_the_radius_that_is_not() -> None:
    with pytest.raises(ParameterError, match=r"zeta must be at least 0\.00245 .* 3 dimensions"):
        sphere_net(3, 1e-3)
    with pytest.raises(ParameterError, match="zeta must be at least"):
        sphere_net(2, 1e-3, most=100)
    assert len(sphere_net(3, 0.1, most=10_000)) <= 10_000
    for zeta in (0.0, 1.5, math.nan):
        with pytest.raises(ParameterError, match="zeta"):
            sphere_net(2, zeta)


def test_thinned_actions_cover_the_others_and_span_what_they_span() -> None:
    rng = np.random.default_rng(5)
    rows = rng.uniform(-0.5, 0.5, (300, 3))
    kept = thin_actions(rows, 0.2)
    far = np.linalg.norm(rows[:, None] - rows[kept][None], axis=2).min(axis=1)
    assert far.max() <= 0.2
    assert len(kept) < 200
    flat = rows * [1.0, 1e-3, 1e-3]
    assert np.linalg.matrix_rank(flat[thin_actions(flat, 0.9)]) == 3
    assert thin_actions(rows, 0.0).size == 300
