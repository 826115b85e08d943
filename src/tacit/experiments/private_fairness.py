"""Fair logistic regression whose sensitive attribute, or whole records, are private (Lowy 2023, Chapter 6).

Figures 6.2, 6.3 and E.2 are curves without numbers; the column of the reference holds what an independent
computation of the corrected algorithm found, with the last of 200 points and other clips, over three draws of
noise on one way to draw the halves.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from tacit.data import Preset, load_preset
from tacit.errors import PrivacyWarning
from tacit.experiments.private_baselines import lagrangian, postprocessed
from tacit.experiments.private_fairness_statements import LITERAL, statements
from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.fairness import FairLogisticRegression, PrivateFairLogisticRegression, violation
from tacit.privacy import PrivacyBudget
from tacit.randomness import simulated

__all__ = ["EXPERIMENTS_OF", "Setting", "compute", "run"]

_SPREAD = 3.0
"""Public bounds of a standardised number, where records are private."""

_PARITY, _ODDS = "demographic-parity", "equalized-odds"
_ROUNDS, _SPLITS = 100, 6

_LITERAL: Final = {"rounds": 200, "tail": 0.0, "step": 2.0, "clip": 3.0}
"""Of the reference."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One figure.

    Attributes:
        preset: Name of the data.
        epsilons: Places of the horizontal axis.
        weights: Of the penalty: a line each.
        protect: "sensitive" or "record".
        literal: Whether each weight has a line with the settings of the reference, too.
        same_halves: Whether the halves are those of the reference, to the record, for all draws of noise;
            else each draw of noise has halves of its own.
        multipliers: Largest multipliers of PF-LD: a line each, of demographic parity.
        odds: Weights of the penalty, largest multipliers of PF-LD, and slacks of post-processing, for
            equalized odds: a line each.
    """

    preset: str
    epsilons: tuple[float, ...] = (0.5, 1.0, 3.0, 9.0)
    weights: tuple[float, ...] = (0.5, 1.0, 2.0)
    protect: str = "sensitive"
    literal: bool = False
    same_halves: bool = False
    multipliers: tuple[float, ...] = ()
    odds: tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]] = ((), (), ())


EXPERIMENTS_OF = {
    "dp-fermi-adult": Setting(
        preset="adult-ch6",
        weights=(0.5, 1.0, 2.0, 4.0),
        multipliers=(0.5, 1.0),
        odds=((50.0,), (1.0,), (0.0,)),
    ),
    "dp-fermi-credit": Setting(preset="credit-default"),
    "dp-fermi-parkinsons": Setting(preset="parkinsons", literal=True, same_halves=True),
    "dp-fermi-record": Setting(
        preset="adult-ch6", epsilons=(1.0, 3.0), weights=(0.0, 1.0, 2.0), protect="record"
    ),
}
"""Settings by the name of the experiment."""

Predict = Callable[[Preset, float, int], Any]
"""What a line predicts of test records, from the data, an epsilon and a seed."""


@dataclass(frozen=True)
class _Line:
    """One line of a figure.

    Attributes:
        name: As it is drawn.
        fairness: The notion that its gap is about.
        predict: What it predicts.
        private: Whether it depends on epsilon.
        of: What the reference calls it; empty where that is its name.
    """

    name: str
    fairness: str
    predict: Predict
    private: bool = True
    of: str = ""


def run(name: str, quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute a figure; `quick` takes one seed, the last lines of each kind and the two ends of the axis."""
    setting = EXPERIMENTS_OF[name]
    if not quick:
        return compute(name, setting, 3, progress, splits=_SPLITS)
    small = replace(
        setting,
        epsilons=(setting.epsilons[0], setting.epsilons[-1]),
        weights=setting.weights[-2:],
        multipliers=setting.multipliers[:1],
        odds=tuple(each[-1:] for each in setting.odds),  # type: ignore[arg-type]  # still three of them
    )
    return compute(name, small, 1, progress)


