"""What a score means: beside it what guessing gives, how well it is known, and where the model is wrong.

All of it is computed from held-out labels without privacy, so on private data every number here is a release
without a price: it stays with the owner, and no statement holds it.

A standard error is that of the delta method. Every score here is a smooth function of means over records, so
it moves by a sum of influences of single records; influences are added up over each protected unit, and

    standard error^2 = G / (G - 1) * sum over G units of (sum of a unit's influences)^2

as in the robust variance of Liang and Zeger (1986). For an accuracy a of n records this is the binomial
a (1 - a) / (n - 1); for areas under curves the influences are the structural components of DeLong, DeLong and
Clarke-Pearson (1988), and the sum over persons is that of Obuchowski (1997). It is about another sample of
records for the same model, not about another training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from scipy.stats import rankdata
from sklearn import metrics

from tacit.numerics import Array, IntArray

__all__ = [
    "Bin", "ClassScores", "HeldOut", "NumberScores", "Scores", "SiloScore", "SweepPoint", "headline",
    "score_model",
]  # fmt: skip

_BINS: Final = 10
_PER_BIN: Final = 10  # records that a bin of a calibration curve has at least, if it is not the only one

Known = tuple[float, float | None]
"""A score with its standard error."""


class SiloScore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The score on the held-out records of one silo.

    Attributes:
        name: Of the silo.
        score: Accuracy, or root mean squared error; None where no record has a label.
        standard_error: Of the score; None as in `ClassScores`.
        baseline: As in `ClassScores` and `NumberScores`, on these records alone; None as the score.
    """

    name: str
    score: float | None
    standard_error: float | None
    baseline: float | None


class SweepPoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The score of the same run at another budget; simulations on public data only.

    Attributes:
        trust: Trust model.
        epsilon: Budget.
        score: On held-out records, which are the same at every budget.
        standard_error: Of the score; None as in `ClassScores`.
    """

    trust: str
    epsilon: float
    score: float
    standard_error: float | None


class Bin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One point of a calibration curve.

    Attributes:
        records: How many records are in the bin.
        predicted: Their mean predicted probability.
        observed: The share of them for which what was predicted is true.
    """

    records: int
    predicted: float
    observed: float


class ClassScores(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="task",
    tag="classification",
):
    """Scores of a classifier on held-out records.

    A record without a label counts as wrong in the accuracies and the baseline, and is left out of all else:
    it is of no class that a probability could be compared with.

    Attributes:
        records: Number of held-out records.
        units: Number of protected units that they belong to: records, or persons.
        unlabelled: How many of the records have no label.
        score: Accuracy.
        standard_error: Of the accuracy, over units; None where fewer than two units are held out, or where
            all records are right or all wrong, which tells nothing of the spread.
        baseline: Accuracy of always guessing the class that is most frequent among these records: no
            constant guess does better.
        balanced_accuracy: Mean over the classes that occur of the share of their records that is right.
        auc: Area under the curve of true against false positives; for several classes the mean of each class
            against the rest. None where a class does not occur, or all records are of one.
        auc_standard_error: Of the area, over units.
        log_loss: Mean of -log of the probability of the true class.
        brier: Mean squared difference of probabilities and truth: of the second of two classes, or summed
            over several (Brier 1950).
        calibration_error: Mean over the records of |predicted - observed| of their bin.
        calibration: At most ten bins with equally many records, by the probability of the second of two
            classes, or of the class that is guessed among several.
        classes: Labels, as text.
        confusion: Number of records by true class (row) and guessed class (column).
        silos: By silo; empty where the held-out records belong to none.
    """

    records: int
    units: int
    unlabelled: int
    score: float
    standard_error: float | None
    baseline: float
    balanced_accuracy: float | None
    auc: float | None
    auc_standard_error: float | None
    log_loss: float | None
    brier: float | None
    calibration_error: float | None
    calibration: tuple[Bin, ...]
    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    silos: tuple[SiloScore, ...]

    @property
    def metric(self) -> str:
        """What `score` is."""
        return "accuracy"


class NumberScores(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="task", tag="regression"
):
    """Scores of a regression on held-out records, in the units of the target.

    Targets are clipped to their public bounds, as in training. A target that is missing counts as the middle
    of the bounds, everywhere.

    Attributes:
        records: Number of held-out records.
        units: Number of protected units that they belong to: records, or persons.
        unlabelled: How many of the records have no target.
        score: Root mean squared error.
        standard_error: Of the root mean squared error, over units; None where fewer than two units are held
            out, or there is no error.
        baseline: Root mean squared error of always guessing the mean of these records' targets, which is
            their standard deviation: no constant guess does better.
        mae: Mean absolute error.
        r2: 1 - (score / baseline)^2; None where all targets are equal.
        silos: By silo; empty where the held-out records belong to none.
    """

    records: int
    units: int
    unlabelled: int
    score: float
    standard_error: float | None
    baseline: float
    mae: float
    r2: float | None
    silos: tuple[SiloScore, ...]

    @property
    def metric(self) -> str:
        """What `score` is."""
        return "rmse"

    @property
    def auc(self) -> None:
        """There is none."""
        return None

    @property
    def auc_standard_error(self) -> None:
        """There is none."""
        return None


