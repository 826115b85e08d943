"""Results as rows: for the terminal, for programs, and for the report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

import msgspec

from tacit.jobs import JobResult, NumberScores, PersonalScores, TrustResult
from tacit.learning.settings import NAMED
from tacit.privacy import Guarantee, Unit
from tacit.reports.statement import claims, notes_of, units_per_silo

__all__ = [
    "NOT_SCORED",
    "Row",
    "alone_entries",
    "baseline_of",
    "format_bits",
    "format_delta",
    "format_epsilon",
    "format_score",
    "metric_of",
    "result_rows",
    "results_json",
    "silo_words",
    "unused_labels",
    "why_chosen",
]


NOT_SCORED = "not scored: no public records"
"""What stands in the place of a score where the only records are those that stay with the silos."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One trust model as people read it; numbers carry their units."""

    trust: str
    algorithm: str
    score: str
    epsilon: str
    delta: str
    bits: str
    size: str
    rounds: str
    noise: str
    seconds: str


def format_score(metric: str, score: float, error: float | None = None) -> str:
    """Write an accuracy in per cent, an error in the target's units, with its standard error if there is one.

    Example:
        >>> format_score("accuracy", 0.8106), format_score("rmse", 6123.44), format_score("rmse", 0.51234)
        ('81.1 %', '6,123', '0.5123')
        >>> format_score("accuracy", 0.8106, 0.0213), format_score("rmse", 6123.44, 91.3)
        ('81.1 ± 2.1 %', '6,123 ± 91')
    """
    if metric == "accuracy":
        return f"{100 * score:.1f}{'' if error is None else f' ± {100 * error:.1f}'} %"
    known = "" if error is None else f" ± {f'{error:,.0f}' if error >= 10 else f'{error:.2g}'}"
    return f"{f'{score:,.0f}' if abs(score) >= 1000 else f'{score:.4g}'}{known}"


def metric_of(result: JobResult) -> str:
    """Return what the scores of a result are; "score" where it has none."""
    scores = result.results[0].scored
    return "score" if scores is None else scores.metric


def baseline_of(result: JobResult) -> tuple[str, str]:
    """Return what guessing without features is, and how well it does on the held-out records.

    Where there are none to score on, that is what it says.
    """
    scores = result.results[0].scored
    if scores is None:
        return NOT_SCORED, ""
    what = f"{scores.guess} target" if isinstance(scores, NumberScores) else "most frequent class"
    return what, format_score(scores.metric, scores.baseline)


def format_bits(bits: float) -> str:
    """Write a number of bits as a size in bytes with a decimal unit.

    Example:
        >>> format_bits(183_040), format_bits(40), format_bits(1.2e10)
        ('22.9 kB', '5 B', '1.5 GB')
    """
    size = bits / 8
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def format_epsilon(epsilon: float) -> str:
    """Write an epsilon with four decimals, rounded up: a smaller one would claim too much."""
    return f"{math.ceil(epsilon * 1e4 - 1e-6) / 1e4:g}"


def format_delta(delta: float) -> str:
    """Write a delta with three digits, rounded up: a smaller one would claim too much.

    Example:
        >>> format_delta(1e-5), format_delta(1 / 48**2), format_delta(0.0)
        ('1e-05', '0.000435', '0')
    """
    if delta == 0:
        return "0"
    exact = Decimal(repr(delta))
    return f"{float(exact.quantize(Decimal((0, (1,), exact.adjusted() - 2)), rounding=ROUND_CEILING)):.3g}"


def silo_words(result: JobResult) -> str:
    """Say how many silos there are and how large, in protected units, where that is public.

    How many records a person has is private, and so is the number of records that persons have together.

    Returns:
        Such as "4 silos with 139 to 146 records".
    """
    known = [size for size in units_per_silo(result) if size is not None]
    count = len(result.facts.silo_names)
    silos = "1 silo" if count == 1 else f"{count} silos"
    if result.facts.unit is Unit.PARTY:
        return f"{silos}, protected as a whole"
    if not known:
        return silos
    alike = min(known) == max(known)
    size = f"{known[0]}" if alike else f"{min(known)} to {max(known)}"
    units = result.facts.unit.plural
    return f"{silos} with {size} {units}{' each' if alike and count > 1 else ''}"


