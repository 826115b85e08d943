"""Radii hold by enumeration of rotations, and cost what the law of the sphere says."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from tacit.errors import ParameterError
from tacit.numerics import (
    CosineRotation,
    OrthogonalRotation,
    RandomHadamard,
    certified_radius,
    flat_radius,
)
from tacit.randomness import PublicStream, simulated
from tests.statistics import z_bound


def public() -> PublicStream:
    return PublicStream(2024, 3, purpose="rotation")


@pytest.mark.parametrize(
    ("n", "size", "expected"), [(1000, 512, 0.268418), (1000, 1024, 0.193334), (1000, 2, 1.0)]
)
def test_certified_radius_oracles(n: int, size: int, expected: float) -> None:
    assert certified_radius(2.0, n=n, coded_dim=size, beta=0.01) == pytest.approx(2 * expected, abs=2e-6)


@pytest.mark.parametrize("beta", [0.9, 0.5, 0.2, 0.05, 1e-3])
@pytest.mark.parametrize("shape", ["unit", "flat", "random", "halves"])
@pytest.mark.parametrize("kind", ["hadamard", "cosine"])
def test_certified_radius_holds_by_enumeration(kind: str, shape: str, beta: float) -> None:
    dim = 10 if kind == "cosine" else 8
    x = {
        "unit": np.eye(dim)[0],
        "flat": np.full(dim, dim**-0.5),
        "random": simulated(3, "x").standard_normal(dim),
        "halves": np.eye(dim)[0] + np.eye(dim)[1],
    }[shape]
    r2 = float(np.linalg.norm(x))
    all_signs = np.array(list(itertools.product((-1, 1), repeat=dim)), dtype=np.int8)
    rotation = (CosineRotation if kind == "cosine" else RandomHadamard)(dim, np.ones(dim, dtype=np.int8))
    peaks = np.abs(rotation.forward(all_signs * x)).max(axis=1)
    radius = rotation.radius(r2, n=1, beta=beta)
    assert np.mean(peaks > radius * (1 + 1e-12)) <= beta
    assert radius <= r2


def test_the_cosine_radius_needs_its_factor() -> None:
    peak = np.abs(CosineRotation.draw(50, public()).forward(np.eye(50))).max()
    assert 1 / 50 < peak**2 <= 2 / 50 + 1e-12
    wide, narrow = (certified_radius(1.0, n=1, coded_dim=50, beta=0.5, peak=p) for p in (2.0, 1.0))
    assert CosineRotation.draw(50, public()).radius(1.0, n=1, beta=0.5) == wide
    assert wide == pytest.approx(narrow * math.sqrt(2))


@given(dim=st.integers(1, 400), n=st.integers(1, 10**6), beta=st.floats(1e-12, 0.999))
def test_certified_radius_holds_on_the_sphere(dim: int, n: int, beta: float) -> None:
    # Haar: the square of a coordinate is Beta(1/2, (d - 1) / 2), and the union bound is over n d of them.
    t = certified_radius(1.0, n=n, coded_dim=dim, beta=beta)
    tail = 0.0 if t >= 1 else float(stats.beta.sf(t * t, 0.5, (dim - 1) / 2))
    assert n * dim * tail <= beta


@pytest.mark.parametrize(
    ("kappa", "expected", "digits"), [(2.0, 1.118e-2, 5e-6), (3.0, 3.64e-4, 5e-7), (4.0, 4.58e-6, 5e-9)]
)
def test_what_clipping_at_kappa_costs(kappa: float, expected: float, digits: float) -> None:
    # Exact: d E (|u| - radius)_+^2 for a coordinate u of the sphere of R^300; a simulation of 200,000 vectors
    # gives 1.1185(14)e-2, 3.66(2)e-4 and 4.5(2)e-6.
    assert clip_cost(kappa) == pytest.approx(expected, abs=digits)


def test_clipping_costs_what_the_sphere_says() -> None:
    rows = simulated(6, "rows").standard_normal((4000, 300))
    coded = OrthogonalRotation.draw(300, public()).forward(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    for kappa in (2.0, 3.0):
        errors = np.sum((np.abs(coded) - kappa / math.sqrt(300)).clip(0) ** 2, axis=1)
        tolerance = z_bound(4) * errors.std() / math.sqrt(len(errors))  # CLT; tails are those of u^2
        assert abs(errors.mean() - clip_cost(kappa)) <= tolerance
        assert tolerance < 0.25 * clip_cost(kappa)


def clip_cost(kappa: float) -> float:
    """Expected squared distance of a random unit vector in R^300 from the box of `flat_radius`."""
    t = flat_radius(1.0, kappa=kappa, coded_dim=300)
    law = stats.beta(149.5, 149.5, loc=-1, scale=2)
    excess, _ = integrate.quad(lambda u: (u - t) ** 2 * law.pdf(u), t, 12 * t, epsabs=0, limit=200)
    return float(600 * excess)


BAD: list[tuple[Any, str]] = [
    (lambda: certified_radius(math.nan, n=1, coded_dim=1, beta=0.1), "r2"),
    (lambda: certified_radius(1.0, n=0, coded_dim=1, beta=0.1), "n must be"),
    (lambda: certified_radius(1.0, n=1, coded_dim=0, beta=0.1), "coded_dim"),
    (lambda: certified_radius(1.0, n=1, coded_dim=1, beta=1.0), "beta must be in"),
    (lambda: flat_radius(1.0, kappa=-1.0, coded_dim=2), "kappa"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
