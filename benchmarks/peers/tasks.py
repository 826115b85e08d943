"""What is compared: tasks with their data, and prices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import Dataset, load
from tacit.errors import TacitError
from tacit.numerics import Array

DELTA = 1e-5
ADD_REMOVE, REPLACE_ONE = "add-remove", "replace-one"


@dataclass(frozen=True)
class Task:
    """One question that libraries answer.

    Attributes:
        name: As in `--only`.
        kind: The function of a library's file that answers it.
        title: What people read.
        asked: The arguments of each question: budgets, or releases.
        data: Writes the arrays of a seed; none for prices.
        given: What every question of the task has besides.
        quick: Whether `--quick` asks it without being told to.
    """

    name: str
    kind: str
    title: str
    asked: tuple[dict[str, Any], ...]
    data: Callable[[int, bool], dict[str, Array]] | None = None
    given: dict[str, Any] = field(default_factory=dict)
    quick: bool = True

    def write(self, folder: Path, seeds: int, quick: bool) -> list[str]:
        """Write the data of every seed, and return where they lie."""
        if self.data is None:
            return []
        paths = [folder / f"{self.name.replace('/', '-')}-{seed}.npz" for seed in range(seeds)]
        for seed, path in enumerate(paths):
            np.savez(path, allow_pickle=False, **self.data(seed, quick))
        return [str(path) for path in paths]


def _budgets(*levels: float, delta: float = DELTA) -> tuple[dict[str, Any], ...]:
    return tuple({"epsilon": level, "delta": delta} for level in levels)


def _bounds(data: Dataset) -> tuple[Array, Array]:
    """Return the public bounds of features: pixels in [0, 1], columns of tables in [-1, 1]."""
    lower = 0.0 if data.columns is None else -1.0
    return np.full(data.dim, lower), np.ones(data.dim)


def _classified(name: str) -> Callable[[int, bool], dict[str, Array]]:
    """Return what makes the halves of a data set: its own, or four fifths against one by the seed."""

    def write(seed: int, quick: bool) -> dict[str, Array]:
        data = load(name, download=False)
        if data.train is not None and data.test is not None:
            train, test = data.train, data.test
        else:
            order = np.random.default_rng(seed).permutation(data.n)
            train, test = order[data.n // 5 :], order[: data.n // 5]
        if quick:
            train, test = train[:2000], test[:1000]
        lower, upper = _bounds(data)
        classes = np.arange(len(data.classes))
        X, y = data.X, data.y
        return {
            "X": X[train], "y": y[train], "X_test": X[test], "y_test": y[test],
            "lower": lower, "upper": upper, "classes": classes,
        }  # fmt: skip

    return write


def _images(_seed: int, quick: bool) -> dict[str, Array]:
    """Return all training images: their mean is asked for."""
    data = load("mnist", download=False)
    X = data.X[data.train][: 2000 if quick else None]
    return {"X": X, "lower": np.zeros(data.dim), "upper": np.ones(data.dim)}


def _ages(_seed: int, quick: bool) -> dict[str, Array]:
    """Return one column in years, from the encoding in [-1, 1] of public bounds."""
    data = load("adult", download=False)
    scaled = data.X[data.train][:, [data.feature_names.index("age")]]
    return {
        "X": 50.0 + 50.0 * scaled[: 2000 if quick else None],
        "lower": np.zeros(1),
        "upper": np.full(1, 100.0),
    }


def _clients(seed: int, quick: bool) -> dict[str, Array]:
    """Return numbers in [0, 1), the small ones more often: of k values, floor(k u) is a client's."""
    return {"places": np.random.default_rng(seed).random(2000 if quick else 100_000) ** 4}


def _classify(name: str, title: str, *, quick: bool = False) -> Task:
    return Task(
        f"classify/{name}", "classify", title, _budgets(0.5, 1.0, 3.0), _classified(name), quick=quick
    )


TASKS: tuple[Task, ...] = (
    _classify("breast-cancer", "two classes, breast cancer (455 records, 30 columns)", quick=True),
    _classify("adult", "two classes, Adult (32,561 records, 59 encoded columns)"),
    _classify("mnist-odd-even", "two classes, odd or even MNIST digits (8,000 images of 784 pixels)"),
    _classify("digits", "ten classes, small digits (1,438 images of 64 pixels)"),
    _classify("mnist", "ten classes, MNIST digits (8,000 images of 784 pixels)", quick=True),
    Task(
        "speed/mnist", "speed", "speed of training on ten classes, 40 epochs of 8,000 MNIST images",
        (
            {"rate": 1.0, "rounds": 40, "epsilon": 1.0, "delta": DELTA},
            {"rate": 0.1, "rounds": 400, "epsilon": 1.0, "delta": DELTA},
        ),
        _classified("mnist"), quick=False,
    ),
    Task(
        "mean/age", "mean", "the mean of one column: age in Adult, in years within [0, 100]",
        _budgets(0.1, 1.0, delta=0.0), _ages, {"draws": 200},
    ),
    Task(
        "mean/image", "mean", "the mean of 8,000 MNIST images, 784 pixels",
        _budgets(0.5, 1.0), _images, {"draws": 4},
    ),
    *(
        Task(
            f"frequencies/{name}", "frequencies", f"frequencies of values by {title}",
            (
                {"k": 100, "n": 100_000, "epsilon": 1.0, "delta": 0.0},
                {"k": 1000, "n": 10_000, "epsilon": 1.0, "delta": 0.0},
            ),
            _clients, {"mechanism": name},
        )
        for name, title in (
            ("krr", "k-ary randomized response"),
            ("oue", "optimised unary encoding"),
            ("rappor", "symmetric unary encoding"),
            ("ss", "subset selection"),
            ("hr", "Hadamard response"),
            ("short", "messages of at most 65 bits (peers: optimal local hashing)"),
        )
    ),
    Task(
        "price/gaussian", "price_gaussian", "Gaussian noise of 50 sensitivities, 1,000 times",
        ({"sigma": 50.0, "times": 1000, "delta": DELTA},),
    ),
    Task(
        "price/sampled", "price_sampled", "Gaussian noise on Poisson samples",
        (
            {"sigma": 1.0, "rate": 0.01, "times": 1000, "delta": DELTA},
            {"sigma": 1.0, "rate": 0.01, "times": 10_000, "delta": DELTA},
            {"sigma": 0.6, "rate": 0.001, "times": 10_000, "delta": DELTA},
        ),
    ),
    Task(
        "price/shuffled", "price_shuffled", "one shuffled batch of randomized response on 16 values",
        (
            {"local_epsilon": 1.0, "parties": 10_000, "delta": 1e-6},
            {"local_epsilon": 4.0, "parties": 1_000_000, "delta": 1e-6},
        ),
    ),
)  # fmt: skip


def available(tasks: tuple[Task, ...]) -> Iterator[tuple[Task, str]]:
    """Yield tasks with the reason why one cannot be asked here; "" where it can."""
    for task in tasks:
        try:
            if task.data is not None:
                task.data(0, True)
        except TacitError as error:
            yield task, f"its data are not here: {str(error).splitlines()[0]}"
        else:
            yield task, ""
