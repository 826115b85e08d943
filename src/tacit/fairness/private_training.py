"""How DP-FERMI is run: from a budget to a priced plan, to silos, to the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.fairness.private_fermi import PrivateFermi, PublicRecords
from tacit.fairness.units import FairUnits
from tacit.federation import InProcess, OpenSums, Plan, Silo, least_multiplier, with_honest, with_widths
from tacit.learning import NOISES, in_process
from tacit.learning.algorithms import Problem, Protection
from tacit.ledger import Accounts
from tacit.numerics import Array
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, Relation, TrustModel, Unit
from tacit.randomness import simulated

__all__ = ["PrivateRun", "PrivateTraining"]

_MIXED: Final = (TrustModel.SHUFFLE, TrustModel.AGGREGATE)


@dataclass(frozen=True, kw_only=True)
class PrivateRun:
    """What a run leaves.

    Attributes:
        theta: Parameters, shape (size,).
        weight: Of the penalty in the last round.
        noise_multiplier: Standard deviation / sensitivity of one release with all of the budget; 0 without.
        plan: What was asked.
        guarantees: One in all under central trust, else one per silo.
        alone: Under shuffle and aggregate trust, what the messages of each silo show alone.
    """

    theta: Array
    weight: float
    noise_multiplier: float
    plan: Plan
    guarantees: list[Guarantee]
    alone: list[Guarantee]


@dataclass(frozen=True, kw_only=True)
class PrivateTraining:
    """Everything about a run of DP-FERMI that is not data. All of it is public.

    Attributes:
        method: What is asked, and what is made of it.
        budget: What each silo may spend, or the server under central trust; None trains without privacy.
        trust: Who is trusted with messages; without privacy, `CENTRAL`.
        noise: A name in `tacit.learning.NOISES`.
        n_min: Silos below which a round is given up, under shuffle and aggregate trust; None is all of them.
        colluding: Silos there that may tell what they sent.
        run: Name of the run in ledgers.

    Raises:
        ParameterError: No delta with Gaussian noise.
    """

    method: PrivateFermi
    budget: PrivacyBudget | None
    trust: TrustModel = TrustModel.CENTRAL
    noise: str = "gaussian"
    n_min: int | None = None
    colluding: int = 0
    run: str = "run"

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget.delta == 0:
            raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0.")
        if self.budget is None and self.trust is not TrustModel.CENTRAL:
            raise ParameterError(f"trust must be central without a budget, got {self.trust.value}.")
        check_count("colluding", self.colluding, low=0)
        if self.budget is not None and (self.n_min, self.colluding) != (None, 0) and self.trust not in _MIXED:
            raise ParameterError(
                f"n_min and colluding are for shuffle and aggregate trust, got {self.n_min} and "
                f"{self.colluding}."
            )

    @property
    def neighbours(self) -> Neighbours:
        """What is protected."""
        return Neighbours(Relation.REPLACE_ONE, Unit.RECORD, self.method.part)

    def plan(self, multiplier: float, sizes: Sequence[int]) -> Plan:
        """Return all that is asked, with that much noise.

        Args:
            multiplier: Standard deviation / sensitivity of one release with all of the budget; 0 adds none.
            sizes: Public number of records of each silo.

        Raises:
            ParameterError: The numbers of silos do not fit the trust model.
        """
        hides = self.trust in _MIXED
        if hides and len(sizes) < 2:
            raise ParameterError(
                f"trust must not be {self.trust.value} with one silo: mixed with no other one, a message "
                "hides nothing; say which silo holds each record (silos=, --silo-column), or trust otherwise."
            )
        n_min = (len(sizes) if self.n_min is None else self.n_min) if hides else 0
        problem = Problem(
            smoothness=1.0,
            radius=self.method.most,
            diameter=1.0,
            dim=self.method.model.size,
            variance=0.0,
            protection=Protection(
                trust=self.trust,
                neighbours=self.neighbours,
                noise=NOISES[self.noise],
                multiplier=multiplier,
                silos=tuple(sizes) if hides else (),
                fewest=max(n_min - self.colluding, 0),
            ),
        )
        steps = self.method.steps(problem)
        if self.trust is TrustModel.SHUFFLE:
            steps = with_honest(steps, sizes, n_min=n_min, colluding=self.colluding)
        elif self.trust is TrustModel.AGGREGATE:
            steps = with_widths(steps, sizes)
        return Plan(
            steps=steps,
            parties=len(sizes),
            trust=self.trust,
            n_min=n_min,
            colluding=self.colluding if hides else 0,
            delta=0.0 if self.budget is None else self.budget.delta,
        )

    def multiplier(self, sizes: Sequence[int]) -> float:
        """Return the least noise that meets the budget in every silo; 0 without privacy.

        Raises:
            BudgetError: No noise meets it.
        """
        if self.budget is None:
            return 0.0
        return least_multiplier(lambda z: self.plan(z, sizes), sizes, self.budget)

    def federation(
        self,
        silos: Sequence[FairUnits],
        *,
        names: Sequence[str] | None = None,
        accounts: Accounts | None = None,
        seed: int | None = None,
    ) -> InProcess:
        """Return silos in this process that answer what is asked.

        Args:
            silos: What each of them holds.
            names: Of silos; None numbers them.
            accounts: What pays; None keeps no account.
            seed: For simulation; None takes secret randomness.
        """
        pays = self.trust is not TrustModel.CENTRAL
        return in_process(
            [
                Silo(
                    units,
                    self.method.statistics,
                    name=f"silo {k}" if names is None else names[k],
                    unit=Unit.RECORD,
                    ledger=accounts.silos[k] if accounts is not None and pays else None,
                    trusts_server=not pays,
                    trusts_shuffler=self.trust is TrustModel.SHUFFLE,
                    sums=OpenSums(colluding=self.colluding) if self.trust is TrustModel.AGGREGATE else None,
                    rng=None if seed is None else simulated(seed, "silo", k),
                )
                for k, units in enumerate(silos)
            ],
            ledger=accounts.central if accounts is not None and not pays else None,
            data_ledger=None if accounts is None else accounts.data,
            seed=seed,
        )

    def train(
        self, federation: InProcess, start: Array, *, public: PublicRecords | None = None
    ) -> PrivateRun:
        """Train one model across silos.

        Args:
            federation: Made by `federation`.
            start: Public parameters, shape (size,).
            public: Features and labels of all records, silo by silo, where only groups are private.

        Raises:
            BudgetError: The price exceeds what a ledger has left; nothing was spent.
            LedgerError: A ledger is about other neighbours; nothing was spent.
        """
        sizes = federation.sizes
        multiplier = self.multiplier(sizes)
        plan = self.plan(multiplier, sizes)
        ask = federation.open(plan, run=self.run, budget=self.budget)
        found = self.method.run(ask, start, n=int(np.sum(sizes)), public=public)
        return PrivateRun(
            theta=found.theta,
            weight=found.weight,
            noise_multiplier=multiplier,
            plan=plan,
            guarantees=ask.guarantees,
            alone=ask.guarantees_alone,
        )
