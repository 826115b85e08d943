"""What every algorithm is, and the public facts that its rounds and step sizes are made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Literal, Protocol, Self, runtime_checkable

import msgspec

from tacit.errors import (
    ParameterError,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.federation import AnyStatistic, Ask, Batch, Full, Kinds, Measure, Step
from tacit.learning.algorithms.protection import Protection
from tacit.learning.losses import Loss, loss_name
from tacit.learning.objective import Objective, RecordGradient
from tacit.learning.public_objective import PublicObjective
from tacit.means import AdditiveMean, Estimator, MomentBound
from tacit.numerics import Array, Regularizer, Zero, settle
from tacit.privacy import TrustModel, Unit

__all__ = [
    "GRADIENT",
    "UNMIXED",
    "Algorithm",
    "Bounded",
    "Convexity",
    "Follow",
    "Kinds",
    "MakeStatistic",
    "Method",
    "Problem",
    "check_optional",
    "check_strong_convexity",
    "counted_convexity",
    "needs_delta",
    "other_loss",
    "traits_of",
]

Follow = Callable[[int, Array], None]
"""Called after each round with its number and the current point; traces exist in simulation only."""

MakeStatistic = Callable[[Objective], AnyStatistic]
"""Makes a statistic of records for an objective, or of parties, where an algorithm protects these."""

Bounded = Literal["excess", "squared gradient"]
"""What a bound is of: the expected excess objective, or the expected squared norm of its gradient (of its
proximal gradient, where there is a regulariser)."""

Convexity = Literal["strongly-convex", "convex", "prox-pl", "non-convex"]
"""Classes of objectives; `prox-pl` are those that satisfy the proximal Polyak-Lojasiewicz inequality."""

_GUESSED_CONVEXITY = 1e-3
"""What is counted on where nobody knows any; no bound is proven then."""

UNMIXED = (TrustModel.LOCAL, TrustModel.CENTRAL)
"""Trust models of methods whose noise has no price behind a shuffler, and none in a sum of shares."""

GRADIENT: Mapping[str, MakeStatistic] = MappingProxyType({"gradient": RecordGradient})
"""What gradient methods ask of a record: the gradient of its loss at "w"."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The public facts that step sizes come from.

    Attributes:
        smoothness: beta of a record's loss, or of the mean loss where only a moment is known; infinite if
            unknown, and then step sizes must be given.
        radius: Norm bound L of a record's gradient.
        diameter: About the distance D from the start to a solution.
        dim: Number of parameters.
        variance: V^2, a bound on the expected squared norm of the error of one round's mean gradient: noise,
            sampling of records and of silos. For local steps, of one step in one silo.
        lipschitz: Norm bound of a record's gradient before clipping; infinite if there is none.
        protection: What goes on every mean.
        asked: The fewest silos that a round asks, at least 1.
        sizes: Public numbers of units that silos have, each once.
        features: Length of a record's features, where the model is linear in them; else 0.
        feature_norm: Norm bound of these; infinite if none is known.
        loss: Loss of a prediction, where the model is linear in its features.
        rows: Units of all silos.
        strong_convexity: That of the regulariser; the mean loss is not counted on for any.
        errors: What `variance` is of the gradient, of every mean that is asked, by its statistic.
        regularizer: Added to the objective; for methods whose silos apply it themselves.
        public: Public records with labels, which are trained on too; None without.
        moment: Of the gradient of a record's loss on the whole domain; None where none is stated.
    """

    smoothness: float
    radius: float
    diameter: float
    dim: int
    variance: float
    lipschitz: float = math.inf
    protection: Protection = Protection()  # noqa: RUF009 - immutable
    asked: int = 1
    sizes: tuple[int, ...] = (1,)
    features: int = 0
    feature_norm: float = math.inf
    loss: Loss | None = None
    rows: int = 1
    strong_convexity: float = 0.0
    errors: Mapping[str, float] = field(default_factory=dict)
    regularizer: Regularizer = field(default_factory=Zero, compare=False, repr=False)
    public: PublicObjective | None = field(default=None, compare=False, repr=False)
    moment: MomentBound | None = None

    @property
    def known_convexity(self) -> float:
        """Strong convexity of the objective that its regulariser gives, at most beta; 0 for none.

        Less than there is may be counted on, and no step asks for more than beta.
        """
        return min(self.strong_convexity, self.known_smoothness)

    @property
    def noise_std(self) -> float:
        """V."""
        return math.sqrt(self.variance)

    @property
    def known_smoothness(self) -> float:
        """beta, or an error where it is unknown and a step size would have to be made from it."""
        if not math.isfinite(self.smoothness):
            if self.loss is not None and not math.isfinite(self.loss.smoothness):
                raise ParameterError(
                    f"the loss must be smooth, and {loss_name(self.loss)!r} has a kink: give it a smoothing "
                    "> 0, or the algorithm its step size, or take the algorithm 'p-sgd', which needs no "
                    "smoothness."
                )
            cure = "give it a finite feature_norm, or" if self.features else "give"
            if self.moment is not None:
                cure = "a moment says it for the loss 'squared' only; for others give"
            raise ParameterError(
                f"the objective's smoothness is unknown: {cure} the algorithm its step size (and its "
                "smoothness, where it clips by it; in `tacit train`, --option step_size=0.5), or take one "
                "that has a step_size."
            )
        return self.smoothness

    @property
    def record_smoothness(self) -> float:
        """The smoothness of every record's loss; infinite if unknown.

        Raises:
            ParameterError: Only a moment is stated, which says nothing of single records.
        """
        if self.moment is not None and self.features and not math.isfinite(self.feature_norm):
            raise ParameterError(
                "the algorithm clips differences of gradients by the smoothness of every record's loss, of "
                "which a moment says nothing: give it one as an option, if it has it, or take another."
            )
        return self.smoothness

    def plain_step(self, steps: int) -> float:
        """Return min(1/beta, D / (V sqrt(steps))): of eta <= 1/beta, the least D^2/(eta steps) + eta V^2."""
        smooth = 1 / self.known_smoothness
        if self.variance == 0:
            return smooth
        return min(smooth, self.diameter / (self.noise_std * math.sqrt(steps)))

    def measure(
        self,
        statistic: str,
        make: Callable[..., Estimator] = AdditiveMean,
        *,
        dim: int | None = None,
        max_radius: float | None = None,
        share: float = 1.0,
        batch: Batch = Full(),  # noqa: B008 - immutable
        acute: bool = False,
    ) -> Measure:
        """Return a mean with the run's noise on it.

        Under shuffle trust, what would be an `AdditiveMean` is a `BinomialMean`; under aggregate trust, it is
        a `ModularSumMean`.

        Args:
            statistic: Name of what a unit contributes.
            make: The estimator; called with dim, noise, trust, neighbours and on_violation.
            dim: Number of coordinates of a row; None is that of the parameters.
            max_radius: Largest radius that a round names; None is that of gradients.
            share: Of the budget of a step whose means share it, in (0, 1]; noise is 1 / sqrt(share) as large,
                so that Gaussian means whose shares add up to 1 cost what one mean costs.
            batch: That of its step: under shuffle trust, noise is added by every unit in it.
            acute: Whether no two rows are at more than a right angle, of sums of rows; see `AdditiveMean`.

        Raises:
            ParameterError: A share that is not in (0, 1], or no radius of gradients is known.
        """
        protection, share = self.protection, check_probability("share", share, low_open=True)
        if max_radius is None and self.moment is not None and not math.isfinite(self.radius):
            raise ParameterError(
                "the algorithm needs a clip: nothing bounds gradients but a moment, by which only methods "
                "such as 'clipped-ac-sa' choose where to clip."
            )
        size = self.dim if dim is None else dim
        estimator: Estimator
        if protection.trust is TrustModel.SHUFFLE and make is AdditiveMean:
            estimator = protection.shuffled(size, share, batch)
        elif protection.trust is TrustModel.AGGREGATE and make is AdditiveMean:
            estimator = protection.summed(size, share, acute=acute)
        else:
            estimator = make(
                **({"acute": True} if acute else {}),
                dim=size,
                noise=protection.noise_for(share),
                trust=protection.trust,
                neighbours=protection.neighbours,
                on_violation="clip",  # the algorithm's own clipping of rows, with noise and without
            )
        return Measure(
            statistic=statistic,
            estimator=estimator,
            max_radius=self.radius if max_radius is None else max_radius,
        )

    def gradients(self, rounds: int, batch: Batch) -> Kinds:
        """Return the rounds of methods that ask for one mean gradient in each, of such batches."""
        return ((Step(measures=(self.measure("gradient", batch=batch),), batch=batch), rounds),)


@runtime_checkable
class Algorithm(Protocol):
    """A method with its parameters; frozen, public, and the same with and without privacy."""

    @property
    def rounds(self) -> int | None:
        """Number of rounds; None is chosen by `error_bound`."""
        ...

    @property
    def trusts(self) -> tuple[TrustModel, ...]:
        """Who may be trusted with messages."""
        ...

    @property
    def statistics(self) -> Mapping[str, MakeStatistic]:
        """What is asked of units, by name, made for an objective."""
        ...

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Return the kinds of rounds, each with how often it is asked, in order: everything that is asked.

        It is called for several numbers of rounds and several amounts of noise, to choose and to price them.
        """
        ...

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound on the expected excess objective that the choice of `rounds` is made by.

        It holds for convex, smooth objectives whose gradients are not clipped, without regulariser.
        """
        ...

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse a problem that the method cannot run on; called before anything is asked or spent."""
        ...

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the parameters."""
        ...


class Method(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="algorithm"):
    """What the library's algorithms share; one of your own may inherit from it, with a tag for its name.

    Attributes:
        rounds: R; None chooses it.
    """

    rounds: int | None = None

    paper: ClassVar[str] = ""
    trusts: ClassVar[tuple[TrustModel, ...]] = (
        TrustModel.LOCAL,
        TrustModel.AGGREGATE,
        TrustModel.SHUFFLE,
        TrustModel.CENTRAL,
    )
    why_no_sums: ClassVar[str] = ""
    """Why it does not run under aggregate trust, as a clause; empty where it does."""
    statistics: ClassVar[Mapping[str, MakeStatistic]] = GRADIENT
    clip_share: ClassVar[float] = 0.3
    """Where no clip is given, gradients are clipped to that share of their Lipschitz constant: noise falls
    with it, and few gradients are longer."""
    chooses_clip: ClassVar[bool] = False
    """Whether it finds by itself where to clip gradients of which a moment is stated."""
    bounds: ClassVar[Bounded] = "excess"
    """What `error_bound` bounds, where it is finite."""
    needs: ClassVar[Convexity] = "convex"
    """The weakest class of objectives that its bound holds for."""
    caveat: ClassVar[str] = ""
    """What its bound leaves out, as a clause; empty where it leaves out nothing."""
    unbounded: ClassVar[str] = "no bound on its error is known"
    """Why `error_bound` is infinite, as a clause."""
    needs_public: ClassVar[bool] = False
    """Whether it trains on public records with labels, `Problem.public`, and cannot without."""
    takes_public: ClassVar[bool] = False
    """Whether it trains on them where there are any, and runs without too."""
    round_choices: ClassVar[tuple[int, ...]] = (10, 20, 40, 80, 160, 320)
    """Numbers of rounds that are chosen from, where none is given."""
    hidden: ClassVar[bool] = False
    """Whether only where silos end is seen, with continuous noise, so that there is no trace of a run."""
    own_noise: ClassVar[str] = ""
    """What its noise is, continuous, whatever other noise is named, as a clause; empty where one can be."""
    counted: ClassVar[bool] = False
    """Whether its messages can be counted, so that samples of records have a fixed size."""
    unit: ClassVar[Unit | None] = None
    """What it protects where that can be one thing only, such as whole parties; None leaves it to whoever
    trains. Its statistics are then of such units, and silos answer for them where it is what is trained."""
    personal: ClassVar[str] = ""
    """The stateful statistic that keeps a party's own model, with a one behind it; empty without."""
    composite: ClassVar[bool] = False
    """Whether its bound holds with a convex penalty or constraint on top of a smooth objective as well."""

    @property
    def pure_noise(self) -> bool:
        """Whether its noise has a pure epsilon, at delta = 0."""
        return False

    def __post_init__(self) -> None:
        if self.rounds is not None:  # first: it says better what is wrong
            check_count("rounds", self.rounds)
        settle(self)

    def why_no_regularizer(self, objective: Objective) -> str:  # noqa: ARG002 - as some methods use it
        """Return why it takes no penalty and no domain for an objective, as a clause; empty where it does.

        What takes one finds, without noise, the minimum of the mean loss and the penalties on the domain.
        """
        return ""

    def turns(self, problem: Problem, rounds: int) -> tuple[int, ...]:  # noqa: ARG002 - for those that have
        """Return the first rounds of turns whose rounds must ask the same silos; none: each draws its own."""
        return ()

    def clip_of_public(self, public: PublicObjective) -> float | None:  # noqa: ARG002 - as some use it
        """Return the clip that public records say where none is given; None where they say none."""
        return None

    def with_gram(self, gram: Array) -> Self:  # noqa: ARG002 - as second-order methods use it
        """Return the method with a public Gram matrix of the features, where it has use for one."""
        return self


