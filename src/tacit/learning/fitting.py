"""What the estimators share: one training run with a person's parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from tacit.errors import ParameterError, check_choice, check_count
from tacit.federation import Participation, Weights
from tacit.learning.algorithms import (
    ALGORITHMS,
    Algorithm,
    Method,
    ObjectivePerturbation,
    algorithm_name,
    make_algorithm,
    traits_of,
)
from tacit.learning.algorithms.named import check_noise_kind, protected, shows_only_the_end
from tacit.learning.choosing import choose_algorithm, choose_for_any_clip
from tacit.learning.clipping import AutoClip, read_clip
from tacit.learning.defaults import AUTO, Choice, clip_share, noises_of
from tacit.learning.linear import LinearObjective
from tacit.learning.objective import Grouped, Objective
from tacit.learning.public_objective import PublicObjective
from tacit.learning.quorum import honest_silos
from tacit.learning.raw_features import RawFeatures, within_ball
from tacit.learning.regularization import Regularization
from tacit.learning.settings import ALONE, NAMED, Sampling, Settings
from tacit.learning.silo_units import silo_units
from tacit.learning.spending import fits_of_this_process
from tacit.learning.task import Task, warned_clause
from tacit.learning.training import Trained, silos_for, train
from tacit.ledger import Accounts, new_run, place_of
from tacit.means import LARGEST_RADIUS, SMALLEST_RADIUS, MomentBound, balanced_clip
from tacit.numerics import Array
from tacit.privacy import (
    Gaussian,
    Guarantee,
    Neighbours,
    PrivacyBudget,
    Relation,
    TrustModel,
    Unit,
    calibrate,
)
from tacit.privacy.run_clauses import clauses_of_ids, clauses_of_public
from tacit.privacy.weak import warn_of_weak

__all__ = [
    "Request",
    "Trust",
    "clipping_bound",
    "stated_clip",
    "with_notes",
]

Trust = Literal["local", "aggregate", "shuffle", "central", "none"]

_NAMELESS = ObjectivePerturbation(pure=True)
"""Stands for an algorithm that is yet to be chosen: no budget is refused because of it."""

_UNCLIPPED = 1e6
"""A radius that gradients of rows in the unit ball and of targets in [-1, 1] stay below."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The parameters that every estimator has, checked.

    Attributes:
        trust: "local", "aggregate", "shuffle", "central" or "none".
        budget: What may be spent; None trains without privacy.
        algorithm: "auto", a name of `ALGORITHMS`, or an `Algorithm`.
        rounds: Number of rounds, or "auto".
        clip: Clipping bound of a unit's gradient; None takes the default, "auto" or an `AutoClip` has a first
            round choose it.
        noise: "auto", "gaussian" or "discrete-gaussian".
        random_state: Seed of a simulation, or None.
        regularization: Penalties and the domain of the parameters.
        neighbours: "replace-one", "add-remove" or "zero-out".
        sampling: How batches of a fixed number of units are drawn, as in `Settings`.
        weights: How silos count.
        participation: Which silos take part in a round; None is everybody.
        n_min: As in `Settings`.
        colluding: As in `Settings`.
        recover: As in `Settings`.
        run: Name of the run in ledgers.
        moment: What is stated of the gradients of a task of raw features; None for all others. Parameters
            then stay in a ball, by default of radius 5.
    """

    trust: str
    budget: PrivacyBudget | None
    algorithm: str | Algorithm
    rounds: int | str
    clip: float | str | AutoClip | None
    noise: str
    random_state: Any
    regularization: Regularization = field(default_factory=Regularization)
    neighbours: str = Relation.REPLACE_ONE
    sampling: Sampling = "given"
    weights: Weights = "records"
    participation: Participation | None = None
    n_min: int | None = None
    colluding: int = 0
    recover: bool = False
    run: str = "run"
    moment: MomentBound | None = None

    def __post_init__(self) -> None:
        if self.moment is not None:
            object.__setattr__(self, "regularization", within_ball(self.regularization))
        check_choice("trust", self.trust, get_args(Trust))
        check_choice("noise", self.noise, ["auto", "gaussian", "discrete-gaussian"])
        check_choice("neighbours", self.neighbours, Relation)
        if self.budget is not None and not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(f"budget must be a PrivacyBudget or None, got {self.budget!r}.")
        if self.trust == "none" and self.budget is not None:
            raise ParameterError(
                "a budget needs trust 'local', 'aggregate', 'shuffle' or 'central', got trust='none'."
            )
        if self.trust == "aggregate" and self.budget is None:
            raise ParameterError(f"trust 'aggregate' needs a budget: {ALONE}.")
        if self.rounds != "auto":
            check_count("rounds", self.rounds)  # type: ignore[arg-type]  # a string is refused there
        _ = read_clip(self.clip)
        if isinstance(self.algorithm, str):
            check_choice("algorithm", self.algorithm, [AUTO, *ALGORITHMS])
        elif not isinstance(self.algorithm, Algorithm):
            raise ParameterError(
                f"algorithm must be a name or an Algorithm, got {self.algorithm!r}, which lacks "
                f"{_lacking(self.algorithm)}."
            )
        elif self.rounds != "auto":
            raise ParameterError("rounds must be 'auto' where `algorithm` is an object: it has its own.")

    @property
    def relation(self) -> Relation:
        """What neighbours differ in."""
        return Relation(self.neighbours)

    @property
    def private(self) -> bool:
        """Whether anything is claimed."""
        return self.budget is not None

    def train(
        self, task: Task, X: Array, y: Array, *, silos: Any, persons: Any, ledger: Any = None
    ) -> tuple[Trained, list[str]]:
        """Train silo by silo.

        Args:
            task: What is fitted.
            X: Features, shape (n, d).
            y: Shape (n,): positions of classes, or for a regression what its loss is of.
            silos: Silo of each record, shape (n,); None: all of them are in one silo.
            persons: Person of each record, shape (n,); None where a record is the unit.
            ledger: A `Ledger`, or the path of one or of a folder of them; None keeps no account, and warns
                from the second private fit on the same records on.

        Returns:
            The run, and clauses that the statement must contain.

        Raises:
            DataError: `silos` or `persons` has another shape.
            ParameterError: The parameters do not fit the data.
            BudgetError: The ledger has less left; nothing was spent.
            LedgerError: The ledger is of other neighbours or silos, or cannot be used.
        """
        self.check_noise()
        place = self.place(ledger)
        names, units = silo_units(task.features(X), y, silos=silos, persons=persons)
        unit = protected(self.algorithm, persons=persons is not None)
        if unit is Unit.PARTY:
            units = [one if isinstance(one, Grouped) else Grouped.whole(one) for one in units]
        seed, noise, notes = self.randomness()
        if persons is not None and len(names) > 1:
            notes.append("no person has records in two silos")
        if self.private:
            notes.extend(clauses_of_ids(Neighbours(self.relation, unit)))
        sizes = [len(one) for one in units]
        settings = replace(self, run=new_run("fit")).settings(task, unit=unit, noise=noise, sizes=sizes)
        if self.private:
            sample = task.sample is not None
            notes.extend(clauses_of_public(sample=sample, trained_with=settings.trained_with))
        if self.budget is not None:
            most = max(sizes) if self.trust == "local" else sum(sizes)
            warn_of_weak(self.budget.epsilon, self.budget.delta, units=most, unit=unit, stacklevel=4)
        if place is not None:
            own = settings.silos_pay
            with Accounts.open(place, names if own else ()) as accounts:
                federation = silos_for(
                    settings,
                    units,
                    names=names,
                    ledgers=accounts.silos if own else None,
                    ledger=None if own else accounts.central,
                    data_ledger=accounts.data,
                )
                return train(federation, settings), notes

        def begin(_rounds: int) -> None:
            # Only here is everything checked and nothing asked yet. A seed makes a simulation of a run, which
            # protects nobody: there is nothing to add up.
            if self.budget is not None and seed is None:
                fits_of_this_process.warn(X, self.budget, stacklevel=5)

        return train(silos_for(settings, units, names=names, seed=seed), settings, begin=begin), notes

    def check_noise(self) -> None:
        """Refuse to name a noise where there is but one kind."""
        check_noise_kind(self.noise, self.trust, self.algorithm)

    def place(self, ledger: Any) -> Path | None:
        """Return where the ledger lies that a run is charged to."""
        if ledger is None:
            return None
        if self.random_state is not None:
            raise ParameterError(
                "random_state and ledger exclude each other: seeded noise protects nobody; leave one of them "
                "out."
            )
        if not self.private:
            raise ParameterError(
                "ledger needs a budget: what is trained without privacy has no price to charge."
            )
        return place_of(ledger)

    def settings(self, task: Task, *, unit: Unit, noise: str, sizes: Sequence[int]) -> Settings:
        """Return everything about the run that is not data.

        Args:
            task: What is fitted.
            unit: What is protected.
            noise: A name in `NOISES`.
            sizes: Public number of units of each silo.
        """
        objective, (clip, auto) = task.objective, read_clip(self.clip)
        if auto is not None and self.moment is not None:
            auto = auto.around(self.moment.for_ball("l2", dim=objective.size).value)
        if (self.moment is None) == isinstance(task.features, RawFeatures):
            raise ParameterError("a moment must be stated for features without bounds, and for no others.")
        bare = Settings(
            objective=objective,
            algorithm=_NAMELESS,
            trust=self._trusted,
            budget=self.budget,
            relation=self.relation,
            sampling=self.sampling,
            unit=unit,
            clip=1.0,
            auto_clip=auto,
            diameter=min(task.diameter, self.regularization.diameter or math.inf),
            regularizer=task.regularizer(self.regularization),
            noise=noise,
            weights=self.weights,
            participation=self.participation,
            n_min=self.n_min,
            colluding=self.colluding,
            recover=self.recover,
            run=self.run,
            start=task.start,
            moment=self.moment,
        )
        bare = replace(bare, clip=self._clip(bare, clip, sizes, share=1.0))
        choice = self._choice(task, bare, sizes)
        share = choice.share if auto is not None else self._share(objective, choice)
        traits = traits_of(choice.algorithm)
        itself = traits.chooses_clip and auto is None
        public = task.public if traits.needs_public or traits.takes_public else None
        if task.sample is not None and task.features.law and not _uses(public, choice.algorithm):
            raise ParameterError(
                "public must be left out for images, whose pixels are scaled by their bounds alone: the "
                f"algorithm {algorithm_name(choice.algorithm)!r} has no other use of "
                f"{'public records' if task.public else 'public records without labels'}."
            )
        shorter = _shorter(choice.algorithm, public) if self.private and clip is None else math.inf
        clip = self._clip(bare, clip, sizes, share=share, itself=itself)
        return replace(
            bare,
            algorithm=choice.algorithm,
            reason=choice.reason,
            clip=None if clip is None else min(clip, shorter),
            public=public,
        )

    def _clip(
        self,
        settings: Settings,
        clip: float | None,
        sizes: Sequence[int],
        *,
        share: float | None,
        itself: bool = False,
    ) -> float | None:
        """Return the clipping bound of the run; None where the algorithm finds it itself, from the moment."""
        if self.moment is None:
            return clipping_bound(clip, settings.objective, share=share)
        return clip if clip is not None or itself else stated_clip(settings, sizes)

    @property
    def _trusted(self) -> TrustModel | None:
        """Who is trusted; None where nothing is claimed."""
        return TrustModel(self.trust) if self.private else None

    def _choice(self, task: Task, bare: Settings, sizes: Sequence[int]) -> Choice:
        """Return the algorithm, and how short gradients are clipped."""
        rounds = self.rounds if isinstance(self.rounds, int) else None
        if self.algorithm == AUTO and bare.auto_clip is not None:
            return choose_for_any_clip(bare, rounds=rounds)
        if self.algorithm == AUTO:
            return choose_algorithm(
                bare, sizes, rounds=rounds, gram=task.gram, labelled=task.public is not None
            )
        algorithm = self.algorithm
        if isinstance(algorithm, str):
            algorithm = make_algorithm(algorithm, rounds=rounds)
        if isinstance(algorithm, Method) and task.gram is not None:
            algorithm = algorithm.with_gram(task.gram)
        return Choice(algorithm=algorithm, share=clip_share(algorithm), reason=NAMED)

    def _share(self, objective: Objective, choice: Choice) -> float | None:
        """Return the share of the Lipschitz constant that gradients are clipped to; None without noise."""
        if not self.private:
            return None
        whole = isinstance(objective, LinearObjective) and objective.loss.clips_to_another
        return 1.0 if whole else choice.share

    def randomness(self) -> tuple[int | None, str, list[str]]:
        """Return the seed, the kind of noise, and what the statement must say about it."""
        if self.random_state is not None:
            from sklearn.utils import check_random_state

            seed = int(check_random_state(self.random_state).randint(2**31))
            return seed, "gaussian" if self.noise == "auto" else self.noise, []
        if self.noise == "gaussian" and self.private:
            # The guarantee says so by itself.
            warned_clause("continuous noise leaks through floating point", "noise='discrete-gaussian'")
        exact = not shows_only_the_end(self.algorithm)
        auto = "discrete-gaussian" if exact else "gaussian"
        return None, auto if self.noise == "auto" else self.noise, []


def _shorter(algorithm: Algorithm, public: PublicObjective | None) -> float:
    """Return the clip that public records say, which is free; infinite where they say none."""
    said = algorithm.clip_of_public(public) if isinstance(algorithm, Method) and public is not None else None
    return math.inf if said is None else max(said, SMALLEST_RADIUS)


def _lacking(algorithm: object) -> str:
    """Return the members of an `Algorithm` that are not there."""
    return ", ".join(m for m in vars(Algorithm) if not m.startswith("_") and not hasattr(algorithm, m))


def _uses(public: PublicObjective | None, algorithm: Algorithm) -> bool:
    """Return whether a run has use of public records besides how they scale features."""
    return public is not None or getattr(algorithm, "preconditioner", None) is not None


def clipping_bound(clip: float | None, objective: Objective, *, share: float | None) -> float:
    """Return the clipping bound, the norm that a unit's gradient is clipped to.

    Args:
        clip: What a person asked for; None takes the default.
        objective: Its rows have norm at most 1, and the targets of a regression are in [-1, 1].
        share: Of the Lipschitz constant, or of 1 where there is none; None without noise.

    Returns:
        `clip`; else with noise that share, and without noise a radius that no gradient reaches.
    """
    if clip is not None:
        return clip
    if share is None:
        return _UNCLIPPED
    return share * (objective.lipschitz if math.isfinite(objective.lipschitz) else 1.0)


def stated_clip(settings: Settings, sizes: Sequence[int]) -> float:
    """Return the clipping bound for which bias and noise are the least together, as a moment bounds them.

    All rounds that share a budget are together about one mean with all of it: the noise of their average is
    that of one such mean, and their bias does not average out.

    Args:
        settings: Of the run, with a moment; nothing is clipped without a budget.
        sizes: Public number of units of each silo.
    """
    moment, budget = settings.moment, settings.budget
    if moment is None or budget is None or settings.trust is None:
        return LARGEST_RADIUS
    noises = noises_of(settings.trust, parties=len(sizes), honest=honest_silos(settings, len(sizes)))
    # A pure budget is refused later, with what it needs.
    one = calibrate(Gaussian, budget) if budget.delta > 0 else 1.0
    clip = balanced_clip(
        moment,
        rows=sum(sizes),
        dim=settings.objective.size,
        noise_multiplier=one * math.sqrt(noises),
        sensitivity=2.0 if settings.relation is Relation.REPLACE_ONE else 1.0,
    )
    return min(max(clip, SMALLEST_RADIUS), LARGEST_RADIUS)


def with_notes(guarantees: list[Guarantee], notes: list[str]) -> list[Guarantee]:
    """Return guarantees that say what was done outside of them."""
    return [msgspec.structs.replace(g, assumptions=(*g.assumptions, *notes)) for g in guarantees]
