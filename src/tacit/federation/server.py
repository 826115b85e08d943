"""The server's half of a round: from answers to means. Under central trust it adds the noise and enforces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tacit.errors import ParameterError, RefusalError, check_choice, check_count, check_name
from tacit.federation.account import check_exact, check_price, given, price_of, reserve
from tacit.federation.answers import open_answer
from tacit.federation.batches import Poisson
from tacit.federation.correlated import CorrelatedStep, pooled, release
from tacit.federation.kept import Keeper, Kept
from tacit.federation.plan import Plan
from tacit.federation.protocols import Weights
from tacit.federation.query import Query
from tacit.federation.shuffler import Batched
from tacit.federation.steps import AnyStep, HiddenRun, Walk
from tacit.federation.store import AnswerStore, LastAnswer, LedgerStore, from_bytes, to_bytes
from tacit.ledger import Ledger
from tacit.means import Estimator, Message, Round
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, PrivacyBudget, Relation, TrustModel, Unit
from tacit.randomness import is_secure

__all__ = ["Server"]

_WHO = "the trusted server"

_TIE = 1e-12  # of a vote


class Server:
    """Turns answers into means.

    Silo i has the weight p_i, and the noise of every silo is scaled to its own mean, whatever p_i is
    (Lowy 2023, Appendix B.1.9). Silos that were asked and did not answer are left out: the mean is that of
    those who answered.
    Where a uniformly random set S of M of the N silos was asked, the mean is multiplied by
    (N/M) sum_{i in S} p_i, so that it is unbiased for the mean of all.

    Votes on signs (`SignVoteMean`) are counted together where all silos have the same weight, which gives the
    signs of the majority; else one by one, which gives a weighted mean of signs, whose own sign is the
    weighted majority. Under central trust every silo has one vote, whatever its size.

    Under central trust, where the server adds the noise, a mean is stored before it is returned: the same
    query gets the same mean, and the same step at another point is refused.

    Args:
        plan: Everything that will be asked.
        sizes: Public number of units of each silo.
        weights: How silos count. Central trust pools the rows, so it counts records only.
        uniform: Whether the silos of a round are a uniformly random set.
        rng: Noise under central trust.

    Raises:
        ParameterError: The plan does not fit the silos or the weights.
    """

    def __init__(
        self,
        plan: Plan,
        sizes: Sequence[int],
        *,
        weights: Weights = "records",
        uniform: bool = True,
        rng: np.random.Generator,
    ) -> None:
        if len(sizes) != plan.parties:
            raise ParameterError(f"the plan is for {plan.parties} silos, got {len(sizes)}.")
        if plan.neighbours.unit is Unit.PARTY and plan.neighbours.relation is Relation.ADD_REMOVE:
            raise ParameterError(
                "neighbours must be replace-one or zero-out where whole parties are protected, got "
                "'add-remove': everybody sees who takes part."
            )
        plan.check_sizes(sizes)
        plan.check_answers(sizes)
        plan.check_honest(sizes)
        plan.check_widths(sizes)
        self._plan, self._schedule = plan, plan.schedule()
        self._sizes = [check_count("the number of units of a silo", n) for n in sizes]
        self._weights = _public_weights(weights, sizes, plan.trust)
        self._uniform = uniform
        self._rng = rng
        self._rows = [[s.batch.size_for(n) for n in sizes] for s in self._schedule.steps]
        self._pooled = [
            [self._pools(measure.estimator, rows) for measure in step.measures]
            for step, rows in zip(self._schedule.steps, self._rows, strict=True)
        ]
        self._keeper = Keeper(plan, TrustModel.CENTRAL, statistics={}, units=0, who=_WHO)
        self._released: AnswerStore = LastAnswer()
        self._accepted = False

    def accept(
        self, *, run: str, budget: PrivacyBudget | None, ledger: Ledger | None, simulated: bool
    ) -> Guarantee:
        """Price the plan as the trusted server, and reserve the price in its ledger.

        Args:
            run: Name of the run.
            budget: What may be spent on the plan; None leaves that to the ledger.
            ledger: The server's account of the pooled data; None keeps none.
            simulated: Whether a silo draws its batches from seeded randomness.

        Raises:
            BudgetError: The price exceeds `budget` or what the ledger has left; nothing is spent.
            LedgerError: The ledger is about other neighbours, or knows the run with another plan.
            RefusalError: There is a ledger, and the plan has continuous noise.
            ParameterError: The plan is not of central trust: each silo adds its own noise and has its own
                budget and ledger.
        """
        price = self.consider(run=run, budget=budget, ledger=ledger, simulated=simulated)
        if ledger is not None:
            reserve(ledger, self._plan, price, run=run)
            self._released = LedgerStore(ledger, run)
        self._accepted = True
        return price

    def consider(
        self, *, run: str, budget: PrivacyBudget | None, ledger: Ledger | None, simulated: bool
    ) -> Guarantee:
        """Check and price the plan as `accept` does, and reserve nothing."""
        check_name("run", run)
        if self._plan.trust is not TrustModel.CENTRAL:
            raise ParameterError(
                f"a server accepts plans of central trust only, got {self._plan.trust.value} trust, under "
                "which every silo has its own budget and ledger."
            )
        seeded = not is_secure(self._rng)
        check_exact(self._plan, who=_WHO, ledger=ledger, simulated=seeded)
        price = price_of(
            self._plan.event(self._sizes, TrustModel.CENTRAL),
            self._plan.delta,
            observer=f"everybody but {_WHO}",
            assumptions=given(self._plan, simulated=seeded),
            simulated=simulated or seeded,
        )
        check_price(price, who=_WHO, run=run, budget=budget, ledger=ledger, plan=self._plan)
        return price

    def released(self, query: Query) -> tuple[Array, ...] | None:
        """Return what a trusted server has answered to this query; None if the step is new.

        Raises:
            RefusalError: The step has been answered at another point.
        """
        if self._plan.trust is not TrustModel.CENTRAL:
            return None  # what the server makes of noisy answers is its own business
        stored = self._released.find(query.step, query.digest())
        return None if stored is None else from_bytes(stored)

    def skip(self, query: Query) -> tuple[Array, ...]:
        """Return what a round without answers gives: zeros, or the point where a walk would start."""
        step = self._schedule.step(query.step)
        if isinstance(step, Walk | HiddenRun):
            return (np.array(query.at["w"], dtype=np.float64),)
        return tuple(np.zeros(measure.estimator.dim) for measure in step.measures)

    def means(self, query: Query, answers: Mapping[int, bytes], *, asked: Sequence[int]) -> tuple[Array, ...]:
        """Return the mean of every statistic, each of shape (dim,).

        Args:
            query: What was asked.
            answers: What silos sent, by their index; at least one.
            asked: All silos that were asked.

        Raises:
            ParameterError: An answer has another form than the plan's.
            RefusalError: The server adds the noise and has not accepted the plan, or has answered the step at
                another point; or the plan trusts a shuffler, whose batches go to `means_of_batch`, or a sum,
                which goes to `means_of_sum`.
        """
        step = self._schedule.step(query.step)
        if step.alone and self._plan.hides_among_others:
            return self._means(query, answers, asked=asked, kept=Kept({}, {}))
        if self._plan.trust is TrustModel.SHUFFLE:
            raise RefusalError("a server reads answers of shuffle trust out of a shuffled batch only.")
        if self._plan.trust is TrustModel.AGGREGATE:
            raise RefusalError("a server reads answers of aggregate trust out of their sum only.")
        if self._plan.trust is not TrustModel.CENTRAL:
            return self._means(query, answers, asked=asked, kept=Kept({}, {}))
        if not self._accepted:
            raise RefusalError("no plan was accepted; a trusted server publishes only what it has priced.")
        stored = self.released(query)
        if stored is not None:
            return stored
        # Of threads that come this far with one step, the store lets the first one publish.
        kept = self._keeper.read(None if self._keeper.idle else self._released.state())
        means = self._means(query, answers, asked=asked, kept=kept)
        return self.publish(query, means, self._keeper.write(kept))

    def means_of_batch(self, query: Query, batch: Batched, *, asked: Sequence[int]) -> tuple[Array, ...]:
        """Return the mean of every statistic from what a shuffler released, each of shape (dim,).

        Args:
            query: What was asked.
            batch: Messages without senders, and how many rows they are about.
            asked: All silos that were asked.

        Raises:
            ParameterError: Messages of another form than the plan's.
        """
        step, scale = self._schedule.step(query.step), self._scale(asked)
        means = []
        for measure, radius, messages in zip(step.measures, query.radius, batch.messages, strict=True):
            this_round = Round(n=batch.rows, radius=radius, number=query.step, parties=batch.parties)
            means.append(measure.estimator.decode(messages, this_round) * scale)
        return tuple(means)

    def means_of_sum(self, query: Query, total: IntArray, parties: Sequence[int]) -> tuple[Array, ...]:
        """Return the mean of every statistic from the sum of the messages of a step, each of shape (dim,).

        Args:
            query: What was asked.
            total: Shape (d,), int64: the sum modulo 2**64, of all means of the step one after the other.
            parties: Whose messages are in it: the mean is that of their rows.

        Raises:
            ParameterError: A sum of another length than the step's.
        """
        kind = self._schedule.kind(query.step)
        step, parties = self._schedule.steps[kind], list(parties)
        rows, dims = sum(self._rows[kind][p] for p in parties), [one.dim for one in step.summed]
        if total.shape != (sum(dims),):
            raise ParameterError(f"the sum of a step must have shape ({sum(dims)},), got {total.shape}.")
        means = []
        parts = np.split(total, np.cumsum(dims)[:-1])
        for estimator, radius, part in zip(step.summed, query.radius, parts, strict=True):
            this_round = Round(n=rows, radius=radius, number=query.step, parties=len(parties))
            mean = estimator.decode([Message(payload=part, width=estimator.width)], this_round)
            means.append(self._per_expected(mean, step, estimator, rows, parties))
        return tuple(means)

    def reads(self, query: Query, party: int, answer: bytes) -> bool:
        """Return whether one answer has the form of the plan; nothing is published or kept."""
        kept = self._keeper.read(None if self._keeper.idle else self._released.state())
        try:
            self._means(query, {party: answer}, asked=[party], kept=kept)
        except (ParameterError, ValueError, OverflowError):
            return False
        return True

    def _means(
        self, query: Query, answers: Mapping[int, bytes], *, asked: Sequence[int], kept: Kept
    ) -> tuple[Array, ...]:
        """Return the means, with the server's noise in them where it adds it."""
        kind, earlier = self._schedule.place(query.step)
        step = self._schedule.steps[kind]
        opened = [open_answer(data, party=party) for party, data in answers.items()]
        for party, groups in zip(answers, opened, strict=True):
            if len(groups) != len(step.measures) or not all(groups):
                raise ParameterError(f"party {party} sent answers to other statistics than it was asked.")
        parties = list(answers)
        if isinstance(step, Walk | HiddenRun):
            return (self._mean_point(step, parties, [groups[0] for groups in opened]),)
        scale = self._scale(asked)
        if isinstance(step, CorrelatedStep):
            sent = [groups[0] for groups in opened]
            if step.trust is TrustModel.LOCAL:
                return (self._mean_point(step, parties, sent) * scale,)
            rows = sum(self._rows[kind][p] for p in parties)
            summed = pooled(step, [message for messages in sent for message in messages])
            released, kept.pasts[kind] = release(
                step, summed, earlier, kept.pasts[kind], radius=query.radius[0], rows=rows, rng=self._rng
            )
            return (released / rows * scale,)
        means = []
        for k, measure in enumerate(step.measures):
            sent = [groups[k] for groups in opened]
            mean = self._mean(kind, k, parties, sent, radius=query.radius[k], number=query.step)
            # A majority stands for itself, whoever else was asked.
            means.append(mean * scale if measure.estimator.linear and scale != 1.0 else mean)
        return tuple(means)

    def _mean(
        self,
        kind: int,
        k: int,
        parties: list[int],
        sent: list[list[Message]],
        *,
        radius: float,
        number: int,
    ) -> Array:
        """Return the weighted mean of what those who answered sent about one statistic."""
        step, rows = self._schedule.steps[kind], self._rows[kind]
        estimator = step.measures[k].estimator
        if self._pooled[kind][k]:
            everything = [message for messages in sent for message in messages]
            n = sum(rows[p] for p in parties)
            this_round = Round(n=n, radius=radius, number=number, parties=len(parties))
            mean = estimator.decode(everything, this_round, rng=self._rng)
            return self._per_expected(mean, step, estimator, n, parties)
        means = [
            self._per_expected(
                estimator.decode(messages, Round(n=rows[p], radius=radius, number=number)),
                step,
                estimator,
                rows[p],
                [p],
            )
            for p, messages in zip(parties, sent, strict=True)
        ]
        mean = np.asarray(self._share(parties) @ np.stack(means))
        if not estimator.linear:
            # Weights that balance must not be decided by their rounding.
            mean[np.abs(mean) < _TIE * radius / math.sqrt(estimator.dim)] = 0.0
        return mean

    def _per_expected(
        self, mean: Array, step: AnyStep, estimator: Estimator, rows: int, parties: list[int]
    ) -> Array:
        """Return what was divided by whole rows, divided by the expected number of a Poisson sample."""
        if not isinstance(step.batch, Poisson) or not estimator.linear:
            return mean
        return np.asarray(mean * (rows / sum(step.batch.expected(self._sizes[p]) for p in parties)))

    def _mean_point(
        self, step: Walk | HiddenRun | CorrelatedStep, parties: list[int], sent: list[list[Message]]
    ) -> Array:
        """Return the weighted mean of points where walks ended, or of means that silos made themselves."""
        points, dim = [messages[0].payload for messages in sent], step.measures[0].estimator.dim
        if any(point.shape != (dim,) for point in points):
            raise ParameterError(f"a party sent a point of another shape than ({dim},).")
        return np.asarray(self._share(parties) @ np.stack(points).astype(np.float64))

    def _share(self, parties: list[int]) -> Array:
        """Return the weights of those who answered; they add up to 1."""
        weights = self._weights[parties]
        return np.asarray(weights / weights.sum())

    def _scale(self, asked: Sequence[int]) -> float:
        """Return (N/M) times the weights of the M that were asked, 1 where no random set was asked."""
        n = len(self._sizes)
        if not self._uniform or len(asked) == n:
            return 1.0
        return float(n / len(asked) * self._weights[list(asked)].sum())

    def _pools(self, estimator: Estimator, rows: list[int]) -> bool:
        """Whether the weighted mean is that of all rows: then noisy sums are added up and divided once.

        Votes are counted together where all silos count the same, whatever they hold.
        """
        counted = np.ones(len(rows)) if estimator.weighs == "parties" else np.asarray(rows)
        share = counted / counted.sum()
        return self._plan.trust is not TrustModel.LOCAL or bool(
            np.allclose(share, self._weights, rtol=1e-12, atol=0.0)
        )

    def publish(
        self, query: Query, means: tuple[Array, ...], state: bytes | None = None
    ) -> tuple[Array, ...]:
        """Store means with the server's noise in them; return what was stored, by whoever was first."""
        return from_bytes(self._released.keep(query.step, query.digest(), to_bytes(means), state))


