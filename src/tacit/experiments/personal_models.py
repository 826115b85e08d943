"""Personal models of digits on silos that have three classes each (Girgis 2023, Table 4.2).

Every silo is scored on held-out digits of its own classes. Beside AdaPeD and federated averaging stands what
silos learn alone, without which a private gain cannot be told from what no message was needed for.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data import load
from tacit.errors import PrivacyWarning
from tacit.experiments.report import Report, number, yes
from tacit.learning import AdaPeD, FeatureMap, FedAvg, LinearObjective, Multinomial, Records, Settings
from tacit.learning.personal.party_rounds import DescentFacts, descend
from tacit.learning.training import Trained, silos_for, train
from tacit.literature import adaped_rdp_printed
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel, Unit, renyi_to_epsilon
from tacit.randomness import simulated

__all__ = ["World", "compute", "label_skewed", "run", "statements"]

CLASSES, STEP, DELTA, TAU = 3, 10.0, 1e-4, 10
EPSILONS = (3.35, 13.16, 27.3)
_CLIP = 0.02
_ORDERS = np.concatenate([np.linspace(1.01, 2, 100), np.linspace(2.1, 300, 600)])


@dataclass(frozen=True)
class World:
    """Silos with the records that each trains on, and is scored on.

    Attributes:
        objective: Of a record.
        parties: Training records of each silo.
        held: Held-out records of each.
    """

    objective: LinearObjective
    parties: Sequence[Records]
    held: Sequence[Records]

    def accuracy(self, models: Sequence[Array]) -> float:
        """Return the mean over silos of how often a silo's model is right on its held-out records."""
        pairs = zip(models, self.held, strict=True)
        right = [self.objective.predictions(w, one.X).argmax(axis=1) == one.y for w, one in pairs]
        return float(np.mean([one.mean() for one in right]))


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the table; `quick` takes 2,000 digits, 6 rounds and one seed in place of 8,000, 20 and 3."""
    digits = load("mnist")
    train_half, test_half = np.asarray(digits.train), np.asarray(digits.test)
    small = digits.X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(digits.X), -1)
    rows = FeatureMap(lower=np.zeros(196), upper=np.ones(196))
    count, rounds, seeds = (2000, 6, 1) if quick else (8000, 20, 3)

    def world(seed: int) -> World:
        rng = simulated(seed, "personal-models")
        halves = [rng.permutation(half)[:n] for half, n in ((train_half, count), (test_half, 2000))]
        return label_skewed(*(Records.of(rows(small[i]), digits.y[i].astype(float)) for i in halves), rng=rng)

    worlds = [world(seed) for seed in range(seeds)]
    return compute(worlds, rounds=rounds, epsilons=EPSILONS[::2] if quick else EPSILONS, progress=progress)


def label_skewed(
    known: Records, held: Records, *, silos: int = 50, classes: int = 10, rng: np.random.Generator
) -> World:
    """Return silos with the digits of three random classes each, every digit in one silo at most.

    Args:
        known: To train on, labels 0 to classes - 1.
        held: The same of other records.
        silos: How many.
        classes: How many labels there are.
        rng: Of who has which class and record.
    """
    own = [rng.choice(classes, CLASSES, replace=False) for _ in range(silos)]
    dealt: list[list[Array]] = [[] for _ in own]
    for label in range(classes):
        having = [k for k, some in enumerate(own) if label in some]
        if not having:
            continue
        index = rng.permutation(np.flatnonzero(known.y == label))
        for k, part in zip(having, np.array_split(index, len(having)), strict=True):
            dealt[k].append(part)
    return World(
        objective=LinearObjective(
            loss=Multinomial(), features=known.X.shape[1], outputs=classes, feature_norm=1.0
        ),
        parties=[known.take(np.concatenate(parts)) for parts in dealt],
        held=[held.take(np.flatnonzero(np.isin(held.y, some))) for some in own],
    )


def compute(
    worlds: Sequence[World],
    *,
    rounds: int,
    epsilons: Sequence[float],
    progress: Callable[[int, int], Any],
) -> Report:
    """Measure every line on every deal of the records.

    Args:
        worlds: Deals.
        rounds: In which parties are asked, every time for ten steps.
        epsilons: Budgets of a whole party, under aggregate trust.
        progress: Called with (done, total).
    """
    methods: Mapping[str, AdaPeD | FedAvg] = {
        "AdaPeD": AdaPeD(rounds=rounds, local_steps=TAU, step_size=STEP, model_step=STEP, psi=2.0),
        "FedAvg": FedAvg(rounds=rounds, local_steps=TAU, step_size=STEP),
    }
    facts = DescentFacts(steps=rounds * TAU, step_size=STEP)
    alone, first = [], worlds[0]
    for one in worlds:
        start = np.zeros(one.objective.size)
        alone.append(one.accuracy([descend(one.objective, own, start, facts) for own in one.parties]))
    rows, cases = [_row("alone", math.inf, alone, alone, None)], [math.inf, *epsilons]
    for done, (epsilon, name) in enumerate((e, name) for e in cases for name in methods):
        progress(done, len(cases) * len(methods))
        runs = [_trained(one, methods[name], epsilon, seed) for seed, one in enumerate(worlds)]
        scores = [
            one.accuracy(found.personal or [found.w] * len(one.parties))
            for one, found in zip(worlds, runs, strict=True)
        ]
        printed = _printed(runs[0].noise_multiplier, rounds, len(first.parties))
        rows.append(_row(name, epsilon, scores, alone, printed if name == "AdaPeD" else None))
    progress(len(cases) * len(methods), len(cases) * len(methods))
    return Report(
        rows=rows,
        x="epsilon",
        y="accuracy",
        error="standard error",
        line="line",
        notes=(
            f"{len(first.parties)} silos of {CLASSES} classes, {sum(map(len, first.parties)):,} digits of "
            f"14 x 14 pixels, a multinomial model, {rounds} rounds of {TAU} steps; {len(worlds)} deals. The "
            "paper has a network, and names neither delta nor clips.",
            f"Epsilon is of replacing a whole silo, delta = {DELTA:g}, in sums of all silos (aggregate "
            "trust). `printed epsilon` is what Theorem 4.5.1 says of the same noise, and is not proven.",
            *statements(rows),
        ),
    )


def statements(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield what is stated of personal models, and whether it holds.

    Args:
        rows: With the keys line, epsilon, accuracy, gain and error of gain.
    """
    found = {(str(row["line"]), number(row["epsilon"])): row for row in rows}
    accuracy = {at: number(row["accuracy"]) for at, row in found.items()}
    bare, alone = accuracy["AdaPeD", math.inf], accuracy["alone", math.inf]
    yield f"Without privacy, AdaPeD is above silos alone: {yes(bare > alone)}, {bare:.4f} for {alone:.4f}."
    average = accuracy["FedAvg", math.inf]
    yield f"Without privacy, AdaPeD is above FedAvg: {yes(bare > average)}, {bare:.4f} for {average:.4f}."
    for epsilon in sorted({e for _, e in found if math.isfinite(e)}):
        mine, average = accuracy["AdaPeD", epsilon], accuracy["FedAvg", epsilon]
        said = f"{yes(mine > average)}, {mine:.4f} for {average:.4f}"
        yield f"Epsilon {epsilon:g}: AdaPeD is above FedAvg: {said}."
        yield (
            f"Epsilon {epsilon:g}: AdaPeD is above silos alone, which send nothing: {yes(mine > alone)}, by "
            f"{100 * number(found['AdaPeD', epsilon]['gain']):+.2f} points."
        )


