"""How `tacit vote` speaks: designs, releases and plans, for programs and for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.output import print_facts, print_table, print_text

if TYPE_CHECKING:
    from tacit.privacy import Guarantee
    from tacit.voting import DesignCandidate, NoiseFunction, Setting

__all__ = ["VERSION", "design_facts", "plan_facts", "release_facts", "show_design", "show_plan"]

VERSION: Final = 1


def design_facts(noise: NoiseFunction) -> dict[str, Any]:
    """Return a design for programs."""
    s = noise.setting
    return {
        "version": VERSION,
        "method": noise.method,
        "objective": noise.objective,
        **_setting_facts(s),
        "ties": s.ties,
        "affected": s.affected,
        "gamma": noise.gamma,
        "delta_required": noise.certificate.delta_required,
        "slack": noise.certificate.slack,
        "exact": noise.certificate.exact,
        "monotone": noise.monotone,
    }


def _setting_facts(setting: Setting) -> dict[str, Any]:
    """Return what is asked of a design for programs."""
    return {
        "teachers": setting.teachers,
        "epsilon": setting.epsilon,
        "delta_teacher": setting.delta,
        "m": round(setting.allowance, 12),
        "target_epsilon": setting.target_epsilon,
        "target_delta": setting.target_delta,
    }


def show_design(noise: NoiseFunction, last: str) -> None:
    """Print a design for people."""
    s = noise.setting
    vote = f"epsilon {s.epsilon:g}" + (f", delta {s.delta:g}" if s.delta else "")
    print_facts(
        {
            "teachers": f"{s.teachers}, one vote costs {vote}" + _reach(s),
            "target": f"epsilon {s.target_epsilon:g}, delta {s.target_delta:g} for one published bit",
            "design": noise.method + (f" for {noise.objective}" if noise.objective else ""),
            "needs": f"delta {noise.certificate.delta_required:.6g} (slack {noise.certificate.slack:.3g})",
            "checked": "in whole numbers"
            if noise.certificate.exact
            else "in floating point, with its errors",
        }
    )
    rows = [
        (f"{ones} : {s.teachers - ones}", f"{gamma:.6f}", f"{(1 + gamma) / 2:.6f}")
        for ones, gamma in enumerate(noise.gamma, start=s.majority)
    ]
    print_table(("votes", "gamma", "P(majority)"), rows, right=("gamma", "P(majority)"))
    if last:
        print_text(f"\n{last}")


def _reach(setting: Setting) -> str:
    """Return what is said where a record does not reach all teachers."""
    return "" if setting.affected is None else f"; one record reaches at most {setting.affected}"


def release_facts(
    noise: NoiseFunction, price: Guarantee, notes: tuple[str, ...], *, out: Path, queries: int
) -> dict[str, Any]:
    """Return a release for programs: a statement."""
    from tacit.privacy.statement import Statement, digest_of

    answer = {
        "out": str(out),
        "queries": queries,
        "teachers": noise.setting.teachers,
        "method": noise.method,
        "epsilon": price.epsilon,
        "delta": price.delta,
        "simulated": price.simulated,
        "guarantee": str(price),
    }
    return Statement(
        kind="vote release",
        guarantees=(price,),
        notes=notes,
        digests={out.name: digest_of(out)},
        answer=answer,
    ).to_builtins()


def show_release(
    noise: NoiseFunction, price: Guarantee, notes: tuple[str, ...], *, out: Path, queries: int
) -> None:
    """Print a release for people."""
    print_text(f"{queries} bits published into {out}, {noise.setting.teachers} teachers, {noise.method}")
    for note in notes:
        print_text(f"- {note}")
    print_text(f"\n{price}")


def plan_facts(
    setting: Setting,
    queries: int,
    prior: str,
    found: tuple[DesignCandidate, ...],
    prices: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return a plan for programs."""
    return {
        "version": VERSION,
        **_setting_facts(setting),
        "queries": queries,
        "prior": prior,
        "designs": [
            {
                "name": one.name,
                "error": one.error,
                "error_std": one.error_std,
                "falls": one.falls,
                "unanimous_error": one.unanimous_error,
                "gamma": one.noise.gamma,
                "delta_required": one.noise.certificate.delta_required,
                "totals": price,
            }
            for one, price in zip(found, prices, strict=True)
        ],
    }


def show_plan(
    setting: Setting,
    queries: int,
    prior: str,
    found: tuple[DesignCandidate, ...],
    prices: list[dict[str, Any]],
) -> None:
    """Print a plan for people."""
    print_text(
        f"{setting.teachers} teachers, one bit may cost epsilon {setting.target_epsilon:g}; expected error "
        f"under the prior {prior!r}, total epsilon of {queries} bits by who votes"
    )
    kinds = [f"{price['teachers_are']}, {price['shards']}" for price in prices[0]["by_teachers"]]
    rows = [
        (
            one.name,
            f"{one.error:.4f}",
            f"{one.error_std:.6f}",
            f"{100 * one.unanimous_error:.3g} %",
            *(f"{case['epsilon']:.4g}" for case in price["by_teachers"]),
        )
        for one, price in zip(found, prices, strict=True)
    ]
    columns = ("design", "error", "± s.e.", "unanimous", *kinds)
    print_table(columns, rows, right=columns[1:])
    print_text("")
    print_text(
        "- unanimous: how often the other side is published where all teachers agree; a design that is less "
        "sure where more of them agree comes last."
    )
    print_text(f"- the totals hold at delta = {prices[0]['delta']:.3g}.")
    best = prices[0]["by_teachers"]
    for case in best:
        print_text(
            f"- {case['teachers_are']}, {case['shards']}: {found[0].name} is priced by: {case['proof']}."
        )
    for note in dict.fromkeys(note for case in best for note in case["advice"]):
        where = [f"{case['teachers_are']}, {case['shards']}" for case in best if note in case["advice"]]
        print_text(f"- {'; '.join(where)}: {note}")
