"""What `tacit train --dry-run` says: the plan, its price and its noise, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.cli.output import print_json, print_table, print_text, results_alone

if TYPE_CHECKING:
    from tacit.jobs import Job, Ledgers, PlannedRun
    from tacit.privacy import Guarantee

__all__ = ["show_preview"]


def show_preview(job: Job, ledgers: Ledgers | None, *, json: bool) -> None:
    """Print what a job would do and cost; nothing is written, asked or spent."""
    from tacit.reports.statement import notes_on_moment
    from tacit.reports.tables import unused_labels, why_chosen

    with results_alone():
        runs, sample = job.preview(ledgers=ledgers), job.data.sample
    if json:
        print_json({**_facts_of_data(job), "runs": [_facts(one) for one in runs]})
        return
    for line in _said_of_data(job):
        print_text(line)
    _show_runs(runs)
    for name, bounded in sorted({(one.algorithm, one.bounded) for one in runs if one.bounded != "excess"}):
        print_text(f"{name}: its bound is on the {bounded} of the loss, and says nothing of the excess.")
    for trained, count in {(one.algorithm, one.trained_with) for one in runs if one.trained_with}:
        print_text(f"{trained}: trains on {count:,} public records besides, which nothing protects.")
    for line in (
        *_about_inside(runs),
        *why_chosen((one.trust, one.algorithm, one.algorithm_reason) for one in runs),
        *unused_labels(
            ((one.algorithm, one.trained_with) for one in runs),
            labelled=sample is not None and sample.y is not None,
        ),
        *notes_on_moment(job.config.stated, job.data.assumed),
    ):
        print_text(line)
    for one in runs:
        if one.noise_share is not None:
            print_text(
                f"{one.trust}: each silo adds a share of the noise, {one.noise_share:.4g}; "
                f"{one.plan.n_min - one.plan.colluding} honest shares make {one.noise_multiplier:.4g}."
            )
    _show_means(runs)
    _show_prices(runs)
    accounts = "no ledger would count it" if ledgers is None else "its ledgers have that much left"
    print_text(f"\nNothing was spent; {accounts}.")


def _added(job: Job) -> dict[str, Any]:
    """Return the penalties and the domain that are given, by name."""
    penalties = job.config.regularization()
    given = {name: getattr(penalties, name) for name in ("l1", "l2", "group_lasso", "domain")}
    return {name: value for name, value in given.items() if value}


def _facts_of_data(job: Job) -> dict[str, Any]:
    """Return what a program reads of the data and of what is minimised."""
    names, sizes = job.data.silo_names, job.data.sizes
    moment = {} if job.config.moment is None else {"moment": job.config.moment}
    return {
        "version": 1,
        **moment,
        "silos": names,
        "units": None if job.hides_sizes else dict(zip(names, sizes, strict=True)),
        "public_records": None if job.data.sample is None else len(job.data.sample.X),
        "loss": job.loss,
        "regularization": _added(job),
    }


def _said_of_data(job: Job) -> list[str]:
    """Return what a person reads of the data and of what is minimised, line by line."""
    from tacit.privacy import Unit

    data, sizes = job.data, job.data.sizes
    unit = "records" if data.persons is None else "persons"
    most = "" if min(sizes) == max(sizes) else f" to {max(sizes):,}"
    size = "" if job.hides_sizes else f", each trains on {min(sizes):,}{most} {unit}"
    size = ", protected as a whole" if data.unit is Unit.PARTY else size
    scaled = "" if data.sample is None else f", scaled by {len(data.sample.X):,} public records"
    silos = "1 silo" if len(data.silo_names) == 1 else f"{len(data.silo_names)} silos"
    lines = [
        f"{job.config.source}: {silos}{size}; {data.X.shape[1]} features{scaled}",
        f"loss: {job.loss.words}",
    ]
    if not job.config.architecture.is_plain:
        lines.append(f"model: {job.config.architecture}, {job.terms.task.objective.size:,} parameters")
    if job.config.moment is not None:
        lines.append(f"moment of gradients: {job.config.moment}; numbers are as they stand, without bounds")
    if added := _added(job):
        lines.append(f"with it: {', '.join(f'{name} {value}' for name, value in added.items())}")
    return lines


def _show_runs(runs: Sequence[PlannedRun]) -> None:
    """Print a line for each trust model, and what its columns are."""
    from tacit.reports.tables import format_bits

    columns = (
        *("trust", "algorithm", "rounds", "epsilon", "delta", "noise", "sent per silo", "gradient error"),
        "loss bound",
    )
    rows = [
        (
            one.trust,
            one.algorithm,
            one.rounds,
            *_price(one.guarantee),
            f"{one.noise_multiplier:.4g}",
            "hidden" if one.bits_per_silo is None else format_bits(one.bits_per_silo),
            "none" if one.gradient_error is None else f"{100 * one.gradient_error:.3g} %",
            f"{one.error_bound:.3g}" if math.isfinite(one.error_bound) else "none",
        )
        for one in runs
    ]
    print_table(columns, rows, right=columns[2:])
    print_text("")
    print_text(
        "noise: its standard deviation, in sensitivities. gradient error: of a round's mean gradient, by "
        "noise and sampling, in clipping bounds; far above 100 %, little is learned. loss bound: "
        "on the excess loss, by theory, which is loose."
    )


def _show_prices(runs: Sequence[PlannedRun]) -> None:
    """Print the guarantee of each run, and what it is to whoever sees one silo's messages."""
    from tacit.privacy.statement import About

    for one in runs:
        which = f" (the weakest of {len(one.guarantees)})" if len(one.guarantees) > 1 else ""
        print_text(f"\n{one.trust}{which}: {one.guarantee}")
        if one.guarantee_alone is not None:
            alone = About(trust=one.trust, alone=True).observed
            print_text(f"\n{alone}{which}: {one.guarantee_alone}")


