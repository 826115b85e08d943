"""Measured errors: what a candidate of a plan does on synthetic rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means import Round
from tacit.means.problem import MeanProblem
from tacit.numerics import Array
from tacit.planning.candidate import Candidate
from tacit.planning.mean import PlanProgress
from tacit.randomness import simulated

__all__ = ["Measured", "measure", "synthetic_rows"]

_MOST_ENTRIES = 2**28


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measured error.

    Attributes:
        mse: Mean squared L2 error over the trials.
        standard_error: Of that mean; NaN for one trial.
        trials: Number of simulated rounds.
    """

    mse: float
    standard_error: float
    trials: int


def measure(
    candidate: Candidate,
    problem: MeanProblem,
    *,
    trials: int = 50,
    rows: Array | None = None,
    seed: int = 0,
    progress: PlanProgress | None = None,
) -> Measured:
    """Simulate rounds and measure the squared error.

    Args:
        candidate: Of a plan of `problem`.
        problem: What was asked.
        trials: Number of rounds, >= 1, each with public maps and noise of its own.
        rows: Shape (n, dim), inside the ball; None for `synthetic_rows`. With public rows there is a law, and
            rows are drawn anew in every trial.
        seed: Of everything; two candidates with one seed see the same rows.
        progress: Is told how many rounds are done.

    Returns:
        The error against what `candidate.mse` predicts: the mean of the rows, or of their law.

    Raises:
        ParameterError: The candidate has no estimator, `rows` has another shape or does not go with public
            rows, or there are too many numbers to simulate.
    """
    check_count("trials", trials)
    check_count("seed", seed, low=0)
    if problem.moment is not None:
        raise ParameterError("trials need rows of a ball: what is known of a moment is no law to draw from.")
    if candidate.estimator is None:
        raise ParameterError(f"candidate must have an estimator: {candidate.name} {candidate.reason}")
    if (problem.n + problem.public) * problem.dim > _MOST_ENTRIES:
        raise ParameterError(
            f"n * dim must be at most {_MOST_ENTRIES:,} for a simulation, got {problem.n * problem.dim:,}."
        )
    if rows is not None and problem.public:
        raise ParameterError("rows must be None with public rows: both are drawn from one law.")
    if rows is not None and rows.shape != (problem.n, problem.dim):
        raise ParameterError(f"rows must have shape ({problem.n}, {problem.dim}), got {rows.shape}.")
    law, noise = simulated(seed, "planning rows"), simulated(seed, f"planning {candidate.name}")
    fixed = None if problem.public else (synthetic_rows(problem, law) if rows is None else rows)
    squares = np.empty(trials)
    for trial in range(trials):
        this_round = Round(n=problem.n, radius=candidate.radius, number=trial, parties=problem.n, seed=seed)
        squares[trial] = _squared_error(candidate, problem, fixed, this_round, law, noise)
        if progress is not None:
            progress(trial + 1, trials)
    spread = float(squares.std(ddof=1)) / math.sqrt(trials) if trials > 1 else math.nan
    return Measured(mse=float(squares.mean()), standard_error=spread, trials=trials)


def synthetic_rows(problem: MeanProblem, rng: np.random.Generator) -> Array:
    """Make rows at the border of the ball.

    With a known correlation: x_i = r (sqrt(t) u + sqrt(1 - t) w_i) with t = (R + 1) / n and unit vectors
    w_i that add up to zero, orthogonal to u, so that R is what was said. Else independent rows: uniform on
    the sphere (l2), random corners (linf), plus or minus a random unit vector (l1).

    Args:
        problem: What is asked.
        rng: Source of the rows.

    Returns:
        Shape (n, dim).

    Raises:
        ParameterError: A correlation was given in fewer than 3 dimensions.
    """
    n, d, r = problem.n, problem.dim, problem.radius
    R = problem.total_correlation
    if R is not None and n > 1:
        if d < 3:
            raise ParameterError(f"dim must be at least 3 for rows of a given correlation, got {d}.")
        t = min(max((R + 1) / n, 0.0), 1.0)
        u = _sphere(1, d, rng)
        return np.asarray(r * (math.sqrt(t) * u + math.sqrt(1 - t) * _balanced(n, u[0], rng)))
    return r * _independent(problem, n, rng)


def _independent(problem: MeanProblem, n: int, rng: np.random.Generator) -> Array:
    """Return independent rows at the border of the unit ball; their law has mean zero."""
    d = problem.dim
    if problem.norm == "l2":
        return _sphere(n, d, rng)
    if problem.norm == "linf":
        return rng.choice((-1.0, 1.0), size=(n, d))
    rows = np.zeros((n, d))
    rows[np.arange(n), rng.integers(0, d, n)] = rng.choice((-1.0, 1.0), size=n)
    return rows


def _balanced(n: int, u: Array, rng: np.random.Generator) -> Array:
    """Return n >= 2 unit vectors that are orthogonal to u and add up to zero: pairs, and one triple."""
    half = _sphere((n + 1) // 2, len(u), rng)
    half -= (half @ u)[:, None] * u
    half /= np.linalg.norm(half, axis=1)[:, None]
    if n % 2 == 0:
        return np.concatenate([half, -half])
    other = _sphere(1, len(u), rng)[0]
    first = half[-1]
    for along in (u, first):
        other -= (other @ along) * along
    other /= np.linalg.norm(other)
    turns = 2 * np.pi * np.arange(3) / 3
    triple = np.cos(turns)[:, None] * first + np.sin(turns)[:, None] * other
    # (n + 1) / 2 directions: the last one makes the triple, all but two of the others make pairs.
    pairs = half[: (n - 3) // 2]
    return np.concatenate([pairs, -pairs, triple])


def _sphere(n: int, d: int, rng: np.random.Generator) -> Array:
    """Return uniform unit vectors, shape (n, d)."""
    rows = rng.standard_normal((n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


def _squared_error(
    candidate: Candidate,
    problem: MeanProblem,
    fixed: Array | None,
    round: Round,
    law: np.random.Generator,
    noise: np.random.Generator,
) -> float:
    """Return the squared error of one round."""
    if candidate.joined is not None:
        drawn, mean = _rows_of_law(problem, law)
        private, public = drawn[: problem.n], drawn[problem.n :]
        found = candidate.joined.estimate(private, public, round, rng=noise)
        return float(np.sum((found - mean) ** 2))
    if candidate.estimator is None or fixed is None:
        raise ParameterError(f"candidate must be of a plan of this problem, got {candidate.name}.")
    found = candidate.estimator.estimate(fixed, round, rng=noise)
    return float(np.sum((found - fixed.mean(axis=0)) ** 2))


def _rows_of_law(problem: MeanProblem, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return private and public rows of one law of mean zero and variance V^2, and its mean."""
    total = problem.n + problem.public
    rows = _independent(problem, total, rng) * problem.radius
    longest = problem.radius_in("l2") ** 2 if problem.norm != "l1" else problem.radius**2
    share = math.sqrt(min(problem.population_variance / longest, 1.0))
    return rows * share, np.zeros(problem.dim)
