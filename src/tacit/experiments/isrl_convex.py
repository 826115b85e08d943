"""What the two convex experiments of Lowy (2023), Appendices B.1.10.2 and B.1.10.3, have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import msgspec
import numpy as np

from tacit.experiments.isrl_compare import SiloSplit, SiloTask, TunedMethod
from tacit.experiments.report import Report
from tacit.federation import Fixed
from tacit.learning import NoisyLocalSGD, NoisyMinibatchSGD, Records
from tacit.literature.silo_learning import experiment_batch, experiment_noise_std, local_noise_std
from tacit.numerics import Array
from tacit.privacy import Event, Gaussian, PrivacyBudget, Repeat, Sampled, calibrate, guarantee

__all__ = ["HELD", "ROUNDS", "noise_report", "silo_methods", "splits"]

ROUNDS = 35
HELD = 0.2  # of every silo
_LAST = 8 / ROUNDS  # the published code measures the average of the last 8 points


def silo_methods(
    n: int,
    *,
    most_epsilon: float,
    steps: Sequence[float],
    local_steps: Sequence[float],
    clips: tuple[float | None, ...] = (None,),
) -> tuple[TunedMethod, TunedMethod]:
    """Return minibatch and local SGD, as the paper has them but for the size of batches.

    Local SGD takes K = n sqrt(eps) / (2 sqrt(R)) steps of one record in a round, at the largest budget.
    Minibatch SGD takes full batches, which need least noise for a number of rounds.

    Args:
        n: Records of a silo before some are held out, as the paper counts them for K.
        most_epsilon: The largest budget.
        steps: Grid of minibatch SGD.
        local_steps: Grid of local SGD.
        clips: Clipping bounds of both.
    """
    taken = experiment_batch(n, most_epsilon, rounds=ROUNDS)
    plain = NoisyMinibatchSGD(rounds=ROUNDS, average=_LAST)
    local = NoisyLocalSGD(rounds=ROUNDS, local_steps=taken, batch=Fixed(size=1))
    return (
        TunedMethod("minibatch", lambda x: msgspec.structs.replace(plain, step_size=x), tuple(steps), clips),
        TunedMethod(
            "local", lambda x: msgspec.structs.replace(local, step_size=x), tuple(local_steps), clips
        ),
    )


def splits(
    X: Array, y: Array, halves: Callable[[int], tuple[Sequence[Array], Sequence[Array]]]
) -> Callable[[int], SiloSplit]:
    """Return the split of a trial, each made once.

    Args:
        X: Features, without the constant one, which is added.
        y: Targets, as numbers.
        halves: Training and held-out records of every silo, by the number of the trial.
    """
    rows = np.column_stack([X, np.ones(len(X))])

    @cache
    def split(trial: int) -> SiloSplit:
        training, held = halves(trial)
        everyone = np.concatenate(held)
        return SiloSplit(
            [Records.of(rows[part], y[part]) for part in training], Records.of(rows[everyone], y[everyone])
        )

    return split


def noise_report(sizes: Sequence[tuple[str, SiloTask, int]], epsilons: Sequence[float]) -> Report:
    """Return the noise of both methods, as it is calibrated here and by the formulas of the paper.

    Noise is per sensitivity: the standard deviation over twice the clipping bound, of a sum.

    Args:
        sizes: Name of a panel, its task, and K of local SGD.
        epsilons: Budgets.
    """
    rows = [row for name, task, taken in sizes for row in _noise_rows(name, task.size, taken, epsilons)]
    return Report(
        rows=rows,
        x="epsilon",
        y="what the printed noise costs",
        error=None,
        line="method",
        panel="silos",
        log_y=True,
        title="Noise by numerical accounting, and by the formulas of the paper",
    )


def _noise_rows(name: str, n: int, taken: int, epsilons: Sequence[float]) -> Iterator[dict[str, object]]:
    """Yield the rows of one size of silos."""
    for epsilon in epsilons:
        budget = PrivacyBudget(epsilon, 1 / n**2)
        # A mean of n records moves by 2 L / n, a step of one record by 2 L.
        printed = {
            "minibatch": experiment_noise_std(n, budget, rounds=ROUNDS) * n / 2,
            "local": local_noise_std(n, budget, rounds=ROUNDS, local_steps=taken) / 2,
        }
        for method, noise in printed.items():
            runs = _events(method, n, taken)
            yield {
                "silos": name,
                "method": method,
                "epsilon": epsilon,
                "noise here": calibrate(runs, budget),
                "printed noise": noise,
                "what the printed noise costs": guarantee(
                    runs(noise), budget.delta, observer="everybody"
                ).epsilon,
            }


def _events(method: str, n: int, taken: int) -> Callable[[float], Event]:
    """Return what a whole run costs at a noise per sensitivity."""
    if method == "minibatch":
        return lambda z: Repeat(Gaussian(z), ROUNDS)
    return lambda z: Repeat(Sampled(Gaussian(z), rate=1 / n), ROUNDS * taken)
