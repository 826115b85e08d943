"""Personal models of digits on silos that have few classes each (Girgis 2023, Table 4.2).

Every silo is scored on held-out digits of its own classes. Beside AdaPeD and federated averaging stands what
silos learn alone, without which a private gain cannot be told from what no message was needed for. What there
is to gain goes by how little a silo has, so that its records and classes are varied.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.data import load
from tacit.errors import PrivacyWarning
from tacit.experiments.report import Report, number, yes
from tacit.learning import (
    AdaPeD,
    FeatureMap,
    FedAvg,
    LinearObjective,
    Multinomial,
    NetworkObjective,
    PersonalizedMAP,
    Records,
    Settings,
)
from tacit.learning.personal.party_rounds import DescentFacts, descend
from tacit.learning.training import Trained, silos_for, train
from tacit.literature import adaped_rdp_printed
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel, Unit, renyi_to_epsilon
from tacit.randomness import simulated

__all__ = ["Deal", "World", "compute", "label_skewed", "run", "statements"]

STEP, DELTA, TAU = 10.0, 1e-4, 10
"""Step of all methods, delta, and steps of a round."""

_VARIANCE, _SMOOTHNESS = 3.0, 0.1
"""Of the Gaussian law of personal parameters, and of a digit's loss."""

_NETWORK_STEPS = {"AdaPeD": 0.3, "FedAvg": 1.0}
_CLIP = 0.02
_ORDERS = np.concatenate([np.linspace(1.01, 2, 100), np.linspace(2.1, 300, 600)])
_BY_STEPS = "FedAvg, then alone"
_BY_LAW = "MAP, Gaussian law"


@dataclass(frozen=True)
class World:
    """Silos with the records that each trains on, and is scored on.

    Attributes:
        objective: Of a record.
        parties: Training records of each silo.
        held: Held-out records of each.
    """

    objective: LinearObjective | NetworkObjective
    parties: Sequence[Records]
    held: Sequence[Records]

    @property
    def start(self) -> Array:
        """Zero, or public weights of a network."""
        if isinstance(self.objective, NetworkObjective):
            return self.objective.start()
        return np.zeros(self.objective.size)

    def step(self, method: str) -> float:
        """Return the step of a method."""
        return _NETWORK_STEPS[method] if isinstance(self.objective, NetworkObjective) else STEP

    def accuracy(self, models: Sequence[Array]) -> float:
        """Return the mean over silos of how often a silo's model is right on its held-out records."""
        pairs = zip(models, self.held, strict=True)
        right = [self.objective.predictions(w, one.X).argmax(axis=1) == one.y for w, one in pairs]
        return float(np.mean([one.mean() for one in right]))


@dataclass(frozen=True, kw_only=True)
class Deal:
    """How digits are dealt to silos.

    Attributes:
        classes: Of each silo, drawn for it.
        each: Digits of a silo to train on, in the mean.
        silos: How many.
        seeds: Of deals, each of which is a world.
        epsilons: Budgets beside none.
        hidden: Units of a network; None is a multinomial model.
    """

    classes: int
    each: int
    hidden: int | None = None
    silos: int = 50
    seeds: int = 3
    epsilons: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """What the table calls it."""
        network = "" if self.hidden is None else f", {self.hidden} hidden units"
        return f"{self.classes} classes, {self.each} digits{network}"

    def worlds(self) -> Iterator[World]:
        """Yield every deal, of images of 14 x 14."""
        digits = load("mnist")
        small = digits.X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(digits.X), -1)
        rows = FeatureMap(lower=np.zeros(196), upper=np.ones(196))
        for seed in range(self.seeds):
            rng = simulated(seed, "personal-models")
            halves = ((digits.train, self.silos * self.each), (digits.test, 2000))
            known, held = (
                Records.of(rows(small[i]), digits.y[i].astype(float))
                for i in (rng.permutation(np.asarray(half))[:count] for half, count in halves)
            )
            world = label_skewed(known, held, silos=self.silos, own_classes=self.classes, rng=rng)
            if self.hidden is not None:
                features, outputs = world.objective.features, world.objective.outputs
                network = NetworkObjective(
                    loss=Multinomial(), features=features, hidden=self.hidden, outputs=outputs
                )
                world = replace(world, objective=network)
            yield world


