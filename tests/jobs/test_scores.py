"""Scores agree with their definitions, computed another way, and say how well they are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.calibration import calibration_curve
from sklearn.metrics import roc_auc_score

from tacit.jobs import ClassScores, NumberScores, Scores
from tacit.jobs.scores import HeldOut, headline, score_model
from tacit.learning.model import FeatureMap, LinearModel

MISSING = math.nan


def classify(
    raw: Any,
    y: Any,
    *,
    classes: tuple[object, ...] = ("well", "ill"),
    units: Any = None,
    silos: Any = None,
    names: list[str] | None = None,
) -> ClassScores:
    """Return the scores of a classifier that says `raw`."""
    features = FeatureMap(lower=-np.ones(1), upper=np.ones(1))
    model = LinearModel(features=features, w=np.zeros(2), classes=np.array(classes))
    held_out = _held_out(y, units, silos, names, classes=classes, target=None)
    found = score_model(np.asarray(raw), held_out, model)
    assert isinstance(found, ClassScores)
    return found


def regression(**facts: Any) -> LinearModel:
    features = FeatureMap(lower=-np.ones(1), upper=np.ones(1), unit_rows=False)
    return LinearModel(features=features, w=np.zeros(2), **{"target": (10.0, 30.0), **facts})


def regress(raw: Any, y: Any, *, units: Any = None, silos: Any = None, names: Any = None) -> NumberScores:
    """Return the scores of a regression whose target lies in [10, 30]."""
    held_out = _held_out(y, units, silos, names, classes=(), target=(10.0, 30.0))
    found = score_model(np.asarray(raw), held_out, regression())
    assert isinstance(found, NumberScores)
    return found


def _held_out(y: Any, units: Any, silos: Any, names: list[str] | None, **rest: Any) -> HeldOut:
    y = np.asarray(y, dtype=np.float64)
    return HeldOut(
        y=y,
        units=np.arange(y.size) if units is None else np.asarray(units),
        silos=None if silos is None else np.asarray(silos),
        silo_names=names or [],
        **rest,
    )


def two_classes(n: int = 300, seed: int = 1) -> tuple[Any, Any, Any]:
    """Return what a fair model says, truth, and a person of two to four records each with one truth."""
    rng = np.random.default_rng(seed)
    persons = np.repeat(np.arange(n), rng.integers(2, 5, size=n))[:n]
    risk = rng.normal(size=n)[persons]
    y = rng.uniform(size=n)[persons] < expit(2 * risk)
    raw, y = risk + 0.3 * rng.normal(size=n), y.astype(float)
    return raw, y, persons


def three_classes(n: int = 240) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, size=n)
    return np.eye(3)[y] + rng.normal(size=(n, 3)), y.astype(float)


def test_accuracies_and_confusions_are_counts_and_a_missing_label_is_wrong() -> None:
    found = classify([1, 1, -1, -1, -1, 1, -1], [1, 0, 0, 0, 1, MISSING, MISSING])
    assert found.score == 3 / 7
    assert found.baseline == 3 / 7  # "well", of three of seven records
    assert found.confusion == ((2, 1), (1, 1))
    assert found.balanced_accuracy == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert (found.records, found.units, found.unlabelled) == (7, 7, 2)
    assert (found.classes, found.metric) == (("well", "ill"), "accuracy")


def test_an_area_is_the_share_of_pairs_in_order() -> None:
    raw, y, _ = two_classes(80)
    raw = raw.round(1)  # with ties, which count by half
    pairs = [(a > b) + (a == b) / 2 for a, b in product(raw[y == 1], raw[y == 0])]
    assert classify(raw, y).auc == pytest.approx(np.mean(pairs))
    assert classify([2, 1, -1, 3], [1, 1, 0, MISSING]).auc == 1.0


def test_an_area_over_several_classes_is_the_mean_of_each_against_the_rest() -> None:
    raw, y = three_classes()
    expected = roc_auc_score(y, softmax(raw, axis=1), multi_class="ovr", average="macro")
    assert classify(raw, y, classes=("a", "b", "c")).auc == pytest.approx(expected)
    without = classify(raw[y != 2], y[y != 2], classes=("a", "b", "c"))
    assert (without.auc, without.auc_standard_error) == (None, None)
    assert without.balanced_accuracy == pytest.approx(
        np.mean([np.mean(raw[y == c].argmax(axis=1) == c) for c in (0, 1)])
    )
    assert sum(map(sum, without.confusion)) == np.sum(y != 2)


def test_losses_are_those_of_the_probabilities() -> None:
    raw, y = [0.5, -2.0, 1.0, 3.0], np.array([1, 0, 0, MISSING])
    found = classify(raw, y)
    of_truth = [expit(0.5), expit(2.0), expit(-1.0)]
    assert found.log_loss == pytest.approx(np.mean(-np.log(of_truth)))
    assert found.brier == pytest.approx(np.mean((1 - np.array(of_truth)) ** 2))
    raw, y = three_classes(20)
    found, p = classify(raw, y, classes=("a", "b", "c")), softmax(raw, axis=1)
    chosen = p[np.arange(20), y.astype(int)]
    assert found.log_loss == pytest.approx(np.mean(-np.log(chosen)))
    assert found.brier == pytest.approx(np.mean(np.sum(p**2, axis=1) - 2 * chosen + 1))


def test_a_calibration_curve_is_that_of_scikit_learn_and_its_error_the_mean_gap() -> None:
    raw, y, _ = two_classes()
    for found, happened, p in (
        (classify(raw, y), y == 1, expit(raw)),
        (
            classify(*three_classes(), classes=("a", "b", "c")),
            three_classes()[0].argmax(axis=1) == three_classes()[1],
            softmax(three_classes()[0], axis=1).max(axis=1),
        ),
    ):
        observed, predicted = calibration_curve(happened, p, n_bins=10, strategy="quantile")
        np.testing.assert_allclose([one.predicted for one in found.calibration], predicted)
        np.testing.assert_allclose([one.observed for one in found.calibration], observed)
        counts = np.array([one.records for one in found.calibration])
        assert counts.sum() == p.size
        assert counts.max() - counts.min() <= 1
        gap = np.sum(counts * abs(observed - predicted)) / p.size
        assert found.calibration_error == pytest.approx(gap)
    assert len(classify([1.0] * 50, [1, 0] * 25).calibration) == 1
    assert len(classify(np.linspace(-1, 1, 35), [1, 0, 1, 0, 1] * 7).calibration) == 3


def test_a_standard_error_of_an_accuracy_is_binomial() -> None:
    raw, y, _ = two_classes()
    a = np.mean((raw > 0) == y)
    assert classify(raw, y).standard_error == pytest.approx(math.sqrt(a * (1 - a) / (y.size - 1)))


def test_records_that_a_person_has_twice_are_known_no_better() -> None:
    """Every record once more, of the same person, changes no score and no standard error."""
    raw, y, _ = two_classes()
    twice = np.repeat(np.arange(y.size), 2)
    once, persons = classify(raw, y), classify(raw[twice], y[twice], units=twice)
    records = classify(raw[twice], y[twice])
    for name in ("standard_error", "auc_standard_error"):
        of_persons, of_records = getattr(persons, name), getattr(records, name)
        assert of_persons == pytest.approx(getattr(once, name))
        assert of_records == pytest.approx(getattr(once, name) / math.sqrt(2), rel=0.01)
    assert (persons.units, persons.records, records.units) == (300, 600, 600)
    y = 2 * y - 1
    again = regress(raw[twice], y[twice], units=twice)
    assert again.standard_error == pytest.approx(regress(raw, y).standard_error)


def jackknife(units: Any, score: Callable[[Any], float | None]) -> float:
    """Return the standard error of a score, leaving out one unit after the other (Efron 1981)."""
    left = np.array([score(np.flatnonzero(units != one)) for one in np.unique(units)], dtype=float)
    return math.sqrt((left.size - 1) / left.size * np.sum((left - left.mean()) ** 2))


@pytest.mark.parametrize("clustered", [False, True])
def test_standard_errors_agree_with_the_jackknife(clustered: bool) -> None:
    raw, y, persons = two_classes()
    units = persons if clustered else np.arange(y.size)
    found = classify(raw, y, units=units)
    expected = jackknife(units, lambda k: float(np.mean((raw[k] > 0) == y[k])))
    assert found.standard_error == pytest.approx(expected, rel=0.02)
    expected = jackknife(units, lambda k: float(roc_auc_score(y[k], raw[k])))
    assert found.auc_standard_error == pytest.approx(expected, rel=0.02)
    target = 0.3 * y + 0.1 * raw
    expected = jackknife(units, lambda k: float(np.sqrt(np.mean((target[k] - raw[k] / 2) ** 2))))
    assert regress(raw / 2, target, units=units).standard_error == pytest.approx(10 * expected, rel=0.02)
    if clustered:
        alone = classify(raw, y).standard_error
        assert alone is not None
        assert found.standard_error is not None
        assert found.standard_error > 1.2 * alone
    raw, y = three_classes()
    macro = jackknife(
        np.arange(y.size),
        lambda k: float(roc_auc_score(y[k], softmax(raw[k], axis=1), multi_class="ovr", average="macro")),
    )
    assert classify(raw, y, classes=("a", "b", "c")).auc_standard_error == pytest.approx(macro, rel=0.02)


def test_the_standard_error_of_an_area_is_that_of_delong() -> None:
    """Up to m / (m - 1) for each class, written as in the paper: with a matrix of pairs."""
    raw, y, _ = two_classes(400, seed=3)
    wins = np.array([[(a > b) + (a == b) / 2 for b in raw[y == 0]] for a in raw[y == 1]])
    m, n = wins.shape
    variance = np.var(wins.mean(axis=1), ddof=1) / m + np.var(wins.mean(axis=0), ddof=1) / n
    assert classify(raw, y).auc_standard_error == pytest.approx(math.sqrt(variance), rel=0.01)


def test_errors_of_numbers_are_in_units_of_the_target() -> None:
    raw, y = np.array([0.1, -0.4, 0.8, 0.3]), np.array([0.0, -0.5, 0.5, MISSING])
    found = regress(raw, y)
    truth, said = np.array([20.0, 15.0, 25.0, 20.0]), 20 + 10 * raw
    assert found.score == pytest.approx(np.sqrt(np.mean((truth - said) ** 2)))
    assert found.mae == pytest.approx(np.mean(abs(truth - said)))
    assert found.baseline == pytest.approx(
        min(np.sqrt(np.mean((truth - c) ** 2)) for c in truth.mean() * np.linspace(0.5, 1.5, 201))
    )
    assert found.r2 == pytest.approx(1 - (found.score / found.baseline) ** 2)
    assert (found.unlabelled, found.metric) == (1, "rmse")


def test_silos_have_scores_and_baselines_of_their_own() -> None:
    silos, names = [0, 0, 0, 2, 2], ["north", "south", "west"]
    found = classify([1, 1, -1, 1, -1], [1, 0, 0, 1, 0], silos=silos, names=names)
    north, west = found.silos  # no record of the south is held out
    assert (north.name, north.score, north.baseline) == ("north", 2 / 3, 2 / 3)
    assert north.standard_error == pytest.approx(math.sqrt(2 / 3 * 1 / 3 / 2))
    assert (west.name, west.score, west.baseline, west.standard_error) == ("west", 1.0, 0.5, None)
    numbers = regress([0.1, 0.1, 0.1, 0.2, 0.0], [0.0, 0.2, 0.1, 0.1, 0.1], silos=silos, names=names)
    assert numbers.silos[1].score == pytest.approx(1.0)
    assert numbers.silos[1].baseline == pytest.approx(0.0)
    assert numbers.silos[0].baseline == pytest.approx(10 * np.std([0.0, 0.2, 0.1]))


@pytest.mark.parametrize("score", [classify, regress])
def test_a_silo_without_a_label_has_no_score(score: Callable[..., Scores]) -> None:
    found = score([1, 1, -1], [MISSING, MISSING, 0], silos=[0, 0, 1], names=["north", "south"])
    north, south = found.silos
    assert (north.score, north.standard_error, north.baseline) == (None, None, None)
    assert south.score is not None


@pytest.mark.parametrize(
    "found",
    [
        classify([1.0], [1]),
        classify([1.0, 2.0], [MISSING, MISSING]),
        classify([1e30, -1e30], [0, 1]),
        classify(np.ones((2, 3)), [0, MISSING], classes=("a", "b", "c")),
        regress([0.5], [MISSING]),
        regress([1e30, -1e30], [0.5, 0.5]),
        regress([0.5, 0.5], [0.5, 0.5]),
        classify(*two_classes()[:2]),
    ],
)
def test_whatever_is_held_out_the_scores_are_json_and_read_back(found: Scores) -> None:
    text = msgspec.json.encode(found)
    again: Scores = msgspec.json.decode(text, type=Scores)
    assert again == found
    assert all(math.isfinite(v) for v in msgspec.to_builtins(found).values() if isinstance(v, float))


def test_what_cannot_be_known_is_none() -> None:
    nobody = classify([1.0, 2.0], [MISSING, MISSING])
    assert (nobody.score, nobody.baseline, nobody.standard_error) == (0.0, 0.0, None)
    assert (nobody.auc, nobody.log_loss, nobody.brier, nobody.calibration) == (None, None, None, ())
    assert (nobody.balanced_accuracy, nobody.calibration_error) == (None, None)
    assert classify([1.0, 2.0, -1.0], [1, 1, 1], units=[5, 5, 5]).standard_error is None
    assert regress([0.4, 0.6], [0.5, 0.5]).r2 is None


def test_the_headline_is_the_score() -> None:
    raw, y, _ = two_classes()
    features = FeatureMap(lower=-np.ones(1), upper=np.ones(1))
    model = LinearModel(features=features, w=np.zeros(2), classes=np.array(["well", "ill"]))
    assert headline(raw, y, model) == classify(raw, y).score
    assert headline(raw, y / 2, regression()) == regress(raw, y / 2).score
