"""How far an algorithm gets, before anything is asked: its own bound, after a real preparation of its run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

import msgspec

from tacit.errors import ParameterError, TacitError, check_choice, check_non_negative
from tacit.federation import CorrelatedStep, Disjoint, Plan
from tacit.learning.algorithms import Algorithm, Bounded, Convexity, Method, algorithm_name, traits_of
from tacit.learning.algorithms.named import shows_only_the_end
from tacit.learning.defaults import noises_of
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.quorum import honest_silos
from tacit.learning.settings import Settings
from tacit.learning.settings_checks import penalised
from tacit.learning.tuning import accelerated_batch, plain_batch
from tacit.privacy import Gaussian, TrustModel, calibrate

__all__ = ["CONVEXITIES", "Prediction", "planned_bits", "predict", "run_price"]

CONVEXITIES: tuple[Convexity, ...] = get_args(Convexity)

_HOLDS: Final[dict[Convexity, frozenset[Convexity]]] = {
    "strongly-convex": frozenset(CONVEXITIES),
    "convex": frozenset({"convex", "non-convex"}),
    "prox-pl": frozenset({"prox-pl", "non-convex"}),
    "non-convex": frozenset({"non-convex"}),
}
"""What else an objective of a class is."""

_PASS_ROUNDS: Final = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200, 400, 800)
"""Numbers of batches that one pass is divided into, to choose from."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What is known of a run beforehand, from public facts.

    Attributes:
        name: Of the algorithm.
        algorithm: With the parameters that the bound is least for.
        bound: On the expected excess objective, or on the squared gradient; infinite where none is known.
        bounded: Which of the two.
        population: Whether it is about the law that records come from: of runs that use each record once.
            Else it is about the records themselves.
        rounds: Of the run; 0 where it cannot run.
        noise_multiplier: Standard deviation / sensitivity; 0 without privacy.
        bits_per_silo: That the largest silo sends in the whole run, messages with their headers; 0 where it
            cannot run.
        runs: Whether it can be trained with.
        reason: Why there is no prediction; empty where there is one.
        caveat: What the bound leaves out; empty where it leaves out nothing.
        gradient_error: Root of the mean squared error of a round's mean gradient, by noise and sampling, in
            clipping bounds; None where it cannot run, and as in `gradient_error`.
    """

    name: str
    algorithm: Algorithm
    bound: float
    bounded: Bounded
    population: bool = False
    rounds: int = 0
    noise_multiplier: float = 0.0
    bits_per_silo: float = 0.0
    runs: bool = False
    reason: str = ""
    caveat: str = ""
    gradient_error: float | None = None

    @property
    def valid(self) -> bool:
        """Whether the algorithm can run here, and a bound is known for it."""
        return not self.reason


def predict(
    settings: Settings,
    sizes: Sequence[int],
    *,
    convexity: Convexity = "convex",
    mu: float = 0.0,
    one_pass: bool = False,
    max_bits: float = math.inf,
) -> Prediction:
    """Return what the settings' algorithm promises: the least of its bounds over what is left to choose.

    The run is prepared as it would be for training: its rounds are chosen and its noise is calibrated to the
    budget. Where strong convexity is given, an algorithm that can count on it is tried with it and without.

    Args:
        settings: Of the run; its algorithm's options stay as they are, those named here aside.
        sizes: Public number of units of each silo.
        convexity: What is known of the objective.
        mu: Its strong convexity, or the constant of its proximal Polyak-Lojasiewicz inequality; 0 if unknown.
        one_pass: Whether every record is to be used in one batch only; then the bound is about the
            population.
        max_bits: Most bits that a silo may send in the whole run.

    Raises:
        ParameterError: An argument is out of range. What the algorithm cannot do is no error but a reason.
    """
    _check(convexity, mu)
    algorithm = settings.algorithm
    name = algorithm_name(algorithm)
    bounded = traits_of(algorithm).bounds
    caveat = _left_out(settings)
    best = Prediction(name=name, algorithm=algorithm, bound=math.inf, bounded=bounded)
    added = settings.regularizer.strong_convexity if convexity == "convex" else 0.0
    unmet = _unmet(algorithm, "strongly-convex" if added > 0 else convexity, mu or added)
    lengths = _pass_rounds(settings, sizes) if one_pass else ()
    for candidate in [] if unmet else _variants(algorithm, sizes, mu=mu, lengths=lengths):
        try:
            tried = _prepared(replace(settings, algorithm=candidate), sizes, max_bits)
        except TacitError as error:
            best = best if best.runs else replace(best, reason=str(error))
            continue
        algorithm, prepared = tried
        found = replace(
            _ran(best, algorithm, prepared, max(sizes)),
            bound=algorithm.error_bound(prepared.problem, prepared.rounds),
            reason="",
            caveat=caveat,
        )
        best = found if not best.runs or found.bound < best.bound else best
    if unmet:
        return replace(best, reason=unmet)
    if best.runs and not math.isfinite(best.bound):
        return replace(best, reason=f"it can run, but {traits_of(algorithm).unbounded}.")
    return _as_excess(best, convexity, mu)


def run_price(
    settings: Settings, sizes: Sequence[int], *, reason: str, max_bits: float = math.inf
) -> Prediction:
    """Return what a run costs, the error of which nothing bounds.

    Args:
        settings: Of the run.
        sizes: Public number of units of each silo.
        reason: Why nothing does.
        max_bits: Most bits that a silo may send in the whole run.
    """
    algorithm = settings.algorithm
    bounded = traits_of(algorithm).bounds
    none = Prediction(
        name=algorithm_name(algorithm), algorithm=algorithm, bound=math.inf, bounded=bounded, reason=reason
    )
    try:
        return _ran(none, *_prepared(settings, sizes, max_bits), max(sizes))
    except TacitError as error:
        return replace(none, reason=str(error))


def _ran(known: Prediction, algorithm: Algorithm, prepared: Prepared, size: int) -> Prediction:
    """Return what is known of an algorithm with the facts of a prepared run; `size` is that of a silo."""
    return replace(
        known,
        algorithm=algorithm,
        population=_is_one_pass(prepared.plan),
        rounds=prepared.rounds,
        noise_multiplier=prepared.noise_multiplier,
        bits_per_silo=planned_bits(prepared.plan, size),
        gradient_error=gradient_error(algorithm, prepared),
        runs=True,
    )


def gradient_error(algorithm: Algorithm, prepared: Prepared) -> float | None:
    """Return the root mean squared error of a round's mean gradient, in clipping bounds.

    Args:
        algorithm: Of the run.
        prepared: Its facts.

    Returns:
        None where no gradient is seen: only the end of a run is, or votes to which a server adds the noise.
    """
    votes = prepared.problem.protection.trust is TrustModel.CENTRAL and any(
        measure.estimator.weighs == "parties" for step, _ in prepared.plan.kinds for measure in step.measures
    )
    return None if votes or shows_only_the_end(algorithm) else prepared.problem.noise_std / prepared.clip


def planned_bits(plan: Plan, size: int) -> float:
    """Return the bits that a silo of that many units sends in a whole run, messages with their headers.

    Args:
        plan: Of the run.
        size: Units of the silo.
    """
    return math.fsum(
        count * measure.estimator.bits_per_party(step.batch.size_for(size))
        for step, count in plan.kinds
        for measure in step.measures
    )


def _check(convexity: Convexity, mu: float) -> None:
    """Refuse constants that do not go with the class."""
    check_choice("convexity", convexity, CONVEXITIES)
    check_non_negative("mu", mu)
    if (mu > 0) != (convexity in ("strongly-convex", "prox-pl")):
        raise ParameterError(
            "mu must be > 0 exactly for strongly-convex and prox-pl objectives, got "
            f"{mu!r} with convexity={convexity!r}."
        )


def _unmet(algorithm: Algorithm, convexity: Convexity, mu: float) -> str:
    """Return which class of objectives an algorithm's bound would need; empty where it has it."""
    if not isinstance(algorithm, Method) or algorithm.needs in _HOLDS[convexity]:
        return ""
    if algorithm.needs == "strongly-convex" and mu == 0:
        return "it needs strong convexity, and none was given."
    return f"its bound needs a {algorithm.needs} objective, and this one is {convexity}."


