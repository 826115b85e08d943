"""`tacit bandit plan`: what each trust model costs in regret, before anything is played."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import typer

from tacit.cli.bandit.question import SILOS, TRUSTS, Budget, Horizon, budget_facts, share_facts, whole_horizon
from tacit.cli.bandit.simulate import play, worlds
from tacit.cli.flags import takes
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress
from tacit.errors import check_count

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

    Bounds hold for the hardest actions, and are some ten times what random ones lose.
    """
    import numpy as np

    from tacit.bandits import BanditPlan, g_optimal_design, regret_bound

    horizon = whole_horizon(flags.horizon)
    runs = check_count("runs", flags.runs, low=0)
    check_count("actions", flags.actions, high=10**6)
    check_count("dim", flags.dim, high=1000)
    rows: list[dict[str, Any]] = []
    made = worlds(str(flags.actions), flags.dim, "rademacher", max(runs, 1), 0)
    support = max(len(g_optimal_design(world.actions).support) for world in made)
    with progress("planning", total=len(TRUSTS)) as show:
        for done, trust in enumerate(TRUSTS):
            show(done, note=trust)
            private = trust != "none"
            asked = replace(
                flags,
                epsilon=flags.epsilon if private else None,
                noise=flags.noise if private and trust != "aggregate" else "discrete",
                delta=flags.delta if trust in ("shuffle", "aggregate") else None,
                parties=flags.parties if trust == "aggregate" else SILOS,
                colluding=flags.colluding if trust == "aggregate" else 0,
                anonymity=flags.anonymity if trust == "shuffle" else "batch",
                method=flags.method if trust == "shuffle" else "numeric",
            )
            privacy = asked.privacy(trust)
            bound = regret_bound(
                privacy, horizon=horizon, n_actions=flags.actions, dim=flags.dim, support=support
            )
            regrets = [
                play(
                    BanditPlan(actions=world.actions, horizon=horizon, privacy=privacy), world, seed=0, run=k
                ).regret
                for k, world in enumerate(made[:runs])
            ]
            promised = privacy.guarantees(
                [(np.full(support, math.ceil(b.rounds / support)), b.level) for b in bound.batches],
                simulated=False,
            )
            rows.append(
                {
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
            )
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
        return
    print_text(
        f"{flags.actions:,} actions in {flags.dim} dimensions, {horizon:,} rounds; the largest regret is "
        f"{2 * horizon:,}"
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
    print_text("")
    for row in rows:
        print_text(f"- {row['trust']}: {row['guarantee']}")
