"""A training job from data to results: what `tacit train` does, without a terminal."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import numpy as np
import pandas as pd

from tacit.errors import ParameterError
from tacit.federation import InProcess, RandomSubset
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData, load_job_data, with_description
from tacit.jobs.ledgers import Ledgers
from tacit.jobs.model import TrainedModel
from tacit.jobs.results import JobResult, PlannedRun, TrustResult
from tacit.jobs.scores import HeldOut, SweepPoint, headline, score_model
from tacit.learning.algorithms import Method, algorithm_name
from tacit.learning.defaults import AUTO
from tacit.learning.fitting import Request
from tacit.learning.loss_choice import LossChoice
from tacit.learning.objective import Grouped, Records
from tacit.learning.regularization import Regularization
from tacit.learning.settings import Settings
from tacit.learning.task import LinearTask
from tacit.learning.training import consider, silos_for, train
from tacit.numerics import Array
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, Relation, TrustModel, Unit
from tacit.privacy.run_clauses import clauses_of_run
from tacit.privacy.weak import warn_of_weak

__all__ = ["FEWEST_UNITS", "Job", "Ledgers", "Progress"]

FEWEST_UNITS = 10
"""Below this many units in a silo, a delta of 1 / n^2 is no small probability."""

_FAR: Final = 1e30
_WITH_OPTIONS: Final = "it takes batches, participants and the other options that were given."
_SWEEP: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Other budgets that a simulation is run at, as shares of its own."""

Progress = Callable[[str, int, int], None]
"""Called with the trust model, the round and the number of rounds; shows nothing of private data."""


