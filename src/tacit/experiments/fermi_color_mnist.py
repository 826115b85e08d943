"""Digits whose colour is their label in training, and white ones in the test (Lowy 2023, Figure 5.6).

A network that reads the colour is lost on white digits. The penalty makes predictions independent of the
colour, which is the label itself: the training error must rise for the test error to fall. Networks need
`tacit[torch]`; a softmax regression stands beside them, and alone where it is not installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data import load_preset
from tacit.experiments.fermi_places import counted, row
from tacit.experiments.fermi_statements import lines_of
from tacit.experiments.report import Report, number, yes
from tacit.fairness import (
    Conditions,
    Fairness,
    FairProblem,
    Groups,
    LinearScores,
    Scores,
    StepSizes,
    fermi,
    network_scores,
    parity_violation,
    penalty_of,
)
from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["NETWORKS", "Task", "compute", "run", "statements"]

_NAME = "fermi-color-mnist"
NETWORKS = importlib.util.find_spec("torch") is not None
_SOFTMAX = "softmax regression"
_KINDS = {"MLP": "mlp", "LeNet-5": "lenet-5"}
_STEPS = {_SOFTMAX: 0.05, "MLP": 0.1, "LeNet-5": 0.1}
_WEIGHTS = (0.0, 2.0, 4.0, 7.5)
_COLOURED = "colour is the label"
_BATCHED = "batches, weight 4"


@dataclass(frozen=True)
class Task:
    """A model to train.

    Attributes:
        panel: That it is in.
        line: Softmax regression or a network, and in the panel of batches its penalty.
        at: Weight, or size of batches.
        model: Which one.
        weight: Of the penalty.
        batch: Its size.
        epochs: Passes over the images.
        penalty: A name of `PenaltyName`.
    """

    panel: str
    line: str
    at: float
    model: str
    weight: float
    batch: int
    epochs: int
    penalty: str = "ermi"


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Train models; `quick` takes two weights, an MLP beside softmax regression, and few epochs."""
    networks = _KINDS if NETWORKS else {}
    if quick:
        models = [_SOFTMAX, *list(networks)[:1]]
        return compute([Task(_COLOURED, m, w, m, w, 512, 3) for m in models for w in (0.0, 7.5)], progress)
    models = [_SOFTMAX, *networks]
    asked = [
        Task(_COLOURED, m, w, m, w, 512 if m == _SOFTMAX else 64, 20 if m == _SOFTMAX else 5)
        for m in models
        for w in _WEIGHTS
    ]
    for name, penalty in (("FERMI", "ermi"), ("plug-in", "ermi-plug-in")):
        asked += [
            Task(_BATCHED, f"{_SOFTMAX}, {name}", b, _SOFTMAX, 4.0, b, epochs, penalty)
            for b, epochs in ((8, 5), (64, 10), (512, 20))
        ]
    return compute(asked, progress)


def compute(asked: Sequence[Task], progress: Callable[[int, int], Any], records: int | None = None) -> Report:
    """Train models.

    Args:
        asked: Which ones.
        progress: Called with (done, total).
        records: Training images that are taken, the first ones; None takes all.
    """
    data = load_preset("color-mnist", rng=np.random.default_rng(0))
    X, y, white = data.X_train[:records], data.y_train[:records], data.X_test
    groups = Groups.of(data.sensitive_train.iloc[:records, 0])
    classes = list(range(len(data.classes)))
    where = Conditions.of(Fairness.DEMOGRAPHIC_PARITY, None, classes=classes, n=len(y))
    rows = []
    for task in counted(asked, progress):
        model, inside, outside = _model(task.model, X, white, len(classes))
        penalty, of = penalty_of(task.penalty, groups, where, len(classes))
        step = _STEPS[task.model]
        fitted = fermi(
            FairProblem(model, inside, y, penalty, of, task.weight),
            steps=StepSizes(step / (1 + task.weight / 5), min(step, 0.5)),
            batch_size=task.batch,
            epochs=task.epochs,
            rng=simulated(0, _NAME, "order"),
        )
        said = model.scores(fitted.theta, inside).argmax(axis=1)
        found = {
            "error": float(np.mean(model.scores(fitted.theta, outside).argmax(axis=1) != data.y_test)),
            "train error": float(np.mean(said != y)),
            "violation": parity_violation(said, groups, measure="linf", classes=classes),
        }
        rows.append(row(_NAME, task.panel, task.line, task.at, found))
    missing = "" if NETWORKS else " PyTorch is not installed: no network was trained."
    return Report(
        rows=rows,
        x="weight",
        y="error",
        error=None,
        line="line",
        panel="panel",
        log_x=False,
        shown=("panel", "line", "weight", "error", "reference error", "train error", "violation"),
        labels={"weight": "weight of the penalty, or size of batches", "error": "test error, white digits"},
        notes=(
            "The weight of the panel of batches is their size. The violation is that of the training images: "
            "the largest difference between a colour and all, of hard predictions.",
            f"{len(y)} training images, plain steps of descent and ascent in few epochs, and colours without "
            "noise; the reference is the chapter's, from 60,000 images and an earlier set of models, with a "
            f"schedule that is not stated. Not run: REPAIR, Cho, and noise of colours.{missing}",
            *data.notes,
            *statements(rows),
        ),
    )


def statements(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    """Yield what holds of each statement."""
    lines = lines_of(rows)
    for line, several in lines.get(_COLOURED, {}).items():
        plain, last = several[0], several[-1]
        said = {key: (number(plain[key]), number(last[key])) for key in ("error", "train error", "violation")}
        yield (
            f"{line}: the penalty lowers the error of white digits: "
            f"{yes(said['error'][1] < said['error'][0])}, "
            f"{said['error'][0]:.3f} to {said['error'][1]:.3f}; it raises that of training: "
            f"{yes(said['train error'][1] > said['train error'][0])}, {said['train error'][0]:.3f} to "
            f"{said['train error'][1]:.3f}; it lowers the violation: "
            f"{yes(said['violation'][1] < said['violation'][0])}, {said['violation'][0]:.3f} to "
            f"{said['violation'][1]:.3f}."
        )
    batched = lines.get(_BATCHED, {})
    for line, several in batched.items():
        gaps = ", ".join(f"{number(one['violation']):.3f} at {number(one['weight']):g}" for one in several)
        yield f"{line}: violation by size of batches: {gaps}."


def _model(name: str, X: Array, white: Array, classes: int) -> tuple[Scores, Array, Array]:
    """Return a model, and both halves as it takes them."""
    if name == _SOFTMAX:
        halves = [np.column_stack([part, np.ones(len(part), part.dtype)]) for part in (X, white)]
        return LinearScores(X.shape[1] + 1, classes), halves[0], halves[1]
    side = round((X.shape[1] / 3) ** 0.5)
    rng = simulated(0, _NAME, name)
    return network_scores(_KINDS[name], channels=3, side=side, classes=classes, rng=rng), X, white
