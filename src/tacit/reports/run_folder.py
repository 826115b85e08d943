"""Run folders: everything that a training job leaves on disk, never over something that is there."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from tacit.errors import DataError
from tacit.jobs import MODEL_FILE, JobConfig, JobResult
from tacit.privacy.signed import ClaimSignature
from tacit.reports.html import render, template
from tacit.reports.metrics import METRICS_FILE, metrics
from tacit.reports.statement import build_statement, released

__all__ = ["UNFINISHED", "RunFolder", "claim_folder", "finish", "write_run"]

UNFINISHED: Final = "unfinished.txt"
"""In a run folder until all else is written: what is wrong with a folder that has it, and how to go on."""

_JOB: Final = "job.toml"


@dataclass(frozen=True)
class RunFolder:
    """A folder that was made for a run before anything was spent on it.

    Attributes:
        path: The folder.
        wanted: Where it would have been, had nothing been there.
        made: Every folder that was made for it, outermost first.
    """

    path: Path
    wanted: Path
    made: tuple[Path, ...]

    def give_back(self) -> None:
        """Remove what was made for a run that left nothing in it; a part of a run stays, and is marked."""
        left = {path.name for path in self.path.iterdir()}
        if left != {UNFINISHED, _JOB}:
            return
        for name in (UNFINISHED, _JOB):
            (self.path / name).unlink(missing_ok=True)
        for folder in reversed(self.made):
            try:
                folder.rmdir()
            except OSError:  # something else lies there
                return


def claim_folder(job: JobConfig, folder: Path | None = None, *, again: str = "") -> RunFolder:
    """Make the folder of a run, and write into it what can be written before the run.

    All that may fail for public reasons fails here: the place, the names, the template of the report.

    Args:
        job: What will run.
        folder: Where to; None is `<out>/<run>` of the job. Where it exists already, `-2`, `-3`, ... is
            appended.
        again: How an interrupted run goes on, kept in the folder until the run is written.

    Raises:
        DataError: The folder cannot be made or written.
    """
    template()
    wanted = Path(job.out) / job.run if folder is None else Path(folder)
    with _refusals(wanted):
        claimed = _make(wanted)
        (claimed.path / _JOB).write_text(job.to_toml(), encoding="utf-8")
        (claimed.path / UNFINISHED).write_text(f"This run has not finished.\n{again}", encoding="utf-8")
    return claimed


def write_run(
    result: JobResult,
    folder: Path | RunFolder | None = None,
    *,
    signatures: Sequence[ClaimSignature] = (),
) -> Path:
    """Write the folder of a run.

    It holds `model.json` (of the trust model that is released, see `tacit.jobs.TrainedModel`),
    `statement.json`, `metrics.json`, `plan.toml`, `job.toml` and `report.html`, and a copy of the column
    description of a table, if it has one, as `columns.toml`. Where several trust models ran there is one
    `plan-<trust>.toml` each, and one `model-to-compare-<trust>.json`: these stay with the data's owner.

    Args:
        result: A finished job.
        folder: One that `claim_folder` made; else where to make it, as there.
        signatures: Of the parties of a deployed federation; the statement then calls the run as they do.

    Returns:
        The folder.

    Raises:
        DataError: The folder cannot be made or written, or holds a finished run.
    """
    claimed = folder if isinstance(folder, RunFolder) else claim_folder(result.job, folder)
    with finish(claimed) as path:
        _write(result, path, datetime.now(UTC), signatures)
    return claimed.path


@contextmanager
def finish(claimed: RunFolder) -> Iterator[Path]:
    """Give the folder of a run to what writes it, and take the mark of an unfinished run away after.

    Raises:
        DataError: It cannot be written, or holds a finished run already.
    """
    with _refusals(claimed.path):
        if not (claimed.path / UNFINISHED).exists():  # a statement must not end up beside another model
            raise DataError(f"the run folder {claimed.path} holds a finished run already.")
        yield claimed.path
        (claimed.path / UNFINISHED).unlink(missing_ok=True)


def _make(wanted: Path) -> RunFolder:
    """Make a new folder; two runs at once get two folders."""
    for number in itertools.count(1):
        path = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        missing = [place for place in (path, *path.parents) if not place.exists()]
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return RunFolder(path, wanted, tuple(reversed(missing)))
    raise AssertionError("unreachable")


@contextmanager
def _refusals(folder: Path) -> Iterator[None]:
    """Say in one line why a folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise DataError(f"the run folder {folder} cannot be written: {error.strerror}.") from error
    except UnicodeEncodeError as error:  # a file name that is not text, in a file that is
        raise DataError(f"the run folder {str(folder)!r} cannot be written: {error.reason}.") from error


def _write(result: JobResult, folder: Path, created: datetime, signatures: Sequence[ClaimSignature]) -> None:
    """Write all files; the statement last, as it holds the digests of others."""
    _json(folder / METRICS_FILE, msgspec.to_builtins(metrics(result)))
    (folder / "plan.toml").write_text(released(result).trained.plan.to_toml(), encoding="utf-8")
    if len(result.results) > 1:
        for one in result.results:
            (folder / f"plan-{one.trust}.toml").write_text(one.trained.plan.to_toml(), encoding="utf-8")
            one.model.save(folder / f"model-to-compare-{one.trust}.json")
    # What is handed out must not hold a model that was trained without privacy, or with less of it.
    released(result).model.save(folder / MODEL_FILE)
    files = [folder / MODEL_FILE, folder / "plan.toml"]
    if result.facts.description is not None:
        files.append(folder / "columns.toml")
        files[-1].write_bytes(result.facts.description)
    run = signatures[0].run if signatures else folder.name
    statement = build_statement(result, run=run, created=created, files=files, signatures=signatures)
    _json(folder / "statement.json", statement.to_builtins())
    page = render(result, run=run, created=created)
    (folder / "report.html").write_text(page, encoding="utf-8")


def _json(path: Path, data: dict[str, Any]) -> None:
    """Write strict JSON: no NaN, no infinity."""
    path.write_text(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")
