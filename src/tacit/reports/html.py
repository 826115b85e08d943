"""The report of a run: one page that needs nothing from outside, for people who have to decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import version

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from tacit.jobs import JobResult, TrustResult
from tacit.privacy import Unit
from tacit.privacy.paragraphs import paragraphs
from tacit.reports.inside import hidden_words, hides_by
from tacit.reports.plots import draw_loss_per_round, draw_score_against_epsilon, draw_score_per_round
from tacit.reports.score_section import score_section
from tacit.reports.statement import (
    and_others,
    claims,
    guarantees_about,
    guess_bound,
    notes_of,
    odds,
    plain_words,
    released,
    units_of_all,
    units_per_silo,
    who_sees_one,
)
from tacit.reports.tables import (
    NOT_SCORED,
    baseline_of,
    format_bits,
    format_delta,
    format_epsilon,
    format_score,
    metric_of,
    result_rows,
    why_chosen,
)

__all__ = ["percent_up", "render", "template"]

_MAX_SILOS = 60
_COLORS = 10
_METRICS = {
    "accuracy": "Accuracy",
    "rmse": "Root mean squared error",
    "mae": "Mean absolute error",
    "pinball": "Mean pinball loss",
    "deviance": "Mean Poisson deviance",
}


@dataclass(frozen=True, kw_only=True)
class _SiloRow:
    """One silo in the report; shares are per cent of the widest bar."""

    name: str
    units: str
    width: float
    mix: tuple[tuple[str, float], ...]
    bits: str


@dataclass(frozen=True, kw_only=True)
class _Bar:
    """One bar with its label."""

    trust: str
    label: str
    width: float


def render(result: JobResult, *, run: str, created: datetime) -> str:
    """Write the report as HTML.

    Args:
        result: A finished job.
        run: Name of the run folder.
        created: When, in UTC.

    Returns:
        A page without scripts and without anything loaded from elsewhere. Text from the data is escaped.
    """
    main = released(result)
    private = claims(main)
    return template().render(
        run=run,
        created=f"{created.day} {created:%B %Y, %H:%M} UTC",
        version=version("tacit"),
        data_name=result.job.title,
        model=main.model.model,
        parameters=_count(main.model.fitted.w.size),
        public=result.facts.public,
        main=main,
        private=private,
        simulated=private and main.guarantee.simulated,
        words=plain_words(main),
        guess=percent_up(guess_bound(main.guarantee)) if private else "",
        sentences=[
            *(("without privacy", plain_words(one)) for one in result.results if not claims(one)),
            *paragraphs(*guarantees_about(result)),
        ],
        rows=result_rows(result),
        metric=metric_of(result),
        score="not scored" if main.scored is None else format_score(main.metric, main.score),
        score_facts=_score_facts(result),
        chosen=why_chosen(
            (one.trust, one.trained.algorithm, one.trained.algorithm_reason) for one in result.results
        ),
        baseline=baseline_of(result),
        scores=None if main.scored is None else score_section(result, main),
        bits=_bits_bars(result),
        plots={
            "score": draw_score_per_round(result),
            "loss": draw_loss_per_round(result),
            "epsilon": draw_score_against_epsilon(result),
        },
        silos=_silo_rows(result, main),
        silos_total=len(result.facts.silo_names),
        units_total=_count(units_of_all(units_per_silo(result))),
        unit=str(result.facts.unit),
        classes=_legend(result),
        assumptions=main.guarantee.assumptions if private else (),
        protects=_protects(main) if private else (),
        limits=_limits(result, main) if private else (),
        notes=notes_of(result),
        settings=result.job.to_toml(),
        delta=format_delta(result.delta),
        left_open=odds(main.guarantee.delta) if private else "",
    )


def _count(number: int | None) -> str:
    """Return a number of units as people read it; nothing where it is not public."""
    return "" if number is None else f"{number:,}"


@cache  # a run looks at it before it spends anything, and fills it in at the end
def template(name: str = "report.html.j2") -> Template:
    """Return a page to fill in; to be loaded before anything is spent on what it will show."""
    # Undefined names raise: a report with a hole in it is worse than none.
    environment = Environment(
        loader=PackageLoader("tacit.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for part in ("scores.html.j2", "style.html.j2"):  # parts of the others, which would load them too late
        environment.get_template(part)
    return environment.get_template(name)


def percent_up(share: float) -> str:
    """Return a share in per cent, rounded up."""
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f} %"


def _score_facts(result: JobResult) -> str:
    """Say how well the score is known, by what is public of the number of records."""
    scores = result.results[0].scored
    if scores is None:
        return f"{NOT_SCORED[:1].upper()}{NOT_SCORED[1:]}, and those of the silos stay with them."
    n = scores.records
    what = _METRICS[scores.metric]
    units = "" if scores.metric == "accuracy" else ", in the units of the target"
    if units_of_all(units_per_silo(result)) is None:
        return f"{what} on held-out records{units}."
    if result.facts.unit is Unit.PERSON:
        return f"{what} on the records of {scores.units:,} persons who were held out{units}."
    if units:
        return f"{what} on {n:,} held-out records{units}."
    return f"{what} on {n:,} held-out records."


def _bits_bars(result: JobResult) -> list[_Bar]:
    """Return what the busiest silo sent, per trust model."""
    most = max(1.0, *(one.bits_per_silo for one in result.results))
    return [
        _Bar(
            trust=one.trust,
            label=f"{one.bits_per_silo:,.0f} bits ({format_bits(one.bits_per_silo)})",
            width=100 * one.bits_per_silo / most,
        )
        for one in result.results
    ]


def _silo_rows(result: JobResult, main: TrustResult) -> list[_SiloRow]:
    """Return the silos, with the mix of labels where the data are public."""
    data, names = result.records, result.facts.silo_names
    units = units_per_silo(result)
    most = max(size or 0 for size in units)
    rows = []
    for k, name in list(enumerate(names))[:_MAX_SILOS]:
        mix: tuple[tuple[str, float], ...] = ()
        if data is not None and data.public and data.classes:
            index = data.train[k]
            counts = np.bincount(data.y[index].astype(np.int64), minlength=len(data.classes))
            mix = tuple(
                (f"{label}: {count:,}", float(100 * count / len(index)))
                for label, count in zip(data.classes, counts, strict=True)
            )
        rows.append(
            _SiloRow(
                name=name,
                units=_count(units[k]),
                width=100 * (units[k] or 0) / max(most, 1),
                mix=mix,
                bits=f"{main.trained.traffic.bits_up[k]:,.0f}",
            )
        )
    return rows


def _legend(result: JobResult) -> list[tuple[str, int]]:
    """Return the labels with the number of their colour; nothing for private data."""
    if result.records is None or not result.records.public:
        return []
    return [(str(label), k % _COLORS) for k, label in enumerate(result.records.classes)]


def _protects(main: TrustResult) -> tuple[str, ...]:
    """Say what is protected, from whom, at what price."""
    neighbours = main.guarantee.neighbours
    whose = "record" if neighbours.unit == "record" else "person: all records with one id in a silo"
    seen = {
        "local": "every message of the silo, the model, and whatever is computed from them later",
        "aggregate": "sums of the messages of all silos, the model, and whatever is computed from them "
        f"later, {_with_whom(main)}",
        "shuffle": "the shuffled messages of all silos, the model, and whatever is computed from them later. "
        "The shuffler must be trusted to mix messages and to tell nobody who sent which",
        "central": "the model after every round, and whatever is computed from it later. The server sees "
        "exact sums and must be trusted",
    }[main.trust]
    plan, clip = main.trained.plan, main.trained.clip
    hidden = hides_by(
        plan, noise=main.trained.noise_multiplier, rounds=main.trained.rounds, unit=neighbours.unit
    )
    chosen = "" if clip is None else f" to {clip:.4g}, which a first noisy histogram has chosen"
    alone: tuple[str, ...] = ()
    if (weaker := main.guarantee_alone) is not None:
        known = math.isfinite(weaker.epsilon)
        what = f"epsilon is {format_epsilon(weaker.epsilon)}" if known else "nothing is promised"
        alone = (f"For {who_sees_one(main.trust)}, {what}.",)
    return (
        f"Each single {whose}, in every silo.",
        f"Against anybody who sees {seen}.",
        *alone,
        f"By clipping what each {neighbours.unit} adds to a gradient{chosen}, and {hidden}.",
        *((inside,) if (inside := hidden_words(plan)) else ()),
    )


def _with_whom(main: TrustResult) -> str:
    """Say who may look together, where silos hide each other in a sum."""
    plan = main.trained.plan
    return (
        f"the server {and_others(main)}included. Every sum must hold the noise of "
        f"{plan.n_min - plan.colluding} honest silos at least, its own among them"
    )


def _limits(result: JobResult, main: TrustResult) -> tuple[str, ...]:
    """Say what no guarantee here covers."""
    several = (
        "Somebody with several records is protected less: with k records, epsilon counts k times and delta "
        "grows too."
        if result.facts.unit is not Unit.PERSON
        else "Somebody with records in several silos is protected in each of them separately."
    )
    public = "Names and numbers" if None in units_per_silo(result) else "Names, numbers and sizes"
    return (
        *_public_records(result, main),
        several,
        "What is true of everybody is not hidden: a model that finds a habit to be risky says so of people "
        "who took no part as well.",
        "Other releases from the same data add to the price, and timing, poisoned data or stolen files are "
        f"outside any of these numbers. {public} of silos count as public.",
    )


def _public_records(result: JobResult, main: TrustResult) -> tuple[str, ...]:
    """Say which records of others the model may show, where there are any."""
    if main.trained.trained_with:
        return (
            f"The {main.trained.trained_with:,} public records that the model was trained with: it may show "
            "any of them.",
        )
    if result.facts.sample is not None:
        return ("The public records that features are scaled by: the model shows means and spreads of them.",)
    return ()
