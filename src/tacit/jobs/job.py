"""A training job from data to results: what `tacit train` does, without a terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from tacit.errors import ParameterError
from tacit.federation import InProcess
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData, held_out_records, load_job_data, with_description
from tacit.jobs.ledgers import Ledgers
from tacit.jobs.personal import score_personal
from tacit.jobs.results import JobResult, PlannedRun, TrustResult, result_of, warn_of_noise
from tacit.jobs.scores import SweepPoint, headline
from tacit.jobs.terms import JobTerms
from tacit.learning.algorithms import algorithm_name, traits_of
from tacit.learning.algorithms.named import shows_only_the_end
from tacit.learning.linear import is_network
from tacit.learning.loss_choice import LossChoice
from tacit.learning.objective import Grouped, Records
from tacit.learning.prediction import gradient_error, planned_bits
from tacit.learning.preparation import prepare
from tacit.learning.settings import Settings
from tacit.learning.training import consider, silos_for, train
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel

__all__ = ["Job", "Ledgers", "Progress"]

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
        terms: What the job means without them.
    """

    config: JobConfig
    data: JobData = field(init=False)
    terms: JobTerms = field(init=False)

    def __post_init__(self) -> None:
        self.config = with_description(self.config)
        self.data = load_job_data(self.config)
        self.terms = JobTerms(self.config, self.data.facts)
        self._rows = self.terms.rows(self.data.X)

    @property
    def loss(self) -> LossChoice:
        """What is minimised."""
        return self.terms.loss

    @property
    def trusts(self) -> tuple[str, ...]:
        """The trust models that are run, as `JobTerms.trusts`."""
        return self.terms.trusts

    @property
    def delta(self) -> float:
        """The delta of the budget, as `JobTerms.delta`."""
        return self.terms.delta

    def run(self, *, ledgers: Ledgers | None = None, progress: Progress | None = None) -> JobResult:
        """Train, score, and in simulations on public data trace and sweep.

        Args:
            ledgers: Accounts of the table's silos and of the trusted server; None keeps no account.
            progress: Told the trust model, with the budget where that is another; how many rounds are done,
                and how many there are (0: not known).

        Raises:
            BudgetError: A ledger has less left than the job's budget; nothing was spent anywhere.
            LedgerError: The ledgers are of other silos or neighbours, know the run with another plan, or the
                job trains without privacy.
            ParameterError: The job does not fit the data, or has a seed and ledgers.
        """
        if ledgers is not None:
            self._check_ledgers(ledgers)
        self.terms.warn_of_weak()
        results = tuple(self._train(trust, ledgers=ledgers, progress=progress) for trust in self.trusts)
        return JobResult(
            job=self.config,
            facts=self.terms.facts,
            records=self.data,
            delta=self.delta,
            loss=self.loss,
            results=results,
            sweep=self._sweep(results, progress),
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
        self.terms.warn_of_weak()
        return tuple(self._planned(trust, ledgers) for trust in self.trusts)

    def _planned(self, trust: str, ledgers: Ledgers | None) -> PlannedRun:
        """Plan and price one training run."""
        settings = self.terms.settings(trust)
        federation = self._federation(settings, ledgers)
        prepared, guarantees = consider(federation, settings)
        algorithm = settings.algorithm
        error = gradient_error(settings.algorithm, prepared)
        warn_of_noise(trust, algorithm_name(algorithm), error, prepared.rounds)
        return PlannedRun(
            trust=trust,
            algorithm=algorithm_name(settings.algorithm),
            algorithm_reason=settings.reason,
            plan=prepared.plan,
            rounds=prepared.rounds,
            noise_multiplier=prepared.noise_multiplier,
            means=prepared.means,
            gradient_error=error,
            # Of a network's smoothness, on which bounds rest, nothing is known.
            error_bound=math.inf
            if is_network(settings.objective)
            else algorithm.error_bound(prepared.problem, prepared.rounds),
            bits_per_silo=None
            if self.hides_sizes
            else planned_bits(prepared.plan, max(self.data.sizes)) * self._share_asked,
            bounded=traits_of(algorithm).bounds,
            guarantees=self.terms.with_clauses(guarantees, trained_with=settings.trained_with),
            alone=self.terms.with_clauses(
                federation.alone(prepared.plan), trained_with=settings.trained_with
            ),
            trained_with=settings.trained_with,
        )

    @property
    def run_names(self) -> tuple[str, ...]:
        """What ledgers call the run, one name per trust model."""
        return tuple(self.terms.run_name(trust) for trust in self.trusts)

    @property
    def hides_sizes(self) -> bool:
        """Whether how many units a silo has is private."""
        return self.config.neighbours == "zero-out" and not self.data.public

    @property
    def _share_asked(self) -> float:
        """Share of the silos that a round asks, which a silo is among as often."""
        asked = self.config.participants
        return 1.0 if asked is None else asked / len(self.data.silo_names)

    @property
    def _simulates(self) -> bool:
        """Whether traces may be shown: the data are public and the noise can be repeated anyway."""
        return self.data.public and self.config.seed is not None

    def _check_ledgers(self, ledgers: Ledgers) -> None:
        """Look at all accounts before any is charged: a refusal by the last must cost the first nothing."""
        if self.config.seed is not None:
            raise ParameterError("a seed and a ledger exclude each other: seeded noise protects nobody.")
        for trust in self.trusts:
            ledgers.check(
                self.data.silo_names,
                trust=trust,
                run=self.terms.run_name(trust),
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
        settings = self.terms.settings(trust, epsilon=epsilon)
        trace: list[tuple[int, float, float]] = []
        hides, total = shows_only_the_end(settings.algorithm), 0

        def begin(rounds: int) -> None:
            nonlocal total
            total = rounds

        def follow(number: int, w: Array) -> None:
            if traced and self._simulates and not hides and (number < 10 or number % 10 == 9):
                trace.append((number + 1, *self._loss_and_score(w)))
            if progress is not None:
                progress(trust if epsilon is None else f"{trust}, epsilon {epsilon:g}", number + 1, total)

        start = time.perf_counter()
        federation = self._federation(settings, ledgers)
        prepared = prepare(settings, federation.sizes)
        if epsilon is None:  # other budgets are tried for a picture
            error = gradient_error(settings.algorithm, prepared)
            warn_of_noise(trust, algorithm_name(settings.algorithm), error, prepared.rounds)
        trained = train(federation, settings, prepared=prepared, begin=begin, follow=follow)
        seconds = time.perf_counter() - start
        rows, held_out = self._rows[self.data.test], held_out_records(self.data)
        scores = self.terms.score(trained.w, rows, held_out)
        result = result_of(self.terms, trust, trained, scores=scores, seconds=seconds, trace=tuple(trace))
        personal = score_personal(
            self.terms,
            trained.personal,
            scores,
            parties=[self._units(index) for index in self.data.train] if trained.personal else (),
            prepared=prepared,
            algorithm=settings.algorithm,
            rows=rows,
            held_out=held_out,
        )
        return replace(result, personal=personal)

    def _federation(self, settings: Settings, ledgers: Ledgers | None) -> InProcess:
        """Return the silos of one training run, with the accounts that pay for it."""
        own = ledgers is not None and settings.silos_pay
        central = ledgers is not None and settings.trust is TrustModel.CENTRAL
        return silos_for(
            settings,
            [self._units(index, whole=settings.trust is TrustModel.AGGREGATE) for index in self.data.train],
            names=self.data.silo_names,
            seed=self.config.seed,
            ledgers=ledgers.silos if ledgers is not None and own else None,
            ledger=ledgers.central if ledgers is not None and central else None,
            data_ledger=None if ledgers is None else ledgers.data,
        )

    def _sweep(self, results: tuple[TrustResult, ...], progress: Progress | None) -> tuple[SweepPoint, ...]:
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
                again = (
                    result
                    if factor == 1.0
                    else self._train(result.trust, epsilon=epsilon, traced=False, progress=progress)
                )
                points.append(
                    SweepPoint(
                        trust=result.trust,
                        epsilon=epsilon,
                        score=again.score,
                        standard_error=again.scores.standard_error,
                    )
                )
        return tuple(points)

    def _units(self, index: Array, *, whole: bool = False) -> Records | Grouped:
        """Return the units of one silo; whole numbers of noise go on float64 sums, whatever others have."""
        persons = None if self.data.persons is None else self.data.persons[index]
        rows = self._rows[index].astype(np.float64 if whole else self._rows.dtype, copy=False)
        return self.terms.units(rows, self.data.y[index], persons)

    def _loss_and_score(self, w: Array) -> tuple[float, float]:
        """Return loss and score on the held-out records; on private data a release without a price."""
        rows, y = self._rows[self.data.test], self.data.y[self.data.test]
        records = Records.of(rows, self.terms.task.outcomes(y))
        loss = float(np.mean(self.terms.task.objective.value(w, records)))
        return loss, headline(self.terms.raw(w, rows), y, self.terms.model(w))
