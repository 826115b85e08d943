"""Compressed, shuffled federated SGD: accuracy by epoch, and what that many epochs cost by every accountant.

Girgis (2023, Sections 4.6 and 5.5) trains a network on MNIST, of 60,000 clients with a record each, 10,000 of
them in a round, with one bit of one coordinate from each. Here a linear model is trained, with the thesis's
report and with two others of the same level, and by DP-SGD of a trusted server at the same epsilon; prices
are also computed at the printed sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from tacit.experiments.cldp_sgd_statements import (
    AT_THREE,
    CENTRAL,
    CENTRAL_EPSILON,
    CLEAR,
    DIRECTION,
    LEVEL,
    THESIS,
    UNIT,
    statements,
)
from tacit.experiments.report import Report
from tacit.federation import Crowd, DrawnStep, Fixed, Measure, Plan, with_honest
from tacit.jobs.config import JobConfig
from tacit.jobs.data import load_job_data
from tacit.learning import (
    LinearObjective,
    Multinomial,
    NoisyMinibatchSGD,
    Problem,
    RecordGradient,
    Records,
    Settings,
    train,
)
from tacit.learning.algorithms import CompressedShuffledSGD
from tacit.learning.algorithms.shuffled_reports import ReportRandomizer, report_bits, report_mean
from tacit.learning.training import silos_for
from tacit.literature.shuffling.rounds import cldp_epsilons
from tacit.numerics import Array, Zero
from tacit.privacy import PrivacyBudget, Repeat, Shuffled, TrustModel, epsilon_of
from tacit.privacy.shuffling import drawn_round
from tacit.randomness import simulated

__all__ = ["DIGITS", "MNIST", "PRINTED", "Task", "accounted", "compute", "run"]

DELTA, SHARE = 1e-5, 6
"""Delta, and rounds of an epoch: a sixth of the clients in each."""

PRINTED: Mapping[tuple[float, int], float] = {(LEVEL, 200): 2.91, (2.0, 80): 10.0}
"""Epsilon that the thesis prints by level and epochs: of Figure 5.7, and of Figure 4.2."""

_CLIENTS, _EPOCHS = 60_000, (10, 40, 70, 100, 200)
_REPORTS: Mapping[str, tuple[ReportRandomizer, float, float]] = {
    THESIS: ("bitplane", 0.1, 10.0),
    DIRECTION: ("hemisphere", 0.3, 15.0),
    UNIT: ("privunit", 0.3, 15.0),
}
"""Reports, with where gradients are clipped in the norm of each, and the step."""

_CENTRAL_CLIP, _CENTRAL_STEP = 0.3, 25.0


@dataclass(frozen=True, kw_only=True)
class Task:
    """Records, each of one client.

    Attributes:
        name: What the table calls them.
        data: "digits", or a named data set.
        clients: n, each with one of the records that are trained on.
        epochs: When accuracy is looked at.
        trials: Seeds.
        different: Records that there are, which clients have in turn; None is one for each client.
        kinds: Of reports that are measured.
    """

    name: str
    data: str
    clients: int
    epochs: tuple[int, ...]
    trials: int
    different: int | None = None
    kinds: tuple[str, ...] = (*_REPORTS, CENTRAL, AT_THREE, CLEAR)

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
        many = self.clients if self.different is None else self.different
        held = np.arange(self.clients) % many
        return X[held], y[held], X[many:], y[many:]


DIGITS = Task(name="digits, 1,500 clients", data="digits", clients=1500, epochs=(5, 20, 40), trials=5)
MNIST = Task(name="MNIST, 8,000 clients", data="mnist", clients=8000, epochs=(5, 20, 40), trials=3)
AS_PRINTED = Task(
    name="MNIST, 60,000 clients",
    data="mnist",
    clients=_CLIENTS,
    epochs=_EPOCHS,
    trials=2,
    different=8000,
    kinds=(THESIS, DIRECTION, CENTRAL, AT_THREE),
)
"""As many clients as the thesis has, who have 8,000 digits between them."""


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the tables; `quick` takes handwritten digits and 2 seeds, not MNIST as well."""
    few = Task(name=DIGITS.name, data="digits", clients=1500, epochs=(5, 20), trials=2)
    return compute([few] if quick else [DIGITS, MNIST, AS_PRINTED], progress=progress)


def compute(tasks: Sequence[Task], *, progress: Callable[[int, int], Any]) -> Report:
    """Train by every report, and price the printed run.

    Args:
        tasks: Records.
        progress: Called with (done, total).
    """
    rows: list[dict[str, object]] = []
    runs = [(task, kind) for task in tasks for kind in task.kinds]
    asked = [*((epochs, LEVEL) for epochs in _EPOCHS), *((e, v) for v, e in PRINTED if v != LEVEL)]
    total = len(runs) + len(asked)
    for done, (task, kind) in enumerate(runs):
        progress(done, total)
        rows += _trained(task, kind)
    prices = []
    for done, (epochs, level) in enumerate(asked, start=len(runs)):
        progress(done, total)
        prices.append(accounted(epochs, level=level))
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
            "without privacy; accuracy is looked at in simulation.",
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
                    f"{_CLIENTS:,} clients with a record each, {_CLIENTS // SHARE:,} in a round. `any "
                    "report` is the numerical curve for all reports of that level, `exact` that of one bit "
                    "at the level of the parameter v, 1.386 for 1.5.",
                ),
            )
        },
    )


