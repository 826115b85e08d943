"""The numbers of a run as a file: `metrics.json`, one form that is written and read strictly."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from tacit.errors import DataError, printable
from tacit.jobs import JobResult, PersonalScores, Scores, SweepPoint, TrustResult
from tacit.reports.statement import claims

__all__ = [
    "METRICS_FILE", "METRICS_VERSION", "DataFigures", "Metrics", "ModelFigures", "Point", "metrics",
    "read_metrics",
]  # fmt: skip

METRICS_FILE: Final = "metrics.json"
METRICS_VERSION: Final = 4


class Point(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a training was after a round; simulations on public data only.

    Attributes:
        round: Number of the round, from 1.
        loss: On held-out records.
        score: On held-out records.
    """

    round: int
    loss: float
    score: float


class DataFigures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What tells whether the scores of two runs are about the same thing.

    Attributes:
        name: Of the data set, or of the table's file.
        label: Column that is predicted; None for data sets by name.
        public: Whether the data are public. Where they are not, the file stays with their owner.
        description: SHA-256 of the file that describes the columns; None without one.
        held_out: SHA-256 of the numbers of the held-out records, little-endian 64-bit integers; None where
            the records stay with the silos.
    """

    name: str
    label: str | None
    public: bool
    description: str | None
    held_out: str | None


class ModelFigures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The numbers of one trust model.

    Attributes:
        trust: "local", "aggregate", "shuffle", "central" or "none".
        algorithm: What trained it.
        metric: What `score` is: "accuracy", or in units of the target what `NumberScores.metric` says; None
            where the model was not scored: there were no public records.
        score: On held-out records; None as the metric.
        epsilon: Of the weakest guarantee; None where nothing is claimed.
        delta: Of the weakest guarantee; None where nothing is claimed.
        bits_per_silo: Bits that the busiest silo sent.
        rounds: Number of rounds.
        noise_multiplier: Standard deviation of the noise by what one unit can change.
        seconds: Training time.
        scores: All that is known from held-out records: `tacit.jobs.ClassScores` or `NumberScores`;
            None as the metric.
        trace: Loss and score by round; left out where there are none.
        epsilon_alone: Under shuffle and aggregate trust, of the weakest guarantee about a silo's messages
            alone; left out where nothing is claimed of them.
        trained_with: Number of public records that it was trained with; left out where there are none.
        personal: What silos' own models are worth; left out where they have none.
        model: What was trained, as "mlp:64" or "linear@28x28"; left out where it is "linear".
    """

    trust: str
    algorithm: str
    metric: str | None
    score: float | None
    epsilon: float | None
    delta: float | None
    bits_per_silo: float
    rounds: int
    noise_multiplier: float
    seconds: float
    scores: Scores | None
    trace: tuple[Point, ...] = ()
    epsilon_alone: float | None = None
    trained_with: int = 0
    personal: PersonalScores | None = None
    model: str = "linear"


class Metrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What `metrics.json` holds.

    Attributes:
        version: Of this form, `METRICS_VERSION`.
        run: Name of the run.
        data: What the scores are about.
        results: One entry per trust model.
        sweep: Scores at other budgets; left out where there are none.
    """

    version: int
    run: str
    data: DataFigures
    results: tuple[ModelFigures, ...]
    sweep: tuple[SweepPoint, ...] = ()


class _Version(msgspec.Struct):
    """What is read first: a file of another version has another form."""

    version: int


def metrics(result: JobResult) -> Metrics:
    """Return the numbers of a run; traces and sweeps exist in simulations on public data only.

    Args:
        result: A finished job.
    """
    facts, records = result.facts, result.records
    return Metrics(
        version=METRICS_VERSION,
        run=result.job.run,
        data=DataFigures(
            name=printable(result.job.title),
            label=result.job.label,
            public=facts.public,
            description=None if facts.description is None else hashlib.sha256(facts.description).hexdigest(),
            held_out=None
            if records is None
            else hashlib.sha256(np.asarray(records.test, dtype="<i8").tobytes()).hexdigest(),
        ),
        results=tuple(map(_figures, result.results)),
        sweep=result.sweep,
    )


def read_metrics(path: Path) -> Metrics:
    """Read the numbers of a run.

    Args:
        path: The folder of a run, or its `metrics.json`.

    Raises:
        DataError: There is no such file, or it is of another version or form.
    """
    file = path / METRICS_FILE if path.is_dir() else path
    try:
        text = file.read_bytes()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise DataError(
            f"{str(path)!r} is no finished run: {METRICS_FILE} cannot be read ({reason})."
        ) from error
    try:
        version = msgspec.json.decode(text, type=_Version).version
        if version != METRICS_VERSION:
            raise DataError(
                f"{str(file)!r} is of version {version}, this tacit reads version {METRICS_VERSION}; the run "
                "must be made again to be compared."
            )
        return msgspec.json.decode(text, type=Metrics)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{str(file)!r} holds no numbers of a run: {printable(str(error))}.") from error


def _figures(one: TrustResult) -> ModelFigures:
    """Return the numbers of one trust model."""
    private, before, scores = claims(one), one.guarantee_alone, one.scored
    seen = math.inf if before is None else before.epsilon
    return ModelFigures(
        trust=one.trust,
        algorithm=one.trained.algorithm,
        metric=None if scores is None else scores.metric,
        score=None if scores is None else scores.score,
        epsilon=one.guarantee.epsilon if private else None,
        delta=one.guarantee.delta if private else None,
        bits_per_silo=one.bits_per_silo,
        rounds=one.trained.rounds,
        noise_multiplier=one.trained.noise_multiplier,
        seconds=one.seconds,
        scores=scores,
        epsilon_alone=seen if math.isfinite(seen) else None,
        trained_with=one.trained.trained_with,
        personal=one.personal,
        model=printable(str(one.model.model)),
        trace=tuple(Point(round=r, loss=loss, score=score) for r, loss, score in one.trace),
    )