_QUICK = Deal(classes=3, each=20, silos=25, seeds=2, epsilons=(3.35, 27.3))
_FULL = (
    Deal(classes=3, each=20, seeds=5, epsilons=(3.35, 13.16, 27.3)),
    Deal(classes=3, each=160, seeds=2),
    Deal(classes=2, each=20),
    Deal(classes=5, each=20),
    Deal(classes=3, each=20, hidden=32),
)


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the table; `quick` takes half of the silos and rounds, two seeds and one kind of deal."""
    rounds, first, others = (10, _QUICK, []) if quick else (20, _FULL[0], list(_FULL[1:]))
    rows: list[dict[str, object]] = []
    for done, deal in enumerate((first, *others)):
        progress(done, 1 + len(others))
        rows += compute(deal.name, list(deal.worlds()), rounds=rounds, epsilons=deal.epsilons)
    progress(1 + len(others), 1 + len(others))
    mine, rest = ([row for row in rows if (row["deal"] == first.name) is own] for own in (True, False))
    facts: dict[str, Any] = {"y": "accuracy", "error": "standard error", "line": "line"}
    title = "Accuracy without privacy, by what a silo has"
    more = Report(rows=rest, x="deal", log_x=False, title=title, **facts) if others else None
    return Report(
        rows=mine,
        x="epsilon",
        **facts,
        notes=(
            f"{first.silos} silos, digits of 14 x 14 pixels, a multinomial model, {rounds} rounds of {TAU} "
            f"steps of {STEP:g}; {first.seeds} deals. Steps, psi and the Gaussian law were tried on two "
            "other deals. The paper has a network, and names neither delta nor clips.",
            f"Epsilon is of replacing a whole silo, delta = {DELTA:g}, in sums of all silos (aggregate "
            "trust). `printed epsilon` is what Theorem 4.5.1 says of the same noise, and is not proven.",
            *statements(rows),
        ),
        more={} if more is None else {"deals": more},
    )


def label_skewed(
    known: Records,
    held: Records,
    *,
    silos: int,
    own_classes: int,
    classes: int = 10,
    rng: np.random.Generator,
) -> World:
    """Return silos with the records of a few random classes each, every record in one silo at most.

    Args:
        known: To train on, labels 0 to classes - 1.
        held: The same of other records.
        silos: How many.
        own_classes: Labels of a silo.
        classes: How many labels there are.
        rng: Of who has which class and record.
    """
    own = [rng.choice(classes, own_classes, replace=False) for _ in range(silos)]
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
    deal: str, worlds: Sequence[World], *, rounds: int, epsilons: Sequence[float]
) -> Iterator[dict[str, object]]:
    """Yield a row for every method and budget, the means over deals.

    Args:
        deal: What the table calls them.
        worlds: Deals.
        rounds: In which parties are asked, every time for ten steps.
        epsilons: Budgets of a whole party, under aggregate trust, beside none.
    """
    step = worlds[0].step
    methods: Mapping[str, AdaPeD | FedAvg] = {
        "AdaPeD": AdaPeD(rounds=rounds, local_steps=TAU, step_size=step("AdaPeD"), psi=0.5),
        "FedAvg": FedAvg(rounds=rounds, local_steps=TAU, step_size=step("FedAvg")),
    }
    alone = [one.accuracy(_alone(one, one.start, rounds * TAU)) for one in worlds]
    yield _row(deal, "alone", None, alone, alone, None)
    if isinstance(worlds[0].objective, LinearObjective):
        law = PersonalizedMAP(
            rounds=rounds, local_steps=TAU, spread=_VARIANCE, floor=_VARIANCE, smoothness=_SMOOTHNESS
        )
        by_law = [one.accuracy(list(law.run(one.objective, one.parties).models)) for one in worlds]
        yield _row(deal, _BY_LAW, None, by_law, alone, None)
    for epsilon in (None, *epsilons):
        runs = {
            name: [_trained(one, method, epsilon, seed) for seed, one in enumerate(worlds)]
            for name, method in methods.items()
        }
        for name, found in runs.items():
            scores = [
                one.accuracy(ran.personal or [ran.w] * len(one.parties))
                for one, ran in zip(worlds, found, strict=True)
            ]
            priced = epsilon is not None and name == "AdaPeD"
            printed = _printed(found[0].noise_multiplier, rounds, len(worlds[0].parties)) if priced else None
            yield _row(deal, name, epsilon, scores, alone, printed)
        pairs = zip(worlds, runs["FedAvg"], strict=True)
        tuned = [one.accuracy(_alone(one, ran.w, TAU)) for one, ran in pairs]
        yield _row(deal, _BY_STEPS, epsilon, tuned, alone, None)


def statements(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield what is stated of personal models, and whether it holds: by more than two standard errors.

    Args:
        rows: With the keys deal, line, epsilon, accuracy, standard error, gain and error of gain.
    """
    for deal in dict.fromkeys(str(row["deal"]) for row in rows):
        found = {
            (str(row["line"]), None if row["epsilon"] is None else number(row["epsilon"])): row
            for row in rows
            if str(row["deal"]) == deal
        }
        private = sorted({epsilon for _, epsilon in found if epsilon is not None})
        for epsilon in (None, *private):
            at = "without privacy" if epsilon is None else f"epsilon {epsilon:g}"
            mine = found["AdaPeD", epsilon]
            for other in ("FedAvg", _BY_STEPS):
                yield f"{deal}, {at}: AdaPeD is above {other}: {_above(mine, found[other, epsilon])}."
            for line in ("AdaPeD", _BY_STEPS, _BY_LAW):
                if (line, epsilon) in found:
                    gain = number(found[line, epsilon]["gain"])
                    slack = number(found[line, epsilon]["error of gain"])
                    yield (
                        f"{deal}, {at}: {line} is above silos alone, which send nothing: "
                        f"{yes(gain > 2 * slack)}, by {100 * gain:+.1f} +- {100 * slack:.1f} points."
                    )


