"""The algorithm where nobody names one: by the measured rule where it speaks, else by error bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tacit.errors import ParameterError
from tacit.learning.algorithms import ALGORITHMS, ObjectivePerturbation, make_algorithm
from tacit.learning.defaults import Choice, choose, choose_for_network, clip_share
from tacit.learning.kinks import Absolute, Quantile
from tacit.learning.linear import LinearObjective, is_network
from tacit.learning.losses import Huber, Logistic, PoissonLoss, Squared, loss_name
from tacit.learning.prediction import Prediction, predict
from tacit.learning.quorum import honest_silos
from tacit.learning.settings import Settings
from tacit.numerics import Array, ElasticNet, Regularizer, Zero
from tacit.privacy import TrustModel

__all__ = ["choose_algorithm", "choose_for_any_clip", "is_measured"]

_LIGHT: Final = 1e-3
"""Strength of a penalty up to which the rule holds; whitened steps lose 10 points on parkinsons at 1e-2."""


def choose_algorithm(
    settings: Settings,
    sizes: Sequence[int],
    *,
    rounds: int | None = None,
    gram: Array | None = None,
    labelled: bool = False,
) -> Choice:
    """Return the algorithm for a linear model or a network, with the clip that goes with it, and why.

    Args:
        settings: Of the run; its algorithm says nothing, and its clip is looked at where it is given.
        sizes: Public number of units of each silo.
        rounds: Number of rounds where it is given.
        gram: A public Gram matrix of the features, shape (features, features), where there is one.
        labelled: Whether there are public records with labels, whose it is.

    Raises:
        ParameterError: delta is 0, and no algorithm has noise for that here; or a round waits for more silos
            than are asked, or for no more than collude.
    """
    objective = settings.objective
    honest = honest_silos(settings, len(sizes))  # else every algorithm is refused, and none says why
    if is_network(objective):
        return choose_for_network(
            objective,
            trust=settings.trust,
            budget=settings.budget,
            relation=settings.relation,
            sizes=sizes,
            honest=honest,
            rounds=rounds,
        )
    if not isinstance(objective, LinearObjective):
        raise ParameterError(
            f"the algorithm must be named for {type(objective).__name__}: nothing chooses it."
        )
    if settings.budget is not None and settings.budget.delta == 0:
        return _pure(settings, objective)
    if settings.moment is not None:
        return _stated(rounds)
    light = settings.trust is None or _is_light(settings.regularizer)
    if light and is_measured(objective, trust=settings.trust):
        return choose(
            objective,
            trust=settings.trust,
            budget=settings.budget,
            relation=settings.relation,
            sizes=sizes,
            honest=honest,
            rounds=rounds,
            gram=gram,
            labelled=labelled,
        )
    return _promised(settings, objective, sizes, rounds=rounds)


def choose_for_any_clip(settings: Settings, *, rounds: int | None = None) -> Choice:
    """Return the algorithm where a first round chooses the clip: one whose step sizes go by what it finds.

    Args:
        settings: Of the run; its algorithm says nothing.
        rounds: Number of rounds where it is given.

    Raises:
        ParameterError: Nothing is known of the smoothness of a model that is not linear.
    """
    objective = settings.objective
    if is_network(objective):
        raise ParameterError(
            "clip must be a number or None for a network whose algorithm is chosen by a rule, got 'auto': "
            "its steps are made for one clip; name the algorithm with its step_size."
        )
    name, reason = "p-sgd", "its steps go by the clip that a first round chooses."
    if math.isfinite(settings.smoothness):
        name = "accelerated"
        if settings.moment is not None:
            # The smoothness of a moment is far above that of most losses: momentum then gathers noise.
            name = "minibatch"
            reason = "beside a stated moment it was measured to do best with an automatic clip."
    algorithm = make_algorithm(name, rounds=rounds)
    return Choice(algorithm=algorithm, share=clip_share(algorithm), reason=reason)


def is_measured(objective: LinearObjective, *, trust: TrustModel | None) -> bool:
    """Return whether the rule of `choose` was measured on such problems, with a light penalty and delta > 0.

    It was on classes under every trust model, and on the library's losses of numbers but behind a shuffler.

    Args:
        objective: What is minimised.
        trust: Who is trusted; None trains without privacy, where smooth losses take accelerated steps.
    """
    loss = objective.loss
    if trust is None or loss.classifies:
        return math.isfinite(loss.smoothness)
    known = isinstance(loss, Squared | Huber | Absolute | Quantile | PoissonLoss)
    return known and math.isfinite(loss.smoothness) and trust is not TrustModel.SHUFFLE


def _is_light(regularizer: Regularizer) -> bool:
    """Return whether a penalty is as light as those that the rule was measured with."""
    match regularizer:
        case Zero():
            return True
        case ElasticNet(l1=l1, l2=l2):
            return l1 <= _LIGHT and l2 <= _LIGHT
        case _:
            return False


def _promised(
    settings: Settings, objective: LinearObjective, sizes: Sequence[int], *, rounds: int | None
) -> Choice:
    """Return the algorithm whose error bound is the least, of those whose bound leaves out nothing."""
    promises: list[Prediction] = []
    for name in ALGORITHMS:
        try:
            algorithm = make_algorithm(name, rounds=rounds)
        except ParameterError:  # no method for so few rounds
            continue
        if settings.trust is not None and settings.trust not in algorithm.trusts:
            continue
        found = predict(replace(settings, algorithm=algorithm), sizes)
        if found.valid and found.bounded == "excess" and not found.caveat:
            promises.append(found)
    if not promises:
        raise ParameterError("algorithm must be named: no bound on the error of any is known here.")
    best = min(promises, key=lambda one: one.bound)
    algorithm = make_algorithm(best.name, rounds=rounds)
    least = "the least" if len(promises) > 1 else "the only one"
    # Without the bound itself, which tells of the sizes of silos, where these are not shown.
    what = _named(settings, objective)
    reason = f"of all error bounds for {what}, about which nothing was measured, it has {least}."
    return Choice(algorithm=algorithm, share=clip_share(algorithm), reason=reason)


def _pure(settings: Settings, objective: LinearObjective) -> Choice:
    """Return what has noise with a pure epsilon."""
    trusted = settings.trust in ObjectivePerturbation.trusts
    if not (trusted and isinstance(objective.loss, Logistic) and settings.noise == "gaussian"):
        raise ParameterError(
            "delta must be > 0 with Gaussian noise, got 0.0; a pure epsilon has 'objective-perturbation' "
            "only, for two classes under central or local trust, with noise='gaussian'."
        )
    algorithm = ObjectivePerturbation(pure=True)
    return Choice(
        algorithm=algorithm,
        share=clip_share(algorithm),
        reason="a delta of 0 takes noise with a pure epsilon, which no other method has.",
    )


def _stated(rounds: int | None) -> Choice:
    """Return accelerated steps on all records, for gradients of which only a moment is known."""
    algorithm = make_algorithm("accelerated", rounds=rounds)
    why = "where only a moment is known, full batches were measured to do better than one pass."
    return Choice(algorithm=algorithm, share=1.0, reason=why)


def _named(settings: Settings, objective: LinearObjective) -> str:
    """Return what the run is about, in words."""
    kinked = "" if math.isfinite(objective.smoothness) else ", which has a kink,"
    where = "without privacy" if settings.trust is None else f"under {settings.trust.value} trust"
    penalty = "" if _is_light(settings.regularizer) else " with such a penalty"
    return f"the {loss_name(objective.loss)} loss{kinked}{penalty} {where}"