def _about_inside(runs: Sequence[PlannedRun]) -> list[str]:
    """Say what silos do unseen, by algorithm."""
    from tacit.reports.inside import hidden_words

    found = {one.algorithm: hidden_words(one.plan) for one in runs}
    return [f"{name}: {said}" for name, said in found.items() if said]


def _show_means(runs: Sequence[PlannedRun]) -> None:
    """Print the noise of every mean, where a run asks for several: the table above has that of the whole."""
    rows = [
        (
            one.trust,
            str(mean.kind),
            str(mean.rounds),
            mean.statistic,
            f"{mean.clip:.4g}",
            f"{mean.noise_multiplier:.4g}",
        )
        for one in runs
        if len(one.means) > 1
        for mean in one.means
    ]
    if rows:
        columns = ("trust", "kind of round", "rounds", "mean of", "clipping bound", "noise")
        print_table(columns, rows, right=("kind of round", "rounds", "clipping bound", "noise"))
    if any(mean.statistic == "gradient-norms" for one in runs for mean in one.means):
        print_text(
            "The first round chooses the clip of the others, which is at most their clipping bound here."
        )


def _price(guarantee: Guarantee) -> tuple[str, str]:
    """Return epsilon and delta in words."""
    from tacit.reports.tables import format_delta, format_epsilon

    if not math.isfinite(guarantee.epsilon):
        return "none", "none"
    return format_epsilon(guarantee.epsilon), format_delta(guarantee.delta)


def _facts(one: PlannedRun) -> dict[str, Any]:
    """Return a planned run for programs."""
    from tacit.reports.tables import alone_entries

    return {
        "trust": one.trust,
        "algorithm": one.algorithm,
        "algorithm_reason": one.algorithm_reason,
        **({"trained_with": one.trained_with} if one.trained_with else {}),
        "rounds": one.rounds,
        "epsilon": one.guarantee.epsilon,
        "delta": one.guarantee.delta,
        "noise_multiplier": one.noise_multiplier,
        **({} if one.noise_share is None else {"noise_share": one.noise_share}),
        "bits_per_silo": one.bits_per_silo,
        "means": [vars(mean) for mean in one.means],
        "gradient_error": one.gradient_error,
        "error_bound": one.error_bound,
        "guarantee": str(one.guarantee),
        **alone_entries(one.guarantee_alone),
        "plan": one.plan,
    }
