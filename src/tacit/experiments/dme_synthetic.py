"""Compressed means of made-up vectors of known correlation (Jiang 2025, Figures 2.2, 2.3, 2.5, A.1 and A.2).

Errors are exact, and measured beside that; ranks and times are measured. Vectors are of unit length and every
two have the same inner product, because errors depend on lengths and on R = sum_{i != l} <x_i, x_l> / sum_i
||x_i||^2 only, and because equal or orthogonal vectors, as in the paper, do not reach all of its R.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.audits import clopper_pearson
from tacit.compression import Linear, beta_bar, rank_deficiency
from tacit.data import synthetic_equicorrelated
from tacit.experiments.dme_synthetic_statements import error_statements, rank_statements, time_statements
from tacit.experiments.dme_tasks import ESTIMATORS
from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.means import MeanEstimator, RandK, RandKSpatial, RandProjSpatial, Round
from tacit.numerics import Array, fwht
from tacit.randomness import simulated

__all__ = ["Case", "Timed", "errors", "ranks", "run", "seconds", "vectors"]

DIM = 1024
_RADIUS = 1 + 1e-9  # of unit vectors, so that rounding clips none
_IDENTICAL = ((10, (10, 50, 100)), (20, (10, 50)), (50, (5, 20)), (100, (5, 10)))
_KNOWN = ((21, (4, 12, 24, 48), (4, 8, 12, 16)), (51, (4, 8, 12, 20), (10, 20, 30, 40)))
_FEW = ((5, (50, 200), (1, 2, 3)), (11, (10, 90), (2, 4, 6, 8)))
_DRAWS = {32: 2000, 64: 1000, 128: 300, 256: 60, 512: 16, 1024: 6}
"""Dimension d to the spectra that are drawn; an eigenvalue decomposition costs d^3."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One point of Figure 2.2, 2.3 or A.1.

    Attributes:
        figure: Which.
        n: Number of parties.
        k: Numbers that a party sends.
        R: Correlation of their vectors; n - 1 for identical ones.
    """

    figure: str
    n: int
    k: int
    R: float

    @property
    def name(self) -> str:
        """Of the transform that fits this R."""
        return "max" if self.figure == "2.2" else "opt"

    @property
    def panel(self) -> str:
        """Of the figure."""
        return f"n = {self.n}" if self.figure == "2.2" else f"n = {self.n}, k = {self.k}"

    def lines(self) -> Iterator[tuple[str, MeanEstimator, float]]:
        """Yield name, estimator and exact MSE: (beta - 1 - R) / n for the transform that fits R.

        Reference:
            Jiang (2025), Theorems 2.4.3 and 2.4.4 with beta = n d / E[sum lambda / T(lambda)]. In Figure 2.2
            that is d / k if S always has full rank n k, which the measured errors test.
        """
        rho, known = self.R / (self.n - 1), self.R if self.name == "opt" else None
        sampled = beta_bar(self.n, self.k, DIM, Linear(rho), projection="subsample")
        projected = DIM / self.k if rho == 1 else beta_bar(self.n, self.k, DIM, Linear(rho))
        yield "Rand-k", RandK(dim=DIM, k=self.k), (DIM / self.k - 1) / self.n
        spatial = RandKSpatial(dim=DIM, k=self.k, transform=self.name, correlation=known)  # type: ignore[arg-type]
        yield f"RkS({self.name})", spatial, (sampled - 1 - self.R) / self.n
        joint = RandProjSpatial(dim=DIM, k=self.k, transform=self.name, correlation=known)  # type: ignore[arg-type]
        yield f"RPS({self.name})", joint, (projected - 1 - self.R) / self.n


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A setting of Figure 2.5."""

    dim: int
    n: int
    k: int


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figures; `quick` takes fewer settings, a fifth of the trials, and spectra up to d = 128."""
    few = 2 if quick else None
    parts = [
        [Case(figure="2.2", n=n, k=k, R=n - 1.0) for n, ks in _IDENTICAL for k in ks[:few]],
        [Case(figure="2.3", n=n, k=k, R=R) for n, ks, Rs in _KNOWN for k in ks[::few] for R in Rs],
        [Case(figure="A.1", n=n, k=k, R=R) for n, ks, Rs in _FEW for k in ks[::few] for R in Rs],
    ]
    draws = {d: count // 10 for d, count in _DRAWS.items() if d <= 128} if quick else _DRAWS
    sizes = ((1024, 10, 102), (1024, 50, 20), (512, 10, 50), (512, 50, 10))
    timed = [Timed(dim=d, n=n, k=k) for d, n, k in sizes]
    steps = len(parts) + 2
    found: list[Report] = []
    for cases in parts:
        progress(len(found), steps)
        found.append(errors(cases, trials=10 if quick else 50))
    progress(len(found), steps)
    found.append(ranks(draws))
    progress(len(found), steps)
    found.append(seconds(timed, repeats=3 if quick else 15))
    progress(steps, steps)
    notes = (
        f"Unit vectors, d = {DIM}; MSE is exact, measured is over simulated rounds, of vectors that a common "
        "rotation spread over all coordinates, which moves no mean. R is known to RkS(opt) and RPS(opt).",
        *(note for report in found for note in report.notes),
    )
    names = ("2.3", "A.1", "A.2", "2.5")
    more = {name: replace(part, notes=()) for name, part in zip(names, found[1:], strict=True)}
    return replace(found[0], notes=notes, more=more)


_TITLES = {
    "2.2": "Errors of compressed means where all vectors are equal (Figure 2.2)",
    "2.3": "Errors of compressed means against those of Rand-k, at known correlation (Figure 2.3)",
    "A.1": "Errors of compressed means against those of Rand-k, of few vectors (Figure A.1)",
    "A.2": "How often n random maps of k rows each fall short of rank n k in d dimensions (Figure A.2)",
    "2.5": "Time that a party encodes and the server decodes (Figure 2.5)",
}


def errors(cases: Sequence[Case], *, trials: int) -> Report:
    """Compute and measure the errors of one figure.

    Args:
        cases: Of one figure.
        trials: Simulated rounds of a point.
    """
    figure, known = cases[0].figure, reference("dme-synthetic")
    identical = figure == "2.2"
    rows: list[dict[str, object]] = []
    for case in cases:
        plain = (DIM / case.k - 1) / case.n  # of Rand-k
        for name, estimator, exact in case.lines():
            measured, stderr = _measured(case, name, estimator, trials)
            rows.append(
                {
                    "setting": case.panel,
                    "k": case.k,
                    "R": case.R,
                    "estimator": name,
                    "MSE": exact,
                    "over Rand-k": exact / plain,
                    "measured": measured,
                    "standard error": stderr,
                    "reference": known.get((case.panel, name, case.k if identical else case.R)),
                }
            )
    return Report(
        rows=rows,
        x="k" if identical else "R",
        y="MSE" if identical else "over Rand-k",
        error=None,
        line="estimator",
        panel="setting",
        log_x=identical,
        log_y=identical,
        title=_TITLES[figure],
        labels={
            "k": "k, numbers that a party sends",
            "R": "R, correlation of the vectors",
            "over Rand-k": "MSE / MSE of Rand-k",
        },
        notes=tuple(error_statements(figure, rows)),
    )


def _measured(case: Case, name: str, estimator: MeanEstimator, trials: int) -> tuple[float, float]:
    """Return the mean squared error over simulated rounds, and its standard error."""
    X = vectors(case.n, case.R)
    target = X.mean(axis=0)
    rng = simulated(0, "dme-synthetic", case.figure, name, case.n, case.k, repr(case.R))
    seed = int(rng.integers(2**31))  # maps of their own for every point, so that points err independently
    squares = np.empty(trials)
    for t in range(trials):
        asked = Round(n=case.n, parties=case.n, radius=_RADIUS, number=t, seed=seed)
        off = estimator.estimate(X, asked, rng=rng) - target
        squares[t] = off @ off
    return float(squares.mean()), float(squares.std(ddof=1) / math.sqrt(trials))


@functools.lru_cache(maxsize=64)
def vectors(n: int, R: float) -> Array:
    """Return unit vectors of correlation R, shape (n, d), rotated together.

    Few coordinates would hold all of the vectors otherwise, and Rand-k would hit them too rarely to measure.
    """
    signs = simulated(0, "dme-synthetic/rotation").choice((-1.0, 1.0), size=DIM)
    X = fwht(synthetic_equicorrelated(n, R, DIM) * signs) / math.sqrt(DIM)
    X.flags.writeable = False
    return X


def ranks(draws: dict[int, int]) -> Report:
    """Measure how often S = sum_i G_i^T G_i falls short of rank n k, at four n k for each d.

    Args:
        draws: Dimension d to the number of spectra.
    """
    rows: list[dict[str, object]] = []
    for d, count in draws.items():
        for n in (2, 4, 8) if d <= 128 else (8,):
            for quarters in (1, 2, 3, 4):
                k = quarters * d // 4 // n
                found = rank_deficiency(n, k, d, draws=count)
                short = round(found.probability * count)
                rows.append(
                    {
                        "setting": f"n = {n}",
                        "d": d,
                        "n k / d": quarters / 4,
                        "k": k,
                        "draws": count,
                        "short": short,
                        "share short": found.probability,
                        "at most (97.5 %)": float(clopper_pearson(short, count, confidence=0.95)[1]),
                        "mean rank": found.mean_rank,
                        "n k": n * k,
                        "rank that Rand-k needs": d * n * k / (d + n * k - k),
                        "line": f"d = {d}",
                    }
                )
    return Report(
        rows=rows, x="n k / d", y="share short", error=None, line="line", panel="setting", log_x=False,
        title=_TITLES["A.2"], labels={"share short": "share of draws with a rank below n k"},
        notes=tuple(rank_statements(rows)),
    )  # fmt: skip


def seconds(timed: Sequence[Timed], *, repeats: int) -> Report:
    """Measure how long a party encodes and the server decodes, in processor time: others disturb it less.

    Args:
        timed: Settings.
        repeats: Rounds; the median is taken.
    """
    rows: list[dict[str, object]] = []
    for one in timed:
        rng = simulated(0, "dme-synthetic/time", one.dim, one.n)
        X = rng.normal(size=one.dim) + 0.3 * rng.normal(size=(one.n, one.dim))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        for name in ("Rand-k", "RkS(avg)", "RPS(avg)", "Wangni", "Induced"):
            estimator = ESTIMATORS[name](one.dim, one.k, 0.0)
            took = [_timed(estimator, X, number, rng) for number in range(repeats + 1)][
                1:
            ]  # the first warms up
            for stage, values in zip(("encode", "decode"), zip(*took, strict=True), strict=True):
                rows.append(
                    {
                        "setting": f"{stage}, d = {one.dim}",
                        "n": one.n,
                        "k": one.k,
                        "estimator": name,
                        "ms": 1000 * float(np.median(values)),
                    }
                )
    return Report(
        rows=rows, x="n", y="ms", error=None, line="estimator", panel="setting", log_x=True, log_y=True,
        title=_TITLES["2.5"], labels={"n": "n, parties", "ms": "milliseconds of a processor"},
        notes=tuple(time_statements(rows)),
    )  # fmt: skip


def _timed(estimator: MeanEstimator, X: Array, number: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the processor seconds that one party encodes, on average, and that the server decodes."""
    asked = Round(n=len(X), parties=len(X), radius=_RADIUS, number=number, seed=1)
    began = time.process_time()
    messages = [m for i in range(len(X)) for m in estimator.encode(X[i : i + 1], asked, party=i, rng=rng)]
    between = time.process_time()
    estimator.decode(messages, asked, rng=rng)
    return (between - began) / len(X), time.process_time() - between
