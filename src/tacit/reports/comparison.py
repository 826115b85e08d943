"""Runs side by side: their scores, what these cost, and whether they are about the same thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import ParameterError
from tacit.jobs import NumberScores
from tacit.privacy.run_clauses import SCORED
from tacit.reports.figures import draw_lines
from tacit.reports.metrics import Metrics, ModelFigures
from tacit.reports.tables import format_bits, format_delta, format_epsilon, format_score

__all__ = ["COMPARED_COLUMNS", "comparison_cells", "comparison_json", "comparison_notes", "draw_comparison"]

Runs = Mapping[str, Metrics]
"""Runs by the name that a reader knows them by, such as their folders."""

COMPARED_COLUMNS = (
    "run", "trust", "algorithm", "epsilon", "delta", "score", "baseline", "AUC", "sent", "rounds",
)  # fmt: skip
"""Names of the columns of `comparison_cells`; what is sent is that of the busiest silo."""


def comparison_notes(runs: Runs) -> list[str]:
    """Say what keeps the scores of runs from being compared, and where they may be shown.

    Args:
        runs: Two or more.

    Returns:
        Sentences; the first ones name what differs.
    """
    notes = []
    subjects: dict[str, list[str | None]] = {
        "data set": [one.data.name for one in runs.values()],
        "label": [one.data.label for one in runs.values()],
        "column description": [one.data.description for one in runs.values()],
        "score": [_scored_by(result) for one in runs.values() for result in one.results],
    }
    other = [what for what, values in subjects.items() if len(set(values)) > 1]
    if other:
        notes.append(f"These runs are not comparable: they differ in {_list(other)}.")
    elif len({one.data.held_out for one in runs.values()}) > 1:
        notes.append(
            "The runs hold out other records: a part of each difference is chance, as the standard errors "
            "say. Runs of one seed, or of one name, hold out the same."
        )
    if not all(one.data.public for one in runs.values()):
        notes.append(SCORED)
    return notes


def comparable(runs: Runs) -> bool:
    """Return whether the scores of all runs say how well one thing is predicted."""
    about = {(one.data.name, one.data.label, one.data.description) for one in runs.values()}
    return len(about) == len({_scored_by(result) for one in runs.values() for result in one.results}) == 1


def _scored_by(result: ModelFigures) -> str:
    """Return what a score is: that of one quantile says nothing of another."""
    if result.scores is None:
        return "none"
    guess = result.scores.guess if isinstance(result.scores, NumberScores) else ""
    return f"{result.metric} {guess}"


def comparison_cells(runs: Runs) -> list[tuple[str, ...]]:
    """Return one row per run and trust model, with the cells of `COMPARED_COLUMNS`."""
    return [_cells(name, result) for name, one in runs.items() for result in one.results]


def comparison_json(runs: Runs) -> dict[str, Any]:
    """Return the comparison for programs: `version`, `comparable`, `notes`, and the rows as `results`."""
    rows = [_row(name, one, result) for name, one in runs.items() for result in one.results]
    return {"version": 1, "comparable": comparable(runs), "notes": comparison_notes(runs), "results": rows}


def draw_comparison(runs: Runs, path: Path) -> None:
    """Draw scores against epsilon, with two standard errors to each side; dotted are baselines and open runs.

    Args:
        runs: Of one kind of score.
        path: Picture to write.

    Raises:
        ParameterError: The runs are not comparable, or none of them claims any privacy.
    """
    if not comparable(runs):
        raise ParameterError(f"plot needs runs that are comparable. {comparison_notes(runs)[0]}")
    if any(result.scores is None for one in runs.values() for result in one.results):
        raise ParameterError("plot needs runs that were scored.")
    rows = [_row(name, one, result) for name, one in runs.items() for result in one.results]
    private = sorted((row for row in rows if row["epsilon"] is not None), key=lambda row: row["epsilon"])
    if not private:
        raise ParameterError("plot needs a run that claims privacy: without one there is no epsilon.")
    points: list[dict[str, object]] = [
        {
            "epsilon": row["epsilon"],
            "score": row["score"],
            "error": row["standard_error"] or 0.0,
            "line": f"{row['trust']}, {_trained(row['algorithm'], row['model'])}",
        }
        for row in private
    ]
    alike: dict[tuple[str, float], list[str]] = {}
    for row in rows:
        if row["epsilon"] is None:
            alike.setdefault((_trained(row["algorithm"], row["model"]), row["score"]), []).append(row["run"])
    for (trained, score), names in alike.items():
        line = f"no privacy, {trained} ({', '.join(names)})"
        points.append({"epsilon": None, "score": score, "line": line})
    baselines = {name: _row(name, one, one.results[0])["baseline"] for name, one in runs.items()}
    for value in sorted(set(baselines.values())):
        names = [name for name, baseline in baselines.items() if baseline == value]
        line = "baseline" if len(names) == len(runs) else f"baseline of {', '.join(names)}"
        points.append({"epsilon": None, "score": value, "line": line})
    metric = rows[0]["metric"]
    inside = (
        ""
        if all(one.data.public for one in runs.values())
        else "\ncomputed without privacy: keep this inside"
    )
    draw_lines(
        points, path, x="epsilon", y="score", error="error", line="line", log_x=True,
        title=f"{rows[0]['data']}: {metric} on held-out records, with two standard errors{inside}",
        labels={"epsilon": "epsilon (smaller is more private)", "score": metric},
    )  # fmt: skip


def _row(name: str, one: Metrics, result: ModelFigures) -> dict[str, Any]:
    """Return one trust model of one run for programs."""
    return {
        "run": name,
        "data": one.data.name,
        "trust": result.trust,
        "algorithm": result.algorithm,
        "model": result.model,
        "epsilon": result.epsilon,
        "delta": result.delta,
        "metric": result.metric,
        "score": result.score,
        **{
            name: None if result.scores is None else getattr(result.scores, name)
            for name in ("standard_error", "baseline", "auc", "auc_standard_error")
        },
        "bits_per_silo": result.bits_per_silo,
        "rounds": result.rounds,
    }


def _cells(name: str, one: ModelFigures) -> tuple[str, ...]:
    """Return one trust model of one run for people."""
    scores = one.scores
    told = (
        ("not scored", "", "")
        if scores is None
        else (
            format_score(scores.metric, scores.score, scores.standard_error),
            format_score(scores.metric, scores.baseline),
            "" if scores.auc is None else f"{scores.auc:.3f}",
        )
    )
    return (
        name,
        one.trust,
        _trained(one.algorithm, one.model),
        "none" if one.epsilon is None else format_epsilon(one.epsilon),
        "none" if one.delta is None else format_delta(one.delta),
        *told,
        format_bits(one.bits_per_silo),
        f"{one.rounds:,}",
    )


def _trained(algorithm: str, model: str) -> str:
    """Return what was trained how, which is an algorithm alone where a linear model was."""
    return algorithm if model == "linear" else f"{algorithm}, {model}"


def _list(words: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
