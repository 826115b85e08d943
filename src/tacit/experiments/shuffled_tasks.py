"""The five tasks of private shuffled gradients: private records, and public ones of a law of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import special

from tacit.data import data_home, load
from tacit.errors import DataError
from tacit.learning import DistanceObjective, LinearObjective, Logistic, Records, Squared
from tacit.learning.shuffled import ShuffledObjective
from tacit.numerics import L1, Array, L2Ball, Regularizer, SquaredL2, clip_rows
from tacit.randomness import simulated

__all__ = ["ShuffledTask", "shuffled_tasks"]

_CLIP = 10.0
_PENALTY = 0.1
_LOST = 1e100  # where a run with steps that are too long is taken to be
_DIM = 256
"""Of the regression that stands in for CIFAR-10, which has 3072."""


@dataclass(frozen=True, kw_only=True)
class ShuffledTask:
    """What is minimised on private records, and the public records beside them.

    Attributes:
        name: What the table calls it.
        objective: A linear one or a distance.
        private: n records.
        public: As many.
        regularizer: Of both.
        smoothness: L of any record, by the bound that rows are brought to.
        clip: Longest gradient of a private record: 10, or what the loss has by itself where that is less.
        epsilons: A small and a large one.
        note: What the records are.
    """

    name: str
    objective: ShuffledObjective
    private: Records
    public: Records
    regularizer: Regularizer
    smoothness: float
    clip: float
    epsilons: tuple[float, float]
    note: str

    def part(self, n: int) -> ShuffledTask:
        """Return the task of the first n records of each kind."""
        some = np.arange(min(n, len(self.private)))
        return replace(self, private=self.private.take(some), public=self.public.take(some))

    def value(self, w: Array) -> Array:
        """Return the mean loss of private records and the regulariser, at points of shape (..., d)."""
        flat = np.clip(np.nan_to_num(w.reshape(-1, w.shape[-1]), nan=_LOST), -_LOST, _LOST)
        held = self.private
        with np.errstate(all="ignore"):
            if isinstance(self.objective, LinearObjective):
                loss = self.objective.loss.value(flat @ held.X.T, held.y).mean(axis=1)
            else:
                centre = held.X.mean(axis=0)
                spread = float(np.mean(np.sum((held.X - centre) ** 2, axis=1)))
                loss = (np.sum((flat - centre) ** 2, axis=1) + spread) / 2
            penalty = np.array([self.regularizer.value(one) for one in flat])
        return np.asarray(loss + penalty).reshape(w.shape[:-1])

    @cached_property
    def minimum(self) -> float:
        """The smallest value, to about 1e-10."""
        held, prox = self.private, self.regularizer
        n, d = held.X.shape
        if isinstance(prox, L2Ball):
            return float(self.value(prox(1.0, held.X.mean(axis=0))))
        if isinstance(prox, SquaredL2):
            matrix = held.X.T @ held.X / n + prox.strong_convexity * np.eye(d)
            return float(self.value(np.linalg.solve(matrix, held.X.T @ held.y / n)))
        return float(self.value(_accelerated(held, prox)))


def _accelerated(held: Records, prox: Regularizer) -> Array:
    """Minimise a logistic loss and a regulariser by accelerated proximal steps with restarts."""
    n = len(held)
    step = 4 * n / float(np.linalg.norm(held.X, 2)) ** 2
    w = ahead = np.zeros(held.X.shape[1])
    momentum = 1.0
    for _ in range(20_000):
        gradient = held.X.T @ (special.expit(held.X @ ahead) - held.y) / n
        new = prox(step, ahead - step * gradient)
        if float((ahead - new) @ (new - w)) > 0:
            momentum = 1.0
        after = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        moved = float(np.abs(new - w).max())
        ahead = new + (momentum - 1) / after * (new - w)
        w, momentum = new, after
        if moved < 1e-13:
            break
    return w


def shuffled_tasks() -> list[ShuffledTask]:
    """Return the tasks, on made-up records where files are not there.

    Rows of tables are brought to a norm of at most sqrt(d), after scaling by public records alone.
    """
    return [_digits(), _wide(), _crime(), _recidivism(), _credit()]


def _digits() -> ShuffledTask:
    """Mean of images of a six; public ones are of a nine, turned by 180 degrees."""
    name, note = "mean, MNIST", "MNIST digits 6, and 9 turned by 180 degrees, of the images that are there"
    try:
        data = load("mnist", download=False)
        six, nine = (data.X[data.y == digit] for digit in (6, 9))
        n = min(len(six), len(nine), 1000)
        private, public = six[:n], nine[:n, ::-1]
    except DataError:
        note = "made up (ShiftedMean): the files of MNIST are not there"
        rng = simulated(0, "shuffled-gradient/mean")
        centre, away = rng.random(784) / 2, rng.standard_normal(784)
        private, public = (
            np.clip(centre + move + 0.2 * rng.standard_normal((1000, 784)), 0, 1)
            for move in (0.0, 4 * away / np.linalg.norm(away))
        )
    return ShuffledTask(
        name=name,
        objective=DistanceObjective(size=784, lipschitz=math.inf, smoothness=1.0),
        private=Records.of(private, np.zeros(len(private))),
        public=Records.of(public, np.zeros(len(public))),
        regularizer=L2Ball(10.0),
        smoothness=1.0,
        clip=_CLIP,
        epsilons=(5.0, 10.0),
        note=note,
    )


def _ridge(
    name: str, private: tuple[Array, Array], public: tuple[Array, Array], bound: float, note: str
) -> ShuffledTask:
    """Return (p - y)^2 with a penalty: the squared loss of rows and labels that are sqrt(2) times as long."""
    root, d = math.sqrt(2), private[0].shape[1]
    ours, theirs = (Records.of(root * clip_rows(X, bound), root * y) for X, y in (private, public))
    return ShuffledTask(
        name=name,
        objective=LinearObjective(loss=Squared(), features=d, feature_norm=root * bound),
        private=ours,
        public=theirs,
        regularizer=SquaredL2(_PENALTY),
        smoothness=2 * bound**2,
        clip=_CLIP,
        epsilons=(1.0, 5.0),
        note=note,
    )


def _wide() -> ShuffledTask:
    """ShiftedRidge in place of CIFAR-10: a spectrum as of images, another law of public rows and labels."""
    rng, n, bound = simulated(0, "shuffled-gradient/ridge"), 1000, 5.0
    scale = 1 / np.sqrt(np.arange(1.0, _DIM + 1))
    scale *= bound / np.linalg.norm(scale)
    truth, other = (rng.standard_normal(_DIM) * scale / bound for _ in range(2))

    def drawn(weights: Array, move: float) -> tuple[Array, Array]:
        X = clip_rows((rng.standard_normal((n, _DIM)) + move) * scale, bound)
        return X, X @ weights + 0.1 * rng.standard_normal(n)

    note = f"made up (ShiftedRidge, d = {_DIM}) in place of CIFAR-10, which is not at hand"
    return _ridge("ridge, made up", drawn(truth, 0.0), drawn(truth + 0.5 * other, 0.3), bound, note)


def _crime() -> ShuffledTask:
    """Violent crimes per population; public rows are the other half, mixed by a random matrix."""
    rng = simulated(0, "shuffled-gradient/crime")
    try:
        load("communities", download=False)  # looks at the file
        frame = pd.read_csv(data_home() / "communities" / "communities.data", na_values="?")
        frame = frame.drop(columns=["county", "community", "communityname"]).dropna().astype(float)
        frame[["state", "fold"]] /= (56.0, 10.0)  # the largest code of a state, the number of folds
        y, X = frame.pop("ViolentCrimesPerPop").to_numpy(), frame.to_numpy()
        order = rng.permutation(len(X))
        X, y = X[order], y[order]
        note = "Communities and Crime, rows without gaps; public rows times I + N(0, I)"
    except DataError:
        X = rng.random((319, 124))
        y = np.clip(X @ rng.random(124) / 62 + 0.1 * rng.standard_normal(319), 0, 1)
        note = "made up (ShiftedRidge): the file of Communities and Crime is not there"
    half, d = len(X) // 2, X.shape[1]
    mixed = X[half : 2 * half] @ (np.eye(d) + rng.standard_normal((d, d)))
    return _ridge("ridge, Crime", (X[:half], y[:half]), (mixed, y[half : 2 * half]), math.sqrt(d) / 2, note)


def _lasso(name: str, private: tuple[Array, Array], public: tuple[Array, Array], note: str) -> ShuffledTask:
    """Return the logistic loss with an L1 penalty; columns are scaled by means and spreads of public rows."""
    centre, spread = public[0].mean(axis=0), public[0].std(axis=0)
    bound = math.sqrt(private[0].shape[1])

    def scaled(X: Array) -> Array:
        return clip_rows((X - centre) / np.where(spread > 0, spread, 1.0), bound)

    return ShuffledTask(
        name=name,
        objective=LinearObjective(loss=Logistic(), features=private[0].shape[1], feature_norm=bound),
        private=Records.of(scaled(private[0]), private[1].astype(np.float64)),
        public=Records.of(scaled(public[0]), public[1].astype(np.float64)),
        regularizer=L1(_PENALTY),
        smoothness=bound**2 / 4,
        clip=min(_CLIP, bound),
        epsilons=(5.0, 10.0),
        note=note,
    )


def _recidivism() -> ShuffledTask:
    """COMPAS: Caucasian records private, African-American ones public."""
    name = "lasso, COMPAS"
    try:
        data = load("compas", download=False)
        race, twins = data.sensitive["race"], ("c_charge_degree=M", "sex=Female")
        X = data.X[:, [i for i, column in enumerate(data.feature_names) if column not in twins]]
        ours, theirs = (np.flatnonzero(race == group)[:2103] for group in ("Caucasian", "African-American"))
        return _lasso(name, (X[ours], data.y[ours]), (X[theirs], data.y[theirs]), "COMPAS, by race")
    except DataError:
        drawn = _shifted_logistic(2103, 10)
        return _lasso(name, *drawn, "made up (ShiftedLogistic): the file of COMPAS is not there")


def _credit() -> ShuffledTask:
    """Defaults on cards: little education private and balanced, university public and hardly any default."""
    name = "lasso, Credit"
    try:
        load("credit-default", download=False)
        frame = pd.read_csv(data_home() / "credit-default" / "UCI_Credit_Card.csv")
        X = frame[[f"X{i}" for i in range(1, 24) if i not in (2, 3)]].to_numpy(dtype=np.float64)
        y, education = frame["Y"].to_numpy(), frame["X3"].to_numpy()
        low = np.isin(education, (3, 4))
        ours = np.sort(np.concatenate([np.flatnonzero(low & (y == label))[:100] for label in (0, 1)]))
        high = education == 2
        theirs = np.sort(
            np.concatenate([np.flatnonzero(high & (y == 0))[:190], np.flatnonzero(high & (y == 1))[:10]])
        )
        note = (
            "credit card clients by education: 200 balanced private ones, 200 public ones of whom 10 default"
        )
        return _lasso(name, (X[ours], y[ours]), (X[theirs], y[theirs]), note)
    except DataError:
        drawn = _shifted_logistic(200, 21)
        return _lasso(name, *drawn, "made up (ShiftedLogistic): the file of credit card clients is not there")


def _shifted_logistic(n: int, d: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return private and public rows with labels; those of public ones follow other weights."""
    rng = simulated(0, "shuffled-gradient/logistic", n)
    truth, other = rng.standard_normal((2, d))

    def drawn(weights: Array, move: float) -> tuple[Array, Array]:
        X = rng.standard_normal((n, d)) + move
        return X, (rng.random(n) < special.expit(X @ weights)).astype(np.float64)

    return drawn(truth, 0.0), drawn(truth / 2 + other, 0.5)
