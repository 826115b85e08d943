"""Plain gradient descent under every trust model: the same steps and rounds for all, and nothing tuned."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.data import load
from tacit.learning import LinearObjective, Logistic, NoisyMinibatchSGD, Records, Settings, train
from tacit.learning.training import silos_for
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated

__all__ = ["PLAIN", "PlainCase", "plain_rounds"]

_STEP, _SILOS, _HELD_OUT = 8.0, 10, 360
_COLLUDING = {"central": 0, "aggregate, 2 collude": 2, "aggregate, 5 collude": 5, "local": 0}


@dataclass(frozen=True)
class PlainCase:
    """One row: who is trusted, how many rounds, and which budget; None is without privacy."""

    trust: str
    rounds: int
    epsilon: float | None

    @property
    def settings(self) -> Settings:
        """What is trained with."""
        model = None if self.epsilon is None else TrustModel(self.trust.split(",")[0])
        return Settings(
            objective=LinearObjective(loss=Logistic(), features=65, feature_norm=1.0),
            algorithm=NoisyMinibatchSGD(rounds=self.rounds, step_size=_STEP, average=1e-9),
            trust=model,
            budget=None if self.epsilon is None else PrivacyBudget(self.epsilon, 1e-5),
            colluding=_COLLUDING.get(self.trust, 0),
            clip=1.0,
        )


PLAIN = tuple(
    PlainCase(trust, rounds, epsilon)
    for rounds in (20, 60)
    for trust, epsilons in (*((name, (1.0, 2.0)) for name in _COLLUDING), ("none", (None,)))
    for epsilon in epsilons
)
"""Every row."""


def plain_rounds(case: PlainCase, trials: int) -> dict[str, object]:
    """Return one row: the mean over seeds of the noise, on one division of the records.

    Args:
        case: What is trained.
        trials: Seeds, 2 or more; one is enough without noise.
    """
    rows, labels = _demo()
    order = simulated(0, "trust-models/plain").permutation(len(labels))
    test, rest = order[:_HELD_OUT], order[_HELD_OUT:]
    silos = [Records.of(rows[part], labels[part]) for part in np.array_split(rest, _SILOS)]
    settings, names = case.settings, [f"{k:02d}" for k in range(_SILOS)]
    scores = []
    for seed in range(trials if case.epsilon is not None else 2):
        w = train(silos_for(settings, silos, names=names, seed=seed), settings).w
        scores.append(float(((rows[test] @ w > 0) == labels[test]).mean()))
    return {
        "rounds": case.rounds,
        "trust": case.trust,
        "epsilon": case.epsilon,
        "accuracy": float(np.mean(scores)),
        "standard error": float(np.std(scores, ddof=1) / math.sqrt(len(scores))),
    }


def _demo() -> tuple[Array, Array]:
    """Return rows with a constant, of norm at most 1 whatever the pixels are, and labels."""
    digits = load("digits-odd-even")
    rows = np.column_stack([digits.X, np.ones(digits.n)])
    return rows / math.sqrt(rows.shape[1]), np.asarray(digits.y, dtype=np.float64)