def accounted(epochs: int, *, level: float = LEVEL, clients: int = _CLIENTS) -> dict[str, object]:
    """Return the epsilon of that many epochs of the printed run, by every accountant."""
    found = cldp_epsilons(
        level, DELTA, rounds=SHARE * epochs, clients=clients, sampled_clients=clients // SHARE
    )
    return {
        "clients": clients,
        "level": level,
        "epochs": epochs,
        "printed": PRINTED.get((level, epochs)),
        "Theorem 5.4.1": found["Rényi, printed"],
        "the same, sharp": found["Rényi"],
        "FMT22 + KOV15": found["composition"],
        "FMT22 + DR14": found["strong"],
        "any report": found["curve"],
        "exact": _epsilon("2rr", epochs, clients, parameter=level),
    }


def _error(values: Array) -> float | None:
    """Return the standard error of a mean; None of one value."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def _report(kind: str, dim: int) -> Any:
    """Return the mean of reports of that kind at v = 1.5."""
    return report_mean(_REPORTS[kind][0], 1 / LEVEL, dim=dim, trust=TrustModel.SHUFFLE, on_violation="clip")


def _epsilon(law: str, epochs: int, clients: int, *, parameter: float = LEVEL) -> float:
    """Return the epsilon of that many epochs at the exact level of v."""
    level = 2 * math.asinh(parameter / 2)
    one = drawn_round(lambda k: Shuffled(level, k, law), clients=clients, drawn=clients // SHARE)
    return epsilon_of(Repeat(one, SHARE * epochs), DELTA)


def _trained(task: Task, kind: str) -> Iterator[dict[str, object]]:
    """Yield a row for every number of epochs, the means over seeds."""
    law, bits = "2rr", None
    if kind in _REPORTS:
        mean = _report(kind, _objective(task.records()[0].shape[1]).size)
        law, bits = mean.randomizer.law, report_bits(mean)
    fixed = {CLEAR: None, AT_THREE: CENTRAL_EPSILON}
    epsilons = [fixed.get(kind, _epsilon(law, epochs, task.clients)) for epochs in task.epochs]
    found = np.array([_accuracies(task, kind, seed, epsilons) for seed in range(task.trials)])
    for k, epochs in enumerate(task.epochs):
        yield {
            "data": task.name,
            "report": kind,
            "bits": bits,
            "epochs": epochs,
            "epsilon": epsilons[k],
            "accuracy": float(found[:, k].mean()),
            "standard error": _error(found[:, k]),
        }


def _pooled(X: Array) -> Array:
    """Return square images as means of blocks of 2 x 2, or 4 x 4 of large ones, shape (n, few)."""
    side = math.isqrt(int(X.shape[1]))
    block = 2 if side < 28 else 4
    few = side // block
    return np.asarray(X.reshape(-1, few, block, few, block).mean(axis=(2, 4)).reshape(len(X), few * few))


def _objective(features: int) -> LinearObjective:
    """Return what is minimised."""
    return LinearObjective(loss=Multinomial(), features=features, outputs=10, feature_norm=1.0)


def _accuracies(task: Task, kind: str, seed: int, epsilons: Sequence[float | None]) -> list[float]:
    """Return the accuracy after every number of epochs: of one run, or of one for each epsilon."""
    if kind in (CENTRAL, AT_THREE):
        pairs = zip(task.epochs, epsilons, strict=True)
        return [_central(task, epochs, epsilon, seed) for epochs, epsilon in pairs if epsilon is not None]
    X, y, X_test, y_test = task.records()
    n, features = X.shape
    objective = _objective(features)
    _, clip, step = _REPORTS.get(kind, ("", 2.0, 4.0))
    drawn, rounds = n // SHARE, SHARE * task.epochs[-1]
    rng = simulated(seed, f"cldp-sgd/{task.data}/{kind}")
    ask: Any
    if kind in _REPORTS:
        mean = _report(kind, objective.size)
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
            seen[r] = _accuracy(w, X_test, y_test)

    CompressedShuffledSGD(step_size=step, decay=kind in _REPORTS).run(
        ask,
        np.zeros(objective.size),
        problem=Problem(smoothness=1.0, radius=clip, diameter=1.0, dim=objective.size, variance=0.0),
        rounds=rounds,
        prox=Zero(),
        follow=follow,
    )
    return list(seen.values())


def _central(task: Task, epochs: int, epsilon: float, seed: int) -> float:
    """Return the accuracy of a run of DP-SGD."""
    X, y, X_test, y_test = task.records()
    n, features = X.shape
    batch = Fixed(size=n // SHARE)
    settings = Settings(
        objective=_objective(features),
        algorithm=NoisyMinibatchSGD(rounds=SHARE * epochs, batch=batch, step_size=_CENTRAL_STEP),
        trust=TrustModel.CENTRAL,
        # Not all its digits: a price is rounded up, and may not be above what is agreed.
        budget=PrivacyBudget(float(f"{epsilon:.6g}"), DELTA),
        clip=_CENTRAL_CLIP,
    )
    silos = silos_for(settings, [Records.of(X, y)], names=["clients"], seed=seed)
    return _accuracy(train(silos, settings).w, X_test, y_test)


def _accuracy(w: Array, X: Array, y: Array) -> float:
    """Return how often a model is right."""
    return float(((X @ w.reshape(X.shape[1], 10)).argmax(axis=1) == y).mean())
