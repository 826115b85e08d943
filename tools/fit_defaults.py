"""Scores of algorithms on the data sets that the constants of `tacit.learning.defaults` were chosen on.

    python tools/fit_defaults.py [--seeds 3] [--public 200] [--most 600] [NAME ...]

Not MNIST, not Adult, not breast-cancer: these are what the rule is measured on. A row is a data set, a
relation and a budget, with the signal n / (k z sqrt(d)) that the rule goes by; a column is an algorithm.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_iris, load_wine

from tacit.data import Dataset, load
from tacit.learning import (
    Algorithm,
    FederatedLogisticRegression,
    NoisyMinibatchSGD,
    PreconditionedNoisyGD,
    WhitenedNoisyGD,
    make_algorithm,
)
from tacit.learning.defaults import AUTO, signal
from tacit.learning.model import FeatureMap
from tacit.learning.task import LinearTask
from tacit.privacy import PrivacyBudget, Relation, TrustModel

FITTED = (
    *("parkinsons", "compas", "german", "credit-default", "communities", "obesity"),
    *("digits-odd-even", "digits", "wine", "iris"),
)
CELLS = [(Relation(k), e) for k in ("replace-one", "zero-out") for e in (0.5, 1.0, 3.0)]
TRIED: dict[str, str | Algorithm] = {
    "rule": AUTO,
    "accelerated": make_algorithm("accelerated"),
    "preconditioned": PreconditionedNoisyGD(),
    "40 steps of 150": NoisyMinibatchSGD(rounds=40, step_size=150.0),
    "100 steps of 75": NoisyMinibatchSGD(rounds=100, step_size=75.0),
    "whitened": WhitenedNoisyGD(),
    "share .1": WhitenedNoisyGD(share=0.1),
    "share .4": WhitenedNoisyGD(share=0.4),
    "ridge .1": WhitenedNoisyGD(ridge=0.1),
    "ridge .5": WhitenedNoisyGD(ridge=0.5),
    "distance 10": WhitenedNoisyGD(distance=10.0),
    "distance 40": WhitenedNoisyGD(distance=40.0),
    "51 rounds": WhitenedNoisyGD(rounds=51),
    "201 rounds": WhitenedNoisyGD(rounds=201),
}
CEILINGS = {
    "wine": [20, 10, 5, 50, 200, 5, 6, 1, 5, 20, 2, 5, 2000],
    "iris": [8, 5, 7, 3],
}
"""Round bounds of what comes with scikit-learn and has no description here."""


def table(name: str, most: int) -> Dataset:
    """Return that many records of a data set of the library, or of a small one of scikit-learn."""
    if name not in CEILINGS:
        found = load(name)
        return found.subset(np.random.default_rng(0).permutation(found.n)[:most])
    bunch = {"wine": load_wine, "iris": load_iris}[name]()
    names = tuple(map(str, bunch.feature_names))
    return Dataset(
        name=name,
        X=2 * bunch.data / np.array(CEILINGS[name]) - 1,
        y=bunch.target,
        feature_names=names,
        feature_columns=names,
        classes=tuple(map(str, bunch.target_names)),
    )


def score(
    digits: Dataset,
    tried: str | Algorithm,
    relation: Relation,
    epsilon: float,
    seed: int,
    *,
    public: int = 0,
) -> float:
    """Train on four fifths, dealt by the seed, less a public sample; return the accuracy on the others."""
    order = np.random.default_rng(seed).permutation(digits.n)
    sample, train, test = np.split(order, [public, digits.n * 4 // 5])
    model = FederatedLogisticRegression(
        algorithm=tried,
        trust="central",
        neighbours=relation.value,
        budget=PrivacyBudget(epsilon, 1e-5),
        bounds=(0, 1) if digits.name.startswith("digits") else (-1, 1),
        public=digits.X[sample] if public else None,
        classes=range(len(digits.classes)),
        random_state=seed,
    ).fit(digits.X[train], digits.y[train])
    return float(model.score(digits.X[test], digits.y[test]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=FITTED)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--public", type=int, default=0, help="records that are taken out as a public sample")
    parser.add_argument("--most", type=int, default=10**9, help="records that are used of a data set")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | relation | epsilon | signal |", " | ".join(TRIED), "|")
    print("|---" * (4 + len(TRIED)) + "|")
    for name in asked.names:
        data = table(name, asked.most)
        d = data.X.shape[1]
        features = FeatureMap(lower=np.zeros(d), upper=np.ones(d))
        goal = LinearTask(features=features, classes=np.arange(len(data.classes))).objective
        for relation, epsilon in CELLS:
            clear = signal(
                goal,
                trust=TrustModel.CENTRAL,
                budget=PrivacyBudget(epsilon, 1e-5),
                relation=relation,
                sizes=[data.n * 4 // 5 - asked.public],
            )
            means = [
                np.mean(
                    [
                        score(data, tried, relation, epsilon, seed, public=asked.public)
                        for seed in range(asked.seeds)
                    ]
                )
                for tried in TRIED.values()
            ]
            cells = " | ".join(f"{100 * mean:.1f}" for mean in means)
            print(f"| {name} | {relation.value} | {epsilon:g} | {clear:.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