def compute(
    name: str, setting: Setting, seeds: int, progress: Callable[[int, int], Any], *, splits: int = 0
) -> Report:
    """Compute some places of a figure.

    Args:
        name: Of the experiment.
        setting: What is computed; each epsilon at a delta of one over the square of the number of training
            records.
        seeds: How many draws of noise.
        progress: Called with (done, total).
        splits: How many ways to draw the halves are looked at, without privacy; 0 or more than one.
    """
    data = _halves(setting, seeds)
    lines = [*_parity_lines(setting), *_odds_lines(setting)]
    rows: list[dict[str, object]] = []
    for done, line in enumerate(lines):
        progress(done, len(lines))
        if line.private:
            drawn = {
                e: [_scored(line, data[seed % len(data)], e, seed) for seed in range(seeds)]
                for e in setting.epsilons
            }
        else:
            level = [_scored(line, each, math.inf, 0) for each in data]
            drawn = dict.fromkeys(setting.epsilons, level)
        rows += [row for epsilon, found in drawn.items() for row in _rows(name, line, epsilon, found)]
    progress(len(lines), len(lines))
    return Report(
        rows=sorted(rows, key=lambda row: str(row["measure"])),
        x="epsilon",
        y="value",
        error="standard error",
        line="line",
        panel="measure",
        labels={"value": "share of test records, or difference of shares"},
        notes=(*_notes(setting, data, seeds, splits), *statements(rows)),
    )


def _halves(setting: Setting, seeds: int) -> list[Preset]:
    """Return the data, once, or for every draw of noise."""
    if setting.same_halves:
        return [load_preset(setting.preset, rng=_of_reference(0))]
    return [load_preset(setting.preset, rng=simulated(0, "fair split", seed)) for seed in range(seeds)]


def _of_reference(seed: int) -> np.random.Generator:
    """Return what draws the halves: with 0, the ones that the reference has, to the record."""
    return np.random.default_rng(seed)


def _parity_lines(setting: Setting) -> Iterator[_Line]:
    """Yield the lines about demographic parity."""
    for weight in (0.0, *(one for one in setting.weights if one)):
        name = f"weight {weight:g}, without privacy"
        yield _Line(name, _PARITY, partial(_plain, weight), private=False)
    for weight in setting.weights:
        yield _Line(f"weight {weight:g}", _PARITY, partial(_private, setting, _PARITY, weight, {}))
    for weight in setting.weights if setting.literal else ():
        predict = partial(_private, setting, _PARITY, weight, _LITERAL)
        yield _Line(f"weight {weight:g}{LITERAL}", _PARITY, predict, of=f"weight {weight:g}")
    for most in setting.multipliers:
        yield _Line(f"PF-LD, multipliers to {most:g}", _PARITY, partial(_lagrangian, _PARITY, most))


def _odds_lines(setting: Setting) -> Iterator[_Line]:
    """Yield the lines about equalized odds."""
    weights, multipliers, slacks = setting.odds
    for weight in weights:
        yield _Line(f"weight {weight:g}", _ODDS, partial(_private, setting, _ODDS, weight, {}))
    for most in multipliers:
        yield _Line(f"PF-LD, multipliers to {most:g}", _ODDS, partial(_lagrangian, _ODDS, most))
    for slack in slacks:
        yield _Line(f"post-processed, slack {slack:g}", _ODDS, partial(_postprocessed, slack))


