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

from typing import Final

import msgspec
import numpy as np

from tacit.jobs.held_out import HeldOut, Known, SiloScore, by_silo, standard_error_of
from tacit.jobs.number_scores import NumberMetric, NumberScores, score_numbers, true_targets
from tacit.learning.model import FittedModel
from tacit.numerics import Array, IntArray

__all__ = [
    "Bin", "ClassScores", "HeldOut", "NumberScores", "Scores", "SiloScore", "SweepPoint", "headline",
    "score_model",
]  # fmt: skip

_BINS: Final = 10
_PER_BIN: Final = 10  # records that a bin of a calibration curve has at least, if it is not the only one


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
        log_loss: Mean of -log of the probability of the true class. It, the Brier score and the calibration
            are None, or empty, where a model has no probabilities: that of the hinge loss.
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


Scores = ClassScores | NumberScores
"""What is known of a model from held-out records; `score`, `standard_error` and `baseline` are in both."""


def headline(raw: Array, y: Array, model: FittedModel) -> float:
    """Return the one score of a model: accuracy, or what `NumberScores.metric` says in the target's units.

    Args:
        raw: What the model says of each record, as `FittedModel.scores`.
        y: As in `HeldOut`.
        model: The model.
    """
    if model.classes is not None:
        return float(np.mean(_guesses(raw) == y))
    truth = true_targets(y, model.target)
    return NumberMetric(model.chosen).score(truth, model.predictions_of(raw.astype(np.float64)))


def score_model(raw: Array, held_out: HeldOut, model: FittedModel) -> Scores:
    """Return the scores of a model.

    Args:
        raw: What it says of each held-out record, as `FittedModel.scores`.
        held_out: The truth.
        model: What says what that means.
    """
    if not held_out.classes:
        return score_numbers(raw, held_out, model)
    scores = raw.astype(np.float64)
    return _score_classes(
        raw, held_out, None if model.why_no_probabilities else model.probabilities_of(scores)
    )


def _score_classes(raw: Array, held_out: HeldOut, probabilities: Array | None) -> ClassScores:
    """Return the scores of a classifier, and of its probabilities where it has some."""
    y, k = held_out.y, len(held_out.classes)
    guess = _guesses(raw)
    labelled = np.isfinite(y)
    truth, guessed = y[labelled].astype(np.int64), guess[labelled].astype(np.int64)
    p = None if probabilities is None else probabilities[labelled]
    right = (guess == y).astype(np.float64)

    def accuracy(index: Array) -> Known:
        share = float(np.mean(right[index]))
        return share, standard_error_of((right[index] - share) / index.size, held_out.units[index])

    def most_frequent(index: Array) -> float:
        known = y[index][labelled[index]].astype(np.int64)
        return float(np.bincount(known, minlength=1).max() / index.size)

    everything = np.arange(y.size)
    share, error = accuracy(everything)
    ranked = raw[labelled] if k == 2 or p is None else p
    auc, auc_error = _area(ranked, truth, k, held_out.units[labelled])
    some = truth.size > 0
    log_loss, brier, bins = (
        (None, None, ()) if p is None or not some else _of_probabilities(p, truth, guessed)
    )
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
        log_loss=log_loss,
        brier=brier,
        calibration_error=_gap(bins) if bins else None,
        calibration=bins,
        classes=tuple(map(str, held_out.classes)),
        confusion=tuple(map(tuple, _confusion(truth, guessed, k).tolist())),
        silos=by_silo(held_out, accuracy, most_frequent),
    )


def _of_probabilities(p: Array, truth: IntArray, guessed: IntArray) -> tuple[float, float, tuple[Bin, ...]]:
    """Return log loss, Brier score and the calibration curve of the probabilities of labelled records."""
    from sklearn import metrics  # half a second that a role which scores nothing can do without

    k = p.shape[1]
    squares = ((p - np.eye(k)[truth]) ** 2).sum(axis=1) / (2 if k == 2 else 1)
    bins = _calibration(p[:, 1], truth == 1) if k == 2 else _calibration(p.max(axis=1), truth == guessed)
    return float(metrics.log_loss(truth, p, labels=range(k))), float(squares.mean()), bins


def _area(scores: Array, truth: IntArray, classes: int, units: Array) -> tuple[float | None, float | None]:
    """Return the area under the curve, of each class against the rest where there are several.

    Args:
        scores: Shape (n,) for two classes, the larger the likelier the second; else (n, classes).
        truth: Class numbers, shape (n,).
        classes: How many there are.
        units: The protected unit of each record.
    """
    from scipy.stats import rankdata
    from sklearn import metrics

    counts = np.bincount(truth, minlength=classes)
    if not counts.all():
        return None, None
    columns = [(scores, 1)] if classes == 2 else [(scores[:, c], c) for c in range(classes)]
    areas, influence = [], np.zeros(truth.size)
    for column, positive in columns:
        own = truth == positive
        area = float(metrics.roc_auc_score(own, column))
        areas.append(area)
        # The share of the other class that a record is ranked before, ties by half, from its rank among all
        # and its rank within its own class.
        ranks, inside = rankdata(column), np.zeros(truth.size)
        inside[own], inside[~own] = rankdata(column[own]), rankdata(column[~own])
        before = (ranks - inside) / np.where(own, (~own).sum(), own.sum())
        component = np.where(own, before, 1 - before)
        influence += (component - area) / np.where(own, own.sum(), (~own).sum()) / len(columns)
    return float(np.mean(areas)), standard_error_of(influence, units)


def _balanced(truth: IntArray, guessed: IntArray) -> float:
    """Return the mean share of right guesses over the classes that occur."""
    from sklearn import metrics

    shares = metrics.recall_score(truth, guessed, labels=np.unique(truth), average="macro")
    return float(shares)


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
    from sklearn import metrics

    return np.asarray(metrics.confusion_matrix(truth, guessed, labels=range(classes)))


def _guesses(raw: Array) -> Array:
    """Return the number of the class that is guessed for each record."""
    return np.asarray(raw.argmax(axis=1) if raw.ndim == 2 else raw > 0)