@dataclass
class Job:
    """A job with its data loaded; `run` trains under every trust model that it names.

    Attributes:
        config: What to do, with the label and the person that a description of the columns names.
        data: Records and silos; loaded when the job is made.
    """

    config: JobConfig
    data: JobData = field(init=False)

    def __post_init__(self) -> None:
        self.config = with_description(self.config)
        self.data = load_job_data(self.config)
        if self.config.task == "regression" and not self._is_regression:
            raise ParameterError(
                f"task must be 'classification' for {self.config.source}, whose labels are classes, got "
                "'regression'."
            )
        self._check_numbers()
        d = self.data.X.shape[1]
        self._task = LinearTask.of(
            np.full(d, self.data.lower),
            np.full(d, self.data.upper),
            classes=None if self._is_regression else np.asarray(self.data.classes),
            target=self.data.target,
            sample=self.data.sample,
            loss=self.config.chosen_loss(classes=not self._is_regression),
        )
        # Exact integer noise is added to float64 sums; simulations may be faster and smaller.
        dtype = np.float32 if self._noise == "gaussian" else np.float64
        self._rows = self._task.features(self.data.X).astype(dtype)

    @property
    def loss(self) -> LossChoice:
        """What is minimised."""
        return self._task.chosen

    @property
    def trusts(self) -> tuple[str, ...]:
        """The trust models that are run: those of the job, of which one silo alone has nothing to shuffle."""
        alone = self.config.trust == "all" and len(self.data.silo_names) < 2
        return tuple(one for one in self.config.trusts if not (alone and one == "shuffle"))

    @property
    def delta(self) -> float:
        """The delta of the budget; for "auto" 1 / n^2, where the smallest silo trains on n protected units.

        Raises:
            ParameterError: "auto" for a silo of so few units that 1 / n^2 would protect nobody, or where the
                sizes of silos are not shown.
        """
        if self.config.delta != "auto":
            return self.config.delta
        claims = self.trusts != ("none",) and not self.data.public
        if claims and self.config.neighbours == "zero-out":
            raise ParameterError(
                "delta must be a number under zero-out, got 'auto': 1 / n^2 would show the size of a silo."
            )
        # Not records where persons are protected: how many a person has is private.
        n = min(self.data.sizes)
        if n < FEWEST_UNITS and self.trusts != ("none",):
            raise ParameterError(
                f"delta must be a number where a silo trains on fewer than {FEWEST_UNITS} units, got 'auto' "
                f"and {n}: 1 / n^2 would protect nobody."
            )
        return 1 / n**2

    def run(self, *, ledgers: Ledgers | None = None, progress: Progress | None = None) -> JobResult:
        """Train, score, and in simulations on public data trace and sweep.

        Args:
            ledgers: Accounts of the table's silos and of the trusted server; None keeps no account.
            progress: Told the trust model, how many rounds are done, and how many there are (0: not known).

        Raises:
            BudgetError: A ledger has less left than the job's budget; nothing was spent anywhere.
            LedgerError: The ledgers are of other silos or neighbours, know the run with another plan, or the
                job trains without privacy.
            ParameterError: The job does not fit the data, or has a seed and ledgers.
        """
        if ledgers is not None:
            self._check_ledgers(ledgers)
        self._warn_of_weak()
        results = tuple(self._train(trust, ledgers=ledgers, progress=progress) for trust in self.trusts)
        return JobResult(
            job=self.config,
            data=self.data,
            delta=self.delta,
            loss=self.loss,
            results=results,
            sweep=self._sweep(results),
        )

    def preview(self, *, ledgers: Ledgers | None = None) -> tuple[PlannedRun, ...]:
        """Plan and price the job as `run` does; nothing is asked and nothing is spent.

        Args:
            ledgers: As for `run`; what they have left is looked at.

        Returns:
            One plan per trust model.

        Raises:
            TacitError: As in `run`.
        """
        if ledgers is not None:
            self._check_ledgers(ledgers)
        self._warn_of_weak()
        return tuple(self._planned(trust, ledgers) for trust in self.trusts)

    def _planned(self, trust: str, ledgers: Ledgers | None) -> PlannedRun:
        """Plan and price one training run."""
        settings = self._settings(trust, self.config.epsilon)
        federation = self._federation(settings, ledgers)
        prepared, guarantees = consider(federation, settings)
        algorithm = settings.algorithm
        return PlannedRun(
            trust=trust,
            algorithm=algorithm_name(settings.algorithm),
            algorithm_reason=settings.reason,
            plan=prepared.plan,
            rounds=prepared.rounds,
            noise_multiplier=prepared.noise_multiplier,
            means=prepared.means,
            gradient_error=prepared.problem.noise_std / prepared.problem.radius,
            error_bound=algorithm.error_bound(prepared.problem, prepared.rounds),
            bounded=algorithm.bounds if isinstance(algorithm, Method) else "excess",
            guarantees=self._with_clauses(guarantees),
            before_shuffling=self._with_clauses(federation.before_shuffling(prepared.plan)),
        )

    def _warn_of_weak(self) -> None:
        """Warn once of a budget that promises next to nothing; sizes may be hidden."""
        if self.trusts == ("none",):
            return
        sizes = self.data.sizes
        hidden = self.config.neighbours == "zero-out" and not self.data.public
        most = max(sizes) if self.trusts == ("local",) else sum(sizes)
        warn_of_weak(
            self.config.epsilon,
            self.delta,
            units=None if hidden else most,
            unit=self._neighbours.unit,
            stacklevel=4,
        )

    def _check_numbers(self) -> None:
        """Refuse more silos or units than there are, by the names that a job has for them."""
        silos, asked = len(self.data.silo_names), self.config.participants
        if asked is not None and asked > silos:
            raise ParameterError(f"participants must be at most the {silos} silos of the data, got {asked}.")
        batch, fewest = self.config.batch, min(self.data.sizes)
        if isinstance(batch, int) and batch > fewest:
            hidden = self.config.neighbours == "zero-out" and not self.data.public
            most = "the units" if hidden else f"the {fewest} units"
            raise ParameterError(f"batch must be at most {most} of the smallest silo, got {batch}.")

    @property
    def run_names(self) -> tuple[str, ...]:
        """What ledgers call the run, one name per trust model."""
        return tuple(self._run_name(trust) for trust in self.trusts)

    @property
    def _is_regression(self) -> bool:
        return not self.data.classes

    @property
    def _simulates(self) -> bool:
        """Whether traces may be shown: the data are public and the noise can be repeated anyway."""
        return self.data.public and self.config.seed is not None

    @property
    def _noise(self) -> str:
        if self.config.noise != "auto":
            return self.config.noise
        return "discrete-gaussian" if self.config.seed is None else "gaussian"

    @property
    def _neighbours(self) -> Neighbours:
        """What every guarantee of the job is relative to."""
        unit = Unit.RECORD if self.data.persons is None else Unit.PERSON
        return Neighbours(Relation(self.config.neighbours), unit)

    def _run_name(self, trust: str) -> str:
        """Return what ledgers call the run."""
        return f"{self.config.run}-{trust}"

    def _check_ledgers(self, ledgers: Ledgers) -> None:
        """Look at all accounts before any is charged: a refusal by the last must cost the first nothing."""
        if self.config.seed is not None:
            raise ParameterError("a seed and a ledger exclude each other: seeded noise protects nobody.")
        for trust in self.trusts:
            ledgers.check(
                self.data.silo_names,
                trust=trust,
                run=self._run_name(trust),
                budget=PrivacyBudget(self.config.epsilon, self.delta),
            )

    def _train(
        self,
        trust: str,
        *,
        ledgers: Ledgers | None = None,
        progress: Progress | None = None,
        epsilon: float | None = None,
        traced: bool = True,
    ) -> TrustResult:
        """Train under one trust model."""
        settings = self._settings(trust, self.config.epsilon if epsilon is None else epsilon)
        trace: list[tuple[int, float, float]] = []
        total = 0

        def begin(rounds: int) -> None:
            nonlocal total
            total = rounds

        def follow(number: int, w: Array) -> None:
            if traced and self._simulates and (number < 10 or number % 10 == 9):
                trace.append((number + 1, *self._loss_and_score(w)))
            if progress is not None:
                progress(trust, number + 1, total)

        start = time.perf_counter()
        trained = train(self._federation(settings, ledgers), settings, begin=begin, follow=follow)
        seconds = time.perf_counter() - start
        guarantees = self._with_clauses(trained.guarantees)
        linear = self._task.model(trained.w)
        return TrustResult(
            trust=trust,
            scores=score_model(self._raw(trained.w), self._held_out, linear),
            trained=trained,
            guarantees=guarantees,
            model=TrainedModel(
                linear=linear,
                feature_names=self.data.feature_names,
                columns=self.data.columns,
                run=self.config.run,
                trust=trust,
                privacy=str(max(guarantees, key=lambda g: g.epsilon)),
            ),
            seconds=seconds,
            trace=tuple(trace),
            before_shuffling=self._with_clauses(trained.guarantees_before_shuffling),
        )

    def _federation(self, settings: Settings, ledgers: Ledgers | None) -> InProcess:
        """Return the silos of one training run, with the accounts that pay for it."""
        own = ledgers is not None and settings.trust in (TrustModel.LOCAL, TrustModel.SHUFFLE)
        central = ledgers is not None and settings.trust is TrustModel.CENTRAL
        return silos_for(
            settings,
            [self._units(index) for index in self.data.train],
            names=self.data.silo_names,
            seed=self.config.seed,
            ledgers=ledgers.silos if ledgers is not None and own else None,
            ledger=ledgers.central if ledgers is not None and central else None,
            data_ledger=None if ledgers is None else ledgers.data,
        )

    def _with_clauses(self, guarantees: Sequence[Guarantee]) -> tuple[Guarantee, ...]:
        """Return guarantees with the notes of the data among their assumptions."""
        return tuple(
            msgspec.structs.replace(g, assumptions=(*g.assumptions, *self._clauses())) for g in guarantees
        )

    def _sweep(self, results: tuple[TrustResult, ...]) -> tuple[SweepPoint, ...]:
        """Return scores at other budgets, for the picture of accuracy against epsilon."""
        if not self._simulates:
            return ()
        points = []
        for result in results:
            if result.trust == "none":
                continue
            # Noise bits of a shuffled run grow as 1 / epsilon^2, and all of them are drawn.
            for factor in _SWEEP[2:] if result.trust == TrustModel.SHUFFLE else _SWEEP:
                epsilon = self.config.epsilon * factor
                again = result if factor == 1.0 else self._train(result.trust, epsilon=epsilon, traced=False)
                points.append(
                    SweepPoint(
                        trust=result.trust,
                        epsilon=epsilon,
                        score=again.score,
                        standard_error=again.scores.standard_error,
                    )
                )
        return tuple(points)

    def _settings(self, trust: str, epsilon: float) -> Settings:
        """Return the settings of one training run."""
        job = self.config
        request = Request(
            trust=trust,
            budget=PrivacyBudget(epsilon, self.delta) if trust != "none" else None,
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
            run=self._run_name(trust),
            n_min=job.n_min if trust == "shuffle" else None,
            colluding=job.colluding if trust == "shuffle" else 0,
        )
        settings = request.settings(
            self._task, unit=self._neighbours.unit, noise=self._noise, sizes=self.data.sizes
        )
        if job.algorithm == AUTO and not job.automatic:
            settings = replace(settings, reason=_WITH_OPTIONS)
        return replace(settings, encoding=self._encoding)

    @property
    def _regularization(self) -> Regularization:
        """Penalties and the domain; groups are the columns of the public description."""
        return self.config.regularization(self.data.feature_columns)

    @property
    def _encoding(self) -> str:
        """Fingerprint of what makes rows of records, and of what is added to their loss.

        Answers under two maps would fit no model together, nor would those of two regularisers.
        """
        features, config = self._task.features, self.config
        said = (
            (features.lower.tolist(), features.upper.tolist(), features.unit_rows, features.scaling),
            (self.data.classes, self.data.target, self.data.feature_names, self.data.columns),
            (config.label, config.person, config.silo_column),
            *self._regularization.facts,
            *(() if self._task.chosen.is_default else (self._task.chosen,)),
        )
        return hashlib.sha256(msgspec.json.encode(said, enc_hook=str)).hexdigest()

    def _units(self, index: Array) -> Records | Grouped:
        """Return the units of one silo."""
        records = self._records(index)
        return records if self.data.persons is None else Grouped.of(records, self.data.persons[index])

    def _records(self, index: Array) -> Records:
        """Return records as the loss is of them."""
        return Records.of(self._rows[index], self._task.outcomes(self.data.y[index]))

    @property
    def _held_out(self) -> HeldOut:
        """The held-out records, without their features."""
        data = self.data
        owners = data.test if data.persons is None else data.persons[data.test]
        return HeldOut(
            y=data.y[data.test],
            units=pd.factorize(owners, use_na_sentinel=False)[0],
            silos=data.test_silos,
            silo_names=data.silo_names,
            classes=data.classes,
            target=data.target,
        )

    def _raw(self, w: Array) -> Array:
        """Return what parameters say of the held-out records, as `LinearModel.scores`."""
        raw: Array = self._rows[self.data.test] @ w.reshape(self._task.features.size, -1).astype(
            self._rows.dtype
        )
        # Squares of what a model says that ran away must not overflow: its run is paid for, and is written.
        raw = np.clip(np.nan_to_num(raw), -_FAR, _FAR)
        return raw if raw.shape[1] > 1 else raw[:, 0]

    def _loss_and_score(self, w: Array) -> tuple[float, float]:
        """Return loss and score on the held-out records; on private data a release without a price."""
        records, y = self._records(self.data.test), self.data.y[self.data.test]
        loss = float(np.mean(self._task.objective.value(w, records)))
        return loss, headline(self._raw(w), y, self._task.model(w))

    def _clauses(self) -> tuple[str, ...]:
        """Return what the statement must say besides the price."""
        return clauses_of_run(
            self._neighbours,
            public=self.data.public,
            read_off=self.data.read_off,
            sample=self.data.sample is not None,
        )
