"""Compressed, shuffled federated SGD: accuracy by epoch, and what that many epochs cost by every accountant.

Girgis (2023, Sections 4.6 and 5.5) trains a network on MNIST, of 60,000 clients with a record each, 10,000 of
them in a round, with one bit of one coordinate from each. Here a linear model is trained on fewer clients,
with the thesis's report and with two others of the same level; prices are also computed at the printed sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from tacit.experiments.report import Report, number, yes
from tacit.federation import Crowd, DrawnStep, Fixed, Measure, Plan, with_honest
from tacit.jobs.config import JobConfig
from tacit.jobs.data import load_job_data
from tacit.learning import LinearObjective, Multinomial, Problem, RecordGradient, Records
from tacit.learning.algorithms import CompressedShuffledSGD
from tacit.learning.algorithms.shuffled_reports import ReportRandomizer, report_bits, report_mean
from tacit.literature.shuffling.rounds import cldp_epsilons
from tacit.numerics import Array, Zero
from tacit.privacy import Repeat, Shuffled, TrustModel, epsilon_of
from tacit.privacy.shuffling import drawn_round
from tacit.randomness import simulated

__all__ = ["DIGITS", "MNIST", "PRINTED", "Task", "accounted", "compute", "run", "statements"]

DELTA, LEVEL, SHARE = 1e-5, 1.5, 6
"""Delta, what the thesis calls epsilon0 (its v), and rounds of an epoch: a sixth of the clients in each."""

PRINTED: Mapping[int, float] = {200: 2.91}
"""Epsilon that the thesis prints for that many epochs."""

_CLIENTS, _EPOCHS = 60_000, (10, 40, 70, 100, 200)
_REPORTS: Mapping[str, tuple[ReportRandomizer, float, float]] = {
    "one bit of one coordinate": ("bitplane", 0.1, 10.0),
    "one bit of a direction": ("hemisphere", 0.3, 15.0),
    "a private unit vector": ("privunit", 0.3, 15.0),
}
"""Reports, with where gradients are clipped in the norm of each, and the step."""

_CLEAR = "without noise"


@dataclass(frozen=True, kw_only=True)
class Task:
    """Records, each of one client.

    Attributes:
        name: What the table calls them.
        data: "digits", or a named data set.
        clients: n, the records that are trained on.
        epochs: When accuracy is looked at.
        trials: Seeds, 2 or more.
    """

    name: str
    data: str
    clients: int
    epochs: tuple[int, ...]
    trials: int

    def records(self) -> tuple[Array, Array, Array, Array]:
        """Return small images, of length at most 1, and labels, to train on and held out."""
        if self.data == "digits":
            X, y = load_digits(return_X_y=True)
        else:
            known = load_job_data(JobConfig(data=self.data, seed=0))
            order = np.concatenate([*known.train, known.test])
            X, y = known.X[order], known.y[order]
        order = simulated(0, f"cldp-sgd/{self.data}").permutation(len(X))
        X = _pooled(np.asarray(X, dtype=np.float64)[order])
        X = np.column_stack([X / np.linalg.norm(X, axis=1, keepdims=True), np.ones(len(X))]) / math.sqrt(2)
        y = np.asarray(y, dtype=np.float64)[order]
        return X[: self.clients], y[: self.clients], X[self.clients :], y[self.clients :]


DIGITS = Task(name="digits, 1,500 clients", data="digits", clients=1500, epochs=(5, 20, 40), trials=5)
MNIST = Task(name="MNIST, 8,000 clients", data="mnist", clients=8000, epochs=(5, 20, 40), trials=2)


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the tables; `quick` takes handwritten digits and 2 seeds, not MNIST as well."""
    few = Task(name=DIGITS.name, data="digits", clients=1500, epochs=(5, 20), trials=2)
    return compute([few] if quick else [DIGITS, MNIST], progress=progress)


