"""Accuracy at every violation on Adult, with and without the group of new records, beside fairlearn's."""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.case import Case
from tacit.data import load_preset
from tacit.fairness import (
    Conditions,
    CutModel,
    FairLogisticRegression,
    Fairness,
    GroupCuts,
    Groups,
    Standard,
    best_cut,
    exponentiated_gradient,
    fair_mixture,
    penalty_of,
    threshold_optimizer,
    violation,
)

Array = np.ndarray[Any, Any]
Points = dict[str, tuple[float, float]]
"""Violation and accuracy on new records, by what they are of."""

WEIGHTS = {
    "demographic-parity": (0, 0.1, 0.3, 0.6, 1, 2, 3, 5, 8, 15, 50),
    "equalized-odds": (0, 0.1, 0.3, 1, 3, 6, 10, 20, 50, 100),
}
LEVELS = (0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.1, 0.15)
SEEDS = range(300, 305)
"""Splits that nothing here was chosen on."""
BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1)
"""Of exponentiated gradient: between a group and all, so that its gaps between groups are larger."""


class Split:
    """A random half of Adult to train on, of 32,561 records, and the other to measure on."""

    def __init__(self, seed: int, fairness: str, *, train: int) -> None:
        rng = np.random.default_rng(seed)
        adult = load_preset("adult-ch5", rng=rng)
        X, y = np.vstack([adult.X_train, adult.X_test]), np.concatenate([adult.y_train, adult.y_test])
        s = np.concatenate([adult.sensitive_train.iloc[:, 0], adult.sensitive_test.iloc[:, 0]])
        order = rng.permutation(len(y))
        inside, outside = order[:train], order[train : 2 * train]
        scaling = Standard.of(X[inside])
        self.X, self.X_new = (scaling.transform(X[part])[:, :-1] for part in (inside, outside))
        self.y, self.y_new, self.s, self.s_new = y[inside], y[outside], s[inside], s[outside]
        self.fairness = fairness

    def measure(self, said: Array) -> tuple[float, float]:
        """Return the violation and the accuracy of labels, or of chances of the second one."""
        said = np.clip(said, 0.0, 1.0)  # sums of chances are 1 up to rounding
        soft = np.column_stack([1 - said, said])
        how: dict[str, Any] = {"fairness": self.fairness, "labels": self.y_new, "classes": [0, 1]}
        return violation(soft, self.s_new, **how), float(soft[np.arange(len(self.y_new)), self.y_new].mean())


def blind(of: Split) -> tuple[Points, float]:
    """Return violation and accuracy of what training records choose at each level, and seconds a level."""
    start = time.process_time()
    models = [
        FairLogisticRegression(fairness=of.fairness, weight=w, l2=1 / len(of.y)).fit(of.X, of.y, of.s)
        for w in WEIGHTS[of.fairness]
    ]
    where = Conditions.of(Fairness(of.fairness), of.y, classes=[0, 1])
    membership = penalty_of("ermi", Groups.of(of.s), where, 2)[1]
    margins = [np.column_stack([np.zeros(len(of.y)), one.decision_function(of.X)]) for one in models]
    chosen: dict[str, Any] = {}
    for level in LEVELS:
        cuts = [best_cut(scores, of.y, membership, level) for scores in margins]
        allowed = [(cut.accuracy, i) for i, cut in enumerate(cuts) if cut.violation <= level]
        if allowed:
            best = max(allowed)[1]
            chosen[f"{level} cut"] = CutModel(models[best], cuts[best].threshold)
        chosen[f"{level} mixed"] = fair_mixture(
            models, of.X, of.y, of.s, max_violation=level, fairness=of.fairness
        )
    seconds = (time.process_time() - start) / len(LEVELS)
    points = {
        name: of.measure(
            one.predict(of.X_new) if isinstance(one, CutModel) else one.chances_of(of.X_new)[:, 1]
        )
        for name, one in chosen.items()
    }
    return points, seconds


def knowing(of: Split) -> tuple[Points, float]:
    """Return the same of cuts by group, which are told the group of new records; each level is a new fit."""
    points, levels, start = {}, (0.0, *LEVELS), time.process_time()
    for level in levels:
        made = GroupCuts(fairness=of.fairness, max_violation=level).fit(of.X, of.y, of.s)
        points[str(level)] = of.measure(made.chances_of(of.X_new, of.s_new)[:, 1])
    return points, (time.process_time() - start) / len(levels)


def reductions(of: Split, bounds: Sequence[float]) -> tuple[Points, float]:
    """Return the same of exponentiated gradient, and seconds a bound."""
    points, start = {}, time.process_time()
    for bound in bounds:
        plain = LogisticRegression(max_iter=1000)
        made = exponentiated_gradient(plain, fairness=of.fairness, max_violation=bound)
        made.fit(of.X, of.y, sensitive_features=of.s)
        points[f"reductions_{bound}"] = of.measure(made._pmf_predict(of.X_new)[:, 1])
    return points, (time.process_time() - start) / len(bounds)


