"""What Lowy (2023) states about private networks in section 3.3.3, and whether it came out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tacit.experiments.report import number, yes
from tacit.numerics import Array

__all__ = ["gains", "statements"]

_PRINTED = {"local": 6.06, "minibatch": 1.72}
"""By how many percent of their test error SPIDER is said to be better, on average over all experiments."""

_SMALL = 1.5
"""Up to this epsilon, minibatch SGD is said to be strong."""

_AHEAD = ("best spider", "spider", "fed-spider")

Row = Mapping[str, object]


def gains(task: str, errors: Mapping[tuple[str, float | None], Array]) -> Iterator[dict[str, object]]:
    """Yield by how much of its test error a method is improved on, at each epsilon and on average.

    Args:
        task: What the table calls it.
        errors: Test errors by method and epsilon, of the same splits in the same order.

    Yields:
        1 - e / e' in percent for mean errors e and e', with the standard error of a ratio of paired means;
        and the mean of that over epsilon.
    """
    epsilons = sorted({epsilon for _, epsilon in errors if epsilon is not None})
    for ahead in _AHEAD:
        for behind in (name for name in _PRINTED if (name, epsilons[0]) in errors):
            ratios = [_ratio(errors[ahead, epsilon], errors[behind, epsilon]) for epsilon in epsilons]
            average = float(np.mean([gain for gain, _ in ratios]))
            error = _error(np.mean([residuals for _, residuals in ratios], axis=0))
            for epsilon, (gain, residuals) in zip(epsilons, ratios, strict=True):
                yield {
                    "task": task,
                    "method": f"{ahead} against {behind}",
                    "epsilon": epsilon,
                    "gain in %": gain,
                    "standard error": _error(residuals),
                    "mean gain": average,
                    "its error": error,
                }


def _ratio(errors: Array, others: Array) -> tuple[float, Array]:
    """Return 1 - e / e' in percent, and what each split adds to its error, to first order."""
    base = max(float(others.mean()), 1e-6)
    ratio = float(errors.mean()) / base
    return 100 * (1 - ratio), 100 * (errors - ratio * others) / base


def _error(residuals: Array) -> float:
    """Return the standard error of a mean over splits."""
    return float(residuals.std(ddof=1) / math.sqrt(len(residuals)))


def statements(rows: Sequence[Row], gained: Sequence[Row]) -> Iterator[str]:
    """Yield what the paper states, and where it holds.

    Args:
        rows: Errors, with the keys task, method, epsilon, test error, standard error and inside.
        gained: What `gains` yields, of all tasks.
    """
    for task in dict.fromkeys(str(row["task"]) for row in rows):
        here = [row for row in rows if row["task"] == task and row["epsilon"] is not None]
        lines: dict[str, dict[float, Row]] = {str(row["method"]): {} for row in here}
        for row in here:
            lines[str(row["method"])][number(row["epsilon"])] = row
        for row in {str(row["method"]): row for row in gained if row["task"] == task}.values():
            yield _average(row)
        yield _never_worse(task, lines, "best spider")
        yield _never_worse(task, lines, "spider")
        yield _strong(task, lines)
    ends = [
        f"{r['task']}, {r['method']}, "
        + ("without privacy" if r["epsilon"] is None else f"epsilon {number(r['epsilon']):g}")
        for r in rows
        if not r["inside"] and r["method"] != "best spider"
    ]
    total = sum(r["method"] != "best spider" for r in rows)
    yield (
        f"The best step is inside of the steps that were tried in {total - len(ends)} of {total} rows"
        f"{'; at an end: ' + '; '.join(ends) if ends else ''}."
    )


def _average(row: Row) -> str:
    """Say by how much a method is better on average, next to what is printed."""
    ahead, behind = str(row["method"]).split(" against ")
    gain, error = number(row["mean gain"]), number(row["its error"])
    holds = gain > 2 * error
    verdict = yes(holds) if holds or gain < -2 * error else "within two standard errors of none"
    return (
        f"{row['task']}: {ahead} errs less than {behind} on average over epsilon: {verdict}, by {gain:.1f} ± "
        f"{error:.1f} %; the paper has {_PRINTED[behind]} % over its three data sets."
    )


def _never_worse(task: str, lines: Mapping[str, Mapping[float, Row]], method: str) -> str:
    """Say whether a method errs no more than minibatch SGD at any epsilon."""
    worse, clear = [], []
    for epsilon, row in sorted(lines[method].items()):
        base = lines["minibatch"][epsilon]
        more = number(row["test error"]) - number(base["test error"])
        if more > 0:
            worse.append(f"{epsilon:g}")
        if more > 2 * math.hypot(number(row["standard error"]), number(base["standard error"])):
            clear.append(f"{epsilon:g}")
    total = len(lines[method])
    where = f"; more at epsilon {', '.join(worse)}" if worse else ""
    beyond = f", beyond two standard errors at {', '.join(clear)}" if clear else ""
    return (
        f"{task}: {method} errs no more than minibatch at any epsilon: {yes(not worse)}, at "
        f"{total - len(worse)} of {total}{where}{beyond}."
    )


def _strong(task: str, lines: Mapping[str, Mapping[float, Row]]) -> str:
    """Say whether minibatch SGD is the best, up to two standard errors, where epsilon is small."""
    small = [epsilon for epsilon in sorted(lines["minibatch"]) if epsilon <= _SMALL]
    said = []
    for epsilon in small:
        base = lines["minibatch"][epsilon]
        best = min((line[epsilon] for line in lines.values()), key=lambda row: number(row["test error"]))
        slack = 2 * math.hypot(number(base["standard error"]), number(best["standard error"]))
        said.append(number(base["test error"]) <= number(best["test error"]) + slack)
    return (
        f"{task}: minibatch is the best, or within two standard errors of it, for epsilon up to {_SMALL:g}: "
        f"{yes(all(said))}, at {sum(said)} of {len(said)}."
    )