def compute(tasks: Sequence[Task], *, progress: Callable[[int, int], Any]) -> Report:
    """Train by every report, and price the printed run.

    Args:
        tasks: Records.
        progress: Called with (done, total).
    """
    kinds = [*_REPORTS, _CLEAR]
    rows: list[dict[str, object]] = []
    total = len(tasks) * len(kinds) + len(_EPOCHS)
    for done, (task, kind) in enumerate((task, kind) for task in tasks for kind in kinds):
        progress(done, total)
        rows += _trained(task, kind)
    prices = []
    for done, epochs in enumerate(_EPOCHS, start=len(tasks) * len(kinds)):
        progress(done, total)
        prices.append(accounted(epochs))
    progress(total, total)
    return Report(
        rows=rows,
        x="epsilon",
        y="accuracy",
        error="standard error",
        line="report",
        panel="data",
        title="Accuracy on held-out records by epsilon, of reports of one level",
        notes=(
            "Replace-one records, one of each client, a sixth of whom are drawn in each round; delta = "
            f"{DELTA:g}. A linear model where the thesis has a network, with clips and steps that were tried "
            "on digits without privacy; accuracy is looked at in simulation.",
            *statements(rows, prices),
        ),
        more={
            "prices": Report(
                rows=prices,
                x="epochs",
                y="exact",
                error=None,
                line="clients",
                title="Epsilon of the printed run by accountant",
                notes=(
                    f"{_CLIENTS:,} clients with a record each, {_CLIENTS // SHARE:,} in a round, level "
                    f"{LEVEL}. `any report` is the numerical curve for all reports of that level; `exact` is "
                    "that of one bit at the level that the parameter v = 1.5 gives, 1.386.",
                ),
            )
        },
    )


def accounted(epochs: int, *, clients: int = _CLIENTS) -> dict[str, object]:
    """Return the epsilon of that many epochs of the printed run, by every accountant."""
    found = cldp_epsilons(
        LEVEL, DELTA, rounds=SHARE * epochs, clients=clients, sampled_clients=clients // SHARE
    )
    return {
        "clients": clients,
        "epochs": epochs,
        "printed": PRINTED.get(epochs),
        "Theorem 5.4.1": found["Rényi, printed"],
        "the same, sharp": found["Rényi"],
        "FMT22 + KOV15": found["composition"],
        "FMT22 + DR14": found["strong"],
        "any report": found["curve"],
        "exact": _epsilon("2rr", epochs, clients),
    }


