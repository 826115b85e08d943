"""The part of a report that says what the score means: rows, pictures and silos, ready to be filled in."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from tacit.errors import printable
from tacit.jobs import ClassScores, JobResult, Scores, SiloScore, TrustResult
from tacit.reports.plots import draw_calibration
from tacit.reports.tables import format_score

__all__ = ["ScoreSection", "score_section"]

_MAX_SILOS = 60
_MAX_CLASSES = 20  # a wider table of classes is no picture


@dataclass(frozen=True, kw_only=True)
class ScoreSection:
    """What the template of the section shows.

    Attributes:
        columns: Names of the scores.
        rows: One per trust model: its name, and a cell for each column.
        calibration: Picture; None for numbers.
        calibration_words: What the picture shows.
        classes: Labels; empty where there is no confusion to show.
        confusion: By true class, its label and the share of its records that is guessed to be of each; None
            where no held-out record is of the class.
        silos: Name, score and baseline.
    """

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    calibration: Markup | None = None
    calibration_words: str = ""
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[str, tuple[float | None, ...]], ...] = ()
    silos: list[tuple[str, str, str]]


def score_section(result: JobResult, main: TrustResult) -> ScoreSection:
    """Return the section; confusion and silos are those of the main result."""
    silos = [_silo(one, main.metric) for one in main.scores.silos[:_MAX_SILOS]]
    cells = [dict(_cells(one.scores)) for one in result.results]
    rows = [(one.trust, *said.values()) for one, said in zip(result.results, cells, strict=True)]
    scores = main.scores
    if not isinstance(scores, ClassScores):
        return ScoreSection(columns=tuple(cells[0]), rows=rows, silos=silos)
    few = len(scores.classes) <= _MAX_CLASSES
    return ScoreSection(
        columns=tuple(cells[0]),
        rows=rows,
        silos=silos,
        calibration=draw_calibration(result),
        calibration_words=_calibration_words(scores),
        classes=scores.classes if few else (),
        confusion=_shares(scores) if few else (),
    )


def _silo(one: SiloScore, metric: str) -> tuple[str, str, str]:
    """Return the name, score and baseline of a silo."""
    if one.score is None or one.baseline is None:
        return printable(one.name), "no record with a label", ""
    score = format_score(metric, one.score, one.standard_error)
    return printable(one.name), score, format_score(metric, one.baseline)


def _calibration_words(scores: ClassScores) -> str:
    """Say what a point of the calibration curve is."""
    if len(scores.classes) == 2:
        return f"How often the label is {scores.classes[1]!r}, by the probability that the model gives it."
    return "How often the guessed class is the true one, by the probability that the model gives it."


def _shares(scores: ClassScores) -> tuple[tuple[str, tuple[float | None, ...]], ...]:
    """Return the confusion matrix as shares of each true class."""
    return tuple(
        (label, tuple(count / sum(row) if sum(row) else None for count in row))
        for label, row in zip(scores.classes, scores.confusion, strict=True)
    )


def _cells(scores: Scores) -> list[tuple[str, str]]:
    """Return the scores of one trust model, by the names of their columns."""
    metric, score = scores.metric, format_score(scores.metric, scores.score, scores.standard_error)
    common = [(metric, score), ("baseline", format_score(metric, scores.baseline))]
    if not isinstance(scores, ClassScores):
        mae = format_score(metric, scores.mae)
        return [*common, ("mean absolute error", mae), ("R²", _decimals(scores.r2))]
    balanced = scores.balanced_accuracy
    return [
        *common,
        ("balanced accuracy", "none" if balanced is None else format_score(metric, balanced)),
        ("AUC", _decimals(scores.auc, scores.auc_standard_error)),
        ("log loss", _decimals(scores.log_loss)),
        ("Brier score", _decimals(scores.brier)),
        ("calibration error", _decimals(scores.calibration_error)),
    ]


def _decimals(value: float | None, error: float | None = None) -> str:
    """Return a score with three decimals, with its standard error if there is one."""
    if value is None:
        return "none"
    return f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"