def _left_out(settings: Settings) -> str:
    """Return what the bound of the settings' algorithm leaves out, as a clause."""
    algorithm = settings.algorithm
    if not isinstance(algorithm, Method):
        return ""
    smooth = algorithm.composite or not penalised(settings.regularizer)
    return "; ".join(filter(None, (algorithm.caveat, "" if smooth else "its bound is without the penalty")))


def _variants(
    algorithm: Algorithm, sizes: Sequence[int], *, mu: float, lengths: Sequence[int]
) -> Iterator[Algorithm]:
    """Return the algorithm with what is left to choose: strong convexity counted on or not, one pass or more.

    What an algorithm does not have is not set; an option that it refuses is its own error.
    """
    if not isinstance(algorithm, Method):
        yield algorithm
        return
    fields = algorithm.__struct_fields__
    convex = [algorithm]
    if mu > 0 and "mu" in fields:
        counted = msgspec.structs.replace(algorithm, mu=mu)
        convex = [counted] if algorithm.needs in ("strongly-convex", "prox-pl") else [algorithm, counted]
    if not lengths or "batch" not in fields:
        yield from convex
        return
    fewest = min(sizes)
    asked = lengths if algorithm.rounds is None else [algorithm.rounds]
    for one in convex:
        for rounds in asked:
            if rounds > fewest:
                raise ParameterError(
                    f"rounds must be at most the {fewest} units of the smallest silo in one pass, got "
                    f"{rounds}."
                )
            batch = Disjoint(size=fewest // rounds)
            yield msgspec.structs.replace(one, rounds=rounds, batch=batch)


def _pass_rounds(settings: Settings, sizes: Sequence[int]) -> list[int]:
    """Return the numbers of batches that one pass is tried with: a grid, and those of the tuning rules."""
    n, found = sum(sizes), set(_PASS_ROUNDS)
    if settings.budget is not None and settings.budget.delta > 0:
        trust = settings.trust or TrustModel.CENTRAL
        noises = noises_of(trust, parties=len(sizes), honest=honest_silos(settings, len(sizes)))
        level = 1 / (calibrate(Gaussian, settings.budget) * math.sqrt(noises))
        dim = settings.objective.size
        found.add(n // min(plain_batch(dim=dim, level=level), n))
        if math.isfinite(settings.smoothness) and math.isfinite(settings.radius):
            batch = accelerated_batch(
                n=n,
                dim=dim,
                level=level,
                smoothness=settings.smoothness,
                lipschitz=settings.radius,
                diameter=settings.diameter,
            )
            found.add(n // round(batch))
    return sorted(rounds for rounds in found if rounds <= min(sizes))


def _prepared(settings: Settings, sizes: Sequence[int], max_bits: float) -> tuple[Algorithm, Prepared]:
    """Return the run, with as many of its rounds as the bits are enough for.

    Raises:
        ParameterError: The bits are not enough for one round, or for the rounds that were asked for.
    """
    prepared = prepare(settings, sizes)
    bits = planned_bits(prepared.plan, max(sizes))
    if bits <= max_bits:
        return settings.algorithm, prepared
    fitting = math.floor(prepared.rounds * max_bits / bits)
    if settings.algorithm.rounds is not None or fitting < 1 or not isinstance(settings.algorithm, Method):
        raise ParameterError(
            f"it sends {bits:,.0f} bits a silo in {prepared.rounds} rounds, more than {max_bits:,.0f}."
        )
    fewer = msgspec.structs.replace(settings.algorithm, rounds=fitting)
    return _prepared(replace(settings, algorithm=fewer), sizes, max_bits)


def _is_one_pass(plan: Plan) -> bool:
    """Return whether every record stands in one batch only: then batches are fresh samples of their law."""
    return all(
        isinstance(step.batch, Disjoint)
        and step.batch.once
        and not (isinstance(step, CorrelatedStep) and step.passes > 1)
        for step, _ in plan.kinds
    )


def _as_excess(prediction: Prediction, convexity: Convexity, mu: float) -> Prediction:
    """Return the bound in the quantity that the class is compared by: of non-convex objectives, gradients.

    F - F* <= |grad F|^2 / (2 mu) under the Polyak-Lojasiewicz inequality, as which strong convexity implies
    (Karimi, Nutini and Schmidt 2016).
    """
    if prediction.bounded == "excess" or convexity == "non-convex" or not prediction.runs:
        return prediction
    if mu > 0:
        return replace(prediction, bound=prediction.bound / (2 * mu), bounded="excess")
    return replace(
        prediction,
        reason="it bounds the squared gradient, from which no excess follows without strong convexity.",
    )