def _epsilon(law: str, epochs: int, clients: int) -> float:
    """Return the epsilon of that many epochs at the exact level of v."""
    level = 2 * math.asinh(LEVEL / 2)
    one = drawn_round(lambda k: Shuffled(level, k, law), clients=clients, drawn=clients // SHARE)
    return epsilon_of(Repeat(one, SHARE * epochs), DELTA)


def _trained(task: Task, kind: str) -> Iterator[dict[str, object]]:
    """Yield a row for every number of epochs, the means over seeds."""
    found = np.array([_accuracies(task, kind, seed) for seed in range(task.trials)])
    law, bits = "2rr", None
    if kind in _REPORTS:
        mean = report_mean(_REPORTS[kind][0], 1 / LEVEL, dim=_dim(task), trust=TrustModel.SHUFFLE)
        law, bits = mean.randomizer.law, report_bits(mean)
    for k, epochs in enumerate(task.epochs):
        yield {
            "data": task.name,
            "report": kind,
            "bits": bits,
            "epochs": epochs,
            "epsilon": _epsilon(law, epochs, task.clients) if kind in _REPORTS else None,
            "accuracy": float(found[:, k].mean()),
            "standard error": float(found[:, k].std(ddof=1) / math.sqrt(task.trials)),
        }


def _pooled(X: Array) -> Array:
    """Return square images as means of blocks of 2 x 2, or 4 x 4 of large ones, shape (n, few)."""
    side = math.isqrt(int(X.shape[1]))
    block = 2 if side < 28 else 4
    few = side // block
    return np.asarray(X.reshape(-1, few, block, few, block).mean(axis=(2, 4)).reshape(len(X), few * few))


def _dim(task: Task) -> int:
    """Return the number of parameters."""
    return 10 * int(task.records()[0].shape[1])


def _accuracies(task: Task, kind: str, seed: int) -> list[float]:
    """Return the accuracy after every number of epochs of one run."""
    X, y, X_test, y_test = task.records()
    n, features = X.shape
    objective = LinearObjective(loss=Multinomial(), features=features, outputs=10, feature_norm=1.0)
    name, clip, step = _REPORTS.get(kind, ("hemisphere", 2.0, 4.0))
    drawn, rounds = n // SHARE, SHARE * task.epochs[-1]
    rng = simulated(seed, f"cldp-sgd/{task.data}/{kind}")
    ask: Any
    if kind in _REPORTS:
        mean = report_mean(name, 1 / LEVEL, dim=objective.size, trust=TrustModel.SHUFFLE, on_violation="clip")
        one = DrawnStep(
            measures=(Measure(statistic="gradient", estimator=mean, max_radius=clip),),
            batch=Fixed(size=1),
            parties=Fixed(size=drawn),
        )
        kinds = with_honest(((one, rounds),), [1] * n, n_min=n, colluding=0)
        plan = Plan(steps=kinds, parties=n, trust=TrustModel.SHUFFLE, n_min=n, delta=DELTA)
        crowd = Crowd(
            Records.of(X, y), {"gradient": RecordGradient(objective)}, trusts_shuffler=True, rng=rng
        )
        ask = crowd.open(plan)
    else:

        def ask(_step: int, at: Mapping[str, Array], _radius: tuple[float, ...]) -> tuple[Array]:
            index = rng.choice(n, drawn, replace=False)
            return (objective.gradients(at["w"], Records.of(X[index], y[index])).mean(axis=0),)

    seen: dict[int, float] = {}
    wanted = {SHARE * epochs - 1: epochs for epochs in task.epochs}

    def follow(r: int, w: Array) -> None:
        if r in wanted:
            scores = X_test @ w.reshape(features, 10)
            seen[r] = float((scores.argmax(axis=1) == y_test).mean())

    CompressedShuffledSGD(step_size=step, decay=kind in _REPORTS).run(
        ask,
        np.zeros(objective.size),
        problem=Problem(smoothness=1.0, radius=clip, diameter=1.0, dim=objective.size, variance=0.0),
        rounds=rounds,
        prox=Zero(),
        follow=follow,
    )
    return list(seen.values())


def statements(rows: Sequence[Mapping[str, object]], prices: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield what the thesis states, with whether it holds in these rows.

    Args:
        rows: Of runs.
        prices: Of the printed run.
    """
    for row in prices:
        epochs, renyi = int(number(row["epochs"])), number(row["Theorem 5.4.1"])
        if row["printed"] is not None:
            printed, near = number(row["printed"]), number(row["any report"])
            yield (
                f"{epochs} epochs: the printed epsilon {printed:.2f} is that of Theorem 5.4.1 within a "
                f"tenth: {yes(abs(renyi / printed - 1) < 0.1)} ({renyi:.2f}); today's curve for any "
                f"report gives {near:.3f}, and for this one {number(row['exact']):.3f}."
            )
        composed = number(row["FMT22 + KOV15"])
        yield (
            f"{epochs} epochs: Theorem 5.4.1 is below FMT22 with the exact composition: "
            f"{yes(renyi < composed)} ({renyi:.2f} against {composed:.2f})."
        )
    for data in dict.fromkeys(str(row["data"]) for row in rows):
        mine = [row for row in rows if row["data"] == data]
        last = {str(row["report"]): row for row in mine}  # of the most epochs
        best = max((kind for kind in last if kind != _CLEAR), key=lambda kind: number(last[kind]["accuracy"]))
        thesis, found = last[next(iter(_REPORTS))], last[best]
        yield (
            f"{data}, {int(number(thesis['epochs']))} epochs: the thesis's report of "
            f"{int(number(thesis['bits']))} bits reaches {number(thesis['accuracy']):.3f} at epsilon "
            f"{number(thesis['epsilon']):.2f}, the best report ({best}) {number(found['accuracy']):.3f} at "
            f"{number(found['epsilon']):.2f}, and no noise {number(last[_CLEAR]['accuracy']):.3f}."
        )
        for kind in _REPORTS:
            line = [number(row["accuracy"]) for row in mine if row["report"] == kind]
            yield f"{data}: more epochs are more accurate with {kind}: {yes(line[-1] > line[0])}."