Scores = ClassScores | NumberScores
"""What is known of a model from held-out records; `score`, `standard_error` and `baseline` are in both."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Held-out records without their features.

    Attributes:
        y: Class numbers, or targets in [-1, 1]; NaN where missing. Shape (n,).
        units: The protected unit of each record, any values; shape (n,).
        silos: Number of the silo of each record; None where they belong to no silo.
        silo_names: Names by number.
        classes: Labels by number; empty for regression.
        target: Bounds of the target in its own units; None for classification.
    """

    y: Array
    units: Array
    silos: IntArray | None
    silo_names: list[str]
    classes: tuple[object, ...]
    target: tuple[float, float] | None


def headline(raw: Array, y: Array, *, target: tuple[float, float] | None, classes: bool) -> float:
    """Return the one score of a model: accuracy, or the root mean squared error in the target's units.

    Args:
        raw: What the model says of each record, as `LinearModel.scores`.
        y: As in `HeldOut`.
        target: As in `HeldOut`.
        classes: Whether y are class numbers.
    """
    if classes:
        return float(np.mean(_guesses(raw) == y))
    return float(np.sqrt(np.mean((raw - np.nan_to_num(y)) ** 2)) * _scale(target))


def score_model(raw: Array, held_out: HeldOut, *, probabilities: Callable[[Array], Array]) -> Scores:
    """Return the scores of a model.

    Args:
        raw: What it says of each held-out record, as `LinearModel.scores`.
        held_out: The truth.
        probabilities: Of classes for given `raw`, as `LinearModel.probabilities_of`; used for classes only.
    """
    if held_out.classes:
        return _score_classes(raw, held_out, probabilities(raw.astype(np.float64)))
    return _score_numbers(raw, held_out)


def _score_classes(raw: Array, held_out: HeldOut, probabilities: Array) -> ClassScores:
    """Return the scores of a classifier."""
    y, k = held_out.y, len(held_out.classes)
    guess = _guesses(raw)
    labelled = np.isfinite(y)
    truth, guessed, p = (
        y[labelled].astype(np.int64),
        guess[labelled].astype(np.int64),
        probabilities[labelled],
    )
    right = (guess == y).astype(np.float64)

    def accuracy(index: Array) -> Known:
        share = float(np.mean(right[index]))
        return share, _standard_error((right[index] - share) / index.size, held_out.units[index])

    def most_frequent(index: Array) -> float:
        known = y[index][labelled[index]].astype(np.int64)
        return float(np.bincount(known, minlength=1).max() / index.size)

    everything = np.arange(y.size)
    share, error = accuracy(everything)
    auc, auc_error = _area(raw[labelled] if k == 2 else p, truth, k, held_out.units[labelled])
    bins = _calibration(p[:, 1], truth == 1) if k == 2 else _calibration(p.max(axis=1), truth == guessed)
    some = truth.size > 0
    squares = ((p - np.eye(k)[truth]) ** 2).sum(axis=1) / (2 if k == 2 else 1)
    return ClassScores(
        records=y.size,
        units=np.unique(held_out.units).size,
        unlabelled=int(y.size - truth.size),
        score=share,
        standard_error=error,
        baseline=most_frequent(everything),
        balanced_accuracy=_balanced(truth, guessed) if some else None,
        auc=auc,
        auc_standard_error=auc_error,
        log_loss=_number(metrics.log_loss(truth, p, labels=range(k))) if some else None,
        brier=_number(squares.mean()) if some else None,
        calibration_error=_gap(bins) if some else None,
        calibration=bins,
        classes=tuple(map(str, held_out.classes)),
        confusion=tuple(map(tuple, _confusion(truth, guessed, k).tolist())),
        silos=_by_silo(held_out, accuracy, most_frequent),
    )


def _score_numbers(raw: Array, held_out: HeldOut) -> NumberScores:
    """Return the scores of a regression."""
    y, scale = np.nan_to_num(held_out.y), _scale(held_out.target)
    squares = (raw - y) ** 2

    def root_mean_square(index: Array) -> Known:
        mean = float(np.mean(squares[index]))
        root = float(np.sqrt(mean))
        # The derivative of a root is 1 / (2 root).
        influence = (squares[index] - mean) / (2 * root * index.size) if root > 0 else np.zeros(index.size)
        error = _standard_error(influence, held_out.units[index])
        return root * scale, None if error is None else error * scale

    def spread(index: Array) -> float:
        return float(np.std(y[index])) * scale

    everything = np.arange(y.size)
    _, error = root_mean_square(everything)
    baseline = spread(everything)
    return NumberScores(
        records=y.size,
        units=np.unique(held_out.units).size,
        unlabelled=int(np.isnan(held_out.y).sum()),
        score=headline(raw, held_out.y, target=held_out.target, classes=False),
        standard_error=error,
        baseline=baseline,
        mae=_number(metrics.mean_absolute_error(y, raw)) * scale,
        r2=_number(metrics.r2_score(y, raw)) if baseline > 0 else None,
        silos=_by_silo(held_out, root_mean_square, spread),
    )