def why_chosen(runs: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return why algorithms that nobody named were chosen, a sentence each; trust models of one are together.

    Args:
        runs: Trust model, algorithm and reason of each.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for trust, algorithm, reason in runs:
        if reason != NAMED:
            found.setdefault((algorithm, reason), []).append(trust)
    return [f"{algorithm} for {', '.join(who)}: {why}" for (algorithm, why), who in found.items()]


def unused_labels(runs: Iterable[tuple[str, int]], *, labelled: bool) -> list[str]:
    """Return which algorithms did not train on the labels that public records have, a sentence each.

    Args:
        runs: Algorithm and number of public records that it trains on.
        labelled: Whether there are public records with labels.
    """
    names = dict.fromkeys(name for name, count in runs if not count) if labelled else {}
    return [
        f"{name} scales features by the public records and does not train on their labels, as "
        "--algorithm semi-dp would."
        for name in names
    ]


def result_rows(result: JobResult) -> list[Row]:
    """Return one row per trust model, in the order they ran."""
    return [_row(one) for one in result.results]


def personal_words(trust: str, found: PersonalScores) -> str:
    """Return what the silos' own models are worth, in a sentence."""
    error = "" if found.standard_error is None else f" ± {100 * found.standard_error:.1f}"
    return (
        f"{trust}: the silos' own models are right on {100 * found.score:.1f}{error} % of their held-out "
        f"records, on average over silos; the common model on {100 * found.common:.1f} %, and models that "
        f"silos train alone on {100 * found.alone:.1f} %."
    )


def results_json(result: JobResult, *, folder: Path | None = None) -> dict[str, Any]:
    """Return the results for programs.

    Args:
        result: A finished job.
        folder: Where the run was written; None gives the name of the run instead.

    Returns:
        `run`, `data` (its name, the number of silos, and the units that each trains on, None where that is
        not public), `loss`, `results` (one entry per trust model; epsilon and delta are None where nothing is
        claimed, `clip` is there where a first round chose it, `scores` is as in `metrics.json`, None where
        nothing was scored; `personal` are the scores of silos' own models, where an algorithm makes such;
        `trained_with` is the number of public records that were trained on, left out
        where there are none) and `notes`.
    """
    sizes = dict(zip(result.facts.silo_names, units_per_silo(result), strict=True))
    return {
        "run": result.job.run if folder is None else str(folder),
        "data": {"name": result.job.source, "silos": len(sizes), "sizes": sizes},
        "loss": msgspec.to_builtins(result.loss),
        "results": [
            {
                "trust": one.trust,
                "algorithm": one.trained.algorithm,
                "algorithm_reason": one.trained.algorithm_reason,
                **({} if one.scored is None else {one.metric: one.score}),
                "scores": None if one.scored is None else msgspec.to_builtins(one.scored),
                **({} if one.personal is None else {"personal": msgspec.to_builtins(one.personal)}),
                "epsilon": one.guarantee.epsilon if claims(one) else None,
                "delta": one.guarantee.delta if claims(one) else None,
                "bits_per_silo": one.bits_per_silo,
                "guarantee": str(one.guarantee),
                **alone_entries(one.guarantee_alone),
                **({"trained_with": one.trained.trained_with} if one.trained.trained_with else {}),
                "rounds": one.trained.rounds,
                "noise_multiplier": one.trained.noise_multiplier,
                **({} if one.trained.clip is None else {"clip": one.trained.clip}),
                "seconds": one.seconds,
            }
            for one in result.results
        ],
        "notes": notes_of(result),
    }


def alone_entries(guarantee: Guarantee | None) -> dict[str, str | float | None]:
    """Return for programs what the messages of one silo show alone; nothing where they are seen so anyway."""
    if guarantee is None:
        return {}
    known = math.isfinite(guarantee.epsilon)
    return {
        "guarantee_alone": str(guarantee),
        "epsilon_alone": guarantee.epsilon if known else None,
    }


def _row(one: TrustResult) -> Row:
    """Return the row of one trust model."""
    private = claims(one)
    return Row(
        trust=one.trust,
        algorithm=one.trained.algorithm,
        score="not scored"
        if one.scored is None
        else format_score(one.metric, one.score, one.scored.standard_error),
        epsilon=format_epsilon(one.guarantee.epsilon) if private else "none",
        delta=format_delta(one.guarantee.delta) if private else "none",
        bits=f"{one.bits_per_silo:,.0f}",
        size=format_bits(one.bits_per_silo),
        rounds=f"{one.trained.rounds:,}",
        noise=f"{one.trained.noise_multiplier:.4g}" if private else "none",
        seconds=f"{one.seconds:.2f}",
    )
