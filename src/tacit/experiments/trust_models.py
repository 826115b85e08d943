"""Accuracy against epsilon for everybody who may be trusted: a server, a sum, a shuffler, or nobody.

The same records in the same silos are trained on with what nobody named (`tacit.learning.defaults`), at the
same budget of every silo's records. What changes is who sees what, and so how much noise is in a model.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tacit.errors import PrivacyWarning
from tacit.experiments.report import Report
from tacit.experiments.trust_models_plain import PLAIN, plain_rounds
from tacit.experiments.trust_models_statements import plain_statements, statements
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData, load_job_data
from tacit.learning import FederatedLogisticRegression
from tacit.privacy import PrivacyBudget

__all__ = ["COLLUDING", "DEMO", "MNIST", "TRUSTS", "Silos", "compute", "run"]

Trusted = Literal["central", "aggregate", "shuffle", "local", "none"]
TRUSTS: tuple[Trusted, ...] = ("central", "aggregate", "shuffle", "local", "none")
COLLUDING = 2
"""Silos whose shares of the noise no price counts, under aggregate trust and behind the shuffler."""
EPSILONS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, kw_only=True)
class Silos:
    """Public records, dealt to silos.

    Attributes:
        name: What the table calls them.
        data: Name of the data set.
        split: How records are dealt, as `tacit train --silos` takes it.
        trials: Seeds, of the noise and of which records are held out; 2 or more.
        epsilons: Budgets; delta is 1 / n^2 for the n records of the smallest silo.
        trusts: Who is trusted.
    """

    name: str
    data: str
    split: str = "auto"
    trials: int = 20
    epsilons: tuple[float, ...] = EPSILONS
    trusts: tuple[Trusted, ...] = TRUSTS

    def records(self, seed: int) -> JobData:
        """Return the records as `tacit train` deals them under that seed."""
        return load_job_data(JobConfig(data=self.data, silos=self.split, seed=seed))


DEMO = Silos(name="demo, 10 silos", data="digits-odd-even")
MNIST = Silos(name="MNIST, 25 silos", data="mnist-odd-even", split="pairs", trials=6)


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the tables; `quick` takes the demo, 3 seeds and two budgets, not MNIST, 20 and four."""
    given = [Silos(name=DEMO.name, data=DEMO.data, trials=3, epsilons=(1.0, 4.0))] if quick else [DEMO, MNIST]
    return compute(given, plain_trials=3 if quick else 40, progress=progress)


def compute(given: Sequence[Silos], *, plain_trials: int, progress: Callable[[int, int], Any]) -> Report:
    """Measure every trust model at every budget, and plain gradient descent beside it.

    Args:
        given: Records in silos.
        plain_trials: Seeds of plain gradient descent, 2 or more.
        progress: Called with (done, total).
    """
    cases = [
        (silos, trust, epsilon)
        for silos in given
        for trust in silos.trusts
        for epsilon in ((None,) if trust == "none" else silos.epsilons)
    ]
    total = len(cases) + len(PLAIN)
    rows: list[dict[str, object]] = []
    for done, (silos, trust, epsilon) in enumerate(cases):
        progress(done, total)
        rows.append(_row(silos, trust, epsilon))
    plain: list[dict[str, object]] = []
    for done, case in enumerate(PLAIN):
        progress(len(cases) + done, total)
        plain.append(plain_rounds(case, plain_trials))
    progress(total, total)
    return Report(
        rows=rows,
        x="epsilon",
        y="accuracy",
        error="standard error",
        line="trust",
        panel="data",
        shown=("data", "trust", "epsilon", "accuracy", "standard error", "alone", "kB sent", "algorithm"),
        title="Accuracy on held-out records at equal privacy, by who is trusted",
        labels={"alone": "epsilon of one message alone"},
        notes=(
            "Replace-one records, delta = 1 / n^2 for the n records of the smallest silo. Under aggregate "
            f"and shuffle trust {COLLUDING} silos may collude. Means and standard errors over seeds: "
            f"{', '.join(f'{one.trials} ({one.name})' for one in given)}.",
            *statements(rows),
        ),
        more={
            "plain": Report(
                rows=plain,
                x="epsilon",
                y="accuracy",
                error="standard error",
                line="trust",
                panel="rounds",
                title="Gradient descent with steps of 8, the same for all",
                notes=(
                    "The demo's records, divided by the longest that they can be; clip 1, delta = 1e-5, "
                    f"no average of iterates, {plain_trials} seeds. Nothing is tuned to a trust model.",
                    *plain_statements(plain),
                ),
            )
        },
    )


def _row(silos: Silos, trust: Trusted, epsilon: float | None) -> dict[str, object]:
    """Return one row: the mean over seeds, which are the same ones for all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # of small silos, at every fit
        found = [_trained(silos.records(seed), trust, epsilon, seed) for seed in range(silos.trials)]
    scores = np.array([score for score, _ in found])
    _, model = found[0]
    alone = None if model.guarantee_alone_ is None else model.guarantee_alone_.epsilon
    return {
        "data": silos.name,
        "trust": trust,
        "epsilon": epsilon,
        "accuracy": float(scores.mean()),
        "standard error": float(scores.std(ddof=1) / math.sqrt(len(scores))),
        "alone": alone if alone is not None and math.isfinite(alone) else None,
        "kB sent": float(max(model.trained_.traffic.bits_up)) / 8000,
        "rounds": model.trained_.rounds,
        "algorithm": model.trained_.algorithm,
    }


def _trained(
    records: JobData, trust: Trusted, epsilon: float | None, seed: int
) -> tuple[float, FederatedLogisticRegression]:
    """Return the accuracy on held-out records, and what was fitted."""
    sizes = [len(index) for index in records.train]
    model = FederatedLogisticRegression(
        trust=trust,
        budget=None if epsilon is None else PrivacyBudget(epsilon, 1 / min(sizes) ** 2),
        colluding=COLLUDING if trust in ("aggregate", "shuffle") else 0,
        bounds=(records.lower, records.upper),
        classes=range(2),
        random_state=seed,
    )
    train = np.concatenate(records.train)
    names = np.repeat(_padded(range(len(sizes))), sizes)
    model.fit(records.X[train], records.y[train].astype(int), silos=names)
    return float(model.score(records.X[records.test], records.y[records.test].astype(int))), model


def _padded(numbers: Iterable[int]) -> list[str]:
    """Return names of silos that sort as their numbers do."""
    return [f"{number:03d}" for number in numbers]
