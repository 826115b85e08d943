"""What personal models are worth: beside the common one, and beside what every silo learns alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from tacit.jobs.held_out import HeldOut, SiloScore
from tacit.jobs.scores import Scores, score_model
from tacit.jobs.terms import JobTerms
from tacit.learning.algorithms import Algorithm
from tacit.learning.algorithms.party_level import PartyMethod
from tacit.learning.objective import Grouped, Records
from tacit.learning.personal.party_rounds import DescentFacts, descend
from tacit.learning.preparation import Prepared
from tacit.numerics import Array

__all__ = ["PersonalScores", "score_personal"]


class PersonalScores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mean over silos of the accuracy of a model of each on its own held-out records.

    Attributes:
        score: Of the personal models.
        standard_error: Of the score, over silos; None of fewer than two.
        common: Of the common model.
        alone: Of models that every silo trains alone, by as many steps.
        silos: Of personal models, by silo.
    """

    score: float
    standard_error: float | None
    common: float
    alone: float
    silos: tuple[SiloScore, ...]


def score_personal(
    terms: JobTerms,
    models: Sequence[Array],
    common: Scores,
    *,
    parties: Sequence[Records | Grouped],
    prepared: Prepared,
    algorithm: Algorithm,
    rows: Array,
    held_out: HeldOut,
) -> PersonalScores | None:
    """Return the scores of personal models; None without any, or where held-out records are of no silo.

    Args:
        terms: Of the job.
        models: Parameters of each silo.
        common: Scores of the common model.
        parties: What each silo trains on.
        prepared: The run.
        algorithm: That trained them.
        rows: Held-out records, as `JobTerms.rows` returns them.
        held_out: The truth.
    """
    if not models or held_out.silos is None or not isinstance(algorithm, PartyMethod):
        return None
    steps, step = prepared.rounds * algorithm.local_steps, algorithm.local_step(prepared.problem)
    facts, start = DescentFacts(steps=steps, step_size=step), terms.task.start
    if start is None:
        start = np.zeros(terms.task.objective.size)
    records = [party.records if isinstance(party, Grouped) else party for party in parties]
    alone = [descend(terms.task.objective, one, start, facts) for one in records]
    mine, own = (_accuracies(terms, each, rows, held_out) for each in (models, alone))
    scores = np.array([one.score for one in mine if one.score is not None])
    return PersonalScores(
        score=float(scores.mean()),
        standard_error=float(scores.std(ddof=1) / math.sqrt(scores.size)) if scores.size > 1 else None,
        common=_mean(common.silos),
        alone=_mean(own),
        silos=mine,
    )


def _accuracies(
    terms: JobTerms, models: Sequence[Array], rows: Array, held_out: HeldOut
) -> tuple[SiloScore, ...]:
    """Return the accuracy of every silo's own model on its own records."""
    raw = terms.raw(models[0], rows)
    for k, w in enumerate(models):
        own = np.flatnonzero(held_out.silos == k)
        raw[own] = terms.raw(w, rows[own])
    return score_model(raw, held_out, terms.model(models[0])).silos


def _mean(silos: Sequence[SiloScore]) -> float:
    """Return the mean over silos that have held-out records."""
    return float(np.mean([one.score for one in silos if one.score is not None]))