def traits_of(algorithm: Algorithm) -> Method | type[Method]:
    """Return what an algorithm says of itself; of one that is no `Method`, what `Method` says of all."""
    return algorithm if isinstance(algorithm, Method) else Method


def needs_delta(algorithm: Algorithm) -> bool:
    """Return whether no budget with delta = 0 can be met."""
    return not isinstance(algorithm, Method) or not algorithm.pure_noise


def other_loss(problem: Problem, *, needs: str, why: str = "") -> ParameterError:
    """Return the error for a loss that an algorithm is not for.

    Args:
        problem: Whose loss it is.
        needs: Who needs which, as the start of a sentence.
        why: The reason, as a clause.
    """
    reason = f": {why}" if why else ""
    return ParameterError(
        f"{needs}, got {loss_name(problem.loss)!r}{reason}; the algorithm 'auto' takes every loss."
    )


def check_optional(**positive: float | None) -> None:
    """Refuse what is given and not > 0."""
    for name, value in positive.items():
        if value is not None:
            check_positive(name, value)


def counted_convexity(mu: float | None, problem: Problem) -> float:
    """Return the strong convexity that a method counts on: a given one, the regulariser's, or 1e-3."""
    return mu or problem.known_convexity or _GUESSED_CONVEXITY


def check_strong_convexity(mu: float, smoothness: float) -> None:
    """Refuse mu outside [0, beta]: no function is more convex than smooth."""
    check_non_negative("mu", mu)
    if mu > smoothness:
        raise ParameterError(f"mu must be at most the smoothness {smoothness!r}, got {mu!r}.")