def _trained(world: World, method: AdaPeD | FedAvg, epsilon: float, seed: int) -> Trained:
    """Return a run, without privacy where epsilon is infinite."""
    private = math.isfinite(epsilon)
    settings = Settings(
        objective=world.objective,
        algorithm=method,
        unit=Unit.PARTY,
        trust=TrustModel.AGGREGATE if private else None,
        budget=PrivacyBudget(epsilon, DELTA) if private else None,
        # Of an update, which has tau steps in it, FedAvg's clip is the larger.
        clip=(_CLIP if isinstance(method, AdaPeD) else 1.0) if private else 1e6,
    )
    names = [str(k) for k in range(len(world.parties))]
    return train(silos_for(settings, world.parties, names=names, seed=seed), settings)


def _printed(multiplier: float, rounds: int, silos: int) -> float:
    """Return the printed epsilon of noise with that multiplier under replacement; infinite without any."""
    if multiplier == 0:
        return math.inf
    # 1 / z^2 = 4 tau (C1^2 / sigma1^2 + C2^2 / sigma2^2) / K: all of it is put on C1.
    ratio = math.sqrt(silos / (4 * TAU)) / multiplier
    noise: dict[str, Any] = {"clip": ratio, "std": 1.0, "psi_clip": 1e-9, "psi_std": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # it is for this column
        slope = (
            adaped_rdp_printed(2.0, steps=rounds * TAU, local_steps=TAU, parties=silos, of=silos, **noise) / 2
        )
    return renyi_to_epsilon(_ORDERS, slope * _ORDERS, DELTA).epsilon


def _row(
    line: str, epsilon: float, scores: Sequence[float], alone: Sequence[float], printed: float | None
) -> dict[str, object]:
    """Return one row; errors are over deals, of which every line has the same."""
    gains = np.array(scores) - np.array(alone)
    several = len(scores) > 1
    return {
        "line": line,
        "epsilon": epsilon,
        "accuracy": float(np.mean(scores)),
        "standard error": float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if several else None,
        "gain": float(gains.mean()),
        "printed epsilon": printed,
    }
