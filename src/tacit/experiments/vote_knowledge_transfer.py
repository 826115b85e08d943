"""Labels for a student by the votes of 11 teachers (Jiang 2025, Tables 3.1, 3.2 and B.2 to B.8).

Private teachers with the majority of Sub, of opt, or as it is; teachers that are not private with GNMax, as
the thesis calibrates it and by its exact curve, and with the staircase. All on disjoint shards, so that the
sound price of fixed private teachers is that of one of them; what the thesis states instead stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from tacit.data import load
from tacit.errors import DataError
from tacit.experiments.report import Report
from tacit.experiments.vote_transfer_methods import (
    DELTA,
    OPT,
    RENYI,
    SUB,
    TEACHERS,
    VoteMethod,
    methods,
    sigma_by_order,
)
from tacit.experiments.vote_transfer_thesis import (
    ALLOWANCES,
    PRINTED,
    QUERIES,
    printed_delta,
    statements,
    thesis_total,
)
from tacit.learning import FederatedLogisticRegression
from tacit.numerics import Array, IntArray
from tacit.privacy import PrivacyBudget
from tacit.randomness import simulated
from tacit.voting import Shards, gnmax_sigma_rdp, index_shards

__all__ = ["DRAWS", "VoteTask", "compute", "gaussians", "images", "pooled", "replayed", "run", "shared"]

DRAWS = 10
_THESIS_COLUMN = {RENYI: 0, SUB: 1, OPT: 2}


@dataclass(frozen=True, kw_only=True)
class VoteTask:
    """Two classes, 0 and 1.

    Attributes:
        name: Of the data.
        epsilon: Of each private teacher, at delta 1e-4.
        X: Training rows, shape (n, d).
        y: Their labels.
        rows: Held-out rows: queries and tests of the student.
        labels: Theirs.
        bounds: Public bounds of the features.
        shards: SHARED trains each private teacher on all rows; then only these teachers are measured.
        thesis: Name in `PRINTED` of the data set that this is, or stands in for; None for none.
        notes: What must be said of the data.
    """

    name: str
    epsilon: float
    X: Array
    y: IntArray
    rows: Array
    labels: IntArray
    bounds: tuple[float, float]
    shards: Shards = Shards.DISJOINT
    thesis: str | None = None
    notes: tuple[str, ...] = ()

    def ballots(self, *, private: bool) -> IntArray:
        """Train the teachers; return their votes on the held-out rows, shape (rows, K)."""
        parts = index_shards(len(self.X), TEACHERS, seed=0)
        if private and self.shards is Shards.SHARED:
            parts = [np.arange(len(self.X))] * TEACHERS
        votes = []
        for k, part in enumerate(parts):
            if private:
                seed = int(simulated(0, "vote-transfer", self.name, "teacher", k).integers(2**31))
                teacher = FederatedLogisticRegression(
                    budget=PrivacyBudget(self.epsilon, DELTA),
                    bounds=self.bounds,
                    classes=[0, 1],
                    random_state=seed,
                )
            else:
                teacher = LogisticRegression(max_iter=1000)
            votes.append(teacher.fit(self.X[part], self.y[part]).predict(self.rows))
        return np.asarray(np.stack(votes, axis=1), dtype=np.int64)


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the tables; `quick` takes m = 3, and no teachers that share their data."""
    tasks, notes = [], []
    for name, thesis in (("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST")):
        try:
            task = images(name, thesis)
        except DataError:
            notes.append(f"{thesis} is not there: its rows are left out, but for the replayed ones.")
        else:
            tasks += [task] if quick else [task, shared(task), shared(pooled(task))]
    tasks += [gaussians(20, 0.0892), gaussians(5, 0.0852)]
    return compute(tasks, allowances=(3,) if quick else ALLOWANCES, progress=progress, notes=notes)


def compute(
    tasks: Sequence[VoteTask],
    *,
    allowances: Sequence[int],
    progress: Callable[[int, int], Any],
    queries: Sequence[int] = QUERIES,
    notes: Sequence[str] = (),
) -> Report:
    """Measure every method on every task.

    Args:
        tasks: Data sets.
        allowances: m: a label may cost as much as m private teachers.
        progress: Called with (done, total).
        queries: Q: how many labels are published.
        notes: What must be said besides.
    """
    rows: list[dict[str, object]] = []
    said: list[str] = []
    total = len(tasks) * (1 + len(allowances))
    for i, task in enumerate(tasks):
        progress(i * (1 + len(allowances)), total)
        disjoint = task.shards is Shards.DISJOINT
        counts = {kind: task.ballots(private=kind) for kind in ((True, False) if disjoint else (True,))}
        said += [*task.notes, *_teachers(task, counts)]
        ones = {kind: votes.sum(axis=1) for kind, votes in counts.items()}
        for j, m in enumerate(allowances):
            progress(i * (1 + len(allowances)) + 1 + j, total)
            for method in methods(task.epsilon, m, task.shards):
                rows += _measured(task, method, ones[method.private], m, queries)
    for thesis in PRINTED:
        rows += [row for m in allowances for row in replayed(thesis, m, queries)]
    progress(total, total)
    return Report(
        rows=rows,
        x="m",
        y="expected",
        error="standard error",
        line="method",
        panel="data",
        log_x=False,
        shown=("data", "method", "m", "Q", "accuracy", "std", "expected", "student", "epsilon", "delta"),
        notes=(*notes, *said, *_always(), *statements(rows)),
        more={"sigma-by-order": _figure_b8()},
    )


