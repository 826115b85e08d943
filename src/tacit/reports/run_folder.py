"""Run folders: everything that a training job leaves on disk, never over something that is there."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import joblib

from tacit.errors import DataError
from tacit.learning.job import JobResult, TrustResult
from tacit.reports.html import render
from tacit.reports.statement import build_statement, claims, released

__all__ = ["METRICS_VERSION", "metrics", "write_run"]

METRICS_VERSION = 1


def write_run(result: JobResult, folder: Path | None = None) -> Path:
    """Write the folder of a run.

    It holds `model.joblib` (a dictionary from the released trust model to its `LinearModel`; joblib files run
    code when they are loaded, so load only those you trust), `statement.json`, `metrics.json`, `plan.toml`,
    `job.toml` and `report.html`. Where several trust models ran there is one `plan-<trust>.toml` each, and
    `models-to-compare.joblib` has all models: they stay with the data's owner.

    Args:
        result: A finished job.
        folder: Where to; None is `<out>/<run>` of the job. Where it exists already, `-2`, `-3`, ... is
            appended.

    Returns:
        The folder that was made.

    Raises:
        DataError: The folder cannot be made or written.
    """
    wanted = Path(result.job.out) / result.job.run if folder is None else Path(folder)
    created = datetime.now(UTC)
    try:
        made = _make(wanted)
        _write(result, made, created)
    except OSError as error:
        raise DataError(f"the run folder {wanted} cannot be written: {error.strerror}.") from error
    return made


def metrics(result: JobResult) -> dict[str, Any]:
    """Return the numbers of a run; traces and sweeps exist in simulations on public data only.

    Args:
        result: A finished job.

    Returns:
        What JSON can hold; `epsilon` and `delta` are None where nothing is claimed.
    """
    data: dict[str, Any] = {"version": METRICS_VERSION, "results": [_numbers(one) for one in result.results]}
    if result.sweep:
        data["sweep"] = _records(("trust", "epsilon", "score"), result.sweep)
    return data


def _make(wanted: Path) -> Path:
    """Make a new folder; two runs at once get two folders."""
    for number in itertools.count(1):
        path = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable")


def _write(result: JobResult, folder: Path, created: datetime) -> None:
    """Write all files."""
    statement = build_statement(result, run=folder.name, created=created)
    _json(folder / "statement.json", statement)
    _json(folder / "metrics.json", metrics(result))
    (folder / "job.toml").write_text(result.job.to_toml(), encoding="utf-8")
    (folder / "plan.toml").write_text(released(result).trained.plan.to_toml(), encoding="utf-8")
    if len(result.results) > 1:
        for one in result.results:
            (folder / f"plan-{one.trust}.toml").write_text(one.trained.plan.to_toml(), encoding="utf-8")
    # What is handed out must not hold a model that was trained without privacy, or with less of it.
    joblib.dump({released(result).trust: released(result).model}, folder / "model.joblib")
    if len(result.results) > 1:
        models = {one.trust: one.model for one in result.results}
        joblib.dump(models, folder / "models-to-compare.joblib")
    page = render(result, run=folder.name, created=created)
    (folder / "report.html").write_text(page, encoding="utf-8")


def _json(path: Path, data: dict[str, Any]) -> None:
    """Write strict JSON: no NaN, no infinity."""
    path.write_text(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def _numbers(one: TrustResult) -> dict[str, Any]:
    """Return the numbers of one trust model."""
    data: dict[str, Any] = {
        "trust": one.trust,
        "algorithm": one.trained.algorithm,
        "metric": one.metric,
        "score": one.score,
        "epsilon": one.guarantee.epsilon if claims(one) else None,
        "delta": one.guarantee.delta if claims(one) else None,
        "bits_per_silo": one.bits_per_silo,
        "rounds": one.trained.rounds,
        "noise_multiplier": one.trained.noise_multiplier,
        "seconds": one.seconds,
    }
    if one.trace:
        data["trace"] = _records(("round", "loss", "score"), one.trace)
    return data


def _records(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return tuples as objects."""
    return [dict(zip(names, row, strict=True)) for row in rows]
