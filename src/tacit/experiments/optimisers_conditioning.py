"""Proximal methods as the condition number grows: what variance reduction saves (Lowy 2023, Table of 3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.experiments.optimisers_statements import conditioning_statements
from tacit.experiments.optimisers_tasks import Task, made_up
from tacit.experiments.report import Report
from tacit.learning import Settings, make_algorithm, train
from tacit.learning.training import silos_for
from tacit.privacy import PrivacyBudget, TrustModel

__all__ = ["conditioning"]

_BUDGET = PrivacyBudget(3.0, 1e-6)
_ROUNDS = {"prox-sgd": 10, "prox-svrg": 80}
"""Times kappa: with steps 1/(2 beta) and 1/(8 beta), both bring the bound on the gap from the start to e^-5
of it, so that what is left is noise."""


def conditioning(kappas: Sequence[int], *, trials: int, records: int = 5000) -> Report:
    """Measure one pass of proximal SGD, and proximal SVRG, at growing condition numbers.

    Args:
        kappas: Smoothness of the loss over the strength of the squared penalty.
        trials: Seeds of each, 2 or more.
        records: Of each of 5 silos.
    """
    plain = replace(made_up(silos=5, records=records, fresh=2), fresh=None)
    rows: list[dict[str, object]] = []
    for kappa in kappas:
        task = replace(plain, name="conditioning", l2=plain.objective.smoothness / kappa)
        rows += [_row(task, kappa, name, trials) for name in _ROUNDS]
    return Report(
        rows=rows,
        x="kappa",
        y="excess",
        error="standard error",
        line="method",
        log_y=True,
        title="Excess of proximal methods at equal central privacy against the condition number",
        labels={"kappa": "kappa = beta / mu", "excess": "objective above its minimum"},
        notes=tuple(conditioning_statements(rows)),
    )


def _row(task: Task, kappa: int, name: str, trials: int) -> dict[str, object]:
    """Return one row: the mean over seeds."""
    settings = Settings(
        objective=task.objective,
        algorithm=make_algorithm(name, rounds=_ROUNDS[name] * kappa, mu=task.l2),
        trust=TrustModel.CENTRAL,
        budget=_BUDGET,
        diameter=task.diameter,
        regularizer=task.regularizer,
    )
    names = [str(k) for k in range(len(task.silos))]
    found = np.array(
        [
            task.excess(train(silos_for(settings, list(task.silos), names=names, seed=seed), settings).w)
            for seed in range(1, trials + 1)
        ]
    )
    return {
        "kappa": kappa,
        "method": name,
        "rounds": _ROUNDS[name] * kappa,
        "excess": float(found.mean()),
        "standard error": float(found.std(ddof=1) / math.sqrt(trials)),
    }
