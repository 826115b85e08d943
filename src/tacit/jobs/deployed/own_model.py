"""The personal model of a silo, as a file of its owner: it never leaves the silo's machine."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tacit.federation import Silo
from tacit.federation.network.private_files import make_private_folder
from tacit.jobs.model import TrainedModel
from tacit.jobs.terms import JobTerms
from tacit.ledger.private_files import replace_private

__all__ = ["PERSONAL_FOLDER", "write_own_model"]

PERSONAL_FOLDER: Final = "personal"
"""Folder of a silo's own models in its state, one file a run."""

_PRIVACY: Final = "no privacy: this model has no noise and is for its own silo alone"


def write_own_model(silo: Silo, statistic: str, *, terms: JobTerms, run: str, state: Path) -> Path:
    """Write the model that a silo keeps of an accepted run, in place of that of the round before.

    Args:
        silo: That has accepted the run, and answered.
        statistic: Name of what keeps the model.
        terms: Of the job.
        run: Name of the run.
        state: Folder of the silo.

    Returns:
        The file, which only its owner can read; `tacit predict --model` takes it.

    Raises:
        OSError: It cannot be written; what was there is there.
    """
    kept, facts = silo.kept(statistic)[0], terms.facts
    model = TrainedModel(
        fitted=terms.model(kept[:-1]),
        feature_names=facts.feature_names,
        columns=facts.columns,
        model=terms.config.architecture,
        run=run,
        trust=terms.config.trust,
        privacy=_PRIVACY,
    )
    path = make_private_folder(state / PERSONAL_FOLDER) / f"{run}.json"
    replace_private(path, model.to_json())
    return path
