"""A network on odd against even digits over 25 silos (Lowy 2023, Figures 3.8, 3.9, B.4 and B.5).

One silo for each pair of an even and an odd digit, all 25 of them or 12 in a round, 25 rounds or 50, and 64
hidden units: the sizes of the paper, but for the number of splits and of points of the grids. Local SGD,
whose silos take 525 steps a round, has one panel only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tacit.data import load, split_by_pairs
from tacit.experiments.isrl_nonconvex import Grid, NetworkTask, Setup, compute
from tacit.experiments.report import Report
from tacit.randomness import simulated

__all__ = ["run"]

EPSILONS = (0.75, 1.5, 6.0, 18.0)
PANELS = ((25, 25), (12, 25), (25, 50), (12, 50))
"""Silos in a round, and rounds."""

EACH, KEPT, HIDDEN = 774, 50, 64
"""Images of a digit, principal components of an image, and hidden units."""


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figure; `quick` takes one panel, two budgets, two splits, and no local SGD."""
    facts: dict[str, Any] = {"clips": (1.0,), "local_clips": (1.0,), "splits": (0.9,)}
    if quick:
        grid = Grid(steps=(2.0, 8.0), local=(), periods=(2,), guesses=(0.1,), further=0, **facts)
        return compute([(_digit_pairs(25, 25), grid, (1.5, 18.0), 1, 2)], progress=progress)

    def setup(drawn: int, rounds: int) -> Setup:
        short, walks = rounds == 25, (drawn, rounds) == (12, 25)
        grid = Grid(
            steps=(2.0, 8.0, 32.0),
            local=(0.015625, 0.0625) if walks else (),
            periods=(2,) if short else (2, 4),
            guesses=(None, 0.1) if short else (0.1,),
            further=1,
            **facts,
        )
        return _digit_pairs(drawn, rounds), grid, EPSILONS[1:] if walks else EPSILONS, 1, 3

    return compute([setup(drawn, rounds) for drawn, rounds in PANELS], progress=progress)


def _digit_pairs(drawn: int, rounds: int) -> NetworkTask:
    """Return odd against even digits: each silo has 774 images of both of its digits, each image five silos.

    Args:
        drawn: Silos that take part in a round, of 25.
        rounds: R.
    """
    return replace(
        _all_pairs(),
        name=f"{drawn} of 25 silos, {rounds} rounds",
        rounds=rounds,
        drawn=None if drawn == 25 else drawn,
    )


@cache
def _all_pairs() -> NetworkTask:
    """Return the task of all silos.

    Images are standardised principal components, of images that no silo has: the paper takes those of all.
    """
    digits = load("mnist-odd-even")
    assert digits.groups is not None  # noqa: S101 - narrows the type: digits have groups
    rng = simulated(0, "digit-pairs")
    strata = tuple(rng.permutation(np.flatnonzero(digits.groups == k))[:EACH] for k in range(10))
    own = np.concatenate(strata)
    public = np.delete(digits.X, own, axis=0)
    middle = public.mean(axis=0)
    axes = np.linalg.svd(public - middle, full_matrices=False)[2][:KEPT].T
    Z = (digits.X - middle) @ axes / ((public - middle) @ axes).std(axis=0)
    return NetworkTask(
        name="25 silos",
        X=np.column_stack([Z, np.ones(len(Z))]).astype(np.float32),
        y=np.asarray(digits.y, dtype=np.float64),
        silos=tuple(own[part] for part in split_by_pairs(digits.groups[own], shared=True)),
        strata=strata,
        hidden=HIDDEN,
        length=math.sqrt(KEPT + 1),
        note=f"{KEPT} principal components of {len(public):,} images that no silo has; "
        + "; ".join(digits.notes),
    )
