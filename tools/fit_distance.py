"""The two tables of docs/tutorials/first-run.md that the distance of 150 rests on.

    python tools/fit_distance.py [NAME ...]

How long the parameters of accelerated steps without privacy are after 320 and 1,280 rounds; and what other
distances score on a held-out fifth, with ten equal silos under local trust at epsilon 2, over four seeds.
"""

from __future__ import annotations

import argparse

import numpy as np

from tacit.data import Dataset, load
from tacit.learning import AcceleratedNoisyMinibatchSGD, Records, Settings
from tacit.learning.task import LinearTask
from tacit.learning.training import silos_for, train
from tacit.privacy import PrivacyBudget, TrustModel

NAMES = ("digits-odd-even", "breast-cancer", "mnist-odd-even", "adult", "german")
ROUNDS, DISTANCES, SILOS, SEEDS = (320, 1280), (10.0, 50.0, 150.0, 450.0), 10, 4


def fitted(
    data: Dataset, *, seed: int, distance: float, rounds: int | None = None, private: bool
) -> tuple[float, float]:
    """Train on four fifths, dealt by the seed; return how long parameters are, and the accuracy elsewhere."""
    d, (low, high) = data.X.shape[1], (0.0, 1.0) if data.columns is None else (-1.0, 1.0)
    task = LinearTask.of(np.full(d, low), np.full(d, high), classes=np.arange(len(data.classes)))
    train_on, test_on = np.split(np.random.default_rng(seed).permutation(data.n), [data.n * 4 // 5])
    labels = np.asarray(data.y, dtype=np.float64)
    rows = task.features(data.X)
    parts = np.array_split(train_on, SILOS)
    settings = Settings(
        objective=task.objective,
        algorithm=AcceleratedNoisyMinibatchSGD(rounds=rounds),
        trust=TrustModel.LOCAL if private else None,
        budget=PrivacyBudget(2.0, 1e-5) if private else None,
        clip=AcceleratedNoisyMinibatchSGD.clip_share * task.objective.lipschitz if private else None,
        diameter=distance,
    )
    silos = [Records.of(rows[part], labels[part]) for part in parts]
    w = train(silos_for(settings, silos, names=[str(k) for k in range(SILOS)], seed=seed), settings).w
    return float(np.linalg.norm(w)), float(np.mean((rows[test_on] @ w > 0) == (labels[test_on] > 0)))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    names = parser.parse_args().names
    print("| data set | records | norm after 320 rounds | after 1,280 | accuracy after 320 | after 1,280 |")
    print("|---" * 6 + "|")
    for name in names:
        data = load(name)
        found = [fitted(data, seed=0, distance=150.0, rounds=rounds, private=False) for rounds in ROUNDS]
        norms, scores = zip(*found, strict=True)
        cells = [f"{norm:.0f}" for norm in norms] + [f"{score:.2f}" for score in scores]
        print(f"| {name} | {data.n:,} | {' | '.join(cells)} |", flush=True)
    print("\n| data set |", " | ".join(f"{distance:g}" for distance in DISTANCES), "|")
    print("|---" * (1 + len(DISTANCES)) + "|")
    for name in names:
        data, cells = load(name), []
        for distance in DISTANCES:
            scores = [fitted(data, seed=seed, distance=distance, private=True)[1] for seed in range(SEEDS)]
            error = np.std(scores, ddof=1) / np.sqrt(SEEDS)
            cells.append(f"{np.mean(scores):.3f} ± {error:.3f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
