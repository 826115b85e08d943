"""`tacit bandit plan`: what each trust model costs in regret, before anything is played."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.bandit.question import SILOS, TRUSTS, Budget, Horizon, budget_facts, share_facts, whole_horizon
from tacit.cli.bandit.simulate import play, worlds
from tacit.cli.flags import takes
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress
from tacit.errors import check_count

if TYPE_CHECKING:
    from tacit.bandits import BanditResult, RegretBound, RewardPrivacy

__all__ = ["plan"]

_RUNS: Final = 5


@dataclass(frozen=True, kw_only=True)
class PlanFlags(Budget):
    """A bandit that is to be played."""

    actions: Annotated[int, typer.Option(help="Number of actions.")]
    horizon: Horizon
    dim: Annotated[int, typer.Option(help="Number of coordinates of an action.")] = 2
    runs: Annotated[
        int, typer.Option(help="Number of simulated runs beside each bound; 0 for bounds alone.")
    ] = _RUNS
    json: JsonFlag = False


@takes(PlanFlags)
def plan(flags: PlanFlags) -> None:
    """Rank trust models by regret: a proven bound, and what simulations on random actions lose.

    Bounds hold for the hardest actions, and are some ten times what random ones lose. They are for core sets
    of no more actions than any had here, simulated batches included.
    """
    from tacit.bandits import BanditPlan, g_optimal_design, regret_bound

    horizon = whole_horizon(flags.horizon)
    runs = check_count("runs", flags.runs, low=0)
    check_count("actions", flags.actions, high=10**6)
    check_count("dim", flags.dim, high=1000)
    made = worlds(str(flags.actions), flags.dim, "rademacher", max(runs, 1), 0)
    budgets = [_budget(flags, trust) for trust in TRUSTS]
    played: list[list[BanditResult]] = []
    with progress("planning", total=len(TRUSTS)) as show:
        for done, privacy in enumerate(budgets):
            show(done, note=TRUSTS[done])
            plans = [BanditPlan(actions=world.actions, horizon=horizon, privacy=privacy) for world in made]
            played.append([play(plans[k], made[k], seed=0, run=k) for k in range(runs)])
    sizes = [len(g_optimal_design(world.actions).support) for world in made]
    sizes += [len(report.batch.actions) for results in played for one in results for report in one.batches]
    support = max(sizes)
    rows = []
    for privacy, results in zip(budgets, played, strict=True):
        bound = regret_bound(
            privacy, horizon=horizon, n_actions=flags.actions, dim=flags.dim, support=support
        )
        rows.append(_row(privacy, bound, [one.regret for one in results], support))
    rows.sort(key=lambda row: (row["bound"], row["trust"] != "none"))
    facts = {
        "actions": flags.actions,
        "dim": flags.dim,
        "rounds": horizon,
        "core_set": support,
        "runs": runs,
        "plans": rows,
    }
    if flags.json:
        print_json(facts)
    else:
        _show(facts)


def _budget(flags: PlanFlags, trust: str) -> RewardPrivacy:
    """Return the budget of a trust model: of the flags, those that it knows."""
    summed, shuffled = trust == "aggregate", trust == "shuffle"
    known = replace(
        flags,
        epsilon=None if trust == "none" else flags.epsilon,
        noise="discrete" if trust == "none" or summed else flags.noise,
        delta=flags.delta if shuffled or summed else None,
        parties=flags.parties if summed else SILOS,
        colluding=flags.colluding if summed else 0,
        anonymity=flags.anonymity if shuffled else "batch",
        method=flags.method if shuffled else "numeric",
    )
    return known.privacy(trust)


def _row(privacy: RewardPrivacy, bound: RegretBound, regrets: list[float], support: int) -> dict[str, Any]:
    """Return what is known of a trust model, for programs."""
    import numpy as np

    promised = privacy.guarantees(
        [(np.full(support, math.ceil(b.rounds / support)), b.level) for b in bound.batches], simulated=False
    )
    return {
        **budget_facts(privacy),
        **share_facts(privacy),
        "bound": bound.regret,
        "simulated": float(np.mean(regrets)) if regrets else None,
        "level": bound.batches[-1].level if bound.batches else None,
        "batches": [
            {"batch": b.number, "rounds": b.rounds, "level": b.level, "radius": b.radius}
            for b in bound.batches
        ],
        "guarantee": str(promised[0]),
    }


def _show(facts: dict[str, Any]) -> None:
    """Print a plan for people."""
    rows = facts["plans"]
    print_text(
        f"{facts['actions']:,} actions in {facts['dim']} dimensions, {facts['rounds']:,} rounds; the largest "
        f"regret is {2 * facts['rounds']:,}"
    )
    columns = ("trust", "proven bound", "simulated", "level of the last batch")
    print_table(
        columns,
        [
            (
                row["trust"],
                f"{row['bound']:,.0f}",
                "" if row["simulated"] is None else f"{row['simulated']:,.0f}",
                "" if row["level"] is None or math.isinf(row["level"]) else f"{row['level']:.4g}",
            )
            for row in rows
        ],
        right=columns[1:],
    )
    print_text(f"\n- bounds are for core sets of up to {facts['core_set']} actions")
    for row in rows:
        print_text(f"- {row['trust']}: {row['guarantee']}")
