"""What the commands of `tacit bandit` ask: actions, horizon, trust, budget, and how it is decided."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.names import ANONYMITIES, BANDIT_NOISES, LEVEL_METHODS, RADIUS_MODES, TAILS
from tacit.errors import ParameterError, check_choice, check_count, check_finite

if TYPE_CHECKING:
    from tacit.bandits import BanditPlan, RewardPrivacy
    from tacit.numerics import Array

__all__ = [
    "DELTA",
    "SILOS",
    "TRUSTS",
    "Budget",
    "Decisions",
    "Horizon",
    "Trust",
    "budget_facts",
    "read_actions",
    "share_facts",
    "whole_horizon",
]

TRUSTS: Final = ("central", "aggregate", "shuffle", "local", "none")
DELTA: Final = 1e-6
"""Behind a shuffler and in sums, where no other is asked for."""
SILOS: Final = 10
"""Under aggregate trust, where no other number is asked for."""

Horizon = Annotated[float, typer.Option(help="Number of rounds, one client each, such as 1e6.")]
Trust = Annotated[
    str,
    typer.Option(
        click_type=OneOf(
            TRUSTS,
            told={
                "central": "a server sees rewards",
                "aggregate": "silos see rewards of their own, and only sums of all silos are seen",
                "shuffle": "a shuffler mixes messages and deals the actions",
                "local": "nobody",
                "none": "no privacy",
            },
        ),
        help="Who is trusted: {names}.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What may be spent, and how."""

    epsilon: Annotated[
        float | None, typer.Option(help="Budget of one reward.", show_default="needed for privacy")
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(help="Delta, under shuffle and aggregate trust.", show_default="1e-6, else 0"),
    ] = None
    noise: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                BANDIT_NOISES,
                told={"discrete": "exact, what is deployed", "laplace": "the paper's, simulated only"},
            ),
            help="Noise on rewards: {names}.",
        ),
    ] = "discrete"
    anonymity: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                ANONYMITIES,
                told={
                    "batch": "all messages of a batch, whose actions the shuffler deals",
                    "action": "those of the same action: it is known who plays what",
                },
            ),
            help="Among whom a shuffled message hides: {names}.",
        ),
    ] = "batch"
    method: Annotated[
        str,
        typer.Option(
            click_type=OneOf(LEVEL_METHODS, told={"paper": "a closed form, for comparison"}),
            help="How the level of shuffled messages is found: {names}.",
        ),
    ] = "numeric"
    parties: Annotated[
        int, typer.Option(help="Silos that add a share of the noise each, under aggregate trust.")
    ] = SILOS
    colluding: Annotated[
        int, typer.Option(help="Silos that may tell what they added, under aggregate trust.")
    ] = 0

    def privacy(self, trust: str) -> RewardPrivacy:
        """Return who is trusted with what budget."""
        from tacit.bandits import Amplification, Anonymity, RewardNoise, RewardPrivacy
        from tacit.privacy import TrustModel

        name = check_choice("trust", trust, TRUSTS)
        if name == "none":
            for field in fields(Budget):
                if (value := getattr(self, field.name)) != field.default:
                    raise ParameterError(
                        f"{field.name} is for a trust model, got {value!r} with trust 'none'."
                    )
            return RewardPrivacy()
        if self.epsilon is None:
            raise ParameterError(f"epsilon must be given for trust {name!r}.")
        if not math.isfinite(self.epsilon):
            check_finite("epsilon", self.epsilon)
        summed = name == "aggregate"
        if not summed and (self.parties, self.colluding) != (SILOS, 0):
            raise ParameterError(
                f"parties and colluding are for trust 'aggregate', got {self.parties} and {self.colluding} "
                f"with trust {name!r}."
            )
        usual = DELTA if summed or name == "shuffle" else 0.0
        return RewardPrivacy(
            trust=TrustModel(name),
            epsilon=self.epsilon,
            delta=usual if self.delta is None else self.delta,
            parties=self.parties if summed else 0,
            colluding=self.colluding if summed else 0,
            noise=RewardNoise(check_choice("noise", self.noise, BANDIT_NOISES)),
            anonymity=Anonymity(check_choice("anonymity", self.anonymity, ANONYMITIES)),
            method=Amplification(check_choice("method", self.method, LEVEL_METHODS)),
        )


@dataclass(frozen=True, kw_only=True)
class Decisions(Budget):
    """How actions are chosen and dropped."""

    radius_mode: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                RADIUS_MODES,
                told={
                    "sound": "proven for the very batch",
                    "seed_corrected": "a proven closed form",
                    "seed": "the paper's, which is not proven",
                },
            ),
            help="How far estimates may be off: {names}.",
        ),
    ] = "sound"
    all_actions: Annotated[
        bool,
        typer.Option("--all-actions", help="Play all actions that are left, and not a core set of a few."),
    ] = False
    tail: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                TAILS, told={"commit": "the best action", "truncate": "the batch as far as it goes"}
            ),
            help="What is played where the next batch does not fit: {names}.",
        ),
    ] = "commit"

    def plan(self, actions: Array, horizon: float, trust: str) -> BanditPlan:
        """Return the plan."""
        from tacit.bandits import BanditPlan, RadiusMode, Tail

        return BanditPlan(
            actions=actions,
            horizon=whole_horizon(horizon),
            privacy=self.privacy(trust),
            radius=RadiusMode(check_choice("radius-mode", self.radius_mode, RADIUS_MODES)),
            core=not self.all_actions,
            tail=Tail(check_choice("tail", self.tail, TAILS)),
        )


def whole_horizon(horizon: float) -> int:
    """Return a horizon as the whole number that it must be; 1e6 is one."""
    value = check_finite("horizon", horizon)
    if value != int(value):
        raise ParameterError(f"horizon must be a whole number, got {horizon!r}.")
    return check_count("horizon", int(value))


def read_actions(path: Path) -> Array:
    """Read actions from a CSV file of numbers, one action a row, without a header.

    Raises:
        ParameterError: The file is missing, or not of numbers.
    """
    import numpy as np

    if not path.is_file():
        raise ParameterError(
            "actions must be a CSV file that exists, or a number where they are simulated, got "
            f"{str(path)!r}."
        )
    try:
        rows = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        if not rows:
            raise ValueError("no rows")
        found: Array = np.loadtxt(rows, delimiter=",", ndmin=2, dtype=np.float64, comments=None)
    except (ValueError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"actions must be rows of numbers with commas between them and no header; {path} is not."
        ) from error
    return found


def budget_facts(privacy: RewardPrivacy) -> dict[str, Any]:
    """Return who is trusted with what, for programs."""
    return {
        "trust": "none" if privacy.trust is None else privacy.trust.value,
        "budget_epsilon": privacy.epsilon if privacy.private else None,
        "budget_delta": privacy.delta,
        "noise": privacy.noise.value,
        "anonymity": privacy.anonymity.value,
        "levels": privacy.method.value,
    }


def share_facts(privacy: RewardPrivacy) -> dict[str, int]:
    """Return how many silos add shares of the noise, and how many of them may tell, for programs."""
    return {"parties": privacy.parties, "colluding": privacy.colluding}
