"""Digits whose colour is their label in training, and white ones in the test (Lowy 2023, Figure 5.6).

A network that reads the colour is lost on white digits. The penalty makes predictions independent of the
colour, which is the label itself: the training error must rise for the test error to fall. Networks need
`tacit[torch]`; a softmax regression stands beside them, and alone where it is not installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax

from tacit.data import load_preset
from tacit.experiments.fermi_places import Place, measured
from tacit.experiments.fermi_statements import lines_of, near
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
from tacit.numerics import Array, IntArray
from tacit.randomness import simulated

__all__ = ["Task", "compute", "run", "statements"]

_NAME = "fermi-color-mnist"
_NETWORKS = importlib.util.find_spec("torch") is not None
_SOFTMAX = "softmax regression"
_KINDS = {"MLP": "mlp", "LeNet-5": "lenet-5"}
_STEPS = {_SOFTMAX: 0.05, "MLP": 0.1, "LeNet-5": 0.1}
_WEIGHTS = (0.0, 2.0, 4.0, 7.5)
_EPOCHS = 20
_TOLERANCES = {"error": 0.05, "train error": 0.05, "violation": 0.05}
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
    networks = _KINDS if _NETWORKS else {}
    if quick:
        models = [_SOFTMAX, *list(networks)[:1]]
        return compute([Task(_COLOURED, m, w, m, w, 512, 3) for m in models for w in (0.0, 7.5)], progress)
    models = [_SOFTMAX, *networks]
    asked = [
        Task(_COLOURED, m, w, m, w, 512 if m == _SOFTMAX else 64, _EPOCHS) for m in models for w in _WEIGHTS
    ]
    for name, penalty in (("FERMI", "ermi"), ("plug-in", "ermi-plug-in")):
        asked += [
            Task(_BATCHED, f"{_SOFTMAX}, {name}", b, _SOFTMAX, 4.0, b, epochs, penalty)
            for b, epochs in ((8, 5), (64, 10), (512, _EPOCHS))
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
    images = _Images(data.X_train[:records], data.y_train[:records], data.X_test, data.y_test)
    groups = Groups.of(data.sensitive_train.iloc[:records, 0])
    places = [Place(task.panel, task.line, task.at, partial(_worth, task, images, groups)) for task in asked]
    rows = measured(_NAME, places, progress)
    missing = "" if _NETWORKS else " PyTorch is not installed: no network was trained."
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
            "The weight of the panel of batches is their size. The violation is that of the training images, "
            "the largest difference between a colour and all: of probabilities, as the penalty sees them, "
            "and of hard predictions, which no accurate model makes small where the colour is the label.",
            f"{len(images.y)} training images, plain steps of descent and ascent, and colours without "
            "noise; the reference is the chapter's, from 60,000 images and an earlier set of models, with a "
            f"schedule that is not stated. Not run: REPAIR, Cho, and noise of colours.{missing}",
            *data.notes,
            *statements(rows),
        ),
    )


def statements(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    """Yield what holds of each statement."""
    yield near(rows, _TOLERANCES)
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


@dataclass(frozen=True, eq=False)
class _Images:
    """Training images in colour, and white ones to test on."""

    X: Array
    y: IntArray
    white: Array
    y_white: IntArray


def _worth(task: Task, images: _Images, groups: Groups) -> list[dict[str, float]]:
    """Return what a model is worth that the task trains."""
    classes = list(range(10))
    where = Conditions.of(Fairness.DEMOGRAPHIC_PARITY, None, classes=classes, n=len(images.y))
    penalty, of = penalty_of(task.penalty, groups, where, len(classes))
    model, inside, white = _model(task.model, images, len(classes))
    step = _STEPS[task.model]
    theta = fermi(
        FairProblem(model, inside, images.y, penalty, of, task.weight),
        steps=StepSizes(step / (1 + task.weight / 5), min(step, 0.5)),
        batch_size=task.batch,
        epochs=task.epochs,
        rng=simulated(0, _NAME, "order"),
    ).theta
    scores = model.scores(theta, inside)
    hard, soft = scores.argmax(axis=1), softmax(scores, axis=1)
    how: dict[str, Any] = {"measure": "linf", "classes": classes}
    found = {
        "error": float(np.mean(model.scores(theta, white).argmax(axis=1) != images.y_white)),
        "train error": float(np.mean(hard != images.y)),
        "violation": parity_violation(soft, groups, **how),
        "hard violation": parity_violation(hard, groups, **how),
    }
    return [found]


def _model(name: str, images: _Images, classes: int) -> tuple[Scores, Array, Array]:
    """Return a model, and both halves as it takes them."""
    if name == _SOFTMAX:
        X, white = (_with_constant(part) for part in (images.X, images.white))
        return LinearScores(X.shape[1], classes), X, white
    side = round((images.X.shape[1] / 3) ** 0.5)
    rng = simulated(0, _NAME, name)
    network = network_scores(_KINDS[name], channels=3, side=side, classes=classes, rng=rng)
    return network, images.X, images.white


def _with_constant(X: Array) -> Array:
    """Return rows with a 1 at their end."""
    return np.column_stack([X, np.ones(len(X), X.dtype)])
