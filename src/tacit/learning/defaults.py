"""Which algorithm, with which clip and step, where nobody names one: one rule, from public facts only.

How the constants were found, on which data sets, and what they reach on others: docs/theory/defaults.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit.learning.algorithms import Algorithm, make_algorithm, traits_of
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Logistic, Multinomial
from tacit.learning.objective import NeuralObjective, Objective
from tacit.numerics import Array
from tacit.privacy import Gaussian, PrivacyBudget, Relation, TrustModel, calibrate

__all__ = ["AUTO", "Choice", "choose", "choose_for_network", "clip_share", "signal"]

AUTO = "auto"
"""The name under which the rule chooses."""

_SHORT = 200
"""Most features of which a Gram matrix is no longer than a hundred gradients together."""

_CLEAR = 250
"""From this signal on, a noisy Gram matrix shows more than it costs."""

_LOUD, _FEW = 50, 100
"""From this signal on, several classes need more steps than a public Gram matrix has; and with more features
than that, its metric gains nothing."""

_CURVED = 1.0
"""Most curvature of a loss of numbers of which a Gram matrix says enough: that of the Huber loss, which most
records have; a kink that is rounded is curved for few of them."""

_FEATURES = 1000
"""Most features whose Gram matrix is asked for without being told to."""

_WIDE = 500
"""From so many parameters of several classes on, plain steps of a length made for them do best."""

_FEWEST, _MOST, _OFF, _LONGEST, _WIDE_SHARE = 40, 160, 2.2, 400.0, 0.1
"""Of those steps: how few and how many, how far noise may take a score, how long one may be, and the clip."""

_DEEP_DISTANCE, _DEEP_STEP, _DEEP_FARTHEST, _DEEP_FEWEST, _DEEP_MOST = 15.0, 1.0, 600.0, 40, 120
"""Of networks: how far steps go together, by signal; how far each of them, about; how far all of them go at
most; how few of them and how many."""

_DEEP_CLIP, _DEEP_BARE = 0.5, 0.3
"""The clip of their gradients, for features of about 1, and the length of steps without clipping."""

_STRAIGHT_STEP = 4.0
"""How far each step goes, about, of networks that are nearly linear at first."""

_NUMBERS_DISTANCE, _NUMBERS_STEP, _NUMBERS_MOST = 5.0, 0.5, 300
"""Of networks of numbers, whose losses stay as curved as they are near what they fit: how far steps go
together, by signal, how far each of them at most, and how many they are."""

_MIXED, _MIXED_DISTANCE, _MIXED_LONGEST, _MIXED_SHARE = 20, 100.0, 75.0, 0.2
"""Behind a shuffler: rounds, since the bits that all of them take grow with their square; how far away a
solution is, how long a step may be, and the clip."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the rule says.

    Attributes:
        algorithm: With its parameters.
        share: Of the Lipschitz constant, that gradients are clipped to.
        reason: Why, in one sentence.
    """

    algorithm: Algorithm
    share: float
    reason: str = field(default="", compare=False)


def choose(
    objective: LinearObjective,
    *,
    trust: TrustModel | None,
    budget: PrivacyBudget | None,
    relation: Relation,
    sizes: Sequence[int],
    honest: int = 0,
    rounds: int | None = None,
    gram: Array | None = None,
    labelled: bool = False,
) -> Choice:
    """Return the algorithm for a linear model.

    Of a loss with a kink: steps that need no smoothness. Of classes, behind a shuffler: few averaged plain
    steps, together as long as noise allows, because a Gram matrix has no price there and bits grow with the
    square of the rounds. With a public Gram matrix: steps in its metric, for several classes only where the
    signal is weak; with labels of these public records, on their gradients too, from their minimum on. Else,
    of few features: whitened features. Many features of two classes: steps in the metric of a noisy Gram
    matrix where the signal is clear, or accelerated steps. Many of several classes: averaged plain steps,
    together as long as noise allows. The Huber loss is treated as two classes with many features are.
    Everything else, and everything without privacy: accelerated steps.

    Args:
        objective: What is minimised.
        trust: Who is trusted; None trains without privacy.
        budget: What may be spent; None without privacy.
        relation: What neighbours differ in.
        sizes: Public number of units of each silo.
        honest: Silos whose noise a price counts on, under aggregate trust.
        rounds: Number of rounds where it is given.
        gram: A public Gram matrix of the features, shape (features, features), where there is one.
        labelled: Whether the public records that it is of have labels.
    """
    if not math.isfinite(objective.loss.smoothness):
        return _chosen("p-sgd", "the loss has a kink, and it needs no smoothness.", rounds=rounds)
    bounded = objective.loss.lipschitz < math.inf and objective.loss.smoothness <= _CURVED
    # A delta of 0 is refused later, with what it needs.
    if (
        (bounded or objective.loss.classifies)
        and trust is not None
        and budget is not None
        and budget.delta > 0
    ):
        clear = signal(objective, trust=trust, budget=budget, relation=relation, sizes=sizes, honest=honest)
        if trust is TrustModel.SHUFFLE:
            why = "few long steps were measured to do as well behind a shuffler as many, for fewer bits."
            total = _MIXED_DISTANCE * clear / (_MIXED_SHARE * objective.lipschitz)
            steps = _MIXED if rounds is None else rounds
            step = min(total / steps, _MIXED_LONGEST)
            return _chosen("minibatch", why, share=_MIXED_SHARE, rounds=steps, step_size=step)
        if gram is not None and objective.features <= _FEW and (objective.outputs == 1 or clear < _LOUD):
            if labelled and isinstance(objective.loss, Logistic | Multinomial):
                why = "it was measured to do best for classes with few features and labelled public records."
                return _chosen("semi-dp", why, rounds=rounds)
            why = "steps in the metric of a public Gram matrix were measured to do best with few features."
            return _chosen("preconditioned", why, rounds=rounds, preconditioner=gram)
        if objective.loss.classifies and objective.features <= _SHORT and rounds != 1:
            by = "" if isinstance(objective.loss, Logistic | Multinomial) else ", with the logistic loss"
            return _chosen(
                "whitened",
                f"it was measured to do best for classes of up to {_SHORT} features{by}.",
                rounds=rounds,
            )
        if objective.outputs == 1 and clear >= _CLEAR and objective.features <= _FEATURES and rounds != 1:
            why = f"a noisy Gram matrix was measured to be worth its price from a signal of {_CLEAR} on."
            return _chosen("preconditioned", why, rounds=rounds)
        if objective.outputs > 1 and objective.size >= _WIDE:
            total = _far(objective, clear, norm=1.0) / (_WIDE_SHARE * objective.lipschitz)
            steps = min(max(math.ceil(total / _LONGEST), _FEWEST), _MOST) if rounds is None else rounds
            why = f"long plain steps were measured to do best for several classes of {_WIDE} parameters on."
            step = min(total / steps, _LONGEST)
            return _chosen("minibatch", why, share=_WIDE_SHARE, rounds=steps, step_size=step)
    if trust is None:
        return _chosen("accelerated", "without privacy it needs the fewest rounds.", rounds=rounds)
    by_name = "; public labels are trained on by name, as by 'semi-dp'" if labelled else ""
    why = f"no other was measured to do better on such data{by_name}."
    return _chosen("accelerated", why, rounds=rounds)


def choose_for_network(
    objective: NeuralObjective,
    *,
    trust: TrustModel | None,
    budget: PrivacyBudget | None,
    relation: Relation,
    sizes: Sequence[int],
    honest: int = 0,
    rounds: int | None = None,
) -> Choice:
    """Return averaged plain steps, together as long as noise allows, for a network; arguments as of `choose`.

    Steps of gradients of length C that agree go eta C each, and noise takes a run S = eta C R long about
    S / signal away from where it would go. A network that is nearly linear at first, and says so, goes as far
    as a linear model does.
    """
    why = "plain steps need no smoothness, of which nothing is known for a network."
    if trust is None or budget is None or budget.delta == 0:  # of which the last is refused later
        steps = _DEEP_MOST if rounds is None else rounds
        return _chosen("minibatch", why, rounds=steps, step_size=_DEEP_BARE)
    clear = signal(objective, trust=trust, budget=budget, relation=relation, sizes=sizes, honest=honest)
    numbers = objective.outputs == 1 and not isinstance(getattr(objective, "loss", None), Logistic)
    most = _NUMBERS_MOST if numbers else _DEEP_MOST
    straight = getattr(objective, "straight_norm", math.inf)
    if straight < math.inf:
        total, longest = _far(objective, clear, norm=straight), _STRAIGHT_STEP
    elif numbers:
        total, longest = _NUMBERS_DISTANCE * clear, _NUMBERS_STEP
    else:
        total, longest = min(_DEEP_DISTANCE * clear, _DEEP_FARTHEST), _DEEP_STEP
    own = min(max(math.ceil(total / longest), _DEEP_FEWEST), most)
    few = _MIXED if trust is TrustModel.SHUFFLE else own
    steps = few if rounds is None else rounds
    step = total / steps / _DEEP_CLIP
    if numbers:
        step = min(step, _NUMBERS_STEP / _DEEP_CLIP)
    return _chosen("minibatch", why, share=_DEEP_CLIP, rounds=steps, step_size=step)


def _far(objective: Objective, clear: float, *, norm: float) -> float:
    """Return S, how long steps are together, where noise takes a score as far as it may.

    That of a row of some norm is off by S norm / (sqrt(d) signal).
    """
    return _OFF * clear * math.sqrt(objective.size) / norm


def signal(
    objective: Objective,
    *,
    trust: TrustModel,
    budget: PrivacyBudget,
    relation: Relation,
    sizes: Sequence[int],
    honest: int = 0,
) -> float:
    """Return n / (k z sqrt(d)): gradients of all units that agree, over the noise of one round of its own.

    k is 2 under replace-one and else 1, z the noise multiplier of one Gaussian release at the budget, d the
    number of parameters; under local trust m silos add m noises, and under aggregate trust m shares, of which
    those of honest silos are one noise.
    """
    moved = 2 if relation is Relation.REPLACE_ONE else 1
    noises = noises_of(trust, parties=len(sizes), honest=honest)
    return sum(sizes) / (moved * calibrate(Gaussian, budget) * math.sqrt(objective.size * noises))


def noises_of(trust: TrustModel, *, parties: int, honest: int = 0) -> float:
    """Return how many noises of the size that a price counts on a sum over all silos has.

    Args:
        trust: Who is trusted.
        parties: Number of silos.
        honest: Silos whose noise a price counts on, under aggregate trust.
    """
    match trust:
        case TrustModel.LOCAL:
            return parties
        case TrustModel.AGGREGATE:
            return parties / honest
        case _:
            return 1


def clip_share(algorithm: Algorithm) -> float:
    """Return the share of the Lipschitz constant that an algorithm clips gradients to where none is given."""
    return traits_of(algorithm).clip_share


def _chosen(name: str, reason: str, *, share: float | None = None, **options: object) -> Choice:
    """Return an algorithm with these options, those that are None left at its own."""
    algorithm = make_algorithm(name, **options)
    share = clip_share(algorithm) if share is None else share
    return Choice(algorithm=algorithm, share=share, reason=reason)
