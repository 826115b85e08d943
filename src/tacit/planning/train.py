"""Which algorithm for a training run: all of the registry, prepared and calibrated, by their own bounds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from tacit.errors import (
    ParameterError,
    TacitError,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
)
from tacit.learning import ALGORITHMS, LinearObjective, Logistic, Objective, Settings, make_algorithm
from tacit.learning.algorithms import Algorithm, Convexity, Method, algorithm_name
from tacit.learning.algorithms.named import protected
from tacit.learning.choosing import choose_algorithm
from tacit.learning.defaults import Choice, clip_share
from tacit.learning.distance import DistanceObjective
from tacit.learning.fitting import clipping_bound, stated_clip
from tacit.learning.linear import is_network
from tacit.learning.prediction import CONVEXITIES, Prediction, predict, run_price
from tacit.learning.regularization import Regularization
from tacit.learning.task import Task
from tacit.means import MomentBound
from tacit.means.problem import Trust
from tacit.numerics import ElasticNet
from tacit.planning.mean import PlanProgress
from tacit.planning.sco import ScoProblem
from tacit.privacy import PrivacyBudget, TrustModel, Unit

__all__ = ["TrainingProblem", "automatic_choice", "plan_training"]

_TRUSTS: Final = ("none", "central", "aggregate", "shuffle", "local")

_CONSTANTS: Final = ("step_size", "smoothness")
_UNKNOWN: Final = "it can run, but nothing is known of the smoothness of a network, on which bounds rest."


@dataclass(frozen=True, kw_only=True)
class TrainingProblem:
    """A training run known by its public facts.

    Without a constant, the objective is a logistic regression with features of norm at most 1 (L = 1, beta =
    1/4). With one of them, it is known by these constants alone.

    Attributes:
        silos: Number of silos, >= 1.
        records: In each of them, >= 1.
        dim: Number of parameters, >= 1.
        trust: Who is trusted; `none`: without privacy.
        budget: What the observer of that trust model may learn; None exactly for `none`.
        diameter: About the distance D from the start to a solution, > 0.
        lipschitz: Bound L on the norm of a record's gradient; None is 1.
        smoothness: Bound beta on how fast it changes; infinite for losses that are not smooth; None is L / 4.
        convexity: What is known of the objective.
        mu: Its strong convexity, or the constant of its proximal Polyak-Lojasiewicz inequality.
        rounds: Number of rounds; None lets each algorithm choose.
        one_pass: Whether every record is used once only, for a bound about the population.
        max_bits: Most bits that a silo may send in the whole run; None for no limit.
        n_min: Under shuffle trust, and under aggregate trust with `recover`, silos below which a round is
            given up; None is all of them.
        colluding: Under shuffle and aggregate trust, how many silos may tell what they sent.
        recover: Under aggregate trust, whether a round goes on without silos that are gone.
        l1: Strength of an L1 penalty on top of the objective, >= 0.
        l2: Strength of a squared L2 penalty on top, >= 0; methods that need strong convexity count on it.
        moment: Stated of gradients that nothing bounds, in place of L; beta is then that of the expected
            loss, None for 2 r / D, as squared losses have it. Methods without a clip of their own clip where
            bias and noise are the least together, and their bounds leave its bias out.
        task: The model, from public facts, with `dim` its number of parameters; it says all constants, and
            gradients are clipped as training does where nobody says where. None: the constants say all that
            is known.

    Raises:
        ParameterError: A value is out of its range, or two of them do not go together.
    """

    silos: int
    records: int
    dim: int
    trust: Trust = "local"
    budget: PrivacyBudget | None = None
    diameter: float = 10.0
    lipschitz: float | None = None
    smoothness: float | None = None
    convexity: Convexity = "convex"
    mu: float = 0.0
    rounds: int | None = None
    one_pass: bool = False
    max_bits: float | None = None
    n_min: int | None = None
    colluding: int = 0
    recover: bool = False
    l1: float = 0.0
    l2: float = 0.0
    moment: MomentBound | None = None
    task: Task | None = None

    def __post_init__(self) -> None:
        for name in ("silos", "records", "dim"):
            check_count(name, getattr(self, name))
        check_choice("trust", self.trust, _TRUSTS)
        check_choice("convexity", self.convexity, CONVEXITIES)
        if (self.trust == "none") != (self.budget is None):
            raise ParameterError("budget must be given exactly where somebody is to be protected.")
        for name in ("diameter", "lipschitz", "max_bits"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if self.smoothness not in (None, math.inf):
            check_positive("smoothness", self.smoothness)
        if self.moment is not None and self.lipschitz is not None:
            raise ParameterError(
                f"lipschitz must be left out where a moment is stated in its place, got {self.lipschitz!r}."
            )
        if (self.mu > 0) != (self.convexity in ("strongly-convex", "prox-pl")):
            raise ParameterError(
                "mu must be > 0 exactly for strongly-convex and prox-pl objectives, got "
                f"{self.mu!r} with convexity={self.convexity!r}."
            )
        self._check_task()
        if self.mu > self.beta:
            raise ParameterError(f"mu must be at most the smoothness {self.beta!r}, got {self.mu!r}.")
        if self.rounds is not None:
            check_count("rounds", self.rounds)
        check_non_negative("l1", self.l1)
        check_non_negative("l2", self.l2)
        self._check_arrivals()

    def _check_task(self) -> None:
        """Refuse facts that a model says by itself, or that are not those of the model."""
        if self.task is None:
            return
        for name in ("lipschitz", "smoothness", "moment"):
            given = getattr(self, name)
            if given is not None:
                told = f"{given.order:g}:{given.value:g}" if name == "moment" else repr(given)
                raise ParameterError(f"{name} must be left out with a model, which has its own, got {told}.")
        if self.dim != self.task.objective.size:
            raise ParameterError(
                f"dim must be the {self.task.objective.size} parameters of the model, got {self.dim}."
            )
        if self.is_network and self.one_pass:
            raise ParameterError("one_pass must be left out for a network, about which it promises nothing.")
        if self.is_network and self.convexity != "non-convex":
            raise ParameterError(f"convexity must be 'non-convex' for a network, got {self.convexity!r}.")

    @property
    def is_network(self) -> bool:
        """Whether the model is a network: of its smoothness, on which bounds rest, nothing is known."""
        return self.task is not None and is_network(self.task.objective)

    def _check_arrivals(self) -> None:
        """Refuse numbers of silos that cannot arrive or collude, or that nothing is mixed or added up of."""
        if self.recover and self.trust != "aggregate":
            raise ParameterError(f"recover is for trust 'aggregate', got {self.trust!r}.")
        if self.trust not in ("shuffle", "aggregate"):
            if (self.n_min, self.colluding) != (None, 0):
                raise ParameterError(
                    f"n_min and colluding are for trust 'shuffle' and 'aggregate', got {self.n_min!r} and "
                    f"{self.colluding!r} with {self.trust!r}."
                )
            return
        if self.n_min is not None:
            check_count("n_min", self.n_min, low=2, high=max(self.silos, 2))
        fewest = self.silos if self.n_min is None else self.n_min
        check_count("colluding", self.colluding, low=0, high=max(fewest - 1, 0))

    @property
    def length(self) -> float:
        """The Lipschitz constant that is used; with a moment, that of the expected loss."""
        if self.moment is not None:
            return self.moment.value
        if self.task is not None:
            return self.task.objective.lipschitz
        return 1.0 if self.lipschitz is None else self.lipschitz

    @property
    def beta(self) -> float:
        """The smoothness that is used."""
        if self.moment is not None and self.smoothness is None:
            return 2 * self.moment.value / self.diameter
        if self.task is not None:
            return self.task.objective.smoothness
        return self.length / 4 if self.smoothness is None else self.smoothness

    @property
    def sizes(self) -> tuple[int, ...]:
        """Records of each silo."""
        return (self.records,) * self.silos

    @property
    def start(self) -> float:
        """Bound on the excess of the start: what a run is worth nothing above."""
        return self.diameter * min(self.length, self.beta * self.diameter / 2)

    @property
    def one_record_each(self) -> ScoProblem | None:
        """The same problem with one record a party behind a shuffler; None where it is another."""
        convex = self.convexity in ("convex", "strongly-convex") and self.l1 == self.l2 == 0
        convex = convex and math.isfinite(self.length)
        everybody = self.colluding == 0 and self.n_min in (None, self.silos)
        if self.trust != "shuffle" or self.budget is None or self.budget.delta == 0 or self.moment:
            return None
        if not (convex and everybody and sum(self.sizes) >= 4):
            return None
        return ScoProblem(
            n=sum(self.sizes),
            dim=self.dim,
            budget=self.budget,
            lipschitz=self.length,
            diameter=self.diameter,
            smoothness=self.beta,
            mu=self.mu,
            interactivity="sequential" if self.one_pass else "full",
        )

    @property
    def objective(self) -> Objective:
        """A public objective of these facts."""
        if self.task is not None:
            return self.task.objective
        if self.moment is not None:
            return DistanceObjective(size=self.dim, lipschitz=math.inf, smoothness=self.beta)
        if self.lipschitz is None and self.smoothness is None and self.convexity == "convex":
            return LinearObjective(loss=Logistic(), features=self.dim, feature_norm=1.0)
        return DistanceObjective(size=self.dim, lipschitz=self.length, smoothness=self.beta)


def plan_training(
    problem: TrainingProblem, *, names: Sequence[str] | None = None, progress: PlanProgress | None = None
) -> tuple[Prediction, ...]:
    """Rank the algorithms for a training run by the bounds on their error.

    Every algorithm is prepared as for training: its rounds are chosen, its noise is calibrated to the budget
    by numerical accounting, and its own `error_bound` says how far it gets. Bounds are loose, some more than
    others: what ranks higher is promised more, and need not do better on given data.

    Args:
        problem: What is asked.
        names: Of the algorithms; None takes all that there are.
        progress: Is told how far the plan has come; None for nobody.

    Returns:
        One prediction an algorithm: first those that are valid, the least bound first, of one kind of bound
        after the other; then those that run without a bound; then the others, each with its reason.

    Example:
        >>> from tacit.planning import TrainingProblem, plan_training
        >>> from tacit.privacy import PrivacyBudget
        >>> problem = TrainingProblem(
        ...     silos=25, records=347, dim=50, trust="central", budget=PrivacyBudget(1.0, 1e-6)
        ... )
        >>> best, *_ = plan_training(problem, names=["minibatch", "accelerated", "ftrl"])
        >>> best.name, f"{best.bound:.2g}"
        ('minibatch', '0.14')

    Reference:
        Each algorithm by its own `error_bound`, which cites what it rests on.
    """
    chosen = list(ALGORITHMS if names is None else names)
    auto = automatic_choice(problem)
    found = []
    for done, name in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen), note=name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of runs that would take long: none is made here
            found.append(_predicted(problem, name, auto))
    return tuple(sorted(found, key=_order))


def _order(one: Prediction) -> tuple[bool, bool, bool, float, float, float, str]:
    """Return what predictions are sorted by."""
    excess = one.bounded == "excess" or not one.valid
    noisy = math.inf if one.gradient_error is None else one.gradient_error
    error = 0.0 if one.valid else noisy / math.sqrt(max(one.rounds, 1))
    return not one.valid, not one.runs, not excess, one.bound, error, one.bits_per_silo, one.name


def automatic_choice(problem: TrainingProblem) -> Choice | None:
    """Return what training takes for the model where no algorithm is named, and why.

    Args:
        problem: What is asked.

    Returns:
        None without a model, and where an algorithm has to be named.
    """
    if problem.task is None:
        return None
    try:
        bare = _settings(problem, make_algorithm("minibatch"), clip_share=1.0)
        return choose_algorithm(bare, problem.sizes, rounds=problem.rounds, gram=problem.task.gram)
    except TacitError:
        return None


def _settings(problem: TrainingProblem, algorithm: Algorithm, *, clip_share: float | None) -> Settings:
    """Return the settings of one run; a share of the Lipschitz constant is the clip of a model."""
    task = problem.task
    penalty = Regularization(l1=problem.l1, l2=problem.l2)
    share = None if problem.trust == "none" else clip_share
    clip = None if task is None else clipping_bound(None, task.objective, share=share)
    return Settings(
        objective=problem.objective,
        algorithm=algorithm,
        trust=None if problem.trust == "none" else TrustModel(problem.trust),
        budget=problem.budget,
        unit=protected(algorithm, persons=False),
        diameter=problem.diameter,
        regularizer=ElasticNet(l1=problem.l1, l2=problem.l2) if task is None else task.regularizer(penalty),
        n_min=problem.n_min,
        colluding=problem.colluding,
        recover=problem.recover,
        clip=clip if problem.moment is None else 1.0,
        start=None if task is None else task.start,
    )


def _predicted(problem: TrainingProblem, name: str, auto: Choice | None) -> Prediction:
    """Return what one algorithm promises; that it cannot be made or run is a reason."""
    algorithm: Algorithm = make_algorithm(name)
    try:
        algorithm, share = _chosen(problem, name, auto)
        settings = _settings(problem, algorithm, clip_share=share)
        itself = problem.moment is None or ALGORITHMS[name].chooses_clip
        if problem.moment is not None:
            settings = replace(settings, moment=problem.moment, clip=None)
        if not itself:
            settings = replace(settings, clip=stated_clip(settings, problem.sizes))
        found, caveat = _run(problem, settings), ""
        for assumed in _assumed(algorithm) if problem.is_network and not found.runs else ():
            # The price and the noise are the same for all step sizes.
            tried = _run(problem, replace(settings, algorithm=assumed))
            if tried.runs:
                names = (
                    name for name in _CONSTANTS if getattr(assumed, name, 0) != getattr(algorithm, name, 0)
                )
                found, caveat = replace(tried, algorithm=algorithm), f"give it {' and '.join(names)}"
                break
        caveat = caveat or found.caveat
        biased = "" if itself else "the bias of its clip is not in its bound"
        return replace(found, caveat="; ".join(filter(None, (caveat, biased))))
    except TacitError as error:
        return Prediction(name=name, algorithm=algorithm, bound=math.inf, bounded="excess", reason=str(error))


def _chosen(problem: TrainingProblem, name: str, auto: Choice | None) -> tuple[Algorithm, float]:
    """Return an algorithm as training would have it, and its share of the Lipschitz constant."""
    if auto is not None and algorithm_name(auto.algorithm) == name:
        return auto.algorithm, auto.share
    rounds = problem.rounds
    if rounds is None and auto is not None and problem.is_network:
        rounds = auto.algorithm.rounds  # no bound chooses them
    algorithm = make_algorithm(name, rounds=rounds)
    return algorithm, clip_share(algorithm)


def _assumed(algorithm: Algorithm) -> list[Algorithm]:
    """Return an algorithm with constants that no network says, which it may need: fewest first."""
    names = [name for name in _CONSTANTS if getattr(algorithm, name, 0.0) is None]
    if not isinstance(algorithm, Method):
        return []
    some = [names[:1], names[1:], names] if len(names) > 1 else [names]
    return [msgspec.structs.replace(algorithm, **dict.fromkeys(one, 1.0)) for one in some if one]


def _run(problem: TrainingProblem, settings: Settings) -> Prediction:
    """Return what a run promises; of a network, what it costs."""
    sizes = (1,) * problem.silos if settings.unit is Unit.PARTY else problem.sizes
    max_bits = math.inf if problem.max_bits is None else problem.max_bits
    if problem.is_network:
        return run_price(settings, sizes, reason=_UNKNOWN, max_bits=max_bits)
    return predict(
        settings,
        sizes,
        convexity=problem.convexity,
        mu=problem.mu,
        one_pass=problem.one_pass,
        max_bits=max_bits,
    )
