"""Everything about a training run that is not data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from tacit.errors import ParameterError, check_choice, check_count, check_positive
from tacit.federation import Participation, Weights
from tacit.federation.participation import Everybody, check_participation
from tacit.learning.algorithms import Algorithm, NoisyMinibatchSGD, needs_delta
from tacit.learning.clipping import AutoClip
from tacit.learning.objective import Objective
from tacit.learning.public_objective import PublicObjective
from tacit.learning.raw_features import known_smoothness
from tacit.means import DiscreteGaussianNoise, GaussianNoise, MomentBound
from tacit.numerics import Array, Regularizer, Zero, as_floats, settle
from tacit.privacy import PrivacyBudget, Relation, TrustModel, Unit

__all__ = ["ALONE", "NAMED", "NOISES", "Sampling", "Settings"]

Sampling = Literal["given", "poisson", "cheapest"]
NAMED = "it was named."
"""The reason for an algorithm that a person chose."""

ALONE = "a sum alone protects nobody"
"""Why sums are never without noise: updates are recognised in them (Ngo et al. 2024)."""

_SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)

NOISES: dict[str, Callable[[float], GaussianNoise | DiscreteGaussianNoise]] = {
    "gaussian": GaussianNoise,
    "discrete-gaussian": DiscreteGaussianNoise,
}
"""Kinds of noise by name: continuous for simulation, discrete for deployment."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything about a training run that is not data. All of it is public.

    Attributes:
        objective: What is minimised.
        algorithm: How.
        trust: `local`, `aggregate`, `shuffle`, `central`, or None to train without privacy.
        budget: What each silo (each person's data, under central trust) may spend; needed with a trust model.
        relation: What neighbours differ in.
        unit: What is protected: a record, a person, or a whole party, by algorithms that say so.
        clip: Clipping bound: the norm that a unit's gradient is clipped to; None takes the objective's
            Lipschitz constant, and so does, with noise, what is above it. With a moment, None leaves it to
            methods that clip by the moment.
        auto_clip: How a first round chooses the clip; `clip` is then what is taken where that round shows
            only noise. None: `clip` it is.
        diameter: About the distance from the start to a solution, for step sizes.
        regularizer: Added to the objective on the server's side.
        noise: Kind of noise, a name in `NOISES`.
        sampling: How batches of a fixed number of units are drawn: as "given", as "poisson" samples with that
            expected number, or the "cheapest" of both by price and error bound.
        weights: How silos count: by their records, equally, or by given p_i.
        n_min: Silos below which a round is given up, >= 2, by the shuffler or, under aggregate trust, because
            no sum of fewer can be opened; None is as many as a round asks at least.
        colluding: Under shuffle and aggregate trust, how many silos may tell what they sent, so that their
            noise hides nobody; below `n_min`, under aggregate trust by 2 or more.
        roster: Under aggregate trust, the digest of the keys by which silos hide their messages in a sum;
            empty where one process adds them up.
        recover: Under aggregate trust, whether a sum of `n_min` silos can be opened where others are gone;
            else all silos must answer.
        participation: Which silos take part in a round; None is everybody.
        run: Name of the run in ledgers.
        reason: Why that algorithm, in one sentence.
        encoding: Fingerprint of the public map from records to rows, for the plan.
        start: First point, shape (size,), finite; None is zero. It must be made of public facts alone: then
            it costs nothing, as every later point does.
        public: Public records with labels that the run trains on beside the private ones; None for none.
        moment: A stated bound on a moment of a record's gradient, where none bounds the gradient itself. It
            has to hold in a ball of the diameter, in which the regulariser keeps parameters.
    """

    objective: Objective
    algorithm: Algorithm = field(default_factory=NoisyMinibatchSGD)
    trust: TrustModel | None = None
    budget: PrivacyBudget | None = None
    relation: Relation = Relation.REPLACE_ONE
    unit: Unit = Unit.RECORD
    clip: float | None = None
    auto_clip: AutoClip | None = None
    diameter: float = 10.0
    regularizer: Regularizer = field(default_factory=Zero)
    noise: str = "gaussian"
    sampling: Sampling = "given"
    weights: Weights = "records"
    n_min: int | None = None
    colluding: int = 0
    roster: str = ""
    recover: bool = False
    participation: Participation | None = None
    run: str = "run"
    reason: str = NAMED
    encoding: str = ""
    start: Array | None = field(default=None, compare=False, repr=False)
    public: PublicObjective | None = field(default=None, compare=False, repr=False)
    moment: MomentBound | None = None

    def __post_init__(self) -> None:
        settle(self)
        check_choice("noise", self.noise, NOISES)
        check_choice("sampling", self.sampling, _SAMPLINGS)
        check_positive("diameter", self.diameter)
        # With a moment, a method finds where to clip by itself, or says that it cannot.
        if self.clip is not None or self.moment is None:
            check_positive("clip", self.radius if self.clip is None else self.clip)
        if self.participation is not None:
            check_participation(self.participation)
        self._check_start()
        if self.trust is TrustModel.AGGREGATE and self.budget is None:
            raise ParameterError(f"aggregate trust needs a budget: {ALONE}.")
        if (self.trust is None) != (self.budget is None):
            raise ParameterError(
                f"trust and budget go together, got trust={self.trust!r} and budget={self.budget!r}."
            )
        # A plain string equals its member but is not it, and then nobody would add the noise.
        known = self.trust is None or type(self.trust) is TrustModel
        if not known:
            raise ParameterError(
                f"trust must be TrustModel.LOCAL, AGGREGATE, SHUFFLE or CENTRAL, got {self.trust!r}."
            )
        self._check_arrivals()
        self._check_shuffle()
        self._check_sums()
        if self.budget is None:
            return
        if not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(f"budget must be a PrivacyBudget, got {self.budget!r}.")
        if self.budget.delta == 0 and needs_delta(self.algorithm):
            raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0.")

    @property
    def trained_with(self) -> int:
        """Number of public records that the run trains on; statements must say it."""
        return 0 if self.public is None else len(self.public)

    def _check_start(self) -> None:
        """Refuse what is no point; what was given may change afterwards, and the run's own start may not."""
        if self.start is None:
            return
        point, size = np.array(as_floats("start", self.start), dtype=np.float64), self.objective.size
        if point.shape != (size,) or not np.isfinite(point).all():
            raise ParameterError(f"start must be {size} finite numbers, got shape {point.shape}.")
        point.flags.writeable = False
        object.__setattr__(self, "start", point)

    @property
    def first_point(self) -> Array:
        """Where the run starts, shape (size,)."""
        return np.zeros(self.objective.size) if self.start is None else self.start.copy()

    def _check_arrivals(self) -> None:
        """Refuse numbers of silos where nobody counts them, or of which none need be honest."""
        if self.n_min is not None:
            check_count("n_min", self.n_min, low=2)
        check_count("colluding", self.colluding, low=0)
        counted = self.trust in (TrustModel.SHUFFLE, TrustModel.AGGREGATE)
        if not counted and (self.n_min, self.colluding) != (None, 0):
            raise ParameterError(
                "n_min and colluding are for shuffle and aggregate trust, got "
                f"{self.n_min!r} and {self.colluding!r}."
            )
        if self.n_min is not None and self.colluding >= self.n_min:
            raise ParameterError(f"colluding must be below n_min ({self.n_min}), got {self.colluding}.")

    def _check_sums(self) -> None:
        """Refuse what has no meaning where only sums are seen, or only there."""
        if type(self.recover) is not bool:
            raise ParameterError(f"recover must be True or False, got {self.recover!r}.")
        if self.trust is not TrustModel.AGGREGATE:
            if self.recover or self.roster:
                given = f"recover={self.recover}" if self.recover else f"roster={self.roster!r}"
                where = "no" if self.trust is None else self.trust.value
                raise ParameterError(
                    f"roster and recover are for aggregate trust, got {given} with {where} trust."
                )
            return
        if not (self.participation is None or isinstance(self.participation, Everybody)):
            raise ParameterError(
                "participation must be that of everybody under aggregate trust, where every silo's noise is "
                f"a share of what hides the others, got {self.participation!r}."
            )
        if not (isinstance(self.weights, str) and self.weights == "records"):
            raise ParameterError(
                "weights must be 'records' under aggregate trust, where nobody knows whose rows are in a "
                f"sum, got {self.weights!r}."
            )

    def _check_shuffle(self) -> None:
        """Refuse what has no meaning behind a shuffler."""
        if self.trust is not TrustModel.SHUFFLE:
            return
        if self.relation is not Relation.REPLACE_ONE:
            raise ParameterError(
                "relation must be replace-one under shuffle trust, where messages can be counted, got "
                f"{self.relation.value}."
            )
        if self.sampling == "poisson":
            raise ParameterError("sampling must not be poisson under shuffle trust: messages can be counted.")

    @property
    def trusts_shuffler(self) -> bool:
        """Whether messages leave the silos that a shuffler has to hide."""
        return self.trust is TrustModel.SHUFFLE

    @property
    def silos_pay(self) -> bool:
        """Whether silos add the noise, so that the price is theirs."""
        return self.trust in (TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.AGGREGATE)

    @property
    def trusts_server(self) -> bool:
        """Whether sums leave the silos without noise of their own."""
        return not self.silos_pay

    @property
    def smoothness(self) -> float:
        """That of the mean loss, as a record's or the stated moment says; infinite where neither does."""
        return known_smoothness(self.objective, self.moment, diameter=self.diameter)

    @property
    def radius(self) -> float:
        """The radius of the ball that gradients are clipped to, which means are asked with.

        With noise it is no more than the Lipschitz constant: no gradient is longer, and the noise would be.
        """
        longest = self.objective.lipschitz
        if self.clip is None:
            return longest
        return self.clip if self.budget is None else min(self.clip, longest)
