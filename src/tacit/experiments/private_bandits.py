"""Regret of private linear bandits against epsilon, by who is trusted (Girgis 2023, Figure 6.2).

Actions and the parameter are uniform on the unit circle, rewards +1 or -1, noise is for a sensitivity of 2.
The thesis shows pictures without numbers, and says neither the law of rewards nor delta nor how often it ran;
the column of the reference holds what an independent computation found for the settings here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.bandits import (
    Amplification,
    BanditPlan,
    LinearEnvironment,
    RadiusMode,
    RewardNoise,
    RewardPrivacy,
    phased_elimination,
    random_circle,
    simulate_bandit,
)
from tacit.experiments.private_bandits_statements import statements
from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.privacy import TrustModel
from tacit.randomness import simulated

__all__ = ["Curve", "compute", "curves", "run"]

DELTA = 1e-6
TRUST_GRID = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CORE_GRID = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
_PANELS = {"6.2a": (10, 10**6), "6.2b": (1000, 10**7)}
"""Actions and rounds."""
_MODES = (RadiusMode.SEED, RadiusMode.SOUND)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A line of a panel.

    Attributes:
        figure: "6.2a" or "6.2b".
        line: Its name.
        mode: How the radius is found.
        trust: Who is trusted; None for no privacy.
        noise: Of which kind.
        method: How the level behind a shuffler is found.
        core: Whether a core set is played.
        phased: Whether this is phased elimination, which has no radius of ours.
    """

    figure: str
    line: str
    mode: RadiusMode
    trust: TrustModel | None = None
    noise: RewardNoise = RewardNoise.LAPLACE
    method: Amplification = Amplification.NUMERIC
    core: bool = True
    phased: bool = False

    @property
    def panel(self) -> str:
        """The panel that it is in."""
        return f"{self.figure}, {self.mode.value}"

    def privacy(self, epsilon: float) -> RewardPrivacy:
        """Return the budget at a place of the horizontal axis."""
        if self.trust is None:
            return RewardPrivacy()
        delta = DELTA if self.trust is TrustModel.SHUFFLE else 0.0
        return RewardPrivacy(
            trust=self.trust, epsilon=epsilon, delta=delta, noise=self.noise, method=self.method
        )

    def regret(self, epsilon: float, instance: int) -> float:
        """Play one instance; instances, rewards and noise are the same for all curves of a figure."""
        n_actions, horizon = _PANELS[self.figure]
        name = f"private-bandits {self.figure}"
        actions, theta = random_circle(n_actions, 2, simulated(0, name, "instance", instance))
        world = LinearEnvironment(actions=actions, theta=theta)
        rewards = simulated(0, name, "rewards", instance)
        if self.phased:
            return phased_elimination(world, horizon, rng=rewards)
        plan = BanditPlan(
            actions=actions,
            horizon=horizon,
            privacy=self.privacy(epsilon),
            radius=self.mode,
            core=self.core,
        )
        noise = simulated(0, name, "noise", instance)
        return simulate_bandit(plan, world, rng_world=rewards, rng_privacy=noise).regret


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute both panels; `quick` takes few instances and places."""
    if quick:
        return compute((0.1, 1.0, 10.0), (0.05, 1.0), {"6.2a": 8, "6.2b": 4}, progress)
    return compute(TRUST_GRID, CORE_GRID, {"6.2a": 160, "6.2b": 20}, progress)


def curves() -> tuple[Curve, ...]:
    """Return all lines of both panels, under the printed radius and under a sound one."""
    return tuple(_curves())


def _curves() -> Iterator[Curve]:
    """Yield the lines."""
    for mode in _MODES:
        yield Curve(figure="6.2a", line="without privacy", mode=mode)
        yield Curve(figure="6.2a", line="phased elimination", mode=mode, phased=True)
        yield Curve(figure="6.2a", line="central", mode=mode, trust=TrustModel.CENTRAL)
        shuffled = {"figure": "6.2a", "mode": mode, "trust": TrustModel.SHUFFLE}
        yield Curve(line="shuffled", method=Amplification.PAPER, **shuffled)  # type: ignore[arg-type]
        yield Curve(figure="6.2a", line="local", mode=mode, trust=TrustModel.LOCAL)
        if mode is RadiusMode.SOUND:
            exact = {"figure": "6.2a", "mode": mode, "noise": RewardNoise.DISCRETE}
            for trust, name in (
                (TrustModel.CENTRAL, "central, tacit"),
                (TrustModel.SHUFFLE, "shuffled, tacit"),
                (TrustModel.LOCAL, "local, tacit"),
            ):
                yield Curve(line=name, trust=trust, **exact)  # type: ignore[arg-type]
    for mode in _MODES:
        for core, name in ((True, "core set"), (False, "all actions")):
            yield Curve(figure="6.2b", line=f"{name}, without privacy", mode=mode, core=core)
            yield Curve(figure="6.2b", line=name, mode=mode, trust=TrustModel.CENTRAL, core=core)


def compute(
    trust_grid: Sequence[float],
    core_grid: Sequence[float],
    instances: dict[str, int],
    progress: Callable[[int, int], Any],
) -> Report:
    """Compute some places of both panels.

    Args:
        trust_grid: Epsilons of Figure 6.2a.
        core_grid: Epsilons of Figure 6.2b.
        instances: How many, by figure; 2 or more.
        progress: Called with (done, total).
    """
    asked = [
        (curve, epsilon)
        for curve in curves()
        for epsilon in (trust_grid if curve.figure == "6.2a" else core_grid)
    ]
    known = reference("private-bandits")
    flat: dict[str, tuple[float, float]] = {}
    rows: list[dict[str, object]] = []
    for done, (curve, epsilon) in enumerate(asked):
        progress(done, len(asked))
        # What knows no epsilon is a level line.
        key = f"{curve.panel} {curve.line}"
        if curve.trust is not None or key not in flat:
            regrets = [curve.regret(epsilon, k) for k in range(instances[curve.figure])]
            flat[key] = float(np.mean(regrets)), float(np.std(regrets, ddof=1) / math.sqrt(len(regrets)))
        mean, error = flat[key]
        expected = known.get((curve.panel, curve.line, epsilon))
        rows.append(
            {
                "panel": curve.panel,
                "line": curve.line,
                "epsilon": epsilon,
                "regret": mean,
                "standard error": error,
                "reference": expected,
                "ratio": None if expected is None else mean / expected,
            }
        )
    progress(len(asked), len(asked))
    return Report(
        rows=rows,
        x="epsilon",
        y="regret",
        error="standard error",
        line="line",
        panel="panel",
        log_y=True,
        labels={"epsilon": "epsilon (of one message under local trust)", "regret": "total regret"},
        notes=(
            f"Means over {instances['6.2a']} instances (6.2a) and {instances['6.2b']} (6.2b), the same for "
            f"all lines; rewards of +1 and -1, delta = {DELTA:g} behind a shuffler, noise for a sensitivity "
            "of 2.",
            "seed is the printed radius, with noise terms for that sensitivity; its proof does not hold. "
            "sound is a proven one.",
            "shuffled takes the closed form of the thesis with its condition; shuffled, tacit prices the "
            "batch numerically, and the three lines of tacit have exact noise: on whole numbers, or one bit "
            "a client.",
            *statements(rows),
        ),
    )