def replayed(thesis: str, m: int, queries: Sequence[int] = QUERIES) -> Iterator[dict[str, object]]:
    """Yield rows without data: what noise alone does to teachers that are always right.

    Args:
        thesis: A name of `PRINTED`.
        m: The allowance.
        queries: Numbers of labels.
    """
    for method in methods(PRINTED[thesis].epsilon, m):
        right = float(method.chance[TEACHERS])
        # What the thesis prints for private teachers depends on how often they are right.
        told = None if method.private else thesis
        for q in queries:
            yield _row(
                f"{thesis}, replayed",
                method,
                m,
                q,
                PRINTED[thesis].epsilon,
                told,
                {"expected": right, "standard error": 0.0, "std": math.sqrt(right * (1 - right) / q)},
            )


def images(name: str, thesis: str) -> VoteTask:
    """Load the classes 5 and 8 of MNIST or Fashion-MNIST; the data set is what is left of the others.

    Args:
        name: Of the data set.
        thesis: Its name in `PRINTED`.

    Raises:
        DataError: The files are not there.
    """
    digits = load(name, download=False)
    assert digits.train is not None  # noqa: S101 - narrows the type: MNIST has halves
    assert digits.test is not None  # noqa: S101
    assert digits.groups is not None  # noqa: S101
    kept = np.isin(digits.groups, (5, 8))
    halves = [np.asarray(half)[kept[np.asarray(half)]] for half in (digits.train, digits.test)]
    (X, y), (rows, labels) = [
        (digits.X[half], (digits.groups[half] == 8).astype(np.int64)) for half in halves
    ]
    return VoteTask(
        name=thesis,
        epsilon=PRINTED[thesis].epsilon,
        X=X,
        y=y,
        rows=rows,
        labels=labels,
        bounds=(0.0, 1.0),
        thesis=thesis,
        notes=tuple(f"{thesis}: {note}." for note in digits.notes),
    )


def shared(task: VoteTask) -> VoteTask:
    """Return a task in which every private teacher learns from all records."""
    return replace(task, name=f"{task.name}, shared", shards=Shards.SHARED, thesis=None, notes=())