def thresholds(of: Split) -> Points:
    """Return the same of the threshold optimiser, which is told the group of new records."""
    made = threshold_optimizer(LogisticRegression(max_iter=1000), fairness=of.fairness)
    made.fit(of.X, of.y, sensitive_features=of.s)
    return {"thresholds": of.measure(made._pmf_predict(of.X_new, sensitive_features=of.s_new)[:, 1])}


def accuracy_at(points: Points, level: float) -> float:
    """Return the best accuracy at a violation of at most that, of points and of draws between two of them."""
    best = max((a for v, a in points.values() if v <= level), default=float("nan"))
    for v, a in points.values():
        for w, b in points.values():
            if v <= level < w:
                best = max(best, a + (b - a) * (level - v) / (w - v))
    return best


def _curves(smoke: bool, fairness: str) -> dict[str, float]:
    if importlib.util.find_spec("fairlearn") is None:
        return {"fairlearn": 0.0}
    seeds, train, bounds = (range(1), 1_000, BOUNDS[-1:]) if smoke else (SEEDS, 32_561, BOUNDS)
    runs: dict[str, list[Points]] = {"blind": [], "knowing": [], "theirs": []}
    seconds = np.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's, about versions
        for seed in seeds:
            of = Split(seed, fairness, train=train)
            found = blind(of), knowing(of), reductions(of, bounds)
            seconds += np.array([took for _, took in found]) / len(seeds)
            for kind, (points, _) in zip(runs, found, strict=True):
                runs[kind].append(points)
            runs["theirs"][-1] |= thresholds(of)
    measured: dict[str, float] = {"fairlearn": 1.0, "reductions_seconds": seconds[2]}
    for place, kind in enumerate(("blind", "knowing")):
        measured |= {f"{kind}_seconds": seconds[place], f"{kind}_ratio": seconds[2] / seconds[place]}
        measured |= compared(kind, runs[kind], runs["theirs"])
    return measured


def compared(kind: str, ours: list[Points], theirs: list[Points]) -> dict[str, float]:
    """Return, for each of their points, its means over seeds, our accuracy at that violation, and the error.

    The standard error is that of the difference within a seed, each at its own violation. A mean violation
    that none of ours has is met by our least one: it is given too, with the error of the difference.
    """
    measured: dict[str, float] = {}
    everywhere = set.intersection(*(set(run) for run in ours))
    mean = {name: _mean([run[name] for run in ours]) for name in everywhere}
    least = min(mean, key=lambda name: mean[name])
    for name in theirs[0]:
        level, accuracy = _mean([run[name] for run in theirs])
        measured[f"{name}_violation"], measured[f"{name}_accuracy"] = level, accuracy
        at = max(level, mean[least][0])
        gains = [
            accuracy_at(run, other[name][0] if at == level else run[least][0]) - other[name][1]
            for run, other in zip(ours, theirs, strict=True)
        ]
        apart = [run[least][0] - other[name][0] for run, other in zip(ours, theirs, strict=True)]
        measured |= {
            f"{name}_{kind}_violation": at,
            f"{name}_{kind}_violation_stderr": _standard_error(apart),
            f"{name}_{kind}": accuracy_at(mean, at),
            f"{name}_{kind}_stderr": _standard_error(gains),
        }
    return measured


def _standard_error(values: list[float]) -> float:
    """Return that of a mean, of the values that are known."""
    known = [one for one in values if not np.isnan(one)]
    return float(np.std(known, ddof=1) / np.sqrt(len(known))) if len(known) > 1 else 0.0


def _mean(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean violation and the mean accuracy."""
    violations, accuracies = zip(*points, strict=True)
    return float(np.mean(violations)), float(np.mean(accuracies))


def _say(m: dict[str, float]) -> str:
    if not m["fairlearn"]:
        return "fairlearn is not installed"
    lines = [f"exponentiated gradient {m['reductions_seconds']:.2f} s a level"]
    for kind, what in (("blind", "without the group"), ("knowing", "told the group")):
        lines.append(
            f"ours {what} of new records {m[kind + '_seconds']:.2f} s, "
            f"exponentiated gradient {m[kind + '_ratio']:.1f} x that"
        )
        for name in [key.removesuffix(f"_{kind}") for key in m if key.endswith(f"_{kind}")]:
            key, level = f"{name}_{kind}", m[f"{name}_violation"]
            line = (
                f"{name}: at {level:.4f} it has {m[name + '_accuracy']:.4f}, we {m[key]:.4f} "
                f"(gain {m[key] - m[name + '_accuracy']:+.4f} +- {m[key + '_stderr']:.4f})"
            )
            if m[key + "_violation"] > level:
                above = m[key + "_violation"] - level
                line += f" at our least violation, {above:.4f} +- {m[key + '_violation_stderr']:.4f} above"
            lines.append(line)
    return "; ".join(lines)


CASES = tuple(
    Case(
        f"fairness-curves/{fairness}",
        "at every violation at least fairlearn's accuracy, in a fifth of exponentiated gradient's time",
        lambda smoke, fairness=fairness: _curves(smoke, fairness),  # type: ignore[misc]
        _say,
    )
    for fairness in WEIGHTS
)
