"""`tacit bandit simulate`: play against made-up actions, and say what it loses and costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.bandit.question import (
    Decisions,
    Horizon,
    Trust,
    budget_facts,
    read_actions,
    share_facts,
    whole_horizon,
)
from tacit.cli.choices import OneOf
from tacit.cli.files import check_picture
from tacit.cli.flags import takes
from tacit.cli.names import REWARD_MODELS
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress
from tacit.cli.pages import ReportFlag, check_page, write_page
from tacit.errors import ParameterError, check_choice, check_count

if TYPE_CHECKING:
    from tacit.bandits import BanditPlan, BanditResult, LinearEnvironment

__all__ = ["play", "simulate", "worlds"]


@dataclass(frozen=True, kw_only=True)
class SimulateFlags(Decisions):
    """A bandit and a world for it."""

    actions: Annotated[
        str,
        typer.Option(help="How many actions, drawn uniformly from the unit sphere, or a CSV file of them."),
    ]
    horizon: Horizon
    dim: Annotated[
        int | None, typer.Option(help="Number of coordinates of drawn actions.", show_default="2")
    ] = None
    trust: Trust = "central"
    rewards: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                REWARD_MODELS,
                told={"rademacher": "+1 or -1", "clipped_gaussian": "whose means are not linear any more"},
            ),
            help="How rewards lie around their means: {names}.",
        ),
    ] = "rademacher"
    runs: Annotated[int, typer.Option(help="Number of worlds, each with a parameter of its own.")] = 1
    seed: Annotated[int, typer.Option(help="Seed of worlds, rewards and noise.")] = 0
    plot: Annotated[
        Path | None,
        typer.Option(help="Picture file of the regret over the rounds.", show_default="no picture"),
    ] = None
    report: ReportFlag = None
    json: JsonFlag = False

    def __post_init__(self) -> None:
        if self.plot is not None:
            check_picture(self.plot)
        check_page(self.report)


@takes(SimulateFlags)
def simulate(flags: SimulateFlags) -> None:
    """Play a bandit in a simulated world.

    Batch sums are drawn at once, so that ten million rounds take no longer than a thousand. The same worlds
    are played without privacy, to compare with.
    """
    import numpy as np

    from tacit.bandits import RewardPrivacy

    runs = check_count("runs", flags.runs)
    check_count("seed", flags.seed, low=0)
    horizon = whole_horizon(flags.horizon)
    privacy = flags.privacy(flags.trust)
    found, without = [], []
    made = worlds(flags.actions, flags.dim, flags.rewards, runs, flags.seed)
    plans = [flags.plan(world.actions, horizon, flags.trust) for world in made]
    with progress("playing", total=runs) as show:
        for k, (world, plan) in enumerate(zip(made, plans, strict=True)):
            show(k)
            found.append(play(plan, world, seed=flags.seed, run=k))
            free = _with_privacy(plan, RewardPrivacy())
            without.append(play(free, world, seed=flags.seed, run=k))
    regrets = np.array([one.regret for one in found])
    first = found[0]
    facts: dict[str, Any] = {
        "regret": float(regrets.mean()),
        "standard_error": float(regrets.std(ddof=1) / np.sqrt(runs)) if runs > 1 else None,
        "regret_without_privacy": float(np.mean([one.regret for one in without])),
        "rounds": horizon,
        "runs": runs,
        "seed": flags.seed,
        "actions": len(plans[0].actions),
        "dim": plans[0].actions.shape[1],
        **budget_facts(privacy),
        **share_facts(privacy),
        "radius_mode": flags.radius_mode,
        "survived": sum(one.survived for one in found),
        "batches": [
            {
                "batch": report.batch.number,
                "alive": report.alive,
                "actions": len(report.batch.actions),
                "rounds": report.batch.rounds,
                "level": report.batch.level,
                "radius": report.radius,
                "regret": report.regret,
            }
            for report in first.batches
        ],
        "guarantee": str(first.guarantees[0]),
        "guarantees": [claim.to_builtins() for claim in first.guarantees],
    }
    if flags.plot is not None:
        from tacit.reports import draw_regret

        draw_regret(found, without, trust=flags.trust).savefig(flags.plot, dpi=200)
    if flags.report is not None:
        from tacit.reports import simulation_page

        write_page(flags.report, simulation_page(plans[0], found, without, seed=flags.seed))
    if flags.json:
        print_json(facts)
    else:
        _show(facts, first)


def worlds(actions: str, dim: int | None, rewards: str, runs: int, seed: int) -> list[LinearEnvironment]:
    """Return worlds: actions from a file or drawn, a parameter drawn for each."""
    from tacit.bandits import LinearEnvironment, RewardModel, random_circle
    from tacit.randomness import simulated

    model = RewardModel(check_choice("rewards", rewards, REWARD_MODELS))
    if actions.strip().lstrip("+-").isdigit():
        k = check_count("actions", int(actions), high=10**6)
        d = check_count("dim", 2 if dim is None else dim, high=1000)
        fixed = None
    else:
        fixed = read_actions(Path(actions))
        if dim is not None and dim != fixed.shape[1]:
            raise ParameterError(f"dim must be that of the actions, {fixed.shape[1]}, got {dim}.")
        k, d = fixed.shape
    made = []
    for run in range(runs):
        rows, theta = random_circle(k, d, simulated(seed, "bandit world", run))
        made.append(LinearEnvironment(actions=rows if fixed is None else fixed, theta=theta, model=model))
    return made


def play(plan: BanditPlan, world: LinearEnvironment, *, seed: int, run: int) -> BanditResult:
    """Play one run, rewards and noise from streams of their own."""
    from tacit.bandits import simulate_bandit
    from tacit.randomness import simulated

    return simulate_bandit(
        plan,
        world,
        rng_world=simulated(seed, "bandit rewards", run),
        rng_privacy=simulated(seed, "bandit noise", run),
    )


def _with_privacy(plan: BanditPlan, privacy: Any) -> BanditPlan:
    """Return the same plan for another budget."""
    from dataclasses import replace

    return replace(plan, privacy=privacy)


def _show(facts: dict[str, Any], first: BanditResult) -> None:
    """Print a simulation for people."""
    error = "" if facts["standard_error"] is None else f" ± {facts['standard_error']:,.0f}"
    print_text(
        f"regret {facts['regret']:,.0f}{error} over {facts['rounds']:,} rounds; without privacy "
        f"{facts['regret_without_privacy']:,.0f} in the same worlds"
    )
    rows = [
        (
            str(one["batch"]) if one["radius"] == one["radius"] else "rest",
            f"{one['rounds']:,}",
            one["alive"],
            one["actions"],
            "" if one["radius"] != one["radius"] else f"{one['level']:.4g}",
            "" if one["radius"] != one["radius"] else f"{one['radius']:.4g}",
            f"{one['regret']:,.0f}",
        )
        for one in facts["batches"]
    ]
    columns = ("batch", "rounds", "left", "played", "level", "radius", "regret")
    print_table(columns, rows, right=columns[1:])
    print_text("")
    for claim in first.guarantees:
        print_text(str(claim))