def _scored(line: _Line, data: Preset, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the error on test records and the gap between groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        hard = line.predict(data, epsilon, seed)
    gap = violation(hard, data.sensitive_test.iloc[:, 0], fairness=line.fairness, labels=data.y_test)
    return float(np.mean(hard != data.y_test)), gap


def _plain(weight: float, data: Preset, _epsilon: float, _seed: int) -> Any:
    """Return what the model of a weight predicts, without privacy."""
    model = FairLogisticRegression(weight=weight, standardise=False)
    model.fit(data.X_train, data.y_train, sensitive_features=data.sensitive_train.iloc[:, 0])
    return model.predict(data.X_test)


def _private(
    setting: Setting,
    fairness: str,
    weight: float,
    options: Mapping[str, Any],
    data: Preset,
    epsilon: float,
    seed: int,
) -> Any:
    """Return what DP-FERMI predicts."""
    groups = data.sensitive_train.iloc[:, 0]
    model = PrivateFairLogisticRegression(
        fairness=fairness,
        weight=weight,
        budget=_budget(data, epsilon),
        protect=setting.protect,
        groups=sorted(set(groups)),
        classes=list(range(len(data.classes))),
        bounds=_bounds(data.X_train) if setting.protect == "record" else None,
        standardise=False,
        random_state=seed,
        **options,
    )
    return model.fit(data.X_train, data.y_train, sensitive_features=groups).predict(data.X_test)


def _lagrangian(fairness: str, most: float, data: Preset, epsilon: float, seed: int) -> Any:
    """Return what PF-LD predicts."""
    budget = _budget(data, epsilon)
    return lagrangian(data, budget, fairness=fairness, most=most, rounds=_ROUNDS, seed=seed)


def _postprocessed(slack: float, data: Preset, epsilon: float, seed: int) -> Any:
    """Return mixed predictions of plain logistic regression."""
    return postprocessed(data, _budget(data, epsilon), slack=slack, seed=seed)


def _budget(data: Preset, epsilon: float) -> PrivacyBudget:
    """Return epsilon at one over the square of the number of training records."""
    return PrivacyBudget(epsilon, len(data.y_train) ** -2)


def _bounds(X: Any) -> tuple[list[float], list[float]]:
    """Return bounds of columns: indicators are 0 or 1, and all others standardised with public constants."""
    indicator = np.isin(X[:1000], (0.0, 1.0)).all(axis=0)
    return np.where(indicator, 0.0, -_SPREAD).tolist(), np.where(indicator, 1.0, _SPREAD).tolist()


def _rows(
    name: str, line: _Line, epsilon: float, found: Sequence[tuple[float, float]]
) -> Iterator[dict[str, object]]:
    """Yield the row of each measure."""
    for place, measure in enumerate(("error", "gap")):
        values = np.array([each[place] for each in found])
        panel = measure if line.fairness == _PARITY else f"{measure}, {line.fairness}"
        expected = reference(name).get((panel, line.of or line.name, epsilon))
        yield {
            "measure": panel,
            "line": line.name,
            "epsilon": epsilon,
            "value": float(values.mean()),
            "standard error": float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0,
            "reference": expected,
            "difference": None if expected is None else float(values.mean()) - expected,
        }


def _notes(setting: Setting, data: Sequence[Preset], seeds: int, splits: int) -> Iterator[str]:
    """Yield what differs from the chapter, and what the halves alone decide."""
    n = len(data[0].y_train)
    yield from data[0].notes
    means = f"Means over {seeds} splits and draws of noise"
    if setting.same_halves:
        means = f"The halves are those of the reference, to the record; means over {seeds} draws of noise"
    yield (
        f"{means}, {n:,} training records, delta = 1/n^2; the gap is "
        "the largest difference of positive rates between groups, of hard predictions of test records. Noise "
        "has a seed: these runs show what private ones would, and protect nobody."
    )
    if setting.same_halves and splits:
        plain, gaps = _Line("", _PARITY, partial(_plain, 0.0), private=False), []
        for seed in range(splits):
            halves = load_preset(setting.preset, rng=_of_reference(seed))
            gaps.append(_scored(plain, halves, math.inf, 0)[1])
        listed = ", ".join(f"{gap:.4f}" for gap in gaps)
        yield (
            f"On {splits} ways to draw the halves, this one first, the gap of plain logistic regression is "
            f"{listed}: a deviation of {np.std(gaps, ddof=1):.4f} that is of the halves alone. Values of "
            "other halves cannot be compared more closely than that."
        )
    yield (
        "The chapter's figures have no numbers, use noise that is no guarantee, and batches whose sampling "
        "hides nobody (docs/theory/private-fairness.md). Rounds are on all records, with averaged points."
    )
    if setting.protect == "record":
        yield (
            f"Whole records are private: features are clipped to public bounds (standardised ones to "
            f"±{_SPREAD:g}), gradients to norm 1, and training starts at 0."
        )
    if setting.multipliers:
        yield (
            "PF-LD (Tran, Fioretto and Van Hentenryck, 2021) and post-processing (Jagielski et al., 2019) "
            "have noise that is calibrated as ours is, at the same epsilon and delta. Post-processing takes "
            "plain logistic regression, and needs the group of whoever is judged."
        )


RUNS = {name: partial(run, name) for name in EXPERIMENTS_OF}
"""What computes each experiment."""