def _public_weights(weights: Weights, sizes: Sequence[int], trust: TrustModel) -> Array:
    """Return p_i per silo; they add up to 1."""
    by_records = isinstance(weights, str) and weights == "records"
    if trust is TrustModel.AGGREGATE and not by_records:
        raise ParameterError(
            f"weights must be 'records' under aggregate trust, where nobody sees a message; got {weights!r}."
        )
    if trust is TrustModel.SHUFFLE and not by_records:
        raise ParameterError(
            f"weights must be 'records' under shuffle trust, where nobody knows whose rows they are; got "
            f"{weights!r}."
        )
    if trust is TrustModel.CENTRAL and not by_records:
        # Noise is scaled to one record's share 1/n of a pooled sum; other weights would exceed it.
        raise ParameterError(
            "weights must be 'records' under central trust, where a server pools all records, or counts one "
            f"vote a silo where silos vote; got {weights!r}."
        )
    if isinstance(weights, str):
        check_choice("weights", weights, ["records", "silos"])
        given = np.asarray(sizes if by_records else np.ones(len(sizes)), dtype=np.float64)
    else:
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != (len(sizes),) or not np.all((given > 0) & np.isfinite(given)):
            raise ParameterError(f"weights must be {len(sizes)} finite numbers > 0, got {weights!r}.")
    return np.asarray(given / given.sum())
