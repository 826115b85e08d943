"""What a mean estimator says about itself to join the contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from tacit.means import Estimator
from tacit.numerics import Array

Make = Callable[[int, float], Estimator]
"""(dim, share of the noise: 1 as claimed, 0.5 broken, 0 off as far as the estimator can) -> estimator."""

Clip = Callable[[Array, float], Array]
"""(row, radius) -> the nearest row that counts, written independently of the library."""


def clip_to(ball: str) -> Clip:
    """Clip one row to a ball, by scaling ("l1", "l2", "linf"), or to [0, radius] or [-radius, radius]."""

    def clip(row: Array, radius: float) -> Array:
        if ball in ("box", "cube"):
            return np.clip(row, 0.0 if ball == "box" else -radius, radius)
        norm = np.linalg.norm(row, ord={"l1": 1, "l2": 2, "linf": np.inf}[ball])
        return row if norm <= radius else row * (radius / norm)

    return clip


L2 = clip_to("l2")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One estimator for the contract.

    Attributes:
        name: Of the test.
        make: Builds it.
        clip: What a row counts as.
        exact: Share 0 gives the mean of the clipped rows, up to `error().bias` and a float32 rounding.
        private: It claims privacy.
        symbols: Messages are symbols of an alphabet: close does not count, only equal.
        close: How far float messages about a long row and its clipped one may be apart.
        close_integers: The same for integers.
        fresh: Public maps are part of what the error is over: every trial is a round of its own number.
        divides: What is decoded is divided by the planned number of rows; votes are not.
        trials: Rounds that its mean and variance are taken over.
        reached: Least share of a stated bound on the variance that the test's rows reach.
        attack: How the attack of test_mean_privacy.py looks at it; None: it is attacked elsewhere.
    """

    name: str
    make: Make
    clip: Clip = L2
    exact: bool = True
    private: bool = True
    symbols: bool = False
    reached: float = 0.5
    close: float = 1e-5
    close_integers: float = 1 + 2**16 * 1e-5
    fresh: bool = False
    divides: bool = True
    trials: int = 1500
    attack: Attack | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class Attack:
    """Two worst-case data sets of one party, and thresholds on the first coordinate of the decoded mean.

    Attributes:
        rows: Of the one data set.
        others: Of its neighbour.
        middle: Where the laws cross, of means over two rows.
        gap: Distance of their centres.
        trials: Draws of either; enough to break half of the noise by a wide margin.
    """

    rows: Array
    others: Array
    middle: float
    gap: float
    trials: int = 2500


@dataclass(frozen=True, kw_only=True)
class LawCase:
    """A small estimator whose message has a law that can be written down.

    Attributes:
        name: Of the test.
        make: Builds it.
        dims: Number of coordinates to enumerate.
        outcomes: All payloads worth counting, shape (m, entries), for a `dim`; the rest has mass below 1e-13.
        log_law: Log-probabilities of outcomes, shape (m,), for an estimator, the rows of one party (radius 1)
            and the outcomes. Written independently of the library's samplers.
        points: Rows to build data sets from, for a `dim`.
        rows: Rows of a data set. One is enough where rows are randomised one by one.
        accuracy: Error of sums over `outcomes`: 0 for whole numbers, else of the quadrature.
        tight: Some data sets of the grid reach the claim.
    """

    name: str
    make: Make
    dims: tuple[int, ...]
    outcomes: Callable[[int], Array]
    log_law: Callable[[Estimator, Array, Array], Array]
    points: Callable[[int], list[tuple[float, ...]]]
    rows: int = 2
    accuracy: float = 0.0
    tight: bool = False

    def __str__(self) -> str:
        return self.name


def grid_points(steps: int, dim: int) -> list[tuple[float, ...]]:
    """Rows on half steps of a grid (where rounding moves most), next to them, and outside the ball."""
    axis = [k / (2 * steps) for k in range(-2 * steps, 2 * steps + 1)]
    if dim > 1:
        return list(product(axis, repeat=dim))
    near = [x + shift for x in axis for shift in (-1e-9, 1e-9)]
    return [(x,) for x in (*axis, *near, -3.0, 3.0)]
