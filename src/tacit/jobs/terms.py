"""What a job means, without a record: who trains what, how, under which guarantee.

A silo that has records and a server that has none make the same terms of the same job and the same facts; so
the plan that one writes is the plan that the other expects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError
from tacit.federation import RandomSubset
from tacit.jobs.config import JobConfig
from tacit.jobs.facts import PublicFacts
from tacit.jobs.number_scores import FARTHEST
from tacit.jobs.scores import HeldOut, Scores, score_model
from tacit.learning.algorithms.named import shows_only_the_end
from tacit.learning.defaults import AUTO
from tacit.learning.fitting import Request
from tacit.learning.loss_choice import LossChoice
from tacit.learning.model import FittedModel
from tacit.learning.neural_task import NeuralTask
from tacit.learning.objective import Grouped, Records
from tacit.learning.public_objective import PublicObjective
from tacit.learning.regularization import Regularization
from tacit.learning.settings import Settings
from tacit.learning.task import LinearTask, bounded_features
from tacit.numerics import Array
from tacit.privacy import Guarantee, Neighbours, Part, PrivacyBudget, Relation, Unit
from tacit.privacy.run_clauses import clauses_of_run, clauses_of_start
from tacit.privacy.weak import warn_of_weak

__all__ = ["FEWEST_UNITS", "JobTerms"]

FEWEST_UNITS = 10
"""Below this many units in a silo, a delta of 1 / n^2 is no small probability."""

_TOGETHER: Final = ("aggregate", "shuffle")
"""Trust models under which silos hide each other."""
_WITH_OPTIONS: Final = "it takes batches, participants and the other options that were given."


@dataclass(frozen=True)
class JobTerms:
    """A job and the public facts of its records, checked against each other.

    Attributes:
        config: What to do, with the label and the person that a description of the columns names.
        facts: What is public of the records.

    Raises:
        ParameterError: The job does not fit the facts.
    """

    config: JobConfig
    facts: PublicFacts

    def __post_init__(self) -> None:
        if self.config.task == "regression" and self.facts.classes:
            raise ParameterError(
                f"task must be 'classification' for {self.config.source}, whose labels are classes, got "
                "'regression'."
            )
        blank = any(not str(one).strip() for one in self.facts.classes)
        if blank and self.config.neighbours == "zero-out" and not self.facts.public:
            raise ParameterError(
                "neighbours must be 'replace-one' where a class is a blank cell, got 'zero-out': whoever is "
                "blanked out must have no label, and count as zero."
            )
        self._check_numbers()
        _ = self.task

    @cached_property
    def task(self) -> LinearTask | NeuralTask:
        """The public shape of the model."""
        d, classifies = len(self.facts.feature_names), bool(self.facts.classes)
        loss = self.config.chosen_loss(classes=classifies)
        if self.config.stated is not None:
            return LinearTask.raw(d, loss=loss)
        lower, upper = np.full(d, self.facts.lower), np.full(d, self.facts.upper)
        return self.config.architecture.task(
            bounded_features(lower, upper, unit_rows=classifies, sample=self.facts.sample),
            classes=np.asarray(self.facts.classes) if classifies else None,
            target=self.facts.target,
            sample=self.facts.sample,
            loss=loss,
        )

    @property
    def loss(self) -> LossChoice:
        """What is minimised."""
        return self.task.chosen

    @property
    def trusts(self) -> tuple[str, ...]:
        """The trust models that are run: those of the job, of all only where silos can hide each other."""
        honest = len(self.facts.silo_names) - self.config.colluding
        few = {"aggregate": honest < 2, "shuffle": len(self.facts.silo_names) < 2}
        return tuple(
            one for one in self.config.trusts if self.config.trust != "all" or not few.get(one, False)
        )

    @property
    def delta(self) -> float:
        """The delta of the budget; for "auto" 1 / n^2, where the smallest silo trains on n protected units.

        Where whole parties are protected, n is their number.

        Raises:
            ParameterError: "auto" for a silo of so few units that 1 / n^2 would protect nobody, or where the
                sizes of silos are not shown.
        """
        if self.config.delta != "auto":
            return self.config.delta
        claims = self.trusts != ("none",) and not self.facts.public
        if claims and self.config.neighbours == "zero-out":
            raise ParameterError(
                "delta must be a number under zero-out, got 'auto': 1 / n^2 would show the size of a silo."
            )
        # Not records where persons are protected: how many a person has is private.
        parties = self.facts.unit is Unit.PARTY
        n = len(self.facts.sizes) if parties else min(self.facts.sizes)
        who = "there are" if parties else "a silo trains on"
        if n < FEWEST_UNITS and self.trusts != ("none",):
            raise ParameterError(
                f"delta must be a number where {who} fewer than {FEWEST_UNITS} units, got 'auto' and {n}: "
                "1 / n^2 would protect nobody."
            )
        return 1 / n**2

    def warn_of_weak(self) -> None:
        """Warn once of a budget that promises next to nothing; sizes may be hidden."""
        if self.trusts == ("none",):
            return
        sizes = self.facts.sizes
        hidden = self.config.neighbours == "zero-out" and not self.facts.public
        most = max(sizes) if self.trusts == ("local",) else sum(sizes)
        warn_of_weak(
            self.config.epsilon,
            self.delta,
            units=None if hidden else most,
            unit=self.neighbours.unit,
            stacklevel=4,
        )

    def _check_numbers(self) -> None:
        """Refuse more silos or units than there are, by the names that a job has for them."""
        silos, asked = len(self.facts.silo_names), self.config.participants
        if asked is not None and asked > silos:
            raise ParameterError(f"participants must be at most the {silos} silos of the data, got {asked}.")
        batch, fewest = self.config.batch, min(self.facts.sizes)
        if isinstance(batch, int) and batch > fewest:
            hidden = self.config.neighbours == "zero-out" and not self.facts.public
            most = "the units" if hidden else f"the {fewest} units"
            raise ParameterError(f"batch must be at most {most} of the smallest silo, got {batch}.")

    @property
    def noise(self) -> str:
        """Kind of noise, a name of `NOISES`: exact integers, but for simulations and hidden iterates."""
        if self.config.noise != "auto":
            return self.config.noise
        exact = self.config.seed is None and not shows_only_the_end(self.config.algorithm)
        return "discrete-gaussian" if exact else "gaussian"

    @property
    def neighbours(self) -> Neighbours:
        """What every guarantee of the job is relative to."""
        part = Part.SENSITIVE if self.config.protect == "sensitive" else Part.ALL
        return Neighbours(Relation(self.config.neighbours), self.facts.unit, part)

    def run_name(self, trust: str) -> str:
        """Return what ledgers call the run."""
        return f"{self.config.run}-{trust}"

    def settings(self, trust: str, *, epsilon: float | None = None) -> Settings:
        """Return the settings of one training run.

        Args:
            trust: One of `trusts`.
            epsilon: Of the budget; None is the job's.
        """
        job = self.config
        recovers = job.recover and trust == "aggregate"
        budget = PrivacyBudget(job.epsilon if epsilon is None else epsilon, self.delta)
        request = Request(
            trust=trust,
            budget=budget if trust != "none" else None,
            algorithm=AUTO if job.automatic else job.chosen,
            rounds=job.rounds if job.automatic else "auto",  # an algorithm has its own
            clip=job.clip,
            noise=job.noise,
            random_state=None,
            regularization=self._regularization,
            neighbours=job.neighbours,
            sampling="cheapest" if job.sampling == "auto" else "given",
            weights=job.weights,
            participation=None if job.participants is None else RandomSubset(job.participants),
            run=self.run_name(trust),
            # Compared with others, sums that need all silos have no number of their own.
            n_min=job.n_min if trust == job.trust or trust == "shuffle" or recovers else None,
            colluding=job.colluding if trust in _TOGETHER else 0,
            recover=recovers,
            moment=job.stated,
        )
        settings = request.settings(
            self.task, unit=self.neighbours.unit, noise=self.noise, sizes=self.facts.sizes
        )
        if job.algorithm == AUTO and not job.automatic:
            settings = replace(settings, reason=_WITH_OPTIONS)
        return replace(settings, encoding=self.encoding(settings.public))

    @property
    def _regularization(self) -> Regularization:
        """Penalties and the domain; groups are the columns of the public description."""
        return self.config.regularization(self.facts.feature_columns)

    def encoding(self, public: PublicObjective | None) -> str:
        """Return a fingerprint of what makes rows of records, and of what is added to their loss.

        Answers under two maps would fit no model together, nor would those of two regularisers, or beside
        two sets of public records.

        Args:
            public: What is trained on besides; None for nothing.
        """
        features, config, facts = self.task.features, self.config, self.facts
        said = (
            features.facts,
            (facts.classes, facts.target, facts.feature_names, facts.columns),
            (config.label, config.person, config.silo_column),
            *self._regularization.facts,
            *(() if self.task.chosen.is_default else (self.task.chosen,)),
            *(() if config.architecture.is_plain else (str(config.architecture),)),
            *(() if public is None else (public.digest,)),
        )
        return hashlib.sha256(msgspec.json.encode(said, enc_hook=str)).hexdigest()

    def rows(self, X: Array) -> npt.NDArray[np.floating]:
        """Return records as training has them, shape (n, size).

        Args:
            X: Features within public bounds, or in their own units, shape (n, d).
        """
        # Exact integer noise is added to float64 sums; simulations may be faster and smaller, unless numbers
        # are so large that float32 does not hold them.
        whole = self.config.moment is not None or self.noise != "gaussian" or self.trusts == ("aggregate",)
        return self.task.features(X).astype(np.float64 if whole else np.float32)

    def units(self, rows: Array, y: Array, persons: Array | None = None) -> Records | Grouped:
        """Return the protected units of one silo.

        Args:
            rows: As `rows` returns them.
            y: Class numbers, or targets in [-1, 1] or in their own units; NaN where a cell is no label. Shape
                (n,).
            persons: Id of the person of each record, shape (n,); None where a record is the unit.
        """
        records = Records.of(rows, self.task.outcomes(y))
        if self.facts.unit is Unit.PARTY:
            return Grouped.whole(records)
        return records if persons is None else Grouped.of(records, persons)

    def raw(self, w: Array, rows: Array) -> Array:
        """Return what parameters say of records, as `LinearModel.scores`.

        Args:
            w: Shape (size,).
            rows: As `rows` returns them.
        """
        raw = self.task.predictions(w, rows)
        # Squares of what a model says that ran away must not overflow: its run is paid for, and is written.
        return np.asarray(np.clip(np.nan_to_num(raw), -FARTHEST, FARTHEST))

    def score(self, w: Array, rows: Array, held_out: HeldOut) -> Scores:
        """Return the scores of parameters on held-out records; arguments as for `raw`."""
        return score_model(self.raw(w, rows), held_out, self.model(w))

    def model(self, w: Array) -> FittedModel:
        """Return the model with those parameters."""
        return self.task.model(w)

    def clauses(self, trained_with: int = 0) -> tuple[str, ...]:
        """Return what every guarantee of the job says besides the price.

        Args:
            trained_with: How many public records the model was trained with.
        """
        said = clauses_of_run(
            self.neighbours,
            public=self.facts.public,
            read_off=self.facts.read_off,
            sample=self.facts.sample is not None,
            trained_with=trained_with,
            sensitive=self.config.sensitive_columns,
        )
        return (*said, *clauses_of_start(str(self.config.architecture)))

    def with_clauses(
        self, guarantees: Sequence[Guarantee], *, trained_with: int = 0
    ) -> tuple[Guarantee, ...]:
        """Return guarantees as statements have them, with `clauses` among their assumptions, each once."""
        clauses = self.clauses(trained_with)
        return tuple(
            msgspec.structs.replace(g, assumptions=tuple(dict.fromkeys((*g.assumptions, *clauses))))
            for g in guarantees
        )