def _above(high: Mapping[str, object], low: Mapping[str, object]) -> str:
    """Say whether one accuracy is above another by more than two standard errors."""
    a, b = number(high["accuracy"]), number(low["accuracy"])
    slack = math.hypot(number(high["standard error"]), number(low["standard error"]))
    close = " (not by two standard errors)" if 0 < a - b <= 2 * slack else ""
    return f"{yes(a - b > 2 * slack)}, {a:.4f} for {b:.4f}{close}"


def _alone(world: World, w: Array, steps: int) -> list[Array]:
    """Return where steps of every silo by itself lead."""
    facts = DescentFacts(steps=steps, step_size=world.step("FedAvg"))
    return [descend(world.objective, own, w, facts) for own in world.parties]


def _trained(world: World, method: AdaPeD | FedAvg, epsilon: float | None, seed: int) -> Trained:
    """Return a run, without privacy where there is no epsilon."""
    private = epsilon is not None
    settings = Settings(
        objective=world.objective,
        algorithm=method,
        unit=Unit.PARTY,
        trust=TrustModel.AGGREGATE if private else None,
        budget=None if epsilon is None else PrivacyBudget(epsilon, DELTA),
        # Of an update, which has tau steps in it, FedAvg's clip is the larger.
        clip=(_CLIP if isinstance(method, AdaPeD) else 1.0) if private else 1e6,
        start=world.start,
    )
    names = [str(k) for k in range(len(world.parties))]
    return train(silos_for(settings, world.parties, names=names, seed=seed), settings)


def _printed(multiplier: float, rounds: int, silos: int) -> float:
    """Return the printed epsilon of noise with that multiplier under replacement."""
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
    deal: str,
    line: str,
    epsilon: float | None,
    scores: Sequence[float],
    alone: Sequence[float],
    printed: float | None,
) -> dict[str, object]:
    """Return one row; errors are over deals, of which every line has the same."""
    return {
        "deal": deal,
        "line": line,
        "epsilon": epsilon,
        "accuracy": float(np.mean(scores)),
        "standard error": _error(scores),
        "gain": float(np.mean(scores) - np.mean(alone)),
        "error of gain": _error(np.array(scores) - np.array(alone)),
        "printed epsilon": printed,
    }


def _error(values: Sequence[float] | Array) -> float:
    """Return the standard error of a mean of two or more."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))
