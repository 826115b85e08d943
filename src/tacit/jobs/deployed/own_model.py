"""The personal model of a silo, as a file of its owner: it never leaves the silo's machine."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from tacit.federation import Silo
from tacit.federation.network.private_files import make_private_folder
from tacit.jobs.model import TrainedModel
from tacit.jobs.terms import JobTerms
from tacit.ledger.private_files import replace_private

__all__ = ["own_model_path", "write_own_model"]

_PERSONAL_FOLDER: Final = "personal"
"""Folder of a silo's own models in its state, one file a run."""

_PRIVACY: Final = "no privacy: this model has no noise and is for its own silo alone"


_PLAIN: Final = re.compile(r"[A-Za-z0-9_. -]{1,100}")
"""Names of runs that are names of files anywhere; by another one, a server could choose the folder too."""


def own_model_path(state: Path, run: str) -> Path:
    """Return the file of a silo's own model of a run, whose name may be any text.

    Args:
        state: Folder of the silo.
        run: Name of the run; one with other than Latin letters, digits, `_`, `.`, `-` and spaces, or of more
            than 100, has its digest as the name of the file.
    """
    digest = hashlib.blake2b(run.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return state / _PERSONAL_FOLDER / f"{run if _PLAIN.fullmatch(run) else '#' + digest}.json"


def write_own_model(silo: Silo, statistic: str, *, terms: JobTerms, run: str, state: Path) -> Path | None:
    """Write the model that a silo keeps of an accepted run, in place of that of the round before.

    Args:
        silo: That has accepted the run, and answered.
        statistic: Name of what keeps the model.
        terms: Of the job.
        run: Name of the run.
        state: Folder of the silo.

    Returns:
        The file, which only its owner can read; `tacit predict --model` takes it. None where the silo has no
        model yet, because it took part in no round.

    Raises:
        OSError: It cannot be written; what was there is there.
    """
    kept, facts = silo.kept(statistic)[0], terms.facts
    if not kept[-1]:
        return None
    model = TrainedModel(
        fitted=terms.model(kept[:-1]),
        feature_names=facts.feature_names,
        columns=facts.columns,
        model=terms.config.architecture,
        run=run,
        trust=terms.config.trust,
        privacy=_PRIVACY,
    )
    path = own_model_path(state, run)
    make_private_folder(path.parent)
    replace_private(path, model.to_json())
    return path