def pooled(task: VoteTask, side: int = 4) -> VoteTask:
    """Return a task with the mean of every `side` x `side` pixels: a public map to fewer features."""
    edge = math.isqrt(task.X.shape[1])
    blocks = (edge // side, side, edge // side, side)
    X, rows = (x.reshape(-1, *blocks).mean(axis=(2, 4)).reshape(len(x), -1) for x in (task.X, task.rows))
    return replace(task, name=f"{task.name} {edge // side} x {edge // side}", X=X, rows=rows)


def gaussians(dim: int, epsilon: float, *, shard: int = 1000, held: int = 2000) -> VoteTask:
    """Make two Gaussian classes with means 1.5 from the origin, with shards of the size in the thesis.

    Args:
        dim: d; private teachers are the better, the smaller it is.
        epsilon: Of each private teacher.
        shard: Records of a teacher.
        held: Held-out rows.
    """
    rng = simulated(0, "vote-transfer", "gaussians", dim)
    n = TEACHERS * shard
    y = rng.integers(2, size=n + held)
    X = rng.normal(size=(n + held, dim)) + (2 * y - 1)[:, None] * 1.5 / math.sqrt(dim)
    return VoteTask(
        name=f"Gaussians, d = {dim}",
        epsilon=epsilon,
        X=X[:n],
        y=y[:n],
        rows=X[n:],
        labels=y[n:],
        bounds=(-4.0, 4.0),
    )


def _measured(
    task: VoteTask, method: VoteMethod, counts: IntArray, m: int, queries: Sequence[int]
) -> Iterator[dict[str, object]]:
    """Yield the rows of one method on one task."""
    expected, error = method.expected(counts, task.labels)
    for q in queries:
        right, taught = [], []
        for draw in range(DRAWS):
            # The same queries for all methods.
            asked = simulated(0, "vote-transfer", task.name, "queries", q, draw).permutation(len(counts))[:q]
            rng = simulated(0, "vote-transfer", task.name, method.name, m, q, draw)
            labels = method.release(counts[asked], rng)
            right.append(float(np.mean(labels == task.labels[asked])))
            taught.append(_student(task, asked, labels))
        found = {
            "accuracy": float(np.mean(right)),
            "std": float(np.std(right, ddof=1)),
            "expected": expected,
            "standard error": error,
            "student": float(np.mean(taught)),
        }
        yield _row(task.name, method, m, q, task.epsilon, task.thesis, found)


def _student(task: VoteTask, asked: IntArray, labels: IntArray) -> float:
    """Return the accuracy of a student of some published labels, on the other held-out rows."""
    others = np.setdiff1d(np.arange(len(task.labels)), asked)
    if len(np.unique(labels)) == 1:
        return float(np.mean(task.labels[others] == labels[0]))
    student = LogisticRegression(C=0.1, max_iter=1000).fit(task.rows[asked], labels)
    return float(np.mean(student.predict(task.rows[others]) == task.labels[others]))


def _row(
    data: str,
    method: VoteMethod,
    m: int,
    q: int,
    level: float,
    thesis: str | None,
    found: dict[str, float],
) -> dict[str, object]:
    """Return a row: what was found, what the thesis prints, and both prices."""
    stated, lost = thesis_total(level, m, q)
    epsilon, delta = method.price(q, lost)
    column = None if thesis is None else _THESIS_COLUMN.get(method.name)
    told = None if thesis is None or column is None else PRINTED[thesis].accuracy.get((m, q))
    mean, std = (None, None) if told is None or column is None else told[column]
    return {
        "data": data,
        "method": method.name,
        "m": m,
        "Q": q,
        **{key: found.get(key) for key in ("accuracy", "std", "expected", "standard error")},
        "thesis": mean,
        "thesis std": std,
        "student": found.get("student"),
        "epsilon": epsilon,
        "delta": delta,
        "thesis epsilon": stated,
        "thesis delta": lost,
        "sigma": method.sigma,
        "order": method.order,
    }


def _teachers(task: VoteTask, ballots: dict[bool, IntArray]) -> Iterator[str]:
    """Say how good the teachers are."""
    shared = task.shards is Shards.SHARED
    size = f"{len(task.X)} records (all of them)" if shared else f"{len(task.X) // TEACHERS} records each"
    means = {
        "private": (ballots[True] == task.labels[:, None]).mean(),
        **({} if shared else {"not private": (ballots[False] == task.labels[:, None]).mean()}),
    }
    each = ", ".join(f"{mean:.3f} {kind}" for kind, mean in means.items())
    yield (
        f"{task.name}: {TEACHERS} logistic teachers on {size}, {len(task.labels)} held-out rows; mean "
        f"accuracy of a teacher: {each}."
    )


def _always() -> tuple[str, ...]:
    """Return what must be said of the columns."""
    return (
        f"accuracy and std: of the labels, over {DRAWS} draws of Q held-out rows, the same for all methods; "
        "expected: exact, from the votes on all held-out rows; student: of a logistic regression on the Q "
        "labels, on the other held-out rows.",
        "epsilon and delta: the sound total of all Q labels. thesis epsilon, thesis delta: general "
        "composition of the Q answers; for private teachers that were trained once it is not proven, because "
        "all answers are functions of the same models. Proven is the price of one teacher on disjoint "
        f"shards, of {TEACHERS} where all teachers have all records.",
        "The data are the records of the two classes: replacing one means by another of them.",
    )


def _figure_b8() -> Report:
    """Return sigma^2 of GNMax by Rényi order, and where the curves turn, against Table B.2."""
    rows: list[dict[str, object]] = []
    notes = []
    for thesis, printed in PRINTED.items():
        one, lost = 3 * printed.epsilon, printed_delta(3, DELTA)
        sigma, order = gnmax_sigma_rdp(one, lost)
        orders = np.append(np.geomspace(0.55 * order, 8 * order, 30), [printed.order, order])
        squares = sigma_by_order(one, lost, np.sort(orders)) ** 2
        rows += [
            {"data": thesis, "order": float(at), "sigma squared": float(square)}
            for at, square in zip(np.sort(orders), squares, strict=True)
        ]
        there = math.sqrt(squares[np.sort(orders) == printed.order][0])
        notes.append(
            f"Figure B.8, {thesis}: sigma^2 falls until order {order:.2f} and rises after; there sigma is "
            f"{sigma:.2f} (Table B.2: {printed.sigma}); at the printed order {printed.order} it is "
            f"{there:.2f}."
        )
    return Report(
        rows=rows,
        x="order",
        y="sigma squared",
        error=None,
        line="data",
        log_x=False,
        notes=tuple(notes),
        title="Variance of the noise of GNMax by the Rényi order that prices it (Figure B.8)",
    )
