"""Baselines of fairlearn under the names that notions have here: `tacit[fairness]`."""

from __future__ import annotations

from typing import Any

from tacit.errors import TacitError, check_probability, install_extra
from tacit.fairness.notions import Fairness

__all__ = ["exponentiated_gradient", "grid_search", "threshold_optimizer"]

_MOMENTS = {
    Fairness.DEMOGRAPHIC_PARITY: "DemographicParity",
    Fairness.EQUALIZED_ODDS: "EqualizedOdds",
    Fairness.EQUAL_OPPORTUNITY: "TruePositiveRateParity",
}
_CONSTRAINTS = {
    Fairness.DEMOGRAPHIC_PARITY: "demographic_parity",
    Fairness.EQUALIZED_ODDS: "equalized_odds",
    Fairness.EQUAL_OPPORTUNITY: "true_positive_rate_parity",
}


def exponentiated_gradient(
    estimator: Any, *, fairness: str | Fairness = Fairness.DEMOGRAPHIC_PARITY, max_violation: float = 0.01
) -> Any:
    """Return an unfitted `fairlearn.reductions.ExponentiatedGradient`, for labels 0 and 1.

    Args:
        estimator: What it fits again and again, with `sample_weight`.
        fairness: A name of `Fairness`; equal opportunity is that of label 1.
        max_violation: Of fairlearn's constraint, its `difference_bound`: a group against all, in [0, 1].

    Raises:
        TacitError: The extra `tacit[fairness]` is not installed.
        ParameterError: An unknown notion, or a number out of range.

    Reference:
        Agarwal, Beygelzimer, Dudik, Langford and Wallach (2018).
    """
    notion, bound = Fairness.of(fairness), check_probability("max_violation", max_violation)
    theirs = _fairlearn("reductions")
    return theirs.ExponentiatedGradient(estimator, getattr(theirs, _MOMENTS[notion])(difference_bound=bound))


def grid_search(
    estimator: Any, *, fairness: str | Fairness = Fairness.DEMOGRAPHIC_PARITY, grid_size: int = 10
) -> Any:
    """Return an unfitted `fairlearn.reductions.GridSearch`, for labels 0 and 1.

    Args:
        estimator: What it fits once for each Lagrange multiplier of a grid, with `sample_weight`.
        fairness: A name of `Fairness`; equal opportunity is that of label 1.
        grid_size: Number of multipliers.

    Raises:
        TacitError: The extra `tacit[fairness]` is not installed.
        ParameterError: An unknown notion.

    Reference:
        Agarwal, Beygelzimer, Dudik, Langford and Wallach (2018).
    """
    notion = Fairness.of(fairness)
    theirs = _fairlearn("reductions")
    return theirs.GridSearch(estimator, getattr(theirs, _MOMENTS[notion])(), grid_size=grid_size)


def threshold_optimizer(
    estimator: Any, *, fairness: str | Fairness = Fairness.DEMOGRAPHIC_PARITY, prefit: bool = False
) -> Any:
    """Return an unfitted `fairlearn.postprocessing.ThresholdOptimizer`, for labels 0 and 1.

    It cuts scores elsewhere for each group, so that new records need their sensitive attribute.

    Args:
        estimator: A classifier with `predict_proba`.
        fairness: A name of `Fairness`; equal opportunity is that of label 1.
        prefit: Whether the estimator is fitted already.

    Raises:
        TacitError: The extra `tacit[fairness]` is not installed.
        ParameterError: An unknown notion.

    Reference:
        Hardt, Price and Srebro (2016).
    """
    notion = Fairness.of(fairness)
    return _fairlearn("postprocessing").ThresholdOptimizer(
        estimator=estimator,
        constraints=_CONSTRAINTS[notion],
        objective="accuracy_score",
        predict_method="predict_proba",
        prefit=prefit,
    )


def _fairlearn(part: str) -> Any:
    """Return a module of fairlearn."""
    try:
        if part == "reductions":
            from fairlearn import reductions as found
        else:
            from fairlearn import postprocessing as found
    except ImportError as error:
        raise TacitError(f"baselines of fairlearn need it; {install_extra('fairness')}.") from error
    return found
