"""Where the ledgers of a job of tables lie, and what a person is told where there are none."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.paying import warn_of_another
from tacit.errors import PrivacyWarning

if TYPE_CHECKING:
    from tacit.jobs import JobConfig, JobData

__all__ = ["ledger_place"]


def ledger_place(job: JobConfig, data: JobData, *, part: str = "all") -> Path | None:
    """Return the ledgers that were named, or those beside the tables; None, with a warning, without any.

    Args:
        job: Its data are loaded.
        data: The same.
        part: What part of a record the ledgers are about, for the command that makes them.
    """
    if data.tables is None:
        return None
    from tacit.ledger import accounts_beside, beside, ledgers_of

    folder = beside(data.tables) if job.ledger is None else ledgers_of(Path(job.ledger))
    if job.ledger is None and (job.seed is not None or not folder.exists()):
        others = [] if job.seed is not None else accounts_beside(data.tables)
        not_these = f", and not {', '.join(map(str, others))} of single tables" if others else ""
        warnings.warn(
            f"no ledger counts this run{not_these}; `{_to_create(folder, job, data, part)}` sets a limit.",
            PrivacyWarning,
            stacklevel=1,
        )
        return None
    warn_of_another(data.tables, folder)
    return folder


def _to_create(folder: Path, job: JobConfig, data: JobData, part: str) -> str:
    """Return the command that makes the ledgers of a job."""
    words = ["tacit", "ledger", "create", str(folder)]
    if job.silos not in ("auto", "column"):
        words += ["--silos", ",".join(data.silo_names)]
    else:
        words += ["--silos-from", *([job.data] if isinstance(job.data, str) else job.data)]
        words += [] if job.silo_column is None else ["--silo-column", job.silo_column]
        words += [] if None in (job.columns, job.silo_column) else ["--columns", str(job.columns)]
    words += ["--epsilon", "E", "--delta", "D", *(["--unit", "person"] if job.person else [])]
    return shlex.join([*words, *(["--part", part] if part != "all" else [])])