def _by_silo(
    held_out: HeldOut, score: Callable[[Array], Known], baseline: Callable[[Array], float]
) -> tuple[SiloScore, ...]:
    """Return the scores on the records of every silo that has some held out."""
    if held_out.silos is None:
        return ()
    found = []
    for number, name in enumerate(held_out.silo_names):
        index = np.flatnonzero(held_out.silos == number)
        if not index.size:
            continue
        value, error, least = None, None, None
        if np.isfinite(held_out.y[index]).any():
            (value, error), least = score(index), baseline(index)
        found.append(SiloScore(name=name, score=value, standard_error=error, baseline=least))
    return tuple(found)


def _standard_error(influence: Array, units: Array) -> float | None:
    """Return the root of the sum of squares of what each unit moves a score by, see above."""
    _, codes = np.unique(units, return_inverse=True)
    moved = np.bincount(codes, weights=influence)
    if moved.size < 2 or not influence.any():
        return None
    return float(np.sqrt(moved.size / (moved.size - 1) * np.sum(moved**2)))


def _area(scores: Array, truth: IntArray, classes: int, units: Array) -> tuple[float | None, float | None]:
    """Return the area under the curve, of each class against the rest where there are several.

    Args:
        scores: Shape (n,) for two classes, the larger the likelier the second; else (n, classes).
        truth: Class numbers, shape (n,).
        classes: How many there are.
        units: The protected unit of each record.
    """
    counts = np.bincount(truth, minlength=classes)
    if not counts.all():
        return None, None
    columns = [(scores, 1)] if classes == 2 else [(scores[:, c], c) for c in range(classes)]
    areas, influence = [], np.zeros(truth.size)
    for column, positive in columns:
        own = truth == positive
        area = _number(metrics.roc_auc_score(own, column))
        areas.append(area)
        # The share of the other class that a record is ranked before, ties by half, from its rank among all
        # and its rank within its own class.
        ranks, inside = rankdata(column), np.zeros(truth.size)
        inside[own], inside[~own] = rankdata(column[own]), rankdata(column[~own])
        before = (ranks - inside) / np.where(own, (~own).sum(), own.sum())
        component = np.where(own, before, 1 - before)
        influence += (component - area) / np.where(own, own.sum(), (~own).sum()) / len(columns)
    return float(np.mean(areas)), _standard_error(influence, units)


def _balanced(truth: IntArray, guessed: IntArray) -> float:
    """Return the mean share of right guesses over the classes that occur."""
    shares = metrics.recall_score(truth, guessed, labels=np.unique(truth), average="macro")
    return _number(shares)


def _calibration(predicted: Array, happened: Array) -> tuple[Bin, ...]:
    """Return bins with equally many records each, up to ties, by what was predicted of them."""
    if not predicted.size:
        return ()
    bins = min(_BINS, max(1, predicted.size // _PER_BIN))
    edges = np.quantile(predicted, np.linspace(0, 1, bins + 1))[1:-1]
    numbers = np.searchsorted(edges, predicted)
    counts = np.bincount(numbers)
    sums, hits = np.bincount(numbers, predicted), np.bincount(numbers, happened)
    return tuple(
        Bin(records=int(n), predicted=float(s / n), observed=float(h / n))
        for n, s, h in zip(counts, sums, hits, strict=True)
        if n
    )


def _gap(bins: tuple[Bin, ...]) -> float:
    """Return the mean distance of a calibration curve from the diagonal, over records."""
    return sum(one.records * abs(one.predicted - one.observed) for one in bins) / sum(b.records for b in bins)


def _confusion(truth: IntArray, guessed: IntArray, classes: int) -> IntArray:
    """Return how many records of each class, by row, are guessed to be of each, by column."""
    if not truth.size:
        return np.zeros((classes, classes), dtype=np.int64)
    return np.asarray(metrics.confusion_matrix(truth, guessed, labels=range(classes)))


def _guesses(raw: Array) -> Array:
    """Return the number of the class that is guessed for each record."""
    return np.asarray(raw.argmax(axis=1) if raw.ndim == 2 else raw > 0)


def _scale(target: tuple[float, float] | None) -> float:
    """Return how many units of the target one unit of the model is."""
    low, high = target or (-1.0, 1.0)
    return (high - low) / 2


def _number(value: object) -> float:
    """Return what scikit-learn gives as a plain number."""
    return float(np.asarray(value, dtype=np.float64))
